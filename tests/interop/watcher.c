/* Segue's client as a program that prints what it sees: it makes a number of calls of one
 * tool at once over HTTP, and prints a line for each event of request N, as it comes.
 *
 *   watcher [--ca FILE] [--unix PATH] [--era legacy] [--plain 1] [--calls COUNT]
 *           [--stay MS] URL TOOL ARGUMENTS
 *
 *   open                     N task ID          N progress P
 *   note METHOD              N segment S TEXT   N complete STATUS JSON
 *
 * --plain makes no tasks; --stay waits for notifications after the end of the calls.
 * It ends with 0 when all results came. */
#include <segue/segue.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_CALLS 1000

typedef struct watcher {
    segue_runtime *runtime;
    segue_session *session;
    segue_http_options http;
    segue_session_options options;
    int calls;
    int stay_ms;
    int done;
    int good;
    int is_closed;
} watcher;

typedef struct call {
    watcher *w;
    int number;
} call;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- callbacks ---- */

static void on_open(void *user, segue_session *session)
{
    (void)user;
    (void)session;
    puts("open");
}

static void on_closed(void *user, segue_session *session, const segue_error *error)
{
    (void)session;
    if (error)
        printf("closed %s\n", segue_error_read(error)->message);
    ((watcher *)user)->is_closed = 1;
}

static void on_notification(void *user, segue_session *session, const char *method,
                            const char *params, size_t len)
{
    (void)user;
    (void)session;
    (void)params;
    (void)len;
    printf("note %s\n", method);
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    (void)request;
    printf("%d task %s\n", ((call *)user)->number, task_id);
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    const char *text = segue_segment_text(segment, NULL);
    (void)request;
    printf("%d segment %" PRIu64 " %s\n", ((call *)user)->number,
           segue_segment_read(segment)->number, text ? text : "");
}

static void on_progress(void *user, segue_request *request, double progress, double total,
                        const char *message)
{
    (void)request;
    (void)total;
    (void)message;
    printf("%d progress %g\n", ((call *)user)->number, progress);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    call *c = user;
    (void)request;
    (void)len;
    printf("%d complete %s %s\n", c->number, segue_status_name(status),
           status == SEGUE_OK ? json : segue_error_read(error)->message);
    c->w->done++;
    c->w->good += status == SEGUE_OK;
}

/* ---- life ---- */

static segue_status open_session(watcher *w, const char *url)
{
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_transport *transport;
    segue_error *error = NULL;
    events.user = w;
    events.on_open = on_open;
    events.on_closed = on_closed;
    events.on_notification = on_notification;
    w->options.name = "segue-watcher";
    segue_status status =
        segue_transport_http(w->runtime, url, &w->http, &transport, &error);
    if (status != SEGUE_OK) {
        fprintf(stderr, "watcher: %s\n", segue_error_read(error)->message);
        segue_error_free(error);
        return status;
    }
    status = segue_session_open(w->runtime, transport, &w->options, &events, &w->session,
                                NULL);
    if (status != SEGUE_OK)
        segue_transport_free(transport);
    return status;
}

static segue_status start(call *c, const char *tool, const char *arguments)
{
    char params[4096];
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    int len = snprintf(params, sizeof params, "{\"name\":\"%s\",\"arguments\":%s}", tool,
                       arguments);
    events.user = c;
    events.on_task = on_task;
    events.on_segment = on_segment;
    events.on_progress = on_progress;
    events.on_complete = on_complete;
    return segue_request_start(c->w->session, "tools/call", params, (size_t)len, NULL,
                               &events, NULL, NULL);
}

static segue_status run(watcher *w, char **argv)
{
    static call calls[MAX_CALLS];
    segue_status status = open_session(w, argv[0]);
    for (int i = 0; i < w->calls && status == SEGUE_OK; i++) {
        calls[i] = (call){w, i};
        status = start(&calls[i], argv[1], argv[2]);
    }
    while (status == SEGUE_OK && w->done < w->calls && !w->is_closed)
        status = segue_runtime_dispatch(w->runtime, -1, 0, NULL);
    int64_t end = now_ms() + w->stay_ms;
    for (int64_t left; status == SEGUE_OK && (left = end - now_ms()) > 0;)
        status = segue_runtime_dispatch(w->runtime, left, 0, NULL);
    segue_session_close(w->session);
    while (status == SEGUE_OK && !w->is_closed)
        status = segue_runtime_dispatch(w->runtime, -1, 0, NULL);
    return status;
}

static int take(watcher *w, const char *name, const char *value)
{
    if (!strcmp(name, "--ca"))
        w->http.ca_file = value;
    else if (!strcmp(name, "--unix"))
        w->http.unix_socket = value;
    else if (!strcmp(name, "--era"))
        w->options.era = strcmp(value, "legacy") ? SEGUE_ERA_MODERN : SEGUE_ERA_LEGACY;
    else if (!strcmp(name, "--plain"))
        w->options.no_tasks = atoi(value);
    else if (!strcmp(name, "--calls"))
        w->calls = atoi(value) < MAX_CALLS ? atoi(value) : MAX_CALLS;
    else if (!strcmp(name, "--stay"))
        w->stay_ms = atoi(value);
    else
        return 0;
    return 1;
}

int main(int argc, char **argv)
{
    watcher w = {.calls = 1};
    int at = 1;
    w.http = SEGUE_HTTP_OPTIONS_INIT;
    w.options = SEGUE_SESSION_OPTIONS_INIT;
    w.http.proxy = "";
    while (at + 1 < argc && take(&w, argv[at], argv[at + 1]))
        at += 2;
    if (argc - at != 3) {
        fprintf(stderr, "usage: %s [OPTION VALUE...] URL TOOL ARGUMENTS\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    segue_status status = segue_runtime_new(NULL, &w.runtime, NULL);
    if (status == SEGUE_OK)
        status = run(&w, argv + at);
    if (status != SEGUE_OK)
        fprintf(stderr, "watcher: %s\n", segue_status_name(status));
    segue_session_free(w.session);
    segue_runtime_free(w.runtime);
    return status != SEGUE_OK || w.good != w.calls;
}
