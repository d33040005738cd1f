/* Tries each optional part of a library, and prints a line for each: its name, and
 * "there" or the reason why it is not. check.py runs it with the library of one
 * combination. */
#include <segue/segue.h>
#include <segue/segue_auth.h>
#include <segue/segue_ext.h>

#include <stdio.h>
#include <string.h>

static void print(const char *part, segue_status status, segue_error *error)
{
    if (status == SEGUE_E_UNSUPPORTED)
        printf("%s: %s\n", part,
               error ? segue_error_read(error)->message : "unsupported");
    else
        printf("%s: there\n", part);
    segue_error_free(error);
}

static void ask_metrics_path(segue_server *server)
{
    segue_listener *listener = NULL;
    segue_error *error = NULL;
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    options.metrics_path = "/metrics";
    segue_status status = segue_server_listen(server, &options, &listener, &error);
    print("metrics_path", status, error);
    segue_listener_free(listener);
}

static void ask_board_path(segue_server *server)
{
    segue_listener *listener = NULL;
    segue_error *error = NULL;
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    options.board_path = "/board";
    segue_status status = segue_server_listen(server, &options, &listener, &error);
    print("board_path", status, error);
    segue_listener_free(listener);
}

/* Tries the metrics, and HTTP on both sides. */
static void ask_http(segue_runtime *runtime)
{
    segue_server *server = NULL;
    segue_listener *listener = NULL;
    segue_transport *transport = NULL;
    segue_error *error = NULL;
    size_t len = 0;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    options.name = "probe";
    options.version = "1";
    if (segue_server_new(runtime, &options, &server, NULL) != SEGUE_OK)
        return;
    segue_status status = segue_server_metrics(server, NULL, &len);
    print("metrics", status, NULL);
    status = segue_server_listen(server, NULL, &listener, &error);
    print("listen", status, error);
    if (listener) {
        ask_metrics_path(server);
        ask_board_path(server);
    }
    error = NULL;
    status =
        segue_transport_http(runtime, "http://127.0.0.1:1/mcp", NULL, &transport, &error);
    print("http", status, error);
    segue_oauth_options oauth = SEGUE_OAUTH_OPTIONS_INIT;
    if (transport) {
        error = NULL;
        status = segue_transport_set_oauth(transport, &oauth, &error);
        print("oauth", status, error);
    }
    segue_transport_free(transport);
    segue_listener_free(listener);
    segue_server_free(server);
}

/* No store can be opened here: only the reasons differ. */
static void ask_stores(void)
{
    segue_store *store = NULL;
    segue_error *error = NULL;
    segue_status status = segue_store_sqlite("/nowhere/file", NULL, &store, &error);
    print("sqlite", status, error);
    error = NULL;
    status = segue_store_redis("redis://127.0.0.1:1", NULL, &store, &error);
    print("redis", status, error);
    error = NULL;
    status = segue_store_postgres("postgresql://127.0.0.1:1/", NULL, &store, &error);
    print("postgres", status, error);
}

int main(void)
{
    segue_runtime *runtime = NULL;
    if (segue_runtime_new(NULL, &runtime, NULL) != SEGUE_OK)
        return 1;
    ask_http(runtime);
    ask_stores();
    segue_runtime_free(runtime);
    return 0;
}
