/* What the head of a request asks for, and whether it may: path, method, Host, Origin,
 * Accept, Content-Type and headers that must not be repeated. Sans-IO; knows no
 * connection. */
#ifndef SGI_HTTP_ROUTE_H
#define SGI_HTTP_ROUTE_H

#include "wire/http1.h"

/* What a listener lets through; the texts are the listener's. */
typedef struct sgi_http_policy {
    /* Is this a place of metadata, for everybody to read? NULL = there are none. */
    bool (*is_public)(const void *user, sgi_str path);
    const void *user;
    sgi_str path;        /* of the endpoint */
    sgi_str health_path; /* empty = none */
    sgi_str hosts;       /* separated by commas; p NULL = by the three below */
    sgi_str origins;     /* the same */
    sgi_str bound;       /* the address that is listened on, without its port */
    bool local;          /* it is reached from this machine only */
    bool secure;         /* it speaks TLS: its certificate proves its name */
    bool tokens;         /* every caller needs one */
    bool cors;           /* browsers may read the answers */
} sgi_http_policy;

typedef enum sgi_http_kind {
    SGI_HTTP_REFUSED = 0,
    SGI_HTTP_POST,
    SGI_HTTP_GET,
    SGI_HTTP_DELETE,
    SGI_HTTP_PREFLIGHT,
    SGI_HTTP_HEALTH,
    SGI_HTTP_METADATA, /* of authorization */
    SGI_HTTP_METADATA_PREFLIGHT
} sgi_http_kind;

/* Views of the head. */
typedef struct sgi_http_route {
    sgi_http_kind kind;
    bool takes_events;
    bool bare;      /* HEAD: the answer is sent without its body */
    sgi_str origin; /* whom CORS lets read the answer; empty = nobody */
    /* of a refusal */
    int32_t status;
    int32_t code; /* of JSON-RPC */
    const char *problem;
    const char *allow; /* of 405 */
} sgi_http_route;

void sgi_http_route_head(const sgi_http_policy *policy, const sgi_http1 *head,
                         sgi_http_route *route);

/* Is this one of the names by which a machine calls itself? */
bool sgi_http_is_local_name(sgi_str name);
/* An address as it stands in a Host: four numbers, or [...]. */
bool sgi_http_is_address(sgi_str name);

#endif
