/* Tokens that were found good, by their digest: the same token comes with each request of
 * a client, and a signature costs more than the request. Bounded; the one unused longest
 * goes first. Lock held, everywhere. */
#ifndef SGI_BEARER_CACHE_H
#define SGI_BEARER_CACHE_H

#include "transport/transport.h"

typedef struct sgi_bearer_cache {
    sgi_engine *engine;
    size_t most; /* 0 = nothing is kept */
    size_t count;
    sgi_map by_digest;
    TAILQ_HEAD(, sgi_bearer_kept) by_use; /* unused longest first */
} sgi_bearer_cache;

void sgi_bearer_cache_init(sgi_bearer_cache *cache, sgi_engine *engine, size_t most);
void sgi_bearer_cache_clear(sgi_bearer_cache *cache);
/* Borrowed; NULL when it is not there, or has expired. digest: of the token; false in
 * *known when it could not be told for lack of memory. */
sgi_grant *sgi_bearer_cache_find(sgi_bearer_cache *cache, sgi_str token, int64_t wall_ms,
                                 uint8_t digest[SGI_DIGEST_SIZE], bool *known);
/* Keeps it if there is memory. */
void sgi_bearer_cache_put(sgi_bearer_cache *cache, const uint8_t digest[SGI_DIGEST_SIZE],
                          sgi_grant *grant);

#endif
