/* A pgbouncer in front of a PostgreSQL server, on a free loopback port. The pool runs as
 * the user of the server and ends with the test program. On a machine without pgbouncer
 * the test fails; .ci/setup installs it. */
#ifndef POSTGRES_POOL_H
#define POSTGRES_POOL_H

#include "support/postgres_server.h"

typedef struct postgres_pool postgres_pool;

/* Starts a pool. mode: "session" or "transaction". size: maximum number of connections
 * from the pool to the server. Returns false with a message on standard error. */
bool postgres_pool_start(const postgres_server *server, const char *mode, int size,
                         postgres_pool **out);
/* Kills the pool; NULL is a no-op. */
void postgres_pool_stop(postgres_pool *pool);
/* Returns a URL for the superuser "segue" and the database "postgres". */
const char *postgres_pool_url(const postgres_pool *pool);

#endif
