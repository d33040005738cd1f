/* SEGUE_TO_NUL as the length of a text: each function that takes a text and its
 * length counts the bytes itself. */
#include <segue/easy.h>
#include <segue/segue_ext.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define NUL SEGUE_TO_NUL
#define OBJECT "\"inputSchema\":{\"type\":\"object\"}"

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    segue_session *session;
    segue_request *request;
    int ended, answers_error;
    char result[1000];
} stage;

#define OK(call) assert_int_equal(call, SEGUE_OK)

static void on_build(void *user, segue_call *call)
{
    stage *s = user;
    segue_content *content;
    OK(segue_client_log(s->server, segue_call_client(call),
                        "{\"level\":\"info\",\"data\":1}", NUL, NULL));
    OK(segue_call_send_text(call, "a", NUL, NULL));
    OK(segue_call_extend_text(call, 0, "b", NUL, NULL));
    OK(segue_call_set_field(call, "_meta", "{\"m\":1}", NUL, NULL));
    OK(segue_call_log(call, "info", "\"l\"", NUL, NULL));
    OK(segue_call_log_json(call, "{\"level\":\"info\",\"data\":1}", NUL, NULL));
    OK(segue_content_new(segue_call_runtime(call), &content));
    OK(segue_content_add_text(content, "c", NUL, NULL));
    OK(segue_content_add_json(content, "{\"type\":\"own\"}", NUL, NULL));
    OK(segue_content_set_structured(content, "{\"n\":2}", NUL, NULL));
    OK(segue_call_complete(call, content, NULL));
    segue_content_free(content);
    segue_call_free(call);
}

static void on_json(void *user, segue_call *call)
{
    (void)user;
    OK(segue_call_complete_json(
        call, "{\"content\":[{\"type\":\"text\",\"text\":\"whole\"}]}", NUL, NULL));
    segue_call_free(call);
}

static void on_fail(void *user, segue_call *call)
{
    (void)user;
    OK(segue_call_fail(call, -32603, "no", "{\"d\":1}", NUL, NULL));
    segue_call_free(call);
}

static void on_answer(void *user, segue_call *call, segue_status status, const char *json,
                      size_t len)
{
    (void)user;
    if (status == SEGUE_OK || status == SEGUE_E_REMOTE)
        OK(segue_call_send_text(call, json, len, NULL));
    if (status != SEGUE_E_CANCELLED)
        OK(segue_call_complete(call, NULL, NULL));
    segue_call_free(call);
}

static void on_ask(void *user, segue_call *call)
{
    (void)user;
    OK(segue_call_require_input(call, NULL, "elicitation/create",
                                "{\"message\":\"?\",\"requestedSchema\":{\"type\":"
                                "\"object\",\"properties\":{}}}",
                                NUL, on_answer, NULL, NULL, NULL));
}

static void on_read(void *user, segue_call *call)
{
    segue_content *content;
    (void)user;
    OK(segue_content_new(segue_call_runtime(call), &content));
    OK(segue_content_add_resource_text(content, "x:y", NULL, "page", NUL, NULL));
    OK(segue_call_complete(call, content, NULL));
    segue_content_free(content);
    segue_call_free(call);
}

static void on_input(void *user, segue_request *request, const char *key,
                     const char *method, const char *params, size_t len)
{
    const stage *s = user;
    (void)method;
    (void)params;
    (void)len;
    if (s->answers_error)
        OK(segue_request_answer_error(request, key, -1, "no", "{\"e\":1}", NUL, NULL));
    else
        OK(segue_request_answer(request, key, "{\"action\":\"decline\"}", NUL, NULL));
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    stage *s = user;
    const segue_error_view *view = segue_error_read(error);
    const char *text = status == SEGUE_OK ? json : view->data;
    size_t n = status == SEGUE_OK ? len : view->data_len;
    (void)request;
    assert_true(n < sizeof s->result);
    if (n)
        memcpy(s->result, text, n);
    s->result[n] = 0;
    s->ended++;
}

static void add(stage *s, int32_t item, const char *json, segue_call_fn on_call)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = on_call;
    options.user = s;
    OK(segue_server_add(s->server, item, json, NUL, &options, NULL));
}

static void begin(stage *s)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_client_events clients = SEGUE_CLIENT_EVENTS_INIT;
    segue_transport *near, *far;
    *s = (stage){0};
    options.capabilities = "{\"elicitation\":{}}";
    options.era = SEGUE_ERA_LEGACY;
    OK(segue_runtime_new(NULL, &s->runtime, NULL));
    OK(segue_server_new(s->runtime, NULL, &s->server, NULL));
    add(s, SEGUE_ITEM_TOOL, "{\"name\":\"build\"," OBJECT "}", on_build);
    add(s, SEGUE_ITEM_TOOL, "{\"name\":\"json\"," OBJECT "}", on_json);
    add(s, SEGUE_ITEM_TOOL, "{\"name\":\"fail\"," OBJECT "}", on_fail);
    add(s, SEGUE_ITEM_TOOL, "{\"name\":\"ask\"," OBJECT "}", on_ask);
    add(s, SEGUE_ITEM_RESOURCE, "{\"uri\":\"x:y\",\"name\":\"r\"}", on_read);
    OK(segue_server_watch_clients(s->server, &clients, NULL));
    OK(segue_transport_pair(s->runtime, &near, &far));
    OK(segue_server_attach(s->server, far, NULL));
    OK(segue_session_open(s->runtime, near, &options, NULL, &s->session, NULL));
}

static void end(stage *s)
{
    segue_session_free(s->session);
    segue_server_free(s->server);
    segue_runtime_free(s->runtime);
}

static const char *ask(stage *s, const char *method, const char *params)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = s;
    events.on_input = on_input;
    events.on_complete = on_complete;
    s->ended = 0;
    OK(segue_request_start(s->session, method, params, NUL, NULL, &events, NULL, NULL));
    while (!s->ended)
        segue_runtime_dispatch(s->runtime, -1, 0, NULL);
    return s->result;
}

static void servers_and_clients(void **state)
{
    stage s;
    (void)state;
    begin(&s);
    const char *result = ask(&s, "tools/call", "{\"name\":\"build\"}");
    assert_non_null(strstr(result, "\"ab\""));
    assert_non_null(strstr(result, "\"c\""));
    assert_non_null(strstr(result, "{\"type\":\"own\"}"));
    assert_non_null(strstr(result, "\"structuredContent\":{\"n\":2}"));
    assert_non_null(strstr(result, "\"m\":1"));
    assert_non_null(strstr(ask(&s, "tools/call", "{\"name\":\"json\"}"), "whole"));
    assert_string_equal(ask(&s, "tools/call", "{\"name\":\"fail\"}"), "{\"d\":1}");
    assert_non_null(strstr(ask(&s, "tools/call", "{\"name\":\"ask\"}"), "decline"));
    s.answers_error = 1;
    assert_non_null(strstr(ask(&s, "tools/call", "{\"name\":\"ask\"}"), "\\\"e\\\":1"));
    assert_non_null(strstr(ask(&s, "resources/read", "{\"uri\":\"x:y\"}"), "page"));
    assert_non_null(ask(&s, "ping", NULL));
    OK(segue_session_notify(s.session, "notifications/roots/list_changed", "{}", NUL,
                            NULL));
    end(&s);
}

static void json(void **state)
{
    static const char object[] = "{\"a\":[1],\"b\":\"x\"}";
    stage s;
    const char *value;
    char text[8];
    size_t len, at = 0, room = sizeof text;
    int64_t number;
    double real;
    int32_t is_true;
    (void)state;
    begin(&s);
    OK(segue_json_check(s.runtime, object, NUL, NULL));
    OK(segue_json_get(object, NUL, "a", &value, &len));
    assert_int_equal(len, 3);
    OK(segue_json_next(object, NUL, &at, NULL, NULL, &value, &len));
    OK(segue_json_next(object, NUL, &at, NULL, NULL, &value, &len));
    assert_int_equal(segue_json_next(object, NUL, &at, NULL, NULL, &value, &len),
                     SEGUE_E_NOT_FOUND);
    OK(segue_json_text("\"x\"", NUL, text, &room));
    assert_string_equal(text, "x");
    OK(segue_json_int("12", NUL, &number));
    assert_int_equal(number, 12);
    OK(segue_json_number("1.5", NUL, &real));
    OK(segue_json_bool("true", NUL, &is_true));
    room = sizeof text;
    OK(segue_json_quote("a\"", NUL, text, &room));
    assert_string_equal(text, "\"a\\\"\"");
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_and_clients),
        cmocka_unit_test(json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
