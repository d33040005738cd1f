/* The SQL text of the PostgreSQL store, and its migrations. In all SQL text of this
 * library, "@" stands for the name of the store's schema. */
#ifndef SGI_POSTGRES_SCHEMA_H
#define SGI_POSTGRES_SCHEMA_H

#include "base/buf.h"

/* The newest format that this library reads and writes; also the number of the last
 * migration. */
#define SGI_PG_FORMAT 2
/* The newest format that is taken when a store is opened. Older servers can ignore it. */
#define SGI_PG_FORMAT_AT_ONCE 1
/* The format from which on records and entries have format 2 (core/docs/upgrades.md). */
#define SGI_PG_FORMAT_OF_RECORDS_2 2

/* The name of an owner begins with these bytes and the newest format that it reads, in
 * two bytes. The names of owners that read only format 1 are random. */
#define SGI_PG_OWNER_MARK "Segue\0"

/* Maximum length of the name of a schema. The names of the LISTEN channels contain
 * this name, and PostgreSQL limits their length. */
#define SGI_PG_SCHEMA_MAX 40

/* Appends SQL text in which each "@" is replaced by the quoted name of the schema. */
void sgi_pg_add_sql(sgi_buf *to, const char *sql, const char *schema);
/* Appends the SQL text of the migration to format `number`; the first format is 1. */
void sgi_pg_add_migration(sgi_buf *to, int number, const char *schema);

/* A statement without changes that returns the format of the schema (bigint), and whether
 * an owner lives that does not read the newest one (boolean). $1: the own name. */
extern const char sgi_pg_look_sql[];

/* The SQL functions of format 1, from postgres_functions.c and
 * postgres_functions_commit.c. A NULL ends each array. */
extern const char *const sgi_pg_functions[];
extern const char *const sgi_pg_commit_functions[];

#endif
