/* The cache stores digests of tokens and not the tokens, so that a token stays in memory
 * only as long as its request. */
#include "transport/bearer_cache.h"

typedef struct sgi_bearer_kept {
    sgi_map_node node;
    TAILQ_ENTRY(sgi_bearer_kept) link;
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_grant *grant; /* the rights that the token gives; a counted reference */
} sgi_bearer_kept;

void sgi_bearer_cache_init(sgi_bearer_cache *cache, sgi_engine *engine, size_t most)
{
    *cache = (sgi_bearer_cache){.engine = engine, .most = most};
    sgi_map_init(&cache->by_digest, sgi_engine_env(engine));
    TAILQ_INIT(&cache->by_use);
}

static void drop(sgi_bearer_cache *cache, sgi_bearer_kept *kept)
{
    sgi_map_remove(&cache->by_digest, &kept->node);
    TAILQ_REMOVE(&cache->by_use, kept, link);
    cache->count--;
    sgi_grant_unref(kept->grant);
    sgi_free(sgi_engine_mem(cache->engine), kept, sizeof *kept);
}

void sgi_bearer_cache_clear(sgi_bearer_cache *cache)
{
    while (!TAILQ_EMPTY(&cache->by_use))
        drop(cache, TAILQ_FIRST(&cache->by_use));
    sgi_map_free(&cache->by_digest);
    sgi_map_init(&cache->by_digest, sgi_engine_env(cache->engine));
}

sgi_grant *sgi_bearer_cache_find(sgi_bearer_cache *cache, const segue_server *server,
                                 sgi_str token, int64_t wall_ms,
                                 uint8_t digest[SGI_DIGEST_SIZE], bool *known)
{
    /* a grant belongs to one server */
    const sgi_str parts[] = {{(const char *)&server, sizeof server}, token};
    *known = cache->most && sgi_engine_digest(cache->engine, digest, parts, 2);
    if (!*known)
        return NULL;
    sgi_map_node *node =
        sgi_map_find(&cache->by_digest, (sgi_str){(char *)digest, SGI_DIGEST_SIZE});
    if (!node)
        return NULL;
    sgi_bearer_kept *kept = SGI_OWNER(node, sgi_bearer_kept, node);
    if (wall_ms >= sgi_grant_expires(kept->grant)) {
        drop(cache, kept);
        return NULL;
    }
    TAILQ_REMOVE(&cache->by_use, kept, link);
    TAILQ_INSERT_TAIL(&cache->by_use, kept, link);
    return kept->grant;
}

void sgi_bearer_cache_put(sgi_bearer_cache *cache, const uint8_t digest[SGI_DIGEST_SIZE],
                          sgi_grant *grant)
{
    sgi_bearer_kept *kept = sgi_zalloc(sgi_engine_mem(cache->engine), sizeof *kept);
    if (!kept)
        return;
    memcpy(kept->digest, digest, SGI_DIGEST_SIZE);
    kept->grant = grant;
    sgi_grant_ref(grant);
    if (cache->count == cache->most)
        drop(cache, TAILQ_FIRST(&cache->by_use));
    cache->count++;
    TAILQ_INSERT_TAIL(&cache->by_use, kept, link);
    sgi_map_put(&cache->by_digest, &kept->node,
                (sgi_str){(const char *)kept->digest, SGI_DIGEST_SIZE});
}
