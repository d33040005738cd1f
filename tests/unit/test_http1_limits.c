/* Input at a limit is accepted, and one byte or item more is refused. Memory stays
 * proportional to the received bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/http1_kit.h"

typedef struct maker {
    char text[20 * 1024];
    size_t len;
} maker;

static void put(maker *m, const char *text)
{
    size_t len = strlen(text);
    assert_true(m->len + len < sizeof m->text);
    memcpy(m->text + m->len, text, len + 1);
    m->len += len;
}

static void put_many(maker *m, const char *text, size_t count)
{
    while (count--)
        put(m, text);
}

/* Reads the text in many ways, then clears the maker for the next text. */
static void expect(const char *name, maker *m, const sgi_http1_limits *limits,
                   const char *expected)
{
    http1_row r = {name, {m->text, m->len}, expected};
    http1_every_way(&r, limits);
    m->len = 0;
}

static void a_method_of_32_bytes_is_the_longest(void **state)
{
    (void)state;
    maker m = {.len = 0};
    for (size_t len = 32; len <= 33; len++) {
        put_many(&m, "M", len);
        put(&m, " / HTTP/1.0\r\n\r\n");
        expect("method", &m, NULL,
               len == 32 ? "MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM / 1.0 close [] " : "!501");
    }
}

static void the_request_line_is_limited(void **state)
{
    (void)state;
    const sgi_http1_limits limits = {.max_request_line = 24};
    maker m = {.len = 0};
    put(&m, "GET /12345678 HTTP/1.0\r\n\r\n"); /* 24 with its line end */
    expect("longest", &m, &limits, "GET /12345678 1.0 close [] ");
    put(&m, "GET /123456789 HTTP/1.0\r\n\r\n");
    expect("too long", &m, &limits, "!414");
    put(&m, "GET /1234567890123456789"); /* known before the line ends */
    expect("not ended", &m, &limits, "");
    put(&m, "GET /12345678901234567890");
    expect("not ended and too long", &m, &limits, "!414");
    put_many(&m, "x", 8 * 1024);
    expect("standard", &m, NULL, "");
    put_many(&m, "x", 8 * 1024 + 1);
    expect("beyond the standard", &m, NULL, "!414");
}

static void the_head_is_limited(void **state)
{
    (void)state;
    const sgi_http1_limits limits = {.max_head = 40};
    maker m = {.len = 0};
    put(&m, "GET / HTTP/1.1\r\nHost: a\r\nX: 12345678\r\n\r\n"); /* 16 + 9 + 13 + 2 */
    expect("largest", &m, &limits, "GET / @a [] ");
    put(&m, "GET / HTTP/1.1\r\nHost: a\r\nX: 123456789\r\n\r\n");
    expect("too large", &m, &limits, "!431");
    put(&m, GET "X: ");
    put_many(&m, "x", 16 * 1024 - m.len);
    expect("standard", &m, NULL, "");
    put(&m, GET "X: ");
    put_many(&m, "x", 16 * 1024 - m.len + 1);
    expect("beyond the standard", &m, NULL, "!431");
    const sgi_http1_limits tiny = {.max_head = 10};
    put(&m, GET "\r\n");
    expect("a request line alone is too large", &m, &tiny, "!431");
}

static void headers_are_counted(void **state)
{
    (void)state;
    const sgi_http1_limits limits = {.max_headers = 3};
    maker m = {.len = 0};
    put(&m, GET "X: a\r\nX: b\r\n\r\n");
    expect("most", &m, &limits, "GET / @a [] ");
    put(&m, GET "X: a\r\nX: b\r\nX: c\r\n\r\n");
    expect("too many", &m, &limits, "!431");
    put(&m, GET);
    put_many(&m, "X: a\r\n", 99);
    put(&m, "\r\n");
    expect("standard", &m, NULL, "GET / @a [] ");
    put(&m, GET);
    put_many(&m, "X: a\r\n", 100);
    expect("beyond the standard", &m, NULL, "!431");
}

static void trailers_are_counted_and_limited(void **state)
{
    (void)state;
    const sgi_http1_limits limits = {.max_headers = 2};
    maker m = {.len = 0};
    put(&m, CHUNKED "0\r\nX: a\r\nY: b\r\n\r\n");
    expect("most", &m, &limits, "POST /mcp @a [] ");
    put(&m, CHUNKED "0\r\nX: a\r\nX: b\r\nX: c\r\n\r\n");
    expect("too many", &m, &limits, "POST /mcp @a!431");
    put(&m, CHUNKED "0\r\nX:"); /* with two line ends, 6 bytes more */
    put_many(&m, "x", SGI_HTTP1_MAX_TRAILERS - 6);
    put(&m, "\r\n\r\n");
    expect("most bytes", &m, NULL, "POST /mcp @a [] ");
    put(&m, CHUNKED "0\r\nX:");
    put_many(&m, "x", SGI_HTTP1_MAX_TRAILERS - 5);
    put(&m, "\r\n\r\n");
    expect("too many bytes", &m, NULL, "POST /mcp @a!431");
}

static void extensions_of_all_chunks_are_limited(void **state)
{
    (void)state;
    maker m = {.len = 0};
    put(&m, CHUNKED "1;");
    put_many(&m, "x", SGI_HTTP1_MAX_EXTENSIONS - 1);
    put(&m, "\r\na\r\n0\r\n\r\n");
    expect("one, longest", &m, NULL, "POST /mcp @a [a] ");
    put(&m, CHUNKED "1;");
    put_many(&m, "x", SGI_HTTP1_MAX_EXTENSIONS);
    put(&m, "\r\na\r\n0\r\n\r\n");
    expect("one, too long", &m, NULL, "POST /mcp @a!400");
    put(&m, CHUNKED);
    put_many(&m, "1;123\r\na\r\n", SGI_HTTP1_MAX_EXTENSIONS / 4);
    put(&m, "0\r\n\r\n");
    char whole[SGI_HTTP1_MAX_EXTENSIONS / 4 + 32] = "POST /mcp @a [";
    memset(whole + 14, 'a', SGI_HTTP1_MAX_EXTENSIONS / 4);
    strcat(whole, "] ");
    expect("many", &m, NULL, whole);
    put(&m, CHUNKED);
    put_many(&m, "1;123\r\na\r\n", SGI_HTTP1_MAX_EXTENSIONS / 4);
    put(&m, "0;a\r\n\r\n");
    expect("too many", &m, NULL, "POST /mcp @a!400");
    put(&m, CHUNKED);
    put_many(&m, "1", 16 + SGI_HTTP1_MAX_EXTENSIONS + 3);
    expect("a line without end", &m, NULL, "POST /mcp @a!400");
}

static void the_body_is_limited(void **state)
{
    (void)state;
    const sgi_http1_limits limits = {.max_body = 4};
    maker m = {.len = 0};
    put(&m, POST "Content-Length: 4\r\n\r\nabcd");
    expect("largest", &m, &limits, "POST /mcp @a [abcd] ");
    put(&m, POST "Content-Length: 5\r\n\r\n");
    expect("known by its length", &m, &limits, "!413");
    put(&m, CHUNKED "2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n");
    expect("largest in chunks", &m, &limits, "POST /mcp @a [abcd] ");
    put(&m, CHUNKED "2\r\nab\r\n3\r\n");
    expect("known by the size of a chunk", &m, &limits, "POST /mcp @a!413");
}

/* An announced length costs no memory. Received bytes cost at most two and a half times
 * their size (the old and the new buffer, while it grows). */
static void memory_follows_the_bytes_that_came(void **state)
{
    (void)state;
    sgi_http1 parser;
    char piece[1000];
    memset(piece, 'x', sizeof piece);
    http1_read_head(&parser, SGI_STR(POST "Content-Length: 4000000\r\n\r\n"));
    assert_true(http1_mem.live <= 1024);
    for (size_t sent = sizeof piece; sent <= 1000 * 1000; sent += sizeof piece) {
        sgi_str input = {piece, sizeof piece};
        assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_MORE);
        assert_true(http1_mem.peak <= sent * 5 / 2 + 2048);
    }
    sgi_http1_free(&parser);
    test_mem_init(&http1_mem);
    sgi_http1_init(&parser, &http1_mem.mem, NULL);
    sgi_http1_event event = SGI_HTTP1_MORE;
    for (int i = 0; i < 100 && event == SGI_HTTP1_MORE; i++) {
        sgi_str input = {piece, sizeof piece};
        event = sgi_http1_next(&parser, &input);
    }
    assert_int_equal(event, SGI_HTTP1_BAD);
    assert_true(http1_mem.peak <= 3 * 8 * 1024);
    sgi_http1_free(&parser);
}

static void an_idle_connection_is_small(void **state)
{
    (void)state;
    sgi_http1 parser;
    maker m = {.len = 0};
    put(&m, POST "Content-Length: 100000\r\n");
    put_many(&m, "X-Some-Header: and its value, which takes some room\r\n", 90);
    put(&m, "\r\n");
    http1_read_head(&parser, (sgi_str){m.text, m.len});
    for (int i = 0; i < 10; i++) {
        sgi_str input = {m.text, 10000};
        m.len = 10000;
        sgi_http1_next(&parser, &input);
    }
    assert_int_equal(parser.state, SGI_HTTP1_AT_END);
    assert_true(http1_mem.live > 100000);
    sgi_http1_reset(&parser);
    assert_true(http1_mem.live + sizeof parser <= 5 * 1024);
    /* After ordinary requests, nothing is allocated anew. */
    for (int i = 0; i < 3; i++) {
        sgi_str input = SGI_STR(POST "Content-Length: 2\r\nX: y\r\n\r\nab");
        if (i == 1)
            test_mem_rearm(&http1_mem);
        while (sgi_http1_next(&parser, &input) != SGI_HTTP1_DONE)
            ;
        sgi_http1_reset(&parser);
    }
    assert_int_equal(http1_mem.calls, 0);
    assert_true(http1_mem.live + sizeof parser <= 2 * 1024);
    sgi_http1_free(&parser);
}

/* Input that comes byte by byte does not cause quadratic work, because only the rare
 * growth of a buffer copies bytes. */
static void single_bytes_cost_few_allocations(void **state)
{
    (void)state;
    sgi_http1 parser;
    maker m = {.len = 0};
    put(&m, GET "X: ");
    put_many(&m, "x", 15 * 1024);
    sgi_http1_init(&parser, &http1_mem.mem, NULL);
    for (size_t i = 0; i < m.len; i++) {
        sgi_str input = {m.text + i, 1};
        assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_MORE);
    }
    assert_true(http1_mem.calls < 20);
    sgi_http1_free(&parser);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, http1_set_up, http1_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_method_of_32_bytes_is_the_longest),
        CASE(the_request_line_is_limited),
        CASE(the_head_is_limited),
        CASE(headers_are_counted),
        CASE(trailers_are_counted_and_limited),
        CASE(extensions_of_all_chunks_are_limited),
        CASE(the_body_is_limited),
        CASE(memory_follows_the_bytes_that_came),
        CASE(an_idle_connection_is_small),
        CASE(single_bytes_cost_few_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
