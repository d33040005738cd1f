/* A client of the handshake eras whose server told how its answers can be asked for again
 * (SEP-975): it does so when the connection breaks, and in another process. */
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

#define CAPS_SERVER "{\"tools\":{}}"

static void options_of(segue_session_options *options)
{
    segue_struct_init(options, sizeof *options, SEGUE_STRUCT_SESSION_OPTIONS);
    options->era = SEGUE_ERA_LEGACY;
    options->dialects_on = SEGUE_DIALECT_RESUMABLE;
}

static void begin(kit *k)
{
    segue_session_options options;
    options_of(&options);
    k->can_reopen = 1;
    kit_begin_2025(k, &options, CAPS_SERVER);
}

static void say_policy(kit *k, const char *call, const char *more)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
            "\"params\":{\"requestId\":%s,\"resumeToken\":\"to.ken\"%s}}",
            json_at(call, "id"), more);
}

static void say_progress(kit *k, const char *call, int value)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
            "\"progressToken\":%s,\"progress\":%d}}",
            json_at(call, "params._meta.progressToken"), value);
}

static void a_broken_call_is_resumed(void **state)
{
    (void)state;
    char id[32];
    kit k = {0};
    begin(&k);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    snprintf(id, sizeof id, "%s", json_at(call, "id"));
    say_policy(&k, call, ",\"minWait\":3,\"maxWait\":60");
    say_progress(&k, call, 1);
    say_progress(&k, call, 2);
    kit_cut(&k);
    kit_handshake_2025(&k, CAPS_SERVER);
    kit_advance(&k, 2900);
    kit_expect_silence(&k); /* minWait */
    kit_advance(&k, 1000);
    const char *again = kit_expect(&k, "requests/resume");
    assert_at(again, "id", id);
    assert_at(again, "params.resumeToken", "\"to.ken\"");
    say_progress(&k, call, 1); /* again: the application has heard it */
    say_progress(&k, call, 2);
    say_progress(&k, call, 3);
    kit_result(&k, again, "\"content\":[{\"type\":\"text\",\"text\":\"x\"}]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_string_equal(json_at(r->result, "content.0.text"), "\"x\"");
    kit_end(&k);
}

static void a_refused_resume_ends_the_call(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    record *r = kit_call(&k, "t");
    say_policy(&k, kit_expect(&k, "tools/call"), "");
    kit_cut(&k);
    kit_handshake_2025(&k, CAPS_SERVER);
    kit_error(&k, kit_expect(&k, "requests/resume"), -32602, "{\"reason\":\"expired\"}");
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32602);
    kit_end(&k);
}

static void bad_policies_are_passed_over(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
                "\"params\":{\"requestId\":4711,\"resumeToken\":\"x\"}}");
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
            "\"params\":{\"requestId\":%s,\"resumeToken\":17}}",
            json_at(call, "id"));
    kit_cut(&k);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    kit_handshake_2025(&k, CAPS_SERVER);
    r = kit_call(&k, "t");
    call = kit_expect(&k, "tools/call");
    say_policy(&k, call, ",\"minWait\":60,\"maxWait\":3"); /* the bound is none */
    kit_cut(&k);
    kit_handshake_2025(&k, CAPS_SERVER);
    kit_result(&k, kit_expect(&k, "requests/resume"), "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void a_token_is_good_in_another_process(void **state)
{
    (void)state;
    char token[4096], id[32];
    size_t len = sizeof token;
    kit first = {0}, second = {.chance = 99};
    begin(&first);
    record *r = kit_call(&first, "t");
    const char *call = kit_expect(&first, "tools/call");
    snprintf(id, sizeof id, "%s", json_at(call, "id"));
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_E_NOT_RESUMABLE);
    say_policy(&first, call, ",\"maxWait\":60");
    len = sizeof token;
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
    assert_int_equal(segue_request_detach(r->request), SEGUE_OK);
    kit_run(&first);
    assert_int_equal(r->status, SEGUE_E_CLOSED);
    kit_expect_silence(&first); /* nothing was cancelled */
    kit_end(&first);
    begin(&second);
    r = kit_resume(&second, token, NULL);
    const char *again = kit_expect(&second, "requests/resume");
    assert_at(again, "id", id);
    record *other = kit_call(&second, "t");
    call = kit_expect(&second, "tools/call");
    assert_string_not_equal(json_at(call, "id"), id);
    kit_result(&second, again, "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_result(&second, call, "\"content\":[]");
    assert_int_equal(other->status, SEGUE_OK);
    kit_end(&second);
}

static void over_http_the_position_goes_with_it(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options;
    options_of(&options);
    script_begin(&s, &options);
    script_initialize(&s, "one");
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    record *r = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    char id[32];
    snprintf(id, sizeof id, "%s", json_at(h->body, "id"));
    script_stream(h);
    script_event(
        h, "1-1~aaaaaaaa~0",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
        "\"params\":{\"requestId\":%s,\"resumeToken\":\"to.ken\"}}",
        id);
    script_event(h, "1-2~aaaaaaaa~3",
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    script_until(&s, s.k.notifications == 1);
    script_cut(h, false);
    script_advance(&s, 1000);
    h = script_expect(&s, "GET"); /* its own session first */
    assert_header(h, "Last-Event-ID", "1-2~aaaaaaaa~3");
    script_say(h, "404 Not Found", "", ""); /* the server has forgotten it */
    script_initialize(&s, "two");
    script_advance(&s, 1000);
    h = script_expect(&s, "requests/resume");
    assert_header(h, "Last-Event-ID", "1-2~aaaaaaaa~3");
    assert_header(h, "Mcp-Session-Id", "two");
    assert_string_equal(json_at(h->body, "id"), id);
    script_result(h, "\"content\":[]");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_call_is_resumed),
        cmocka_unit_test(a_refused_resume_ends_the_call),
        cmocka_unit_test(bad_policies_are_passed_over),
        cmocka_unit_test(a_token_is_good_in_another_process),
        cmocka_unit_test(over_http_the_position_goes_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
