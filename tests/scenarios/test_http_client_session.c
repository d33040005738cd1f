/* Wire sessions of the handshake eras over HTTP (2025-11-25 basic/transports): their id,
 * streams that are resumed by Last-Event-ID, the stream for messages of the server, and
 * the end of a session from either side. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define NOTE(n)                                                                          \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"n\":" #n "}}"

static void begin_patient(http_script *s, const char *session, int64_t timeout_ms)
{
    segue_session_options options = kit_legacy_options();
    options.request_timeout_ms = timeout_ms;
    script_begin(s, &options);
    script_initialize(s, session);
}

static void begin(http_script *s, const char *session)
{
    begin_patient(s, session, 0);
}

static void no_stream(http_script *s)
{
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
}

static void call_works(http_script *s, const char *session)
{
    record *r = kit_call(&s->k, "t");
    heard *h = script_expect(s, "tools/call");
    assert_header(h, "Mcp-Session-Id", session);
    assert_header(h, "MCP-Protocol-Version", "2025-11-25");
    assert_header(h, "Mcp-Method", NULL);
    assert_header(h, "Mcp-Name", NULL);
    script_result(h, "\"content\":[]");
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
}

static void ends(http_script *s, const char *session)
{
    segue_session_close(s->k.session);
    heard *h = script_expect(s, "DELETE");
    assert_header(h, "Mcp-Session-Id", session);
    script_say(h, "405 Method Not Allowed", "", "");
    script_until(s, s->k.closed);
    script_end(s);
}

/* A reused connection dies with the call on it. The server may have the call, so it is
 * not sent again under the id that is in use there. */
static void a_keyed_call_goes_again_under_another_id(void **state)
{
    (void)state;
    http_script s;
    char id[32];
    segue_session_options options = kit_legacy_options();
    script_begin(&s, &options);
    script_initialize_with(
        &s, "one", "{\"tools\":{},\"experimental\":{\"dev.segue/idempotency\":{}}}");
    no_stream(&s);
    call_works(&s, "one");
    record *r = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    snprintf(id, sizeof id, "%s", json_at(h->body, "id"));
    script_cut(h, false);
    script_advance(&s, 300);
    h = script_expect(&s, "tools/call");
    assert_string_not_equal(json_at(h->body, "id"), id);
    assert_non_null(strstr(h->body, "dev.segue/idempotencyKey"));
    script_result(h, "\"content\":[]");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    ends(&s, "one");
}

static void each_request_names_the_session(void **state)
{
    (void)state;
    http_script s;
    begin(&s, "one");
    no_stream(&s);
    call_works(&s, "one");
    call_works(&s, "one");
    ends(&s, "one");
}

static void a_server_without_sessions_is_told_nothing(void **state)
{
    (void)state;
    http_script s;
    begin(&s, NULL);
    no_stream(&s);
    call_works(&s, NULL);
    segue_session_close(s.k.session);
    script_expect_silence(&s);
    script_end(&s);
}

/* ---- streams that are cut ---- */

static void resumed_stream(bool reset, size_t piece)
{
    http_script s;
    begin(&s, "one");
    no_stream(&s);
    s.piece = piece;
    record *r = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    script_stream(h);
    script_text(h, "id: p\r\ndata:\r\n\r\n"); /* a priming event */
    script_event(h, "a", NOTE(1));
    script_until(&s, s.k.notifications == 1);
    script_text(h, "retry: 700\n\n");
    script_text(h, "id: b\ndata: {"); /* an incomplete event does not count */
    script_cut(h, reset);
    script_advance(&s, 650);
    script_expect_silence(&s); /* AS-117: retry is obeyed */
    script_advance(&s, 100);
    h = script_expect(&s, "GET");
    assert_header(h, "Last-Event-ID", "a");
    assert_header(h, "Mcp-Session-Id", "one");
    assert_header(h, "MCP-Protocol-Version", "2025-11-25");
    script_stream(h);
    script_event(h, "b", NOTE(2));
    script_event(h, "c", "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}",
                 json_at(s.all->next->next->next->body, "id"));
    script_finish(h);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(s.k.notifications, 2);
    ends(&s, "one");
}

static void a_cut_stream_is_taken_up_again(void **state)
{
    (void)state;
    resumed_stream(false, 0);
    resumed_stream(true, 0);
    resumed_stream(false, 1);
}

/* A server that prefers repeated requests to a kept connection. */
static void polling_goes_on_as_long_as_it_brings_something(void **state)
{
    (void)state;
    http_script s;
    char id[16];
    begin(&s, "one");
    no_stream(&s);
    record *r = kit_call(&s.k, "t");
    heard *call = script_expect(&s, "tools/call");
    heard *h = call;
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "%d", i);
        script_stream(h);
        if (!i)
            script_text(h, "retry: 10\n\n");
        script_event(h, id, "%s", "");
        script_finish(h);
        script_advance(&s, 20);
        h = script_expect(&s, "GET");
        assert_header(h, "Last-Event-ID", id);
    }
    script_stream(h);
    script_event(h, "z", "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}",
                 json_at(call->body, "id"));
    script_finish(h);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    ends(&s, "one");
}

/* A server that sends only an id, ends the stream, and does not say when to come again is
 * not asked for ever. The pauses grow, and the call ends. */
static void empty_streams_without_retry_are_counted(void **state)
{
    (void)state;
    http_script s;
    char id[16];
    int streams = 0;
    begin(&s, "one");
    no_stream(&s);
    record *r = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    while (!r->completed && streams < 30) {
        snprintf(id, sizeof id, "%d", streams++);
        script_stream(h);
        script_event(h, id, "%s", "");
        script_finish(h);
        script_advance(&s, 31000);
        if (!r->completed)
            h = script_expect(&s, "GET");
    }
    assert_in_range(streams, 2, 10);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    ends(&s, "one");
}

static record *cut_call(http_script *s, heard **get)
{
    record *r = kit_call(&s->k, "t");
    heard *h = script_expect(s, "tools/call");
    script_stream(h);
    script_event(h, "a", NOTE(1));
    script_until(s, s->k.notifications == 1);
    script_cut(h, true);
    *get = script_expect(s, "GET"); /* the GET comes at once: no retry was given */
    return r;
}

/* Some servers answer 409 to a resumption that comes before they have noticed the cut. */
static void a_stream_that_is_still_connected_is_asked_for_again(void **state)
{
    (void)state;
    http_script s;
    heard *h;
    begin(&s, "one");
    no_stream(&s);
    record *r = cut_call(&s, &h);
    script_say(h, "409 Conflict", "", "stream ID conflicts with ongoing stream");
    script_pump(&s);
    script_expect_silence(&s);
    script_advance(&s, 2000);
    h = script_expect(&s, "GET");
    assert_header(h, "Last-Event-ID", "a");
    script_stream(h);
    script_event(h, "b", "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}",
                 json_at(s.all->next->next->next->body, "id"));
    script_finish(h);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    ends(&s, "one");
}

/* The call was posted: whatever happens to its stream, it is not posted again. */
static void what_cannot_be_resumed_is_disconnected(void **state)
{
    (void)state;
    static const char *const refusals[] = {"405 Method Not Allowed", "400 Bad Request",
                                           "200 OK", "204 No Content"};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        http_script s;
        heard *get;
        begin(&s, "one");
        no_stream(&s);
        record *r = cut_call(&s, &get);
        script_say(get, refusals[i], "Content-Type: text/plain\r\n", "");
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
        script_expect_silence(&s);
        ends(&s, "one");
    }
}

static void resuming_a_server_that_is_gone_ends(void **state)
{
    (void)state;
    http_script s;
    heard *get;
    begin_patient(&s, "one", 3600000);
    no_stream(&s);
    record *r = cut_call(&s, &get);
    script_say(get, "503 Service Unavailable", "", "");
    script_advance(&s, 900);
    script_expect_silence(&s); /* from now on with a pause */
    script_advance(&s, 200);
    get = script_expect(&s, "GET");
    script_say(get, "503 Service Unavailable", "", "");
    script_advance(&s, 1900);
    script_expect_silence(&s); /* the pauses between tries grow */
    script_advance(&s, 200);
    get = script_expect(&s, "GET");
    http_peer_close(&s.peer);
    script_cut(get, true);
    for (int i = 0; i < 400; i++) /* much less than it takes to give up connecting */
        script_advance(&s, 500);
    /* the call is not sent again, because it may have run */
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    script_end(&s);
}

/* ---- the server forgets the session ---- */

static void a_forgotten_session_is_replaced(void **state)
{
    (void)state;
    http_script s;
    begin(&s, "one");
    no_stream(&s);
    record *one = kit_call(&s.k, "one");
    heard *first = script_expect(&s, "tools/call");
    record *two = kit_call(&s.k, "two");
    heard *second = script_expect(&s, "tools/call");
    script_error(first, "404 Not Found", -32001, NULL);
    record *three = kit_call(&s.k, "three"); /* this call waits for the new session */
    script_initialize(&s, "two");
    no_stream(&s);
    for (int i = 0; i < 2; i++) {
        heard *h = script_find(&s, "tools/call");
        assert_header(h, "Mcp-Session-Id", "two");
        script_result(h, "\"content\":[]");
    }
    script_until(&s, one->completed && three->completed);
    assert_int_equal(one->status, SEGUE_OK);
    assert_int_equal(three->status, SEGUE_OK);
    script_say(second, "404 Not Found", "", ""); /* late, from the old session */
    heard *h = script_expect(&s, "tools/call");
    script_error(h, "404 Not Found", -32001, NULL); /* servers die more than once */
    script_initialize(&s, "three");
    no_stream(&s);
    h = script_find(&s, "tools/call");
    assert_header(h, "Mcp-Session-Id", "three");
    script_result(h, "\"content\":[]");
    script_until(&s, two->completed);
    assert_int_equal(two->status, SEGUE_OK);
    call_works(&s, "three");
    ends(&s, "three");
}

/* A server forgets each session at once, as behind a load balancer that sends each
 * request elsewhere: the client tries with growing pauses, and not for ever. */
static void sessions_that_are_good_for_nothing(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options;
    char id[16];
    options = kit_legacy_options();
    options.max_reconnects = 4;
    script_begin(&s, &options);
    script_initialize(&s, "0");
    no_stream(&s);
    record *r = kit_call(&s.k, "t");
    for (int i = 1; i <= 5; i++) {
        script_error(script_find(&s, "tools/call"), "404 Not Found", -32001, NULL);
        if (i > 1) {
            script_pump(&s);
            script_expect_silence(&s); /* the client pauses */
            script_advance(&s, 400 << i);
        }
        snprintf(id, sizeof id, "%d", i);
        script_initialize(&s, id);
        no_stream(&s);
    }
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_REFUSED);
    script_expect_silence(&s);
    call_works(&s, "5");
    ends(&s, "5");
}

/* A call that the server had begun to answer may have run: it is not sent again. */
static void a_forgotten_stream_is_a_lost_call(void **state)
{
    (void)state;
    http_script s;
    heard *get;
    begin(&s, "one");
    no_stream(&s);
    record *r = cut_call(&s, &get);
    script_say(get, "404 Not Found", "", "");
    script_initialize(&s, "two");
    no_stream(&s);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    script_expect_silence(&s);
    call_works(&s, "two");
    ends(&s, "two");
}

/* A stream of the old session is not resumed in the new one, where the same event id may
 * mean another stream. It does not start a third session either. */
static void a_stream_stays_in_its_session(void **state)
{
    (void)state;
    http_script s;
    begin(&s, "one");
    heard *listen = script_expect(&s, "GET");
    script_stream(listen);
    script_event(listen, "1-1", NOTE(1));
    record *r = kit_call(&s.k, "t");
    heard *call = script_expect(&s, "tools/call");
    script_stream(call);
    script_event(call, "2-1", NOTE(2));
    script_text(call, "retry: 1000\n\n");
    script_until(&s, s.k.notifications == 2);
    script_text(listen, "retry: 10\n\n");
    script_finish(listen);
    script_advance(&s, 50);
    listen = script_expect(&s, "GET");
    script_cut(call, true);
    script_pump(&s); /* the stream is to be resumed in a second */
    script_say(listen, "404 Not Found", "", "");
    script_initialize(&s, "two");
    listen = script_expect(&s, "GET");
    assert_header(listen, "Last-Event-ID", NULL);
    script_stream(listen);
    script_advance(&s, 1100);
    script_expect_silence(&s);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    call_works(&s, "two");
    ends(&s, "two");
}

/* ---- the stream for messages of the server ---- */

static void notifications_come_by_the_stream(void **state)
{
    (void)state;
    http_script s;
    begin(&s, "one");
    heard *get = script_expect(&s, "GET");
    script_stream(get);
    script_event(get, "n1", NOTE(1));
    script_until(&s, s.k.notifications == 1);
    call_works(&s, "one");
    script_text(get, "retry: 300\n\n");
    script_finish(get);
    script_advance(&s, 250);
    script_expect_silence(&s);
    script_advance(&s, 100);
    get = script_expect(&s, "GET");
    assert_header(get, "Last-Event-ID", "n1");
    script_stream(get);
    script_event(get, "n2", NOTE(2));
    script_until(&s, s.k.notifications == 2);
    script_cut(get, true);
    script_advance(&s, 350);
    /* the session is forgotten */
    script_say(script_expect(&s, "GET"), "404 Not Found", "", "");
    script_initialize(&s, "two");
    get = script_expect(&s, "GET");
    assert_header(get, "Mcp-Session-Id", "two");
    assert_header(get, "Last-Event-ID", NULL);
    script_stream(get);
    segue_session_close(s.k.session);
    script_until(&s, heard_is_closed(get));
    script_say(script_expect(&s, "DELETE"), "200 OK", "", "");
    script_until(&s, s.k.closed);
    script_end(&s);
}

/* A server may not do that (2025-11-25 basic/transports, "Listening for Messages from
 * the Server"). But exchanges that are never answered on their own stream must not
 * pile up. */
static void an_answer_that_comes_elsewhere_leaves_nothing(void **state)
{
    (void)state;
    http_script s;
    begin(&s, "one");
    heard *get = script_expect(&s, "GET");
    script_stream(get);
    for (int i = 0; i < 3; i++) {
        record *r = kit_call(&s.k, "t");
        heard *call = script_expect(&s, "tools/call");
        script_event(get, NULL, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}",
                     json_at(call->body, "id"));
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
        script_until(&s, heard_is_closed(call));
    }
    ends(&s, "one");
}

static void a_stream_that_is_busy_is_asked_for_later(void **state)
{
    (void)state;
    http_script s;
    int64_t since;
    begin(&s, NULL);
    for (int i = 0; i < 4; i++) {
        script_say(script_expect(&s, "GET"), "503 Service Unavailable", "", "");
        since = s.k.clock_ms;
        while (!script_next(&s))
            script_advance(&s, 50);
        /* the pauses between tries grow */
        assert_true(s.k.clock_ms - since >= 1000 << i);
    }
    no_stream(&s);
    script_advance(&s, 100000);
    script_expect_silence(&s);
    script_end(&s);
}

/* Each stream lasts as long as this, and its server ends it without an answer. Returns
 * the pause in ms before the last of several streams. */
static int64_t pause_after_streams(int64_t lasting_ms, const char *first_event)
{
    http_script s;
    int64_t paused = 0;
    begin(&s, "one");
    heard *get = script_expect(&s, "GET");
    for (int i = 0; i < 7; i++) {
        script_stream(get);
        if (first_event)
            script_event(get, first_event, NOTE(1));
        script_advance(&s, lasting_ms);
        script_expect_silence(&s);
        script_finish(get);
        script_pump(&s);
        int64_t since = s.k.clock_ms;
        while (!script_next(&s))
            script_advance(&s, 50);
        paused = s.k.clock_ms - since;
        get = script_expect(&s, "GET");
    }
    script_end(&s);
    return paused;
}

/* A server that is replaced again and again, such as one in development: its clients come
 * back at once each time. A server that ends each stream soon is asked for it with
 * growing pauses, and with a pause if each stream brings a message. */
static void a_stream_that_lived_ends_a_row_of_failures(void **state)
{
    (void)state;
    assert_in_range(pause_after_streams(5000, NULL), 0, 100);
    assert_in_range(pause_after_streams(4900, NULL), 16000, 32000);
    assert_in_range(pause_after_streams(0, "e"), 900, 1100);
    assert_in_range(pause_after_streams(5000, "e"), 0, 100);
}

/* The server has not noticed yet that the connection of the last stream is gone, and the
 * client has no event id with which it could resume that stream. */
static void a_stream_that_is_open_there_is_asked_for_later(void **state)
{
    (void)state;
    http_script s;
    begin(&s, "one");
    script_cut(script_expect(&s, "GET"), true);
    script_advance(&s, 1100);
    script_say(script_expect(&s, "GET"), "409 Conflict", "", "");
    script_pump(&s);
    script_advance(&s, 35000);
    heard *get = script_expect(&s, "GET");
    script_stream(get);
    script_event(get, "n1", NOTE(1));
    script_until(&s, s.k.notifications == 1);
    ends(&s, "one");
}

/* ---- cancel, and questions of the server ---- */

static void cancel_is_said(void **state)
{
    (void)state;
    http_script s;
    begin(&s, "one");
    no_stream(&s);
    record *r = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    script_stream(h);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    heard *told = script_expect(&s, "notifications/cancelled");
    assert_header(told, "Mcp-Session-Id", "one");
    assert_string_equal(json_at(told->body, "params.requestId"), json_at(h->body, "id"));
    script_accept(told);
    script_until(&s, heard_is_closed(h));
    script_until(&s, r->completed);
    ends(&s, "one");
}

static void a_ping_is_answered_by_a_post(void **state)
{
    (void)state;
    http_script s;
    begin(&s, "one");
    heard *get = script_expect(&s, "GET");
    script_stream(get);
    script_event(get, NULL, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
    heard *h = script_expect(&s, "");
    assert_string_equal(json_at(h->body, "id"), "\"p\"");
    assert_string_equal(json_at(h->body, "result"), "{}");
    script_accept(h);
    ends(&s, "one");
}

/* Begins a session with a GET stream and a call. Returns the call. */
static record *begin_with_call(http_script *s, heard **get, heard **call)
{
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    script_begin(s, &options);
    script_initialize(s, "one");
    *get = script_expect(s, "GET");
    script_stream(*get);
    record *r = kit_call(&s->k, "t");
    *call = script_expect(s, "tools/call");
    return r;
}

/* Asks on the stream what a task asks that no call has named. The call gets it. */
static void ask_of_unknown_task(http_script *s, heard *get, const record *r)
{
    script_event(get, NULL,
                 "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\","
                 "\"params\":{\"message\":\"?\",\"requestedSchema\":"
                 "{\"type\":\"object\",\"properties\":{}}," RELATED("U") "}}");
    script_until(s, r->last_key);
}

/* The question of a task comes before the answer to its call, so the task is not known
 * yet. Another call gets the question and ends. The server is told that no answer will
 * come. */
static void a_question_of_an_unknown_task_is_not_lost(void **state)
{
    (void)state;
    http_script s;
    heard *get, *call;
    record *r = begin_with_call(&s, &get, &call);
    ask_of_unknown_task(&s, get, r);
    script_result(call, "\"content\":[]");
    script_until(&s, r->completed);
    heard *h = script_expect(&s, "");
    assert_string_equal(json_at(h->body, "id"), "\"q\"");
    assert_string_equal(json_at(h->body, "error.code"), "-32603");
    script_accept(h);
    ends(&s, "one");
}

/* The same, and the call that gets the question ends while the answer is on its way. The
 * answer is lost, and goes again with the other call. */
static void an_answer_outlives_the_call_that_gave_it(void **state)
{
    (void)state;
    http_script s;
    heard *get, *call;
    record *r = begin_with_call(&s, &get, &call);
    kit_call(&s.k, "other");
    script_expect(&s, "tools/call");
    ask_of_unknown_task(&s, get, r);
    assert_int_equal(record_answer(r, NULL, "{\"action\":\"decline\"}"), SEGUE_OK);
    heard *h = script_expect(&s, "");
    script_result(call, "\"content\":[]");
    script_until(&s, r->completed);
    script_say(h, "503 Service Unavailable", "", "");
    script_advance(&s, 6000);
    h = script_expect(&s, "");
    assert_string_equal(json_at(h->body, "id"), "\"q\"");
    assert_string_equal(json_at(h->body, "result.action"), "\"decline\"");
    script_accept(h);
    ends(&s, "one");
}

/* The connection dies before the server has accepted the answer, and a proxy has no
 * server for a while; the stream of the call lives on. */
static void an_answer_that_was_lost_goes_again(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    script_begin(&s, &options);
    script_initialize(&s, "one");
    no_stream(&s);
    record *r = kit_call(&s.k, "t");
    heard *call = script_expect(&s, "tools/call");
    script_stream(call);
    script_event(call, NULL,
                 "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\","
                 "\"params\":{\"message\":\"?\",\"requestedSchema\":"
                 "{\"type\":\"object\",\"properties\":{}}}}");
    script_until(&s, r->last_key);
    assert_int_equal(record_answer(r, NULL, "{\"action\":\"decline\"}"), SEGUE_OK);
    for (int i = 0; i < 4; i++) {
        heard *h = script_expect(&s, "");
        assert_string_equal(json_at(h->body, "id"), "\"q\"");
        if (i % 2)
            script_cut(h, false);
        else
            script_say(h, "502 Bad Gateway", "", "");
        script_advance(&s, 6000);
    }
    heard *h = script_expect(&s, "");
    assert_string_equal(json_at(h->body, "result.action"), "\"decline\"");
    script_accept(h);
    script_advance(&s, 6000);
    script_expect_silence(&s);
    script_event(call, NULL,
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}",
                 json_at(call->body, "id"));
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    ends(&s, "one");
}

/* A server that asks without end and takes no answers causes no queue. */
static void unheard_answers_are_bounded(void **state)
{
    (void)state;
    http_script s;
    begin(&s, NULL);
    heard *get = script_expect(&s, "GET");
    script_stream(get);
    for (int i = 0; i < 300; i++)
        script_event(get, NULL, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}", i);
    int answers = 0;
    for (int i = 0; i < 100; i++) {
        script_pump(&s);
        for (heard *h; (h = script_next(&s)); h->looked = true)
            answers++;
    }
    assert_in_range(answers, 60, 64);
    script_end(&s);
}

/* Another server goes on with the session. It does not know the log level and the
 * subscriptions. The client sends them again when it opens the stream for messages of the
 * server. */
static void another_server_is_told_what_was_set(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    segue_request_options wanted = SEGUE_REQUEST_OPTIONS_INIT;
    wanted.log_level = "info";
    script_begin(&s, &options);
    script_initialize_with(&s, "one", "{\"tools\":{},\"logging\":{}}");
    heard *get = script_find(&s, "GET");
    script_stream_with(get, "Dev-Segue-Server: first\r\n");
    record *r = kit_start(&s.k, "tools/call", "{\"name\":\"t\"}", &wanted);
    script_result(script_expect(&s, "logging/setLevel"), "\"_meta\":{}");
    script_result(script_expect(&s, "tools/call"), "\"content\":[]");
    script_until(&s, r->completed);
    static const char *const names[] = {"first", "second", "second"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char header[64];
        script_event(get, "e", NOTE(1));
        script_cut(get, true);
        script_pump(&s);
        script_advance(&s, 1100);
        get = script_expect(&s, "GET");
        assert_header(get, "Last-Event-ID", "e");
        snprintf(header, sizeof header, "Dev-Segue-Server: %s\r\n", names[i]);
        script_stream_with(get, header);
        if (i == 1) {
            heard *wish = script_expect(&s, "logging/setLevel");
            assert_at(wish->body, "params.level", "\"info\"");
            script_result(wish, "\"_meta\":{}");
        }
        script_expect_silence(&s);
        assert_int_equal(s.k.opened, i ? 2 : 1);
    }
    script_end(&s);
}

/* The server that began the session dies before the client has the head of its first
 * stream. */
static void the_first_server_of_a_session_is_known(void **state)
{
    static const char *const names[] = {"first", "second"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char header[64];
        http_script s;
        segue_session_options options = kit_legacy_options();
        script_begin(&s, &options);
        script_initialize_at(&s, "one", "{\"resources\":{\"subscribe\":true}}", "first");
        script_cut(script_find(&s, "GET"), true);
        script_pump(&s);
        assert_int_equal(s.k.opened, 1);
        script_advance(&s, 1100);
        snprintf(header, sizeof header, "Dev-Segue-Server: %s\r\n", names[i]);
        script_stream_with(script_expect(&s, "GET"), header);
        script_pump(&s);
        assert_int_equal(s.k.opened, 1 + i);
        script_end(&s);
    }
}

/* The name of the server of an earlier session says nothing about the next session. */
static void a_new_session_forgets_the_server_of_the_last_one(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    script_begin(&s, &options);
    script_initialize_at(&s, "one", "{\"tools\":{}}", "first");
    script_stream_with(script_expect(&s, "GET"), "Dev-Segue-Server: first\r\n");
    record *r = kit_call(&s.k, "t");
    script_error(script_expect(&s, "tools/call"), "404 Not Found", -32001, NULL);
    script_initialize_at(&s, "two", "{\"tools\":{}}", NULL);
    script_stream_with(script_find(&s, "GET"), "Dev-Segue-Server: second\r\n");
    script_result(script_find(&s, "tools/call"), "\"content\":[]");
    script_until(&s, r->completed);
    assert_int_equal(s.k.opened, 2);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_server_of_a_session_is_known),
        cmocka_unit_test(a_new_session_forgets_the_server_of_the_last_one),
        cmocka_unit_test(each_request_names_the_session),
        cmocka_unit_test(another_server_is_told_what_was_set),
        cmocka_unit_test(a_stream_that_lived_ends_a_row_of_failures),
        cmocka_unit_test(a_keyed_call_goes_again_under_another_id),
        cmocka_unit_test(a_server_without_sessions_is_told_nothing),
        {"AS-117 a cut stream is resumed after the server's retry time", //
         a_cut_stream_is_taken_up_again, NULL, NULL, NULL},
        cmocka_unit_test(polling_goes_on_as_long_as_it_brings_something),
        cmocka_unit_test(empty_streams_without_retry_are_counted),
        cmocka_unit_test(a_stream_that_is_still_connected_is_asked_for_again),
        cmocka_unit_test(what_cannot_be_resumed_is_disconnected),
        cmocka_unit_test(resuming_a_server_that_is_gone_ends),
        cmocka_unit_test(a_forgotten_session_is_replaced),
        cmocka_unit_test(sessions_that_are_good_for_nothing),
        cmocka_unit_test(a_forgotten_stream_is_a_lost_call),
        cmocka_unit_test(a_stream_stays_in_its_session),
        cmocka_unit_test(notifications_come_by_the_stream),
        cmocka_unit_test(an_answer_that_comes_elsewhere_leaves_nothing),
        cmocka_unit_test(a_stream_that_is_busy_is_asked_for_later),
        cmocka_unit_test(a_stream_that_is_open_there_is_asked_for_later),
        cmocka_unit_test(cancel_is_said),
        cmocka_unit_test(a_ping_is_answered_by_a_post),
        cmocka_unit_test(a_question_of_an_unknown_task_is_not_lost),
        cmocka_unit_test(an_answer_outlives_the_call_that_gave_it),
        cmocka_unit_test(an_answer_that_was_lost_goes_again),
        cmocka_unit_test(unheard_answers_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
