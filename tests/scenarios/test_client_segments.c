/* A client and results that a server of 2025-11-25 streams (SEP-1905): pushed as further
 * answers to the call, pulled by tasks/result, or both. The test plays a server that
 * loses, repeats and reorders segments. */
#include "engine/client/session.h"
#include "support/segment_stage.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- pushed ---- */

static void all_in_the_first_answer(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin(&k, NULL, &call);
    assert_at(call, "params.task.responseModes",
              "[\"task\",\"immediate\",\"streaming\"]");
    kit_result(&k, call,
               CREATED_2025("T") "," LAST(SEG(1, "a") "," SEG(2, "b") "," SEG(3, "c")));
    segments_assert_abc(r);
    kit_expect_silence(&k);
    assert_int_equal(k.session->in_flight.count, 0);
    kit_end(&k);
}

static void several_answers_have_one_id(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin(&k, NULL, &call);
    kit_result(&k, call, CREATED_2025("T") "," PART(SEG(1, "a") "," SEG(2, "b")));
    assert_string_equal(r->log, "task T\nstatus working -\nsegment 1 a\nsegment 2 b\n");
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "working"));
    kit_result(&k, call, PART(SEG(3, "c")));
    assert_int_equal(r->segments, 3);
    assert_int_equal(r->completed, 0);
    kit_result(&k, call, LAST(""));
    segments_assert_abc(r);
    assert_non_null(strstr(r->result, "related-task"));
    kit_result(&k, call, PART(SEG(4, "d"))); /* a late segment: no request waits for it */
    assert_int_equal(segments_warnings(&k), 1);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The three forms of the first answer (R-1905-18): task and segments, the task alone,
 * segments alone. */
static void a_first_answer_may_be_without_the_task(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    assert_string_equal(r->log, "task T\nsegment 1 a\n");
    kit_result(&k, call, LAST(SEG(2, "b") "," SEG(3, "c")));
    segments_assert_abc(r);
    kit_end(&k);
}

static void initial_pushed_and_pulled_make_one_result(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin(&k, NULL, &call);
    kit_result(&k, call, CREATED_2025("T") "," PART(SEG(1, "a") "," SEG(2, "b")));
    kit_result(&k, call, PART(SEG(4, "d")));
    kit_advance(&k, 600);
    kit_result(&k, segments_expect_pull(&k, "2"), PART(SEG(3, "c") "," SEG(4, "d")));
    kit_result(&k, call, LAST(SEG(5, "e")));
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(
        r->result, "content",
        "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "," BLOCK("d") "," BLOCK("e") "]");
    assert_int_equal(r->segments, 5);
    assert_int_equal(segments_warnings(&k), 0);
    kit_end(&k);
}

static void members_beside_the_list_are_merged(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "wrong")));
    kit_result(&k, call,
               "\"partial-content\":[{\"type\":\"video\",\"url\":\"u\",\"seqNr\":2}],"
               "\"isComplete\":true,\"structuredContent\":{\"n\":18446744073709551616},"
               "\"_meta\":{\"dev.segue/replace\":1,\"x\":2}");
    assert_int_equal(r->status, SEGUE_OK);
    assert_string_equal(r->result, "{\"content\":[{\"type\":\"video\",\"url\":\"u\"}],"
                                   "\"structuredContent\":{\"n\":18446744073709551616},"
                                   "\"_meta\":{\"x\":2}}");
    assert_int_equal(r->segments, 2);
    kit_end(&k);
}

static void a_fallback_ends_the_exchange(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin(&k, NULL, &call);
    kit_result(&k, call,
               CREATED_2025("T") ",\"_meta\":{\"io.modelcontextprotocol/"
                                 "fallback-mode\":\"task\"}");
    assert_int_equal(k.session->in_flight.count, 0);
    kit_result(&k, call, PART(SEG(1, "a")));
    assert_int_equal(r->segments, 0);
    assert_int_equal(segments_warnings(&k), 1);
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    kit_result(&k, segments_expect_pull(&k, ""), "\"content\":[" BLOCK("a") "]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* A second answer to a request that did not list streaming matches no request
 * (R-1905-68). */
static void nobody_else_may_answer_twice(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r =
        kit_start(&k, "tools/call",
                  "{\"name\":\"t\",\"task\":{\"responseModes\":[\"streaming\"]}}", NULL);
    const char *call = kit_expect(&k, "tools/call");
    kit_result(&k, call, CREATED_2025("T"));
    kit_result(&k, call, PART(SEG(1, "a")));
    assert_int_equal(r->segments, 0);
    assert_int_equal(segments_warnings(&k), 1);
    kit_end(&k);
}

static void an_immediate_result_is_the_end(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin(&k, NULL, &call);
    kit_result(&k, call, "\"content\":[" BLOCK("a") "],\"isError\":false," RELATED("T"));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    assert_int_equal(segments_warnings(&k), 0);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* ---- missing segments ---- */

static void a_hole_is_filled_by_the_client_itself(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, PART(SEG(3, "c")));
    kit_result(&k, call, PART(SEG(5, "e")));
    kit_advance(&k, 480);
    kit_expect_silence(&k);
    kit_advance(&k, 40);
    const char *pull = segments_expect_pull(&k, "1");
    assert_int_equal(r->segments, 1);
    kit_result(&k, pull,
               PART(SEG(2, "b") "," SEG(3, "c") "," SEG(4, "d") "," SEG(5, "e")));
    assert_non_null(strstr(r->log, "segment 1 a\nsegment 2 b\nsegment 3 c\n"
                                   "segment 4 d\nsegment 5 e\n"));
    kit_result(&k, call, LAST(""));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 5);
    assert_int_equal(segments_warnings(&k), 0);
    kit_end(&k);
}

static void repeats_are_dropped_and_other_bytes_warned_of(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(3, "c")));
    kit_advance(&k, 520);
    kit_result(&k, segments_expect_pull(&k, "1"), PART(SEG(2, "b") "," SEG(3, "c")));
    assert_int_equal(segments_warnings(&k), 0);
    kit_result(&k, call, PART(SEG(3, "other")));
    assert_int_equal(segments_warnings(&k), 1);
    kit_result(&k, call, LAST(""));
    segments_assert_abc(r);
    kit_end(&k);
}

static void the_end_with_a_hole_is_no_end(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, LAST(SEG(3, "c")));
    assert_int_equal(r->completed, 0);
    kit_result(&k, segments_expect_pull(&k, "1"), LAST(SEG(2, "b") "," SEG(3, "c")));
    segments_assert_abc(r);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The pull is refused three times; then the whole result is fetched, which may be
 * refused, too. */
static void a_repair_that_is_refused_leaves_the_fetch(void **state)
{
    (void)state;
    for (int granted = 0; granted < 2; granted++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_result(&k, call, LAST(SEG(3, "c")));
        for (int i = 0; i < 3; i++) {
            kit_error(&k, segments_expect_pull(&k, "1"), -32603, NULL);
            kit_advance(&k, 1000);
        }
        const char *fetch = segments_expect_pull(&k, "");
        if (granted) {
            kit_result(&k, fetch,
                       "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
            segments_assert_abc(r);
        } else {
            kit_error(&k, fetch, -32603, "{\"reason\":\"x\"}");
            assert_int_equal(r->status, SEGUE_E_INCOMPLETE);
            assert_int_equal(r->rpc_code, -32603);
            assert_at(r->result, "content", "[" BLOCK("a") "]");
        }
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* AS-20, the client's half; and three pulls that bring nothing. */
static void what_is_not_retained_is_fetched(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_result(&k, call, LAST(SEG(3, "c")));
        if (i)
            kit_error(&k, segments_expect_pull(&k, "1"), -32603,
                      "{\"reason\":\"segments_gone\",\"earliestSeqNr\":3}");
        for (int n = 0; n < 3 && !i; n++)
            kit_result(&k, segments_expect_pull(&k, "1"), LAST(""));
        kit_result(&k, segments_expect_pull(&k, ""),
                   "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
        segments_assert_abc(r);
        kit_end(&k);
    }
}

/* There is no number to pull after, so the whole result is fetched. */
static void without_segment_one_nothing_is_pulled(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(2, "b")));
    kit_advance(&k, 900);
    kit_expect_silence(&k);
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER_2025_STREAMS);
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    kit_result(&k, segments_expect_pull(&k, ""),
               "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    segments_assert_abc(r);
    kit_end(&k);
    memset(&k, 0, sizeof k); /* the same at the end */
    r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, LAST(SEG(2, "b")));
    kit_result(&k, segments_expect_pull(&k, ""),
               "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    segments_assert_abc(r);
    kit_end(&k);
}

static void a_malformed_list_is_dropped_and_repaired(void **state)
{
    (void)state;
    static const char *const bad[] = {
        PART("{\"type\":\"text\",\"text\":\"b\"}"),
        PART(SEG(0, "b")),
        PART(SEG(-1, "b")),
        PART(SEG(1.5, "b")),
        PART(SEG("2", "b")),
        PART(SEG(9007199254740992, "b")),
        PART("7"),
        "\"partial-content\":{},\"isComplete\":false",
        PART(SEG(2, "b")) ",\"content\":[]",
        LIST(SEG(2, "b")) "\"isComplete\":false," RELATED("U"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_result(&k, call, "%s", bad[i]);
        assert_int_equal(segments_warnings(&k), 1);
        assert_int_equal(r->segments, 1);
        kit_result(&k, call, PART(SEG(3, "c")));
        kit_advance(&k, 520);
        kit_result(&k, segments_expect_pull(&k, "1"), PART(SEG(2, "b")));
        kit_result(&k, call, LAST(""));
        segments_assert_abc(r);
        kit_end(&k);
    }
}

static void a_malformed_first_answer_ends_the_call(void **state)
{
    (void)state;
    static const char *const bad[] = {
        PART(SEG(1, "a")) ",\"content\":[]",
        LIST(SEG(1, "a")) "\"isComplete\":false",
        "\"task\":{\"taskId\":7},\"partial-content\":[]",
        "\"task\":{\"taskId\":\"U\",\"status\":\"working\"}," PART(SEG(1, "a")),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin(&k, NULL, &call);
        kit_result(&k, call, "%s", bad[i]);
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
        kit_end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("AS-3 R-1905-3 all in the first answer", all_in_the_first_answer),
        NAMED("AS-4 R-1905-67 several answers have one id", several_answers_have_one_id),
        cmocka_unit_test(a_first_answer_may_be_without_the_task),
        NAMED("AS-15 initial, pushed and pulled make one result",
              initial_pushed_and_pulled_make_one_result),
        NAMED("AS-24, AS-26 members beside the list, and any block, are in the result",
              members_beside_the_list_are_merged),
        cmocka_unit_test(a_fallback_ends_the_exchange),
        cmocka_unit_test(nobody_else_may_answer_twice),
        cmocka_unit_test(an_immediate_result_is_the_end),
        NAMED("AS-7 the client itself fetches missing segments",
              a_hole_is_filled_by_the_client_itself),
        NAMED("AS-12 R-1905-56 repeats are dropped, other bytes are warned of",
              repeats_are_dropped_and_other_bytes_warned_of),
        NAMED("AS-22 the end with a segment missing is no end",
              the_end_with_a_hole_is_no_end),
        NAMED("AS-22 after a refused repair the result is fetched",
              a_repair_that_is_refused_leaves_the_fetch),
        NAMED("AS-20 segments that are not retained: the result is fetched",
              what_is_not_retained_is_fetched),
        NAMED("AS-23 without segment 1 nothing is pulled",
              without_segment_one_nothing_is_pulled),
        NAMED("AS-27 a malformed list is dropped and repaired",
              a_malformed_list_is_dropped_and_repaired),
        cmocka_unit_test(a_malformed_first_answer_ends_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
