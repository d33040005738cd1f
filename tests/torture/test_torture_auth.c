/* A client that authorizes itself while memory runs out: each allocation of the
 * authorization fails, alone, and with all later ones. Whatever happens, the session
 * opens or ends, nothing leaks, and free_user runs once. SEGUE_TORTURE as in
 * support/torture.h. */
#include "support/auth_script.h"

#include <segue/segue_auth.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define TRIES 40
#define STEPS 4000

/* Returns how many allocations there were. */
static size_t once(size_t fail_at, size_t fail_from)
{
    auth_script a;
    auth_prepare(&a);
    a.agrees = 0;
    auth_make(&a);
    test_mem_rearm(&a.s.k.mem);
    kit_open(&a.s.k, NULL);
    a.s.k.mem.fail_at = fail_at;
    a.s.k.mem.fail_from = fail_from;
    int asked = 0;
    for (int i = 0; i < STEPS && !a.s.k.opened && !a.s.k.closed; i++) {
        bool served = auth_serve(&a);
        script_pump(&a.s);
        if (a.asked > asked) {
            char url[200];
            asked = a.asked;
            snprintf(url, sizeof url, "?code=x&state=%s", a.state);
            while (segue_runtime_authorize(a.s.k.runtime, url) == SEGUE_E_NOMEM)
                test_mem_rearm(&a.s.k.mem);
        }
        if (!served && !script_next(&a.s))
            script_advance(&a.s, 50);
        if (i == 200) /* memory is back; pauses end */
            test_mem_rearm(&a.s.k.mem);
    }
    size_t calls = a.s.k.mem.calls;
    if (!a.s.k.opened && !a.s.k.closed)
        fail_msg("%zu, %zu: it neither opens nor ends", fail_at, fail_from);
    if (!fail_at && !fail_from)
        assert_int_equal(a.s.k.opened, 1);
    test_mem_rearm(&a.s.k.mem);
    auth_end(&a);
    return calls;
}

static void each_allocation_of_the_way_in_may_fail(void **state)
{
    (void)state;
    const char *wish = getenv("SEGUE_TORTURE");
    size_t calls = once(0, 0);
    size_t step = wish && strcmp(wish, "full") == 0 ? 1 : calls / TRIES + 1;
    assert_in_range(calls, 50, 100000);
    if (wish && strtoul(wish, NULL, 10)) {
        once(strtoul(wish, NULL, 10), 0);
        once(0, strtoul(wish, NULL, 10));
        return;
    }
    for (size_t i = 1; i <= calls; i += step) {
        once(i, 0);
        once(0, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_of_the_way_in_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
