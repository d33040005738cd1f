/* The private state of the Streamable HTTP client, for its files:
 *
 *   http_client.c                   settings, the wire session, open and close
 *   http_client_exchange.c          one exchange: POST or GET, response, resumption
 *   http_client_exchange_head.c     the headers of the request
 *   http_auth.c                     access tokens, for an OAuth flow of the engine
 *   http_client_exchange_token.c    a request that waits for a token or needs another one
 *   http_client_exchange_refusal.c  a request that the server refuses
 *   header_hook.c                   asking the application for headers
 *
 * The functions run on the loop thread with the lock held, except where segue.h allows
 * any thread. */
#ifndef SGI_HTTP_CLIENT_EXCHANGE_H
#define SGI_HTTP_CLIENT_EXCHANGE_H

#include "transport/fetch.h"
#include "wire/mcp_params.h"
#include "wire/sse.h"

typedef struct sgi_http_client sgi_http_client;
typedef struct sgi_client_exchange sgi_client_exchange;
typedef struct sgi_header_hook sgi_header_hook;
typedef struct sgi_http_auth sgi_http_auth;

#define SGI_HTTP_HEADERS_MAX 64
/* Maximum number of header lines: the application's, the tool parameters', and MCP's. */
#define SGI_HTTP_LINES_MAX (SGI_HTTP_HEADERS_MAX + SGI_MCP_MAX_PARAMS + 9)

struct sgi_http_client {
    segue_transport base;
    sgi_fetcher *fetcher;
    /* the hook that asks the application for headers; NULL = the application has no
     * callback */
    sgi_header_hook *hook;
    sgi_http_auth *auth; /* the object that gets access tokens; NULL = no OAuth */
    sgi_buf url;         /* the endpoint's URL, NUL-terminated */
    sgi_buf name;        /* the endpoint's name in messages */
    int64_t silence_ms;  /* how long the server may be silent, in ms; -1 = no limit */
    /* the headers that the application has set: name NUL value NUL, ... */
    sgi_buf headers;
    int32_t header_count;
    /* a hash of the endpoint, under which the engine remembers what it learns about
     * the endpoint */
    uint64_t place;
    /* the Mcp-Session-Id of the wire session; empty = no session */
    sgi_buf session;
    sgi_buf version;       /* the MCP-Protocol-Version of the wire session */
    uint32_t wire_session; /* number of wire sessions that have begun so far */
    TAILQ_HEAD(, sgi_client_exchange) exchanges;
    sgi_fetch *farewell; /* the DELETE request that ends the session */
    bool closing;
    sgi_timer linger;
};

/* One exchange of the conversation (http_client_exchange.c). */
/* What a request knows of the headers that the application gives. A run of the
 * application's callback serves only the requests that waited when the run began: a
 * request that is refused during the run waits for the next one. */
typedef enum sgi_headers_state {
    SGI_HEADERS_UNASKED, /* the request waits for no headers */
    SGI_HEADERS_WANTED,  /* the next run of the callback gives the headers */
    SGI_HEADERS_ASKED    /* the callback that runs now gives the headers */
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
    /* number of OAuth flows for which the request has waited after refusals */
    int32_t flows;
    /* number of the token with which the request was sent; 0 = no token */
    uint64_t token;
    sgi_buf challenge;     /* the header WWW-Authenticate of the refusal */
    bool in_session;       /* the request was sent with Mcp-Session-Id */
    uint32_t wire_session; /* client->wire_session when the request was first sent */
    sgi_fetch *fetch;
    int32_t status; /* HTTP status of the running response; 0 = no response yet */
    bool is_events; /* the response is an event stream */
    bool is_json;
    bool streams;   /* true = a POST was answered with a stream, or the request is the
                     * GET of the session's stream */
    bool aftermath; /* the answer has come, but its stream has not ended yet */
    sgi_buf posted; /* the body of the POST, while it may be sent again */
    sgi_buf body;   /* the body of the response: JSON, or the text of an error */
    sgi_sse sse;
    /* received bytes that the engine does not want yet */
    sgi_buf held;
    bool ended; /* the stream has ended; the bytes in `held` are its last ones */
    sgi_fetch_fault fault; /* how the stream has ended */
    sgi_buf fault_text;
    int64_t retry_ms;    /* the retry time of the server in ms; -1 = the server gave
                          * none */
    int32_t resumptions; /* number of resumptions in a row that brought no event */
    sgi_timer timer;     /* fires at the silence limit or at the next resumption */
    int64_t last_input_ms;
};

/* Begins an exchange that sgi_exchange_next returned. When out of memory, a loss is
 * reported to the engine at once. */
void sgi_client_exchange_begin(sgi_http_client *client, sgi_conn *conn);
/* Called when the engine has marked an exchange that was begun already. The exchange
 * continues to read, or is dropped because the engine has ended it. */
void sgi_client_exchange_update(sgi_client_exchange *exchange);
/* Sends the request. If a token or the application's headers are missing, the request
 * is sent when they are known. */
void sgi_client_exchange_send_when_ready(sgi_client_exchange *exchange);
/* Sends the request. The token and the headers must be known. */
void sgi_client_exchange_send(sgi_client_exchange *exchange);
/* Handles a refusal that is only temporary. If a stream was to be resumed, it is
 * resumed later; otherwise the function reports to the engine that the request had no
 * effect. */
void sgi_client_exchange_put_off(sgi_client_exchange *exchange, const char *why);
/* Cancels and frees the exchange. why: the reason for the engine. */
void sgi_client_exchange_drop(sgi_client_exchange *exchange, const char *why);

/* Starts the wire session that the answer to initialize names, and ends the old one.
 * Returns false when the session's id is invalid (the exchange was then reported to
 * the engine as denied) or when out of memory. After false, the caller drops the
 * exchange. */
bool sgi_http_client_start_session(sgi_client_exchange *exchange, sgi_str session);
/* Called after an exchange was freed, because the transport may now be able to end. */
void sgi_http_client_exchange_freed(sgi_http_client *client);

/* ---- http_client_exchange_head.c ---- */

/* True when the application has set this header. */
bool sgi_http_has_header(const sgi_http_client *client, const char *name);
/* Adds the header lines of a request; lines has SGI_HTTP_LINES_MAX elements. */
void sgi_client_exchange_add_headers(sgi_client_exchange *exchange,
                                     sgi_fetch_request *request,
                                     sgi_fetch_header_line *lines);
/* Reads the head of a response: its status and Retry-After. */
void sgi_client_exchange_read_head(sgi_client_exchange *exchange, const sgi_fetch *fetch);
/* Unpacks headers (name NUL value NUL ...) into `lines`, at most `room` of them.
 * Returns their number. */
size_t sgi_http_unpack_headers(sgi_str packed, sgi_fetch_header_line *lines, size_t room);
/* Sets a header of the application, for segue_transport_set_header. */
segue_status sgi_http_set_header(sgi_http_client *client, const char *name,
                                 const char *value);

/* ---- http_client_exchange_refusal.c ---- */

/* Stores what the head of a response says about a refusal. */
void sgi_client_exchange_note_refusal(sgi_client_exchange *exchange,
                                      const sgi_fetch *fetch);
/* Handles a refused request. Returns true when the request is sent again, or when the
 * exchange was ended and freed. */
bool sgi_client_exchange_retry_refused(sgi_client_exchange *exchange);
/* Ends the exchange after a refusal that nothing can change (401 or 403). The engine
 * gets the server's explanation. */
void sgi_client_exchange_end_unauthorized(sgi_client_exchange *exchange);

/* ---- http_client_exchange_token.c, or absent_oauth.c in a build without OAuth ---- */

/* True when the request must wait for a token. sgi_client_exchange_send_when_ready
 * sends it later. */
bool sgi_client_exchange_wants_token(sgi_client_exchange *exchange);
/* Called when the server has accepted the request: the token of the request is valid. */
void sgi_client_exchange_token_accepted(sgi_client_exchange *exchange);
/* Handles a request that was refused and may need another token. Returns true when the
 * request is sent again, waits for a token, or was ended. Returns false when no token
 * helps. */
bool sgi_client_exchange_retry_with_new_token(sgi_client_exchange *exchange);
/* Called when an OAuth flow has ended: the requests that waited for the flow are sent
 * or ended. */
void sgi_client_exchanges_on_token_flow_ended(sgi_http_client *client);

/* ---- http_auth.c, or absent_oauth.c in a build without OAuth ---- */

/* Makes the object that gets access tokens. sgi_http_auth_release stops the object,
 * which then calls free_user and frees itself. */
segue_status sgi_http_auth_new(sgi_http_client *client, const char *endpoint,
                               const segue_oauth_options *options);
void sgi_http_auth_release(sgi_http_auth *auth);
sgi_flow *sgi_http_auth_flow(const sgi_http_auth *auth);
/* Does the next step of the OAuth flow. */
void sgi_http_auth_drive(sgi_http_auth *auth);
/* Returns the value of the Authorization header, or an empty text. *token receives the
 * token's number. */
sgi_str sgi_http_auth_header(const sgi_http_auth *auth, uint64_t *token);

/* ---- header_hook.c ---- */

/* Makes a hook, which asks the application for headers. sgi_header_hook_end stops the
 * hook. When no callback of the hook runs any more, the hook calls free_user and frees
 * itself. fn: NULL = only free_user is called. Returns NULL when out of memory. */
sgi_header_hook *sgi_header_hook_new(sgi_engine *engine, segue_headers_fn fn, void *user,
                                     segue_free_fn free_user);
/* Frees the hook at once and calls neither callback. */
void sgi_header_hook_free(sgi_header_hook *hook);
bool sgi_header_hook_has_callback(const sgi_header_hook *hook);
/* Asks the application for headers. Afterwards all exchanges that wait for headers are
 * sent. */
void sgi_header_hook_run(sgi_header_hook *hook, sgi_http_client *client, int32_t status);
void sgi_header_hook_end(sgi_header_hook *hook);

#endif
