/* A request without a method sends nothing and represents its session: it gets the
 * questions that a server of the handshake eras asks while there is no other request.
 * Servers ask for the roots that way right after initialize (2025-11-25 client/roots). */
#include "engine/client/request.h"
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ROOTS "{\"roots\":[{\"uri\":\"file:///w\"}]}"
#define DONE "\"content\":[]"
#define MOST 1024 /* questions of one request */

static segue_session_options options_of(void)
{
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"roots\":{}}";
    options.no_tasks = 1;
    return options;
}

static void ask(kit *k, const char *id)
{
    kit_say(k, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"roots/list\"}", id);
}

static void assert_answer(kit *k, const char *id, const char *path, const char *value)
{
    const char *line = kit_heard(k);
    assert_non_null(line);
    assert_at(line, "id", id);
    assert_at(line, path, value);
}

static void nothing_in_flight_is_somebody(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = options_of();
    kit_begin(&k, &options);
    record *r = kit_take_input(&k); /* before there is a connection */
    kit_shake_hands(&k, "2025-11-25", SERVER_PLAIN);
    kit_expect_silence(&k);
    ask(&k, "0");
    assert_string_equal(r->log, "input 1:0 roots/list {}\n");
    assert_int_equal(record_answer(r, NULL, ROOTS), SEGUE_OK);
    assert_answer(&k, "0", "result", ROOTS);
    ask(&k, "0"); /* R-975-16: the question is sent again with the same id. */
    assert_answer(&k, "0", "result", ROOTS);
    record *call = kit_call(&k, "t"); /* a call has priority */
    const char *line = kit_expect(&k, "tools/call");
    ask(&k, "1");
    assert_int_equal(record_answer(call, NULL, ROOTS), SEGUE_OK);
    assert_answer(&k, "1", "result", ROOTS);
    kit_result(&k, line, DONE);
    assert_int_equal(call->status, SEGUE_OK);
    ask(&k, "2");
    assert_int_equal(record_answer(r, NULL, ROOTS), SEGUE_OK);
    assert_answer(&k, "2", "result", ROOTS);
    size_t len = 0;
    assert_int_equal(segue_request_token(r->request, NULL, &len), SEGUE_E_NOT_RESUMABLE);
    assert_int_equal(segue_request_detach(r->request), SEGUE_E_NOT_RESUMABLE);
    kit_end(&k);
}

static void it_ends_by_cancel_and_with_the_session(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = options_of();
    kit_begin(&k, &options);
    kit_shake_hands(&k, "2025-11-25", SERVER_PLAIN);
    record *r = kit_take_input(&k);
    ask(&k, "1");
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_run(&k);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    assert_answer(&k, "1", "error.code", "-32603");
    ask(&k, "2");
    assert_answer(&k, "2", "error.code", "-32603");
    r = kit_take_input(&k);
    segue_session_close(k.session);
    kit_run(&k);
    assert_int_equal(r->status, SEGUE_E_CLOSED);
    assert_int_equal(k.closed, 1);
    kit_end(&k);
}

/* The request survives a reconnect, but not the questions of the old connection. */
static void it_stays_when_the_connection_breaks(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    segue_session_options options = options_of();
    kit_begin(&k, &options);
    kit_shake_hands(&k, "2025-11-25", SERVER_PLAIN);
    record *r = kit_take_input(&k);
    ask(&k, "1");
    kit_cut(&k);
    kit_advance(&k, 1000);
    kit_shake_hands(&k, "2025-11-25", SERVER_PLAIN);
    assert_int_equal(r->completed, 0);
    assert_int_equal(record_answer(r, "1:1", ROOTS), SEGUE_E_NOT_FOUND);
    ask(&k, "1");
    assert_int_equal(record_answer(r, "2:1", ROOTS), SEGUE_OK);
    assert_answer(&k, "1", "result", ROOTS);
    kit_end(&k);
}

static void its_questions_are_bounded(void **state)
{
    (void)state;
    kit k = {0};
    char id[16];
    segue_session_options options = options_of();
    kit_begin(&k, &options);
    kit_shake_hands(&k, "2025-11-25", SERVER_PLAIN);
    record *r = kit_take_input(&k);
    for (int i = 1; i <= 3 * MOST; i++) { /* answered questions make room */
        snprintf(id, sizeof id, "%d", i);
        ask(&k, id);
        assert_int_equal(record_answer(r, NULL, ROOTS), SEGUE_OK);
        assert_answer(&k, id, "result", ROOTS);
    }
    ask(&k, id);
    assert_answer(&k, id, "result", ROOTS);
    for (int i = 0; i < MOST; i++) {
        snprintf(id, sizeof id, "\"%d\"", i);
        ask(&k, id);
    }
    kit_expect_silence(&k);
    ask(&k, "\"more\"");
    assert_answer(&k, "\"more\"", "error.message",
                  "\"Too many questions: at most 1024\"");
    assert_int_equal(record_answer(r, "1:\"7\"", ROOTS), SEGUE_OK);
    assert_answer(&k, "\"7\"", "result", ROOTS);
    ask(&k, "\"more\"");
    kit_expect_silence(&k);
    kit_end(&k);
}

static void over_http_it_is_asked_by_the_stream(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = options_of();
    script_begin(&s, &options);
    script_initialize(&s, "one");
    record *r = kit_take_input(&s.k);
    heard *get = script_expect(&s, "GET");
    script_stream(get);
    script_event(get, NULL, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"roots/list\"}");
    script_until(&s, r->log);
    assert_int_equal(record_answer(r, NULL, ROOTS), SEGUE_OK);
    heard *answer = script_expect(&s, "");
    assert_header(answer, "Mcp-Session-Id", "one");
    assert_at(answer->body, "id", "5");
    assert_at(answer->body, "result", ROOTS);
    script_accept(answer);
    segue_session_close(s.k.session);
    script_say(script_expect(&s, "DELETE"), "200 OK", "", "");
    script_until(&s, r->completed);
    script_end(&s);
}

#define ROOTS_LIST "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"roots/list\"}"

/* A question on the stream of the session belongs to no call (2025-11-25
 * basic/transports, "Listening for Messages from the Server"). */
static void over_http_the_stream_asks_no_call(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = options_of();
    script_begin(&s, &options);
    script_initialize(&s, "one");
    heard *get = script_expect(&s, "GET");
    script_stream(get);
    record *call = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    script_event(get, NULL, ROOTS_LIST, 1); /* there is no other request */
    script_until(&s, call->log);
    script_result(h, DONE);
    /* the server gets an answer and need not wait for ever */
    heard *answer = script_expect(&s, "");
    assert_at(answer->body, "id", "1");
    assert_at(answer->body, "error.code", "-32603");
    script_accept(answer);
    record *r = kit_take_input(&s.k);
    call = kit_call(&s.k, "t");
    h = script_expect(&s, "tools/call");
    script_event(get, NULL, ROOTS_LIST, 2);
    script_until(&s, r->log);
    assert_null(call->log);
    script_result(h, DONE);
    script_until(&s, call->completed);
    assert_int_equal(record_answer(r, NULL, ROOTS), SEGUE_OK);
    answer = script_expect(&s, "");
    assert_at(answer->body, "id", "2");
    assert_at(answer->body, "result", ROOTS);
    script_accept(answer);
    segue_session_close(s.k.session);
    script_say(script_expect(&s, "DELETE"), "200 OK", "", "");
    script_until(&s, r->completed);
    script_end(&s);
}

static void what_can_be_asked_nothing_is_none(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    segue_request *request = NULL;
    segue_session_options options = options_of();
    kit_begin(&k, &options);
    kit_shake_hands(&k, "2025-11-25", SERVER_PLAIN);
    assert_int_equal(segue_session_take_input(k.session, NULL, &request, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_session_take_input(k.session, &events, &request, NULL),
                     SEGUE_E_INVALID);
    record *r = kit_record(&k, &events);
    for (int i = 0; i < 2; i++)
        assert_int_equal(segue_request_start(k.session, i ? "" : NULL, NULL, 0, NULL,
                                             &events, &request, NULL),
                         SEGUE_E_INVALID);
    assert_null(request);
    assert_int_equal(segue_session_take_input(k.session, &events, &r->request, NULL),
                     SEGUE_OK);
    kit_end(&k);
}

static void it_takes_no_room_of_requests(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = options_of();
    options.max_requests = 1;
    kit_begin(&k, &options);
    record *r = kit_take_input(&k);
    kit_shake_hands(&k, "2025-11-25", SERVER_PLAIN);
    for (int i = 0; i < 2; i++) {
        record *call = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"), DONE);
        assert_int_equal(call->status, SEGUE_OK);
    }
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_run(&k);
    assert_int_equal(r->completed, 1);
    r = kit_take_input(&k); /* a new one, after the first has ended */
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.on_input = r->request->events.on_input;
    assert_int_equal(segue_session_take_input(k.session, &events, NULL, NULL),
                     SEGUE_E_LIMIT);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_in_flight_is_somebody),
        cmocka_unit_test(it_ends_by_cancel_and_with_the_session),
        cmocka_unit_test(it_takes_no_room_of_requests),
        cmocka_unit_test(it_stays_when_the_connection_breaks),
        cmocka_unit_test(its_questions_are_bounded),
        cmocka_unit_test(over_http_it_is_asked_by_the_stream),
        cmocka_unit_test(over_http_the_stream_asks_no_call),
        cmocka_unit_test(what_can_be_asked_nothing_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
