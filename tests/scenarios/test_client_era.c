/* Finding out the era of a server. 2026-07-28 basic/transports/stdio, backward
 * compatibility: the client sends server/discover first. A modern answer or a modern
 * error means a modern server. Any other answer, and silence, makes the client send
 * initialize. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static segue_session_options options_of(int32_t era)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = era;
    return options;
}

static void answer_initialize(kit *k, const char *version)
{
    const char *request = kit_expect(k, "initialize");
    kit_result(k, request,
               "\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},"
               "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"},\"instructions\":\"i\"",
               version);
}

static void a_modern_server_is_known_by_its_answer(void **state)
{
    (void)state;
    kit k = {0};
    char peer[512];
    size_t len = sizeof peer;
    kit_begin(&k, NULL);
    assert_int_equal(segue_session_peer(k.session, peer, &len), SEGUE_E_STATE);
    const char *discover = kit_expect(&k, "server/discover");
    assert_non_null(
        strstr(discover, "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""));
    assert_non_null(strstr(discover, "\"io.modelcontextprotocol/tasks\":{}"));
    kit_expect_silence(&k); /* requests wait for the answer */
    kit_result(
        &k, discover,
        "\"resultType\":\"complete\",\"supportedVersions\":[\"2099-01-01\","
        "\"2026-07-28\"],\"capabilities\":" SERVER_PLAIN
        ",\"instructions\":\"i\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":"
        "{\"name\":\"s\",\"version\":\"1\"}}");
    assert_int_equal(k.opened, 1);
    len = 3;
    assert_int_equal(segue_session_peer(k.session, peer, &len), SEGUE_E_TOO_SMALL);
    assert_true(len > 3 && len < sizeof peer);
    len = sizeof peer;
    assert_int_equal(segue_session_peer(k.session, peer, &len), SEGUE_OK);
    assert_int_equal(strlen(peer), len);
    assert_at(peer, "protocolVersion", "\"2026-07-28\"");
    assert_at(peer, "serverInfo.name", "\"s\"");
    assert_at(peer, "instructions", "\"i\"");
    kit_end(&k);
}

static void requests_wait_until_the_session_is_open(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin(&k, NULL);
    record *r = kit_call(&k, "t");
    kit_handshake(&k, SERVER_PLAIN);
    kit_result(&k, kit_expect(&k, "tools/call"), "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* Checks what a handshake session sends and what it does not. */
static void check_legacy(kit *k, const char *version)
{
    char peer[512];
    size_t len = sizeof peer;
    kit_expect(k, "notifications/initialized");
    assert_int_equal(k->opened, 1);
    assert_int_equal(segue_session_peer(k->session, peer, &len), SEGUE_OK);
    assert_string_equal(json_at(peer, "protocolVersion"), version);
    record *r = kit_call(k, "t");
    const char *call = kit_expect(k, "tools/call");
    assert_false(json_mentions(call, "io.modelcontextprotocol/protocolVersion"));
    assert_false(json_mentions(call, "dev.segue/idempotencyKey"));
    kit_result(k, call, "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
}

static void any_other_error_means_initialize(void **state)
{
    (void)state;
    static const int codes[] = {-32601, -32602, -32000, -32600, 0};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        kit k = {0};
        kit_begin(&k, NULL);
        kit_error(&k, kit_expect(&k, "server/discover"), codes[i], NULL);
        answer_initialize(&k, "2025-06-18");
        check_legacy(&k, "\"2025-06-18\"");
        kit_end(&k);
    }
}

static void silence_means_initialize(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = options_of(SEGUE_ERA_AUTO);
    options.probe_timeout_ms = 700;
    kit_begin(&k, &options);
    const char *discover = kit_expect(&k, "server/discover");
    kit_advance(&k, 690);
    kit_expect_silence(&k);
    kit_advance(&k, 20);
    answer_initialize(&k, "2025-11-25");
    kit_error(&k, discover, -32601, NULL); /* a late answer is dropped */
    check_legacy(&k, "\"2025-11-25\"");
    kit_end(&k);
}

/* ---- a program that starts more slowly than the client waits ---- */

#define MODERN_ONLY "{\"supported\":[\"2026-07-28\"],\"requested\":\"2025-11-25\"}"
#define DISCOVERED                                                                       \
    "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"                \
    "\"capabilities\":" SERVER_PLAIN

/* Lets the client send both server/discover and initialize. */
static void begin_slowly(kit *k, const char **discover, const char **initialize)
{
    kit_begin(k, NULL);
    *discover = kit_expect(k, "server/discover");
    kit_advance(k, 5100);
    *initialize = kit_expect(k, "initialize");
}

static void is_modern(kit *k)
{
    assert_int_equal(k->opened, 1);
    record *r = kit_call(k, "t");
    const char *call = kit_expect(k, "tools/call");
    assert_true(json_mentions(call, "io.modelcontextprotocol/protocolVersion"));
    kit_result(k, call, "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_expect_silence(k);
    kit_end(k);
}

static void a_late_answer_is_taken(void **state)
{
    (void)state;
    kit k = {0};
    const char *discover, *initialize;
    begin_slowly(&k, &discover, &initialize);
    kit_result(&k, discover, DISCOVERED);
    kit_error(&k, initialize, -32022, MODERN_ONLY); /* the client does not wait for it any
                                                     * more */
    is_modern(&k);
}

static void a_refusal_waits_for_a_late_answer(void **state)
{
    (void)state;
    static const int codes[] = {-32022, -32601};
    for (size_t i = 0; i < 2; i++) {
        kit k = {0};
        const char *discover, *initialize;
        begin_slowly(&k, &discover, &initialize);
        kit_error(&k, initialize, codes[i], i ? NULL : MODERN_ONLY);
        kit_expect_silence(&k);
        assert_int_equal(k.closed, 0);
        kit_result(&k, discover, DISCOVERED);
        is_modern(&k);
    }
}

static void a_refusal_that_nothing_follows_is_the_end(void **state)
{
    (void)state;
    for (int answers = 0; answers < 2; answers++) {
        kit k = {0};
        const char *discover, *initialize;
        begin_slowly(&k, &discover, &initialize);
        kit_error(&k, initialize, -32603, NULL);
        kit_advance(&k, 4900);
        assert_int_equal(k.closed, 0);
        if (answers)
            kit_error(&k, discover, -32601, NULL);
        else
            kit_advance(&k, 200);
        assert_int_equal(k.closed_status, SEGUE_E_NEGOTIATION);
        assert_string_equal(k.closed_message, "the server refused initialize: no");
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* The server was still starting when it refused server/discover. */
static void a_server_that_names_the_modern_era_is_asked_again(void **state)
{
    (void)state;
    kit k = {0}, wayward = {0};
    kit_begin(&k, NULL);
    kit_error(&k, kit_expect(&k, "server/discover"), -32603, NULL);
    kit_error(&k, kit_expect(&k, "initialize"), -32022, MODERN_ONLY);
    kit_result(&k, kit_expect(&k, "server/discover"), DISCOVERED);
    is_modern(&k);
    kit_begin(&wayward, NULL);
    kit_error(&wayward, kit_expect(&wayward, "server/discover"), -32603, NULL);
    kit_error(&wayward, kit_expect(&wayward, "initialize"), -32022, MODERN_ONLY);
    kit_error(&wayward, kit_expect(&wayward, "server/discover"), -32603, NULL);
    assert_string_equal(wayward.closed_message, "the server refused initialize: no");
    kit_end(&wayward);
}

static void the_modern_era_is_waited_for(void **state)
{
    (void)state;
    kit k = {0}, silent = {0};
    segue_session_options options = options_of(SEGUE_ERA_MODERN);
    kit_begin(&k, &options);
    const char *discover = kit_expect(&k, "server/discover");
    kit_advance(&k, 30000);
    kit_expect_silence(&k);
    kit_result(&k, discover, DISCOVERED);
    is_modern(&k);
    kit_begin(&silent, &options);
    kit_expect(&silent, "server/discover");
    kit_advance(&silent, 60100);
    assert_int_equal(silent.closed_status, SEGUE_E_NEGOTIATION);
    assert_string_equal(silent.closed_message,
                        "the server did not answer server/discover within 60000 ms");
    kit_end(&silent);
}

static void an_answer_without_our_version_means_initialize(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin(&k, NULL);
    kit_result(&k, kit_expect(&k, "server/discover"),
               "\"supportedVersions\":[\"2099-01-01\"],\"capabilities\":{}");
    answer_initialize(&k, "2024-11-05");
    check_legacy(&k, "\"2024-11-05\"");
    kit_end(&k);
}

/* -32022 comes from a modern server: it lists its versions. */
static void a_modern_error_decides_by_its_list(void **state)
{
    (void)state;
    kit none = {0}, common = {0};
    kit_begin(&none, NULL);
    record *r = kit_call(&none, "t");
    kit_error(&none, kit_expect(&none, "server/discover"), -32022,
              "{\"supported\":[\"2099-01-01\"],\"requested\":\"2026-07-28\"}");
    assert_int_equal(none.closed_status, SEGUE_E_NEGOTIATION);
    assert_int_equal(r->status, SEGUE_E_NEGOTIATION);
    kit_expect_silence(&none);
    kit_end(&none);

    kit_begin(&common, NULL);
    kit_error(&common, kit_expect(&common, "server/discover"), -32022,
              "{\"supported\":[\"2025-06-18\"],\"requested\":\"2026-07-28\"}");
    answer_initialize(&common, "2025-06-18");
    check_legacy(&common, "\"2025-06-18\"");
    kit_end(&common);
}

/* 2026-07-28 basic/versioning: a version that is refused, but listed, is tried again,
 * though not for ever; then the older ones of the list. */
static void a_version_that_is_listed_is_tried_once_more(void **state)
{
    (void)state;
    static const char both[] =
        "{\"supported\":[\"2026-07-28\",\"2025-06-18\"],\"requested\":\"2026-07-28\"}";
    kit k = {0}, wayward = {0}, stubborn = {0};
    kit_begin(&k, NULL);
    kit_error(&k, kit_expect(&k, "server/discover"), -32022, both);
    kit_handshake(&k, SERVER_PLAIN);
    assert_int_equal(k.opened, 1);
    kit_end(&k);

    kit_begin(&wayward, NULL);
    kit_error(&wayward, kit_expect(&wayward, "server/discover"), -32022, both);
    kit_error(&wayward, kit_expect(&wayward, "server/discover"), -32022, both);
    answer_initialize(&wayward, "2025-06-18");
    check_legacy(&wayward, "\"2025-06-18\"");
    kit_end(&wayward);

    kit_begin(&stubborn, NULL);
    for (int i = 0; i < 2; i++)
        kit_error(&stubborn, kit_expect(&stubborn, "server/discover"), -32022,
                  "{\"supported\":[\"2026-07-28\"],\"requested\":\"2026-07-28\"}");
    assert_int_equal(stubborn.closed_status, SEGUE_E_NEGOTIATION);
    kit_expect_silence(&stubborn);
    kit_end(&stubborn);
}

static void an_era_that_is_asked_for_is_not_left(void **state)
{
    (void)state;
    kit modern = {0}, legacy = {0};
    segue_session_options options = options_of(SEGUE_ERA_MODERN);
    kit_begin(&modern, &options);
    kit_error(&modern, kit_expect(&modern, "server/discover"), -32601, NULL);
    assert_int_equal(modern.closed_status, SEGUE_E_NEGOTIATION);
    kit_expect_silence(&modern);
    kit_end(&modern);

    options = options_of(SEGUE_ERA_LEGACY);
    options.capabilities = "{\"roots\":{},\"experimental\":{\"x\":{}}}";
    kit_begin(&legacy, &options);
    const char *initialize = kit_heard(&legacy);
    assert_at(initialize, "method", "\"initialize\"");
    assert_at(initialize, "params.capabilities",
              "{\"tasks\":{\"responses\":{\"modes\":[\"task\",\"immediate\","
              "\"streaming\"]}},\"experimental\":{\"dev.segue/replace\":{},\"x\":{}},"
              "\"roots\":{}}");
    kit_result(
        &legacy, initialize,
        "\"protocolVersion\":\"2025-03-26\",\"capabilities\":{},\"serverInfo\":{}");
    check_legacy(&legacy, "\"2025-03-26\"");
    kit_end(&legacy);
}

/* JSON may write a name in several ways; what the application wrote stays. */
static void names_of_capabilities_keep_their_escapes(void **state)
{
    (void)state;
    static const char own[] = "\"extensions\":{\"x\\/y\":{}},\"a\\u00e9\":{},"
                              "\"experimental\":{\"b\\\"c\":{}}";
    for (int legacy = 0; legacy < 2; legacy++) {
        char capabilities[sizeof own + 2];
        kit k = {0};
        segue_session_options options =
            options_of(legacy ? SEGUE_ERA_LEGACY : SEGUE_ERA_MODERN);
        snprintf(capabilities, sizeof capabilities, "{%s}", own);
        options.capabilities = capabilities;
        kit_begin(&k, &options);
        const char *said = kit_heard(&k);
        assert_non_null(strstr(said, "{\"x\\/y\":{}"));
        assert_non_null(strstr(said, "\"a\\u00e9\":{}"));
        assert_non_null(strstr(said, "\"b\\\"c\":{}"));
        kit_end(&k);
    }
}

static void a_handshake_that_fails_ends_the_session(void **state)
{
    (void)state;
    kit refused = {0}, strange = {0}, silent = {0};
    segue_session_options options = options_of(SEGUE_ERA_LEGACY);
    kit_begin(&refused, &options);
    record *r = kit_call(&refused, "t");
    kit_error(&refused, kit_expect(&refused, "initialize"), -32602, NULL);
    assert_int_equal(refused.closed_status, SEGUE_E_NEGOTIATION);
    assert_string_equal(r->message, "the server refused initialize: no");
    kit_end(&refused);

    kit_begin(&strange, &options);
    answer_initialize(&strange, "1999-01-01");
    assert_int_equal(strange.closed_status, SEGUE_E_NEGOTIATION);
    kit_end(&strange);

    kit_begin(&silent, &options);
    r = kit_call(&silent, "t");
    kit_expect(&silent, "initialize");
    kit_advance(&silent, 61000);
    assert_int_equal(silent.closed_status, SEGUE_E_NEGOTIATION);
    assert_int_equal(r->status, SEGUE_E_NEGOTIATION);
    kit_end(&silent);
}

/* After a reconnect there may be another program at the other end. */
static void the_era_is_found_out_anew_after_a_reconnect(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    kit_cut(&k);
    kit_run(&k);
    assert_int_equal(k.reopens, 1);
    kit_error(&k, kit_expect(&k, "server/discover"), -32601, NULL);
    answer_initialize(&k, "2025-11-25");
    k.opened--; /* on_open comes once per connection. */
    check_legacy(&k, "\"2025-11-25\"");
    kit_end(&k);
}

static void no_tasks_declares_none_and_takes_none(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = options_of(SEGUE_ERA_AUTO);
    options.no_tasks = 1;
    kit_begin_modern(&k, &options, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    assert_null(strstr(call, "io.modelcontextprotocol/tasks"));
    kit_result(&k, call, CREATED("T"));
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    kit_expect_silence(&k);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_modern_server_is_known_by_its_answer),
        cmocka_unit_test(requests_wait_until_the_session_is_open),
        cmocka_unit_test(any_other_error_means_initialize),
        cmocka_unit_test(silence_means_initialize),
        cmocka_unit_test(a_late_answer_is_taken),
        cmocka_unit_test(a_refusal_waits_for_a_late_answer),
        cmocka_unit_test(a_refusal_that_nothing_follows_is_the_end),
        cmocka_unit_test(a_server_that_names_the_modern_era_is_asked_again),
        cmocka_unit_test(the_modern_era_is_waited_for),
        cmocka_unit_test(an_answer_without_our_version_means_initialize),
        cmocka_unit_test(a_modern_error_decides_by_its_list),
        cmocka_unit_test(a_version_that_is_listed_is_tried_once_more),
        cmocka_unit_test(an_era_that_is_asked_for_is_not_left),
        cmocka_unit_test(names_of_capabilities_keep_their_escapes),
        cmocka_unit_test(a_handshake_that_fails_ends_the_session),
        cmocka_unit_test(the_era_is_found_out_anew_after_a_reconnect),
        cmocka_unit_test(no_tasks_declares_none_and_takes_none),
    };
    return cmocka_run_group_tests_name("client_era", tests, NULL, NULL);
}
