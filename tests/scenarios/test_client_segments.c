/* A client and results that a server of 2025-11-25 streams (SEP-1905): pushed as further
 * answers to the call, pulled by tasks/result, or both; from a server that the test plays
 * and that loses, repeats, mixes up and refuses. */
#include "engine/asking/session.h"
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

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define SEG(n, text) "{\"seqNr\":" #n ",\"type\":\"text\",\"text\":\"" text "\"}"
#define LIST(segments) "\"partial-content\":[" segments "],\"isError\":false,"
#define PART(segments) LIST(segments) "\"isComplete\":false," RELATED("T")
#define LAST(segments) LIST(segments) "\"isComplete\":true," RELATED("T")
#define BAD_END(segments)                                                                \
    "\"partial-content\":[" segments                                                     \
    "],\"isError\":true,\"isComplete\":true," RELATED("T")

static record *call_of(kit *k, const segue_request_options *options, const char **call)
{
    record *r = kit_start(k, "tools/call", "{\"name\":\"t\"}", options);
    *call = kit_expect(k, "tools/call");
    return r;
}

/* A call whose answer is still to come. */
static record *begin(kit *k, const segue_request_options *options, const char **call)
{
    kit_begin_2025(k, NULL, SERVER_2025_STREAMS);
    kit_start(k, "tools/list", NULL, NULL);
    kit_list_tools(k);
    return call_of(k, options, call);
}

/* The same, answered with task T, which the server streams. */
static record *begin_task(kit *k, const segue_request_options *options, const char **call)
{
    record *r = begin(k, options, call);
    kit_result(k, *call, CREATED_2025("T"));
    return r;
}

static const char *expect_pull(kit *k, const char *after)
{
    const char *pull = kit_expect(k, "tasks/result");
    assert_at(pull, "params.taskId", "\"T\"");
    assert_at(pull, "params.lastSeqNr", after);
    return pull;
}

static void answer_looks(kit *k)
{
    const char *line;
    while ((line = kit_heard(k))) {
        assert_at(line, "method", "\"tasks/get\"");
        kit_result(k, line, TASK_2025("T", "working"));
    }
}

static uint64_t warnings(const kit *k)
{
    return k->session->engine->warnings;
}

static void assert_abc(record *r)
{
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_int_equal(r->segments, 3);
    assert_int_equal(r->last_segment, 3);
    assert_at(r->result, "partial-content", "");
    assert_at(r->result, "isComplete", "");
    assert_null(strstr(r->result, "seqNr"));
}

/* ---- pushed ---- */

static void all_in_the_first_answer(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin(&k, NULL, &call);
    assert_at(call, "params.task.responseModes",
              "[\"task\",\"immediate\",\"streaming\"]");
    kit_result(&k, call,
               CREATED_2025("T") "," LAST(SEG(1, "a") "," SEG(2, "b") "," SEG(3, "c")));
    assert_abc(r);
    kit_expect_silence(&k);
    assert_int_equal(k.session->in_flight.count, 0);
    kit_end(&k);
}

static void several_answers_have_one_id(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin(&k, NULL, &call);
    kit_result(&k, call, CREATED_2025("T") "," PART(SEG(1, "a") "," SEG(2, "b")));
    assert_string_equal(r->log, "task T\nstatus working -\nsegment 1 a\nsegment 2 b\n");
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "working"));
    kit_result(&k, call, PART(SEG(3, "c")));
    assert_int_equal(r->segments, 3);
    assert_int_equal(r->completed, 0);
    kit_result(&k, call, LAST(""));
    assert_abc(r);
    assert_non_null(strstr(r->result, "related-task"));
    kit_result(&k, call, PART(SEG(4, "d"))); /* nobody waits for it */
    assert_int_equal(warnings(&k), 1);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The three forms of the first answer (R-1905-18): both, the task alone, segments. */
static void a_first_answer_may_be_without_the_task(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    assert_string_equal(r->log, "task T\nsegment 1 a\n");
    kit_result(&k, call, LAST(SEG(2, "b") "," SEG(3, "c")));
    assert_abc(r);
    kit_end(&k);
}

static void initial_pushed_and_pulled_make_one_result(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin(&k, NULL, &call);
    kit_result(&k, call, CREATED_2025("T") "," PART(SEG(1, "a") "," SEG(2, "b")));
    kit_result(&k, call, PART(SEG(4, "d")));
    kit_advance(&k, 600);
    kit_result(&k, expect_pull(&k, "2"), PART(SEG(3, "c") "," SEG(4, "d")));
    kit_result(&k, call, LAST(SEG(5, "e")));
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(
        r->result, "content",
        "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "," BLOCK("d") "," BLOCK("e") "]");
    assert_int_equal(r->segments, 5);
    assert_int_equal(warnings(&k), 0);
    kit_end(&k);
}

static void members_beside_the_list_are_merged(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
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
    record *r = begin(&k, NULL, &call);
    kit_result(&k, call,
               CREATED_2025("T") ",\"_meta\":{\"io.modelcontextprotocol/"
                                 "fallback-mode\":\"task\"}");
    assert_int_equal(k.session->in_flight.count, 0);
    kit_result(&k, call, PART(SEG(1, "a")));
    assert_int_equal(r->segments, 0);
    assert_int_equal(warnings(&k), 1);
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    kit_result(&k, expect_pull(&k, ""), "\"content\":[" BLOCK("a") "]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* A second answer to a request that did not list streaming meets nobody (R-1905-68). */
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
    assert_int_equal(warnings(&k), 1);
    kit_end(&k);
}

static void an_immediate_result_is_the_end(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin(&k, NULL, &call);
    kit_result(&k, call, "\"content\":[" BLOCK("a") "],\"isError\":false," RELATED("T"));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    assert_int_equal(warnings(&k), 0);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* ---- holes ---- */

static void a_hole_is_filled_by_the_client_itself(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, PART(SEG(3, "c")));
    kit_result(&k, call, PART(SEG(5, "e")));
    kit_advance(&k, 480);
    kit_expect_silence(&k);
    kit_advance(&k, 40);
    const char *pull = expect_pull(&k, "1");
    assert_int_equal(r->segments, 1);
    kit_result(&k, pull,
               PART(SEG(2, "b") "," SEG(3, "c") "," SEG(4, "d") "," SEG(5, "e")));
    assert_non_null(strstr(r->log, "segment 1 a\nsegment 2 b\nsegment 3 c\n"
                                   "segment 4 d\nsegment 5 e\n"));
    kit_result(&k, call, LAST(""));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 5);
    assert_int_equal(warnings(&k), 0);
    kit_end(&k);
}

static void repeats_are_dropped_and_other_bytes_warned_of(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(3, "c")));
    kit_advance(&k, 520);
    kit_result(&k, expect_pull(&k, "1"), PART(SEG(2, "b") "," SEG(3, "c")));
    assert_int_equal(warnings(&k), 0);
    kit_result(&k, call, PART(SEG(3, "other")));
    assert_int_equal(warnings(&k), 1);
    kit_result(&k, call, LAST(""));
    assert_abc(r);
    kit_end(&k);
}

static void the_end_with_a_hole_is_no_end(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, LAST(SEG(3, "c")));
    assert_int_equal(r->completed, 0);
    kit_result(&k, expect_pull(&k, "1"), LAST(SEG(2, "b") "," SEG(3, "c")));
    assert_abc(r);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The pull is refused three times; then the whole result is fetched, or refused too. */
static void a_repair_that_is_refused_leaves_the_fetch(void **state)
{
    (void)state;
    for (int granted = 0; granted < 2; granted++) {
        kit k = {0};
        const char *call;
        record *r = begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_result(&k, call, LAST(SEG(3, "c")));
        for (int i = 0; i < 3; i++) {
            kit_error(&k, expect_pull(&k, "1"), -32603, NULL);
            kit_advance(&k, 1000);
        }
        const char *fetch = expect_pull(&k, "");
        if (granted) {
            kit_result(&k, fetch,
                       "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
            assert_abc(r);
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
        record *r = begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_result(&k, call, LAST(SEG(3, "c")));
        if (i)
            kit_error(&k, expect_pull(&k, "1"), -32603,
                      "{\"reason\":\"segments_gone\",\"earliestSeqNr\":3}");
        for (int n = 0; n < 3 && !i; n++)
            kit_result(&k, expect_pull(&k, "1"), LAST(""));
        kit_result(&k, expect_pull(&k, ""),
                   "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
        assert_abc(r);
        kit_end(&k);
    }
}

/* There is no number to pull after: the whole is fetched. */
static void without_segment_one_nothing_is_pulled(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(2, "b")));
    kit_advance(&k, 900);
    kit_expect_silence(&k);
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER_2025_STREAMS);
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    kit_result(&k, expect_pull(&k, ""),
               "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_abc(r);
    kit_end(&k);
    memset(&k, 0, sizeof k); /* the same at the end */
    r = begin_task(&k, NULL, &call);
    kit_result(&k, call, LAST(SEG(2, "b")));
    kit_result(&k, expect_pull(&k, ""),
               "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_abc(r);
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
        record *r = begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_result(&k, call, "%s", bad[i]);
        assert_int_equal(warnings(&k), 1);
        assert_int_equal(r->segments, 1);
        kit_result(&k, call, PART(SEG(3, "c")));
        kit_advance(&k, 520);
        kit_result(&k, expect_pull(&k, "1"), PART(SEG(2, "b")));
        kit_result(&k, call, LAST(""));
        assert_abc(r);
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
        record *r = begin(&k, NULL, &call);
        kit_result(&k, call, "%s", bad[i]);
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
        kit_end(&k);
    }
}

/* ---- streams that break ---- */

static void a_broken_stream_is_pulled(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_cut(&k);
    assert_int_equal(r->completed, 0);
    kit_handshake_2025(&k, SERVER_2025_STREAMS);
    kit_result(&k, expect_pull(&k, "1"), PART(SEG(2, "b")));
    kit_expect_silence(&k);
    kit_advance(&k, 1200);
    kit_result(&k, expect_pull(&k, "2"), PART(""));
    kit_advance(&k, 1200);
    kit_result(&k, expect_pull(&k, "2"), LAST(SEG(3, "c")));
    assert_abc(r);
    kit_expect_silence(&k);
    kit_end(&k);
}

static void content_in_answer_to_a_pull_is_the_whole(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(3, "x")));
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER_2025);
    kit_result(
        &k, expect_pull(&k, "1"),
        "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]," RELATED("T"));
    assert_abc(r);
    kit_end(&k);
}

/* A server that pushes counts as alive with each answer, not from the call on. */
static void the_timeout_counts_from_the_last_answer(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_SESSION_OPTIONS);
    options.request_timeout_ms = 900; /* below the poll interval */
    kit_begin_2025(&k, &options, SERVER_2025_STREAMS);
    kit_start(&k, "tools/list", NULL, NULL);
    kit_list_tools(&k);
    const char *call;
    record *r = call_of(&k, NULL, &call);
    kit_result(&k, call, CREATED_2025("T"));
    kit_advance(&k, 700);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_advance(&k, 700);
    answer_looks(&k);
    kit_result(&k, call, PART(SEG(2, "b")));
    kit_advance(&k, 850);
    answer_looks(&k);
    assert_int_equal(k.session->in_flight.count, 1);
    kit_advance(&k, 900);
    const char *line = kit_expect(&k, "tasks/result"); /* not notifications/cancelled */
    assert_at(line, "params.lastSeqNr", "2");
    kit_result(&k, line, LAST(SEG(3, "c")));
    assert_abc(r);
    kit_end(&k);
}

static void a_token_pulls_in_another_process(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    char token[sizeof r->token];
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
    memcpy(token, r->token, sizeof token);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    kit_begin_2025(&k, NULL, SERVER_2025_STREAMS);
    r = kit_resume(&k, token, NULL);
    kit_result(&k, expect_pull(&k, "2"), PART(""));
    kit_advance(&k, 1200);
    kit_result(&k, expect_pull(&k, "2"), LAST(SEG(3, "c")));
    kit_result(&k, expect_pull(&k, ""), /* the whole, which this process has not seen */
               "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    assert_int_equal(r->last_segment, 3);
    assert_at(r->result, "content.2", BLOCK("c"));
    kit_end(&k);
}

/* ---- bad ends ---- */

static void expiry_leaves_an_incomplete_stream(void **state)
{
    (void)state;
    for (int purged = 0; purged < 2; purged++) {
        kit k = {0};
        const char *call;
        record *r = begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
        kit_result(&k, call, BAD_END(""));
        const char *get = kit_expect(&k, "tasks/get");
        assert_int_equal(r->completed, 0);
        if (purged)
            kit_error(&k, get, -32602, NULL);
        else
            kit_result(&k, get, TASK_2025("T", "failed"));
        kit_error(&k, expect_pull(&k, purged ? "2" : ""), purged ? -32602 : -32603, NULL);
        assert_int_equal(r->status, SEGUE_E_INCOMPLETE);
        assert_int_equal(r->segments, 2);
        assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* A task that is gone while it streams: what is left is asked for once. */
static void a_stream_whose_task_is_gone_is_incomplete(void **state)
{
    (void)state;
    for (int rest = 0; rest < 2; rest++) {
        kit k = {0};
        const char *call;
        record *r = begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
        kit_advance(&k, 1200);
        kit_error(&k, kit_expect(&k, "tasks/get"), -32602, NULL);
        const char *pull = expect_pull(&k, "2");
        if (rest) {
            kit_result(&k, pull, LAST(SEG(3, "c")));
            assert_abc(r);
        } else {
            kit_result(&k, pull, PART(SEG(3, "c")));
            assert_int_equal(r->status, SEGUE_E_INCOMPLETE);
            assert_int_equal(r->segments, 3);
        }
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

static void cancelled_by_somebody(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, BAD_END(""));
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "cancelled"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    assert_at(r->result, "content", "[" BLOCK("a") "]");
    kit_expect_silence(&k);
    kit_end(&k);
    memset(&k, 0, sizeof k); /* by us: what still comes meets nobody */
    r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    segue_request_cancel(r->request);
    const char *cancel = kit_expect(&k, "tasks/cancel");
    kit_result(&k, call, BAD_END(""));
    kit_result(&k, cancel, TASK_2025("T", "cancelled"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    assert_at(r->result, "content", "[" BLOCK("a") "]");
    kit_expect_silence(&k);
    assert_int_equal(k.session->in_flight.count, 0);
    kit_end(&k);
}

/* A pull that ends with an error does not say whether it was cancelled. */
static void a_pulled_bad_end_is_looked_into(void **state)
{
    (void)state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        kit k = {.can_reopen = 1};
        const char *call;
        record *r = begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_cut(&k);
        kit_handshake_2025(&k, SERVER_2025_STREAMS);
        kit_result(&k, expect_pull(&k, "1"), BAD_END(SEG(2, "b")));
        const char *get = kit_expect(&k, "tasks/get");
        if (cancelled) {
            kit_result(&k, get, TASK_2025("T", "cancelled"));
            assert_int_equal(r->status, SEGUE_E_CANCELLED);
        } else {
            kit_result(&k, get, TASK_2025("T", "failed"));
            kit_result(&k, expect_pull(&k, ""),
                       "\"content\":[" BLOCK("a") "," BLOCK("b") "],\"isError\":true");
            assert_int_equal(r->status, SEGUE_OK);
            assert_at(r->result, "isError", "true");
        }
        assert_int_equal(r->segments, 2);
        kit_end(&k);
    }
}

static void a_failure_ends_in_a_result_with_is_error(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
    kit_result(&k, call, BAD_END(SEG(3, "c")));
    assert_abc(r);
    assert_at(r->result, "isError", "true");
    kit_expect_silence(&k);
    kit_end(&k);
    for (int first = 0; first < 2; first++) { /* nothing before it: content */
        memset(&k, 0, sizeof k);
        r = first ? begin(&k, NULL, &call) : begin_task(&k, NULL, &call);
        kit_result(&k, call,
                   "\"content\":[" BLOCK(
                       "oh") "],\"isError\":true,\"isComplete\":true," RELATED("T"));
        assert_int_equal(r->status, SEGUE_OK);
        assert_at(r->result, "isError", "true");
        assert_at(r->result, "isComplete", "");
        assert_non_null(strstr(r->log, "segment 1 oh\n"));
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* The answer to the fetch of a task that failed may be the error alone: what it has in
 * segments is pulled before. */
static void what_failed_is_pulled_before_its_error_is_fetched(void **state)
{
    (void)state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        kit k = {0};
        const char *call;
        record *r = begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_advance(&k, 1200);
        const char *get = kit_expect(&k, "tasks/get");
        if (cancelled)
            kit_result(&k, get, TASK_2025("T", "cancelled"));
        else
            kit_result(&k, get, TASK_2025("T", "failed"));
        kit_result(&k, expect_pull(&k, "1"), PART(SEG(2, "b")));
        kit_result(&k, expect_pull(&k, "2"), BAD_END(SEG(3, "c")));
        if (!cancelled)
            kit_error(&k, expect_pull(&k, ""), -32000, NULL);
        assert_int_equal(r->status, cancelled ? SEGUE_E_CANCELLED : SEGUE_E_INCOMPLETE);
        assert_int_equal(r->rpc_code, cancelled ? 0 : -32000);
        assert_int_equal(r->segments, 3);
        assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* The pull of what is left of a cancelled task cannot make it anything else. */
static void what_is_cancelled_stays_so(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        kit k = {0};
        const char *call;
        record *r = begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_advance(&k, 1200);
        kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "cancelled"));
        if (whole)
            kit_result(&k, expect_pull(&k, "1"),
                       "\"content\":[" BLOCK("a") "," BLOCK("gone") "]");
        else
            kit_error(&k, expect_pull(&k, "1"), -32603, NULL);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        assert_int_equal(r->segments, 1);
        assert_at(r->result, "content", "[" BLOCK("a") "]");
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

static void an_error_in_the_middle(void **state)
{
    (void)state;
    for (int segments = 0; segments < 2; segments++) {
        kit k = {0};
        const char *call;
        record *r = begin_task(&k, NULL, &call);
        if (segments)
            kit_result(&k, call, PART(SEG(1, "a")));
        kit_error(&k, call, -32000, NULL);
        assert_int_equal(r->status, segments ? SEGUE_E_INCOMPLETE : SEGUE_E_REMOTE);
        assert_int_equal(r->rpc_code, -32000);
        kit_end(&k);
    }
}

/* ---- what the application wants ---- */

static void numbers_come_as_they_come_when_that_is_wanted(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    segue_request_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_REQUEST_OPTIONS);
    options.unordered = 1;
    record *r = begin_task(&k, &options, &call);
    r->unordered = 1;
    char token[sizeof r->token];
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, PART(SEG(3, "c")));
    assert_non_null(strstr(r->log, "segment 1 a\nsegment 3 c\n"));
    memcpy(token, r->token, sizeof token); /* covers 1, not 3 */
    kit_result(&k, call, PART(SEG(2, "b")));
    kit_result(&k, call, LAST(""));
    assert_int_equal(r->segments, 3);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    r = kit_resume(&k, token, NULL);
    kit_result(&k, expect_pull(&k, "1"),
               "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_string_equal(r->log, "segment 2 b\nsegment 3 c\ncomplete SEGUE_OK\n");
    kit_end(&k);
    memset(&k, 0, sizeof k); /* the whole result brings what has not come, and no more */
    r = begin_task(&k, &options, &call);
    r->unordered = 1;
    kit_result(&k, call, LAST(SEG(2, "b")));
    kit_result(&k, expect_pull(&k, ""),
               "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_non_null(strstr(r->log, "segment 2 b\nsegment 1 a\nsegment 3 c\n"));
    kit_end(&k);
}

static void discarded_segments_are_not_collected(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    segue_request_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_REQUEST_OPTIONS);
    options.discard = 1;
    record *r = begin_task(&k, &options, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, LAST(SEG(2, "b")));
    assert_int_equal(r->segments, 2);
    assert_at(r->result, "content", "[]");
    kit_end(&k);
}

/* Nobody reads: the exchange is given up before much is held, and pulled when somebody
 * does. */
static void without_credit_the_push_is_given_up_and_pulled_later(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    segue_request_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_REQUEST_OPTIONS);
    options.credit = 1;
    record *r = begin_task(&k, &options, &call);
    char *big = calloc(1, 100001);
    memset(big, 'x', 100000);
    int sent = 0;
    while (k.session->in_flight.count && sent < 100)
        kit_result(
            &k, call,
            "\"partial-content\":[{\"type\":\"text\",\"text\":\"%s\",\"seqNr\":%d}],"
            "\"isComplete\":false",
            big, ++sent);
    assert_in_range(sent, 10, 14);
    kit_result(&k, call, PART(SEG(99, "a"))); /* dropped */
    assert_true(k.mem.live < 4 * 1024 * 1024);
    assert_int_equal(r->segments, 1);
    kit_advance(&k, 5000);
    kit_expect_silence(&k);
    segue_request_grant(r->request, 1000);
    kit_run(&k);
    char after[24];
    snprintf(after, sizeof after, "%d", sent);
    kit_result(&k, expect_pull(&k, after),
               "\"partial-content\":[{\"seqNr\":%d,\"type\":\"text\",\"text\":\"z\"}],"
               "\"isComplete\":true",
               sent + 1);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, sent + 1);
    free(big);
    kit_end(&k);
}

/* Callbacks run one at a time: nothing is pulled while they have much to do. */
static void pulls_wait_for_callbacks(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    const char *pull = expect_pull(&k, "1");
    size_t size = 1200 * 1024;
    char *big = malloc(size + 100000);
    size_t n = (size_t)sprintf(big,
                               "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{"
                               "\"partial-content\":[{\"seqNr\":2,\"type\":\"text\","
                               "\"text\":\"b\"}",
                               json_at(pull, "id"));
    for (int i = 3; n < size; i++) {
        n += (size_t)sprintf(big + n, ",{\"seqNr\":%d,\"type\":\"text\",\"text\":\"", i);
        memset(big + n, 'x', 99000);
        n += 99000;
        n += (size_t)sprintf(big + n, "\"}");
    }
    n += (size_t)sprintf(big + n, "],\"isComplete\":false}}\n");
    segue_transport_feed(k.transport, big, n);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(k.heard_len, 0);
        segue_runtime_dispatch(k.runtime, 0, 1, NULL);
    }
    assert_in_range(r->segments, 2, 7);
    kit_run(&k);
    kit_result(&k, expect_pull(&k, "15"), LAST(SEG(16, "z")));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 16);
    kit_expect_silence(&k);
    free(big);
    kit_end(&k);
}

static void too_large_a_result_is_cancelled(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_SESSION_OPTIONS);
    options.max_result_bytes = 100;
    kit_begin_2025(&k, &options, SERVER_2025_STREAMS);
    kit_start(&k, "tools/list", NULL, NULL);
    kit_list_tools(&k);
    const char *call;
    record *r = call_of(&k, NULL, &call);
    kit_result(&k, call, CREATED_2025("T"));
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
    kit_result(&k, call, PART(SEG(3, "c") "," SEG(4, "d")));
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    kit_expect(&k, "tasks/cancel");
    kit_end(&k);
}

/* ---- any order of things ---- */

#define MOST 24

static uint32_t below(kit *k, uint32_t n)
{
    k->chance = k->chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(k->chance >> 33) % n;
}

static void write_segments(char *out, size_t size, int from, int to, bool numbered)
{
    size_t n = 0;
    out[0] = 0;
    for (int i = from; i <= to; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s{\"type\":\"text\",\"text\":\"%d\"",
                              i > from ? "," : "", i);
        if (numbered)
            n += (size_t)snprintf(out + n, size - n, ",\"seqNr\":%d", i);
        n += (size_t)snprintf(out + n, size - n, "}");
    }
}

static void say_part(kit *k, const char *to_whom, int from, int to, bool complete)
{
    char list[4096];
    write_segments(list, sizeof list, from, to, true);
    kit_result(k, to_whom, "\"partial-content\":[%s],\"isComplete\":%s", list,
               complete ? "true" : "false");
}

/* Answers what is asked by the truth, about a task that has ended with `count`; now and
 * then by nothing, or an error. */
static void answer_all(kit *k, int count)
{
    const char *line;
    char list[4096];
    while ((line = kit_heard(k))) {
        const char *after = json_at(line, "params.lastSeqNr");
        if (below(k, 8) == 0) {
            kit_error(k, line, -32603, "{\"retryAfterMs\":10}");
        } else if (!strcmp(json_at(line, "method"), "\"tasks/get\"")) {
            kit_result(k, line, TASK_2025("T", "completed"));
        } else if (*after) {
            assert_true(atoi(after) > 0);
            say_part(k, line, atoi(after) + 1, count, true);
        } else {
            write_segments(list, sizeof list, 1, count, false);
            kit_result(k, line, "\"content\":[%s]", list);
        }
    }
}

static void push_somehow(kit *k, const char *call, int count)
{
    uint32_t bad = below(k, 4);
    for (int at = 1; at <= count;) {
        int to = at + (int)below(k, 4);
        if (to > count)
            to = count;
        if (below(k, 8) >= bad)
            say_part(k, call, at, to, false);
        if (below(k, 8) < bad)
            say_part(k, call, 1 + (int)below(k, (uint32_t)count), to, false);
        if (below(k, 8) >= bad) /* else they come in another order, or never */
            at = to + 1;
        else
            at += 1 + (int)below(k, 3);
    }
    if (below(k, 3)) /* with the last one: that it was lost could not be seen else */
        say_part(k, call, count ? count : 1, count, true);
}

static void any_way_gives_the_same_result(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        kit k = {.can_reopen = 1, .chance = seed};
        const char *call;
        char list[4096], content[4200];
        record *r = begin_task(&k, NULL, &call);
        int count = (int)below(&k, MOST);
        push_somehow(&k, call, count);
        if (!r->completed && below(&k, 4) == 0) {
            kit_cut(&k);
            kit_handshake_2025(&k, SERVER_2025_STREAMS);
        }
        for (int i = 0; !r->completed && i < 200; i++) {
            answer_all(&k, count);
            kit_advance(&k, 100);
        }
        write_segments(list, sizeof list, 1, count, false);
        snprintf(content, sizeof content, "[%s]", list);
        assert_int_equal(r->status, SEGUE_OK);
        assert_at(r->result, "content", content);
        assert_int_equal(r->segments, count);
        assert_int_equal(r->last_segment, count);
        assert_int_equal(k.session->in_flight.count, 0);
        kit_end(&k);
    }
}

/* Half of them are streamed, half become a task that is never streamed. */
static void ten_thousand_calls_leave_nothing_behind(void **state)
{
    (void)state;
    kit k = {.quiet = 1};
    const char *call;
    size_t live = 0;
    record *r = begin(&k, NULL, &call);
    for (int i = 0; i < 10000; i++) {
        if (i % 2) {
            kit_result(&k, call, CREATED_2025("T"));
            kit_advance(&k, 1200);
            kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
            kit_result(&k, expect_pull(&k, ""), "\"content\":[" BLOCK("a") "]");
        } else {
            kit_result(&k, call, CREATED_2025("T") "," PART(SEG(1, "a")));
            kit_result(&k, call, LAST(SEG(2, "b")));
        }
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(k.session->in_flight.count, 0);
        record_drop(r);
        if (i == 100)
            live = k.mem.live;
        r = call_of(&k, NULL, &call);
    }
    assert_in_range(k.mem.live, 0, live + 4096);
    kit_end(&k);
}

#define NAMED(title, name)                                                               \
    {                                                                                    \
        title, name, NULL, NULL, NULL                                                    \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("AS-3 all in the first answer", all_in_the_first_answer),
        NAMED("AS-4 several answers have one id", several_answers_have_one_id),
        cmocka_unit_test(a_first_answer_may_be_without_the_task),
        NAMED("AS-15 initial, pushed and pulled make one result",
              initial_pushed_and_pulled_make_one_result),
        NAMED("AS-24, AS-26 members beside the list, and any block, are in the result",
              members_beside_the_list_are_merged),
        cmocka_unit_test(a_fallback_ends_the_exchange),
        cmocka_unit_test(nobody_else_may_answer_twice),
        cmocka_unit_test(an_immediate_result_is_the_end),
        NAMED("AS-7 a hole is filled by the client itself",
              a_hole_is_filled_by_the_client_itself),
        NAMED("AS-12 repeats are dropped, other bytes are warned of",
              repeats_are_dropped_and_other_bytes_warned_of),
        NAMED("AS-22 the end with a hole is no end", the_end_with_a_hole_is_no_end),
        NAMED("AS-22 a repair that is refused leaves the fetch",
              a_repair_that_is_refused_leaves_the_fetch),
        NAMED("AS-20 what is not retained is fetched", what_is_not_retained_is_fetched),
        NAMED("AS-23 without segment 1 nothing is pulled",
              without_segment_one_nothing_is_pulled),
        NAMED("AS-27 a malformed list is dropped and repaired",
              a_malformed_list_is_dropped_and_repaired),
        cmocka_unit_test(a_malformed_first_answer_ends_the_call),
        NAMED("AS-28 a broken stream is pulled", a_broken_stream_is_pulled),
        cmocka_unit_test(content_in_answer_to_a_pull_is_the_whole),
        cmocka_unit_test(the_timeout_counts_from_the_last_answer),
        cmocka_unit_test(a_token_pulls_in_another_process),
        NAMED("AS-9 expiry leaves an incomplete stream",
              expiry_leaves_an_incomplete_stream),
        cmocka_unit_test(a_stream_whose_task_is_gone_is_incomplete),
        NAMED("AS-10 a stream that is cancelled", cancelled_by_somebody),
        cmocka_unit_test(a_pulled_bad_end_is_looked_into),
        NAMED("AS-11 a failure ends in a result with isError",
              a_failure_ends_in_a_result_with_is_error),
        cmocka_unit_test(what_failed_is_pulled_before_its_error_is_fetched),
        cmocka_unit_test(what_is_cancelled_stays_so),
        cmocka_unit_test(an_error_in_the_middle),
        cmocka_unit_test(numbers_come_as_they_come_when_that_is_wanted),
        cmocka_unit_test(discarded_segments_are_not_collected),
        cmocka_unit_test(without_credit_the_push_is_given_up_and_pulled_later),
        cmocka_unit_test(pulls_wait_for_callbacks),
        cmocka_unit_test(too_large_a_result_is_cancelled),
        NAMED("AS-29 any way gives the same result", any_way_gives_the_same_result),
        NAMED("AS-32 10,000 calls leave nothing behind",
              ten_thousand_calls_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
