/* Whole requests: bodies, pipelining, and promises to the caller of the parser. Sections
 * are those of RFC 9112. To add a case, add a row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/http1_kit.h"

static const http1_row good_bodies[] = {
    ROW("a length", POST "Content-Length: 3\r\n\r\nabc", "POST /mcp @a [abc] "),
    ROW("length 0", POST "Content-Length: 0\r\n\r\n", "POST /mcp @a [] "),
    ROW("leading zeros", POST "Content-Length: 0003\r\n\r\nabc", "POST /mcp @a [abc] "),
    ROW("a body that looks like a request",
        POST "Content-Length: 18\r\n\r\n"
             "GET / HTTP/1.1\r\n\r\n",
        "POST /mcp @a [GET / HTTP/1.1\r\n\r\n] "),
    ROW("GET has a body when it says so", GET "Content-Length: 1\r\n\r\nx",
        "GET / @a [x] "),
    ROW("1.0 with a length", "POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx",
        "POST / 1.0 close [x] "),
    ROW("a torn body is not handed out", POST "Content-Length: 3\r\n\r\nab",
        "POST /mcp @a"),
    ROW("a torn head is not handed out", POST "Content-Length: 3\r\n", ""),
    ROW("pipelined",
        POST "Content-Length: 1\r\n\r\nx" CHUNKED "1\r\ny\r\n0\r\n\r\n" GET "\r\n",
        "POST /mcp @a [x] POST /mcp @a [y] GET / @a [] "),
    ROW("chunks", CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "POST /mcp @a [abcde] "),
    ROW("no chunk", CHUNKED "0\r\n\r\n", "POST /mcp @a [] "),
    ROW("chunked in any case",
        POST "Transfer-Encoding: \tChUnKeD \r\n\r\n1\r\na\r\n0\r\n\r\n",
        "POST /mcp @a [a] "),
    ROW("sizes in hex", CHUNKED "A\r\n0123456789\r\n0b\r\n01234567890\r\n000\r\n\r\n",
        "POST /mcp @a [012345678901234567890] "),
    ROW("16 digits", CHUNKED "0000000000000001\r\na\r\n0\r\n\r\n", "POST /mcp @a [a] "),
    ROW("line ends inside a chunk", CHUNKED "4\r\n\r\n\r\n\r\n0\r\n\r\n",
        "POST /mcp @a [\r\n\r\n] "),
    ROW("extensions", CHUNKED "1;a;b=c;d=\"e;\\\"f\t\xff\";g=\"\"\r\nx\r\n0;z\r\n\r\n",
        "POST /mcp @a [x] "),
    ROW("trailers are dropped", CHUNKED "1\r\nx\r\n0\r\nX: y\r\nZ:\r\n\r\n" GET "\r\n",
        "POST /mcp @a [x] GET / @a [] "),
    ROW("a torn chunk", CHUNKED "3\r\nab", "POST /mcp @a"),
    ROW("a torn end of chunk", CHUNKED "1\r\na\r", "POST /mcp @a"),
    ROW("a torn trailer", CHUNKED "1\r\na\r\n0\r\nX: y\r\n", "POST /mcp @a"),
    ROW("100-continue", POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
        "POST /mcp @a continue [x] "),
    ROW("100-continue for chunks",
        POST "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /mcp @a continue [] "),
    ROW("100-continue without a body", POST "Expect: 100-continue\r\n\r\n",
        "POST /mcp @a [] "),
    ROW("1.0 expects nothing",
        "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
        "POST / 1.0 close [x] "),
};

static const http1_row bad_bodies[] = {
    ROW("length and coding",
        POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "!400"),
    ROW("coding and length",
        POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", "!400"),
    ROW("two lengths", POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", "!400"),
    ROW("one length twice", POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n",
        "!400"),
    ROW("lengths joined", POST "Content-Length: 3, 3\r\n\r\n", "!400"),
    ROW("an empty length", POST "Content-Length:\r\n\r\n", "!400"),
    ROW("a signed length", POST "Content-Length: +3\r\n\r\n", "!400"),
    ROW("a negative length", POST "Content-Length: -3\r\n\r\n", "!400"),
    ROW("a length in hex", POST "Content-Length: 0x3\r\n\r\n", "!400"),
    ROW("a broken length", POST "Content-Length: 3.0\r\n\r\n", "!400"),
    ROW("two numbers", POST "Content-Length: 3 4\r\n\r\n", "!400"),
    ROW("2^64", POST "Content-Length: 18446744073709551616\r\n\r\n", "!400"),
    ROW("2^64 - 1", POST "Content-Length: 18446744073709551615\r\n\r\n", "!413"),
    ROW("a tab behind a length", POST "Content-Length: 3 \t\r\n\r\nabc", "!400"),
    ROW("a tab behind a coding", POST "Transfer-Encoding: chunked\t\r\n\r\n", "!400"),
    ROW("far beyond 2^64", POST "Content-Length: 99999999999999999999999\r\n\r\n",
        "!400"),
    ROW("too large a length", POST "Content-Length: 4194305\r\n\r\n", "!413"),
    ROW("another coding", POST "Transfer-Encoding: gzip\r\n\r\n", "!501"),
    ROW("two codings", POST "Transfer-Encoding: gzip, chunked\r\n\r\n", "!501"),
    ROW("chunked and more", POST "Transfer-Encoding: chunked;q=1\r\n\r\n", "!501"),
    ROW("an empty coding", POST "Transfer-Encoding:\r\n\r\n", "!501"),
    ROW("chunked twice",
        POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "!400"),
    ROW("chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "!400"),
    ROW("no size", CHUNKED "\r\n", "POST /mcp @a!400"),
    ROW("no digit", CHUNKED "x\r\n", "POST /mcp @a!400"),
    ROW("0x", CHUNKED "0x1\r\n", "POST /mcp @a!400"),
    ROW("a sign", CHUNKED "-1\r\n", "POST /mcp @a!400"),
    ROW("a blank before a size", CHUNKED " 1\r\n", "POST /mcp @a!400"),
    ROW("a blank behind a size", CHUNKED "1 \r\n", "POST /mcp @a!400"),
    ROW("17 digits", CHUNKED "00000000000000001\r\n", "POST /mcp @a!400"),
    ROW("a size beyond all", CHUNKED "ffffffffffffffff\r\n", "POST /mcp @a!413"),
    ROW("the sum is too large", CHUNKED "1\r\na\r\n400000\r\n", "POST /mcp @a!413"),
    ROW("LF alone behind a size", CHUNKED "1\nx\r\n0\r\n\r\n", "POST /mcp @a!400"),
    ROW("LF alone behind a chunk", CHUNKED "1\r\nx\n0\r\n\r\n", "POST /mcp @a!400"),
    ROW("a chunk that is too long", CHUNKED "1\r\nxy\r\n0\r\n\r\n", "POST /mcp @a!400"),
    ROW("no name of extension", CHUNKED "1;\r\nx", "POST /mcp @a!400"),
    ROW("no value of extension", CHUNKED "1;a=\r\nx", "POST /mcp @a!400"),
    ROW("no end of a quote", CHUNKED "1;a=\"b\r\nx", "POST /mcp @a!400"),
    ROW("an escaped end of a quote", CHUNKED "1;a=\"b\\\"\r\nx", "POST /mcp @a!400"),
    ROW("CR in an extension", CHUNKED "1;a\rb\r\nx", "POST /mcp @a!400"),
    ROW("CR in a quote", CHUNKED "1;a=\"\\\rb\"\r\nx", "POST /mcp @a!400"),
    ROW("junk behind a quote", CHUNKED "1;a=\"b\"c\r\nx", "POST /mcp @a!400"),
    ROW("a folded trailer", CHUNKED "0\r\nX: a\r\n b\r\n\r\n", "POST /mcp @a!400"),
    ROW("no trailer", CHUNKED "0\r\nGET / HTTP/1.1\r\n\r\n", "POST /mcp @a!400"),
    ROW("LF alone in trailers", CHUNKED "0\r\nX: a\n\r\n", "POST /mcp @a!400"),
    ROW("a length in trailers", CHUNKED "0\r\nContent-Length: 1\r\n\r\n",
        "POST /mcp @a!400"),
    ROW("a name in trailers", CHUNKED "0\r\nmcp-name: x\r\n\r\n", "POST /mcp @a!400"),
    ROW("the second is bad", GET "\r\n" GET "X\r\n\r\n", "GET / @a [] !400"),
};

static void good_bodies_are_collected(void **state)
{
    (void)state;
    EVERY(good_bodies);
}

static void bad_bodies_are_refused(void **state)
{
    (void)state;
    EVERY(bad_bodies);
}

static void assert_str(sgi_str text, const char *expected)
{
    assert_int_equal(text.n, strlen(expected));
    assert_memory_equal(text.p, expected, text.n);
}

static void one_request_is_taken_and_the_rest_is_left(void **state)
{
    (void)state;
    sgi_http1 parser;
    sgi_str input = SGI_STR(POST "Content-Length: 2\r\n\r\nabGET ");
    sgi_http1_init(&parser, &http1_mem.mem, NULL);
    assert_false(sgi_http1_has_begun(&parser));
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_HEAD);
    assert_int_equal(input.n, 6); /* no byte of the body was consumed */
    assert_true(sgi_http1_has_begun(&parser));
    assert_int_equal(parser.head.content_length, 2);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_DONE);
    assert_int_equal(input.n, 4);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_DONE);
    assert_int_equal(input.n, 4);
    sgi_http1_reset(&parser);
    assert_false(sgi_http1_has_begun(&parser));
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_MORE);
    assert_true(sgi_http1_has_begun(&parser));
    sgi_http1_free(&parser);
}

static void bad_is_for_ever(void **state)
{
    (void)state;
    sgi_http1 parser;
    sgi_str input = SGI_STR("X\r\n" GET "\r\n");
    sgi_http1_init(&parser, &http1_mem.mem, NULL);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_BAD);
    input = SGI_STR(GET "\r\n");
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_BAD);
    sgi_http1_reset(&parser);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_BAD);
    assert_int_equal(parser.head.fault.status, 400);
    sgi_http1_free(&parser);
}

static void views_of_the_head_live_until_the_reset(void **state)
{
    (void)state;
    sgi_http1 parser;
    char body[3000];
    memset(body, 'x', sizeof body);
    http1_read_head(&parser, SGI_STR("POST http://a/p?q HTTP/1.1\r\nHost: a\r\nX: y\r\n"
                                     "Transfer-Encoding: chunked\r\n\r\n"));
    sgi_str views[] = {
        parser.head.method, parser.head.target,
        parser.head.path,   parser.head.query,
        parser.head.host,   sgi_http1_find_header(&parser.head, SGI_STR("x"), NULL)};
    const char *texts[] = {"POST", "http://a/p?q", "/p", "q", "a", "y"};
    static const char *const pieces[] = {"bb8;a=",        "b\r\n",   NULL,
                                         "\r\n0\r\nT: u", "v\r\n\r", "\n"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        sgi_str input = pieces[i] ? sgi_str_of(pieces[i]) : (sgi_str){body, sizeof body};
        sgi_http1_event event = sgi_http1_next(&parser, &input);
        assert_int_equal(event, i == 5 ? SGI_HTTP1_DONE : SGI_HTTP1_MORE);
        for (size_t k = 0; k < 6; k++)
            assert_str(views[k], texts[k]);
    }
    assert_int_equal(parser.body.len, sizeof body);
    sgi_http1_free(&parser);
}

static void a_caller_may_take_the_body(void **state)
{
    (void)state;
    sgi_http1 parser;
    sgi_str input =
        SGI_STR(POST "Content-Length: 2\r\n\r\nab" POST "Content-Length: 1\r\n\r\nc");
    sgi_http1_init(&parser, &http1_mem.mem, NULL);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_HEAD);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_DONE);
    sgi_buf taken = parser.body;
    sgi_buf_init(&parser.body, &http1_mem.mem);
    sgi_http1_reset(&parser);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_HEAD);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_DONE);
    assert_str(sgi_buf_str(&parser.body), "c");
    assert_str(sgi_buf_str(&taken), "ab");
    sgi_buf_free(&taken);
    sgi_http1_free(&parser);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, http1_set_up, http1_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(good_bodies_are_collected),
        CASE(bad_bodies_are_refused),
        CASE(one_request_is_taken_and_the_rest_is_left),
        CASE(bad_is_for_ever),
        CASE(views_of_the_head_live_until_the_reset),
        CASE(a_caller_may_take_the_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
