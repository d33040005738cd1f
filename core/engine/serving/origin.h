/* From a task back to the conversation that asked for it (2025-11-25): what is said of it
 * after its creation goes there and nowhere else. Over a byte stream that is the
 * connection; over HTTP the event stream of the request while it is open, else the stream
 * that the session listens on, if there is one.
 *
 * An origin belongs to its operation and holds nothing: when the conversation or the
 * session ends it forgets them, and what is said afterwards reaches nobody. */
#ifndef SGI_ORIGIN_H
#define SGI_ORIGIN_H

#include "engine/serving/peer.h"

typedef struct sgi_origin {
    sgi_op *op; /* whose it is */
    LIST_ENTRY(sgi_origin) by_peer;
    LIST_ENTRY(sgi_origin) by_session;
    sgi_peer *peer;            /* that carried the request; NULL = gone */
    sgi_wire_session *session; /* of the handshake eras over HTTP; NULL = none, or gone */
    char *progress_token;      /* JSON text or NULL; good as long as the task */
    sgi_watch watch;
    bool only_asked; /* it did not make the task, and hears nothing but questions */
    bool told;       /* the client knows that there is a task */
    bool end_told;   /* nothing changes after that */
    bool due;        /* its status has changed, which was not told */
} sgi_origin;

/* The task was made for this request: its progress token is taken over. changed: runs on
 * each visible change of status. An operation that has a living origin keeps it; without
 * memory there is none. */
void sgi_origin_set(sgi_op *op, sgi_reply *reply,
                    void (*changed)(sgi_watch *watch, sgi_op *op));
/* The client of this conversation knows the task: it is asked there from now on, where
 * the conversation that made the task is gone. That is so after a restart, and at another
 * server. Nothing else is told there. */
void sgi_origin_move(sgi_op *op, sgi_peer *peer);
/* Takes it away, if there is one. */
void sgi_origin_free(sgi_op *op);
/* Where something may be said now; NULL = nowhere, or there is too much unsent. */
sgi_conn *sgi_origin_conn(const sgi_op *op);
/* The log level that the client wants; -1 = none. */
int32_t sgi_origin_log_level(const sgi_op *op);

/* The conversation, or the session, ends. */
void sgi_origins_lose_peer(sgi_peer *peer);
void sgi_origins_lose_session(sgi_wire_session *session);

#endif
