/* One connection to a Redis server: connecting, commands out, replies in, each with a
 * time limit. Used by one thread at a time. */
#ifndef SGI_REDIS_LINK_H
#define SGI_REDIS_LINK_H

#include <hiredis/hiredis.h>

#include "store/redis_peer.h"
#include "store/redis_script.h"
#include "store/redis_url.h"

#define SGI_REDIS_SHA 40

typedef struct sgi_redis_link {
    const sgi_redis_url *url;
    sgi_str loading; /* SCRIPT LOAD commands to send; none = it runs no scripts */
    int wake;        /* a descriptor that ends every wait when readable; -1 = none */
    redisContext *context; /* NULL = down */
    void *tls;
    sgi_redis_peer peer; /* if it runs scripts: who is there, since it was opened */
    char shas[SGI_REDIS_SCRIPTS][SGI_REDIS_SHA];
    char fault[200]; /* why it is down */
} sgi_redis_link;

/* Monotonic milliseconds. A store that blocks has its own clock: its waits are real. */
int64_t sgi_redis_now(void);

/* wake: -1 or a descriptor. loading must live as long as the link. */
void sgi_redis_link_init(sgi_redis_link *link, const sgi_redis_url *url, sgi_str loading,
                         int wake);
/* Connects, signs in, selects the database, looks who is there and loads the scripts;
 * deadlines are times of sgi_redis_now. SEGUE_E_STORE with fault, SEGUE_E_UNSUPPORTED for
 * TLS without a library for it, and for a server that can never be the store. */
segue_status sgi_redis_link_open(sgi_redis_link *link, int64_t deadline);
void sgi_redis_link_close(sgi_redis_link *link);
static inline bool sgi_redis_link_is_up(const sgi_redis_link *link)
{
    return link->context != NULL;
}

/* Queues whole commands; they leave with the next call below. */
bool sgi_redis_link_send(sgi_redis_link *link, const char *bytes, size_t len);
bool sgi_redis_link_flush(sgi_redis_link *link, int64_t deadline);
/* The next reply, to be freed with freeReplyObject; NULL when there is none in time: the
 * connection is closed then. */
redisReply *sgi_redis_link_reply(sgi_redis_link *link, int64_t deadline);
/* The next that has arrived already, without waiting; *reply NULL when there is none.
 * False when the connection was lost, and is closed. */
bool sgi_redis_link_poll(sgi_redis_link *link, redisReply **reply);

/* One command, from arguments on the stack; its reply, which is no error and to be freed,
 * or NULL: the connection is closed then. */
redisReply *sgi_redis_link_demand(sgi_redis_link *link, int count, const char **args,
                                  int64_t deadline);

/* ---- commands ---- */

/* Begins a command of so many arguments, then one call for each. */
void sgi_redis_begin(sgi_buf *commands, size_t count);
void sgi_redis_arg(sgi_buf *commands, const void *bytes, size_t len);
void sgi_redis_arg_text(sgi_buf *commands, const char *text);
void sgi_redis_arg_int(sgi_buf *commands, int64_t value);
/* The head of an argument whose len bytes and sgi_redis_arg_end follow. */
void sgi_redis_arg_begin(sgi_buf *commands, size_t len);
void sgi_redis_arg_end(sgi_buf *commands);

/* ---- TLS ---- */

/* Both do nothing useful in a library that was built without it. *tls is freed by
 * redisFree with the context but for what is returned here. */
bool sgi_redis_tls_start(redisContext *context, const sgi_redis_url *url, void **tls,
                         char *fault, size_t size);
void sgi_redis_tls_free(void *tls);

#endif
