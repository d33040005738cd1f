/* The connections of a listener that keep the buffers of their last request while they
 * wait for the next one. There are at most `ready_conns` of them: those that made
 * requests lately. All others free these buffers, so thousands of idle connections need
 * little memory, and those that are busy beside them need not make buffers anew.
 *
 * Connections are chosen as the clock algorithm does it: a request costs one mark. The
 * functions run with the lock held. */
#ifndef SGI_HTTP_READY_H
#define SGI_HTTP_READY_H

#include "base/base.h"

typedef struct sgi_http_conn sgi_http_conn;

typedef struct sgi_http_ready_list {
    /* the next one to be looked at is the last */
    TAILQ_HEAD(sgi_http_ready_conns, sgi_http_conn) conns;
    int32_t count;
} sgi_http_ready_list;

/* What a connection has in it. */
typedef struct sgi_http_ready {
    TAILQ_ENTRY(sgi_http_conn) link;
    bool is_in;
    bool used; /* true = it made a request since the list has looked at it */
} sgi_http_ready;

void sgi_http_ready_init(sgi_http_ready_list *list);
/* Marks a connection that waits for its next request. Returns false when it is not in the
 * list, which sgi_http_ready_add then adds it to. */
static inline bool sgi_http_ready_mark(sgi_http_ready *ready)
{
    ready->used = true;
    return ready->is_in;
}

/* Frees the buffers of another connection, or of this one, when the list is full. */
void sgi_http_ready_add(sgi_http_conn *conn);
/* The connection has ended. */
void sgi_http_ready_forget(sgi_http_conn *conn);

#endif
