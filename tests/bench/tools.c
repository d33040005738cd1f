#include "tools.h"

#include <pthread.h>
#include <segue/segue.h>
#include <unistd.h>

#include "bench.h"

#define MAX_STREAM_BYTES 4096
#define TICK_BYTES 16

void bench_tools_answer(segue_runtime *runtime, segue_call *call, const char *text,
                        size_t len)
{
    segue_content *content;
    if (segue_content_new(runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, text, len, NULL);
        segue_call_complete(call, content, NULL);
        segue_content_free(content);
    }
    segue_call_free(call);
}

static void run_echo(void *user, segue_call *call)
{
    const char *text = "";
    size_t len = 0;
    segue_call_argument_text(call, "text", &text, &len);
    bench_tools_answer(user, call, text, len);
}

static void run_work(void *user, segue_call *call)
{
    int64_t us = 0;
    segue_call_argument_int(call, "us", &us);
    for (int64_t end = bench_now_ns() + us * 1000; bench_now_ns() < end;) {
    }
    run_echo(user, call);
}

/* Sends all reports before it returns; the limits of these servers leave room. */
static void run_report(void *user, segue_call *call)
{
    int64_t n = 0;
    segue_call_argument_int(call, "n", &n);
    for (int64_t at = 1; at <= n; at++)
        if (segue_call_progress(call, (double)at, (double)n, NULL, NULL) != SEGUE_OK)
            bench_fail("segue_call_progress");
    bench_tools_answer(user, call, "done", 4);
}

static void run_park(void *user, segue_call *call)
{
    (void)user;
    (void)call;
}

/* ---- stream ---- */

typedef struct stream {
    int64_t left;
    size_t bytes;
    char text[MAX_STREAM_BYTES];
} stream;

static void send_segments(void *user, segue_call *call)
{
    stream *s = user;
    segue_status status = SEGUE_OK;
    while (s->left && status == SEGUE_OK) {
        status = segue_call_send_text(call, s->text, s->bytes, NULL);
        s->left -= status == SEGUE_OK;
    }
    if (status == SEGUE_E_WOULD_BLOCK)
        return; /* on_drain continues */
    if (status == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void run_stream(void *user, segue_call *call)
{
    int64_t n = 0;
    int64_t bytes = 0;
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    stream *s = calloc(1, sizeof *s);
    (void)user;
    segue_call_argument_int(call, "n", &n);
    segue_call_argument_int(call, "bytes", &bytes);
    if (!s || n < 0 || bytes < 0 || bytes > MAX_STREAM_BYTES)
        bench_fail("bad arguments of stream");
    s->left = n;
    s->bytes = (size_t)bytes;
    memset(s->text, 't', s->bytes);
    events.user = s;
    events.free_user = free;
    events.on_drain = send_segments;
    if (segue_call_watch(call, &events) != SEGUE_OK)
        bench_fail("segue_call_watch");
    send_segments(s, call);
}

/* ---- tick ---- */

typedef struct ticker {
    segue_call *call;
    struct timespec pause;
} ticker;

static void *tick(void *user)
{
    char text[TICK_BYTES + 1];
    ticker *t = user;
    segue_status status = SEGUE_OK;
    snprintf(text, sizeof text, "tick %11d", (int)getpid());
    while (status == SEGUE_OK || status == SEGUE_E_WOULD_BLOCK) {
        nanosleep(&t->pause, NULL);
        status = segue_call_send_text(t->call, text, TICK_BYTES, NULL);
    }
    segue_call_free(t->call);
    free(t);
    return NULL;
}

static void run_tick(void *user, segue_call *call)
{
    pthread_t thread;
    int64_t us = 0;
    ticker *t = calloc(1, sizeof *t);
    (void)user;
    segue_call_argument_int(call, "us", &us);
    if (!t || us < 1 || us >= 1000000)
        bench_fail("bad arguments of tick");
    t->call = call;
    t->pause.tv_nsec = us * 1000;
    if (pthread_create(&thread, NULL, tick, t) != 0)
        bench_fail("no thread");
    pthread_detach(thread);
}

/* ---- a server ---- */

void bench_tools_add_one(segue_server *server, const char *name, segue_call_fn run,
                         int32_t task, void *user)
{
    char json[128];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.user = user;
    options.on_call = run;
    options.task = task;
    /* without tasks a tool that must be one would not stream */
    if (task == SEGUE_TASK_MUST)
        options.flags = SEGUE_TOOL_INCREMENTAL;
    if (run == run_park || run == run_tick) /* they go on when the server was killed */
        options.flags |= SEGUE_TOOL_RESTARTABLE;
    int len = snprintf(json, sizeof json,
                       "{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}", name);
    if (segue_server_add(server, SEGUE_ITEM_TOOL, json, (size_t)len, &options, NULL) !=
        SEGUE_OK)
        bench_fail("segue_server_add");
}

void bench_tools_add(segue_runtime *runtime, segue_server *server)
{
    bench_tools_add_one(server, "echo", run_echo, SEGUE_TASK_NEVER, runtime);
    bench_tools_add_one(server, "work", run_work, SEGUE_TASK_NEVER, runtime);
    bench_tools_add_one(server, "report", run_report, SEGUE_TASK_NEVER, runtime);
    bench_tools_add_one(server, "stream", run_stream, SEGUE_TASK_MUST, NULL);
    bench_tools_add_one(server, "tick", run_tick, SEGUE_TASK_MUST, NULL);
    bench_tools_add_one(server, "park", run_park, SEGUE_TASK_MUST, NULL);
}

void bench_tools_set_limits(segue_server_options *options)
{
    options->max_log_bytes = BENCH_ROOM;
    options->max_segments = INT64_MAX;
    options->max_tasks = 1000000;
}
