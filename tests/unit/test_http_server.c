/* The HTTP server as a correct caller sees it: answers, pipelines, streams, sessions, the
 * principal callback, CORS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thresholds.h"
#include "support/http_stage.h"

#define GREET "{\"name\":\"Ada\"}"

static void expect_greeting(http_caller *c, const char *id)
{
    http_reply reply;
    char want[32];
    http_caller_read(c, &reply);
    assert_int_equal(reply.status, 200);
    snprintf(want, sizeof want, "\"id\":%s,", id);
    assert_non_null(strstr(reply.body, want));
    assert_non_null(strstr(reply.body, "Hello, Ada!"));
    http_reply_free(&reply);
}

static void a_call_is_answered(void **state)
{
    http_stage s = {0};
    http_caller c;
    (void)state;
    http_stage_open(&s, &c);
    for (int i = 0; i < 3; i++) { /* three requests on one connection */
        char *request = http_call("1", "greet", GREET);
        http_caller_say(&c, request);
        expect_greeting(&c, "1");
        free(request);
    }
    http_stage_close(&s, &c);
}

/* A pipeline of many requests, in one write, byte by byte, and cut once at each byte. */
static char *make_pipeline(void)
{
    char *parts[] = {http_call("1", "greet", GREET),
                     strdup("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                     http_call("\"b\"", "greet", GREET),
                     strdup("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                     strdup("POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
                            "Content-Type: application/json\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n"
                            "1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n"),
                     http_call("3", "greet", GREET)};
    char *all = calloc(1, 8192);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        strcat(all, parts[i]);
        free(parts[i]);
    }
    return all;
}

static void expect_pipeline(http_caller *c)
{
    http_reply reply;
    expect_greeting(c, "1");
    assert_int_equal(http_caller_status(c), 404);
    expect_greeting(c, "\"b\"");
    http_caller_read(c, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body, "ok\n");
    http_reply_free(&reply);
    http_caller_read(c, &reply);
    assert_int_equal(reply.status, 400);
    assert_non_null(strstr(reply.body, "-32600"));
    http_reply_free(&reply);
    expect_greeting(c, "3");
    http_caller_quiet(c);
}

static void a_pipeline_is_answered_in_order(void **state)
{
    http_stage s = {.listen = {.health_path = "/health"}};
    http_caller c;
    char *all = make_pipeline();
    size_t len = strlen(all);
    (void)state;
    http_stage_open(&s, &c);
    http_caller_send(&c, all, len);
    expect_pipeline(&c);
    http_caller_drip(&c, all, len);
    expect_pipeline(&c);
    for (size_t at = 1; at < len; at++) {
        http_caller_send(&c, all, at);
        http_stage_run(&s);
        http_caller_send(&c, all + at, len - at);
        expect_pipeline(&c);
    }
    free(all);
    http_stage_close(&s, &c);
}

static void expect_get(http_caller *c, const char *path, int status)
{
    char request[128];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    http_caller_say(c, request);
    assert_int_equal(http_caller_status(c), status);
}

static void the_application_says_whether_it_is_ready(void **state)
{
    http_stage s = {.listen = {.health_path = "/health", .ready_path = "/ready"}};
    http_caller c;
    char *request = http_call("1", "greet", GREET);
    (void)state;
    http_stage_open(&s, &c);
    expect_get(&c, "/ready", 200);
    assert_int_equal(segue_listener_set_ready(s.listener, 0), SEGUE_OK);
    expect_get(&c, "/ready", 503);
    expect_get(&c, "/health", 200);
    http_caller_say(&c, request); /* requests are served in either case */
    expect_greeting(&c, "1");
    assert_int_equal(segue_listener_set_ready(s.listener, 1), SEGUE_OK);
    expect_get(&c, "/ready", 200);
    free(request);
    http_stage_close(&s, &c);
}

/* More requests come behind a slow call than may wait. The server stops reading and later
 * continues. */
static void a_long_pipeline_waits(void **state)
{
    enum { COUNT = 1500 };
    http_stage s = {0};
    http_caller c;
    char *slow = http_call("0", "slow_compute", "{\"ms\":100}");
    char *request = http_call("1", "greet", GREET);
    (void)state;
    http_stage_open(&s, &c);
    http_caller_say(&c, slow);
    http_stage_run(&s);
    for (int i = 0; i < 150; i++)
        http_caller_say(&c, request);
    http_caller_quiet(&c);
    http_stage_advance(&s, 150);
    assert_int_equal(http_caller_status(&c), 200);
    for (int i = 0; i < 150; i++)
        expect_greeting(&c, "1");
    free(slow);
    /* This caller is always ahead of its answers. */
    for (int sent = 0, read = 0; read < COUNT; read++) {
        for (; sent < COUNT && sent < read + 100; sent++)
            http_caller_say(&c, request);
        expect_greeting(&c, "1");
    }
    free(request);
    http_stage_close(&s, &c);
}

static void old_versions_are_closed_unless_kept(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    static const char body[] = "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}";
    char text[512];
    (void)state;
    http_stage_open(&s, &c);
    snprintf(text, sizeof text,
             "POST /mcp HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n"
             "MCP-Protocol-Version: 2026-07-28\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    http_caller_say(&c, text);
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 202);
    assert_string_equal(http_reply_header(&reply, "Connection"), "keep-alive");
    assert_string_equal(http_reply_header(&reply, "Content-Length"), "0");
    http_reply_free(&reply);
    memcpy(strstr(text, "keep-alive"), "keep-al1ve", 10);
    http_caller_say(&c, text);
    http_caller_read(&c, &reply);
    assert_string_equal(http_reply_header(&reply, "Connection"), "close");
    http_reply_free(&reply);
    http_caller_until_closed(&c);
    http_stage_close(&s, &c);
}

/* ---- streams ---- */

static void a_long_call_becomes_a_stream(void **state)
{
    http_stage s = {.listen = {.keepalive_ms = 1000}};
    http_caller c;
    http_reply reply;
    char *request = http_call("1", "slow_compute", "{\"seconds\":3}");
    (void)state;
    http_stage_open(&s, &c);
    http_caller_say(&c, request);
    http_stage_advance(&s, 150);
    http_caller_quiet(&c);
    http_stage_advance(&s, 100);
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(http_reply_header(&reply, "Content-Type"), "text/event-stream");
    assert_string_equal(http_reply_header(&reply, "X-Accel-Buffering"), "no");
    http_stage_advance(&s, 1050);
    char *event = http_caller_event(&c);
    assert_string_equal(event, ":");
    free(event);
    http_stage_advance(&s, 2500);
    while ((event = http_caller_event(&c)) && strcmp(event, ":") == 0)
        free(event);
    assert_non_null(event);
    assert_non_null(strstr(event, "data: {"));
    assert_non_null(strstr(event, "\"result\""));
    free(event);
    assert_null(http_caller_event(&c));
    free(request);
    request = http_call("2", "greet", GREET); /* the connection goes on */
    http_caller_say(&c, request);
    expect_greeting(&c, "2");
    free(request);
    http_stage_close(&s, &c);
}

static void a_caller_without_streams_waits(void **state)
{
    http_stage s = {0};
    http_caller c;
    char *request = http_call("1", "slow_compute", "{\"seconds\":3}");
    (void)state;
    http_stage_open(&s, &c);
    char *accept = strstr(request, ", text/event-stream");
    memset(accept, ' ', strlen(", text/event-stream"));
    http_caller_say(&c, request);
    http_stage_advance(&s, 2500);
    http_caller_quiet(&c);
    http_stage_advance(&s, 1000);
    assert_int_equal(http_caller_status(&c), 200);
    free(request);
    http_stage_close(&s, &c);
}

static void a_stream_of_an_old_version_ends_with_the_connection(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    char *request = http_call("1", "slow_compute", "{\"seconds\":1}");
    (void)state;
    http_stage_open(&s, &c);
    memcpy(strstr(request, "HTTP/1.1"), "HTTP/1.0", 8);
    http_caller_say(&c, request);
    http_stage_advance(&s, 1500);
    http_caller_read(&c, &reply);
    assert_string_equal(http_reply_header(&reply, "Transfer-Encoding"), "");
    assert_string_equal(http_reply_header(&reply, "Connection"), "close");
    while (!c.ended) {
        http_stage_run(&s);
        http_caller_look(&c);
    }
    assert_non_null(strstr(c.in, "\"result\""));
    assert_string_equal(c.in + c.len - 2, "\n\n");
    free(request);
    http_stage_close(&s, &c);
}

static void a_large_answer_arrives_whole(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    http_stage_open(&s, &c);
    for (int bytes = 100; bytes <= 10000000; bytes *= 10) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "{\"bytes\":%d}", bytes);
        http_caller_ask(&c, http_call("1", "big", arguments), &reply);
        assert_int_equal(reply.status, 200);
        assert_true(reply.body_len > (size_t)bytes);
        assert_int_equal(strlen(reply.body), reply.body_len);
        assert_int_equal(reply.body[reply.body_len - 1], '}');
        http_reply_free(&reply);
    }
    http_stage_close(&s, &c);
}

/* ---- who asks ---- */

static char seen_header[64], seen_peer[64], seen_twice[64];
static segue_transport *seen_transport;

static segue_status name_caller(void *user, segue_transport *transport,
                                const char **principal)
{
    const char *header = segue_transport_header(transport, "X-USER");
    const char *twice = segue_transport_header(transport, "x-twice");
    (void)user;
    seen_transport = transport;
    snprintf(seen_header, sizeof seen_header, "%s", header ? header : "(none)");
    snprintf(seen_twice, sizeof seen_twice, "%s", twice ? twice : "(none)");
    snprintf(seen_peer, sizeof seen_peer, "%s", segue_transport_peer(transport));
    if (!header)
        return SEGUE_E_REFUSED;
    *principal = seen_header;
    return SEGUE_OK;
}

static void the_application_names_the_caller(void **state)
{
    http_stage s = {.principal = name_caller};
    http_caller c;
    http_reply reply;
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
        "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}";
    (void)state;
    http_stage_open(&s, &c);
    http_caller_ask(&c, http_post("", body), &reply);
    assert_int_equal(reply.status, 401);
    assert_string_equal(http_reply_header(&reply, "WWW-Authenticate"), "Bearer");
    assert_non_null(strstr(reply.body, "\"error\""));
    http_reply_free(&reply);
    http_caller_ask(&c, http_post("x-user:  ada \r\nX-Twice: 1\r\nX-Twice: 2\r\n", body),
                    &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(seen_header, "ada");
    assert_string_equal(seen_twice, "(none)");
    assert_memory_equal(seen_peer, "127.0.0.1:", 10);
    char session[64], lines[128];
    snprintf(session, sizeof session, "%s", http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
    /* outside of the callback */
    assert_null(segue_transport_header(seen_transport, "x-user"));
    /* A session belongs to the principal that started it. */
    static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}";
    snprintf(lines, sizeof lines, "X-User: eve\r\nMcp-Session-Id: %s\r\n", session);
    http_caller_ask(&c, http_post(lines, list), &reply);
    assert_int_equal(reply.status, 404);
    http_reply_free(&reply);
    snprintf(lines, sizeof lines, "X-User: ada\r\nMcp-Session-Id: %s\r\n", session);
    http_caller_ask(&c, http_post(lines, list), &reply);
    assert_int_equal(reply.status, 200);
    http_reply_free(&reply);
    http_stage_close(&s, &c);
}

/* The caller leaves between the request and the callback. The callback may run or not. */
static void a_caller_leaves_while_it_is_asked_for(void **state)
{
    http_stage s = {.principal = name_caller};
    http_caller c;
    int32_t ran;
    char *request = http_call("1", "greet", GREET);
    (void)state;
    http_stage_open(&s, &c);
    http_caller_say(&c, request);
    segue_runtime_dispatch(s.rt, 0, 0, &ran);
    http_caller_reset(&c);
    http_stage_run(&s);
    http_caller_open(&s, &c);
    http_caller_say(&c, request);
    http_caller_close(&c);
    http_stage_run(&s);
    free(request);
    http_stage_end(&s);
}

/* ---- idle connections ---- */

#ifdef SGI_KNOBS
enum { CALLERS = 8 };

typedef struct idle_stage {
    http_stage stage;
    http_caller callers[CALLERS];
    sgi_threshold_values usual;
} idle_stage;

static void ask_idle(idle_stage *s, int caller)
{
    http_reply reply;
    http_caller_ask(&s->callers[caller], http_call("1", "greet", GREET), &reply);
    assert_int_equal(reply.status, 200);
    http_reply_free(&reply);
}

/* Makes two calls on each of several connections, so that each can be used again. */
static void idle_begin(idle_stage *s, int32_t ready)
{
    *s = (idle_stage){.usual = sgi_thresholds};
    sgi_thresholds.ready_conns = ready;
    http_stage_begin(&s->stage);
    for (int i = 0; i < CALLERS; i++)
        http_caller_open(&s->stage, &s->callers[i]);
    for (int i = 0; i < 2 * CALLERS; i++)
        ask_idle(s, i % CALLERS);
}

static void idle_end(idle_stage *s)
{
    for (int i = 0; i < CALLERS; i++)
        http_caller_close(&s->callers[i]);
    http_stage_end(&s->stage);
    sgi_thresholds = s->usual;
}

static size_t bytes_of_idle(int32_t ready)
{
    idle_stage s;
    idle_begin(&s, ready);
    size_t live = s.stage.mem.live;
    idle_end(&s);
    return live;
}

static void many_idle_connections_need_less_memory(void **state)
{
    (void)state;
    size_t all = bytes_of_idle(CALLERS), one = bytes_of_idle(1);
    assert_true(all >= one + (size_t)(CALLERS - 1) * 1024);
}

/* Returns how often calls on one connection ask for memory, while the others are idle. */
static size_t allocations_of_busy(int32_t ready)
{
    idle_stage s;
    idle_begin(&s, ready);
    ask_idle(&s, 0);
    size_t before = s.stage.mem.calls;
    for (int i = 0; i < 3; i++)
        ask_idle(&s, 0);
    size_t calls = s.stage.mem.calls - before;
    idle_end(&s);
    return calls;
}

static void a_busy_connection_beside_idle_ones_keeps_its_buffers(void **state)
{
    (void)state;
    assert_int_equal(allocations_of_busy(1), allocations_of_busy(CALLERS));
    assert_true(allocations_of_busy(0) > allocations_of_busy(1));
}

static void a_connection_that_is_used_again_outlasts_the_others(void **state)
{
    idle_stage s;
    (void)state;
    idle_begin(&s, 2);
    for (int i = 0; i < CALLERS; i++) {
        ask_idle(&s, 0);
        ask_idle(&s, i);
    }
    size_t before = s.stage.mem.calls;
    ask_idle(&s, 0);
    size_t busy = s.stage.mem.calls - before;
    before = s.stage.mem.calls;
    ask_idle(&s, 1);
    assert_true(s.stage.mem.calls - before > busy);
    idle_end(&s);
}
#endif

/* ---- browsers ---- */

static void a_browser_of_an_allowed_origin_may_call(void **state)
{
    http_stage s = {.listen = {.cors = 1, .origins = "https://app.test"}};
    http_caller c;
    http_reply reply;
    (void)state;
    http_stage_open(&s, &c);
    http_caller_say(&c, "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n"
                        "Origin: https://app.test\r\n"
                        "Access-Control-Request-Method: POST\r\n"
                        "Access-Control-Request-Headers: content-type,mcp-method,x\r\n"
                        "\r\n");
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 204);
    assert_string_equal(http_reply_header(&reply, "Access-Control-Allow-Origin"),
                        "https://app.test");
    assert_string_equal(http_reply_header(&reply, "Access-Control-Allow-Headers"),
                        "content-type, mcp-method");
    http_reply_free(&reply);
    http_caller_say(&c, "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n"
                        "Origin: https://evil.test\r\n\r\n");
    assert_int_equal(http_caller_status(&c), 403);
    char *request = http_call("1", "greet", GREET);
    char *with = malloc(strlen(request) + 64);
    sprintf(with, "POST /mcp HTTP/1.1\r\nOrigin: https://app.test%s",
            strstr(request, "\r\n"));
    http_caller_ask(&c, with, &reply);
    free(request);
    assert_int_equal(reply.status, 200);
    assert_string_equal(http_reply_header(&reply, "Access-Control-Allow-Origin"),
                        "https://app.test");
    assert_string_equal(http_reply_header(&reply, "Vary"), "Origin");
    assert_string_equal(http_reply_header(&reply, "Access-Control-Expose-Headers"),
                        "Mcp-Session-Id, WWW-Authenticate");
    http_reply_free(&reply);
    http_stage_close(&s, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered),
        cmocka_unit_test(a_pipeline_is_answered_in_order),
        cmocka_unit_test(the_application_says_whether_it_is_ready),
        cmocka_unit_test(a_long_pipeline_waits),
        cmocka_unit_test(old_versions_are_closed_unless_kept),
        cmocka_unit_test(a_long_call_becomes_a_stream),
        cmocka_unit_test(a_caller_without_streams_waits),
        cmocka_unit_test(a_stream_of_an_old_version_ends_with_the_connection),
        cmocka_unit_test(a_large_answer_arrives_whole),
        cmocka_unit_test(the_application_names_the_caller),
        cmocka_unit_test(a_caller_leaves_while_it_is_asked_for),
#ifdef SGI_KNOBS
        cmocka_unit_test(many_idle_connections_need_less_memory),
        cmocka_unit_test(a_busy_connection_beside_idle_ones_keeps_its_buffers),
        cmocka_unit_test(a_connection_that_is_used_again_outlasts_the_others),
#endif
        cmocka_unit_test(a_browser_of_an_allowed_origin_may_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
