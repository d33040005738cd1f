/* The client that the official conformance suite tests. Its scenarios are servers of the
 * suite, and one program serves all of them. MCP_CONFORMANCE_SCENARIO names the scenario,
 * MCP_CONFORMANCE_CONTEXT is JSON with its data, and the last argument is the server's
 * URL. play.c has what the client does; client_auth.c has its identity for authorization
 * servers. The status is 0 when everything succeeded.
 *
 * The client finds out the version of the server: the suite does not tell it the
 * revision. */
#include "conformance/client_auth.h"
#include "conformance/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The suite gives up after 30 s, but does not end the program that it has started. */
#define LIFE_SECONDS 28
/* The suite starts all servers and clients at once, and on a busy machine takes seconds
 * to get to all. So a silent server is not taken for an old one here. */
#define PROBE_MS 25000

static void write_log(void *user, int32_t level, const char *text)
{
    (void)user;
    fprintf(stderr, "client: %d: %s\n", level, text);
}

static void opened(void *user, segue_session *session)
{
    play *p = user;
    p->session = session;
    play_begin(p);
}

static void closed(void *user, segue_session *session, const segue_error *error)
{
    play *p = user;
    (void)session;
    if (error)
        play_failed(p, "session", segue_error_read(error)->message);
    segue_runtime_stop(p->runtime);
}

static segue_status open_session(play *p, segue_transport *transport)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    options.name = "segue-conformance";
    options.version = segue_version();
    options.probe_timeout_ms = PROBE_MS;
    options.fill_defaults = 1; /* there is no user to show a form to */
    options.capabilities = "{\"elicitation\":{},\"sampling\":{},\"roots\":{}}";
    events.user = p;
    events.on_open = opened;
    events.on_closed = closed;
    return segue_session_open(p->runtime, transport, &options, &events, &p->session,
                              NULL);
}

static segue_status play_to(play *p, const char *url)
{
    segue_transport *transport = NULL;
    segue_error *error = NULL;
    segue_status status = segue_transport_http(p->runtime, url, NULL, &transport, &error);
    if (status != SEGUE_OK) {
        play_failed(p, url, segue_error_read(error)->message);
        segue_error_free(error);
        return status;
    }
    if (!conformance_authorize(p->runtime, transport, p->scenario,
                               getenv("MCP_CONFORMANCE_CONTEXT")))
        status = SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = open_session(p, transport);
    if (status != SEGUE_OK)
        segue_transport_free(transport);
    return status == SEGUE_OK ? segue_runtime_run(p->runtime) : status;
}

static segue_status open_runtime(segue_runtime **out)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    options.log = write_log;
    options.log_level = SEGUE_LOG_WARNING;
    return segue_runtime_new(&options, out, NULL);
}

int main(int argc, char **argv)
{
    const char *scenario = getenv("MCP_CONFORMANCE_SCENARIO");
    const char *told = getenv("MCP_CONFORMANCE_CONTEXT");
    segue_runtime *runtime = NULL;
    play p;
    if (argc < 2) {
        fprintf(stderr, "usage: client URL\n");
        return 2;
    }
    alarm(LIFE_SECONDS);
    json_t *context = told ? json_loads(told, JSON_ALLOW_NUL, NULL) : NULL;
    segue_status status = open_runtime(&runtime);
    play_init(&p, runtime, scenario ? scenario : "", context);
    if (status == SEGUE_OK)
        status = play_to(&p, argv[argc - 1]);
    if (status != SEGUE_OK)
        play_failed(&p, "end", segue_status_name(status));
    segue_session_free(p.session);
    segue_runtime_free(runtime);
    bool failed = p.has_failed;
    play_free(&p);
    json_decref(context);
    return failed;
}
