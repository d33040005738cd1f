/* The functions by which the HTTP transport uses a client session
 * (exchange_receive.c). Each message is an exchange of its own: one POST or GET and
 * its response. Every function here is called with the runtime's lock held. */
#ifndef SGI_EXCHANGE_PORT_H
#define SGI_EXCHANGE_PORT_H

#include "engine/client/loss.h"
#include "engine/port.h"

typedef enum sgi_exchange_kind {
    /* POST whose body is the output of the conversation (sgi_conn_take_output) */
    SGI_EXCHANGE_MESSAGE = 0,
    /* POST without a session id, with the output of the conversation as its body; the
     * response may assign a session id */
    SGI_EXCHANGE_INITIALIZE,
    /* GET that opens the stream of the session; the message has no answer */
    SGI_EXCHANGE_LISTEN
} sgi_exchange_kind;

/* How long an exchange may take, and whether other exchanges may wait for its end. */
typedef enum sgi_exchange_span {
    /* the server answers at once, so other exchanges may wait for the end of this one */
    SGI_EXCHANGE_BRIEF = 0,
    /* the engine ends the exchange when the server is silent for longer than a time
     * limit */
    SGI_EXCHANGE_REQUEST,
    /* no time limit of the engine; the exchange ends only with its answer or by the
     * transport */
    SGI_EXCHANGE_LONG,
    SGI_EXCHANGE_STANDING /* the exchange stays open as long as the session */
} sgi_exchange_span;

/* The kind of an exchange and the values of its HTTP headers. A header whose value is
 * empty is not sent. `name` is an exception: its header is left out only when name.p is
 * NULL, and an empty name is sent. The values are valid as long as the exchange. */
typedef struct sgi_exchange_head {
    sgi_exchange_kind kind;
    bool stateless; /* true when the message belongs to no wire session */
    sgi_exchange_span span;
    sgi_str version; /* value of the header MCP-Protocol-Version */
    sgi_str method;  /* value of the header Mcp-Method */
    /* value of the header Mcp-Name, already encoded; p NULL = no such header */
    sgi_str name;
    /* names and values of the headers Mcp-Param-*, packed as name NUL value NUL */
    sgi_str params;
    /* value of the header Last-Event-ID, for a POST that resumes a request */
    sgi_str last_event;
    /* true when the transport must not send the message a second time; the client's
     * request decides about another attempt */
    bool once;
} sgi_exchange_head;

/* Returns the next exchange that the transport has to handle, or NULL. The exchange is of
 * one of three kinds: a new exchange without a transport, of which the caller gets a
 * reference; an exchange whose input may be read again; or an exchange that is over. */
sgi_conn *sgi_exchange_next(sgi_conn *parent);
/* Sets the pointer that sgi_conn_transport returns for this exchange. */
void sgi_exchange_set_transport(sgi_conn *conn, void *transport);
void sgi_exchange_get_head(const sgi_conn *conn, sgi_exchange_head *head);
/* True when no code waits for the answer of this exchange any more. The transport then
 * closes the stream of a request, but lets the POST of a notification finish. */
bool sgi_exchange_is_over(const sgi_conn *conn);
/* True when a request, or the session, waits for the response of this exchange. */
bool sgi_exchange_is_awaited(const sgi_conn *conn);
/* Reports the status of the response. Called when the status and the headers have
 * arrived. */
void sgi_exchange_on_status(sgi_conn *conn, int32_t status);
/* Reports a comment in the stream, which shows that the server is alive. The transport
 * passes messages to sgi_conn_add_message while sgi_conn_wants_input is true. This
 * function and the next ones report everything else. */
void sgi_exchange_on_sign_of_life(sgi_conn *conn);
/* Reports the name of the server process that began the session or sends its GET stream;
 * empty = the answer has no name. A GET stream with a new name means a new process, which
 * does not know the settings of the session, such as its log level. */
void sgi_exchange_on_server_name(sgi_conn *conn, sgi_str name);
/* Reports the id of the stream event that brought the last message passed to
 * sgi_conn_add_message. */
void sgi_exchange_on_event_id(sgi_conn *conn, sgi_str event);
/* Reports that the server asks the client to wait `ms` before its next message. Called
 * before the end of the exchange is reported. */
void sgi_exchange_on_retry_after(sgi_conn *conn, int64_t ms);
/* Reports a response whose status shows that it is not an answer. body: the body of the
 * response. */
void sgi_exchange_on_refusal(sgi_conn *conn, int32_t status, sgi_str body);
/* Reports a response with status 404: the server does not know the wire session. taken:
 * the server had accepted the message before, and the 404 answers an attempt to reopen
 * the stream. body: the body of the response. */
void sgi_exchange_on_session_gone(sgi_conn *conn, bool taken, sgi_str body);
/* Reports that the JSON body of the response does not answer the request. The transport
 * has already passed the body to sgi_conn_add_message. */
void sgi_exchange_on_no_answer(sgi_conn *conn, sgi_str body);
/* Reports a success status whose body is neither JSON nor an event stream. */
void sgi_exchange_on_wrong_type(sgi_conn *conn, const char *why);
/* Reports that no answer will come and that another attempt would fail as well (bad
 * certificate, redirect). why: the text of the failure. */
void sgi_exchange_on_permanent_failure(sgi_conn *conn, const char *why);
/* Reports that the answer is larger than max_message_bytes. */
void sgi_exchange_on_too_large(sgi_conn *conn);
/* Reports status 401 or 403, when the client cannot get an access token that would help.
 * why: the reason. */
void sgi_exchange_on_access_refused(sgi_conn *conn, int32_t status, const char *why);
/* Reports that the client cannot get an access token at present. The server did not run
 * the request, so the request may be sent again. Called before the end of the exchange is
 * reported. */
void sgi_exchange_on_no_token(sgi_conn *conn);
/* Reports that the message cannot have reached the server. Called before the end of the
 * exchange is reported. */
void sgi_exchange_on_unsent(sgi_conn *conn);
/* Reports whether the connection of the last attempt broke, if the message can have
 * reached the server. Called before the end of the exchange is reported. */
void sgi_exchange_set_broken(sgi_conn *conn, bool broken);
/* Drops the transport's reference to the exchange. The transport must not use the
 * exchange afterwards. Before this call the transport reports the end of the exchange by
 * sgi_conn_on_lost. sgi_conn_on_lost does nothing when the exchange is over. */
void sgi_exchange_release(sgi_conn *conn);
/* Reports whether the exchange waits for an access token or for a free connection (held).
 * The time limit of the exchange does not run while held is true. */
void sgi_exchange_set_held(sgi_conn *conn, bool held);
/* Reports that a user begins (true) or ends (false) to decide about an access token.
 * During the decision two time limits stop: the limit of the request that waits for the
 * token, and the limit of reconnecting. parent: the conversation of the session. */
void sgi_exchange_set_user_deciding(sgi_conn *parent, bool decides);
/* Reports that the one stream of a server of 2024-11-05 has ended, and with it the
 * server's session. parent: the conversation of the session. */
void sgi_exchanges_on_connection_lost(sgi_conn *parent, const char *why);
/* True for an HTTP status that is temporary: the same request may succeed a little
 * later. */
bool sgi_http_status_is_temporary(int32_t status);
/* Asks whether an attempt to reopen a stream that failed was a probe
 * (engine/client/probing.h). Returns the time in ms after which the transport tries again
 * without counting; 0 = the attempt counts. */
int64_t sgi_exchange_probe_ms(sgi_conn *conn, sgi_loss loss);
/* Asks whether the transport may reopen a stream after *ms, and may shorten *ms. Returns
 * false when reconnecting has taken too long, or max_reconnects attempts in a row have
 * failed. attempt: number of attempts in a row, including this one. loss: that of the
 * attempt before. The function reports the attempt to the application, unless the server
 * had announced the end of the stream (is_polled). */
bool sgi_exchange_may_reopen(sgi_conn *conn, const char *why, int32_t attempt,
                             bool is_polled, sgi_loss loss, int64_t *ms);

#endif
