/* Callers that are slow, silent or gone: each limit of time and number is reached, and
 * the work for a lost caller ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/http_stage.h"

#define HEAD "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"

static void begin(http_stage *s, http_caller *c)
{
    http_stage_open(s, c);
    http_stage_run(s);
}

static void an_idle_connection_is_closed(void **state)
{
    http_stage s = {0};
    http_caller c;
    char *request = http_call("1", "greet", NULL);
    (void)state;
    begin(&s, &c);
    http_stage_advance(&s, 74000);
    http_caller_quiet(&c);
    http_caller_say(&c, request);
    assert_int_equal(http_caller_status(&c), 200);
    http_stage_advance(&s, 74000); /* the time limit starts anew */
    http_caller_quiet(&c);
    http_stage_advance(&s, 2000);
    http_caller_until_closed(&c);
    free(request);
    http_stage_close(&s, &c);
}

/* One byte per second does not extend the limit. */
static void drip_slowly(http_stage *s, http_caller *c, int seconds)
{
    for (int i = 0; i < seconds && !c->len; i++) {
        http_caller_send(c, "a", 1);
        http_stage_advance(s, 1000);
        http_caller_look(c);
    }
    assert_int_equal(http_caller_status(c), 408);
    http_caller_until_closed(c);
}

static void a_slow_head_is_refused(void **state)
{
    http_stage s = {0};
    http_caller c;
    (void)state;
    begin(&s, &c);
    http_caller_say(&c, HEAD "X: ");
    http_stage_run(&s);
    drip_slowly(&s, &c, 11);
    http_stage_close(&s, &c);
}

static void a_slow_body_is_refused(void **state)
{
    http_stage s = {.listen = {.body_timeout_ms = 5000}};
    http_caller c;
    (void)state;
    begin(&s, &c);
    http_caller_say(&c, HEAD JSON "Content-Length: 1000\r\n\r\n");
    http_stage_run(&s);
    drip_slowly(&s, &c, 6);
    http_stage_close(&s, &c);
}

static void a_caller_that_vanishes_cancels_its_call(void **state)
{
    static const bool hard[] = {false, true};
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (int streaming = 0; streaming < 2; streaming++) {
            http_stage s = {0};
            http_caller c;
            char *request = http_call("1", "hang_plain", NULL);
            begin(&s, &c);
            http_caller_say(&c, request);
            free(request);
            http_stage_run(&s);
            assert_int_equal(fixtures_jobs(s.fixtures), 1);
            if (streaming)
                http_stage_advance(&s, 300);
            if (hard[i])
                http_caller_reset(&c);
            else
                http_caller_close(&c);
            uint64_t before = s.turns;
            http_stage_run(&s);
            assert_int_equal(fixtures_jobs(s.fixtures), 0);
            assert_true(s.turns - before < 50);
            http_stage_close(&s, &c);
        }
    }
}

/* Nothing happens for minutes: comments keep the stream alive, the call goes on, and the
 * loop sleeps between them. */
static void a_silent_stream_lives_for_minutes(void **state)
{
    http_stage s = {0};
    http_caller c;
    char *request = http_call("1", "hang_plain", NULL);
    (void)state;
    begin(&s, &c);
    http_caller_say(&c, request);
    free(request);
    http_stage_advance(&s, 600000);
    http_caller_look(&c);
    size_t comments = 0;
    for (const char *at = c.in; (at = strstr(at, ":\n\n")); at++)
        comments++;
    assert_true(comments >= 30 && comments <= 41);
    assert_int_equal(fixtures_jobs(s.fixtures), 1);
    http_stage_close(&s, &c);
}

/* A small buffer blocks the server soon; through such a buffer no data moves fast. */
static void set_buffer(http_caller *c, int bytes)
{
    setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

static void a_caller_that_never_reads_is_cut(void **state)
{
    http_stage s = {0};
    http_caller c;
    char *request = http_call("1", "big", "{\"bytes\":12000000}");
    (void)state;
    begin(&s, &c);
    set_buffer(&c, 4096);
    http_caller_say(&c, request);
    free(request);
    http_stage_run(&s);
    size_t held = s.mem.live;
    http_stage_advance(&s, 55000);
    assert_true(s.mem.live <= held);
    http_stage_advance(&s, 10000);
    assert_true(s.mem.live < held - 4000000); /* the answer's memory is freed */
    http_stage_close(&s, &c);
}

/* Logs and progress that the reader of a call does not take are not kept without
 * limit. */
static void a_slow_reader_of_a_stream_holds_little(void **state)
{
    http_stage s = {0};
    http_caller c;
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
        "\"name\":\"chatty\",\"arguments\":{\"n\":20000},\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{},"
        "\"io.modelcontextprotocol/logLevel\":\"debug\",\"progressToken\":1}}}";
    char *request = http_post("MCP-Protocol-Version: 2026-07-28\r\n"
                              "Mcp-Method: tools/call\r\nMcp-Name: chatty\r\n",
                              body);
    (void)state;
    begin(&s, &c);
    set_buffer(&c, 4096);
    size_t before = s.mem.live;
    http_caller_say(&c, request);
    free(request);
    http_stage_run(&s);
    size_t held = s.mem.live - before;
    print_message("a reader that is behind holds %zu bytes\n", held);
    assert_true(held < (size_t)1 << 20);
    set_buffer(&c, 1 << 20);
    size_t got = 0; /* the client reads at last and gets the result */
    for (bool done = false; !done; c.len = 0) {
        http_stage_run(&s);
        http_caller_look(&c);
        got += c.len;
        done = c.ended || (c.len && strstr(c.in, "\"result\""));
    }
    assert_true(got > 200000);
    assert_false(c.ended);
    http_stage_close(&s, &c);
}

static void the_number_of_connections_has_a_limit(void **state)
{
    http_stage s = {.listen = {.max_connections = 2}};
    http_caller a, b, c;
    char *request = http_call("1", "greet", NULL);
    (void)state;
    begin(&s, &a);
    http_caller_open(&s, &b);
    http_caller_open(&s, &c); /* this connection waits in the backlog */
    http_caller_say(&c, request);
    http_caller_quiet(&c);
    http_caller_say(&b, request);
    assert_int_equal(http_caller_status(&b), 200);
    http_caller_close(&a);
    assert_int_equal(http_caller_status(&c), 200);
    free(request);
    http_caller_close(&b);
    http_stage_close(&s, &c);
}

/* subscriptions/listen is a stream that does not end (R-0-4: 429). */
static void the_number_of_streams_has_a_limit(void **state)
{
    http_stage s = {.listen = {.max_streams = 2}};
    http_caller callers[3];
    http_reply reply;
    char *request = http_request("1", "subscriptions/listen", NULL,
                                 "\"notifications\":{\"toolsListChanged\":true}", NULL);
    (void)state;
    http_stage_begin(&s);
    for (int i = 0; i < 3; i++) {
        http_caller_open(&s, &callers[i]);
        http_caller_say(&callers[i], request);
        http_caller_read(&callers[i], &reply);
        assert_int_equal(reply.status, i < 2 ? 200 : 429);
        http_reply_free(&reply);
    }
    http_caller_close(&callers[0]);
    http_stage_run(&s);
    http_caller_say(&callers[2], request);
    http_caller_read(&callers[2], &reply);
    assert_int_equal(reply.status, 200);
    http_reply_free(&reply);
    http_caller_close(&callers[1]);
    http_caller_close(&callers[2]);
    free(request);
    http_stage_end(&s);
}

/* The memory of an idle connection after a request, without that of libwebsockets. */
static void an_idle_connection_is_small(void **state)
{
    enum { COUNT = 100 };
    http_stage s = {0};
    http_caller callers[COUNT];
    char *request = http_call("1", "greet", NULL);
    (void)state;
    http_stage_begin(&s);
    http_caller_open(&s, &callers[0]);
    http_caller_say(&callers[0], request);
    assert_int_equal(http_caller_status(&callers[0]), 200);
    http_stage_run(&s);
    size_t one = s.mem.live;
    for (int i = 1; i < COUNT; i++) {
        http_caller_open(&s, &callers[i]);
        http_caller_say(&callers[i], request);
        assert_int_equal(http_caller_status(&callers[i]), 200);
    }
    http_stage_run(&s);
    size_t each = (s.mem.live - one) / (COUNT - 1);
    print_message("an idle connection: %zu bytes\n", each);
    assert_true(each < 8 * 1024);
    for (int i = 0; i < COUNT; i++)
        http_caller_close(&callers[i]);
    free(request);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_connection_is_closed),
        cmocka_unit_test(a_slow_head_is_refused),
        cmocka_unit_test(a_slow_body_is_refused),
        cmocka_unit_test(a_caller_that_vanishes_cancels_its_call),
        cmocka_unit_test(a_silent_stream_lives_for_minutes),
        cmocka_unit_test(a_caller_that_never_reads_is_cut),
        cmocka_unit_test(a_slow_reader_of_a_stream_holds_little),
        cmocka_unit_test(the_number_of_connections_has_a_limit),
        cmocka_unit_test(the_number_of_streams_has_a_limit),
        cmocka_unit_test(an_idle_connection_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
