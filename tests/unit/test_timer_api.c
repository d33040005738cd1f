/* Timers of the application: each runs once at its time by the injected clock, or is
 * cancelled, and its user is freed once in any case. */
#include <segue/segue_ext.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static int64_t now;
static int ran, freed;

static int64_t clock_ms(void *user)
{
    (void)user;
    return now;
}

static int32_t no_random(void *user, void *bytes, size_t len)
{
    (void)user;
    for (size_t i = 0; i < len; i++)
        ((char *)bytes)[i] = (char)i;
    return 0;
}

static void on_time(void *user)
{
    (void)user;
    assert_int_equal(freed, 0);
    ran++;
}

static void on_free(void *user)
{
    (void)user;
    freed++;
}

static segue_runtime *make_runtime(void)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    segue_runtime *runtime = NULL;
    hooks.monotonic_ms = hooks.wall_ms = clock_ms;
    hooks.random = no_random;
    options.hooks = &hooks;
    now = 1000;
    ran = freed = 0;
    assert_int_equal(segue_runtime_new(&options, &runtime, NULL), SEGUE_OK);
    return runtime;
}

static segue_timer *start(segue_runtime *runtime, int64_t delay_ms)
{
    segue_timer *timer = NULL;
    assert_int_equal(segue_timer_start(runtime, delay_ms, on_time, NULL, on_free, &timer),
                     SEGUE_OK);
    return timer;
}

static void a_timer_runs_once_at_its_time(void **state)
{
    segue_runtime *runtime = make_runtime();
    segue_timer *timer = start(runtime, 50);
    (void)state;
    now += 49;
    segue_runtime_dispatch(runtime, 0, 0, NULL);
    assert_int_equal(ran, 0);
    now += 1;
    segue_runtime_dispatch(runtime, 0, 0, NULL);
    assert_int_equal(ran, 1);
    assert_int_equal(freed, 1);
    now += 1000;
    segue_runtime_dispatch(runtime, 0, 0, NULL);
    assert_int_equal(ran, 1);
    assert_int_equal(segue_timer_cancel(timer), SEGUE_E_TERMINAL);
    segue_timer_free(timer);
    segue_runtime_free(runtime);
}

static void a_timer_of_no_time_runs_in_the_next_dispatch(void **state)
{
    segue_runtime *runtime = make_runtime();
    (void)state;
    segue_timer_free(start(runtime, 0));
    assert_int_equal(ran, 0);
    segue_runtime_dispatch(runtime, 0, 0, NULL);
    assert_int_equal(ran, 1);
    assert_int_equal(freed, 1);
    segue_runtime_free(runtime);
}

static void a_cancelled_timer_only_frees(void **state)
{
    segue_runtime *runtime = make_runtime();
    segue_timer *timer = start(runtime, 50);
    (void)state;
    assert_int_equal(segue_timer_cancel(timer), SEGUE_OK);
    assert_int_equal(segue_timer_cancel(timer), SEGUE_OK);
    assert_int_equal(freed, 0);
    now += 100;
    segue_runtime_dispatch(runtime, 0, 0, NULL);
    assert_int_equal(ran, 0);
    assert_int_equal(freed, 1);
    segue_timer_free(timer);
    segue_runtime_free(runtime);
}

static void a_runtime_that_ends_frees_its_timers(void **state)
{
    segue_runtime *runtime = make_runtime();
    segue_timer *timer = start(runtime, 50);
    (void)state;
    segue_runtime_free(runtime);
    assert_int_equal(ran, 0);
    assert_int_equal(freed, 1);
    segue_timer_free(timer);
    assert_int_equal(segue_timer_start(NULL, 0, on_time, NULL, on_free, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_timer_cancel(NULL), SEGUE_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_runs_once_at_its_time),
        cmocka_unit_test(a_timer_of_no_time_runs_in_the_next_dispatch),
        cmocka_unit_test(a_cancelled_timer_only_frees),
        cmocka_unit_test(a_runtime_that_ends_frees_its_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
