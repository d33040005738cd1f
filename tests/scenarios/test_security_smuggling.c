/* Requests whose end two machines see differently (RFC 9112 11.2): the body for one
 * machine is a second request for the other, which no machine in front of the server has
 * checked. Each row is one request of such a form. Where a lenient reader would find it,
 * a second request follows that calls a tool. The first is refused or answered. The
 * second never runs, unless every reader sees it as a request. Behind a refused request
 * nothing is read: the connection ends. Each row runs whole and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define POST "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"
/* 30 bytes that are no request of MCP: 400, and the connection goes on. */
#define NOTE "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"
/* The request that an attacker tries to smuggle in. */
#define META                                                                             \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","             \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define HIDDEN_BODY                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"      \
    "\"greet\"," META "}}"
#define HIDDEN_HEAD                                                                      \
    POST JSON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"           \
              "Mcp-Name: greet\r\nContent-Length: 185\r\n\r\n"
#define HIDDEN HIDDEN_HEAD HIDDEN_BODY

typedef struct row {
    const char *text;
    size_t len; /* 0 = length of the text */
    int status;
} row;

#define BYTES(text) text, sizeof(text) - 1

static const row rows[] = {
    /* Two framings. */
    {POST JSON "Content-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN,
     0, 400},
    {POST JSON "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" HIDDEN,
     0, 400},
    {POST JSON "Content-Length: 0\r\nContent-Length: 30\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length: 30\r\nContent-Length: 30\r\n\r\n" NOTE HIDDEN, 0, 400},
    {POST JSON "Content-Length: 0, 30\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
               "0\r\n\r\n" HIDDEN,
     0, 400},
    {POST JSON "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"
               "0\r\n\r\n" HIDDEN,
     0, 400},
    /* Lengths that can be read as different numbers. */
    {POST JSON "Content-Length: +30\r\n\r\n" NOTE HIDDEN, 0, 400},
    {POST JSON "Content-Length: -1\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length: 0x1e\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length: 3 0\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length: 30;x\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length: 1e1\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length:\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length: 18446744073709551616\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length: 18446744073709551615\r\n\r\n" HIDDEN, 0, 413},
    {POST JSON "Content-Length: \x0b"
               "30\r\n\r\n" HIDDEN,
     0, 400},
    /* Codings that some readers do not recognize. */
    {POST JSON "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" HIDDEN, 0, 501},
    {POST JSON "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" HIDDEN, 0, 501},
    {POST JSON "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" HIDDEN, 0, 501},
    {POST JSON "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" HIDDEN, 0, 501},
    {POST JSON "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Transfer-Encoding:\x0b"
               "chunked\r\n\r\n0\r\n\r\n" HIDDEN,
     0, 400},
    {POST JSON "Transfer-Encoding: \r\n\r\n" HIDDEN, 0, 501},
    {"POST /mcp HTTP/1.0\r\nHost: localhost\r\n" JSON
     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN,
     0, 400},
    /* Header lines that some readers parse differently. */
    {POST JSON "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length: 0\n\n" HIDDEN, 0, 400},
    {POST JSON "Content-Length: 0\r\n\n" HIDDEN, 0, 400},
    {BYTES(POST JSON "Content\0-Length: 30\r\n\r\n" HIDDEN), 400},
    {BYTES(POST JSON "X: a\0b\r\n\r\n" HIDDEN), 400},
    {POST JSON "Transfer-Encoding\r\n\r\n0\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON ": chunked\r\n\r\n" HIDDEN, 0, 400},
    {POST JSON "Transfer\xc2\xad"
               "Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN,
     0, 400},
    {"POST /mcp HTTP/1.1\r\n\r\nHost: localhost\r\n" HIDDEN, 0, 400},
    /* Request lines. */
    {"POST /mcp HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n" HIDDEN, 0, 400},
    {"POST  /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n" HIDDEN, 0, 400},
    {"POST\t/mcp HTTP/1.1\r\nHost: localhost\r\n\r\n" HIDDEN, 0, 400},
    {"POST /mcp\x0bHTTP/1.1\r\nHost: localhost\r\n\r\n" HIDDEN, 0, 400},
    {"POST /mcp\r\n\r\n" HIDDEN, 0, 400},
    {"POST /mcp HTTP/2.0\r\nHost: localhost\r\n\r\n" HIDDEN, 0, 505},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" HIDDEN, 0, 505},
    {"POST /mcp HTTP/1.1\nHost: localhost\n\n" HIDDEN, 0, 400},
    {"\r\n\r\n\r\n" HIDDEN, 0, 400},
    {"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n" HIDDEN, 0, 501},
    /* Chunks. */
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n0x1e\r\n" NOTE "\r\n0\r\n\r\n" HIDDEN,
     0, 400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n-1\r\n" HIDDEN, 0, 400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n 1e\r\n" NOTE "\r\n0\r\n\r\n" HIDDEN, 0,
     400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n1e \r\n" NOTE "\r\n0\r\n\r\n" HIDDEN, 0,
     400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n1e\n" NOTE "\r\n0\r\n\r\n" HIDDEN, 0,
     400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n1e;a\nb\r\n" NOTE
               "\r\n0\r\n\r\n" HIDDEN,
     0, 400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n1e\r\n" NOTE "0\r\n\r\n" HIDDEN, 0,
     400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n1e\r\n" NOTE "\n0\r\n\r\n" HIDDEN, 0,
     400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n1d\r\n" NOTE "\r\n0\r\n\r\n" HIDDEN, 0,
     400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n1000000000000001e\r\n" NOTE
               "\r\n0\r\n\r\n" HIDDEN,
     0, 400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" HIDDEN, 0, 413},
    /* Trailers that would be headers. */
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n0\r\nMcp-Method: x\r\n\r\n" HIDDEN, 0,
     400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 9\r\n\r\n" HIDDEN,
     0, 400},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n0\r\nHost: evil.example\r\n\r\n" HIDDEN,
     0, 400},
    /* A body where readers do not expect one. */
    {"GET /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
     "0\r\n\r\n" HIDDEN,
     0, 413},
    {"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" HIDDEN,
     0, 413},
    {"POST /else HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
     "Content-Length: 30\r\n\r\n" HIDDEN,
     0, 404},
};

static void give(http_caller *c, const row *wanted, bool drips)
{
    size_t len = wanted->len ? wanted->len : strlen(wanted->text);
    http_reply reply;
    if (drips) /* the connection may end before the last byte; the rest is not sent */
        http_caller_drip(c, wanted->text, len);
    else
        http_caller_send(c, wanted->text, len);
    http_caller_read(c, &reply);
    if (reply.status != wanted->status)
        fail_msg("row %d is %d: %s", (int)(wanted - rows), reply.status, wanted->text);
    assert_string_equal(http_reply_header(&reply, "Connection"), "close");
    http_reply_free(&reply);
    http_caller_until_closed(c);
}

static void what_can_be_read_twice_is_refused(void **state)
{
    http_stage s = {0};
    (void)state;
    http_stage_begin(&s);
    assert_int_equal(strlen(HIDDEN_BODY), 185);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int drips = 0; drips < 2; drips++) {
            http_caller c;
            http_caller_open(&s, &c);
            give(&c, &rows[i], drips);
            http_caller_close(&c);
            http_stage_run(&s);
        }
    }
    assert_int_equal(fixtures_runs(s.fixtures, "greet"), 0);
    http_stage_end(&s);
}

/* A body that looks like a request is a body, however it comes. */
static void a_request_within_a_body_is_no_request(void **state)
{
    http_stage s = {0};
    http_caller c;
    char request[1024];
    (void)state;
    http_stage_open(&s, &c);
    snprintf(request, sizeof request, POST JSON "Content-Length: %zu\r\n\r\n" HIDDEN,
             strlen(HIDDEN));
    http_caller_say(&c, request);
    assert_int_equal(http_caller_status(&c), 400); /* the body is no JSON */
    snprintf(request, sizeof request,
             POST JSON "Transfer-Encoding: chunked\r\n\r\n%zx\r\n" HIDDEN "\r\n0\r\n\r\n",
             strlen(HIDDEN));
    http_caller_say(&c, request);
    assert_int_equal(http_caller_status(&c), 400);
    snprintf(
        request, sizeof request,
        "GET /else HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n" HIDDEN,
        strlen(HIDDEN));
    http_caller_say(&c, request);
    assert_int_equal(http_caller_status(&c), 404);
    assert_int_equal(fixtures_runs(s.fixtures, "greet"), 0);
    /* outside a body the same request runs, so the bait works */
    http_caller_say(&c, HIDDEN);
    assert_int_equal(http_caller_status(&c), 200);
    assert_int_equal(fixtures_runs(s.fixtures, "greet"), 1);
    http_stage_close(&s, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_be_read_twice_is_refused),
        cmocka_unit_test(a_request_within_a_body_is_no_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
