/* Standard error on its way to a callback: cut into lines, bounded, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/fake_engine_body.h"
#include "support/test_mem.h"
#include "transport/stderr_relay.h"

typedef struct log {
    test_mem mem;
    segue_runtime *rt;
    sgi_stderr_relay *relay;
    size_t lines;
    size_t bytes;
    size_t longest;
    char last[9000];
    char notice[100];
    int freed;
    bool feed_within;
} log;

static void feed(log *l, const char *text, size_t len)
{
    sgi_runtime_lock(l->rt);
    sgi_stderr_relay_add(l->relay, text, len);
    sgi_runtime_unlock(l->rt);
}

static void end(log *l)
{
    sgi_runtime_lock(l->rt);
    sgi_stderr_relay_end(l->relay);
    sgi_runtime_unlock(l->rt);
}

static void on_line(void *user, const char *text, size_t len)
{
    log *l = user;
    assert_true(sgi_runtime_is_in_callback(l->rt));
    assert_int_equal(strlen(text), len);
    assert_int_equal(l->freed, 0);
    l->lines++;
    if (strstr(text, "standard error were dropped")) {
        snprintf(l->notice, sizeof l->notice, "%s", text);
        return;
    }
    l->bytes += len;
    if (len > l->longest)
        l->longest = len;
    snprintf(l->last, sizeof l->last, "%s", text);
    if (l->feed_within) {
        l->feed_within = false;
        feed(l, "from within\n", 12);
    }
}

static void on_free(void *user)
{
    ((log *)user)->freed++;
}

static void set_up(log *l)
{
    *l = (log){0};
    test_mem_init(&l->mem);
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .allocator = &l->mem.mem};
    assert_int_equal(sgi_runtime_new(&options, &l->rt, NULL), SEGUE_OK);
    l->relay = sgi_stderr_relay_new(sgi_runtime_engine(l->rt), on_line, l, on_free);
    assert_non_null(l->relay);
}

static void tear_down(log *l)
{
    sgi_runtime_free(l->rt);
    assert_int_equal(l->freed, 1);
    assert_int_equal(l->mem.live, 0);
}

static void lines_come_whole_however_they_are_cut(void **state)
{
    log l;
    (void)state;
    set_up(&l);
    for (const char *p = "one\ntwo\nlast"; *p; p++)
        feed(&l, p, 1);
    sgi_runtime_dispatch(l.rt, 0, 0, NULL);
    assert_int_equal(l.lines, 2);
    assert_string_equal(l.last, "two");
    end(&l);
    sgi_runtime_dispatch(l.rt, 0, 0, NULL);
    assert_string_equal(l.last, "last");
    assert_int_equal(l.freed, 1);
    tear_down(&l);
}

static void a_long_line_comes_in_pieces(void **state)
{
    static char text[20001];
    log l;
    (void)state;
    set_up(&l);
    memset(text, 'x', sizeof text);
    text[20000] = '\n';
    feed(&l, text, sizeof text);
    sgi_runtime_dispatch(l.rt, 0, 0, NULL);
    assert_int_equal(l.lines, 3);
    assert_int_equal(l.longest, 8192);
    assert_int_equal(l.bytes, 20000);
    text[8192] = '\n'; /* The line is as long as a piece, so no empty line must follow. */
    feed(&l, text, 8193);
    sgi_runtime_dispatch(l.rt, 0, 0, NULL);
    assert_int_equal(l.lines, 4);
    end(&l);
    tear_down(&l);
}

static void what_nobody_takes_is_dropped_and_counted(void **state)
{
    char line[101];
    log l;
    (void)state;
    set_up(&l);
    memset(line, 'x', sizeof line);
    line[100] = '\n';
    for (int i = 0; i < 10000; i++)
        feed(&l, line, sizeof line);
    assert_true(l.mem.live < 1000000);
    sgi_runtime_dispatch(l.rt, 0, 0, NULL);
    assert_in_range(l.bytes, 200000, 256 * 1024);
    size_t dropped = 1000000 - l.bytes;
    feed(&l, "again\n", 6);
    sgi_runtime_dispatch(l.rt, 0, 0, NULL);
    char expected[100];
    snprintf(expected, sizeof expected,
             "%zu bytes of the program's standard error were dropped", dropped);
    assert_string_equal(l.notice, expected);
    assert_string_equal(l.last, "again");
    end(&l);
    tear_down(&l);
}

static void a_drop_at_the_end_is_told(void **state)
{
    char line[101];
    log l;
    (void)state;
    set_up(&l);
    memset(line, 'x', sizeof line);
    line[100] = '\n';
    for (int i = 0; i < 10000; i++)
        feed(&l, line, sizeof line);
    end(&l);
    tear_down(&l);
    assert_string_not_equal(l.notice, "");
}

static void it_may_be_fed_while_it_delivers(void **state)
{
    log l;
    (void)state;
    set_up(&l);
    l.feed_within = true;
    feed(&l, "one\n", 4);
    sgi_runtime_dispatch(l.rt, 0, 0, NULL);
    assert_string_equal(l.last, "from within");
    end(&l);
    tear_down(&l);
}

static void delivery_keeps_to_its_budget(void **state)
{
    int32_t ran = 0;
    log l;
    (void)state;
    set_up(&l);
    feed(&l, "1\n2\n3\n4\n5\n", 10);
    end(&l);
    assert_int_equal(sgi_runtime_dispatch(l.rt, 0, 2, &ran), SEGUE_OK);
    assert_int_equal(ran, 2);
    assert_string_equal(l.last, "2");
    assert_int_equal(sgi_runtime_dispatch(l.rt, 0, 3, &ran), SEGUE_OK);
    assert_int_equal(ran, 3);
    assert_int_equal(l.freed, 0);
    assert_int_equal(sgi_runtime_dispatch(l.rt, 0, 3, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    assert_int_equal(l.freed, 1);
    tear_down(&l);
}

static void lines_without_memory_count_as_dropped(void **state)
{
    log l;
    (void)state;
    set_up(&l);
    test_mem_rearm(&l.mem);
    l.mem.fail_at = 1;
    feed(&l, "12345\n", 6);
    feed(&l, "there\n", 6);
    sgi_runtime_dispatch(l.rt, 0, 0, NULL);
    assert_string_equal(l.notice, "5 bytes of the program's standard error were dropped");
    assert_string_equal(l.last, "there");
    end(&l);
    tear_down(&l);
}

static void one_that_is_undone_calls_nobody(void **state)
{
    log l;
    (void)state;
    set_up(&l);
    sgi_stderr_relay *other =
        sgi_stderr_relay_new(sgi_runtime_engine(l.rt), on_line, &l, on_free);
    sgi_stderr_relay_free(other);
    sgi_stderr_relay_free(NULL);
    sgi_runtime_dispatch(l.rt, 0, 0, NULL);
    assert_int_equal(l.freed, 0);
    l.mem.fail_from = l.mem.calls + 1;
    assert_null(sgi_stderr_relay_new(sgi_runtime_engine(l.rt), on_line, &l, on_free));
    test_mem_rearm(&l.mem);
    end(&l);
    tear_down(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole_however_they_are_cut),
        cmocka_unit_test(a_long_line_comes_in_pieces),
        cmocka_unit_test(what_nobody_takes_is_dropped_and_counted),
        cmocka_unit_test(a_drop_at_the_end_is_told),
        cmocka_unit_test(it_may_be_fed_while_it_delivers),
        cmocka_unit_test(delivery_keeps_to_its_budget),
        cmocka_unit_test(lines_without_memory_count_as_dropped),
        cmocka_unit_test(one_that_is_undone_calls_nobody),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
