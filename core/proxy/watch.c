#include "watch.h"

#include "client.h"
#include "limits.h"

#include <stdlib.h>
#include <string.h>

/* A resource whose changes the upstream reports. */
struct watched {
    watched *next;
    int32_t count; /* number of subscriptions of clients */
    char *uri;
};

/* A request of this file, whose answer only matters if it is an error. */
typedef struct asking {
    upstream *up; /* a counted reference */
    const char *method;
} asking;

static void free_asking(void *user)
{
    asking *a = user;
    upstream_unref(a->up);
    free(a);
}

static void on_answer(void *user, segue_request *request, segue_status status,
                      const char *result, size_t len, const segue_error *error)
{
    asking *a = user;
    (void)request;
    (void)result;
    (void)len;
    if (status != SEGUE_OK && status != SEGUE_E_CLOSED)
        log_event(SEGUE_LOG_WARNING, "request_failed", a->up->source->config->name,
                  "%s: %s", a->method, segue_error_read(error)->message);
}

static void ask(upstream *u, const char *method, const char *name, const char *value)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    text params = {.p = NULL};
    asking *a = calloc(1, sizeof *a);
    if (!a)
        return;
    *a = (asking){u, method};
    u->refs++;
    events.user = a;
    events.free_user = free_asking;
    events.on_complete = on_answer;
    text_add_str(&params, "{");
    text_add_key(&params, name);
    text_add_quoted(&params, value, strlen(value));
    text_add_str(&params, "}");
    if (params.failed || segue_request_start(u->session, method, params.p, params.len,
                                             NULL, &events, NULL, NULL) != SEGUE_OK)
        free_asking(a);
    text_free(&params);
}

/* ---- 2026-07-28: one request subscriptions/listen for everything ---- */

static void listen_soon(upstream *u, int64_t ms);

static void on_listen_end(void *user, segue_request *request, segue_status status,
                          const char *result, size_t len, const segue_error *error)
{
    upstream *u = user;
    (void)result;
    (void)len;
    if (request != u->listen)
        return; /* a newer request has replaced this one */
    segue_request_free(u->listen);
    u->listen = NULL;
    if (status == SEGUE_E_REMOTE)
        log_event(SEGUE_LOG_WARNING, "request_failed", u->source->config->name,
                  "subscriptions/listen: %s", segue_error_read(error)->message);
    else if (u->session && status != SEGUE_E_CLOSED)
        listen_soon(u, RETRY_FIRST_MS);
}

static void write_filter(const upstream *u, text *params)
{
    bool lists = u == u->source->upstreams, begun = false;
    text_add_str(params, "{\"notifications\":{");
    if (lists && u->can.tools)
        text_add_key(params, "toolsListChanged"), text_add_str(params, "true");
    if (lists && u->can.prompts)
        text_add_key(params, "promptsListChanged"), text_add_str(params, "true");
    if (lists && u->can.resources)
        text_add_key(params, "resourcesListChanged"), text_add_str(params, "true");
    for (const watched *w = u->watched; w; w = w->next, begun = true) {
        if (!begun) {
            text_add_key(params, "resourceSubscriptions");
            text_add_str(params, "[");
        } else {
            text_add_str(params, ",");
        }
        text_add_quoted(params, w->uri, strlen(w->uri));
    }
    text_add_str(params, begun ? "]}}" : "}}");
}

static void stop_listening(upstream *u)
{
    segue_request *request = u->listen;
    u->listen = NULL;
    if (request)
        segue_request_cancel(request);
    segue_request_free(request);
}

/* Sends the request anew, with the resources that are watched now. The earlier request
 * ends after the newer one has begun, so that no change is missed. */
static void listen_now(void *user)
{
    upstream *u = user;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    segue_request *earlier = u->listen;
    text params = {.p = NULL};
    segue_timer_free(u->listening);
    u->listening = NULL;
    if (!u->session || (u != u->source->upstreams && !u->watched)) {
        stop_listening(u);
        return;
    }
    write_filter(u, &params);
    events.user = u;
    events.free_user = upstream_unref;
    events.on_complete = on_listen_end;
    u->refs++;
    u->listen = NULL;
    if (params.failed ||
        segue_request_start(u->session, "subscriptions/listen", params.p, params.len,
                            NULL, &events, &u->listen, NULL) != SEGUE_OK)
        u->refs--;
    text_free(&params);
    if (earlier)
        segue_request_cancel(earlier);
    segue_request_free(earlier);
}

static void stop_timer(upstream *u)
{
    if (u->listening)
        segue_timer_cancel(u->listening);
    segue_timer_free(u->listening);
    u->listening = NULL;
}

/* Several changes of what is watched lead to one request. */
static void listen_soon(upstream *u, int64_t ms)
{
    stop_timer(u);
    u->refs++;
    if (segue_timer_start(u->source->proxy->runtime, ms, listen_now, u, upstream_unref,
                          &u->listening) != SEGUE_OK)
        u->refs--;
}

/* ---- resources ---- */

static watched **find(upstream *u, const char *uri)
{
    watched **link = &u->watched;
    while (*link && strcmp((*link)->uri, uri))
        link = &(*link)->next;
    return link;
}

void watch_add(upstream *u, const char *uri)
{
    watched **link = find(u, uri);
    if (*link) {
        (*link)->count++;
        return;
    }
    watched *w = calloc(1, sizeof *w);
    if (!w || !(w->uri = copy_string(uri))) {
        free(w);
        return;
    }
    w->count = 1;
    *link = w;
    if (!u->open)
        upstream_session(u); /* watch_opened asks for everything */
    else if (u->stateless)
        listen_soon(u, 0);
    else if (u->can.subscribe)
        ask(u, "resources/subscribe", "uri", uri);
}

void watch_remove(upstream *u, const char *uri)
{
    watched **link = find(u, uri), *w = *link;
    if (!w || --w->count)
        return;
    *link = w->next;
    if (u->open && u->stateless)
        listen_soon(u, 0);
    else if (u->open && u->can.subscribe)
        ask(u, "resources/unsubscribe", "uri", uri);
    free(w->uri);
    free(w);
}

/* ---- the level of log messages ---- */

void watch_set_level(upstream *u)
{
    const char *level =
        u->open && u->can.logging && !u->stateless ? clients_lowest_level(u) : NULL;
    if (level && level != u->level)
        ask(u, "logging/setLevel", "level", level);
    u->level = level ? level : u->level;
}

/* ---- sessions ---- */

void watch_opened(upstream *u)
{
    u->level = NULL;
    watch_set_level(u);
    if (u->stateless) {
        listen_soon(u, 0);
        return;
    }
    for (const watched *w = u->can.subscribe ? u->watched : NULL; w; w = w->next)
        ask(u, "resources/subscribe", "uri", w->uri);
}

void watch_lost(upstream *u)
{
    stop_timer(u);
    segue_request_free(u->listen);
    u->listen = NULL;
}

void watch_free(upstream *u)
{
    while (u->watched) {
        watched *w = u->watched;
        u->watched = w->next;
        free(w->uri);
        free(w);
    }
}
