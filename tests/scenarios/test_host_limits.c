/* The host of a session when the server breaks the rules or sends too much, and when the
 * connection or the host ends. */
#include "support/host_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- the connection ---- */

static void a_task_outlives_the_connection(void **state)
{
    (void)state;
    host_stage s = {0};
    s.k.can_reopen = 1;
    hosting_begin(&s);
    model_call *c = hosting_make_task(&s, ASK("7", STREAMED));
    model_say(c, "a");
    kit_heard(&s.k);
    kit_cut(&s.k);
    assert_int_equal(c->cancelled, 0);
    assert_int_equal(model_say(c, "b"), SEGUE_OK);
    kit_advance(&s.k, 1000);
    kit_handshake_2025(&s.k, SERVER_2025_STREAMS);
    kit_expect_silence(&s.k);
    hosting_assert_status(&s, "\"working\"");
    hosting_ask_about(&s, "8", "tasks/result", ",\"lastSeqNr\":1");
    hosting_assert_answer(&s, "8", "result.partial-content", "[" NUMBERED(2, "b") "]");
    kit_say(&s.k, ASK("7", "")); /* ids belong to the new connection */
    model_complete(s.m.calls);
    hosting_assert_answer(&s, "7", "result.model", "\"m-1\"");
    model_complete(c);
    hosting_ask_about(&s, "9", "tasks/result", "");
    hosting_assert_message(kit_heard(&s.k), "[" TEXT("a") "," TEXT("b") "]");
    hosting_end(&s);
}

static void a_host_that_closes_is_asked_no_more(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    hosting_make_task(&s, ASK("7", ",\"task\":{}"));
    segue_server_close(s.m.host);
    kit_run(&s.k);
    hosting_ask_about(&s, "8", "tasks/get", "");
    hosting_assert_refused(&s, "8", "-32601");
    kit_say(&s.k, ASK("9", ""));
    /* nothing else answers the question either */
    hosting_assert_refused(&s, "9", "-32603");
    kit_say(&s.k, "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"ping\"}");
    hosting_assert_answer(&s, "10", "result", "{}");
    segue_session *second = NULL;
    segue_transport *a, *b;
    segue_session_options options = kit_legacy_options();
    options.host = s.m.host;
    assert_int_equal(segue_transport_pair(s.k.runtime, &a, &b), SEGUE_OK);
    assert_int_equal(segue_session_open(s.k.runtime, a, &options, NULL, &second, NULL),
                     SEGUE_E_CLOSED);
    segue_transport_free(a);
    segue_transport_free(b);
    hosting_end(&s);
}

/* ---- invalid requests ---- */

static void wrong_tasks_are_refused(void **state)
{
    static const char *const wrong[] = {
        ASK("7", ",\"task\":5"), ASK("7", ",\"task\":{\"ttl\":-1}"),
        ASK("7", ",\"task\":{\"ttl\":1.5}"), ASK("7", ",\"task\":{\"responseModes\":1}"),
        ASK("7", ",\"task\":{\"responseModes\":[1]}")};
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kit_say(&s.k, "%s", wrong[i]);
        hosting_assert_refused(&s, "7", "-32602");
    }
    assert_int_equal(s.m.count, 0);
    hosting_end(&s);
}

static void strange_ids(void **state)
{
    (void)state;
    static const char *const methods[] = {"tasks/get", "tasks/result", "tasks/cancel"};
    host_stage s = {0};
    hosting_begin(&s);
    for (size_t i = 0; i < 3; i++) {
        snprintf(s.task, sizeof s.task, "no-such-task");
        hosting_ask_about(&s, "8", methods[i], "");
        hosting_assert_refused(&s, "8", "-32602");
        kit_say(&s.k, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"%s\",\"params\":{}}",
                methods[i]);
        hosting_assert_refused(&s, "9", "-32602");
    }
    kit_say(&s.k, "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"tasks/banana\"}");
    hosting_assert_refused(&s, "10", "-32601");
    hosting_make_task(&s, ASK("\"x\"", STREAMED));
    hosting_ask_about(&s, "11", "tasks/result", ",\"lastSeqNr\":0");
    hosting_assert_refused(&s, "11", "-32602");
    hosting_ask_about(&s, "12", "tasks/result", ",\"lastSeqNr\":\"1\"");
    hosting_assert_refused(&s, "12", "-32602");
    hosting_ask_about(&s, "13", "tasks/result", "");
    hosting_ask_about(&s, "13", "tasks/get", ""); /* the id is in flight (C-3) */
    kit_expect_silence(&s.k);
    hosting_end(&s);
}

static void a_form_that_was_not_declared_is_refused(void **state)
{
    (void)state;
    host_stage s = {0};
    segue_item_options must = hosting_item_options(SEGUE_TASK_MUST);
    hosting_begin_with(&s, NULL, NULL, &must);
    kit_say(&s.k, ASK("7", ""));
    hosting_assert_refused(&s, "7", "-32601");
    kit_say(&s.k, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"elicitation/create\","
                  "\"params\":{\"mode\":\"url\",\"task\":{}}}");
    hosting_assert_refused(&s, "8", "-32602");
    kit_say(&s.k, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/list\"}");
    hosting_assert_refused(&s, "9", "-32601");
    assert_int_equal(s.m.count, 0);
    hosting_end(&s);
}

/* basic/utilities/tasks, "Task Support and Handling", 1. */
static void what_is_no_task_ignores_that_it_is_to_be_one(void **state)
{
    (void)state;
    host_stage s = {0};
    segue_item_options never = hosting_item_options(SEGUE_TASK_NEVER);
    hosting_begin_with(&s, NULL, NULL, &never);
    kit_say(&s.k, ASK("7", ",\"task\":{\"ttl\":-1}"));
    model_say(s.m.calls, "Hi");
    model_complete(s.m.calls);
    hosting_assert_message(kit_heard(&s.k), TEXT("Hi"));
    hosting_end(&s);
}

static void a_session_without_tasks_has_none_here(void **state)
{
    (void)state;
    host_stage s = {0};
    segue_session_options options = kit_legacy_options();
    options.no_tasks = 1;
    hosting_prepare(&s, &options, NULL, NULL);
    const char *line = kit_expect(&s.k, "initialize");
    assert_at(line, "params.capabilities", "{\"sampling\":{},\"elicitation\":{}}");
    kit_result(&s.k, line,
               "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
               "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}");
    kit_expect(&s.k, "notifications/initialized");
    kit_say(&s.k, ASK("7", ",\"task\":{}"));
    model_say(s.m.calls, "Hi");
    model_complete(s.m.calls);
    hosting_assert_message(kit_heard(&s.k), TEXT("Hi"));
    kit_say(&s.k, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tasks/get\",\"params\":{"
                  "\"taskId\":\"x\"}}");
    hosting_assert_refused(&s, "8", "-32601");
    hosting_end(&s);
}

/* In these revisions on_input answers. */
static void other_revisions_know_no_host(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_prepare(&s, NULL, NULL, NULL);
    kit_result(&s.k, kit_expect(&s.k, "initialize"),
               "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"
               "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}");
    kit_expect(&s.k, "notifications/initialized");
    record *r = kit_call(&s.k, "t");
    const char *call = kit_expect(&s.k, "tools/call");
    kit_say(&s.k, ASK("7", ""));
    assert_non_null(strstr(r->log, "input 1:7 sampling/createMessage"));
    kit_say(&s.k, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tasks/get\",\"params\":{"
                  "\"taskId\":\"x\"}}");
    hosting_assert_refused(&s, "8", "-32601");
    assert_int_equal(s.m.count, 0);
    kit_result(&s.k, call, "\"content\":[]");
    hosting_end(&s);
}

/* ---- bounds ---- */

static void tasks_are_bounded(void **state)
{
    (void)state;
    host_stage s = {0};
    segue_server_options host = hosting_host_options();
    host.max_tasks = 2;
    hosting_begin_with(&s, NULL, &host, NULL);
    hosting_make_task(&s, ASK("1", ",\"task\":{}"));
    hosting_make_task(&s, ASK("2", ",\"task\":{}"));
    kit_say(&s.k, ASK("3", ",\"task\":{}"));
    hosting_assert_refused(&s, "3", "-32603");
    assert_int_equal(s.m.count, 2);
    model_complete(s.m.calls);
    hosting_assert_told(&s, "\"completed\"");
    hosting_make_task(&s, ASK("4", ",\"task\":{}"));
    hosting_end(&s);
}

static void requests_are_bounded(void **state)
{
    (void)state;
    host_stage s = {0};
    segue_server_options host = hosting_host_options();
    host.max_requests = 2;
    hosting_begin_with(&s, NULL, &host, NULL);
    hosting_make_task(&s, ASK("1", ",\"task\":{}"));
    hosting_ask_about(&s, "2", "tasks/result", "");
    hosting_ask_about(&s, "3", "tasks/result", "");
    hosting_ask_about(&s, "4", "tasks/result", "");
    hosting_assert_refused(&s, "4", "-32603");
    hosting_end(&s);
}

/* Each principal sees only its own tasks (R-1905-54, R-0-5). */
static segue_status name_it(void *user, segue_transport *transport,
                            const char **principal)
{
    static int count;
    (void)user;
    (void)transport;
    *principal = count++ % 2 ? "second" : "first";
    return SEGUE_OK;
}

static void a_list_is_declared_where_callers_are_told_apart(void **state)
{
    (void)state;
    host_stage s = {0};
    segue_server_options host = hosting_host_options();
    host.principal = name_it;
    hosting_prepare(&s, NULL, &host, NULL);
    const char *line = kit_expect(&s.k, "initialize");
    assert_at(line, "params.capabilities.tasks.list", "{}");
    kit_result(&s.k, line,
               "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
               "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}");
    kit_expect(&s.k, "notifications/initialized");
    hosting_make_task(&s, ASK("1", ",\"task\":{}"));
    kit_say(&s.k, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tasks/list\"}");
    line = kit_heard(&s.k);
    char expected[80];
    snprintf(expected, sizeof expected, "\"%s\"", s.task);
    assert_at(line, "result.tasks.0.taskId", expected);
    assert_at(line, "result.tasks.1", "");
    kit other = {.runtime = s.k.runtime, .mem = s.k.mem};
    segue_session_options options = kit_legacy_options();
    options.host = s.m.host;
    kit_connect(&other);
    kit_open(&other, &options);
    kit_handshake_2025(&other, SERVER_2025_STREAMS);
    kit_say(&other,
            "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tasks/get\",\"params\":{"
            "\"taskId\":\"%s\"}}",
            s.task);
    assert_at(kit_heard(&other), "error.code", "-32602");
    kit_say(&other, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tasks/list\"}");
    assert_at(kit_heard(&other), "result.tasks", "[]");
    kit_leave(&other);
    hosting_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_outlives_the_connection),
        cmocka_unit_test(a_host_that_closes_is_asked_no_more),
        cmocka_unit_test(wrong_tasks_are_refused),
        cmocka_unit_test(strange_ids),
        cmocka_unit_test(a_form_that_was_not_declared_is_refused),
        cmocka_unit_test(what_is_no_task_ignores_that_it_is_to_be_one),
        cmocka_unit_test(a_session_without_tasks_has_none_here),
        cmocka_unit_test(other_revisions_know_no_host),
        cmocka_unit_test(tasks_are_bounded),
        cmocka_unit_test(requests_are_bounded),
        cmocka_unit_test(a_list_is_declared_where_callers_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
