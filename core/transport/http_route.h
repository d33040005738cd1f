/* Decides what a request asks for and whether the request is allowed, from its head:
 * path, method, Host, Origin, Accept, Content-Type, and headers that must not be
 * repeated. The code of this file does no input or output and knows no connection. */
#ifndef SGI_HTTP_ROUTE_H
#define SGI_HTTP_ROUTE_H

#include "board/board.h"
#include "wire/http1_head.h"

/* What a listener has at a path. */
typedef enum sgi_http_endpoint_state {
    SGI_HTTP_ENDPOINT_NONE,
    SGI_HTTP_ENDPOINT_STARTS, /* its server has not recovered its operations yet */
    SGI_HTTP_ENDPOINT_OPEN
} sgi_http_endpoint_state;

/* The rules by which a listener accepts requests. The texts belong to the listener. */
typedef struct sgi_http_policy {
    /* Returns true when the path serves public metadata; NULL = no path serves
     * metadata. */
    bool (*is_public)(const void *user, sgi_str path);
    /* Says what the listener has at the path; NULL = it has an open endpoint at
     * `path`. */
    sgi_http_endpoint_state (*endpoint_at)(const void *user, sgi_str path);
    const void *user;
    sgi_str path;         /* path of the MCP endpoint */
    sgi_str health_path;  /* path of the health check; empty = no health check */
    sgi_str ready_path;   /* path of the readiness check; empty = no such check */
    sgi_str live_path;    /* path of the liveness check; empty = no such check */
    sgi_str metrics_path; /* path of the metrics; empty = no metrics */
    sgi_str board_path;   /* path of the task board; empty = no board */
    /* allowed hosts, separated by commas; p NULL = the members `bound`, `local`, `secure`
     * and `tokens` decide which hosts are allowed */
    sgi_str hosts;
    /* allowed origins, separated by commas; p NULL = the server's own origin is allowed,
     * and with `local` every local origin */
    sgi_str origins;
    sgi_str bound; /* the address that the socket is bound to, without its port */
    bool local;    /* true = only this machine can reach the listener */
    bool secure;   /* true = the listener uses TLS, so its certificate proves its name */
    bool tokens;   /* true = every caller needs a token */
    bool cors;     /* true = CORS headers are sent, so that web pages can read answers */
} sgi_http_policy;

typedef enum sgi_http_kind {
    SGI_HTTP_REFUSED = 0,
    SGI_HTTP_POST,
    SGI_HTTP_GET,
    SGI_HTTP_DELETE,
    SGI_HTTP_PREFLIGHT,
    SGI_HTTP_HEALTH,
    SGI_HTTP_READY,
    SGI_HTTP_LIVE,
    SGI_HTTP_METRICS,
    SGI_HTTP_BOARD_FILE, /* a part of the task board's page */
    SGI_HTTP_BOARD,      /* data of the task board, or a change */
    SGI_HTTP_METADATA,   /* a request for the protected resource metadata */
    SGI_HTTP_METADATA_PREFLIGHT
} sgi_http_kind;

/* The result of the checks. The texts are views of the head. */
typedef struct sgi_http_head_verdict {
    sgi_http_kind kind;
    bool takes_events;
    const sgi_board_item *board; /* what of the task board is asked; else NULL */
    bool bare; /* true = the request is HEAD, so the answer has no body */
    /* the origin whose pages may read the answer (CORS); empty = no CORS headers */
    sgi_str origin;
    /* The remaining members are set only for a refusal. */
    int32_t status;
    int32_t code; /* the JSON-RPC error code of the refusal */
    const char *problem;
    const char *allow; /* value of the header Allow, for the status 405 */
} sgi_http_head_verdict;

void sgi_http_route_head(const sgi_http_policy *policy, const sgi_http1_head *head,
                         sgi_http_head_verdict *route);

/* True when the name is a local name of this machine, such as localhost. */
bool sgi_http_is_local_name(sgi_str name);
/* True when the Host is an IPv4 address (four numbers), or an address in brackets. */
bool sgi_http_is_address(sgi_str name);

#endif
