/* The server under load, as a user would write it: inline runtime, standard input and
 * output, public API. Its tools:
 *
 *   echo    answers at once with its argument `text`
 *   stream  a task: `n` text segments of `bytes` bytes, as fast as they are taken
 *   park    a task that never ends; its call is never freed
 *   stats   what the store was asked to commit since the last stats
 *
 * With --sqlite the store is ours, and only counts: each call goes to the library's own
 * store. The store's thread counts and the handler of stats reads, hence atomics.
 *
 * It ends with its input, unless calls are parked: then it has to be killed.
 *
 *   bench_server [--cpu N] [--sqlite FILE] */
#include "bench.h"

#include <segue/segue_ext.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "store/store.h"

#define MAX_STREAM_BYTES 4096
#define ROOM ((int64_t)4 << 30)

typedef struct counting_store {
    segue_store *inner;
    atomic_llong commits;
    atomic_llong rows;
} counting_store;

typedef struct bench_server {
    segue_runtime *runtime;
    counting_store counting;
} bench_server;

/* ---- store ---- */

static segue_status count_commit(void *self, const segue_store_write *writes,
                                 size_t count)
{
    counting_store *store = self;
    atomic_fetch_add(&store->commits, 1);
    atomic_fetch_add(&store->rows, (long long)count);
    return sgi_store_commit(store->inner, writes, count);
}

static segue_status pass_find(void *self, const char *task_id, const uint8_t *key,
                              segue_store_record_fn fn, void *user)
{
    return sgi_store_find(((counting_store *)self)->inner, task_id, key, fn, user);
}

static segue_status pass_read(void *self, const uint8_t *id, uint64_t after,
                              segue_store_entry_fn fn, void *user)
{
    return sgi_store_read(((counting_store *)self)->inner, id, after, fn, user);
}

static segue_status pass_claim(void *self, segue_store_record_fn fn, void *user)
{
    return sgi_store_claim(((counting_store *)self)->inner, fn, user);
}

static segue_status pass_purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    return sgi_store_purge(((counting_store *)self)->inner, now_ms, next_ms);
}

static void free_inner(void *self)
{
    segue_store_free(((counting_store *)self)->inner);
}

static segue_status open_store(bench_server *bench, const char *path, segue_store **out)
{
    segue_store_options options;
    segue_store_vtable vtable;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_STORE_OPTIONS);
    segue_struct_init(&vtable, sizeof vtable, SEGUE_STRUCT_STORE_VTABLE);
    options.max_bytes = ROOM;
    if (!path)
        return segue_store_memory(&options, out);
    segue_status status =
        segue_store_sqlite(path, &options, &bench->counting.inner, NULL);
    if (status != SEGUE_OK)
        return status;
    vtable.blocking = 1;
    vtable.commit = count_commit;
    vtable.find = pass_find;
    vtable.read = pass_read;
    vtable.claim = pass_claim;
    vtable.purge = pass_purge;
    vtable.free = free_inner;
    return segue_store_custom(&vtable, &bench->counting, NULL, out);
}

/* ---- tools ---- */

static void complete_text(bench_server *bench, segue_call *call, const char *text,
                          size_t len)
{
    segue_content *content;
    if (segue_content_new(bench->runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, text, len);
        segue_call_complete(call, content);
        segue_content_free(content);
    }
    segue_call_free(call);
}

static void run_echo(void *user, segue_call *call)
{
    const char *text = "";
    size_t len = 0;
    segue_call_argument_text(call, "text", &text, &len);
    complete_text(user, call, text, len);
}

static void run_stats(void *user, segue_call *call)
{
    bench_server *bench = user;
    char text[80];
    int len = snprintf(text, sizeof text, "%lld %lld",
                       (long long)atomic_exchange(&bench->counting.commits, 0),
                       (long long)atomic_exchange(&bench->counting.rows, 0));
    complete_text(bench, call, text, (size_t)len);
}

static void run_park(void *user, segue_call *call)
{
    (void)user;
    (void)call;
}

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
        status = segue_call_send_text(call, s->text, s->bytes);
        s->left -= status == SEGUE_OK;
    }
    if (status == SEGUE_E_WOULD_BLOCK)
        return; /* on_drain goes on */
    if (status == SEGUE_OK)
        segue_call_complete(call, NULL);
    segue_call_free(call);
}

static void run_stream(void *user, segue_call *call)
{
    int64_t n = 0;
    int64_t bytes = 0;
    segue_call_events events;
    stream *s = calloc(1, sizeof *s);
    (void)user;
    segue_call_argument_int(call, "n", &n);
    segue_call_argument_int(call, "bytes", &bytes);
    if (!s || n < 0 || bytes < 0 || bytes > MAX_STREAM_BYTES)
        bench_fail("bad arguments of stream");
    s->left = n;
    s->bytes = (size_t)bytes;
    memset(s->text, 't', s->bytes);
    segue_struct_init(&events, sizeof events, SEGUE_STRUCT_CALL_EVENTS);
    events.user = s;
    events.free_user = free;
    events.on_drain = send_segments;
    if (segue_call_watch(call, &events) != SEGUE_OK)
        bench_fail("segue_call_watch");
    send_segments(s, call);
}

/* ---- the server ---- */

static void add_tool(bench_server *bench, segue_server *server, const char *name,
                     segue_call_fn run, int32_t task)
{
    char json[128];
    segue_item_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_ITEM_OPTIONS);
    options.user = bench;
    options.on_call = run;
    options.task = task;
    int len = snprintf(json, sizeof json,
                       "{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}", name);
    if (segue_server_add(server, SEGUE_ITEM_TOOL, json, (size_t)len, &options, NULL) !=
        SEGUE_OK)
        bench_fail("segue_server_add");
}

/* The server has gone: its conversation has ended and no call runs. */
static void on_server_end(void *user)
{
    segue_runtime_stop(((bench_server *)user)->runtime);
}

static void set_options(bench_server *bench, segue_server_options *options)
{
    options->user = bench;
    options->free_user = on_server_end;
    options->max_log_bytes = ROOM;
    options->max_segments = INT64_MAX;
    options->max_tasks = 1000000;
}

int main(int argc, char **argv)
{
    static bench_server bench;
    segue_server_options options;
    segue_server *server;
    segue_transport *transport;
    const char *path = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no stray server when the load is interrupted */
    bench_pin(&argc, &argv);
    if (argc == 3 && strcmp(argv[1], "--sqlite") == 0)
        path = argv[2];
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_SERVER_OPTIONS);
    set_options(&bench, &options);
    if (segue_runtime_new(NULL, &bench.runtime, NULL) != SEGUE_OK ||
        open_store(&bench, path, &options.store) != SEGUE_OK ||
        segue_server_new(bench.runtime, &options, &server) != SEGUE_OK)
        bench_fail("the server cannot be made");
    segue_store_free(options.store);
    add_tool(&bench, server, "echo", run_echo, SEGUE_TASK_NEVER);
    add_tool(&bench, server, "stats", run_stats, SEGUE_TASK_NEVER);
    add_tool(&bench, server, "stream", run_stream, SEGUE_TASK_MUST);
    add_tool(&bench, server, "park", run_park, SEGUE_TASK_MUST);
    if (segue_transport_stdio(bench.runtime, &transport) != SEGUE_OK ||
        segue_server_attach(server, transport) != SEGUE_OK)
        bench_fail("standard input and output cannot be served");
    segue_server_free(server);
    segue_runtime_run(bench.runtime);
    segue_runtime_free(bench.runtime);
    return 0;
}
