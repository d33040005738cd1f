/* An HTTP server with two tools. The tool `greet` answers at once. The tool `count`
 * streams its result as a task, or sends progress when the call is no task. The path
 * /health answers while the server runs. The program prints the server's URL and stops on
 * an interrupt.
 *
 * Arguments: the port (default: a free port) and the address (default: 127.0.0.1). */
#include <segue/segue.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* global, because the signal handler must stop the runtime */
static segue_runtime *runtime;

static void interrupt(int number)
{
    (void)number;
    segue_runtime_stop(runtime);
}

static void on_interrupt(void (*handler)(int))
{
    signal(SIGINT, handler);
    signal(SIGTERM, handler);
}

static void greet(void *user, segue_call *call)
{
    const char *name = "world";
    (void)user;
    segue_call_argument_text(call, "name", &name, NULL);
    size_t size = strlen(name) + sizeof "Hello, !";
    char *text = malloc(size);
    int len = text ? snprintf(text, size, "Hello, %s!", name) : -1;
    if (len >= 0 && segue_call_send_text(call, text, (size_t)len, NULL) == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    free(text);
    segue_call_free(call);
}

static void count(void *user, segue_call *call)
{
    int64_t n = 3;
    segue_status status = SEGUE_OK;
    (void)user;
    segue_call_argument_int(call, "n", &n);
    for (int64_t i = 1; i <= n && i <= 1000 && status == SEGUE_OK; i++) {
        char text[32];
        int len = snprintf(text, sizeof text, "%" PRId64, i);
        segue_call_progress(call, (double)i, (double)n, NULL,
                            /* has no effect if the client did not ask for progress */
                            NULL);
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

int main(int argc, char **argv)
{
    segue_server *server = NULL;
    segue_listener *listener = NULL;
    segue_error *error = NULL;
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    options.port = argc > 1 ? atoi(argv[1]) : 0;
    options.address = argc > 2 ? argv[2] : NULL;
    options.health_path = "/health";
    segue_status status = segue_runtime_new(NULL, &runtime, &error);
    if (status == SEGUE_OK) {
        on_interrupt(interrupt);
        status = segue_server_new(runtime, NULL, &server, NULL);
    }
    if (status == SEGUE_OK)
        status =
            add_tool(server, "{\"name\":\"greet\",\"inputSchema\":{\"type\":\"object\"}}",
                     greet, 0, SEGUE_TASK_NEVER);
    if (status == SEGUE_OK)
        status =
            add_tool(server, "{\"name\":\"count\",\"inputSchema\":{\"type\":\"object\"}}",
                     count, SEGUE_TOOL_INCREMENTAL, SEGUE_TASK_MAY);
    if (status == SEGUE_OK)
        status = segue_server_listen(server, &options, &listener, &error);
    if (status == SEGUE_OK)
        printf("%s\n", segue_listener_url(listener));
    fflush(stdout);
    if (status == SEGUE_OK)
        status = segue_runtime_run(runtime);
    on_interrupt(SIG_DFL); /* From now on a second interrupt ends the program at once. */
    if (status != SEGUE_OK)
        fprintf(stderr, "%s %s\n", segue_status_name(status),
                segue_error_read(error)->message);
    segue_error_free(error);
    segue_listener_free(listener);
    segue_server_free(server);
    segue_runtime_free(runtime);
    return status == SEGUE_OK ? 0 : 1;
}
