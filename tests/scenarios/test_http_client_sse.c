/* The client speaks the transport HTTP+SSE of 2024-11-05 to servers that know no newer
 * one (2025-11-25 basic/transports, "Backwards Compatibility"). The server names an
 * endpoint on its event stream, takes messages there with 202, and answers on the
 * stream. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ENDPOINT "event: endpoint\r\ndata: /messages?s=1\r\n\r\n"
#define POST_TO "POST /messages?s=1 "
#define NO_POST "405 Method Not Allowed"

static void begin(http_script *s, int32_t use, const segue_session_options *options)
{
    script_prepare(s);
    s->options.http_sse = use;
    script_connect(s, options);
}

/* Waits for a message at the endpoint, and takes it. */
static heard *take(http_script *s, const char *method)
{
    heard *h = script_expect(s, method);
    assert_int_equal(strncmp(h->text, POST_TO, strlen(POST_TO)), 0);
    assert_header(h, "Mcp-Session-Id", NULL);
    script_accept(h);
    return h;
}

static void answer(heard *stream, const heard *asked, const char *members)
{
    char text[512];
    snprintf(text, sizeof text,
             "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}"
             "\r\n\r\n",
             json_at(asked->body, "id"), members);
    script_text(stream, text);
}

/* Plays the stream of the server, until the session is open. */
static heard *open_stream(http_script *s)
{
    int opened = s->k.opened;
    heard *stream = script_expect(s, "GET /mcp ");
    assert_header(stream, "Accept", "text/event-stream");
    script_stream(stream);
    script_text(stream, ENDPOINT);
    answer(stream, take(s, "initialize"),
           "\"protocolVersion\":\"2024-11-05\",\"capabilities\":{\"tools\":{}},"
           "\"serverInfo\":{\"name\":\"old\",\"version\":\"1\"}");
    take(s, "notifications/initialized");
    script_until(s, s->k.opened > opened);
    return stream;
}

static void call_works(http_script *s, heard *stream)
{
    record *r = kit_call(&s->k, "t");
    answer(stream, take(s, "tools/call"), "\"content\":[]");
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
}

static void refuse_posts(http_script *s, const char *status)
{
    script_say(script_expect(s, "server/discover"), status, "", "");
    script_say(script_expect(s, "initialize"), status, "", "");
}

static void a_server_that_refuses_initialize_is_tried_by_get(void **state)
{
    static const char *const refusals[] = {NO_POST, "404 Not Found", "400 Bad Request"};
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        http_script s;
        begin(&s, SEGUE_HTTP_SSE_AUTO, NULL);
        refuse_posts(&s, refusals[i]);
        heard *stream = open_stream(&s);
        call_works(&s, stream);
        script_end(&s);
    }
}

/* Without an endpoint, with one of another origin and without a stream, the refusal of
 * initialize is what the application hears of. */
static void a_stream_without_an_endpoint_changes_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        http_script s;
        begin(&s, SEGUE_HTTP_SSE_AUTO, NULL);
        refuse_posts(&s, NO_POST);
        heard *stream = script_expect(&s, "GET");
        if (i < 2)
            script_stream(stream);
        if (i == 0)
            script_advance(&s, 20000); /* the endpoint does not come in time */
        else if (i == 1)
            script_text(stream, "event: endpoint\ndata: http://127.0.0.2:1/m\n\n");
        else
            script_say(stream, i == 2 ? "200 OK" : "404 Not Found",
                       "Content-Type: text/html\r\n", "");
        script_until(&s, s.k.closed);
        assert_int_equal(s.k.closed_status, SEGUE_E_NEGOTIATION);
        assert_non_null(strstr(s.k.closed_message, "HTTP 405"));
        script_expect_silence(&s);
        script_end(&s);
    }
}

static void the_session_ends_with_its_stream(void **state)
{
    (void)state;
    http_script s;
    begin(&s, SEGUE_HTTP_SSE_AUTO, NULL);
    refuse_posts(&s, NO_POST);
    heard *stream = open_stream(&s);
    record *r = kit_call(&s.k, "t");
    take(&s, "tools/call");
    script_finish(stream);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    script_advance(&s, 5000);
    stream = open_stream(&s); /* no POST is tried at its URL first */
    call_works(&s, stream);
    script_end(&s);
}

static void it_can_be_switched_off(void **state)
{
    (void)state;
    http_script s;
    begin(&s, SEGUE_HTTP_SSE_NEVER, NULL);
    refuse_posts(&s, NO_POST);
    script_until(&s, s.k.closed);
    assert_int_equal(s.k.closed_status, SEGUE_E_NEGOTIATION);
    assert_non_null(strstr(s.k.closed_message, "HTTP 405"));
    script_expect_silence(&s);
    script_end(&s);
}

static void it_can_be_the_only_transport(void **state)
{
    (void)state;
    for (int era = SEGUE_ERA_AUTO; era <= SEGUE_ERA_LEGACY; era += SEGUE_ERA_LEGACY) {
        segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
        http_script s;
        options.era = era;
        begin(&s, SEGUE_HTTP_SSE_ONLY, &options);
        heard *stream = open_stream(&s);
        call_works(&s, stream);
        script_finish(stream);
        script_advance(&s, 5000);
        call_works(&s, open_stream(&s));
        script_end(&s);
    }
}

/* The refusal of the GET is told; a server that cannot be used now is tried again. */
static void a_refusal_of_the_only_stream_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        http_script s;
        begin(&s, SEGUE_HTTP_SSE_ONLY, NULL);
        script_say(script_expect(&s, "GET"), "503 Service Unavailable", "", "");
        script_advance(&s, 5000);
        script_say(script_expect(&s, "GET"), i ? "404 Not Found" : "200 OK",
                   "Content-Type: text/html\r\n", "");
        script_until(&s, s.k.closed);
        assert_non_null(
            strstr(s.k.closed_message, i ? "HTTP 404" : "sent no event stream"));
        script_expect_silence(&s);
        script_end(&s);
    }
}

static void set_header(void *user, segue_transport *transport, int32_t status)
{
    (void)user;
    segue_transport_set_header(transport, "X-Key", status ? "new" : "old", NULL);
}

static void another_token_is_tried_for_the_stream(void **state)
{
    (void)state;
    http_script s;
    script_prepare(&s);
    s.options.http_sse = SEGUE_HTTP_SSE_ONLY;
    s.options.on_headers = set_header;
    script_connect(&s, NULL);
    heard *get = script_expect(&s, "GET");
    assert_header(get, "X-Key", "old");
    script_say(get, "401 Unauthorized", "", "");
    heard *stream = script_expect(&s, "GET");
    assert_header(stream, "X-Key", "new");
    script_stream(stream);
    script_text(stream, ENDPOINT);
    take(&s, "initialize");
    script_end(&s);
}

static void a_session_of_2026_07_28_has_no_such_transport(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = SEGUE_ERA_MODERN;
    begin(&s, SEGUE_HTTP_SSE_ONLY, &options);
    script_until(&s, s.k.closed);
    assert_int_equal(s.k.closed_status, SEGUE_E_NEGOTIATION);
    script_expect_silence(&s);
    script_end(&s);
}

static void the_option_is_checked(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    segue_transport *transport;
    segue_http_options options = SEGUE_HTTP_OPTIONS_INIT;
    options.http_sse = 3;
    assert_int_equal(segue_transport_http(s.k.runtime, s.url, &options, &transport, NULL),
                     SEGUE_E_INVALID);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"R-0-9 a server that refuses initialize is tried by GET",
         a_server_that_refuses_initialize_is_tried_by_get, 0, 0, 0},
        {"R-0-9 a stream without an endpoint changes nothing",
         a_stream_without_an_endpoint_changes_nothing, 0, 0, 0},
        {"R-0-10 the session ends with its stream", the_session_ends_with_its_stream, 0,
         0, 0},
        {"R-0-11 it can be switched off", it_can_be_switched_off, 0, 0, 0},
        {"R-0-11 it can be the only transport", it_can_be_the_only_transport, 0, 0, 0},
        {"R-0-11 a refusal of the only stream is told",
         a_refusal_of_the_only_stream_is_told, 0, 0, 0},
        {"R-0-11 another token is tried for the stream",
         another_token_is_tried_for_the_stream, 0, 0, 0},
        {"R-0-11 a session of 2026-07-28 has no such transport",
         a_session_of_2026_07_28_has_no_such_transport, 0, 0, 0},
        {"the option is checked", the_option_is_checked, 0, 0, 0},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
