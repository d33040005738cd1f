/* The heap of deadlines against a list that is searched from end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/timer.h"
#include "support/test_mem.h"

#define COUNT 120

typedef struct alarm_clock {
    sgi_timer timer;
    bool set;
    int64_t at_ms;
    int rang;
} alarm_clock;

static test_mem tm;
static sgi_timers timers;
static alarm_clock clocks[COUNT];
static uint64_t chance;
static int64_t last_at; /* deadline of the timer that ran last */
static int rounds_left; /* how often the timer `again` sets itself again */

static uint32_t below(uint32_t n)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % n;
}

static int set_up(void **state)
{
    (void)state;
    chance = 3;
    last_at = INT64_MIN;
    memset(clocks, 0, sizeof clocks);
    test_mem_init(&tm);
    sgi_timers_init(&timers, &tm.mem);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_timers_free(&timers);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void ring(sgi_timer *timer)
{
    alarm_clock *c = SGI_OWNER(timer, alarm_clock, timer);
    assert_true(c->set);
    assert_int_equal(timer->slot, 0);
    assert_true(c->at_ms >= last_at);
    last_at = c->at_ms;
    c->set = false;
    c->rang++;
}

static int64_t earliest(void)
{
    int64_t at = INT64_MAX;
    for (int i = 0; i < COUNT; i++)
        if (clocks[i].set && clocks[i].at_ms < at)
            at = clocks[i].at_ms;
    return at;
}

static void random_use_agrees_with_a_list(void **state)
{
    (void)state;
    int64_t now = 0;
    for (int step = 0; step < 20000; step++) {
        alarm_clock *c = &clocks[below(COUNT)];
        uint32_t what = below(8);
        if (what < 5) {
            c->at_ms = now + below(1000);
            c->set = true;
            assert_true(sgi_timer_set(&timers, &c->timer, c->at_ms, ring));
        } else if (what < 7) {
            c->set = false;
            sgi_timer_clear(&timers, &c->timer);
        } else {
            now += below(50);
            last_at = INT64_MIN;
            sgi_timers_run_due(&timers, now);
            assert_true(earliest() > now);
        }
        assert_int_equal(sgi_timers_next_due_ms(&timers), earliest());
    }
    size_t set = 0;
    for (int i = 0; i < COUNT; i++)
        set += clocks[i].set;
    assert_int_equal(timers.count, set);
}

static void runs_in_order_up_to_now_and_no_further(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        clocks[i].at_ms = (i * 37) % COUNT;
        clocks[i].set = true;
        sgi_timer_set(&timers, &clocks[i].timer, clocks[i].at_ms, ring);
    }
    sgi_timers_run_due(&timers, 59);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(clocks[i].rang, clocks[i].at_ms <= 59);
    assert_int_equal(sgi_timers_next_due_ms(&timers), 60);
    sgi_timers_run_due(&timers, INT64_MAX);
    assert_int_equal(timers.count, 0);
    assert_int_equal(sgi_timers_next_due_ms(&timers), INT64_MAX);
}

static void clear_others(sgi_timer *timer)
{
    SGI_OWNER(timer, alarm_clock, timer)->rang++;
    for (int i = 0; i < COUNT; i++)
        sgi_timer_clear(&timers, &clocks[i].timer);
}

static void one_that_runs_may_clear_those_that_are_due_as_well(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++)
        sgi_timer_set(&timers, &clocks[i].timer, i, clear_others);
    sgi_timers_run_due(&timers, COUNT);
    assert_int_equal(clocks[0].rang, 1);
    for (int i = 1; i < COUNT; i++)
        assert_int_equal(clocks[i].rang, 0);
}

static void again(sgi_timer *timer)
{
    alarm_clock *c = SGI_OWNER(timer, alarm_clock, timer);
    c->rang++;
    if (rounds_left-- > 0)
        assert_true(sgi_timer_set(&timers, timer, timer->at_ms + 10, again));
}

static void one_that_runs_may_set_itself_again(void **state)
{
    (void)state;
    rounds_left = 100;
    sgi_timer_set(&timers, &clocks[0].timer, 5, again);
    sgi_timers_run_due(&timers, 24);
    assert_int_equal(clocks[0].rang, 2);
    assert_int_equal(sgi_timers_next_due_ms(&timers), 25);
    sgi_timers_run_due(&timers, 5 + 1000);
    assert_int_equal(clocks[0].rang, 101);
}

static void moving_one_needs_no_memory(void **state)
{
    (void)state;
    assert_true(sgi_timer_set(&timers, &clocks[0].timer, 10, ring));
    tm.fail_from = 1;
    clocks[0].set = true;
    assert_true(sgi_timer_set(&timers, &clocks[0].timer, 5, ring));
    assert_int_equal(sgi_timers_next_due_ms(&timers), 5);
    assert_true(sgi_timer_set(&timers, &clocks[0].timer, 50, ring));
    assert_int_equal(sgi_timers_next_due_ms(&timers), 50);
}

static void without_memory_a_timer_is_not_set_and_the_others_stay(void **state)
{
    (void)state;
    int set = 0;
    while (set < 16 && sgi_timer_set(&timers, &clocks[set].timer, 100 - set, ring))
        set++;
    tm.fail_from = 1;
    while (set < COUNT && sgi_timer_set(&timers, &clocks[set].timer, 100 - set, ring))
        set++;
    assert_in_range(set, 1, COUNT - 1);
    assert_int_equal(clocks[set].timer.slot, 0);
    assert_int_equal(timers.count, (size_t)set);
    assert_int_equal(sgi_timers_next_due_ms(&timers), 100 - (set - 1));
    sgi_timer_clear(&timers, &clocks[set].timer);
    assert_int_equal(timers.count, (size_t)set);
}

/* A timer that must be set is set even without memory, and behaves as other timers do. */
static void without_memory_a_timer_that_must_be_set_is(void **state)
{
    (void)state;
    int64_t now = 0;
    tm.fail_from = 1;
    for (int step = 0; step < 5000; step++) {
        alarm_clock *c = &clocks[below(COUNT)];
        uint32_t what = below(8);
        if (step == 2500) {
            assert_int_equal(timers.count, 0);
            assert_non_null(timers.spilled);
            test_mem_rearm(&tm); /* from here on, some timers are in the heap and some in
                                  * the spilled list */
        }
        if (what < 5) {
            c->at_ms = now + below(1000);
            c->set = true;
            sgi_timer_must_set(&timers, &c->timer, c->at_ms, ring);
        } else if (what < 7) {
            c->set = false;
            sgi_timer_clear(&timers, &c->timer);
        } else {
            now += below(50);
            last_at = INT64_MIN;
            sgi_timers_run_due(&timers, now);
        }
        assert_int_equal(sgi_timers_next_due_ms(&timers), earliest());
    }
    assert_true(timers.count > 0);
    last_at = INT64_MIN;
    sgi_timers_run_due(&timers, INT64_MAX);
    for (int i = 0; i < COUNT; i++)
        assert_false(clocks[i].set);
    assert_null(timers.spilled);
}

static void freeing_the_heap_clears_the_timers(void **state)
{
    (void)state;
    sgi_timer_set(&timers, &clocks[0].timer, 1, ring);
    tm.fail_from = 1;
    for (int i = 1; i < COUNT; i++)
        sgi_timer_must_set(&timers, &clocks[i].timer, 1, ring);
    sgi_timers_free(&timers);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(clocks[i].timer.slot, 0);
    sgi_timer_clear(&timers, &clocks[0].timer);
    assert_int_equal(sgi_timers_next_due_ms(&timers), INT64_MAX);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(random_use_agrees_with_a_list),
        CASE(runs_in_order_up_to_now_and_no_further),
        CASE(one_that_runs_may_clear_those_that_are_due_as_well),
        CASE(one_that_runs_may_set_itself_again),
        CASE(moving_one_needs_no_memory),
        CASE(without_memory_a_timer_is_not_set_and_the_others_stay),
        CASE(without_memory_a_timer_that_must_be_set_is),
        CASE(freeing_the_heap_clears_the_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
