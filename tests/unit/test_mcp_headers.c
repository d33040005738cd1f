/* Headers compared with the body (R-2557-48, -49; 2026-07-28
 * basic/transports/streamable-http, "Request Metadata"; the tables of SEP-2243). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/test_fence.h"
#include "support/test_mem.h"
#include "wire/mcp_headers.h"

static test_mem tm;
static test_fence fence;
static sgi_buf out;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    test_fence_init(&fence, 1 << 12);
    sgi_buf_init(&out, &tm.mem);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_buf_free(&out);
    test_fence_free(&fence);
    assert_int_equal(tm.live, 0);
    return 0;
}

static sgi_str fenced(sgi_str text)
{
    return (sgi_str){test_fence_place(&fence, text.p, text.n), text.n};
}

static void check_out(const char *expected)
{
    assert_false(out.failed);
    assert_true(sgi_buf_terminate(&out));
    assert_string_equal(out.p, expected);
    sgi_buf_reset(&out, 0);
}

static void the_name_of_a_method_is_where_the_specification_says(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"tools/call", "name"},     {"prompts/get", "name"},
        {"resources/read", "uri"},  {"tasks/get", "taskId"},
        {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"},
        {"tasks/stream", "taskId"},
    };
    static const char *const none[] = {"tools/list",
                                       "Tools/call",
                                       "tools/call ",
                                       "tasks/result",
                                       "tasks/list",
                                       "tasks/",
                                       ""};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(sgi_mcp_name_member(sgi_str_of(rows[i][0])), rows[i][1]);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(sgi_mcp_name_member(sgi_str_of(none[i])));
}

/* ---- values to headers and back ---- */

static const struct {
    sgi_str text;
    const char *header;
} values[] = {
    {SGI_STR_INIT("us-west1"), "us-west1"},
    {SGI_STR_INIT("us west 1"), "us west 1"},
    {SGI_STR_INIT(""), ""},
    {SGI_STR_INIT("~!\"%\\,;=?"), "~!\"%\\,;=?"},
    {SGI_STR_INIT("file:///path/to/file%20name.txt"), "file:///path/to/file%20name.txt"},
    {SGI_STR_INIT("Hello, \xe4\xb8\x96\xe7\x95\x8c"), "=?base64?SGVsbG8sIOS4lueVjA==?="},
    {SGI_STR_INIT("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"), "=?base64?5pel5pys6Kqe?="},
    {SGI_STR_INIT(" padded "), "=?base64?IHBhZGRlZCA=?="},
    {SGI_STR_INIT(" us-west1"), "=?base64?IHVzLXdlc3Qx?="},
    {SGI_STR_INIT("us-west1 "), "=?base64?dXMtd2VzdDEg?="},
    {SGI_STR_INIT(" "), "=?base64?IA==?="},
    {SGI_STR_INIT("\tindented"), "=?base64?CWluZGVudGVk?="},
    {SGI_STR_INIT("a\tb"), "=?base64?YQli?="},
    {SGI_STR_INIT("line1\nline2"), "=?base64?bGluZTEKbGluZTI=?="},
    {SGI_STR_INIT("line1\r\nline2"), "=?base64?bGluZTENCmxpbmUy?="},
    {SGI_STR_INIT("a\0b"), "=?base64?YQBi?="},
    {SGI_STR_INIT("\x7f"), "=?base64?fw==?="},
    {SGI_STR_INIT("=?base64?literal?="), "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
    {SGI_STR_INIT("=?base64?\?="), "=?base64?PT9iYXNlNjQ/Pz0=?="},
    {SGI_STR_INIT("=?base64?="), "=?base64?PT9iYXNlNjQ/PQ==?="},
    {SGI_STR_INIT("=?base64?SGVsbG8="), "=?base64?SGVsbG8="},
    {SGI_STR_INIT("=?BASE64?SGVsbG8=?="), "=?BASE64?SGVsbG8=?="},
};

#define VALUES (sizeof values / sizeof *values)

static void values_are_wrapped_only_when_they_must_be(void **state)
{
    (void)state;
    for (size_t i = 0; i < VALUES; i++) {
        sgi_mcp_add_header_value(&out, fenced(values[i].text));
        check_out(values[i].header);
    }
}

static void values_are_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < VALUES; i++) {
        sgi_str text;
        sgi_str header = fenced(sgi_str_of(values[i].header));
        assert_int_equal(sgi_mcp_read_header_value(header, &out, &text), SGI_MCP_SAME);
        assert_true(sgi_str_eq(text, values[i].text));
    }
    sgi_str text;
    sgi_str header = SGI_STR(" \t foo\t");
    assert_int_equal(sgi_mcp_read_header_value(header, &out, &text), SGI_MCP_SAME);
    assert_ptr_equal(text.p, header.p + 3);
    assert_int_equal(text.n, 3);
    assert_int_equal(sgi_mcp_read_header_value(SGI_STR("=?base64?\?="), &out, &text),
                     SGI_MCP_SAME);
    assert_int_equal(text.n, 0);
}

/* A value that two readers could understand differently is refused. */
static void what_is_not_the_one_spelling_is_malformed(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "=?base64?SGVsbG8?=",
        "=?base64?SGVs!!!bG8=?=",
        "=?base64?SGVsbG8==?=",
        "=?base64?SGVsbG8===?=",
        "=?base64?=?=",
        "=?base64?====?=",
        "=?base64?S?=",
        "=?base64?SG Vs?=",
        "=?base64?SGVs=GVs?=",
        "=?base64?_-__?=",
        "=?base64?SGVsbG9=?=",
        "=?base64?IB==?=",
        "=?base64?II==?=",
        "=?base64?SGVsbG+=?=",
        "=?base64?SGVsbG8=\t?=",
        "=?base64?/w==?=",
        "=?base64?7aCA?=",
        "=?base64?=",
        "a\nb",
        "a\rb",
        "\x7f",
        "caf\xc3\xa9",
        "\x01",
    };
    sgi_str text;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_str header = fenced(sgi_str_of(rows[i]));
        assert_int_equal(sgi_mcp_read_header_value(header, &out, &text),
                         SGI_MCP_MALFORMED);
    }
    assert_int_equal(sgi_mcp_read_header_value((sgi_str){"a\0b", 3}, &out, &text),
                     SGI_MCP_MALFORMED);
}

/* ---- against the body ---- */

static sgi_mcp_match match_name(const char *header, const char *value)
{
    return sgi_mcp_match_name(fenced(sgi_str_of(header)), sgi_str_of(value), &tm.mem);
}

static void names_match_as_they_are_and_decoded(void **state)
{
    (void)state;
    assert_int_equal(match_name("get_weather", "\"get_weather\""), SGI_MCP_SAME);
    assert_int_equal(match_name("  foo ", "\"foo\""), SGI_MCP_SAME);
    assert_int_equal(match_name("foo", "\"f\\u006fo\""), SGI_MCP_SAME);
    assert_int_equal(match_name("a/b", "\"a\\/b\""), SGI_MCP_SAME);
    assert_int_equal(match_name("", "\"\""), SGI_MCP_SAME);
    assert_int_equal(tm.calls, 0); /* no allocation so far */
    assert_int_equal(match_name("=?base64?SGVsbG8=?=", "\"Hello\""), SGI_MCP_SAME);
    assert_int_equal(match_name("=?base64?4oKs?=", "\"\xe2\x82\xac\""), SGI_MCP_SAME);
    assert_int_equal(match_name("=?base64?4oKs?=", "\"\\u20ac\""), SGI_MCP_SAME);
    assert_int_equal(match_name("=?base64?\?=", "\"\""), SGI_MCP_SAME);
    assert_int_equal(match_name("=?BASE64?SGVsbG8=?=", "\"=?BASE64?SGVsbG8=?=\""),
                     SGI_MCP_SAME);
}

static void names_that_differ_are_told(void **state)
{
    (void)state;
    assert_int_equal(match_name("foo", "\"bar\""), SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("Foo", "\"foo\""), SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("foo", "\"foo \""), SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("", "\"foo\""), SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("foo", "\"\""), SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("SGVsbG8=", "\"Hello\""), SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("=?BASE64?SGVsbG8=?=", "\"Hello\""), SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("=?base64?SGVsbG8=?=", "\"=?base64?SGVsbG8=?=\""),
                     SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("=?base64?SGVsbG8?=", "\"Hello\""), SGI_MCP_MALFORMED);
    assert_int_equal(match_name("caf\xc3\xa9", "\"caf\xc3\xa9\""), SGI_MCP_MALFORMED);
    assert_int_equal(match_name("1", "1"), SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("null", "null"), SGI_MCP_DIFFERENT);
    assert_int_equal(match_name("", ""), SGI_MCP_DIFFERENT);
}

static void methods_and_versions_know_no_base64(void **state)
{
    (void)state;
    static const struct {
        const char *header, *value;
        sgi_mcp_match match;
    } rows[] = {
        {"tools/call", "\"tools/call\"", SGI_MCP_SAME},
        {" tools/call ", "\"tools\\/call\"", SGI_MCP_SAME},
        {"Tools/call", "\"tools/call\"", SGI_MCP_DIFFERENT},
        {"=?base64?SGVsbG8=?=", "\"Hello\"", SGI_MCP_DIFFERENT},
        {"2026-07-28", "\"2026-07-28\"", SGI_MCP_SAME},
        {"2026-07-28", "\"2025-11-25\"", SGI_MCP_DIFFERENT},
        {"2026-07-28", "", SGI_MCP_DIFFERENT},
        {"tools/\x01", "\"tools/\\u0001\"", SGI_MCP_MALFORMED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(
            sgi_mcp_match_plain(sgi_str_of(rows[i].header), sgi_str_of(rows[i].value)),
            rows[i].match);
    assert_int_equal(tm.calls, 0);
}

/* ---- parameters ---- */

static void parameters_are_written_by_their_kind(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        sgi_mcp_write write;
        const char *header;
    } rows[] = {
        {"\"us-west1\"", SGI_MCP_WRITTEN, "us-west1"},
        {"\"\"", SGI_MCP_WRITTEN, ""},
        {"\"a\\/b\"", SGI_MCP_WRITTEN, "a/b"},
        {"\"line1\\nline2\"", SGI_MCP_WRITTEN, "=?base64?bGluZTEKbGluZTI=?="},
        {"\"\\u65e5\\u672c\\u8a9e\"", SGI_MCP_WRITTEN, "=?base64?5pel5pys6Kqe?="},
        {"true", SGI_MCP_WRITTEN, "true"},
        {"false", SGI_MCP_WRITTEN, "false"},
        {"42", SGI_MCP_WRITTEN, "42"},
        {"-7", SGI_MCP_WRITTEN, "-7"},
        {"42.0", SGI_MCP_WRITTEN, "42"},
        {"1e3", SGI_MCP_WRITTEN, "1000"},
        {"-0", SGI_MCP_WRITTEN, "0"},
        {"9007199254740991", SGI_MCP_WRITTEN, "9007199254740991"},
        {"-9007199254740991", SGI_MCP_WRITTEN, "-9007199254740991"},
        {"9007199254740992", SGI_MCP_UNFIT, ""},
        {"-9007199254740992", SGI_MCP_UNFIT, ""},
        {"1e400", SGI_MCP_UNFIT, ""},
        {"3.14159", SGI_MCP_UNFIT, ""},
        {"{}", SGI_MCP_UNFIT, ""},
        {"[1]", SGI_MCP_UNFIT, ""},
        {"null", SGI_MCP_OMIT, ""},
        {"", SGI_MCP_OMIT, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_json value = fenced(sgi_str_of(rows[i].value));
        assert_int_equal(sgi_mcp_add_param_value(&out, value), rows[i].write);
        check_out(rows[i].header);
    }
}

static void parameters_are_compared_by_value(void **state)
{
    (void)state;
    static const struct {
        const char *header, *value;
        sgi_mcp_match match;
    } rows[] = {
        {"us-west1", "\"us-west1\"", SGI_MCP_SAME},
        {"us-west1", "\"us-west2\"", SGI_MCP_DIFFERENT},
        {"=?base64?SGVsbG8=?=", "\"Hello\"", SGI_MCP_SAME},
        {"=?base64?SGVsbG8?=", "\"Hello\"", SGI_MCP_MALFORMED},
        {"true", "true", SGI_MCP_SAME},
        {"True", "true", SGI_MCP_DIFFERENT},
        {"true", "false", SGI_MCP_DIFFERENT},
        {"true", "\"true\"", SGI_MCP_SAME},
        {"42", "42", SGI_MCP_SAME},
        {"42.0", "42", SGI_MCP_SAME},
        {"42", "4.2e1", SGI_MCP_SAME},
        {"=?base64?NDI=?=", "42", SGI_MCP_SAME},
        {" 42 ", "42", SGI_MCP_SAME},
        {"42.0", "\"42\"", SGI_MCP_DIFFERENT},
        {"0", "-0", SGI_MCP_SAME},
        {"-42", "42", SGI_MCP_DIFFERENT},
        {"42", "43", SGI_MCP_DIFFERENT},
        {"9007199254740993", "9007199254740992", SGI_MCP_DIFFERENT},
        {"9223372036854775808", "9223372036854775809", SGI_MCP_DIFFERENT},
        {"1e400", "1e400", SGI_MCP_SAME},
        {"1e400", "1e401", SGI_MCP_DIFFERENT},
        {"3.140", "3.14", SGI_MCP_SAME},
        {"3.14", "3.15", SGI_MCP_DIFFERENT},
        {"3", "3.5", SGI_MCP_DIFFERENT},
        {"", "0", SGI_MCP_DIFFERENT},
        {"-", "0", SGI_MCP_DIFFERENT},
        {"+42", "42", SGI_MCP_DIFFERENT},
        {"042", "42", SGI_MCP_DIFFERENT},
        {"0x2a", "42", SGI_MCP_DIFFERENT},
        {"42.", "42", SGI_MCP_DIFFERENT},
        {".5", "0.5", SGI_MCP_DIFFERENT},
        {"42e", "42", SGI_MCP_DIFFERENT},
        {"42e+", "42", SGI_MCP_DIFFERENT},
        {"42 1", "42", SGI_MCP_DIFFERENT},
        {"42e+0", "42", SGI_MCP_SAME},
        {"NaN", "42", SGI_MCP_DIFFERENT},
        {"{}", "{}", SGI_MCP_DIFFERENT},
        {"[]", "[]", SGI_MCP_DIFFERENT},
        {"null", "null", SGI_MCP_DIFFERENT},
        {"x", "", SGI_MCP_DIFFERENT},
        {"caf\xc3\xa9", "\"x\"", SGI_MCP_MALFORMED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_str header = fenced(sgi_str_of(rows[i].header));
        sgi_mcp_match match =
            sgi_mcp_match_param(&header, sgi_str_of(rows[i].value), &tm.mem);
        if (match != rows[i].match)
            fail_msg("%s against %s: %d", rows[i].header, rows[i].value, (int)match);
    }
}

static void a_parameter_without_header_is_missing_when_the_body_has_it(void **state)
{
    (void)state;
    static const char *const missing[] = {"\"\"", "\"x\"", "0", "1.0", "true", "false"};
    static const char *const fine[] = {"", "null", "{}", "[]", "1.5", "1e300"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_int_equal(sgi_mcp_match_param(NULL, sgi_str_of(missing[i]), &tm.mem),
                         SGI_MCP_MISSING);
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        assert_int_equal(sgi_mcp_match_param(NULL, sgi_str_of(fine[i]), &tm.mem),
                         SGI_MCP_SAME);
}

/* A header written by one side matches at the other side, whatever the text is. */
static void what_is_written_matches(void **state)
{
    (void)state;
    uint32_t chance = 7;
    for (int run = 0; run < 20000; run++) {
        char json[64] = "\"";
        size_t len = 1;
        chance = chance * 1664525u + 1013904223u;
        for (size_t left = chance >> 28; left; left--) {
            static const char *const parts[] = {
                " ",       "a",   "=?base64?",      "?=",   "\\n", "\\u0000", "\xc3\xa9",
                "\\u20ac", "\\t", "\\ud83d\\ude00", "\\\\", "="};
            chance = chance * 1664525u + 1013904223u;
            const char *part = parts[(chance >> 8) % 12];
            if (len + strlen(part) + 2 > sizeof json)
                break;
            strcpy(json + len, part);
            len += strlen(part);
        }
        json[len++] = '"';
        sgi_str value = {json, len};
        assert_int_equal(sgi_mcp_add_param_value(&out, value), SGI_MCP_WRITTEN);
        sgi_str header = fenced(sgi_buf_str(&out));
        for (size_t i = 0; i < header.n; i++)
            assert_true(header.p[i] >= ' ' && header.p[i] <= '~');
        assert_int_equal(sgi_mcp_match_param(&header, value, &tm.mem), SGI_MCP_SAME);
        sgi_buf_reset(&out, 1024);
    }
}

static void without_memory_nothing_is_the_same(void **state)
{
    (void)state;
    tm.fail_from = 1;
    assert_int_equal(match_name("plain", "\"plain\""), SGI_MCP_SAME);
    assert_int_equal(match_name("=?base64?SGVsbG8=?=", "\"Hello\""), SGI_MCP_NOMEM);
    sgi_str header = SGI_STR("=?base64?SGVsbG8=?=");
    assert_int_equal(sgi_mcp_match_param(&header, SGI_STR("\"Hello\""), &tm.mem),
                     SGI_MCP_NOMEM);
    assert_int_equal(sgi_mcp_add_param_value(&out, SGI_STR("42")), SGI_MCP_WRITTEN);
    assert_true(out.failed);
    for (size_t k = 1; k <= 2; k++) { /* first the decoded text, then the header */
        sgi_buf_reset(&out, 0);
        test_mem_rearm(&tm);
        tm.fail_at = k;
        assert_int_equal(sgi_mcp_add_param_value(&out, SGI_STR("\"a\\nb\"")),
                         SGI_MCP_WRITTEN);
        assert_true(out.failed);
    }
    sgi_buf_reset(&out, 0);
    test_mem_rearm(&tm);
    assert_int_equal(sgi_mcp_add_param_value(&out, SGI_STR("\"a\\nb\"")),
                     SGI_MCP_WRITTEN);
    check_out("=?base64?YQpi?=");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_name_of_a_method_is_where_the_specification_says),
        CASE(values_are_wrapped_only_when_they_must_be),
        CASE(values_are_read_back),
        CASE(what_is_not_the_one_spelling_is_malformed),
        CASE(names_match_as_they_are_and_decoded),
        CASE(names_that_differ_are_told),
        CASE(methods_and_versions_know_no_base64),
        CASE(parameters_are_written_by_their_kind),
        CASE(parameters_are_compared_by_value),
        CASE(a_parameter_without_header_is_missing_when_the_body_has_it),
        CASE(what_is_written_matches),
        CASE(without_memory_nothing_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
