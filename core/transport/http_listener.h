/* A listener: one listening socket that serves one server over HTTP, and its
 * connections. Any thread may create, close and free a listener. Everything else is
 * done on the loop thread with the lock held.
 *
 *     waiting --the server has recovered--> open --close--> returns --> shut --> gone
 *
 * The memory lives until the loop has released the listener and the application has
 * freed its handle. */
#ifndef SGI_HTTP_LISTENER_H
#define SGI_HTTP_LISTENER_H

#include "transport/bearer.h"
#include "transport/http_answer.h"
#include "transport/http_route.h"
#include "transport/link.h"
#include "transport/listen_socket.h"

#define SGI_MAGIC_LISTENER 0x5347484cu /* magic number; the first member of a listener */

typedef struct sgi_http_conn sgi_http_conn;

#define SGI_LISTEN_TEXTS 8

typedef enum sgi_listener_stage {
    SGI_LISTENER_OPEN = 0, /* the listener is open, or waits for its server */
    /* the listener closes; clients may come back to running requests */
    SGI_LISTENER_RETURNS,
    SGI_LISTENER_SHUT /* the listener closes; it accepts nothing */
} sgi_listener_stage;

struct segue_listener {
    /* the first member, because carrier pointers are converted to this struct */
    sgi_carrier carrier;
    /* number of references: the loop has one, and the application's handle has one */
    int32_t refs;
    segue_server *server;
    sgi_server_listener server_listener;
    bool has_listener;
    bool may_open; /* the server has recovered its store */
    bool closing;  /* closing was requested */
    sgi_listener_stage stage;
    bool trusted; /* anonymous callers may create tasks too */
    sgi_listen_socket socket;
    sgi_link_gate *gate;
    sgi_acceptor acceptor;
    /* the options, with defaults filled in; the texts belong to the listener */
    segue_listen_options options;
    char *texts[SGI_LISTEN_TEXTS];
    char *url;
    sgi_http_policy policy;
    /* the gate that checks tokens; NULL = callers need no token */
    sgi_bearer_gate *bearer;
    sgi_http1_limits limits;
    sgi_http_date date;
    sgi_buf room; /* the buffer in which output is built before it is written; empty
                   * between uses */
    sgi_buf text; /* the buffer for output that is sent at once */
    TAILQ_HEAD(, sgi_http_conn) conns;
    sgi_timer deadline; /* fires at the time at which closing must be finished */
    sgi_timer look;     /* fires at the next check whether a client may still come back */
};

/* Makes a listener, whose socket listens when the function returns. options: a struct
 * of full size. The caller holds a reference to the server. On failure `why` receives
 * the error text. */
segue_status sgi_http_listen(segue_runtime *rt, segue_server *server,
                             const segue_listen_options *options, segue_listener **out,
                             char why[SGI_WHY_SIZE]);
segue_status sgi_http_listener_reload(segue_listener *listener, char why[SGI_WHY_SIZE]);
/* Closes the listener. This function and the next one may be called on any thread with
 * the lock held. */
void sgi_http_listener_close(segue_listener *listener);
/* Drops the reference of the application's handle. Called when the application frees
 * the handle. */
void sgi_http_listener_abandon(segue_listener *listener);

/* Removes a connection that has ended from the listener. */
void sgi_http_listener_remove_conn(segue_listener *listener, sgi_http_conn *conn);

#endif
