/* Walking over and reading values of an accepted text, and UTF-8. Spans lie at the end of
 * readable memory, so a read past one ends the program. Spans are also cut and changed,
 * then walked although no reader accepted them: the values may be nonsense, but no read
 * may leave the span and every walk must end. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../support/test_fence.h"
#include "../support/test_mem.h"
#include "wire/json_read.h"
#include "wire/json_scan.h"

static test_mem tm;
static test_fence fence;
static sgi_buf out;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    test_fence_init(&fence, 1 << 16);
    sgi_buf_init(&out, &tm.mem);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_buf_free(&out);
    test_fence_free(&fence);
    return tm.live == 0 && tm.blocks == 0 ? 0 : -1;
}

static sgi_str fenced(sgi_str text)
{
    return (sgi_str){test_fence_place(&fence, text.p, text.n), text.n};
}

static sgi_str fenced_text(const char *text)
{
    return fenced(sgi_str_of(text));
}

static void expect_str(sgi_str got, const char *want)
{
    if (!sgi_str_eq(got, sgi_str_of(want)))
        fail_msg("got '%.*s', not '%s'", (int)got.n, got.n ? got.p : "", want);
}

static void members_come_in_order_and_end(void **state)
{
    (void)state;
    sgi_json object =
        fenced_text("{\"a\":1 , \"b\\\"\" :\t\"x\\\\\",\"c\":{\"d\":[\"}\",{}]},"
                    "\"e\":[[],{\"f\":\"]\\\"]\"}], \"\" : true }");
    static const char *const wanted[][2] = {
        {"a", "1"},
        {"b\\\"", "\"x\\\\\""},
        {"c", "{\"d\":[\"}\",{}]}"},
        {"e", "[[],{\"f\":\"]\\\"]\"}]"},
        {"", "true"},
    };
    sgi_json_member member;
    size_t at = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_true(sgi_json_next_member(object, &at, &member));
        expect_str(member.key, wanted[i][0]);
        expect_str(member.value, wanted[i][1]);
        assert_int_equal(member.escaped, i == 1);
    }
    assert_false(sgi_json_next_member(object, &at, &member));
    assert_false(sgi_json_next_member(object, &at, &member));
}

static void items_come_in_order_and_end(void **state)
{
    (void)state;
    sgi_json array =
        fenced_text("[1 ,-2.5e3,\"a,]\" , [ [ ] ],{\"b\":[1,2]}\n,null,false]");
    static const char *const wanted[] = {
        "1", "-2.5e3", "\"a,]\"", "[ [ ] ]", "{\"b\":[1,2]}", "null", "false"};
    sgi_json item;
    size_t at = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_true(sgi_json_next_item(array, &at, &item));
        expect_str(item, wanted[i]);
    }
    assert_false(sgi_json_next_item(array, &at, &item));
    assert_false(sgi_json_next_item(array, &at, &item));
}

static void empty_and_other_values_have_no_members(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     "{}", "{ }",  "[]",
                                        "[\n]", "7",  "null", "\"{\""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sgi_json_member member = {.key = SGI_STR("untouched")};
        sgi_json item = SGI_STR("untouched");
        size_t at = 0;
        assert_false(sgi_json_next_member(fenced_text(texts[i]), &at, &member));
        assert_false(sgi_json_next_item(fenced_text(texts[i]), &at, &item));
        assert_int_equal(at, 0);
        expect_str(member.key, "untouched");
        expect_str(item, "untouched");
        assert_int_equal(sgi_json_get(fenced_text(texts[i]), "a").n, 0);
    }
    size_t at = 0;
    sgi_json item;
    assert_false(sgi_json_next_item(fenced_text("{\"a\":1}"), &at, &item));
    sgi_json_member member;
    assert_false(sgi_json_next_member(fenced_text("[1]"), &at, &member));
}

/* Values long enough to cross blocks, with every mark at every offset. */
static void values_are_skipped_whole_at_every_length(void **state)
{
    (void)state;
    static const char *const marks[] = {"\\\"", "\\\\", "{", "}",
                                        "[",    "]",    ",", "\\\\\\\""};
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
        for (size_t before = 0; before < 40; before++)
            for (size_t after = 0; after < 20; after += 3) {
                char text[256];
                int len = snprintf(
                    text, sizeof text, "[{\"%.*s%s%.*s\":[\"%s\"]},7]", (int)before,
                    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr", marks[m], (int)after,
                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ", marks[m]);
                assert_true(len > 0 && (size_t)len < sizeof text);
                sgi_json array = fenced((sgi_str){text, (size_t)len});
                sgi_json item;
                size_t at = 0;
                assert_true(sgi_json_next_item(array, &at, &item));
                assert_int_equal(item.n, (size_t)len - 4);
                assert_true(sgi_json_next_item(array, &at, &item));
                expect_str(item, "7");
                assert_false(sgi_json_next_item(array, &at, &item));
            }
}

/* What skips text blocks in one step ends where the walk over all brackets ends. A blank
 * after the bracket makes a block unusual. */
static void text_blocks_are_skipped_whole(void **state)
{
    static const struct {
        const char *rest;  /* of the block, after its usual head */
        const char *inner; /* NULL = the block has another form than the usual one */
    } blocks[] = {
        {"plain\"}", "plain"},
        {"\"}", ""},
        {"a\\\"}b\"}", "a\\\"}b"},
        {"\\\"\"}", "\\\""},
        {"ends with a backslash\\\\\"}", "ends with a backslash\\\\"},
        {"ends with two\\\\\\\\\"}", "ends with two\\\\\\\\"},
        {"more\",\"annotations\":{\"x\":\"}\"}}", NULL},
        {"blank\" }", NULL},
    };
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        for (int unusual = 0; unusual < 2; unusual++) {
            snprintf(text, sizeof text, "[{%s\"type\":\"text\",\"text\":\"%s,7]",
                     unusual ? " " : "", blocks[i].rest);
            sgi_json array = fenced_text(text), item;
            sgi_str inner = {0};
            size_t at = 0;
            assert_true(sgi_json_next_item(array, &at, &item));
            assert_int_equal(item.n, array.n - 4);
            bool usual = !unusual && blocks[i].inner;
            assert_int_equal(sgi_json_begins_text_block(item), !unusual);
            assert_int_equal(sgi_json_text_block(item, &inner), usual ? item.n : 0);
            if (usual)
                expect_str(inner, blocks[i].inner);
            assert_true(sgi_json_next_item(array, &at, &item));
            expect_str(item, "7");
            assert_false(sgi_json_next_item(array, &at, &item));
        }
}

static void members_are_found_by_their_decoded_name(void **state)
{
    (void)state;
    sgi_json object =
        fenced_text("{\"x\":{\"id\":0},\"\\u0069d\":1,\"a\\n\\\"\\\\\\/\":2,"
                    "\"\\u00e4\\ud83d\\ude00\":3,\"\":4,\"idx\":5}");
    expect_str(sgi_json_get(object, "id"), "1");
    expect_str(sgi_json_get(object, "a\n\"\\/"), "2");
    expect_str(sgi_json_get(object, "\xc3\xa4\xf0\x9f\x98\x80"), "3");
    expect_str(sgi_json_get(object, ""), "4");
    expect_str(sgi_json_get(object, "idx"), "5");
    static const char *const absent[] = {"i",        "ID",  "\\u0069d", "id ",
                                         "\xc3\xa4", "a\n", "a\n\"\\//"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_int_equal(sgi_json_get(object, absent[i]).n, 0);
    sgi_json_member member = {.key = SGI_STR("\\u0000"), .escaped = true};
    assert_false(sgi_json_key_is(&member, ""));
    member = (sgi_json_member){.key = SGI_STR("\\u0041b"), .escaped = true};
    assert_true(sgi_json_key_is(&member, "Ab"));
    assert_false(sgi_json_key_is(&member, "A"));
    assert_false(sgi_json_key_is(&member, "Abc"));
}

static void kinds_are_told_by_the_first_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        sgi_json_kind kind;
    } cases[] = {{"", SGI_JSON_NONE},     {"{}", SGI_JSON_OBJECT},
                 {"[]", SGI_JSON_ARRAY},  {"\"", SGI_JSON_STRING},
                 {"0", SGI_JSON_NUMBER},  {"-1", SGI_JSON_NUMBER},
                 {"true", SGI_JSON_TRUE}, {"9", SGI_JSON_NUMBER},
                 {"null", SGI_JSON_NULL}, {"false", SGI_JSON_FALSE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(sgi_json_kind_of(fenced_text(cases[i].text)), cases[i].kind);
    assert_int_equal(sgi_json_kind_of((sgi_json){NULL, 0}), SGI_JSON_NONE);
}

static void white_space_is_trimmed_on_both_sides_only(void **state)
{
    (void)state;
    expect_str(sgi_json_trim(fenced_text(" \t\r\n[ 1 ]\n ")), "[ 1 ]");
    expect_str(sgi_json_trim(fenced_text("7")), "7");
    expect_str(sgi_json_trim(fenced_text(" \n")), "");
    expect_str(sgi_json_trim((sgi_str){NULL, 0}), "");
}

static void expect_decoded(const char *json, sgi_str want)
{
    sgi_buf_reset(&out, SIZE_MAX);
    sgi_buf_add_lit(&out, "before ");
    assert_true(sgi_json_decode(fenced_text(json), &out));
    sgi_str got = {out.p + 7, out.len - 7};
    if (!sgi_str_eq(got, want))
        fail_msg("%s became '%.*s'", json, (int)got.n, got.p);
    assert_true(sgi_json_string_is(fenced_text(json), want));
    if (want.n) {
        assert_false(
            sgi_json_string_is(fenced_text(json), (sgi_str){want.p, want.n - 1}));
        out.p[6 + want.n] ^= 1;
        assert_false(sgi_json_string_is(fenced_text(json), (sgi_str){out.p + 7, want.n}));
    }
    sgi_buf_add_lit(&out, "+");
    assert_false(sgi_json_string_is(fenced_text(json), (sgi_str){out.p + 7, want.n + 1}));
}

static void strings_are_decoded(void **state)
{
    (void)state;
    expect_decoded("\"\"", SGI_STR(""));
    expect_decoded("\"plain \xc3\xa4\"", SGI_STR("plain \xc3\xa4"));
    expect_decoded("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", SGI_STR("\"\\/\b\f\n\r\t"));
    expect_decoded("\"\\u0000\"", SGI_STR("\0"));
    expect_decoded("\"a\\u0000b\"", SGI_STR("a\0b"));
    expect_decoded("\"\\u007f\\u0080\\u07FF\\u0800\\uFFFF\"",
                   SGI_STR("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"));
    expect_decoded("\"\\uD800\\uDC00\\uDBFF\\uDFFF\"",
                   SGI_STR("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
    expect_decoded("\"\\ud83d\\uDE00!\\n\"", SGI_STR("\xf0\x9f\x98\x80!\n"));
    expect_decoded("\"\\ud7ff\\ue000\"", SGI_STR("\xed\x9f\xbf\xee\x80\x80"));
}

static void other_values_are_no_strings(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "7", "null", "[\"a\"]", "{\"a\":1}", "\""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sgi_str text = SGI_STR("untouched");
        assert_false(sgi_json_decode(fenced_text(texts[i]), &out));
        assert_false(sgi_json_string_is(fenced_text(texts[i]), SGI_STR("")));
        assert_false(sgi_json_plain_string(fenced_text(texts[i]), &text));
        expect_str(text, "untouched");
    }
    assert_int_equal(out.len, 0);
    assert_true(sgi_json_string_is(fenced_text("\"\""), (sgi_str){NULL, 0}));
    assert_false(sgi_json_string_is(fenced_text("\"a\""), (sgi_str){NULL, 0}));
    /* the sanitizer of undefined behaviour notices a comparison with NULL */
    assert_false(sgi_json_string_is(fenced_text("\"\\n\""), (sgi_str){NULL, 0}));
    /* a line end, and a text of two characters that looks like its escape */
    assert_false(sgi_json_string_is(fenced_text("\"\\n\""), SGI_STR("\\n")));
    assert_true(sgi_json_string_is(fenced_text("\"\\\\n\""), SGI_STR("\\n")));
}

static void a_plain_string_is_one_without_escapes(void **state)
{
    (void)state;
    sgi_str text;
    assert_true(sgi_json_plain_string(fenced_text("\"caf\xc3\xa9 [1]\""), &text));
    expect_str(text, "caf\xc3\xa9 [1]");
    assert_true(sgi_json_plain_string(fenced_text("\"\""), &text));
    expect_str(text, "");
    assert_false(sgi_json_plain_string(fenced_text("\"caf\\u00e9\""), &text));
}

static void decoding_without_memory_marks_the_buffer(void **state)
{
    (void)state;
    tm.fail_at = 1;
    assert_true(sgi_json_decode(fenced_text("\"a\\nb\""), &out));
    assert_true(out.failed);
    assert_int_equal(out.len, 0);
}

static void integers_are_read_by_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"-0.0e5", 0},
        {"0e999999999999999999999", 0},
        {"0.000e-99999999999999999999", 0},
        {"7", 7},
        {"2.0", 2},
        {"20e-1", 2},
        {"2e0", 2},
        {"0.02e2", 2},
        {"0.002E+3", 2},
        {"-1.50e1", -15},
        {"1e18", 1000000000000000000},
        {"100000000000000000000000e-20", 1000},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775807.000", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"-922337203685477580.8e1", INT64_MIN},
        {"92233720368547758070e-1", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 99;
        if (!sgi_json_read_int(fenced_text(cases[i].text), &value) ||
            value != cases[i].value)
            fail_msg("%s became %lld", cases[i].text, (long long)value);
    }
}

static void what_is_no_64_bit_integer_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"1.5",
                                        "0.1",
                                        "1e-1",
                                        "15e-1",
                                        "1e300",
                                        "1e19",
                                        "1e400",
                                        "1e99999999999999999999",
                                        "1e-99999999999999999999",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "18446744073709551616",
                                        "92233720368547758070",
                                        "10000000000000000000",
                                        "99999999999999999999",
                                        "9223372036854775807.5",
                                        "",
                                        "null",
                                        "true",
                                        "\"1\"",
                                        "[1]",
                                        "{}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t value = 99;
        if (sgi_json_read_int(fenced_text(texts[i]), &value))
            fail_msg("%s became %lld", texts[i], (long long)value);
        assert_int_equal(value, 99);
    }
}

/* A number of maximum length costs only one pass. */
static void long_numbers_are_read_to_their_end(void **state)
{
    (void)state;
    enum { LEN = 60000 };
    static char text[LEN + 16];
    int64_t value = 0;
    double number = 0;
    memset(text, '0', LEN);
    text[0] = '7';
    memcpy(text + LEN, "e-59999", 8);
    assert_true(sgi_json_read_int(fenced_text(text), &value));
    assert_int_equal(value, 7);
    assert_true(sgi_json_read_double(fenced_text(text), &number));
    assert_true(number == 7);
    text[LEN - 1] = '1';
    assert_false(sgi_json_read_int(fenced_text(text), &value));
    assert_true(sgi_json_read_double(fenced_text(text), &number));
    assert_true(number == 7);
    memset(text, '0', LEN);
    text[1] = '.';
    memcpy(text + LEN - 1, "7e59998", 8);
    assert_true(sgi_json_read_int(fenced_text(text), &value));
    assert_int_equal(value, 7);
    memset(text, '9', LEN);
    memcpy(text + LEN, "e-60000", 8);
    assert_true(sgi_json_read_double(fenced_text(text), &number));
    assert_true(number == 1);
}

static void doubles_are_read_to_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0},
        {"1.5", 1.5},
        {"-2.5e-3", -2.5e-3},
        {"1e22", 1e22},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"9007199254740993", 9007199254740992.0},
        {"9007199254740993.0000000000000000000000000000000000001", 9007199254740994.0},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"4.9406564584124654e-324", 5e-324},
        {"2.4703282292062327e-324", 0},
        {"2.4703282292062328e-324", 5e-324},
        {"1e-400", 0},
        {"0e99999", 0},
        {"0.1", 0.1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = 99;
        if (!sgi_json_read_double(fenced_text(cases[i].text), &value) ||
            value != cases[i].value)
            fail_msg("%s became %.17g", cases[i].text, value);
    }
    double value = 1;
    assert_true(sgi_json_read_double(fenced_text("-0"), &value));
    assert_true(value == 0 && signbit(value));
    static const char *const refused[] = {
        "1e309", "-1e400", "1e99999999999999999999", "", "null", "\"1\"", "[1]"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_false(sgi_json_read_double(fenced_text(refused[i]), &value));
    assert_true(value == 0);
}

/* A number exactly between two doubles has 767 digits; one more digit, far behind,
 * decides. */
static void the_last_of_many_digits_decides(void **state)
{
    (void)state;
    char half[2048];
    int len = snprintf(half, sizeof half, "%.1075f", 0x1p-1074);
    assert_true(len > 1000);
    /* Writes out half of the smallest double: 2^-1075. */
    char text[2048];
    int carry = 0;
    for (int i = 0; half[i]; i++) {
        if (half[i] == '.') {
            text[i] = '.';
            continue;
        }
        int digit = carry * 10 + half[i] - '0';
        text[i] = (char)('0' + digit / 2);
        carry = digit % 2;
    }
    assert_int_equal(carry, 0);
    text[len] = 0;
    double value = 99;
    assert_true(sgi_json_read_double(fenced_text(text), &value));
    assert_true(value == 0);
    memcpy(text + len, "0000000000000000000001", 23);
    assert_true(sgi_json_read_double(fenced_text(text), &value));
    assert_true(value == 0x1p-1074);
}

/* Calls every function on a span and on the values inside; returns how many values there
 * are. */
static size_t ask_all(sgi_json value)
{
    size_t values = 1;
    int64_t whole;
    double number;
    sgi_str text;
    sgi_json_trim(value);
    sgi_json_kind_of(value);
    sgi_json_read_int(value, &whole);
    sgi_json_read_double(value, &number);
    sgi_json_plain_string(value, &text);
    sgi_json_string_is(value, SGI_STR("a\nb"));
    sgi_buf_reset(&out, SIZE_MAX);
    sgi_json_decode(value, &out);
    sgi_json_get(value, "id");
    sgi_json_member member;
    for (size_t at = 0, last = 0; sgi_json_next_member(value, &at, &member); last = at) {
        assert_true(at > last);
        sgi_json_key_is(&member, "id");
        if (member.value.n < value.n)
            values += ask_all(member.value);
    }
    sgi_json item;
    for (size_t at = 0, last = 0; sgi_json_next_item(value, &at, &item); last = at) {
        assert_true(at > last);
        if (item.n < value.n)
            values += ask_all(item);
    }
    return values;
}

static const char sample[] =
    "{\"id\":[1,-2.5e+3,\"\\u00e9\\ud83d\\ude00\\n\",{\"a\\\\\":[true,null,{}]},[[]]],"
    "\"\\u0069d\":{\"x\":\"]}\\\"\",\"y\":0.5},\"z\":\"\xc3\xa4\","
    "\"w\":[{\"type\":\"text\",\"text\":\"\\\"}\"},0]}";

static void a_span_that_is_cut_off_is_walked_inside(void **state)
{
    (void)state;
    assert_int_equal(ask_all(fenced_text(sample)), 21);
    for (size_t from = 0; from < sizeof sample; from++)
        for (size_t to = from; to < sizeof sample; to++)
            ask_all(fenced((sgi_str){sample + from, to - from}));
}

static void a_span_that_is_bent_is_walked_inside(void **state)
{
    (void)state;
    static const char bytes[] = "\"\\{}[],:u0dD \n\xff";
    for (size_t at = 0; at < sizeof sample - 1; at++)
        for (size_t i = 0; i < sizeof bytes; i++) {
            char text[sizeof sample];
            memcpy(text, sample, sizeof text);
            text[at] = bytes[i];
            ask_all(fenced((sgi_str){text, sizeof sample - 1}));
            ask_all(fenced((sgi_str){text + at, sizeof sample - 1 - at}));
        }
}

/* Finds the length of the sequence at p in another way: it decodes, then judges the code
 * point. */
static size_t reference_length(const unsigned char *p, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : 0;
    if (p[0] >> 3 == 30)
        len = 4;
    if (!len || len > left)
        return 0;
    uint32_t code = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        code = code << 6 | (p[i] & 0x3fu);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < least[len] || code > 0x10ffff || surrogate ? 0 : len;
}

static void expect_utf8(const unsigned char *bytes, size_t len)
{
    size_t wrong = 0;
    while (wrong < len) {
        size_t step = reference_length(bytes + wrong, len - wrong);
        if (!step)
            break;
        wrong += step;
    }
    size_t at = 99;
    bool valid = sgi_utf8_valid((sgi_str){(const char *)bytes, len}, &at);
    if (valid != (wrong == len) || at != (valid ? 99 : wrong))
        fail_msg("%02x %02x .. (%zu): %d at %zu", bytes[0], bytes[1], len, valid, at);
}

static void utf8_is_judged_as_unicode_defines_it(void **state)
{
    (void)state;
    unsigned char *place = (unsigned char *)test_fence_place(&fence, "\0\0\0\0", 4);
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            unsigned char *two = place + 2;
            two[0] = (unsigned char)a;
            two[1] = (unsigned char)b;
            expect_utf8(two + 1, 1);
            expect_utf8(two, 2);
        }
    for (unsigned a = 0xc0; a < 256; a++)
        for (unsigned b = 0x70; b < 0xd0; b++)
            for (unsigned c = 0x78; c < 0xc8; c++) {
                memcpy(place + 1,
                       (unsigned char[3]){(unsigned char)a, (unsigned char)b,
                                          (unsigned char)c},
                       3);
                expect_utf8(place + 1, 3);
            }
    static const unsigned char last[] = {0x00, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xff};
    for (unsigned a = 0xe0; a < 256; a++)
        for (unsigned b = 0x70; b < 0xd0; b++)
            for (size_t c = 0; c < sizeof last; c++)
                for (size_t d = 0; d < sizeof last; d++) {
                    place[0] = (unsigned char)a;
                    place[1] = (unsigned char)b;
                    place[2] = last[c];
                    place[3] = last[d];
                    expect_utf8(place, 4);
                }
}

static void bad_utf8_is_found_at_every_distance(void **state)
{
    (void)state;
    for (size_t before = 0; before < 50; before++)
        for (size_t after = 0; after < 20; after++) {
            char text[80];
            memset(text, 'x', sizeof text);
            text[before] = '\xff';
            size_t at = 0;
            assert_false(
                sgi_utf8_valid(fenced((sgi_str){text, before + 1 + after}), &at));
            assert_int_equal(at, before);
            memcpy(text + before, "\xc3\xa4", 2);
            assert_true(
                sgi_utf8_valid(fenced((sgi_str){text, before + 2 + after}), NULL));
        }
    assert_true(sgi_utf8_valid((sgi_str){NULL, 0}, NULL));
    assert_false(sgi_utf8_valid(fenced_text("\x80"), NULL));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(members_come_in_order_and_end),
        CASE(items_come_in_order_and_end),
        CASE(empty_and_other_values_have_no_members),
        CASE(values_are_skipped_whole_at_every_length),
        CASE(text_blocks_are_skipped_whole),
        CASE(members_are_found_by_their_decoded_name),
        CASE(kinds_are_told_by_the_first_byte),
        CASE(white_space_is_trimmed_on_both_sides_only),
        CASE(strings_are_decoded),
        CASE(other_values_are_no_strings),
        CASE(a_plain_string_is_one_without_escapes),
        CASE(decoding_without_memory_marks_the_buffer),
        CASE(integers_are_read_by_value),
        CASE(what_is_no_64_bit_integer_is_refused),
        CASE(long_numbers_are_read_to_their_end),
        CASE(doubles_are_read_to_the_nearest),
        CASE(the_last_of_many_digits_decides),
        CASE(a_span_that_is_cut_off_is_walked_inside),
        CASE(a_span_that_is_bent_is_walked_inside),
        CASE(utf8_is_judged_as_unicode_defines_it),
        CASE(bad_utf8_is_found_at_every_distance),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
