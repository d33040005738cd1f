/* One accepted connection of a listener: it serves its requests one after the other.
 * The functions run on the loop thread with the lock held, unless a comment says
 * otherwise.
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

typedef enum sgi_http_stage {
    SGI_HTTP_READING = 0,
    SGI_HTTP_ASKING, /* the application is asked who the caller is */
    SGI_HTTP_KNOWN,  /* the application has answered */
    SGI_HTTP_SERVING
} sgi_http_stage;

/* The event that the connection waits for until the current deadline. */
typedef enum sgi_http_wait {
    SGI_HTTP_WAIT_NOTHING = 0,
    SGI_HTTP_WAIT_HANDSHAKE, /* the TLS handshake is not over */
    SGI_HTTP_WAIT_REQUEST,
    SGI_HTTP_WAIT_HEAD,
    SGI_HTTP_WAIT_BODY,
    SGI_HTTP_WAIT_CHECK, /* a token is being checked */
    /* the answer is not complete; after the deadline it becomes a stream */
    SGI_HTTP_WAIT_ANSWER,
    /* the next event is not ready; after the deadline a comment is sent */
    SGI_HTTP_WAIT_EVENT,
    SGI_HTTP_WAIT_WRITE
} sgi_http_wait;

struct sgi_http_conn {
    /* the first member; callbacks about the caller get a pointer to it */
    segue_transport transport;
    segue_listener *listener;
    TAILQ_ENTRY(sgi_http_conn) in_listener;
    sgi_link *link; /* the byte stream of the socket; NULL = it is gone */
    sgi_http1 parser;
    sgi_buf input; /* bytes that have arrived while a request is served */
    sgi_http_head_verdict route;
    sgi_http_stage stage;
    bool parsing;       /* a function that parses input is on the call stack */
    bool unread;        /* reading is stopped, because too much input waits */
    bool in_body;       /* the body of the request is being read */
    bool is_cleared;    /* the caller of the request is known */
    bool last;          /* the connection is closed after the current answer */
    bool says_keep;     /* the client speaks HTTP/1.0 and keeps the connection */
    bool chunks;        /* the client speaks HTTP/1.1, so streams are sent in chunks */
    bool head_sent;     /* the head of the answer was sent */
    bool is_events;     /* the answer is an event stream */
    bool blocked;       /* the link accepts no bytes now */
    bool is_local;      /* the peer is on this machine */
    bool is_known;      /* the peer has shown a verified certificate */
    sgi_conn *exchange; /* the running exchange; a counted reference */
    sgi_conn *spare;    /* an exchange that is stored for the next request */
    sgi_buf rest;       /* output that the link has not accepted; it begins at rest_at */
    size_t rest_at;
    bool ends; /* the answer is complete after the bytes of `rest` */
    sgi_timer timer;
    sgi_http_wait wait;
    int64_t deadline_ms;
    /* for WAIT_WRITE: number of bytes that the peer had read when the wait began */
    uint64_t taken;

    /* ---- the caller of the current request ---- */
    sgi_serve_identifying identifying;
    bool is_asked; /* the application is being asked who the caller is */
    segue_status asked;
    sgi_principal *who;
    bool named;
    sgi_bearer_check check;
    /* the grant of the token; a counted reference that is given to the engine with the
     * request */
    sgi_grant *grant;
    sgi_timer expiry; /* fires when the grant expires and ends a resumable stream */
    /* time at which the grant expires; wall clock; INT64_MAX = never */
    int64_t expires_ms;
    sgi_buf peer; /* name of the peer, NUL-terminated; empty until it is needed */
};

/* Makes a connection from the descriptor and adds it to the listener's list. On failure
 * it closes the descriptor and returns false. */
bool sgi_http_conn_open(segue_listener *listener, int fd);
/* Called when the listener closes. Answers that have begun may finish; everything else
 * ends now. */
void sgi_http_conn_drain(sgi_http_conn *conn);
/* Closes the connection at once. */
void sgi_http_conn_cut(sgi_http_conn *conn);

/* Returns the connection of a transport, or NULL when the transport is of another
 * kind. Any thread may call this. */
sgi_http_conn *sgi_http_conn_of(const segue_transport *transport);
/* Returns a header of the request, NUL-terminated, or NULL when it is missing or
 * repeated. Only the thread that runs the callback about the caller may call this. The
 * text is valid until the request is over. */
const char *sgi_http_conn_header(sgi_http_conn *conn, sgi_str name);

/* ---- private to the files of a connection ---- */

/* Sends the remaining output, then closes the connection. */
void sgi_http_conn_close(sgi_http_conn *conn);
void sgi_http_conn_set_wait(sgi_http_conn *conn, sgi_http_wait wait, int64_t ms);
/* Called when the answer is complete. Reads the next request, or closes the
 * connection. */
void sgi_http_conn_next(sgi_http_conn *conn);
/* Handles input that arrived while the last request was served. */
void sgi_http_conn_handle_waiting_input(sgi_http_conn *conn);

/* The next functions are in http_serve.c: from a request to the engine. */
void sgi_http_on_head(sgi_http_conn *conn);
void sgi_http_on_request(sgi_http_conn *conn);
void sgi_http_on_fault(sgi_http_conn *conn, int32_t status, const char *problem);
/* Called once the caller is known. Asks for the body, or refuses the request. */
void sgi_http_on_caller(sgi_http_conn *conn);

/* Cancels the check of the caller and drops the grant. */
void sgi_http_forget_caller(sgi_http_conn *conn);
/* Refuses the request because its token could not be checked in time. */
void sgi_http_refuse_late_check(sgi_http_conn *conn);

/* The next functions are in http_send.c: from the engine to the link. */
void sgi_http_flush(sgi_http_conn *conn);
/* Called when the link accepts bytes again. */
void sgi_http_writable(sgi_http_conn *conn);
/* Ends the running exchange, because the engine or the listener requires it. */
void sgi_http_end_exchange(sgi_http_conn *conn);
/* Gives the exchange back to the engine, in any state of the exchange. */
void sgi_http_drop_exchange(sgi_http_conn *conn);
void sgi_http_send_comment(sgi_http_conn *conn);
/* Sends an answer that the HTTP listener makes without the engine, such as the health
 * check, with this body. */
void sgi_http_send_answer(sgi_http_conn *conn, sgi_http_answer_head *head, sgi_str body);
void sgi_http_send_problem(sgi_http_conn *conn, int32_t status, int32_t code,
                           const char *problem, const char *allow);
/* Sends the answer of wire/ending.h, which says that the server is about to end. */
void sgi_http_send_ending(sgi_http_conn *conn);
/* Sends the refusal for the verdict of a token check. */
void sgi_http_send_verdict(sgi_http_conn *conn);
/* Ends a stream whose token has expired, if the client can resume it. */
void sgi_http_end_expired(sgi_http_conn *conn);

#endif
