/* A session with an upstream: opens it, handles its end, tries again after a failure,
 * stores the last lines of the program's standard error, and closes the session when
 * nothing uses it. */
#include "client.h"
#include "limits.h"
#include "service.h"
#include "watch.h"

#include <segue/segue.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- standard error ---- */

void upstream_take_error_line(void *user, const char *line, size_t len)
{
    upstream *u = user;
    char *to = u->errors[u->error_count++ % STDERR_LINES];
    size_t kept = len < STDERR_LINE ? len : STDERR_LINE - 1;
    memcpy(to, line, kept);
    to[kept] = 0;
    log_event(SEGUE_LOG_INFO, "stderr", u->source->config->name, "%s", to);
}

size_t upstream_first_error(const upstream *u)
{
    size_t oldest = u->error_count < STDERR_LINES ? 0 : u->error_count - STDERR_LINES;
    bool has_own = u->attempt_errors > oldest && u->attempt_errors < u->error_count;
    return has_own ? u->attempt_errors : oldest;
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

void upstream_unref(void *user)
{
    upstream *u = user;
    if (--u->refs)
        return;
    source_unref(u->source);
    watch_free(u);
    free(u->capabilities);
    free(u->key);
    free(u);
}

static void let_go(upstream *u)
{
    watch_lost(u);
    segue_request_free(u->questions);
    segue_session_free(u->session);
    u->questions = NULL;
    u->session = NULL;
    u->open = false;
}

static void stop_timer(segue_timer **timer)
{
    if (*timer)
        segue_timer_cancel(*timer);
    segue_timer_free(*timer);
    *timer = NULL;
}

/* True when the upstream has to have a session although no call uses it. */
static bool is_wanted(const upstream *u)
{
    return u == u->source->upstreams || u->watched;
}

static void try_again(void *user)
{
    upstream *u = user;
    segue_timer_free(u->again);
    u->again = NULL;
    if (!u->session && is_wanted(u))
        upstream_session(u);
}

/* Lets the next attempt wait. The pause doubles with each failure in a row. */
static void put_off(upstream *u)
{
    int64_t ms = RETRY_FIRST_MS;
    if (u->source->proxy->stage == PROXY_ENDING || u->again || !u->in_source ||
        u->retired)
        return;
    for (int32_t i = 1; i < u->failures && ms < RETRY_MOST_MS; i++)
        ms *= 2;
    if (ms > RETRY_MOST_MS)
        ms = RETRY_MOST_MS;
    u->refs++;
    if (segue_timer_start(u->source->proxy->runtime, ms, try_again, u, upstream_unref,
                          &u->again) != SEGUE_OK) {
        u->refs--;
        return;
    }
    log_event(SEGUE_LOG_INFO, "upstream_waits", u->source->config->name,
              "the server is tried again in %lld ms", (long long)ms);
}

static void on_closed(void *user, segue_session *session, const segue_error *error)
{
    upstream *u = user;
    source *s = u->source;
    if (session != u->session)
        return; /* the upstream does not use this session any more */
    bool was_open = u->open;
    let_go(u);
    upstream_set_lost(u, error != NULL);
    /* a message that only counts the attempts says no more than the last reason */
    if (error &&
        (!*u->last_error || !strstr(segue_error_read(error)->message, u->last_error)))
        snprintf(u->last_error, sizeof u->last_error, "%s",
                 segue_error_read(error)->message);
    /* when the first session of a source fails, serve_tell_failure tells it */
    bool is_told = u == s->upstreams && s->stage == SOURCE_STARTING;
    if (error && s->proxy->stage != PROXY_ENDING)
        log_event(is_told ? SEGUE_LOG_INFO : SEGUE_LOG_WARNING,
                  was_open ? "upstream_lost" : "upstream_failed", s->config->name, "%s",
                  u->last_error);
    u->failures = was_open ? 0 : u->failures + 1;
    put_off(u);
    if (u == s->upstreams && s->stage != SOURCE_RETIRED)
        catalog_lost(s);
}

/* ---- what an upstream can do ---- */

/* True when the upstream sends the results of tasks of 2025-11-25 in segments. */
static bool streams_tasks(json capabilities)
{
    json tasks = json_get(capabilities, "tasks"), mode;
    json modes = json_get(json_get(tasks, "responses"), "modes");
    for (size_t at = 0; json_is_array(modes) && json_next(modes, &at, NULL, &mode);)
        if (json_is(mode, "streaming"))
            return true;
    return false;
}

static features read_features(json peer)
{
    json can = json_get(peer, "capabilities");
    json resources = json_get(can, "resources");
    json experimental = json_get(can, "experimental"), more = json_get(can, "extensions");
    json tasks = json_get(more, "io.modelcontextprotocol/tasks");
    features found = {
        .tools = json_get(can, "tools").n > 0,
        .resources = resources.n > 0,
        .subscribe = json_is_true(json_get(resources, "subscribe")),
        .prompts = json_get(can, "prompts").n > 0,
        .completions = json_get(can, "completions").n > 0,
        .logging = json_get(can, "logging").n > 0,
        .keys = json_get(experimental, "dev.segue/idempotency").n > 0 ||
                json_get(more, "dev.segue/idempotency").n > 0,
        .event_streams = json_get(tasks, "eventStreams").n > 0 ||
                         json_get(more, "dev.segue/eventStreams").n > 0,
        .streamed_tasks = streams_tasks(can),
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
    char *peer = session == u->session ? read_peer(session) : NULL;
    if (!peer)
        return;
    u->can = read_features((json){peer, strlen(peer)});
    u->stateless = json_is_true(json_get((json){peer, strlen(peer)}, "isStateless"));
    u->open = true;
    u->failures = 0;
    upstream_set_lost(u, false);
    log_event(SEGUE_LOG_INFO, "upstream_open", s->config->name, "the session is open");
    if (u == s->upstreams && s->stage != SOURCE_RETIRED) {
        free(s->peer);
        s->peer = peer;
        s->can = u->can;
        if (!s->service->server && !service_make_server(s->service, s)) {
            catalog_lost(s);
            return;
        }
        catalog_open(s);
        catalog_read(s, ALL_LISTS);
    } else {
        free(peer);
    }
    watch_opened(u);
}

/* ---- notifications ---- */

static void on_notification(void *user, segue_session *session, const char *method,
                            const char *params, size_t len)
{
    upstream *u = user;
    source *s = u->source;
    if (session != u->session || !s->service->server || s->stage == SOURCE_RETIRED)
        return;
    if (!strcmp(method, "notifications/tools/list_changed"))
        catalog_read(s, 1u << LIST_TOOLS);
    else if (!strcmp(method, "notifications/prompts/list_changed"))
        catalog_read(s, 1u << LIST_PROMPTS);
    else if (!strcmp(method, "notifications/resources/list_changed"))
        catalog_read(s, 1u << LIST_RESOURCES | 1u << LIST_TEMPLATES);
    else if (!strcmp(method, "notifications/message"))
        clients_log(u, params, len);
    else if (!strcmp(method, "notifications/resources/updated")) {
        char *uri = json_string(json_get((json){params, len}, "uri"));
        if (uri)
            clients_updated(u, uri);
        free(uri);
    }
}

static void on_reconnect(void *user, segue_session *session, int32_t attempt,
                         int64_t delay_ms, const char *reason)
{
    upstream *u = user;
    (void)session;
    snprintf(u->last_error, sizeof u->last_error, "%s", reason);
    if (attempt > 1) /* a cut stream, or a program that starts again, is no loss */
        upstream_set_lost(u, true);
    u->attempt_errors = u->error_count;
    /* the library has logged it too, but does not know the name */
    bool is_only = !source_next(u->source->proxy, source_next(u->source->proxy, NULL));
    log_event(is_only ? SEGUE_LOG_INFO : SEGUE_LOG_WARNING, "upstream_retry",
              u->source->config->name, "%s; attempt %d begins in %lld ms", reason,
              (int)attempt, (long long)delay_ms);
}

static segue_status open_session(upstream *u, segue_transport *transport,
                                 segue_error **error)
{
    proxy *p = u->source->proxy;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    options.name = "segue-proxy";
    options.version = segue_version();
    options.capabilities = u->capabilities ? u->capabilities : p->capabilities;
    /* no time limit, because the upstream may need any time */
    options.request_timeout_ms = INT32_MAX;
    /* The session caches nothing. The proxy's server has the lists itself, and resources
     * may change at any time. */
    options.cache_bytes = -1;
    options.dialects_on = SEGUE_DIALECT_RESUMABLE;
    options.first_attempts = u->source->config->argv ? PROGRAM_ATTEMPTS : 0;
    events.user = u;
    events.free_user = upstream_unref;
    events.on_open = on_open;
    events.on_closed = on_closed;
    events.on_notification = on_notification;
    events.on_reconnect = on_reconnect;
    u->refs++;
    segue_status status =
        segue_session_open(p->runtime, transport, &options, &events, &u->session, error);
    if (status != SEGUE_OK)
        u->refs--;
    return status;
}

static void take_stray_question(void *user, segue_request *request, const char *key,
                                const char *method, const char *params, size_t len)
{
    clients_ask(user, request, key, method, params, len);
}

static void take_stray_questions(upstream *u)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = u;
    events.free_user = upstream_unref;
    events.on_input = take_stray_question;
    u->refs++;
    if (segue_session_take_input(u->session, &events, &u->questions, NULL) != SEGUE_OK)
        u->refs--;
}

segue_session *upstream_session(upstream *u)
{
    segue_transport *transport = NULL;
    segue_error *error = NULL;
    if (u->session)
        return u->session;
    if (u->source->proxy->stage == PROXY_ENDING || u->again)
        return NULL;
    segue_status status = upstream_connect(u, &transport, &error);
    if (status == SEGUE_OK)
        status = open_session(u, transport, &error);
    if (status != SEGUE_OK) {
        snprintf(u->last_error, sizeof u->last_error, "%s",
                 error ? segue_error_read(error)->message : segue_status_name(status));
        log_event(SEGUE_LOG_ERROR, "upstream_failed", u->source->config->name, "%s",
                  u->last_error);
        segue_transport_free(transport);
        segue_error_free(error);
        u->failures++;
        put_off(u);
        return NULL;
    }
    take_stray_questions(u);
    return u->session;
}

/* ---- use ---- */

/* Ends the session now. Its callbacks that are still to come are ignored. */
static void hang_up(upstream *u)
{
    if (u->session)
        segue_session_close(u->session);
    let_go(u);
}

/* Removes the upstream from its source, which closes its session. */
static void drop(upstream *u)
{
    stop_timer(&u->idle);
    stop_timer(&u->again);
    hang_up(u);
    source_forget(u);
    upstream_unref(u);
}

static void idle_is_over(void *user)
{
    upstream *u = user;
    segue_timer_free(u->idle);
    u->idle = NULL;
    if (u->calls || !u->in_source)
        return;
    log_event(SEGUE_LOG_INFO, "upstream_idle", u->source->config->name,
              "nothing uses the server, so its session is closed");
    if (u == u->source->upstreams)
        hang_up(u);
    else
        drop(u);
}

void upstream_use(upstream *u)
{
    u->calls++;
    stop_timer(&u->idle);
}

void upstream_leave(upstream *u)
{
    int64_t idle_ms = u->source->proxy->config.idle_ms;
    if (--u->calls || !u->in_source || u->source->proxy->stage == PROXY_ENDING)
        return;
    if (u->retired || u->source->stage == SOURCE_RETIRED) {
        drop(u);
        return;
    }
    if (!idle_ms)
        return;
    u->refs++;
    if (segue_timer_start(u->source->proxy->runtime, idle_ms, idle_is_over, u,
                          upstream_unref, &u->idle) != SEGUE_OK)
        u->refs--;
}

void upstream_retire(upstream *u)
{
    u->retired = true;
    if (!u->calls)
        drop(u);
}

void upstream_stop_waiting(upstream *u)
{
    stop_timer(&u->again);
}

void upstream_free(upstream *u)
{
    segue_timer_free(u->idle);
    segue_timer_free(u->again);
    u->idle = u->again = NULL;
    let_go(u);
    upstream_unref(u);
}
