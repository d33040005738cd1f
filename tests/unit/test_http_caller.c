/* The caller is identified after the head of a request. So the server holds no body of a
 * caller that it refuses, sends 100 Continue only to a caller that it accepts, and
 * answers a pipeline in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/socket.h>

#include "support/http_stage.h"
#include "transport/http_conn.h"

#define NAMED "X-User: ada\r\n"
#define HEAD "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
#define MODERN "MCP-Protocol-Version: 2026-07-28\r\n"
#define NOTE "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}" /* 30 bytes */
#define LARGE ((size_t)1024 * 1024)
#define MANY 8

static int questions;
static http_caller *watched; /* must have received nothing when the application is
                              * asked */

static segue_status name_caller(void *user, segue_transport *transport,
                                const char **principal)
{
    char byte;
    (void)user;
    questions++;
    if (watched)
        assert_int_equal(recv(watched->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
    *principal = segue_transport_header(transport, "X-User");
    return *principal ? SEGUE_OK : SEGUE_E_REFUSED;
}

static void begin(http_stage *s)
{
    questions = 0;
    watched = NULL;
    s->principal = name_caller;
    http_stage_begin(s);
}

/* Writes as much as the socket takes at once. */
static void push(http_caller *c, const char *bytes, size_t len)
{
    (void)!send(c->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void expect_401_and_the_end(http_caller *c)
{
    http_reply reply;
    http_caller_read(c, &reply);
    assert_int_equal(reply.status, 401);
    assert_string_equal(http_reply_header(&reply, "Connection"), "close");
    http_reply_free(&reply);
    http_caller_until_closed(c);
}

/* The bodies arrive while the application is asked about one caller per turn. */
static void a_refused_body_is_not_held(void **state)
{
    http_stage s = {.max_message = 64 << 20};
    http_caller callers[MANY];
    char *bytes = calloc(1, LARGE);
    size_t most = 0;
    bool rests = false;
    (void)state;
    begin(&s);
    size_t peak = s.mem.peak;
    for (int i = 0; i < MANY; i++)
        http_caller_open(&s, &callers[i]);
    http_stage_run(&s);
    for (int i = 0; i < MANY; i++)
        http_caller_say(&callers[i], HEAD "Content-Length: 60000000\r\n\r\n");
    for (int turns = 0; questions < MANY; turns++) {
        const sgi_http_conn *conn;
        int32_t ran;
        assert_true(turns < 1000);
        for (int i = 0; i < MANY; i++)
            push(&callers[i], bytes, LARGE);
        segue_runtime_dispatch(s.rt, 0, 1, &ran);
        TAILQ_FOREACH(conn, &s.listener->conns, in_listener) {
            assert_int_equal(conn->parser.body.len, 0);
            most = conn->input.len > most ? conn->input.len : most;
            rests |= conn->unread;
        }
    }
    /* stopped at the limit */
    assert_true(most >= 64 * 1024 && most < 128 * 1024 && rests);
    for (int i = 0; i < MANY; i++) {
        expect_401_and_the_end(&callers[i]);
        http_caller_close(&callers[i]);
    }
    print_message("refused bodies: %zu bytes at most\n", s.mem.peak - peak);
    assert_true(s.mem.peak - peak < (size_t)MANY * 256 * 1024);
    free(bytes);
    http_stage_end(&s);
}

/* No byte of the body has arrived, and the caller gets no 100 Continue. */
static void a_refused_caller_is_not_told_to_go_on(void **state)
{
    static const char *const heads[] = {
        HEAD "Content-Length: 30\r\nExpect: 100-continue\r\n\r\n",
        HEAD "Content-Length: 30\r\n\r\n", HEAD "Content-Length: 30\r\n\r\n{\"jsonrpc\"",
        HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\n{"};
    http_stage s = {0};
    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        http_caller c;
        http_caller_open(&s, &c);
        http_caller_say(&c, heads[i]);
        expect_401_and_the_end(&c);
        http_caller_close(&c);
    }
    http_stage_end(&s);
}

static void a_caller_that_is_let_in_is_told_to_go_on(void **state)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    http_stage s = {0};
    http_caller c;
    (void)state;
    begin(&s);
    http_caller_open(&s, &c);
    for (int i = 1; i <= 2; i++) {
        watched = &c;
        http_caller_say(&c, HEAD MODERN NAMED
                        "Expect: 100-continue\r\nContent-Length: 30\r\n\r\n");
        http_stage_run(&s);
        assert_int_equal(questions, i);
        http_caller_look(&c);
        assert_string_equal(c.in, go_on);
        c.len = 0;
        http_caller_say(&c, NOTE);
        assert_int_equal(http_caller_status(&c), 202);
        assert_int_equal(questions, i); /* the application is asked once per request */
    }
    http_stage_close(&s, &c);
}

/* The time limit for the body starts when the caller is accepted. */
static void a_slow_body_of_a_known_caller_is_refused(void **state)
{
    http_stage s = {.listen = {.body_timeout_ms = 5000}};
    http_caller c;
    (void)state;
    begin(&s);
    http_caller_open(&s, &c);
    http_caller_say(&c, HEAD NAMED "Content-Length: 30\r\n\r\n{");
    http_stage_advance(&s, 4500);
    http_caller_quiet(&c);
    http_stage_advance(&s, 1000);
    assert_int_equal(http_caller_status(&c), 408);
    http_caller_until_closed(&c);
    http_stage_close(&s, &c);
}

/* Small bodies that have arrived are skipped when their request is refused. The ways:
 * whole, cut at random in one write, cut at random with turns in between. */
static void a_pipeline_is_answered_in_order(void **state)
{
    static const char text[] = HEAD MODERN NAMED
        "Content-Length: 30\r\n\r\n" NOTE HEAD "Content-Length: 30\r\n\r\n" NOTE
        "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" HEAD MODERN NAMED
        "Transfer-Encoding: chunked\r\n\r\n1E\r\n" NOTE "\r\n0\r\n\r\n"
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n" NAMED "\r\n" HEAD MODERN NAMED
        "Content-Length: 30\r\n\r\n" NOTE;
    static const int statuses[] = {202, 401, 200, 202, 401, 405, 202};
    http_stage s = {.listen = {.health_path = "/health"}};
    (void)state;
    begin(&s);
    for (int way = 0; way < 3; way++) {
        http_caller c;
        size_t count = sizeof statuses / sizeof *statuses;
        http_caller_open(&s, &c);
        if (way == 0)
            http_caller_say(&c, text);
        for (size_t at = 0; way > 0 && at < sizeof text - 1;) {
            size_t n = 1 + (size_t)rand() % 40;
            n = n < sizeof text - 1 - at ? n : sizeof text - 1 - at;
            push(&c, text + at, n);
            at += n;
            if (way == 2)
                http_stage_run(&s);
        }
        bool goes_on = true;
        for (size_t i = 0; i < count && goes_on; i++) {
            http_reply reply;
            http_caller_read(&c, &reply);
            assert_int_equal(reply.status, statuses[i]);
            goes_on = !*http_reply_header(&reply, "Connection");
            http_reply_free(&reply);
            /* The body may not have arrived yet. */
            assert_true(goes_on || (way == 2 && statuses[i] == 401));
        }
        if (!goes_on)
            http_caller_until_closed(&c);
        http_caller_close(&c);
    }
    http_stage_end(&s);
}

/* While the server drains, it asks about no new request; a request that was accepted
 * before is served. */
static void a_draining_server_serves_whom_it_let_in(void **state)
{
    http_stage s = {0};
    http_caller in, late;
    (void)state;
    begin(&s);
    http_caller_open(&s, &in);
    http_caller_open(&s, &late);
    http_caller_say(&in, HEAD MODERN NAMED "Content-Length: 30\r\n\r\n");
    http_caller_say(&late, HEAD MODERN NAMED "Content-Length: 6000000\r\n");
    http_stage_run(&s);
    segue_listener_close(s.listener);
    http_stage_run(&s);
    http_caller_say(&in, NOTE);
    assert_int_equal(http_caller_status(&in), 202);
    http_caller_until_closed(&in);
    http_caller_say(&late, "\r\n");
    assert_int_equal(http_caller_status(&late), 503);
    http_caller_until_closed(&late);
    assert_int_equal(questions, 1);
    http_caller_close(&in);
    http_stage_close(&s, &late);
}

/* Plays one round with the n-th allocation refused, alone or with all later ones. */
static size_t tortured_round(size_t fail_at, size_t fail_from)
{
    static const char good[] = HEAD MODERN NAMED "Content-Length: 30\r\n\r\n" NOTE;
    http_stage s = {0};
    http_caller a, b;
    begin(&s);
    http_caller_open(&s, &a);
    test_mem_rearm(&s.mem);
    s.mem.fail_at = fail_at;
    s.mem.fail_from = fail_from;
    http_caller_say(&a, good);
    http_stage_run(&s);
    http_caller_say(&a, HEAD MODERN NAMED "Content-Length: 30\r\n\r\n{");
    http_stage_run(&s);
    http_caller_say(&a, &NOTE[1]);
    http_caller_say(&a, HEAD "Content-Length: 30\r\n\r\n");
    http_stage_run(&s);
    size_t calls = s.mem.calls;
    test_mem_rearm(&s.mem);
    http_caller_close(&a);
    http_stage_run(&s);
    http_caller_open(&s, &b);
    http_caller_say(&b, good);
    assert_int_equal(http_caller_status(&b), 202);
    http_stage_close(&s, &b);
    return calls;
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    size_t calls = tortured_round(0, 0);
    assert_true(calls > 10);
    for (size_t i = 1; i <= calls; i++) {
        tortured_round(i, 0);
        tortured_round(0, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_body_is_not_held),
        cmocka_unit_test(a_refused_caller_is_not_told_to_go_on),
        cmocka_unit_test(a_caller_that_is_let_in_is_told_to_go_on),
        cmocka_unit_test(a_slow_body_of_a_known_caller_is_refused),
        cmocka_unit_test(a_pipeline_is_answered_in_order),
        cmocka_unit_test(a_draining_server_serves_whom_it_let_in),
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
