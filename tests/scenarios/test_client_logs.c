/* Log messages of a client: how it sets the level in the handshake eras, and which
 * request a message belongs to. */
#include "support/client_kit.h"
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define LOGS "{\"tools\":{},\"logging\":{}}"
#define LOGS_AND_TASKS                                                                   \
    "{\"tools\":{},\"logging\":{},\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}}}}"
#define LOGS_AND_KEYS                                                                    \
    "{\"tools\":{},\"logging\":{},\"experimental\":{\"dev.segue/idempotency\":{}}}"
#define MESSAGE(level)                                                                   \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":"   \
    "\"" level "\",\"data\":1}}"

static record *call(kit *k, const char *level)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.log_level = level;
    return kit_start(k, "tools/call", "{\"name\":\"t\"}", &options);
}

static void hears_level(kit *k, const char *level)
{
    const char *wish = kit_expect(k, "logging/setLevel");
    assert_at(wish, "params.level", level);
    kit_expect_silence(k);
    kit_result(k, wish, "\"_meta\":{}");
}

static void ends(kit *k)
{
    kit_result(k, kit_expect(k, "tools/call"), "\"content\":[]");
}

static void the_level_is_set_before_the_call(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    kit_begin_2025(&k, NULL, LOGS);
    record *r = call(&k, "info");
    record *second = call(&k, "info"); /* waits for the same answer */
    hears_level(&k, "\"info\"");
    kit_say(&k, MESSAGE("debug")); /* the server decides about the level */
    kit_say(&k, MESSAGE("info"));
    ends(&k);
    ends(&k);
    assert_non_null(strstr(r->log, "log {\"level\":\"info\",\"data\":1}\n"));
    assert_null(strstr(r->log, "debug"));
    assert_null(strstr(second->log, "log"));
    call(&k, "error"); /* a lower level is in force */
    ends(&k);
    call(&k, NULL);
    ends(&k);
    call(&k, "debug");
    hears_level(&k, "\"debug\"");
    ends(&k);
    kit_cut(&k); /* the next server knows no level */
    kit_handshake_2025(&k, LOGS);
    call(&k, "info");
    hears_level(&k, "\"info\"");
    ends(&k);
    kit_end(&k);
}

static void messages_below_its_level_are_not_given_to_a_request(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, LOGS);
    record *quiet = call(&k, "error");
    hears_level(&k, "\"error\"");
    record *chatty = call(&k, "debug");
    kit_expect(&k, "tools/call");
    hears_level(&k, "\"debug\"");
    kit_expect(&k, "tools/call");
    kit_say(&k, MESSAGE("info"));
    kit_say(&k, MESSAGE("alert"));
    kit_run(&k);
    assert_string_equal(quiet->log, "log {\"level\":\"alert\",\"data\":1}\n");
    assert_string_equal(chatty->log, "log {\"level\":\"info\",\"data\":1}\n");
    kit_end(&k);
}

/* In 2026-07-28 each request asks for itself. */
static void a_request_that_asks_for_no_messages_gets_none(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *silent = call(&k, NULL);
    kit_expect(&k, "tools/call");
    record *chatty = call(&k, "debug");
    kit_expect(&k, "tools/call");
    kit_say(&k, MESSAGE("info"));
    kit_run(&k);
    assert_null(silent->log);
    assert_string_equal(chatty->log, "log {\"level\":\"info\",\"data\":1}\n");
    kit_end(&k);
}

static void a_wish_that_is_refused_is_not_repeated(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, LOGS);
    record *r = call(&k, "info");
    kit_error(&k, kit_expect(&k, "logging/setLevel"), -32603, NULL);
    assert_non_null(strstr(k.last_warning, "logging/setLevel failed"));
    ends(&k);
    assert_int_equal(r->status, SEGUE_OK);
    call(&k, "info");
    ends(&k);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    kit_begin_2025(&k, NULL, SERVER_PLAIN); /* the server does not log */
    call(&k, "info");
    ends(&k);
    kit_end(&k);
}

static void what_the_application_sets_is_known(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, LOGS);
    kit_start(&k, "logging/setLevel", "{\"level\":\"info\"}", NULL);
    kit_result(&k, kit_expect(&k, "logging/setLevel"), "\"_meta\":{}");
    call(&k, "info");
    ends(&k);
    kit_end(&k);
}

static void a_task_hears_messages_too(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, LOGS_AND_TASKS);
    record *r = call(&k, "info");
    hears_level(&k, "\"info\"");
    kit_list_tools(&k);
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED_2025("T"));
    kit_say(&k, MESSAGE("info"));
    kit_run(&k);
    assert_non_null(strstr(r->log, "log {\"level\":\"info\",\"data\":1}\n"));
    kit_end(&k);
}

/* ---- a new wire session ---- */

static void the_application_sets(kit *k, const char *level)
{
    char params[64];
    snprintf(params, sizeof params, "{\"level\":\"%s\"}", level);
    kit_start(k, "logging/setLevel", params, NULL);
    kit_result(k, kit_expect(k, "logging/setLevel"), "\"_meta\":{}");
    kit_run(k);
}

static void is_set_again(kit *k, const char *level)
{
    const char *wish = kit_expect(k, "logging/setLevel");
    assert_at(wish, "params.level", level);
    kit_result(k, wish, "\"_meta\":{}");
}

static void what_the_application_has_set_is_set_again(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    kit_begin_2025(&k, NULL, LOGS);
    the_application_sets(&k, "critical");
    for (int i = 0; i < 2; i++) {
        kit_cut(&k);
        kit_advance(&k, 5000);
        kit_handshake_2025(&k, LOGS);
        is_set_again(&k, "\"critical\"");
        kit_expect_silence(&k);
    }
    kit_cut(&k);
    kit_advance(&k, 5000);
    kit_handshake_2025(&k, SERVER_PLAIN); /* this server does not log */
    kit_expect_silence(&k);
    kit_end(&k);
}

/* Begins a task that wants log messages from level info on. */
static record *chatty_task(kit *k)
{
    kit_begin_2025(k, NULL, LOGS_AND_TASKS);
    record *r = call(k, "info");
    hears_level(k, "\"info\"");
    kit_list_tools(k);
    kit_result(k, kit_expect(k, "tools/call"), CREATED_2025("T"));
    kit_run(k);
    while (kit_heard(k))
        continue;
    return r;
}

static void what_a_task_wants_is_set_again(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    chatty_task(&k);
    the_application_sets(&k, "error");
    call(&k, "warning"); /* has ended when the connection is lost */
    hears_level(&k, "\"warning\"");
    kit_error(&k, kit_expect(&k, "tools/call"), -32603, NULL);
    kit_cut(&k);
    kit_handshake_2025(&k, LOGS_AND_TASKS);
    is_set_again(&k, "\"error\""); /* the application has overruled the task */
    kit_end(&k);

    kit other = {.can_reopen = 1};
    chatty_task(&other);
    kit_cut(&other);
    kit_handshake_2025(&other, LOGS_AND_TASKS);
    is_set_again(&other, "\"info\"");
    kit_end(&other);
}

/* A call that wants more than the application has set since is sent again. */
static void an_overruled_call_sets_no_level_again(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    kit_begin_2025(&k, NULL, LOGS_AND_KEYS);
    call(&k, "debug");
    hears_level(&k, "\"debug\"");
    kit_expect(&k, "tools/call");
    the_application_sets(&k, "critical");
    kit_cut(&k);
    kit_handshake_2025(&k, LOGS_AND_KEYS);
    is_set_again(&k, "\"critical\"");
    ends(&k);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* Over HTTP the calls of the new wire session wait for the level. A message that is lost
 * is sent again. */
static void over_http_the_level_comes_before_the_calls(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    script_begin(&s, &options);
    script_initialize_with(&s, "one", LOGS);
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    record *set = kit_start(&s.k, "logging/setLevel", "{\"level\":\"alert\"}", NULL);
    script_result(script_expect(&s, "logging/setLevel"), "\"_meta\":{}");
    script_until(&s, set->completed);
    record *r = kit_call(&s.k, "t");
    script_error(script_expect(&s, "tools/call"), "404 Not Found", -32001, NULL);
    script_initialize_with(&s, "two", LOGS);
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    heard *again = script_expect(&s, "logging/setLevel");
    assert_at(again->body, "params.level", "\"alert\"");
    script_expect_silence(&s);
    script_cut(again, false);
    script_result(script_expect(&s, "tools/call"), "\"content\":[]");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    script_advance(&s, 1000);
    again = script_expect(&s, "logging/setLevel");
    assert_at(again->body, "params.level", "\"alert\"");
    script_result(again, "\"_meta\":{}");
    script_expect_silence(&s);
    script_end(&s);
}

/* Over HTTP a message belongs to the request on whose stream it comes. */
static void over_http_a_message_is_its_streams(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    script_begin(&s, &options);
    script_initialize_with(&s, "one", LOGS);
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    record *first = call(&s.k, "info");
    record *second = call(&s.k, "info");
    script_result(script_expect(&s, "logging/setLevel"), "\"_meta\":{}");
    heard *one = script_expect(&s, "tools/call");
    heard *two = script_expect(&s, "tools/call");
    bool swapped = atoi(json_at(one->body, "id")) > atoi(json_at(two->body, "id"));
    heard *last = swapped ? one : two;
    script_stream(last);
    script_event(last, NULL, "%s", MESSAGE("info"));
    script_stream_result(last, NULL, "\"content\":[]");
    script_until(&s, second->completed);
    script_result(swapped ? two : one, "\"content\":[]");
    script_until(&s, first->completed);
    assert_non_null(strstr(second->log, "log {\"level\":\"info\",\"data\":1}\n"));
    assert_null(strstr(first->log, "log"));
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_level_is_set_before_the_call),
        cmocka_unit_test(messages_below_its_level_are_not_given_to_a_request),
        cmocka_unit_test(a_request_that_asks_for_no_messages_gets_none),
        cmocka_unit_test(a_wish_that_is_refused_is_not_repeated),
        cmocka_unit_test(what_the_application_sets_is_known),
        cmocka_unit_test(a_task_hears_messages_too),
        cmocka_unit_test(what_the_application_has_set_is_set_again),
        cmocka_unit_test(what_a_task_wants_is_set_again),
        cmocka_unit_test(an_overruled_call_sets_no_level_again),
        cmocka_unit_test(over_http_the_level_comes_before_the_calls),
        cmocka_unit_test(over_http_a_message_is_its_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
