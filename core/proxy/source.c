/* The sources (entries of the configuration). This file also decides which upstream
 * (session of a source) a call uses. */
#include "proxy.h"

#include <stdlib.h>
#include <string.h>

static source *make_source(proxy *p, source_config *c)
{
    source *s = calloc(1, sizeof *s), **end = &p->sources;
    if (!s)
        return NULL;
    s->proxy = p;
    s->config = c;
    s->reading = -1;
    while (*end)
        end = &(*end)->next;
    *end = s;
    return s;
}

static upstream *make_upstream(source *s, const char *key)
{
    upstream *u = calloc(1, sizeof *u), **end = &s->upstreams;
    if (!u)
        return NULL;
    u->source = s;
    u->key = copy_string(key);
    if (!u->key) {
        free(u);
        return NULL;
    }
    while (*end)
        end = &(*end)->next;
    *end = u;
    s->count++;
    return u;
}

/* Returns the upstream (session of the source) that a call uses. The first upstream
 * has the key "" and also reads the lists. */
upstream *source_upstream(source *s, const segue_call *call)
{
    const config *c = &s->proxy->config;
    const char *key = "";
    if (call && c->per == PER_PRINCIPAL)
        key = segue_call_principal(call);
    for (upstream *u = s->upstreams; u; u = u->next)
        if (!strcmp(u->key, key))
            return u;
    return s->count < c->max_upstreams ? make_upstream(s, key) : NULL;
}

bool sources_make(proxy *p)
{
    for (source_config *c = p->config.sources; c; c = c->next) {
        source *s = make_source(p, c);
        if (!s || !make_upstream(s, ""))
            return false;
    }
    return true;
}

void sources_free(proxy *p)
{
    while (p->sources) {
        source *s = p->sources;
        p->sources = s->next;
        while (s->upstreams) {
            upstream *u = s->upstreams;
            s->upstreams = u->next;
            upstream_free(u);
        }
        catalog_free(s);
        free(s->peer);
        free(s);
    }
}
