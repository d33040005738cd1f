/* AS-116 and AS-118 from the client's side. The test plays a server that sends what no
 * server should. Text that is no message is dropped and counted. A malformed answer ends
 * only its request. Texts with a NUL are shown or refused. Memory stays bounded, and the
 * session goes on. */
#include "engine/engine.h"
#include "runtime/runtime.h"
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

#define PLAIN "\"resultType\":\"complete\",\"content\":[]"

#define NUL_SHOWN "\xef\xbf\xbd" /* U+FFFD */

static uint64_t warnings(kit *k)
{
    return sgi_runtime_engine(k->runtime)->warnings;
}

/* Checks that the session works: a call is sent and its answer arrives. */
static void assert_works(kit *k)
{
    record *r = kit_call(k, "probe");
    kit_result(k, kit_expect(k, "tools/call"), PLAIN);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_OK);
}

/* Starts a call and makes it the task "t1", which is streamed. */
static record *stream_task(kit *k, const char **stream)
{
    record *r = kit_call(k, "t");
    kit_result(k, kit_expect(k, "tools/call"), CREATED("t1"));
    *stream = kit_expect(k, "tasks/stream");
    return r;
}

static void what_is_no_message_is_dropped_and_counted(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"x\xff\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"\\ud800\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"\xed\xa0\x80\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"b\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"m\\u0065thod\":\"b\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"a\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":01,\"result\":{}}",
        "tru",
        "\x01",
        "[{\"jsonrpc\":\"2.0\",\"method\":\"a\"}]",
        "{\"jsonrpc\":\"1.0\",\"method\":\"a\"}",
        "{\"jsonrpc\":\"2.0\",\"result\":{},\"error\":{\"code\":1}}",
        "{\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}",
    };
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        uint64_t before = warnings(&k);
        kit_say(&k, "%s", lines[i]);
        if (warnings(&k) != before + 1)
            print_error("not counted: %s\n", lines[i]);
        assert_int_equal(warnings(&k), before + 1);
    }
    assert_int_equal(k.notifications, 0);
    kit_expect_silence(&k);
    assert_works(&k);
    kit_end(&k);
}

static void depth_and_numbers_beyond_reason(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    char *deep = calloc(1, 20001);
    memset(deep, '[', 10000);
    memset(deep + 10000, ']', 10000);
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"x\":%s}}",
            json_at(call, "id"), deep);
    free(deep);
    assert_int_equal(r->completed, 0);
    kit_result(&k, call, "\"resultType\":\"complete\",\"content\":[],\"n\":[1e400,%s]",
               "123456789012345678901234567890");
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "n", "[1e400,123456789012345678901234567890]");
    kit_end(&k);
}

/* The limit of a message is 4 MiB here. */
static void a_line_without_an_end_takes_bounded_memory(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    size_t limit = sgi_runtime_engine(k.runtime)->max_message;
    static char chunk[64 * 1024];
    memset(chunk, 'x', sizeof chunk);
    size_t before = k.mem.live;
    k.mem.peak = before;
    for (size_t sent = 0; sent < (size_t)100 << 20; sent += sizeof chunk) {
        while (segue_transport_feed(k.transport, chunk, sizeof chunk) ==
               SEGUE_E_WOULD_BLOCK)
            kit_run(&k);
        kit_run(&k);
    }
    assert_true(k.mem.peak - before <= 3 * limit + ((size_t)4 << 20));
    assert_true(k.mem.live <= before + ((size_t)1 << 20));
    kit_say(&k, "%s", "");
    assert_works(&k);
    kit_end(&k);
}

static void too_many_members_are_no_message(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_say(
        &k,
        "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,"
        "\"j\":1,\"k\":1,\"l\":1,\"m\":1,\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s},"
        "\"error\":{\"code\":1,\"message\":\"m\"}}",
        json_at(call, "id"), PLAIN);
    assert_int_equal(r->completed, 0); /* neither request ends, although one of the two
                                        * was meant */
    kit_result(&k, call, PLAIN);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* A text that visibly holds a NUL is better than one that two readers understand
 * differently. */
static void texts_with_a_nul_are_shown(void **state)
{
    (void)state;
    const char *stream;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32000,\"message\":"
            "\"a\\u0000b\",\"data\":\"\\u0000\"}}",
            json_at(kit_expect(&k, "tools/call"), "id"));
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_string_equal(r->message, "a" NUL_SHOWN "b");
    r = stream_task(&k, &stream);
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
            "\"taskId\":\"t1\",\"seq\":0,\"type\":\"dev.segue.status\",\"payload\":{"
            "\"status\":\"work\\u0000ing\",\"statusMessage\":\"x\\u0000y\"}}}");
    assert_non_null(strstr(r->log, "status working x" NUL_SHOWN "y\n"));
    kit_segment(&k, "t1", 1, 1, "one");
    assert_int_equal(r->segments, 1);
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void a_task_id_that_is_none_ends_the_call(void **state)
{
    (void)state;
    static const char *const ids[] = {"7", "null", "{}", "\"a\\u0000b\""};
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        record *r = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"),
                   "\"resultType\":\"task\",\"status\":\"working\",\"taskId\":%s",
                   ids[i]);
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    }
    char *huge = calloc(1, (1 << 20) + 1);
    memset(huge, 'x', 1 << 20);
    record *r = kit_call(&k, "t");
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"task\","
            "\"status\":\"working\",\"taskId\":\"%s\"}}",
            json_at(kit_expect(&k, "tools/call"), "id"), huge);
    free(huge);
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    assert_works(&k);
    kit_end(&k);
}

/* A question without a method, or with a NUL in it, is refused; a good question is
 * asked. */
static void questions_that_are_none_are_not_asked(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("t1"));
    kit_result(
        &k, kit_expect(&k, "tasks/get"),
        TASK("t1", "input_required") ",\"inputRequests\":{\"a\":7,\"b\":{},"
                                     "\"c\":{\"method\":\"x\\u0000y\"},"
                                     "\"d\":{\"method\":\"m\",\"params\":[]},"
                                     "\"good\":{\"method\":\"elicitation/create\"}}");
    assert_string_equal(r->last_key, "good");
    assert_null(strstr(r->log, "input a"));
    assert_int_equal(segue_request_answer(r->request, "c", "{}", 2, NULL),
                     SEGUE_E_NOT_FOUND);
    static const char no[] = "{\"action\":\"decline\"}";
    assert_int_equal(segue_request_answer(r->request, "good", no, sizeof no - 1, NULL),
                     SEGUE_OK);
    kit_expect(&k, "tasks/update");
    kit_end(&k);
}

/* Parameters that are too large have another error than text that is no JSON. */
static void params_beyond_the_limit_are_too_large(void **state)
{
    (void)state;
    static char params[2048] = "{\"name\":\"";
    kit k = {0};
    kit_prepare(&k, 1024);
    kit_connect(&k);
    kit_open(&k, NULL);
    kit_handshake(&k, SERVER_PLAIN);
    memset(params + strlen(params), 'x', sizeof params - strlen(params) - 3);
    memcpy(params + sizeof params - 3, "\"}", 3);
    assert_int_equal(segue_request_start(k.session, "tools/call", params, strlen(params),
                                         NULL, NULL, NULL, NULL),
                     SEGUE_E_TOO_LARGE);
    assert_int_equal(
        segue_request_start(k.session, "tools/call", params, 100, NULL, NULL, NULL, NULL),
        SEGUE_E_JSON);
    assert_works(&k);
    kit_end(&k);
}

static void numbers_of_events_that_are_none_are_dropped(void **state)
{
    (void)state;
    static const char *const seqs[] = {"-1",
                                       "1.5",
                                       "\"1\"",
                                       "null",
                                       "1e400",
                                       "9223372036854775807",
                                       "9223372036854775808"};
    const char *stream;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = stream_task(&k, &stream);
    for (size_t i = 0; i < sizeof seqs / sizeof *seqs; i++)
        kit_say(
            &k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":{"
            "\"taskId\":\"t1\",\"seq\":%s,\"type\":\"dev.segue.content.partial\","
            "\"payload\":{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}}}",
            seqs[i]);
    assert_int_equal(r->segments, 0);
    kit_segment(&k, "t1", 0, 1, "one");
    assert_int_equal(r->segments, 1);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* A log message without params is passed on with empty params. */
static void a_log_message_without_params_is_json_all_the_same(void **state)
{
    (void)state;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.log_level = "debug";
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    const char *call = kit_expect(&k, "tools/call");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}");
    assert_non_null(r->log);
    assert_non_null(strstr(r->log, "{}"));
    kit_result(&k, call, PLAIN);
    kit_end(&k);
}

/* The application gave no credit for a segment and closes the session: the request still
 * ends. */
static void a_result_behind_segments_without_credit_ends_with_the_session(void **state)
{
    (void)state;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = 1;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    kit_result(
        &k, kit_expect(&k, "tools/call"),
        "\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
        "{\"type\":\"text\",\"text\":\"b\"}]");
    assert_int_equal(r->segments, 1);
    assert_int_equal(r->completed, 0);
    segue_session_close(k.session);
    kit_run(&k);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(k.closed, 1);
    kit_end(&k);
}

#define CASE(text, run)                                                                  \
    {                                                                                    \
        "AS-116 " text, run, NULL, NULL, NULL                                            \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-116, AS-118 text that is no message is dropped and counted",
         what_is_no_message_is_dropped_and_counted, NULL, NULL, NULL},
        CASE("depth and numbers beyond reason", depth_and_numbers_beyond_reason),
        CASE("a line of 100 MiB takes bounded memory",
             a_line_without_an_end_takes_bounded_memory),
        CASE("too many members are no message", too_many_members_are_no_message),
        CASE("texts with a NUL are shown whole", texts_with_a_nul_are_shown),
        CASE("a task id that is none ends the call",
             a_task_id_that_is_none_ends_the_call),
        CASE("questions that are none are not asked",
             questions_that_are_none_are_not_asked),
        CASE("params beyond the limit are too large",
             params_beyond_the_limit_are_too_large),
        CASE("numbers of events that are none are dropped",
             numbers_of_events_that_are_none_are_dropped),
        CASE("a log message without params",
             a_log_message_without_params_is_json_all_the_same),
        cmocka_unit_test(a_result_behind_segments_without_credit_ends_with_the_session),
    };
    return cmocka_run_group_tests_name("bad_input", tests, NULL, NULL);
}
