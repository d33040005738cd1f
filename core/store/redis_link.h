/* One connection to a Redis server. The connection sends commands and receives replies,
 * each with a time limit. Only one thread at a time may use a connection. */
#ifndef SGI_REDIS_LINK_H
#define SGI_REDIS_LINK_H

#include <hiredis/hiredis.h>

#include "store/redis_server_info.h"
#include "store/redis_script.h"
#include "store/redis_url.h"

#define SGI_REDIS_SHA 40

typedef struct sgi_redis_link {
    const sgi_redis_url *url;
    /* the SCRIPT LOAD commands that are sent when the link opens; empty = the link runs
     * no scripts */
    sgi_str loading;
    /* a descriptor that ends every wait of the link when it becomes readable; -1 = no
     * such descriptor */
    int stop_fd;
    redisContext *context; /* hiredis's object for the connection; NULL = not connected */
    void *tls;
    /* the server as the reply to INFO described it when the link opened; valid only if
     * the link runs scripts */
    sgi_redis_server_info peer;
    char shas[SGI_REDIS_SCRIPTS][SGI_REDIS_SHA];
    char fault[200]; /* the reason why the link is not connected */
} sgi_redis_link;

/* Returns the monotonic time in ms. The store uses this real clock and not the injected
 * clock, because its calls really wait. */
int64_t sgi_redis_monotonic_ms(void);

/* Initialises a link. loading: SCRIPT LOAD commands, which must stay valid as long as the
 * link. stop_fd: a descriptor that ends waits when it becomes readable, or -1. */
void sgi_redis_link_init(sgi_redis_link *link, const sgi_redis_url *url, sgi_str loading,
                         int stop_fd);
/* Connects, signs in, selects the database, checks whether the server can be used as a
 * store, and loads the scripts. deadline: a time of sgi_redis_monotonic_ms. Returns
 * SEGUE_E_UNSUPPORTED for a server that cannot be used as a store, and for TLS in a
 * library that was built without TLS; otherwise SEGUE_E_STORE. On failure `fault` has the
 * reason. */
segue_status sgi_redis_link_open(sgi_redis_link *link, int64_t deadline);
void sgi_redis_link_close(sgi_redis_link *link);
static inline bool sgi_redis_link_is_up(const sgi_redis_link *link)
{
    return link->context != NULL;
}

/* Queues complete commands. sgi_redis_link_flush, _reply and _poll send the queued
 * commands. */
bool sgi_redis_link_send(sgi_redis_link *link, const char *bytes, size_t len);
bool sgi_redis_link_flush(sgi_redis_link *link, int64_t deadline);
/* Waits for the next reply, which the caller frees with freeReplyObject. When no reply
 * arrives in time, closes the connection and returns NULL. */
redisReply *sgi_redis_link_reply(sgi_redis_link *link, int64_t deadline);
/* Returns a reply that has already arrived, without waiting. *reply becomes NULL when no
 * reply has arrived. Returns false when the connection was lost; the function has then
 * closed it. */
bool sgi_redis_link_poll(sgi_redis_link *link, redisReply **reply);

/* Sends one command and waits for its reply, which the caller frees. On an error reply or
 * after the deadline, closes the connection and returns NULL. */
redisReply *sgi_redis_link_execute(sgi_redis_link *link, int count, const char **args,
                                   int64_t deadline);

/* ---- commands ---- */

/* Begins a command with `count` arguments. The caller then adds the arguments one by
 * one. */
void sgi_redis_command_begin(sgi_buf *commands, size_t count);
void sgi_redis_arg(sgi_buf *commands, const void *bytes, size_t len);
void sgi_redis_arg_text(sgi_buf *commands, const char *text);
void sgi_redis_arg_int(sgi_buf *commands, int64_t value);
/* Begins an argument of len bytes. The caller then appends the bytes and calls
 * sgi_redis_arg_end. */
void sgi_redis_arg_begin(sgi_buf *commands, size_t len);
void sgi_redis_arg_end(sgi_buf *commands);

/* ---- TLS ---- */

/* Starts TLS on a connection. redisFree frees the TLS session together with the
 * connection; the caller frees *tls with sgi_redis_tls_free. In a library that was built
 * without TLS, sgi_redis_tls_start fails and sgi_redis_tls_free does nothing. */
bool sgi_redis_tls_start(redisContext *context, const sgi_redis_url *url, void **tls,
                         char *fault, size_t size);
void sgi_redis_tls_free(void *tls);

#endif
