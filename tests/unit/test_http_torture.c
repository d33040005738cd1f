/* Bytes that no good caller sends. Each case gets its status and, where the framing
 * cannot be trusted any more, the end of the connection. Every case runs whole, byte by
 * byte and cut at random. The test counts the turns of the loop, so it would find a loop
 * that spins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define POST "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"
#define NOTE "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}" /* 30 bytes */
#define MODERN "MCP-Protocol-Version: 2026-07-28\r\n"
#define GOOD POST JSON MODERN "Content-Length: 30\r\n\r\n" NOTE
#define SMUGGLED "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

typedef struct hostile {
    const char *name;
    const char *bytes;
    size_t len;      /* 0 = length of the text */
    int statuses[4]; /* statuses of the answers, in order, up to 0 */
    bool stays;      /* the connection goes on */
} hostile;

#define BYTES(text) text, sizeof(text) - 1

static const hostile cases[] = {
    {"a good one", BYTES(GOOD GOOD), {202, 202}, true},
    {"CL and TE",
     BYTES(POST JSON
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED),
     {400},
     false},
    {"TE twice",
     BYTES(POST JSON "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"
                     "0\r\n\r\n" SMUGGLED),
     {400},
     false},
    {"TE unknown",
     BYTES(POST JSON "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
     {501},
     false},
    {"CL twice",
     BYTES(POST JSON "Content-Length: 30\r\nContent-Length: 30\r\n\r\n" NOTE),
     {400},
     false},
    {"CL in a list",
     BYTES(POST JSON "Content-Length: 30, 30\r\n\r\n" NOTE),
     {400},
     false},
    {"CL with a sign", BYTES(POST JSON "Content-Length: +30\r\n\r\n" NOTE), {400}, false},
    {"bad chunk size",
     BYTES(POST JSON "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"),
     {400},
     false},
    {"huge chunk size",
     BYTES(POST JSON "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
     {400},
     false},
    {"chunk without its end",
     BYTES(POST JSON "Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n"),
     {400},
     false},
    {"obs-fold", BYTES(POST JSON "X-A: b\r\n c\r\n\r\n"), {400}, false},
    {"bare LF", BYTES("POST /mcp HTTP/1.1\nHost: localhost\n\n"), {400}, false},
    {"bare CR", BYTES(POST "X-A: b\rc\r\n\r\n"), {400}, false},
    {"NUL in a header", BYTES(POST "X-A: b\0c\r\n\r\n"), {400}, false},
    {"NUL in the target",
     BYTES("GET /m\0cp HTTP/1.1\r\nHost: localhost\r\n\r\n"),
     {400},
     false},
    {"blank before the colon", BYTES(POST "X-A : b\r\n\r\n"), {400}, false},
    {"no Host", BYTES("POST /mcp HTTP/1.1\r\n" JSON "\r\n"), {400}, false},
    {"Host twice", BYTES(POST "Host: localhost\r\n\r\n"), {400}, false},
    {"absolute form",
     BYTES("POST http://localhost/mcp HTTP/1.1\r\nHost: localhost\r\n" JSON MODERN
           "Content-Length: 30\r\n\r\n" NOTE),
     {202},
     true},
    {"absolute form of another host",
     BYTES("POST http://evil.test/mcp HTTP/1.1\r\nHost: localhost\r\n" JSON
           "Content-Length: 30\r\n\r\n" NOTE),
     {400},
     false},
    {"a tunnel",
     BYTES("CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
     {501},
     false},
    {"HTTP/1.0", BYTES("GET /health HTTP/1.0\r\n\r\n"), {200}, false},
    {"HTTP/0.9", BYTES("GET /health\r\n"), {400}, false},
    {"HTTP/2 by prior knowledge",
     BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
     {505},
     false},
    {"an upgrade to h2c is not taken",
     BYTES("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
           "Upgrade: h2c\r\n\r\n"),
     {200},
     true},
    {"an upgrade to WebSocket is not taken",
     BYTES("GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
           "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
           "\r\n"),
     {405},
     true},
    {"stray CRLF", BYTES("\r\n" GOOD "\r\n" GOOD), {202, 202}, true},
    {"many stray CRLFs", BYTES("\r\n\r\n\r\n\r\n" GOOD), {400}, false},
    {"TLS", BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), {400}, false},
    {"garbage", BYTES("\xff\xfe\xfd\xfc\r\n\r\n"), {400}, false},
    {"a method too long",
     BYTES("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA /mcp HTTP/1.1\r\n"),
     {501},
     false},
    {"Expect: something",
     BYTES(POST "Expect: wonders\r\nContent-Length: 1\r\n\r\n"),
     {417},
     false},
    {"Expect of what is refused",
     BYTES(POST "Expect: 100-continue\r\nContent-Length: 30\r\n\r\n"),
     {415},
     false},
    {"a body where none belongs",
     BYTES("GET /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
           "0\r\n\r\n"),
     {413},
     false},
    {"a refused body is read",
     BYTES(POST "Content-Length: 30\r\n\r\n" NOTE GOOD),
     {415, 202},
     true},
    {"an early FIN", BYTES(POST JSON "Content-Length: 30\r\n\r\n{\"json"), {0}, true},
};

static void expect_statuses(http_caller *c, const hostile *h)
{
    for (int i = 0; i < 4 && h->statuses[i]; i++) {
        int status = http_caller_status(c);
        if (status != h->statuses[i])
            fail_msg("%s: status %d instead of %d", h->name, status, h->statuses[i]);
    }
    if (h->stays)
        http_caller_quiet(c);
    else
        http_caller_until_closed(c);
}

static void drive(http_stage *s, const hostile *h, int way)
{
    http_caller c;
    http_caller_open(s, &c);
    uint64_t before = s->turns;
    if (way == 0)
        http_caller_send(&c, h->bytes, h->len);
    else if (way == 1)
        http_caller_drip(&c, h->bytes, h->len);
    for (size_t at = 0; way == 2 && at < h->len;) {
        size_t n = 1 + (size_t)rand() % 40;
        n = n < h->len - at ? n : h->len - at;
        http_caller_send(&c, h->bytes + at, n);
        http_stage_run(s);
        at += n;
    }
    expect_statuses(&c, h);
    if (s->turns - before > h->len * 10 + 2000)
        fail_msg("%s: %llu turns", h->name, (unsigned long long)(s->turns - before));
    http_caller_close(&c);
    http_stage_run(s);
}

static void every_case(void **state)
{
    http_stage s = {.listen = {.health_path = "/health"}};
    (void)state;
    http_stage_begin(&s);
    for (int way = 0; way < 3; way++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            drive(&s, &cases[i], way);
    http_stage_end(&s);
}

/* ---- sizes ---- */

/* Sends the prefix, then `count` filler bytes in pieces; returns the status of the
 * answer, whose body must contain `problem`. */
static int answer_to_flood(http_stage *s, const char *prefix, char filler, size_t count,
                           const char *problem)
{
    http_caller c;
    http_reply reply;
    char *bytes = malloc(count);
    memset(bytes, filler, count);
    http_caller_open(s, &c);
    http_caller_say(&c, prefix);
    for (size_t at = 0; at < count && !c.len && !c.ended; at += 8192) {
        http_caller_send(&c, bytes + at, count - at < 8192 ? count - at : 8192);
        http_stage_run(s);
        http_caller_look(&c);
    }
    free(bytes);
    http_caller_read(&c, &reply);
    if (!strstr(reply.body, problem))
        fail_msg("%s is not in %s", problem, reply.body);
    int status = reply.status;
    http_reply_free(&reply);
    http_caller_close(&c);
    return status;
}

static void what_is_too_large_is_refused_early(void **state)
{
    http_stage s = {.max_message = 1 << 20};
    (void)state;
    http_stage_begin(&s);
    size_t peak = s.mem.peak;
    assert_int_equal(
        answer_to_flood(&s, POST "X-A: ", 'a', 1 << 20,
                        "\"the HTTP headers are too large: max_header_bytes is 32768\""),
        431);
    assert_int_equal(answer_to_flood(&s, "GET /", 'a', 1 << 20,
                                     "\"the request line is too long: at most 8192\""),
                     414);
    assert_int_equal(answer_to_flood(&s, POST JSON "Transfer-Encoding: chunked\r\n\r\n1;",
                                     'a', 1 << 20, ""),
                     400);
    assert_int_equal(
        answer_to_flood(&s, POST JSON "Content-Length: 1048577\r\n\r\n", 'a', 1 << 20,
                        "\"the body is too large: max_message_bytes is 1048576\""),
        413);
    assert_true(s.mem.peak - peak < 256 * 1024);
    http_stage_end(&s);
}

static void a_chunked_body_has_the_same_limit(void **state)
{
    http_stage s = {.max_message = 64 * 1024};
    http_caller c;
    char *bytes = malloc(70000);
    (void)state;
    http_stage_open(&s, &c);
    http_caller_say(&c, POST JSON "Transfer-Encoding: chunked\r\n\r\n8000\r\n");
    memset(bytes, ' ', 70000);
    http_caller_send(&c, bytes, 0x8000);
    http_caller_say(&c, "\r\n8001\r\n");
    assert_int_equal(http_caller_status(&c), 413);
    http_caller_until_closed(&c);
    http_caller_close(&c);
    free(bytes);
    http_stage_end(&s);
}

static void the_head_limit_is_an_option(void **state)
{
    http_stage s = {.listen = {.max_header_bytes = 1024}};
    char head[1200];
    http_caller c;
    (void)state;
    http_stage_open(&s, &c);
    snprintf(head, sizeof head, POST "X: %0*d\r\n\r\n", 1000, 0);
    http_caller_say(&c, head);
    assert_int_equal(http_caller_status(&c), 431);
    http_caller_until_closed(&c);
    http_stage_close(&s, &c);
}

static void a_hundred_is_said_when_the_body_is_wanted(void **state)
{
    http_stage s = {0};
    http_caller c;
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    (void)state;
    http_stage_open(&s, &c);
    http_caller_say(&c, POST JSON MODERN
                    "Expect: 100-continue\r\nContent-Length: 30\r\n\r\n");
    http_stage_run(&s);
    http_caller_look(&c);
    assert_string_equal(c.in, go_on);
    c.len = 0;
    http_caller_say(&c, NOTE);
    assert_int_equal(http_caller_status(&c), 202);
    http_caller_say(&c, GOOD); /* the connection goes on */
    assert_int_equal(http_caller_status(&c), 202);
    http_stage_close(&s, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(what_is_too_large_is_refused_early),
        cmocka_unit_test(a_chunked_body_has_the_same_limit),
        cmocka_unit_test(the_head_limit_is_an_option),
        cmocka_unit_test(a_hundred_is_said_when_the_body_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
