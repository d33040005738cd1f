/* The private state of the Streamable HTTP client, for its files:
 *
 *   http_client.c                   settings, the wire session, open and close
 *   http_client_exchange.c          one exchange: POST or GET, silence, resumption
 *   http_client_exchange_response.c its response: head, events or body, and the end
 *   http_client_exchange_head.c     the headers of the request
 *   http_auth.c                     access tokens, for an OAuth flow of the engine
 *   http_client_exchange_token.c    a request that waits for a token or needs another one
 *   http_client_exchange_refusal.c  a request that the server refuses
 *   http_client_exchange_old.c      servers of 2024-11-05, with one event stream
 *   http_client_response.c          what has arrived of the current response
 *   resumptions.c                   how often a stream may be resumed, and when
 *   header_hook.c                   asking the application for headers
 *
 * The functions run on the loop thread with the lock held, except where segue.h allows
 * any thread. */
#ifndef SGI_HTTP_CLIENT_EXCHANGE_H
#define SGI_HTTP_CLIENT_EXCHANGE_H

#include "transport/http_client_response.h"
#include "transport/resumptions.h"
#include "wire/mcp_params.h"
#include "wire/sse.h"

typedef struct sgi_http_client sgi_http_client;
typedef struct sgi_client_exchange sgi_client_exchange;
typedef struct sgi_header_hook sgi_header_hook;
typedef struct sgi_http_auth sgi_http_auth;

#define SGI_HTTP_HEADERS_MAX 64
/* Maximum number of header lines of a request: those of the application, of the tool's
 * parameters, and of MCP. */
#define SGI_HTTP_LINES_MAX (SGI_HTTP_HEADERS_MAX + SGI_MCP_MAX_PARAMS + 9)

/* The event stream of a server of 2024-11-05 (http_client_exchange_old.c). */
typedef enum sgi_old_state {
    SGI_OLD_NONE = 0, /* the server is not known to be so old */
    SGI_OLD_OPENING,  /* the stream was requested, and its endpoint is awaited */
    SGI_OLD_OPEN,     /* messages are posted to the endpoint */
    SGI_OLD_CLOSED    /* the server is so old, and has no stream now */
} sgi_old_state;

typedef struct sgi_old_stream {
    int32_t use; /* a segue_http_sse */
    sgi_old_state state;
    bool known;       /* true = the server has named an endpoint before */
    sgi_fetch *fetch; /* the stream; NULL = none */
    sgi_sse sse;
    sgi_buf endpoint; /* the URL for messages, NUL-terminated */
    sgi_timer timer;  /* fires when the endpoint did not come in time */
} sgi_old_stream;

struct sgi_http_client {
    segue_transport base;
    sgi_fetcher *fetcher;
    /* asks the application for headers; NULL = the options have no callback for
     * headers */
    sgi_header_hook *hook;
    sgi_http_auth *auth; /* gets access tokens; NULL = the transport uses no OAuth */
    sgi_buf url;         /* the endpoint's URL, NUL-terminated */
    sgi_buf name;        /* the endpoint's name in messages to the user, NUL-terminated */
    /* the longest time in ms for which the server may be silent; -1 = no limit */
    int64_t silence_ms;
    /* the headers that the application has set, packed as name NUL value NUL, ... */
    sgi_buf headers;
    int32_t header_count;
    /* a hash of the endpoint, under which the engine remembers facts about the
     * endpoint */
    uint64_t endpoint_hash;
    /* the Mcp-Session-Id of the wire session; empty = no session */
    sgi_buf session;
    sgi_buf version;       /* the MCP-Protocol-Version of the wire session */
    uint32_t wire_session; /* number of wire sessions that have begun so far */
    TAILQ_HEAD(, sgi_client_exchange) exchanges;
    /* the DELETE request that ends the wire session; NULL = no such request is running */
    sgi_fetch *farewell;
    sgi_old_stream old;
    bool closing;
    sgi_timer linger;
};

/* Whether a request waits for headers from the application's callback. A run of the
 * callback serves only the requests that waited when the run began. A request that is
 * refused during a run waits for the next run. */
typedef enum sgi_headers_state {
    SGI_HEADERS_UNASKED, /* the request waits for no headers */
    /* the request waits, and the next run of the callback gives the headers */
    SGI_HEADERS_WANTED,
    /* the request waits, and the current run of the callback gives the headers */
    SGI_HEADERS_ASKED
} sgi_headers_state;

struct sgi_client_exchange {
    TAILQ_ENTRY(sgi_client_exchange) link;
    sgi_http_client *client;
    sgi_conn *conn;
    sgi_exchange_kind kind;
    bool stateless;
    bool once;
    sgi_exchange_span span;
    sgi_headers_state headers;
    /* true = the application was asked for headers a second time, after a refusal */
    bool asked_again;
    bool waits_for_token;
    /* the request waits until the stream of an old server is open
     * (http_client_exchange_old.c) */
    bool waits_for_stream;
    /* number of authorization flows for which the request has waited after refusals */
    int32_t flows;
    /* number of the token with which the request was sent; 0 = no token */
    uint64_t token;
    sgi_buf challenge; /* value of the header WWW-Authenticate of the last refusal */
    /* true = the request was sent with the header Mcp-Session-Id */
    bool in_session;
    /* the value of client->wire_session when the request was sent first */
    uint32_t wire_session;
    sgi_fetch *fetch;
    sgi_client_response response;
    /* true = the POST was answered with a stream, or the request is the GET of the
     * session's stream */
    bool streams;
    bool aftermath; /* true = the answer was received, but its stream has not ended yet */
    sgi_buf posted; /* the body of the POST, kept as long as the POST may be sent again */
    sgi_resumptions resumptions;
    sgi_timer timer; /* fires at the silence limit or at the next resumption */
    int64_t last_input_ms;
};

/* Begins an exchange that sgi_exchange_next has returned. When out of memory, reports a
 * loss to the engine at once. */
void sgi_client_exchange_begin(sgi_http_client *client, sgi_conn *conn);
/* Called when the engine has marked an exchange that was begun before. The exchange
 * continues to read, or is dropped because the engine has ended it. */
void sgi_client_exchange_update(sgi_client_exchange *exchange);
/* Sends the request, or, if a token or the application's headers are missing, lets the
 * request wait for them. */
void sgi_client_exchange_send_when_ready(sgi_client_exchange *exchange);
/* Sends the request. The token and the headers must be known. */
void sgi_client_exchange_send(sgi_client_exchange *exchange);
/* Handles a temporary failure. If the exchange resumes a stream, the stream is resumed
 * later. Otherwise the function reports to the engine that the request had no effect. */
void sgi_client_exchange_put_off(sgi_client_exchange *exchange, const char *why);
/* Cancels and frees the exchange. why: the reason that is reported to the engine. */
void sgi_client_exchange_drop(sgi_client_exchange *exchange, const char *why);

/* True when the request is a GET. A GET opens the stream of the session or resumes the
 * stream of an answer. */
bool sgi_client_exchange_is_get(const sgi_client_exchange *exchange);
/* Reports that the message cannot have reached the server, unless this is a GET, or the
 * server has answered. */
void sgi_client_exchange_note_unsent(sgi_client_exchange *exchange);
/* Begins the time for which the server may be silent. */
void sgi_client_exchange_watch_silence(sgi_client_exchange *exchange);
/* Gives the response some time to end, because its connection can then be used again. */
void sgi_client_exchange_await_end(sgi_client_exchange *exchange);
/* Cancels the fetch, if it still runs, and its timer. */
void sgi_client_exchange_break_off(sgi_client_exchange *exchange);
/* Opens a stream again that ended, complete or cut, or drops the exchange. */
void sgi_client_exchange_reopen(sgi_client_exchange *exchange, const char *why,
                                sgi_loss loss);

static inline sgi_engine *sgi_client_exchange_engine(const sgi_client_exchange *exchange)
{
    return sgi_runtime_engine(sgi_transport_runtime(&exchange->client->base));
}

static inline int64_t sgi_client_exchange_now(const sgi_client_exchange *exchange)
{
    return sgi_now(sgi_engine_env(sgi_client_exchange_engine(exchange)));
}

/* Starts the wire session that the answer to initialize names. Returns false when out of
 * memory, or when the id of the session is invalid; an invalid id was then reported to
 * the engine as a permanent failure. After false, the caller drops the exchange. */
bool sgi_http_client_start_session(sgi_client_exchange *exchange, sgi_str session);
/* Called after an exchange was freed. The transport can now end, if it is closing and has
 * no other exchange. */
void sgi_http_client_on_exchange_freed(sgi_http_client *client);

/* ---- http_client_exchange_response.c ---- */

/* What happens to the fetch of an exchange; its user is the exchange. */
extern const sgi_fetch_events sgi_client_exchange_events;
/* True when the value of a Content-Type header, without its parameters, is `type`. */
bool sgi_http_is_type(sgi_str header, sgi_str type);

/* ---- http_client_exchange_head.c ---- */

/* True when the application has set this header. */
bool sgi_http_client_has_custom_header(const sgi_http_client *client, const char *name);
/* Adds the header lines of a request. lines: an array of SGI_HTTP_LINES_MAX elements. */
void sgi_client_exchange_add_headers(sgi_client_exchange *exchange,
                                     sgi_fetch_request *request,
                                     sgi_fetch_header_line *lines);
/* Handles the status and the header Retry-After of a response. */
void sgi_client_exchange_read_head(sgi_client_exchange *exchange, const sgi_fetch *fetch);
/* Unpacks headers (name NUL value NUL ...) into `lines`, at most `room` headers. Returns
 * the number of unpacked headers. */
size_t sgi_http_unpack_headers(sgi_str packed, sgi_fetch_header_line *lines, size_t room);
/* Sets, replaces or removes a header of the application. Implements
 * segue_transport_set_header. */
segue_status sgi_http_set_header(sgi_http_client *client, const char *name,
                                 const char *value);

/* ---- http_client_exchange_old.c ---- */

/* use: a segue_http_sse. */
void sgi_old_stream_init(sgi_http_client *client, sgi_engine *engine, int32_t use);
void sgi_old_stream_free(sgi_http_client *client);
/* Cancels the stream, because the transport ends. */
void sgi_old_stream_release(sgi_http_client *client);
/* Handles a refused request of a server that may be old. Returns true when the exchange
 * waits for the server's stream, or has ended and is freed. */
bool sgi_old_stream_try(sgi_client_exchange *exchange);
/* Called before a request is sent. Returns true when the request must not be sent now:
 * the exchange waits for the stream of an old server, or has ended and is freed. */
bool sgi_old_stream_holds(sgi_client_exchange *exchange);

/* ---- http_client_exchange_refusal.c ---- */

/* Stores the challenge of a refused request (401 or 403). If the response is no error,
 * marks the token as accepted. */
void sgi_client_exchange_note_refusal(sgi_client_exchange *exchange,
                                      const sgi_fetch *fetch);
/* Handles a refused request. Returns true when the request is sent again, or when the
 * exchange has ended and is freed. */
bool sgi_client_exchange_retry_refused(sgi_client_exchange *exchange);
/* Ends the exchange after a refusal (401 or 403) that no token and no header can change.
 * The engine gets the server's explanation. */
void sgi_client_exchange_end_unauthorized(sgi_client_exchange *exchange);

/* ---- http_client_exchange_token.c, or absent_oauth.c in a build without OAuth ---- */

/* Checks whether the request must wait for a token. If so, returns true, and
 * sgi_client_exchange_send_when_ready sends the request later. */
bool sgi_client_exchange_wants_token(sgi_client_exchange *exchange);
/* Called when the server has accepted the request, which shows that the request's token
 * is valid. */
void sgi_client_exchange_on_token_accepted(sgi_client_exchange *exchange);
/* Handles a refused request that may need another token. Returns true when the request is
 * sent again, waits for a token, or was ended. Returns false when another token cannot
 * help. */
bool sgi_client_exchange_retry_with_new_token(sgi_client_exchange *exchange);
/* Called when an authorization flow has ended. Sends or ends the requests that waited for
 * the flow. */
void sgi_client_exchanges_on_token_flow_ended(sgi_http_client *client);

/* ---- http_auth.c, or absent_oauth.c in a build without OAuth ---- */

/* Makes the object that gets access tokens for the transport. sgi_http_auth_release stops
 * this object, which then calls free_user and frees itself. */
segue_status sgi_http_auth_new(sgi_http_client *client, const char *endpoint,
                               const segue_oauth_options *options);
void sgi_http_auth_release(sgi_http_auth *auth);
sgi_flow *sgi_http_auth_flow(const sgi_http_auth *auth);
/* Does the next steps of the authorization flow, until a step has to wait. */
void sgi_http_auth_do_next_step(sgi_http_auth *auth);
/* Returns the value of the Authorization header, or an empty text when there is no token.
 * *token receives the token's number, or 0. */
sgi_str sgi_http_auth_header(const sgi_http_auth *auth, uint64_t *token);

/* ---- header_hook.c ---- */

/* Makes a hook, which asks the application for headers by calling fn. sgi_header_hook_end
 * stops the hook. When no callback of the hook runs any more, the hook calls free_user
 * and frees itself. fn: NULL = only free_user is called. Returns NULL when out of
 * memory. */
sgi_header_hook *sgi_header_hook_new(sgi_engine *engine, segue_headers_fn fn, void *user,
                                     segue_free_fn free_user);
/* Frees the hook at once, without calling fn or free_user. */
void sgi_header_hook_free(sgi_header_hook *hook);
bool sgi_header_hook_has_callback(const sgi_header_hook *hook);
/* Asks the application for headers. After the callback, all exchanges that waited for
 * headers are sent. status: the HTTP status of the refusal; 0 = no refusal. */
void sgi_header_hook_run(sgi_header_hook *hook, sgi_http_client *client, int32_t status);
void sgi_header_hook_end(sgi_header_hook *hook);

#endif
