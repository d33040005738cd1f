/* The functions by which the HTTP transport uses a client session
 * (exchange_receive.c). Each message is an exchange of its own: one POST or GET and
 * its response. Every function here is called with the runtime's lock held. */
#ifndef SGI_EXCHANGE_PORT_H
#define SGI_EXCHANGE_PORT_H

#include "engine/port.h"

typedef enum sgi_exchange_kind {
    SGI_EXCHANGE_MESSAGE = 0, /* POST with the bytes of sgi_conn_output */
    /* POST with the same bytes, without a session id; the response may assign a session
     * id */
    SGI_EXCHANGE_INITIALIZE,
    /* GET that opens the stream of the session; the exchange has no answer */
    SGI_EXCHANGE_LISTEN
} sgi_exchange_kind;

/* How long an exchange may take, and whether other exchanges may wait for its end. */
typedef enum sgi_exchange_span {
    SGI_EXCHANGE_BRIEF = 0, /* the server answers at once; other exchanges may wait for
                               it */
    /* the engine ends the exchange when the server is silent for too long */
    SGI_EXCHANGE_REQUEST,
    SGI_EXCHANGE_LONG,    /* the engine sets no time limit; only the transport ends it */
    SGI_EXCHANGE_STANDING /* the exchange is open as long as the session */
} sgi_exchange_span;

/* The kind of an exchange and the texts of its HTTP headers. A header whose text is empty
 * is not sent. `name` is an exception: its header is sent even when the text is empty,
 * and left out only when name.p is NULL. The texts are valid as long as the exchange. */
typedef struct sgi_exchange_head {
    sgi_exchange_kind kind;
    bool stateless; /* the message belongs to no wire session */
    sgi_exchange_span span;
    sgi_str version;    /* MCP-Protocol-Version */
    sgi_str method;     /* Mcp-Method */
    sgi_str name;       /* Mcp-Name, encoded as a header value */
    sgi_str params;     /* Mcp-Param-*: name NUL value NUL, ... */
    sgi_str last_event; /* Last-Event-ID, for a POST that resumes a request */
    /* the transport must not repeat the message; only the client's request may send it
     * again */
    bool once;
} sgi_exchange_head;

/* Returns the next exchange that the transport has to handle: a new exchange (without a
 * transport; the caller gets a reference to it), an exchange whose input may be read
 * again, or an exchange that is over. NULL = there is none. */
sgi_conn *sgi_exchange_next(sgi_conn *parent);
/* Sets the pointer that sgi_conn_transport returns for this exchange. */
void sgi_exchange_set_transport(sgi_conn *conn, void *transport);
void sgi_exchange_get_head(const sgi_conn *conn, sgi_exchange_head *head);
/* True when no code waits for the answer of this exchange any more. The transport then
 * closes the stream of a request. It lets the POST of a notification finish. */
bool sgi_exchange_is_over(const sgi_conn *conn);
/* True when a request, or the session, waits for the response of this exchange. */
bool sgi_exchange_is_awaited(const sgi_conn *conn);
/* Reports the status of the response. Called when the status and the headers have
 * arrived. */
void sgi_exchange_on_status(sgi_conn *conn, int32_t status);
/* Reports a comment in the stream, which shows that the server is alive. Messages are
 * passed to sgi_conn_message while sgi_conn_wants_input is true. Everything else is
 * reported by this function and those below. */
void sgi_exchange_on_sign_of_life(sgi_conn *conn);
/* Reports the name of the server process that sends the session's GET stream. A new name
 * means a new process, which does not know the settings of the session, such as its log
 * level. */
void sgi_exchange_on_server_name(sgi_conn *conn, sgi_str name);
/* Reports the id of the stream event that brought the last message passed to
 * sgi_conn_message. */
void sgi_exchange_on_event_id(sgi_conn *conn, sgi_str event);
/* Reports that the server asks the client to wait `ms` before its next message. Called
 * before the end of the exchange is reported. */
void sgi_exchange_on_retry_after(sgi_conn *conn, int64_t ms);
/* Reports a response whose status shows that it is not an answer. body: the body of the
 * response. */
void sgi_exchange_on_refusal(sgi_conn *conn, int32_t status, sgi_str body);
/* Reports a response with status 404: the server does not know the wire session. taken:
 * the server had accepted the message before, and the 404 answers an attempt to reopen
 * the stream. */
void sgi_exchange_on_session_gone(sgi_conn *conn, bool taken, sgi_str body);
/* Reports that the JSON body does not answer the request. The body was passed to
 * sgi_conn_message before. */
void sgi_exchange_on_no_answer(sgi_conn *conn, sgi_str body);
/* Reports a success status whose body is neither JSON nor an event stream. */
void sgi_exchange_on_wrong_type(sgi_conn *conn, const char *why);
/* Reports that there is no answer and that another try would fail too (bad certificate,
 * redirect). */
void sgi_exchange_on_permanent_failure(sgi_conn *conn, const char *why);
/* Reports that the answer is larger than max_message_bytes. */
void sgi_exchange_on_too_large(sgi_conn *conn);
/* Reports status 401 or 403 when the client can get no token that would help. */
void sgi_exchange_on_access_refused(sgi_conn *conn, int32_t status, const char *why);
/* Reports that the client can get no token at present. The server did not run the
 * request, so it may be sent again. Called before the end of the exchange is reported. */
void sgi_exchange_on_no_token(sgi_conn *conn);
/* Reports that the message cannot have reached the server. Called before the end of the
 * exchange is reported. */
void sgi_exchange_on_unsent(sgi_conn *conn);
/* Drops the transport's reference to the exchange. The transport must not use the
 * exchange afterwards. Before this call it reports the end by sgi_conn_lost, which does
 * nothing when the exchange is over. */
void sgi_exchange_release(sgi_conn *conn);
/* Reports whether the exchange waits for a token or for a free connection (held). While
 * it waits, its time limit does not run. */
void sgi_exchange_set_held(sgi_conn *conn, bool held);
/* Reports that a user begins (or ends) to decide about a token. Meanwhile two time limits
 * stop: that of a request which waits for the token, and that of reconnecting. parent:
 * the conversation of the session. */
void sgi_exchange_set_user_decides(sgi_conn *parent, bool decides);
/* True for an HTTP status that may change soon: the same request may succeed a little
 * later. */
bool sgi_http_status_may_pass(int32_t status);
/* Asks whether the transport may reopen a stream after *ms. attempt: number of this
 * attempt in a row. The attempt is reported to the application, unless the server had
 * announced the end of the stream (is_polled). May shorten *ms. Returns false when
 * reconnecting has taken too long. */
bool sgi_exchange_may_reopen(sgi_conn *conn, const char *why, int32_t attempt,
                             bool is_polled, int64_t *ms);

#endif
