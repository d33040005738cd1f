/* A server on standard input and output with two tools. The tool `greet` answers at once.
 * The tool `count` is a task that streams its result and can continue after a crash.
 * Argument: a SQLite file in which tasks are stored. Without an argument, tasks are kept
 * in memory.
 *
 * The handlers here finish quickly. Long work belongs on a thread of your own, which may
 * call every segue_call_ function. */
#include <segue/segue.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void greet(void *user, segue_call *call)
{
    const char *name = "world";
    (void)user;
    segue_call_argument_text(call, "name", &name, NULL);
    size_t size = strlen(name) + sizeof "Hello, !";
    char *text = malloc(size);
    int len = text ? snprintf(text, size, "Hello, %s!", name) : -1;
    if (len >= 0 && segue_call_send_text(call, text, (size_t)len, NULL) == SEGUE_OK)
        /* the result is the text that the handler has sent */
        segue_call_complete(call, NULL, NULL);
    free(text);
    /* frees the call; fails the call if the handler did not complete it */
    segue_call_free(call);
}

static void count(void *user, segue_call *call)
{
    int64_t n = 3;
    uint64_t done = 0; /* number of segments that an earlier run has stored */
    segue_status status = SEGUE_OK;
    (void)user;
    segue_call_argument_int(call, "n", &n);
    segue_call_resumed(call, &done, NULL, NULL);
    for (int64_t i = (int64_t)done + 1; i <= n && i <= 1000 && status == SEGUE_OK; i++) {
        char text[32];
        int len = snprintf(text, sizeof text, "%" PRId64, i);
        status = segue_call_send_text(call, text, (size_t)len, NULL);
    }
    if (status == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static segue_status add_tool(segue_server *server, const char *json,
                             segue_call_fn on_call, int32_t flags, int32_t task)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = on_call;
    options.flags = flags;
    options.task = task;
    return segue_server_add(server, SEGUE_ITEM_TOOL, json, strlen(json), &options, NULL);
}

static void stop(void *runtime)
{
    segue_runtime_stop(runtime);
}

static segue_status serve(segue_runtime *runtime, segue_store *store)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_server *server;
    segue_transport *transport;
    options.name = "example";
    options.version = "1.0";
    options.store = store; /* NULL = the server keeps its tasks in memory */
    options.user = runtime;
    /* The program stops when the client has left. Unfinished tasks continue at the next
     * start of the program. */
    options.on_idle = stop;
    segue_status status = segue_server_new(runtime, &options, &server, NULL);
    if (status != SEGUE_OK)
        return status;
    status = add_tool(
        server,
        "{\"name\":\"greet\",\"inputSchema\":{\"type\":\"object\",\"properties\":"
        "{\"name\":{\"type\":\"string\"}}}}",
        greet, 0, SEGUE_TASK_NEVER);
    if (status == SEGUE_OK)
        status = add_tool(server,
                          "{\"name\":\"count\",\"inputSchema\":{\"type\":\"object\","
                          "\"properties\":{\"n\":{\"type\":\"integer\"}}}}",
                          count, SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE,
                          SEGUE_TASK_MAY);
    if (status == SEGUE_OK)
        status = segue_transport_stdio(runtime, &transport);
    if (status == SEGUE_OK)
        status = segue_server_attach(server, transport, NULL);
    /* frees the handle; the server itself lives while a client is connected */
    segue_server_free(server);
    return status == SEGUE_OK ? segue_runtime_run(runtime) : status;
}

int main(int argc, char **argv)
{
    segue_runtime *runtime = NULL;
    segue_store *store = NULL;
    segue_error *error = NULL;
    segue_status status = segue_runtime_new(NULL, &runtime, &error);
    if (status == SEGUE_OK && argc > 1)
        status = segue_store_sqlite(argv[1], NULL, &store, &error);
    if (status == SEGUE_OK)
        status = serve(runtime, store);
    if (status != SEGUE_OK)
        fprintf(stderr, "%s %s\n", segue_status_name(status),
                segue_error_read(error)->message);
    segue_error_free(error);
    segue_store_free(store);
    segue_runtime_free(runtime);
    return status == SEGUE_OK ? 0 : 1;
}
