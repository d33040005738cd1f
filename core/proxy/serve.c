/* The server for the proxy's clients: its name, its listener or standard input and
 * output, and the end of the program. */
#include "client.h"
#include "handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void proxy_end(proxy *p, int status)
{
    if (p->ending)
        return;
    p->ending = true;
    p->status = status;
    segue_runtime_stop(p->runtime);
}

int exit_status(segue_status status)
{
    return status == SEGUE_E_INVALID ? 2 : 1;
}

/* ---- the server ---- */

static void on_idle(void *user)
{
    proxy *p = user;
    if (!p->config.listen || p->draining)
        proxy_end(p, p->status);
}

static void drain_is_over(void *user)
{
    proxy_end(user, 0);
}

void serve_drain(proxy *p)
{
    if (!p->listener || p->draining) {
        proxy_end(p, 0);
        return;
    }
    p->draining = true;
    segue_listener_close(p->listener);
    segue_timer_start(p->runtime, p->config.drain_ms, drain_is_over, p, NULL, NULL);
}

/* Determines the principal of an errand; a segue_principal_fn. Other clients without a
 * token are anonymous. */
static segue_status on_principal(void *user, segue_transport *transport,
                                 const char **principal)
{
    *principal = handle_take_principal(user, transport);
    return SEGUE_OK;
}

bool serve_make(proxy *p, const source *only)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_error *error = NULL;
    json peer = {only ? only->peer : NULL, only && only->peer ? strlen(only->peer) : 0};
    json info = json_get(peer, "serverInfo");
    char *texts[] = {json_string(json_get(info, "name")),
                     json_string(json_get(info, "version")),
                     json_string(json_get(info, "title")),
                     json_string(json_get(peer, "instructions"))};
    options.name = texts[0] ? texts[0] : "segue-proxy";
    options.version = texts[1] ? texts[1] : segue_version();
    options.title = texts[2];
    options.instructions = texts[3];
    options.store = p->store;
    options.seal_key = p->config.has_seal_key ? p->config.seal_key : NULL;
    options.seal_key_len = p->config.has_seal_key ? SEAL_KEY_SIZE : 0;
    /* the lowest level, so that clients also get the log messages that an upstream sends
     * unasked */
    options.log_level = "debug";
    options.user = p;
    options.on_idle = on_idle;
    options.principal = p->config.handle ? on_principal : NULL;
    segue_status status = segue_server_new(p->runtime, &options, &p->server, &error);
    if (status != SEGUE_OK) {
        log_event(SEGUE_LOG_ERROR, "server_failed", NULL, "%s",
                  segue_error_read(error)->message);
        segue_error_free(error);
        proxy_end(p, 1);
    }
    if (status == SEGUE_OK && p->config.handle)
        handles_add_tools(p);
    if (status == SEGUE_OK && !clients_watch(p))
        log_event(SEGUE_LOG_ERROR, "server_failed", NULL, "out of memory");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    return status == SEGUE_OK;
}

/* ---- serving ---- */

static segue_status serve_stdio(proxy *p, segue_error **error)
{
    segue_transport *transport;
    segue_status status = segue_transport_stdio(p->runtime, &transport);
    if (status != SEGUE_OK)
        return status;
    status = segue_server_attach(p->server, transport, error);
    if (status != SEGUE_OK)
        segue_transport_free(transport);
    return status;
}

static segue_status serve_http(proxy *p, segue_error **error)
{
    segue_status status =
        segue_server_listen(p->server, &p->config.http, &p->listener, error);
    if (status == SEGUE_OK) {
        fprintf(stderr, "segue-proxy: serving %s\n", segue_listener_url(p->listener));
        log_event(SEGUE_LOG_INFO, "serving", NULL, "serving %s",
                  segue_listener_url(p->listener));
        readiness_update(p);
    }
    return status;
}

static void serve(proxy *p)
{
    segue_error *error = NULL;
    p->serving = true;
    segue_status status =
        p->config.listen ? serve_http(p, &error) : serve_stdio(p, &error);
    if (status != SEGUE_OK) {
        log_event(SEGUE_LOG_ERROR, "serve_failed", NULL, "cannot serve: %s",
                  error ? segue_error_read(error)->message : segue_status_name(status));
        proxy_end(p, exit_status(status));
    }
    segue_error_free(error);
}

/* ---- settling ---- */

void serve_tell_failure(const source *s)
{
    const upstream *u = s->upstreams;
    log_event(SEGUE_LOG_ERROR, "upstream_failed", s->config->name,
              "the server cannot be used: %s", u->last_error);
    size_t count = u->error_count < STDERR_LINES ? u->error_count : STDERR_LINES;
    for (size_t i = u->error_count - count; i < u->error_count; i++)
        log_event(SEGUE_LOG_ERROR, "stderr", s->config->name, "| %s",
                  u->errors[i % STDERR_LINES]);
}

void serve_when_settled(proxy *p)
{
    bool some = false;
    if (p->serving || p->ending)
        return;
    for (source *s = p->sources; s; s = s->next) {
        if (!s->settled)
            return;
        some |= !s->failed;
    }
    for (source *s = p->sources; s; s = s->next)
        if (s->failed)
            serve_tell_failure(s);
    if (p->config.check)
        proxy_end(p, check_print(p) ? 0 : 3);
    else if (!some && !p->sources->next && !p->config.listen)
        proxy_end(p, 3); /* the host reports the failure, and starts the proxy again */
    else if (p->server || serve_make(p, NULL))
        serve(p);
}
