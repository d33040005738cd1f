/* The functions of easy.h that need no session: writing and reading JSON, results of
 * tools, and what is sent by printf or is not UTF-8. */
#include <segue/easy.h>

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- pairs ---- */

/* volatile, so that the compiler does not warn of a NULL for %s */
static const char *volatile nothing;

#define PAIRS(wanted, ...)                                                               \
    do {                                                                                 \
        char *made = NULL;                                                               \
        assert_int_equal(segue_json_pairs(&made, __VA_ARGS__), SEGUE_OK);                \
        assert_string_equal(made, wanted);                                               \
        free(made);                                                                      \
    } while (0)

#define NO_PAIRS(...)                                                                    \
    do {                                                                                 \
        char *made = NULL;                                                               \
        assert_int_equal(segue_json_pairs(&made, __VA_ARGS__), SEGUE_E_INVALID);         \
        assert_null(made);                                                               \
    } while (0)

static void pairs_become_an_object(void **state)
{
    char *unmade = NULL;
    (void)state;
    PAIRS("{}", " ");
    PAIRS("{\"city\":\"Bonn\",\"days\":3}", "city=%s days=%d", "Bonn", 3);
    PAIRS("{\"a\":\"\\\"\\\\\\n\",\"b\":null}", " a=%s\n\tb=%s ", "\"\\\n", nothing);
    PAIRS("{\"a\":\"ab\",\"b\":\"\"}", "a=%.*s b=%.*s", 2, "abc", 0, "x");
    PAIRS("{\"a\":-5,\"b\":5,\"c\":6,\"d\":7,\"e\":8,\"f\":9}",
          "a=%ld b=%u c=%lu d=%llu e=%zu f=%lli", -5L, 5U, 6UL, 7ULL, (size_t)8, 9LL);
    PAIRS("{\"a\":-9223372036854775808,\"b\":18446744073709551615}", "a=%lld b=%llu",
          (long long)INT64_MIN, (unsigned long long)UINT64_MAX);
    PAIRS("{\"a\":true,\"b\":[1,2],\"c\":{}}", "a:true b:%s c:%.*s", "[1,2]", 2, "{}?");
    PAIRS("{\"a\":0.1,\"b\":-1e+300,\"c\":3,\"d\":0.30000000000000004}",
          "a=%f b=%g c=%e d=%g", 0.1, -1e300, 3.0, 0.1 + 0.2);
    PAIRS("{\"\xc3\xa9\":1}", "\xc3\xa9=%d", 1);
    assert_int_equal(segue_json_pairs(NULL, "a=%d", 1), SEGUE_E_INVALID);
    const char *none = NULL;
    assert_int_equal(segue_json_pairs(&unmade, none), SEGUE_E_INVALID);
    assert_null(unmade);
}

static void malformed_pairs_are_refused(void **state)
{
    const char *format;
    char *unmade = NULL;
    (void)state;
    NO_PAIRS("a=%s", "\xff");
    NO_PAIRS("a=%f", NAN);
    NO_PAIRS("a=%f b=%d", -INFINITY, 1);
    NO_PAIRS("a=%.*s", -1, "x");
    NO_PAIRS("a:%s", nothing);
    NO_PAIRS("a:%s", "");
    NO_PAIRS("a:%d", 1);
    NO_PAIRS("a=%d,b=%d", 1, 2);
    static const char *const formats[] = {
        "a",    "=1",   "a=",     "a=1", "a:",   "a b=1", "\"a\":1", "a=%",
        "a=%x", "a=%l", "a=%.3f", "%=1", "a :1", "a:%",   "a=%5d",   "\xff:1"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        format = formats[i];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
        if (segue_json_pairs(&unmade, format) != SEGUE_E_INVALID)
            fail_msg("%s is accepted: %s", format, unmade);
#pragma GCC diagnostic pop
    }
    assert_null(unmade);
}

/* A locale with another decimal point changes nothing. */
static void numbers_have_a_point_in_every_locale(void **state)
{
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    (void)state;
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++)
        setlocale(LC_NUMERIC, locales[i]); /* a machine may have none of them */
    PAIRS("{\"a\":1.5,\"b\":-1.25e-30}", "a=%f b=%f", 1.5, -1.25e-30);
    setlocale(LC_NUMERIC, "C");
}

/* ---- results ---- */

static void results_are_read(void **state)
{
    static const char result[] =
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\\u00e9\"},"
        "{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"x/y\"},5,"
        "{\"type\":\"text\"},{\"text\":\"no\",\"type\":\"texts\"},"
        "{\"text\":\"b\",\"type\":\"te\\u0078t\"}],"
        "\"structuredContent\":{\"n\":-7,\"x\":1.5,\"on\":true,\"off\":false,"
        "\"s\":\"text\"},\"isError\":true}";
    const char *value;
    size_t len, room = 8;
    int64_t n;
    double x;
    int32_t is_on;
    char *text = NULL, word[8];
    (void)state;
    assert_int_equal(segue_result_is_error(result, SEGUE_TO_NUL), 1);
    assert_int_equal(segue_result_is_error("{\"isError\":false}", 17), 0);
    assert_int_equal(segue_result_is_error("{\"isError\":1}", 13), 0);
    assert_int_equal(segue_result_is_error("{}", 2), 0);
    assert_int_equal(segue_result_is_error(NULL, 0), 0);
    assert_int_equal(segue_result_text(result, sizeof result - 1, &text), SEGUE_OK);
    assert_string_equal(text, "a\xc3\xa9"
                              "b");
    free(text);
    assert_int_equal(segue_result_text("{}", 2, &text), SEGUE_OK);
    assert_string_equal(text, "");
    free(text);
    text = NULL;
    assert_int_equal(segue_result_text("5", 1, &text), SEGUE_E_INVALID);
    assert_int_equal(segue_result_text(NULL, 0, &text), SEGUE_E_INVALID);
    assert_int_equal(segue_result_text("{}", 2, NULL), SEGUE_E_INVALID);
    assert_null(text);
#define GET(name) segue_result_get(result, SEGUE_TO_NUL, name, &value, &len)
    assert_int_equal(GET("n"), SEGUE_OK);
    assert_int_equal(segue_json_int(value, len, &n), SEGUE_OK);
    assert_int_equal(n, -7);
    assert_int_equal(segue_json_number(value, len, &x), SEGUE_OK);
    assert_true(x < -6.9 && x > -7.1);
    assert_int_equal(segue_json_bool(value, len, &is_on), SEGUE_E_INVALID);
    assert_int_equal(GET("x"), SEGUE_OK);
    assert_int_equal(segue_json_int(value, len, &n), SEGUE_E_INVALID);
    assert_int_equal(segue_json_number(value, len, &x), SEGUE_OK);
    assert_true(x > 1.4 && x < 1.6);
    assert_int_equal(GET("on"), SEGUE_OK);
    assert_int_equal(segue_json_bool(value, len, &is_on), SEGUE_OK);
    assert_int_equal(is_on, 1);
    assert_int_equal(GET("off"), SEGUE_OK);
    assert_int_equal(segue_json_bool(value, len, &is_on), SEGUE_OK);
    assert_int_equal(is_on, 0);
    assert_int_equal(GET("s"), SEGUE_OK);
    assert_int_equal(segue_json_text(value, len, word, &room), SEGUE_OK);
    assert_string_equal(word, "text");
    assert_int_equal(segue_json_number(value, len, &x), SEGUE_E_INVALID);
    assert_int_equal(GET("none"), SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_result_get("{}", 2, "n", &value, &len), SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_result_get("{}", 2, NULL, &value, &len), SEGUE_E_INVALID);
    assert_int_equal(segue_result_get(NULL, 0, "n", &value, &len), SEGUE_E_INVALID);
}

/* ---- sending ---- */

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    segue_session *session;
    void (*send)(segue_call *call);
} stage;

static void on_call(void *user, segue_call *call)
{
    stage *s = user;
    assert_ptr_equal(segue_call_runtime(call), s->runtime);
    s->send(call);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* Runs a tool that sends something, and returns the text of its result. */
static char *sent(void (*send)(segue_call *call))
{
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    stage s = {.send = send};
    segue_transport *near, *far;
    char *result = NULL, *text = NULL;
    options.on_call = on_call;
    options.user = &s;
    assert_int_equal(segue_runtime_new(NULL, &s.runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(s.runtime, NULL, &s.server, NULL), SEGUE_OK);
    assert_int_equal(
        segue_server_add(s.server, SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &options, NULL),
        SEGUE_OK);
    assert_int_equal(segue_transport_pair(s.runtime, &near, &far), SEGUE_OK);
    assert_int_equal(segue_server_attach(s.server, far, NULL), SEGUE_OK);
    assert_int_equal(segue_session_open(s.runtime, near, NULL, NULL, &s.session, NULL),
                     SEGUE_OK);
    assert_ptr_equal(segue_session_runtime(s.session), s.runtime);
    assert_int_equal(segue_call_tool(s.session, "t", NULL, 0, &result, NULL), SEGUE_OK);
    assert_int_equal(segue_result_text(result, SEGUE_TO_NUL, &text), SEGUE_OK);
    free(result);
    segue_session_free(s.session);
    segue_server_free(s.server);
    segue_runtime_free(s.runtime);
    return text;
}

static void send_formatted(segue_call *call)
{
    char large[1000];
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = 0;
    assert_int_equal(segue_call_printf(call, "%d of %s;", 3, "\xc3\xa9"), SEGUE_OK);
    assert_int_equal(segue_call_printf(call, "%.*s;", 255, large), SEGUE_OK);
    assert_int_equal(segue_call_printf(call, "%s", large), SEGUE_OK);
    assert_int_equal(segue_call_printf(call, "%s", "\xff"), SEGUE_E_INVALID);
    assert_int_equal(segue_call_printf(NULL, "%s", "x"), SEGUE_E_INVALID);
}

static void formatted_text_is_sent(void **state)
{
    (void)state;
    char *text = sent(send_formatted);
    assert_int_equal(strlen(text), strlen("3 of \xc3\xa9;") + 256 + 999);
    assert_memory_equal(text, "3 of \xc3\xa9;xxx", 11);
    free(text);
}

#define LOSS "\xef\xbf\xbd"

/* Bytes, what is sent of them as the last ones, and how many begin a character at the
 * end. */
static const struct {
    const char *bytes, *text;
    size_t rest;
} lossy[] = {
    {"plain", "plain", 0},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 0},
    {"a\xff"
     "b",
     "a" LOSS "b", 0},
    {"\x80\xbf", LOSS LOSS, 0},
    {"\xc0\xaf\xe0\x80\xbf", LOSS LOSS LOSS LOSS LOSS, 0},
    {"\xed\xa0\x80", LOSS LOSS LOSS, 0},
    {"\xf4\x91\x92\x93\xff", LOSS LOSS LOSS LOSS LOSS, 0},
    /* as the table of Unicode, chapter 3, "U+FFFD Substitution of Maximal Subparts" */
    {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", LOSS LOSS LOSS LOSS "A", 0},
    {"a\xc3", "a" LOSS, 1},
    {"a\xe2\x82", "a" LOSS, 2},
    {"\xf0\x9f\x98", LOSS, 3},
    {"\xf0\x9f\x98\xff", LOSS LOSS, 0},
};

static void send_lossy(segue_call *call)
{
    for (size_t i = 0; i < sizeof lossy / sizeof *lossy; i++) {
        size_t len = strlen(lossy[i].bytes), rest = 99;
        assert_int_equal(
            segue_call_send_lossy(call, lossy[i].bytes, len - lossy[i].rest, &rest, NULL),
            SEGUE_OK);
        assert_int_equal(rest, 0);
        assert_int_equal(segue_call_send_text(call, "|", 1, NULL), SEGUE_OK);
        assert_int_equal(segue_call_send_lossy(call, lossy[i].bytes, len, NULL, NULL),
                         SEGUE_OK);
        assert_int_equal(segue_call_send_text(call, "\n", 1, NULL), SEGUE_OK);
        assert_int_equal(segue_call_send_lossy(call, lossy[i].bytes + len - lossy[i].rest,
                                               lossy[i].rest, &rest, NULL),
                         SEGUE_OK);
        assert_int_equal(rest, lossy[i].rest);
    }
    assert_int_equal(segue_call_send_lossy(call, NULL, 1, NULL, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_call_send_lossy(NULL, "x", 1, NULL, NULL), SEGUE_E_INVALID);
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    (void)state;
    char *text = sent(send_lossy), *line = text;
    for (size_t i = 0; i < sizeof lossy / sizeof *lossy; i++) {
        char *end = strchr(line, '\n'), *middle = strchr(line, '|');
        assert_non_null(end);
        *end = *middle = 0;
        if (strcmp(middle + 1, lossy[i].text) != 0)
            fail_msg("row %zu: %s", i, middle + 1);
        size_t whole = strlen(lossy[i].text) - (lossy[i].rest ? strlen(LOSS) : 0);
        assert_int_equal(strlen(line), whole);
        assert_memory_equal(line, lossy[i].text, whole);
        line = end + 1;
    }
    assert_string_equal(line, "");
    free(text);
}

/* ---- statuses and errors ---- */

static void statuses_have_texts(void **state)
{
    segue_error *error = NULL;
    (void)state;
    assert_string_equal(segue_status_text(SEGUE_E_TIMEOUT), "timed out");
    assert_string_equal(segue_status_text(7), "unknown status");
    assert_int_equal(segue_error_new(SEGUE_E_IO, "no paper", &error), SEGUE_OK);
    assert_int_equal(segue_error_read(error)->status, SEGUE_E_IO);
    assert_int_equal(segue_error_read(error)->retryable, 1);
    assert_string_equal(segue_error_read(error)->message, "no paper");
    segue_error_free(error);
    assert_int_equal(segue_error_new(SEGUE_E_IO, NULL, &error), SEGUE_OK);
    assert_string_equal(segue_error_read(error)->message, segue_status_text(SEGUE_E_IO));
    segue_error_free(error);
    error = NULL;
    assert_int_equal(segue_error_new(SEGUE_OK, "x", &error), SEGUE_E_INVALID);
    assert_int_equal(segue_error_new(SEGUE_E_IO, "\xff", &error), SEGUE_E_INVALID);
    assert_int_equal(segue_error_new(SEGUE_E_IO, "x", NULL), SEGUE_E_INVALID);
    assert_null(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_become_an_object),
        cmocka_unit_test(malformed_pairs_are_refused),
        cmocka_unit_test(numbers_have_a_point_in_every_locale),
        cmocka_unit_test(results_are_read),
        cmocka_unit_test(formatted_text_is_sent),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced),
        cmocka_unit_test(statuses_have_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
