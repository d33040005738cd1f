/* The growing byte buffer: its contents, its failures, and base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/buf.h"
#include "support/test_mem.h"

static test_mem tm;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(tm.live, 0);
    assert_int_equal(tm.blocks, 0);
    return 0;
}

static void print(char *out, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sgi_text_vformat(out, size, format, args);
    va_end(args);
}

/* Text that does not fit is cut between characters, wherever the limit is. */
static void text_is_cut_between_characters(void **state)
{
    static const char whole[] = "a\u00e9\u20ac\U0001f600z";
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    (void)state;
    for (size_t most = 0; most < sizeof ends / sizeof *ends; most++) {
        char out[16] = "untouched";
        assert_int_equal(sgi_text_fitting_bytes(sgi_str_of(whole), most), ends[most]);
        print(out, most + 1, "%s", whole);
        assert_int_equal(strlen(out), ends[most]);
        assert_memory_equal(out, whole, ends[most]);
    }
}

/* Text that a precision cuts is also cut between characters, with text behind it. */
static void quotes_are_cut_between_characters(void **state)
{
    static const char whole[] = "a\u00e9\u20ac\U0001f600z";
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
    (void)state;
    for (int most = 0; most < (int)(sizeof ends / sizeof *ends); most++) {
        char out[16];
        print(out, sizeof out, "<%.*s>", most, whole);
        assert_int_equal(strlen(out), ends[most] + 2);
        assert_memory_equal(out + 1, whole, ends[most]);
        assert_int_equal(out[ends[most] + 1], '>');
    }
}

static void assert_text(const sgi_buf *buf, const char *expected)
{
    assert_int_equal(buf->len, strlen(expected));
    assert_memory_equal(buf->p, expected, buf->len);
}

static void keeps_what_is_added_over_many_growths(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    for (int i = 0; i < 20000; i++)
        sgi_buf_add_char(&buf, (char)(i % 251));
    assert_false(buf.failed);
    assert_int_equal(buf.len, 20000);
    for (int i = 0; i < 20000; i++)
        assert_int_equal((unsigned char)buf.p[i], i % 251);
    assert_in_range(tm.calls, 1, 20); /* the buffer grows by a part of its size */
    sgi_buf_free(&buf);
    assert_null(buf.p);
    assert_int_equal(buf.len, 0);
}

static void writes_integers_to_their_ends(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    sgi_buf_add_int(&buf, INT64_MIN);
    sgi_buf_add_char(&buf, ' ');
    sgi_buf_add_int(&buf, INT64_MAX);
    sgi_buf_add_char(&buf, ' ');
    sgi_buf_add_uint(&buf, UINT64_MAX);
    sgi_buf_add_char(&buf, ' ');
    sgi_buf_add_int(&buf, 0);
    sgi_buf_add_int(&buf, -1);
    assert_text(&buf, "-9223372036854775808 9223372036854775807 "
                      "18446744073709551615 0-1");
    sgi_buf_free(&buf);
}

static void adding_nothing_allocates_nothing(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    sgi_buf_add(&buf, NULL, 0);
    sgi_buf_add_str(&buf, (sgi_str){0});
    assert_int_equal(tm.calls, 0);
    assert_false(buf.failed);
    sgi_buf_free(&buf);
}

static void failure_sticks_until_it_is_reset(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    sgi_buf_add_lit(&buf, "kept");
    tm.fail_at = tm.calls + 1;
    char large[1000] = {0};
    sgi_buf_add(&buf, large, sizeof large);
    assert_true(buf.failed);
    sgi_buf_add_char(&buf, 'x'); /* this would fit, but the buffer has failed */
    sgi_buf_add_int(&buf, 1);
    assert_false(sgi_buf_terminate(&buf));
    assert_text(&buf, "kept");
    sgi_buf_reset(&buf, SIZE_MAX);
    assert_false(buf.failed);
    sgi_buf_add(&buf, large, sizeof large);
    assert_int_equal(buf.len, sizeof large);
    sgi_buf_free(&buf);
}

static void cut_undoes_a_message_that_failed(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    sgi_buf_add_lit(&buf, "whole");
    size_t mark = buf.len;
    sgi_buf_add_lit(&buf, "half");
    tm.fail_from = tm.calls + 1;
    assert_false(sgi_buf_reserve(&buf, 4096));
    sgi_buf_truncate(&buf, mark);
    sgi_buf_add_lit(&buf, "!");
    assert_false(buf.failed);
    assert_text(&buf, "whole!");
    sgi_buf_free(&buf);
}

static void a_message_that_is_shortened_stays_failed(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    sgi_buf_add_lit(&buf, "whole");
    tm.fail_from = tm.calls + 1;
    assert_false(sgi_buf_reserve(&buf, 4096));
    sgi_buf_shorten(&buf, 2);
    assert_int_equal(buf.len, 2);
    assert_true(buf.failed);
    sgi_buf_free(&buf);
}

static void a_size_that_cannot_be_is_refused_without_asking(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    assert_false(sgi_buf_reserve(&buf, SIZE_MAX));
    assert_true(buf.failed);
    assert_int_equal(tm.calls, 0);
    sgi_buf_free(&buf);
}

static void reset_keeps_no_more_room_than_told(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    assert_true(sgi_buf_reserve(&buf, 5000));
    sgi_buf_reset(&buf, 5000);
    assert_true(buf.cap >= 5000);
    sgi_buf_reset(&buf, 4999);
    assert_int_equal(buf.cap, 0);
    assert_int_equal(tm.live, 0);
}

static void drop_moves_the_rest_to_the_front(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    sgi_buf_add_lit(&buf, "abcdef");
    sgi_buf_drop_front(&buf, 0);
    assert_text(&buf, "abcdef");
    sgi_buf_drop_front(&buf, 4);
    assert_text(&buf, "ef");
    sgi_buf_drop_front(&buf, 2);
    assert_int_equal(buf.len, 0);
    sgi_buf_free(&buf);
}

static void a_terminator_is_not_counted(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    assert_true(sgi_buf_terminate(&buf));
    assert_int_equal(buf.p[0], 0);
    sgi_buf_add_lit(&buf, "text");
    assert_true(sgi_buf_terminate(&buf));
    assert_int_equal(buf.len, 4);
    assert_string_equal(buf.p, "text");
    sgi_buf_free(&buf);
}

/* RFC 4648, section 10, and the two letters in which the alphabets differ. */
static void base64_follows_the_rfc(void **state)
{
    (void)state;
    static const struct {
        const char *plain, *standard, *url;
    } rows[] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xfb\xff\xbf", "+/+/", "-_-_"},
    };
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_str plain = sgi_str_of(rows[i].plain);
        sgi_buf_reset(&buf, SIZE_MAX);
        sgi_buf_add_base64(&buf, plain.p, plain.n, false);
        assert_text(&buf, rows[i].standard);
        sgi_buf_reset(&buf, SIZE_MAX);
        sgi_buf_add_base64(&buf, plain.p, plain.n, true);
        assert_text(&buf, rows[i].url);
        sgi_buf_reset(&buf, SIZE_MAX);
        assert_true(sgi_buf_add_unbase64(&buf, sgi_str_of(rows[i].standard)));
        assert_true(sgi_buf_add_unbase64(&buf, sgi_str_of(rows[i].url)));
        assert_int_equal(buf.len, 2 * plain.n);
        assert_memory_equal(buf.p, plain.p, plain.n);
        assert_memory_equal(buf.p + plain.n, plain.p, plain.n);
    }
    sgi_buf_free(&buf);
}

static void malformed_base64_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"A", "AAAAA", "AA=A", "A A=", "AA\nA", "\x80gA="};
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sgi_buf_add_unbase64(&buf, sgi_str_of(bad[i])));
    sgi_buf_free(&buf);
}

static void base64_says_when_memory_runs_out(void **state)
{
    (void)state;
    sgi_buf buf;
    sgi_buf_init(&buf, &tm.mem);
    tm.fail_from = 1;
    sgi_buf_add_base64(&buf, "abc", 3, false);
    assert_true(buf.failed);
    sgi_buf_reset(&buf, 0);
    assert_false(sgi_buf_add_unbase64(&buf, SGI_STR("YWJj")));
    assert_true(buf.failed);
    sgi_buf_free(&buf);
}

static void texts_are_copied_with_an_end(void **state)
{
    (void)state;
    char *copy = sgi_text_dup(&tm.mem, (sgi_str){"abcdef", 3});
    assert_string_equal(copy, "abc");
    sgi_text_free(&tm.mem, copy);
    copy = sgi_text_dup(&tm.mem, (sgi_str){0});
    assert_string_equal(copy, "");
    sgi_text_free(&tm.mem, copy);
    sgi_text_free(&tm.mem, NULL);
    tm.fail_from = 1;
    assert_null(sgi_text_dup(&tm.mem, SGI_STR("x")));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(text_is_cut_between_characters),
        CASE(quotes_are_cut_between_characters),
        CASE(keeps_what_is_added_over_many_growths),
        CASE(writes_integers_to_their_ends),
        CASE(adding_nothing_allocates_nothing),
        CASE(failure_sticks_until_it_is_reset),
        CASE(cut_undoes_a_message_that_failed),
        CASE(a_message_that_is_shortened_stays_failed),
        CASE(a_size_that_cannot_be_is_refused_without_asking),
        CASE(reset_keeps_no_more_room_than_told),
        CASE(drop_moves_the_rest_to_the_front),
        CASE(a_terminator_is_not_counted),
        CASE(base64_follows_the_rfc),
        CASE(malformed_base64_is_refused),
        CASE(base64_says_when_memory_runs_out),
        CASE(texts_are_copied_with_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
