/* The server that the official SDKs use: the tools of fixtures.h, the items of
 * fixture_items.h, and a few tools that make sense only here. One thread: the loop does
 * input and output, runs handlers, then the due jobs.
 *
 *   fixture_server [--page N] [--store FILE] [--caller NAME]
 *                  [--http ADDRESS [--port N] ...]
 *
 * With --caller every client is the principal of that name, and so may list tasks. Over
 * stdio the server ends when its only client has left. Over HTTP (options in listening.c)
 * it ends on SIGTERM, when calls have ended or their time is over; tasks that still run
 * then are left behind. */
#include "interop/fixture_items.h"
#include "interop/listening.h"
#include "support/fixtures.h"

#include <segue/segue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct host host;

/* A call of `steps`: it sends one progress message when it is due, then the next. */
typedef struct walk {
    struct walk *next;
    host *h;
    segue_call *call; /* NULL = the call has ended; the walk waits for free_user */
    int64_t due_ms;
    int64_t at;
    int64_t count;
    int64_t delay_ms;
} walk;

struct host {
    segue_runtime *runtime;
    segue_server *server;
    fixtures *fixtures;
    walk *walks;
    listening http;
    const char *caller;
    int is_over; /* 1 = all clients have left */
};

typedef struct options {
    int32_t page_size;
    const char *store_path;
} options;

/* Interval of the checks for signals. */
#define LOOK_MS 100
/* The exit status of `die`: whoever serves over HTTP starts the server again. */
#define DIED 3

static int64_t now_ms(void *user)
{
    struct timespec now;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void write_log(void *user, int32_t level, const char *text)
{
    (void)user;
    fprintf(stderr, "fixture_server: %d: %s\n", level, text);
}

/* ---- tools ---- */

static void complete(segue_call *call, segue_content *content)
{
    segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

static void run_add(void *user, segue_call *call)
{
    host *h = user;
    segue_content *content;
    int64_t a = 0, b = 0;
    char json[64];
    segue_call_argument_int(call, "a", &a);
    segue_call_argument_int(call, "b", &b);
    int len = snprintf(json, sizeof json, "{\"sum\":%lld}", (long long)(a + b));
    if (segue_content_new(h->runtime, &content) != SEGUE_OK)
        abort();
    segue_content_add_text(content, json, (size_t)len, NULL);
    segue_content_set_structured(content, json, (size_t)len, NULL);
    complete(call, content);
}

static void run_media(void *user, segue_call *call)
{
    static const char embedded[] =
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://x\","
        "\"mimeType\":\"text/plain\",\"text\":\"inside\"}}";
    static const char link[] = "{\"type\":\"resource_link\",\"uri\":\"test://x\","
                               "\"name\":\"x\"}";
    host *h = user;
    segue_content *content;
    if (segue_content_new(h->runtime, &content) != SEGUE_OK)
        abort();
    segue_content_add_blob(content, "image", "image/png", "\x89PNG", 4, NULL);
    segue_content_add_blob(content, "audio", "audio/wav", "RIFF", 4, NULL);
    segue_content_add_json(content, embedded, sizeof embedded - 1, NULL);
    segue_content_add_json(content, link, sizeof link - 1, NULL);
    complete(call, content);
}

static void run_fail(void *user, segue_call *call)
{
    host *h = user;
    segue_content *content;
    if (segue_content_new(h->runtime, &content) != SEGUE_OK)
        abort();
    segue_content_add_text(content, "failed on purpose", 17, NULL);
    segue_content_set_error(content, 1);
    complete(call, content);
}

/* Fails before the call is answered, while the client may have asked for a task. */
static void run_break(void *user, segue_call *call)
{
    (void)user;
    segue_call_fail(call, -32603, "Broken at once", "{\"hint\":\"on purpose\"}", 21,
                    NULL);
    segue_call_free(call);
}

static void run_repeat(void *user, segue_call *call)
{
    host *h = user;
    segue_content *content;
    const char *text = "";
    size_t len = 0;
    segue_call_argument_text(call, "text", &text, &len);
    if (segue_content_new(h->runtime, &content) != SEGUE_OK)
        abort();
    segue_content_add_text(content, text, len, NULL);
    complete(call, content);
}

static void walk_gone(void *user)
{
    walk *w = user;
    walk **at = &w->h->walks;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free(w);
}

static void run_steps(void *user, segue_call *call)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    walk *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->h = user;
    w->call = call;
    w->count = 3;
    w->delay_ms = 20;
    segue_call_argument_int(call, "n", &w->count);
    segue_call_argument_int(call, "delayMs", &w->delay_ms);
    w->due_ms = now_ms(NULL) + w->delay_ms;
    w->next = w->h->walks;
    w->h->walks = w;
    events.user = w;
    events.free_user = walk_gone;
    segue_call_watch(call, &events);
}

static void take_step(walk *w)
{
    segue_content *content;
    if (w->at < w->count) {
        w->at++;
        segue_call_progress(w->call, (double)w->at, (double)w->count, "a step", NULL);
        segue_call_log(w->call, "info", "{\"step\":true}", 13, NULL);
        w->due_ms += w->delay_ms;
        return;
    }
    if (segue_content_new(w->h->runtime, &content) != SEGUE_OK)
        abort();
    segue_content_add_text(content, "arrived", 7, NULL);
    complete(w->call, content);
    w->call = NULL;
}

/* Returns the milliseconds until the next step, or -1. */
static int64_t tick(host *h)
{
    int64_t next = fixtures_tick(h->fixtures);
    for (walk *w = h->walks; w; w = w->next) {
        if (w->call && segue_call_is_cancelled(w->call)) {
            segue_call_free(w->call);
            w->call = NULL;
        }
        while (w->call && w->due_ms <= now_ms(NULL))
            take_step(w);
        int64_t left = w->call ? w->due_ms - now_ms(NULL) : -1;
        if (w->call && (next < 0 || left < next))
            next = left < 0 ? 0 : left;
    }
    return next;
}

static segue_status add_tool(host *h, const char *json, segue_call_fn run, int32_t task)
{
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    item.user = h;
    item.task = task;
    item.on_call = run;
    return segue_server_add(h->server, SEGUE_ITEM_TOOL, json, strlen(json), &item, NULL);
}

/* Ends the process as a crash would. */
static void run_die(void *user, segue_call *call)
{
    (void)user;
    (void)call;
    _exit(DIED);
}

/* Adds the tool `extra`, or removes it again: the clients must be notified. */
static void run_toggle(void *user, segue_call *call)
{
    host *h = user;
    segue_content *content;
    if (segue_server_remove(h->server, SEGUE_ITEM_TOOL, "extra") != SEGUE_OK)
        add_tool(h, "{\"name\":\"extra\",\"inputSchema\":{\"type\":\"object\"}}",
                 run_fail, SEGUE_TASK_NEVER);
    if (segue_content_new(h->runtime, &content) != SEGUE_OK)
        abort();
    segue_content_add_text(content, "changed", 7, NULL);
    complete(call, content);
}

static const struct {
    const char *json;
    segue_call_fn run;
    int32_t task;
} tools[] = {
    {"{\"name\":\"add\",\"title\":\"Add\",\"inputSchema\":{\"type\":\"object\","
     "\"properties\":"
     "{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},\"required\":[\"a\","
     "\"b\"]},"
     "\"outputSchema\":{\"type\":\"object\",\"properties\":{\"sum\":{\"type\":"
     "\"integer\"}},"
     "\"required\":[\"sum\"]},\"annotations\":{\"readOnlyHint\":true}}",
     run_add, SEGUE_TASK_NEVER},
    {"{\"name\":\"repeat\",\"inputSchema\":{\"type\":\"object\"}}", run_repeat,
     SEGUE_TASK_NEVER},
    {"{\"name\":\"steps\",\"inputSchema\":{\"type\":\"object\"}}", run_steps,
     SEGUE_TASK_NEVER},
    {"{\"name\":\"media\",\"inputSchema\":{\"type\":\"object\"}}", run_media,
     SEGUE_TASK_NEVER},
    {"{\"name\":\"fail\",\"inputSchema\":{\"type\":\"object\"}}", run_fail,
     SEGUE_TASK_NEVER},
    {"{\"name\":\"break_at_once\",\"inputSchema\":{\"type\":\"object\"}}", run_break,
     SEGUE_TASK_MAY},
    {"{\"name\":\"toggle\",\"inputSchema\":{\"type\":\"object\"}}", run_toggle,
     SEGUE_TASK_NEVER},
    {"{\"name\":\"die\",\"inputSchema\":{\"type\":\"object\"}}", run_die,
     SEGUE_TASK_NEVER},
};

/* ---- life ---- */

static segue_status open_store(const char *path, segue_store **store)
{
    *store = NULL;
    return path ? segue_store_sqlite(path, NULL, store, NULL) : SEGUE_OK;
}

static segue_status name_caller(void *user, segue_transport *transport,
                                const char **principal)
{
    (void)transport;
    *principal = ((const host *)user)->caller;
    return SEGUE_OK;
}

/* Over HTTP clients come and go. */
static void on_idle(void *user)
{
    host *h = user;
    h->is_over = !h->http.listener || h->http.is_closing;
}

static segue_status open_stdio(host *h)
{
    segue_transport *transport;
    segue_status status = segue_transport_stdio(h->runtime, &transport);
    if (status == SEGUE_OK &&
        (status = segue_server_attach(h->server, transport, NULL)) != SEGUE_OK)
        segue_transport_free(transport);
    return status;
}

static segue_status open_server(host *h, const options *given)
{
    segue_server_options server = SEGUE_SERVER_OPTIONS_INIT;
    segue_store *store;
    segue_status status = open_store(given->store_path, &store);
    if (status != SEGUE_OK)
        return status;
    server.name = "segue-fixture";
    server.version = segue_version();
    server.title = "Fixture server";
    server.instructions = "Call greet first.";
    server.store = store;
    server.user = h;
    server.principal = h->caller ? name_caller : NULL;
    server.on_idle = on_idle;
    server.page_size = given->page_size;
    status = segue_server_new(h->runtime, &server, &h->server, NULL);
    segue_store_free(store);
    if (status == SEGUE_OK)
        status = fixtures_add(h->fixtures, h->runtime, h->server);
    if (status == SEGUE_OK)
        status = fixture_items_add(h->runtime, h->server);
    for (size_t i = 0; status == SEGUE_OK && i < sizeof tools / sizeof *tools; i++)
        status = add_tool(h, tools[i].json, tools[i].run, tools[i].task);
    if (status == SEGUE_OK)
        status = h->http.is_wanted ? listening_begin(&h->http, h->server) : open_stdio(h);
    return status;
}

static void serve(host *h)
{
    while (!h->is_over) {
        int64_t wait = tick(h);
        if (h->http.listener && (wait < 0 || wait > LOOK_MS))
            wait = LOOK_MS;
        if (listening_tick(&h->http, now_ms(NULL)) ||
            segue_runtime_dispatch(h->runtime, wait, 0, NULL) != SEGUE_OK)
            return;
    }
}

static int read_options(int argc, char **argv, host *h, options *given)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && !strcmp(argv[i], "--page"))
            given->page_size = atoi(argv[i + 1]);
        else if (i + 1 < argc && !strcmp(argv[i], "--store"))
            given->store_path = argv[i + 1];
        else if (i + 1 < argc && !strcmp(argv[i], "--caller"))
            h->caller = argv[i + 1];
        else if (i + 1 == argc || !listening_take(&h->http, argv[i], argv[i + 1]))
            return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    options given = {0};
    host h = {0};
    segue_runtime_options runtime = SEGUE_RUNTIME_OPTIONS_INIT;
    if (!read_options(argc, argv, &h, &given)) {
        fprintf(stderr,
                "usage: %s [--page N] [--store FILE] [--caller NAME]"
                " [--http ADDRESS [--port N] ...]\n",
                argv[0]);
        return 2;
    }
    runtime.log = write_log;
    runtime.log_level = SEGUE_LOG_WARNING;
    segue_status status = segue_runtime_new(&runtime, &h.runtime, NULL);
    if (status == SEGUE_OK) {
        h.fixtures = fixtures_new(now_ms, NULL);
        status = open_server(&h, &given);
        if (status == SEGUE_OK)
            serve(&h);
    }
    if (status != SEGUE_OK)
        fprintf(stderr, "fixture_server: %s\n", segue_status_name(status));
    segue_listener_free(h.http.listener);
    segue_server_free(h.server);
    segue_runtime_free(h.runtime);
    fixtures_free(h.fixtures);
    return status != SEGUE_OK;
}
