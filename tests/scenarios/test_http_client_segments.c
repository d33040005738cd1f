/* A client and results that a server of 2025-11-25 streams over HTTP (SEP-1905): further
 * answers are events of the call's own stream. That stream may break, be resumed, or
 * never have been a stream. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define SEG(n, text) "{\"seqNr\":" #n ",\"type\":\"text\",\"text\":\"" text "\"}"
#define LIST(segments) "\"partial-content\":[" segments "],\"isError\":false,"
#define PART(segments) LIST(segments) "\"isComplete\":false," RELATED("T")
#define BAD_END(segments)                                                                \
    "\"partial-content\":[" segments                                                     \
    "],\"isError\":true,\"isComplete\":true," RELATED("T")
#define LAST(segments) LIST(segments) "\"isComplete\":true," RELATED("T")

#define TOOLS "\"tools\":[{\"name\":\"t\",\"execution\":{\"taskSupport\":\"optional\"}}]"

/* Returns the GET for the stream of server messages. */
static heard *initialize_and_find(http_script *s)
{
    heard *h = script_expect(s, "initialize");
    script_json(h,
                "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":"
                "\"2025-11-25\",\"capabilities\":" SERVER_2025_STREAMS
                ",\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}",
                json_at(h->body, "id"));
    script_accept(script_expect(s, "notifications/initialized"));
    return script_find(s, "GET");
}

static void initialize(http_script *s)
{
    script_say(initialize_and_find(s), "405 Method Not Allowed", "", "");
}

/* Makes a call that has been sent. */
static record *begin(http_script *s, heard **call)
{
    segue_session_options options = kit_legacy_options();
    script_begin(s, &options);
    initialize(s);
    record *r = kit_call(&s->k, "t");
    script_result(script_expect(s, "tools/list"), TOOLS);
    *call = script_expect(s, "tools/call");
    assert_at((*call)->body, "params.task.responseModes",
              "[\"task\",\"immediate\",\"streaming\"]");
    return r;
}

static void ends_with_abc(http_script *s, record *r)
{
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_non_null(strstr(r->log, "segment 1 a\n"));
    assert_non_null(strstr(r->log, "segment 2 b\nsegment 3 c\ncomplete"));
    assert_int_equal(r->segments, 3);
    script_expect_silence(s);
    script_end(s);
}

static heard *expect_pull(http_script *s, const char *after)
{
    heard *h = script_expect(s, "tasks/result");
    assert_at(h->body, "params.lastSeqNr", after);
    return h;
}

static void answers_are_events_of_one_stream(void **state)
{
    (void)state;
    static const size_t pieces[] = {0, 1, 7};
    for (size_t i = 0; i < 3; i++) {
        http_script s;
        heard *call;
        record *r = begin(&s, &call);
        s.piece = pieces[i];
        script_stream(call);
        script_stream_result(call, NULL, CREATED_2025("T") "," PART(SEG(1, "a")));
        script_event(call, NULL,
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\","
                     "\"params\":{\"taskId\":\"T\",\"status\":\"working\","
                     "\"statusMessage\":\"half\"}}");
        script_until(&s, r->log && strstr(r->log, "status working half"));
        assert_int_equal(r->segments, 1);
        script_stream_result(call, NULL, PART(SEG(2, "b")));
        script_stream_result(call, NULL, LAST(SEG(3, "c")));
        script_finish(call);
        ends_with_abc(&s, r);
    }
}

static void a_stream_that_breaks_is_pulled(void **state)
{
    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        http_script s;
        heard *call;
        record *r = begin(&s, &call);
        script_stream(call);
        script_stream_result(call, NULL, CREATED_2025("T") "," PART(SEG(1, "a")));
        script_until(&s, r->segments == 1);
        if (reset)
            script_cut(call, true);
        else
            script_finish(call);
        script_result(expect_pull(&s, "1"), PART(SEG(2, "b")));
        script_until(&s, r->segments == 2);
        script_advance(&s, 1200);
        script_result(expect_pull(&s, "2"), LAST(SEG(3, "c")));
        ends_with_abc(&s, r);
    }
}

static void a_stream_with_ids_is_taken_up_again(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, &call);
    script_stream(call);
    script_text(call, "retry: 300\n\n");
    script_stream_result(call, "e1", CREATED_2025("T") "," PART(SEG(1, "a")));
    script_until(&s, r->segments == 1);
    script_cut(call, true);
    script_advance(&s, 350);
    heard *again = script_expect(&s, "GET");
    assert_header(again, "Last-Event-ID", "e1");
    script_stream(again);
    char text[512];
    snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}",
             json_at(call->body, "id"), LAST(SEG(2, "b") "," SEG(3, "c")));
    script_event(again, "e2", "%s", text);
    script_finish(again);
    ends_with_abc(&s, r);
}

#define GONE                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,\"message\":\"gone\","    \
    "\"data\":{\"reason\":\"answer_gone\"}}}"

/* The server sends a substitute for an answer that it did not keep for Last-Event-ID;
 * the task has not changed. In a stream that did not break the same text is the tool's
 * own. */
static void an_answer_that_is_gone_is_pulled(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, &call);
    script_stream(call);
    script_text(call, "retry: 300\n\n");
    script_stream_result(call, "e1", CREATED_2025("T") "," PART(SEG(1, "a")));
    script_until(&s, r->segments == 1);
    script_cut(call, true);
    script_advance(&s, 350);
    heard *again = script_expect(&s, "GET");
    script_stream(again);
    script_event(again, "e2", GONE, json_at(call->body, "id"));
    script_finish(again);
    heard *pull = expect_pull(&s, "1");
    assert_int_equal(r->completed, 0);
    script_result(pull, LAST(SEG(2, "b") "," SEG(3, "c")));
    ends_with_abc(&s, r);
    r = begin(&s, &call);
    script_stream(call);
    script_stream_result(call, NULL, CREATED_2025("T") "," PART(SEG(1, "a")));
    script_until(&s, r->segments == 1);
    script_event(call, NULL, GONE, json_at(call->body, "id"));
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32603);
    script_end(&s);
}

/* The task ends with its tool's error, whatever its text is; it is asked for once. */
static void an_end_with_the_words_of_a_stand_in_is_the_end(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, &call);
    script_result(call, CREATED_2025("T"));
    script_until(&s, r->log && strstr(r->log, "task T"));
    script_advance(&s, 1200);
    script_result(script_expect(&s, "tasks/get"), TASK_2025("T", "failed"));
    script_error(expect_pull(&s, ""), "200 OK", -32603, "{\"reason\":\"answer_gone\"}");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32603);
    script_expect_silence(&s);
    script_end(&s);
}

/* Nothing answers the GET, while the task is well: the GET is given up and sent again. */
static void a_resumption_that_falls_silent_is_tried_again(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, &call);
    script_stream(call);
    script_stream_result(call, "e1", CREATED_2025("T") "," PART(SEG(1, "a")));
    script_until(&s, r->segments == 1);
    script_cut(call, true);
    script_pump(&s);
    script_advance(&s, 1000);
    heard *silent = script_find(&s, "GET");
    heard *again = NULL;
    int64_t since = s.k.clock_ms;
    while (!again && s.k.clock_ms - since < 90000) {
        script_advance(&s, 250);
        heard *h = script_next(&s);
        if (h && strncmp(h->text, "GET", 3) == 0)
            again = script_expect(&s, "GET");
        else if (h)
            script_result(script_expect(&s, "tasks/get"), TASK_2025("T", "working"));
    }
    assert_non_null(again);
    assert_in_range(s.k.clock_ms - since, 60000, 65000);
    assert_true(heard_is_closed(silent));
    assert_header(again, "Last-Event-ID", "e1");
    script_stream(again);
    script_event(again, "e2", "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}",
                 json_at(call->body, "id"), LAST(SEG(2, "b") "," SEG(3, "c")));
    script_finish(again);
    ends_with_abc(&s, r);
}

/* The stream cannot be resumed: the rest is pulled. */
static void a_stream_that_is_not_given_back_is_pulled(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, &call);
    script_stream(call);
    script_text(call, "retry: 300\n\n");
    script_stream_result(call, "e1", CREATED_2025("T") "," PART(SEG(1, "a")));
    script_until(&s, r->segments == 1);
    script_cut(call, false);
    script_advance(&s, 350);
    script_say(script_expect(&s, "GET"), "405 Method Not Allowed", "", "");
    script_result(expect_pull(&s, "1"), LAST(SEG(2, "b") "," SEG(3, "c")));
    ends_with_abc(&s, r);
}

/* After an answer in JSON no further one can come (R-1905-23). */
static void after_json_the_rest_is_pulled(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, &call);
    script_result(call, CREATED_2025("T") "," PART(SEG(1, "a")));
    script_result(expect_pull(&s, "1"), LAST(SEG(2, "b") "," SEG(3, "c")));
    ends_with_abc(&s, r);
    r = begin(&s, &call); /* an answer with the task alone: the task is polled */
    script_result(call, CREATED_2025("T"));
    script_until(&s, r->log && strstr(r->log, "task T"));
    script_advance(&s, 1200);
    script_result(script_expect(&s, "tasks/get"), TASK_2025("T", "completed"));
    script_result(expect_pull(&s, ""),
                  "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    ends_with_abc(&s, r);
}

/* Makes a call of which segment 1 was pushed; then tasks/get reports how the task
 * ended. */
static record *begin_overtaken(http_script *s, heard **call, const char *task)
{
    record *r = begin(s, call);
    script_stream(*call);
    script_stream_result(*call, NULL, CREATED_2025("T") "," PART(SEG(1, "a")));
    script_until(s, r->segments == 1);
    script_advance(s, 1200);
    script_result(script_expect(s, "tasks/get"), "%s", task);
    script_expect_silence(s);
    return r;
}

static void an_end_that_overtakes_the_push_waits_for_it(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin_overtaken(&s, &call, TASK_2025("T", "completed"));
    script_stream_result(call, NULL, PART(SEG(2, "b")));
    script_stream_result(call, NULL, LAST(SEG(3, "c")));
    script_finish(call);
    ends_with_abc(&s, r);
    r = begin_overtaken(&s, &call, TASK_2025("T", "failed"));
    script_stream_result(call, NULL, PART(SEG(2, "b")));
    script_stream_result(call, NULL, BAD_END(SEG(3, "c")));
    script_finish(call);
    ends_with_abc(&s, r);
    r = begin_overtaken(&s, &call, TASK_2025("T", "cancelled"));
    script_stream_result(call, NULL, PART(SEG(2, "b")));
    script_stream_result(call, NULL, BAD_END(""));
    script_finish(call);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    assert_int_equal(r->segments, 2);
    script_expect_silence(&s);
    script_end(&s);
}

/* The client reads the push as long as it brings something, then pulls. Only then does it
 * fetch the error, which holds no segments. */
static void a_push_that_falls_silent_after_the_end_is_pulled(void **state)
{
    (void)state;
    for (int breaks = 0; breaks < 2; breaks++) {
        http_script s;
        heard *call;
        record *r = begin_overtaken(&s, &call, TASK_2025("T", "failed"));
        script_advance(&s, 800);
        script_stream_result(call, NULL, PART(SEG(2, "b")));
        script_until(&s, r->segments == 2);
        script_advance(&s, 800);
        script_expect_silence(&s);
        if (breaks)
            script_cut(call, true);
        else
            script_advance(&s, 800);
        script_result(expect_pull(&s, "2"), BAD_END(SEG(3, "c")));
        script_error(expect_pull(&s, ""), "200 OK", -32000, NULL);
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        assert_int_equal(r->rpc_code, -32000);
        assert_int_equal(r->segments, 3);
        script_expect_silence(&s);
        script_end(&s);
    }
}

/* The status comes on the stream of GET before the answer that creates the task. */
static void an_end_may_overtake_the_creation(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    script_begin(&s, &options);
    heard *get = initialize_and_find(&s);
    script_stream(get);
    record *r = kit_call(&s.k, "t");
    script_result(script_expect(&s, "tools/list"), TOOLS);
    heard *call = script_expect(&s, "tools/call");
    script_event(get, "1",
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\","
                 "\"params\":{" TASK_2025("T", "completed") "}}");
    script_pump(&s);
    script_result(call, CREATED_2025("T"));
    script_result(script_expect(&s, "tasks/result"),
                  "\"content\":[" BLOCK("a") "]," RELATED("T"));
    script_until(&s, r->completed); /* no time has passed */
    assert_int_equal(r->status, SEGUE_OK);
    script_end(&s);
}

/* The error is not everything either when no segment has come yet, because the push is on
 * its way. */
static void an_end_may_overtake_all_segments(void **state)
{
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        http_script s;
        heard *call;
        record *r = begin(&s, &call);
        script_stream(call);
        script_stream_result(call, NULL, CREATED_2025("T"));
        script_until(&s, r->log && strstr(r->log, "task T"));
        script_advance(&s, 1200);
        script_result(script_expect(&s, "tasks/get"), TASK_2025("T", "failed"));
        script_expect_silence(&s);
        if (!silent) {
            script_stream_result(call, NULL, PART(SEG(1, "a")));
            script_stream_result(call, NULL, BAD_END(SEG(2, "b") "," SEG(3, "c")));
            ends_with_abc(&s, r);
            continue;
        }
        script_advance(&s, 1200);
        script_error(expect_pull(&s, ""), "200 OK", -32000, NULL);
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        script_end(&s);
    }
}

static void cancel_closes_the_stream(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, &call);
    script_stream(call);
    script_stream_result(call, NULL, CREATED_2025("T") "," PART(SEG(1, "a")));
    script_until(&s, r->segments == 1);
    segue_request_cancel(r->request);
    script_result(script_expect(&s, "tasks/cancel"), TASK_2025("T", "cancelled"));
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    script_until(&s, heard_is_closed(call));
    script_expect_silence(&s);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("AS-5 answers are events of one stream", answers_are_events_of_one_stream),
        NAMED("AS-28 a stream that breaks is pulled", a_stream_that_breaks_is_pulled),
        cmocka_unit_test(a_stream_with_ids_is_taken_up_again),
        cmocka_unit_test(an_answer_that_is_gone_is_pulled),
        cmocka_unit_test(an_end_with_the_words_of_a_stand_in_is_the_end),
        cmocka_unit_test(a_resumption_that_falls_silent_is_tried_again),
        cmocka_unit_test(a_stream_that_is_not_given_back_is_pulled),
        cmocka_unit_test(after_json_the_rest_is_pulled),
        cmocka_unit_test(an_end_that_overtakes_the_push_waits_for_it),
        cmocka_unit_test(a_push_that_falls_silent_after_the_end_is_pulled),
        cmocka_unit_test(an_end_may_overtake_the_creation),
        cmocka_unit_test(an_end_may_overtake_all_segments),
        cmocka_unit_test(cancel_closes_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
