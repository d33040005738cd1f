/* The server under load over HTTP, as a user would write it: inline runtimes, public API,
 * all checks of heads on. Its tools are those of tools.h.
 *
 *   bench_http_server [--cpu N]
 *       [--runtimes N | --sqlite FILE PORT | --queue BYTES | --board PORT]
 *
 * It prints its port, and on a second line the time in ns (CLOCK_MONOTONIC) at which it
 * listened. --runtimes: this many runtimes share the port, each on a thread with its own
 * server and store. --sqlite: the store is a file, and the port is given; 0 = a free one.
 * --board: there is a task board at /board, and the port is given.
 * --queue: BYTES may wait for a client. With enough room no report replaces another.
 * It ends when it is killed. */
#include "bench.h"

#include <pthread.h>

#include "tools.h"

#define MAX_RUNTIMES 16
#define MAX_STREAMS 100000

typedef struct http_server {
    segue_runtime *runtime;
    segue_listener *listener;
    pthread_t thread;
} http_server;

static segue_status open_store(const char *path, segue_store **store)
{
    segue_store_options room = SEGUE_STORE_OPTIONS_INIT;
    room.max_bytes = BENCH_ROOM;
    return path ? segue_store_sqlite(path, &room, store, NULL)
                : segue_store_memory(&room, store);
}

/* path: a SQLite file; NULL = a store in memory. queue: 0 = as without the option. */
static void open_server(http_server *s, const segue_listen_options *listen,
                        const char *path, int64_t queue)
{
    segue_runtime_options runtime = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_server *server;
    bench_tools_set_limits(&options);
    runtime.max_queue_bytes = queue;
    if (segue_runtime_new(&runtime, &s->runtime, NULL) != SEGUE_OK ||
        open_store(path, &options.store) != SEGUE_OK ||
        segue_server_new(s->runtime, &options, &server, NULL) != SEGUE_OK)
        bench_fail("the server cannot be made");
    segue_store_free(options.store);
    bench_tools_add(s->runtime, server);
    if (segue_server_listen(server, listen, &s->listener, NULL) != SEGUE_OK)
        bench_fail("cannot listen");
    segue_server_free(server);
}

static void *run_server(void *user)
{
    segue_runtime_run(((http_server *)user)->runtime);
    return NULL;
}

static int port_of(const http_server *s)
{
    const char *colon = strrchr(segue_listener_url(s->listener), ':');
    return colon ? atoi(colon + 1) : 0;
}

int main(int argc, char **argv)
{
    static http_server servers[MAX_RUNTIMES];
    segue_listen_options listen = SEGUE_LISTEN_OPTIONS_INIT;
    const char *path = NULL;
    int64_t queue = 0;
    size_t count = 1;
    bench_pin(&argc, &argv);
    if (argc == 3 && strcmp(argv[1], "--runtimes") == 0)
        count = (size_t)atoi(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--queue") == 0)
        queue = atoll(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--board") == 0) {
        listen.board_path = "/board";
        listen.port = atoi(argv[2]);
    }
    if (argc == 4 && strcmp(argv[1], "--sqlite") == 0) {
        path = argv[2];
        listen.port = atoi(argv[3]);
    }
    if (count < 1 || count > MAX_RUNTIMES)
        bench_fail("1 to 16 runtimes");
    bench_allow_descriptors();
    listen.reuse_port = count > 1;
    listen.max_streams = MAX_STREAMS;
    for (size_t i = 0; i < count; i++) {
        open_server(&servers[i], &listen, path, queue);
        listen.port = port_of(&servers[0]);
    }
    printf("%d\n%lld\n", listen.port, (long long)bench_now_ns());
    fflush(stdout);
    for (size_t i = 1; i < count; i++)
        if (pthread_create(&servers[i].thread, NULL, run_server, &servers[i]) != 0)
            bench_fail("no thread");
    run_server(&servers[0]);
    return 0;
}
