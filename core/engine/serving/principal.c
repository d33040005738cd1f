#include "engine/serving/principal.h"

sgi_principal *sgi_principal_get(sgi_map *map, sgi_engine *engine,
                                 const uint8_t digest[SGI_DIGEST_SIZE])
{
    sgi_str key = {(const char *)digest, SGI_DIGEST_SIZE};
    sgi_map_node *node = sgi_map_find(map, key);
    if (node) {
        sgi_principal *known = SGI_OWNER(node, sgi_principal, node);
        sgi_engine_timer_clear(engine, &known->forgotten);
        known->refs++;
        return known;
    }
    sgi_principal *who = sgi_zalloc(map->mem, sizeof *who);
    if (!who)
        return NULL;
    who->map = map;
    who->engine = engine;
    who->refs = 1;
    who->lookups = -1; /* filled at the first miss */
    who->refilled_ms = sgi_now(&engine->env);
    memcpy(who->digest, digest, SGI_DIGEST_SIZE);
    sgi_map_put(map, &who->node, (sgi_str){(const char *)who->digest, SGI_DIGEST_SIZE});
    return who;
}

void sgi_principal_ref(sgi_principal *who)
{
    who->refs++;
}

static void forget(sgi_principal *who)
{
    sgi_engine_timer_clear(who->engine, &who->forgotten);
    sgi_map_remove(who->map, &who->node);
    sgi_release(who->map->mem, who, sizeof *who);
}

static void time_to_forget(sgi_timer *timer)
{
    forget(SGI_OWNER(timer, sgi_principal, forgotten));
}

/* Fresh connections are no way to fresh look-ups: the bucket is remembered until it would
 * be full again. */
void sgi_principal_unref(sgi_principal *who)
{
    if (--who->refs)
        return;
    if (who->lookups < 0 || who->lookups >= who->full)
        forget(who);
    else
        sgi_engine_timer(who->engine, &who->forgotten,
                         (int64_t)((who->full - who->lookups) * 1000 / who->full) + 1,
                         time_to_forget);
}

void sgi_principals_clear(sgi_map *map)
{
    sgi_map_node *node;
    while ((node = sgi_map_any(map)))
        forget(SGI_OWNER(node, sgi_principal, node));
}

int64_t sgi_principal_miss(sgi_principal *who, int32_t per_second)
{
    int64_t now = sgi_now(&who->engine->env);
    double full = who->full = per_second;
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
