/* Tests of the pauses between the attempts of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/backoff.h"

#define YEAR_MS INT64_C(31536000000)

static const sgi_backoff some = {.first_ms = 250, .most_ms = 30000, .spread = 10};
static uint8_t next_chance;
static bool no_chance;

static int32_t chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, next_chance, len);
    return no_chance;
}

static segue_hooks hooks = {.struct_size = sizeof hooks, .random = chance};
static const sgi_env env = {&sgi_mem_libc, &hooks};

static void the_first_try_is_at_once_then_it_doubles_up_to_the_bound(void **state)
{
    static const int64_t waits[] = {0, 250, 500, 1000, 2000, 4000, 8000, 16000, 30000};
    (void)state;
    for (int32_t i = 0; i < 9; i++)
        assert_int_equal(sgi_backoff_ms(&some, i), waits[i]);
    assert_int_equal(sgi_backoff_ms(&some, 9), 30000);
    assert_int_equal(sgi_backoff_ms(&some, INT32_MAX), 30000);
    assert_int_equal(sgi_backoff_ms(&some, -1), 0);
}

static void a_first_wait_beyond_the_bound_is_the_bound(void **state)
{
    const sgi_backoff odd = {.first_ms = 500, .most_ms = 20};
    const sgi_backoff huge = {.first_ms = INT64_MAX / 2 + 2, .most_ms = INT64_MAX};
    (void)state;
    assert_int_equal(sgi_backoff_ms(&odd, 1), 20);
    assert_int_equal(sgi_backoff_ms(&huge, 2), INT64_MAX);
    assert_int_equal(sgi_backoff_ms(&huge, 3), INT64_MAX);
}

static void the_spread_stays_within_its_share(void **state)
{
    int64_t before = 0;
    (void)state;
    no_chance = false;
    for (int i = 0; i < 256; i++) {
        next_chance = (uint8_t)i;
        int64_t ms = sgi_backoff_random_ms(&some, 3, &env);
        assert_in_range(ms, 900, 1100);
        assert_true(ms >= before);
        before = ms;
    }
    assert_true(before > 1090);
    next_chance = 0;
    assert_int_equal(sgi_backoff_random_ms(&some, 3, &env), 900);
    assert_int_equal(sgi_backoff_random_ms(&some, 0, &env), 0);
    assert_in_range(sgi_backoff_randomize(YEAR_MS, 50, &env), YEAR_MS / 2, YEAR_MS);
    next_chance = 255;
    assert_in_range(sgi_backoff_randomize(INT64_MAX / 2, 50, &env), INT64_MAX / 2,
                    INT64_MAX);
}

static void without_chance_a_wait_is_what_it_is_on_average(void **state)
{
    (void)state;
    next_chance = 0;
    no_chance = true;
    assert_int_equal(sgi_backoff_random_ms(&some, 3, &env), 1000);
    no_chance = false;
    assert_int_equal(sgi_backoff_randomize(1000, 0, &env), 1000);
    assert_int_equal(sgi_backoff_randomize(-5, 10, &env), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_try_is_at_once_then_it_doubles_up_to_the_bound),
        cmocka_unit_test(a_first_wait_beyond_the_bound_is_the_bound),
        cmocka_unit_test(the_spread_stays_within_its_share),
        cmocka_unit_test(without_chance_a_wait_is_what_it_is_on_average),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
