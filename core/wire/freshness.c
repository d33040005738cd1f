/* Reads and writes the caching hints of a result. A result without hints counts as
 * private and not fresh, which is the safest reading. A malformed hint is an error. */
#include "wire/freshness.h"

bool sgi_freshness_is_valid(int64_t ttl_ms, int32_t scope)
{
    return ttl_ms >= 0 && ttl_ms <= SGI_TTL_MAX &&
           (scope == SEGUE_CACHE_PRIVATE || scope == SEGUE_CACHE_PUBLIC);
}

sgi_str sgi_cache_scope_json(int32_t scope)
{
    return scope == SEGUE_CACHE_PUBLIC ? SGI_STR("\"public\"") : SGI_STR("\"private\"");
}

void sgi_freshness_write(sgi_jw *w, sgi_freshness freshness)
{
    sgi_jw_member_int(w, "ttlMs", freshness.ttl_ms);
    sgi_jw_member_raw(w, "cacheScope", sgi_cache_scope_json(freshness.scope));
}

bool sgi_ttl_read(sgi_json value, int64_t *ttl_ms)
{
    return sgi_json_read_int(value, ttl_ms) && *ttl_ms >= 0 && *ttl_ms <= SGI_TTL_MAX;
}

bool sgi_cache_scope_read(sgi_json value, int32_t *scope)
{
    bool is_public = sgi_json_string_is(value, SGI_STR("public"));
    *scope = is_public ? SEGUE_CACHE_PUBLIC : SEGUE_CACHE_PRIVATE;
    return is_public || sgi_json_string_is(value, SGI_STR("private"));
}

bool sgi_freshness_read(sgi_json result, sgi_freshness *freshness)
{
    sgi_json ttl = sgi_json_get(result, "ttlMs");
    sgi_json scope = sgi_json_get(result, "cacheScope");
    *freshness = (sgi_freshness){0, SEGUE_CACHE_PRIVATE};
    return (!ttl.n || sgi_ttl_read(ttl, &freshness->ttl_ms)) &&
           (!scope.n || sgi_cache_scope_read(scope, &freshness->scope));
}
