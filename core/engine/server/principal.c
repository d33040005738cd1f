#include "engine/server/principal.h"

sgi_principal *sgi_principal_find_or_new(sgi_map *map, sgi_engine *engine,
                                         const uint8_t digest[SGI_DIGEST_SIZE])
{
    sgi_str key = {(const char *)digest, SGI_DIGEST_SIZE};
    sgi_map_node *node = sgi_map_find(map, key);
    if (node) {
        sgi_principal *known = SGI_OWNER(node, sgi_principal, node);
        sgi_engine_clear_timer(engine, &known->forgotten);
        known->refs++;
        return known;
    }
    sgi_principal *who = sgi_zalloc(map->mem, sizeof *who);
    if (!who)
        return NULL;
    who->map = map;
    who->engine = engine;
    who->refs = 1;
    TAILQ_INIT(&who->sessions);
    who->lookups.tokens = who->fetches.tokens = -1;
    memcpy(who->digest, digest, SGI_DIGEST_SIZE);
    sgi_map_put(map, &who->node, (sgi_str){(const char *)who->digest, SGI_DIGEST_SIZE});
    return who;
}

bool sgi_principal_set_name(sgi_principal *who, sgi_str name)
{
    if (!who->name && name.n)
        who->name = sgi_text_dup(who->map->mem, name);
    return who->name || !name.n;
}

void sgi_principal_ref(sgi_principal *who)
{
    who->refs++;
}

static void forget(sgi_principal *who)
{
    sgi_engine_clear_timer(who->engine, &who->forgotten);
    sgi_map_remove(who->map, &who->node);
    sgi_text_free(who->map->mem, who->name);
    sgi_free(who->map->mem, who, sizeof *who);
}

static void time_to_forget(sgi_timer *timer)
{
    forget(SGI_OWNER(timer, sgi_principal, forgotten));
}

/* Returns the time in ms until the bucket is full. */
static int64_t time_to_fill(const sgi_rate_bucket *bucket)
{
    if (bucket->tokens < 0 || bucket->tokens >= bucket->full)
        return 0;
    return (int64_t)((bucket->full - bucket->tokens) * 1000 / bucket->full) + 1;
}

/* Drops one reference. A principal without references is kept until its buckets are full
 * again. Otherwise a client could get more look-ups by opening new connections. */
void sgi_principal_unref(sgi_principal *who)
{
    if (--who->refs)
        return;
    int64_t lookups = time_to_fill(&who->lookups);
    int64_t fetches = time_to_fill(&who->fetches);
    int64_t ms = lookups > fetches ? lookups : fetches;
    if (!ms)
        forget(who);
    else
        sgi_engine_set_timer(who->engine, &who->forgotten, ms, time_to_forget);
}

void sgi_principals_clear(sgi_map *map)
{
    sgi_map_node *node;
    while ((node = sgi_map_any_node(map)))
        forget(SGI_OWNER(node, sgi_principal, node));
}

static int64_t take_token(sgi_rate_bucket *bucket, double full, int64_t now)
{
    bucket->full = full;
    if (bucket->tokens < 0)
        bucket->tokens = full;
    else
        bucket->tokens += (double)(now - bucket->refilled_ms) * full / 1000;
    bucket->refilled_ms = now;
    if (bucket->tokens > full)
        bucket->tokens = full;
    if (bucket->tokens >= 1) {
        bucket->tokens -= 1;
        return 0;
    }
    return (int64_t)((1 - bucket->tokens) * 1000 / full) + 1;
}

int64_t sgi_principal_count_miss(sgi_principal *who, int32_t per_second)
{
    return take_token(&who->lookups, per_second, sgi_now(&who->engine->env));
}

int64_t sgi_principal_count_fetch(sgi_principal *who, int32_t per_second)
{
    return take_token(&who->fetches, per_second, sgi_now(&who->engine->env));
}
