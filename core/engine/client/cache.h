/* Cached results that a server of 2026-07-28 declared fresh for a while (ttlMs,
 * server/utilities/caching). An equal request gets the cached result, and no message is
 * sent. A cache belongs to one session and is not shared, whatever cacheScope says,
 * because sessions of one runtime may act for different people. The cache has a limit in
 * bytes. The least recently used result is removed first. All functions are called with
 * the lock held. */
#ifndef SGI_CACHE_H
#define SGI_CACHE_H

#include "engine/engine.h"

typedef struct sgi_kept sgi_kept;

typedef struct sgi_result_cache {
    sgi_engine *engine;
    sgi_map entries;
    /* the cached results, the least recently used result first */
    TAILQ_HEAD(, sgi_kept) by_use;
    /* bytes: the memory of all cached results; max: the limit of `bytes`; max 0 = nothing
     * is cached */
    size_t bytes, max;
    /* Number of events that made cached results void; starts at 1. When this number
     * changes between a request and its result, the result is not cached. */
    uint64_t changes;
    /* the value of conn->credentials when the private results were cached */
    uint32_t credentials;
} sgi_result_cache;

void sgi_result_cache_init(sgi_result_cache *cache, sgi_engine *engine, int64_t max);
void sgi_result_cache_free(sgi_result_cache *cache);
/* Removes all results. Called when a new connection may lead to another server. */
void sgi_result_cache_clear(sgi_result_cache *cache);

/* Finds a fresh result for this request. *result is a view, valid until the cache
 * changes. Returns false when the cache has no such result; the request must then be
 * sent. If the answer to this request may be cached, the function then also sets
 * request->cache_mark. */
bool sgi_result_cache_find(segue_request *request, sgi_json *result);
/* Caches the result of the request, if this result may be cached. */
void sgi_result_cache_store(segue_request *request, sgi_json result);
/* Removes the results that this error shows to be out of date. The error is the answer to
 * `request`. */
void sgi_result_cache_drop_by_error(segue_request *request, sgi_json error);
/* Removes the results that a notification of the server reports as changed. */
void sgi_result_cache_drop_by_notification(segue_session *session, sgi_str method,
                                           sgi_json params);

#endif
