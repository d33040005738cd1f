/* One accepted connection of a listener: its requests one after the other, and the
 * exchange under way. Loop thread, lock held, everywhere but where the text says
 * otherwise.
 *
 *   reading --a request is complete, or refused early--> serving --+
 *    |  ^ ^                                                          |
 *    |  | +----------- all of the answer is handed over -------------+
 *    |  +-- who asks is known, and the body may come --+
 *    +--- a head is complete, somebody is asked ---> asking
 *
 * Gone from any of them, when the link is. */
#ifndef SGI_HTTP_CONN_H
#define SGI_HTTP_CONN_H

#include "transport/http_listener.h"
#include "wire/jsonrpc.h"

typedef enum sgi_http_stage {
    SGI_HTTP_READING = 0,
    SGI_HTTP_ASKING, /* the application says who it is */
    SGI_HTTP_KNOWN,  /* ... and has said so */
    SGI_HTTP_SERVING
} sgi_http_stage;

/* What the deadline is for. */
typedef enum sgi_http_wait {
    SGI_HTTP_WAIT_NOTHING = 0,
    SGI_HTTP_WAIT_HANDSHAKE, /* of TLS */
    SGI_HTTP_WAIT_REQUEST,
    SGI_HTTP_WAIT_HEAD,
    SGI_HTTP_WAIT_BODY,
    SGI_HTTP_WAIT_CHECK,  /* a token is looked at */
    SGI_HTTP_WAIT_ANSWER, /* that becomes a stream then */
    SGI_HTTP_WAIT_EVENT,  /* ... with a comment in its place */
    SGI_HTTP_WAIT_WRITE
} sgi_http_wait;

struct sgi_http_conn {
    segue_transport transport; /* first; what a principal function is shown */
    segue_listener *listener;
    TAILQ_ENTRY(sgi_http_conn) in_listener;
    sgi_link *link; /* NULL = gone */
    sgi_http1 parser;
    sgi_buf input; /* came while a request is served */
    sgi_http_route route;
    sgi_http_stage stage;
    bool parsing;       /* on the stack */
    bool unread;        /* reading is off: too much input waits */
    bool in_body;       /* of the request that is read */
    bool is_cleared;    /* ... and the application has said who asks */
    bool last;          /* the connection is closed behind this answer */
    bool says_keep;     /* HTTP/1.0, persistent */
    bool chunks;        /* HTTP/1.1: streams are chunked */
    bool head_sent;     /* of the answer under way */
    bool is_events;     /* ... which is a stream */
    bool blocked;       /* the link takes nothing now */
    bool is_local;      /* the peer is on this machine */
    bool is_known;      /* ... or has shown a certificate */
    sgi_conn *exchange; /* under way; held */
    sgi_conn *spare;    /* for the next one */
    sgi_buf rest;       /* output the link has not taken, from rest_at on */
    size_t rest_at;
    bool ends; /* behind the rest the answer is complete */
    sgi_timer timer;
    sgi_http_wait wait;
    int64_t deadline_ms;
    uint64_t taken; /* WAIT_WRITE: by the peer, when it began */

    /* who asks */
    sgi_serve_asking asking;
    bool is_asked; /* the application has the question */
    segue_status asked;
    sgi_principal *who;
    bool named;
    sgi_bearer_check check;
    sgi_grant *grant;   /* of the token; counted, until the engine has the request */
    sgi_timer expiry;   /* ... ends: and with it a stream that can be resumed */
    int64_t expires_ms; /* wall clock; INT64_MAX = never */
    sgi_buf peer;       /* NUL-terminated, once it was needed */
};

/* Takes the descriptor; the connection is in the listener's list. False: it is closed. */
bool sgi_http_conn_open(segue_listener *listener, int fd);
/* The listener closes: what may end in peace does, the rest ends now. */
void sgi_http_conn_drain(sgi_http_conn *conn);
/* At once. */
void sgi_http_conn_cut(sgi_http_conn *conn);

/* The connection behind a transport, NULL when it is another kind. Any thread. */
sgi_http_conn *sgi_http_conn_of(const segue_transport *transport);
/* A header of the request whose caller the application is asked for, NUL-terminated until
 * the request is over; NULL when it is missing or repeated. The thread that is asked. */
const char *sgi_http_conn_header(sgi_http_conn *conn, sgi_str name);

/* ---- between the files of a connection ---- */

/* Sends what is left, then closes. */
void sgi_http_conn_close(sgi_http_conn *conn);
void sgi_http_conn_wait(sgi_http_conn *conn, sgi_http_wait wait, int64_t ms);
/* The answer is complete: the next request, or the end of the connection. */
void sgi_http_conn_next(sgi_http_conn *conn);
/* Looks at what has come meanwhile. */
void sgi_http_conn_go_on(sgi_http_conn *conn);

/* http_serve.c: from a request to the engine. */
void sgi_http_on_head(sgi_http_conn *conn);
void sgi_http_on_request(sgi_http_conn *conn);
void sgi_http_on_fault(sgi_http_conn *conn, int32_t status, const char *problem);
/* Who asks is known: the body may come, or the request is refused. */
void sgi_http_on_caller(sgi_http_conn *conn);

/* Nobody waits for a verdict any more, and what was granted is given back. */
void sgi_http_forget_caller(sgi_http_conn *conn);
/* The token could not be checked in time. */
void sgi_http_check_late(sgi_http_conn *conn);

/* http_send.c: from the engine to the link. */
void sgi_http_flush(sgi_http_conn *conn);
/* The link takes bytes again. */
void sgi_http_writable(sgi_http_conn *conn);
/* The engine, or the listener, ends the exchange. */
void sgi_http_end_exchange(sgi_http_conn *conn);
/* Gives the exchange back, whatever became of it. */
void sgi_http_drop_exchange(sgi_http_conn *conn);
void sgi_http_send_comment(sgi_http_conn *conn);
/* An answer of the server's own, with this body. */
void sgi_http_send_answer(sgi_http_conn *conn, sgi_http_answer_head *head, sgi_str body);
void sgi_http_send_problem(sgi_http_conn *conn, int32_t status, int32_t code,
                           const char *problem, const char *allow);
/* The same, by wire/ending.h. */
void sgi_http_send_ending(sgi_http_conn *conn);
/* The same, by the verdict of a check. */
void sgi_http_send_verdict(sgi_http_conn *conn);
/* A stream has outlived its token: it ends, if it can be resumed. */
void sgi_http_end_expired(sgi_http_conn *conn);

#endif
