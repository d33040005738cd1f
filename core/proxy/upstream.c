/* A session with an upstream: opens it, handles its end, stores the last lines of the
 * program's standard error, and closes it when no call uses it. */
#include "proxy.h"

#include <segue/segue_util.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of starts without an answer after which a program counts as unusable. */
#define PROGRAM_ATTEMPTS 3

extern char **environ;

/* ---- standard error ---- */

static void take_error_line(void *user, const char *line, size_t len)
{
    upstream *u = user;
    char *to = u->errors[u->error_count++ % STDERR_LINES];
    size_t kept = len < STDERR_LINE ? len : STDERR_LINE - 1;
    memcpy(to, line, kept);
    to[kept] = 0;
    log_event(SEGUE_LOG_INFO, "stderr", u->source->config->name, "%s", to);
}

void upstream_add_errors(const upstream *u, text *to)
{
    size_t count = u->error_count < STDERR_LINES ? u->error_count : STDERR_LINES;
    text_add_str(to, "[");
    for (size_t i = u->error_count - count; i < u->error_count; i++) {
        const char *line = u->errors[i % STDERR_LINES];
        if (i > u->error_count - count)
            text_add_str(to, ",");
        text_add_quoted(to, line, strlen(line));
    }
    text_add_str(to, "]");
}

/* ---- the end of a session ---- */

void upstream_set_lost(upstream *u, bool lost)
{
    if (u->lost == lost)
        return;
    u->lost = lost;
    readiness_update(u->source->proxy);
}

static void let_go(upstream *u)
{
    segue_request_free(u->questions);
    segue_session_free(u->session);
    u->questions = NULL;
    u->session = NULL;
    u->open = false;
}

/* Closes the session. The next call opens a new one, even if on_closed comes later. */
static void close_session(upstream *u)
{
    segue_session_close(u->session);
    let_go(u);
}

static void on_closed(void *user, segue_session *session, const segue_error *error)
{
    upstream *u = user;
    source *s = u->source;
    if (session != u->session) { /* close_session has let it go */
        source_unref(s);
        return;
    }
    bool was_open = u->open;
    let_go(u);
    upstream_set_lost(u, error != NULL);
    if (error)
        snprintf(u->last_error, sizeof u->last_error, "%s",
                 segue_error_read(error)->message);
    if (error && !s->proxy->ending)
        log_event(SEGUE_LOG_WARNING, was_open ? "upstream_lost" : "upstream_failed",
                  s->config->name, "%s", u->last_error);
    u->failures = was_open ? 0 : u->failures + 1;
    if (u == s->upstreams)
        catalog_lost(s);
    source_unref(s); /* the reference of the session */
}

/* ---- what an upstream can do ---- */

static features read_features(json peer)
{
    json can = json_get(peer, "capabilities");
    json resources = json_get(can, "resources");
    json experimental = json_get(can, "experimental"), more = json_get(can, "extensions");
    features found = {
        .tools = json_get(can, "tools").n > 0,
        .resources = resources.n > 0,
        .subscribe = json_is_true(json_get(resources, "subscribe")),
        .prompts = json_get(can, "prompts").n > 0,
        .completions = json_get(can, "completions").n > 0,
        .keys = json_get(experimental, "dev.segue/idempotency").n > 0 ||
                json_get(more, "dev.segue/idempotency").n > 0,
    };
    return found;
}

static char *read_peer(segue_session *session)
{
    size_t len = 0;
    segue_session_peer(session, NULL, &len);
    char *peer = malloc(++len);
    if (peer && segue_session_peer(session, peer, &len) == SEGUE_OK)
        return peer;
    free(peer);
    return NULL;
}

static void on_open(void *user, segue_session *session)
{
    upstream *u = user;
    source *s = u->source;
    char *peer = read_peer(session);
    if (!peer)
        return;
    u->can = read_features((json){peer, strlen(peer)});
    u->open = true;
    u->failures = 0;
    upstream_set_lost(u, false);
    log_event(SEGUE_LOG_INFO, "upstream_open", s->config->name, "the session is open");
    if (u != s->upstreams) {
        free(peer);
        return;
    }
    free(s->peer);
    s->peer = peer;
    s->can = u->can;
    if (!s->proxy->server && !serve_make(s->proxy, s))
        return;
    catalog_open(s);
    catalog_read(s, ALL_LISTS);
}

/* ---- notifications ---- */

static void on_notification(void *user, segue_session *session, const char *method,
                            const char *params, size_t len)
{
    upstream *u = user;
    source *s = u->source;
    (void)session;
    if (!strcmp(method, "notifications/tools/list_changed"))
        catalog_read(s, 1u << LIST_TOOLS);
    else if (!strcmp(method, "notifications/prompts/list_changed"))
        catalog_read(s, 1u << LIST_PROMPTS);
    else if (!strcmp(method, "notifications/resources/list_changed"))
        catalog_read(s, 1u << LIST_RESOURCES | 1u << LIST_TEMPLATES);
    else if (!strcmp(method, "notifications/resources/updated") && s->proxy->server) {
        char *uri = json_string(json_get((json){params, len}, "uri"));
        if (uri)
            segue_server_resource_updated(s->proxy->server, uri);
        free(uri);
    }
}

static void on_reconnect(void *user, segue_session *session, int32_t attempt,
                         int64_t delay_ms, const char *reason)
{
    upstream *u = user;
    (void)session;
    snprintf(u->last_error, sizeof u->last_error, "%s", reason);
    upstream_set_lost(u, true);
    log_event(SEGUE_LOG_WARNING, "upstream_retry", u->source->config->name,
              "%s; attempt %d begins in %lld ms", reason, (int)attempt,
              (long long)delay_ms);
}

/* ---- opening ---- */

/* Returns a copy of the inherited environment with the configuration's variables. A
 * variable of the configuration replaces an inherited one of the same name. The caller
 * frees only the list, not the texts. */
static const char **make_env(char *const *more)
{
    size_t count = 0, own = 0;
    while (environ[count])
        count++;
    while (more[own])
        own++;
    const char **env = malloc((count + own + 1) * sizeof *env);
    if (!env)
        return NULL;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        bool replaced = false;
        for (size_t j = 0; j < own && !replaced; j++) {
            size_t name = (size_t)(strchr(more[j], '=') - more[j]) + 1;
            replaced = !strncmp(more[j], environ[i], name);
        }
        if (!replaced)
            env[n++] = environ[i];
    }
    for (size_t j = 0; j < own; j++)
        env[n++] = more[j];
    env[n] = NULL;
    return env;
}

static void program_is_gone(void *user)
{
    upstream *u = user;
    source_unref(u->source);
}

static segue_status spawn(upstream *u, segue_transport **out, segue_error **error)
{
    const source_config *c = u->source->config;
    segue_spawn_options options = SEGUE_SPAWN_OPTIONS_INIT;
    char parent[24];
    size_t count = 0;
    while (c->argv[count])
        count++;
    const char **argv = malloc((count + 4) * sizeof *argv);
    const char **env = c->env ? make_env(c->env) : NULL;
    segue_status status = SEGUE_E_NOMEM;
    if (argv && (env || !c->env)) {
        snprintf(parent, sizeof parent, "%ld", (long)getpid());
        argv[0] = "/proc/self/exe";
        argv[1] = "--guard";
        argv[2] = parent;
        for (size_t i = 0; i <= count; i++)
            argv[3 + i] = c->argv[i];
        options.argv = argv;
        options.env = env;
        options.working_dir = c->dir;
        options.restart = 1;
        options.user = u;
        options.free_user = program_is_gone;
        options.on_stderr = take_error_line;
        source_ref(u->source);
        status = segue_transport_spawn(u->source->proxy->runtime, &options, out, error);
        if (status != SEGUE_OK)
            source_unref(u->source);
    }
    free(argv);
    free(env);
    return status;
}

static segue_status set_header(segue_transport *transport, const char *header,
                               segue_error **error)
{
    const char *colon = strchr(header, ':');
    char *name = colon ? strndup(header, (size_t)(colon - header)) : NULL;
    segue_status status = SEGUE_E_INVALID;
    if (name)
        status = segue_transport_set_header(transport, name,
                                            colon + 1 + strspn(colon + 1, " "), error);
    free(name);
    return status;
}

static segue_status connect_http(upstream *u, segue_transport **out, segue_error **error)
{
    const source_config *c = u->source->config;
    segue_transport *transport;
    segue_status status =
        segue_transport_http(u->source->proxy->runtime, c->url, NULL, &transport, error);
    if (status != SEGUE_OK)
        return status;
    for (size_t i = 0; c->headers && c->headers[i] && status == SEGUE_OK; i++)
        status = set_header(transport, c->headers[i], error);
    if (status == SEGUE_OK)
        *out = transport;
    else
        segue_transport_free(transport);
    return status;
}

static segue_status open_session(upstream *u, segue_transport *transport,
                                 segue_error **error)
{
    proxy *p = u->source->proxy;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    options.name = "segue-proxy";
    options.version = segue_version();
    options.capabilities = p->capabilities;
    /* no time limit, because the upstream may need any time */
    options.request_timeout_ms = INT32_MAX;
    /* The session caches nothing. The proxy's server has the lists itself, and resources
     * may change at any time. */
    options.cache_bytes = -1;
    options.dialects_on = SEGUE_DIALECT_RESUMABLE;
    options.first_attempts = u->source->config->argv ? PROGRAM_ATTEMPTS : 0;
    events.user = u;
    events.on_open = on_open;
    events.on_closed = on_closed;
    events.on_notification = on_notification;
    events.on_reconnect = on_reconnect;
    return segue_session_open(p->runtime, transport, &options, &events, &u->session,
                              error);
}

static void take_stray_questions(upstream *u)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = u;
    events.on_input = relay_stray_question;
    segue_session_take_input(u->session, &events, &u->questions, NULL);
}

segue_session *upstream_session(upstream *u)
{
    segue_transport *transport = NULL;
    segue_error *error = NULL;
    if (u->session)
        return u->session;
    if (u->source->proxy->ending)
        return NULL;
    segue_status status = u->source->config->argv ? spawn(u, &transport, &error)
                                                  : connect_http(u, &transport, &error);
    if (status == SEGUE_OK)
        status = open_session(u, transport, &error);
    if (status != SEGUE_OK) {
        snprintf(u->last_error, sizeof u->last_error, "%s",
                 error ? segue_error_read(error)->message : segue_status_name(status));
        log_event(SEGUE_LOG_ERROR, "upstream_failed", u->source->config->name, "%s",
                  u->last_error);
        segue_transport_free(transport);
        segue_error_free(error);
        return NULL;
    }
    source_ref(u->source);
    take_stray_questions(u);
    return u->session;
}

/* ---- use ---- */

static void idle_is_over(void *user)
{
    upstream *u = user;
    segue_timer_free(u->idle);
    u->idle = NULL;
    if (!u->session || u->calls)
        return;
    log_event(SEGUE_LOG_INFO, "upstream_idle", u->source->config->name,
              "no call uses the server, so its session is closed");
    close_session(u);
}

static void stop_idle(upstream *u)
{
    if (u->idle)
        segue_timer_cancel(u->idle);
    segue_timer_free(u->idle);
    u->idle = NULL;
}

void upstream_retire(upstream *u)
{
    stop_idle(u);
    if (u->session && !u->calls)
        close_session(u);
}

void upstream_use(upstream *u)
{
    source_ref(u->source);
    u->calls++;
    stop_idle(u);
}

void upstream_leave(upstream *u)
{
    source *s = u->source;
    int64_t idle_ms = s->proxy->config.idle_ms;
    u->calls--;
    if (s->retired)
        upstream_retire(u);
    else if (!u->calls && idle_ms && !u->idle && !s->proxy->ending)
        segue_timer_start(s->proxy->runtime, idle_ms, idle_is_over, u, NULL, &u->idle);
    source_unref(s);
}

void upstream_free(upstream *u)
{
    segue_timer_free(u->idle); /* the runtime has ended, and the timer with it */
    let_go(u);
    free(u->key);
    free(u);
}
