/* How a call that asks for a task may be answered: the table of SEP-1905, row by row, and
 * the lists of modes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "engine/response_modes.h"
#include "engine/negotiate.h"

#define T SGI_MODE_TASK
#define I SGI_MODE_IMMEDIATE
#define S SGI_MODE_STREAMING

/* Copied from the table, not computed: [modes][ready][incremental]. */
static void all_rows(void **state)
{
    enum { TASK = SGI_FORM_TASK, PLAIN, STREAM, AT_END };
    static const int rows[8][2][2] = {
        [0] = {{TASK, TASK}, {TASK, TASK}},
        [T] = {{TASK, TASK}, {TASK, TASK}},
        [I] = {{TASK, TASK}, {PLAIN, PLAIN}},
        [T | I] = {{TASK, TASK}, {PLAIN, PLAIN}},
        [S] = {{AT_END, STREAM}, {STREAM, STREAM}},
        [T | S] = {{AT_END, STREAM}, {STREAM, STREAM}},
        [I | S] = {{TASK, STREAM}, {PLAIN, PLAIN}},
        [T | I | S] = {{TASK, STREAM}, {PLAIN, PLAIN}},
    };
    (void)state;
    for (int modes = 0; modes < 8; modes++)
        for (int ready = 0; ready < 2; ready++)
            for (int inc = 0; inc < 2; inc++)
                if ((int)sgi_response_form_decide((uint8_t)modes, ready, inc) !=
                    rows[modes][ready][inc])
                    fail_msg("modes %d, ready %d, incremental %d", modes, ready, inc);
}

static void lists(void **state)
{
    static const struct {
        const char *list;
        int modes; /* -1 = refused */
    } cases[] = {
        {"[]", 0},
        {"[\"task\"]", T},
        {"[\"foo\",\"streaming\",\"streaming\"]", S | SGI_MODE_OTHER},
        {"[\"foo\"]", SGI_MODE_OTHER},
        {"[\"streaming\",\"task\",\"immediate\"]", T | I | S},
        {"[\"\\u0074ask\"]", T},
        {"[\"Task\"]", SGI_MODE_OTHER},
        {"\"streaming\"", -1},
        {"[1]", -1},
        {"[\"task\",null]", -1},
        {"{}", -1},
        {"null", -1},
    };
    uint8_t modes;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool ok = sgi_response_modes_read(sgi_str_of(cases[i].list), &modes);
        if ((ok ? modes : -1) != cases[i].modes)
            fail_msg("%s: %d", cases[i].list, ok ? modes : -1);
    }
    assert_true(sgi_response_modes_read((sgi_json){0}, &modes));
    assert_int_equal(modes, 0);
}

static void fallback_is_said_when_task_was_not_listed(void **state)
{
    (void)state;
    assert_true(sgi_response_is_fallback(SGI_FORM_TASK, S));
    assert_true(sgi_response_is_fallback(SGI_FORM_TASK, SGI_MODE_OTHER));
    assert_false(sgi_response_is_fallback(SGI_FORM_TASK, 0));
    assert_false(sgi_response_is_fallback(SGI_FORM_TASK, S | T));
    assert_false(sgi_response_is_fallback(SGI_FORM_STREAM, S));
}

static void switches_are_modes(void **state)
{
    (void)state;
    assert_int_equal(sgi_response_modes_of(SGI_DIALECT_L), T);
    assert_int_equal(sgi_response_modes_of(SGI_DIALECT_L | SGI_DIALECT_S), T | S);
    assert_int_equal(sgi_response_modes_of(SGI_DIALECT_L | SGI_DIALECT_I), T | I);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-16 all 32 rows of the decision", all_rows, NULL, NULL, NULL},
        cmocka_unit_test(lists),
        cmocka_unit_test(fallback_is_said_when_task_was_not_listed),
        cmocka_unit_test(switches_are_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
