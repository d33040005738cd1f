/* Missing members of an answer to a form get the defaults of the form. */
#include "engine/client/defaults.h"
#include "support/test_mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

typedef struct form {
    test_mem tm;
    sgi_engine engine;
    segue_session session;
    sgi_form_defaults defaults;
} form;

static void form_init(form *f)
{
    memset(f, 0, sizeof *f);
    test_mem_init(&f->tm);
    f->engine.env.mem = &f->tm.mem;
    f->session.engine = &f->engine;
    f->session.options.fill_defaults = 1;
}

static bool keep(form *f, const char *properties)
{
    char *params = malloc(strlen(properties) + 64);
    sprintf(params, "{\"requestedSchema\":{\"properties\":%s}}", properties);
    bool kept = sgi_form_defaults_store(
        &f->defaults, &f->session, SGI_STR("elicitation/create"), sgi_str_of(params));
    free(params);
    return kept;
}

/* Checks that `answer` becomes `expected` with the defaults of the properties. */
static void check(const char *properties, const char *answer, const char *expected)
{
    form f;
    size_t len;
    form_init(&f);
    assert_true(keep(&f, properties));
    char *filled =
        sgi_form_defaults_fill_answer(&f.defaults, &f.tm.mem, sgi_str_of(answer), &len);
    assert_string_equal(filled, expected);
    assert_int_equal(len, strlen(expected));
    sgi_free(&f.tm.mem, filled, len + 1);
    sgi_form_defaults_free(&f.defaults, &f.tm.mem);
    assert_int_equal(f.tm.live, 0);
}

#define NAME "{\"name\":{\"type\":\"string\",\"default\":\"John\"}}"
#define ACCEPT(content) "{\"action\":\"accept\",\"content\":" content "}"

static void what_is_left_out_is_filled_in(void **state)
{
    (void)state;
    check(NAME, ACCEPT("{}"), ACCEPT("{\"name\":\"John\"}"));
    check(NAME, "{\"action\":\"accept\"}", ACCEPT("{\"name\":\"John\"}"));
    check(NAME, ACCEPT("{\"age\" : 1e400}"), ACCEPT("{\"age\":1e400,\"name\":\"John\"}"));
    check(NAME, "{\"content\":{},\"action\":\"accept\",\"_meta\":{\"a\":1}}",
          "{\"content\":{\"name\":\"John\"},\"action\":\"accept\",\"_meta\":{\"a\":1}}");
    check("{\"a\":{\"default\":3},\"b\":{},\"c\":{\"default\":true}}",
          ACCEPT("{\"b\":1}"), ACCEPT("{\"b\":1,\"a\":3,\"c\":true}"));
}

static void what_is_said_stays(void **state)
{
    (void)state;
    check(NAME, ACCEPT("{\"name\":\"\"}"), ACCEPT("{\"name\":\"\"}"));
    check(NAME, ACCEPT("{\"n\\u0061me\":\"x\"}"), ACCEPT("{\"n\\u0061me\":\"x\"}"));
    check("{\"n\\u0061me\":{\"default\":1}}", ACCEPT("{\"name\":2}"),
          ACCEPT("{\"name\":2}"));
    check("{\"\":{\"default\":1}}", ACCEPT("{\"\":2}"), ACCEPT("{\"\":2}"));
}

static void what_accepts_no_form_is_left_alone(void **state)
{
    static const char *const others[] = {"{\"action\":\"decline\"}",
                                         "{\"action\":\"cancel\",\"content\":{}}",
                                         "{}",
                                         "[]",
                                         "7",
                                         "{\"action\":\"accept\",\"content\":[]}",
                                         "{\"action\":\"accept\",\"content\":null}"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        check(NAME, others[i], others[i]);
}

static void only_what_an_answer_may_hold_is_a_default(void **state)
{
    (void)state;
    check("{\"s\":{\"default\":\"x\"},\"n\":{\"default\":1e400},\"t\":{\"default\":true},"
          "\"f\":{\"default\":false},\"l\":{\"default\":[\"a\",\"b\"]}}",
          ACCEPT("{}"),
          ACCEPT("{\"s\":\"x\",\"n\":1e400,\"t\":true,\"f\":false,\"l\":[\"a\",\"b\"]}"));
    check("{\"z\":{\"default\":null},\"o\":{\"default\":{}},\"m\":{\"default\":[1]},"
          "\"d\":[{\"default\":1}],\"e\":7}",
          ACCEPT("{}"), ACCEPT("{}"));
    check("[]", ACCEPT("{}"), ACCEPT("{}"));
}

static void nothing_is_kept_for_who_did_not_ask(void **state)
{
    (void)state;
    form f;
    form_init(&f);
    assert_true(sgi_form_defaults_store(
        &f.defaults, &f.session, SGI_STR("sampling/createMessage"),
        SGI_STR("{\"requestedSchema\":{\"properties\":" NAME "}}")));
    assert_null(f.defaults.text);
    assert_true(sgi_form_defaults_store(&f.defaults, &f.session,
                                        SGI_STR("elicitation/create"), (sgi_str){0}));
    assert_null(f.defaults.text);
    f.session.options.fill_defaults = 0;
    assert_true(keep(&f, NAME));
    assert_null(f.defaults.text);
    assert_int_equal(f.tm.calls, 0);
}

static void so_many_fields_are_looked_at(void **state)
{
    (void)state;
    form f;
    char properties[SGI_DEFAULTS_MAX * 32], *p = properties;
    form_init(&f);
    for (int i = 0; i <= SGI_DEFAULTS_MAX; i++)
        p += sprintf(p, "%c\"f%d\":{\"default\":%d}", i ? ',' : '{', i, i);
    strcpy(p, "}");
    assert_true(keep(&f, properties));
    char last[32];
    snprintf(last, sizeof last, ",\"f%d\":%d}", SGI_DEFAULTS_MAX - 1,
             SGI_DEFAULTS_MAX - 1);
    assert_string_equal(f.defaults.text + f.defaults.len - strlen(last), last);
    sgi_form_defaults_free(&f.defaults, &f.tm.mem);
}

static void without_memory_nothing_is_lost(void **state)
{
    (void)state;
    form f;
    size_t len;
    size_t at = 0;
    form_init(&f);
    for (f.tm.fail_at = ++at; !keep(&f, NAME); f.tm.fail_at = ++at) {
        assert_int_equal(f.tm.live, 0);
        test_mem_rearm(&f.tm);
    }
    assert_true(at > 1);
    size_t kept = f.tm.live;
    char *filled = NULL;
    for (at = 0; !filled;) {
        assert_int_equal(f.tm.live, kept);
        test_mem_rearm(&f.tm);
        f.tm.fail_at = ++at;
        filled = sgi_form_defaults_fill_answer(&f.defaults, &f.tm.mem,
                                               SGI_STR(ACCEPT("{\"x\":1}")), &len);
    }
    assert_true(at > 1);
    assert_string_equal(filled, ACCEPT("{\"x\":1,\"name\":\"John\"}"));
    sgi_free(&f.tm.mem, filled, len + 1);
    sgi_form_defaults_free(&f.defaults, &f.tm.mem);
    assert_int_equal(f.tm.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_is_filled_in),
        cmocka_unit_test(what_is_said_stays),
        cmocka_unit_test(what_accepts_no_form_is_left_alone),
        cmocka_unit_test(only_what_an_answer_may_hold_is_a_default),
        cmocka_unit_test(nothing_is_kept_for_who_did_not_ask),
        cmocka_unit_test(so_many_fields_are_looked_at),
        cmocka_unit_test(without_memory_nothing_is_lost),
    };
    return cmocka_run_group_tests_name("defaults", tests, NULL, NULL);
}
