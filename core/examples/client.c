/* A client. It starts a server program or connects to a URL, and lists the server's
 * tools. Then it calls one tool and prints the segments of the tool's result as they
 * arrive.
 *
 *   client TOOL ARGUMENTS URL
 *   client TOOL ARGUMENTS PROGRAM [ARGUMENT...]
 *   client count '{"n":3}' ./server
 *   client greet '{"name":"Ada"}' http://localhost:8080/mcp
 *
 * The same code handles a plain answer, a task that is polled and a task that is
 * streamed. The server decides which of these it sends. When the server program dies, the
 * client starts the program again, and the task continues after the last segment that
 * arrived. */
#include <segue/segue.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct client {
    segue_session *session;
    int failed;
} client;

static void print_tools(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    (void)user;
    (void)request;
    if (status == SEGUE_OK)
        printf("tools: %.*s\n", (int)len, json);
    else
        fprintf(stderr, "tools/list: %s\n", segue_error_read(error)->message);
}

static void print_segment(void *user, segue_request *request,
                          const segue_segment *segment)
{
    const char *text = segue_segment_text(segment, NULL);
    (void)user;
    (void)request;
    printf("segment %" PRIu64 ": %s\n", segue_segment_read(segment)->number,
           text ? text : segue_segment_read(segment)->data);
}

static void print_result(void *user, segue_request *request, segue_status status,
                         const char *json, size_t len, const segue_error *error)
{
    client *c = user;
    (void)request;
    if (status == SEGUE_OK)
        printf("result: %.*s\n", (int)len, json);
    else
        fprintf(stderr, "%s: %s\n", segue_status_name(status),
                segue_error_read(error)->message);
    c->failed = status != SEGUE_OK;
    /* Closes the session. The callback on_closed runs when the session has ended. */
    segue_session_close(c->session);
}

static void stop(void *user, segue_session *session, const segue_error *error)
{
    (void)session;
    (void)error;
    segue_runtime_stop(user);
}

static segue_status ask(client *c, const char *tool, const char *arguments)
{
    char params[4096];
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    int len = snprintf(params, sizeof params, "{\"name\":\"%s\",\"arguments\":%s}", tool,
                       arguments);
    if (len < 0 || (size_t)len >= sizeof params)
        return SEGUE_E_TOO_LARGE;
    events.on_complete = print_tools;
    segue_status status =
        segue_request_start(c->session, "tools/list", NULL, 0, NULL, &events, NULL, NULL);
    if (status != SEGUE_OK)
        return status;
    events.user = c;
    events.on_segment = print_segment;
    events.on_complete = print_result;
    return segue_request_start(c->session, "tools/call", params, (size_t)len, NULL,
                               &events, NULL, NULL);
}

static segue_status connect_to(segue_runtime *runtime, char **where,
                               segue_transport **transport)
{
    segue_spawn_options options = SEGUE_SPAWN_OPTIONS_INIT;
    if (!strncmp(where[0], "http", 4))
        return segue_transport_http(runtime, where[0], NULL, transport, NULL);
    options.argv = (const char *const *)where;
    options.restart = 1;
    return segue_transport_spawn(runtime, &options, transport, NULL);
}

static segue_status run(client *c, segue_runtime *runtime, char **argv)
{
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_transport *transport;
    events.user = runtime;
    events.on_closed = stop;
    segue_status status = connect_to(runtime, &argv[3], &transport);
    if (status == SEGUE_OK)
        status = segue_session_open(runtime, transport, NULL, &events, &c->session, NULL);
    if (status == SEGUE_OK)
        status = ask(c, argv[1], argv[2]);
    return status == SEGUE_OK ? segue_runtime_run(runtime) : status;
}

int main(int argc, char **argv)
{
    client c = {NULL, 0};
    segue_runtime *runtime = NULL;
    if (argc < 4) {
        fprintf(stderr, "usage: client TOOL ARGUMENTS URL\n"
                        "       client TOOL ARGUMENTS PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    segue_status status = segue_runtime_new(NULL, &runtime, NULL);
    if (status == SEGUE_OK)
        status = run(&c, runtime, argv);
    if (status != SEGUE_OK)
        fprintf(stderr, "%s\n", segue_status_name(status));
    segue_session_free(c.session);
    segue_runtime_free(runtime);
    return status != SEGUE_OK || c.failed;
}
