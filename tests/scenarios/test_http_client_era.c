/* Finding out the era of a server over HTTP. 2026-07-28
 * basic/transports/streamable-http, "Backward Compatibility": the client sends
 * server/discover first. A recognized modern error means a modern server; any other
 * refusal makes the client send initialize. A refusal for lack of authorization and an
 * unreachable server say nothing about the era. */
#include "support/http_script.h"
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

static void call_works(http_script *s)
{
    record *r = kit_call(&s->k, "t");
    script_result(script_expect(s, "tools/call"), "\"content\":[]");
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
}

static void a_modern_server_is_known_by_its_answer(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    heard *h = script_expect(&s, "server/discover");
    assert_header(h, "MCP-Protocol-Version", "2026-07-28");
    assert_header(h, "Mcp-Method", "server/discover");
    assert_header(h, "Mcp-Name", NULL);
    assert_header(h, "Accept", "application/json, text/event-stream");
    assert_header(h, "Content-Type", "application/json");
    script_result(h, "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                     "\"capabilities\":{}");
    script_until(&s, s.k.opened);
    call_works(&s);
    script_expect_silence(&s); /* the client opens no GET in this era */
    script_end(&s);
}

/* Plays the refusal of server/discover, then initialize and a session. */
static void falls_back(const char *status, const char *headers, const char *body)
{
    http_script s;
    script_begin(&s, NULL);
    script_say(script_expect(&s, "server/discover"), status, headers, body);
    script_initialize(&s, "one");
    heard *get = script_expect(&s, "GET");
    assert_header(get, "Mcp-Session-Id", "one");
    assert_header(get, "Accept", "text/event-stream");
    assert_header(get, "Mcp-Method", NULL);
    script_say(get, "405 Method Not Allowed", "", "");
    call_works(&s);
    script_end(&s);
}

#define JSON "Content-Type: application/json\r\n"

static void any_other_refusal_means_initialize(void **state)
{
    (void)state;
    static const char old[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":"
                              "-32000,\"message\":\"Server not initialized\"}}";
    falls_back("400 Bad Request", "", "");
    falls_back("400 Bad Request", "Content-Type: text/plain\r\n", "Bad Request");
    falls_back("400 Bad Request", JSON, old);
    falls_back("200 OK", JSON, old);
    falls_back("404 Not Found", "", "");
    falls_back("404 Not Found", JSON,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":"
               "\"Method not found\"}}");
    falls_back("405 Method Not Allowed", "Allow: GET\r\n", "");
    falls_back("500 Internal Server Error", "", "oops");
    falls_back("202 Accepted", "", "");
    falls_back("200 OK", JSON, "no JSON at all");
}

static void a_modern_error_that_lists_old_versions_means_initialize(void **state)
{
    (void)state;
    falls_back("400 Bad Request", JSON,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":"
               "\"no\",\"data\":{\"supported\":[\"2025-06-18\"]}}}");
}

/* As in the suite's request-metadata: one of several servers behind an address. */
static void a_version_that_is_listed_is_tried_once_more(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_say(script_expect(&s, "server/discover"), "400 Bad Request", JSON,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":"
               "\"no\",\"data\":{\"supported\":[\"2026-07-28\"]}}}");
    heard *h = script_expect(&s, "server/discover");
    assert_header(h, "MCP-Protocol-Version", "2026-07-28");
    script_result(h, "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                     "\"capabilities\":{}");
    call_works(&s);
    script_end(&s);
}

static void ends(const char *status, const char *headers, const char *body,
                 segue_status expected)
{
    http_script s;
    script_begin(&s, NULL);
    script_say(script_expect(&s, "server/discover"), status, headers, body);
    script_until(&s, s.k.closed);
    assert_int_equal(s.k.closed_status, expected);
    script_expect_silence(&s);
    script_end(&s);
}

/* Checks that the error names the URL, the status and the request. */
static void ends_with_status(const char *status, const char *headers, const char *body,
                             segue_status expected, const char *text)
{
    http_script s;
    char wanted[256];
    segue_session_options options = options_of(SEGUE_ERA_AUTO);
    script_begin(&s, &options);
    snprintf(wanted, sizeof wanted, "http://127.0.0.1:%d/mcp %s", s.peer.port, text);
    script_say(script_expect(&s, "server/discover"), status, headers, body);
    script_until(&s, s.k.closed);
    assert_int_equal(s.k.closed_status, expected);
    assert_string_equal(s.k.closed_message, wanted);
    script_end(&s);
}

/* A temporary refusal is reported where it is not retried. */
static void a_refusal_that_passes_is_told(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = options_of(SEGUE_ERA_AUTO);
    options.first_attempts = 1;
    script_begin(&s, &options);
    script_say(script_expect(&s, "server/discover"), "503 Service Unavailable", JSON,
               "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":"
               "\"The server is closing\"}}");
    script_until(&s, s.k.closed);
    assert_int_equal(s.k.closed_status, SEGUE_E_DISCONNECTED);
    assert_string_equal(s.k.closed_message, "HTTP status 503: The server is closing");
    script_end(&s);
}

static void a_modern_error_is_no_reason_to_initialize(void **state)
{
    (void)state;
    ends("400 Bad Request", JSON,
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"no\","
         "\"data\":{\"supported\":[\"2099-01-01\"]}}}",
         SEGUE_E_NEGOTIATION);
    ends("400 Bad Request", JSON,
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32020,\"message\":\"no\"}}",
         SEGUE_E_NEGOTIATION);
}

static void who_is_not_let_in_is_refused(void **state)
{
    (void)state;
    static const char foreign[] = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,"
                                  "\"message\":\"Origin\"}}";
    ends_with_status(
        "401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "", SEGUE_E_UNAUTHORIZED,
        "answered HTTP 401 to server/discover: the server requires authorization");
    ends_with_status("403 Forbidden", "", "", SEGUE_E_REFUSED,
                     "answered HTTP 403 to server/discover");
    ends_with_status("403 Forbidden", JSON, foreign, SEGUE_E_REFUSED,
                     "answered HTTP 403 to server/discover");
    ends_with_status(
        "407 Proxy Authentication Required", "", "", SEGUE_E_REFUSED,
        "answered HTTP 407 to server/discover: a proxy requires credentials");
    ends("200 OK", "Content-Type: text/html\r\n", "<html></html>", SEGUE_E_REFUSED);
    ends("307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n", "",
         SEGUE_E_REFUSED);
}

static void a_server_that_is_not_up_yet_is_waited_for(void **state)
{
    (void)state;
    http_script s;
    script_prepare(&s);
    http_peer_close(&s.peer);
    script_connect(&s, NULL);
    record *r = kit_call(&s.k, "t");
    for (int i = 0; i < 30; i++)
        script_pump(&s);
    assert_int_equal(s.k.closed, 0);
    http_peer_reopen(&s.peer);
    for (int i = 0; i < 200 && !script_next(&s); i++) {
        script_advance(&s, 250);
        script_pump(&s);
    }
    script_discover(&s, SERVER_PLAIN);
    script_result(script_expect(&s, "tools/call"), "\"content\":[]");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    script_end(&s);
}

static void reconnects_are_counted(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = options_of(SEGUE_ERA_AUTO);
    options.max_reconnects = 3;
    script_prepare(&s);
    http_peer_close(&s.peer);
    script_connect(&s, &options);
    for (int i = 0; i < 2000 && !s.k.closed; i++)
        script_advance(&s, 250);
    assert_int_equal(s.k.closed, 1);
    assert_int_equal(s.k.closed_status, SEGUE_E_DISCONNECTED);
    script_end(&s);
}

/* "HTTP: the modern request returns a 4xx without a recognized modern error body, and
 * the client falls back" (2026-07-28 basic/versioning): the client waits for a slow
 * server. */
static void silence_says_nothing_of_the_era(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = options_of(SEGUE_ERA_AUTO);
    options.probe_timeout_ms = 700;
    options.request_timeout_ms = 3000;
    script_begin(&s, &options);
    heard *discover = script_expect(&s, "server/discover");
    script_advance(&s, 2000);
    script_expect_silence(&s);
    script_result(discover, "\"resultType\":\"complete\",\"supportedVersions\":"
                            "[\"2026-07-28\"],\"capabilities\":{}");
    script_until(&s, s.k.opened);
    call_works(&s);
    script_end(&s);
}

/* A stream that is only kept open is no answer. */
static void who_never_answers_is_given_up(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        http_script s;
        segue_session_options options = options_of(SEGUE_ERA_AUTO);
        options.request_timeout_ms = 3000;
        script_begin(&s, &options);
        heard *discover = script_expect(&s, "server/discover");
        if (streams)
            script_stream(discover);
        for (int i = 0; i < 29; i++) {
            if (streams)
                script_text(discover, ": alive\n\n");
            script_pump(&s);
            script_advance(&s, 100);
        }
        assert_int_equal(s.k.closed, 0);
        script_advance(&s, 200);
        script_until(&s, s.k.closed);
        assert_int_equal(s.k.closed_status, SEGUE_E_NEGOTIATION);
        assert_string_equal(s.k.closed_message,
                            "the server did not answer server/discover within 3000 ms");
        script_end(&s);
    }
}

/* No MCP server is at this path: the error names the URL, the status and the text of the
 * answer. */
static void a_wrong_path_is_told(void **state)
{
    (void)state;
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"Not "
        "found: the server has no such path\"}}";
    for (int era = SEGUE_ERA_AUTO; era <= SEGUE_ERA_LEGACY; era++) {
        http_script s;
        char wanted[256];
        segue_session_options options = options_of(era);
        bool is_modern = era == SEGUE_ERA_MODERN;
        script_prepare(&s);
        snprintf(s.url, sizeof s.url, "http://127.0.0.1:%d/mpc?key=secret", s.peer.port);
        script_connect(&s, &options);
        if (era != SEGUE_ERA_LEGACY)
            script_say(script_expect(&s, "server/discover"), "404 Not Found", JSON, body);
        if (!is_modern)
            script_say(script_expect(&s, "initialize"), "404 Not Found", era ? JSON : "",
                       era ? body : "");
        if (era == SEGUE_ERA_AUTO) /* is it a server of 2024-11-05? */
            script_say(script_expect(&s, "GET"), "404 Not Found", "", "");
        script_until(&s, s.k.closed);
        assert_int_equal(s.k.closed_status, SEGUE_E_NEGOTIATION);
        snprintf(wanted, sizeof wanted,
                 "http://127.0.0.1:%d/mpc answered HTTP 404 to %s: is the path right? "
                 "(MCP servers often use /mcp)%s",
                 s.peer.port, is_modern ? "server/discover" : "initialize",
                 era ? ": Not found: the server has no such path" : "");
        assert_string_equal(s.k.closed_message, wanted);
        script_end(&s);
    }
}

/* A server that ends, or a proxy in front of one that starts, whatever form the refusal
 * has. */
static void a_refusal_that_passes_says_nothing_of_the_era(void **state)
{
    (void)state;
    static const char *const statuses[] = {"408 Request Timeout", "429 Too Many Requests",
                                           "502 Bad Gateway", "503 Service Unavailable",
                                           "504 Gateway Timeout"};
    static const char error[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":"
                                "-32603,\"message\":\"The server is closing\"}}";
    for (int i = 0; i < 10; i++) {
        http_script s;
        script_begin(&s, NULL);
        script_say(script_expect(&s, "server/discover"), statuses[i / 2],
                   i % 2 ? JSON : "", i % 2 ? error : "");
        script_pump(&s);
        script_advance(&s, 1000);
        script_discover(&s, SERVER_PLAIN);
        call_works(&s);
        script_end(&s);
    }
}

/* The server may have received it: requests go on without its answer. */
static void an_announcement_without_answer_holds_nobody_up(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = options_of(SEGUE_ERA_LEGACY);
    script_begin(&s, &options);
    script_result(script_expect(&s, "initialize"),
                  "\"protocolVersion\":\"2025-03-26\",\"capabilities\":{}");
    heard *announced = script_expect(&s, "notifications/initialized");
    assert_header(announced, "MCP-Protocol-Version", "2025-03-26");
    script_expect_silence(&s);
    script_advance(&s, 5100);
    script_until(&s, s.k.opened);
    script_say(script_expect(&s, "GET"), "405 Method Not Allowed", "", "");
    call_works(&s);
    script_advance(&s, 60000);
    script_until(&s, heard_is_closed(announced));
    script_end(&s);
}

/* ---- remembered eras ---- */

static void again(http_script *s)
{
    segue_session_close(s->k.session);
    script_until(s, s->k.closed);
    segue_session_free(s->k.session);
    s->k.session = NULL;
    s->k.transport = NULL;
    s->k.closed = s->k.opened = s->k.session_freed = 0;
    script_connect(s, NULL);
}

static void the_era_of_a_handshake_server_is_remembered(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_legacy(&s, "one");
    script_say(script_expect(&s, "GET"), "405 Method Not Allowed", "", "");
    segue_session_close(s.k.session);
    heard *farewell = script_expect(&s, "DELETE");
    assert_header(farewell, "Mcp-Session-Id", "one");
    assert_header(farewell, "MCP-Protocol-Version", "2025-11-25");
    script_say(farewell, "200 OK", "", "");
    again(&s);
    script_initialize(&s, NULL); /* initialize comes at once */
    script_say(script_expect(&s, "GET"), "405 Method Not Allowed", "", "");
    again(&s);
    /* A modern server has replaced it. */
    script_error(script_expect(&s, "initialize"), "400 Bad Request", -32022, NULL);
    script_discover(&s, SERVER_PLAIN);
    again(&s);
    script_discover(&s, SERVER_PLAIN);
    script_expect_silence(&s);
    script_end(&s);
}

/* An era that the application chose says nothing about the server. */
static void an_era_that_was_chosen_is_not_remembered(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = options_of(SEGUE_ERA_LEGACY);
    script_begin(&s, &options);
    script_initialize(&s, NULL);
    script_say(script_expect(&s, "GET"), "405 Method Not Allowed", "", "");
    again(&s);
    script_discover(&s, SERVER_PLAIN);
    script_expect_silence(&s);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_modern_server_is_known_by_its_answer),
        cmocka_unit_test(any_other_refusal_means_initialize),
        cmocka_unit_test(a_modern_error_that_lists_old_versions_means_initialize),
        cmocka_unit_test(a_version_that_is_listed_is_tried_once_more),
        cmocka_unit_test(a_modern_error_is_no_reason_to_initialize),
        cmocka_unit_test(who_is_not_let_in_is_refused),
        cmocka_unit_test(a_server_that_is_not_up_yet_is_waited_for),
        cmocka_unit_test(reconnects_are_counted),
        cmocka_unit_test(silence_says_nothing_of_the_era),
        cmocka_unit_test(who_never_answers_is_given_up),
        cmocka_unit_test(a_wrong_path_is_told),
        cmocka_unit_test(a_refusal_that_passes_says_nothing_of_the_era),
        cmocka_unit_test(a_refusal_that_passes_is_told),
        cmocka_unit_test(an_announcement_without_answer_holds_nobody_up),
        cmocka_unit_test(the_era_of_a_handshake_server_is_remembered),
        cmocka_unit_test(an_era_that_was_chosen_is_not_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
