/* A client whose connection breaks or whose process ends: tokens at every point, calls
 * that are sent again with their key, and reconnecting. */
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

/* ---- the token ---- */

static int take(record *r, char *token)
{
    size_t len = 4096;
    return segue_request_token(r->request, token, &len);
}

/* Plays a stream of three segments of task T from `after` on, to its end. */
static void finish_stream(kit *k, record *r, int seen)
{
    static const char *const texts[] = {"x", "y", "z"};
    char after[16] = "";
    const char *stream = kit_expect(k, "tasks/stream");
    if (seen)
        snprintf(after, sizeof after, "%d", seen - 1);
    assert_at(stream, "params.after", after);
    for (int i = seen; i < 3; i++)
        kit_segment(k, "T", i, i + 1, texts[i]);
    kit_result(k, stream, FINAL);
    for (const char *line; (line = kit_heard(k));)
        kit_result(k, line,
                   TASK("T", "completed") ",\"result\":{\"content\":[{\"type\":\"text\","
                                          "\"text\":\"x\"},{\"type\":\"text\",\"text\":"
                                          "\"y\"},{\"type\":\"text\",\"text\":\"z\"}]}");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 3 - seen);
    assert_int_equal(r->last_segment, seen < 3 ? 3 : 0);
    assert_string_equal(json_at(r->result, "content.2.text"), "\"z\"");
}

static void a_token_after_any_segment_gives_the_rest(void **state)
{
    (void)state;
    for (int seen = 0; seen <= 3; seen++) {
        char token[4096];
        kit first = {0}, second = {0};
        kit_begin_modern(&first, NULL, SERVER_STREAMS);
        record *r = kit_call(&first, "t");
        kit_result(&first, kit_expect(&first, "tools/call"), CREATED("T"));
        kit_expect(&first, "tasks/stream");
        for (int i = 0; i < seen; i++)
            kit_segment(&first, "T", i, i + 1, "x");
        assert_int_equal(take(r, token), SEGUE_OK);
        kit_end(&first);
        kit_begin_modern(&second, NULL, SERVER_STREAMS);
        finish_stream(&second, kit_resume(&second, token, NULL), seen);
        kit_end(&second);
    }
}

/* The token covers the segments that the application has seen, not those that have
 * arrived. */
static void a_token_covers_what_was_delivered(void **state)
{
    (void)state;
    char token[4096];
    kit first = {0}, second = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = 1;
    kit_begin_modern(&first, NULL, SERVER_STREAMS);
    record *r = kit_start(&first, "tools/call", "{\"name\":\"t\"}", &options);
    kit_result(&first, kit_expect(&first, "tools/call"), CREATED("T"));
    kit_expect(&first, "tasks/stream");
    kit_segment(&first, "T", 0, 1, "x");
    kit_segment(&first, "T", 1, 2, "y");
    assert_int_equal(r->segments, 1);
    assert_int_equal(take(r, token), SEGUE_OK);
    segue_request_grant(r->request, 9);
    kit_end(&first);
    kit_begin_modern(&second, NULL, SERVER_STREAMS);
    finish_stream(&second, kit_resume(&second, token, NULL), 1);
    kit_end(&second);
}

/* Before there is a task the idempotency key identifies the call. */
static void a_token_before_the_task_sends_the_same_call(void **state)
{
    (void)state;
    char token[4096], key[64];
    kit first = {0}, second = {.chance = 7};
    kit_begin_modern(&first, NULL, SERVER_STREAMS);
    record *r =
        kit_start(&first, "tools/call", "{\"name\":\"t\",\"arguments\":{\"a\":1}}", NULL);
    const char *call = kit_expect(&first, "tools/call");
    const char *at = strstr(call, "dev.segue/idempotencyKey\":\"");
    assert_non_null(at);
    snprintf(key, sizeof key, "%.40s", at);
    assert_int_equal(take(r, token), SEGUE_OK);
    kit_end(&first);
    kit_begin_modern(&second, NULL, SERVER_STREAMS);
    r = kit_resume(&second, token, NULL);
    call = kit_expect(&second, "tools/call");
    assert_non_null(strstr(call, key));
    assert_at(call, "params.arguments", "{\"a\":1}");
    kit_result(&second, call, CREATED("T"));
    finish_stream(&second, r, 0);
    kit_end(&second);
}

static void a_token_is_refused_where_nothing_can_be_resumed(void **state)
{
    (void)state;
    char token[4096];
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    assert_int_equal(take(r, token), SEGUE_E_NOT_RESUMABLE);
    kit_result(&k, kit_expect(&k, "tools/call"), "\"content\":[]");
    assert_int_equal(take(r, token), SEGUE_E_TERMINAL);
    kit_end(&k);
}

static void a_token_outlives_the_connection(void **state)
{
    (void)state;
    char token[4096];
    kit first = {0}, second = {0};
    kit_begin_modern(&first, NULL, SERVER_STREAMS);
    record *r = kit_call(&first, "t");
    kit_result(&first, kit_expect(&first, "tools/call"), CREATED("T"));
    kit_expect(&first, "tasks/stream");
    kit_segment(&first, "T", 0, 1, "x");
    kit_cut(&first);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_int_equal(take(r, token), SEGUE_OK);
    kit_end(&first);
    kit_begin_modern(&second, NULL, SERVER_STREAMS);
    finish_stream(&second, kit_resume(&second, token, NULL), 1);
    kit_end(&second);
}

static void damaged_and_foreign_tokens_are_refused(void **state)
{
    (void)state;
    static const char *const foreign[] = {"",         "sg1.",
                                          "sg1.AAAA", "sg2.AAAAAAAAAAAAAAAA",
                                          "sg1.!!!!", "eyJhbGciOiJub25lIn0.e30."};
    char token[4096];
    kit k = {0};
    segue_request *out = NULL;
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_expect(&k, "tasks/stream");
    assert_int_equal(take(r, token), SEGUE_OK);
    size_t small = 3, length = strlen(token);
    assert_int_equal(segue_request_token(r->request, token + 100, &small),
                     SEGUE_E_TOO_SMALL);
    assert_int_equal(small, length);
    for (size_t i = 0; i < length; i++) {
        char kept = token[i];
        token[i] = kept == 'A' ? 'B' : 'A';
        assert_int_equal(segue_request_resume(k.session, token, NULL, NULL, &out, NULL),
                         SEGUE_E_INVALID);
        token[i] = kept;
    }
    for (size_t n = 0; n < length; n++) {
        char shorter[4096];
        snprintf(shorter, sizeof shorter, "%.*s", (int)n, token);
        assert_int_equal(segue_request_resume(k.session, shorter, NULL, NULL, &out, NULL),
                         SEGUE_E_INVALID);
    }
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        assert_int_equal(
            segue_request_resume(k.session, foreign[i], NULL, NULL, &out, NULL),
            SEGUE_E_INVALID);
    assert_null(out);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* ---- the answer is lost ---- */

static const char *key_of(const char *call)
{
    const char *at = strstr(call, "dev.segue/idempotencyKey\":\"");
    assert_non_null(at);
    return at;
}

static void a_call_whose_answer_was_lost_is_sent_again_with_its_key(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_cut(&k);
    kit_handshake(&k, SERVER_STREAMS);
    const char *again = kit_expect(&k, "tools/call");
    assert_memory_equal(key_of(call), key_of(again), 48);
    kit_result(&k, again, "\"resultType\":\"complete\",\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* Before there is a task, too, when the server knows the call by its key: nothing is
 * cancelled, and the token finds the call. */
static void a_call_with_a_key_can_be_left(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    char token[4096];
    size_t len = sizeof token;
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
    assert_int_equal(segue_request_detach(r->request), SEGUE_OK);
    kit_expect_silence(&k);
    assert_int_equal(r->status, SEGUE_E_CLOSED);
    kit_resume(&k, token, NULL);
    assert_memory_equal(key_of(call), key_of(kit_expect(&k, "tools/call")), 48);
    kit_end(&k);
}

#define ENDING "{\"reason\":\"server_ending\",\"retryAfterMs\":1000}"

/* The server was about to end and has not begun the call. The next server gets it under
 * another key, because the refusal may be stored under the first. */
static void a_call_that_was_turned_away_goes_again(void **state)
{
    (void)state;
    for (int keyed = 0; keyed < 2; keyed++) {
        kit k = {0};
        char first[64] = "", again[64] = "";
        kit_begin_modern(&k, NULL, keyed ? SERVER_STREAMS : SERVER_PLAIN);
        record *r = kit_call(&k, "t");
        const char *call = kit_expect(&k, "tools/call");
        if (keyed)
            snprintf(first, sizeof first, "%.48s", key_of(call));
        kit_error(&k, call, -32603, ENDING);
        assert_int_equal(r->completed, 0);
        kit_advance(&k, 5000);
        call = kit_expect(&k, "tools/call");
        if (keyed) {
            snprintf(again, sizeof again, "%.48s", key_of(call));
            assert_string_not_equal(first, again);
        }
        kit_result(&k, call, "\"resultType\":\"complete\",\"content\":[]");
        assert_int_equal(r->status, SEGUE_OK);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* With a key of the application the refusal is final. A server that always refuses is not
 * asked for ever. */
static void a_call_is_turned_away_in_bounds(void **state)
{
    (void)state;
    for (int chosen = 0; chosen < 2; chosen++) {
        kit k = {0};
        int sent = 0;
        segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
        segue_request_options call = SEGUE_REQUEST_OPTIONS_INIT;
        options.max_reconnects = 2;
        call.idempotency_key = chosen ? "a key of the application" : NULL;
        kit_begin_modern(&k, &options, SERVER_STREAMS);
        record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &call);
        for (; !r->completed && sent < 10; sent++) {
            kit_error(&k, kit_expect(&k, "tools/call"), -32603, ENDING);
            kit_advance(&k, 5000);
        }
        assert_int_equal(sent, chosen ? 1 : 3);
        assert_int_equal(r->status, chosen ? SEGUE_E_REMOTE : SEGUE_E_DISCONNECTED);
        kit_end(&k);
    }
}

/* The end of a server that cuts off a plain call is a lost connection for the
 * application. With a key of the application the error is the answer for that key. */
static void a_call_that_its_server_cuts_off_is_disconnected(void **state)
{
    static const char *const ends[] = {"{\"reason\":\"server_restarted\"}",
                                       "{\"reason\":\"request_ended\"}"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool chosen = i / 2;
        kit k = {0};
        segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
        options.idempotency_key = chosen ? "a key of the application" : NULL;
        kit_begin_modern(&k, NULL, SERVER_STREAMS);
        record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
        kit_error(&k, kit_expect(&k, "tools/call"), -32603, ends[i % 2]);
        assert_int_equal(r->status, chosen ? SEGUE_E_REMOTE : SEGUE_E_DISCONNECTED);
        char token[256];
        size_t len = sizeof token;
        assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_E_TERMINAL);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* The server cannot read the store now, so it does not know the call. The client sends it
 * again after the pause that the server asks for, within max_reconnects. */
static void a_call_that_the_store_cannot_read_goes_again(void **state)
{
    static const char *const unread[] = {
        "{\"reason\":\"store_failed\",\"retryAfterMs\":1000}",
        "{\"reason\":\"out_of_memory\",\"retryAfterMs\":1000}"};
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        kit k = {0};
        segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
        options.max_reconnects = 3;
        kit_begin_modern(&k, &options, SERVER_STREAMS);
        record *r = kit_call(&k, "t");
        const char *call = kit_expect(&k, "tools/call");
        char key[64];
        snprintf(key, sizeof key, "%.48s", key_of(call));
        for (int i = 0; i < 3; i++) {
            kit_error(&k, call, -32603, unread[ends]);
            kit_advance(&k, 800);
            kit_expect_silence(&k);
            kit_advance(&k, 1000);
            call = kit_expect(&k, "tools/call");
            assert_memory_equal(key, key_of(call), strlen(key));
        }
        if (ends)
            kit_result(&k, call, "\"resultType\":\"complete\",\"content\":[]");
        else
            kit_error(&k, call, -32603, unread[ends]);
        assert_int_equal(r->status, ends ? SEGUE_OK : SEGUE_E_REMOTE);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

static void without_idempotency_a_lost_answer_ends_the_call(void **state)
{
    (void)state;
    for (int forgets = 0; forgets < 2; forgets++) {
        kit k = {.can_reopen = 1};
        kit_begin_modern(&k, NULL, forgets ? SERVER_STREAMS : SERVER_TASKS);
        record *r = kit_call(&k, "t");
        kit_expect(&k, "tools/call");
        kit_cut(&k);
        kit_handshake(&k, SERVER_TASKS);
        kit_expect_silence(&k); /* the call is never sent twice */
        assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
        record *next = kit_call(&k, "t"); /* the session goes on */
        kit_result(&k, kit_expect(&k, "tools/call"), "\"content\":[]");
        assert_int_equal(next->status, SEGUE_OK);
        kit_end(&k);
    }
}

static void no_idempotency_sends_no_key(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.no_idempotency = 1;
    kit_begin_modern(&k, &options, SERVER_STREAMS);
    kit_call(&k, "t");
    assert_null(strstr(kit_expect(&k, "tools/call"), "idempotencyKey"));
    kit_end(&k);
}

/* ---- reconnecting ---- */

static void a_stream_goes_on_after_a_reconnect(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_expect(&k, "tasks/stream");
    kit_segment(&k, "T", 0, 1, "a");
    kit_cut(&k);
    kit_handshake(&k, SERVER_STREAMS);
    const char *stream = kit_expect(&k, "tasks/stream");
    assert_at(stream, "params.after", "0");
    kit_segment(&k, "T", 0, 1, "a"); /* a server that repeats itself */
    kit_segment(&k, "T", 1, 2, "b");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    kit_end(&k);
}

/* An answer without an acknowledgement is sent again: the server knows it by its key. */
static void an_answer_that_was_not_acknowledged_is_sent_again(void **state)
{
    (void)state;
    static const char yes[] = "{\"action\":\"accept\"}";
    kit k = {.can_reopen = 1};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "input_required") ",\"inputRequests\":{\"q\":{\"method\":"
                                           "\"elicitation/create\",\"params\":{}}}");
    segue_request_answer(r->request, "q", yes, strlen(yes), NULL);
    kit_expect(&k, "tasks/update");
    kit_cut(&k);
    kit_handshake(&k, SERVER_TASKS);
    kit_result(&k, kit_expect(&k, "tasks/update"), "\"resultType\":\"complete\"");
    for (const char *line; (line = kit_heard(&k));)
        kit_result(&k, line, TASK("T", "completed") "," RESULT);
    assert_int_equal(r->status, SEGUE_OK);
    assert_null(strstr(strstr(r->log, "input q") + 1, "input q"));
    kit_end(&k);
}

static void the_first_try_comes_at_once_and_the_others_ever_later(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.max_reconnects = 6;
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    int64_t least = 125;
    for (int i = 1; i <= 6; i++) {
        kit_cut(&k);
        if (i > 1) {
            assert_int_equal(k.reopens, i - 1);
            kit_advance(&k, least - 10);
            assert_int_equal(k.reopens, i - 1);
            kit_advance(&k, least * 2 + 20); /* a pause of 0.5 to 1.5 times */
            least *= 2;
        }
        kit_run(&k);
        assert_int_equal(k.reopens, i);
        assert_int_equal(k.closed, 0);
        kit_expect(&k, "server/discover");
    }
    kit_cut(&k);
    assert_int_equal(k.closed_status, SEGUE_E_DISCONNECTED);
    kit_advance(&k, 100000);
    assert_int_equal(k.reopens, 6);
    kit_end(&k);
}

static void the_first_connection_has_attempts_of_its_own(void **state)
{
    (void)state;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    for (int32_t attempts = 1; attempts <= 2; attempts++) {
        kit k = {.can_reopen = 1};
        options.first_attempts = attempts;
        kit_begin(&k, &options);
        for (int32_t i = 1; i <= attempts; i++) {
            assert_int_equal(k.closed, 0);
            kit_expect(&k, "server/discover");
            kit_cut(&k);
            kit_run(&k);
        }
        assert_int_equal(k.closed_status, SEGUE_E_DISCONNECTED);
        assert_int_equal(k.reopens, attempts - 1);
        kit_end(&k);
    }
    kit k = {.can_reopen = 1};
    options.first_attempts = 1;
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    kit_cut(&k);
    kit_run(&k);
    assert_int_equal(k.reopens, 1); /* the session was open: max_reconnects counts */
    assert_int_equal(k.closed, 0);
    kit_expect(&k, "server/discover");
    kit_end(&k);
}

static void a_transport_that_gives_up_ends_the_session(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1, .hold_reopen = 1};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_expect(&k, "tools/call");
    kit_cut(&k);
    kit_run(&k);
    assert_int_equal(k.reopens, 1);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_int_equal(k.closed_status, SEGUE_E_DISCONNECTED);
    kit_end(&k);
}

static void close_while_the_connection_is_lost(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_expect(&k, "tasks/stream");
    kit_cut(&k);
    kit_expect(&k, "server/discover");
    kit_cut(&k); /* now the client pauses before it tries again */
    assert_int_equal(r->completed, 0);
    segue_session_close(k.session);
    kit_run(&k);
    assert_int_equal(r->status, SEGUE_E_CLOSED);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_after_any_segment_gives_the_rest),
        cmocka_unit_test(a_token_covers_what_was_delivered),
        cmocka_unit_test(a_token_before_the_task_sends_the_same_call),
        cmocka_unit_test(a_token_is_refused_where_nothing_can_be_resumed),
        cmocka_unit_test(a_token_outlives_the_connection),
        cmocka_unit_test(damaged_and_foreign_tokens_are_refused),
        cmocka_unit_test(a_call_whose_answer_was_lost_is_sent_again_with_its_key),
        cmocka_unit_test(a_call_with_a_key_can_be_left),
        cmocka_unit_test(a_call_that_was_turned_away_goes_again),
        cmocka_unit_test(a_call_is_turned_away_in_bounds),
        cmocka_unit_test(a_call_that_its_server_cuts_off_is_disconnected),
        cmocka_unit_test(a_call_that_the_store_cannot_read_goes_again),
        cmocka_unit_test(without_idempotency_a_lost_answer_ends_the_call),
        cmocka_unit_test(no_idempotency_sends_no_key),
        cmocka_unit_test(a_stream_goes_on_after_a_reconnect),
        cmocka_unit_test(an_answer_that_was_not_acknowledged_is_sent_again),
        cmocka_unit_test(the_first_try_comes_at_once_and_the_others_ever_later),
        cmocka_unit_test(the_first_connection_has_attempts_of_its_own),
        cmocka_unit_test(a_transport_that_gives_up_ends_the_session),
        cmocka_unit_test(close_while_the_connection_is_lost),
    };
    return cmocka_run_group_tests_name("client_resume", tests, NULL, NULL);
}
