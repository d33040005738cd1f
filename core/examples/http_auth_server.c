/* An HTTP server that accepts access tokens of an authorization server. Every caller with
 * a token may call the tool `whoami`. The tool `remember` needs a token with the scope
 * "notes:write". The program prints the server's URL and stops on an interrupt.
 *
 * Arguments: the issuer of the tokens, the URL of the issuer's key set, the port
 * (default: a free port), and the URL by which clients know this server (default: the
 * printed URL).
 *
 *     http_auth_server https://as.example.com https://as.example.com/jwks 8080 */
#include <segue/segue.h>
#include <segue/segue_auth.h>

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

/* Answers with the caller's principal: the issuer of the token, a blank and the subject
 * of the token. The principal of a caller never changes. */
static void whoami(void *user, segue_call *call)
{
    const char *name = segue_call_principal(call);
    (void)user;
    if (segue_call_send_text(call, name, strlen(name), NULL) == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* The library calls this handler only for callers with the scope "notes:write". The
 * library tells all other callers to get a token with this scope. */
static void remember(void *user, segue_call *call)
{
    (void)user;
    if (segue_call_send_text(call, "noted", 5, NULL) == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static segue_status add_tool(segue_server *server, const char *json,
                             segue_call_fn on_call, const char *scopes)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = on_call;
    options.scopes = scopes;
    return segue_server_add(server, SEGUE_ITEM_TOOL, json, strlen(json), &options, NULL);
}

static segue_status listen_for(segue_server *server, int argc, char **argv,
                               segue_listener **listener, segue_error **error)
{
    segue_bearer_options bearer = SEGUE_BEARER_OPTIONS_INIT;
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    bearer.authorization_servers = argv[1];
    bearer.jwks_url = argv[2];
    bearer.resource = argc > 4 ? argv[4] : NULL;
    bearer.scopes_supported = "notes:read";
    bearer.implied_scopes = "notes:write notes:read";
    options.port = argc > 3 ? atoi(argv[3]) : 0;
    options.bearer = &bearer;
    return segue_server_listen(server, &options, listener, error);
}

int main(int argc, char **argv)
{
    segue_server *server = NULL;
    segue_listener *listener = NULL;
    segue_error *error = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: http_auth_server ISSUER JWKS-URL [PORT [RESOURCE]]\n");
        return 2;
    }
    segue_status status = segue_runtime_new(NULL, &runtime, &error);
    if (status == SEGUE_OK) {
        on_interrupt(interrupt);
        status = segue_server_new(runtime, NULL, &server, NULL);
    }
    if (status == SEGUE_OK)
        status = add_tool(server, "{\"name\":\"whoami\"}", whoami, NULL);
    if (status == SEGUE_OK)
        status = add_tool(server, "{\"name\":\"remember\"}", remember, "notes:write");
    if (status == SEGUE_OK)
        status = listen_for(server, argc, argv, &listener, &error);
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
