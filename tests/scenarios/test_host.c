/* The client as the receiver of tasks (2025-11-25 basic/utilities/tasks), with SEP-1905
 * and without. AS-25, and R-1905-36 to R-1905-51 in the other direction. */
#include "engine/server/gather.h"
#include "support/host_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- what is declared ---- */

static void what_is_answered_is_declared(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_prepare(&s, NULL, NULL, NULL);
    const char *line = kit_expect(&s.k, "initialize");
    assert_at(
        line, "params.capabilities",
        "{\"tasks\":{\"responses\":{\"modes\":[\"task\",\"immediate\",\"streaming\"]"
        "},\"cancel\":{},\"requests\":{\"sampling\":{\"createMessage\":{}},"
        "\"elicitation\":{\"create\":{}}}},\"sampling\":{},\"elicitation\":{},"
        "\"experimental\":{\"dev.segue/replace\":{}}}");
    hosting_end(&s);
}

static void what_is_never_a_task_is_no_task_of_the_declaration(void **state)
{
    (void)state;
    host_stage s = {0};
    segue_session_options options = kit_legacy_options();
    segue_item_options item = hosting_item_options(SEGUE_TASK_NEVER);
    options.capabilities = "{\"sampling\":{\"tools\":{}}}";
    hosting_prepare(&s, &options, NULL, &item);
    const char *line = kit_expect(&s.k, "initialize");
    assert_at(line, "params.capabilities.tasks.requests", "");
    assert_at(line, "params.capabilities.tasks.cancel", "");
    assert_at(line, "params.capabilities.sampling", "{\"tools\":{}}");
    hosting_end(&s);
}

/* ---- L ---- */

static void a_question_is_a_task(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    model_call *c = hosting_make_task(&s, ASK("7", ",\"task\":{\"ttl\":60000}"));
    assert_at(c->params, "maxTokens", "9");
    hosting_ask_about(&s, "8", "tasks/get", "");
    const char *line = hosting_assert_answer(&s, "8", "result.status", "\"working\"");
    assert_at(line, "result.ttl", "60000");
    assert_at(line, "result.pollInterval", "1000");
    assert_at(line, "result._meta", "");
    hosting_ask_about(&s, "9", "tasks/result", ""); /* this request waits for the end */
    model_say(c, "Hello");
    model_say(c, "!");
    kit_expect_silence(&s.k); /* without a request for S nothing is streamed */
    assert_int_equal(model_complete(c), SEGUE_OK);
    hosting_assert_told(&s, "\"completed\"");
    line = kit_heard(&s.k);
    assert_at(line, "id", "9");
    hosting_assert_message(line, TEXT("Hello!"));
    hosting_assert_related(&s, line);
    hosting_ask_about(&s, "10", "tasks/result",
                      ",\"lastSeqNr\":1"); /* a task without S */
    hosting_assert_message(kit_heard(&s.k), TEXT("Hello!"));
    hosting_assert_status(&s, "\"completed\"");
    hosting_ask_about(&s, "11", "tasks/list", "");
    hosting_assert_refused(&s, "11", "-32601");
    hosting_end(&s);
}

static void an_elicitation_is_a_task(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    model_call *c = hosting_make_task(
        &s, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\",\"params\":{"
            "\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}"
            "}" STREAMED "}}"); /* falls back to a task: there is nothing to stream */
    assert_int_equal(model_say(c, "no"), SEGUE_E_INVALID); /* the result has no list */
    assert_int_equal(model_field(c, "action", "\"accept\""), SEGUE_OK);
    assert_int_equal(model_field(c, "content", "{\"a\":1}"), SEGUE_OK);
    segue_call_complete(c->call, NULL, NULL);
    hosting_assert_told(&s, "\"completed\"");
    hosting_ask_about(&s, "8", "tasks/result", "");
    const char *line = hosting_assert_answer(&s, "8", "result.action", "\"accept\"");
    assert_at(line, "result.content", "{\"a\":1}");
    assert_at(line, "result.partial-content", "");
    hosting_assert_related(&s, line);
    hosting_end(&s);
}

/* The members that the schema requires are there, even when the handler leaves them
 * out. */
static void an_answer_has_what_it_needs(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    model_call *c = hosting_make_task(&s, ASK("7", ",\"task\":{}"));
    segue_call_send_text(c->call, "lost", 4, NULL);
    model_field(c, "model", "\"gone\"");
    segue_call_replace(c->call, NULL);
    segue_call_complete(c->call, NULL, NULL);
    hosting_assert_told(&s, "\"completed\"");
    hosting_ask_about(&s, "8", "tasks/result", "");
    const char *line = hosting_assert_answer(&s, "8", "result.content", "[]");
    assert_at(line, "result.role", "\"assistant\"");
    assert_at(line, "result.model", "\"unknown\"");
    kit_say(&s.k, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"elicitation/create\","
                  "\"params\":{\"message\":\"?\"}}");
    segue_call_complete(s.m.calls->call, NULL, NULL);
    hosting_assert_answer(&s, "9", "result", "{\"action\":\"cancel\"}");
    hosting_end(&s);
}

static void a_plain_question_has_a_plain_answer(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    kit_say(&s.k, ASK("7", "," RELATED("T")));
    model_say(s.m.calls, "Hi");
    model_complete(s.m.calls);
    const char *line = kit_heard(&s.k);
    assert_at(line, "id", "7");
    hosting_assert_message(line, TEXT("Hi"));
    assert_at(line, "result._meta",
              "{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"T\"}}");
    kit_say(&s.k, ASK("8", ""));
    model_fail(s.m.calls, -1, "User rejected sampling request");
    hosting_assert_refused(&s, "8", "-1");
    kit_say(&s.k, ASK("9", ""));
    model_call *c = s.m.calls;
    kit_say(&s.k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
            "{\"requestId\":9}}");
    kit_run(&s.k);
    assert_int_equal(c->cancelled, 1);
    kit_expect_silence(&s.k);
    hosting_end(&s);
}

/* ---- S ---- */

static void as_25(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    model_call *c = hosting_make_task(&s, ASK("7", STREAMED));
    model_say(c, "a");
    const char *line = hosting_assert_answer(&s, "7", "result.partial-content",
                                             "[" NUMBERED(1, "a") "]");
    assert_at(line, "result.isComplete", "false");
    assert_at(line, "result.role", ""); /* those members come with the final answer */
    hosting_assert_related(&s, line);
    hosting_assert_status(&s, "\"working\"");
    model_say(c, "b");
    model_say(c, "c");
    kit_advance(&s.k, SGI_GATHER_MS);
    line = hosting_assert_answer(&s, "7", "result.partial-content",
                                 "[" NUMBERED(2, "b") "," NUMBERED(3, "c") "]");
    hosting_ask_about(&s, "8", "tasks/result", ",\"lastSeqNr\":1");
    line = hosting_assert_answer(&s, "8", "result.partial-content",
                                 "[" NUMBERED(2, "b") "," NUMBERED(3, "c") "]");
    assert_at(line, "result.isComplete", "false");
    model_complete(c);
    line = hosting_assert_answer(&s, "7", "result.isComplete", "true");
    assert_at(line, "result.partial-content", "[]");
    assert_at(line, "result.isError", "false");
    assert_at(line, "result.role", "\"assistant\"");
    assert_at(line, "result.model", "\"m-1\"");
    assert_at(line, "result.stopReason", "\"endTurn\"");
    hosting_assert_told(&s, "\"completed\""); /* after the end of the stream */
    hosting_ask_about(&s, "9", "tasks/result", "");
    line = kit_heard(&s.k);
    hosting_assert_message(line, "[" TEXT("a") "," TEXT("b") "," TEXT("c") "]");
    hosting_assert_related(&s, line);
    hosting_end(&s);
}

static void an_immediate_answer_is_no_task(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    s.m.at_once = 1;
    kit_say(&s.k, ASK("7", ",\"task\":{" ALL_MODES "}"));
    const char *line = kit_heard(&s.k);
    assert_at(line, "id", "7");
    hosting_assert_message(line, "[" TEXT("At once.") "]");
    assert_at(line, "result._meta", "");
    assert_at(line, "result.task", "");
    kit_expect_silence(&s.k);
    hosting_end(&s);
}

static void a_failure_ends_the_stream(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    model_call *c = hosting_make_task(&s, ASK("7", STREAMED));
    model_say(c, "a");
    kit_heard(&s.k);
    model_fail(c, -1, "No");
    const char *line = hosting_assert_answer(&s, "7", "result.partial-content",
                                             "[" NUMBERED(2, "No") "]");
    assert_at(line, "result.isError", "true");
    assert_at(line, "result.isComplete", "true");
    hosting_assert_told(&s, "\"failed\"");
    /* R-1905-46: tasks/result returns the original error */
    hosting_ask_about(&s, "8", "tasks/result", "");
    line = hosting_assert_answer(&s, "8", "error.code", "-1");
    assert_at(line, "error.message", "\"No\"");
    hosting_end(&s);
}

/* ---- the end ---- */

static void a_task_is_cancelled(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    model_call *c = hosting_make_task(&s, ASK("7", STREAMED));
    model_say(c, "a");
    kit_heard(&s.k);
    hosting_ask_about(&s, "8", "tasks/cancel", "");
    /* R-1905-47: the stream ends before the cancel is answered */
    hosting_assert_answer(&s, "7", "result.isComplete", "true");
    hosting_assert_answer(&s, "8", "result.status", "\"cancelled\"");
    hosting_assert_told(&s, "\"cancelled\"");
    assert_int_equal(c->cancelled, 1);
    assert_int_equal(model_say(c, "b"), SEGUE_E_TERMINAL);
    hosting_ask_about(&s, "9", "tasks/result", ""); /* R-1905-48: no tools/call */
    hosting_assert_refused(&s, "9", "-32603");
    hosting_ask_about(&s, "10", "tasks/cancel", "");
    hosting_assert_refused(&s, "10", "-32602");
    hosting_end(&s);
}

static void its_time_to_live_ends_it(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    model_call *c = hosting_make_task(&s, ASK("7", ",\"task\":{\"ttl\":5000}"));
    hosting_ask_about(&s, "8", "tasks/result", "");
    kit_advance(&s.k, 5100);
    hosting_assert_told(&s, "\"failed\"");
    hosting_assert_refused(&s, "8", "-32603");
    assert_int_equal(c->cancelled, 1);
    kit_advance(&s.k, 10 * 60 * 1000); /* the grace time, then the purge */
    hosting_ask_about(&s, "9", "tasks/get", "");
    hosting_assert_refused(&s, "9", "-32602");
    hosting_end(&s);
}

static void a_handler_that_gives_up_fails_it(void **state)
{
    (void)state;
    host_stage s = {0};
    hosting_begin(&s);
    model_call *c = hosting_make_task(&s, ASK("7", ",\"task\":{}"));
    segue_call_free(c->call);
    c->call = NULL;
    hosting_assert_told(&s, "\"failed\"");
    hosting_ask_about(&s, "8", "tasks/result", "");
    hosting_assert_refused(&s, "8", "-32603");
    hosting_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_answered_is_declared),
        cmocka_unit_test(what_is_never_a_task_is_no_task_of_the_declaration),
        cmocka_unit_test(a_question_is_a_task),
        cmocka_unit_test(an_elicitation_is_a_task),
        cmocka_unit_test(an_answer_has_what_it_needs),
        cmocka_unit_test(a_plain_question_has_a_plain_answer),
        {"AS-25 a hosted task is streamed", as_25, NULL, NULL, NULL},
        cmocka_unit_test(an_immediate_answer_is_no_task),
        cmocka_unit_test(a_failure_ends_the_stream),
        cmocka_unit_test(a_task_is_cancelled),
        cmocka_unit_test(its_time_to_live_ends_it),
        cmocka_unit_test(a_handler_that_gives_up_fails_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
