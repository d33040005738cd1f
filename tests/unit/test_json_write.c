/* The JSON writer: commas, escapes, numbers, and missing memory. The reader must accept
 * whatever is written. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/test_fence.h"
#include "../support/test_mem.h"
#include "wire/json_copy.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

static test_mem tm;
static test_fence fence;
static sgi_buf out;
static sgi_jw w;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    test_fence_init(&fence, 1 << 12);
    sgi_buf_init(&out, &tm.mem);
    w = sgi_jw_to(&out);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_buf_free(&out);
    test_fence_free(&fence);
    return tm.live == 0 && tm.blocks == 0 ? 0 : -1;
}

static void start_again(void)
{
    sgi_buf_reset(&out, SIZE_MAX);
    w = sgi_jw_to(&out);
}

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 0x3c, len);
    return 0;
}

static bool passes(sgi_str text)
{
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = fixed_random};
    sgi_env env = {&sgi_mem_libc, &hooks};
    sgi_json_reader reader;
    sgi_json_reader_init(&reader, &env, SGI_JSON_MAX_BYTES, 64);
    bool passed = sgi_json_read(&reader, text, NULL, 0, NULL, NULL);
    sgi_json_reader_free(&reader);
    return passed;
}

static void expect_written(const char *want)
{
    assert_false(out.failed);
    if (!sgi_str_eq(sgi_buf_str(&out), sgi_str_of(want)))
        fail_msg("wrote %.*s, not %s", (int)out.len, out.p, want);
}

static void write_message(void)
{
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "jsonrpc", SGI_STR("2.0"));
    sgi_jw_member_int(&w, "id", -7);
    sgi_jw_key(&w, "params");
    sgi_jw_open(&w, '{');
    sgi_jw_key_str(&w, SGI_STR("a \"key\"\n"));
    sgi_jw_open(&w, '[');
    sgi_jw_int(&w, INT64_MIN);
    sgi_jw_bool(&w, true);
    sgi_jw_bool(&w, false);
    sgi_jw_null(&w);
    sgi_jw_double(&w, 0.5);
    sgi_jw_string(&w, SGI_STR(""));
    sgi_jw_open(&w, '[');
    sgi_jw_close(&w, ']');
    sgi_jw_open(&w, '{');
    sgi_jw_close(&w, '}');
    sgi_jw_raw(&w, SGI_STR("[1, 2]"));
    sgi_jw_close(&w, ']');
    sgi_jw_member_raw(&w, "raw", SGI_STR("1e400"));
    sgi_jw_close(&w, '}');
    sgi_jw_member_raw(&w, "none", (sgi_str){NULL, 0});
    sgi_jw_close(&w, '}');
}

#define MESSAGE                                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":-7,\"params\":{\"a "                                    \
    "\\\"key\\\"\\n\":[-9223372036854775808,"                                            \
    "true,false,null,0.5,\"\",[],{},[1, 2]],\"raw\":1e400},\"none\":null}"

static void commas_stand_between_values_and_nowhere_else(void **state)
{
    (void)state;
    write_message();
    expect_written(MESSAGE);
    assert_true(passes(sgi_buf_str(&out)));
}

static void a_writer_goes_on_where_the_buffer_ends(void **state)
{
    (void)state;
    sgi_buf_add_lit(&out, "data: ");
    sgi_jw_int(&w, 1);
    sgi_buf_add_lit(&out, "\n");
    w = sgi_jw_to(&out);
    sgi_jw_open(&w, '[');
    sgi_jw_close(&w, ']');
    expect_written("data: 1\n[]");
}

static void control_characters_quotes_and_backslashes_are_escaped(void **state)
{
    (void)state;
    for (int c = 0; c < 128; c++) {
        start_again();
        char want[8];
        const char *shorts = "\b\f\n\r\t\"\\";
        const char *found = c ? strchr(shorts, c) : NULL;
        if (found)
            snprintf(want, sizeof want, "\\%c", "bfnrt\"\\"[found - shorts]);
        else
            snprintf(want, sizeof want, c < 0x20 ? "\\u%04x" : "%c", (unsigned)c);
        sgi_json_escape(&out, (sgi_str){&(char){(char)c}, 1});
        expect_written(want);
    }
    start_again();
    sgi_jw_string(&w, SGI_STR("caf\xc3\xa9 \xf0\x9f\x98\x80 \x7f / \xe2\x80\xa8"));
    expect_written("\"caf\xc3\xa9 \xf0\x9f\x98\x80 \x7f / \xe2\x80\xa8\"");
    start_again();
    sgi_json_escape(&out, (sgi_str){NULL, 0});
    expect_written("");
}

/* Every byte that needs an escape, and some that do not, at every offset of every length:
 * they read back the same in any block or tail. */
static void what_was_escaped_decodes_to_itself(void **state)
{
    (void)state;
    static const char marks[] = "\"\\\n\x01\x1f \x7f\x80";
    sgi_buf back;
    sgi_buf_init(&back, &tm.mem);
    for (size_t len = 1; len < 50; len++)
        for (size_t at = 0; at < len; at++)
            for (size_t m = 0; m < sizeof marks; m++) {
                char text[64];
                memset(text, 'a', len);
                text[at] = marks[m];
                text[(at * 7 + 3) % len] = marks[(m * 5 + len) % sizeof marks];
                start_again();
                sgi_str fenced = {test_fence_place(&fence, text, len), len};
                sgi_jw_string(&w, fenced);
                for (size_t i = 1; i + 1 < out.len; i++)
                    assert_true((unsigned char)out.p[i] >= 0x20);
                sgi_buf_reset(&back, SIZE_MAX);
                assert_true(sgi_json_decode(sgi_buf_str(&out), &back));
                assert_true(sgi_str_eq(sgi_buf_str(&back), fenced));
            }
    sgi_buf_free(&back);
}

static void expect_double(double value, const char *want)
{
    start_again();
    sgi_jw_double(&w, value);
    expect_written(want);
    assert_true(passes(sgi_buf_str(&out)));
}

static void doubles_are_short(void **state)
{
    (void)state;
    expect_double(0.0, "0");
    expect_double(-0.0, "-0");
    expect_double(1, "1");
    expect_double(-2.5, "-2.5");
    expect_double(0.1, "0.1");
    expect_double(0.1 + 0.2, "0.30000000000000004");
    expect_double(1.0 / 3, "0.3333333333333333");
    expect_double(1e15, "1e+15");
    expect_double(123456789012345678.0, "1.2345678901234568e+17");
    expect_double(9007199254740993.0, "9007199254740992");
    expect_double(1e300, "1e+300");
    expect_double(1.5e-7, "1.5e-07");
    expect_double(DBL_MAX, "1.7976931348623157e+308");
    expect_double(DBL_MIN, "2.2250738585072014e-308");
    expect_double(5e-324, "5e-324");
    expect_double(-1.5e-323, "-1.5e-323");
}

static void what_json_cannot_say_becomes_null(void **state)
{
    (void)state;
    expect_double(INFINITY, "null");
    expect_double(-INFINITY, "null");
    expect_double(NAN, "null");
    start_again();
    sgi_jw_open(&w, '[');
    sgi_jw_double(&w, NAN);
    sgi_jw_double(&w, 1);
    sgi_jw_close(&w, ']');
    expect_written("[null,1]");
}

static void every_double_reads_back_the_same(void **state)
{
    (void)state;
    uint64_t bits = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 50000; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        /* Every fourth value is subnormal, every fourth is a short decimal. */
        uint64_t shape = i % 4 == 3 ? bits & 0x800fffffffffffffu : bits;
        double value;
        memcpy(&value, &shape, sizeof value);
        if (i % 4 == 2)
            value = (double)(int64_t)(bits % 2000000) / 1000;
        if (!isfinite(value))
            continue;
        start_again();
        sgi_jw_double(&w, value);
        double back = 0;
        assert_true(sgi_json_read_double(sgi_buf_str(&out), &back));
        if (memcmp(&back, &value, sizeof back) != 0)
            fail_msg("%.17g came back as %.17g", value, back);
        assert_true(out.len <= 24);
        assert_true(i % 4 != 2 || out.len <= 8);
    }
}

static bool has_comma_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8",
                                        "fr_FR.utf8", "ps_AF.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_NUMERIC, names[i]) && *localeconv()->decimal_point != '.')
            return true;
    return false;
}

/* Few machines have such a locale installed, but most can make one. */
static bool make_comma_locale(const char *directory)
{
    char command[256];
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", directory);
    setenv("LOCPATH", directory, 1);
    return system(command) == 0 && has_comma_locale();
}

static void doubles_have_a_point_in_every_locale(void **state)
{
    (void)state;
    char directory[] = "/tmp/test_json_write_XXXXXX";
    assert_non_null(mkdtemp(directory));
    bool ready = has_comma_locale() || make_comma_locale(directory);
    char text[8] = "";
    if (ready) {
        snprintf(text, sizeof text, "%.1f", 0.5);
        expect_double(-1234.5678, "-1234.5678");
        expect_double(2.5e-9, "2.5e-09");
        expect_double(1e300, "1e+300");
        double value = 0;
        assert_true(sgi_json_read_double(SGI_STR("-12.25e1"), &value));
        assert_true(value == -122.5);
    }
    setlocale(LC_NUMERIC, "C");
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
    if (!ready)
        skip();
    assert_string_equal(text, "0,5");
}

static void a_message_without_memory_fails_as_a_whole(void **state)
{
    (void)state;
    for (int sticky = 0; sticky < 2; sticky++)
        for (size_t call = 1;; call++) {
            sgi_buf_free(&out);
            test_mem_rearm(&tm);
            *(sticky ? &tm.fail_from : &tm.fail_at) = call;
            w = sgi_jw_to(&out);
            for (int i = 0; i < 40; i++)
                write_message();
            if (!tm.failed) {
                assert_false(out.failed);
                assert_true(call > 3);
                break;
            }
            assert_true(out.failed);
            assert_true(out.len <= out.cap);
            test_mem_rearm(&tm);
            start_again();
            write_message();
            expect_written(MESSAGE);
        }
}

/* Names and values keep their escapes; what is no object has no members. */
static void members_are_copied_as_they_stand(void **state)
{
    (void)state;
    sgi_json object = SGI_STR("{\"a\\/b\": [1, 2], \"c\":\"\\u00e9\",\"d\":{}}");
    sgi_jw_open(&w, '{');
    assert_true(sgi_jw_copy_members(&w, object, NULL));
    assert_true(sgi_jw_copy_members(&w, object, SGI_JSON_NAMES("a/b", "d")));
    assert_false(sgi_jw_copy_members(&w, object, SGI_JSON_NAMES("d", "c", "a/b")));
    assert_false(sgi_jw_copy_members(&w, SGI_STR("[1]"), NULL));
    assert_false(sgi_jw_copy_members(&w, SGI_STR("\"a\""), NULL));
    assert_false(sgi_jw_copy_members(&w, (sgi_json){0}, NULL));
    sgi_jw_close(&w, '}');
    expect_written("{\"a\\/b\":[1, 2],\"c\":\"\\u00e9\",\"d\":{},"
                   "\"c\":\"\\u00e9\"}");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(commas_stand_between_values_and_nowhere_else),
        CASE(a_writer_goes_on_where_the_buffer_ends),
        CASE(control_characters_quotes_and_backslashes_are_escaped),
        CASE(what_was_escaped_decodes_to_itself),
        CASE(doubles_are_short),
        CASE(what_json_cannot_say_becomes_null),
        CASE(every_double_reads_back_the_same),
        CASE(doubles_have_a_point_in_every_locale),
        CASE(members_are_copied_as_they_stand),
        CASE(a_message_without_memory_fails_as_a_whole),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
