/* The server of the demo: one tool, read_text, streams the lines of a file as the
 * segments of a task, at a steady pace.
 *
 *   demo_server STORE               on standard input and output
 *   demo_server STORE PORT PARENT   over HTTP; port 0 = a free one
 *
 * STORE is a SQLite file, which is created when it does not exist. PARENT is the process
 * whose end ends the server. When the conductor has put a gate beside STORE (gate.h), the
 * server sends no more lines than the gate allows.
 *
 * A run of the tool is a `reading`. It belongs to the list of the server and is freed by
 * the call's free_user, the last callback of the call. The tool is restartable: after a
 * crash it is called again with the same arguments, and goes on behind the last segment
 * that reached the store. So it must give every line the same number in every run.
 *
 * On standard input the server ends when its client ends, and leaves the unfinished task
 * in the store, for the server that the next client starts. Over HTTP clients come and
 * go, and the task goes on; SIGTERM ends the server. It reports on standard error:
 * "server start PID", "server listens at PORT", "server goes on after N". */
#include <segue/segue.h>

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"
#include "text.h"

#define DEFAULT_DURATION_MS 14000
#define LONGEST_PAUSE_MS 500
#define LONGEST_WAIT_MS 100 /* the longest time until a signal is noticed */
#define GATE_WAIT_MS 10     /* time until the gate is read again */

typedef struct reading {
    LIST_ENTRY(reading) link;
    segue_call *call; /* NULL once it has ended */
    text text;
    size_t next;  /* next line to send, from 0 */
    size_t first; /* the line that this run began with */
    int64_t started_ms;
    int64_t duration_ms; /* duration of the whole text */
    int blocked;         /* 1 = waiting for on_drain */
} reading;

static volatile sig_atomic_t told_to_end;

typedef struct server {
    segue_runtime *runtime;
    segue_listener *listener; /* NULL = the server uses standard input and output */
    LIST_HEAD(, reading) readings;
    int gate; /* descriptor of the gate (gate.h); -1 = no gate */
    int over;
} server;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the tool ---- */

static void end_reading(reading *r)
{
    segue_call_free(r->call);
    r->call = NULL;
}

/* Completes with an error that the caller of the tool can read, as opposed to an error of
 * the protocol. */
static void refuse(server *s, segue_call *call, const char *why)
{
    segue_content *content;
    if (segue_content_new(s->runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, why, strlen(why), NULL);
        segue_content_set_error(content, 1);
        segue_call_complete(call, content, NULL);
        segue_content_free(content);
    }
}

static int64_t due_ms(const reading *r)
{
    int64_t place = (int64_t)(r->next - r->first) + 1;
    return r->started_ms + r->duration_ms * place / (int64_t)r->text.count;
}

/* Sends the lines that are due and that the gate allows. */
static void go_on(server *s, reading *r)
{
    uint64_t gate = gate_get(s->gate);
    while (r->next < r->text.count) {
        const line *l = &r->text.lines[r->next];
        if (r->blocked || r->next >= gate || due_ms(r) > now_ms())
            return;
        segue_status status = segue_call_send_text(r->call, l->p, l->len, NULL);
        if (status == SEGUE_E_WOULD_BLOCK) {
            r->blocked = 1;
            return;
        }
        if (status != SEGUE_OK) {
            char why[96];
            snprintf(why, sizeof why, "line %zu: %s", r->next + 1,
                     status == SEGUE_E_INVALID ? "not UTF-8" : segue_status_name(status));
            refuse(s, r->call, why);
            end_reading(r);
            return;
        }
        r->next++;
    }
    segue_call_complete(r->call, NULL, NULL); /* the result consists of what was sent */
    end_reading(r);
}

static void on_drain(void *user, segue_call *call)
{
    reading *r = user;
    (void)call;
    r->blocked = 0;
}

static void on_cancel(void *user, segue_call *call)
{
    (void)call;
    end_reading(user);
}

static void reading_gone(void *user)
{
    reading *r = user;
    segue_call_free(r->call);
    LIST_REMOVE(r, link);
    text_free(&r->text);
    free(r);
}

static segue_status begin(server *s, reading *r, segue_call *call)
{
    uint64_t done = 0;
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    events.user = r;
    events.free_user = reading_gone;
    events.on_cancel = on_cancel;
    events.on_drain = on_drain;
    if (segue_call_resumed(call, &done, NULL, NULL) == SEGUE_OK)
        dprintf(STDERR_FILENO, "server goes on after %" PRIu64 "\n", done);
    r->call = call;
    r->first = r->next = (size_t)done;
    r->started_ms = now_ms();
    r->duration_ms = DEFAULT_DURATION_MS;
    segue_call_argument_int(call, "durationMs", &r->duration_ms);
    int64_t longest = (int64_t)r->text.count * LONGEST_PAUSE_MS;
    if (r->duration_ms > longest)
        r->duration_ms = longest;
    segue_status status = segue_call_watch(call, &events);
    if (status == SEGUE_OK)
        LIST_INSERT_HEAD(&s->readings, r, link);
    return status;
}

static void read_text(void *user, segue_call *call)
{
    server *s = user;
    const char *path = NULL;
    reading *r = calloc(1, sizeof *r);
    if (!r || segue_call_argument_text(call, "path", &path, NULL) != SEGUE_OK)
        refuse(s, call, "the path of a file is needed");
    else if (!text_load(&r->text, path))
        refuse(s, call, "the file cannot be read");
    else if (begin(s, r, call) == SEGUE_OK)
        return; /* the first line is sent when it is due */
    if (r)
        text_free(&r->text);
    free(r);
    segue_call_free(call);
}

/* ---- the loop ---- */

/* Works on all readings; returns the time until the next work is due. */
static int64_t work(server *s)
{
    int64_t wait = LONGEST_WAIT_MS;
    for (reading *r = LIST_FIRST(&s->readings), *next; r; r = next) {
        next = LIST_NEXT(r, link);
        if (r->call)
            go_on(s, r);
        if (!r->call || r->blocked)
            continue;
        int64_t left = due_ms(r) - now_ms();
        if (left <= 0)
            left = GATE_WAIT_MS;
        wait = left < wait ? left : wait;
    }
    return wait;
}

/* The client has left. A running task is released: the next server goes on with it. */
static void client_left(void *user)
{
    server *s = user;
    s->over = 1;
}

static segue_status add_tool(server *s, segue_server *handle)
{
    static const char json[] =
        "{\"name\":\"read_text\",\"description\":\"Streams the lines of a text file\","
        "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":"
        "\"string\"},\"durationMs\":{\"type\":\"integer\"}},\"required\":[\"path\"]}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.user = s;
    options.on_call = read_text;
    options.flags = SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE;
    options.task = SEGUE_TASK_MUST;
    return segue_server_add(handle, SEGUE_ITEM_TOOL, json, sizeof json - 1, &options,
                            NULL);
}

static segue_status attach_stdio(server *s, segue_server *handle)
{
    segue_transport *stdio;
    segue_status status = segue_transport_stdio(s->runtime, &stdio);
    if (status == SEGUE_OK &&
        (status = segue_server_attach(handle, stdio, NULL)) != SEGUE_OK)
        segue_transport_free(stdio);
    return status;
}

static segue_status listen_at(server *s, segue_server *handle, int port,
                              segue_error **error)
{
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    options.port = port;
    segue_status status = segue_server_listen(handle, &options, &s->listener, error);
    if (status == SEGUE_OK) {
        const char *url = segue_listener_url(s->listener);
        dprintf(STDERR_FILENO, "server listens at %d\n", atoi(strrchr(url, ':') + 1));
    }
    return status;
}

/* Opens the server and frees its handle: the server lives until no client can reach it
 * any more. */
static segue_status open_server(server *s, segue_store *store, int port,
                                segue_error **error)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_server *handle;
    options.name = "segue-demo";
    options.version = segue_version();
    options.store = store;
    /* a client that has no line yet can fetch from the first one on */
    options.draft_ways = SEGUE_WAY_FROM_START;
    options.user = s;
    options.on_idle = port < 0 ? client_left : NULL;
    segue_status status = segue_server_new(s->runtime, &options, &handle, NULL);
    if (status != SEGUE_OK)
        return status;
    status = add_tool(s, handle);
    if (status == SEGUE_OK)
        status = port < 0 ? attach_stdio(s, handle) : listen_at(s, handle, port, error);
    segue_server_free(handle);
    return status;
}

static void end(int number)
{
    (void)number;
    told_to_end = 1;
}

/* Returns false when the parent ended before the call took effect. */
static bool stay_with(int parent)
{
    signal(SIGTERM, end);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == parent;
}

int main(int argc, char **argv)
{
    server s = {.gate = -1};
    segue_store *store = NULL;
    segue_error *error = NULL;
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: demo_server STORE [PORT PARENT]\n");
        return 2;
    }
    if (argc == 4 && !stay_with(atoi(argv[3])))
        return 1;
    dprintf(STDERR_FILENO, "server start %d\n", (int)getpid());
    s.gate = gate_find(argv[1]);
    segue_status status = segue_runtime_new(NULL, &s.runtime, &error);
    if (status == SEGUE_OK)
        status = segue_store_sqlite(argv[1], NULL, &store, &error);
    if (status == SEGUE_OK)
        status = open_server(&s, store, argc == 4 ? atoi(argv[2]) : -1, &error);
    segue_store_free(store);
    if (status != SEGUE_OK)
        fprintf(stderr, "demo_server: %s %s\n", segue_status_name(status),
                segue_error_read(error)->message);
    segue_error_free(error);
    while (status == SEGUE_OK && !s.over && !told_to_end)
        status = segue_runtime_dispatch(s.runtime, work(&s), 0, NULL);
    segue_listener_free(s.listener);
    segue_runtime_free(s.runtime);
    if (s.gate >= 0)
        close(s.gate);
    return status == SEGUE_OK ? 0 : 1;
}
