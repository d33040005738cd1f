/* Asks a library for each of its optional parts, and prints a line for each: what was
 * asked for, and "there" or the reason why not. check.py runs it with the library of one
 * combination. */
#include <segue/segue.h>

#include <stdio.h>
#include <string.h>

static void print(const char *part, segue_status status, segue_error *error)
{
    if (status == SEGUE_E_UNSUPPORTED)
        printf("%s: %s\n", part, error ? segue_error_message(error) : "unsupported");
    else
        printf("%s: there\n", part);
    segue_error_free(error);
}

/* HTTP, from both sides. */
static void ask_http(segue_runtime *runtime)
{
    segue_server *server = NULL;
    segue_listener *listener = NULL;
    segue_transport *transport = NULL;
    segue_error *error = NULL;
    segue_server_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_SERVER_OPTIONS);
    options.name = "probe";
    options.version = "1";
    if (segue_server_new(runtime, &options, &server, NULL) != SEGUE_OK)
        return;
    segue_status status = segue_server_listen(server, NULL, &listener, &error);
    print("listen", status, error);
    error = NULL;
    status =
        segue_transport_http(runtime, "http://127.0.0.1:1/mcp", NULL, &transport, &error);
    print("http", status, error);
    segue_oauth_options oauth;
    segue_struct_init(&oauth, sizeof oauth, SEGUE_STRUCT_OAUTH_OPTIONS);
    if (transport) {
        error = NULL;
        status = segue_transport_set_oauth(transport, &oauth, &error);
        print("oauth", status, error);
    }
    segue_transport_free(transport);
    segue_listener_free(listener);
    segue_server_free(server);
}

/* Neither store can be opened: the reason differs. */
static void ask_stores(void)
{
    segue_store *store = NULL;
    segue_error *error = NULL;
    segue_status status = segue_store_sqlite("/nowhere/file", NULL, &store, &error);
    print("sqlite", status, error);
    error = NULL;
    status = segue_store_redis("redis://127.0.0.1:1", NULL, &store, &error);
    print("redis", status, error);
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
