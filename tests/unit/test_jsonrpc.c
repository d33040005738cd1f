/* The envelope (R-0-1, R-0-2): the kind of a message and what is refused, ids in one form
 * for equal ids, error messages that can be read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/test_mem.h"
#include "wire/jsonrpc.h"

static test_mem tm;
static sgi_json_reader reader;

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 5, len);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    static segue_hooks hooks = {.struct_size = sizeof hooks, .random = fixed_random};
    test_mem_init(&tm);
    sgi_env env = {&tm.mem, &hooks};
    sgi_json_reader_init(&reader, &env, 1 << 20, 64);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_json_reader_free(&reader);
    assert_int_equal(tm.live, 0);
    return 0;
}

static sgi_message sort(const char *text)
{
    sgi_json_member members[SGI_MESSAGE_MEMBERS];
    size_t count;
    sgi_message message;
    assert_true(sgi_json_read(&reader, sgi_str_of(text), members, SGI_MESSAGE_MEMBERS,
                              &count, NULL));
    sgi_message_classify(&message, members, count);
    return message;
}

static void assert_span(sgi_json span, const char *expected)
{
    assert_int_equal(span.n, strlen(expected));
    if (span.n)
        assert_memory_equal(span.p, expected, span.n);
}

static void sorts_messages_by_their_members(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        sgi_message_kind kind;
        const char *id;
    } rows[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}", SGI_MESSAGE_REQUEST, "1"},
        {"{\"method\":\"a\",\"params\":{},\"id\":\"x\",\"jsonrpc\":\"2.0\"}",
         SGI_MESSAGE_REQUEST, "\"x\""},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}", SGI_MESSAGE_NOTIFICATION, ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", SGI_MESSAGE_RESULT, "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"\"}}",
         SGI_MESSAGE_ERROR, "1"},
        {"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1}}", SGI_MESSAGE_ERROR, ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1}}", SGI_MESSAGE_ERROR,
         ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":9223372036854775807,\"method\":\"a\"}",
         SGI_MESSAGE_REQUEST, "9223372036854775807"},
        {"{\"jsonrpc\":\"2.0\",\"\\u0069d\":7,\"method\":\"a\",\"other\":[]}",
         SGI_MESSAGE_REQUEST, "7"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_message message = sort(rows[i].text);
        assert_int_equal(message.kind, rows[i].kind);
        assert_null(message.problem);
        assert_span(message.id, rows[i].id);
    }
}

static void refuses_what_is_no_message_but_keeps_a_usable_id(void **state)
{
    (void)state;
    static const struct {
        const char *text, *id;
    } rows[] = {
        {"{}", ""},
        {"{\"id\":1,\"method\":\"a\"}", "1"},
        {"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}", "1"},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":9223372036854775808,\"method\":\"a\"}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"a\"}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"a\"}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":null}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"result\":{}}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1}}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"1\"}}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":null}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"result\":{}}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_message message = sort(rows[i].text);
        if (message.kind != SGI_MESSAGE_INVALID)
            print_error("%s\n", rows[i].text);
        assert_int_equal(message.kind, SGI_MESSAGE_INVALID);
        assert_non_null(message.problem);
        assert_span(message.id, rows[i].id);
    }
}

static void assert_canonical(const char *id, const char *expected)
{
    sgi_buf out;
    sgi_buf_init(&out, &tm.mem);
    sgi_id_write_canonical(sgi_str_of(id), &out);
    assert_span(sgi_buf_str(&out), expected);
    sgi_buf_free(&out);
}

static void equal_ids_share_one_form(void **state)
{
    (void)state;
    assert_canonical("1", "1");
    assert_canonical("1.0", "1");
    assert_canonical("10e-1", "1");
    assert_canonical("-0", "0");
    assert_canonical("-9223372036854775808", "-9223372036854775808");
    assert_canonical("9223372036854775807", "9223372036854775807");
    assert_canonical("\"1\"", "\"1\"");
    assert_canonical("\"\"", "\"\"");
    assert_canonical("\"\\u0061\\/\"", "\"a/\"");
    assert_canonical("\"\\u0022\\u005c\"", "\"\\\"\\\\\"");
    assert_canonical("\"\\u0000\"", "\"\\u0000\"");
    assert_canonical("\"\xc3\xa4\"", "\"\xc3\xa4\"");
    assert_canonical("\"\\u00e4\"", "\"\xc3\xa4\"");
}

static void an_id_says_when_memory_runs_out(void **state)
{
    (void)state;
    for (size_t at = 1; at < 4; at++) {
        sgi_buf out;
        sgi_buf_init(&out, &tm.mem);
        test_mem_rearm(&tm);
        tm.fail_at = at;
        sgi_id_write_canonical(SGI_STR("\"\\u0061\""), &out);
        assert_int_equal(out.failed, tm.failed > 0);
        assert_int_equal(out.failed, at <= 2);
        sgi_buf_free(&out);
    }
}

static void error_messages_read_back(void **state)
{
    (void)state;
    sgi_buf out;
    sgi_buf_init(&out, &tm.mem);
    sgi_write_rpc_error(&out, SGI_STR("\"a\""), -32603, SGI_STR("a \"b\"\n\x01"),
                        SGI_STR("{\"reason\":\"x\"}"));
    assert_true(sgi_buf_terminate(&out));
    assert_string_equal(
        out.p, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32603,"
               "\"message\":\"a \\\"b\\\"\\n\\u0001\",\"data\":{\"reason\":\"x\"}}}");
    sgi_message message = sort(out.p);
    assert_int_equal(message.kind, SGI_MESSAGE_ERROR);
    assert_true(sgi_json_string_is(sgi_json_get(message.error, "message"),
                                   SGI_STR("a \"b\"\n\x01")));
    sgi_buf_free(&out);
}

/* In the schema the id of an error is optional and never null. */
static void an_unknown_id_is_left_out_of_an_error(void **state)
{
    (void)state;
    sgi_buf out;
    sgi_buf_init(&out, &tm.mem);
    sgi_write_rpc_error(&out, (sgi_json){0}, -32700, SGI_STR("x"), (sgi_json){0});
    assert_true(sgi_buf_terminate(&out));
    assert_string_equal(
        out.p, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"x\"}}");
    sgi_buf_free(&out);
}

/* Some writers escape each slash. */
static void a_method_may_be_escaped(void **state)
{
    static const struct {
        const char *json, *text;
    } rows[] = {{"\"tools/call\"", "tools/call"},
                {"\"tools\\/call\"", "tools/call"},
                {"\"\\u0074ools\\u002Fcall\"", "tools/call"},
                {"\"\\u00e9\"", "\xc3\xa9"},
                {"\"\"", ""},
                {"\"a\\u0000b\"", ""},
                {"7", ""},
                {"null", ""}};
    char room[SGI_NAME_MAX], quoted[SGI_NAME_MAX + 8];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_span(sgi_method_text(sgi_str_of(rows[i].json), room), rows[i].text);
    assert_span(sgi_method_text((sgi_json){0}, room), "");
    /* A method of the maximum length, and one character more. */
    for (int more = 0; more < 2; more++) {
        snprintf(quoted, sizeof quoted, "\"\\/%0*d\"", SGI_NAME_MAX - 4 + more, 0);
        assert_int_equal(sgi_method_text(sgi_str_of(quoted), room).n,
                         more ? 0 : SGI_NAME_MAX - 3);
    }
}

/* The id of a call is known even when the call is malformed. */
static void calls_are_known_when_they_are_malformed(void **state)
{
    (void)state;
    sgi_message m = sort("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":7}");
    assert_int_equal(m.kind, SGI_MESSAGE_INVALID);
    assert_true(m.is_call);
    m = sort("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}");
    assert_int_equal(m.kind, SGI_MESSAGE_INVALID);
    assert_false(m.is_call);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(sorts_messages_by_their_members),
        CASE(refuses_what_is_no_message_but_keeps_a_usable_id),
        CASE(equal_ids_share_one_form),
        CASE(an_id_says_when_memory_runs_out),
        CASE(error_messages_read_back),
        CASE(an_unknown_id_is_left_out_of_an_error),
        CASE(a_method_may_be_escaped),
        CASE(calls_are_known_when_they_are_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
