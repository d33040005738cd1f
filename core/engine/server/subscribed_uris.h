/* The resources to which one client has subscribed, and which of them have changed since
 * the client was last notified. A change only sets a mark. So no queue grows, however
 * often a resource changes and however slowly the client reads. */
#ifndef SGI_SUBSCRIBED_URIS_H
#define SGI_SUBSCRIBED_URIS_H

#include "base/map.h"
#include "base/limit.h"

/* Limits for one client: the number of its URIs, and their bytes. */
#define SGI_SUBSCRIBED_URIS_MAX 1000
#define SGI_SUBSCRIBED_URIS_BYTES ((size_t)256 * 1024)

typedef struct sgi_subscribed_uri {
    sgi_map_node node;
    TAILQ_ENTRY(sgi_subscribed_uri) by_age;
    /* link in the list `due`, if the resource has changed */
    TAILQ_ENTRY(sgi_subscribed_uri) link;
    bool set;
    size_t len;
    char uri[];
} sgi_subscribed_uri;

typedef struct sgi_subscribed_uris {
    const sgi_mem *mem;
    sgi_map by_uri;
    size_t bytes;
    TAILQ_HEAD(, sgi_subscribed_uri) all; /* all URIs, the oldest first */
    /* the URIs that have changed, in the order of the changes */
    TAILQ_HEAD(, sgi_subscribed_uri) due;
} sgi_subscribed_uris;

/* Makes an empty set. NULL when out of memory. */
sgi_subscribed_uris *sgi_subscribed_uris_new(const sgi_env *env);
/* Frees the set; NULL is allowed. */
void sgi_subscribed_uris_free(sgi_subscribed_uris *uris);
/* Adds a URI. Returns SEGUE_OK also when the set has the URI. SEGUE_E_LIMIT: the set is
 * full; sgi_subscribed_uris_describe_limit names the limit. */
segue_status sgi_subscribed_uris_add(sgi_subscribed_uris *uris, sgi_str uri);
sgi_limit_text sgi_subscribed_uris_describe_limit(const sgi_subscribed_uris *uris);
void sgi_subscribed_uris_remove(sgi_subscribed_uris *uris, sgi_str uri);
/* Marks a resource as changed. Returns false when the set does not have the URI. uris may
 * be NULL. */
bool sgi_subscribed_uris_mark_changed(sgi_subscribed_uris *uris, sgi_str uri);
/* Returns the next URI that is marked as changed and clears its mark; NULL when there is
 * none. Valid until the next call. uris may be NULL. */
const sgi_subscribed_uri *sgi_subscribed_uris_take_changed(sgi_subscribed_uris *uris);

#endif
