/* The callbacks of a request fill its exchange. The check that started the exchange owns
 * it, and waits until `done` before it clears it. Callbacks free nothing. */
#include "probe.h"

#include <arpa/inet.h>
#include <segue/segue_auth.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *because(const char *format, ...)
{
    static char reason[400];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return reason;
}

/* ---- the session ---- */

static void on_open(void *user, segue_session *session)
{
    (void)session;
    ((peer *)user)->opens++;
}

static void on_closed(void *user, segue_session *session, const segue_error *error)
{
    (void)session;
    if (error)
        fprintf(stderr, "closed: %s\n", segue_error_read(error)->message);
    ((peer *)user)->closes++;
}

static void on_notification(void *user, segue_session *session, const char *method,
                            const char *params, size_t len)
{
    peer *p = user;
    (void)session;
    (void)params;
    (void)len;
    p->acknowledged += !strcmp(method, "notifications/subscriptions/acknowledged");
    p->list_changes += !strcmp(method, "notifications/tools/list_changed");
    p->logs += !strcmp(method, "notifications/message");
    p->updates += !strcmp(method, "notifications/resources/updated");
    p->resource_lists += !strcmp(method, "notifications/resources/list_changed");
    p->prompt_lists += !strcmp(method, "notifications/prompts/list_changed");
}

int is_http(const peer *p)
{
    return !strncmp(p->argv[0], "http:", 5);
}

int cut_connections(const peer *p)
{
    static const char request[] = "POST /cut HTTP/1.1\r\nHost: localhost\r\n"
                                  "Content-Length: 0\r\n\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET};
    char answer[64] = "";
    unsigned short port;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && sscanf(p->argv[0], "http://127.0.0.1:%hu/", &port) == 1) {
        address.sin_port = htons(port);
        if (!connect(fd, (struct sockaddr *)&address, sizeof address) &&
            send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0)
            recv(fd, answer, sizeof answer - 1, 0);
    }
    close(fd);
    return strstr(answer, " 204 ") != NULL;
}

static segue_status open_transport(peer *p, int32_t restart, segue_transport **transport)
{
    segue_spawn_options spawn = SEGUE_SPAWN_OPTIONS_INIT;
    if (is_http(p)) {
        segue_status status =
            segue_transport_http(p->runtime, p->argv[0], NULL, transport, NULL);
        if (status == SEGUE_OK && p->oauth)
            status = segue_transport_set_oauth(*transport, p->oauth, NULL);
        return status;
    }
    spawn.argv = p->argv;
    spawn.restart = restart;
    return segue_transport_spawn(p->runtime, &spawn, transport, NULL);
}

segue_status open_session(peer *p, int32_t era, int32_t restart,
                          int64_t request_timeout_ms)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_transport *transport;
    options.name = "segue-judge";
    options.version = segue_version();
    options.capabilities = "{\"elicitation\":{\"form\":{}},\"sampling\":{},\"roots\":{}}";
    options.era = era;
    options.probe_timeout_ms = PATIENCE_MS;
    options.request_timeout_ms = request_timeout_ms;
    events.user = p;
    events.on_open = on_open;
    events.on_closed = on_closed;
    events.on_notification = on_notification;
    p->opens = p->closes = p->acknowledged = p->list_changes = 0;
    segue_status status = open_transport(p, restart, &transport);
    if (status != SEGUE_OK)
        return status;
    status =
        segue_session_open(p->runtime, transport, &options, &events, &p->session, NULL);
    if (status != SEGUE_OK)
        segue_transport_free(transport);
    return status;
}

int wait_for(peer *p, const int *counter, int target)
{
    int64_t end = now_ms() + PATIENCE_MS;
    while (*counter < target && now_ms() < end)
        segue_runtime_dispatch(p->runtime, 100, 0, NULL);
    return *counter >= target;
}

void run_for(peer *p, int64_t ms)
{
    int64_t end = now_ms() + ms;
    for (int64_t left = ms; left > 0; left = end - now_ms())
        segue_runtime_dispatch(p->runtime, left, 0, NULL);
}

int close_session(peer *p)
{
    segue_session_close(p->session);
    segue_session_free(p->session);
    p->session = NULL;
    return wait_for(p, &p->closes, 1);
}

/* ---- requests ---- */

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    exchange *x = user;
    size_t len;
    const char *text = segue_segment_text(segment, &len);
    (void)request;
    if (!text)
        return;
    x->text = realloc(x->text, x->text_len + len + 1);
    if (!x->text)
        abort();
    memcpy(x->text + x->text_len, text, len + 1);
    x->text_len += len;
}

static void on_progress(void *user, segue_request *request, double progress, double total,
                        const char *message)
{
    exchange *x = user;
    (void)request;
    (void)total;
    (void)message;
    x->progress_in_order += progress == ++x->progress_count;
}

static void on_log(void *user, segue_request *request, const char *json, size_t len)
{
    (void)request;
    (void)json;
    (void)len;
    ((exchange *)user)->log_count++;
}

static const char *answer_to(const peer *p, const char *method)
{
    if (!strcmp(method, "roots/list"))
        return "{\"roots\":[{\"uri\":\"file:///judged\",\"name\":\"judged\"}]}";
    if (!strcmp(method, "sampling/createMessage"))
        return "{\"role\":\"assistant\",\"model\":\"judge\",\"content\":{\"type\":"
               "\"text\",\"text\":\"Something.\"}}";
    return p->declines ? "{\"action\":\"decline\"}"
                       : "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}";
}

static void on_input(void *user, segue_request *request, const char *key,
                     const char *method, const char *params, size_t len)
{
    exchange *x = user;
    const char *answer = answer_to(x->owner, method);
    (void)params;
    (void)len;
    x->asked++;
    segue_request_answer(request, key, answer, strlen(answer), NULL);
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    exchange *x = user;
    (void)request;
    x->tasks++;
    snprintf(x->task_id, sizeof x->task_id, "%s", task_id);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    exchange *x = user;
    (void)request;
    (void)len;
    x->status = status;
    x->code = segue_error_read(error)->rpc_code;
    x->json = strdup(json ? json : "");
    x->done++;
}

static void listen_to(peer *p, exchange *x, segue_request_events *events)
{
    *events = SEGUE_REQUEST_EVENTS_INIT;
    *x = (exchange){.owner = p};
    events->user = x;
    events->on_segment = on_segment;
    events->on_progress = on_progress;
    events->on_input = on_input;
    events->on_task = on_task;
    events->on_complete = on_complete;
}

segue_status watch(peer *p, exchange *x, segue_task *task)
{
    segue_request_events events;
    listen_to(p, x, &events);
    return segue_task_watch(task, NULL, &events, &x->request, NULL);
}

segue_status start(peer *p, exchange *x, const char *method, const char *params,
                   const segue_request_options *options)
{
    segue_request_events events;
    listen_to(p, x, &events);
    events.on_log = options && options->log_level ? on_log : NULL;
    return segue_request_start(p->session, method, params, params ? strlen(params) : 0,
                               options, &events, &x->request, NULL);
}

void clear(exchange *x)
{
    if (x->request && !x->done) {
        segue_request_cancel(x->request);
        wait_for(x->owner, &x->done, 1);
    }
    segue_request_free(x->request);
    free(x->json);
    free(x->text);
    *x = (exchange){0};
}

const char *ask(peer *p, exchange *x, const char *method, const char *params)
{
    segue_status status = start(p, x, method, params, NULL);
    if (status != SEGUE_OK)
        return because("%s was not taken: %s", method, segue_status_name(status));
    if (!wait_for(p, &x->done, 1))
        return because("%s did not end", method);
    if (x->status != SEGUE_OK)
        return because("%s ended with %s (%d)", method, segue_status_name(x->status),
                       (int)x->code);
    return NULL;
}

const char *expect(peer *p, const char *method, const char *params, const char *part)
{
    exchange x;
    const char *reason = ask(p, &x, method, params);
    if (!reason && !strstr(x.json, part))
        reason = because("%s is not in %.200s", part, x.json);
    clear(&x);
    return reason;
}

const char *expect_text(peer *p, const char *params, const char *text, size_t len)
{
    exchange x;
    const char *reason = ask(p, &x, "tools/call", params);
    if (!reason && (x.text_len != len || memcmp(x.text, text, len) != 0))
        reason = because("the text is %.200s", x.text ? x.text : "absent");
    clear(&x);
    return reason;
}

const char *greet(peer *p)
{
    return expect_text(p, "{\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"}}",
                       "Hello, Ada!", 11);
}

/* ---- telling ---- */

/* Prints a reason as part of a JSON string. */
static void print_escaped(const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar((unsigned char)*text < 0x20 ? ' ' : *text);
    }
}

void report(const char *what, const char *reason)
{
    static const char absent[] = "missing: ";
    int is_absent = reason && !strncmp(reason, absent, sizeof absent - 1);
    printf("{\"what\":\"%s\",\"state\":\"%s\"", what,
           is_absent ? "missing"
           : reason  ? "FAILED"
                     : "green");
    if (reason) {
        printf(",\"reason\":\"");
        print_escaped(is_absent ? reason + sizeof absent - 1 : reason);
        putchar('"');
    }
    puts("}");
    fflush(stdout);
}
