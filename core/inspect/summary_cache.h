/* Summaries that were made before, so that the next one of the same operation reads only
 * the new part of its log. A summary counts entries that were dropped since. The cache
 * has no place for operations that have ended: their summaries are made from the whole
 * log. */
#ifndef SGI_INSPECT_SUMMARY_CACHE_H
#define SGI_INSPECT_SUMMARY_CACHE_H

#include "inspect/summary.h"

typedef struct sgi_cached_summary {
    segue_store *store; /* not a reference: only compared */
    uint8_t id[SEGUE_STORE_ID_SIZE];
    uint64_t last; /* number of the last entry that it has */
    sgi_summary summary;
} sgi_cached_summary;

/* One thread at a time uses a cache. A lock of the caller protects the count of its
 * references. */
typedef struct sgi_summary_cache sgi_summary_cache;

/* Returns NULL when out of memory: looks then work without a cache. */
sgi_summary_cache *sgi_summary_cache_new(const sgi_mem *mem);
/* cache may be NULL. */
void sgi_summary_cache_ref(sgi_summary_cache *cache);
void sgi_summary_cache_unref(sgi_summary_cache *cache);
/* Returns the summary of an operation, which is empty when the cache has none. It stays
 * valid until the next call. Returns NULL when out of memory. */
sgi_cached_summary *sgi_summary_cache_find(sgi_summary_cache *cache, segue_store *store,
                                           const uint8_t *id);
/* Makes the summary empty again. */
void sgi_cached_summary_reset(sgi_summary_cache *cache, sgi_cached_summary *cached);

#endif
