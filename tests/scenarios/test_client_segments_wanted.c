/* What the application of a client wants of a stream of segments (SEP-1905): their order,
 * no segments at all, fewer at a time, a limit on their number. */
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

static void numbers_come_as_they_come_when_that_is_wanted(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.unordered = 1;
    record *r = segments_begin_task(&k, &options, &call);
    r->unordered = 1;
    char token[sizeof r->token];
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, PART(SEG(3, "c")));
    assert_non_null(strstr(r->log, "segment 1 a\nsegment 3 c\n"));
    memcpy(token, r->token, sizeof token); /* the token covers segment 1, not 3 */
    kit_result(&k, call, PART(SEG(2, "b")));
    kit_result(&k, call, LAST(""));
    assert_int_equal(r->segments, 3);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    r = kit_resume(&k, token, NULL);
    kit_result(&k, segments_expect_pull(&k, "1"),
               "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_string_equal(r->log, "segment 2 b\nsegment 3 c\ncomplete SEGUE_OK\n");
    kit_end(&k);
    memset(&k, 0, sizeof k); /* the whole result brings exactly the missing segments */
    r = segments_begin_task(&k, &options, &call);
    r->unordered = 1;
    kit_result(&k, call, LAST(SEG(2, "b")));
    kit_result(&k, segments_expect_pull(&k, ""),
               "\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_non_null(strstr(r->log, "segment 2 b\nsegment 1 a\nsegment 3 c\n"));
    kit_end(&k);
}

static void discarded_segments_are_not_collected(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.discard = 1;
    record *r = segments_begin_task(&k, &options, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_result(&k, call, LAST(SEG(2, "b")));
    assert_int_equal(r->segments, 2);
    assert_at(r->result, "content", "[]");
    kit_end(&k);
}

/* The application does not read: the exchange is given up before much is held, and the
 * rest is pulled when it reads again. */
static void without_credit_the_push_is_given_up_and_pulled_later(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = 1;
    record *r = segments_begin_task(&k, &options, &call);
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
    kit_result(&k, call, PART(SEG(99, "a"))); /* a late segment is dropped */
    assert_true(k.mem.live < 4 * 1024 * 1024);
    assert_int_equal(r->segments, 1);
    kit_advance(&k, 5000);
    kit_expect_silence(&k);
    segue_request_grant(r->request, 1000);
    kit_run(&k);
    char after[24];
    snprintf(after, sizeof after, "%d", sent);
    kit_result(&k, segments_expect_pull(&k, after),
               "\"partial-content\":[{\"seqNr\":%d,\"type\":\"text\",\"text\":\"z\"}],"
               "\"isComplete\":true",
               sent + 1);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, sent + 1);
    free(big);
    kit_end(&k);
}

/* Callbacks run one at a time: nothing is pulled while many of them wait. */
static void pulls_wait_for_callbacks(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    record *r = segments_begin_task(&k, NULL, &call);
    kit_result(&k, call, PART(SEG(1, "a")));
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    const char *pull = segments_expect_pull(&k, "1");
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
    kit_result(&k, segments_expect_pull(&k, "15"), LAST(SEG(16, "z")));
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
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.max_result_bytes = 100;
    kit_begin_2025(&k, &options, SERVER_2025_STREAMS);
    kit_start(&k, "tools/list", NULL, NULL);
    kit_list_tools(&k);
    const char *call;
    record *r = segments_call(&k, NULL, &call);
    kit_result(&k, call, CREATED_2025("T"));
    kit_result(&k, call, PART(SEG(1, "a") "," SEG(2, "b")));
    kit_result(&k, call, PART(SEG(3, "c") "," SEG(4, "d")));
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    assert_non_null(strstr(r->message, "max_result_bytes is 100; raise the limit"));
    kit_expect(&k, "tasks/cancel");
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_as_they_come_when_that_is_wanted),
        cmocka_unit_test(discarded_segments_are_not_collected),
        cmocka_unit_test(without_credit_the_push_is_given_up_and_pulled_later),
        cmocka_unit_test(pulls_wait_for_callbacks),
        cmocka_unit_test(too_large_a_result_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
