/* A client over HTTP whose application is impatient, slow to read, or about to end.
 * Nothing is lost unless it was given up, memory stays bounded, and callbacks come once.
 * The same with a runtime in the background. label: threads */
#include "engine/client/request.h"
#include "runtime/runtime.h"
#include "support/http_script.h"
#include "support/world.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- everything in flight ---- */

/* Starts a session of the handshake eras, or a modern one, with exchanges in every
 * state. */
static void begin_busy(http_script *s, int32_t era)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = era;
    script_prepare(s);
    s->options.max_connections = 6;
    script_connect(s, &options);
    if (era == SEGUE_ERA_MODERN) {
        script_discover(s, SERVER_STREAMS);
    } else {
        script_initialize(s, "one");
        script_stream(script_expect(s, "GET"));
    }
    kit_call(&s->k, "unanswered");
    script_expect(s, "tools/call");
    kit_call(&s->k, "streaming");
    heard *h = script_expect(s, "tools/call");
    script_stream(h);
    script_event(h, "e", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    kit_call(&s->k, "half");
    script_push(script_expect(s, "tools/call"), "HTTP/1.1 200 OK\r\n", 17);
    kit_call(&s->k, "cut");
    h = script_expect(s, "tools/call");
    script_stream(h);
    script_event(h, "f", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    script_until(s, s->k.notifications == 2);
    script_cut(h, true); /* waits to be resumed, or to be sent again */
    script_pump(s);
    for (int i = 0; i < 8; i++)
        kit_call(&s->k, "queued"); /* some find no free connection */
}

static void check_all_ended(http_script *s, segue_status status)
{
    int ended = 0;
    for (record *r = s->k.records; r; r = r->next) {
        assert_int_equal(r->completed, 1);
        ended += r->status == status;
    }
    assert_true(ended >= 11);
}

static void a_session_closes_with_everything_in_flight(void **state)
{
    (void)state;
    static const int32_t eras[] = {SEGUE_ERA_MODERN, SEGUE_ERA_LEGACY};
    for (int i = 0; i < 2; i++) {
        http_script s;
        begin_busy(&s, eras[i]);
        assert_int_equal(segue_session_close(s.k.session), SEGUE_OK);
        script_until(&s, s.k.closed);
        check_all_ended(&s, SEGUE_E_CLOSED);
        if (eras[i] == SEGUE_ERA_LEGACY)
            /* without an answer it ends by its time limit, too */
            script_find(&s, "DELETE");
        script_advance(&s, 2000);
        script_end(&s);
    }
}

static void a_runtime_is_freed_with_everything_in_flight(void **state)
{
    (void)state;
    static const int32_t eras[] = {SEGUE_ERA_MODERN, SEGUE_ERA_LEGACY};
    for (int i = 0; i < 2; i++) {
        http_script s;
        begin_busy(&s, eras[i]);
        segue_session_free(s.k.session); /* handles are freed, too */
        s.k.session = NULL;
        for (record *r = s.k.records; r; r = r->next)
            record_drop(r);
        script_end(&s);
    }
}

/* ---- streams and short requests ---- */

/* Calls that are answered by streams do not use up the connections of others. The
 * requests that resume such a stream do not either. */
static void streams_leave_room_for_what_is_short(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options;
    heard *streams[2];
    options = kit_legacy_options();
    script_prepare(&s);
    s.options.max_connections = 2;
    script_connect(&s, &options);
    script_initialize(&s, "one");
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    for (int i = 0; i < 2; i++) {
        kit_call(&s.k, "streaming");
        streams[i] = script_expect(&s, "tools/call");
    }
    record *r = kit_call(&s.k, "short");
    script_expect_silence(&s);
    for (int i = 0; i < 2; i++) {
        script_stream(streams[i]);
        script_event(streams[i], i ? "b" : "a",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    }
    script_result(script_expect(&s, "tools/call"), "\"content\":[]");
    script_until(&s, r->completed && s.k.notifications == 2);
    for (int i = 0; i < 2; i++)
        script_cut(streams[i], true);
    script_pump(&s);
    script_advance(&s, 1100);
    for (int i = 0; i < 2; i++)
        script_expect(&s, "GET");
    r = kit_call(&s.k, "short");
    script_result(script_expect(&s, "tools/call"), "\"content\":[]");
    script_until(&s, r->completed);
    script_end(&s);
}

#define QUESTION                                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":\"q%d\",\"method\":\"elicitation/create\","             \
    "\"params\":{\"message\":\"?\",\"requestedSchema\":"                                 \
    "{\"type\":\"object\",\"properties\":{}}}}"

static void begin_narrow(http_script *s, bool listens, heard **get)
{
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    script_prepare(s);
    s->options.max_connections = 1;
    script_connect(s, &options);
    script_initialize(s, "one");
    *get = script_expect(s, "GET");
    if (listens)
        script_stream(*get);
    else
        script_say(*get, "405 Method Not Allowed", "", "");
}

/* Asks on this stream; the answer is sent although no other exchange has ended. */
static void ask_on(http_script *s, heard *stream, record *r, int number)
{
    char id[16];
    snprintf(id, sizeof id, "\"q%d\"", number);
    script_event(stream, NULL, QUESTION, number);
    script_until(s, r->last_key);
    assert_int_equal(record_answer(r, NULL, "{\"action\":\"decline\"}"), SEGUE_OK);
    heard *h = script_expect(s, "");
    assert_string_equal(json_at(h->body, "id"), id);
    assert_string_equal(json_at(h->body, "result.action"), "\"decline\"");
    script_accept(h);
}

/* A call that asks ends only after the answer. So neither its stream nor other streams
 * may delay the sending of the answer. */
static void an_answer_does_not_wait_for_who_asks(void **state)
{
    (void)state;
    http_script s;
    heard *get, *calls[2];
    record *r[2];
    begin_narrow(&s, false, &get);
    for (int i = 0; i < 2; i++) { /* each on its stream; there may be no more streams */
        r[i] = kit_call(&s.k, "t");
        calls[i] = script_expect(&s, "tools/call");
        script_stream(calls[i]);
        ask_on(&s, calls[i], r[i], i);
    }
    record *third = kit_call(&s.k, "t");
    script_expect_silence(&s);
    for (int i = 0; i < 2; i++) {
        script_stream_result(calls[i], NULL, "\"content\":[]");
        script_finish(calls[i]);
        script_until(&s, r[i]->completed);
    }
    script_result(script_expect(&s, "tools/call"), "\"content\":[]");
    script_until(&s, third->completed);
    script_end(&s);
}

static void an_answer_does_not_wait_for_the_call_or_for_the_listening(void **state)
{
    (void)state;
    http_script s;
    heard *get;
    begin_narrow(&s, true, &get);
    record *r = kit_call(&s.k, "t");
    heard *call = script_expect(&s, "tools/call");
    ask_on(&s, get, r, 0);
    script_result(call, "\"content\":[]");
    script_until(&s, r->completed);
    script_end(&s);
}

static void a_cancellation_does_not_wait_for_streams(void **state)
{
    (void)state;
    http_script s;
    heard *get;
    begin_narrow(&s, true, &get);
    record *r = kit_call(&s.k, "t");
    script_expect(&s, "tools/call");
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_accept(script_expect(&s, "notifications/cancelled"));
    script_until(&s, r->completed);
    script_end(&s);
}

/* The stream of the session does not take the place of a stream that was cut. */
static void a_cut_stream_does_not_wait_for_the_listening(void **state)
{
    (void)state;
    http_script s;
    heard *get;
    begin_narrow(&s, true, &get);
    record *r = kit_call(&s.k, "t");
    heard *call = script_expect(&s, "tools/call");
    script_stream(call);
    script_event(call, "a", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    script_until(&s, s.k.notifications == 1);
    script_cut(call, true);
    script_pump(&s);
    script_advance(&s, 1100);
    heard *again = script_expect(&s, "GET");
    assert_header(again, "Last-Event-ID", "a");
    script_stream(again);
    script_event(again, NULL,
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}",
                 json_at(call->body, "id"));
    script_until(&s, r->completed);
    script_end(&s);
}

/* A subscription, the stream of a task and that of a call are open: requests about the
 * task still go out, and its cancel does. */
static void a_task_does_not_wait_for_streams(void **state)
{
    (void)state;
    http_script s;
    script_prepare(&s);
    s.options.max_connections = 1;
    script_connect(&s, NULL);
    script_discover(&s, SERVER_STREAMS);
    kit_start(&s.k, "subscriptions/listen",
              "{\"notifications\":{\"toolsListChanged\":true}}", NULL);
    script_stream(script_expect(&s, "subscriptions/listen"));
    record *r = kit_call(&s.k, "t");
    script_result(script_expect(&s, "tools/call"), CREATED("T"));
    heard *stream = script_expect(&s, "tasks/stream");
    script_stream(stream);
    kit_call(&s.k, "other");
    heard *call = script_expect(&s, "tools/call");
    script_stream(call);
    script_event(call, NULL, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    script_until(&s, s.k.notifications == 1);
    script_event(
        stream, NULL,
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":"
        "{\"seq\":0,\"taskId\":\"T\",\"type\":\"dev.segue.status\",\"payload\":"
        "{\"status\":\"input_required\"}}}");
    script_result(script_expect(&s, "tasks/get"),
                  TASK("T", "input_required") ",\"inputRequests\":{\"k\":{\"method\":"
                                              "\"elicitation/create\",\"params\":{}}}");
    script_until(&s, r->last_key);
    assert_int_equal(record_answer(r, NULL, "{\"action\":\"accept\"}"), SEGUE_OK);
    script_result(script_expect(&s, "tasks/update"), "\"resultType\":\"complete\"");
    script_result(script_expect(&s, "tasks/get"), TASK("T", "working"));
    script_until(&s, !script_next(&s));
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_result(script_expect(&s, "tasks/cancel"), "\"resultType\":\"complete\"");
    script_until(&s, r->completed);
    script_end(&s);
}

/* ---- waiting for a connection ---- */

#define HALF_LIMIT_MS 40000 /* half of request_timeout_ms, and of silence_timeout_ms */

/* Makes two calls whose streams take all connections of max_connections. */
static void fill_places(http_script *s, record *r[2], heard *calls[2])
{
    heard *get;
    begin_narrow(s, false, &get);
    for (int i = 0; i < 2; i++) {
        r[i] = kit_call(&s->k, "streaming");
        calls[i] = script_expect(s, "tools/call");
        script_stream(calls[i]);
        script_event(calls[i], i ? "b" : "a",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
        script_until(s, s->k.notifications == i + 1);
    }
}

/* Lets a time limit pass; the streams stay alive meanwhile. */
static void pass_a_limit(http_script *s, heard *calls[2])
{
    for (int step = 0; step < 3; step++) {
        int told = s->k.notifications;
        script_advance(s, HALF_LIMIT_MS);
        for (int i = 0; i < 2; i++)
            if (calls[i])
                script_event(calls[i], NULL,
                             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
        script_until(s, s->k.notifications == told + !!calls[0] + !!calls[1]);
    }
}

static void end_stream(http_script *s, heard *call, record *r)
{
    script_stream_result(call, NULL, "\"content\":[]");
    script_finish(call);
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
}

/* The time limit of an exchange counts from the moment at which it goes out. */
static void a_call_that_waits_for_a_place_has_its_whole_time(void **state)
{
    (void)state;
    http_script s;
    record *r[2];
    heard *calls[2];
    fill_places(&s, r, calls);
    record *third = kit_call(&s.k, "waits");
    script_expect_silence(&s);
    pass_a_limit(&s, calls);
    assert_int_equal(third->completed, 0);
    end_stream(&s, calls[0], r[0]);
    script_expect(&s, "tools/call"); /* the time limit of this call starts, and ends */
    script_advance(&s, HALF_LIMIT_MS);
    assert_int_equal(third->completed, 0);
    script_advance(&s, HALF_LIMIT_MS);
    script_until(&s, third->completed);
    assert_int_equal(third->status, SEGUE_E_TIMEOUT);
    script_end(&s);
}

/* A stream that was cut is resumed when a connection is free. */
static void a_cut_stream_that_waits_for_a_place_does_not_fall_silent(void **state)
{
    (void)state;
    http_script s;
    record *r[2];
    heard *calls[2];
    fill_places(&s, r, calls);
    script_cut(calls[1], true);
    script_pump(&s);
    record *third = kit_call(&s.k, "streaming"); /* this call takes the free connection */
    heard *taker = script_expect(&s, "tools/call");
    script_stream(taker);
    script_event(taker, "c", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    script_until(&s, s.k.notifications == 3);
    script_advance(&s, 1100);
    script_expect_silence(&s);
    heard *busy[2] = {calls[0], taker};
    for (int i = 0; i < 4; i++)
        pass_a_limit(&s, busy);
    assert_int_equal(r[1]->completed, 0);
    end_stream(&s, calls[0], r[0]);
    end_stream(&s, taker, third);
    heard *again = script_expect(&s, "GET");
    assert_header(again, "Last-Event-ID", "b");
    script_stream(again);
    script_event(again, NULL,
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}",
                 json_at(calls[1]->body, "id"));
    script_until(&s, r[1]->completed);
    assert_int_equal(r[1]->status, SEGUE_OK);
    script_end(&s);
}

/* A message without an answer that waits behind another one is sent in the end. */
static void a_message_that_waits_for_a_place_is_sent(void **state)
{
    (void)state;
    http_script s;
    record *r[2];
    heard *calls[2];
    fill_places(&s, r, calls);
    for (int i = 0; i < 2; i++)
        assert_int_equal(segue_request_cancel(r[i]->request), SEGUE_OK);
    script_expect(&s, "notifications/cancelled"); /* the cancel is never answered */
    script_expect_silence(&s);
    script_advance(&s, HALF_LIMIT_MS);
    script_advance(&s, HALF_LIMIT_MS);
    script_accept(script_expect(&s, "notifications/cancelled"));
    script_end(&s);
}

/* ---- a slow reader ---- */

#define BLOCK 4000

static size_t push_segments(heard *h, char *unsent, int *seq, int most)
{
    size_t all = 0;
    static char x[BLOCK + 1];
    memset(x, 'x', BLOCK);
    while (*seq < most || *unsent) {
        if (!*unsent) {
            char data[BLOCK + 400];
            int n = snprintf(data, sizeof data,
                             "data: {\"jsonrpc\":\"2.0\",\"method\":"
                             "\"notifications/tasks/event\",\"params\":{\"seq\":%d,"
                             "\"taskId\":\"T\",\"type\":\"dev.segue.content.partial\","
                             "\"payload\":{\"content\":[{\"type\":\"text\",\"text\":"
                             "\"%s\"}],\"segment\":%d}}}\n\n",
                             *seq, x, *seq + 1);
            sprintf(unsent, "%x\r\n%s\r\n", (unsigned)n, data);
            ++*seq;
        }
        size_t sent = script_push(h, unsent, strlen(unsent));
        if (!sent)
            break;
        memmove(unsent, unsent + sent, strlen(unsent + sent) + 1);
        all += sent;
    }
    return all;
}

/* The server has 64 MB for an application that takes nothing: it is slowed down. */
static void a_server_is_slowed_down(void **state)
{
    (void)state;
    http_script s;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    char unsent[BLOCK + 600] = "";
    int seq = 0;
    script_prepare(&s);
    s.k.quiet = 1;
    script_connect(&s, NULL);
    script_discover(&s, SERVER_STREAMS);
    options.credit = 1;
    options.discard = 1;
    record *r = kit_start(&s.k, "tools/call", "{\"name\":\"t\"}", &options);
    script_result(script_expect(&s, "tools/call"), CREATED("T"));
    heard *h = script_expect(&s, "tasks/stream");
    script_stream(h);
    size_t sent = 0;
    for (int i = 0; i < 3000; i++) {
        sent += push_segments(h, unsent, &seq, 16000);
        script_pump(&s);
        if (h->wire && heard_is_closed(h))
            break;
    }
    assert_true(sent < 24 * 1024 * 1024); /* most of it in the sockets of the system */
    assert_true(s.k.mem.peak < 8 * 1024 * 1024);
    assert_int_equal(r->segments, 1);
    /* With credit the stream goes on where it stopped. */
    assert_int_equal(segue_request_grant(r->request, 1000000), SEGUE_OK);
    script_until(&s, script_next(&s));
    h = script_expect(&s, "tasks/stream");
    seq = atoi(json_at(h->body, "params.after")) + 1;
    assert_int_equal(seq, (int)r->last_segment);
    script_stream(h);
    *unsent = 0;
    int until = seq + 2000;
    while (seq < until || *unsent) {
        push_segments(h, unsent, &seq, until);
        script_pump(&s);
    }
    script_stream_result(h, NULL, FINAL);
    script_finish(h);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, until);
    assert_true(s.k.mem.peak < 8 * 1024 * 1024);
    script_end(&s);
}

/* The loop goes on reading while the application runs no callbacks. */
static void a_reader_that_is_busy_holds_up_its_stream(void **state)
{
    (void)state;
    http_script s;
    char unsent[BLOCK + 600] = "";
    int seq = 0;
    const int most = 12000; /* 48 MB, more than the sockets of a system hold */
    script_prepare(&s);
    s.k.quiet = 1;
    s.background = 1;
    script_connect(&s, NULL);
    script_discover(&s, SERVER_STREAMS);
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.discard = 1;
    record *r = kit_start(&s.k, "tools/call", "{\"name\":\"t\"}", &options);
    script_result(script_expect(&s, "tools/call"), CREATED("T"));
    heard *h = script_expect(&s, "tasks/stream");
    script_stream(h);
    size_t sent = 0;
    do
        sent += push_segments(h, unsent, &seq, most);
    while (script_may_push(h, 300));
    assert_true(seq < most);
    assert_true(sent < 40 * 1024 * 1024); /* most of it in the sockets of the system */
    assert_true(s.k.mem.peak < 8 * 1024 * 1024);
    while (seq < most || *unsent) {
        push_segments(h, unsent, &seq, most);
        script_pump(&s);
    }
    script_stream_result(h, NULL, FINAL);
    script_finish(h);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, most);
    assert_true(s.k.mem.peak < 8 * 1024 * 1024);
    script_end(&s);
}

#define INBOX (1024 * 1024) /* bytes that may wait for credit before reading stops */

static void add_piece(char *text, const char *id, int size)
{
    char x[2 * BLOCK + 1];
    memset(x, 'x', (size_t)size);
    x[size] = 0;
    sprintf(text + strlen(text),
            "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":"
            "\"text\",\"text\":\"%s\"}],\"_meta\":{\"hasMore\":true}}}\n\n",
            id, x);
}

/* Opens a session and a call whose answer is a stream. most: limit of one message in
 * bytes; 0 = the default. */
static heard *begin_pieces(http_script *s, size_t most, int64_t credit, record **r)
{
    segue_session_options legacy = SEGUE_SESSION_OPTIONS_INIT;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    legacy.era = SEGUE_ERA_LEGACY;
    script_prepare(s);
    s->most = most;
    s->k.quiet = 1;
    script_connect(s, &legacy);
    script_initialize_with(s, "one", SERVER_PLAIN);
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
    options.credit = credit;
    *r = kit_start(&s->k, "tools/call", "{\"name\":\"t\"}", &options);
    heard *h = script_expect(s, "tools/call");
    script_stream(h);
    return h;
}

/* The stream breaks after a piece that the application has no credit for, or behind
 * pieces that it has taken. Returns the request's message. */
static void break_a_stream(bool held, char *message, size_t size)
{
    http_script s;
    static char text[4 * BLOCK], tail[5 * BLOCK];
    record *r;
    heard *h = begin_pieces(&s, 0, held ? 1 : 1000, &r);
    const char *id = json_at(h->body, "id");
    int count = 0;
    while (held ? sgi_deliver_waiting_bytes(r->request) < INBOX - 2 * BLOCK : !count) {
        *text = 0;
        add_piece(text, id, BLOCK);
        script_text(h, text);
        count++;
    }
    *text = 0;
    for (int i = 0; i < 3; i++, count++)
        add_piece(text, id, BLOCK);
    snprintf(tail, sizeof tail, "%zx\r\n%s\r\nno chunk\r\n", strlen(text), text);
    assert_int_equal(script_push(h, tail, strlen(tail)), strlen(tail));
    for (int i = 0; held && i < 100; i++)
        script_pump(&s);
    if (held)
        assert_int_equal(segue_request_grant(r->request, 1000), SEGUE_OK);
    script_until(&s, r->completed);
    assert_int_equal(r->segments, count);
    snprintf(message, size, "%s", r->message);
    script_end(&s);
}

static void a_stream_that_broke_behind_its_reader_tells_why(void **state)
{
    char told[512], expected[512];
    (void)state;
    break_a_stream(false, expected, sizeof expected);
    break_a_stream(true, told, sizeof told);
    assert_string_equal(told, expected);
}

/* The response has ended while its last bytes wait for credit. One of their pieces is
 * larger than a message may be. The request ends with an error. */
static void a_piece_that_waited_is_too_large(void **state)
{
    (void)state;
    http_script s;
    static char text[5 * BLOCK], tail[6 * BLOCK];
    record *r;
    heard *h = begin_pieces(&s, BLOCK + BLOCK / 2, 1, &r);
    const char *id = json_at(h->body, "id");
    while (sgi_deliver_waiting_bytes(r->request) < INBOX - 2 * BLOCK) {
        *text = 0;
        add_piece(text, id, BLOCK);
        script_text(h, text);
    }
    *text = 0;
    for (int i = 0; i < 2; i++)
        add_piece(text, id, BLOCK);
    add_piece(text, id, 2 * BLOCK);
    snprintf(tail, sizeof tail, "%zx\r\n%s\r\n0\r\n\r\n", strlen(text), text);
    assert_int_equal(script_push(h, tail, strlen(tail)), strlen(tail));
    for (int i = 0; i < 100; i++)
        script_pump(&s);
    assert_int_equal(segue_request_grant(r->request, 1000), SEGUE_OK);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    script_end(&s);
}

/* ---- in the background ---- */

static void background(int32_t era)
{
    http_script s;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = era;
    script_prepare(&s);
    s.background = 1;
    script_connect(&s, &options);
    if (era == SEGUE_ERA_MODERN) {
        script_discover(&s, SERVER_PLAIN);
    } else {
        script_initialize(&s, "one");
        script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    }
    for (int i = 0; i < 20; i++) {
        record *r = kit_call(&s.k, "t");
        heard *h = script_find(&s, "tools/call");
        if (i % 2) {
            script_result(h, "\"content\":[]");
        } else {
            script_stream(h);
            script_stream_result(h, NULL, "\"content\":[]");
            script_finish(h);
        }
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
    }
    for (int i = 0; i < 10; i++) {
        record *r = kit_call(&s.k, "t");
        if (i % 2)
            segue_request_cancel(r->request);
    }
    script_end(&s);
}

static void in_the_background(void **state)
{
    (void)state;
    background(SEGUE_ERA_MODERN);
    background(SEGUE_ERA_LEGACY);
}

typedef struct asker {
    int asked;
} asker;

static void give_token(void *user, segue_transport *transport, int32_t status)
{
    asker *a = user;
    (void)status;
    a->asked++;
    assert_int_equal(
        segue_transport_set_header(transport, "Authorization", "Bearer", NULL), SEGUE_OK);
}

/* The callback for headers runs on the thread that dispatches, while the loop runs on
 * another. */
static void headers_in_the_background(void **state)
{
    (void)state;
    http_script s;
    asker a = {0};
    script_prepare(&s);
    s.background = 1;
    s.options.user = &a;
    s.options.on_headers = give_token;
    script_connect(&s, NULL);
    script_discover(&s, SERVER_PLAIN);
    for (int i = 0; i < 20; i++) {
        kit_call(&s.k, "t");
        heard *h = script_find(&s, "tools/call");
        assert_header(h, "Authorization", "Bearer");
        script_say(h, i % 3 ? "200 OK" : "401 Unauthorized",
                   "Content-Type: text/plain\r\n", "");
    }
    assert_true(a.asked >= 10); /* one answer may serve several waiting requests */
    script_end(&s);
}

typedef struct slow_asker {
    segue_runtime *runtime;
    heard *refused; /* a request that the server refuses while the callback runs */
    int tokens;     /* changes when the server refuses a token */
} slow_asker;

/* Waits until a callback is due. The callback that runs now is no longer in the queue. */
static void wait_until_due(segue_runtime *rt)
{
    int64_t until = script_deadline();
    for (bool due = false; !due; sched_yield()) {
        sgi_runtime_lock(rt);
        due = !TAILQ_EMPTY(&sgi_runtime_engine(rt)->ready);
        sgi_runtime_unlock(rt);
        script_check(until, "a callback is due", __FILE__, __LINE__);
    }
}

/* Sets the token that it has when it is called without a refusal. While it runs, another
 * request is refused, and the loop thread handles this refusal. */
static void give_token_slowly(void *user, segue_transport *transport, int32_t status)
{
    slow_asker *a = user;
    char token[32];
    if (status)
        a->tokens++;
    snprintf(token, sizeof token, "Bearer %d", a->tokens);
    if (a->refused && !status) {
        heard *h = a->refused;
        a->refused = NULL;
        script_say(h, "401 Unauthorized", "", "");
        wait_until_due(a->runtime);
    }
    assert_int_equal(segue_transport_set_header(transport, "Authorization", token, NULL),
                     SEGUE_OK);
}

/* A request that is refused while the callback runs gets its headers from the next run of
 * the callback. */
static void a_refusal_during_the_callback_asks_again(void **state)
{
    (void)state;
    http_script s;
    slow_asker a = {0};
    script_prepare(&s);
    s.background = 1;
    s.options.user = &a;
    s.options.on_headers = give_token_slowly;
    script_connect(&s, NULL);
    a.runtime = s.k.runtime;
    script_discover(&s, SERVER_PLAIN);
    record *first = kit_call(&s.k, "first");
    a.refused = script_find(&s, "tools/call");
    record *second = kit_call(&s.k, "second");
    for (int i = 0; i < 2; i++) {
        heard *h = script_find(&s, "tools/call");
        if (strstr(h->body, "first"))
            assert_header(h, "Authorization", "Bearer 1");
        script_result(h, "\"content\":[]");
    }
    script_until(&s, first->completed && second->completed);
    assert_int_equal(first->status, SEGUE_OK);
    assert_int_equal(second->status, SEGUE_OK);
    assert_null(a.refused);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_closes_with_everything_in_flight),
        cmocka_unit_test(a_runtime_is_freed_with_everything_in_flight),
        cmocka_unit_test(streams_leave_room_for_what_is_short),
        cmocka_unit_test(an_answer_does_not_wait_for_who_asks),
        cmocka_unit_test(an_answer_does_not_wait_for_the_call_or_for_the_listening),
        cmocka_unit_test(a_cancellation_does_not_wait_for_streams),
        cmocka_unit_test(a_cut_stream_does_not_wait_for_the_listening),
        cmocka_unit_test(a_task_does_not_wait_for_streams),
        cmocka_unit_test(a_call_that_waits_for_a_place_has_its_whole_time),
        cmocka_unit_test(a_cut_stream_that_waits_for_a_place_does_not_fall_silent),
        cmocka_unit_test(a_message_that_waits_for_a_place_is_sent),
        cmocka_unit_test(a_server_is_slowed_down),
        cmocka_unit_test(a_reader_that_is_busy_holds_up_its_stream),
        cmocka_unit_test(a_stream_that_broke_behind_its_reader_tells_why),
        cmocka_unit_test(a_piece_that_waited_is_too_large),
        cmocka_unit_test(in_the_background),
        cmocka_unit_test(headers_in_the_background),
        cmocka_unit_test(a_refusal_during_the_callback_asks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
