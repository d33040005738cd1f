/* The end of sessions of the handshake eras over HTTP: by DELETE, of the server, of what
 * leads to it, and what a lack of memory makes of them. */
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

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

/* ---- the end ---- */

static void session_ends_with_calls_in_flight(void **state)
{
    (void)state;
    open_session();
    segue_call *parked = start_call(&a, "7");
    http_wire_cut(&a);
    segue_call *carried = start_call(&a, "8");
    http_wire answered;
    http_wire_init(&answered, server, "ada");
    answered.head = a.head;
    assert_int_equal(http_wire_legacy(&answered, "9", "ping", ""), 200);
    assert_int_equal(http_wire_delete(&b), 204);
    assert_true(parked->cancelled && carried->cancelled);
    assert_ptr_equal(host.closing, a.conn);
    sgi_serve_look(a.conn, &a.answer);
    assert_false(a.answer.answered || a.answer.resumable);
    assert_non_null(strstr(http_wire_text(&answered), "\"id\":9")); /* it was there */
    http_wire_cut(&a);
    http_wire_cut(&a);
    assert_int_equal(http_wire_legacy(&a, "2", "ping", ""), 404);
    http_wire_free(&answered);
    fake_host_deliver(&host);
    sgi_call_free(parked);
    sgi_call_free(carried);
}

static void strangers_see_no_session(void **state)
{
    (void)state;
    open_session();
    segue_call *call = start_call(&a, "7");
    sgi_serve_open_stream(a.conn);
    http_wire eve;
    http_wire_init(&eve, server, "eve");
    eve.head.version = a.head.version;
    for (int known = 0; known < 2; known++) { /* the same for what is and what is not */
        eve.head.session = known ? a.head.session : SGI_STR("no-such-session");
        assert_int_equal(http_wire_legacy(&eve, "2", "ping", ""), 404);
        assert_string_equal(eve.verdict.problem, "There is no such session");
        assert_int_equal(http_wire_get(&eve, "2-0"), 404);
        assert_string_equal(eve.verdict.problem, "There is no such session");
        assert_int_equal(http_wire_delete(&eve), 404);
        assert_int_equal(http_wire_post(&eve, "{\"jsonrpc\":\"2.0\",\"method\":"
                                              "\"notifications/cancelled\",\"params\":"
                                              "{\"requestId\":7}}"),
                         404);
    }
    assert_false(call->cancelled);
    http_wire_free(&eve);
    finish(call);
}

static void initialize_that_fails_leaves_no_session(void **state)
{
    (void)state;
    assert_int_equal(http_wire_legacy(&a, "1", "initialize", ""), 200);
    assert_non_null(strstr(http_wire_text(&a), "-32602"));
    assert_null(a.answer.session);
    http_wire_cut(&a);
    assert_int_equal(server->sessions.count, 0);
}

static void server_closes_and_what_is_awaited_is_answered(void **state)
{
    (void)state;
    open_session();
    segue_call *parked = start_call(&b, "7");
    http_wire_cut(&b);
    assert_int_equal(http_wire_get(&b, ""), 0);
    segue_call *carried = start_call(&a, "8");
    sgi_server_close(server);
    assert_int_equal(server->sessions.count, 0);
    assert_true(parked->cancelled);
    assert_false(carried->cancelled);
    assert_ptr_equal(host.closing, b.conn);
    sgi_call_progress(carried, 1, 0, NULL);
    finish(carried);
    assert_int_equal(count_of(http_wire_text(&a), "\"id\":8,\"result\""), 1);
    assert_true(a.answer.answered && !a.answer.resumable);
    assert_int_equal(http_wire_get(&b, ""), 503);
    assert_int_equal(
        http_wire_legacy(&b, "1", "initialize", "\"protocolVersion\":\"2025-11-25\""),
        503);
    fake_host_deliver(&host);
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
    sgi_server_abandon(lone); /* its handle is freed, and it has no door */
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
        test_mem_rearm(&tm);
        tm.fail_at = n;
        int32_t status =
            http_wire_legacy(&a, "1", "initialize", "\"protocolVersion\":\"2025-11-25\"");
        failed = tm.failed > 0;
        test_mem_rearm(&tm);
        const sgi_peer *peer = a.conn ? a.conn->self : NULL;
        assert_int_equal(server->sessions.count, peer && peer->session ? 1 : 0);
        assert_true(a.conn || status == 503);
        http_wire_text(&a);
        http_wire_cut(&a);
        fake_host_advance(&host, 2 * IDLE_MS);
    }
}

static void stream_that_lost_a_message_is_not_taken_up(void **state)
{
    (void)state;
    open_session();
    assert_int_equal(http_wire_get(&a, ""), 0);
    http_wire_text(&a);
    test_mem_rearm(&tm);
    tm.fail_from = 1;
    sgi_tools_changed(server);
    test_mem_rearm(&tm);
    assert_ptr_equal(host.closing, a.conn);
    assert_int_equal(http_wire_get(&b, ""), 409); /* still carried */
    http_wire_cut(&a);
    assert_int_equal(http_wire_get(&b, "2-0"), 0); /* a new one */
    assert_int_equal(count_of(http_wire_text(&b), "id: 3-0\n"), 1);
    sgi_tools_changed(server);
    assert_int_equal(count_of(http_wire_text(&b), "id: 3-1\n"), 1);
}

static void taking_up_without_memory_loses_nothing(void **state)
{
    (void)state;
    for (int carried = 0; carried < 2; carried++) {
        open_session();
        segue_call *call = start_call(&a, "7");
        sgi_call_progress(call, 1, 0, NULL);
        if (!carried)
            http_wire_cut(&a);
        else
            http_wire_text(&a);
        test_mem_rearm(&tm);
        tm.fail_from = 1;
        assert_int_equal(http_wire_get(&b, "2-0"), 503);
        test_mem_rearm(&tm);
        http_wire_cut(&a);
        finish(call);
        assert_int_equal(http_wire_get(&b, "2-0"), 200);
        assert_int_equal(count_of(http_wire_text(&b), "id: 2-"), 2);
        http_wire_cut(&b);
        assert_int_equal(http_wire_delete(&a), 204);
    }
}

/* Whatever fails: nothing crashes, nothing leaks, and afterwards it all works. */
static bool play(void)
{
    bool whole = false;
    segue_call *call = NULL;
    if (http_wire_open(&a, "2025-11-25")) {
        b.head.session = a.head.session;
        b.head.version = a.head.version;
        http_wire_legacy(&a, "7", "tools/call", "\"name\":\"tool\"");
        call = http_wire_call(server);
    }
    if (call) {
        if (a.conn)
            sgi_serve_open_stream(a.conn);
        sgi_call_progress(call, 1, 0, NULL);
        http_wire_text(&a);
        http_wire_cut(&a);
        sgi_call_progress(call, 2, 0, NULL);
        http_wire_get(&b, "2-0");
        http_wire_text(&b);
        http_wire_get(&a, "2-1");
        http_wire_cut(&b);
        sgi_call_send_text(call, SGI_STR("text"));
        sgi_call_complete(call, NULL);
        sgi_call_free(call);
        http_wire_text(&a);
        http_wire_get(&b, "2-2");
        whole = count_of(http_wire_text(&b), "\"result\"") == 1;
        http_wire_get(&a, "");
        sgi_tools_changed(server);
        http_wire_delete(&b);
    }
    http_wire_cut(&a);
    http_wire_cut(&b);
    fake_host_deliver(&host);
    return whole;
}

static void every_allocation_may_fail(void **state)
{
    bool failed = true;
    (void)state;
    for (int from = 0; from < 2; from++, failed = true)
        for (size_t n = 1; failed; n++) {
            test_mem_rearm(&tm);
            if (from)
                tm.fail_from = n;
            else
                tm.fail_at = n;
            bool whole = play();
            failed = tm.failed > 0;
            assert_true(failed || whole);
            test_mem_rearm(&tm);
            fake_host_advance(&host, 3 * IDLE_MS);
            fake_host_deliver(&host);
            assert_int_equal(server->sessions.count, 0);
            assert_true(LIST_EMPTY(&server->calls));
            assert_int_equal(a.who->refs, 2 + (a.spare != NULL) + (b.spare != NULL));
        }
    open_session();
    finish(start_call(&a, "7"));
    assert_non_null(strstr(http_wire_text(&a), "\"result\""));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(session_ends_with_calls_in_flight),
        CASE(strangers_see_no_session),
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
