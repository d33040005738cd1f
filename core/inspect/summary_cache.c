#include "inspect/summary_cache.h"

#include "base/thresholds.h"

/* A summary has one place, which its id tells; another operation with the same place
 * takes it. */
struct sgi_summary_cache {
    sgi_mem mem;
    size_t refs;
    size_t count;
    sgi_cached_summary *places[];
};

static size_t size_of(size_t count)
{
    return sizeof(sgi_summary_cache) + count * sizeof(sgi_cached_summary *);
}

sgi_summary_cache *sgi_summary_cache_new(const sgi_mem *mem)
{
    size_t count = SGI_THRESHOLD(board_cached);
    sgi_summary_cache *cache = sgi_zalloc(mem, size_of(count));
    if (!cache)
        return NULL;
    cache->mem = *mem;
    cache->count = count;
    cache->refs = 1;
    return cache;
}

void sgi_summary_cache_ref(sgi_summary_cache *cache)
{
    if (cache)
        cache->refs++;
}

void sgi_summary_cache_unref(sgi_summary_cache *cache)
{
    if (!cache || --cache->refs)
        return;
    sgi_mem mem = cache->mem;
    for (size_t i = 0; i < cache->count; i++)
        if (cache->places[i]) {
            sgi_summary_free(&cache->places[i]->summary);
            sgi_free(&mem, cache->places[i], sizeof *cache->places[i]);
        }
    sgi_free(&mem, cache, size_of(cache->count));
}

void sgi_cached_summary_reset(sgi_summary_cache *cache, sgi_cached_summary *cached)
{
    sgi_summary_free(&cached->summary);
    sgi_summary_init(&cached->summary, &cache->mem);
    cached->last = 0;
}

/* The last bytes of an id are random. */
static size_t place_of(const sgi_summary_cache *cache, const uint8_t *id)
{
    uint32_t number;
    memcpy(&number, id + SEGUE_STORE_ID_SIZE - sizeof number, sizeof number);
    return number % cache->count;
}

sgi_cached_summary *sgi_summary_cache_find(sgi_summary_cache *cache, segue_store *store,
                                           const uint8_t *id)
{
    sgi_cached_summary **place = &cache->places[place_of(cache, id)];
    if (!*place) {
        *place = sgi_zalloc(&cache->mem, sizeof **place);
        if (!*place)
            return NULL;
        sgi_summary_init(&(*place)->summary, &cache->mem);
    }
    sgi_cached_summary *cached = *place;
    if (cached->store != store || memcmp(cached->id, id, sizeof cached->id) != 0) {
        sgi_cached_summary_reset(cache, cached);
        cached->store = store;
        memcpy(cached->id, id, sizeof cached->id);
    }
    return cached;
}
