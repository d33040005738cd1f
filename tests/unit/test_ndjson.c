/* Lines from bytes, however the bytes are cut. A line that is too long is skipped and
 * reported once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/test_mem.h"
#include "wire/ndjson.h"

static test_mem tm;
static sgi_ndjson framing;
static char seen[4096]; /* lines and events, one per line */
static size_t seen_len;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    sgi_ndjson_init(&framing, &tm.mem, 10);
    seen_len = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_ndjson_free(&framing);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void note(sgi_str text)
{
    assert_true(seen_len + text.n + 1 < sizeof seen);
    memcpy(seen + seen_len, text.p, text.n);
    seen_len += text.n;
    seen[seen_len++] = '\n';
    seen[seen_len] = 0;
}

static void feed(const char *bytes, size_t len)
{
    sgi_str input = {bytes, len};
    sgi_str line;
    sgi_ndjson_event event;
    while ((event = sgi_ndjson_next(&framing, &input, &line)) != SGI_NDJSON_MORE) {
        if (event == SGI_NDJSON_LINE)
            note(line);
        else
            note(event == SGI_NDJSON_TOO_LONG ? SGI_STR("(too long)")
                                              : SGI_STR("(nomem)"));
        if (event == SGI_NDJSON_TOO_LONG)
            note(line); /* the beginning of the long line */
    }
    assert_int_equal(input.n, 0);
}

/* Reads the text at once, byte by byte, and cut in three at every two offsets. */
static void every_way(const char *text, const char *expected)
{
    size_t len = strlen(text);
    for (size_t first = 0; first <= len; first++)
        for (size_t second = first; second <= len; second++) {
            seen_len = 0;
            seen[0] = 0;
            sgi_ndjson_reset(&framing);
            feed(text, first);
            feed(text + first, second - first);
            feed(text + second, len - second);
            assert_string_equal(seen, expected);
        }
    seen_len = 0;
    seen[0] = 0;
    sgi_ndjson_reset(&framing);
    for (size_t i = 0; i < len; i++)
        feed(text + i, 1);
    assert_string_equal(seen, expected);
}

static void lines_are_the_same_however_they_are_cut(void **state)
{
    (void)state;
    every_way("{}\n[1]\n\"x y\"\n", "{}\n[1]\n\"x y\"\n");
}

static void a_line_without_its_end_is_not_handed_out(void **state)
{
    (void)state;
    every_way("{}\n{\"a\"", "{}\n");
}

static void blank_lines_and_carriage_returns_are_dropped(void **state)
{
    (void)state;
    every_way("\n\r\n{}\r\n  \n\r\n[] \r\n", "{}\n[]\n");
}

static void a_line_of_just_the_limit_passes(void **state)
{
    (void)state;
    every_way("0123456789\n01234\n", "0123456789\n01234\n");
}

static void
one_byte_more_is_said_once_with_the_beginning_and_the_next_line_is_read(void **state)
{
    (void)state;
    every_way("0123456789a\nok\n", "(too long)\n0123456789\nok\n");
    every_way("ok\n0123456789abcdefabcdefabcdefabcdefabcdef\nok\n",
              "ok\n(too long)\n0123456789\nok\n");
    every_way("0123456789abcdefabcdef\n9876543210abcdefabcdef\n",
              "(too long)\n0123456789\n(too long)\n9876543210\n");
}

static void whole_lines_are_handed_on_without_a_copy(void **state)
{
    (void)state;
    sgi_str line;
    sgi_str input = SGI_STR("{}\n[]\n");
    const char *start = input.p;
    assert_int_equal(sgi_ndjson_next(&framing, &input, &line), SGI_NDJSON_LINE);
    assert_ptr_equal(line.p, start);
    assert_int_equal(sgi_ndjson_next(&framing, &input, &line), SGI_NDJSON_LINE);
    assert_ptr_equal(line.p, start + 3);
    assert_int_equal(tm.calls, 0);
}

static void an_endless_line_takes_no_more_memory_than_the_limit(void **state)
{
    (void)state;
    sgi_ndjson wide;
    char chunk[1000];
    memset(chunk, 'x', sizeof chunk);
    sgi_ndjson_init(&wide, &tm.mem, 100 * 1000);
    int said = 0;
    for (int i = 0; i < 10000; i++) {
        sgi_str input = {chunk, sizeof chunk};
        sgi_str line;
        said += sgi_ndjson_next(&wide, &input, &line) == SGI_NDJSON_TOO_LONG;
        assert_int_equal(input.n, 0);
    }
    assert_int_equal(said, 1);
    assert_true(tm.peak <= 3 * 100 * 1000);
    assert_true(tm.live <= 64 * 1024);
    sgi_ndjson_free(&wide);
}

static void a_large_line_does_not_keep_its_room(void **state)
{
    (void)state;
    sgi_ndjson wide;
    char *text = malloc(1000 * 1000);
    memset(text, 'x', 1000 * 1000);
    sgi_ndjson_init(&wide, &tm.mem, 1000 * 1000);
    sgi_str input = {text, 1000 * 1000};
    sgi_str line;
    assert_int_equal(sgi_ndjson_next(&wide, &input, &line), SGI_NDJSON_MORE);
    input = SGI_STR("\nx\n");
    assert_int_equal(sgi_ndjson_next(&wide, &input, &line), SGI_NDJSON_LINE);
    assert_int_equal(line.n, 1000 * 1000);
    assert_int_equal(sgi_ndjson_next(&wide, &input, &line), SGI_NDJSON_LINE);
    assert_int_equal(line.n, 1);
    assert_int_equal(tm.live, 0);
    sgi_ndjson_free(&wide);
    free(text);
}

static void a_reset_forgets_the_torn_line(void **state)
{
    (void)state;
    feed("{\"torn", 6);
    sgi_ndjson_reset(&framing);
    feed("{}\n", 3);
    assert_string_equal(seen, "{}\n");
    feed("0123456789012345", 16); /* this line is being skipped */
    sgi_ndjson_reset(&framing);
    feed("[]\n", 3);
    assert_string_equal(seen, "{}\n(too long)\n0123456789\n[]\n");
}

static void without_memory_one_line_is_lost_and_said_so(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        seen_len = 0;
        test_mem_rearm(&tm);
        sgi_ndjson_reset(&framing);
        sgi_ndjson wide;
        sgi_ndjson_init(&wide, &tm.mem, 4096);
        sgi_ndjson kept = framing;
        framing = wide;
        char text[600];
        memset(text, 'x', sizeof text);
        if (late)
            feed("begun", 5);
        tm.fail_at = tm.calls + 1;
        feed(text, sizeof text);
        feed("rest\nnext\n", 10);
        assert_string_equal(seen, "(nomem)\nnext\n");
        sgi_ndjson_free(&framing);
        framing = kept;
    }
}

static void without_memory_for_the_end_of_a_line_the_next_one_is_read(void **state)
{
    (void)state;
    sgi_ndjson wide;
    char text[400];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\n';
    sgi_ndjson_init(&wide, &tm.mem, 4096);
    sgi_ndjson kept = framing;
    framing = wide;
    feed("begun", 5);
    tm.fail_at = tm.calls + 1;
    feed(text, sizeof text);
    feed("next\n", 5);
    assert_string_equal(seen, "(nomem)\nnext\n");
    sgi_ndjson_free(&framing);
    framing = kept;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lines_are_the_same_however_they_are_cut),
        CASE(a_line_without_its_end_is_not_handed_out),
        CASE(blank_lines_and_carriage_returns_are_dropped),
        CASE(a_line_of_just_the_limit_passes),
        CASE(one_byte_more_is_said_once_with_the_beginning_and_the_next_line_is_read),
        CASE(whole_lines_are_handed_on_without_a_copy),
        CASE(an_endless_line_takes_no_more_memory_than_the_limit),
        CASE(a_large_line_does_not_keep_its_room),
        CASE(a_reset_forgets_the_torn_line),
        CASE(without_memory_one_line_is_lost_and_said_so),
        CASE(without_memory_for_the_end_of_a_line_the_next_one_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
