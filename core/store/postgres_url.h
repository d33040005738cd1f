/* The URL of a PostgreSQL store: a URL of libpq and options of the store.
 *
 *     postgresql://[user[:password]@][host[:port],...][/database][?option=value&...]
 *
 * The options of the store are taken out: schema, synchronous_commit and listen. The rest
 * is for libpq, which takes what is missing from PG* variables of the environment. */
#ifndef SGI_POSTGRES_URL_H
#define SGI_POSTGRES_URL_H

#include "store/postgres_schema.h"

#define SGI_PG_URL_MAX 2048

typedef struct sgi_pg_url {
    char server[SGI_PG_URL_MAX]; /* the URL for libpq */
    char listen[SGI_PG_URL_MAX]; /* another URL for the watching thread; "" = the same */
    char schema[SGI_PG_SCHEMA_MAX + 1]; /* default "segue" */
    char sync[16]; /* value of synchronous_commit; "" = as the server is set */
} sgi_pg_url;

/* Parses a URL. Returns SEGUE_E_INVALID when it is malformed. *reason then says why; it
 * never contains a part of the URL. */
segue_status sgi_pg_url_parse(sgi_pg_url *url, const char *text, const char **reason);

#endif
