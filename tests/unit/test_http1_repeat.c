/* Requests that repeat what came before on their connection. A parser that remembers must
 * say the same as a parser that is new for each request. To add a case, add a head. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/http1_kit.h"

/* The heads differ in single lines: in their length, value, name, number and order. */
static const char *const requests[] = {
    POST "Content-Length: 2\r\nMcp-Name: echo\r\n\r\nab",
    POST "Content-Length: 2\r\nMcp-Name: echo\r\n\r\ncd",
    POST "Content-Length: 3\r\nMcp-Name: echo\r\n\r\nabc",
    POST "Content-Length: 03\r\nMcp-Name: echo\r\n\r\nabc",
    POST "Content-Length: 2\r\nMcp-Name: ecHo\r\n\r\nab",
    POST "Content-Length: 2\r\nMcp-Name: echo\r\nMcp-Name: echo\r\n\r\nab",
    POST "Mcp-Name: echo\r\nContent-Length: 2\r\n\r\nab",
    POST "Content-Length: 2\r\nMcp-Name: echo\r\nConnection: keep-alive\r\n\r\nab",
    POST "X: y\r\nContent-Length: 2\r\nMcp-Name: echo\r\n\r\nab",
    POST "Content-Length: 2\r\nX: echo\r\n\r\nab",
    POST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: y\r\n\r\n",
    POST "\r\n",
    GET "\r\n",
    GET "Accept: text/event-stream\r\n\r\n",
    "\r\n" GET "\r\n",
    /* requests[0] with an empty line in place of its first two bytes, behind another */
    "\r\n\r\nST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nMcp-Name: "
    "echo\r\n\r\nab",
    "GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a:1\r\nOrigin: http://a\r\n\r\n",
    "GET http://b/ HTTP/1.1\r\nHost: b\r\n\r\n",
    POST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
};
#define REQUESTS (sizeof requests / sizeof *requests)

/* Requests that are refused, also when they differ little from what was accepted. */
static const char *const bad_requests[] = {
    POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    POST "Content-Length: 2\n\r\n\r\nab",
    POST "Content-Length: 2 \t\r\n\r\nab",
    POST "Content-Length : 2\r\n\r\nab",
    POST "Content-Length: 2\r\nMcp-Name: ec\1o\r\n\r\nab",
    "POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\nab",
    "POST /mcp HTTP/1.2\r\nHost: a\r\n\r\n",
};
#define BAD_REQUESTS (sizeof bad_requests / sizeof *bad_requests)

static void assert_same_bytes(sgi_str a, sgi_str b)
{
    assert_int_equal(a.n, b.n);
    if (a.n)
        assert_memory_equal(a.p, b.p, a.n);
}

static void assert_same(sgi_str a, sgi_str b)
{
    assert_int_equal(a.p != NULL, b.p != NULL);
    assert_same_bytes(a, b);
}

static void assert_same_heads(const sgi_http1_head *a, const sgi_http1_head *b)
{
    sgi_str names[2], values[2];
    assert_same(a->method, b->method);
    assert_same(a->target, b->target);
    assert_same(a->path, b->path);
    assert_same(a->query, b->query);
    assert_same(a->host, b->host);
    assert_int_equal(a->content_length, b->content_length);
    assert_int_equal(a->is_chunked, b->is_chunked);
    assert_int_equal(a->expects_continue, b->expects_continue);
    assert_int_equal(a->keep_alive, b->keep_alive);
    assert_int_equal(a->minor, b->minor);
    assert_int_equal(a->field_count, b->field_count);
    for (size_t i = 0; sgi_http1_header_at(a, i, &names[0], &values[0]); i++) {
        assert_true(sgi_http1_header_at(b, i, &names[1], &values[1]));
        assert_same(names[0], names[1]);
        assert_same(values[0], values[1]);
    }
    for (int name = 0; name < SGI_HTTP1_NAMES; name++) {
        sgi_http1_name known = (sgi_http1_name)name;
        assert_same(sgi_http1_header(a, known), sgi_http1_header(b, known));
        assert_int_equal(sgi_http1_is_repeated(a, known),
                         sgi_http1_is_repeated(b, known));
    }
}

/* The parts of the head before, as texts. */
static struct {
    bool is_set;
    char request[64];
    char headers[SGI_HTTP1_NAMES][64];
} before;

static void copy(char *to, sgi_str text)
{
    assert_true(text.n < 64);
    memset(to, 0, 64);
    if (text.p)
        snprintf(to, 64, "[%.*s]", (int)text.n, text.p);
}

/* What the head does not call changed is as in the head before. */
static void check_changes(const sgi_http1_head *head)
{
    char now[64];
    copy(now, (sgi_str){head->text.p,
                        (size_t)(head->target.p - head->text.p) + head->target.n});
    if (!(head->changed & SGI_HTTP1_REQUEST_CHANGED)) {
        assert_true(before.is_set);
        assert_string_equal(now, before.request);
    }
    memcpy(before.request, now, sizeof now);
    for (int name = 0; name < SGI_HTTP1_NAMES; name++) {
        copy(now, sgi_http1_header(head, (sgi_http1_name)name));
        if (!(head->changed >> name & 1))
            assert_string_equal(now, before.headers[name]);
        memcpy(before.headers[name], now, sizeof now);
    }
    before.is_set = true;
}

/* Reads a request with both parsers, in pieces of at most `most` bytes, and compares what
 * they say. Returns false when the request was refused. */
static bool read_both(sgi_http1 *old, sgi_http1 *fresh, const char *request, size_t most)
{
    sgi_str rest = sgi_str_of(request);
    while (rest.n) {
        size_t len = rest.n < most ? rest.n : most;
        sgi_str a = {rest.p, len}, b = a;
        for (;;) {
            sgi_http1_event event = sgi_http1_next(old, &a);
            assert_int_equal(event, sgi_http1_next(fresh, &b));
            assert_int_equal(a.n, b.n);
            if (event == SGI_HTTP1_BAD) {
                assert_int_equal(old->head.fault.status, fresh->head.fault.status);
                assert_string_equal(old->head.fault.problem, fresh->head.fault.problem);
                return false;
            }
            if (event == SGI_HTTP1_MORE)
                break;
            assert_same_heads(&old->head, &fresh->head);
            if (event == SGI_HTTP1_HEAD)
                check_changes(&old->head);
            if (event == SGI_HTTP1_DONE) {
                assert_same_bytes(sgi_buf_str(&old->body), sgi_buf_str(&fresh->body));
                sgi_http1_reset(old);
                return true;
            }
        }
        rest = (sgi_str){rest.p + len, rest.n - len};
    }
    fail_msg("the request is not complete: %s", request);
    return false;
}

static void start(sgi_http1 *parser)
{
    sgi_http1_init(parser, &http1_mem.mem, NULL);
    before.is_set = false;
}

static bool compare(sgi_http1 *old, const char *request, size_t most)
{
    sgi_http1 fresh;
    sgi_http1_init(&fresh, &http1_mem.mem, NULL);
    bool passed = read_both(old, &fresh, request, most);
    sgi_http1_free(&fresh);
    return passed;
}

static void what_follows_a_request_is_read_as_if_it_came_first(void **state)
{
    (void)state;
    static const size_t pieces[] = {1000, 7, 1};
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
        for (size_t i = 0; i < REQUESTS; i++)
            for (size_t j = 0; j < REQUESTS; j++) {
                sgi_http1 parser;
                start(&parser);
                assert_true(compare(&parser, requests[i], pieces[0]));
                assert_true(compare(&parser, requests[j], pieces[p]));
                assert_true(compare(&parser, requests[i], pieces[p]));
                sgi_http1_free(&parser);
            }
}

static void what_is_bad_stays_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < REQUESTS; i++)
        for (size_t j = 0; j < BAD_REQUESTS; j++) {
            sgi_http1 parser;
            start(&parser);
            assert_true(compare(&parser, requests[i], SIZE_MAX));
            assert_false(compare(&parser, bad_requests[j], SIZE_MAX));
            sgi_http1_free(&parser);
        }
}

static void long_random_conversations_are_read_right(void **state)
{
    (void)state;
    uint32_t random = 7;
    sgi_http1 parser;
    start(&parser);
    for (int i = 0; i < 20000; i++) {
        random = random * 1103515245u + 12345u;
        size_t most = random >> 30 ? SIZE_MAX : 1 + (random >> 16) % 40;
        assert_true(compare(&parser, requests[(random >> 8) % REQUESTS], most));
        if ((random >> 20) % 50 == 0)
            sgi_http1_free(&parser);
    }
    sgi_http1_free(&parser);
}

static void an_equal_head_is_a_repeat_and_another_is_not(void **state)
{
    (void)state;
    sgi_http1 parser;
    start(&parser);
    for (int i = 0; i < 4; i++) {
        static const uint32_t changes[] = {UINT32_MAX, 0, 0,
                                           1u << SGI_HTTP1_CONTENT_LENGTH};
        const char *request = i < 3 ? requests[0] : requests[2];
        sgi_str input = sgi_str_of(request);
        assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_HEAD);
        assert_int_equal(parser.head.changed, changes[i]);
        assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_DONE);
        sgi_http1_reset(&parser);
    }
    sgi_http1_free(&parser);
}

/* The application gets values that end with a NUL. A request that has the NUL itself must
 * not pass as a repeat. */
static void a_terminated_value_is_no_line_to_compare_with(void **state)
{
    (void)state;
    static const char forged[] = GET "Origin: x\0\nAccept: y\r\n\r\n";
    sgi_http1 parser;
    sgi_str input = SGI_STR(GET "Origin: x\r\nAccept: y\r\n\r\n");
    start(&parser);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_HEAD);
    sgi_str origin = sgi_http1_header(&parser.head, SGI_HTTP1_ORIGIN);
    assert_string_equal(sgi_http1_terminate(&parser.head, origin), "x");
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_DONE);
    sgi_http1_reset(&parser);
    input = (sgi_str){forged, sizeof forged - 1};
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_BAD);
    sgi_http1_free(&parser);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_a_request_is_read_as_if_it_came_first),
        cmocka_unit_test(what_is_bad_stays_bad),
        cmocka_unit_test(long_random_conversations_are_read_right),
        cmocka_unit_test(an_equal_head_is_a_repeat_and_another_is_not),
        cmocka_unit_test(a_terminated_value_is_no_line_to_compare_with),
    };
    return cmocka_run_group_tests(tests, http1_set_up, http1_tear_down);
}
