/* Sessions of the handshake eras over HTTP (2025-11-25 basic/transports, Streamable
 * HTTP): the session id of initialize, the stream of GET, resuming by Last-Event-ID,
 * taking over from a living connection, DELETE. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define INITIALIZE                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"               \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                            \
    "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}"

static char lines[160]; /* headers of the session */

static void begin(http_stage *s, http_caller *c)
{
    http_reply reply;
    http_stage_open(s, c);
    http_caller_ask(c, http_post("", INITIALIZE), &reply);
    assert_int_equal(reply.status, 200);
    snprintf(lines, sizeof lines,
             "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-11-25\r\n",
             http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
}

static void say_post(http_caller *c, const char *body)
{
    char *request = http_post(lines, body);
    http_caller_say(c, request);
    free(request);
}

static void say(http_caller *c, const char *method, const char *more)
{
    char request[512];
    snprintf(request, sizeof request, "%s /mcp HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n",
             method, lines, more);
    http_caller_say(c, request);
}

static void expect_stream(http_caller *c)
{
    http_reply reply;
    http_caller_read(c, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(http_reply_header(&reply, "Content-Type"), "text/event-stream");
}

static void call_slowly(http_caller *c, const char *ms)
{
    char body[200];
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"
             "\"name\":\"slow_compute\",\"arguments\":{\"ms\":%s}}}",
             ms);
    say_post(c, body);
}

/* Makes "Last-Event-ID: <id of the event>\r
 * ". */
static void remember(char header[128], const char *event)
{
    char id[64] = "";
    const char *at = strstr(event, "id: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "id: %63s", id), 1);
    snprintf(header, 128, "Last-Event-ID: %s\r\n", id);
}

static void notifications_are_accepted(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    begin(&s, &c);
    say_post(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 202);
    assert_int_equal(reply.body_len, 0);
    http_reply_free(&reply);
    http_stage_close(&s, &c);
}

static void a_session_is_asked_for_and_must_exist(void **state)
{
    http_stage s = {0};
    http_caller c;
    static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}";
    /* a request that needs a session (R-0-12) */
    static const char level[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"logging/"
                                "setLevel\",\"params\":{\"level\":\"info\"}}";
    (void)state;
    begin(&s, &c);
    char good[160];
    memcpy(good, lines, sizeof good);
    *lines = 0;
    say_post(&c, level);
    assert_int_equal(http_caller_status(&c), 400);
    say(&c, "GET", "");
    assert_int_equal(http_caller_status(&c), 405);
    say(&c, "DELETE", "");
    assert_int_equal(http_caller_status(&c), 405);
    strcpy(lines, "Mcp-Session-Id: nobody\r\n");
    say_post(&c, list);
    assert_int_equal(http_caller_status(&c), 404);
    say(&c, "DELETE", "");
    assert_int_equal(http_caller_status(&c), 404);
    memcpy(lines, good, sizeof good);
    say_post(&c, list);
    assert_int_equal(http_caller_status(&c), 200);
    say(&c, "DELETE", "");
    assert_int_equal(http_caller_status(&c), 204);
    say_post(&c, list);
    assert_int_equal(http_caller_status(&c), 404);
    http_stage_close(&s, &c);
}

static void the_stream_of_a_session_hears_of_changes(void **state)
{
    http_stage s = {0};
    http_caller c, second;
    (void)state;
    begin(&s, &c);
    say_post(&c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    assert_int_equal(http_caller_status(&c), 202);
    say(&c, "GET", "");
    expect_stream(&c);
    http_caller_open(&s, &second); /* a session has one such stream */
    say(&second, "GET", "");
    assert_int_equal(http_caller_status(&second), 409);
    free(http_caller_event(&c)); /* the first event has only an id */
    assert_int_equal(segue_server_remove(s.server, SEGUE_ITEM_TOOL, "greet"), SEGUE_OK);
    char *event = http_caller_event(&c);
    assert_non_null(strstr(event, "notifications/tools/list_changed"));
    free(event);
    say(&second, "DELETE", ""); /* this ends the stream too */
    assert_int_equal(http_caller_status(&second), 204);
    assert_null(http_caller_event(&c));
    http_caller_until_closed(&c);
    http_caller_close(&second);
    http_stage_close(&s, &c);
}

/* A call outlives its connection, and another connection takes it up. */
static void a_call_that_was_cut_off_is_resumed(void **state)
{
    static const bool hard[] = {false, true};
    (void)state;
    for (int i = 0; i < 2; i++) {
        http_stage s = {0};
        http_caller c, again;
        char header[128];
        begin(&s, &c);
        call_slowly(&c, "1000");
        http_stage_advance(&s, 300);
        expect_stream(&c);
        char *event = http_caller_event(&c);
        remember(header, event);
        free(event);
        if (hard[i])
            http_caller_reset(&c);
        else
            http_caller_close(&c);
        http_stage_advance(&s, 2000);
        http_caller_open(&s, &again);
        say(&again, "GET", header);
        expect_stream(&again);
        event = http_caller_event(&again);
        assert_non_null(strstr(event, "\"id\":7"));
        assert_non_null(strstr(event, "\"result\""));
        free(event);
        assert_null(http_caller_event(&again));
        http_stage_close(&s, &again);
    }
}

/* The old connection seems to hang, so the newest connection gets the stream. */
static void a_stream_is_taken_over_from_a_living_connection(void **state)
{
    http_stage s = {0};
    http_caller c, again;
    char header[128];
    (void)state;
    begin(&s, &c);
    call_slowly(&c, "2000");
    http_stage_advance(&s, 300);
    expect_stream(&c);
    char *event = http_caller_event(&c);
    remember(header, event);
    free(event);
    http_caller_open(&s, &again);
    say(&again, "GET", header);
    expect_stream(&again);
    assert_null(http_caller_event(&c));
    http_caller_until_closed(&c);
    http_stage_advance(&s, 2500);
    event = http_caller_event(&again);
    assert_non_null(strstr(event, "\"result\""));
    free(event);
    assert_null(http_caller_event(&again));
    http_caller_close(&c);
    http_stage_close(&s, &again);
}

/* The session ends while a call runs: every request gets an answer. */
static void a_session_ends_under_its_calls(void **state)
{
    http_stage s = {0};
    http_caller open, streaming, c;
    (void)state;
    begin(&s, &c);
    http_caller_open(&s, &streaming);
    http_caller_open(&s, &open);
    call_slowly(&streaming, "9000");
    http_stage_advance(&s, 300);
    expect_stream(&streaming);
    say_post(&open, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{"
                    "\"name\":\"hang_plain\"}}");
    http_stage_run(&s);
    assert_int_equal(fixtures_jobs(s.fixtures), 2);
    say(&c, "DELETE", "");
    assert_int_equal(http_caller_status(&c), 204);
    assert_int_equal(http_caller_status(&open), 503);
    free(http_caller_event(&streaming));
    assert_null(http_caller_event(&streaming));
    http_stage_run(&s);
    assert_int_equal(fixtures_jobs(s.fixtures), 0);
    http_caller_close(&open);
    http_caller_close(&streaming);
    http_stage_close(&s, &c);
}

static void sessions_have_a_limit_and_expire(void **state)
{
    http_stage s = {.listen = {.max_sessions = 2, .session_idle_ms = 60000}};
    http_caller c;
    static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}";
    (void)state;
    begin(&s, &c);
    say_post(&c, list);
    assert_int_equal(http_caller_status(&c), 200);
    for (int i = 0; i < 2; i++) { /* the oldest idle session makes room */
        char *request = http_post("", INITIALIZE);
        http_caller_say(&c, request);
        assert_int_equal(http_caller_status(&c), 200);
        free(request);
    }
    say_post(&c, list);
    assert_int_equal(http_caller_status(&c), 404);
    http_caller_close(&c);
    http_stage_end(&s);

    memset(&s, 0, sizeof s);
    s.listen.session_idle_ms = 60000;
    begin(&s, &c);
    http_stage_advance(&s, 61000);
    say_post(&c, list);
    assert_int_equal(http_caller_status(&c), 404);
    http_stage_close(&s, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notifications_are_accepted),
        cmocka_unit_test(a_session_is_asked_for_and_must_exist),
        cmocka_unit_test(the_stream_of_a_session_hears_of_changes),
        cmocka_unit_test(a_call_that_was_cut_off_is_resumed),
        cmocka_unit_test(a_stream_is_taken_over_from_a_living_connection),
        cmocka_unit_test(a_session_ends_under_its_calls),
        cmocka_unit_test(sessions_have_a_limit_and_expire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
