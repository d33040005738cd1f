/* A client tells the server when it gives a call up. Over HTTP in 2026-07-28 closing the
 * stream does that, except for a call with an idempotency key: the server keeps it for a
 * client that comes again. So the client names the key (2026-07-28
 * basic/patterns/cancellation). */
#include "support/client_kit.h"
#include "support/http_script.h"
#include "support/world.h"
#include "engine/client/withdrawal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CANCELLED "notifications/cancelled"

/* Copies the key in this message. */
static void key_of(const char *message, char key[64])
{
    const char *at = strstr(message, "dev.segue/idempotencyKey\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "dev.segue/idempotencyKey\":\"%63[^\"]", key), 1);
}

static record *begin(http_script *s, const segue_request_options *options, heard **call)
{
    script_begin(s, NULL);
    script_discover(s, SERVER_STREAMS);
    record *r = kit_start(&s->k, "tools/call", "{\"name\":\"t\"}", options);
    *call = script_expect(s, "tools/call");
    return r;
}

static void expect_withdrawal(http_script *s, const heard *call)
{
    char of_call[64], said[64];
    heard *h = script_expect(s, CANCELLED);
    key_of(call->body, of_call);
    key_of(h->body, said);
    assert_string_equal(of_call, said);
    assert_at(h->body, "params.requestId", json_at(call->body, "id"));
    assert_header(h, "Mcp-Method", CANCELLED);
    script_accept(h);
}

static void a_cancel_names_the_key(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        http_script s;
        heard *call;
        record *r = begin(&s, NULL, &call);
        if (streams)
            script_stream(call);
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        expect_withdrawal(&s, call);
        script_until(&s, heard_is_closed(call));
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        script_expect_silence(&s);
        script_end(&s);
    }
}

static void a_timeout_names_the_key(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.timeout_ms = 300;
    record *r = begin(&s, &options, &call);
    script_advance(&s, 300);
    expect_withdrawal(&s, call);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_TIMEOUT);
    script_end(&s);
}

/* Between two attempts there is no stream to close. */
static void a_cancel_between_two_attempts_names_the_key(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, NULL, &call);
    script_cut(call, true);
    call = script_expect(&s, "tools/call");
    script_say(call, "503 Service Unavailable", "Retry-After: 5\r\n", "");
    script_expect_silence(&s);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    expect_withdrawal(&s, call);
    script_until(&s, r->completed);
    script_advance(&s, 60000);
    script_expect_silence(&s);
    script_end(&s);
}

static void a_session_that_closes_cancels_its_calls(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, NULL, &call);
    assert_int_equal(segue_session_close(s.k.session), SEGUE_OK);
    expect_withdrawal(&s, call);
    script_until(&s, r->completed && s.k.closed);
    assert_int_equal(r->status, SEGUE_E_CLOSED);
    script_end(&s);
}

/* The application can still come back for the calls. */
static void a_session_that_closes_keeps_what_is_kept(void **state)
{
    (void)state;
    for (int chosen = 0; chosen < 2; chosen++) {
        http_script s;
        heard *call;
        char token[4096];
        size_t len = sizeof token;
        segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
        options.idempotency_key = chosen ? "a key of the application" : NULL;
        record *r = begin(&s, &options, &call);
        if (!chosen)
            assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
        assert_int_equal(segue_session_close(s.k.session), SEGUE_OK);
        script_until(&s, r->completed && s.k.closed);
        script_expect_silence(&s);
        script_end(&s);
    }
}

/* ---- withdrawals that do not arrive ---- */

/* Fails a withdrawal: with 503, or with no answer at all. */
static void turn_away(heard *h, bool cuts)
{
    if (cuts)
        script_cut(h, true);
    else
        script_say(h, "503 Service Unavailable", "", "");
}

static void what_does_not_arrive_is_told_again(void **state)
{
    (void)state;
    for (int cuts = 0; cuts < 2; cuts++) {
        http_script s;
        heard *call;
        record *r = begin(&s, NULL, &call);
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        script_until(&s, r->completed); /* the request waits for nothing */
        for (int i = 0; i < 3; i++) {
            turn_away(script_expect(&s, CANCELLED), cuts);
            script_expect_silence(&s);
            script_advance(&s, SGI_WITHDRAWAL_AGAIN_MS);
        }
        expect_withdrawal(&s, call);
        script_until(&s, !s.k.session->withdrawals.count);
        script_advance(&s, SGI_WITHDRAWAL_MS);
        script_expect_silence(&s);
        script_end(&s);
    }
}

/* ---- by id, in the handshake eras ---- */

static void begin_legacy(http_script *s)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = SEGUE_ERA_LEGACY;
    script_begin(s, &options);
    script_initialize(s, "one");
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
}

static heard *expect_id(http_script *s, const char *id)
{
    heard *h = script_expect(s, CANCELLED);
    assert_null(strstr(h->body, "idempotencyKey"));
    assert_at(h->body, "params.requestId", id);
    assert_header(h, "Mcp-Session-Id", "one");
    return h;
}

/* A withdrawal that was refused or lost is repeated until the server takes it. */
static void an_id_is_told_again_too(void **state)
{
    (void)state;
    for (int cuts = 0; cuts < 2; cuts++) {
        http_script s;
        char id[32];
        begin_legacy(&s);
        record *r = kit_call(&s.k, "t");
        heard *call = script_expect(&s, "tools/call");
        snprintf(id, sizeof id, "%s", json_at(call->body, "id"));
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        script_until(&s, r->completed);
        for (int i = 0; i < 3; i++) {
            turn_away(expect_id(&s, id), cuts);
            script_expect_silence(&s);
            script_advance(&s, SGI_WITHDRAWAL_AGAIN_MS);
        }
        script_accept(expect_id(&s, id));
        script_until(&s, !s.k.session->withdrawals.count);
        script_advance(&s, SGI_WITHDRAWAL_MS);
        script_expect_silence(&s);
        script_end(&s);
    }
}

/* Another wire session has ids of its own. */
static void an_id_goes_with_its_wire_session(void **state)
{
    (void)state;
    http_script s;
    char id[32];
    begin_legacy(&s);
    record *r = kit_call(&s.k, "t");
    snprintf(id, sizeof id, "%s", json_at(script_expect(&s, "tools/call")->body, "id"));
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    turn_away(expect_id(&s, id), false);
    r = kit_call(&s.k, "t");
    script_say(script_expect(&s, "tools/call"), "404 Not Found", "", "");
    script_initialize(&s, "two");
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    heard *call = script_expect(&s, "tools/call");
    assert_int_equal(s.k.session->withdrawals.count, 0);
    script_advance(&s, SGI_WITHDRAWAL_MS);
    script_expect_silence(&s);
    script_result(call, "\"content\":[]");
    script_until(&s, r->completed);
    script_end(&s);
}

/* The next connection of a byte stream does not know the id either. */
static void an_id_is_told_on_its_own_stream(void **state)
{
    (void)state;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    kit k = {.can_reopen = 1};
    options.era = SEGUE_ERA_LEGACY;
    kit_begin_2025(&k, &options, "{\"tools\":{}}");
    record *r = kit_call(&k, "t");
    kit_expect(&k, "tools/call");
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_expect(&k, CANCELLED);
    assert_int_equal(k.session->withdrawals.count, 0);
    kit_cut(&k);
    kit_handshake_2025(&k, "{\"tools\":{}}");
    kit_advance(&k, SGI_WITHDRAWAL_MS);
    kit_expect_silence(&k);
    kit_end(&k);
}

static void it_is_told_for_so_long(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    int count = 0;
    record *r = begin(&s, NULL, &call);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    for (; s.k.session->withdrawals.count; count++) {
        turn_away(script_expect(&s, CANCELLED), false);
        script_expect_silence(&s);
        script_advance(&s, SGI_WITHDRAWAL_AGAIN_MS);
    }
    assert_int_equal(count, SGI_WITHDRAWAL_MS / SGI_WITHDRAWAL_AGAIN_MS);
    assert_non_null(strstr(s.k.last_warning, "the tool may still run"));
    script_advance(&s, SGI_WITHDRAWAL_MS);
    script_expect_silence(&s);
    script_end(&s);
}

/* The application wants the call after all. */
static void a_call_with_the_key_ends_its_withdrawal(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.idempotency_key = "a key of the application";
    record *r = begin(&s, &options, &call);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    turn_away(script_expect(&s, CANCELLED), false);
    script_until(&s, r->completed);
    r = kit_start(&s.k, "tools/call", "{\"name\":\"t\"}", &options);
    call = script_expect(&s, "tools/call");
    script_advance(&s, SGI_WITHDRAWAL_MS);
    script_expect_silence(&s);
    script_result(call, "\"resultType\":\"complete\",\"content\":[]");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    script_end(&s);
}

/* The call must be sent before the withdrawal: a server that gets the withdrawal first
 * would refuse the call. */
static void a_call_that_waits_with_the_key_ends_its_withdrawal(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.idempotency_key = "a key of the application";
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    kit_expect(&k, "tools/call");
    kit_cut(&k);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    kit_handshake(&k, SERVER_STREAMS);
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"resultType\":\"complete\",\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* Over a byte stream, whose server comes back. */
static void the_next_connection_is_told(void **state)
{
    char of_call[64], said[64];
    (void)state;
    for (int is_down = 0; is_down < 2; is_down++) {
        kit k = {.can_reopen = 1};
        kit_begin_modern(&k, NULL, SERVER_STREAMS);
        record *r = kit_call(&k, "t");
        key_of(kit_expect(&k, "tools/call"), of_call);
        if (!is_down) {
            assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
            kit_expect(&k, CANCELLED); /* the withdrawal is lost with the connection */
        }
        kit_cut(&k);
        if (is_down)
            assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        kit_run(&k);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        kit_handshake(&k, SERVER_STREAMS);
        key_of(kit_expect(&k, CANCELLED), said);
        assert_string_equal(of_call, said);
        kit_advance(&k, SGI_WITHDRAWAL_MS);
        kit_expect_silence(&k);
        assert_int_equal(k.session->withdrawals.count, 0);
        kit_end(&k);
    }
}

static void a_session_that_closes_tells_once_more(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    record *r = begin(&s, NULL, &call);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    turn_away(script_expect(&s, CANCELLED), false);
    script_expect_silence(&s);
    assert_int_equal(segue_session_close(s.k.session), SEGUE_OK);
    expect_withdrawal(&s, call);
    script_until(&s, r->completed && s.k.closed);
    script_end(&s);
}

static void beyond_the_limit_it_is_told_once(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    assert_int_equal(k.session->withdrawals.max, SGI_WITHDRAWALS_MAX);
    k.session->withdrawals.max = 1;
    for (int i = 0; i < 3; i++) {
        record *r = kit_call(&k, "t");
        kit_expect(&k, "tools/call");
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        kit_expect(&k, CANCELLED);
        assert_int_equal(k.session->withdrawals.count, 1);
    }
    kit_end(&k);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancel_names_the_key),
        cmocka_unit_test(a_timeout_names_the_key),
        cmocka_unit_test(a_cancel_between_two_attempts_names_the_key),
        cmocka_unit_test(a_session_that_closes_cancels_its_calls),
        cmocka_unit_test(a_session_that_closes_keeps_what_is_kept),
        {"R-2557-11 what does not arrive is told again",
         what_does_not_arrive_is_told_again, NULL, NULL, NULL},
        {"R-776-26 an id is told again, too", an_id_is_told_again_too, NULL, NULL, NULL},
        cmocka_unit_test(an_id_goes_with_its_wire_session),
        cmocka_unit_test(an_id_is_told_on_its_own_stream),
        cmocka_unit_test(it_is_told_for_so_long),
        cmocka_unit_test(a_call_with_the_key_ends_its_withdrawal),
        NAMED("R-2557-11 a call that waits with the key ends its withdrawal",
              a_call_that_waits_with_the_key_ends_its_withdrawal),
        cmocka_unit_test(the_next_connection_is_told),
        cmocka_unit_test(a_session_that_closes_tells_once_more),
        cmocka_unit_test(beyond_the_limit_it_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
