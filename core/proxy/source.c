/* The sources (entries of the configuration). This file also decides which upstream
 * (session of a source) a call uses. */
#include "proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- the life of a source ---- */

static void free_source(source *s)
{
    while (s->upstreams) {
        upstream *u = s->upstreams;
        s->upstreams = u->next;
        upstream_free(u);
    }
    catalog_free(s);
    config_free_sources(s->config);
    free(s->peer);
    free(s);
}

static void unlink_from(source **list, source *s)
{
    while (*list != s)
        list = &(*list)->next;
    *list = s->next;
}

void source_ref(source *s)
{
    s->refs++;
}

void source_unref(source *s)
{
    if (--s->refs || s->proxy->ending)
        return;
    unlink_from(&s->proxy->retired, s);
    free_source(s);
}

source *source_make(proxy *p, source_config *c)
{
    source *s = calloc(1, sizeof *s), **end = &p->sources;
    if (!s) {
        config_free_sources(c);
        return NULL;
    }
    *s = (source){.proxy = p, .config = c, .reading = -1, .refs = 1};
    if (!make_upstream(s, "")) {
        free_source(s);
        return NULL;
    }
    while (*end)
        end = &(*end)->next;
    *end = s;
    return s;
}

bool sources_make(proxy *p)
{
    while (p->config.sources) {
        source_config *c = p->config.sources;
        p->config.sources = c->next;
        c->next = NULL;
        if (!source_make(p, c))
            return false;
    }
    return true;
}

void source_retire(source *s)
{
    proxy *p = s->proxy;
    log_event(SEGUE_LOG_INFO, "upstream_retired", s->config->name,
              "the configuration no longer has the server; it ends after its calls");
    unlink_from(&p->sources, s);
    s->next = p->retired;
    p->retired = s;
    s->retired = true;
    catalog_remove(s);
    for (upstream *u = s->upstreams; u; u = u->next)
        upstream_retire(u);
    source_unref(s);
}

static void free_list(source *s)
{
    while (s) {
        source *next = s->next;
        free_source(s);
        s = next;
    }
}

void sources_free(proxy *p)
{
    free_list(p->sources);
    free_list(p->retired);
}

/* ---- the start ---- */

void source_start(source *s)
{
    if (!upstream_session(s->upstreams))
        catalog_lost(s);
}

static void start_is_over(void *user)
{
    proxy *p = user;
    for (source *s = p->sources, *next; s; s = next) {
        next = s->next;
        if (s->settled)
            continue;
        upstream *u = s->upstreams;
        snprintf(u->last_error, sizeof u->last_error,
                 "the server did not answer in time");
        catalog_lost(s);
    }
}

void sources_limit_start(proxy *p)
{
    if (p->start)
        segue_timer_cancel(p->start);
    segue_timer_free(p->start);
    p->start = NULL;
    segue_timer_start(p->runtime, p->config.start_timeout_ms, start_is_over, p, NULL,
                      &p->start);
}

void source_settled(source *s)
{
    proxy *p = s->proxy;
    serve_when_settled(p);
    reload_when_settled(s);
    readiness_update(p);
}
