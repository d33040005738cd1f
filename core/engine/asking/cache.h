/* Results that a server of 2026-07-28 said stay fresh for a while (ttlMs,
 * server/utilities/caching): who asks the same again gets them without the wire.
 *
 * A cache belongs to one session, and nothing leaves it, whatever cacheScope says:
 * sessions of one runtime may speak for different people. Bounded by bytes; what was
 * unused longest goes first. Lock held. */
#ifndef SGI_CACHE_H
#define SGI_CACHE_H

#include "engine/engine.h"

typedef struct sgi_kept sgi_kept;

typedef struct sgi_cache {
    sgi_engine *engine;
    sgi_map entries;
    TAILQ_HEAD(, sgi_kept) by_use; /* the one unused longest first */
    size_t bytes, max;             /* max 0 = nothing is kept */
    uint64_t changes;     /* counts what made results void: what was asked for before is
                             not kept. Never 0 */
    uint32_t credentials; /* of the conversation, when what is private was kept */
} sgi_cache;

void sgi_cache_init(sgi_cache *cache, sgi_engine *engine, int64_t max);
void sgi_cache_free(sgi_cache *cache);
/* The server may be another one. */
void sgi_cache_forget(sgi_cache *cache);

/* Is the answer to this request here, and fresh? A view, good until the cache changes.
 * false: it is to be sent; if its result may be kept, that is noted. */
bool sgi_cache_find(segue_request *request, sgi_json *result);
/* It was answered: keeps the result if it may. */
void sgi_cache_keep(segue_request *request, sgi_json result);
/* ... with an error, which may tell that what is here is old. */
void sgi_cache_refused(segue_request *request, sgi_json error);
/* The server says that something has changed. */
void sgi_cache_notified(segue_session *session, sgi_str method, sgi_json params);

#endif
