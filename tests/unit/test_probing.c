/* When a client looks for a server that could not be reached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/client/probing.h"

#define HOUR_MS INT64_C(3600000)

/* Between two looks passes less time than the client may lose. */
static void the_time_between_looks_is_short(void **state)
{
    (void)state;
    for (int64_t gone = 0; gone < HOUR_MS; gone += 1 + gone / 1000) {
        int64_t ms = sgi_probing_ms(HOUR_MS, gone, 1);
        assert_in_range(ms, 20, gone < 1000 ? 25 : gone / 6);
    }
}

/* An outage of a minute costs fewer than a hundred looks. */
static void looks_are_few(void **state)
{
    int32_t looks = 0;
    (void)state;
    for (int64_t gone = 0; gone < 60000; looks++)
        gone += sgi_probing_ms(HOUR_MS, gone, 1);
    assert_in_range(looks, 50, 100);
}

static void the_pause_is_not_overrun(void **state)
{
    (void)state;
    assert_int_equal(sgi_probing_ms(7, 0, 1), 7);
    assert_int_equal(sgi_probing_ms(0, 100000, 1), 0);
    assert_int_equal(sgi_probing_ms(250, 100000, 1), 250);
}

/* A session with many requests does not look more often than each request alone. */
static void many_requests_share_the_looks(void **state)
{
    (void)state;
    assert_int_equal(sgi_probing_ms(HOUR_MS, 0, 10), 20);
    assert_int_equal(sgi_probing_ms(HOUR_MS, 0, 1000), 2000);
    assert_int_equal(sgi_probing_ms(HOUR_MS, 0, 4096), 8192);
    assert_int_equal(sgi_probing_ms(500, 0, 4096), 500);
}

static void a_pause_lasts_until_its_end(void **state)
{
    (void)state;
    const sgi_probing none = {0}, pause = {1000, 0};
    assert_false(sgi_probing_lasts(&none, 0));
    assert_true(sgi_probing_lasts(&pause, 999));
    assert_false(sgi_probing_lasts(&pause, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_between_looks_is_short),
        cmocka_unit_test(looks_are_few),
        cmocka_unit_test(the_pause_is_not_overrun),
        cmocka_unit_test(many_requests_share_the_looks),
        cmocka_unit_test(a_pause_lasts_until_its_end),
    };
    return cmocka_run_group_tests_name("probing", tests, NULL, NULL);
}
