/* The insides of the client of Streamable HTTP, for its files:
 *
 *   http_client.c       the transport: settings, the wire session, opening and closing
 *   http_ask.c          one exchange: a POST or GET, what comes back, its resumption
 *   http_ask_head.c     the headers of a request: ours, the tool's, the application's
 *   http_auth.c         access tokens: what a flow of the engine's needs is done here
 *   http_ask_token.c    a request that waits for a token, or needs another one
 *   http_ask_refusal.c  a request that the server does not let in
 *   header_hook.c       asking the application for headers
 *
 * Loop thread and lock held, except where segue.h allows any thread. */
#ifndef SGI_HTTP_ASK_H
#define SGI_HTTP_ASK_H

#include "transport/fetch.h"
#include "wire/mcp_params.h"
#include "wire/sse.h"

typedef struct sgi_http_client sgi_http_client;
typedef struct sgi_http_ask sgi_http_ask;
typedef struct sgi_header_hook sgi_header_hook;
typedef struct sgi_http_auth sgi_http_auth;

#define SGI_HTTP_HEADERS_MAX 64
/* Those, those of the parameters of a tool, and our own. */
#define SGI_HTTP_LINES_MAX (SGI_HTTP_HEADERS_MAX + SGI_MCP_MAX_PARAMS + 9)

struct sgi_http_client {
    segue_transport base;
    sgi_fetcher *fetcher;
    sgi_header_hook *hook; /* NULL = the application is not asked */
    sgi_http_auth *auth;   /* NULL = nothing is done about access tokens */
    sgi_buf url;           /* of the endpoint, with a NUL */
    sgi_buf name;          /* of the endpoint, for messages */
    int64_t silence_ms;    /* -1 = no limit */
    sgi_buf headers;       /* the application's: name NUL value NUL, ... */
    int32_t header_count;
    uint64_t place;        /* what the engine remembers of this endpoint goes by it */
    sgi_buf session;       /* Mcp-Session-Id; empty = none */
    sgi_buf version;       /* MCP-Protocol-Version that goes with it */
    uint32_t wire_session; /* how many were begun */
    TAILQ_HEAD(, sgi_http_ask) asks;
    sgi_fetch *farewell; /* DELETE of the session */
    bool closing;
    sgi_timer linger;
};

/* One exchange of the conversation; http_ask.c. */
struct sgi_http_ask {
    TAILQ_ENTRY(sgi_http_ask) link;
    sgi_http_client *client;
    sgi_conn *conn;
    sgi_ask_kind kind;
    bool modern;
    bool once;
    sgi_ask_span span;
    bool waits_for_headers; /* the application was asked for them */
    bool asked_again;       /* ... after a refusal, once */
    bool waits_for_token;
    int32_t flows;         /* it has waited for, because it was refused */
    uint64_t token;        /* number of the token it went with; 0 = none */
    sgi_buf challenge;     /* WWW-Authenticate of a refusal */
    bool in_session;       /* Mcp-Session-Id was sent */
    uint32_t wire_session; /* of the client's, when it first went */
    sgi_fetch *fetch;
    int32_t status; /* of the response under way; 0 = none yet */
    bool is_events; /* ... and what it brings */
    bool is_json;
    bool streams;   /* what was posted is being answered by a stream */
    bool aftermath; /* the answer is there, the stream goes on */
    sgi_buf posted; /* the body, while it may have to be sent again */
    sgi_buf body;   /* what came: JSON, or the text of an error */
    sgi_sse sse;
    sgi_buf held;        /* came, but the engine is ahead of its reader */
    bool ended;          /* ... and the end of the stream came behind it */
    int64_t retry_ms;    /* what the server said about coming again, or -1 */
    int32_t resumptions; /* in a row that brought nothing */
    sgi_timer timer;     /* silence, or the next resumption */
    int64_t heard_ms;
};

/* Begins an exchange that sgi_ask_next gave; without memory it is lost at once. */
void sgi_http_ask_begin(sgi_http_client *client, sgi_conn *conn);
/* The engine marked it again: it may be read, or is over. */
void sgi_http_ask_look(sgi_http_ask *ask);
/* Sends it as soon as a token and the application's headers are there; */
void sgi_http_ask_depart(sgi_http_ask *ask);
/* ... they are. */
void sgi_http_ask_go(sgi_http_ask *ask);
/* It was not let in, for a reason that passes: the stream is taken up again later, or the
 * engine is told that nothing was done. */
void sgi_http_ask_put_off(sgi_http_ask *ask, const char *why);
/* Cancels and frees it; why: what the engine is told. */
void sgi_http_ask_drop(sgi_http_ask *ask, const char *why);

/* The answer to initialize may begin a wire session; the old one is over, anyway. False
 * when its id is not valid, and the engine was told that the exchange was denied, or when
 * there is no memory for the id. The caller then drops the exchange. */
bool sgi_http_client_session(sgi_http_ask *ask, sgi_str session);
/* An exchange is gone. */
void sgi_http_client_asked(sgi_http_client *client);

/* ---- http_ask_head.c ---- */

/* True when the application has set it. */
bool sgi_http_has_header(const sgi_http_client *client, const char *name);
/* Appends the lines of a request; lines has room for SGI_HTTP_LINES_MAX. */
void sgi_http_ask_head(sgi_http_ask *ask, sgi_fetch_request *request,
                       sgi_fetch_header_line *lines);
/* The head of a response is there: how it went, and what is said of coming again. */
void sgi_http_ask_heed(sgi_http_ask *ask, const sgi_fetch *fetch);
/* Headers that are packed as name NUL value NUL, at most room of them; how many. */
size_t sgi_http_lines(sgi_str packed, sgi_fetch_header_line *lines, size_t room);
/* For segue_transport_set_header. */
segue_status sgi_http_set_header(sgi_http_client *client, const char *name,
                                 const char *value);

/* ---- http_ask_refusal.c ---- */

/* The head of a response is there. */
void sgi_http_ask_note(sgi_http_ask *ask, const sgi_fetch *fetch);
/* It was refused, and may be let in when it comes again: what that takes is under way, or
 * nothing helps and the exchange is gone. */
bool sgi_http_ask_again(sgi_http_ask *ask);
/* 401 stays: the engine is told what the server says of it. */
void sgi_http_ask_unauthorized(sgi_http_ask *ask);

/* ---- http_ask_token.c; absent_oauth.c where there is no OAuth ---- */

/* True when it has to wait for a token; sgi_http_ask_depart goes on. */
bool sgi_http_ask_wants_token(sgi_http_ask *ask);
/* The server has let it in: its token is good. */
void sgi_http_ask_admitted(sgi_http_ask *ask);
/* It was refused: another token may help. True: it goes again, waits for one, or is gone.
 * False: no token helps. */
bool sgi_http_ask_renew(sgi_http_ask *ask);
/* A flow is through: those that waited go, or end. */
void sgi_http_ask_admit(sgi_http_client *client);

/* ---- http_auth.c; absent_oauth.c where there is no OAuth ---- */

/* Like a hook it frees itself, after free_user. */
segue_status sgi_http_auth_new(sgi_http_client *client, const char *endpoint,
                               const segue_oauth_options *options);
void sgi_http_auth_end(sgi_http_auth *auth);
sgi_flow *sgi_http_auth_flow(const sgi_http_auth *auth);
/* Does what the flow needs next. */
void sgi_http_auth_drive(sgi_http_auth *auth);
/* The line Authorization, or nothing; *token: its number. */
sgi_str sgi_http_auth_header(const sgi_http_auth *auth, uint64_t *token);

/* ---- header_hook.c ---- */

/* The hook frees itself: after `end` and a callback that runs it calls free_user, and is
 * gone. NULL when out of memory. fn NULL: only free_user is delivered. */
sgi_header_hook *sgi_header_hook_new(sgi_engine *engine, segue_headers_fn fn, void *user,
                                     segue_free_fn free_user);
/* Takes back a hook that was never used: no callback runs. */
void sgi_header_hook_undo(sgi_header_hook *hook);
bool sgi_header_hook_asks(const sgi_header_hook *hook);
/* Asks; every exchange that waits for headers goes afterwards. */
void sgi_header_hook_ask(sgi_header_hook *hook, sgi_http_client *client, int32_t status);
void sgi_header_hook_end(sgi_header_hook *hook);

#endif
