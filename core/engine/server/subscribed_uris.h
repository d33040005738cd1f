/* The resources to which one client has subscribed, with a mark for each resource that
 * has changed since the client was last notified. A change only sets the mark. So no
 * queue grows, however often a resource changes and however slowly the client reads. */
#ifndef SGI_SUBSCRIBED_URIS_H
#define SGI_SUBSCRIBED_URIS_H

#include "base/map.h"
#include "base/limit.h"
#include "engine/port.h"

/* Limits for one client: the maximum number of URIs, and the maximum number of their
 * bytes. */
#define SGI_SUBSCRIBED_URIS_MAX 1000
#define SGI_SUBSCRIBED_URIS_BYTES ((size_t)256 * 1024)

typedef struct sgi_subscribed_uri {
    sgi_map_node node;
    TAILQ_ENTRY(sgi_subscribed_uri) by_age;
    /* link in the list `due`; in that list only while `set` is true */
    TAILQ_ENTRY(sgi_subscribed_uri) link;
    bool set;
    size_t len;
    char uri[];
} sgi_subscribed_uri;

typedef struct sgi_subscribed_uris {
    const sgi_mem *mem;
    sgi_map by_uri;
    size_t bytes;
    /* all URIs, in the order in which the client subscribed */
    TAILQ_HEAD(, sgi_subscribed_uri) all;
    /* the URIs that are marked as changed, in the order of the changes */
    TAILQ_HEAD(, sgi_subscribed_uri) due;
} sgi_subscribed_uris;

/* Makes an empty set. Returns NULL when out of memory. */
sgi_subscribed_uris *sgi_subscribed_uris_new(const sgi_env *env);
/* Frees the set. uris can be NULL. */
void sgi_subscribed_uris_free(sgi_subscribed_uris *uris);
/* Adds a URI to the set. Returns SEGUE_OK also for a URI that the set already has.
 * Returns SEGUE_E_LIMIT when the set is full; sgi_subscribed_uris_describe_limit then
 * names the limit. */
segue_status sgi_subscribed_uris_add(sgi_subscribed_uris *uris, sgi_str uri);
sgi_limit_text sgi_subscribed_uris_describe_limit(const sgi_subscribed_uris *uris,
                                                  sgi_engine *engine);
void sgi_subscribed_uris_remove(sgi_subscribed_uris *uris, sgi_str uri);
/* Marks the resource with this URI as changed. Returns false when the set does not have
 * the URI. uris can be NULL. */
bool sgi_subscribed_uris_mark_changed(sgi_subscribed_uris *uris, sgi_str uri);
/* Marks all resources as changed. uris can be NULL. */
void sgi_subscribed_uris_mark_all_changed(sgi_subscribed_uris *uris);
/* Returns the next URI that is marked as changed, and clears its mark. Returns NULL when
 * no URI is marked. The returned pointer is valid until the set changes. uris can be
 * NULL. */
const sgi_subscribed_uri *sgi_subscribed_uris_take_changed(sgi_subscribed_uris *uris);

#endif
