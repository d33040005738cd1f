/* A client streams a task that asks questions. The stream reports that there are
 * questions, and tasks/get brings them. Over HTTP another server may answer tasks/get,
 * which has not read from the store yet what the stream has reported. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define QUESTION(key)                                                                    \
    "\"" key "\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\"}}"
#define ASKS(key) TASK("T", "input_required") ",\"inputRequests\":{" QUESTION(key) "}"
#define ANSWER "{\"action\":\"accept\"}"

static void status_event(kit *k, int seq, const char *status)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
            "\"seq\":%d,\"taskId\":\"T\",\"type\":\"dev.segue.status\",\"payload\":{"
            "\"status\":\"%s\"}}}",
            seq, status);
}

/* Begins a task whose stream has just reported a question. */
static record *begin(kit *k)
{
    kit_begin_modern(k, NULL, SERVER_STREAMS);
    record *r = kit_call(k, "t");
    kit_result(k, kit_expect(k, "tools/call"), CREATED("T"));
    kit_expect(k, "tasks/stream");
    status_event(k, 0, "input_required");
    return r;
}

static void get_is_answered(kit *k, const char *members)
{
    kit_result(k, kit_expect(k, "tasks/get"), "%s", members);
}

/* The server that answers tasks/get does not know the question yet. */
static void a_question_that_get_does_not_know_comes_later(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k);
    get_is_answered(&k, TASK("T", "working"));
    kit_advance(&k, 1100);
    get_is_answered(&k, TASK("T", "working"));
    kit_advance(&k, 1100);
    get_is_answered(&k, ASKS("k1"));
    assert_string_equal(r->last_key, "k1");
    kit_advance(&k, 60000); /* the application has the question, and nothing is polled */
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The task asks a second question before it says that it works. tasks/get brings the
 * first question once more, which is answered. */
static void the_next_question_comes_later(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k);
    get_is_answered(&k, ASKS("k1"));
    status_event(&k, 1, "input_required");
    get_is_answered(&k, ASKS("k1"));
    kit_expect_silence(&k);
    assert_int_equal(record_answer(r, NULL, ANSWER), SEGUE_OK);
    kit_result(&k, kit_expect(&k, "tasks/update"), "\"resultType\":\"complete\"");
    get_is_answered(&k, ASKS("k1"));
    kit_advance(&k, 1100);
    get_is_answered(&k, ASKS("k2"));
    assert_string_equal(r->last_key, "k2");
    kit_end(&k);
}

/* The stream says that the task works again: there is nothing to ask for. */
static void a_task_that_works_again_is_not_polled(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    get_is_answered(&k, TASK("T", "working"));
    status_event(&k, 1, "working");
    kit_advance(&k, 60000);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The server refused the answer, so it asks again, and tasks/get does not know that. */
static void a_refused_answer_is_asked_for_again(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k);
    get_is_answered(&k, ASKS("k1"));
    assert_int_equal(record_answer(r, NULL, ANSWER), SEGUE_OK);
    kit_error(&k, kit_expect(&k, "tasks/update"), -32602, NULL);
    get_is_answered(&k, TASK("T", "working"));
    kit_advance(&k, 1100);
    get_is_answered(&k, ASKS("k1"));
    assert_int_equal(record_answer(r, NULL, ANSWER), SEGUE_OK);
    kit_end(&k);
}

/* A process ends while a question is open. The event of the question is in front of the
 * segment that the next process begins behind. */
static void the_next_process_gets_the_question(void **state)
{
    char token[4096];
    (void)state;
    kit first = {0}, second = {0};
    record *r = begin(&first);
    get_is_answered(&first, ASKS("k1"));
    kit_segment(&first, "T", 1, 1, "a");
    strcpy(token, r->token);
    kit_end(&first);

    kit_begin_modern(&second, NULL, SERVER_STREAMS);
    r = kit_resume(&second, token, NULL);
    assert_at(kit_expect(&second, "tasks/stream"), "params.after", "1");
    get_is_answered(&second, TASK("T", "working"));
    kit_advance(&second, 1100);
    get_is_answered(&second, ASKS("k1"));
    assert_string_equal(r->last_key, "k1");
    kit_end(&second);
}

/* The server no longer has the event of the question. */
static void a_question_in_a_hole_is_asked_for(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_error(&k, kit_expect(&k, "tasks/stream"), -32603,
              "{\"reason\":\"events_gone\",\"earliestSeq\":9}");
    kit_expect(&k, "tasks/stream");
    kit_expect_silence(&k);
    kit_advance(&k, 1100);
    get_is_answered(&k, ASKS("k1"));
    assert_string_equal(r->last_key, "k1");
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("R-2557-13 a question that tasks/get does not know comes later",
              a_question_that_get_does_not_know_comes_later),
        NAMED("R-2557-13 the next question comes later", the_next_question_comes_later),
        NAMED("R-2557-13 a task that works again is not polled",
              a_task_that_works_again_is_not_polled),
        NAMED("R-2557-27 a refused answer is asked for again",
              a_refused_answer_is_asked_for_again),
        NAMED("AS-72 the next process gets the question",
              the_next_process_gets_the_question),
        NAMED("R-E-3 a question in a hole is asked for",
              a_question_in_a_hole_is_asked_for),
    };
    return cmocka_run_group_tests_name("client_stream_asks", tests, NULL, NULL);
}
