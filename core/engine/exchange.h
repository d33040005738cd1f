/* What a transport needs to know of the engine: a conversation that takes bytes, gives
 * bytes and hears of the end. Every function here is called with the runtime's lock
 * held. */
#ifndef SGI_EXCHANGE_H
#define SGI_EXCHANGE_H

#include "engine/engine.h"
#include "engine/limit.h"

typedef struct sgi_principal sgi_principal;
typedef struct sgi_grant sgi_grant;

/* The transport is connected: for a client the handshake begins. Also after each
 * reopen. */
void sgi_conn_start(sgi_conn *conn);

/* Its bytes are this process's own standard input and output: its peer has no other way
 * to this process, and loses it with them. Said before sgi_conn_start. */
void sgi_conn_set_sole(sgi_conn *conn);

/* Bytes from the peer, in order. */
void sgi_conn_feed(sgi_conn *conn, const char *bytes, size_t len);

/* One whole message, where the transport frames by itself. */
void sgi_conn_message(sgi_conn *conn, sgi_str text);

/* false: the engine is ahead of its reader; stop reading until host.input says
 * otherwise. */
bool sgi_conn_wants_input(const sgi_conn *conn);

/* Moves what is to be sent into `into`, which must be empty; its room is recycled. Leaves
 * it empty when there is nothing. Afterwards host.output is called when there is more. */
void sgi_conn_output(sgi_conn *conn, sgi_buf *into);

/* The connection has ended; no more calls but sgi_conn_start (after a reopen) and
 * sgi_conn_detach. */
void sgi_conn_lost(sgi_conn *conn, const char *why);

/* The transport is going away for good and forgets the conversation. Implies lost. */
void sgi_conn_detach(sgi_conn *conn);

/* The pointer given when the conversation was made; of an HTTP exchange, that of the
 * transport that carries it now, or NULL. */
void *sgi_conn_transport(const sgi_conn *conn);

/* It has asked its transport to close. */
bool sgi_conn_is_closing(const sgi_conn *conn);

/* Whoever may look at a conversation after it has ended, or gone to another transport,
 * holds it. */
void sgi_conn_ref(sgi_conn *conn);
void sgi_conn_unref(sgi_conn *conn);

/* ---- doors (server.c) ---- */

/* Where conversations come in: a listening socket. Called under the lock; may not call
 * back. */
typedef struct sgi_door {
    LIST_ENTRY(sgi_door) link;
    void (*open)(struct sgi_door *door);  /* recovery is through: let them in */
    void (*close)(struct sgi_door *door); /* the server closes: let nobody in any more */
} sgi_door;

/* SEGUE_E_CLOSED when the server has closed. The server lives while it has doors; open is
 * called in time, perhaps before this returns. */
segue_status sgi_server_add_door(segue_server *server, sgi_door *door);
void sgi_server_remove_door(segue_server *server, sgi_door *door);
/* It takes no new work. */
bool sgi_serve_is_closed(const segue_server *server);
/* Something runs here that its client can come back to, or has ended here alone and was
 * not heard yet (returning.c). */
bool sgi_serve_may_return(const segue_server *server);

/* ---- who asks over HTTP (identify.c) ---- */

/* One question to the application. told runs out of the queue of callbacks, perhaps not
 * on the loop thread, lock held; until then whoever asks keeps this and the transport in
 * memory. who: borrowed, NULL unless the status is SEGUE_OK. named: by a name. */
typedef struct sgi_serve_asking {
    sgi_ready ready;
    segue_server *server;
    void *transport;
    void (*told)(struct sgi_serve_asking *asking, segue_status status, sgi_principal *who,
                 bool named);
} sgi_serve_asking;

/* Does the application want to be asked? Otherwise everybody is nobody. */
bool sgi_serve_asks(const segue_server *server);
/* The transport must live, and the server have a door, until told. */
void sgi_serve_ask(segue_server *server, sgi_serve_asking *asking, void *transport);
/* Takes back a question that was not put yet, or was answered. */
void sgi_serve_unask(sgi_serve_asking *asking);
/* Counted; NULL when out of memory. */
sgi_principal *sgi_serve_nobody(segue_server *server);
void sgi_serve_keep(sgi_principal *who);
/* Takes NULL. */
void sgi_serve_forget(sgi_principal *who);

/* ---- what a token grants (grant.c) ---- */

/* Who the principal of this name is, with these scopes, until then (wall clock, ms;
 * INT64_MAX = for ever). Counted; NULL when out of memory. */
sgi_grant *sgi_serve_grant(segue_server *server, const char *principal, sgi_str scopes,
                           int64_t expires_ms);
void sgi_grant_ref(sgi_grant *grant);
/* Takes NULL. */
void sgi_grant_unref(sgi_grant *grant);
/* Borrowed. */
sgi_principal *sgi_grant_who(const sgi_grant *grant);
int64_t sgi_grant_expires(const sgi_grant *grant);
sgi_str sgi_grant_scopes(const sgi_grant *grant);

/* ---- serving HTTP (serve_http.c) ---- */

/* What a request's head says; views, empty where it says nothing. */
typedef struct sgi_http_head {
    sgi_str version;    /* MCP-Protocol-Version */
    sgi_str method;     /* Mcp-Method */
    sgi_str name;       /* Mcp-Name */
    sgi_str session;    /* Mcp-Session-Id */
    sgi_str last_event; /* Last-Event-ID */
    bool takes_events;  /* Accept has text/event-stream */
    bool stranger;      /* from another machine, and named by nobody */
    bool ending;        /* its listener closes: nothing is begun for it */
    sgi_grant *grant;   /* of its token; borrowed, NULL = it had none to show */
    int32_t max_streams;
    int32_t max_sessions;
    int64_t session_idle_ms;
    int64_t max_replay; /* bytes of events that are kept of one stream; 0 = as usual */
    /* Any other header, by its name in lower case; *more: it was sent more than once. */
    sgi_str (*find)(void *user, sgi_str name, bool *more);
    void *user;
} sgi_http_head;

/* status 0: the answer comes through conn, now or later. Else there is no conn, and the
 * answer is this status, with problem as its text (NULL for 2xx). */
typedef struct sgi_http_verdict {
    int32_t status;
    bool ending; /* the server is about to end: refused by wire/ending.h */
    const char *problem;
    sgi_conn *conn;
    sgi_limit limit; /* that was reached, of what problem says; its name NULL = none */
} sgi_http_verdict;

/* How the answer of an exchange stands; asked before sgi_conn_output, and again after
 * it. */
typedef struct sgi_http_answer {
    bool open;      /* nothing is decided: no head can be written yet */
    bool is_events; /* an event stream, else one JSON text */
    bool answered;  /* all there will be for this transport was given by sgi_conn_output,
                       or is with the next one */
    bool resumable; /* cut off, it is taken up again, or simply asked for again */
    bool calls;     /* the answer to a call that runs here: no other server has it */
    bool listens;   /* only for what the server has to say by itself */
    int32_t status;
    const char *session; /* Mcp-Session-Id to announce, or NULL */
    const char *server; /* Dev-Segue-Server: of a stream on which the server speaks first,
                            in a session that other servers may go on with; or NULL */
    const char *lacks;  /* with 403: scopes that the caller's token lacks, or NULL */
} sgi_http_answer;

/* A body that was posted. who: borrowed. spare: what sgi_serve_end left over, or NULL.
 * The spare is used up or comes back by sgi_serve_end of the conn: without a conn it
 * stays the caller's. */
void sgi_serve_post(segue_server *server, sgi_principal *who, const sgi_http_head *head,
                    sgi_str body, void *transport, sgi_conn **spare,
                    sgi_http_verdict *verdict);
/* A client of the handshake eras opens its stream, or resumes one. */
void sgi_serve_get(segue_server *server, sgi_principal *who, const sgi_http_head *head,
                   void *transport, sgi_http_verdict *verdict);
/* ... ends its session: the status. */
int32_t sgi_serve_delete(segue_server *server, sgi_principal *who,
                         const sgi_http_head *head);
void sgi_serve_look(const sgi_conn *conn, sgi_http_answer *answer);
/* The answer takes its time: it becomes an event stream, if it can. */
void sgi_serve_open_stream(sgi_conn *conn);
/* The transport is through with the exchange, or was cut off; ignored from one that no
 * longer carries it. Returns a spare, or NULL. */
sgi_conn *sgi_serve_end(sgi_conn *conn, void *transport);
void sgi_serve_free_spare(sgi_conn *spare);

/* ---- asking over HTTP (ask_http.c) ---- */

/* A session's conversation that carries nothing itself: each message is an exchange of
 * its own. Set before sgi_conn_start. host.output of the session's conversation means
 * that sgi_ask_next has something. place: the endpoint, as a number other than 0; which
 * era its server spoke last is remembered by it. name: the endpoint for messages, without
 * what may be secret; it lives as long as the transport. */
void sgi_conn_set_exchanging(sgi_conn *conn, uint64_t place, const char *name);
/* From here on its messages may be sent in the name of somebody else: what was kept for
 * the one before is not for this one. */
void sgi_conn_new_credentials(sgi_conn *conn);

typedef enum sgi_ask_kind {
    SGI_ASK_MESSAGE = 0, /* POST what sgi_conn_output gives */
    SGI_ASK_INITIALIZE,  /* the same, without a session; the answer may name one */
    SGI_ASK_LISTEN       /* GET: the stream of the session; without an answer */
} sgi_ask_kind;

/* How long it may take, and who may wait for it. */
typedef enum sgi_ask_span {
    SGI_ASK_BRIEF = 0, /* answered at once, whatever else is under way, which may wait */
    SGI_ASK_REQUEST,   /* ended by the engine when it is silent for too long */
    SGI_ASK_LONG,      /* ended by the transport alone, as what follows is */
    SGI_ASK_STANDING   /* open as long as the session */
} sgi_ask_span;

/* Texts of headers; empty (of name: p NULL) = not sent. They live as long as the
 * exchange. */
typedef struct sgi_ask_head {
    sgi_ask_kind kind;
    bool modern;
    sgi_ask_span span;
    sgi_str version;    /* MCP-Protocol-Version */
    sgi_str method;     /* Mcp-Method */
    sgi_str name;       /* Mcp-Name, in the form of a header */
    sgi_str params;     /* Mcp-Param-*: name NUL value NUL, ... */
    sgi_str last_event; /* Last-Event-ID of a POST that resumes a request */
    bool once;          /* nobody but the request itself may send it again */
} sgi_ask_head;

/* The next exchange on which there is something to do: a new one (its transport is NULL;
 * from now on the caller has a reference), one that may be read again, or one that is
 * over. NULL when there is none. */
sgi_conn *sgi_ask_next(sgi_conn *parent);
/* The pointer that sgi_conn_transport gives for it. */
void sgi_ask_bind(sgi_conn *conn, void *transport);
void sgi_ask_look(const sgi_conn *conn, sgi_ask_head *head);
/* Nobody waits for its answer: of a request the stream is to be closed, a notification
 * may end in peace. */
bool sgi_ask_is_over(const sgi_conn *conn);
/* Somebody waits for what it brings. */
bool sgi_ask_waits(const sgi_conn *conn);
/* The head of what came back. */
void sgi_ask_heard(sgi_conn *conn, int32_t status);
/* What comes back is said by one of these functions. Messages go to sgi_conn_message
 * while sgi_conn_wants_input; a sign of life (a comment) comes here. */
void sgi_ask_alive(sgi_conn *conn);
/* The stream on which the server speaks first comes from the server of this name. Another
 * than before knows nothing of what the session had set there. */
void sgi_ask_server(sgi_conn *conn, sgi_str name);
/* The message that was given last stood in the event with this id. */
void sgi_ask_position(sgi_conn *conn, sgi_str event);
/* How long the server asks to be left alone; said before the end. */
void sgi_ask_wait(sgi_conn *conn, int64_t ms);
/* A status that brings no answer, with its body. */
void sgi_ask_refused(sgi_conn *conn, int32_t status, sgi_str body);
/* 404, with its body, to what named a wire session: a message, or (taken) the stream of
 * the answer to a message that had been taken. */
void sgi_ask_forgotten(sgi_conn *conn, bool taken, sgi_str body);
/* The JSON body was given to sgi_conn_message and did not answer. */
void sgi_ask_unanswered(sgi_conn *conn, sgi_str body);
/* What came with a good status is neither JSON nor a stream of events. */
void sgi_ask_page(sgi_conn *conn, const char *why);
/* There is no answer, and trying again brings none (certificates, redirects). */
void sgi_ask_denied(sgi_conn *conn, const char *why);
/* The answer is larger than max_message_bytes. */
void sgi_ask_too_large(sgi_conn *conn);
/* Status 401 or 403, and no token can be had that helps. */
void sgi_ask_unauthorized(sgi_conn *conn, int32_t status, const char *why);
/* No token can be had now. The request was not done, and may be sent again; said before
 * the end. */
void sgi_ask_put_off(sgi_conn *conn);
/* It cannot have reached the server; said before the end. */
void sgi_ask_unsent(sgi_conn *conn);
/* The end itself is said by sgi_conn_lost, which means nothing to an exchange that is
 * over. Then this gives the reference back, and the exchange is not touched again. */
void sgi_ask_release(sgi_conn *conn);
/* While it is held its time stands still: it waits for a token. */
void sgi_ask_hold(sgi_conn *conn, bool held);
/* Of the session's conversation: a user decides about a token, or has decided. Meanwhile
 * no limit counts of a request that waits for it, nor that of reconnecting. */
void sgi_ask_user_decides(sgi_conn *parent, bool decides);
/* A status that may be gone when the same is asked a little later. */
bool sgi_ask_may_pass(int32_t status);
/* A stream is to be taken up again after *ms, for the attempt-th time in a row: the
 * application is told, unless the server had said that it may end. false: it has taken
 * too long; else *ms may be shorter now. */
bool sgi_ask_again(sgi_conn *conn, const char *why, int32_t attempt, bool is_polled,
                   int64_t *ms);

#endif
