/* The first line and the chunks of answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/test_mem.h"
#include "wire/http1.h"

static test_mem tm;
static sgi_buf out;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    sgi_buf_init(&out, &tm.mem);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_buf_free(&out);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void assert_out(const char *expected)
{
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.p, expected, out.len);
    sgi_buf_reset(&out, SIZE_MAX);
}

static void a_head_is_written(void **state)
{
    (void)state;
    sgi_http1_add_status(&out, 200);
    sgi_http1_add_head_end(&out);
    assert_out("HTTP/1.1 200 OK\r\n\r\n");
}

static void a_status_without_a_reason_keeps_its_blank(void **state)
{
    (void)state;
    sgi_http1_add_status(&out, 299);
    assert_out("HTTP/1.1 299 \r\n");
    assert_int_equal(sgi_http1_reason(299).n, 0);
}

/* Checks every status that the reader returns. */
static void refusals_have_reasons(void **state)
{
    (void)state;
    const int32_t all[] = {400, 413, 414, 417, 431, 501, 503, 505};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_true(sgi_http1_reason(all[i]).n > 0);
}

static void chunks_are_framed_and_empty_ones_vanish(void **state)
{
    (void)state;
    size_t place = sgi_http1_open_chunk(&out);
    sgi_buf_add_lit(&out, "0123456789abcdefX");
    sgi_http1_close_chunk(&out, place);
    place = sgi_http1_open_chunk(&out);
    sgi_http1_close_chunk(&out, place);
    sgi_http1_add_last_chunk(&out);
    assert_out("00000011\r\n0123456789abcdefX\r\n0\r\n\r\n");
}

static void what_is_written_in_chunks_can_be_read(void **state)
{
    (void)state;
    sgi_http1 parser;
    sgi_buf body;
    sgi_buf_init(&body, &tm.mem);
    sgi_http1_init(&parser, &tm.mem, NULL);
    sgi_buf_add_lit(&out, "POST / HTTP/1.1\r\nHost: a\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t len = 0; len < 70000; len = len * 3 + 1) {
        size_t place = sgi_http1_open_chunk(&out);
        for (size_t i = 0; i < len; i++) {
            sgi_buf_add_char(&out, (char)i);
            sgi_buf_add_char(&body, (char)i);
        }
        sgi_http1_close_chunk(&out, place);
    }
    sgi_http1_add_last_chunk(&out);
    sgi_str input = sgi_buf_str(&out);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_HEAD);
    assert_int_equal(sgi_http1_next(&parser, &input), SGI_HTTP1_DONE);
    assert_int_equal(input.n, 0);
    assert_true(sgi_str_eq(sgi_buf_str(&parser.body), sgi_buf_str(&body)));
    sgi_http1_free(&parser);
    sgi_buf_free(&body);
}

static void without_memory_the_buffer_says_so(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 3; n++) {
        test_mem_rearm(&tm);
        tm.fail_at = n;
        sgi_http1_add_status(&out, 200);
        sgi_http1_add_head_end(&out);
        size_t place = sgi_http1_open_chunk(&out);
        for (int i = 0; i < 500; i++)
            sgi_buf_add_char(&out, 'x');
        sgi_http1_close_chunk(&out, place);
        sgi_http1_add_last_chunk(&out);
        assert_int_equal(out.failed, tm.failed > 0);
        assert_int_equal(tm.failed, 1);
        sgi_buf_free(&out);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_head_is_written),
        CASE(a_status_without_a_reason_keeps_its_blank),
        CASE(refusals_have_reasons),
        CASE(chunks_are_framed_and_empty_ones_vanish),
        CASE(what_is_written_in_chunks_can_be_read),
        CASE(without_memory_the_buffer_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
