/* Events that a client of the handshake eras may ask for again (2025-11-25
 * basic/transports, resumability; R-975-18): their numbers, the bound, and missing
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/conversation/replay.h"
#include "support/test_mem.h"

static test_mem tm;
static sgi_replay replay;
static sgi_buf out;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    sgi_replay_init(&replay, &tm.mem, 0, 7, true);
    sgi_buf_init(&out, &tm.mem);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_replay_free(&replay);
    sgi_buf_free(&out);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void expect(uint64_t after, const char *text)
{
    sgi_buf_reset(&out, SIZE_MAX);
    sgi_replay_copy(&replay, after, &out);
    assert_true(sgi_buf_terminate(&out));
    assert_string_equal(out.p, text);
}

/* `gone` events are lost, and this is reported before the remaining ones. */
static void expect_gone(uint64_t after, int gone, const char *text)
{
    char all[64];
    snprintf(all, sizeof all, ": events gone: %d\n\n%s", gone, text);
    expect(after, all);
}

static void keep(const char *text)
{
    sgi_replay_keep(&replay, sgi_str_of(text), true);
}

static void events_come_again_from_each_number(void **state)
{
    (void)state;
    expect(0, "");
    keep("a");
    keep("bb");
    keep("ccc");
    expect(0, "abbccc");
    expect(1, "bbccc");
    expect(2, "ccc");
    expect(3, "");
    expect(4, "");
    expect(UINT64_MAX - 1, "");
}

static void names_and_priming(void **state)
{
    (void)state;
    sgi_replay_write_priming_event(&replay, &out);
    sgi_replay_write_next_id(&replay, &out);
    keep("a");
    sgi_replay_write_next_id(&replay, &out);
    sgi_replay_write_priming_event(&replay, &out);
    assert_true(sgi_buf_terminate(&out));
    assert_string_equal(out.p, "id: 7-0\ndata: \n\n"
                               "id: 7-1\n"
                               "id: 7-2\n"
                               "id: 7-1\ndata: \n\n");
}

static void ids_are_split_strictly(void **state)
{
    static const struct {
        const char *id;
        bool ok;
        int64_t stream;
        uint64_t event;
    } rows[] = {
        {"7-0", true, 7, 0},
        {"12-345", true, 12, 345},
        {"999999999999999-999999999999999", true, 999999999999999, 999999999999999},
        {"9999999999999999-1", false, 0, 0},
        {"1-9999999999999999", false, 0, 0},
        {"", false, 0, 0},
        {"-", false, 0, 0},
        {"7", false, 0, 0},
        {"7-", false, 0, 0},
        {"-7", false, 0, 0},
        {"7-1-1", false, 0, 0},
        {"7--1", false, 0, 0},
        {"+7-1", false, 0, 0},
        {" 7-1", false, 0, 0},
        {"7-1\n", false, 0, 0},
        {"7-1x", false, 0, 0},
        {"a-b", false, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t stream = -1;
        uint64_t event = 0;
        bool ok = sgi_replay_parse_id(sgi_str_of(rows[i].id), &stream, &event);
        assert_int_equal(ok, rows[i].ok);
        if (ok) {
            assert_int_equal(stream, rows[i].stream);
            assert_int_equal(event, rows[i].event);
        }
    }
}

/* A model that keeps all numbers: each event names its own. */
static void the_bound_drops_the_oldest(void **state)
{
    static char event[40 * 1024];
    size_t room = 0;
    (void)state;
    for (uint64_t n = 1; n <= 500; n++) {
        size_t len = 16 + (size_t)(n * 7919 % (sizeof event - 16));
        memset(event, 'x', len);
        snprintf(event, sizeof event, "%15llu", (unsigned long long)n);
        sgi_replay_keep(&replay, (sgi_str){event, len}, true);
        assert_true(replay.kept.len <= SGI_REPLAY_MAX);
        room = replay.kept.cap > room ? replay.kept.cap : room;
        assert_int_equal(replay.next, n + 1);
        for (uint64_t after = replay.first ? replay.first - 1 : 0; after < n; after++) {
            sgi_buf_reset(&out, SIZE_MAX);
            sgi_replay_copy(&replay, after, &out);
            assert_int_equal(strtoull(out.p, NULL, 10), after + 1);
        }
    }
    assert_true(replay.first > 1);
    assert_true(replay.kept.len > SGI_REPLAY_MAX / 4);
    assert_true(room <= SGI_REPLAY_MAX * 3 / 2);
    sgi_buf_reset(&out, SIZE_MAX); /* asks from a lost event on: gets what is left */
    sgi_replay_copy(&replay, 0, &out);
    snprintf(event, sizeof event, ": events gone: %d\n\n%15d", (int)replay.first - 1,
             (int)replay.first);
    assert_memory_equal(out.p, event, strlen(event));
}

static void an_event_may_fill_all_of_it(void **state)
{
    char *event = malloc(SGI_REPLAY_MAX + 1);
    (void)state;
    assert_non_null(event);
    memset(event, 'y', SGI_REPLAY_MAX + 1);
    keep("a");
    sgi_replay_keep(&replay, (sgi_str){event, SGI_REPLAY_MAX}, true);
    sgi_replay_copy(&replay, 1, &out);
    assert_int_equal(out.len, SGI_REPLAY_MAX);
    assert_int_equal(replay.first, 2);

    /* this event is too large to keep */
    sgi_replay_keep(&replay, (sgi_str){event, SGI_REPLAY_MAX + 1}, true);
    expect_gone(0, 3, "");
    expect_gone(2, 1, "");
    assert_int_equal(replay.kept.cap, 0);
    keep("b");
    expect_gone(0, 3, "b");
    expect(3, "b");
    expect(4, "");
    free(event);
}

static void part(const char *text)
{
    sgi_replay_keep(&replay, sgi_str_of(text), false);
}

/* The bound is 8 bytes. A notification may be missing, and a part of an answer must not
 * be missing. */
static void who_lacks_a_part_of_an_answer_is_known(void **state)
{
    (void)state;
    sgi_replay_free(&replay);
    sgi_replay_init(&replay, &tm.mem, 8, 7, true);
    part("part"); /* event 1 */
    keep("note"); /* event 2 */
    assert_false(sgi_replay_has_gap(&replay, 0));
    keep("n");
    assert_int_equal(replay.first, 2); /* the older half made room for it */
    assert_true(sgi_replay_has_gap(&replay, 0));
    assert_false(sgi_replay_has_gap(&replay, 1));
    for (int i = 0; i < 20; i++)
        keep("n");
    assert_false(sgi_replay_has_gap(&replay, 1)); /* only notifications are missing */
    expect_gone(1, (int)replay.first - 2, &"nnnnnnnn"[8 - replay.kept.len]);
    part("too large for it"); /* event 24 */
    assert_true(sgi_replay_has_gap(&replay, 23));
    assert_false(sgi_replay_has_gap(&replay, 24));
    part("part"); /* event 25 */
    sgi_replay_drop_half(&replay);
    assert_true(sgi_replay_has_gap(&replay, 24));
    part("part"); /* event 26 */
    sgi_replay_drop_all(&replay);
    assert_true(sgi_replay_has_gap(&replay, 25));
    assert_false(sgi_replay_has_gap(&replay, 26));
    for (size_t fail = 1; fail <= 4; fail++) { /* an event without memory is lost as
                                                * well */
        sgi_replay_drop_all(&replay);
        test_mem_rearm(&tm);
        tm.fail_at = fail;
        part("part");
        if (tm.failed)
            assert_true(sgi_replay_has_gap(&replay, replay.next - 2));
        else
            expect(replay.next - 2, "part");
    }
    test_mem_rearm(&tm);
}

/* Whatever fails, the numbers continue, and the kept events are the latest events without
 * a gap. */
static void without_memory_events_are_lost_and_numbers_are_not(void **state)
{
    (void)state;
    for (size_t fail = 1; fail <= 6; fail++) {
        test_mem_rearm(&tm);
        tm.fail_at = fail;
        for (int i = 0; i < 200; i++)
            keep("0123456789");
        assert_int_equal(replay.next, 200 * fail + 1);
        test_mem_rearm(&tm);
        sgi_buf_reset(&out, SIZE_MAX);
        sgi_replay_copy(&replay, replay.first - 1, &out);
        assert_int_equal(out.len, 10 * (replay.next - replay.first));
        keep("last");
        expect(200 * fail, "last");
        sgi_replay_free(&replay); /* starts anew with its numbers */
        replay.first = replay.next = 200 * fail + 1;
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void halving_drops_the_older_half(void **state)
{
    (void)state;
    sgi_replay_drop_half(&replay);
    assert_int_equal(sgi_replay_size(&replay), 0);
    for (int i = 0; i < 1000; i++)
        keep("a");
    keep("bb");
    size_t size = sgi_replay_size(&replay);
    assert_true(size >= 1002);
    sgi_replay_drop_half(&replay);
    assert_int_equal(replay.kept.len, 501);
    assert_int_equal(replay.first, 502);
    assert_true(sgi_replay_size(&replay) <= size / 2 + 512);
    expect(999, "abb");
    expect(1000, "bb");
    keep("c");
    expect(1000, "bbc");
    for (int i = 0; i < 20; i++)
        sgi_replay_drop_half(&replay);
    assert_int_equal(sgi_replay_size(&replay), 0);
    assert_int_equal(replay.next, 1003);
    expect_gone(0, 1002, "");
    keep("d");
    expect_gone(0, 1002, "d");
    expect(1003, "");
    keep("e");
    test_mem_rearm(&tm);
    tm.fail_from = 1;
    sgi_replay_drop_half(&replay); /* no memory to move to: all events are dropped */
    test_mem_rearm(&tm);
    assert_int_equal(sgi_replay_size(&replay), 0);
    keep("f");
    expect_gone(0, 1004, "f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(events_come_again_from_each_number),
        CASE(names_and_priming),
        CASE(ids_are_split_strictly),
        CASE(the_bound_drops_the_oldest),
        CASE(halving_drops_the_older_half),
        CASE(an_event_may_fill_all_of_it),
        CASE(who_lacks_a_part_of_an_answer_is_known),
        CASE(without_memory_events_are_lost_and_numbers_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
