/* The client against a server that the test plays: polled and streamed tasks, and faults
 * of the server. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* Every way to answer a call ends in the same result and the same segments. */
static const char same_result[] =
    "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]";

static void check_same(record *r)
{
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    assert_string_equal(json_at(r->result, "content"), same_result);
}

static void plain_polled_and_streamed_end_alike(void **state)
{
    (void)state;
    kit plain = {0}, polled = {0}, streamed = {0};

    kit_begin_modern(&plain, NULL, SERVER_PLAIN);
    record *r = kit_call(&plain, "t");
    kit_result(&plain, kit_expect(&plain, "tools/call"),
               "\"resultType\":\"complete\",\"content\":%s", same_result);
    check_same(r);
    kit_end(&plain);

    kit_begin_modern(&polled, NULL, SERVER_TASKS);
    r = kit_call(&polled, "t");
    kit_result(&polled, kit_expect(&polled, "tools/call"), CREATED("T"));
    kit_result(&polled, kit_expect(&polled, "tasks/get"), TASK("T", "working"));
    kit_expect_silence(&polled);
    kit_advance(&polled, 1200);
    kit_result(&polled, kit_expect(&polled, "tasks/get"),
               TASK("T", "completed") "," RESULT);
    check_same(r);
    kit_end(&polled);

    kit_begin_modern(&streamed, NULL, SERVER_STREAMS);
    r = kit_call(&streamed, "t");
    kit_result(&streamed, kit_expect(&streamed, "tools/call"), CREATED("T"));
    const char *stream = kit_expect(&streamed, "tasks/stream");
    kit_segment(&streamed, "T", 0, 1, "a");
    kit_segment(&streamed, "T", 1, 2, "b");
    kit_result(&streamed, stream, "\"resultType\":\"complete\"");
    kit_result(&streamed, kit_expect(&streamed, "tasks/get"),
               TASK("T", "completed") "," RESULT);
    check_same(r);
    kit_end(&streamed);
}

static void final_in_the_stream_needs_no_get(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    const char *stream = kit_expect(&k, "tasks/stream");
    kit_segment(&k, "T", 0, 1, "a");
    kit_segment(&k, "T", 1, 2, "b");
    kit_result(&k, stream, FINAL);
    kit_expect_silence(&k);
    check_same(r);
    kit_end(&k);
}

static void repeats_are_dropped_and_a_hole_is_repaired(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    const char *stream = kit_expect(&k, "tasks/stream");
    assert_at(stream, "params.after", "");
    kit_segment(&k, "T", 0, 1, "a");
    kit_segment(&k, "T", 0, 1, "a");
    kit_segment(&k, "T", 2, 3, "c"); /* segment 1 is missing */
    kit_expect(&k, "notifications/cancelled");
    stream = kit_expect(&k, "tasks/stream");
    assert_at(stream, "params.after", "0");
    kit_segment(&k, "T", 1, 2, "b");
    kit_result(&k, stream, FINAL);
    check_same(r);
    kit_end(&k);
}

/* AS-71: the callback comes before the first poll, and its token is enough for another
 * process. */
static void token_of_on_task_resumes_in_a_new_process(void **state)
{
    (void)state;
    char token[4096];
    kit first = {0}, second = {0};
    kit_begin_modern(&first, NULL, SERVER_STREAMS);
    record *r = kit_call(&first, "t");
    kit_result(&first, kit_expect(&first, "tools/call"), CREATED("T"));
    const char *stream = kit_expect(&first, "tasks/stream");
    assert_true(strlen(stream) > 0);
    assert_memory_equal(r->log, "task T\n", 7);
    kit_segment(&first, "T", 0, 1, "a");
    strcpy(token, r->token);
    kit_end(&first);

    kit_begin_modern(&second, NULL, SERVER_STREAMS);
    r = kit_resume(&second, token, NULL);
    stream = kit_expect(&second, "tasks/stream");
    assert_at(stream, "params.after", "0");
    kit_segment(&second, "T", 1, 2, "b");
    kit_result(&second, stream, "\"resultType\":\"complete\"");
    kit_result(&second, kit_expect(&second, "tasks/get"),
               TASK("T", "completed") "," RESULT);
    assert_int_equal(r->segments, 1);
    assert_int_equal(r->last_segment, 2);
    assert_string_equal(json_at(r->result, "content"), same_result);
    kit_end(&second);
}

/* AS-73: pauses grow after temporary failures; an unknown task is lost. */
static void get_failures_back_off_and_a_lost_task_ends_once(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    for (int i = 0; i < 5; i++) {
        kit_error(&k, kit_expect(&k, "tasks/get"), -32603, NULL);
        if (i == 0)
            continue; /* the first retry comes at once */
        kit_expect_silence(&k);
        kit_advance(&k, 5000);
    }
    kit_error(&k, kit_expect(&k, "tasks/get"), -32602, NULL);
    assert_int_equal(r->status, SEGUE_E_TASK_LOST);
    kit_advance(&k, 60000);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* AS-75: tools/list cannot become a task. */
static void a_task_for_tools_list_is_an_invalid_answer(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_start(&k, "tools/list", NULL, NULL);
    kit_result(&k, kit_expect(&k, "tools/list"), CREATED("T"));
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* AS-76: wrong type names of the specification's examples are accepted, unknown ones
 * refused. */
static void result_types_on_get_and_call(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_result(&k, kit_expect(&k, "tasks/get"),
               "\"resultType\":\"task\",\"taskId\":\"T\",\"status\":\"completed\"," STAMPS
               "," RESULT);
    check_same(r);
    r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"resultType\":\"banana\",\"content\":[]");
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    kit_end(&k);
}

/* AS-77, AS-67: field names of drafts, and an interval that is read from each answer. */
static void draft_field_names_and_changing_intervals(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(
        &k, kit_expect(&k, "tools/call"),
        "\"resultType\":\"task\",\"task\":{\"taskId\":\"T\",\"status\":\"working\","
        "\"ttlSeconds\":60,\"pollIntervalMilliseconds\":500}");
    kit_result(
        &k, kit_expect(&k, "tasks/get"),
        "\"taskId\":\"T\",\"status\":\"working\",\"pollIntervalMilliseconds\":500");
    kit_advance(&k, 400);
    kit_expect_silence(&k);
    kit_advance(&k, 200);
    kit_result(&k, kit_expect(&k, "tasks/get"),
               "\"taskId\":\"T\",\"status\":\"working\",\"pollIntervalMs\":3000");
    kit_advance(&k, 2600);
    kit_expect_silence(&k);
    kit_advance(&k, 800);
    kit_result(&k, kit_expect(&k, "tasks/get"),
               "\"taskId\":\"T\",\"status\":\"working\",\"pollIntervalMs\":1");
    kit_advance(&k, 80);
    kit_expect_silence(&k);
    kit_advance(&k, 40);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
    check_same(r);
    kit_end(&k);
}

/* AS-53: in 2026-07-28 a requestState of a task is never sent back. */
static void request_state_is_never_echoed(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T") ",\"requestState\":\"s\"");
    const char *get = kit_expect(&k, "tasks/get");
    assert_false(json_mentions(get, "requestState"));
    kit_result(&k, get, TASK("T", "working") ",\"requestState\":\"s2\"");
    kit_advance(&k, 1200);
    get = kit_expect(&k, "tasks/get");
    assert_false(json_mentions(get, "requestState"));
    kit_result(&k, get, TASK("T", "completed") "," RESULT);
    kit_end(&k);
}

/* R-2557-9: the answer may say that the task asks, but not what. The client polls for the
 * question at once, with or without a stream. (tests/vectors has a task that has ended at
 * once.) */
static void a_task_may_ask_at_once(void **state)
{
    (void)state;
    static const char *const servers[] = {SERVER_TASKS, SERVER_STREAMS};
    for (int i = 0; i < 2; i++) {
        kit k = {0};
        kit_begin_modern(&k, NULL, servers[i]);
        record *r = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"),
                   "\"resultType\":\"task\",\"taskId\":\"T\",\"status\":"
                   "\"input_required\"," STAMPS);
        if (i) {
            kit_expect(&k, "tasks/stream");
            kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\","
                        "\"params\":{\"seq\":0,\"taskId\":\"T\",\"type\":"
                        "\"dev.segue.status\",\"payload\":{\"status\":"
                        "\"input_required\"}}}");
        }
        kit_result(&k, kit_expect(&k, "tasks/get"),
                   TASK("T", "input_required") ",\"inputRequests\":{\"k1\":{"
                                               "\"method\":\"elicitation/create\","
                                               "\"params\":{\"message\":\"?\"}}}");
        assert_non_null(strstr(r->log, "input k1"));
        assert_int_equal(record_answer(r, NULL, "{\"action\":\"accept\"}"), SEGUE_OK);
        kit_result(&k, kit_expect(&k, "tasks/update"), "\"resultType\":\"complete\"");
        kit_end(&k);
    }
}

/* AS-72: a question is asked again after a resume, unless its acknowledgement came. */
static void questions_come_once_and_again_after_a_resume(void **state)
{
    (void)state;
    static const char asks[] = TASK(
        "T", "input_required") ",\"inputRequests\":{\"k1\":{\"method\":"
                               "\"elicitation/create\",\"params\":{\"message\":\"?\"}}}";
    static const char answer[] = "{\"action\":\"accept\"}";
    char token[4096];
    kit first = {0}, second = {0};
    kit_begin_modern(&first, NULL, SERVER_TASKS);
    record *r = kit_call(&first, "t");
    kit_result(&first, kit_expect(&first, "tools/call"), CREATED("T"));
    kit_result(&first, kit_expect(&first, "tasks/get"), asks);
    kit_advance(&first, 1200);
    kit_result(&first, kit_expect(&first, "tasks/get"), asks);
    assert_string_equal(r->log,
                        "task T\nstatus working -\nstatus input_required -\ninput k1 "
                        "elicitation/create {\"message\":\"?\"}\n");
    strcpy(token, r->token);
    kit_end(&first);

    kit_begin_modern(&second, NULL, SERVER_TASKS);
    r = kit_resume(&second, token, NULL);
    kit_result(&second, kit_expect(&second, "tasks/get"), asks);
    assert_non_null(strstr(r->log, "input k1"));
    assert_int_equal(
        segue_request_answer(r->request, "nope", answer, strlen(answer), NULL),
        SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_request_answer(r->request, "k1", answer, strlen(answer), NULL),
                     SEGUE_OK);
    assert_int_equal(segue_request_answer(r->request, "k1", answer, strlen(answer), NULL),
                     SEGUE_E_NOT_FOUND);
    const char *update = kit_expect(&second, "tasks/update");
    assert_at(update, "params.inputResponses", "{\"k1\":{\"action\":\"accept\"}}");
    kit_result(&second, update, "\"resultType\":\"complete\"");
    kit_result(&second, kit_expect(&second, "tasks/get"),
               TASK("T", "completed") "," RESULT);
    check_same(r);
    kit_end(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-70 R-C-18 plain, polled and streamed end alike",
         plain_polled_and_streamed_end_alike, 0, 0, 0},
        {"final in the stream needs no get", final_in_the_stream_needs_no_get, 0, 0, 0},
        {"repeats are dropped, a hole is repaired",
         repeats_are_dropped_and_a_hole_is_repaired, 0, 0, 0},
        {"AS-71 token of on_task resumes in a new process",
         token_of_on_task_resumes_in_a_new_process, 0, 0, 0},
        {"AS-73 get failures back off, a lost task ends once",
         get_failures_back_off_and_a_lost_task_ends_once, 0, 0, 0},
        {"AS-75 a task for tools/list is an invalid answer",
         a_task_for_tools_list_is_an_invalid_answer, 0, 0, 0},
        {"AS-76 resultType on get and call", result_types_on_get_and_call, 0, 0, 0},
        {"AS-67 AS-77 R-2557-43 intervals and names of drafts",
         draft_field_names_and_changing_intervals, 0, 0, 0},
        {"AS-53 requestState is never echoed", request_state_is_never_echoed, 0, 0, 0},
        {"R-2557-9 a task may ask at once", a_task_may_ask_at_once, 0, 0, 0},
        {"AS-72 questions come once, and again after a resume",
         questions_come_once_and_again_after_a_resume, 0, 0, 0},
    };
    return cmocka_run_group_tests_name("client_tasks", tests, NULL, NULL);
}
