/* Requests of the handshake versions over HTTP without Mcp-Session-Id and without
 * initialize (R-0-12): those that need no session are answered, the others are refused as
 * before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define OF_2025_11_25 "MCP-Protocol-Version: 2025-11-25\r\n"
#define DENIED "Mcp-Session-Id is missing"

typedef struct row {
    const char *method, *params;
    int status;
    const char *says; /* part of the answer */
} row;

static void say(http_caller *c, const char *lines, const char *method, const char *params)
{
    char body[512];
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}", method,
             params);
    char *request = http_post(lines, body);
    http_caller_say(c, request);
    free(request);
}

static void expect(http_caller *c, const char *lines, const row *r)
{
    http_reply reply;
    say(c, lines, r->method, r->params);
    http_caller_read(c, &reply);
    assert_non_null(reply.body);
    if (reply.status != r->status || !strstr(reply.body, r->says))
        fail_msg("%s %s: %d %s", r->method, r->params, reply.status, reply.body);
    assert_string_equal(http_reply_header(&reply, "Mcp-Session-Id"), "");
    http_reply_free(&reply);
}

static void what_needs_no_session(void **state)
{
    static const row rows[] = {
        {"ping", "", 200, "\"result\":{}"},
        {"tools/list", "", 200, "\"name\":\"greet\""},
        {"tools/call", "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"}", 200, "Ada"},
        {"resources/list", "", 200, "test://static-text"},
        {"resources/templates/list", "", 200, "test://template/"},
        {"resources/read", "\"uri\":\"test://static-text\"", 200, "\"contents\""},
        {"prompts/list", "", 200, "\"name\":\"simple\""},
        {"prompts/get", "\"name\":\"simple\"", 200, "\"messages\""},
        {"tools/call", "\"name\":\"none\"", 200, "\"code\":-32602"},
        {"tools/call", "\"name\":5", 200, "\"code\":-32602"},
    };
    static const char *const lines[] = {
        "",
        "MCP-Protocol-Version: 2024-11-05\r\n",
        "MCP-Protocol-Version: 2025-03-26\r\n",
        "MCP-Protocol-Version: 2025-06-18\r\n",
        OF_2025_11_25,
    };
    http_stage s = {0};
    http_caller c;
    (void)state;
    http_stage_open(&s, &c);
    for (size_t v = 0; v < sizeof lines / sizeof *lines; v++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            expect(&c, lines[v], &rows[i]);
    http_stage_close(&s, &c);
}

static void what_needs_a_session(void **state)
{
    static const row rows[] = {
        {"logging/setLevel", "\"level\":\"info\"", 400, DENIED},
        {"resources/subscribe", "\"uri\":\"test://static-text\"", 400, DENIED},
        {"tasks/list", "", 400, DENIED},
        {"tasks/get", "\"taskId\":\"T\"", 400, DENIED},
        {"tasks/result", "\"taskId\":\"T\"", 400, DENIED},
        {"no/such", "", 400, DENIED},
    };
    static const row list = {"tools/list", "", 400, ""};
    http_stage s = {.dialects_on = SEGUE_DIALECT_DRAFT_TASKS};
    http_caller c;
    (void)state;
    http_stage_open(&s, &c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(&c, OF_2025_11_25, &rows[i]);
    /* a draft, and a version that does not exist */
    expect(&c, "MCP-Protocol-Version: DRAFT-2026-v1\r\n", &list);
    expect(&c, "MCP-Protocol-Version: 2025-11-26\r\n", &list);
    http_stage_close(&s, &c);
}

/* A connection serves requests of both eras, sessions, and requests without a session,
 * in any order. Nothing of one is left for the next. */
static void eras_take_turns(void **state)
{
    static const row bare = {"tools/list", "", 200, "\"name\":\"greet\""};
    static const row asks = {"tools/call", "\"name\":\"ask_once\"", 200,
                             "cannot ask: SEGUE_E_UNSUPPORTED"};
    static const char opens[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},"
        "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}";
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    http_stage_open(&s, &c);
    for (int i = 0; i < 3; i++) {
        expect(&c, OF_2025_11_25, &bare);
        http_caller_ask(&c, http_call("1", "greet", "{\"name\":\"Ada\"}"), &reply);
        assert_int_equal(reply.status, 200);
        assert_non_null(strstr(reply.body, "\"resultType\":\"complete\""));
        http_reply_free(&reply);
        expect(&c, OF_2025_11_25, &bare);
        http_caller_ask(&c, http_post("", opens), &reply);
        assert_int_equal(reply.status, 200);
        assert_string_not_equal(http_reply_header(&reply, "Mcp-Session-Id"), "");
        http_reply_free(&reply);
        /* the client of the session can be asked, and this one cannot */
        expect(&c, OF_2025_11_25, &asks);
        http_caller_ask(&c, http_post("", "{\"jsonrpc\":\"2.0\",\"id\":2}"), &reply);
        assert_int_equal(reply.status, 400);
        http_reply_free(&reply);
    }
    http_stage_close(&s, &c);
}

/* Progress comes on the stream of the call; the stream has no event ids, because nobody
 * can come back to it. */
static void progress_comes_in_the_stream(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    int reports = 0;
    bool is_answered = false;
    char *event;
    (void)state;
    http_stage_open(&s, &c);
    say(&c, OF_2025_11_25, "tools/call",
        "\"name\":\"chatty\",\"_meta\":{\"progressToken\":7}");
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 200);
    assert_null(reply.body);
    while ((event = http_caller_event(&c))) {
        assert_null(strstr(event, "id: "));
        reports += strstr(event, "notifications/progress") != NULL;
        is_answered = strstr(event, "\"content\"") != NULL;
        free(event);
    }
    assert_int_equal(reports, 3);
    assert_true(is_answered);
    http_reply_free(&reply);
    http_stage_close(&s, &c);
}

/* The server has declared no tasks to this client, so a request for a task is ignored. A
 * tool that must be a task is refused. */
static void calls_are_plain(void **state)
{
    static const row rows[] = {
        {"tools/call", "\"name\":\"fields\",\"task\":{\"ttl\":60000}", 200,
         "\"content\""},
        {"tools/call", "\"name\":\"failing_job\",\"task\":{}", 200,
         "only runs as a task"},
    };
    http_stage s = {0};
    http_caller c;
    (void)state;
    http_stage_open(&s, &c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(&c, OF_2025_11_25, &rows[i]);
    http_stage_close(&s, &c);
}

/* Nobody can come back for the answer, so the end of the connection cancels the call. */
static void a_cut_cancels_the_call(void **state)
{
    http_stage s = {0};
    http_caller c;
    (void)state;
    http_stage_open(&s, &c);
    say(&c, OF_2025_11_25, "tools/call", "\"name\":\"hang_plain\"");
    http_stage_advance(&s, 300);
    assert_int_equal(fixtures_jobs(s.fixtures), 1);
    http_caller_reset(&c);
    http_stage_run(&s);
    assert_int_equal(fixtures_jobs(s.fixtures), 0);
    http_caller_open(&s, &c);
    http_stage_close(&s, &c);
}

static void notifications(void **state)
{
    static const char initialized[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
    static const char changed[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}";
    http_stage s = {0};
    http_caller c;
    (void)state;
    http_stage_open(&s, &c);
    char *request = http_post(OF_2025_11_25, initialized);
    http_caller_say(&c, request);
    free(request);
    assert_int_equal(http_caller_status(&c), 202);
    request = http_post(OF_2025_11_25, changed);
    http_caller_say(&c, request);
    free(request);
    assert_int_equal(http_caller_status(&c), 400);
    http_stage_close(&s, &c);
}

static segue_status refuse(void *user, segue_transport *transport, const char **principal)
{
    (void)user;
    (void)transport;
    (void)principal;
    return SEGUE_E_UNAUTHORIZED;
}

/* A request without a session has passed the same checks as any other. */
static void callers_are_checked(void **state)
{
    static const row list = {"tools/list", "", 401, "does not accept this caller"};
    static const row page = {"tools/list", "", 403, "Origin"};
    http_stage strict = {.principal = refuse}, s = {0};
    http_caller c;
    (void)state;
    http_stage_open(&strict, &c);
    expect(&c, OF_2025_11_25, &list);
    http_stage_close(&strict, &c);
    http_stage_open(&s, &c);
    expect(&c, "Origin: http://evil.example\r\n", &page);
    http_stage_close(&s, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"R-0-12 what needs no session is answered without one", what_needs_no_session,
         NULL, NULL, NULL},
        {"R-0-12 what needs a session is refused without one", what_needs_a_session, NULL,
         NULL, NULL},
        {"R-0-12 eras take turns on one connection", eras_take_turns, NULL, NULL, NULL},
        {"R-0-12 progress comes in the stream of the call", progress_comes_in_the_stream,
         NULL, NULL, NULL},
        {"R-0-12 a call without a session is plain", calls_are_plain, NULL, NULL, NULL},
        {"R-0-12 a cut cancels the call", a_cut_cancels_the_call, NULL, NULL, NULL},
        {"R-0-12 only the end of the handshake is accepted", notifications, NULL, NULL,
         NULL},
        {"R-0-12 callers are checked as ever", callers_are_checked, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
