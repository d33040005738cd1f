/* SIGHUP: reads the configuration file, the certificates and the tokens anew. New
 * upstreams start, those that the file no longer has end after their calls, and the tools
 * of the others are named and limited as the file now says. */
#include "service.h"

#include <stdlib.h>
#include <string.h>

static source *find_source(const proxy *p, const char *name)
{
    for (source *s = source_next(p, NULL); s; s = source_next(p, s))
        if (!strcmp(s->config->name, name))
            return s;
    return NULL;
}

static bool has_entry(const source_config *entries, const char *name)
{
    while (entries && strcmp(entries->name, name) != 0)
        entries = entries->next;
    return entries != NULL;
}

static bool is_settling(const proxy *p)
{
    for (const service *v = p->services; v; v = v->next)
        if (!service_has_settled(v))
            return true;
    return false;
}

/* Gives a source an entry of the same server. The lists are read again, because their
 * items may have other names now. */
static void change_entry(source *s, source_config *c)
{
    bool is_same = config_is_same(s->config, c);
    config_free_sources(s->config);
    s->config = c;
    if (s->stage == SOURCE_FAILED) {
        source_enter(s, SOURCE_STARTING);
        source_start(s);
    } else if (!is_same && upstream_session(s->upstreams)) {
        catalog_read(s, ALL_LISTS);
    }
}

static void take_entry(proxy *p, source_config *c)
{
    source *old = find_source(p, c->name);
    if (old && config_is_same_server(old->config, c)) {
        change_entry(old, c);
        return;
    }
    source *s = source_make(p, c);
    if (!s)
        return;
    s->replaces = old;
    source_start(s);
}

static void take_entries(proxy *p, source_config *entries)
{
    proxy_enter(p, PROXY_CHANGING);
    for (source *s = source_next(p, NULL), *next; s; s = next) {
        next = source_next(p, s);
        if (!has_entry(entries, s->config->name))
            source_retire(s, "the configuration no longer has the server; it ends after "
                             "its calls");
    }
    while (entries) {
        source_config *c = entries;
        entries = c->next;
        c->next = NULL;
        take_entry(p, c);
    }
    if (p->stage == PROXY_CHANGING)
        proxy_enter(p, PROXY_SERVING);
    successions_settle(p); /* a source may have failed at once */
    services_end_empty(p);
    serve_new_paths(p);
    readiness_update(p);
    sources_limit_start(p);
}

/* Makes the services of all entries with their stores. Returns false when a store cannot
 * be opened. */
static bool open_services(proxy *p, const source_config *entries)
{
    int status;
    for (const source_config *c = entries; c; c = c->next)
        if (!service_at(p, c->path, &status))
            return false;
    return true;
}

static void read_file(proxy *p)
{
    config fresh = p->config;
    fresh.sources = NULL;
    if (!config_read_file(&fresh, p->runtime, p->config.file) ||
        !open_services(p, fresh.sources)) {
        services_end_empty(p); /* those that were made for the file */
        log_event(SEGUE_LOG_ERROR, "config_refused", NULL,
                  "%s is not used; the proxy goes on as before", p->config.file);
        config_free_sources(fresh.sources);
        return;
    }
    take_entries(p, fresh.sources);
    log_event(SEGUE_LOG_INFO, "config_read", NULL, "%s was read anew", p->config.file);
}

static void read_certificates_and_tokens(proxy *p)
{
    segue_error *error = NULL;
    segue_status status = segue_listener_reload(p->listener, &error);
    if (status != SEGUE_OK && status != SEGUE_E_STATE)
        log_event(SEGUE_LOG_ERROR, "files_refused", NULL,
                  "the certificates or tokens are not used; the proxy goes on as before: "
                  "%s",
                  segue_error_read(error)->message);
    else if (p->config.http.tokens_file)
        log_event(SEGUE_LOG_INFO, "tokens_read", NULL, "%s was read anew",
                  p->config.http.tokens_file);
    segue_error_free(error);
}

void reload(proxy *p)
{
    p->reload_due =
        p->stage == PROXY_STARTING || (p->stage == PROXY_SERVING && is_settling(p));
    if (p->stage != PROXY_SERVING || p->reload_due)
        return;
    manager_tell_reload(p);
    if (p->listener)
        read_certificates_and_tokens(p);
    if (p->config.file)
        read_file(p);
    if (p->stage == PROXY_SERVING)
        manager_tell(p, "READY=1");
}

void reload_when_settled(proxy *p)
{
    if (p->reload_due && p->stage == PROXY_SERVING && !is_settling(p))
        reload(p);
}
