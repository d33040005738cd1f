/* A client that streams a task (tasks/stream) from a server that the test plays: faults
 * of the server, and a slow application. */
#include "engine/dialect/task_events/stream.h"
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

/* Makes a call that has become task T and is being streamed; *stream is the request for
 * the stream. */
static record *begin(kit *k, const segue_request_options *options, const char **stream)
{
    kit_begin_modern(k, NULL, SERVER_STREAMS);
    record *r = kit_start(k, "tools/call", "{\"name\":\"t\"}", options);
    kit_result(k, kit_expect(k, "tools/call"), CREATED("T"));
    *stream = kit_expect(k, "tasks/stream");
    return r;
}

static void event(kit *k, int seq, const char *type, const char *payload)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
            "\"seq\":%d,\"taskId\":\"T\",\"type\":\"%s\",\"payload\":%s}}",
            seq, type, payload);
}

/* ---- events ---- */

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define EVENT "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\""
#define PIECE(text)                                                                      \
    "\"type\":\"dev.segue.content.partial\",\"payload\":{\"content\":[" TEXT(text) "]}"

static void unknown_types_are_counted_and_ignored(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "a");
    event(&k, 1, "com.example.other", "[1,2]");
    event(&k, 2, "dev.segue.status", "{\"status\":\"dancing\"}");
    kit_segment(&k, "T", 3, 2, "b");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    kit_end(&k);
}

/* The stream lacks what the malformed event had, so the result is fetched. */
static void a_malformed_event_is_lacking(void **state)
{
    static const char *const bad[] = {
        NULL,
        "\"taskId\":\"T\"",
        "\"taskId\":\"T\",\"seq\":-1," PIECE("x"),
        "\"taskId\":\"T\",\"seq\":\"1\"," PIECE("x"),
        "\"taskId\":\"T\",\"seq\":1.5," PIECE("x"),
        "\"seq\":1," PIECE("x"),
        "\"taskId\":7,\"seq\":1," PIECE("x"),
        "\"taskId\":\"T\",\"seq\":1,\"type\":\"dev.segue.content.partial\","
        "\"payload\":{\"content\":7}",
        "\"taskId\":\"T\",\"seq\":1,\"type\":\"dev.segue.fields\",\"payload\":7"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kit k = {0};
        const char *stream;
        record *r = begin(&k, NULL, &stream);
        kit_segment(&k, "T", 0, 1, "a");
        if (bad[i])
            kit_say(&k, EVENT ",\"params\":{%s}}", bad[i]);
        else
            kit_say(&k, EVENT "}");
        kit_result(&k, stream, FINAL);
        assert_int_equal(r->completed, 0);
        kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
        assert_int_equal(r->completed, 1);
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(r->segments, 2);
        assert_at(r->result, "content", "[" TEXT("a") "," TEXT("b") "]");
        kit_end(&k);
    }
}

static void events_of_another_task_are_not_lacking(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "U", 0, 1, "x");
    kit_segment(&k, "T", 0, 1, "a");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->completed, 1);
    assert_at(r->result, "content", "[" TEXT("a") "]");
    kit_end(&k);
}

/* A task id is a text: it may have characters that JSON escapes, or be escaped where it
 * need not be. */
static void a_task_id_may_be_escaped(void **state)
{
    static const char *const ids[][2] = {{"T\\\"1", "T\\\"1"}, {"T", "\\u0054"}};
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        kit k = {0};
        char created[400];
        kit_begin_modern(&k, NULL, SERVER_STREAMS);
        record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", NULL);
        snprintf(
            created, sizeof created,
            "\"resultType\":\"task\",\"taskId\":\"%s\",\"status\":\"working\"," STAMPS,
            ids[i][0]);
        kit_result(&k, kit_expect(&k, "tools/call"), created);
        const char *stream = kit_expect(&k, "tasks/stream");
        kit_segment(&k, ids[i][1], 0, 1, "a");
        kit_result(&k, stream, FINAL);
        assert_int_equal(r->completed, 1);
        assert_int_equal(r->segments, 1);
        assert_at(r->result, "content", "[" TEXT("a") "]");
        kit_end(&k);
    }
}

static void fields_and_replace_are_merged(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "wrong");
    event(&k, 1, "dev.segue.replace", "{}");
    kit_segment(&k, "T", 2, 2, "right");
    event(&k, 3, "dev.segue.fields",
          "{\"structuredContent\":{\"n\":18446744073709551616}}");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content", "[{\"type\":\"text\",\"text\":\"right\"}]");
    assert_at(r->result, "structuredContent", "{\"n\":18446744073709551616}");
    kit_end(&k);
}

#define AT(text, segment, index)                                                         \
    "{\"content\":[" TEXT(text) "],\"segment\":" #segment ",\"index\":" #index "}"

static void texts_go_on_in_their_blocks(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    event(&k, 0, "dev.segue.content.partial", AT("con", 1, 0));
    event(&k, 1, "dev.segue.content.partial", AT("cont", 2, 1));
    event(&k, 2, "dev.segue.content.partial", AT("tent 1.", 3, 0));
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 3);
    assert_at(r->result, "content", "[" TEXT("content 1.") "," TEXT("cont") "]");
    kit_end(&k);
}

/* The stream lacks the pieces with an invalid index. So the result is fetched, and its
 * blocks are not the segments that were shown. */
static void a_place_that_is_none_is_lacking(void **state)
{
    static const char *const bad[] = {AT("x", 2, 2), AT("x", 2, -1), AT("x", 2, "0"),
                                      AT("x", 2, 0.5)};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kit k = {0};
        const char *stream;
        record *r = begin(&k, NULL, &stream);
        event(&k, 0, "dev.segue.content.partial", AT("con", 1, 0));
        event(&k, 1, "dev.segue.content.partial", bad[i]);
        assert_int_equal(r->segments, 1);
        kit_result(&k, stream, FINAL);
        kit_result(
            &k, kit_expect(&k, "tasks/get"),
            "\"resultType\":\"complete\",\"taskId\":\"T\",\"status\":\"completed\","
            "\"createdAt\":\"2026-01-01T00:00:00Z\","
            "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"ttlMs\":60000,"
            "\"result\":{\"resultType\":\"complete\",\"content\":[" TEXT(
                "content 1.") "],\"_meta\":{\"dev.segue/segments\":2}}");
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(r->segments, 2);
        assert_non_null(strstr(r->log, "segment 2 content 1."));
        assert_at(r->result, "content", "[" TEXT("content 1.") "]");
        assert_at(r->result, "_meta", "");
        kit_end(&k);
    }
}

/* After a gap the stream is opened again. Later events of the old stream are dropped, or
 * fit. */
static void events_of_the_stream_that_was_cut_do_no_harm(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "a");
    kit_segment(&k, "T", 2, 3, "c"); /* segment 1 is missing */
    kit_expect(&k, "notifications/cancelled");
    const char *again = kit_expect(&k, "tasks/stream");
    assert_at(again, "params.after", "0");
    /* the answer to the first one: no request waits for it */
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->completed, 0);
    kit_segment(&k, "T", 1, 2, "b");
    kit_segment(&k, "T", 2, 3, "c");
    kit_result(&k, again, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 3);
    kit_end(&k);
}

/* ---- a stream that was left ---- */

/* Cancels a call whose task is being streamed: the server says that it does so. */
static void leave(kit *k, record *r)
{
    const char *line;
    bool is_left = false;
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_run(k);
    while ((line = kit_heard(k))) {
        bool is_cancel = !strcmp(json_at(line, "method"), "\"tasks/cancel\"");
        is_left |= !strcmp(json_at(line, "method"), "\"notifications/cancelled\"");
        if (is_cancel)
            kit_result(k, line, "\"resultType\":\"complete\"");
    }
    assert_true(is_left);
    assert_int_equal(r->completed, 1);
}

/* Follows a task of which only the id is known. */
static record *watch(kit *k, const char *id, const char **stream)
{
    segue_task *task;
    segue_request_events events;
    record *r = kit_record(k, &events);
    assert_int_equal(segue_task_attach(k->session, id, &task, NULL), SEGUE_OK);
    assert_int_equal(segue_task_watch(task, NULL, &events, &r->request, NULL), SEGUE_OK);
    segue_task_free(task);
    kit_run(k);
    *stream = NULL;
    for (const char *line; (line = kit_heard(k));) {
        if (!strcmp(json_at(line, "method"), "\"tasks/stream\""))
            *stream = line;
        else
            kit_result(k, line, TASK("T", "working"));
    }
    assert_non_null(*stream);
    assert_at(*stream, "params.after", "");
    return r;
}

/* The stream of T was left. The one of U begins with the earliest event that the server
 * still has, and so does the next one of T. */
static void a_stream_that_was_left_does_not_hide_another(void **state)
{
    (void)state;
    static const char *const ids[] = {"U", "T"};
    for (int i = 0; i < 2; i++) {
        kit k = {0};
        const char *stream;
        record *r = begin(&k, NULL, &stream);
        kit_segment(&k, "T", 0, 1, "a");
        leave(&k, r);
        r = watch(&k, ids[i], &stream);
        kit_segment(&k, ids[i], 4, 5, "e");
        assert_int_equal(r->segments, 1);
        assert_int_equal(r->last_segment, 5);
        kit_segment(&k, ids[i], 5, 6, "f");
        assert_int_equal(r->segments, 2);
        kit_end(&k);
    }
}

/* Events of the stream that was left are no beginning of the next one. */
static void a_stream_that_was_left_is_no_part_of_the_next(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    for (int seq = 0; seq < 3; seq++)
        kit_segment(&k, "T", seq, seq + 1, "x");
    leave(&k, r);
    r = watch(&k, "T", &stream);
    kit_segment(&k, "T", 3, 4, "of the stream that was left");
    kit_segment(&k, "T", 4, 5, "of the stream that was left");
    assert_int_equal(r->segments, 0);
    for (int seq = 1; seq < 6; seq++) /* the first event is retained no more */
        kit_segment(&k, "T", seq, seq + 1, "x");
    assert_int_equal(r->segments, 5);
    assert_int_equal(r->last_segment, 6);
    kit_end(&k);
}

/* The token was taken before the last event of the stream that was left. A further event
 * of that stream is not a hole in the resumed one. */
static void a_stream_that_was_left_is_no_hole_of_the_resumed_one(void **state)
{
    (void)state;
    kit k = {0};
    char token[4096];
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    for (int seq = 0; seq < 2; seq++)
        kit_segment(&k, "T", seq, seq + 1, "x");
    strcpy(token, r->token);
    kit_segment(&k, "T", 2, 3, "x");
    assert_int_equal(segue_request_detach(r->request), SEGUE_OK);
    kit_run(&k);
    r = kit_resume(&k, token, NULL);
    kit_expect(&k, "notifications/cancelled");
    assert_at(kit_expect(&k, "tasks/stream"), "params.after", "1");
    kit_expect(&k, "tasks/get");
    kit_expect_silence(&k);
    kit_segment(&k, "T", 3, 4, "of the stream that was left");
    assert_int_equal(r->segments, 0);
    kit_expect_silence(&k); /* the stream is not opened again */
    for (int seq = 2; seq < 5; seq++)
        kit_segment(&k, "T", seq, seq + 1, "x");
    assert_int_equal(r->segments, 3);
    assert_int_equal(r->last_segment, 5);
    kit_end(&k);
}

/* When an event that may be of the stream that was left was passed over, the merged
 * events are not the result. */
static void what_was_passed_over_is_in_the_result(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "a");
    leave(&k, r);
    r = watch(&k, "T", &stream);
    kit_segment(&k, "T", 1, 2, "b");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->completed, 0);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    kit_end(&k);
}

/* SGI_STREAMS_LEFT_MAX streams that were left are known. One more takes the place of the
 * oldest: the next event of that one counts as a beginning. */
static void streams_that_were_left_are_known_in_bounds(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        kit k = {0};
        const char *stream;
        char id[16];
        kit_begin_modern(&k, NULL, SERVER_STREAMS);
        for (int i = 0; i < SGI_STREAMS_LEFT_MAX + more; i++) {
            snprintf(id, sizeof id, "T%d", i);
            record *r = watch(&k, id, &stream);
            kit_segment(&k, id, 0, 1, "a");
            assert_int_equal(r->segments, 1);
            leave(&k, r);
        }
        record *r = watch(&k, "T0", &stream);
        kit_segment(&k, "T0", 1, 2, "b");
        assert_int_equal(r->segments, more);
        kit_end(&k);
    }
}

/* ---- the end of the stream ---- */

static void a_stream_that_ends_early_is_opened_again(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "a");
    kit_result(&k, stream, "\"resultType\":\"complete\"");
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "working"));
    kit_advance(&k, 1200);
    stream = kit_expect(&k, "tasks/stream");
    assert_at(stream, "params.after", "0");
    kit_segment(&k, "T", 1, 2, "b");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    kit_end(&k);
}

/* A stream has a pause of its own, which tasks/get does not make longer. */
static void a_stream_does_not_wait_for_the_poll(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "a");
    event(&k, 1, "dev.segue.status", "{\"status\":\"input_required\"}");
    const char *get = kit_expect(&k, "tasks/get");
    kit_error(&k, stream, -32603, NULL);
    kit_result(&k, get, TASK("T", "working")); /* pollIntervalMs is 1000 */
    kit_advance(&k, 500);
    stream = kit_expect(&k, "tasks/stream");
    assert_at(stream, "params.after", "1");
    kit_segment(&k, "T", 2, 2, "b");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->segments, 2);
    kit_end(&k);
}

static void a_failed_task_is_told_by_get(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "a");
    kit_result(&k, stream,
               "\"resultType\":\"complete\",\"_meta\":{\"dev.segue/final\":{\"status\":"
               "\"failed\"}}");
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "failed") ",\"error\":{\"code\":-32603,\"message\":\"oh\"}");
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_string_equal(r->message, "oh");
    kit_end(&k);
}

static void is_error_of_the_final_reaches_the_result(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "a");
    kit_result(&k, stream,
               "\"resultType\":\"complete\",\"_meta\":{\"dev.segue/final\":{\"status\":"
               "\"completed\",\"isError\":true}}");
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "isError", "true");
    kit_end(&k);
}

/* AS-69: an answer that was under way when the end came changes nothing. */
static void a_late_get_does_not_bring_the_task_back(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    event(&k, 0, "dev.segue.status", "{\"status\":\"input_required\"}");
    const char *get = kit_expect(&k, "tasks/get");
    event(&k, 1, "dev.segue.status", "{\"status\":\"working\"}");
    kit_segment(&k, "T", 2, 1, "a");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    kit_result(&k, get,
               "\"resultType\":\"complete\",\"taskId\":\"T\",\"status\":\"working\","
               "\"createdAt\":\"2026-01-01T00:00:00+00:00\"");
    kit_advance(&k, 5000);
    kit_expect_silence(&k);
    assert_int_equal(r->completed, 1);
    kit_end(&k);
}

/* ---- the stream is refused ---- */

static void events_gone_falls_back_without_a_loss_or_a_repeat(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "a");
    kit_segment(&k, "T", 2, 3, "c");
    kit_expect(&k, "notifications/cancelled");
    kit_error(&k, kit_expect(&k, "tasks/stream"), -32602,
              "{\"reason\":\"events_gone\",\"earliest\":9}");
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "working"));
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    assert_int_equal(r->last_segment, 2);
    assert_non_null(strstr(r->log, "segment 1 a\nstatus completed -\nsegment 2 b\n"));
    kit_end(&k);
}

/* A whole result after a replace: its blocks are numbered behind the replaced ones. */
static void a_result_after_a_replace_brings_what_is_missing(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "wrong");
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
            "\"seq\":1,\"taskId\":\"T\",\"type\":\"dev.segue.replace\",\"payload\":{}}}");
    kit_segment(&k, "T", 2, 2, "a");
    kit_error(&k, stream, -32603, "{\"reason\":\"events_gone\",\"earliestSeq\":9}");
    stream = kit_expect(&k, "tasks/stream");
    assert_at(stream, "params.after", "8");
    kit_result(&k, stream, FINAL);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 3);
    assert_non_null(strstr(r->log, "segment 2 a\nstatus completed -\nsegment 3 b\n"));
    kit_end(&k);
}

/* The stream broke before it told what was replaced, and the task ended before the stream
 * was opened again: the result tells it. */
static void a_result_tells_what_was_replaced(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_segment(&k, "T", 0, 1, "wrong");
    event(&k, 1, "dev.segue.status", "{\"status\":\"input_required\"}");
    kit_error(&k, stream, -32603, NULL);
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "completed") ",\"result\":{\"content\":["
                                      "{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
                                      "\"text\",\"text\":\"b\"}],"
                                      "\"_meta\":{\"dev.segue/replace\":2}}");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 3);
    assert_int_equal(r->last_segment, 4);
    assert_non_null(strstr(r->log, "segment 3 a\nsegment 4 b\n"));
    assert_at(r->result, "_meta", "");
    kit_end(&k);
}

/* -32601: the server has no streams at all; -32602: not this one. */
static void a_refused_stream_is_polled_instead(void **state)
{
    (void)state;
    static const int codes[] = {-32601, -32602};
    for (int i = 0; i < 2; i++) {
        kit k = {0};
        const char *stream;
        record *r = begin(&k, NULL, &stream);
        kit_error(&k, stream, codes[i], NULL);
        kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
        assert_int_equal(r->status, SEGUE_OK);
        record *next = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"), CREATED("U"));
        kit_result(&k, kit_expect(&k, i ? "tasks/stream" : "tasks/get"),
                   TASK("U", "completed") "," RESULT);
        if (i)
            kit_result(&k, kit_expect(&k, "tasks/get"),
                       TASK("U", "completed") "," RESULT);
        assert_int_equal(next->status, SEGUE_OK);
        kit_end(&k);
    }
}

static void retry_after_is_waited_for(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    kit_error(&k, stream, -32603, "{\"reason\":\"rate_limited\",\"retryAfterMs\":2000}");
    kit_advance(&k, 1900);
    kit_expect_silence(&k);
    kit_advance(&k, 200);
    kit_result(&k, kit_expect(&k, "tasks/stream"), "\"resultType\":\"complete\"");
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* ---- questions ---- */

static void a_question_in_a_stream_is_fetched_and_answered(void **state)
{
    (void)state;
    static const char yes[] = "{\"action\":\"accept\"}";
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    event(&k, 0, "dev.segue.status", "{\"status\":\"input_required\"}");
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "input_required") ",\"inputRequests\":{\"q1\":{\"method\":"
                                           "\"elicitation/create\",\"params\":{}}}");
    assert_string_equal(r->last_key, "q1");
    segue_request_answer(r->request, "q1", yes, strlen(yes), NULL);
    kit_result(&k, kit_expect(&k, "tasks/update"), "\"resultType\":\"complete\"");
    /* The second question came while the first was open, so no further status reported
     * it. */
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "input_required") ",\"inputRequests\":{\"q2\":{\"method\":"
                                           "\"elicitation/create\",\"params\":{}}}");
    assert_string_equal(r->last_key, "q2");
    segue_request_answer(r->request, "q2", yes, strlen(yes), NULL);
    kit_result(&k, kit_expect(&k, "tasks/update"), "\"resultType\":\"complete\"");
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "working"));
    kit_segment(&k, "T", 1, 1, "a");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(segue_request_answer(r->request, "q2", yes, strlen(yes), NULL),
                     SEGUE_E_TERMINAL);
    kit_end(&k);
}

/* A tasks/get that fails beside the stream is repeated: otherwise the question would
 * never be seen. */
static void a_look_that_fails_beside_a_stream_is_made_again(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    record *r = begin(&k, NULL, &stream);
    event(&k, 0, "dev.segue.status", "{\"status\":\"input_required\"}");
    kit_error(&k, kit_expect(&k, "tasks/get"), -32603, NULL);
    kit_advance(&k, 500);
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "input_required") ",\"inputRequests\":{\"q1\":{\"method\":"
                                           "\"elicitation/create\",\"params\":{}}}");
    assert_non_null(r->last_key);
    kit_end(&k);
}

/* The question was asked before the cursor of the token, so the stream does not report
 * it. */
static void a_question_is_found_again_by_a_resumed_stream(void **state)
{
    (void)state;
    char token[4096];
    kit first = {0}, second = {0};
    const char *stream;
    record *r = begin(&first, NULL, &stream);
    event(&first, 0, "dev.segue.status", "{\"status\":\"input_required\"}");
    kit_expect(&first, "tasks/get");
    kit_segment(&first, "T", 1, 1, "a");
    strcpy(token, r->token);
    kit_end(&first);

    kit_begin_modern(&second, NULL, SERVER_STREAMS);
    r = kit_resume(&second, token, NULL);
    assert_at(kit_expect(&second, "tasks/stream"), "params.after", "1");
    kit_result(&second, kit_expect(&second, "tasks/get"),
               TASK("T", "input_required") ",\"inputRequests\":{\"q1\":{\"method\":"
                                           "\"elicitation/create\",\"params\":{}}}");
    assert_string_equal(r->last_key, "q1");
    kit_end(&second);
}

/* ---- the application is slow ---- */

static void segments_wait_for_credit_and_keep_their_order(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = 2;
    record *r = begin(&k, &options, &stream);
    for (int i = 0; i < 5; i++)
        kit_segment(&k, "T", i, i + 1, "x");
    event(&k, 5, "dev.segue.status", "{\"status\":\"working\",\"statusMessage\":\"m\"}");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->segments, 2);
    assert_int_equal(segue_request_grant(r->request, 0), SEGUE_E_INVALID);
    assert_int_equal(segue_request_grant(r->request, 1), SEGUE_OK);
    assert_int_equal(r->segments, 2); /* callbacks never run inside the call */
    kit_run(&k);
    assert_int_equal(r->segments, 3);
    assert_int_equal(r->completed, 0);
    assert_null(strstr(r->log, "status working m"));
    segue_request_grant(r->request, INT64_MAX);
    kit_run(&k);
    assert_int_equal(r->segments, 5);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(segue_request_grant(r->request, 1), SEGUE_E_TERMINAL);
    kit_end(&k);
}

/* Events that the application does not take are not fetched: the stream is closed, and
 * goes on behind the last event when there is room. */
static void a_full_inbox_pauses_the_stream_and_loses_nothing(void **state)
{
    (void)state;
    enum { SIZE = 100 * 1024 };
    kit k = {0};
    const char *stream;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = 1;
    record *r = begin(&k, &options, &stream);
    char *text = malloc(SIZE + 1);
    memset(text, 'x', SIZE);
    text[SIZE] = 0;
    const char *cancelled = NULL;
    int sent = 0;
    for (; sent < 30 && !cancelled; sent++) {
        kit_segment(&k, "T", sent, sent + 1, text);
        cancelled = kit_heard(&k);
    }
    assert_in_range(sent, 8, 14); /* 8 to 14 segments are about a megabyte */
    assert_at(cancelled, "method", "\"notifications/cancelled\"");
    assert_at(cancelled, "params.requestId", json_at(stream, "id"));
    kit_segment(&k, "T", sent, sent + 1, text); /* on its way when the cancel came */
    assert_true(k.mem.live < 8 * 1024 * 1024);
    kit_advance(&k, 5000);
    kit_expect_silence(&k);
    segue_request_grant(r->request, 1000);
    stream = kit_expect(&k, "tasks/stream");
    int after = atoi(json_at(stream, "params.after"));
    assert_in_range(after, sent - 1, sent);
    kit_segment(&k, "T", after + 1, after + 2, "last");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, after + 2);
    free(text);
    kit_end(&k);
}

/* Events of the stream that was left arrive while no stream is open, and after the next
 * one was opened, one of them twice. The next stream brings all of them again. */
static void late_events_of_a_paused_stream_do_no_harm(void **state)
{
    (void)state;
    enum { SIZE = 200 * 1024, FIRST = 5 };
    kit k = {0};
    const char *stream;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = 1;
    record *r = begin(&k, &options, &stream);
    char *text = malloc(SIZE + 1);
    memset(text, 'x', SIZE);
    text[SIZE] = 0;
    int sent = 0;
    while (sent < FIRST || !kit_heard(&k)) {
        kit_segment(&k, "T", sent, sent + 1, text);
        sent++;
    }
    kit_segment(&k, "T", sent, sent + 1, "late");
    segue_request_grant(r->request, 1000);
    stream = kit_expect(&k, "tasks/stream");
    int after = atoi(json_at(stream, "params.after"));
    kit_segment(&k, "T", sent + 1, sent + 2, "late");
    kit_segment(&k, "T", sent + 1, sent + 2, "late");
    kit_expect_silence(&k);
    for (int i = after + 1; i <= sent + 2; i++)
        kit_segment(&k, "T", i, i + 1, "in time");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, sent + 3);
    free(text);
    kit_end(&k);
}

static void discard_delivers_and_does_not_collect(void **state)
{
    (void)state;
    kit k = {0};
    const char *stream;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.discard = 1;
    record *r = begin(&k, &options, &stream);
    kit_segment(&k, "T", 0, 1, "a");
    event(&k, 1, "dev.segue.fields", "{\"structuredContent\":{\"n\":1}}");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    assert_at(r->result, "content", "[]");
    assert_at(r->result, "structuredContent", "{\"n\":1}");
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_types_are_counted_and_ignored),
        NAMED("R-E-7 a malformed event is lacking", a_malformed_event_is_lacking),
        NAMED("R-E-7 events of another task are not lacking",
              events_of_another_task_are_not_lacking),
        NAMED("R-E-7 a task id may be escaped", a_task_id_may_be_escaped),
        cmocka_unit_test(fields_and_replace_are_merged),
        NAMED("R-776-30 texts go on in their blocks, by events",
              texts_go_on_in_their_blocks),
        NAMED("R-776-30 a place that is none is lacking",
              a_place_that_is_none_is_lacking),
        cmocka_unit_test(events_of_the_stream_that_was_cut_do_no_harm),
        NAMED("R-E-7 a stream that was left does not hide another",
              a_stream_that_was_left_does_not_hide_another),
        NAMED("R-E-7 a stream that was left is no hole of the resumed one",
              a_stream_that_was_left_is_no_hole_of_the_resumed_one),
        NAMED("R-E-7 a stream that was left is no part of the next",
              a_stream_that_was_left_is_no_part_of_the_next),
        cmocka_unit_test(what_was_passed_over_is_in_the_result),
        cmocka_unit_test(streams_that_were_left_are_known_in_bounds),
        cmocka_unit_test(a_stream_that_ends_early_is_opened_again),
        cmocka_unit_test(a_stream_does_not_wait_for_the_poll),
        cmocka_unit_test(a_failed_task_is_told_by_get),
        cmocka_unit_test(is_error_of_the_final_reaches_the_result),
        {"AS-69 a late get does not bring the task back",
         a_late_get_does_not_bring_the_task_back, NULL, NULL, NULL},
        cmocka_unit_test(events_gone_falls_back_without_a_loss_or_a_repeat),
        cmocka_unit_test(a_result_after_a_replace_brings_what_is_missing),
        {"R-E-7 a result tells what was replaced", a_result_tells_what_was_replaced, NULL,
         NULL, NULL},
        cmocka_unit_test(a_refused_stream_is_polled_instead),
        cmocka_unit_test(retry_after_is_waited_for),
        cmocka_unit_test(a_question_in_a_stream_is_fetched_and_answered),
        cmocka_unit_test(a_look_that_fails_beside_a_stream_is_made_again),
        cmocka_unit_test(a_question_is_found_again_by_a_resumed_stream),
        cmocka_unit_test(segments_wait_for_credit_and_keep_their_order),
        cmocka_unit_test(late_events_of_a_paused_stream_do_no_harm),
        cmocka_unit_test(a_full_inbox_pauses_the_stream_and_loses_nothing),
        cmocka_unit_test(discard_delivers_and_does_not_collect),
    };
    return cmocka_run_group_tests_name("client_stream", tests, NULL, NULL);
}
