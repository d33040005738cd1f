/* Heads of requests: lines, names, targets, hosts. To add a case, add a row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "support/http1_kit.h"
#include "wire/http1_text.h"

static const http1_row good_heads[] = {
    ROW("least", GET "\r\n", "GET / @a [] "),
    ROW("any token is a method", "M-SEARCH!#$%&'*+.^_`|~09 / HTTP/1.1\r\nHost: a\r\n\r\n",
        "M-SEARCH!#$%&'*+.^_`|~09 / @a [] "),
    ROW("a query", "GET /a/b?c=d?e HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a/b?c=d?e @a [] "),
    ROW("an empty query", "GET /? HTTP/1.1\r\nHost: a\r\n\r\n", "GET /? @a [] "),
    ROW("a path that looks like a host", "GET //b/c HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET //b/c @a [] "),
    ROW("OPTIONS of the server", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * @a [] "),
    ROW("absolute", "GET http://a:81/x?y HTTP/1.1\r\nHost: a:81\r\n\r\n",
        "GET /x?y @a:81 [] "),
    ROW("absolute, other case", "GET HTTP://A.b/ HTTP/1.1\r\nHost: a.B\r\n\r\n",
        "GET / @A.b [] "),
    ROW("absolute, port of the scheme", "GET http://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / @a:80 [] "),
    ROW("absolute, secure", "GET https://a/ HTTP/1.1\r\nHost: a:443\r\n\r\n",
        "GET / @a [] "),
    ROW("absolute, empty port", "GET http://a:/ HTTP/1.1\r\nHost: a:80\r\n\r\n",
        "GET / @a: [] "),
    ROW("absolute, no path", "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "GET / @a [] "),
    ROW("absolute, no path but a query", "GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /?b @a [] "),
    ROW("absolute, OPTIONS of no path but a query",
        "OPTIONS http://a?b HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS /?b @a [] "),
    ROW("absolute, OPTIONS of the server", "OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * @a [] "),
    ROW("absolute, OPTIONS of the root", "OPTIONS http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS / @a [] "),
    ROW("absolute and 1.0 without Host", "GET http://b/ HTTP/1.0\r\n\r\n",
        "GET / @b 1.0 close [] "),
    ROW("1.0 without Host", "GET / HTTP/1.0\r\n\r\n", "GET / 1.0 close [] "),
    ROW("an IPv6 host", "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
        "GET / @[::1]:8080 [] "),
    ROW("blanks around a value", "GET / HTTP/1.1\r\nHost: \t a \t \r\n\r\n",
        "GET / @a [] "),
    ROW("no blank before a value", "GET / HTTP/1.1\r\nHost:a\r\n\r\n", "GET / @a [] "),
    ROW("an empty value", GET "X:\r\nY: \r\n\r\n", "GET / @a [] "),
    ROW("bytes beyond ASCII in a value", GET "X: \xc3\xa4\xff\tb\r\n\r\n",
        "GET / @a [] "),
    ROW("names in any case", "GET / HTTP/1.1\r\nhOST: a\r\nCONNECTION: CLOSE\r\n\r\n",
        "GET / @a close [] "),
    ROW("two empty lines before", "\r\n\r\n" GET "\r\n", "GET / @a [] "),
    ROW("empty lines between", "\r\n" GET "\r\n\r\n\r\n" GET "\r\n",
        "GET / @a [] GET / @a [] "),
    ROW("close", GET "Connection: close\r\n\r\n", "GET / @a close [] "),
    ROW("close in a list", GET "Connection: te,\tClose , ,\r\n\r\n",
        "GET / @a close [] "),
    ROW("close in a second header", GET "Connection: te\r\nConnection: close\r\n\r\n",
        "GET / @a close [] "),
    ROW("close wins", GET "Connection: keep-alive, close\r\n\r\n", "GET / @a close [] "),
    ROW("1.0 kept alive", "GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n",
        "GET / @a 1.0 [] "),
    ROW("1.0 close wins", "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
        "GET / 1.0 close [] "),
    ROW("an option that only begins like close", GET "Connection: closed\r\n\r\n",
        "GET / @a [] "),
    ROW("an upgrade is ignored",
        GET "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
        "GET / @a [] "),
};

static const http1_row bad_lines[] = {
    ROW("TLS", "\x16\x03\x01", "!400"),
    ROW("a blank first", " GET / HTTP/1.1\r\n", "!400"),
    ROW("three empty lines", "\r\n\r\n\r\n" GET "\r\n", "!400"),
    ROW("an empty line of LF", "\n" GET "\r\n", "!400"),
    ROW("a CR before the request", "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("only a method", "GET\r\n\r\n", "!400"),
    ROW("0.9", "GET /\r\n", "!400"),
    ROW("no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("no blank", "GET/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("two blanks before the target", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("two blanks before the version", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("a tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("a blank in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("a blank at the end", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "!400"),
    ROW("no token as method", "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("control in the target", "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("NUL in the target", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("DEL in the target", "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("non-ASCII in the target", "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("a fragment", "GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("no path", "GET x HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("* for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("more than *", "OPTIONS *x HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("absolute, another host", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("absolute, another port", "GET http://a:8/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("absolute, no host", "GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("absolute, userinfo", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("absolute and no Host", "GET http://a/ HTTP/1.1\r\n\r\n", "!400"),
    ROW("a tunnel", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "!501"),
    ROW("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!505"),
    ROW("HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "!505"),
    ROW("HTTP/0.9", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", "!505"),
    ROW("two digits", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", "!400"),
    ROW("no minor", "GET / HTTP/1\r\nHost: a\r\n\r\n", "!400"),
    ROW("small letters", "GET / http/1.1\r\nHost: a\r\n\r\n", "!400"),
    ROW("another protocol", "GET / RTSP/1.1\r\nHost: a\r\n\r\n", "!400"),
};

static const http1_row bad_headers[] = {
    ROW("LF alone behind the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", "!400"),
    ROW("LF alone behind a header", "GET / HTTP/1.1\r\nHost: a\n\r\n", "!400"),
    ROW("LF alone at the end", GET "\n", "!400"),
    ROW("CR alone in a value", GET "X: a\rb\r\n\r\n", "!400"),
    ROW("CR alone at the end", GET "\r\r\n", "!400"),
    ROW("CR twice", GET "X: a\r\r\n\r\n", "!400"),
    ROW("NUL in a value", GET "X: a\0b\r\n\r\n", "!400"),
    ROW("NUL in a long value", GET "X: 0123456789abcdef\0\r\n\r\n", "!400"),
    ROW("control in a value",
        GET "X: 0123456\x1f"
            "89abcdef\r\n\r\n",
        "!400"),
    ROW("DEL in a value",
        GET "X: 01234567\x7f"
            "9abcdef\r\n\r\n",
        "!400"),
    ROW("folded", GET "X: a\r\n b\r\n\r\n", "!400"),
    ROW("folded by a tab", GET "X: a\r\n\tb: c\r\n\r\n", "!400"),
    ROW("first header folded", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "!400"),
    ROW("a line of blanks", GET "  \r\n\r\n", "!400"),
    ROW("blank before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "!400"),
    ROW("blank in a name", GET "X Y: a\r\n\r\n", "!400"),
    ROW("no name", GET ": a\r\n\r\n", "!400"),
    ROW("no colon", GET "X\r\n\r\n", "!400"),
    ROW("no token as name", GET "X(Y): a\r\n\r\n", "!400"),
    ROW("non-ASCII name", GET "\xc3\xa4: a\r\n\r\n", "!400"),
    ROW("NUL in a name", GET "X\0: a\r\n\r\n", "!400"),
    ROW("no Host", "GET / HTTP/1.1\r\n\r\n", "!400"),
    ROW("an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "!400"),
    ROW("two Hosts", GET "Host: b\r\n\r\n", "!400"),
    ROW("one Host twice", GET "Host: a\r\n\r\n", "!400"),
    ROW("two Hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "!400"),
    ROW("Host with userinfo", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", "!400"),
    ROW("Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "!400"),
    ROW("Host with a blank", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "!400"),
    ROW("Hosts joined", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "!400"),
    ROW("Host beyond ASCII", "GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n", "!400"),
    ROW("no number as port", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "!400"),
    ROW("a long port", "GET / HTTP/1.1\r\nHost: a:000080\r\n\r\n", "!400"),
    ROW("no end of IPv6", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "!400"),
    ROW("an empty IPv6", "GET / HTTP/1.1\r\nHost: []\r\n\r\n", "!400"),
    ROW("junk behind IPv6", "GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n", "!400"),
    ROW("no tokens in Connection", GET "Connection: close;x\r\n\r\n", "!400"),
    ROW("another expectation", POST "Expect: 200-ok\r\n\r\n", "!417"),
    ROW("an empty expectation", POST "Expect:\r\n\r\n", "!417"),
    ROW("two expectations", POST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n",
        "!417"),
    ROW("another expectation in 1.0", "GET / HTTP/1.0\r\nExpect: x\r\n\r\n", "!417"),
};

static void good_heads_are_understood(void **state)
{
    (void)state;
    EVERY(good_heads);
}

static void bad_request_lines_are_refused(void **state)
{
    (void)state;
    EVERY(bad_lines);
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    EVERY(bad_headers);
}

static void assert_str(sgi_str text, const char *expected)
{
    assert_int_equal(text.n, strlen(expected));
    assert_memory_equal(text.p, expected, text.n);
}

static void known_names_are_found_in_any_case(void **state)
{
    (void)state;
    static const struct {
        sgi_http1_name name;
        const char *text;
    } all[] = {
        {SGI_HTTP1_ACCEPT, "aCCept"},
        {SGI_HTTP1_EXPECT, "Expect"},
        {SGI_HTTP1_ORIGIN, "ORIGIN"},
        {SGI_HTTP1_MCP_NAME, "Mcp-Name"},
        {SGI_HTTP1_CONNECTION, "Connection"},
        {SGI_HTTP1_MCP_METHOD, "MCP-Method"},
        {SGI_HTTP1_CONTENT_TYPE, "content-type"},
        {SGI_HTTP1_AUTHORIZATION, "Authorization"},
        {SGI_HTTP1_LAST_EVENT_ID, "Last-Event-ID"},
        {SGI_HTTP1_CONTENT_LENGTH, "Content-Length"},
        {SGI_HTTP1_MCP_SESSION_ID, "Mcp-Session-Id"},
        {SGI_HTTP1_TRANSFER_ENCODING, "Transfer-Encoding"},
        {SGI_HTTP1_MCP_PROTOCOL_VERSION, "MCP-Protocol-Version"},
    };
    assert_int_equal(sizeof all / sizeof *all + 1, SGI_HTTP1_NAMES);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sgi_http1 parser;
        char text[200];
        const char *value = all[i].name == SGI_HTTP1_EXPECT              ? "100-continue"
                            : all[i].name == SGI_HTTP1_CONTENT_LENGTH    ? "7"
                            : all[i].name == SGI_HTTP1_TRANSFER_ENCODING ? "chunked"
                                                                         : "some";
        int len = snprintf(text, sizeof text, GET "%s: %s\r\nx%s: other\r\n\r\n",
                           all[i].text, value, all[i].text);
        http1_read_head(&parser, (sgi_str){text, (size_t)len});
        for (int name = 0; name < SGI_HTTP1_NAMES; name++) {
            sgi_str found = sgi_http1_header(&parser.head, (sgi_http1_name)name);
            if (name == SGI_HTTP1_HOST)
                assert_str(found, "a");
            else if (name == (int)all[i].name)
                assert_str(found, value);
            else
                assert_null(found.p);
            assert_false(sgi_http1_is_repeated(&parser.head, (sgi_http1_name)name));
        }
        sgi_http1_free(&parser);
    }
}

static void repeated_headers_are_seen(void **state)
{
    (void)state;
    sgi_http1 parser;
    size_t count;
    http1_read_head(&parser,
                    SGI_STR(GET "Origin: o\r\nMcp-Name: a\r\nX-A: 1\r\nmcp-name: b\r\n"
                                "x-a: 2\r\nX-A: \r\nX-B:\r\n\r\n"));
    assert_false(sgi_http1_is_repeated(&parser.head, SGI_HTTP1_ORIGIN));
    assert_true(sgi_http1_is_repeated(&parser.head, SGI_HTTP1_MCP_NAME));
    assert_str(sgi_http1_header(&parser.head, SGI_HTTP1_MCP_NAME), "a");
    assert_str(sgi_http1_find_header(&parser.head, SGI_STR("X-a"), &count), "1");
    assert_int_equal(count, 3);
    sgi_str empty = sgi_http1_find_header(&parser.head, SGI_STR("x-b"), &count);
    assert_non_null(empty.p);
    assert_int_equal(empty.n, 0);
    assert_int_equal(count, 1);
    assert_null(sgi_http1_find_header(&parser.head, SGI_STR("x-c"), &count).p);
    assert_int_equal(count, 0);
    assert_str(sgi_http1_find_header(&parser.head, SGI_STR("ORIGIN"), NULL), "o");
    sgi_str name, value;
    assert_true(sgi_http1_header_at(&parser.head, 3, &name, &value));
    assert_str(name, "X-A");
    assert_true(sgi_http1_header_at(&parser.head, 7, &name, &value));
    assert_false(sgi_http1_header_at(&parser.head, 8, &name, &value));
    sgi_http1_free(&parser);
}

static bool is_among(int c, const char *set)
{
    return c && strchr(set, c);
}

/* Compares the table with the grammar, which is written here in another way. */
static void classes_of_bytes_are_those_of_the_grammar(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool digit = c >= '0' && c <= '9';
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool visible = c > ' ' && c < 127;
        unsigned expected = 0;
        if (digit || letter || is_among(c, "!#$%&'*+-.^_`|~"))
            expected |= SGI_HTTP1_TOKEN;
        if (visible || c == ' ' || c == '\t' || c > 127)
            expected |= SGI_HTTP1_VALUE;
        if (visible && c != '#')
            expected |= SGI_HTTP1_TARGET;
        if (digit || letter || is_among(c, "-._~"))
            expected |= SGI_HTTP1_REG;
        if (digit || is_among(c, "abcdefABCDEF"))
            expected |= SGI_HTTP1_HEX;
        if (digit)
            expected |= SGI_HTTP1_DIGIT;
        assert_int_equal(sgi_http1_class[c], expected);
    }
}

/* Tries every byte at every offset of a block of eight, behind different numbers of whole
 * blocks. */
static void every_byte_of_a_value_is_looked_at(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        for (size_t at = 0; at < 20; at++) {
            char text[] = GET "X: .01234567890123456789.\r\n\r\n";
            bool good = sgi_http1_is((char)c, SGI_HTTP1_VALUE);
            text[sizeof GET + 3 + at] = (char)c;
            sgi_http1 parser;
            sgi_str input = {text, sizeof text - 1};
            sgi_http1_init(&parser, &http1_mem.mem, NULL);
            assert_int_equal(sgi_http1_next(&parser, &input),
                             good ? SGI_HTTP1_HEAD : SGI_HTTP1_BAD);
            sgi_http1_free(&parser);
        }
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, http1_set_up, http1_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(good_heads_are_understood),
        CASE(bad_request_lines_are_refused),
        CASE(bad_headers_are_refused),
        CASE(known_names_are_found_in_any_case),
        CASE(repeated_headers_are_seen),
        CASE(classes_of_bytes_are_those_of_the_grammar),
        CASE(every_byte_of_a_value_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
