/* The end of sessions of the handshake eras over HTTP: by DELETE, by the end of the
 * server, by freeing its handle, and with missing memory. */
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

/* ---- the end ---- */

static void session_ends_with_calls_in_flight(void **state)
{
    (void)state;
    http_rig_open(&t);
    segue_call *parked = http_wire_start(&t.a, "7");
    http_wire_cut(&t.a);
    segue_call *carried = http_wire_start(&t.a, "8");
    http_wire answered;
    http_wire_init(&answered, t.server, "ada");
    answered.head = t.a.head;
    assert_int_equal(http_wire_legacy(&answered, "9", "ping", ""), 200);
    assert_int_equal(http_wire_delete(&t.b), 204);
    assert_true(parked->cancelled && carried->cancelled);
    assert_ptr_equal(t.host.closing, t.a.conn);
    sgi_serve_get_answer_state(t.a.conn, &t.a.answer);
    assert_false(t.a.answer.answered || t.a.answer.resumable);
    /* The answer to request 9 was complete before the session ended. */
    assert_non_null(strstr(http_wire_text(&answered), "\"id\":9"));
    http_wire_cut(&t.a);
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_legacy(&t.a, "2", "ping", ""), 404);
    http_wire_free(&answered);
    fake_host_deliver(&t.host);
    sgi_call_free(parked);
    sgi_call_free(carried);
}

static void strangers_see_no_session(void **state)
{
    (void)state;
    http_rig_open(&t);
    segue_call *call = http_wire_start(&t.a, "7");
    sgi_serve_open_stream(t.a.conn);
    http_wire eve;
    http_wire_init(&eve, t.server, "eve");
    eve.head.version = t.a.head.version;
    for (int known = 0; known < 2; known++) { /* the same answer for known and unknown
                                               * sessions */
        eve.head.session = known ? t.a.head.session : SGI_STR("no-such-session");
        assert_int_equal(http_wire_legacy(&eve, "2", "ping", ""), 404);
        assert_string_equal(eve.verdict.problem, "Unknown session: Mcp-Session-Id is not "
                                                 "known here, or its session has ended");
        assert_int_equal(http_wire_get(&eve, "2-0"), 404);
        assert_string_equal(eve.verdict.problem, "Unknown session: Mcp-Session-Id is not "
                                                 "known here, or its session has ended");
        assert_int_equal(http_wire_delete(&eve), 404);
        assert_int_equal(http_wire_post(&eve, "{\"jsonrpc\":\"2.0\",\"method\":"
                                              "\"notifications/cancelled\",\"params\":"
                                              "{\"requestId\":7}}"),
                         404);
    }
    assert_false(call->cancelled);
    http_wire_free(&eve);
    http_wire_finish(call);
}

/* A DELETE is refused for the same reasons as the other requests of a session. */
static void refused_delete_says_why(void **state)
{
    (void)state;
    http_rig_open(&t);
    sgi_str session = t.a.head.session;
    t.a.head.version = SGI_STR("1999-01-01");
    assert_int_equal(http_wire_delete(&t.a), 400);
    assert_string_equal(t.a.verdict.problem, "MCP-Protocol-Version names a version that "
                                             "this server does not know");
    t.a.head.session = (sgi_str){0};
    assert_int_equal(http_wire_delete(&t.a), 405);
    assert_string_equal(t.a.verdict.problem, "No session can be ended: the request has "
                                             "no Mcp-Session-Id");
    t.a.head.session = session;
    t.a.head.version = t.b.head.version;
    assert_int_equal(http_wire_delete(&t.a), 204);
}

static void initialize_that_fails_leaves_no_session(void **state)
{
    (void)state;
    assert_int_equal(http_wire_legacy(&t.a, "1", "initialize", ""), 200);
    assert_non_null(strstr(http_wire_text(&t.a), "-32602"));
    assert_null(t.a.answer.session);
    http_wire_cut(&t.a);
    assert_int_equal(t.server->sessions.by_id.count, 0);
}

static void server_closes_and_what_is_awaited_is_answered(void **state)
{
    (void)state;
    http_rig_open(&t);
    segue_call *parked = http_wire_start(&t.b, "7");
    http_wire_cut(&t.b);
    assert_int_equal(http_wire_get(&t.b, ""), 0);
    segue_call *carried = http_wire_start(&t.a, "8");
    sgi_server_close(t.server);
    assert_int_equal(t.server->sessions.by_id.count, 0);
    assert_true(parked->cancelled);
    assert_false(carried->cancelled);
    assert_ptr_equal(t.host.closing, t.b.conn);
    sgi_call_progress(carried, 1, 0, NULL);
    http_wire_finish(carried);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "\"id\":8,\"result\""), 1);
    assert_true(t.a.answer.answered && !t.a.answer.resumable);
    assert_int_equal(http_wire_get(&t.b, ""), 503);
    assert_int_equal(
        http_wire_legacy(&t.b, "1", "initialize", "\"protocolVersion\":\"2025-11-25\""),
        503);
    fake_host_deliver(&t.host);
    sgi_call_free(parked);
}

static void sessions_do_not_hold_a_server_that_nobody_reaches(void **state)
{
    fake_host other;
    test_mem mem;
    (void)state;
    test_mem_init(&mem);
    fake_host_init(&other, &mem.mem, 82);
    segue_server *lone = fake_server_new(&other);
    http_wire wire;
    http_wire_init(&wire, lone, "ada");
    assert_true(http_wire_open(&wire, "2025-11-25"));
    http_wire_legacy(&wire, "7", "tools/call", "\"name\":\"tool\"");
    segue_call *call = http_wire_call(lone);
    http_wire_free(&wire);
    /* the server has no handle and no listener any more */
    sgi_server_on_handle_freed(lone);
    assert_true(call->cancelled);
    sgi_call_free(call);
    fake_host_deliver(&other);
    fake_host_free(&other);
    assert_int_equal(mem.live, 0);
}

/* ---- no memory ---- */

static void initialize_without_memory_leaves_no_session(void **state)
{
    bool failed = true;
    (void)state;
    for (size_t n = 1; failed; n++) {
        test_mem_rearm(&t.mem);
        t.mem.fail_at = n;
        int32_t status = http_wire_legacy(&t.a, "1", "initialize",
                                          "\"protocolVersion\":\"2025-11-25\"");
        failed = t.mem.failed > 0;
        test_mem_rearm(&t.mem);
        const sgi_peer *peer = t.a.conn ? t.a.conn->self : NULL;
        assert_int_equal(t.server->sessions.by_id.count, peer && peer->session ? 1 : 0);
        assert_true(t.a.conn || status == 503);
        http_wire_text(&t.a);
        http_wire_cut(&t.a);
        fake_host_advance(&t.host, 2 * IDLE_MS);
    }
}

static void stream_that_lost_a_message_is_not_taken_up(void **state)
{
    (void)state;
    http_rig_open(&t);
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    http_wire_text(&t.a);
    test_mem_rearm(&t.mem);
    t.mem.fail_from = 1;
    sgi_items_report_changed(t.server, SEGUE_ITEM_TOOL);
    http_wire_text(&t.a);
    test_mem_rearm(&t.mem);
    assert_ptr_equal(t.host.closing, t.a.conn);
    assert_int_equal(http_wire_get(&t.b, ""), 409); /* refused: wire a still carries the
                                                     * old stream */
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_get(&t.b, "2-0"), 0); /* a new stream opens */
    assert_int_equal(http_wire_count(http_wire_text(&t.b), "id: 3-0\n"), 1);
    /* Event 3-1 reports the change. */
    assert_int_equal(http_wire_count(t.b.text.p, "id: 3-1\n"), 1);
    sgi_items_report_changed(t.server, SEGUE_ITEM_TOOL);
    assert_int_equal(http_wire_count(http_wire_text(&t.b), "id: 3-2\n"), 1);
}

static void taking_up_without_memory_loses_nothing(void **state)
{
    (void)state;
    for (int carried = 0; carried < 2; carried++) {
        http_rig_open(&t);
        segue_call *call = http_wire_start(&t.a, "7");
        sgi_call_progress(call, 1, 0, NULL);
        if (!carried)
            http_wire_cut(&t.a);
        else
            http_wire_text(&t.a);
        test_mem_rearm(&t.mem);
        t.mem.fail_from = 1;
        assert_int_equal(http_wire_get(&t.b, "2-0"), 503);
        test_mem_rearm(&t.mem);
        http_wire_cut(&t.a);
        http_wire_finish(call);
        assert_int_equal(http_wire_get(&t.b, "2-0"), 200);
        assert_int_equal(http_wire_count(http_wire_text(&t.b), "id: 2-"), 2);
        http_wire_cut(&t.b);
        assert_int_equal(http_wire_delete(&t.a), 204);
    }
}

/* Whichever allocation fails, nothing crashes, nothing leaks, and afterwards everything
 * works. */
static bool play(void)
{
    bool whole = false;
    segue_call *call = NULL;
    if (http_wire_open(&t.a, "2025-11-25")) {
        t.b.head.session = t.a.head.session;
        t.b.head.version = t.a.head.version;
        http_wire_legacy(&t.a, "7", "tools/call", "\"name\":\"tool\"");
        call = http_wire_call(t.server);
    }
    if (call) {
        if (t.a.conn)
            sgi_serve_open_stream(t.a.conn);
        sgi_call_progress(call, 1, 0, NULL);
        http_wire_text(&t.a);
        http_wire_cut(&t.a);
        sgi_call_progress(call, 2, 0, NULL);
        http_wire_get(&t.b, "2-0");
        http_wire_text(&t.b);
        http_wire_get(&t.a, "2-1");
        http_wire_cut(&t.b);
        sgi_call_send_text(call, SGI_STR("text"));
        sgi_call_complete(call, NULL);
        sgi_call_free(call);
        http_wire_text(&t.a);
        http_wire_get(&t.b, "2-2");
        whole = http_wire_count(http_wire_text(&t.b), "\"result\"") == 1;
        http_wire_get(&t.a, "");
        sgi_items_report_changed(t.server, SEGUE_ITEM_TOOL);
        http_wire_delete(&t.b);
    }
    http_wire_cut(&t.a);
    http_wire_cut(&t.b);
    fake_host_deliver(&t.host);
    return whole;
}

static void every_allocation_may_fail(void **state)
{
    bool failed = true;
    (void)state;
    for (int from = 0; from < 2; from++, failed = true)
        for (size_t n = 1; failed; n++) {
            test_mem_rearm(&t.mem);
            if (from)
                t.mem.fail_from = n;
            else
                t.mem.fail_at = n;
            bool whole = play();
            failed = t.mem.failed > 0;
            assert_true(failed || whole);
            test_mem_rearm(&t.mem);
            fake_host_advance(&t.host, 3 * IDLE_MS);
            fake_host_deliver(&t.host);
            assert_int_equal(t.server->sessions.by_id.count, 0);
            assert_true(LIST_EMPTY(&t.server->calls.running));
            assert_int_equal(t.a.who->refs,
                             2 + (t.a.spare != NULL) + (t.b.spare != NULL));
        }
    http_rig_open(&t);
    http_wire_finish(http_wire_start(&t.a, "7"));
    assert_non_null(strstr(http_wire_text(&t.a), "\"result\""));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(session_ends_with_calls_in_flight),
        CASE(strangers_see_no_session),
        CASE(refused_delete_says_why),
        CASE(initialize_that_fails_leaves_no_session),
        CASE(server_closes_and_what_is_awaited_is_answered),
        CASE(sessions_do_not_hold_a_server_that_nobody_reaches),
        CASE(initialize_without_memory_leaves_no_session),
        CASE(stream_that_lost_a_message_is_not_taken_up),
        CASE(taking_up_without_memory_loses_nothing),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
