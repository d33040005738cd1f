#include "engine/server/subscribed_uris.h"

sgi_subscribed_uris *sgi_subscribed_uris_new(const sgi_env *env)
{
    sgi_subscribed_uris *uris = sgi_zalloc(env->mem, sizeof *uris);
    if (!uris)
        return NULL;
    uris->mem = env->mem;
    sgi_map_init(&uris->by_uri, env);
    TAILQ_INIT(&uris->all);
    TAILQ_INIT(&uris->due);
    return uris;
}

static sgi_subscribed_uri *find(const sgi_subscribed_uris *uris, sgi_str uri)
{
    sgi_map_node *node = sgi_map_find(&uris->by_uri, uri);
    return node ? SGI_OWNER(node, sgi_subscribed_uri, node) : NULL;
}

static void drop(sgi_subscribed_uris *uris, sgi_subscribed_uri *uri_entry)
{
    if (uri_entry->set)
        TAILQ_REMOVE(&uris->due, uri_entry, link);
    TAILQ_REMOVE(&uris->all, uri_entry, by_age);
    uris->bytes -= uri_entry->len;
    sgi_map_remove(&uris->by_uri, &uri_entry->node);
    sgi_free(uris->mem, uri_entry, sizeof *uri_entry + uri_entry->len);
}

void sgi_subscribed_uris_free(sgi_subscribed_uris *uris)
{
    sgi_map_node *node;
    if (!uris)
        return;
    while ((node = sgi_map_any_node(&uris->by_uri)))
        drop(uris, SGI_OWNER(node, sgi_subscribed_uri, node));
    sgi_map_free(&uris->by_uri);
    sgi_free(uris->mem, uris, sizeof *uris);
}

sgi_limit_text sgi_subscribed_uris_describe_limit(const sgi_subscribed_uris *uris,
                                                  sgi_engine *engine)
{
    sgi_limit count = {SGI_LIMIT_MAX_SUBSCRIPTIONS, SGI_SUBSCRIBED_URIS_MAX};
    sgi_limit bytes = {SGI_LIMIT_MAX_SUBSCRIPTION_BYTES, SGI_SUBSCRIBED_URIS_BYTES};
    return sgi_engine_describe_limit(
        engine, "Too many subscriptions",
        uris->by_uri.count == SGI_SUBSCRIBED_URIS_MAX ? count : bytes, "limit", NULL);
}

segue_status sgi_subscribed_uris_add(sgi_subscribed_uris *uris, sgi_str uri)
{
    if (find(uris, uri))
        return SEGUE_OK;
    if (uris->by_uri.count == SGI_SUBSCRIBED_URIS_MAX ||
        uris->bytes + uri.n > SGI_SUBSCRIBED_URIS_BYTES)
        return SEGUE_E_LIMIT;
    sgi_subscribed_uri *uri_entry = sgi_zalloc(uris->mem, sizeof *uri_entry + uri.n);
    if (!uri_entry)
        return SEGUE_E_NOMEM;
    uri_entry->len = uri.n;
    memcpy(uri_entry->uri, uri.p, uri.n);
    TAILQ_INSERT_TAIL(&uris->all, uri_entry, by_age);
    uris->bytes += uri_entry->len;
    sgi_map_put(&uris->by_uri, &uri_entry->node,
                (sgi_str){uri_entry->uri, uri_entry->len});
    return SEGUE_OK;
}

void sgi_subscribed_uris_remove(sgi_subscribed_uris *uris, sgi_str uri)
{
    sgi_subscribed_uri *uri_entry = find(uris, uri);
    if (uri_entry)
        drop(uris, uri_entry);
}

static void mark(sgi_subscribed_uris *uris, sgi_subscribed_uri *uri_entry)
{
    if (!uri_entry->set)
        TAILQ_INSERT_TAIL(&uris->due, uri_entry, link);
    uri_entry->set = true;
}

bool sgi_subscribed_uris_mark_changed(sgi_subscribed_uris *uris, sgi_str uri)
{
    sgi_subscribed_uri *uri_entry = uris ? find(uris, uri) : NULL;
    if (uri_entry)
        mark(uris, uri_entry);
    return uri_entry != NULL;
}

void sgi_subscribed_uris_mark_all_changed(sgi_subscribed_uris *uris)
{
    sgi_subscribed_uri *uri_entry;
    if (!uris)
        return;
    TAILQ_FOREACH(uri_entry, &uris->all, by_age)
        mark(uris, uri_entry);
}

const sgi_subscribed_uri *sgi_subscribed_uris_take_changed(sgi_subscribed_uris *uris)
{
    sgi_subscribed_uri *uri_entry = uris ? TAILQ_FIRST(&uris->due) : NULL;
    if (uri_entry) {
        TAILQ_REMOVE(&uris->due, uri_entry, link);
        uri_entry->set = false;
    }
    return uri_entry;
}
