/* The JSON reader: what it accepts, what it refuses and where, repeated keys, depth and
 * size, recorded members, memory. Every document is read at the end of readable memory,
 * and at every alignment inside a larger buffer whose other bytes would change the
 * verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "../support/test_fence.h"
#include "../support/test_mem.h"
#include "wire/json_keys.h"

#define DEPTH 64

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 0x3c, len);
    return 0;
}

static segue_hooks hooks = {.struct_size = sizeof hooks, .random = fixed_random};
static test_mem tm;
static test_fence fence;
static sgi_json_reader reader;

static void start_reader(size_t max_bytes, int32_t max_depth)
{
    sgi_env env = {&tm.mem, &hooks};
    sgi_json_reader_init(&reader, &env, max_bytes, max_depth);
}

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    test_fence_init(&fence, 1 << 20);
    start_reader(SGI_JSON_MAX_BYTES, DEPTH);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_json_reader_free(&reader);
    test_fence_free(&fence);
    return tm.live == 0 && tm.blocks == 0 ? 0 : -1;
}

static void expect_once(sgi_str text, sgi_json_fault fault, size_t at)
{
    sgi_json_error error = {SGI_JSON_NOMEM, 9999};
    bool passed = sgi_json_read(&reader, text, NULL, 0, NULL, &error);
    if (error.fault != fault || (fault && error.at != at))
        fail_msg("%.60s: %s at %zu, not %s at %zu", text.n ? text.p : "",
                 sgi_json_fault_text(error.fault), error.at, sgi_json_fault_text(fault),
                 at);
    assert_int_equal(passed, fault == SGI_JSON_OK);
}

/* Reads the document at every possible position. */
static void expect(sgi_str text, sgi_json_fault fault, size_t at)
{
    expect_once((sgi_str){test_fence_place(&fence, text.p, text.n), text.n}, fault, at);
    static const char guards[] = "\"0}\\ ,\xff";
    size_t room = text.n + 64;
    char *buffer = malloc(room);
    assert_non_null(buffer);
    for (size_t offset = 0; offset < 17; offset++) {
        memset(buffer, guards[offset % (sizeof guards - 1)], room);
        memcpy(buffer + offset, text.p, text.n);
        expect_once((sgi_str){buffer + offset, text.n}, fault, at);
    }
    free(buffer);
}

typedef struct refusal {
    sgi_str text;
    sgi_json_fault fault;
    size_t at;
} refusal;

static void expect_all(const refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        expect(cases[i].text, cases[i].fault, cases[i].at);
        /* Tries it nested deeper, and further on in its block. */
        for (size_t spaces = 0; spaces < 20; spaces += 3) {
            char text[512];
            int len = snprintf(text, sizeof text, "{\"a\":[%*s%.*s", (int)spaces, "",
                               (int)cases[i].text.n, cases[i].text.p);
            if (cases[i].fault == SGI_JSON_TRAILING ||
                memchr(cases[i].text.p, 0, cases[i].text.n))
                continue;
            assert_true(len > 0 && (size_t)len < sizeof text);
            expect((sgi_str){text, (size_t)len}, cases[i].fault,
                   cases[i].at + 6 + spaces);
        }
    }
}

#define EXPECT_ALL(cases) expect_all((cases), sizeof(cases) / sizeof *(cases))

static void expect_passes(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect(sgi_str_of(texts[i]), SGI_JSON_OK, 0);
}

#define EXPECT_PASSES(texts) expect_passes((texts), sizeof(texts) / sizeof *(texts))

static void the_block_is_the_one_this_build_was_asked_for(void **state)
{
    (void)state;
#if defined(__SSE2__) && !defined(SGI_JSON_PLAIN)
    assert_int_equal(SGI_JSON_BLOCK, 16);
#else
    assert_int_equal(SGI_JSON_BLOCK, 8);
#endif
}

static void passes_every_kind_of_value(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "7",
        "-12",
        "1.5",
        "0.0",
        "1e5",
        "1E+5",
        "1e-05",
        "123456789012345678901234567890",
        "1e400",
        "-0.0e-0",
        "\"\"",
        "\"a\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[[]]",
        "[{},[],{}]",
        "[1,2,3]",
        "{\"a\":1}",
        "{\"\":0}",
        "{\"a\":{\"a\":{\"a\":[]}}}",
        "[null,true,false,0,\"\",[],{}]",
        " \t\r\n[ 1 , 2\n]\t",
        "{ \"a\" : 1 , \"b\" : [ ] }\n",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\uFFFF\\uabCD\"",
        "\"\\ud834\\udd1e\\uDBFF\\uDFFF\\uD800\\uDC00\"",
        "\"\x7f\"",
        "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"",
        "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
        "{\"a\":1,\"A\":2,\"aa\":3,\"\xc3\xa4\":4}"};
    EXPECT_PASSES(texts);
}

static void refuses_bad_syntax_at_the_first_wrong_byte(void **state)
{
    (void)state;
    const refusal cases[] = {
        {SGI_STR(""), SGI_JSON_SYNTAX, 0},
        {SGI_STR(" \n"), SGI_JSON_SYNTAX, 2},
        {SGI_STR("\v1"), SGI_JSON_SYNTAX, 0},
        {SGI_STR("\xef\xbb\xbf{}"), SGI_JSON_SYNTAX, 0},
        {SGI_STR("["), SGI_JSON_SYNTAX, 1},
        {SGI_STR("[1"), SGI_JSON_SYNTAX, 2},
        {SGI_STR("[1,"), SGI_JSON_SYNTAX, 3},
        {SGI_STR("[1,]"), SGI_JSON_SYNTAX, 3},
        {SGI_STR("[,1]"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("[1,,2]"), SGI_JSON_SYNTAX, 3},
        {SGI_STR("[1 2]"), SGI_JSON_SYNTAX, 3},
        {SGI_STR("[1}"), SGI_JSON_SYNTAX, 2},
        {SGI_STR("[}"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("[:]"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("{"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("{]"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("{1:2}"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("{a:1}"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("{\"a\""), SGI_JSON_SYNTAX, 4},
        {SGI_STR("{\"a\"}"), SGI_JSON_SYNTAX, 4},
        {SGI_STR("{\"a\",1}"), SGI_JSON_SYNTAX, 4},
        {SGI_STR("{\"a\":"), SGI_JSON_SYNTAX, 5},
        {SGI_STR("{\"a\":}"), SGI_JSON_SYNTAX, 5},
        {SGI_STR("{\"a\":1"), SGI_JSON_SYNTAX, 6},
        {SGI_STR("{\"a\":1]"), SGI_JSON_SYNTAX, 6},
        {SGI_STR("{\"a\":1,}"), SGI_JSON_SYNTAX, 7},
        {SGI_STR("{,}"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("{\"a\":1 \"b\":2}"), SGI_JSON_SYNTAX, 7},
        {SGI_STR("{\"a\"::1}"), SGI_JSON_SYNTAX, 5},
        {SGI_STR("tru"), SGI_JSON_SYNTAX, 3},
        {SGI_STR("trUe"), SGI_JSON_SYNTAX, 2},
        {SGI_STR("fals\0"), SGI_JSON_SYNTAX, 4},
        {SGI_STR("nul"), SGI_JSON_SYNTAX, 3},
        {SGI_STR("NaN"), SGI_JSON_SYNTAX, 0},
        {SGI_STR("nan"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("Infinity"), SGI_JSON_SYNTAX, 0},
        {SGI_STR("-Infinity"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("-"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("+1"), SGI_JSON_SYNTAX, 0},
        {SGI_STR("--1"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("01"), SGI_JSON_SYNTAX, 1},
        {SGI_STR("-012"), SGI_JSON_SYNTAX, 2},
        {SGI_STR(".5"), SGI_JSON_SYNTAX, 0},
        {SGI_STR("1."), SGI_JSON_SYNTAX, 2},
        {SGI_STR("1.e5"), SGI_JSON_SYNTAX, 2},
        {SGI_STR("1e"), SGI_JSON_SYNTAX, 2},
        {SGI_STR("1e+"), SGI_JSON_SYNTAX, 3},
        {SGI_STR("1e+-1"), SGI_JSON_SYNTAX, 3},
        {SGI_STR("'a'"), SGI_JSON_SYNTAX, 0},
        {SGI_STR("/**/1"), SGI_JSON_SYNTAX, 0},
        {SGI_STR("\""), SGI_JSON_SYNTAX, 1},
        {SGI_STR("\"\\"), SGI_JSON_SYNTAX, 2},
        {SGI_STR("\"\\\""), SGI_JSON_SYNTAX, 3},
        {SGI_STR("\0"), SGI_JSON_SYNTAX, 0},
    };
    EXPECT_ALL(cases);
}

static void refuses_what_follows_the_value(void **state)
{
    (void)state;
    const refusal cases[] = {
        {SGI_STR("1 2"), SGI_JSON_TRAILING, 2},
        {SGI_STR("{}{}"), SGI_JSON_TRAILING, 2},
        {SGI_STR("[]]"), SGI_JSON_TRAILING, 2},
        {SGI_STR("{}}"), SGI_JSON_TRAILING, 2},
        {SGI_STR("null,"), SGI_JSON_TRAILING, 4},
        {SGI_STR("truex"), SGI_JSON_TRAILING, 4},
        {SGI_STR("\"a\" \"b\""), SGI_JSON_TRAILING, 4},
        {SGI_STR("{} \0"), SGI_JSON_TRAILING, 3},
        {SGI_STR("1\f"), SGI_JSON_TRAILING, 1},
    };
    EXPECT_ALL(cases);
}

/* Tries a fault in a string, at every distance from the beginning, in a key and in a
 * value. */
static void expect_in_string(sgi_str wrong, sgi_json_fault fault, size_t at)
{
    for (size_t before = 0; before < 40; before++) {
        char text[128];
        size_t len = 0;
        text[len++] = '"';
        memset(text + len, 'a' + (int)(before % 3), before);
        len += before;
        memcpy(text + len, wrong.p, wrong.n);
        len += wrong.n;
        memcpy(text + len, "bcdefghijklmnopqrst\"", 20);
        expect((sgi_str){text, len + 20}, fault, 1 + before + at);
        memmove(text + 1, text, len + 20);
        memcpy(text, "{", 1);
        memcpy(text + len + 21, ":1}", 3);
        expect((sgi_str){text, len + 24}, fault, 2 + before + at);
    }
}

static void refuses_control_characters_and_unknown_escapes(void **state)
{
    (void)state;
    for (int c = 0; c < 0x20; c++)
        expect_in_string((sgi_str){&(char){(char)c}, 1}, SGI_JSON_SYNTAX, 0);
    for (int c = 0; c < 256; c++)
        if (!c || !strchr("\"\\/bfnrtu", c))
            expect_in_string((sgi_str){(char[2]){'\\', (char)c}, 2}, SGI_JSON_SYNTAX, 1);
    expect_in_string(SGI_STR("\\uG123"), SGI_JSON_SYNTAX, 2);
    expect_in_string(SGI_STR("\\u1:23"), SGI_JSON_SYNTAX, 3);
    expect_in_string(SGI_STR("\\u12@3"), SGI_JSON_SYNTAX, 4);
    expect_in_string(SGI_STR("\\u123`"), SGI_JSON_SYNTAX, 5);
    expect_in_string(SGI_STR("\\U0041"), SGI_JSON_SYNTAX, 1);
    expect_in_string(SGI_STR("\\n\\t\x1f"), SGI_JSON_SYNTAX, 4);
    expect_in_string(SGI_STR("\\u004"), SGI_JSON_OK, 0);
}

static void refuses_lone_surrogates_at_their_backslash(void **state)
{
    (void)state;
    static const char *const lone[] = {"\\ud800",        "\\uDBFF ",
                                       "\\udc00",        "\\uDFFF",
                                       "\\ud800\\ud800", "\\ud800\\u0041",
                                       "\\ud800\\n",     "\\ud800\\u00zz",
                                       "\\uD800\\uDBFF", "\\uD800\\uE000",
                                       "\\uD800udc00",   "\\udc00\\ud800",
                                       "\\uD800\\uDCzz", "\\ud800\xf0\x90\x80\x80"};
    for (size_t i = 0; i < sizeof lone / sizeof *lone; i++)
        expect_in_string(sgi_str_of(lone[i]), SGI_JSON_SURROGATE, 0);
    expect_in_string(SGI_STR("\\ud800\\udc00\\ud800"), SGI_JSON_SURROGATE, 12);
    expect(SGI_STR("\"\\ud800"), SGI_JSON_SYNTAX, 7);
    expect(SGI_STR("\"\\ud800\\udc0"), SGI_JSON_SYNTAX, 12);
    expect(SGI_STR("\"\\ud80"), SGI_JSON_SYNTAX, 6);
}

static void refuses_malformed_utf8_where_the_sequence_begins(void **state)
{
    (void)state;
    static const char *const wrong[] = {"\x80",
                                        "\xbf",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xc2",
                                        "\xc2\x7f",
                                        "\xc2\xc0",
                                        "\xe0\x80\x80",
                                        "\xe0\x9f\xbf",
                                        "\xe1\x80",
                                        "\xe1\x80\x7f",
                                        "\xed\xa0\x80",
                                        "\xed\xbf\xbf",
                                        "\xef\xbf",
                                        "\xf0\x80\x80\x80",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf0\x90\x80",
                                        "\xf0\x90\x80",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xfe",
                                        "\xff",
                                        "\xf8\x88\x80\x80\x80"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_in_string(sgi_str_of(wrong[i]), SGI_JSON_UTF8, 0);
    expect_in_string(SGI_STR("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xff"), SGI_JSON_UTF8,
                     9);
    expect(SGI_STR("\"\xe2\x82"), SGI_JSON_UTF8, 1);
}

static void every_cut_of_a_document_is_refused_at_its_end(void **state)
{
    (void)state;
    static const char text[] =
        "{\"jsonrpc\":\"2.0\",\"id\":-12.5e+3,\"method\":\"a\\u00e9\\n\\ud83d\\ude00b\","
        "\"params\":{\"list\":[true,false,null,[],{},[[1],[2]]],\"empty\":{}}}";
    expect(SGI_STR(text), SGI_JSON_OK, 0);
    for (size_t len = 0; len < sizeof text - 1; len++)
        expect((sgi_str){text, len}, SGI_JSON_SYNTAX, len);
}

static void depth_ends_at_the_limit(void **state)
{
    (void)state;
    static const int32_t limits[] = {-1, 0, 1, 2, 31, 32, 33, 64, 100, 512};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        sgi_json_reader_free(&reader);
        start_reader(SGI_JSON_MAX_BYTES, limits[i]);
        size_t depth = limits[i] > 0 ? (size_t)limits[i] : 0;
        char text[2048];
        memset(text, '[', depth + 1);
        memset(text + depth + 1, ']', depth + 1);
        expect((sgi_str){text + 1, depth * 2}, depth ? SGI_JSON_OK : SGI_JSON_SYNTAX, 0);
        expect((sgi_str){text, depth * 2 + 2}, SGI_JSON_DEPTH, depth);
        expect(SGI_STR("{}"), depth ? SGI_JSON_OK : SGI_JSON_DEPTH, 0);
        expect(SGI_STR("7"), SGI_JSON_OK, 0);
    }
    expect(SGI_STR("[[[{\"a\":{}}]],[[[[]]]]]"), SGI_JSON_OK, 0);
}

static void size_ends_at_the_limit(void **state)
{
    (void)state;
    sgi_json_reader_free(&reader);
    start_reader(10, DEPTH);
    expect(SGI_STR("[12345678]"), SGI_JSON_OK, 0);
    expect(SGI_STR("[12345678] "), SGI_JSON_SIZE, 10);
    sgi_json_reader_free(&reader);
    start_reader(SIZE_MAX, DEPTH);
    assert_int_equal(reader.max_bytes, SGI_JSON_MAX_BYTES);
}

static void a_key_that_comes_twice_is_refused_at_its_quote(void **state)
{
    (void)state;
    const refusal cases[] = {
        {SGI_STR("{\"a\":1,\"a\":1}"), SGI_JSON_DUPLICATE_KEY, 7},
        {SGI_STR("{\"\":1, \"\" :2}"), SGI_JSON_DUPLICATE_KEY, 7},
        {SGI_STR("{\"a\":1,\"\\u0061\":2}"), SGI_JSON_DUPLICATE_KEY, 7},
        {SGI_STR("{\"\\u0061\":1,\"a\":2}"), SGI_JSON_DUPLICATE_KEY, 12},
        {SGI_STR("{\"\\u0061\":1,\"\\u0061\":2}"), SGI_JSON_DUPLICATE_KEY, 12},
        {SGI_STR("{\"\\/\":1,\"/\":2}"), SGI_JSON_DUPLICATE_KEY, 8},
        {SGI_STR("{\"\\u0000\":1,\"\\u0000\":2}"), SGI_JSON_DUPLICATE_KEY, 12},
        {SGI_STR("{\"\xc3\xa4\":1,\"\\u00E4\":2}"), SGI_JSON_DUPLICATE_KEY, 8},
        {SGI_STR("{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\uDE00\":2}"), SGI_JSON_DUPLICATE_KEY,
         10},
        {SGI_STR("{\"b\":{\"a\":1,\"a\":2}}"), SGI_JSON_DUPLICATE_KEY, 12},
        {SGI_STR("[[{\"x\":[{\"a\":1,\"a\":2}]}]]"), SGI_JSON_DUPLICATE_KEY, 15},
        {SGI_STR("{\"a\":{\"a\":{}},\"b\":[],\"a\":0}"), SGI_JSON_DUPLICATE_KEY, 21},
        {SGI_STR("{\"abcdefgh\":1,\"abcdefgh\":1}"), SGI_JSON_DUPLICATE_KEY, 14},
        {SGI_STR("{\"abcdefghi\":1,\"abcdefghi\":1}"), SGI_JSON_DUPLICATE_KEY, 15},
        /* The first fault in the text is reported. */
        {SGI_STR("{\"a\":1,\"a\":tru}"), SGI_JSON_DUPLICATE_KEY, 7},
        {SGI_STR("{\"a\":tru,\"a\":1}"), SGI_JSON_SYNTAX, 8},
    };
    EXPECT_ALL(cases);
}

static void keys_that_only_look_alike_are_two(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"a\":1,\"aa\":2,\"A\":3,\"a \":4,\" a\":5,\"\":6}",
        "{\"a\":{\"a\":1},\"b\":{\"a\":1}}", "[{\"a\":1},{\"a\":1},[{\"a\":1}]]",
        "{\"\":0,\"\\u0000\":1,\"\\u0000\\u0000\":2,\"0\":3}",
        /* The keys have the same length and the same first and last eight bytes. */
        "{\"12345678a12345678\":1,\"12345678b12345678\":2,\"12345678c12345678\":3}",
        "{\"1234567812345678\":1,\"12345678_12345678\":2}",
        /* Decoded, the second key continues exactly like the text behind the first. */
        "{\"a\":1,\"a\\\":1,\":2}", "{\"a\":1,\"b\":2,\"a\\\":1,\":3,\"b\\\":2,\":4}",
        "{\"abcdefgh\":\"\",\"abcdefgh\\\":\":2}",
        "{\"\\\"\":1,\"\\\\\":2,\"\\\\\\\"\":3}", "{\"a\\\\\":1,\"a\":2,\"a\\\\\\\\\":3}",
        "{\"\\u00e4\":1,\"a\\u0308\":2}"};
    EXPECT_PASSES(texts);
}

static uint32_t hash_of(const char *name)
{
    unsigned char ends[16] = {0};
    size_t len = strlen(name);
    size_t part = len < 8 ? len : 8;
    memcpy(ends, name, part);
    memcpy(ends + 8, name + len - part, part);
    return sgi_json_key_hash(sgi_json_load8(ends), sgi_json_load8(ends + 8), len);
}

static void keys_of_one_hash_are_told_apart(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"k1632", "key_28232_name"},
                                           {"55307x", "key_62092_name"},
                                           {"12345678a12345678", "12345678b12345678"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *a = pairs[i][0];
        const char *b = pairs[i][1];
        assert_int_equal(hash_of(a), hash_of(b));
        char text[128];
        snprintf(text, sizeof text, "{\"%s\":0,\"%s\":1,\"x\":2}", a, b);
        expect(sgi_str_of(text), SGI_JSON_OK, 0);
        snprintf(text, sizeof text, "{\"%s\":0,\"%s\":1,\"%s\":2}", b, a, b);
        expect(sgi_str_of(text), SGI_JSON_DUPLICATE_KEY, strlen(a) + strlen(b) + 11);
    }
}

typedef struct text_maker {
    char *p;
    size_t len;
} text_maker;

__attribute__((format(printf, 2, 3))) static void put(text_maker *to, const char *format,
                                                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    to->len += (size_t)vsprintf(to->p + to->len, format, arguments);
    va_end(arguments);
}

/* Objects of every size around the one from which a table is used. Each repeats one of
 * its keys at the end, plain or escaped, an early or a late key. */
static void a_key_is_found_among_any_number(void **state)
{
    (void)state;
    static const char *const forms[] = {"key-%zu-of-many", "%zu",
                                        "\\u006bey-%zu-of-many"};
    char *room = malloc(1 << 16);
    assert_non_null(room);
    for (size_t form = 0; form < 9; form++)
        for (size_t count = 1; count < 150; count += count < 40 ? 1 : 13)
            for (size_t twin = 0; twin < count; twin += 1 + count / 7) {
                text_maker to = {room, 0};
                put(&to, "{");
                for (size_t i = 0; i < count; i++) {
                    put(&to, "\"");
                    put(&to, forms[form % 3], i);
                    put(&to, "\":%zu,", i);
                }
                size_t at = to.len;
                put(&to, "\"");
                put(&to, forms[form / 3], twin);
                put(&to, "\":0}");
                bool same = form % 3 == form / 3 || (form % 3 != 1 && form / 3 != 1);
                expect_once((sgi_str){room, to.len},
                            same ? SGI_JSON_DUPLICATE_KEY : SGI_JSON_OK, at);
            }
    free(room);
}

static void put_keys(text_maker *to, size_t from, size_t count)
{
    for (size_t i = from; i < from + count; i++)
        put(to, "%s\"k%zu\":0", i > from ? "," : "", i);
}

/* Large objects nested in large objects, with the same keys. The outer object must still
 * know its keys while the inner one is open, and after that has left the table. */
static void large_objects_inside_one_another_keep_their_keys(void **state)
{
    (void)state;
    char *room = malloc(1 << 20);
    assert_non_null(room);
    for (size_t outer = 1; outer < 70; outer += 3)
        for (size_t twin = 0; twin <= outer; twin += 1 + outer / 5) {
            text_maker to = {room, 0};
            put(&to, "[{");
            put_keys(&to, 0, outer);
            for (size_t i = 0; i < 3; i++) {
                put(&to, ",\"nest%zu\":[{", i);
                put_keys(&to, 0, 40);
                put(&to, ",\"more\":{");
                put_keys(&to, 0, 300);
                put(&to, "},\"\\u0061\":{\"\\u006b0\":1}}]");
            }
            put(&to, ",");
            size_t at = to.len;
            put(&to, "\"k%zu\":1},{\"k0\":2}]", twin);
            expect_once((sgi_str){room, to.len},
                        twin < outer ? SGI_JSON_DUPLICATE_KEY : SGI_JSON_OK, at);
        }
    free(room);
}

static void a_refusal_leaves_nothing_behind(void **state)
{
    (void)state;
    char room[4096];
    text_maker to = {room, 0};
    put(&to, "{");
    put_keys(&to, 0, 100);
    put(&to, ",\"\\u0061\":[{");
    put_keys(&to, 0, 50);
    for (int i = 0; i < 3; i++) {
        expect_once((sgi_str){room, to.len}, SGI_JSON_SYNTAX, to.len);
        assert_int_equal(reader.depth, 0);
        assert_int_equal(reader.key_count, 0);
        assert_int_equal(reader.table_count, 0);
        for (uint32_t slot = 0; slot < reader.table_cap; slot++)
            assert_int_equal(reader.table[slot], 0);
        text_maker whole = {room, to.len};
        put(&whole, "}]}");
        expect_once((sgi_str){room, whole.len}, SGI_JSON_OK, 0);
        assert_int_equal(reader.table_count, 0);
    }
}

/* Reads a text, and returns the time of the processor that this takes. */
static clock_t time_of(const char *text, size_t len)
{
    clock_t begin = clock();
    expect_once((sgi_str){text, len}, SGI_JSON_OK, 0);
    return clock() - begin;
}

static clock_t time_of_many_keys(char *room, int tenths)
{
    text_maker to = {room, 0};
    put(&to, "{");
    for (int i = 0; i < 40000 * tenths; i++)
        put(&to, "%s\"prefix-that-all-share-%06d-suffix-that-all-share\":0", i ? "," : "",
            i);
    put(&to, "}");
    return time_of(room, to.len);
}

static clock_t time_of_many_objects(char *room, int tenths)
{
    text_maker to = {room, 0};
    put(&to, "{");
    for (int i = 0; i < 5000 * tenths; i++) {
        put(&to, "%s\"\\u006f%06d\":{", i ? "," : "", i);
        put_keys(&to, 0, 40);
        put(&to, "}");
    }
    put(&to, "}");
    return time_of(room, to.len);
}

static clock_t time_of_deep_objects(char *room, int tenths)
{
    text_maker to = {room, 0};
    size_t deep = 2000 * (size_t)tenths;
    for (size_t i = 0; i < deep; i++) {
        put(&to, "{");
        put_keys(&to, 0, 40);
        put(&to, ",\"x\":");
    }
    put(&to, "1");
    memset(room + to.len, '}', deep);
    return time_of(room, to.len + deep);
}

static clock_t time_of_deep_arrays(char *room, int tenths)
{
    size_t deep = 100000 * (size_t)tenths;
    memset(room, '[', deep);
    memset(room + deep, ']', deep);
    return time_of(room, 2 * deep);
}

/* The keys have 100 kB for each tenth, and differ only in the middle. */
static clock_t time_of_long_keys(char *room, int tenths)
{
    text_maker to = {room, 0};
    size_t len = 100000 * (size_t)tenths;
    for (int i = 0; i < SGI_JSON_FEW_KEYS; i++) {
        put(&to, "%c\"", i ? ',' : '{');
        memset(room + to.len, 'k', len);
        room[to.len + len / 2] = (char)(i < 26 ? 'A' + i : 'a' + i - 26);
        to.len += len;
        put(&to, "\":0");
    }
    put(&to, "}");
    return time_of(room, to.len);
}

static clock_t time_of_escapes(char *room, int tenths)
{
    size_t len = (size_t)tenths << 20;
    room[0] = '"';
    memset(room + 1, '\\', len);
    room[1 + len] = '"';
    return time_of(room, len + 2);
}

static clock_t time_of_hostile_texts(char *room, int tenths)
{
    return time_of_many_keys(room, tenths) + time_of_many_objects(room, tenths) +
           time_of_deep_objects(room, tenths) + time_of_deep_arrays(room, tenths) +
           time_of_long_keys(room, tenths) + time_of_escapes(room, tenths);
}

/* Texts of ten times the size take about ten times as long. If the time for any of them
 * grew with the square of its size, all of them would take a hundred times as long. The
 * measure is this machine, so a slow one passes, too. */
static void hostile_texts_take_linear_time(void **state)
{
    (void)state;
    enum { ROOM = 40 << 20, MOST = 50 };
    char *room = malloc(ROOM);
    assert_non_null(room);
    sgi_json_reader_free(&reader);
    start_reader(SGI_JSON_MAX_BYTES, 1000000);
    time_of_hostile_texts(room, 10); /* the reader has its memory then */
    clock_t tenth = time_of_hostile_texts(room, 1);
    clock_t whole = time_of_hostile_texts(room, 10);
    if (whole > MOST * tenth)
        fail_msg("ten times the texts take %.1f times as long",
                 (double)whole / (double)tenth);
    free(room);
}

static void memory_that_only_a_large_text_needs_is_given_back(void **state)
{
    (void)state;
    char *room = malloc(4 << 20);
    assert_non_null(room);
    text_maker to = {room, 0};
    put(&to, "{");
    put_keys(&to, 0, 100000);
    put(&to, ",\"\\u0061\":1}");
    expect_once((sgi_str){room, to.len}, SGI_JSON_OK, 0);
    assert_true(tm.peak < 4 * to.len);
    assert_true(tm.live < 256 * 1024);
    expect_once(SGI_STR("{\"a\":[{\"a\":1,\"\\u0062\":{}}]}"), SGI_JSON_OK, 0);
    size_t calls = tm.calls;
    expect_once(SGI_STR("{\"a\":[{\"a\":1,\"\\u0062\":{}}]}"), SGI_JSON_OK, 0);
    assert_int_equal(tm.calls, calls);
    free(room);
}

static void decoded_keys_leave_with_their_object(void **state)
{
    (void)state;
    char *room = malloc(1 << 20);
    assert_non_null(room);
    text_maker to = {room, 0};
    put(&to, "{\"\\u0061\":[{}");
    for (int i = 0; i < 10000; i++)
        put(&to, ",{\"\\u0061\":1,\"\\u0062\":{}}");
    put(&to, "],\"\\u0062\":1,");
    size_t at = to.len;
    put(&to, "\"a\":2}");
    expect_once((sgi_str){room, to.len}, SGI_JSON_DUPLICATE_KEY, at);
    assert_true(tm.peak < 4096);
    free(room);
}

static void expect_member(const sgi_json_member *member, const char *key, bool escaped,
                          const char *value)
{
    assert_true(sgi_str_eq(member->key, sgi_str_of(key)));
    assert_int_equal(member->escaped, escaped);
    assert_true(sgi_str_eq(member->value, sgi_str_of(value)));
}

static void members_of_the_outermost_object_are_recorded(void **state)
{
    (void)state;
    static const char text[] = " { \"jsonrpc\" : \"2.0\" ,\n\"id\":12 ,\"p\\u0061rams\": "
                               "{\"a\":[1,2],\"id\":3}\t,"
                               "\"caf\xc3\xa9\":[ ],\"last\":null } ";
    sgi_json_member members[8];
    size_t count = 0;
    assert_true(sgi_json_read(&reader, SGI_STR(text), members, 8, &count, NULL));
    assert_int_equal(count, 5);
    expect_member(&members[0], "jsonrpc", false, "\"2.0\"");
    expect_member(&members[1], "id", false, "12");
    expect_member(&members[2], "p\\u0061rams", true, "{\"a\":[1,2],\"id\":3}");
    expect_member(&members[3], "caf\xc3\xa9", false, "[ ]");
    expect_member(&members[4], "last", false, "null");
    assert_ptr_equal(members[1].value.p, strstr(text, "12"));
}

static void only_the_first_members_are_recorded_but_all_are_counted(void **state)
{
    (void)state;
    sgi_str text = SGI_STR("{\"a\":1,\"b\":2,\"c\":3}");
    sgi_json_member members[3] = {
        {.key = SGI_STR("x")}, {.key = SGI_STR("y")}, {.key = SGI_STR("z")}};
    size_t count = 0;
    assert_true(sgi_json_read(&reader, text, members, 2, &count, NULL));
    assert_int_equal(count, 3);
    expect_member(&members[1], "b", false, "2");
    assert_true(sgi_str_eq(members[2].key, SGI_STR("z")));
    assert_true(sgi_json_read(&reader, text, NULL, 7, &count, NULL));
    assert_int_equal(count, 3);
    assert_true(sgi_json_read(&reader, text, members, 0, &count, NULL));
    assert_int_equal(count, 3);
    assert_true(sgi_json_read(&reader, text, members, 3, NULL, NULL));
    expect_member(&members[2], "c", false, "3");
}

static void nothing_is_counted_but_of_an_object_that_passes(void **state)
{
    (void)state;
    static const char *const texts[] = {"[{\"a\":1}]",      "{}",         "7",
                                        "\"{}\"",           "{\"a\":1,}", "{\"a\":1} 2",
                                        "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sgi_json_member member;
        size_t count = 99;
        bool passed =
            sgi_json_read(&reader, sgi_str_of(texts[i]), &member, 1, &count, NULL);
        assert_int_equal(passed, i < 4);
        assert_int_equal(count, 0);
    }
}

/* Writes a text that needs every kind of allocation: frames, keys, the table and its
 * growth, decoded keys. */
static size_t put_greedy(char *room)
{
    text_maker to = {room, 0};
    put(&to, "{\"\\u0061\":");
    for (int i = 0; i < 40; i++)
        put(&to, "[");
    put(&to, "{");
    put_keys(&to, 0, 80);
    put(&to, ",\"\\u0062\":{");
    put_keys(&to, 0, 150);
    put(&to, "}}");
    for (int i = 0; i < 40; i++)
        put(&to, "]");
    put(&to, ",\"");
    for (int i = 0; i < 300; i++)
        put(&to, "\\u00e4");
    put(&to, "\":1}");
    return to.len;
}

static void out_of_memory_is_a_fault_like_others(void **state)
{
    (void)state;
    char room[8192];
    sgi_str text = {room, put_greedy(room)};
    size_t refused = 0;
    for (int sticky = 0; sticky < 2; sticky++)
        for (size_t call = 1;; call++) {
            sgi_json_reader_free(&reader);
            assert_int_equal(tm.live, 0);
            test_mem_rearm(&tm);
            start_reader(SGI_JSON_MAX_BYTES, DEPTH);
            *(sticky ? &tm.fail_from : &tm.fail_at) = call;
            sgi_json_error error;
            size_t count = 99;
            bool passed = sgi_json_read(&reader, text, NULL, 0, &count, &error);
            if (!tm.failed) {
                assert_true(passed);
                break;
            }
            refused++;
            assert_false(passed);
            assert_int_equal(error.fault, SGI_JSON_NOMEM);
            assert_true(error.at < text.n);
            assert_int_equal(count, 0);
            test_mem_rearm(&tm);
            expect_once(text, SGI_JSON_OK, 0);
        }
    assert_true(refused >= 16);
}

static void faults_have_texts_of_their_own(void **state)
{
    (void)state;
    for (int a = SGI_JSON_OK; a <= SGI_JSON_NOMEM + 1; a++)
        for (int b = SGI_JSON_OK; b < a; b++)
            assert_string_not_equal(sgi_json_fault_text((sgi_json_fault)a),
                                    sgi_json_fault_text((sgi_json_fault)b));
    assert_string_equal(sgi_json_fault_text(SGI_JSON_DUPLICATE_KEY), "duplicate key");
}

static void an_absent_text_is_an_empty_one(void **state)
{
    (void)state;
    sgi_json_error error;
    assert_false(sgi_json_read(&reader, (sgi_str){NULL, 0}, NULL, 0, NULL, &error));
    assert_int_equal(error.fault, SGI_JSON_SYNTAX);
    assert_int_equal(error.at, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest cases[] = {
        CASE(the_block_is_the_one_this_build_was_asked_for),
        CASE(passes_every_kind_of_value),
        CASE(refuses_bad_syntax_at_the_first_wrong_byte),
        CASE(refuses_what_follows_the_value),
        CASE(refuses_control_characters_and_unknown_escapes),
        CASE(refuses_lone_surrogates_at_their_backslash),
        CASE(refuses_malformed_utf8_where_the_sequence_begins),
        CASE(every_cut_of_a_document_is_refused_at_its_end),
        CASE(depth_ends_at_the_limit),
        CASE(size_ends_at_the_limit),
        CASE(a_key_that_comes_twice_is_refused_at_its_quote),
        CASE(keys_that_only_look_alike_are_two),
        CASE(keys_of_one_hash_are_told_apart),
        CASE(a_key_is_found_among_any_number),
        CASE(large_objects_inside_one_another_keep_their_keys),
        CASE(a_refusal_leaves_nothing_behind),
        CASE(hostile_texts_take_linear_time),
        CASE(memory_that_only_a_large_text_needs_is_given_back),
        CASE(decoded_keys_leave_with_their_object),
        CASE(members_of_the_outermost_object_are_recorded),
        CASE(only_the_first_members_are_recorded_but_all_are_counted),
        CASE(nothing_is_counted_but_of_an_object_that_passes),
        CASE(out_of_memory_is_a_fault_like_others),
        CASE(faults_have_texts_of_their_own),
        CASE(an_absent_text_is_an_empty_one),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
