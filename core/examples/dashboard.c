/* What an operator sees of a server: its metrics for Prometheus at /metrics, and its
 * tasks as a web page at /board. The program uses the server over HTTP and prints a table
 * of the metrics. core/docs/recipes has a dashboard for Grafana and alerts for the same
 * metrics.
 *
 *   dashboard          calls the server, prints the table, ends
 *   dashboard serve    prints the URL, and serves until it is interrupted */
#include <segue/easy.h>
#include <segue/segue_ext.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void divide(void *user, segue_call *call)
{
    int64_t a = 0, b = 0;
    (void)user;
    segue_call_argument_int(call, "a", &a);
    segue_call_argument_int(call, "b", &b);
    if (b == 0)
        segue_call_fail(call, 1, "division by zero", NULL, 0, NULL);
    else if (segue_call_printf(call, "%g", (double)a / (double)b) == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* Copies the value of a label; an absent label leaves the text as it is. */
static void read_label(const char *line, const char *name, char text[64])
{
    const char *at = strstr(line, name);
    if (at)
        sscanf(at + strlen(name), "=\"%63[^\"]", text);
}

static segue_status print_table(segue_server *server)
{
    static const char metric[] = "segue_calls_total{";
    size_t len = 0;
    segue_server_metrics(server, NULL, &len); /* asks for the size, which may grow */
    char *text = malloc(len += 1024);
    segue_status status = text ? segue_server_metrics(server, text, &len) : SEGUE_E_NOMEM;
    char *rest = text;
    if (status == SEGUE_OK)
        printf("tool    end         calls\n");
    for (char *line; status == SEGUE_OK && (line = strtok_r(rest, "\n", &rest));) {
        char tool[64] = "?", end[64] = "ok";
        if (strncmp(line, metric, sizeof metric - 1) != 0)
            continue;
        read_label(line, "gen_ai_tool_name", tool);
        read_label(line, "error_type", end);
        printf("%-8s%-12s%s\n", tool, end, strrchr(line, ' ') + 1);
    }
    free(text);
    return status;
}

static segue_status use(segue_runtime *runtime, segue_listener *listener)
{
    segue_transport *transport;
    segue_session *session = NULL;
    segue_status status = segue_transport_http(runtime, segue_listener_url(listener),
                                               NULL, &transport, NULL);
    if (status == SEGUE_OK)
        status = segue_session_open(runtime, transport, NULL, NULL, &session, NULL);
    for (int b = 2; status == SEGUE_OK && b >= 0; b--) {
        char *arguments, *result = NULL;
        status = segue_json_pairs(&arguments, "a=%d b=%d", 8, b);
        if (status != SEGUE_OK)
            break;
        status = segue_call_tool(session, "divide", arguments, 0, &result, NULL);
        if (status == SEGUE_E_REMOTE) /* the server answered with an error */
            status = SEGUE_OK;
        free(arguments);
        free(result);
    }
    segue_session_free(session);
    return status;
}

int main(int argc, char **argv)
{
    const char *tool = "{\"name\":\"divide\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options item = {sizeof item, .on_call = divide};
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    segue_runtime *runtime;
    segue_server *server;
    segue_listener *listener;
    options.metrics_path = "/metrics";
    options.board_path = "/board";
    if (segue_runtime_new(NULL, &runtime, NULL) ||
        segue_server_new(runtime, NULL, &server, NULL) ||
        segue_server_add(server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL) ||
        segue_server_listen(server, &options, &listener, NULL))
        return 1;
    segue_status status;
    if (argc > 1 && !strcmp(argv[1], "serve")) {
        printf("%s\n", segue_listener_url(listener));
        fflush(stdout);
        status = segue_runtime_run(runtime);
    } else {
        status = use(runtime, listener);
        if (status == SEGUE_OK)
            status = print_table(server);
    }
    segue_listener_free(listener);
    segue_server_free(server);
    segue_runtime_free(runtime);
    return status != SEGUE_OK;
}
