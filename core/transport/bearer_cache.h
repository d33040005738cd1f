/* A cache of valid tokens, which finds a token by its digest. A client sends the same
 * token with each request, and checking the token's signature costs more than the request
 * itself. The number of tokens is limited; the token that was unused longest is removed
 * first. The callers of all functions hold the lock. */
#ifndef SGI_BEARER_CACHE_H
#define SGI_BEARER_CACHE_H

#include "base/map.h"
#include "transport/transport.h"

typedef struct sgi_bearer_cache {
    sgi_engine *engine;
    size_t most; /* maximum number of tokens; 0 = no cache */
    size_t count;
    sgi_map by_digest;
    /* the tokens in the order of their last use, oldest first */
    TAILQ_HEAD(, sgi_bearer_kept) by_use;
} sgi_bearer_cache;

void sgi_bearer_cache_init(sgi_bearer_cache *cache, sgi_engine *engine, size_t most);
void sgi_bearer_cache_clear(sgi_bearer_cache *cache);
/* Returns the grant of a token at a server, or NULL when the token is not in the cache or
 * has expired. The grant is not a new reference. digest receives the digest of both.
 * *known becomes false when there is no digest, because the cache is off or memory is
 * out. */
sgi_grant *sgi_bearer_cache_find(sgi_bearer_cache *cache, const segue_server *server,
                                 sgi_str token, int64_t wall_ms,
                                 uint8_t digest[SGI_DIGEST_SIZE], bool *known);
/* Adds a token to the cache. When out of memory, does not add the token. */
void sgi_bearer_cache_put(sgi_bearer_cache *cache, const uint8_t digest[SGI_DIGEST_SIZE],
                          sgi_grant *grant);

#endif
