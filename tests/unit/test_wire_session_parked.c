/* Parked exchanges, which no connection carries: the bytes that they keep are bounded,
 * also while they grow. Requests for a stream that was given up. */
#include "engine/server/gather.h"
#include "engine/conversation/replay.h"
#include "engine/server/wire_session.h"
#include "support/http_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define MOST ((size_t)64 * 1024)

static http_rig t;

static int set_up(void **state)
{
    (void)state;
    http_rig_begin(&t, "ada");
    t.server->sessions.max_parked = MOST;
    http_rig_open(&t);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_rig_end(&t);
    return 0;
}

/* Starts a call on the stream of this number and cuts the client's connection. */
static segue_call *start_and_cut(int number)
{
    char id[16];
    snprintf(id, sizeof id, "%d", number);
    segue_call *call = http_wire_start(&t.a, id);
    sgi_serve_open_stream(t.a.conn);
    http_wire_text(&t.a);
    http_wire_cut(&t.a);
    return call;
}

static void say(segue_call *call, int n, size_t len)
{
    char text[1024 + 1];
    assert_true(len < sizeof text);
    memset(text, 'x', len);
    text[len] = '\0';
    assert_int_equal(sgi_call_progress(call, n, 0, text), SEGUE_OK);
}

static void send_much(segue_call *call)
{
    char text[8 * 1024];
    memset(text, 'x', sizeof text);
    assert_int_equal(sgi_call_send_text(call, (sgi_str){text, sizeof text}), SEGUE_OK);
}

/* Adds up the bytes that the parked exchanges of all sessions hold. */
static size_t held(void)
{
    const sgi_wire_session *session;
    const sgi_peer *peer;
    size_t bytes = 0;
    TAILQ_FOREACH(session, &t.server->sessions.by_use, by_use)
        TAILQ_FOREACH(peer, &session->exchanges, by_session)
            if (!peer->conn->transport)
                bytes += peer->conn->replay->kept.cap + peer->conn->replay->ends.cap;
    return bytes;
}

static void assert_bounded(void)
{
    assert_true(held() <= MOST);
    assert_int_equal(t.server->sessions.parked_bytes, held());
}

static int32_t get(int stream, int after)
{
    char last[32];
    snprintf(last, sizeof last, "%d-%d", stream, after);
    return http_wire_get(&t.a, last);
}

/* The streams of all sessions together keep a bounded number of bytes: the oldest are
 * given up. */
static void oldest_answers_are_given_up(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        if (i % 10 == 0)
            assert_true(http_wire_open(&t.a, "2025-11-25"));
        segue_call *call = http_wire_start(&t.a, "7");
        sgi_serve_open_stream(t.a.conn);
        send_much(call);
        http_wire_finish(call);
        http_wire_text(&t.a);
        http_wire_cut(&t.a);
        assert_bounded();
        assert_true(t.server->sessions.parked_bytes > 0);
    }
    assert_int_equal(get(11, 0), 200); /* the newest answer is kept */
}

/* Streams whose connections were cut before the first message are bounded while they
 * grow. */
static void streams_that_grow_are_bounded(void **state)
{
    segue_call *calls[8];
    (void)state;
    for (int i = 0; i < 8; i++)
        calls[i] = start_and_cut(i + 7);
    for (int n = 1; n <= 400; n++) {
        say(calls[n % 8], n, 1000);
        assert_bounded();
    }
    for (int i = 0; i < 8; i++) {
        int stream = i + 2;
        assert_int_equal(get(stream, 0), 0); /* the newest events of the stream are kept
                                              * in order */
        const char *text = http_wire_text(&t.a);
        int count = http_wire_count(text, "id: ");
        assert_in_range(count, 1, 49);
        assert_int_equal(get(stream, 50 - count), 0);
        assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: "), count);
        assert_int_equal(get(stream, 49), 0);
        assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: "), 1);
        http_wire_cut(&t.a);
        http_wire_finish(calls[i]);
        assert_int_equal(get(stream, 50), 200);
        assert_true(http_wire_says(&t.a, "\"result\""));
        http_wire_cut(&t.a);
        assert_bounded();
    }
}

/* An answer that is complete while there is no connection counts, too: the oldest answers
 * are dropped for it. */
static void answers_that_come_late_are_bounded(void **state)
{
    segue_call *calls[12];
    int lost = 0;
    (void)state;
    for (int i = 0; i < 12; i++)
        calls[i] = start_and_cut(i + 7);
    for (int i = 0; i < 12; i++) {
        send_much(calls[i]);
        http_wire_finish(calls[i]);
        assert_bounded();
    }
    for (int i = 0; i < 12; i++) {
        int32_t status = get(i + 2, 0);
        assert_true(status == (lost == i ? status : 200)); /* only the oldest answers are
                                                            * lost */
        lost += status == 410;
        if (status == 200)
            assert_true(http_wire_says(&t.a, "\"result\""));
        http_wire_cut(&t.a);
    }
    assert_in_range(lost, 1, 11);
}

/* An answer larger than the bound is dropped, and a client that asks for the answer gets
 * an error. */
static void answer_beyond_all_bounds_is_lost(void **state)
{
    (void)state;
    t.server->sessions.max_parked = 1024;
    segue_call *call = start_and_cut(7);
    send_much(call);
    http_wire_finish(call);
    assert_int_equal(t.server->sessions.parked_bytes, 0);
    assert_int_equal(held(), 0);
    assert_int_equal(get(2, 0), 410);
}

/* A stream that goes on leaves out messages that are too large. */
static void stream_goes_on_without_what_is_too_large(void **state)
{
    (void)state;
    t.server->sessions.max_parked = 512;
    segue_call *call = start_and_cut(7);
    say(call, 1, 1000);
    assert_int_equal(held(), 0);
    t.server->sessions.max_parked = MOST;
    say(call, 2, 1000);
    assert_int_equal(get(2, 0), 0);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: 2-2\n"), 1);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: "), 1);
    http_wire_finish(call);
    assert_true(http_wire_says(&t.a, "\"result\""));
}

/* Lost parts of an answer are not skipped: a client that lacks a dropped part is refused,
 * and a client that has all dropped parts goes on. The same is true after the second
 * cut. */
static void who_would_have_a_hole_is_refused(void **state)
{
    (void)state;
    char text[200];
    memset(text, 'x', sizeof text);
    t.a.head.max_replay = 1024; /* a little more than three parts */
    assert_true(http_wire_open(&t.a, "2025-11-25"));
    assert_int_equal(
        http_wire_post(&t.a, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\","
                             "\"params\":{\"name\":\"tool\",\"_meta\":{"
                             "\"allowPartial\":true}}}"),
        0);
    segue_call *call = http_wire_call(t.server);
    for (int cuts = 0; cuts < 2; cuts++) {
        for (int i = 0; i < 6; i++) { /* the parts are sent and get lost on the way */
            sgi_call_send_text(call, (sgi_str){text, sizeof text});
            fake_host_advance(&t.host, SGI_GATHER_MS); /* each text is a part of its
                                                        * own */
            fake_host_deliver(&t.host);
            http_wire_text(&t.a);
        }
        http_wire_cut(&t.a);
        assert_int_equal(get(2, 6 * cuts), 410);
        assert_int_equal(get(2, 6 * cuts + 3), 410);
        assert_int_equal(get(2, 6 * cuts + 5), 0);
        assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: "), 1);
    }
    http_wire_finish(call);
}

static void add_prompts(int count)
{
    segue_item_options options = {.struct_size = sizeof options,
                                  .on_call = (segue_call_fn)abort};
    char json[64];
    for (int i = 0; i < count; i++) {
        snprintf(json, sizeof json, "{\"name\":\"item%d\"}", i);
        assert_int_equal(
            sgi_item_add(t.server, SEGUE_ITEM_PROMPT, sgi_str_of(json), &options, NULL),
            SEGUE_OK);
    }
}

/* R-776-31: a list in pieces waits for its client to come again, and goes on behind the
 * last piece that the client has. */
static void a_list_in_pieces_goes_on(void **state)
{
    char last[64];
    (void)state;
    t.server->options.page_size = 3 * SGI_GATHER_SEGMENTS;
    add_prompts(t.server->options.page_size);
    http_wire_post(&t.a, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"prompts/list\","
                         "\"params\":{\"_meta\":{\"allowPartial\":true}}}");
    sgi_peer *peer = t.a.conn->self;
    sgi_buf_truncate(&peer->conn->out, 0); /* the first piece gets lost on the way */
    http_wire_cut(&t.a);
    assert_non_null(LIST_FIRST(&peer->replies));
    snprintf(last, sizeof last, "%d-0", 2);
    assert_int_equal(http_wire_get(&t.a, last), 0);
    const char *text = http_wire_text(&t.a);
    assert_int_equal(http_wire_count(text, "\"item"), 3 * SGI_GATHER_SEGMENTS);
    assert_int_equal(http_wire_count(text, "\"hasMore\":true"), 2);
    assert_int_equal(http_wire_count(text, "\"dev.segue/seq\":257"), 1);
    assert_int_equal(http_wire_count(text, "\"dev.segue/seq\":513"), 1);
}

/* A stream that cannot be resumed for lack of memory stays unchanged: with its transport,
 * or parked and counted. */
static void taking_up_without_memory_changes_nothing(void **state)
{
    (void)state;
    segue_call *call = start_and_cut(7);
    for (int n = 1; n <= 10; n++)
        say(call, n, 1000);
    assert_int_equal(get(2, 0), 0); /* the client has not read this stream when another
                                     * GET arrives */
    sgi_peer *peer = t.a.conn->self;
    for (int parked = 0; parked < 2; parked++) {
        int32_t streams = peer->who->use.streams;
        size_t bytes = t.server->sessions.parked_bytes;
        assert_int_equal(bytes > 0, parked);
        test_mem_rearm(&t.mem);
        t.mem.fail_from = 1;
        sgi_buf_reset(&peer->conn->out, 0);
        assert_int_equal(http_wire_get(&t.b, "2-0"), 503);
        test_mem_rearm(&t.mem);
        assert_ptr_equal(peer->conn->transport, parked ? NULL : &t.a);
        assert_int_equal(peer->who->use.streams, streams);
        assert_int_equal(t.server->sessions.parked_bytes, bytes);
        assert_bounded();
        http_wire_cut(&t.a);
    }
    assert_int_equal(http_wire_get(&t.b, "2-0"), 0);
    assert_int_equal(http_wire_count(http_wire_text(&t.b), "id: "), 10);
    assert_int_equal(t.server->sessions.parked_bytes, 0);
    http_wire_finish(call);
}

/* The stream of the session had no memory for a message while no connection read it. */
static void dead_stream_is_not_listened_to(void **state)
{
    (void)state;
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    const sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    sgi_conn *dead = session->listening->conn;
    http_wire_text(&t.a);
    http_wire_cut(&t.a);
    assert_ptr_equal(session->listening->conn, dead);
    sgi_conn_close(dead);
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    assert_false(t.a.conn->closing);
    assert_ptr_equal(session->listening->conn, t.a.conn);
}

/* A GET with an event id of an ended stream does not open the stream for listening: the
 * client would wait there for ever. */
static void stream_that_is_gone_is_refused(void **state)
{
    const sgi_wire_session *session;
    (void)state;
    segue_call *call = start_and_cut(7);
    /* this request is stream 3 */
    assert_int_equal(http_wire_legacy(&t.b, "8", "ping", ""), 200);
    http_wire_text(&t.b);
    http_wire_cut(&t.b);
    session = sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    for (int open = 0; open < 2; open++) {
        assert_int_equal(get(1, 0), 410);
        assert_int_equal(get(3, 5), 410);
        assert_true((session->listening != NULL) == open);
        if (!open)
            assert_int_equal(http_wire_get(&t.b, ""), 0);
    }
    assert_int_equal(get(2, 0), 0);
    http_wire_finish(call);
    assert_true(http_wire_says(&t.a, "\"result\""));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(oldest_answers_are_given_up),
        CASE(streams_that_grow_are_bounded),
        CASE(answers_that_come_late_are_bounded),
        CASE(answer_beyond_all_bounds_is_lost),
        CASE(stream_goes_on_without_what_is_too_large),
        CASE(taking_up_without_memory_changes_nothing),
        CASE(dead_stream_is_not_listened_to),
        CASE(stream_that_is_gone_is_refused),
        CASE(who_would_have_a_hole_is_refused),
        CASE(a_list_in_pieces_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
