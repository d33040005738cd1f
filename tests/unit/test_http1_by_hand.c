/* Heads that are filled by hand. Each row is filled by hand, and is written as HTTP/1.1
 * and parsed: both ways must understand and refuse the same, for the same reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/http1_kit.h"

#define FIELDS 6

typedef struct field {
    const char *name;
    const char *value;
} field;

typedef struct row {
    const char *method;
    const char *target;
    field fields[FIELDS];
    int32_t status; /* 0 = the head is good */
    sgi_http1_limits limits;
} row;

static const row rows[] = {
    {"GET", "/", {{"Host", "a"}}, 0, {0}},
    {"POST", "/mcp?x=y", {{"Host", "a:80"}, {"content-length", "7"}}, 0, {0}},
    {"POST", "http://a/p", {{"host", "A"}, {"Accept", " text/html\t"}}, 0, {0}},
    {"OPTIONS", "*", {{"host", "[::1]:8"}, {"X", ""}}, 0, {0}},
    {"GET", "/", {{"Host", "a"}, {"Accept", "b"}, {"accept", "c"}, {"X", "d"}}, 0, {0}},
    {"GET", "/", {{"Host", "a"}, {"Connection", "te, close"}}, 0, {0}},
    {"PUT", "/", {{"Host", "a"}, {"Transfer-Encoding", "chunked"}}, 0, {0}},
    {"PUT",
     "/",
     {{"Host", "a"}, {"Content-Length", "1"}, {"Expect", "100-continue"}},
     0,
     {0}},
    /* Texts that HTTP does not allow. */
    {"G T", "/", {{"Host", "a"}}, 400, {0}},
    {"GET", "/\x01", {{"Host", "a"}}, 400, {0}},
    {"GET", "/#a", {{"Host", "a"}}, 400, {0}},
    {"GET", "/", {{"Host", "a"}, {"X Y", "b"}}, 400, {0}},
    {"GET", "/", {{"Host", "a"}, {"X", "0123456789\x1f"}}, 400, {0}},
    {"GET", "/", {{"Host", "a"}, {"X", "b\x7f"}}, 400, {0}},
    {"GET", "/", {{"Host", "a"}, {"Connection", "a b"}}, 400, {0}},
    /* Heads whose parts contradict each other. */
    {"GET", "/", {{0}}, 400, {0}},
    {"GET", "/", {{"Host", "a"}, {"host", "a"}}, 400, {0}},
    {"GET", "/", {{"Host", "a, b"}}, 400, {0}},
    {"GET", "http://b/", {{"Host", "a"}}, 400, {0}},
    {"GET", "x", {{"Host", "a"}}, 400, {0}},
    {"PUT",
     "/",
     {{"Host", "a"}, {"Content-Length", "1"}, {"Content-Length", "1"}},
     400,
     {0}},
    {"PUT", "/", {{"Host", "a"}, {"Content-Length", "1\t"}}, 400, {0}},
    {"PUT", "/", {{"Host", "a"}, {"Content-Length", "x"}}, 400, {0}},
    {"GET", "/", {{"Host", "a"}, {"Expect", "x"}}, 417, {0}},
    {"PUT", "/", {{"Host", "a"}, {"Transfer-Encoding", "gzip"}}, 501, {0}},
    {"CONNECT", "a:1", {{"Host", "a:1"}}, 501, {0}},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", "/", {{"Host", "a"}}, 501, {0}},
    /* Limits, at and beyond each. */
    {"GET", "/", {{"Host", "a"}}, 0, {.max_request_line = 16}},
    {"GET", "/", {{"Host", "a"}}, 414, {.max_request_line = 15}},
    {"GET", "/", {{"Host", "a"}, {"X", "y"}}, 0, {.max_head = 33}},
    {"GET", "/", {{"Host", "a"}, {"X", "y"}}, 431, {.max_head = 32}},
    {"GET", "/", {{"Host", "a"}, {"X", "y"}}, 431, {.max_head = 24}},
    {"GET", "/", {{"Host", "a"}, {"X", "y"}}, 0, {.max_headers = 2}},
    {"GET", "/", {{"Host", "a"}, {"X", "y"}}, 431, {.max_headers = 1}},
    {"PUT", "/", {{"Host", "a"}, {"Content-Length", "9"}}, 0, {.max_body = 9}},
    {"PUT", "/", {{"Host", "a"}, {"Content-Length", "9"}}, 413, {.max_body = 8}},
};

static bool fill(sgi_http1_head *head, const row *r)
{
    sgi_http1_head_init(head, &http1_mem.mem, &r->limits);
    if (!sgi_http1_head_begin(head, sgi_str_of(r->method), sgi_str_of(r->target), 0))
        return false;
    for (const field *f = r->fields; f < r->fields + FIELDS && f->name; f++)
        if (!sgi_http1_head_add(head, sgi_str_of(f->name), sgi_str_of(f->value)))
            return false;
    return sgi_http1_head_end(head);
}

static void parse(sgi_http1 *parser, const row *r)
{
    char text[512];
    int len = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\n", r->method, r->target);
    for (const field *f = r->fields; f < r->fields + FIELDS && f->name; f++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s: %s\r\n", f->name,
                        f->value);
    len += snprintf(text + len, sizeof text - (size_t)len, "\r\n");
    sgi_str input = {text, (size_t)len};
    sgi_http1_init(parser, &http1_mem.mem, &r->limits);
    sgi_http1_event event = sgi_http1_next(parser, &input);
    assert_int_equal(event, r->status ? SGI_HTTP1_BAD : SGI_HTTP1_HEAD);
}

static void assert_same(sgi_str a, sgi_str b)
{
    assert_int_equal(a.p == NULL, b.p == NULL);
    assert_true(sgi_str_eq(a, b));
}

static void assert_same_head(const sgi_http1_head *a, const sgi_http1_head *b)
{
    sgi_str name, value, other_name, other_value;
    size_t i = 0;
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
    for (; sgi_http1_header_at(a, i, &name, &value); i++) {
        assert_true(sgi_http1_header_at(b, i, &other_name, &other_value));
        assert_same(name, other_name);
        assert_same(value, other_value);
    }
    assert_false(sgi_http1_header_at(b, i, &other_name, &other_value));
    for (int n = 0; n < SGI_HTTP1_NAMES; n++) {
        sgi_http1_name known = (sgi_http1_name)n;
        assert_same(sgi_http1_header(a, known), sgi_http1_header(b, known));
        assert_int_equal(sgi_http1_is_repeated(a, known),
                         sgi_http1_is_repeated(b, known));
    }
}

static void both_ways_understand_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_http1_head head;
        sgi_http1 parser;
        bool is_good = fill(&head, &rows[i]);
        parse(&parser, &rows[i]);
        if (head.fault.status != rows[i].status || is_good != !rows[i].status)
            fail_msg("row %d: %d, %s", (int)i, head.fault.status, head.fault.problem);
        assert_int_equal(parser.head.fault.status, rows[i].status);
        assert_int_equal(head.fault.reached, parser.head.fault.reached);
        assert_int_equal(head.fault.problem == NULL, is_good);
        if (is_good)
            assert_same_head(&head, &parser.head);
        sgi_http1_head_free(&head);
        sgi_http1_free(&parser);
    }
}

/* The parser takes the head, and reads the body alone. */
static void a_given_head_is_followed_by_its_body(void **state)
{
    static const row with_length = {
        "PUT", "/", {{"Host", "a"}, {"Content-Length", "3"}}, 0, {0}};
    static const row without = {"PUT", "/", {{"Host", "a"}}, 0, {0}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        sgi_http1_head head;
        sgi_http1 parser;
        bool is_short = i == 2;
        sgi_str input = {0}, body = is_short ? SGI_STR("ab") : SGI_STR("abc");
        fill(&head, i % 2 ? &without : &with_length);
        sgi_http1_init(&parser, &http1_mem.mem, NULL);
        sgi_http1_take_head(&parser, &head);
        assert_false(sgi_http1_has_begun(&parser));
        assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_HEAD);
        assert_true(sgi_http1_has_begun(&parser));
        assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_MORE);
        if (i < 3 && sgi_http1_next(&parser, &body) == SGI_HTTP1_DONE)
            assert_int_equal(i, 0); /* Content-Length says where the body ends */
        sgi_http1_end_body(&parser);
        assert_int_equal(sgi_http1_next(&parser, &input),
                         is_short ? SGI_HTTP1_BAD : SGI_HTTP1_DONE);
        if (!is_short)
            assert_true(sgi_str_eq(sgi_buf_str(&parser.body),
                                   i == 3 ? SGI_STR("") : SGI_STR("abc")));
        sgi_http1_free(&parser);
    }
}

static void a_refused_head_is_reported(void **state)
{
    sgi_http1_head head;
    sgi_http1 parser;
    sgi_str input = {0};
    (void)state;
    fill(&head, &(row){"GET", "/", {{0}}, 0, {0}});
    sgi_http1_init(&parser, &http1_mem.mem, NULL);
    sgi_http1_take_head(&parser, &head);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_BAD);
    sgi_http1_end_body(&parser);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_BAD);
    assert_int_equal(parser.head.fault.status, 400);
    sgi_http1_free(&parser);
}

static void without_memory_a_head_is_refused(void **state)
{
    bool has_failed = true;
    (void)state;
    for (size_t n = 1; has_failed; n++) {
        sgi_http1_head head;
        test_mem_rearm(&http1_mem);
        http1_mem.fail_at = n;
        bool is_good = fill(&head, &rows[4]);
        has_failed = http1_mem.failed > 0;
        assert_int_equal(is_good, head.fault.status == 0);
        assert_true(is_good || (has_failed && head.fault.status == 503));
        sgi_http1_head_free(&head);
    }
    test_mem_rearm(&http1_mem);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, http1_set_up, http1_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(both_ways_understand_the_same),
        CASE(a_given_head_is_followed_by_its_body),
        CASE(a_refused_head_is_reported),
        CASE(without_memory_a_head_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
