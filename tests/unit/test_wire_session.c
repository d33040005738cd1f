/* Sessions of the handshake eras over HTTP (2025-11-25 basic/transports): exchanges that
 * outlive their connections, what is sent again, expiry and the bounds. Their end is
 * looked at in test_wire_session_end.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/replay.h"
#include "engine/wire_session.h"
#include "support/http_wire.h"
#include "support/test_mem.h"

#define IDLE_MS 60000

static test_mem tm;
static fake_host host;
static segue_server *server;
static http_wire a, b;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 81);
    server = fake_server_new(&host);
    http_wire_init(&a, server, "ada");
    http_wire_init(&b, server, "ada");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_wire_free(&a);
    http_wire_free(&b);
    fake_server_end(server);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

/* b speaks in the session of a. */
static void open_session(void)
{
    assert_true(http_wire_open(&a, "2025-11-25"));
    b.head.version = a.head.version;
    b.head.session = a.head.session;
}

static segue_call *start_call(http_wire *wire, const char *id)
{
    assert_int_equal(http_wire_legacy(wire, id, "tools/call", "\"name\":\"tool\""), 0);
    segue_call *call = http_wire_call(server);
    assert_non_null(call);
    return call;
}

static void finish(segue_call *call)
{
    sgi_call_complete(call, NULL);
    sgi_call_free(call);
    fake_host_deliver(&host);
}

static sgi_wire_session *session_of(const http_wire *wire)
{
    return sgi_wire_session_find(server, wire->who, wire->head.session);
}

static int count_exchanges(const http_wire *wire)
{
    const sgi_peer *peer;
    int count = 0;
    TAILQ_FOREACH(peer, &session_of(wire)->exchanges, by_session)
        count++;
    return count;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

/* ---- cut and taken up ---- */

static void stream_is_taken_up_from_each_event(void **state)
{
    char last[32], name[32];
    (void)state;
    for (int settled = 0; settled < 2; settled++) {
        open_session();
        segue_call *call = start_call(&a, "7");
        sgi_serve_open_stream(a.conn);
        assert_string_equal(http_wire_text(&a), "id: 2-0\nretry: 1000\ndata: \n\n");
        for (int i = 1; i <= 3; i++)
            sgi_call_progress(call, i, 0, NULL);
        assert_int_equal(count_of(http_wire_text(&a), "id: 2-"), 4);
        http_wire_cut(&a); /* no cancel (C-7) */
        assert_false(call->cancelled);
        assert_int_equal(sgi_call_progress(call, 4, 0, NULL), SEGUE_OK);
        if (settled)
            finish(call);
        int sent = settled ? 5 : 4;
        for (int after = 0; after <= sent; after++) {
            snprintf(last, sizeof last, "2-%d", after);
            assert_int_equal(http_wire_get(&a, last), settled ? 200 : 0);
            const char *text = http_wire_text(&a);
            assert_int_equal(count_of(text, "id: "), sent - after);
            snprintf(name, sizeof name, "id: 2-%d\ndata: {", after + 1);
            assert_int_equal(strncmp(text, name, strlen(name)) == 0, after < sent);
            assert_int_equal(count_of(text, "\"result\":"), settled && after < sent);
            assert_true(a.answer.is_events && a.answer.answered == settled);
            http_wire_cut(&a);
        }
        if (!settled)
            finish(call);
        assert_int_equal(http_wire_delete(&a), 204);
    }
}

static void second_get_takes_a_stream_over(void **state)
{
    (void)state;
    open_session();
    segue_call *call = start_call(&a, "7");
    sgi_call_progress(call, 1, 0, NULL); /* not read yet */
    int32_t closes = host.closes;
    assert_int_equal(http_wire_get(&b, "2-0"), 0);
    assert_int_equal(host.closes, closes + 1);
    assert_ptr_equal(host.closing, a.conn);
    assert_ptr_equal(a.conn, b.conn);
    assert_int_equal(count_of(http_wire_text(&b), "id: 2-1\n"), 1);
    assert_string_equal(http_wire_text(&a), "");
    http_wire_cut(&a); /* ignored: it carries it no longer */
    assert_ptr_equal(sgi_conn_transport(b.conn), &b);
    finish(call);
    assert_int_equal(count_of(http_wire_text(&b), "\"id\":7,\"result\""), 1);
    assert_int_equal(count_of(b.text.p, "id: 2-"), 2);
}

static void listening_stream_is_one_and_is_kept(void **state)
{
    (void)state;
    open_session();
    assert_int_equal(http_wire_get(&a, ""), 0);
    assert_string_equal(http_wire_text(&a), "id: 2-0\nretry: 1000\ndata: \n\n");
    assert_int_equal(http_wire_get(&b, ""), 409);
    assert_int_equal(http_wire_get(&b, "2-77"), 409); /* unknown = none (R-975-18) */
    segue_call *call = start_call(&b, "7");
    sgi_serve_open_stream(b.conn);
    sgi_tools_changed(server);
    assert_int_equal(count_of(http_wire_text(&a), "list_changed"), 1);
    assert_int_equal(count_of(http_wire_text(&b), "list_changed"), 0); /* not both */
    http_wire_cut(&a);
    sgi_tools_changed(server);
    assert_int_equal(http_wire_get(&a, "2-1"), 0);
    assert_int_equal(count_of(http_wire_text(&a), "id: 2-2\n"), 1);
    http_wire_cut(&a);
    sgi_tools_changed(server);
    assert_int_equal(http_wire_get(&a, ""), 0); /* asks for nothing old */
    assert_string_equal(http_wire_text(&a), "");
    sgi_tools_changed(server);
    assert_int_equal(count_of(http_wire_text(&a), "id: 2-4\n"), 1);
    finish(call);
    assert_int_equal(count_of(http_wire_text(&b), "\"id\":7,\"result\""), 1);
}

static void unknown_events_count_as_none(void **state)
{
    static const char *const ids[] = {"9-1", "2-5", "x", "2-", "0-0", "1-0"};
    (void)state;
    open_session();
    segue_call *call = start_call(&a, "7");
    sgi_call_progress(call, 1, 0, NULL);
    http_wire_cut(&a);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        assert_int_equal(http_wire_get(&a, ids[i]), 0);
        assert_ptr_equal(session_of(&a)->listening->conn, a.conn);
        assert_int_equal(count_of(http_wire_text(&a), "progress"), 0);
        http_wire_cut(&a);
    }
    finish(call);
}

static void answer_without_a_stream_is_for_nobody(void **state)
{
    (void)state;
    open_session();
    segue_call *call = start_call(&a, "7");
    http_wire_cut(&a); /* nothing was said: there is no event to name */
    sgi_call_progress(call, 1, 0, NULL);
    assert_false(call->cancelled);
    finish(call);
    assert_int_equal(count_exchanges(&a), 1);
    assert_int_equal(TAILQ_FIRST(&session_of(&a)->exchanges)->conn->out.len, 0);
    assert_int_equal(http_wire_legacy(&b, "8", "ping", ""), 200);
    http_wire_cut(&b);
    assert_int_equal(count_exchanges(&a), 0);
}

static void settled_streams_are_bounded(void **state)
{
    char last[32];
    (void)state;
    open_session();
    for (int i = 0; i < 40; i++) {
        segue_call *call = start_call(&a, "7");
        sgi_serve_open_stream(a.conn);
        finish(call);
        http_wire_text(&a);
        http_wire_cut(&a);
        assert_true(count_exchanges(&a) <= 16);
    }
    snprintf(last, sizeof last, "%d-0", 41); /* the newest ones stay */
    assert_int_equal(http_wire_get(&a, last), 200);
    http_wire_cut(&a);
    assert_int_equal(http_wire_get(&a, "26-0"), 200);
    assert_int_equal(http_wire_get(&a, "25-0"), 0); /* a stream to listen */
}

static void requests_in_flight_are_those_of_the_session(void **state)
{
    (void)state;
    server->options.max_requests = 2;
    open_session();
    segue_call *one = start_call(&a, "7");
    assert_int_equal(http_wire_legacy(&b, "7", "ping", ""), 400); /* C-3 */
    assert_non_null(strstr(http_wire_text(&b), "in flight"));
    http_wire_cut(&a);
    segue_call *other = start_call(&a, "8");
    http_wire_cut(&a);
    assert_int_equal(http_wire_legacy(&b, "9", "tools/call", "\"name\":\"tool\""), 200);
    assert_non_null(strstr(http_wire_text(&b), "Too many requests in flight"));
    finish(one);
    finish(other);
    assert_int_equal(http_wire_legacy(&b, "7", "ping", ""), 200);
}

/* ---- cancelled ---- */

static void cancelled_exchange_ends(void **state)
{
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":"
                                 "\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":7}}";
    (void)state;
    for (int parked = 0; parked < 2; parked++) {
        open_session();
        segue_call *call = start_call(&a, "7");
        sgi_serve_open_stream(a.conn);
        http_wire_text(&a);
        if (parked)
            http_wire_cut(&a);
        assert_int_equal(http_wire_post(&b, cancel), 202);
        assert_true(call->cancelled);
        sgi_call_free(call);
        fake_host_deliver(&host);
        if (!parked)
            http_wire_text(&a);
        assert_true(parked || a.answer.answered);
        http_wire_cut(&a);
        fake_host_advance(&host, IDLE_MS + 1); /* nothing holds the session */
        assert_int_equal(server->sessions.count, 0);
    }
}

/* ---- expiry and bounds ---- */

static void session_expires_when_it_is_not_used(void **state)
{
    (void)state;
    open_session();
    fake_host_advance(&host, IDLE_MS - 1);
    assert_int_equal(http_wire_legacy(&a, "2", "ping", ""), 200);
    http_wire_cut(&a);
    fake_host_advance(&host, IDLE_MS - 1);
    assert_int_equal(server->sessions.count, 1);
    fake_host_advance(&host, 1);
    assert_int_equal(server->sessions.count, 0);
    assert_int_equal(http_wire_legacy(&a, "2", "ping", ""), 404);
    assert_int_equal(http_wire_get(&a, "2-0"), 404);
    assert_int_equal(http_wire_delete(&a), 404);
}

static void what_is_in_use_does_not_expire(void **state)
{
    (void)state;
    open_session();
    assert_int_equal(http_wire_get(&a, ""), 0);
    segue_call *call = start_call(&b, "7");
    fake_host_advance(&host, 10 * IDLE_MS);
    http_wire_cut(&b); /* the end of an exchange is use as well */
    finish(call);
    fake_host_advance(&host, 10 * IDLE_MS); /* a stream to listen is open */
    assert_int_equal(server->sessions.count, 1);
    fake_host_advance(&host, IDLE_MS / 2);
    http_wire_cut(&a);
    fake_host_advance(&host, IDLE_MS - 1);
    assert_int_equal(server->sessions.count, 1);
    fake_host_advance(&host, IDLE_MS);
    assert_int_equal(server->sessions.count, 0);
}

static void idle_sessions_make_room_and_busy_ones_do_not(void **state)
{
    (void)state;
    a.head.max_sessions = b.head.max_sessions = 2;
    open_session();
    segue_call *call = start_call(&a, "7"); /* the oldest, and busy */
    assert_true(http_wire_open(&b, "2025-06-18"));
    char idle[sizeof b.session];
    memcpy(idle, b.session, sizeof idle);
    assert_true(http_wire_open(&b, "2025-06-18"));
    assert_int_equal(server->sessions.count, 2);
    assert_null(sgi_wire_session_find(server, b.who, sgi_str_of(idle)));
    assert_int_equal(http_wire_get(&b, ""), 0); /* now both are busy */
    http_wire c;
    http_wire_init(&c, server, "cem");
    c.head.max_sessions = 2;
    assert_int_equal(
        http_wire_legacy(&c, "1", "initialize", "\"protocolVersion\":\"2025-11-25\""),
        503);
    http_wire_cut(&b);
    assert_true(http_wire_open(&c, "2025-11-25"));
    assert_int_equal(server->sessions.count, 2);
    http_wire_free(&c);
    finish(call);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(stream_is_taken_up_from_each_event),
        CASE(second_get_takes_a_stream_over),
        CASE(listening_stream_is_one_and_is_kept),
        CASE(unknown_events_count_as_none),
        CASE(answer_without_a_stream_is_for_nobody),
        CASE(settled_streams_are_bounded),
        CASE(requests_in_flight_are_those_of_the_session),
        CASE(cancelled_exchange_ends),
        CASE(session_expires_when_it_is_not_used),
        CASE(what_is_in_use_does_not_expire),
        CASE(idle_sessions_make_room_and_busy_ones_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
