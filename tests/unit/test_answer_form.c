/* Answers that fit a question and answers that do not, by the restricted schemas of
 * elicitation. */
#include "engine/input/answer_form.h"

#include "support/test_mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define FORM(properties, more)                                                           \
    "{\"mode\":\"form\",\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\","     \
    "\"properties\":{" properties "}" more "}}"
#define FIELD(schema) FORM("\"f\":{" schema "}", "")
#define ACCEPT(content) "{\"action\":\"accept\",\"content\":" content "}"
#define VALUE(value) ACCEPT("{\"f\":" value "}")

typedef struct row {
    const char *params, *answer;
    bool fits;
} row;

static bool asked(const test_mem *mem, const char *method, const char *params,
                  const char *answer)
{
    sgi_json schema = sgi_json_get(sgi_str_of(params), "requestedSchema");
    return sgi_answer_is_valid(sgi_str_of(method), sgi_str_of(answer)) &&
           sgi_answer_fits_form(schema, sgi_str_of(answer), &mem->mem);
}

static void run(const row *rows, size_t count)
{
    test_mem mem;
    test_mem_init(&mem);
    for (size_t i = 0; i < count; i++) {
        bool fits = asked(&mem, "elicitation/create", rows[i].params, rows[i].answer);
        if (fits != rows[i].fits)
            print_error("%s: %s\n", rows[i].params, rows[i].answer);
        assert_int_equal(fits, rows[i].fits);
    }
    assert_int_equal(mem.live, 0);
}

#define RUN(rows) run(rows, sizeof(rows) / sizeof *(rows))

static void actions_and_content(void **state)
{
    static const char any[] = FORM("", "");
    static const row rows[] = {
        {any, ACCEPT("{}"), true},
        {any, ACCEPT("{\"more\":{}}"), true},
        {any, "{\"action\":\"accept\"}", true},
        {any, ACCEPT("null"), false},
        {any, ACCEPT("[]"), false},
        {any, "{\"action\":\"decline\"}", true},
        {any, "{\"action\":\"cancel\",\"content\":{}}", true},
        {any, "{\"action\":\"decline\",\"content\":null}", true},
        {any, "{\"action\":\"decline\",\"content\":7}", false},
        {any, "{\"action\":\"banana\"}", false},
        {any, "{\"action\":null}", false},
        {any, "{}", false},
        {any, "7", false},
        {any, "null", false},
        {"{}", ACCEPT("{\"f\":[]}"), true},
        {"{\"mode\":\"url\",\"url\":\"https://a\"}", "{\"action\":\"accept\"}", true},
        {"{\"requestedSchema\":7}", ACCEPT("{}"), true},
    };
    (void)state;
    RUN(rows);
}

static void required_fields(void **state)
{
    static const char two[] =
        FORM("\"a\":{\"type\":\"string\"}", ",\"required\":[\"a\",\"\\u00e9\\n\"]");
    static const row rows[] = {
        {two, ACCEPT("{\"a\":\"x\",\"\xc3\xa9\\n\":1}"), true},
        {two, ACCEPT("{\"a\":\"x\",\"\\u00E9\\u000a\":1}"), true},
        {two, ACCEPT("{\"a\":\"x\"}"), false},
        {two, ACCEPT("{\"\xc3\xa9\\n\":1}"), false},
        {two, ACCEPT("{}"), false},
        {two, "{\"action\":\"accept\"}", false},
        {two, "{\"action\":\"decline\"}", true},
        {two, ACCEPT("{\"a\":null,\"\\u00e9\\n\":1}"), false},
        {FORM("\"a\":{\"type\":[\"string\",\"null\"]}", ",\"required\":[\"a\"]"),
         ACCEPT("{\"a\":null}"), true},
        {FORM("", ",\"required\":[\"a\",\"a\"]"), ACCEPT("{\"a\":1}"), true},
        {FORM("", ",\"required\":[\"a\",\"b\"]"), ACCEPT("{\"a\":1,\"c\":1}"), false},
        {FORM("", ",\"required\":7"), ACCEPT("{}"), true},
        {FORM("", ",\"required\":[7]"), ACCEPT("{}"), true},
    };
    (void)state;
    RUN(rows);
}

static void strings(void **state)
{
    static const char text[] = FIELD("\"type\":\"string\"");
    static const char two[] =
        FIELD("\"type\":\"string\",\"minLength\":2,\"maxLength\":2");
    static const char one_of[] = FIELD("\"type\":\"string\",\"enum\":[\"a\\\"\",\"b\"]");
    static const char titled[] =
        FIELD("\"type\":\"string\",\"oneOf\":[{\"const\":\"#F\",\"title\":\"Red\"}]");
    static const row rows[] = {
        {text, VALUE("\"\""), true},
        {text, VALUE("1"), false},
        {text, VALUE("null"), true},
        {text, VALUE("[\"x\"]"), false},
        {text, ACCEPT("{\"g\":1}"), true},
        {two, VALUE("\"ab\""), true},
        {two, VALUE("\"a\""), false},
        {two, VALUE("\"abc\""), false},
        {two, VALUE("\"\xc3\xa9\\n\""), true},
        {two, VALUE("\"\\ud83d\\ude00\xf0\x9f\x98\x80\""), true},
        {two, VALUE("\"\\uD83D\\uDE00\""), false},
        {two, VALUE("\"\\u00e9\\u00e9\""), true},
        {one_of, VALUE("\"b\""), true},
        {one_of, VALUE("\"a\\u0022\""), true},
        {one_of, VALUE("\"\\u0062\""), true},
        {one_of, VALUE("\"c\""), false},
        {titled, VALUE("\"#F\""), true},
        {titled, VALUE("\"Red\""), false},
        {FIELD("\"type\":\"string\",\"enum\":7"), VALUE("\"x\""), true},
    };
    (void)state;
    RUN(rows);
}

static void numbers_and_booleans(void **state)
{
    static const char number[] = FIELD("\"type\":\"number\",\"minimum\":0,\"maximum\":1");
    static const char whole[] = FIELD("\"type\":\"integer\"");
    static const char flag[] = FIELD("\"type\":\"boolean\"");
    static const row rows[] = {
        {number, VALUE("0.5"), true},     {number, VALUE("1"), true},
        {number, VALUE("1.01"), false},   {number, VALUE("-0.01"), false},
        {number, VALUE("1e400"), false},  {number, VALUE("-1e400"), false},
        {number, VALUE("\"1\""), false},  {number, VALUE("true"), false},
        {whole, VALUE("2.0"), true},      {whole, VALUE("1e3"), true},
        {whole, VALUE("1.5"), false},     {whole, VALUE("1e30"), true},
        {whole, VALUE("-1e400"), true},   {whole, VALUE("\"2\""), false},
        {flag, VALUE("true"), true},      {flag, VALUE("false"), true},
        {flag, VALUE("\"true\""), false}, {flag, VALUE("0"), false},
        {flag, VALUE("null"), true},
    };
    (void)state;
    RUN(rows);
}

static void choices_of_several(void **state)
{
    static const char plain[] =
        FIELD("\"type\":\"array\",\"minItems\":1,\"maxItems\":2,"
              "\"items\":{\"type\":\"string\",\"enum\":[\"a\",\"b\",\"c\"]}");
    static const char titled[] =
        FIELD("\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"a\"}]}");
    static const row rows[] = {
        {plain, VALUE("[\"a\"]"), true},  {plain, VALUE("[\"a\",\"c\"]"), true},
        {plain, VALUE("[]"), false},      {plain, VALUE("[\"a\",\"b\",\"c\"]"), false},
        {plain, VALUE("[\"d\"]"), false}, {plain, VALUE("[1]"), false},
        {plain, VALUE("\"a\""), false},   {titled, VALUE("[]"), true},
        {titled, VALUE("[\"a\"]"), true}, {titled, VALUE("[\"b\"]"), false},
    };
    (void)state;
    RUN(rows);
}

static void odd_schemas_ask_for_nothing(void **state)
{
    static const row rows[] = {
        {FIELD(""), VALUE("{}"), true},
        {FIELD("\"type\":\"object\""), VALUE("1"), true},
        {FIELD("\"type\":[\"string\",\"null\"]"), VALUE("null"), true},
        {FORM("\"f\":7", ""), VALUE("1"), true},
        {"{\"requestedSchema\":{\"properties\":[]}}", VALUE("1"), true},
    };
    (void)state;
    RUN(rows);
}

static void answers_of_models_and_roots(void **state)
{
    static const struct {
        const char *method, *answer;
        bool fits;
    } rows[] = {
        {"sampling/createMessage",
         "{\"role\":\"assistant\",\"model\":\"m\",\"content\":{}}", true},
        {"sampling/createMessage",
         "{\"role\":\"assistant\",\"model\":\"m\",\"content\":[]}", true},
        {"sampling/createMessage", "{\"role\":\"assistant\",\"model\":\"m\"}", false},
        {"sampling/createMessage", "{\"model\":\"m\",\"content\":{}}", true},
        {"sampling/createMessage", "{\"role\":\"assistant\",\"content\":{}}", true},
        {"sampling/createMessage", "{\"content\":\"hello\"}", false},
        {"sampling/createMessage", "\"hello\"", false},
        {"roots/list", "{\"roots\":[]}", true},
        {"roots/list", "{\"roots\":{}}", false},
        {"roots/list", "{}", false},
        {"roots/list", "[]", false},
        {"com.example/any", "{}", true},
        {"com.example/any", "[]", false},
    };
    test_mem mem;
    (void)state;
    test_mem_init(&mem);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(asked(&mem, rows[i].method, "{}", rows[i].answer), rows[i].fits);
}

/* Without memory the answer is not compared, and the handler gets the answer
 * nevertheless. */
static void without_memory_it_passes(void **state)
{
    test_mem mem;
    (void)state;
    test_mem_init(&mem);
    mem.fail_at = 1;
    assert_true(asked(&mem, "elicitation/create",
                      FIELD("\"type\":\"string\",\"enum\":[\"\\n\"]"),
                      VALUE("\"\\u000a\"")));
    assert_int_equal(mem.live, 0);
}

/* Writes ["0000000","0000001", ... */
static void write_names(char *text, int count)
{
    size_t n = 0;
    for (int i = 0; i < count; i++)
        n += (size_t)sprintf(text + n, "%s\"%07d\"", i ? "," : "", i);
}

/* A question or an answer that needs too much work to compare is not compared. */
static void work_is_bounded(void **state)
{
    enum { FEW = 200, MANY = 200000 };
    test_mem mem;
    (void)state;
    test_mem_init(&mem);
    char *names = malloc(MANY * 10 + 1), *text = malloc(MANY * 12 + 400);
    static const char form[] = "{\"requestedSchema\":{\"required\":[%s]}}";
    write_names(names, FEW);
    sprintf(text, form, names);
    assert_false(asked(&mem, "elicitation/create", text, ACCEPT("{}")));
    write_names(names, MANY);
    sprintf(text, form, names);
    assert_true(asked(&mem, "elicitation/create", text, ACCEPT("{}")));
    size_t n = (size_t)sprintf(text, "{\"action\":\"accept\",\"content\":{\"a\":0");
    for (int i = 0; i < MANY; i++)
        n += (size_t)sprintf(text + n, ",\"%d\":0", i);
    strcpy(text + n, "}}");
    char asks[1200] = "{\"requestedSchema\":{\"required\":[\"a\"],\"properties\":{\"a\":{"
                      "\"title\":\"";
    assert_true(asked(&mem, "elicitation/create",
                      "{\"requestedSchema\":{\"required\":[\"a\"]}}", text));
    n = strlen(asks);
    memset(asks + n, 'x', 1000);
    strcpy(asks + n + 1000, "\"}}}}");
    assert_false(asked(&mem, "elicitation/create", asks, text));
    free(names);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_and_content),
        cmocka_unit_test(required_fields),
        cmocka_unit_test(strings),
        cmocka_unit_test(numbers_and_booleans),
        cmocka_unit_test(choices_of_several),
        cmocka_unit_test(odd_schemas_ask_for_nothing),
        cmocka_unit_test(answers_of_models_and_roots),
        cmocka_unit_test(without_memory_it_passes),
        cmocka_unit_test(work_is_bounded),
    };
    return cmocka_run_group_tests_name("answer_form", tests, NULL, NULL);
}
