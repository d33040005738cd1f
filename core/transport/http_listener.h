/* A listener: one listening socket that serves one server over HTTP, and the connections
 * that came through it. Making, closing and freeing: any thread; the rest: loop thread,
 * lock held.
 *
 *   waiting --the server has recovered--> open --close--> returns --> shut --> gone
 *
 * The memory lives until the loop has let go and the application's handle is freed. */
#ifndef SGI_HTTP_LISTENER_H
#define SGI_HTTP_LISTENER_H

#include "transport/bearer.h"
#include "transport/http_answer.h"
#include "transport/http_route.h"
#include "transport/link.h"
#include "transport/listen_socket.h"

#define SGI_MAGIC_LISTENER 0x5347484cu /* a listener begins with it */

typedef struct sgi_http_conn sgi_http_conn;

#define SGI_LISTEN_TEXTS 8

typedef enum sgi_listener_stage {
    SGI_LISTENER_OPEN = 0, /* or waits for its server */
    SGI_LISTENER_RETURNS,  /* closes; who was cut off from what runs may come back */
    SGI_LISTENER_SHUT      /* closes, and nobody comes in */
} sgi_listener_stage;

struct segue_listener {
    sgi_carrier carrier; /* first: the runtime takes one for the other */
    int32_t refs;        /* the loop, the handle */
    segue_server *server;
    sgi_door door;
    bool has_door;
    bool may_open; /* the server has recovered */
    bool closing;  /* asked to */
    sgi_listener_stage stage;
    bool trusted; /* callers that nobody names get tasks as well */
    sgi_listen_socket socket;
    sgi_link_gate *gate;
    sgi_acceptor acceptor;
    segue_listen_options options; /* numbers resolved; texts owned */
    char *texts[SGI_LISTEN_TEXTS];
    char *url;
    sgi_http_policy policy;
    sgi_bearer_gate *bearer; /* callers need tokens; or NULL */
    sgi_http1_limits limits;
    sgi_http_date date;
    sgi_buf room; /* a write in the making; empty between uses */
    sgi_buf text; /* room for output that is moved on at once */
    TAILQ_HEAD(, sgi_http_conn) conns;
    sgi_timer deadline; /* of closing */
    sgi_timer look;     /* may somebody still come back? */
};

/* options: full size. The server's handle is held by the caller meanwhile. Listens when
 * it returns; error text in why. */
segue_status sgi_http_listen(segue_runtime *rt, segue_server *server,
                             const segue_listen_options *options, segue_listener **out,
                             char why[SGI_WHY_SIZE]);
segue_status sgi_http_listener_reload(segue_listener *listener, char why[SGI_WHY_SIZE]);
/* Lock held, both; any thread. */
void sgi_http_listener_close(segue_listener *listener);
/* The application gives its handle up. */
void sgi_http_listener_abandon(segue_listener *listener);

/* A connection is gone. */
void sgi_http_listener_left(segue_listener *listener, sgi_http_conn *conn);

#endif
