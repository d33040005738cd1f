/* Tests of all transports, and of the pair of transports in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/fake_engine_body.h"
#include "support/transport_suite.h"

static segue_status open_pair(suite_rig *rig)
{
    segue_transport *far;
    segue_status status = sgi_transport_pair(rig->rt, &rig->near, &far);
    if (status != SEGUE_OK)
        return status;
    rig->far = fake_conn_new(rig->rt, far);
    rig->far->echo = true;
    return SEGUE_OK;
}

static void end_pair(suite_rig *rig)
{
    fake_conn_close(rig->far);
}

static const suite_kind pair_kind = {
    .name = "pair", .open = open_pair, .end_far = end_pair};

static void freeing_one_end_of_a_pair_loses_the_other(void **state)
{
    suite_rig rig;
    (void)state;
    suite_set_up(&rig, &pair_kind);
    fake_conn_attach(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->up);
    sgi_transport_free(rig.far->transport);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "the other end was closed");
    suite_tear_down(&rig);
}

static void an_end_that_is_attached_to_a_freed_one_is_lost(void **state)
{
    suite_rig rig;
    (void)state;
    suite_set_up(&rig, &pair_kind);
    sgi_transport_free(rig.far->transport);
    fake_conn_attach(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->starts, 1);
    assert_int_equal(rig.conn->losses, 1);
    suite_tear_down(&rig);
}

static void output_waits_for_the_other_end_to_be_attached(void **state)
{
    suite_rig rig;
    (void)state;
    suite_set_up(&rig, &pair_kind);
    fake_conn_attach(rig.conn);
    fake_conn_send(rig.conn, "hello\n", 6);
    for (int i = 0; i < 5; i++)
        sgi_runtime_dispatch(rig.rt, 0, 0, NULL);
    assert_int_equal(rig.conn->out.len, 6);
    fake_conn_attach(rig.far);
    RUN_UNTIL(rig.rt, rig.conn->in_len == 6);
    suite_tear_down(&rig);
}

static void a_pair_hands_over_in_bounded_pieces(void **state)
{
    suite_rig rig;
    static char text[300000];
    (void)state;
    suite_set_up(&rig, &pair_kind);
    rig.far->echo = false;
    fake_conn_attach(rig.conn);
    fake_conn_attach(rig.far);
    fake_conn_send(rig.conn, text, sizeof text);
    RUN_UNTIL(rig.rt, rig.far->in_len == sizeof text);
    assert_true(rig.far->most_fed <= SGI_READ_SIZE);
    suite_tear_down(&rig);
}

static void stop_feeding_far(sgi_conn *conn)
{
    conn->wants = false;
}

static void what_the_other_end_does_not_want_stays_where_it_is(void **state)
{
    suite_rig rig;
    static char text[300000];
    (void)state;
    suite_set_up(&rig, &pair_kind);
    rig.far->echo = false;
    rig.far->on_feed = stop_feeding_far;
    fake_conn_attach(rig.conn);
    fake_conn_attach(rig.far);
    fake_conn_send(rig.conn, text, sizeof text);
    RUN_UNTIL(rig.rt, rig.far->in_len > 0);
    for (int i = 0; i < 5; i++)
        sgi_runtime_dispatch(rig.rt, 0, 0, NULL);
    assert_int_equal(rig.far->feeds, 1);
    fake_conn_send(rig.conn, text, 1000); /* the transport does not take the bytes from
                                           * the connection's output */
    for (int i = 0; i < 5; i++)
        sgi_runtime_dispatch(rig.rt, 0, 0, NULL);
    assert_int_equal(rig.conn->out.len, 1000);
    suite_tear_down(&rig);
}

static void both_ends_may_close_at_once(void **state)
{
    suite_rig rig;
    (void)state;
    suite_set_up(&rig, &pair_kind);
    fake_conn_attach(rig.conn);
    fake_conn_attach(rig.far);
    fake_conn_close(rig.conn);
    fake_conn_close(rig.far);
    RUN_UNTIL(rig.rt, rig.conn->detached && rig.far->detached);
    assert_int_equal(rig.conn->detaches, 1);
    assert_int_equal(rig.far->detaches, 1);
    suite_tear_down(&rig);
}

static void a_pair_needs_a_runtime_that_is_open(void **state)
{
    suite_rig rig;
    segue_transport *a = NULL, *b = NULL;
    (void)state;
    suite_set_up(&rig, &pair_kind);
    sgi_runtime_stop(rig.rt);
    assert_int_equal(sgi_transport_pair(rig.rt, &a, &b), SEGUE_E_CLOSED);
    assert_null(a);
    assert_null(b);
    sgi_transport_free(rig.near);
    sgi_transport_free(rig.far->transport);
    suite_tear_down(&rig);
}

static void freeing_an_attached_one_does_nothing(void **state)
{
    suite_rig rig;
    (void)state;
    suite_set_up(&rig, &pair_kind);
    fake_conn_attach(rig.conn);
    fake_conn_attach(rig.far);
    sgi_transport_free(rig.near);
    sgi_transport_free(NULL);
    fake_conn_send(rig.conn, "hello\n", 6);
    RUN_UNTIL(rig.rt, rig.conn->in_len == 6);
    suite_tear_down(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freeing_one_end_of_a_pair_loses_the_other),
        cmocka_unit_test(an_end_that_is_attached_to_a_freed_one_is_lost),
        cmocka_unit_test(output_waits_for_the_other_end_to_be_attached),
        cmocka_unit_test(a_pair_hands_over_in_bounded_pieces),
        cmocka_unit_test(what_the_other_end_does_not_want_stays_where_it_is),
        cmocka_unit_test(both_ends_may_close_at_once),
        cmocka_unit_test(a_pair_needs_a_runtime_that_is_open),
        cmocka_unit_test(freeing_an_attached_one_does_nothing),
    };
    return run_transport_suite(&pair_kind) +
           cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
