/* A server is replaced while a session is open, perhaps by one of another era, which
 * refuses requests of the old form. The remembered era of an origin is "re-probed if the
 * cached assumption later fails" (2026-07-28 basic/versioning, "Backward Compatibility"),
 * and after a refused version a common one is used. A request that was refused this way
 * was not executed, so it is sent again. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define JSON "Content-Type: application/json\r\n"
#define ERROR(id, code, more)                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code                       \
    ",\"message\":\"no\"" more "}}"
#define OLD_VERSIONS                                                                     \
    ",\"data\":{\"supported\":[\"2025-11-25\"],\"requested\":\"2026-07-28\"}"
#define NEW_VERSIONS                                                                     \
    ",\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"2025-11-25\"}"

static void no_stream(http_script *s)
{
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
}

static void answer_call(http_script *s, const char *session, const char *version)
{
    heard *h = script_find(s, "tools/call");
    assert_header(h, "Mcp-Session-Id", session);
    assert_header(h, "MCP-Protocol-Version", version);
    script_result(h, "\"content\":[]");
}

static void call_works(http_script *s, const char *session, const char *version)
{
    record *r = kit_call(&s->k, "t");
    answer_call(s, session, version);
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
}

static void leave(http_script *s, const char *session)
{
    segue_session_close(s->k.session);
    if (session)
        script_say(script_expect(s, "DELETE"), "200 OK", "", "");
    script_end(s);
}

/* How servers of the handshake eras refuse a request that names 2026-07-28 and no
 * session. */
static void goes_back(const char *headers, const char *body)
{
    http_script s;
    script_begin(&s, NULL);
    script_discover(&s, SERVER_PLAIN);
    call_works(&s, NULL, "2026-07-28");
    record *one = kit_call(&s.k, "one");
    record *two = kit_call(&s.k, "two");
    heard *first = script_expect(&s, "tools/call");
    heard *second = script_expect(&s, "tools/call");
    script_say(first, "400 Bad Request", headers, body);
    script_error(script_expect(&s, "server/discover"), "400 Bad Request", -32000, NULL);
    script_initialize(&s, "back");
    no_stream(&s);
    answer_call(&s, "back", "2025-11-25");
    script_until(&s, one->completed || two->completed);
    /* a late refusal causes no new request */
    script_say(second, "400 Bad Request", headers, body);
    answer_call(&s, "back", "2025-11-25");
    script_until(&s, one->completed && two->completed);
    assert_int_equal(one->status, SEGUE_OK);
    assert_int_equal(two->status, SEGUE_OK);
    call_works(&s, "back", "2025-11-25");
    leave(&s, "back");
}

static void a_server_that_goes_back_is_initialized(void **state)
{
    (void)state;
    goes_back(JSON, ERROR("null", "-32000", ""));
    goes_back(JSON, ERROR("\"server-error\"", "-32600", ""));
    goes_back(JSON, ERROR("null", "-32022", OLD_VERSIONS));
    goes_back("Content-Type: text/plain\r\n", "no session");
    goes_back("", "");
}

/* How a server of 2026-07-28 refuses a request that names none of its versions. */
static void goes_forward(const char *session, const char *body)
{
    http_script s;
    script_begin(&s, NULL);
    script_legacy(&s, session);
    no_stream(&s);
    call_works(&s, session, "2025-11-25");
    record *r = kit_call(&s.k, "t");
    script_say(script_expect(&s, "tools/call"), "400 Bad Request", JSON, body);
    script_discover(&s, SERVER_PLAIN); /* initialize does not come before it */
    answer_call(&s, NULL, "2026-07-28");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    call_works(&s, NULL, "2026-07-28");
    leave(&s, session);
}

static void a_server_that_goes_forward_is_discovered(void **state)
{
    (void)state;
    goes_forward("old", ERROR("1", "-32022", NEW_VERSIONS));
    goes_forward("old", ERROR("1", "-32020", ""));
    goes_forward(NULL, ERROR("1", "-32022", NEW_VERSIONS));
}

/* A request of the session itself, before the first call, finds it out as well. */
static void a_look_at_the_tools_finds_it_out(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_say(script_expect(&s, "server/discover"), "400 Bad Request", "", "");
    script_initialize_with(&s, "old", SERVER_2025);
    no_stream(&s);
    record *one = kit_call(&s.k, "t");
    record *two = kit_call(&s.k, "t");
    script_say(script_expect(&s, "tools/list"), "400 Bad Request", JSON,
               ERROR("1", "-32022", NEW_VERSIONS));
    script_discover(&s, SERVER_PLAIN);
    answer_call(&s, NULL, "2026-07-28");
    answer_call(&s, NULL, "2026-07-28");
    script_until(&s, one->completed && two->completed);
    assert_int_equal(one->status, SEGUE_OK);
    assert_int_equal(two->status, SEGUE_OK);
    leave(&s, "old");
}

/* A keyed call that was refused this way was not executed. The next server need not know
 * keys. */
static void a_keyed_call_goes_again_without_its_key(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_discover(&s, SERVER_STREAMS);
    record *r = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    assert_non_null(strstr(h->body, "dev.segue/idempotencyKey"));
    script_say(h, "400 Bad Request", "", "");
    script_error(script_expect(&s, "server/discover"), "400 Bad Request", -32000, NULL);
    script_initialize(&s, "back");
    no_stream(&s);
    answer_call(&s, "back", "2025-11-25");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    leave(&s, "back");
}

/* A call that is wrong is still wrong after the server was asked for its era. */
static void a_call_that_is_refused_goes_again_once(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_discover(&s, SERVER_PLAIN);
    for (int i = 0; i < 3; i++) {
        record *r = kit_call(&s.k, "t");
        script_say(script_expect(&s, "tools/call"), "400 Bad Request", "", "too large");
        script_discover(&s, SERVER_PLAIN);
        script_say(script_expect(&s, "tools/call"), "400 Bad Request", "", "too large");
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_REFUSED);
        call_works(&s, NULL, "2026-07-28");
    }
    script_expect_silence(&s);
    leave(&s, NULL);
}

static void is_just_refused(http_script *s, const char *status, int code,
                            segue_status expected)
{
    record *r = kit_call(&s->k, "t");
    heard *h = script_expect(s, "tools/call");
    if (code)
        script_error(h, status, code, NULL);
    else
        script_say(h, status, "", "no");
    script_until(s, r->completed);
    assert_int_equal(r->status, expected);
    script_expect_silence(s);
}

static void other_refusals_leave_the_era(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_discover(&s, SERVER_PLAIN);
    is_just_refused(&s, "400 Bad Request", -32021, SEGUE_E_REMOTE);
    is_just_refused(&s, "400 Bad Request", -32602, SEGUE_E_REMOTE);
    /* refused under its own id */
    is_just_refused(&s, "400 Bad Request", -32600, SEGUE_E_REMOTE);
    is_just_refused(&s, "400 Bad Request", -32000, SEGUE_E_REMOTE);
    is_just_refused(&s, "404 Not Found", -32601, SEGUE_E_REMOTE);
    is_just_refused(&s, "404 Not Found", 0, SEGUE_E_REFUSED);
    is_just_refused(&s, "403 Forbidden", -32000, SEGUE_E_REMOTE);
    is_just_refused(&s, "500 Oops", -32603, SEGUE_E_REMOTE);
    leave(&s, NULL);
    script_begin(&s, NULL);
    script_legacy(&s, "old");
    no_stream(&s);
    is_just_refused(&s, "400 Bad Request", -32000, SEGUE_E_REMOTE);
    is_just_refused(&s, "400 Bad Request", -32602, SEGUE_E_REMOTE);
    is_just_refused(&s, "400 Bad Request", 0, SEGUE_E_REFUSED);
    leave(&s, "old");
}

static void an_era_that_is_asked_for_is_not_left(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = SEGUE_ERA_MODERN;
    script_begin(&s, &options);
    script_discover(&s, SERVER_PLAIN);
    is_just_refused(&s, "400 Bad Request", -32022, SEGUE_E_REMOTE);
    is_just_refused(&s, "400 Bad Request", 0, SEGUE_E_REFUSED);
    leave(&s, NULL);
    options = kit_legacy_options();
    script_begin(&s, &options);
    script_initialize(&s, "old");
    no_stream(&s);
    is_just_refused(&s, "400 Bad Request", -32022, SEGUE_E_REMOTE);
    leave(&s, "old");
}

/* A followed task belongs to an era, and its request ends with the era. */
static void a_task_of_another_era_ends(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_discover(&s, SERVER_TASKS);
    record *r = kit_call(&s.k, "t");
    script_result(script_expect(&s, "tools/call"), CREATED("T"));
    script_until(&s, strstr(r->log, "task T"));
    script_advance(&s, 1200);
    script_say(script_expect(&s, "tasks/get"), "400 Bad Request", "", "no session");
    script_error(script_expect(&s, "server/discover"), "400 Bad Request", -32000, NULL);
    script_initialize(&s, "back");
    no_stream(&s);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_NOT_RESUMABLE);
    leave(&s, "back");
}

/* The restarted server has no session, and answers as servers of the TypeScript SDK do;
 * another server behind the address has none either. */
static void started_again(int32_t era, const char *session, const char *next)
{
    http_script s;
    segue_session_options options = kit_legacy_options();
    options.era = era;
    script_begin(&s, &options);
    if (era == SEGUE_ERA_LEGACY)
        script_initialize(&s, session);
    else
        script_legacy(&s, session);
    no_stream(&s);
    call_works(&s, session, "2025-11-25");
    record *r = kit_call(&s.k, "t");
    script_say(script_expect(&s, "tools/call"), "400 Bad Request", JSON,
               ERROR("null", "-32000", ""));
    script_initialize(&s, next); /* initialize comes at once */
    no_stream(&s);
    answer_call(&s, next, "2025-11-25");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    r = kit_call(&s.k, "t");
    script_say(script_expect(&s, "tools/call"), "400 Bad Request", JSON,
               ERROR("null", "-32000", ""));
    script_initialize(&s, next);
    no_stream(&s);
    script_say(script_expect(&s, "tools/call"), "400 Bad Request", JSON,
               ERROR("null", "-32000", "")); /* the server never accepts this one */
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    call_works(&s, next, "2025-11-25");
    leave(&s, next);
}

static void a_server_that_was_started_again_is_initialized(void **state)
{
    (void)state;
    started_again(SEGUE_ERA_AUTO, "one", "two");
    started_again(SEGUE_ERA_LEGACY, "one", "two");
    started_again(SEGUE_ERA_AUTO, NULL, NULL);
}

/* No session was forgotten: in 2026-07-28 404 means an unknown method, and a server may
 * answer that way in every era. */
static void a_method_that_is_not_found_is_no_lost_session(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_legacy(&s, "old");
    no_stream(&s);
    is_just_refused(&s, "404 Not Found", -32601, SEGUE_E_REMOTE);
    call_works(&s, "old", "2025-11-25");
    leave(&s, "old");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_goes_back_is_initialized),
        cmocka_unit_test(a_server_that_goes_forward_is_discovered),
        cmocka_unit_test(a_keyed_call_goes_again_without_its_key),
        cmocka_unit_test(a_call_that_is_refused_goes_again_once),
        cmocka_unit_test(a_look_at_the_tools_finds_it_out),
        cmocka_unit_test(a_task_of_another_era_ends),
        cmocka_unit_test(a_server_that_was_started_again_is_initialized),
        cmocka_unit_test(other_refusals_leave_the_era),
        cmocka_unit_test(an_era_that_is_asked_for_is_not_left),
        cmocka_unit_test(a_method_that_is_not_found_is_no_lost_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
