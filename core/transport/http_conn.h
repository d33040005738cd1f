/* One accepted connection of a listener, which serves its requests one after the other.
 * The functions run with the lock held, unless a comment says otherwise: on the loop
 * thread, or for an exchange by hand on any thread while the loop waits.
 *
 *   reading --a request is complete, or refused early--> serving --+
 *    |  ^ ^                                                          |
 *    |  | +----------- the whole answer is handed over --------------+
 *    |  +-- the caller is known; the body may come --+
 *    +--- a head is complete; the application is asked -> asking
 *
 * When the link is gone, the connection ends in any of these stages. */
#ifndef SGI_HTTP_CONN_H
#define SGI_HTTP_CONN_H

#include "transport/http_listener.h"
#include "wire/jsonrpc.h"

typedef struct sgi_http_board_job sgi_http_board_job;

typedef enum sgi_http_stage {
    SGI_HTTP_READING = 0,
    /* the application, or a token check, still has to identify the caller */
    SGI_HTTP_ASKING,
    SGI_HTTP_KNOWN, /* the caller is known or refused */
    SGI_HTTP_SERVING
} sgi_http_stage;

/* The event that the connection waits for until the current deadline. */
typedef enum sgi_http_wait {
    SGI_HTTP_WAIT_NOTHING = 0,
    SGI_HTTP_WAIT_HANDSHAKE, /* the TLS handshake has not ended */
    SGI_HTTP_WAIT_REQUEST,
    SGI_HTTP_WAIT_HEAD,
    SGI_HTTP_WAIT_BODY,
    SGI_HTTP_WAIT_CHECK, /* a token is being checked */
    /* the answer is not complete; at the deadline the answer becomes a stream */
    SGI_HTTP_WAIT_ANSWER,
    /* the next event is not ready; at the deadline a comment is sent */
    SGI_HTTP_WAIT_EVENT,
    SGI_HTTP_WAIT_WRITE
} sgi_http_wait;

/* What the application says about an exchange that its HTTP server carries
 * (http_exchange.h). */
typedef struct sgi_http_given {
    /* true = the address of the server can be reached from this machine only */
    bool local;
    bool secure;   /* true = the connection of the client uses TLS */
    sgi_str bound; /* the address of the server without its port; empty = not known */
    /* the principal that the application has found; NULL = none, so the listener and the
     * server find the caller */
    const char *principal;
    /* the application's context, a borrowed pointer; NULL = there is none */
    sgi_app_context *context;
    /* takes the head of the answer; its body is then written to the link */
    void (*take_head)(sgi_link *link, const sgi_http_answer_head *head);
} sgi_http_given;

/* What the last head on a connection asked for, for a head that repeats it. */
typedef enum sgi_http_past_route {
    SGI_HTTP_PAST_OTHER = 0,
    /* an allowed POST whose answer is JSON and has no CORS headers */
    SGI_HTTP_PAST_POST,
    /* the same, whose answer may be an event stream */
    SGI_HTTP_PAST_POST_FOR_EVENTS
} sgi_http_past_route;

struct sgi_http_conn {
    /* the first member; callbacks that ask about the caller get a pointer to it */
    segue_transport transport;
    segue_listener *listener;
    /* the endpoint that the last request asked; the first one until then */
    sgi_http_endpoint *endpoint;
    TAILQ_ENTRY(sgi_http_conn) in_listener;
    sgi_http_ready ready;
    sgi_link *link; /* the byte stream; NULL = the stream has ended */
    /* what the application says about its exchange; NULL = the connection of a socket.
     * Not to be used when `link` is NULL */
    const sgi_http_given *given;
    sgi_http1 parser;
    sgi_buf input; /* bytes that arrived while the current request was served */
    sgi_http_head_verdict route;
    sgi_http_past_route past_route;
    sgi_http_stage stage;
    bool parsing;    /* true = a function that parses input is on the call stack */
    bool unread;     /* true = reading is stopped, because too much input waits */
    bool in_body;    /* true = the body of the request is being read */
    bool is_whole;   /* true = all input has arrived, so the body ends with it */
    bool is_cleared; /* true = the caller of the request is known */
    bool last;       /* true = the connection is closed after the current answer */
    bool says_keep;  /* true = the client speaks HTTP/1.0 and keeps the connection */
    /* true = the client speaks HTTP/1.1, so a stream can be sent in chunks */
    bool chunks;
    bool head_sent;     /* true = the head of the answer was sent */
    bool is_events;     /* true = the answer is an event stream */
    bool blocked;       /* true = the link accepts no bytes now */
    bool is_local;      /* true = the peer is on this machine */
    bool is_known;      /* true = the peer has shown a verified certificate */
    sgi_conn *exchange; /* the running exchange; a counted reference */
    sgi_conn *spare;    /* an unused exchange, which is kept for the next request */
    sgi_http_board_job *board; /* the request to the task board that is being answered */
    /* output that the link has not accepted; the unsent bytes begin at rest_at */
    sgi_buf rest;
    size_t rest_at;
    bool ends; /* true = the answer is complete once the bytes of `rest` are sent */
    sgi_timer timer;
    sgi_http_wait wait;
    int64_t deadline_ms;
    /* with WAIT_WRITE: number of bytes that the peer had read when the wait began */
    uint64_t taken;

    /* ---- the caller of the current request ---- */
    sgi_serve_identification identifying;
    /* true = a callback of the application is being asked about the caller */
    bool is_asked;
    segue_status asked;
    sgi_principal *who;
    bool named;
    sgi_bearer_check check;
    /* the rights that the request's token gives (grant), as a counted reference; NULL
     * = no token, or the engine has the request */
    sgi_grant *grant;
    /* fires when the grant expires, to end a stream that the client can resume */
    sgi_timer expiry;
    /* the time at which the grant expires; wall clock in ms; INT64_MAX = never */
    int64_t expires_ms;
    sgi_buf peer; /* name of the peer, NUL-terminated; empty until the name is needed */
};

/* Makes a connection from an accepted descriptor and adds it to the listener's list. On
 * failure the function closes the descriptor and returns false. */
bool sgi_http_conn_open(segue_listener *listener, int fd);
/* Makes a connection for the one request of an exchange, and adds it to the listener's
 * list. head: of the request, complete or refused; its memory goes to the connection.
 * Input is the body alone. The events of the link are sgi_http_conn_link_events. The
 * caller owns `link` and `given`. Returns NULL when out of memory; then the caller still
 * owns the head. Any thread may call the function. */
sgi_http_conn *sgi_http_conn_open_by_hand(segue_listener *listener, sgi_link *link,
                                          const sgi_http_given *given,
                                          const sgi_http1_head *head);
extern const sgi_link_events sgi_http_conn_link_events;
/* Called when the listener closes. Answers that have begun can finish; everything else
 * ends now. */
void sgi_http_conn_drain(sgi_http_conn *conn);
/* Closes the connection at once. */
void sgi_http_conn_cut(sgi_http_conn *conn);

/* Returns the connection of a transport, or NULL when the transport is of another kind.
 * Any thread may call the function. */
sgi_http_conn *sgi_http_conn_of(const segue_transport *transport);
/* Returns a header of the request, NUL-terminated, or NULL when the header is missing or
 * repeated. Only the thread that runs the callback about the caller may call the
 * function. The text is valid until the request has ended. */
const char *sgi_http_conn_header(sgi_http_conn *conn, sgi_str name);

/* ---- private to the files of a connection ---- */

/* Sends the remaining output, then closes the connection. */
void sgi_http_conn_close(sgi_http_conn *conn);
void sgi_http_conn_set_deadline(sgi_http_conn *conn, sgi_http_wait wait, int64_t ms);
/* Called when the answer is complete. Reads the next request, or closes the connection
 * after its last answer. */
void sgi_http_conn_read_next_request(sgi_http_conn *conn);
/* Handles input that arrived while the last request was served. */
void sgi_http_conn_handle_waiting_input(sgi_http_conn *conn);

/* The following functions are in http_serve.c; they pass a request to the engine. */
void sgi_http_on_head(sgi_http_conn *conn);
void sgi_http_on_request(sgi_http_conn *conn);
void sgi_http_on_fault(sgi_http_conn *conn, int32_t status, const char *problem);
/* Called once the caller is known. Continues with the request's body, or refuses the
 * request. */
void sgi_http_on_caller(sgi_http_conn *conn);

/* Determines the peer's name once per connection, when the name is needed. The name is
 * the subject of the peer's certificate, or its address. When out of memory the peer
 * stays anonymous. */
void sgi_http_conn_look_at_peer(sgi_http_conn *conn);
/* Cancels the check of the caller and drops the grant. */
void sgi_http_drop_caller(sgi_http_conn *conn);
/* Refuses the request because its token could not be checked in time. */
void sgi_http_refuse_late_check(sgi_http_conn *conn);

/* True when the caller, who has been identified, may see what a server does
 * (http_metrics.c). */
bool sgi_http_may_look(sgi_http_conn *conn);
/* True for a caller on this machine that came through no proxy. */
bool sgi_http_is_from_here(sgi_http_conn *conn);
/* Answers a request for the metrics, whose caller has been identified
 * (http_metrics.c). */
void sgi_http_answer_metrics(sgi_http_conn *conn);

/* The following functions are in http_board.c. Sends a part of the task board's page. */
void sgi_http_send_board_file(sgi_http_conn *conn);
/* Answers a request to the task board, whose caller has been identified: at once, or
 * later by sgi_http_deliver_board. */
void sgi_http_answer_board(sgi_http_conn *conn);
/* Sends the answer of the task board if it is there. */
void sgi_http_deliver_board(sgi_http_conn *conn);
/* The connection does not wait for the task board any more. */
void sgi_http_forget_board(sgi_http_conn *conn);

/* The following functions are in http_send.c; they pass the engine's output to the
 * link. */
void sgi_http_flush(sgi_http_conn *conn);
/* Called when the link accepts bytes again. */
void sgi_http_on_writable(sgi_http_conn *conn);
/* Ends the running exchange, because the engine or the listener demands it. */
void sgi_http_end_exchange(sgi_http_conn *conn);
/* Gives the exchange back to the engine. The exchange can be in any state. */
void sgi_http_drop_exchange(sgi_http_conn *conn);
void sgi_http_send_comment(sgi_http_conn *conn);
/* Sends an answer with this body that the listener makes without the engine, such as that
 * of the health check. */
void sgi_http_send_answer(sgi_http_conn *conn, sgi_http_answer_head *head, sgi_str body);
void sgi_http_send_problem(sgi_http_conn *conn, int32_t status, int32_t code,
                           const char *problem, const char *allow);
/* Sends the answer of wire/ending.h, which tells the client that the server is about to
 * end. */
void sgi_http_send_ending(sgi_http_conn *conn);
/* Sends the refusal that belongs to the verdict of a token check. */
void sgi_http_send_verdict(sgi_http_conn *conn);
/* Ends a stream whose token has expired, if the client can resume it. */
void sgi_http_end_expired_stream(sgi_http_conn *conn);

#endif
