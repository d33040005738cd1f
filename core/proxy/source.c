/* The sources (entries of the configuration). This file also decides which upstream
 * (session of a source) a call uses. */
#include "client.h"
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static upstream *make_upstream(source *s, const char *key, uint64_t number)
{
    upstream *u = calloc(1, sizeof *u), **end = &s->upstreams;
    if (!u)
        return NULL;
    u->source = s;
    source_ref(s);
    u->refs = 1;
    u->key = copy_string(key);
    u->capabilities = number ? client_capabilities(s->service, number) : NULL;
    if (!u->key) {
        upstream_unref(u);
        return NULL;
    }
    while (*end)
        end = &(*end)->next;
    *end = u;
    u->in_source = true;
    s->count++;
    return u;
}

void source_forget(upstream *u)
{
    upstream **link = &u->source->upstreams;
    while (*link != u)
        link = &(*link)->next;
    *link = u->next;
    u->in_source = false;
    u->source->count--;
}

/* The first upstream has the key "" and also reads the lists. */
upstream *source_upstream_with_key(source *s, const char *key, uint64_t number)
{
    for (upstream *u = s->upstreams; u; u = u->next)
        if (!strcmp(u->key, key))
            return u;
    return s->count < s->proxy->config.max_upstreams ? make_upstream(s, key, number)
                                                     : NULL;
}

upstream *source_upstream(source *s, const segue_call *call)
{
    uint64_t number = segue_call_client(call);
    char *key = client_key(s->proxy, number, segue_call_principal(call));
    bool is_own = s->proxy->config.per == PER_SESSION;
    upstream *u = key ? source_upstream_with_key(s, key, is_own ? number : 0) : NULL;
    free(key);
    return u;
}

/* True when the URI begins with the text before the first variable of the template. */
static bool may_match(const char *template, const char *uri)
{
    return !strncmp(template, uri, strcspn(template, "{"));
}

source *source_of_uri(const service *v, const char *uri)
{
    source *last = NULL;
    for (source *s = v->sources; s; s = s->next)
        for (const item *i = s->items; i; i = i->next)
            if (i->list == LIST_RESOURCES && !strcmp(i->name, uri))
                return s;
    for (source *s = v->sources; s; s = s->next) {
        for (const item *i = s->items; i; i = i->next)
            if (i->list == LIST_TEMPLATES && may_match(i->name, uri))
                return s;
        if (s->any)
            last = s;
    }
    return last;
}

/* ---- the life of a source ---- */

source *source_next(const proxy *p, const source *after)
{
    const service *v = after ? after->service->next : p->services;
    if (after && after->next)
        return after->next;
    while (v && !v->sources)
        v = v->next;
    return v ? v->sources : NULL;
}

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
    service *v = s->service;
    if (--s->refs || s->proxy->stage == PROXY_ENDING)
        return;
    unlink_from(&v->retired, s);
    free_source(s);
    service_unref(v);
}

static void tell_left_out(const source_config *c)
{
    log_event(SEGUE_LOG_ERROR, "upstream_failed", c->name,
              "the server is left out: out of memory");
}

source *source_make(proxy *p, source_config *c)
{
    int status;
    service *v = service_at(p, c->path, &status);
    source *s = v ? calloc(1, sizeof *s) : NULL, **end;
    if (!s) {
        tell_left_out(c);
        config_free_sources(c);
        return NULL;
    }
    *s = (source){.proxy = p, .service = v, .config = c, .reading = -1, .refs = 1};
    if (!make_upstream(s, "", 0)) {
        tell_left_out(c);
        free_source(s);
        return NULL;
    }
    service_ref(v);
    for (end = &v->sources; *end;)
        end = &(*end)->next;
    *end = s;
    return s;
}

bool sources_make(proxy *p)
{
    for (const source_config *c = p->config.sources; c; c = c->next)
        if (!service_at(p, c->path, &p->status))
            return false;
    while (p->config.sources) {
        source_config *c = p->config.sources;
        p->config.sources = c->next;
        c->next = NULL;
        if (!source_make(p, c)) {
            p->status = 1;
            return false;
        }
    }
    return true;
}

void source_retire(source *s, const char *why)
{
    service *v = s->service;
    log_event(SEGUE_LOG_INFO, "upstream_retired", s->config->name, "%s", why);
    unlink_from(&v->sources, s);
    s->next = v->retired;
    v->retired = s;
    source_enter(s, SOURCE_RETIRED);
    catalog_remove(s);
    clients_subscribe_anew(v);
    for (upstream *u = s->upstreams, *next; u; u = next) {
        next = u->next;
        upstream_retire(u);
    }
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

void sources_free(service *v)
{
    free_list(v->sources);
    free_list(v->retired);
}

/* ---- the start ---- */

void source_start(source *s)
{
    upstream_stop_waiting(s->upstreams);
    if (!upstream_session(s->upstreams))
        catalog_lost(s);
}

bool source_has_settled(const source *s)
{
    return s->stage == SOURCE_OFFERED || s->stage == SOURCE_FAILED;
}

static source *find_starting(const proxy *p)
{
    source *s = source_next(p, NULL);
    while (s && s->stage != SOURCE_STARTING)
        s = source_next(p, s);
    return s;
}

/* The list of sources changes while a source settles. The last one may begin a reload,
 * whose sources have their own time. */
static void start_is_over(void *user)
{
    proxy *p = user;
    segue_timer_free(p->start);
    p->start = NULL;
    for (source *s; !p->start && (s = find_starting(p));) {
        upstream *u = s->upstreams;
        text why = {.p = NULL};
        text_add_str(&why, "the server did not answer in time");
        text_add_str(&why, *u->last_error ? ": " : "");
        text_add_str(&why, u->last_error);
        snprintf(u->last_error, sizeof u->last_error, "%s", why.failed ? "" : why.p);
        text_free(&why);
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
    bool has_begun = p->stage != PROXY_STARTING && p->stage != PROXY_ENDING;
    if (has_begun && s->stage == SOURCE_FAILED)
        serve_tell_failure(s);
    successions_settle(p);
    serve_when_settled(p);
    services_end_empty(p);
    reload_when_settled(p);
    serve_new_paths(p);
    readiness_update(p);
}
