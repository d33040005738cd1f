/* A listener: one listening socket that serves servers over HTTP, each at its path, and
 * the connections of this socket. A listener by hand has no socket: the application's own
 * HTTP server brings the requests (http_exchange.h). Any thread may create, close and
 * free a listener. Everything else is done on the loop thread with the lock held.
 *
 *     waiting --the server has recovered--> open --close--> returns
 *     returns --no client can come back, or deadline--> shut --last connection--> gone
 *
 * In the stage `returns` (SGI_LISTENER_RETURNS), clients may still come back for their
 * running requests. In the stage `shut` (SGI_LISTENER_SHUT), nothing is accepted.
 *
 * The memory lives until the loop has released the listener and the application has
 * freed its handle. */
#ifndef SGI_HTTP_LISTENER_H
#define SGI_HTTP_LISTENER_H

#include "transport/bearer.h"
#include "transport/http_answer.h"
#include "transport/http_ready.h"
#include "transport/http_route.h"
#include "transport/link.h"
#include "transport/listen_socket.h"

#define SGI_MAGIC_LISTENER 0x5347484cu /* magic number; the first member of a listener */

typedef struct sgi_http_conn sgi_http_conn;

#define SGI_LISTEN_TEXTS 14

typedef enum sgi_listener_stage {
    /* the listener is open, or waits until its server has recovered */
    SGI_LISTENER_OPEN = 0,
    /* the listener is closing; clients may still come back for running requests */
    SGI_LISTENER_RETURNS,
    SGI_LISTENER_SHUT /* the listener is closing and accepts nothing */
} sgi_listener_stage;

/* A server and the path at which a listener serves it. */
typedef struct sgi_http_endpoint {
    STAILQ_ENTRY(sgi_http_endpoint) link;
    segue_listener *listener;
    segue_server *server;
    sgi_server_listener server_listener;
    char *path;
    bool is_added; /* true = server_listener is in the list of the server */
    bool is_open;  /* true = the server has recovered its operations from the store */
    /* true = new requests do not find the endpoint. It ends with the last of its
     * connections */
    bool is_removed;
    bool any_path; /* true = it serves every path that no other endpoint has */
    int32_t conns; /* number of connections whose last request asked this endpoint */
} sgi_http_endpoint;

struct segue_listener {
    /* the first member, because a pointer to the carrier is converted to this struct */
    sgi_carrier carrier;
    /* number of references: the loop has one, and the application's handle has one */
    int32_t refs;
    /* the first one is that of segue_server_listen */
    STAILQ_HEAD(, sgi_http_endpoint) endpoints;
    bool closing; /* closing was requested */
    bool unready; /* the application has said that it is not ready */
    sgi_listener_stage stage;
    bool trusted; /* true = anonymous callers, too, may create tasks */
    bool by_hand; /* true = the listener has no socket */
    /* true = the servers of a listener by hand have recovered, so its exchanges go on */
    bool is_open;
    int32_t exchanges; /* number of connections, of a listener by hand */
    sgi_listen_socket socket;
    sgi_link_gate *gate;
    sgi_acceptor acceptor;
    /* the options with defaults filled in; the texts of the options are copies in
     * `texts` */
    segue_listen_options options;
    char *texts[SGI_LISTEN_TEXTS];
    char *url;
    struct sgi_summary_cache *board_cache; /* of the task board; may be NULL */
    sgi_http_policy policy;
    /* the gate that checks tokens; NULL = callers need no token */
    sgi_bearer_gate *bearer;
    sgi_http1_limits limits;
    sgi_http_date date;
    /* the buffer in which answers are built, with head and framing; empty between uses */
    sgi_buf room;
    /* the buffer for the engine's output or the body of a short answer; empty between
     * uses */
    sgi_buf text;
    TAILQ_HEAD(, sgi_http_conn) conns;
    sgi_http_ready_list ready;
    sgi_timer deadline; /* fires when closing must be finished */
    /* the time until which idle connections of the closing listener stay open */
    int64_t idle_until_ms;
    /* fires when the closing listener next checks whether a client can still come back */
    sgi_timer look;
};

/* Makes a listener. Its socket listens when the function returns. options: a struct
 * with all members of this version. The caller holds a reference to the server. On
 * failure `why` receives the error text. */
segue_status sgi_http_listen(segue_runtime *rt, segue_server *server,
                             const segue_listen_options *options, segue_listener **out,
                             char why[SGI_WHY_SIZE]);
/* Makes a listener without a socket. The options of the socket must be absent. */
segue_status sgi_http_listen_by_hand(segue_runtime *rt, segue_server *server,
                                     const segue_listen_options *options,
                                     segue_listener **out, char why[SGI_WHY_SIZE]);
/* Serves another server at another path. The caller holds no lock. */
segue_status sgi_http_listener_add(segue_listener *listener, segue_server *server,
                                   const char *path, char why[SGI_WHY_SIZE]);
/* Ends the service at a path. The caller holds the lock. */
segue_status sgi_http_listener_remove(segue_listener *listener, const char *path);
segue_status sgi_http_listener_reload(segue_listener *listener, char why[SGI_WHY_SIZE]);
/* Closes the listener. sgi_http_listener_close and sgi_http_listener_release_handle may
 * be called on any thread with the lock held. */
void sgi_http_listener_close(segue_listener *listener);
/* Drops the reference that the application's handle has to the listener. Called when the
 * application frees the handle. */
void sgi_http_listener_release_handle(segue_listener *listener);

/* Reports an event of a listener that has a socket. */
void sgi_http_listener_report(const segue_listener *listener, sgi_event_id id);
/* Removes an ended connection from its listener. */
void sgi_http_listener_remove_conn(segue_listener *listener, sgi_http_conn *conn);

/* ---- private to the files of a listener ---- */

/* Makes an endpoint, which is the last one of the listener. Returns NULL when out of
 * memory. */
sgi_http_endpoint *sgi_http_endpoint_make(segue_listener *listener, segue_server *server,
                                          const char *path);
/* Returns the endpoint that serves this path, or NULL. */
sgi_http_endpoint *sgi_http_endpoint_find(const segue_listener *listener, sgi_str path);
/* Returns the endpoint of a connection that has asked none so far, and counts the
 * connection. */
sgi_http_endpoint *sgi_http_endpoint_enter_any(const segue_listener *listener);
/* Counts a connection of the endpoint, until sgi_http_endpoint_leave. */
void sgi_http_endpoint_enter(sgi_http_endpoint *endpoint);
void sgi_http_endpoint_leave(sgi_http_endpoint *endpoint);
/* Ends the removed endpoints that no connection has any more. */
void sgi_http_endpoints_sweep(segue_listener *listener);
void sgi_http_listener_free_memory(segue_listener *listener);
extern const sgi_carrier_ops sgi_http_listener_carrier_ops;

#endif
