/* A late library is loaded at its first use. A library or a function that is missing
 * gives a sentence that names it, and the next call tries again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/late_library.h"

typedef struct functions {
    SGI_LATE_MEMBER(floor)
    SGI_LATE_MEMBER(ceil)
} functions;

static const char *const names[] = {SGI_LATE_NAME(floor) SGI_LATE_NAME(ceil)};
static const char *const strange[] = {"floor", "no_such_function"};

static void its_functions_can_be_called(void **state)
{
    functions table = {0};
    sgi_late_library library = {"libm.so.6", names, 2, &table, false};
    char why[200] = "";
    (void)state;
    assert_true(sgi_late_library_load(&library, why, sizeof why));
    assert_string_equal(why, "");
    assert_true(table.floor(1.5) == 1 && table.ceil(1.5) == 2);
    library.file = "libnosuch.so.1"; /* it is loaded, and not searched again */
    assert_true(sgi_late_library_load(&library, why, sizeof why));
}

static void a_missing_library_is_named(void **state)
{
    functions table = {0};
    sgi_late_library library = {"libnosuch.so.1", names, 2, &table, false};
    char why[200] = "";
    (void)state;
    assert_false(sgi_late_library_load(&library, why, sizeof why));
    assert_non_null(strstr(why, "the system cannot load libnosuch.so.1: "));
    assert_true(table.floor == NULL);
    library.file = "libm.so.6";
    assert_true(sgi_late_library_load(&library, why, sizeof why));
}

static void a_missing_function_is_named(void **state)
{
    functions table = {0};
    sgi_late_library library = {"libm.so.6", strange, 2, &table, false};
    char why[200] = "";
    (void)state;
    assert_false(sgi_late_library_load(&library, why, sizeof why));
    assert_string_equal(why, "libm.so.6 has no function no_such_function");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_functions_can_be_called),
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(a_missing_function_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
