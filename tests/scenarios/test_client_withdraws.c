/* A client that gives a call up says so. Over HTTP in 2026-07-28 the closing of the
 * stream says it, but not of a call with an idempotency key, which its server keeps for a
 * client that comes again: the client names the key (2026-07-28
 * basic/patterns/cancellation). */
#include "support/client_kit.h"
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CANCELLED "notifications/cancelled"

/* The text of the key that stands in this message. */
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
    segue_request_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_REQUEST_OPTIONS);
    options.timeout_ms = 300;
    record *r = begin(&s, &options, &call);
    script_advance(&s, 300);
    expect_withdrawal(&s, call);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_TIMEOUT);
    script_end(&s);
}

/* Between two attempts there is no stream that could close. */
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

/* The application has what it takes to come back. */
static void a_session_that_closes_keeps_what_is_kept(void **state)
{
    (void)state;
    for (int chosen = 0; chosen < 2; chosen++) {
        http_script s;
        heard *call;
        char token[4096];
        size_t len = sizeof token;
        segue_request_options options;
        segue_struct_init(&options, sizeof options, SEGUE_STRUCT_REQUEST_OPTIONS);
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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancel_names_the_key),
        cmocka_unit_test(a_timeout_names_the_key),
        cmocka_unit_test(a_cancel_between_two_attempts_names_the_key),
        cmocka_unit_test(a_session_that_closes_cancels_its_calls),
        cmocka_unit_test(a_session_that_closes_keeps_what_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
