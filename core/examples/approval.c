/* An approval half-way: the tool prepares a release, asks the user, and goes on or gives
 * up. Server and client are in this program; over HTTP or standard input and output the
 * question reaches the user of whichever client has called.
 *
 *   approval    says yes to the first release, and no to the second one */
#include <segue/easy.h>

#include <stdio.h>
#include <string.h>

/* ---- the server ---- */

static const char *const hosts[] = {"alpha", "beta", "gamma"};
#define HOSTS (sizeof hosts / sizeof *hosts)

/* Gets {"action":"accept","content":{"value":true}}, or what the user did instead. */
static void on_answer(void *user, segue_call *call, segue_status status, const char *json,
                      size_t len)
{
    const char *version = "?", *value;
    int32_t agreed = 0;
    (void)user;
    segue_call_argument_text(call, "version", &version, NULL);
    if (status == SEGUE_OK &&
        segue_json_get(json, len, "content", &value, &len) == SEGUE_OK &&
        segue_json_get(value, len, "value", &value, &len) == SEGUE_OK)
        segue_json_bool(value, len, &agreed);
    for (size_t i = 0; agreed && i < HOSTS; i++)
        segue_call_printf(call, "%s runs %s\n", hosts[i], version);
    if (!agreed)
        segue_call_printf(call, "%s is withdrawn\n", version);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void release(void *user, segue_call *call)
{
    char question[512];
    const char *version = "?";
    (void)user;
    segue_call_argument_text(call, "version", &version, NULL);
    segue_call_printf(call, "%s is built\n", version);
    snprintf(question, sizeof question,
             "{\"message\":\"Release %.32s to %d hosts?\",\"requestedSchema\":{\"type\":"
             "\"object\",\"properties\":{\"value\":{\"type\":\"boolean\"}},"
             "\"required\":[\"value\"]}}",
             version, (int)HOSTS);
    if (segue_call_require_input(call, "agreed", "elicitation/create", question,
                                 strlen(question), on_answer, NULL, NULL,
                                 NULL) != SEGUE_OK)
        segue_call_free(call); /* the client cannot ask its user: the call fails */
}

static segue_status serve(segue_runtime *runtime, segue_transport *transport)
{
    const char *tool = "{\"name\":\"release\",\"inputSchema\":{\"type\":\"object\","
                       "\"properties\":{\"version\":{\"type\":\"string\"}}}}";
    segue_item_options item = {sizeof item, .on_call = release};
    segue_server *server;
    segue_status status = segue_server_new(runtime, NULL, &server, NULL);
    item.flags = SEGUE_TOOL_INCREMENTAL;
    item.task = SEGUE_TASK_MAY;
    if (status != SEGUE_OK)
        return status;
    status = segue_server_add(server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &item, NULL);
    if (status == SEGUE_OK)
        status = segue_server_attach(server, transport, NULL);
    segue_server_free(server); /* the server lives on with its client */
    return status;
}

/* ---- the client ---- */

static void print_segment(void *user, segue_request *request,
                          const segue_segment *segment)
{
    (void)user;
    (void)request;
    printf("%s", segue_segment_text(segment, NULL));
}

/* Answers yes to what is about 1.2.0. A program with a user shows the form. */
static void on_question(void *user, segue_request *request, const char *key,
                        const char *method, const char *params, size_t params_len)
{
    const char *message;
    char text[256] = "";
    size_t len, size = sizeof text;
    (void)user;
    (void)method;
    if (segue_json_get(params, params_len, "message", &message, &len) == SEGUE_OK)
        segue_json_text(message, len, text, &size);
    int yes = strstr(text, "1.2.0") != NULL;
    char answer[64];
    printf("%s %s\n", text, yes ? "yes" : "no");
    snprintf(answer, sizeof answer, "{\"action\":\"accept\",\"content\":{\"value\":%s}}",
             yes ? "true" : "false");
    segue_request_answer(request, key, answer, strlen(answer), NULL);
}

static const char *const *version = (const char *const[]){"1.2.0", "1.3.0", NULL};

static segue_status ask(segue_session *session);

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    segue_session *session = user;
    (void)request;
    (void)json;
    (void)len;
    if (status != SEGUE_OK)
        fprintf(stderr, "%s\n", segue_error_read(error)->message);
    if (status != SEGUE_OK || !*++version || ask(session) != SEGUE_OK)
        segue_runtime_stop(segue_session_runtime(session));
}

static segue_status ask(segue_session *session)
{
    char params[256];
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    int len =
        snprintf(params, sizeof params,
                 "{\"name\":\"release\",\"arguments\":{\"version\":\"%s\"}}", *version);
    events.user = session;
    events.on_segment = print_segment;
    events.on_input = on_question;
    events.on_complete = on_complete;
    return segue_request_start(session, "tools/call", params, (size_t)len, NULL, &events,
                               NULL, NULL);
}

int main(void)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_runtime *runtime;
    segue_transport *near_end, *far_end;
    segue_session *session = NULL;
    options.capabilities = "{\"elicitation\":{}}"; /* this client can ask its user */
    segue_status status = segue_runtime_new(NULL, &runtime, NULL);
    if (status != SEGUE_OK)
        return 1;
    status = segue_transport_pair(runtime, &near_end, &far_end);
    if (status == SEGUE_OK)
        status = serve(runtime, far_end);
    if (status == SEGUE_OK)
        status = segue_session_open(runtime, near_end, &options, NULL, &session, NULL);
    if (status == SEGUE_OK)
        status = ask(session);
    if (status == SEGUE_OK)
        status = segue_runtime_run(runtime);
    segue_session_free(session);
    segue_runtime_free(runtime);
    return status != SEGUE_OK;
}
