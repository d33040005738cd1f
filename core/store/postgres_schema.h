/* The SQL of the PostgreSQL store and its migrations. The name of the store's schema is
 * written "@" in all SQL text of this library. */
#ifndef SGI_POSTGRES_SCHEMA_H
#define SGI_POSTGRES_SCHEMA_H

#include "base/buf.h"

/* The format that this library writes, which is the number of the last migration. */
#define SGI_PG_FORMAT 1

/* Maximum length of the name of a schema. Names of channels contain it. */
#define SGI_PG_SCHEMA_MAX 40

/* Appends SQL text, with the quoted name of the schema for each "@". */
void sgi_pg_add_sql(sgi_buf *to, const char *sql, const char *schema);
/* Appends the SQL text of the migration to format `number` (from 1 on). */
void sgi_pg_add_migration(sgi_buf *to, int number, const char *schema);

/* The functions of format 1, in postgres_functions.c and postgres_functions_commit.c.
 * NULL at the end. */
extern const char *const sgi_pg_functions[];
extern const char *const sgi_pg_commit_functions[];

#endif
