/* Calls and tasks of a client over HTTP in the modern era: what is sent, which answers
 * may come, and what a cut means. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define JSON "Content-Type: application/json\r\n"

static void begin(http_script *s, const char *capabilities)
{
    script_begin(s, NULL);
    script_discover(s, capabilities);
}

/* Does the same, and makes a call that the server has received. */
static record *begin_call(http_script *s, const char *capabilities, heard **call)
{
    begin(s, capabilities);
    record *r = kit_call(&s->k, "t");
    *call = script_expect(s, "tools/call");
    return r;
}

/* Does the same, and makes a call that has become the task T. */
static record *begin_task(http_script *s, const char *capabilities)
{
    heard *call;
    record *r = begin_call(s, capabilities, &call);
    script_result(call, CREATED("T"));
    return r;
}

static void end(http_script *s, const record *r, segue_status expected)
{
    script_until(s, r->completed);
    assert_int_equal(r->status, expected);
    script_end(s);
}

/* ---- what is sent ---- */

static void the_head_repeats_the_call(void **state)
{
    (void)state;
    static const struct {
        const char *name;   /* the name as JSON */
        const char *header; /* the value of Mcp-Name */
    } rows[] = {
        {"\"get_weather\"", "get_weather"},
        {"\"caf\\u00e9\"", "=?base64?Y2Fmw6k=?="},
        {"\" padded \"", "=?base64?IHBhZGRlZCA=?="},
        {"\"=?base64?literal?=\"", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
        {"\"a\\r\\nX-Evil: 1\"", "=?base64?YQ0KWC1FdmlsOiAx?="},
        {"\"\"", ""},
    };
    http_script s;
    begin(&s, SERVER_PLAIN);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char params[128];
        snprintf(params, sizeof params, "{\"name\":%s,\"arguments\":{}}", rows[i].name);
        record *r = kit_start(&s.k, "tools/call", params, NULL);
        heard *h = script_expect(&s, "tools/call");
        assert_header(h, "Mcp-Method", "tools/call");
        assert_header(h, "MCP-Protocol-Version", "2026-07-28");
        assert_header(h, "Mcp-Name", rows[i].header);
        assert_header(h, "X-Evil", NULL);
        assert_header(h, "Mcp-Session-Id", NULL);
        script_result(h, "\"content\":[]");
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
    }
    script_end(&s);
}

static void get_update_and_cancel_name_their_task(void **state)
{
    (void)state;
    http_script s;
    begin(&s, SERVER_TASKS);
    record *r = kit_call(&s.k, "t");
    script_result(script_expect(&s, "tools/call"), CREATED("T/1"));
    heard *h = script_expect(&s, "tasks/get");
    assert_header(h, "Mcp-Method", "tasks/get");
    assert_header(h, "Mcp-Name", "T/1");
    assert_header(h, "MCP-Protocol-Version", "2026-07-28");
    script_result(h, TASK("T/1", "input_required") ",\"inputRequests\":{\"k\":{"
                                                   "\"method\":\"elicitation/create\","
                                                   "\"params\":{}}}");
    script_until(&s, r->last_key);
    assert_int_equal(
        segue_request_answer(r->request, "k", "{\"action\":\"accept\"}", 19, NULL),
        SEGUE_OK);
    h = script_expect(&s, "tasks/update");
    assert_header(h, "Mcp-Method", "tasks/update");
    assert_header(h, "Mcp-Name", "T/1");
    script_result(h, "\"resultType\":\"complete\"");
    script_result(script_expect(&s, "tasks/get"), TASK("T/1", "working"));
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    h = script_expect(&s, "tasks/cancel");
    assert_header(h, "Mcp-Method", "tasks/cancel");
    assert_header(h, "Mcp-Name", "T/1");
    script_result(h, "\"resultType\":\"complete\"");
    end(&s, r, SEGUE_E_CANCELLED);
}

/* The exchange of a cancel is lost or refused for now, whatever its JSON body says: the
 * cancel is sent again. */
static void a_cancel_that_did_not_arrive_goes_again(void **state)
{
    (void)state;
    static const char closing[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":"
                                  "-32603,\"message\":\"The server is closing\"}}";
    for (int how = 0; how < 3; how++) {
        http_script s;
        begin(&s, SERVER_TASKS);
        record *r = kit_call(&s.k, "t");
        script_result(script_expect(&s, "tools/call"), CREATED("T"));
        script_expect(&s, "tasks/get");
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        heard *h = script_expect(&s, "tasks/cancel");
        if (how == 0)
            script_cut(h, true);
        else
            script_say(h, "503 Service Unavailable",
                       how == 1 ? "" : "Content-Type: application/json\r\n",
                       how == 1 ? "" : closing);
        script_expect_silence(&s);
        script_advance(&s, 300);
        script_result(script_expect(&s, "tasks/cancel"), "\"resultType\":\"complete\"");
        end(&s, r, SEGUE_E_CANCELLED);
    }
}

/* ---- answers ---- */

static void progress(heard *h, int n)
{
    script_event(h, NULL,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                 "\"params\":{\"progressToken\":%s,\"progress\":%d,\"total\":2}}",
                 json_at(h->body, "params._meta.progressToken"), n);
}

static void notifications_come_before_the_answer(void **state)
{
    (void)state;
    for (size_t piece = 0; piece < 2; piece++) { /* whole, and split at every byte */
        http_script s;
        begin(&s, SERVER_PLAIN);
        s.piece = piece;
        record *r = kit_call(&s.k, "t");
        heard *h = script_expect(&s, "tools/call");
        script_stream(h);
        script_text(h, ":\r\n\r\nretry: 5\r\n\r\n");
        progress(h, 1);
        script_until(&s, r->log && strstr(r->log, "progress 1/2"));
        progress(h, 2);
        script_stream_result(h, NULL,
                             "\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
                             "{\"type\":\"text\",\"text\":\"b\"}]");
        script_finish(h);
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(r->segments, 2);
        assert_non_null(strstr(r->log, "progress 2/2"));
        record *again = kit_call(&s.k, "t"); /* the connection goes on */
        script_result(script_expect(&s, "tools/call"), "\"content\":[]");
        script_until(&s, again->completed);
        script_end(&s);
    }
}

static void an_answer_does_not_wait_for_the_end_of_its_stream(void **state)
{
    (void)state;
    http_script s;
    heard *h;
    record *r = begin_call(&s, SERVER_PLAIN, &h);
    script_stream(h);
    script_stream_result(h, NULL, "\"content\":[]");
    script_until(&s, r->completed);
    for (int i = 0; i < 4; i++) { /* however much more the server sends */
        script_advance(&s, 600);
        script_text(h, ": more\n\n");
    }
    script_until(&s, heard_is_closed(h));
    script_end(&s);
}

static void one_call(const char *status, const char *headers, const char *body,
                     segue_status expected, int rpc_code)
{
    http_script s;
    heard *h;
    record *r = begin_call(&s, SERVER_PLAIN, &h);
    script_say(h, status, headers, body);
    script_until(&s, r->completed);
    assert_int_equal(r->status, expected);
    assert_int_equal(r->rpc_code, rpc_code);
    assert_int_equal(s.k.closed, 0); /* one failed exchange does not end the session */
    script_end(&s);
}

static void what_is_no_answer_is_an_error(void **state)
{
    (void)state;
    static const char error[] =
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32021,"
        "\"message\":\"no\"}}";
    static const char nobodys[] =
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":7,"
        "\"message\":\"no\"}}";
    one_call("400 Bad Request", JSON, error, SEGUE_E_REMOTE, -32021);
    one_call("404 Not Found", JSON, error, SEGUE_E_REMOTE, -32021);
    one_call("500 Internal Server Error", JSON, nobodys, SEGUE_E_REMOTE, 7);
    one_call("200 OK", JSON, nobodys, SEGUE_E_REMOTE, 7);
    one_call("404 Not Found", "", "", SEGUE_E_REFUSED, 0);
    one_call("405 Not Allowed", "Content-Type: text/html\r\n", "<p>", SEGUE_E_REFUSED, 0);
    one_call("401 Unauthorized", JSON, error, SEGUE_E_UNAUTHORIZED, 0);
    one_call("202 Accepted", "", "", SEGUE_E_REFUSED, 0);
    one_call("204 No Content", "", "", SEGUE_E_REFUSED, 0);
    one_call("200 OK", "Content-Type: text/html\r\n", "<p>", SEGUE_E_REFUSED, 0);
    one_call("200 OK", "Content-Type: application/jsonl\r\n", "{}", SEGUE_E_REFUSED, 0);
    one_call("200 OK", "", "", SEGUE_E_REFUSED, 0);
    one_call("308 Permanent Redirect", "Location: /other\r\n", "", SEGUE_E_REFUSED, 0);
    one_call("200 OK", JSON, "[1", SEGUE_E_PROTOCOL, 0);
    one_call("200 OK", JSON, "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}",
             SEGUE_E_PROTOCOL, 0);
    one_call("503 Service Unavailable", "", "", SEGUE_E_DISCONNECTED, 0);
}

static void limited(http_script *s)
{
    script_prepare(s);
    s->most = 4096;
    script_connect(s, NULL);
    script_discover(s, SERVER_PLAIN);
}

static void an_answer_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    char *large = calloc(1, 70001);
    memset(large, ' ', 70000);
    for (int kind = 0; kind < 3; kind++) {
        http_script s;
        limited(&s);
        record *r = kit_call(&s.k, "t");
        heard *h = script_expect(&s, "tools/call");
        if (kind == 0) {
            script_say(h, "200 OK", JSON, large);
        } else if (kind == 1) {
            script_say(h, "500 Oops", JSON, large);
        } else {
            script_stream(h);
            script_event(h, NULL, "%.8000s", large);
            script_finish(h);
        }
        end(&s, r, kind == 1 ? SEGUE_E_REFUSED : SEGUE_E_TOO_LARGE);
    }
    free(large);
}

/* The client does not read an endless body to its end. */
static void an_endless_answer_is_cut_short(void **state)
{
    (void)state;
    char blanks[2048];
    memset(blanks, ' ', sizeof blanks);
    http_script s;
    limited(&s);
    record *r = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    static const char head[] = "HTTP/1.1 200 OK\r\n" JSON "\r\n"; /* ends with the line */
    script_push(h, head, sizeof head - 1);
    for (int i = 0; i < 4; i++)
        script_push(h, blanks, sizeof blanks);
    script_until(&s, heard_is_closed(h));
    end(&s, r, SEGUE_E_TOO_LARGE);
}

/* ---- cuts ---- */

static void a_cut_ends_a_plain_call_and_nothing_else(void **state)
{
    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        http_script s;
        begin(&s, SERVER_PLAIN);
        record *one = kit_call(&s.k, "one");
        heard *first = script_expect(&s, "tools/call");
        record *two = kit_call(&s.k, "two");
        heard *second = script_expect(&s, "tools/call");
        script_stream(first);
        script_stream(second);
        script_event(first, "e1", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
        script_cut(first, reset);
        script_until(&s, one->completed);
        assert_int_equal(one->status, SEGUE_E_DISCONNECTED);
        /* this era has no Last-Event-ID, and nothing is sent again */
        script_expect_silence(&s);
        assert_int_equal(two->completed, 0);
        script_stream_result(second, NULL, "\"content\":[]");
        script_finish(second);
        script_until(&s, two->completed);
        assert_int_equal(two->status, SEGUE_OK);
        script_end(&s);
    }
}

/* The server has read the call on a reused connection, and dies. */
static void a_call_is_not_sent_twice(void **state)
{
    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        http_script s;
        begin(&s, SERVER_PLAIN);
        record *r = kit_call(&s.k, "t");
        script_cut(script_expect(&s, "tools/call"), reset);
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
        if (!reset)
            assert_string_equal(r->message,
                                "the connection was lost before the answer came");
        script_expect_silence(&s);
        r = kit_call(&s.k, "t");
        heard *h = script_expect(&s, "tools/call");
        http_peer_close(&s.peer);
        script_cut(h, reset); /* nor when no server listens any more */
        end(&s, r, SEGUE_E_DISCONNECTED);
    }
}

static void keep_key(const heard *h, char key[64])
{
    const char *at = strstr(h->body, "\"dev.segue/idempotencyKey\":\"");
    assert_non_null(at);
    at += strlen("\"dev.segue/idempotencyKey\":\"");
    snprintf(key, 64, "%.*s", (int)strcspn(at, "\""), at);
    assert_true(strlen(key) >= 16);
}

static void a_keyed_call_is_sent_again_with_its_key(void **state)
{
    (void)state;
    http_script s;
    heard *h;
    record *r = begin_call(&s, SERVER_STREAMS, &h);
    char key[64];
    keep_key(h, key);
    script_stream(h);
    script_cut(h, true);
    for (int i = 0; i < 3; i++) {
        script_advance(&s, 300 << i);
        h = script_expect(&s, "tools/call");
        char is[64];
        keep_key(h, is);
        assert_string_equal(is, key);
        if (i == 2)
            script_result(h, "\"content\":[]");
        else
            script_say(h, "503 Service Unavailable", "", "");
    }
    end(&s, r, SEGUE_OK);
}

/* The refused call was not started, so the client sends it to the next server, also
 * without a key. A key stays, because the next server may know it. */
static void what_a_server_about_to_end_refused_goes_again(void **state)
{
    (void)state;
    static const char ending[] =
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":"
        "\"The server is about to end\",\"data\":{\"reason\":\"server_ending\","
        "\"retryAfterMs\":1000}}}";
    for (int keyed = 0; keyed < 2; keyed++) {
        http_script s;
        heard *h;
        char key[64], again[64];
        record *r = begin_call(&s, keyed ? SERVER_STREAMS : SERVER_PLAIN, &h);
        if (keyed)
            keep_key(h, key);
        script_say(h, "503 Service Unavailable",
                   "Content-Type: application/json\r\nRetry-After: 1\r\n", ending);
        script_expect_silence(&s);
        assert_int_equal(r->completed, 0);
        script_advance(&s, 3000);
        h = script_expect(&s, "tools/call");
        if (keyed) {
            keep_key(h, again);
            assert_string_equal(again, key);
        }
        script_result(h, "\"content\":[]");
        end(&s, r, SEGUE_OK);
    }
}

/* The server ended before its answer was ready, and may have begun the call. A call with
 * a key is sent again. Another call has lost its connection. */
static void what_a_server_left_unanswered_goes_again(void **state)
{
    (void)state;
    static const char ended[] =
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603,\"message\":"
        "\"The server ended the request before its answer was ready\",\"data\":{"
        "\"reason\":\"request_ended\"}}}";
    for (int keyed = 0; keyed < 2; keyed++) {
        http_script s;
        heard *h;
        char key[64], again[64];
        record *r = begin_call(&s, keyed ? SERVER_STREAMS : SERVER_PLAIN, &h);
        if (keyed)
            keep_key(h, key);
        script_say(h, "503 Service Unavailable", "Content-Type: application/json\r\n",
                   ended);
        if (keyed) {
            script_advance(&s, 3000);
            h = script_expect(&s, "tools/call");
            keep_key(h, again);
            assert_string_equal(again, key);
            script_result(h, "\"content\":[]");
        }
        end(&s, r, keyed ? SEGUE_OK : SEGUE_E_DISCONNECTED);
    }
}

static void segment(heard *h, int seq)
{
    script_event(h, NULL,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\","
                 "\"params\":{\"seq\":%d,\"taskId\":\"T\",\"type\":"
                 "\"dev.segue.content.partial\",\"payload\":{\"content\":[{\"type\":"
                 "\"text\",\"text\":\"x\"}],\"segment\":%d}}}",
                 seq, seq + 1);
}

static void a_cut_task_goes_on_from_its_cursor(void **state)
{
    (void)state;
    http_script s;
    record *r = begin_task(&s, SERVER_STREAMS);
    heard *h = script_expect(&s, "tasks/stream");
    script_stream(h);
    segment(h, 0);
    segment(h, 1);
    script_until(&s, r->segments == 2);
    /* the connection breaks in the middle of an event */
    script_text(h, "data: {\"jsonrpc\"");
    script_cut(h, true);
    script_advance(&s, 50);
    h = script_expect(&s, "tasks/stream");
    assert_string_equal(json_at(h->body, "params.after"), "1");
    assert_header(h, "Mcp-Name", "T");
    script_stream(h);
    segment(h, 1); /* a repeat of segment 1 */
    segment(h, 2);
    script_stream_result(h, NULL, FINAL);
    script_finish(h);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 3);
    script_end(&s);
}

/* Over HTTP each stream has events of its own: what comes on the second one is of it,
 * whatever was left before. */
static void a_second_stream_of_a_task_begins_where_the_server_begins(void **state)
{
    (void)state;
    http_script s;
    segue_task *task;
    segue_request_events events;
    record *r = begin_task(&s, SERVER_STREAMS);
    heard *h = script_expect(&s, "tasks/stream");
    script_stream(h);
    segment(h, 0);
    script_until(&s, r->segments == 1);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_result(script_expect(&s, "tasks/cancel"), "\"resultType\":\"complete\"");
    script_until(&s, r->completed);
    r = kit_record(&s.k, &events);
    assert_int_equal(segue_task_attach(s.k.session, "T", &task, NULL), SEGUE_OK);
    assert_int_equal(segue_task_watch(task, NULL, &events, &r->request, NULL), SEGUE_OK);
    segue_task_free(task);
    h = script_expect(&s, "tasks/stream");
    assert_at(h->body, "params.after", "");
    script_stream(h);
    segment(h, 1); /* the events before it are retained no more */
    script_until(&s, r->segments == 1);
    assert_int_equal(r->last_segment, 2);
    script_end(&s);
}

/* A stream that was left may still bring events when the next one is open. They come on
 * an exchange of their own, and begin nothing on the next one. */
static void an_event_belongs_to_the_stream_of_its_exchange(void **state)
{
    (void)state;
    http_script s;
    record *r = begin_task(&s, SERVER_STREAMS);
    heard *h = script_expect(&s, "tasks/stream");
    record *other = kit_call(&s.k, "t");
    heard *call = script_expect(&s, "tools/call");
    script_stream(call);
    segment(call, 4);
    script_stream_result(call, NULL, RESULT);
    script_finish(call);
    script_until(&s, other->completed);
    assert_int_equal(r->segments, 0);
    script_stream(h);
    for (int seq = 0; seq < 6; seq++)
        segment(h, seq);
    script_until(&s, r->segments == 6);
    assert_int_equal(r->last_segment, 6);
    script_end(&s);
}

static void failures_of_get_back_off(void **state)
{
    (void)state;
    http_script s;
    record *r = begin_task(&s, SERVER_TASKS);
    int64_t gap = 0;
    for (int i = 0; i < 5; i++) {
        int64_t since = s.k.clock_ms;
        while (!script_next(&s)) {
            script_advance(&s, 50);
            script_pump(&s);
        }
        heard *h = script_expect(&s, "tasks/get");
        if (i > 1) /* the first try comes at once */
            assert_true(s.k.clock_ms - since >= gap - gap / 5);
        gap = i > 0 ? 250 << (i - 1) : 0;
        script_say(h, i == 2 ? "504 Gateway Timeout" : "503 Service Unavailable", "", "");
        if (i > 0)
            script_expect_silence(&s);
    }
    script_advance(&s, 5000);
    script_result(script_expect(&s, "tasks/get"), TASK("T", "completed") "," RESULT);
    end(&s, r, SEGUE_OK);
}

static void a_silent_stream_is_taken_for_broken(void **state)
{
    (void)state;
    http_script s;
    record *r = begin_task(&s, SERVER_STREAMS);
    heard *h = script_expect(&s, "tasks/stream");
    script_stream(h);
    segment(h, 0);
    script_until(&s, r->segments == 1);
    for (int i = 0; i < 6; i++) { /* comments count as signs of life */
        script_advance(&s, 40000);
        script_text(h, ":\n\n");
        assert_false(heard_is_closed(h));
    }
    script_advance(&s, 61000);
    script_until(&s, heard_is_closed(h));
    script_advance(&s, 300);
    /* not even the head of an answer comes */
    heard *mute = script_expect(&s, "tasks/stream");
    script_advance(&s, 61000);
    script_until(&s, heard_is_closed(mute));
    script_advance(&s, 600);
    script_result(script_expect(&s, "tasks/stream"), FINAL);
    end(&s, r, SEGUE_OK);
}

/* ---- cancel ---- */

static void cancel_closes_the_stream(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        http_script s;
        heard *h;
        record *r = begin_call(&s, SERVER_PLAIN, &h);
        if (streams)
            script_stream(h);
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        script_until(&s, heard_is_closed(h));
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        script_expect_silence(&s); /* R-776-26: nothing is sent */
        script_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_head_repeats_the_call),
        {"AS-61 R-2557-50 get, update and cancel name their task",
         get_update_and_cancel_name_their_task, NULL, NULL, NULL},
        cmocka_unit_test(a_cancel_that_did_not_arrive_goes_again),
        cmocka_unit_test(notifications_come_before_the_answer),
        cmocka_unit_test(an_answer_does_not_wait_for_the_end_of_its_stream),
        cmocka_unit_test(what_is_no_answer_is_an_error),
        cmocka_unit_test(an_answer_beyond_the_limit_is_refused),
        cmocka_unit_test(an_endless_answer_is_cut_short),
        cmocka_unit_test(a_cut_ends_a_plain_call_and_nothing_else),
        cmocka_unit_test(a_call_is_not_sent_twice),
        cmocka_unit_test(a_keyed_call_is_sent_again_with_its_key),
        cmocka_unit_test(what_a_server_about_to_end_refused_goes_again),
        cmocka_unit_test(what_a_server_left_unanswered_goes_again),
        cmocka_unit_test(a_cut_task_goes_on_from_its_cursor),
        cmocka_unit_test(a_second_stream_of_a_task_begins_where_the_server_begins),
        NAMED("R-E-7 an event belongs to the stream of its exchange",
              an_event_belongs_to_the_stream_of_its_exchange),
        {"AS-73 503 and 504 on get back off, then the call succeeds",
         failures_of_get_back_off, NULL, NULL, NULL},
        cmocka_unit_test(a_silent_stream_is_taken_for_broken),
        cmocka_unit_test(cancel_closes_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
