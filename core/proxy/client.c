#include "client.h"

#include "peek.h"
#include "service.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A resource to which a client has subscribed. */
typedef struct subscription {
    struct subscription *next;
    /* the upstream that reports changes of the resource; NULL = none does */
    upstream *up;
    char *uri;
} subscription;

struct client {
    client *next;
    uint64_t number;
    bool is_session;
    char *key;  /* client_key */
    char *info; /* what the client has declared, as JSON */
    /* index in `levels` of the level that the client has set; -1 = the client has set
     * none */
    int level;
    subscription *subscriptions;
};

static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                     "error", "critical", "alert",  "emergency"};
enum { LEVELS = sizeof levels / sizeof *levels };

static client *find(const service *v, uint64_t number)
{
    client *c = v->clients;
    while (c && c->number != number)
        c = c->next;
    return c;
}

static bool uses(const client *c, const upstream *u)
{
    return !strcmp(c->key, u->key);
}

static json capabilities_of(const client *c)
{
    return json_get((json){c->info, strlen(c->info)}, "capabilities");
}

char *client_key(const proxy *p, uint64_t number, const char *principal)
{
    char name[32];
    text key = {.p = NULL};
    if (p->config.per == PER_ALL)
        return copy_string("");
    if (p->config.per == PER_PRINCIPAL)
        return copy_string(principal);
    if (number) {
        snprintf(name, sizeof name, "#%llu", (unsigned long long)number);
        return copy_string(name);
    }
    if (!*principal)
        return copy_string("");
    text_add_str(&key, "@");
    text_add_str(&key, principal);
    return key.p;
}

char *client_capabilities(const service *v, uint64_t number)
{
    const client *c = find(v, number);
    text out = {.p = NULL};
    if (!c)
        return NULL;
    peek_write_questions(&out, capabilities_of(c));
    return out.p;
}

char *client_call_capabilities(const service *v, const segue_call *call)
{
    json declared = {NULL, 0};
    text out = {.p = NULL};
    if (segue_call_meta(call, "io.modelcontextprotocol/clientCapabilities", &declared.p,
                        &declared.n) != SEGUE_OK)
        return client_capabilities(v, segue_call_client(call));
    peek_write_questions(&out, declared);
    return out.p;
}

/* ---- subscriptions ---- */

/* Asks the source of the resource to report its changes. */
static void begin(service *v, const client *c, subscription *s)
{
    source *from = source_of_uri(v, s->uri);
    bool is_own = v->proxy->config.per == PER_SESSION && c->is_session;
    if (from)
        s->up = source_upstream_with_key(from, c->key, is_own ? c->number : 0);
    if (s->up) {
        upstream_use(s->up);
        watch_add(s->up, s->uri);
    }
}

static void end(subscription *s)
{
    upstream *up = s->up;
    s->up = NULL;
    if (!up)
        return;
    watch_remove(up, s->uri);
    upstream_leave(up);
}

static void subscribe(service *v, client *c, const char *uri)
{
    subscription *s = calloc(1, sizeof *s);
    if (!s || !(s->uri = copy_string(uri))) {
        free(s);
        return;
    }
    s->next = c->subscriptions;
    c->subscriptions = s;
    begin(v, c, s);
}

static void remove_subscription(subscription **link)
{
    subscription *s = *link;
    *link = s->next;
    end(s);
    free(s->uri);
    free(s);
}

void clients_subscribe_anew(service *v)
{
    for (const client *c = v->clients; c; c = c->next)
        for (subscription *s = c->subscriptions; s; s = s->next) {
            if (s->up && s->up->source->stage != SOURCE_RETIRED)
                continue;
            end(s);
            begin(v, c, s);
        }
}

static void on_subscription(void *user, uint64_t number, const char *uri,
                            int32_t subscribed)
{
    service *v = user;
    client *c = find(v, number);
    if (!c)
        return;
    if (subscribed) {
        subscribe(v, c, uri);
        return;
    }
    for (subscription **link = &c->subscriptions; *link; link = &(*link)->next)
        if (!strcmp((*link)->uri, uri)) {
            remove_subscription(link);
            return;
        }
}

/* True when `uri` is the resource of the subscription, or a part of it: an upstream may
 * report a part of the resource to which it was asked to subscribe. */
static bool is_about(const char *subscribed, const char *uri)
{
    size_t len = strlen(subscribed);
    if (strncmp(subscribed, uri, len))
        return false;
    return !uri[len] || (len && subscribed[len - 1] == '/') || strchr("/?#", uri[len]);
}

void clients_updated(const upstream *u, const char *uri)
{
    const service *v = u->source->service;
    for (const client *c = v->clients; c; c = c->next) {
        if (!uses(c, u))
            continue;
        for (const subscription *s = c->subscriptions; s; s = s->next)
            if ((!s->up || s->up == u) && is_about(s->uri, uri))
                segue_client_updated(v->server, c->number, s->uri);
    }
}

/* ---- log messages ---- */

const char *clients_lowest_level(const upstream *u)
{
    int lowest = LEVELS;
    for (const client *c = u->source->service->clients; c; c = c->next)
        if (uses(c, u) && c->level >= 0 && c->level < lowest)
            lowest = c->level;
    return lowest < LEVELS ? levels[lowest] : NULL;
}

const char *client_log_level(const upstream *u, const segue_call *call)
{
    uint64_t segment;
    const client *c = find(u->source->service, segue_call_client(call));
    bool resumed = segue_call_resumed(call, &segment, NULL, NULL) == SEGUE_OK;
    if (c ? c->level >= 0 : !resumed)
        return segue_call_log_level(call);
    /* A client that sets no level gets what the server chooses. In 2026-07-28 a server
     * sends only what a request asks for. */
    return u->stateless ? "info" : NULL;
}

static void on_level(void *user, uint64_t number, const char *level)
{
    service *v = user;
    client *c = find(v, number);
    if (!c)
        return;
    for (int i = 0; i < LEVELS; i++)
        if (!strcmp(levels[i], level))
            c->level = i;
    for (source *s = v->sources; s; s = s->next)
        for (upstream *u = s->upstreams; u; u = u->next)
            if (uses(c, u))
                watch_set_level(u);
}

void clients_log(const upstream *u, const char *params, size_t len)
{
    const service *v = u->source->service;
    for (const client *c = v->clients; c; c = c->next)
        if (uses(c, u) && c->is_session)
            segue_client_log(v->server, c->number, params, len, NULL);
}

/* ---- questions ---- */

static bool answers(const client *c, const char *method)
{
    static const char *const asked[][2] = {{"roots/list", "roots"},
                                           {"sampling/createMessage", "sampling"},
                                           {"elicitation/create", "elicitation"}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (!strcmp(asked[i][0], method))
            return c->is_session && json_get(capabilities_of(c), asked[i][1]).n > 0;
    return false;
}

uint64_t clients_find_one(const upstream *u, const char *method)
{
    uint64_t number = 0;
    for (const client *c = u->source->service->clients; c; c = c->next) {
        if (!uses(c, u) || !answers(c, method))
            continue;
        if (number)
            return 0;
        number = c->number;
    }
    return number;
}

static void on_roots_changed(void *user, uint64_t number)
{
    service *v = user;
    const client *c = find(v, number);
    for (source *s = c ? v->sources : NULL; s; s = s->next)
        for (upstream *u = s->upstreams; u; u = u->next)
            if (uses(c, u) && u->open)
                segue_session_notify(u->session, "notifications/roots/list_changed", NULL,
                                     0, NULL);
}

/* ---- the beginning and the end ---- */

static void free_client(client *c)
{
    while (c->subscriptions) {
        subscription *s = c->subscriptions;
        c->subscriptions = s->next;
        free(s->uri);
        free(s);
    }
    free(c->key);
    free(c->info);
    free(c);
}

static void on_open(void *user, uint64_t number, const char *principal, const char *info,
                    size_t len)
{
    service *v = user;
    client *c = calloc(1, sizeof *c);
    if (!c)
        return;
    c->number = number;
    c->is_session = json_is_true(json_get((json){info, len}, "isSession"));
    c->key = client_key(v->proxy, c->is_session ? number : 0, principal);
    c->info = copy_string(info);
    c->level = -1;
    if (!c->key || !c->info) {
        free_client(c);
        return;
    }
    c->next = v->clients;
    v->clients = c;
}

static void on_closed(void *user, uint64_t number)
{
    service *v = user;
    client **link = &v->clients;
    while (*link && (*link)->number != number)
        link = &(*link)->next;
    client *c = *link;
    if (!c)
        return;
    while (c->subscriptions)
        remove_subscription(&c->subscriptions);
    *link = c->next;
    for (source *s = v->sources; s; s = s->next)
        for (upstream *u = s->upstreams, *next; u; u = next) {
            next = u->next;
            if (!uses(c, u))
                continue;
            if (v->proxy->config.per == PER_SESSION && c->is_session)
                upstream_retire(u);
            else if (c->level >= 0)
                watch_set_level(u);
        }
    free_client(c);
}

bool clients_watch(service *v)
{
    segue_client_events events = SEGUE_CLIENT_EVENTS_INIT;
    events.user = v;
    events.free_user = service_unref;
    events.on_open = on_open;
    events.on_closed = on_closed;
    events.on_subscription = on_subscription;
    events.on_level = on_level;
    events.on_roots_changed = on_roots_changed;
    service_ref(v);
    if (segue_server_watch_clients(v->server, &events, NULL) == SEGUE_OK)
        return true;
    service_unref(v);
    return false;
}

void clients_free(service *v)
{
    while (v->clients) {
        client *c = v->clients;
        v->clients = c->next;
        free_client(c);
    }
}
