/* The two texts of OAuth that are not JSON: WWW-Authenticate headers and forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/test_mem.h"
#include "wire/challenge.h"
#include "wire/form.h"

static test_mem tm;
static sgi_buf value;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    sgi_buf_init(&value, &tm.mem);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_buf_free(&value);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void is(const char *text)
{
    if (!sgi_str_eq(sgi_buf_str(&value), sgi_str_of(text)))
        fail_msg("%.*s is not %s", (int)value.len, value.p ? value.p : "", text);
}

static void parameters_of_bearer_challenges_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *header, *scope; /* NULL = not present */
    } rows[] = {
        {"Bearer scope=\"a b\"", "a b"},
        {"bearer SCOPE=a", "a"},
        {"Bearer realm=\"x\", scope=\"a\"", "a"},
        {"Bearer realm=\"x, scope=no\",scope=\"a\"", "a"},
        {"Bearer realm=\"\\\"\", scope=\"a\\\\b\"", "a\\b"},
        {"Bearer scope = \"a\"", "a"},
        {"Bearer scope=\"a\", scope=\"b\"", "a"},
        {"Bearer\tscope=\"\"", ""},
        {"Basic realm=\"x\", Bearer scope=\"a\"", "a"},
        {"Basic realm=\"x\", scope=\"no\", Bearer scope=\"a\"", "a"},
        {"Bearer realm=\"x\", Basic scope=\"no\"", NULL},
        {"Negotiate, Bearer scope=a", "a"},
        {"Negotiate dGVzdA==, Bearer scope=a", "a"},
        {"Bearer dGVzdA==, Digest scope=no", NULL},
        {", ,Bearer , scope=a", "a"},
        {"Bearer", NULL},
        {"", NULL},
        {"Basic scope=\"no\"", NULL},
        {"Bearer scope", NULL},
        {"Bearer scope=", NULL},
        {"Bearer scope=\"a", NULL},
        {"Bearer realm=\"a, scope=no", NULL},
        {"Bearer realm=;scope=a", NULL},
        {"=", NULL},
        {"Bearer scope=\"a\" junk", "a"},
        {"BearerX scope=a", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool found = sgi_challenge_find(sgi_str_of(rows[i].header), "scope", &value);
        if (found != (rows[i].scope != NULL))
            fail_msg("%s", rows[i].header);
        is(rows[i].scope ? rows[i].scope : "");
    }
}

static void the_example_of_the_specification_is_read(void **state)
{
    (void)state;
    sgi_str header =
        SGI_STR("Bearer error=\"insufficient_scope\",\t scope=\"files:write\", "
                "resource_metadata=\"https://mcp.example.com/.well-known/"
                "oauth-protected-resource\", error_description=\"File write, please\"");
    assert_true(sgi_challenge_find(header, "error", &value));
    is("insufficient_scope");
    assert_true(sgi_challenge_find(header, "resource_metadata", &value));
    is("https://mcp.example.com/.well-known/oauth-protected-resource");
    assert_true(sgi_challenge_find(header, "error_description", &value));
    is("File write, please");
    assert_false(sgi_challenge_find(header, "realm", &value));
}

static void a_challenge_may_not_fit_into_memory(void **state)
{
    (void)state;
    tm.fail_from = 1;
    assert_false(sgi_challenge_find(SGI_STR("Bearer scope=\"a\""), "scope", &value));
    assert_true(value.failed);
}

/* ---- forms ---- */

static void forms_are_written_and_read(void **state)
{
    (void)state;
    sgi_buf form;
    sgi_buf_init(&form, &tm.mem);
    sgi_url_form_add(&form, "a", SGI_STR("https://x/y?z=1&w"));
    sgi_url_form_add(&form, "b c", SGI_STR("-._~+ %\xc3\xa9"));
    sgi_url_form_add(&form, "d", SGI_STR(""));
    assert_true(sgi_str_eq(
        sgi_buf_str(&form),
        SGI_STR("a=https%3A%2F%2Fx%2Fy%3Fz%3D1%26w&b%20c=-._~%2B%20%25%C3%A9&d=")));
    assert_int_equal(sgi_url_form_find(sgi_buf_str(&form), "a", &value), SGI_FORM_ONE);
    is("https://x/y?z=1&w");
    assert_int_equal(sgi_url_form_find(sgi_buf_str(&form), "d", &value), SGI_FORM_ONE);
    is("");
    assert_int_equal(sgi_url_form_find(sgi_buf_str(&form), "e", &value), SGI_FORM_ABSENT);
    sgi_buf_reset(&form, SIZE_MAX);
    sgi_buf_add_lit(&form, "https://x/?");
    sgi_url_form_add(&form, "a", SGI_STR("1"));
    sgi_url_form_add(&form, "b", SGI_STR("2"));
    assert_true(sgi_str_eq(sgi_buf_str(&form), SGI_STR("https://x/?a=1&b=2")));
    sgi_buf_free(&form);
}

static void what_two_could_read_differently_is_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *form;
        sgi_form_found found;
        const char *value;
    } rows[] = {
        {"a=1", SGI_FORM_ONE, "1"},
        {"b=2&a=1&aa=3", SGI_FORM_ONE, "1"},
        {"a", SGI_FORM_ONE, ""},
        {"a=+%2b", SGI_FORM_ONE, " +"},
        {"a=b=c", SGI_FORM_ONE, "b=c"},
        {"&&a=1&", SGI_FORM_ONE, "1"},
        {"", SGI_FORM_ABSENT, ""},
        {"A=1&ab=2", SGI_FORM_ABSENT, ""},
        {"a=1&a=1", SGI_FORM_MALFORMED, NULL},
        {"a=%", SGI_FORM_MALFORMED, NULL},
        {"a=%4", SGI_FORM_MALFORMED, NULL},
        {"a=%4x", SGI_FORM_MALFORMED, NULL},
        {"a=%00", SGI_FORM_MALFORMED, NULL},
        {"a=%0a", SGI_FORM_MALFORMED, NULL},
        {"a=%7f", SGI_FORM_MALFORMED, NULL},
        {"a=%ff", SGI_FORM_MALFORMED, NULL},
        {"a=%ed%a0%80", SGI_FORM_MALFORMED, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_form_found found = sgi_url_form_find(sgi_str_of(rows[i].form), "a", &value);
        if (found != rows[i].found)
            fail_msg("%s", rows[i].form);
        if (rows[i].value)
            is(rows[i].value);
    }
}

static void a_form_may_not_fit_into_memory(void **state)
{
    (void)state;
    tm.fail_from = 1;
    assert_int_equal(sgi_url_form_find(SGI_STR("a=1"), "a", &value), SGI_FORM_NOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parameters_of_bearer_challenges_are_found, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_example_of_the_specification_is_read, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_challenge_may_not_fit_into_memory, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(forms_are_written_and_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_two_could_read_differently_is_malformed,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_form_may_not_fit_into_memory, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
