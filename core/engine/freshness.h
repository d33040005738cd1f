/* How long a result stays fresh, and for whom: the hints that results of 2026-07-28 carry
 * (server/utilities/caching). Written by the serving side, read by the asking one. */
#ifndef SGI_FRESHNESS_H
#define SGI_FRESHNESS_H

#include "base/base.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

/* Beyond it a number is none for many who read it. */
#define SGI_TTL_MAX ((INT64_C(1) << 53) - 1)

typedef struct sgi_freshness {
    int64_t ttl_ms;
    int32_t scope; /* segue_cache_scope */
} sgi_freshness;

/* The JSON of a cacheScope. */
sgi_str sgi_scope_json(int32_t scope);
/* Members ttlMs and cacheScope. */
void sgi_freshness_write(sgi_jw *w, sgi_freshness freshness);
/* Is it a ttlMs, a cacheScope, as the schema has it? */
bool sgi_ttl_read(sgi_json value, int64_t *ttl_ms);
bool sgi_scope_read(sgi_json value, int32_t *scope);
/* The hints of a result; without any it is not fresh, and private. False when there are
 * some that are none. */
bool sgi_freshness_read(sgi_json result, sgi_freshness *freshness);

#endif
