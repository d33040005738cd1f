/* Sessions of the handshake eras over HTTP (2025-11-25 basic/transports): exchanges that
 * outlive their connections, replay of events, expiry and the bounds.
 * test_wire_session_end.c tests the end of sessions, test_wire_session_parked.c the
 * exchanges without a connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/conversation/replay.h"
#include "engine/server/wire_session.h"
#include "support/http_wire.h"

#define IDLE_MS 60000

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

static sgi_wire_session *session_of(const http_wire *wire)
{
    return sgi_wire_session_find(t.server, wire->who, wire->head.session);
}

static int count_exchanges(const http_wire *wire)
{
    const sgi_peer *peer;
    int count = 0;
    TAILQ_FOREACH(peer, &session_of(wire)->exchanges, by_session)
        count++;
    return count;
}

/* ---- cut and taken up ---- */

static void stream_is_taken_up_from_each_event(void **state)
{
    char last[32], name[32];
    (void)state;
    for (int settled = 0; settled < 2; settled++) {
        http_rig_open(&t);
        segue_call *call = http_wire_start(&t.a, "7");
        sgi_serve_open_stream(t.a.conn);
        assert_string_equal(http_wire_text(&t.a), "id: 2-0\ndata: \n\n");
        for (int i = 1; i <= 3; i++)
            sgi_call_progress(call, i, 0, NULL);
        assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: 2-"), 4);
        http_wire_cut(&t.a); /* a lost connection does not cancel the call (C-7) */
        assert_false(call->cancelled);
        assert_int_equal(sgi_call_progress(call, 4, 0, NULL), SEGUE_OK);
        if (settled)
            http_wire_finish(call);
        int sent = settled ? 5 : 4;
        for (int after = 0; after <= sent; after++) {
            snprintf(last, sizeof last, "2-%d", after);
            assert_int_equal(http_wire_get(&t.a, last), settled ? 200 : 0);
            const char *text = http_wire_text(&t.a);
            assert_int_equal(http_wire_count(text, "id: "), sent - after);
            snprintf(name, sizeof name, "id: 2-%d\ndata: {", after + 1);
            assert_int_equal(strncmp(text, name, strlen(name)) == 0, after < sent);
            assert_int_equal(http_wire_count(text, "\"result\":"),
                             settled && after < sent);
            assert_true(t.a.answer.is_events && t.a.answer.answered == settled);
            http_wire_cut(&t.a);
        }
        if (!settled)
            http_wire_finish(call);
        assert_int_equal(http_wire_delete(&t.a), 204);
    }
}

static void second_get_takes_a_stream_over(void **state)
{
    (void)state;
    http_rig_open(&t);
    segue_call *call = http_wire_start(&t.a, "7");
    sgi_call_progress(call, 1, 0, NULL); /* the client has not read this progress yet */
    int32_t closes = t.host.closes;
    assert_int_equal(http_wire_get(&t.b, "2-0"), 0);
    assert_int_equal(t.host.closes, closes + 1);
    assert_ptr_equal(t.host.closing, t.a.conn);
    assert_ptr_equal(t.a.conn, t.b.conn);
    assert_int_equal(http_wire_count(http_wire_text(&t.b), "id: 2-1\n"), 1);
    assert_string_equal(http_wire_text(&t.a), "");
    http_wire_cut(&t.a); /* this cut has no effect, because the exchange has moved to wire
                          * b */
    assert_ptr_equal(sgi_conn_transport(t.b.conn), &t.b);
    http_wire_finish(call);
    assert_int_equal(http_wire_count(http_wire_text(&t.b), "\"id\":7,\"result\""), 1);
    assert_int_equal(http_wire_count(t.b.text.p, "id: 2-"), 2);
}

static void listening_stream_is_one_and_is_kept(void **state)
{
    (void)state;
    http_rig_open(&t);
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    assert_string_equal(http_wire_text(&t.a), "id: 2-0\ndata: \n\n");
    assert_int_equal(http_wire_get(&t.b, ""), 409);
    assert_int_equal(http_wire_get(&t.b, "2-77"), 409); /* an unknown event id is treated
                                                         * as no id (R-975-18) */
    segue_call *call = http_wire_start(&t.b, "7");
    sgi_serve_open_stream(t.b.conn);
    sgi_items_report_changed(t.server, SEGUE_ITEM_TOOL);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "list_changed"), 1);
    assert_int_equal(http_wire_count(http_wire_text(&t.b), "list_changed"),
                     0); /* the change is sent on one stream only */
    http_wire_cut(&t.a);
    sgi_items_report_changed(t.server, SEGUE_ITEM_TOOL);
    assert_int_equal(http_wire_get(&t.a, "2-1"), 0);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: 2-2\n"), 1);
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_get(&t.a, ""), 0); /* the empty id asks for no old
                                                   * events; the client may have missed
                                                   * a change, so it hears of one */
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: "), 1);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: 2-3\n"), 1);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "list_changed"), 1);
    http_wire_cut(&t.a);
    sgi_items_report_changed(t.server, SEGUE_ITEM_TOOL); /* the next stream reports this
                                                   * change */
    sgi_items_report_changed(t.server, SEGUE_ITEM_TOOL);
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "id: 2-4\n"), 1);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "list_changed"), 1);
    http_wire_finish(call);
    assert_int_equal(http_wire_count(http_wire_text(&t.b), "\"id\":7,\"result\""), 1);
}

static void unknown_events_count_as_none(void **state)
{
    static const char *const ids[] = {"9-1", "2-5", "x", "2-", "0-0"};
    (void)state;
    http_rig_open(&t);
    segue_call *call = http_wire_start(&t.a, "7");
    sgi_call_progress(call, 1, 0, NULL);
    http_wire_cut(&t.a);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        assert_int_equal(http_wire_get(&t.a, ids[i]), 0);
        assert_ptr_equal(session_of(&t.a)->listening->conn, t.a.conn);
        assert_int_equal(http_wire_count(http_wire_text(&t.a), "progress"), 0);
        http_wire_cut(&t.a);
    }
    http_wire_finish(call);
}

/* An event id is valid in its session only, not in another session of the same
 * principal. */
static void events_of_another_session_count_as_none(void **state)
{
    static const char *const ids[] = {"2-0",
                                      "2-1",
                                      "2-2",
                                      "3-1",
                                      "-2-1",
                                      "2--1",
                                      "02-00000000000000000001",
                                      "4294967298-1",
                                      "18446744073709551618-1",
                                      "2-18446744073709551617",
                                      "\"2-1\"",
                                      " 2-1"};
    static const char *const names[] = {"ada", "bob"};
    (void)state;
    http_rig_open(&t);
    segue_call *call = http_wire_start(&t.a, "7");
    sgi_call_progress(call, 1, 0, "the secret");
    http_wire_cut(&t.a);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        http_wire c;
        http_wire_init(&c, t.server, names[i]);
        assert_true(http_wire_open(&c, "2025-11-25"));
        for (size_t j = 0; j < sizeof ids / sizeof *ids; j++) {
            int32_t status = http_wire_get(&c, ids[j]);
            assert_true(status == 0 || status == 404);
            assert_false(http_wire_says(&c, "secret"));
            http_wire_cut(&c);
        }
        http_wire_free(&c);
    }
    assert_int_equal(http_wire_get(&t.a, "2-0"), 0);
    assert_true(http_wire_says(&t.a, "the secret"));
    http_wire_cut(&t.a);
    http_wire_finish(call);
}

static void answer_without_a_stream_is_for_nobody(void **state)
{
    (void)state;
    http_rig_open(&t);
    segue_call *call = http_wire_start(&t.a, "7");
    http_wire_cut(&t.a); /* nothing was sent, so the client knows no event id */
    sgi_call_progress(call, 1, 0, NULL);
    assert_false(call->cancelled);
    http_wire_finish(call);
    assert_int_equal(count_exchanges(&t.a), 1);
    assert_int_equal(TAILQ_FIRST(&session_of(&t.a)->exchanges)->conn->out.len, 0);
    assert_int_equal(http_wire_legacy(&t.b, "8", "ping", ""), 200);
    http_wire_cut(&t.b);
    assert_int_equal(count_exchanges(&t.a), 0);
}

static void settled_streams_are_bounded(void **state)
{
    char last[32];
    (void)state;
    http_rig_open(&t);
    for (int i = 0; i < 40; i++) {
        segue_call *call = http_wire_start(&t.a, "7");
        sgi_serve_open_stream(t.a.conn);
        http_wire_finish(call);
        http_wire_text(&t.a);
        http_wire_cut(&t.a);
        assert_true(count_exchanges(&t.a) <= 16);
    }
    snprintf(last, sizeof last, "%d-0", 41); /* the events of the newest exchanges are
                                              * kept */
    assert_int_equal(http_wire_get(&t.a, last), 200);
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_get(&t.a, "26-0"), 200);
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_get(&t.a, "25-0"), 410);
}

static void requests_in_flight_are_those_of_the_session(void **state)
{
    (void)state;
    t.server->options.max_requests = 2;
    http_rig_open(&t);
    segue_call *one = http_wire_start(&t.a, "7");
    /* C-3: the id of a running request is refused */
    assert_int_equal(http_wire_legacy(&t.b, "7", "ping", ""), 400);
    assert_non_null(strstr(http_wire_text(&t.b), "in flight"));
    http_wire_cut(&t.a);
    segue_call *other = http_wire_start(&t.a, "8");
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_legacy(&t.b, "9", "tools/call", "\"name\":\"tool\""), 200);
    assert_non_null(strstr(http_wire_text(&t.b), "Too many requests in flight"));
    http_wire_finish(one);
    http_wire_finish(other);
    assert_int_equal(http_wire_legacy(&t.b, "7", "ping", ""), 200);
}

/* ---- cancelled ---- */

static void cancelled_exchange_ends(void **state)
{
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":"
                                 "\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":7}}";
    (void)state;
    for (int parked = 0; parked < 2; parked++) {
        http_rig_open(&t);
        segue_call *call = http_wire_start(&t.a, "7");
        sgi_serve_open_stream(t.a.conn);
        http_wire_text(&t.a);
        if (parked)
            http_wire_cut(&t.a);
        assert_int_equal(http_wire_post(&t.b, cancel), 202);
        assert_true(call->cancelled);
        sgi_call_free(call);
        fake_host_deliver(&t.host);
        if (!parked)
            http_wire_text(&t.a);
        assert_true(parked || t.a.answer.answered);
        http_wire_cut(&t.a);
        fake_host_advance(&t.host, IDLE_MS + 1); /* the session is idle, so it expires */
        assert_int_equal(t.server->sessions.by_id.count, 0);
    }
}

/* ---- hung up ---- */

static void hung_up_stream_goes_on_at_the_next(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) { /* late: the transport detaches later */
        http_rig_open(&t);
        segue_call *call = http_wire_start(&t.a, "7");
        assert_int_equal(sgi_call_hang_up(call, 700), SEGUE_OK);
        sgi_call_progress(call, 1, 0, NULL);
        assert_string_equal(http_wire_text(&t.a), "id: 2-0\ndata: \n\n"
                                                  "retry: 700\n\n");
        assert_true(t.a.answer.is_events && t.a.answer.answered);
        assert_int_equal(t.a.answer.status, 200);
        /* The client is disconnected already, so nothing is sent. */
        assert_int_equal(sgi_call_hang_up(call, 5), SEGUE_OK);
        assert_string_equal(http_wire_text(&t.a), "id: 2-0\ndata: \n\n"
                                                  "retry: 700\n\n");
        if (!late)
            http_wire_cut(&t.a);
        assert_false(call->cancelled);
        sgi_call_progress(call, 2, 0, NULL);
        assert_int_equal(sgi_call_hang_up(call, 5), SEGUE_OK);
        assert_int_equal(http_wire_get(&t.b, "2-0"), 0);
        assert_int_equal(http_wire_count(http_wire_text(&t.b), "id: 2-"), 2);
        assert_false(t.b.answer.answered);
        /* the tool hangs up a second time */
        assert_int_equal(sgi_call_hang_up(call, 0), SEGUE_OK);
        http_wire_finish(call);
        assert_int_equal(http_wire_count(http_wire_text(&t.b), "retry: 1000\n\n"), 1);
        assert_int_equal(http_wire_count(t.b.text.p, "\"result\""), 0);
        assert_true(t.b.answer.answered);
        http_wire_cut(&t.b);
        assert_int_equal(http_wire_get(&t.b, "2-2"), 200);
        assert_int_equal(http_wire_count(http_wire_text(&t.b), "\"id\":7,\"result\""), 1);
        http_wire_cut(&t.b);
        http_wire_cut(&t.a);
        assert_int_equal(http_wire_delete(&t.a), 204);
    }
}

/* A call cannot hang up when its client could not resume the stream. */
static void hanging_up_needs_an_event_to_name(void **state)
{
    (void)state;
    http_rig_open(&t);
    t.a.head.takes_events = false;
    segue_call *call = http_wire_start(&t.a, "7");
    assert_int_equal(sgi_call_hang_up(call, 1), SEGUE_E_UNSUPPORTED);
    assert_int_equal(sgi_call_complete(call, NULL), SEGUE_OK);
    assert_int_equal(sgi_call_hang_up(call, 1), SEGUE_E_TERMINAL);
    sgi_call_free(call);
    assert_true(http_wire_text(&t.a)[0] == '{' && t.a.answer.answered);
    t.a.head.takes_events = true;

    assert_true(http_wire_open(&t.a, "2025-06-18"));
    call = http_wire_start(&t.a, "7");
    assert_int_equal(sgi_call_hang_up(call, 1), SEGUE_E_UNSUPPORTED);
    http_wire_text(&t.a);
    assert_true(t.a.answer.open);
    sgi_call_progress(call, 1, 0, NULL);
    assert_int_equal(sgi_call_hang_up(call, 1), SEGUE_OK);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "retry: 1\n\n"), 1);
    assert_true(t.a.answer.answered);
    http_wire_cut(&t.a);
    http_wire_finish(call);

    t.b.head.session = (sgi_str){0};
    t.b.head.name = SGI_STR("tool");
    assert_int_equal(http_wire_modern(&t.b, "5", "tools/call", "\"name\":\"tool\"", "{}"),
                     0);
    call = http_wire_call(t.server);
    assert_int_equal(sgi_call_hang_up(call, 1), SEGUE_E_UNSUPPORTED);
    http_wire_text(&t.b);
    assert_true(t.b.answer.open);
    http_wire_cut(&t.b); /* the lost connection cancels this call */
    assert_int_equal(sgi_call_hang_up(call, 1), SEGUE_E_TERMINAL);
    sgi_call_free(call);
    fake_host_deliver(&t.host);
}

static void hanging_up_without_memory_changes_nothing(void **state)
{
    (void)state;
    http_rig_open(&t);
    segue_call *call = http_wire_start(&t.a, "7");
    sgi_buf_reset(&t.a.conn->out, 0);
    test_mem_rearm(&t.mem);
    t.mem.fail_from = 1;
    assert_int_equal(sgi_call_hang_up(call, 1), SEGUE_E_NOMEM);
    test_mem_rearm(&t.mem);
    http_wire_text(&t.a);
    assert_false(t.a.answer.answered);
    http_wire_finish(call);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "\"id\":7,\"result\""), 1);
}

/* ---- expiry and bounds ---- */

static void session_expires_when_it_is_not_used(void **state)
{
    (void)state;
    http_rig_open(&t);
    fake_host_advance(&t.host, IDLE_MS - 1);
    assert_int_equal(http_wire_legacy(&t.a, "2", "ping", ""), 200);
    http_wire_cut(&t.a);
    fake_host_advance(&t.host, IDLE_MS - 1);
    assert_int_equal(t.server->sessions.by_id.count, 1);
    fake_host_advance(&t.host, 1);
    assert_int_equal(t.server->sessions.by_id.count, 0);
    assert_int_equal(http_wire_legacy(&t.a, "2", "ping", ""), 404);
    assert_int_equal(http_wire_get(&t.a, "2-0"), 404);
    assert_int_equal(http_wire_delete(&t.a), 404);
}

static void what_is_in_use_does_not_expire(void **state)
{
    (void)state;
    http_rig_open(&t);
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    segue_call *call = http_wire_start(&t.b, "7");
    fake_host_advance(&t.host, 10 * IDLE_MS);
    http_wire_cut(&t.b); /* the end of an exchange counts as use of the session, too */
    http_wire_finish(call);
    fake_host_advance(&t.host, 10 * IDLE_MS); /* the open stream for listening keeps the
                                               * session */
    assert_int_equal(t.server->sessions.by_id.count, 1);
    fake_host_advance(&t.host, IDLE_MS / 2);
    http_wire_cut(&t.a);
    fake_host_advance(&t.host, IDLE_MS - 1);
    assert_int_equal(t.server->sessions.by_id.count, 1);
    fake_host_advance(&t.host, IDLE_MS);
    assert_int_equal(t.server->sessions.by_id.count, 0);
}

static void idle_sessions_make_room_and_busy_ones_do_not(void **state)
{
    (void)state;
    t.a.head.max_sessions = t.b.head.max_sessions = 2;
    http_rig_open(&t);
    segue_call *call = http_wire_start(&t.a, "7"); /* the oldest session has a running
                                                    * call */
    assert_true(http_wire_open(&t.b, "2025-06-18"));
    char idle[sizeof t.b.session];
    memcpy(idle, t.b.session, sizeof idle);
    assert_true(http_wire_open(&t.b, "2025-06-18"));
    assert_int_equal(t.server->sessions.by_id.count, 2);
    assert_null(sgi_wire_session_find(t.server, t.b.who, sgi_str_of(idle)));
    assert_int_equal(http_wire_get(&t.b, ""), 0); /* now both sessions are busy */
    http_wire c;
    http_wire_init(&c, t.server, "cem");
    c.head.max_sessions = 2;
    assert_int_equal(
        http_wire_legacy(&c, "1", "initialize", "\"protocolVersion\":\"2025-11-25\""),
        503);
    assert_string_equal(c.verdict.problem, "Too many sessions");
    assert_int_equal(c.verdict.limit.id, SGI_LIMIT_MAX_SESSIONS);
    assert_int_equal(c.verdict.limit.value, 2);
    http_wire_cut(&t.b);
    assert_true(http_wire_open(&c, "2025-11-25"));
    assert_int_equal(t.server->sessions.by_id.count, 2);
    http_wire_free(&c);
    http_wire_finish(call);
}

/* A principal that opens many sessions displaces only its own sessions. */
static void own_sessions_make_room_first(void **state)
{
    (void)state;
    http_wire c;
    http_wire_init(&c, t.server, "cem");
    t.a.head.max_sessions = c.head.max_sessions = 3;
    http_rig_open(&t); /* the oldest session of all is idle */
    for (int i = 0; i < 10; i++)
        assert_true(http_wire_open(&c, "2025-11-25"));
    assert_int_equal(t.server->sessions.by_id.count, 3);
    assert_int_equal(http_wire_legacy(&t.a, "2", "ping", ""), 200);
    http_wire_free(&c);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(stream_is_taken_up_from_each_event),
        CASE(second_get_takes_a_stream_over),
        CASE(listening_stream_is_one_and_is_kept),
        CASE(unknown_events_count_as_none),
        CASE(events_of_another_session_count_as_none),
        CASE(answer_without_a_stream_is_for_nobody),
        CASE(settled_streams_are_bounded),
        CASE(requests_in_flight_are_those_of_the_session),
        CASE(cancelled_exchange_ends),
        CASE(hung_up_stream_goes_on_at_the_next),
        CASE(hanging_up_needs_an_event_to_name),
        CASE(hanging_up_without_memory_changes_nothing),
        CASE(session_expires_when_it_is_not_used),
        CASE(what_is_in_use_does_not_expire),
        CASE(idle_sessions_make_room_and_busy_ones_do_not),
        CASE(own_sessions_make_room_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
