/* The caching hints of results (2026-07-28 server/utilities/caching): how long a result
 * stays fresh, and who may share it. Servers write the hints, and clients read them. */
#ifndef SGI_FRESHNESS_H
#define SGI_FRESHNESS_H

#include "base/base.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

/* The longest time to live in ms. It is the largest integer that every JSON reader
 * represents exactly. */
#define SGI_TTL_MAX ((INT64_C(1) << 53) - 1)

typedef struct sgi_freshness {
    int64_t ttl_ms;
    int32_t scope; /* a value of segue_cache_scope */
} sgi_freshness;

/* True when ttl_ms and scope, which may be any numbers, are valid. */
bool sgi_freshness_is_valid(int64_t ttl_ms, int32_t scope);
/* Returns the JSON text of a scope: "public" or "private", with quotes. */
sgi_str sgi_cache_scope_json(int32_t scope);
/* Writes the members ttlMs and cacheScope of a result. */
void sgi_freshness_write(sgi_jw *w, sgi_freshness freshness);
/* sgi_ttl_read reads the value of ttlMs, and sgi_cache_scope_read the value of
 * cacheScope. Return false when the value does not match MCP's schema. */
bool sgi_ttl_read(sgi_json value, int64_t *ttl_ms);
bool sgi_cache_scope_read(sgi_json value, int32_t *scope);
/* Reads the hints of a result. A result without hints counts as private and not fresh.
 * Returns false when a hint is malformed. */
bool sgi_freshness_read(sgi_json result, sgi_freshness *freshness);

#endif
