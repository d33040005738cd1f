/* The reason that a refused call stores in its last argument. A server and a client are
 * in one runtime; refused functions of a call are tried in its handler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <segue/segue.h>
#include <segue/segue_auth.h>

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    segue_session *session;
    segue_transport *used; /* used by the session */
    int32_t called;
    int32_t ended;
} stage;

/* Checks the status and the text that the reason must contain, and frees the error. */
static void expect(segue_status status, segue_error *error, segue_status wanted,
                   const char *part)
{
    assert_int_equal(status, wanted);
    assert_non_null(error);
    assert_int_equal(segue_error_read(error)->status, wanted);
    if (!strstr(segue_error_read(error)->message, part))
        fail_msg("\"%s\" does not name \"%s\"", segue_error_read(error)->message, part);
    segue_error_free(error);
}

#define REFUSED(wanted, part, ...)                                                       \
    do {                                                                                 \
        segue_error *error = NULL;                                                       \
        segue_status status = __VA_ARGS__;                                               \
        expect(status, error, wanted, part);                                             \
    } while (0)

static void refuse_in_call(stage *s, segue_call *call)
{
    segue_content *content;
    assert_int_equal(segue_content_new(s->runtime, &content), SEGUE_OK);
    assert_int_equal(
        segue_content_add_json(content, "{\"uri\":\"a:b\",\"text\":\"x\"}", 24, NULL),
        SEGUE_OK);
    REFUSED(SEGUE_E_INVALID, "content blocks", segue_call_send(call, content, &error));
    REFUSED(SEGUE_E_INVALID, "content blocks",
            segue_call_complete(call, content, &error));
    segue_content_free(content);
    REFUSED(SEGUE_E_INVALID, "at byte 1", segue_call_send_text(call, "a\xff", 2, &error));
    REFUSED(SEGUE_E_INVALID, "sets this member",
            segue_call_set_field(call, "isError", "1", 1, &error));
    REFUSED(SEGUE_E_JSON, "at byte 3", segue_call_set_field(call, "a", "[1,", 3, &error));
    REFUSED(SEGUE_E_INVALID, "completion/complete",
            segue_call_set_completion(call, NULL, 0, -1, 0, &error));
    REFUSED(SEGUE_E_INVALID, "debug, info", segue_call_log(call, "loud", "1", 1, &error));
    REFUSED(SEGUE_E_STATE, "cannot store a checkpoint",
            segue_call_checkpoint(call, "x", 1, &error));
    REFUSED(SEGUE_E_UNSUPPORTED, "never runs as a task",
            segue_call_defer(call, 0, &error));
    REFUSED(SEGUE_E_INVALID, "the key",
            segue_call_require_input(call, "a b", "roots/list", NULL, 0,
                                     (segue_input_fn)abort, NULL, NULL, &error));
    REFUSED(SEGUE_E_UNSUPPORTED, "roots/list",
            segue_call_require_input(call, "a", "roots/list", NULL, 0,
                                     (segue_input_fn)abort, NULL, NULL, &error));
    REFUSED(SEGUE_E_INVALID, "-32050",
            segue_call_fail(call, -32050, "x", NULL, 0, &error));
}

static void on_call(void *user, segue_call *call)
{
    stage *s = user;
    segue_error *none = NULL;
    refuse_in_call(s, call);
    assert_int_equal(segue_call_complete(call, NULL, &none), SEGUE_OK);
    assert_null(none);
    REFUSED(SEGUE_E_TERMINAL, "has ended", segue_call_send_text(call, "x", 1, &error));
    REFUSED(SEGUE_E_TERMINAL, "has ended", segue_call_complete(call, NULL, &error));
    segue_call_free(call);
    s->called++;
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    (void)request;
    (void)json;
    (void)len;
    (void)error;
    assert_int_equal(status, SEGUE_OK);
    ((stage *)user)->ended++;
}

static int set_up(void **state)
{
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    static stage s;
    segue_transport *there;
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    s = (stage){0};
    *state = &s;
    item.on_call = on_call;
    item.user = &s;
    assert_int_equal(segue_runtime_new(NULL, &s.runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_transport_pair(s.runtime, &s.used, &there), SEGUE_OK);
    assert_int_equal(segue_server_new(s.runtime, NULL, &s.server, NULL), SEGUE_OK);
    assert_int_equal(
        segue_server_add(s.server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &item, NULL),
        SEGUE_OK);
    assert_int_equal(segue_server_attach(s.server, there, NULL), SEGUE_OK);
    REFUSED(SEGUE_E_STATE, "is attached to",
            segue_server_attach(s.server, there, &error));
    assert_int_equal(segue_session_open(s.runtime, s.used, NULL, NULL, &s.session, NULL),
                     SEGUE_OK);
    return 0;
}

static int tear_down(void **state)
{
    stage *s = *state;
    segue_session_free(s->session);
    segue_server_free(s->server);
    segue_runtime_free(s->runtime);
    return 0;
}

static void a_call_says_why(void **state)
{
    stage *s = *state;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = s;
    events.on_complete = on_complete;
    assert_int_equal(segue_request_start(s->session, "tools/call", "{\"name\":\"t\"}", 12,
                                         NULL, &events, NULL, NULL),
                     SEGUE_OK);
    while (!s->ended)
        segue_runtime_dispatch(s->runtime, -1, 0, NULL);
    assert_int_equal(s->called, 1);
}

static void a_session_and_a_request_say_why(void **state)
{
    stage *s = *state;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_request_options request = SEGUE_REQUEST_OPTIONS_INIT;
    segue_session *session = NULL;
    segue_transport *a, *b;
    assert_int_equal(segue_transport_pair(s->runtime, &a, &b), SEGUE_OK);
    REFUSED(SEGUE_E_STATE, "is attached to",
            segue_session_open(s->runtime, s->used, NULL, NULL, &session, &error));
    REFUSED(SEGUE_E_INVALID, "NULL",
            segue_session_open(s->runtime, NULL, NULL, NULL, &session, &error));
    options.max_requests = -1;
    REFUSED(SEGUE_E_INVALID, "max_requests",
            segue_session_open(s->runtime, a, &options, NULL, &session, &error));
    options.max_requests = 1;
    options.capabilities = "{";
    REFUSED(SEGUE_E_JSON, "at byte 1",
            segue_session_open(s->runtime, a, &options, NULL, &session, &error));
    options.capabilities = NULL;
    assert_int_equal(segue_session_open(s->runtime, a, &options, NULL, &session, NULL),
                     SEGUE_OK);
    REFUSED(SEGUE_E_INVALID, "not a JSON object",
            segue_request_start(session, "ping", "1", 1, NULL, NULL, NULL, &error));
    request.idempotency_key = "short";
    REFUSED(SEGUE_E_INVALID, "idempotency_key",
            segue_request_start(session, "ping", NULL, 0, &request, NULL, NULL, &error));
    assert_int_equal(
        segue_request_start(session, "ping", NULL, 0, NULL, NULL, NULL, NULL), SEGUE_OK);
    REFUSED(SEGUE_E_LIMIT, "max_requests",
            segue_request_start(session, "ping", NULL, 0, NULL, NULL, NULL, &error));
    REFUSED(SEGUE_E_INVALID, "token",
            segue_request_resume(session, "sg1.nothing", NULL, NULL, NULL, &error));
    segue_session_close(session);
    REFUSED(SEGUE_E_CLOSED, "session is closed",
            segue_request_start(session, "ping", NULL, 0, NULL, NULL, NULL, &error));
    segue_session_free(session);
    REFUSED(SEGUE_E_INVALID, "a handle",
            segue_request_start(NULL, "ping", NULL, 0, NULL, NULL, NULL, &error));
    segue_transport_free(b);
}

static void a_server_and_a_child_say_why(void **state)
{
    static const char *const no_program[] = {"", NULL};
    static const char key[16];
    stage *s = *state;
    segue_server *server = NULL;
    segue_transport *child = NULL;
    segue_spawn_options spawn = SEGUE_SPAWN_OPTIONS_INIT;
    segue_server_options fresh, options;
    fresh = SEGUE_SERVER_OPTIONS_INIT;
#define SERVER(part, member, value)                                                      \
    do {                                                                                 \
        options = fresh;                                                                 \
        options.member = value;                                                          \
        REFUSED(SEGUE_E_INVALID, part,                                                   \
                segue_server_new(s->runtime, &options, &server, &error));                \
    } while (0)
    SERVER("max_tasks is -1: it has to be at least 0", max_tasks, -1);
    SERVER("max_ttl_ms is -2: it has to be at least -1", max_ttl_ms, -2);
    SERVER("event_ttl_ms is -9", event_ttl_ms, -9);
    SERVER("unknown bits: 0x80000000", dialects_on, 0x80000000u);
    SERVER("draft_ways has unknown bits: 0x20", draft_ways, 0x3f);
    SERVER("list_scope is 7", list_scope, 7);
    SERVER("title is not UTF-8", title, "\xff");
    SERVER("32 bytes", seal_key, key);
    REFUSED(SEGUE_E_INVALID, "NULL", segue_server_new(s->runtime, NULL, NULL, &error));
    REFUSED(SEGUE_E_INVALID, "argv",
            segue_transport_spawn(s->runtime, &spawn, &child, &error));
    spawn.argv = no_program;
    REFUSED(SEGUE_E_INVALID, "argv",
            segue_transport_spawn(s->runtime, &spawn, &child, &error));
    REFUSED(SEGUE_E_INVALID, "NULL",
            segue_transport_spawn(s->runtime, NULL, &child, &error));
    REFUSED(SEGUE_E_INVALID, "NULL",
            segue_transport_http(s->runtime, NULL, NULL, &child, &error));
    assert_null(server);
    assert_null(child);
}

static void on_authorize(void *user, const char *url, const char *state)
{
    (void)user;
    (void)url;
    (void)state;
}

/* Why a transport does not send, and why it does not get a token. */
static void an_http_transport_says_why(void **state)
{
    stage *s = *state;
    segue_transport *http, *away;
    segue_oauth_options fresh, options;
    fresh = SEGUE_OAUTH_OPTIONS_INIT;
    fresh.on_authorize = on_authorize;
    fresh.redirect_uri = "http://127.0.0.1:1/";
    assert_int_equal(
        segue_transport_http(s->runtime, "https://a.example/mcp", NULL, &http, NULL),
        SEGUE_OK);
    assert_int_equal(
        segue_transport_http(s->runtime, "http://a.example/mcp", NULL, &away, NULL),
        SEGUE_OK);
#define HEADER(status, part, name, value)                                                \
    REFUSED(status, part, segue_transport_set_header(http, name, value, &error))
    HEADER(SEGUE_E_INVALID, "invalid character", "a b", "1");
    HEADER(SEGUE_E_INVALID, "Content-Type cannot be set", "Content-Type", "1");
    HEADER(SEGUE_E_INVALID, "X-A has a character", "X-A", "\xc3\xa4");
    HEADER(SEGUE_E_INVALID, "NULL", NULL, "1");
#define OAUTH(part, member, value)                                                       \
    do {                                                                                 \
        options = fresh;                                                                 \
        options.member = value;                                                          \
        REFUSED(SEGUE_E_INVALID, part,                                                   \
                segue_transport_set_oauth(http, &options, &error));                      \
    } while (0)
    OAUTH("grant is 7", grant, 7);
    OAUTH("client_id is not visible ASCII", client_id, "\xc3\xa4");
    OAUTH("client_name is not UTF-8", client_name, "\xff");
    OAUTH("consent_timeout_ms", consent_timeout_ms, -1);
    OAUTH("issuer", issuer, "nowhere");
    OAUTH("client_metadata_url", client_metadata_url, "https://a.example/");
    OAUTH("auth_method", auth_method, "magic");
    OAUTH("private_key", private_key, "a key");
    OAUTH("redirect_uri", redirect_uri, "http://a.example/");
    OAUTH("on_authorize", on_authorize, NULL);
    OAUTH("client_secret or private_key", grant, SEGUE_OAUTH_CLIENT);
    OAUTH("on_assertion", grant, SEGUE_OAUTH_ASSERTION);
    REFUSED(SEGUE_E_INVALID, "sent unencrypted",
            segue_transport_set_oauth(away, &fresh, &error));
    REFUSED(SEGUE_E_STATE, "not an HTTP client",
            segue_transport_set_oauth(s->used, &fresh, &error));
    assert_int_equal(segue_transport_set_header(http, "Authorization", "x", NULL),
                     SEGUE_OK);
    REFUSED(SEGUE_E_STATE, "header Authorization",
            segue_transport_set_oauth(http, &fresh, &error));
    assert_int_equal(segue_transport_set_header(http, "Authorization", NULL, NULL),
                     SEGUE_OK);
    assert_int_equal(segue_transport_set_oauth(http, &fresh, NULL), SEGUE_OK);
    REFUSED(SEGUE_E_EXISTS, "already uses OAuth",
            segue_transport_set_oauth(http, &fresh, &error));
    HEADER(SEGUE_E_INVALID, "OAuth", "authorization", "x");
    segue_transport_free(http);
    segue_transport_free(away);
}

/* Blocks of known types with missing members. */
static void a_block_that_is_none_is_refused(void **state)
{
    static const struct {
        const char *json;
        const char *part;
    } rows[] = {
        {"{\"type\":\"text\",\"text\":5}", "\"text\", a string"},
        {"{\"type\":\"text\"}", "\"text\", a string"},
        {"{\"type\":\"image\",\"data\":\"\"}", "\"mimeType\", a string"},
        {"{\"type\":\"audio\",\"mimeType\":\"a/b\"}", "\"data\", a string"},
        {"{\"type\":\"resource_link\",\"uri\":\"a:b\"}", "\"name\", a string"},
        {"{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\"}}",
         "\"resource\", an object"},
        {"{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"t\"}", "\"input\", an object"},
        {"{\"type\":\"tool_result\",\"toolUseId\":\"1\"}", "\"content\", an array"},
        {"{\"role\":\"user\",\"content\":{\"type\":\"text\"}}", "\"text\", a string"},
        {"{\"text\":\"x\"}", "not valid content: it needs \"type\""},
        {"7", "not valid content: it needs \"type\""},
    };
    static const char *const good[] = {
        "{\"type\":\"text\",\"text\":\"5\",\"more\":[]}",
        "{\"type\":\"video\",\"url\":7}",
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"blob\":\"\"}}",
    };
    stage *s = *state;
    segue_content *content;
    assert_int_equal(segue_content_new(s->runtime, &content), SEGUE_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        REFUSED(
            SEGUE_E_INVALID, rows[i].part,
            segue_content_add_json(content, rows[i].json, strlen(rows[i].json), &error));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(segue_content_add_json(content, good[i], strlen(good[i]), NULL),
                         SEGUE_OK);
    REFUSED(SEGUE_E_JSON, "at byte 1", segue_content_add_json(content, "{", 1, &error));
    REFUSED(SEGUE_E_INVALID, "at byte 0",
            segue_content_add_text(content, "\xff", 1, &error));
    REFUSED(SEGUE_E_INVALID, "\"image\"",
            segue_content_add_blob(content, "video", "a/b", "", 0, &error));
    REFUSED(SEGUE_E_INVALID, "the URI",
            segue_content_add_resource_text(content, "\xff", NULL, "", 0, &error));
    REFUSED(SEGUE_E_JSON, "at byte 0",
            segue_content_set_structured(content, "x", 1, &error));
    segue_content_free(content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_and_a_child_say_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_http_transport_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_session_and_a_request_say_why, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_block_that_is_none_is_refused, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
