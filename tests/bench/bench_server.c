/* The server under load, as a user would write it: inline runtime, standard input and
 * output, public API. Its tools are those of tools.h, and
 *
 *   stats   the commits to the store since the last stats
 *
 * With a path the store is a wrapper that only counts: each call goes to the library's
 * own store. --full syncs each commit. The store's thread counts and the handler of stats
 * reads, so the counters are atomic.
 *
 * It ends with its input, unless calls are parked: then it must be killed.
 *
 *   bench_server [--cpu N]
 *       [--sqlite FILE | --full FILE | --redis URL | --postgres URL] */
#include "bench.h"

#include <segue/segue_ext.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "store/store.h"
#include "tools.h"

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

static segue_status open_store(bench_server *bench, const char *kind, const char *path,
                               segue_store **out)
{
    segue_store_options options = SEGUE_STORE_OPTIONS_INIT;
    segue_store_vtable vtable = SEGUE_STORE_VTABLE_INIT;
    options.max_bytes = BENCH_ROOM;
    if (!path)
        return segue_store_memory(&options, out);
    options.durability =
        strcmp(kind, "--full") ? SEGUE_DURABILITY_NORMAL : SEGUE_DURABILITY_FULL;
    segue_store **inner = &bench->counting.inner;
    segue_status status;
    if (!strcmp(kind, "--redis"))
        status = segue_store_redis(path, &options, inner, NULL);
    else if (!strcmp(kind, "--postgres"))
        status = segue_store_postgres(path, &options, inner, NULL);
    else
        status = segue_store_sqlite(path, &options, inner, NULL);
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

/* ---- the server ---- */

static void run_stats(void *user, segue_call *call)
{
    bench_server *bench = user;
    char text[80];
    int len = snprintf(text, sizeof text, "%lld %lld",
                       (long long)atomic_exchange(&bench->counting.commits, 0),
                       (long long)atomic_exchange(&bench->counting.rows, 0));
    bench_tools_answer(bench->runtime, call, text, (size_t)len);
}

/* The server has ended: its conversation has ended and no call runs. */
static void on_server_end(void *user)
{
    segue_runtime_stop(((bench_server *)user)->runtime);
}

static void set_options(bench_server *bench, segue_server_options *options)
{
    bench_tools_set_limits(options);
    options->user = bench;
    options->free_user = on_server_end;
}

int main(int argc, char **argv)
{
    static bench_server bench;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_server *server;
    segue_transport *transport;
    const char *path = NULL;
    /* leaves no server behind when the load is interrupted */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_pin(&argc, &argv);
    if (argc == 3)
        path = argv[2];
    set_options(&bench, &options);
    if (segue_runtime_new(NULL, &bench.runtime, NULL) != SEGUE_OK ||
        open_store(&bench, argv[1], path, &options.store) != SEGUE_OK ||
        segue_server_new(bench.runtime, &options, &server, NULL) != SEGUE_OK)
        bench_fail("the server cannot be made");
    segue_store_free(options.store);
    bench_tools_add(bench.runtime, server);
    bench_tools_add_one(server, "stats", run_stats, SEGUE_TASK_NEVER, &bench);
    if (segue_transport_stdio(bench.runtime, &transport) != SEGUE_OK ||
        segue_server_attach(server, transport, NULL) != SEGUE_OK)
        bench_fail("standard input and output cannot be served");
    segue_server_free(server);
    segue_runtime_run(bench.runtime);
    segue_runtime_free(bench.runtime);
    return 0;
}
