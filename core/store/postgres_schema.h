/* The SQL text of the PostgreSQL store, and its migrations. In all SQL text of this
 * library, "@" stands for the name of the store's schema. */
#ifndef SGI_POSTGRES_SCHEMA_H
#define SGI_POSTGRES_SCHEMA_H

#include "base/buf.h"

/* The format that this library writes; also the number of the last migration. */
#define SGI_PG_FORMAT 1

/* Maximum length of the name of a schema. The names of the LISTEN channels contain
 * this name, and PostgreSQL limits their length. */
#define SGI_PG_SCHEMA_MAX 40

/* Appends SQL text in which each "@" is replaced by the quoted name of the schema. */
void sgi_pg_add_sql(sgi_buf *to, const char *sql, const char *schema);
/* Appends the SQL text of the migration to format `number`; the first format is 1. */
void sgi_pg_add_migration(sgi_buf *to, int number, const char *schema);

/* The SQL functions of format 1, from postgres_functions.c and
 * postgres_functions_commit.c. A NULL ends each array. */
extern const char *const sgi_pg_functions[];
extern const char *const sgi_pg_commit_functions[];

#endif
