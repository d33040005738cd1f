/* Details of batches that scenarios cannot see: which messages are kept and for how long,
 * the bounds, exchanges without a connection, and each failing allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/conversation/batch.h"
#include "engine/conversation/replay.h"
#include "engine/server/wire_session.h"
#include "support/http_wire.h"

#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"ping\"}"
#define CALL(id)                                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tools/call\",\"params\":{"         \
    "\"name\":\"tool\",\"_meta\":{\"progressToken\":" #id "}}}"
#define CANCEL(id)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"           \
    "\"requestId\":" #id "}}"
#define PONG(id) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"result\":{}}"
#define DONE(id) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"result\":{\"content\":[]}}"

static http_rig t;

static int set_up(void **state)
{
    (void)state;
    http_rig_begin(&t, "ada");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_rig_end(&t);
    return 0;
}

static void open_session(void)
{
    assert_true(http_wire_open(&t.a, "2025-03-26"));
    t.b.head.version = t.a.head.version;
    t.b.head.session = t.a.head.session;
}

/* Posts a batch whose call continues after the handler. */
static segue_call *post_call(http_wire *wire, const char *batch)
{
    assert_int_equal(http_wire_post(wire, batch), 0);
    segue_call *call = http_wire_call(t.server);
    assert_non_null(call);
    return call;
}

static void array_is_one_json_text(void **state)
{
    (void)state;
    open_session();
    segue_call *call = post_call(&t.a, "[" PING(7) "," CALL(8) "," PING(9) "]");
    assert_true(t.a.answer.open);
    assert_non_null(t.a.conn->batches);
    assert_true(t.a.conn->batch_bytes > 0);
    http_wire_finish(call);
    assert_string_equal(http_wire_text(&t.a), "[" PONG(7) "," PONG(9) "," DONE(8) "]");
    assert_false(t.a.answer.is_events);
    assert_true(t.a.answer.answered);
    assert_int_equal(t.a.answer.status, 200);
    assert_null(t.a.conn->batches);
    assert_int_equal(t.a.conn->batch_bytes, 0);
}

static void stream_has_each_answer_as_an_event(void **state)
{
    (void)state;
    open_session();
    segue_call *call = post_call(&t.a, "[" PING(7) "," CALL(8) "," PING(9) "]");
    sgi_serve_open_stream(t.a.conn);
    assert_string_equal(http_wire_text(&t.a),
                        "id: 2-1\ndata: " PONG(7) "\n\nid: 2-2\ndata: " PONG(9) "\n\n");
    assert_true(t.a.answer.is_events && !t.a.answer.answered);
    assert_int_equal(t.a.conn->batch_bytes, 0);
    sgi_call_progress(call, 1, 0, NULL);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: 2-3\n"), 1);
    http_wire_cut(&t.a); /* no connection carries the remaining answers, which are kept
                          * for the GET */
    http_wire_finish(call);
    assert_int_equal(http_wire_get(&t.a, "2-3"), 200);
    assert_string_equal(http_wire_text(&t.a), "id: 2-4\ndata: " DONE(8) "\n\n");
    assert_true(t.a.answer.answered);
}

static void client_without_event_streams_gets_the_array(void **state)
{
    (void)state;
    open_session();
    t.a.head.takes_events = false;
    segue_call *call = post_call(&t.a, "[" PING(7) "," CALL(8) "]");
    sgi_serve_open_stream(t.a.conn);
    sgi_call_progress(call, 1, 0, NULL);
    http_wire_finish(call);
    assert_string_equal(http_wire_text(&t.a), "[" PONG(7) "," DONE(8) "]");
}

static void nobody_comes_for_what_was_let_go(void **state)
{
    (void)state;
    open_session();
    segue_call *call = post_call(&t.a, "[" PING(7) "," CALL(8) "]");
    http_wire_cut(&t.a);
    assert_false(call->cancelled); /* the call continues (C-7) */
    http_wire_finish(call);
    sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    const sgi_peer *peer = TAILQ_FIRST(&session->exchanges);
    assert_null(peer->conn->batches);
    assert_int_equal(peer->conn->out.len, 0);
    assert_int_equal(http_wire_post(&t.a, "[" PING(8) "]"), 200);
    http_wire_cut(&t.a);
    assert_true(TAILQ_EMPTY(&session->exchanges));
}

static void cancelled_requests_end_the_exchange(void **state)
{
    (void)state;
    for (int events = 0; events < 2; events++) {
        open_session();
        segue_call *call = post_call(&t.a, "[" CALL(7) "," PING(8) "]");
        if (events)
            sgi_serve_open_stream(t.a.conn);
        assert_int_equal(http_wire_post(&t.b, "[" CANCEL(7) "]"), 202);
        assert_true(call->cancelled);
        assert_false(http_wire_says(&t.a, "was cancelled"));
        assert_true(http_wire_says(&t.a, PONG(8)));
        assert_true(t.a.answer.answered && t.a.answer.is_events == events);
        sgi_call_free(call);
        fake_host_deliver(&t.host);
    }
}

static void session_ends_with_its_batches(void **state)
{
    (void)state;
    open_session();
    segue_call *call = post_call(&t.a, "[" CALL(7) "," PING(8) "]");
    assert_int_equal(http_wire_delete(&t.b), 204);
    assert_true(call->cancelled);
    assert_null(t.a.conn->batches);
    assert_true(t.a.conn->closing);
    sgi_call_free(call);
    fake_host_deliver(&t.host);
}

static void sessions_decide(void **state)
{
    (void)state;
    static const char batch[] = "[" PING(1) "]";
    assert_int_equal(http_wire_post(&t.b, batch), 400);
    open_session();
    assert_int_equal(http_wire_post(&t.b, "[]"), 400);
    assert_int_equal(http_wire_post(&t.b, batch), 200);
    t.b.head.version = SGI_STR("1999-01-01");
    assert_int_equal(http_wire_post(&t.b, batch), 400);
    t.b.head.version = t.a.head.version;
    assert_int_equal(http_wire_delete(&t.a), 204);
    assert_int_equal(http_wire_post(&t.b, batch), 404); /* 404 tells the client to open
                                                         * another session */
    assert_true(http_wire_open(&t.b, "2025-06-18"));
    assert_int_equal(http_wire_post(&t.b, batch), 400);
}

static void send_much(segue_call *call, size_t len)
{
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'x', len);
    assert_int_equal(sgi_call_send_text(call, (sgi_str){text, len}), SEGUE_OK);
    free(text);
}

static void answers_together_are_bounded(void **state)
{
    segue_call *calls[4];
    (void)state;
    t.host.engine.max_message = 4096;
    open_session();
    assert_int_equal(http_wire_post(&t.a, "[" CALL(1) "," CALL(2) "," CALL(3) "," CALL(
                                              4) "," PING(5) "]"),
                     0);
    for (int i = 0; i < 4; i++) {
        fake_host_deliver(&t.host);
        calls[i] = LIST_FIRST(&t.server->calls.running);
        for (int skip = i; skip; skip--)
            calls[i] = LIST_NEXT(calls[i], link);
    }
    for (int i = 0; i < 4; i++) {
        send_much(calls[i], 1800);
        http_wire_finish(calls[i]);
        assert_true(t.a.conn->batch_bytes <= 4096 + 512);
    }
    const char *text = http_wire_text(&t.a);
    assert_true(t.a.answer.answered);
    assert_int_equal(http_wire_count(text, "are together too large"), 2);
    assert_int_equal(http_wire_count(text, "\"reason\":\"limit\""), 2);
    assert_int_equal(http_wire_count(text, "xxxx\"}]}}"), 2);
    assert_int_equal(http_wire_count(text, "\"id\":"), 5);
}

/* As a stream a batch needs no bound. When a large event is asked for again, a substitute
 * is sent. */
static void large_events_are_stood_in_for(void **state)
{
    (void)state;
    open_session();
    segue_call *call = post_call(&t.a, "[" CALL(77) "," CALL(2) "]");
    segue_call *other = LIST_NEXT(call, link);
    segue_call *large =
        sgi_str_eq(sgi_str_of(call->op->served->reply->id), SGI_STR("2")) ? other : call;
    segue_call *small = large == call ? other : call;
    send_much(large, SGI_REPLAY_MAX);
    http_wire_finish(large); /* the event is kept first, then sent */
    assert_true(t.a.conn->batch_bytes > SGI_REPLAY_MAX);
    sgi_serve_open_stream(t.a.conn);
    assert_true(strlen(http_wire_text(&t.a)) > SGI_REPLAY_MAX);
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_get(&t.a, "2-0"), 0);
    assert_true(http_wire_says(&t.a, "\"id\":77,\"error\""));
    assert_true(http_wire_says(&t.a, "too large to be sent again"));
    http_wire_finish(small);
    assert_true(http_wire_says(&t.a, DONE(2)));
    assert_true(t.a.answer.answered);
}

/* ---- over a byte stream ---- */

static const char hello[] =
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2025-03-26\"}}\n";

static sgi_conn *open_stream(void)
{
    sgi_conn *conn = NULL;
    if (sgi_server_accept(t.server, &t, &conn) != SEGUE_OK)
        return NULL;
    sgi_conn_start(conn);
    sgi_conn_add_input(conn, hello, sizeof hello - 1);
    return conn;
}

/* Returns all output since the last call; the text lives until the next call. */
static const char *said(sgi_conn *conn)
{
    static char text[4096];
    sgi_buf out;
    sgi_buf_init(&out, &t.mem.mem);
    sgi_conn_take_output(conn, &out);
    assert_true(out.len < sizeof text);
    if (out.len)
        memcpy(text, out.p, out.len);
    text[out.len] = 0;
    sgi_buf_free(&out);
    return text;
}

static void feed(sgi_conn *conn, const char *line)
{
    sgi_conn_add_input(conn, line, strlen(line));
    sgi_conn_add_input(conn, "\n", 1);
}

/* Two batches are open at once, and a message in the second batch ends a call of the
 * first. The batches do not mix. */
static void batches_do_not_mix(void **state)
{
    (void)state;
    sgi_conn *conn = open_stream();
    said(conn);
    feed(conn, "[" CALL(1) "," PING(2) "]");
    segue_call *one = http_wire_call(t.server);
    feed(conn, "[" CALL(3) "," PING(4) "," CANCEL(1) ",5," PING(6) "]");
    assert_true(one->cancelled);
    assert_string_equal(said(conn), "[" PONG(2) "]\n");
    sgi_call_free(one);
    http_wire_finish(http_wire_call(t.server));
    const char *text = said(conn);
    assert_int_equal(http_wire_count(text, "\"id\":"), 3);
    assert_int_equal(http_wire_count(text, "-32600"), 1);
    assert_int_equal(http_wire_count(text, DONE(3) "]\n"), 1);
    sgi_conn_detach(conn);
}

/* ---- no memory ---- */

static const char busy[] = "[" PING(1) ",7," CALL(2) ",{\"id\":3}," CALL(4) "]";

static void end_calls(void)
{
    segue_call *call;
    while ((call = http_wire_call(t.server)))
        http_wire_finish(call);
}

static bool failed;

/* Lets time pass with memory, so that an end that failed without memory can happen. */
static void recover(void)
{
    failed = t.mem.failed > 0;
    test_mem_rearm(&t.mem);
    fake_host_advance(&t.host, 1000);
    end_calls();
}

/* Sends a line and reads all its answers; returns false when the conversation was closed
 * instead. */
static bool play_stream(void)
{
    sgi_conn *conn = open_stream();
    failed = true;
    if (!conn)
        return false;
    feed(conn, busy);
    end_calls();
    recover();
    const char *text = strchr(said(conn), '[');
    bool whole = text && http_wire_count(text, "\"jsonrpc\"") == 5;
    assert_true(whole || conn->closing || !text);
    sgi_conn_detach(conn);
    return whole;
}

static bool play_http(void)
{
    failed = true;
    if (!http_wire_open(&t.a, "2025-03-26"))
        return false;
    http_wire_post(&t.a, busy);
    end_calls();
    recover();
    bool whole = http_wire_count(http_wire_text(&t.a), "\"jsonrpc\"") == 5;
    if (t.a.conn) /* answered in full, or closed: no request waits */
        assert_true(t.a.answer.answered || t.a.conn->closing);
    http_wire_cut(&t.a);
    http_wire_delete(&t.a);
    return whole && t.a.answer.answered;
}

static void torture(bool (*play)(void))
{
    for (int from = 0; from < 2; from++)
        for (size_t n = 1; failed || n == 1; n++) {
            test_mem_rearm(&t.mem);
            if (from)
                t.mem.fail_from = n;
            else
                t.mem.fail_at = n;
            bool whole = play();
            if (t.mem.failed)
                recover(); /* plays the end that a round without memory could not reach */
            assert_true(failed || whole);
            assert_true(LIST_EMPTY(&t.server->calls.running));
            sgi_serve_free_spare_conn(t.a.spare);
            t.a.spare = NULL;
        }
    assert_true(play());
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    torture(play_stream);
    torture(play_http);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(array_is_one_json_text),
        CASE(stream_has_each_answer_as_an_event),
        CASE(client_without_event_streams_gets_the_array),
        CASE(nobody_comes_for_what_was_let_go),
        CASE(cancelled_requests_end_the_exchange),
        CASE(session_ends_with_its_batches),
        CASE(sessions_decide),
        CASE(answers_together_are_bounded),
        CASE(large_events_are_stood_in_for),
        CASE(batches_do_not_mix),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
