/* Each limit of base/limits.def has a text. The text names the option as the application
 * writes it, or only the value if no option sets the limit. The data has one name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/limit.h"

enum { OPTION, FIXED };

static const struct {
    sgi_limit_id id;
    const char *name;
    int kind;
} rows[] = {
#define LIMIT(id, name, kind) {SGI_LIMIT_##id, #name, kind},
#include "base/limits.def"
#undef LIMIT
};
#define ROWS (sizeof rows / sizeof *rows)

static void each_limit_is_named_in_both_spellings(void **state)
{
    (void)state;
    char wanted[128];
    for (size_t i = 0; i < ROWS; i++) {
        sgi_limit limit = {rows[i].id, INT64_MAX};
        sgi_limit_text snake =
            sgi_limit_describe(false, "Too many", limit, "limit", NULL);
        sgi_limit_text camel = sgi_limit_describe(true, "Too many", limit, "limit", NULL);
        assert_string_equal(sgi_limit_name(rows[i].id), rows[i].name);
        assert_string_equal(camel.data, snake.data);
        snprintf(wanted, sizeof wanted, "\"limit\":\"%s\",\"value\":9223372036854775807}",
                 rows[i].name);
        assert_non_null(strstr(snake.data, wanted));
        assert_int_equal(snake.data[strlen(snake.data) - 1], '}');
        snprintf(wanted, sizeof wanted, "Too many: %s 9223372036854775807",
                 rows[i].kind == FIXED ? "at most" : rows[i].name);
        if (rows[i].kind == FIXED)
            assert_string_equal(camel.text, wanted);
        assert_memory_equal(snake.text, wanted,
                            strlen("Too many: ") + strcspn(wanted + 10, " "));
        assert_null(strchr(camel.text, '_'));
    }
}

static void names_and_advice_are_in_the_text(void **state)
{
    (void)state;
    sgi_limit tasks = {SGI_LIMIT_MAX_TASKS, 2}, rate = {SGI_LIMIT_LOOKUPS_PER_SECOND, 3};
    sgi_limit headers = {SGI_LIMIT_MAX_HEADERS, 100};
    assert_string_equal(sgi_limit_describe(false, "Too many", tasks, "r", NULL).text,
                        "Too many: max_tasks is 2");
    assert_string_equal(sgi_limit_describe(true, "Too many", tasks, "r", NULL).text,
                        "Too many: maxTasks is 2");
    assert_string_equal(sgi_limit_describe(true, "Too many", rate, "r", "wait").text,
                        "Too many: lookupsPerSecond is 3; wait");
    assert_string_equal(sgi_limit_describe(true, "Too many", headers, "r", NULL).text,
                        "Too many: at most 100");
    assert_string_equal(sgi_limit_describe(true, "Too many", tasks, "r", NULL).data,
                        "{\"reason\":\"r\",\"limit\":\"max_tasks\",\"value\":2}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_limit_is_named_in_both_spellings),
        cmocka_unit_test(names_and_advice_are_in_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
