/* Decides what the head of a request asks for and whether it is allowed: path, method,
 * Host, Origin, Accept, Content-Type, and headers that must not be repeated. This code
 * has no I/O and knows no connection. */
#ifndef SGI_HTTP_ROUTE_H
#define SGI_HTTP_ROUTE_H

#include "wire/http1.h"

/* The rules of a listener for requests. The texts belong to the listener. */
typedef struct sgi_http_policy {
    /* Returns true when the path serves public metadata; NULL = no path does. */
    bool (*is_public)(const void *user, sgi_str path);
    const void *user;
    sgi_str path;        /* path of the MCP endpoint */
    sgi_str health_path; /* path of the health check; empty = none */
    /* allowed hosts, separated by commas; p NULL = `bound`, `local`, `secure` and
     * `tokens` decide */
    sgi_str hosts;
    /* allowed origins, separated by commas; p NULL = decided like `hosts` */
    sgi_str origins;
    sgi_str bound; /* the address that the socket is bound to, without its port */
    bool local;    /* only this machine can reach the listener */
    bool secure;   /* the listener uses TLS: its certificate proves its name */
    bool tokens;   /* every caller needs a token */
    bool cors;     /* CORS headers are sent, so that web pages may read answers */
} sgi_http_policy;

typedef enum sgi_http_kind {
    SGI_HTTP_REFUSED = 0,
    SGI_HTTP_POST,
    SGI_HTTP_GET,
    SGI_HTTP_DELETE,
    SGI_HTTP_PREFLIGHT,
    SGI_HTTP_HEALTH,
    SGI_HTTP_METADATA, /* the metadata for authorization */
    SGI_HTTP_METADATA_PREFLIGHT
} sgi_http_kind;

/* The result of the checks, with views of the head. */
typedef struct sgi_http_head_verdict {
    sgi_http_kind kind;
    bool takes_events;
    bool bare;      /* the request is HEAD, so the answer has no body */
    sgi_str origin; /* the origin that may read the answer (CORS); empty = none */
    /* The following members are set for a refusal. */
    int32_t status;
    int32_t code; /* JSON-RPC error code */
    const char *problem;
    const char *allow; /* value of the header Allow, for status 405 */
} sgi_http_head_verdict;

void sgi_http_route_head(const sgi_http_policy *policy, const sgi_http1 *head,
                         sgi_http_head_verdict *route);

/* True when the name is a local name of this machine, such as localhost. */
bool sgi_http_is_local_name(sgi_str name);
/* True when the Host is an address: four numbers, or [...]. */
bool sgi_http_is_address(sgi_str name);

#endif
