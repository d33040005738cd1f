/* The tracker of segments passes on each number once and in order, whatever arrives
 * (AS-29). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/dialect/tasks_2025/tracker.h"
#include "support/test_mem.h"

static const uint64_t seed[2] = {1, 2};
static test_mem tm;
static sgi_tracker tracker;
static uint64_t chance;

/* The segments that were passed on. */
static sgi_buf merged;
static uint64_t last;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    sgi_buf_init(&merged, &sgi_mem_libc);
    last = 0;
    sgi_tracker_init(&tracker, &tm.mem, seed, 1, 1 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_tracker_free(&tracker);
    sgi_buf_free(&merged);
    assert_int_equal(tm.live, 0);
    return 0;
}

static uint32_t below(uint32_t n)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % n;
}

static void hand_on(uint64_t number, sgi_str bytes)
{
    assert_int_equal(number, last + 1);
    last = number;
    sgi_buf_add_str(&merged, bytes);
    sgi_buf_add_char(&merged, ';');
}

static sgi_tracked take_bytes(uint64_t number, sgi_str bytes)
{
    sgi_held_segment *held;
    sgi_tracked tracked = sgi_tracker_add(&tracker, number, bytes);
    if (tracked != SGI_TRACKED_NEXT)
        return tracked;
    hand_on(number, bytes);
    while ((held = sgi_tracker_pop(&tracker))) {
        hand_on(held->number, (sgi_str){held->bytes, held->len});
        sgi_tracker_release(&tracker, held);
    }
    return tracked;
}

static sgi_tracked take(uint64_t number, const char *text)
{
    return take_bytes(number, sgi_str_of(text));
}

static void assert_merged(const char *expected)
{
    assert_true(sgi_buf_terminate(&merged));
    assert_string_equal(merged.p, expected);
}

static void in_order(void **state)
{
    (void)state;
    assert_int_equal(sgi_tracker_prefix(&tracker), 0);
    assert_int_equal(take(1, "a"), SGI_TRACKED_NEXT);
    assert_int_equal(take(2, "b"), SGI_TRACKED_NEXT);
    assert_false(sgi_tracker_is_whole(&tracker));
    tracker.complete = true;
    assert_true(sgi_tracker_is_whole(&tracker));
    assert_int_equal(sgi_tracker_prefix(&tracker), 2);
    assert_merged("a;b;");
}

static void nothing_at_all_is_whole(void **state)
{
    (void)state;
    tracker.complete = true;
    assert_true(sgi_tracker_is_whole(&tracker));
}

static void holes_are_filled_in_any_order(void **state)
{
    (void)state;
    assert_int_equal(take(3, "c"), SGI_TRACKED_HELD);
    assert_int_equal(take(1, "a"), SGI_TRACKED_NEXT);
    assert_int_equal(take(5, "e"), SGI_TRACKED_HELD);
    tracker.complete = true;
    assert_true(sgi_tracker_has_hole(&tracker));
    assert_false(sgi_tracker_is_whole(&tracker));
    assert_int_equal(sgi_tracker_prefix(&tracker), 1);
    assert_int_equal(take(2, "b"), SGI_TRACKED_NEXT);
    assert_int_equal(sgi_tracker_prefix(&tracker), 3);
    assert_int_equal(take(4, "d"), SGI_TRACKED_NEXT);
    assert_true(sgi_tracker_is_whole(&tracker));
    assert_merged("a;b;c;d;e;");
}

/* AS-12 for the tracker: a repeated number with other bytes is no repeat. */
static void repeats_are_told_from_other_bytes(void **state)
{
    (void)state;
    take(1, "a");
    take(3, "c");
    assert_int_equal(take(1, "a"), SGI_TRACKED_REPEAT);
    assert_int_equal(take(1, "x"), SGI_TRACKED_OTHER);
    assert_int_equal(take(3, "c"), SGI_TRACKED_REPEAT);
    assert_int_equal(take(3, "x"), SGI_TRACKED_OTHER);
    take(2, "b");
    assert_int_equal(take(3, "x"), SGI_TRACKED_OTHER);
    assert_merged("a;b;c;");
}

static void what_was_handed_on_long_ago_counts_as_the_same(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 3 * SGI_TRACKER_WINDOW; i++)
        assert_int_equal(take(i, "a"), SGI_TRACKED_NEXT);
    assert_int_equal(take(1, "x"), SGI_TRACKED_REPEAT);
    assert_int_equal(take(2 * SGI_TRACKER_WINDOW + 1, "x"), SGI_TRACKED_OTHER);
    assert_true(tm.live < 40 * SGI_TRACKER_WINDOW);
}

static void it_begins_where_a_token_says(void **state)
{
    (void)state;
    sgi_tracker_init(&tracker, &tm.mem, seed, 7, 100);
    last = 6;
    assert_int_equal(sgi_tracker_prefix(&tracker), 6);
    assert_false(sgi_tracker_has_hole(&tracker));
    assert_int_equal(take(3, "x"), SGI_TRACKED_REPEAT);
    assert_int_equal(take(8, "b"), SGI_TRACKED_HELD);
    assert_int_equal(take(7, "a"), SGI_TRACKED_NEXT);
    assert_merged("a;b;");
}

static void what_is_held_is_bounded(void **state)
{
    (void)state;
    char big[600] = {0};
    sgi_tracker_init(&tracker, &tm.mem, seed, 1, 1000);
    assert_int_equal(take_bytes(3, (sgi_str){big, sizeof big}), SGI_TRACKED_HELD);
    assert_int_equal(take_bytes(4, (sgi_str){big, sizeof big}), SGI_TRACKED_FULL);
    tracker.complete = true;
    assert_int_equal(take(1, "a"), SGI_TRACKED_NEXT);
    assert_int_equal(take(2, "b"), SGI_TRACKED_NEXT);
    assert_false(sgi_tracker_is_whole(&tracker)); /* segment 4 is known to be missing */
    assert_int_equal(sgi_tracker_prefix(&tracker), 3);
    assert_int_equal(take(4, "d"), SGI_TRACKED_NEXT);
    assert_true(sgi_tracker_is_whole(&tracker));
    for (uint64_t i = 0; i < SGI_TRACKER_HELD_MAX; i++)
        assert_int_equal(take(10000 - i, ""), SGI_TRACKED_HELD);
    assert_int_equal(take(20000, ""), SGI_TRACKED_FULL);
    assert_int_equal(take(9000, ""), SGI_TRACKED_REPEAT);
}

static void without_memory_a_segment_is_dropped(void **state)
{
    (void)state;
    for (size_t fail = 1; fail <= 2; fail++) {
        sgi_tracker_free(&tracker);
        sgi_tracker_init(&tracker, &tm.mem, seed, 1, 1000);
        test_mem_rearm(&tm);
        tm.fail_at = fail;
        assert_int_equal(take(2, "b"), SGI_TRACKED_NOMEM);
        assert_int_equal(take(2, "b"), SGI_TRACKED_HELD);
    }
    test_mem_rearm(&tm);
    tm.fail_from = 1;
    assert_int_equal(take(1, "a"), SGI_TRACKED_NEXT); /* the segment is accepted, but
                                                       * there is no memory for its
                                                       * hash */
    assert_int_equal(take(1, "x"), SGI_TRACKED_REPEAT);
    test_mem_rearm(&tm);
    assert_merged("a;b;");
}

/* ---- any batches, drops, repeats and orders ---- */

#define SEGMENTS 48

static size_t text_of(uint64_t number, char *text, size_t size)
{
    return (size_t)snprintf(text, size, "{\"n\":%d,\"pad\":\"%.*s\"}", (int)number,
                            (int)(number * 7 % 23), "xxxxxxxxxxxxxxxxxxxxxxx");
}

static void deliver(uint64_t number)
{
    char text[64];
    size_t n = text_of(number, text, sizeof text);
    test_mem_rearm(&tm);
    if (below(4) == 0)
        tm.fail_at = 1 + below(3);
    sgi_tracked tracked = take_bytes(number, (sgi_str){text, n});
    assert_int_not_equal(tracked, SGI_TRACKED_OTHER);
}

/* Pushes batches that are lost, arrive twice, or arrive in another order. */
static void push(uint64_t count)
{
    uint64_t order[2 * SEGMENTS];
    uint32_t n = 0;
    uint32_t lost = below(3);
    for (uint64_t i = 1; i <= count; i++) {
        if (below(6) < lost)
            continue;
        order[n++] = i;
        if (below(8) == 0)
            order[n++] = 1 + below((uint32_t)count);
    }
    for (uint32_t swaps = below(2) * below(n + 1); swaps && n; swaps--) {
        uint32_t a = below(n);
        uint32_t b = below(n);
        uint64_t other = order[a];
        order[a] = order[b];
        order[b] = other;
    }
    uint32_t ends = below(n + 1);
    for (uint32_t i = 0; i < n; i++) {
        deliver(order[i]);
        if (i == ends && below(2))
            break; /* the stream breaks */
    }
}

/* Repairs the log: fetches the segments behind the prefix, or all segments when there is
 * no prefix. */
static void pull(uint64_t count)
{
    for (int tries = 0; !sgi_tracker_is_whole(&tracker); tries++) {
        assert_true(tries < 2000);
        for (uint64_t i = sgi_tracker_prefix(&tracker) + 1; i <= count; i++)
            if (below(5))
                deliver(i);
        if (last == count)
            tracker.complete = true;
    }
}

static void any_way_gives_the_same_result(void **state)
{
    (void)state;
    for (uint64_t seeds = 0; seeds < 10000; seeds++) {
        sgi_buf expected;
        chance = seeds;
        uint64_t count = below(SEGMENTS);
        sgi_tracker_free(&tracker);
        sgi_tracker_init(&tracker, &tm.mem, seed, 1, below(2) ? 1 << 20 : 100);
        sgi_buf_reset(&merged, SIZE_MAX);
        last = 0;
        sgi_buf_init(&expected, &sgi_mem_libc);
        for (uint64_t i = 1; i <= count; i++) {
            char text[64];
            sgi_buf_add(&expected, text, text_of(i, text, sizeof text));
            sgi_buf_add_char(&expected, ';');
        }
        push(count);
        pull(count);
        assert_int_equal(last, count);
        assert_true(sgi_str_eq(sgi_buf_str(&merged), sgi_buf_str(&expected)));
        assert_int_equal(tracker.held_bytes, 0);
        sgi_buf_free(&expected);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define NAMED(title, name)                                                               \
    {                                                                                    \
        title, name, set_up, tear_down, NULL                                             \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(in_order),
        CASE(nothing_at_all_is_whole),
        CASE(holes_are_filled_in_any_order),
        CASE(repeats_are_told_from_other_bytes),
        CASE(what_was_handed_on_long_ago_counts_as_the_same),
        CASE(it_begins_where_a_token_says),
        CASE(what_is_held_is_bounded),
        CASE(without_memory_a_segment_is_dropped),
        NAMED("AS-29 any batches, drops, repeats and orders merge to the same",
              any_way_gives_the_same_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
