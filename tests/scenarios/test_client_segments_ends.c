/* Streams of segments (SEP-1905) that break, expire, fail or are cancelled, and how the
 * client handles that. */
#include "engine/client/session.h"
#include "support/segment_stage.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define BAD_END(segments)                                                                \
    "\"partial-content\":[" segments                                                     \
    "],\"isError\":true,\"isComplete\":true," RELATED("T")

/* ---- streams that break ---- */

static void a_broken_stream_is_pulled(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_cut(&k);
    assert_int_equal(r->completed, 0);
    kit_handshake_2025(&k, SERVER_2025_STREAMS);
    kit_result(&k, segments_expect_pull(&k, "1"), PART(SEG(2, "b")));
    kit_expect_silence(&k);
    kit_advance(&k, 1200);
    kit_result(&k, segments_expect_pull(&k, "2"), PART(""));
    kit_advance(&k, 1200);
    kit_result(&k, segments_expect_pull(&k, "2"), LAST(SEG(3, "c")));
    segments_assert_abc(r);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The error of a tool may have the text of a server's substitute for an answer that it
 * did not keep for Last-Event-ID. When no stream was resumed, it is the end of the
 * task. */
static void the_words_of_a_stand_in_may_be_a_tools(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_error(&k, call, -32603, "{\"reason\":\"answer_gone\"}");
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32603);
    kit_expect_silence(&k);
    kit_end(&k);
}

#define UNREAD "{\"reason\":\"store_failed\",\"retryAfterMs\":1000}"
#define NO_MEMORY "{\"reason\":\"out_of_memory\",\"retryAfterMs\":1000}"

/* The server cannot read the next segments of a task that runs, with or without a pause
 * in its error. The client pulls the rest. */
static void a_stream_that_the_store_cannot_read_is_pulled(void **state)
{
    static const char *const errors[] = {UNREAD, NO_MEMORY,
                                         "{\"reason\":\"store_failed\"}"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_error(&k, call, -32603, errors[i]);
        assert_int_equal(r->completed, 0);
        kit_result(&k, segments_expect_pull(&k, "1"), LAST(SEG(2, "b") "," SEG(3, "c")));
        segments_assert_abc(r);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* The task has failed, and its result cannot be read now: the client asks for it again.
 * An error without a pause is the result of the task. */
static void an_end_that_the_store_cannot_read_is_asked_for_again(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    kit_begin_2025(&k, NULL, SERVER_2025);
    kit_start(&k, "tools/list", NULL, NULL);
    kit_list_tools(&k);
    record *r = segments_call(&k, NULL, &call);
    kit_result(&k, call, "%s", CREATED_2025("T"));
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), "%s", TASK_2025("T", "failed"));
    for (int i = 0; i < 3; i++) {
        kit_error(&k, kit_expect(&k, "tasks/result"), -32603,
                  i == 1 ? NO_MEMORY : UNREAD);
        assert_int_equal(r->completed, 0);
        kit_advance(&k, 800);
        kit_expect_silence(&k);
        kit_advance(&k, 1000);
    }
    kit_error(&k, kit_expect(&k, "tasks/result"), -32603,
              "{\"reason\":\"store_failed\"}");
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* When the task of a broken stream asks a question, its result is pulled: a server may
 * ask only while a client waits for the result. The tool goes on when it has its
 * answer. */
static void a_broken_stream_that_asks_is_waited_for(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    const char *call;
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    kit_begin_2025(&k, &options, SERVER_2025_STREAMS);
    kit_start(&k, "tools/list", NULL, NULL);
    kit_list_tools(&k);
    record *r = segments_call(&k, NULL, &call);
    kit_result(&k, call, "%s", CREATED_2025("T"));
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER_2025_STREAMS);
    kit_result(&k, segments_expect_pull(&k, "1"), PART(""));
    for (int i = 0; i < 2; i++) { /* the server might ask by itself */
        kit_expect_silence(&k);
        kit_advance(&k, 1200);
        kit_result(&k, kit_expect(&k, "tasks/get"), "%s",
                   TASK_2025("T", "input_required"));
    }
    const char *waits = kit_expect(&k, "tasks/result");
    assert_at(waits, "params.lastSeqNr", "");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\","
                "\"params\":{\"message\":\"?\",\"requestedSchema\":{\"type\":"
                "\"object\",\"properties\":{}},\"_meta\":{\"io.modelcontextprotocol/"
                "related-task\":{\"taskId\":\"T\"}}}}");
    assert_true(*r->last_key);
    assert_int_equal(segue_request_answer(r->request, r->last_key,
                                          "{\"action\":\"decline\"}", 20, NULL),
                     SEGUE_OK);
    kit_run(&k);
    assert_at(kit_heard(&k), "result.action", "\"decline\"");
    kit_result(
        &k, waits,
        "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]," RELATED("T"));
    segments_assert_abc(r);
    kit_end(&k);
}

static void content_in_answer_to_a_pull_is_the_whole(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(3, "x")));
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER_2025);
    kit_result(
        &k, segments_expect_pull(&k, "1"),
        "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]," RELATED("T"));
    segments_assert_abc(r);
    kit_end(&k);
}

/* The server says which of the shown segments were replaced in its result. */
static void the_whole_says_what_was_replaced(void **state)
{
    (void)state;
    for (int unordered = 0; unordered < 2; unordered++) {
        kit k = {.can_reopen = 1};
        const char *call;
        segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
        options.unordered = unordered;
        record *r = segments_begin_task(&k, &options, &call);
        r->unordered = unordered;
        kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
        kit_cut(&k);
        kit_handshake_2025(&k, SERVER_2025);
        kit_result(&k, segments_expect_pull(&k, "2"),
                   "\"content\":[" BLOCK("d") "],\"_meta\":{\"dev.segue/replace\":3,"
                                              "\"x\":1}");
        assert_int_equal(r->status, SEGUE_OK);
        assert_string_equal(r->result,
                            "{\"content\":[" BLOCK("d") "],\"_meta\":{\"x\":1}}");
        assert_int_equal(r->segments, 3);
        assert_int_equal(r->last_segment, 4);
        assert_int_equal(r->replaced_by, 4);
        kit_end(&k);
    }
}

/* For a server that pushes, the timeout counts from its last answer, not from the
 * call. */
static void the_timeout_counts_from_the_last_answer(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.request_timeout_ms = 900; /* below the poll interval */
    kit_begin_2025(&k, &options, SERVER_2025_STREAMS);
    kit_start(&k, "tools/list", NULL, NULL);
    kit_list_tools(&k);
    const char *call;
    record *r = segments_call(&k, NULL, &call);
    kit_result(&k, call, CREATED_2025("T"));
    kit_advance(&k, 700);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_advance(&k, 700);
    segments_answer_looks(&k);
    kit_result(&k, call, PART(SEG(2, "b")));
    kit_advance(&k, 850);
    segments_answer_looks(&k);
    assert_int_equal(k.session->in_flight.count, 1);
    kit_advance(&k, 900);
    /* the client sends no notifications/cancelled */
    const char *line = kit_expect(&k, "tasks/result");
    assert_at(line, "params.lastSeqNr", "2");
    kit_result(&k, line, LAST(SEG(3, "c")));
    segments_assert_abc(r);
    kit_end(&k);
}

static void a_token_pulls_in_another_process(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    char token[sizeof r->token];
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
    memcpy(token, r->token, sizeof token);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    kit_begin_2025(&k, NULL, SERVER_2025_STREAMS);
    r = kit_resume(&k, token, NULL);
    kit_result(&k, segments_expect_pull(&k, "2"), PART(""));
    kit_advance(&k, 1200);
    kit_result(&k, segments_expect_pull(&k, "2"), LAST(SEG(3, "c")));
    kit_result(
        /* the whole result, which this process has not seen */
        &k, segments_expect_pull(&k, ""),
        "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    assert_int_equal(r->last_segment, 3);
    assert_at(r->result, "content.2", BLOCK("c"));
    kit_end(&k);
}

/* The call is answered with an immediate result, and the process dies before the
 * application has taken the last one. In the next process the call becomes a task, which
 * begins with the segments that the application has. */
static void a_call_of_another_process_becomes_a_task(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = 2;
    kit_begin_2025(&k, NULL, SERVER_2025_KEYS);
    record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    kit_list_tools(&k);
    const char *call = kit_expect(&k, "tools/call");
    char token[sizeof r->token];
    kit_result(&k, call, "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_int_equal(r->segments, 2);
    memcpy(token, r->token, sizeof token);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    kit_begin_2025(&k, NULL, SERVER_2025_KEYS);
    r = kit_resume(&k, token, NULL);
    kit_list_tools(&k);
    call = kit_expect(&k, "tools/call");
    kit_result(&k, call, CREATED_2025("T"));
    kit_result(&k, call, LAST(SEG(1, "a") "," SEG(2, "b") "," SEG(3, "c")));
    kit_result(
        /* the whole result, whose first segments this process has not kept */
        &k, segments_expect_pull(&k, ""),
        "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
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
        record *r = segments_begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
        kit_result(&k, call, BAD_END(""));
        const char *get = kit_expect(&k, "tasks/get");
        assert_int_equal(r->completed, 0);
        if (purged)
            kit_error(&k, get, -32602, NULL);
        else
            kit_result(&k, get, TASK_2025("T", "failed"));
        kit_error(&k, segments_expect_pull(&k, purged ? "2" : ""),
                  purged ? -32602 : -32603, NULL);
        assert_int_equal(r->status, purged ? SEGUE_E_TASK_LOST : SEGUE_E_REMOTE);
        assert_int_equal(r->segments, 2);
        assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* The server reports the end itself before it answers the poll that asks for the reason.
 * That answer does not turn the segments into a result. */
static void expiry_told_twice_leaves_an_incomplete_stream(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
    kit_result(&k, call, BAD_END(""));
    const char *get = kit_expect(&k, "tasks/get");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\","
                "\"params\":{" TASK_2025("T", "failed") "}}");
    const char *fetch = segments_expect_pull(&k, "");
    kit_result(&k, get, TASK_2025("T", "failed"));
    assert_int_equal(r->completed, 0);
    kit_error(&k, fetch, -32603, NULL);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32603);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
    kit_expect_silence(&k);
    kit_end(&k);
}

/* tasks/get notices a task that is gone while it streams; the rest is pulled once
 * (R-1905-39, R-1905-41). */
static void a_stream_whose_task_is_gone_is_incomplete(void **state)
{
    (void)state;
    for (int rest = 0; rest < 2; rest++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
        kit_advance(&k, 1200);
        kit_error(&k, kit_expect(&k, "tasks/get"), -32602, NULL);
        const char *pull = segments_expect_pull(&k, "2");
        if (rest) {
            kit_result(&k, pull, LAST(SEG(3, "c")));
            segments_assert_abc(r);
        } else {
            kit_result(&k, pull, PART(SEG(3, "c")));
            assert_int_equal(r->status, SEGUE_E_TASK_LOST);
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
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, BAD_END(""));
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "cancelled"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    assert_at(r->result, "content", "[" BLOCK("a") "]");
    kit_expect_silence(&k);
    kit_end(&k);
    memset(&k, 0, sizeof k); /* cancelled by the client: later answers match no request */
    r = segments_begin_task(&k, NULL, &call);
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

/* The last answer to the call of a cancelled task looks like its result or its error. */
static void a_pushed_end_does_not_end_a_cancelled_task(void **state)
{
    (void)state;
    for (int is_result = 0; is_result < 2; is_result++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        segue_request_cancel(r->request);
        const char *cancel = kit_expect(&k, "tasks/cancel");
        if (is_result)
            kit_result(&k, call, "\"content\":[" BLOCK("cancelled") "],\"isError\":true");
        else
            kit_error(&k, call, -32000, NULL);
        kit_run(&k);
        assert_int_equal(r->completed, 0);
        kit_result(&k, cancel, TASK_2025("T", "cancelled"));
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        assert_int_equal(r->completed, 1);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* A pull that ends with an error does not say whether the task was cancelled. */
static void a_pulled_bad_end_is_looked_into(void **state)
{
    (void)state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        kit k = {.can_reopen = 1};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_cut(&k);
        kit_handshake_2025(&k, SERVER_2025_STREAMS);
        kit_result(&k, segments_expect_pull(&k, "1"), BAD_END(SEG(2, "b")));
        const char *get = kit_expect(&k, "tasks/get");
        if (cancelled) {
            kit_result(&k, get, TASK_2025("T", "cancelled"));
            assert_int_equal(r->status, SEGUE_E_CANCELLED);
        } else {
            kit_result(&k, get, TASK_2025("T", "failed"));
            kit_result(&k, segments_expect_pull(&k, ""),
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
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
    kit_result(&k, call, BAD_END(SEG(3, "c")));
    segments_assert_abc(r);
    assert_at(r->result, "isError", "true");
    kit_expect_silence(&k);
    kit_end(&k);
    for (int first = 0; first < 2; first++) { /* with first = 0 no content comes before */
        memset(&k, 0, sizeof k);
        r = first ? segments_begin(&k, NULL, &call)
                  : segments_begin_task(&k, NULL, &call);
        kit_result(&k, call,
                   "\"content\":[" BLOCK(
                       "oh") "],\"isError\":true,\"isComplete\":true," RELATED("T"));
        assert_int_equal(r->status, SEGUE_OK);
        assert_at(r->result, "isError", "true");
        assert_at(r->result, "isComplete", "");
        assert_non_null(strstr(r->log, "task T\n"));
        assert_non_null(strstr(r->log, "segment 1 oh\n"));
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

#define TOLD                                                                             \
    "\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"T\"},"            \
    "\"dev.segue/error\":{\"code\":-32603,\"message\":\"oh\",\"data\":{\"a\":1}}}"

/* The last answer of a server with this library carries the error itself: its code is
 * kept, and its text is not part of the content. */
static void an_error_behind_segments_keeps_its_code(void **state)
{
    (void)state;
    static const char *const ends[] = {
        "\"partial-content\":[" SEG(2, "b") "," SEG(3, "oh") "]",
        "\"partial-content\":[" SEG(3, "oh") "]", "\"content\":[" BLOCK("oh") "]",
        "\"content\":[" BLOCK("oh") "]"};
    for (int i = 0; i < 4; i++) {
        kit k = {0};
        const char *call;
        /* the last stream fails with its first response, which names the task */
        record *r = i < 3 ? segments_begin_task(&k, NULL, &call)
                          : segments_begin(&k, NULL, &call);
        if (i < 2)
            kit_result(&k, call, PART(SEG(1, "a")));
        kit_result(&k, call, "%s,\"isError\":true,\"isComplete\":true," TOLD, ends[i]);
        if (i == 1) { /* a segment is missing: it is pulled first */
            kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "failed"));
            kit_result(&k, segments_expect_pull(&k, "1"),
                       BAD_END(SEG(2, "b") "," SEG(3, "oh")));
            kit_error(&k, segments_expect_pull(&k, ""), -32603, NULL);
        }
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        assert_int_equal(r->rpc_code, -32603);
        assert_non_null(strstr(r->log, "task T\n"));
        if (!i)
            assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* A process that has only the token of a task that failed gets its segments from the
 * first one on, and then the error. A server that does not know the member which asks for
 * them answers with the error. */
static void a_task_that_failed_is_resumed(void **state)
{
    (void)state;
    for (int knows = 0; knows < 2; knows++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        char token[sizeof r->token];
        memcpy(token, r->token, sizeof token);
        kit_error(&k, call, -32603, NULL);
        kit_end(&k);
        k = (kit){0};
        kit_begin_2025(&k, NULL, SERVER_2025_STREAMS);
        r = kit_resume(&k, token, NULL);
        kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "failed"));
        const char *pull = segments_expect_pull(&k, "");
        assert_non_null(strstr(pull, "\"dev.segue/fromSeqNr\":1"));
        if (knows) {
            kit_result(&k, pull, PART(SEG(1, "a") "," SEG(2, "b")));
            kit_result(&k, segments_expect_pull(&k, "2"),
                       "\"partial-content\":[" SEG(3, "c") "," SEG(
                           4, "oh") "],\"isError\":true,\"isComplete\":true," TOLD);
        } else {
            kit_error(&k, pull, -32603, NULL);
        }
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        assert_int_equal(r->rpc_code, -32603);
        assert_int_equal(r->segments, knows ? 3 : 0);
        if (knows)
            assert_at(r->result, "content",
                      "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* The result of a failed task may be the error alone, so its segments are pulled
 * first. */
static void what_failed_is_pulled_before_its_error_is_fetched(void **state)
{
    (void)state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_advance(&k, 1200);
        const char *get = kit_expect(&k, "tasks/get");
        if (cancelled)
            kit_result(&k, get, TASK_2025("T", "cancelled"));
        else
            kit_result(&k, get, TASK_2025("T", "failed"));
        kit_result(&k, segments_expect_pull(&k, "1"), PART(SEG(2, "b")));
        kit_result(&k, segments_expect_pull(&k, "2"), BAD_END(SEG(3, "c")));
        if (!cancelled)
            kit_error(&k, segments_expect_pull(&k, ""), -32000, NULL);
        assert_int_equal(r->status, cancelled ? SEGUE_E_CANCELLED : SEGUE_E_REMOTE);
        assert_int_equal(r->rpc_code, cancelled ? 0 : -32000);
        assert_int_equal(r->segments, 3);
        assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* A cancelled task stays cancelled, whatever the pull of its rest brings. */
static void what_is_cancelled_stays_so(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        kit k = {0};
        const char *call;
        record *r = segments_begin_task(&k, NULL, &call);
        kit_result(&k, call, PART(SEG(1, "a")));
        kit_advance(&k, 1200);
        kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "cancelled"));
        if (whole)
            kit_result(&k, segments_expect_pull(&k, "1"),
                       "\"content\":[" BLOCK("a") "," BLOCK("gone") "]");
        else
            kit_error(&k, segments_expect_pull(&k, "1"), -32603, NULL);
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
        record *r = segments_begin_task(&k, NULL, &call);
        if (segments)
            kit_result(&k, call, PART(SEG(1, "a")));
        kit_error(&k, call, -32000, NULL);
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        assert_int_equal(r->rpc_code, -32000);
        kit_end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("AS-28 a broken stream is pulled", a_broken_stream_is_pulled),
        cmocka_unit_test(the_words_of_a_stand_in_may_be_a_tools),
        cmocka_unit_test(a_stream_that_the_store_cannot_read_is_pulled),
        cmocka_unit_test(an_end_that_the_store_cannot_read_is_asked_for_again),
        cmocka_unit_test(a_broken_stream_that_asks_is_waited_for),
        cmocka_unit_test(content_in_answer_to_a_pull_is_the_whole),
        NAMED("R-1905-34 the whole says what was replaced",
              the_whole_says_what_was_replaced),
        cmocka_unit_test(the_timeout_counts_from_the_last_answer),
        cmocka_unit_test(a_token_pulls_in_another_process),
        cmocka_unit_test(a_call_of_another_process_becomes_a_task),
        NAMED("AS-9 expiry leaves an incomplete stream",
              expiry_leaves_an_incomplete_stream),
        NAMED("AS-9 expiry that is reported twice leaves an incomplete stream",
              expiry_told_twice_leaves_an_incomplete_stream),
        cmocka_unit_test(a_stream_whose_task_is_gone_is_incomplete),
        NAMED("AS-10 a stream that is cancelled", cancelled_by_somebody),
        cmocka_unit_test(a_pushed_end_does_not_end_a_cancelled_task),
        cmocka_unit_test(a_pulled_bad_end_is_looked_into),
        NAMED("AS-11 R-1905-45 an error behind segments keeps its code",
              an_error_behind_segments_keeps_its_code),
        NAMED("AS-11 R-1905-45 a failure ends in a result with isError",
              a_failure_ends_in_a_result_with_is_error),
        cmocka_unit_test(what_failed_is_pulled_before_its_error_is_fetched),
        NAMED("AS-11 a task that failed is resumed", a_task_that_failed_is_resumed),
        cmocka_unit_test(what_is_cancelled_stays_so),
        cmocka_unit_test(an_error_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
