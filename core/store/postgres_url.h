/* The URL of a PostgreSQL store: a URL of libpq with additional options of the store.
 *
 *     postgresql://[user[:password]@][host[:port],...][/database][?option=value&...]
 *
 * The store removes its own options: schema, synchronous_commit and listen. libpq gets
 * the rest of the URL, and takes missing values from the PG* variables of the
 * environment. */
#ifndef SGI_POSTGRES_URL_H
#define SGI_POSTGRES_URL_H

#include "store/postgres_schema.h"

#define SGI_PG_URL_MAX 2048

typedef struct sgi_pg_url {
    char server[SGI_PG_URL_MAX]; /* the URL for libpq */
    /* the URL for the watching thread; "" = the thread uses `server` */
    char listen[SGI_PG_URL_MAX];
    char schema[SGI_PG_SCHEMA_MAX + 1]; /* default "segue" */
    char sync[16]; /* value of synchronous_commit; "" = the setting of the server */
} sgi_pg_url;

/* Parses a URL. Returns SEGUE_E_INVALID when the URL is malformed. *reason then has the
 * reason, which never contains a part of the URL. */
segue_status sgi_pg_url_parse(sgi_pg_url *url, const char *text, const char **reason);

#endif
