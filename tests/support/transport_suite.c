#include "transport_suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BIG ((size_t)3 * 1024 * 1024)

static segue_status make_runtime(suite_rig *rig)
{
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .allocator = &rig->mem.mem};
    return sgi_runtime_new(&options, &rig->rt, NULL);
}

static segue_status open_rig(suite_rig *rig)
{
    segue_status status = make_runtime(rig);
    if (status != SEGUE_OK)
        return status;
    status = rig->kind->open(rig);
    if (status != SEGUE_OK)
        return status;
    rig->conn = fake_conn_new(rig->rt, rig->near);
    return SEGUE_OK;
}

void suite_set_up(suite_rig *rig, const suite_kind *kind)
{
    *rig = (suite_rig){.kind = kind, .fd = -1};
    test_mem_init(&rig->mem);
    assert_int_equal(open_rig(rig), SEGUE_OK);
}

static void close_rig(suite_rig *rig)
{
    sgi_runtime_free(rig->rt);
    if (rig->conn)
        fake_conn_free(rig->conn);
    if (rig->far)
        fake_conn_free(rig->far);
    if (rig->kind->clean)
        rig->kind->clean(rig);
}

void suite_tear_down(suite_rig *rig)
{
    close_rig(rig);
    assert_int_equal(rig->mem.live, 0);
}

static void attach(suite_rig *rig)
{
    fake_conn_attach(rig->conn);
    if (rig->far)
        fake_conn_attach(rig->far);
}

static void set_up(suite_rig *rig, void **state)
{
    suite_set_up(rig, *state);
    attach(rig);
}

/* Makes lines of many lengths, `total` bytes in all; the caller frees them. */
static char *make_lines(size_t total)
{
    char *text = malloc(total);
    size_t next = 0, length = 1;
    assert_non_null(text);
    for (size_t i = 0; i < total; i++) {
        bool end = i >= next + length || i + 1 == total;
        text[i] = end ? '\n' : (char)('!' + (i * 7 + length) % 90);
        if (end) {
            next = i + 1;
            length = (length * 31 + 7) % 5000;
        }
    }
    return text;
}

static void expect_echo(suite_rig *rig, const char *text, size_t len)
{
    RUN_UNTIL(rig->rt, rig->conn->in_len >= len);
    assert_int_equal(rig->conn->in.len, len);
    assert_memory_equal(rig->conn->in.p, text, len);
}

static void what_is_sent_comes_back_in_order(void **state)
{
    suite_rig rig;
    set_up(&rig, state);
    char *text = make_lines(200000);
    for (size_t at = 0; at < 200000; at += 1000)
        fake_conn_send(rig.conn, text + at, 1000);
    expect_echo(&rig, text, 200000);
    assert_int_equal(rig.conn->starts, 1);
    assert_int_equal(rig.conn->losses, 0);
    free(text);
    suite_tear_down(&rig);
}

static void output_before_the_start_is_not_lost(void **state)
{
    suite_rig rig;
    suite_set_up(&rig, *state);
    rig.conn->hello = "hello\n";
    attach(&rig);
    expect_echo(&rig, "hello\n", 6);
    suite_tear_down(&rig);
}

static void many_megabytes_go_through(void **state)
{
    suite_rig rig;
    set_up(&rig, state);
    char *text = make_lines(BIG);
    fake_conn_send(rig.conn, text, BIG);
    expect_echo(&rig, text, BIG);
    free(text);
    suite_tear_down(&rig);
}

static void output_in_small_portions_stays_whole(void **state)
{
    suite_rig rig;
    set_up(&rig, state);
    char *text = make_lines(20000);
    rig.conn->chunk = 333;
    fake_conn_send(rig.conn, text, 20000);
    expect_echo(&rig, text, 20000);
    free(text);
    suite_tear_down(&rig);
}

static void nothing_is_read_while_input_is_not_wanted(void **state)
{
    suite_rig rig;
    set_up(&rig, state);
    char *text = make_lines(BIG);
    RUN_UNTIL(rig.rt, rig.conn->up);
    fake_conn_want(rig.conn, false);
    fake_conn_send(rig.conn, text, BIG);
    for (int i = 0; i < 20; i++)
        sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
    assert_true(rig.conn->in_len <= SGI_READ_SIZE); /* at most one read after the pause */
    fake_conn_want(rig.conn, true);
    expect_echo(&rig, text, BIG);
    free(text);
    suite_tear_down(&rig);
}

static void the_end_of_the_peer_is_told_once(void **state)
{
    suite_rig rig;
    set_up(&rig, state);
    fake_conn_send(rig.conn, "hello\n", 6);
    expect_echo(&rig, "hello\n", 6);
    rig.kind->end_far(&rig);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->losses, 1);
    assert_int_equal(rig.conn->detaches, 1);
    assert_string_not_equal(rig.conn->why, "");
    assert_string_not_equal(rig.conn->why, "detached");
    suite_tear_down(&rig);
}

static void close_ends_the_conversation_after_its_output(void **state)
{
    suite_rig rig;
    set_up(&rig, state);
    char *text = make_lines(100000);
    rig.conn->chunk = 30000; /* so that the end does not come between two chunks */
    if (rig.far)
        rig.far->echo = false;
    fake_conn_send(rig.conn, text, 100000);
    fake_conn_close(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->detaches, 1);
    if (rig.far) {
        RUN_UNTIL(rig.rt, rig.far->detached);
        assert_int_equal(rig.far->in_len, 100000);
        assert_memory_equal(rig.far->in.p, text, 100000);
    }
    free(text);
    suite_tear_down(&rig);
}

static void freeing_the_runtime_detaches(void **state)
{
    suite_rig rig;
    set_up(&rig, state);
    fake_conn_send(rig.conn, "hello\n", 6);
    expect_echo(&rig, "hello\n", 6);
    sgi_runtime_free(rig.rt);
    rig.rt = NULL;
    assert_int_equal(rig.conn->detaches, 1);
    suite_tear_down(&rig);
}

static void freeing_the_runtime_at_once_detaches(void **state)
{
    suite_rig rig;
    set_up(&rig, state);
    sgi_runtime_free(rig.rt);
    rig.rt = NULL;
    assert_int_equal(rig.conn->detaches, 1);
    suite_tear_down(&rig);
}

static void one_that_was_never_attached_can_be_freed(void **state)
{
    suite_rig rig;
    suite_set_up(&rig, *state);
    sgi_transport_free(rig.near);
    if (rig.far)
        sgi_transport_free(rig.far->transport);
    suite_tear_down(&rig);
}

static void one_that_was_never_attached_can_be_freed_after_the_runtime(void **state)
{
    suite_rig rig;
    suite_set_up(&rig, *state);
    sgi_runtime_free(rig.rt);
    rig.rt = NULL;
    assert_int_not_equal(rig.mem.live, 0);
    sgi_transport_free(rig.near);
    if (rig.far)
        sgi_transport_free(rig.far->transport);
    suite_tear_down(&rig);
}

static void it_is_attached_once_and_not_after_stop(void **state)
{
    suite_rig rig;
    set_up(&rig, state);
    sgi_runtime_lock(rig.rt);
    assert_int_equal(sgi_transport_attach(rig.near, rig.conn), SEGUE_E_STATE);
    sgi_runtime_unlock(rig.rt);
    sgi_runtime_stop(rig.rt);
    sgi_runtime_lock(rig.rt);
    assert_int_equal(sgi_transport_attach(rig.near, rig.conn), SEGUE_E_CLOSED);
    sgi_runtime_unlock(rig.rt);
    suite_tear_down(&rig);
}

/* Sends a few messages with one allocation refused. The conversation must end once, and
 * all memory must be returned. Returns false when the scenario has fewer allocations. */
static bool survive(const suite_kind *kind, size_t fail_at, size_t fail_from)
{
    suite_rig rig = {.kind = kind, .fd = -1};
    test_mem_init(&rig.mem);
    rig.mem.fail_at = fail_at;
    rig.mem.fail_from = fail_from;
    segue_status status = open_rig(&rig);
    if (status == SEGUE_OK) {
        attach(&rig);
        fake_conn_send(rig.conn, "hello\n", 6);
        for (int i = 0; i < 400 && !rig.conn->detached && rig.conn->in_len < 6; i++)
            sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
        if (!rig.mem.failed)
            assert_int_equal(rig.conn->in_len, 6);
    } else {
        assert_int_equal(status, SEGUE_E_NOMEM);
        assert_true(rig.mem.failed);
    }
    bool failed = rig.mem.failed > 0;
    if (rig.conn) {
        sgi_runtime_free(rig.rt);
        rig.rt = NULL;
        assert_int_equal(rig.conn->detaches, 1);
    }
    close_rig(&rig);
    assert_int_equal(rig.mem.live, 0);
    return failed;
}

static void every_allocation_may_fail_once(void **state)
{
    size_t n = 1;
    while (survive(*state, n, 0))
        n++;
    assert_true(n > 3);
}

static void every_allocation_may_fail_from_some_point_on(void **state)
{
    size_t n = 1;
    while (survive(*state, 0, n))
        n++;
    assert_true(n > 3);
}

int run_transport_suite(const suite_kind *kind)
{
#define CASE(fn) cmocka_unit_test_prestate(fn, (void *)kind)
    const struct CMUnitTest tests[] = {
        CASE(what_is_sent_comes_back_in_order),
        CASE(output_before_the_start_is_not_lost),
        CASE(many_megabytes_go_through),
        CASE(output_in_small_portions_stays_whole),
        CASE(nothing_is_read_while_input_is_not_wanted),
        CASE(the_end_of_the_peer_is_told_once),
        CASE(close_ends_the_conversation_after_its_output),
        CASE(freeing_the_runtime_detaches),
        CASE(freeing_the_runtime_at_once_detaches),
        CASE(one_that_was_never_attached_can_be_freed),
        CASE(one_that_was_never_attached_can_be_freed_after_the_runtime),
        CASE(it_is_attached_once_and_not_after_stop),
        CASE(every_allocation_may_fail_once),
        CASE(every_allocation_may_fail_from_some_point_on),
    };
#undef CASE
    return cmocka_run_group_tests_name(kind->name, tests, NULL, NULL);
}
