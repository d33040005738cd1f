/* The server of the kill matrix.
 *
 *   kill_server STORE PORT PARENT
 *
 * STORE is "memory", a SQLite file or the URL of a Redis or PostgreSQL server, PORT where
 * to listen (0 = any), PARENT the process whose end ends the server. All such servers
 * have one seal key, as servers behind one address do.
 *
 * In the environment, SEGUE_HISTORY names the file of what the server did (history.h),
 * and SEGUE_TTL_MS says how long tasks and unused sessions live. Tasks are kept for a
 * quarter of that more. The default is long enough for every task of a busy machine.
 *
 * Standard output: "listens PORT" once it does, "let go ..." when a run of the tool was
 * told to stop, "ends RESUMED LET-GO" at its end. SIGTERM ends it as a service manager
 * would: it stops listening, ends its streams so that clients go elsewhere, and leaves
 * its tasks to the other servers. */
#include <segue/segue.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "history.h"
#include "weaver.h"

#define LONGEST_WAIT_MS 20 /* the longest time until a signal is noticed */
#define DRAIN_MS 1000
#define TTL_MS 600000
#define LEASE_MS 1000
/* The events that a GET stream keeps reach this size early in a soak, which judges
 * growth. The stream of a task has some 30 kB. */
#define REPLAY_BYTES 262144
#define PROMOTE_MS 200

static volatile sig_atomic_t told_to_end;

typedef struct host {
    segue_runtime *runtime;
    segue_listener *listener;
    weaver weaver;
    bool idle;
} host;

static int64_t ttl_ms(void)
{
    const char *text = getenv("SEGUE_TTL_MS");
    return text ? atoll(text) : TTL_MS;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void write_log(void *user, int32_t level, const char *text)
{
    (void)user;
    fprintf(stderr, "kill_server %d: %d: %s\n", (int)getpid(), (int)level, text);
}

/* ---- ask: a tool with a question ---- */

static void on_answer(void *user, segue_call *call, segue_status status, const char *json,
                      size_t len)
{
    (void)user;
    if (status == SEGUE_OK && segue_call_send_text(call, json, len, NULL) == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void ask(void *user, segue_call *call)
{
    static const char question[] =
        "{\"message\":\"Who?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
        "\"name\":{\"type\":\"string\"}}}}";
    (void)user;
    if (segue_call_require_input(call, "who", "elicitation/create", question,
                                 sizeof question - 1, on_answer, NULL, NULL,
                                 NULL) != SEGUE_OK)
        segue_call_free(call);
}

/* ---- effect: a tool that must take effect once for each key ---- */

static void effect(void *user, segue_call *call)
{
    const char *name;
    size_t len;
    (void)user;
    if (segue_call_argument_text(call, "call", &name, &len) == SEGUE_OK) {
        history_effect(name);
        history_made(name, 1, name, len);
        if (segue_call_send_text(call, name, len, NULL) == SEGUE_OK)
            segue_call_complete(call, NULL, NULL);
    }
    segue_call_free(call);
}

/* ---- the server ---- */

static segue_status add_tool(host *h, segue_server *server, const char *json,
                             segue_call_fn on_call, int32_t flags, int64_t promote_ms)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.user = &h->weaver;
    options.on_call = on_call;
    options.flags = SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESUMABLE | flags;
    options.promote_after_ms = promote_ms;
    options.task = SEGUE_TASK_MAY;
    options.ttl_ms = ttl_ms();
    options.poll_ms = 50;
    return segue_server_add(server, SEGUE_ITEM_TOOL, json, strlen(json), &options, NULL);
}

static segue_status add_tools(host *h, segue_server *server)
{
    segue_status status =
        add_tool(h, server, "{\"name\":\"weave\",\"inputSchema\":{\"type\":\"object\"}}",
                 weaver_call, SEGUE_TOOL_RESTARTABLE, 0);
    if (status == SEGUE_OK)
        status = add_tool(h, server,
                          "{\"name\":\"ask\",\"inputSchema\":{\"type\":\"object\"}}", ask,
                          SEGUE_TOOL_RESTARTABLE, 0);
    /* like weave, but not restartable: a crash ends it for good */
    if (status == SEGUE_OK)
        status = add_tool(h, server,
                          "{\"name\":\"once\",\"inputSchema\":{\"type\":\"object\"}}",
                          weaver_call, 0, 0);
    /* like weave, but each of its calls is stored, and becomes a task later */
    if (status == SEGUE_OK)
        status = add_tool(
            h, server, "{\"name\":\"late\",\"inputSchema\":{\"type\":\"object\"}}",
            weaver_call, SEGUE_TOOL_RESTARTABLE | SEGUE_TOOL_STORED, PROMOTE_MS);
    if (status == SEGUE_OK)
        status = add_tool(h, server,
                          "{\"name\":\"effect\",\"inputSchema\":{\"type\":\"object\"}}",
                          effect, 0, 0);
    return status;
}

static void went_idle(void *user)
{
    host *h = user;
    h->idle = true;
}

static void set_options(host *h, segue_server_options *options, segue_store *store)
{
    static const char seal_key[32] = "the kill matrix has nothing to h";
    *options = SEGUE_SERVER_OPTIONS_INIT;
    options->name = "kill-matrix";
    options->version = segue_version();
    options->store = store;
    options->user = h;
    options->on_idle = went_idle;
    options->seal_key = seal_key;
    options->seal_key_len = sizeof seal_key;
    options->dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
    options->draft_ways = SEGUE_WAY_FROM_START;
    options->max_tasks = 1000000;
    options->max_ttl_ms = ttl_ms();
    options->grace_ms = ttl_ms() / 4;
    options->lookups_per_second = 100000;
    options->fetches_per_second = 100000;
}

static segue_status listen_at(host *h, segue_server *server, int port,
                              segue_error **error)
{
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    options.port = port;
    options.drain_ms = DRAIN_MS;
    options.session_idle_ms = ttl_ms(); /* the clients of a killed server leave theirs */
    options.max_replay_bytes = REPLAY_BYTES;
    segue_status status = segue_server_listen(server, &options, &h->listener, error);
    if (status == SEGUE_OK) {
        const char *url = segue_listener_url(h->listener);
        printf("listens %d\n", atoi(strrchr(url, ':') + 1));
        fflush(stdout);
    }
    return status;
}

static segue_status open_store(const char *where, segue_store **store,
                               segue_error **error)
{
    segue_store_options options = SEGUE_STORE_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    if (!strcmp(where, "memory"))
        return segue_store_memory(&options, store);
    if (!strncmp(where, "postgresql://", 13))
        return segue_store_postgres(where, &options, store, error);
    return strstr(where, "://") ? segue_store_redis(where, &options, store, error)
                                : segue_store_sqlite(where, &options, store, error);
}

static segue_status open_server(host *h, const char *where, int port, segue_error **error)
{
    segue_server_options options;
    segue_server *server;
    segue_store *store;
    segue_status status = open_store(where, &store, error);
    if (status != SEGUE_OK)
        return status;
    set_options(h, &options, store);
    status = segue_server_new(h->runtime, &options, &server, NULL);
    segue_store_free(store);
    if (status != SEGUE_OK)
        return status;
    status = add_tools(h, server);
    if (status == SEGUE_OK)
        status = listen_at(h, server, port, error);
    segue_server_free(server); /* the server lives on while clients can reach it */
    return status;
}

static segue_status run(host *h)
{
    segue_status status = SEGUE_OK;
    int64_t deadline = 0;
    while (status == SEGUE_OK && !h->idle && !(deadline && now_ms() > deadline)) {
        if (told_to_end && !deadline) {
            deadline = now_ms() + DRAIN_MS;
            segue_listener_close(h->listener);
        }
        status = segue_runtime_dispatch(
            h->runtime, weaver_work(&h->weaver, LONGEST_WAIT_MS), 0, NULL);
    }
    return status;
}

static void note_end(int number)
{
    (void)number;
    told_to_end = 1;
}

/* Returns false when the parent ended before the call took effect. */
static bool stay_with(int parent)
{
    signal(SIGTERM, note_end);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == parent;
}

int main(int argc, char **argv)
{
    host h = {0};
    segue_error *error = NULL;
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    if (argc != 4) {
        fprintf(stderr, "usage: kill_server STORE PORT PARENT\n");
        return 2;
    }
    if (!stay_with(atoi(argv[3])))
        return 1;
    options.log = write_log;
    options.log_level = SEGUE_LOG_WARNING;
    segue_status status = segue_runtime_new(&options, &h.runtime, &error);
    if (status == SEGUE_OK)
        status = open_server(&h, argv[1], atoi(argv[2]), &error);
    if (status == SEGUE_OK)
        status = run(&h);
    if (status != SEGUE_OK)
        fprintf(stderr, "kill_server %d: %s %s\n", (int)getpid(),
                segue_status_name(status), segue_error_read(error)->message);
    segue_error_free(error);
    segue_listener_free(h.listener);
    segue_runtime_free(h.runtime);
    printf("ends %" PRIu64 " %" PRIu64 "\n", h.weaver.resumed, h.weaver.let_go);
    return status == SEGUE_OK ? 0 : 1;
}
