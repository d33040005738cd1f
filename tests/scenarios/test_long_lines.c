/* A line longer than a message may be, over a byte stream. When the line's beginning
 * shows which request it belongs to, that request fails at once, with the limit. The rest
 * of the line is skipped, and the conversation goes on. */
#include "engine/engine.h"
#include "runtime/runtime.h"
#include "support/client_kit.h"
#include "support/legacy_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define LIMIT 4000
#define TOO_LARGE                                                                        \
    "the answer is too large: max_message_bytes is 4000; let the server send it in "     \
    "pieces or as a task, or raise the limit"
#define MESSAGE_TOO_LARGE "The message is too large: max_message_bytes is 4000"
#define PLAIN "\"resultType\":\"complete\",\"content\":[]"

/* ---- lines to a client ---- */

static void begin_client(kit *k)
{
    kit_prepare(k, LIMIT);
    kit_connect(k);
    kit_open(k, NULL);
}

static void begin_modern(kit *k, const char *capabilities)
{
    begin_client(k);
    kit_handshake(k, capabilities);
}

static void feed(kit *k, const char *bytes, size_t len)
{
    assert_int_equal(segue_transport_feed(k->transport, bytes, len), SEGUE_OK);
    kit_run(k);
}

/* Feeds a line that goes on behind its beginning and has not ended yet. */
static void begin_line(kit *k, const char *beginning, int by_byte)
{
    char filler[LIMIT + 1];
    memset(filler, 'a', sizeof filler);
    for (size_t i = 0; by_byte && beginning[i]; i++)
        feed(k, beginning + i, 1);
    if (!by_byte)
        feed(k, beginning, strlen(beginning));
    feed(k, filler, sizeof filler);
}

static void end_line(kit *k, const char *end)
{
    feed(k, end, strlen(end));
}

static void assert_works(kit *k)
{
    record *r = kit_call(k, "probe");
    kit_result(k, kit_expect(k, "tools/call"), PLAIN);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->completed, 1);
}

static void fails_at_once(const char *members, int by_byte)
{
    char beginning[256];
    kit k = {0};
    begin_modern(&k, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    snprintf(beginning, sizeof beginning, "{\"jsonrpc\":\"2.0\",\"id\":%s,%s\"",
             json_at(kit_expect(&k, "tools/call"), "id"), members);
    begin_line(&k, beginning, by_byte);
    assert_int_equal(r->completed, 1); /* the line has not ended yet */
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    assert_string_equal(r->message, TOO_LARGE);
    assert_string_equal(
        k.last_warning,
        "the server sent something invalid, which is ignored: " MESSAGE_TOO_LARGE);
    end_line(&k, "\"}}\n");
    assert_works(&k);
    kit_end(&k);
}

static void a_call_fails_when_its_answer_is_too_long(void **state)
{
    (void)state;
    for (int by_byte = 0; by_byte < 2; by_byte++) {
        fails_at_once("\"result\":{\"content\":[{\"type\":\"text\",\"text\":", by_byte);
        fails_at_once("\"error\":{\"code\":-1,\"message\":", by_byte);
        fails_at_once("\"error\":", by_byte);
    }
}

/* The client does not guess an id that the beginning does not show: neither an id further
 * in, nor one that may be cut, nor one of a message that may be no answer. */
static void an_id_that_cannot_be_read_is_told_in_the_log(void **state)
{
    static const char *const beginnings[] = {
        "{\"jsonrpc\":\"2.0\",\"result\":{\"id\":%s,\"x\":\"",
        "[{\"id\":%s,\"result\":\"", "{\"jsonrpc\":\"2.0\",\"id\":%s,\"x\":\"",
        "{\"id\":%s0000000000000000,\"result\"", "{\"id\":%s,\"result\":{},}"};
    (void)state;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        kit k = {0};
        char beginning[256];
        begin_modern(&k, SERVER_PLAIN);
        record *r = kit_call(&k, "t");
        const char *call = kit_expect(&k, "tools/call");
        snprintf(beginning, sizeof beginning, beginnings[i], json_at(call, "id"));
        uint64_t before = sgi_runtime_engine(k.runtime)->warnings;
        begin_line(&k, beginning, 0);
        assert_int_equal(sgi_runtime_engine(k.runtime)->warnings, before + 1);
        /* in line 4 the id came before the fault */
        assert_int_equal(r->completed, i == 4);
        end_line(&k, "\n");
        if (!r->completed) {
            kit_result(&k, call, PLAIN);
            assert_int_equal(r->status, SEGUE_OK);
        }
        assert_works(&k);
        kit_end(&k);
    }
}

static void a_handshake_fails_when_its_answer_is_too_long(void **state)
{
    (void)state;
    kit k = {0};
    char beginning[128];
    begin_client(&k);
    snprintf(beginning, sizeof beginning,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"instructions\":\"",
             json_at(kit_expect(&k, "server/discover"), "id"));
    begin_line(&k, beginning, 0);
    assert_int_equal(k.closed, 1);
    assert_int_equal(k.closed_status, SEGUE_E_TOO_LARGE);
    assert_non_null(strstr(k.closed_message, TOO_LARGE));
    kit_end(&k);
}

/* The stream never brings event 1: it is opened once more, then the result is fetched. */
static void an_event_that_is_too_long_is_not_asked_for_without_end(void **state)
{
    (void)state;
    kit k = {0};
    begin_modern(&k, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("t1"));
    const char *stream = kit_expect(&k, "tasks/stream");
    kit_segment(&k, "t1", 0, 1, "a");
    for (int i = 0; i < 2; i++) {
        begin_line(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\"",
                   0);
        end_line(&k, "\n");
        kit_segment(&k, "t1", 2, 3, "c");
        if (i)
            break;
        kit_expect(&k, "notifications/cancelled");
        stream = kit_expect(&k, "tasks/stream");
        assert_at(stream, "params.after", "0");
    }
    kit_expect_silence(&k);
    kit_result(&k, stream, FINAL);
    kit_result(&k, kit_expect(&k, "tasks/get"), "%s," RESULT, TASK("t1", "completed"));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    assert_int_equal(r->completed, 1);
    kit_end(&k);
}

/* No later event shows that this one is missing, so the merged content is not the
 * result. */
static void a_last_event_that_cannot_be_read_is_in_the_result(void **state)
{
    (void)state;
    for (int is_long = 0; is_long < 2; is_long++) {
        kit k = {0};
        begin_modern(&k, SERVER_STREAMS);
        record *r = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"), CREATED("t1"));
        const char *stream = kit_expect(&k, "tasks/stream");
        kit_segment(&k, "t1", 0, 1, "a");
        if (is_long) {
            begin_line(
                &k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\"", 0);
            end_line(&k, "\n");
        } else {
            kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event");
        }
        kit_result(&k, stream, FINAL);
        kit_result(&k, kit_expect(&k, "tasks/get"), "%s," RESULT,
                   TASK("t1", "completed"));
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(r->segments, 2);
        kit_end(&k);
    }
}

/* The server waits for an answer of the client, and gets one. */
static void a_question_that_is_too_long_is_answered(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = kit_legacy_options();
    kit_prepare(&k, LIMIT);
    kit_connect(&k);
    kit_open(&k, &options);
    kit_handshake_2025(&k, SERVER_2025);
    begin_line(&k,
               "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\","
               "\"params\":{\"message\":\"",
               0);
    const char *answer = kit_heard(&k);
    assert_non_null(answer);
    assert_at(answer, "id", "\"q\"");
    assert_at(answer, "error.message", "\"" MESSAGE_TOO_LARGE "\"");
    end_line(&k, "\"}}\n");
    begin_line(&k, "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"params\":{\"message\":\"", 0);
    assert_at(kit_heard(&k), "id", "\"r\""); /* only a call has params */
    end_line(&k, "\"}}\n");
    kit_expect_silence(&k);
    kit_end(&k);
}

/* ---- lines to a server ---- */

static void begin_server(world *w)
{
    world_begin(w);
    sgi_runtime_engine(w->runtime)->max_message = LIMIT;
}

static void begin_long(wire *c, const char *beginning)
{
    char filler[LIMIT + 1];
    memset(filler, 'a', sizeof filler);
    wire_feed(c, beginning, strlen(beginning));
    wire_feed(c, filler, sizeof filler);
}

static void a_request_that_is_too_long_is_refused_by_its_id(void **state)
{
    (void)state;
    world w = {0};
    begin_server(&w);
    wire *c = world_connect(&w, NULL);
    begin_long(c, "{\"jsonrpc\":\"2.0\",\"id\":\"big\",\"method\":\"tools/call\","
                  "\"params\":{\"name\":\"");
    world_run(&w);
    const char *r = wire_response(c, "\"big\"");
    assert_at(r, "error.code", "-32600");
    assert_at(r, "error.message", "\"" MESSAGE_TOO_LARGE "\"");
    wire_feed(c, "\"}}\n", 4);
    assert_at(wire_do(c, "2", "tools/list", NULL, NULL), "error", "");
    world_end(&w);
}

static void without_an_id_the_error_has_none(void **state)
{
    (void)state;
    world w = {0};
    begin_server(&w);
    wire *c = world_connect(&w, NULL);
    uint64_t before = w.warn_count;
    begin_long(c,
               "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"");
    world_run(&w);
    const char *r = wire_due(c);
    assert_at(r, "id", "");
    assert_at(r, "error.code", "-32700");
    assert_int_equal(w.warn_count, before + 1);
    wire_feed(c, "\"},\"id\":1}\n", 10);
    wire_quiet(c);
    world_end(&w);
}

static void an_answer_to_a_question_that_is_too_long_ends_the_question(void **state)
{
    (void)state;
    world w = {0};
    char beginning[256], id[WIRE_ID];
    begin_server(&w);
    wire *c = legacy_connect(&w, NULL, "{\"elicitation\":{}}");
    wire_ask_plain(c, "1", "tools/call", "\"name\":\"ask_once\",\"arguments\":{}");
    snprintf(id, sizeof id, "%s", json_at(wire_request(c, "elicitation/create"), "id"));
    snprintf(beginning, sizeof beginning,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\",\"x\":\"",
             id);
    begin_long(c, beginning);
    world_run(&w);
    const char *r = wire_response(c, "1");
    assert_at(r, "result.content.0.text", "\"no answer: SEGUE_E_REMOTE\"");
    wire_feed(c, "\"}}\n", 4);
    wire_quiet(c);
    world_end(&w);
}

#define CASE(text, run)                                                                  \
    {                                                                                    \
        "AS-116 " text, run, NULL, NULL, NULL                                            \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE("a call fails when its answer is too long",
             a_call_fails_when_its_answer_is_too_long),
        CASE("an id that cannot be read is told in the log",
             an_id_that_cannot_be_read_is_told_in_the_log),
        CASE("a handshake fails when its answer is too long",
             a_handshake_fails_when_its_answer_is_too_long),
        CASE("an event that is too long is not asked for without end",
             an_event_that_is_too_long_is_not_asked_for_without_end),
        CASE("a last event that cannot be read is in the result",
             a_last_event_that_cannot_be_read_is_in_the_result),
        CASE("a question that is too long is answered",
             a_question_that_is_too_long_is_answered),
        CASE("a request that is too long is refused by its id",
             a_request_that_is_too_long_is_refused_by_its_id),
        CASE("without an id the error has none", without_an_id_the_error_has_none),
        CASE("an answer to a question that is too long ends the question",
             an_answer_to_a_question_that_is_too_long_ends_the_question),
    };
    return cmocka_run_group_tests_name("long_lines", tests, NULL, NULL);
}
