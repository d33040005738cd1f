#include "engine/principal.h"

sgi_principal *sgi_principal_get(sgi_map *map, const sgi_env *env,
                                 const uint8_t digest[SGI_DIGEST_SIZE])
{
    sgi_str key = {(const char *)digest, SGI_DIGEST_SIZE};
    sgi_map_node *node = sgi_map_find(map, key);
    if (node) {
        sgi_principal *known = SGI_OWNER(node, sgi_principal, node);
        known->refs++;
        return known;
    }
    sgi_principal *who = sgi_zalloc(map->mem, sizeof *who);
    if (!who)
        return NULL;
    who->map = map;
    who->refs = 1;
    who->lookups = -1; /* filled at the first miss */
    who->refilled_ms = sgi_now(env);
    memcpy(who->digest, digest, SGI_DIGEST_SIZE);
    sgi_map_put(map, &who->node, (sgi_str){(const char *)who->digest, SGI_DIGEST_SIZE});
    return who;
}

void sgi_principal_ref(sgi_principal *who)
{
    who->refs++;
}

void sgi_principal_unref(sgi_principal *who)
{
    if (--who->refs)
        return;
    sgi_map_remove(who->map, &who->node);
    sgi_release(who->map->mem, who, sizeof *who);
}

int64_t sgi_principal_miss(sgi_principal *who, const sgi_env *env, int32_t per_second)
{
    int64_t now = sgi_now(env);
    double full = per_second;
    if (who->lookups < 0)
        who->lookups = full;
    who->lookups += (double)(now - who->refilled_ms) * full / 1000;
    who->refilled_ms = now;
    if (who->lookups > full)
        who->lookups = full;
    if (who->lookups >= 1) {
        who->lookups -= 1;
        return 0;
    }
    return (int64_t)((1 - who->lookups) * 1000 / full) + 1;
}
