/* Serving: the listener with its paths, or standard input and output, and the end of the
 * program. */
#include "service.h"

#include <stdio.h>
#include <string.h>

void proxy_end(proxy *p, int status)
{
    if (p->stage == PROXY_ENDING)
        return;
    proxy_enter(p, PROXY_ENDING);
    p->status = status;
    segue_runtime_stop(p->runtime);
}

int exit_status(segue_status status)
{
    return status == SEGUE_E_INVALID ? 2 : 1;
}

static void drain_is_over(void *user)
{
    proxy_end(user, 0);
}

void serve_drain(proxy *p)
{
    if (p->stage == PROXY_ENDING)
        return;
    manager_tell(p, "STOPPING=1");
    if (!p->listener || p->stage == PROXY_DRAINING) {
        proxy_end(p, 0);
        return;
    }
    proxy_enter(p, PROXY_DRAINING);
    segue_listener_close(p->listener);
    segue_timer_start(p->runtime, p->config.drain_ms, drain_is_over, p, NULL, NULL);
}

/* ---- serving ---- */

static segue_status serve_stdio(service *v, segue_error **error)
{
    segue_transport *transport;
    segue_status status = segue_transport_stdio(v->proxy->runtime, &transport);
    if (status != SEGUE_OK)
        return status;
    status = segue_server_attach(v->server, transport, error);
    if (status != SEGUE_OK)
        segue_transport_free(transport);
    return status;
}

/* The first path is the one with which the listener begins. */
static segue_status serve_http(service *v, segue_error **error)
{
    proxy *p = v->proxy;
    segue_listen_options options = p->config.http;
    if (p->listener)
        return segue_listener_add(p->listener, v->server, v->path, error);
    options.path = v->path;
    segue_status status = segue_server_listen(v->server, &options, &p->listener, error);
    if (status == SEGUE_OK)
        p->base_len = strlen(segue_listener_url(p->listener)) - strlen(v->path);
    return status;
}

static void serve(service *v)
{
    proxy *p = v->proxy;
    segue_error *error = NULL;
    segue_status status =
        p->config.listen ? serve_http(v, &error) : serve_stdio(v, &error);
    if (status == SEGUE_OK)
        service_enter(v, SERVICE_OPEN);
    else
        log_event(SEGUE_LOG_ERROR, "serve_failed", NULL, "cannot serve%s%s: %s",
                  p->listener ? " " : "", p->listener ? v->path : "",
                  error ? segue_error_read(error)->message : segue_status_name(status));
    segue_error_free(error);
    if (status != SEGUE_OK && !p->listener)
        proxy_end(p, exit_status(status));
}

static void tell(service *v)
{
    const proxy *p = v->proxy;
    const char *url = segue_listener_url(p->listener);
    service_enter(v, SERVICE_TOLD);
    if (!p->listener)
        return;
    fprintf(stderr, "segue-proxy: serving %.*s%s\n", (int)p->base_len, url, v->path);
    log_event(SEGUE_LOG_INFO, "serving", NULL, "serving %.*s%s", (int)p->base_len, url,
              v->path);
}

/* Serves each path whose sources have settled. All paths are served before the first one
 * is told, so that who reads that line finds all of them. */
static void serve_all(proxy *p)
{
    for (service *v = p->services; v; v = v->next) {
        if (v->stage != SERVICE_MADE || !v->sources || !service_has_settled(v))
            continue;
        if (v->server || service_make_server(v, NULL))
            serve(v);
        if (p->stage == PROXY_ENDING)
            return;
    }
    for (service *v = p->services; v; v = v->next)
        if (v->stage == SERVICE_OPEN)
            tell(v);
}

void serve_new_paths(proxy *p)
{
    if (p->stage == PROXY_SERVING && p->listener)
        serve_all(p);
}

/* ---- settling ---- */

void serve_tell_failure(const source *s)
{
    const upstream *u = s->upstreams;
    log_event(SEGUE_LOG_ERROR, "upstream_failed", s->config->name,
              "the server cannot be used: %s", u->last_error);
    for (size_t i = upstream_first_error(u); i < u->error_count; i++)
        log_event(SEGUE_LOG_ERROR, "stderr", s->config->name, "| %s",
                  u->errors[i % STDERR_LINES]);
}

void serve_when_settled(proxy *p)
{
    bool some = false;
    if (p->stage != PROXY_STARTING)
        return;
    for (source *s = source_next(p, NULL); s; s = source_next(p, s)) {
        if (!source_has_settled(s))
            return;
        some |= s->stage != SOURCE_FAILED;
    }
    for (source *s = source_next(p, NULL); s; s = source_next(p, s))
        if (s->stage == SOURCE_FAILED && !p->config.check) /* --check prints it */
            serve_tell_failure(s);
    if (p->config.check)
        proxy_end(p, check_print(p) ? 0 : 3);
    else if (!some && !p->services->sources->next && !p->config.listen)
        proxy_end(p, 3); /* the host reports the failure, and starts the proxy again */
    else {
        proxy_enter(p, PROXY_SERVING);
        serve_all(p);
        readiness_update(p);
        if (p->stage == PROXY_SERVING)
            manager_tell(p, "READY=1");
    }
}
