/* Transports of the application: a loopback that takes and gives odd portions, and a test
 * for each promise of segue_ext.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/fake_engine_body.h"
#include "support/transport_suite.h"

typedef struct loop {
    segue_transport *transport;
    segue_runtime *rt;
    sgi_buf kept;      /* bytes that were sent and not fed back yet */
    size_t portion;    /* most bytes that one send takes */
    bool keep;         /* true = the bytes are not fed back */
    bool deaf;         /* sends take nothing */
    bool late;         /* reports writable later, not inside send */
    bool slow_close;   /* reports closed later, not inside close */
    bool frees_within; /* tries calls that are refused inside */
    int32_t answer;    /* the status that reopen returns */
    int starts, closes, reopens, frees, pauses, resumes;
    bool outside; /* every call was marked as a call of the application's code */
    bool paused;
} loop;

static void note(loop *l)
{
    l->outside = l->outside && sgi_runtime_is_in_callback(l->rt);
}

static void give_back(loop *l)
{
    size_t len = l->kept.len < 777 ? l->kept.len : 777;
    while (len && !l->paused && !l->keep) {
        segue_status status = sgi_transport_feed(l->transport, l->kept.p, len);
        if (status != SEGUE_OK)
            return; /* pause(0) or the end follows */
        sgi_buf_drop_front(&l->kept, len);
        len = l->kept.len < 777 ? l->kept.len : 777;
    }
}

static void loop_start(void *self, segue_transport *transport)
{
    loop *l = self;
    note(l);
    l->starts++;
    l->transport = transport;
}

static size_t loop_send(void *self, const char *bytes, size_t len)
{
    loop *l = self;
    size_t taken = l->deaf ? 0 : len < l->portion ? len : l->portion;
    note(l);
    sgi_buf_add(&l->kept, bytes, taken);
    give_back(l);
    if (taken < len && !l->late && !l->deaf)
        sgi_transport_writable(l->transport);
    return taken;
}

static void loop_close(void *self)
{
    loop *l = self;
    note(l);
    l->closes++;
    if (!l->slow_close)
        sgi_transport_closed(l->transport);
}

static void loop_pause(void *self, int32_t paused)
{
    loop *l = self;
    note(l);
    l->paused = paused;
    l->pauses += paused == 1;
    l->resumes += paused == 0;
    give_back(l);
}

static int32_t loop_reopen(void *self)
{
    loop *l = self;
    note(l);
    l->reopens++;
    return l->answer;
}

static void loop_free(void *self)
{
    loop *l = self;
    if (l->frees_within)
        sgi_runtime_free(l->rt); /* ignored, because it is called inside a callback */
    l->frees++;
}

static segue_transport_vtable make_vtable(bool reopens)
{
    segue_transport_vtable vtable = {.struct_size = sizeof vtable,
                                     .start = loop_start,
                                     .send = loop_send,
                                     .close = loop_close,
                                     .pause = loop_pause,
                                     .reopen = reopens ? loop_reopen : NULL,
                                     .free = loop_free};
    return vtable;
}

static segue_status open_with(suite_rig *rig, bool reopens)
{
    segue_transport_vtable vtable = make_vtable(reopens);
    loop *l = calloc(1, sizeof *l);
    rig->state = l;
    sgi_buf_init(&l->kept, &sgi_mem_libc);
    l->rt = rig->rt;
    l->portion = 1000;
    l->outside = true;
    return sgi_transport_custom(rig->rt, &vtable, l, &rig->near);
}

static segue_status open_loop(suite_rig *rig)
{
    return open_with(rig, false);
}

static segue_status open_reopening(suite_rig *rig)
{
    return open_with(rig, true);
}

static void end_loop(suite_rig *rig)
{
    loop *l = rig->state;
    assert_int_equal(sgi_transport_closed(l->transport), SEGUE_OK);
}

static void clean_loop(suite_rig *rig)
{
    loop *l = rig->state;
    if (!l)
        return; /* the runtime could not be made */
    assert_true(l->outside);
    if (rig->near)
        assert_int_equal(l->frees, 1);
    sgi_buf_free(&l->kept);
    free(l);
}

static const suite_kind custom_kind = {
    .name = "custom", .open = open_loop, .end_far = end_loop, .clean = clean_loop};
static const suite_kind reopening_kind = {.name = "reopening",
                                          .open = open_reopening,
                                          .end_far = end_loop,
                                          .clean = clean_loop};

static loop *set_up(suite_rig *rig, const suite_kind *kind)
{
    suite_set_up(rig, kind);
    fake_conn_attach(rig->conn);
    RUN_UNTIL(rig->rt, rig->conn->up);
    return rig->state;
}

static void settle(suite_rig *rig)
{
    for (int i = 0; i < 5; i++)
        sgi_runtime_dispatch(rig->rt, 0, 0, NULL);
}

static void a_vtable_must_be_able_to_start_send_and_close(void **state)
{
    suite_rig rig;
    segue_transport *transport = NULL;
    segue_transport_vtable vtable = make_vtable(false);
    (void)state;
    suite_set_up(&rig, &custom_kind);
    vtable.start = NULL;
    assert_int_equal(sgi_transport_custom(rig.rt, &vtable, NULL, &transport),
                     SEGUE_E_INVALID);
    vtable = make_vtable(false);
    vtable.send = NULL;
    assert_int_equal(sgi_transport_custom(rig.rt, &vtable, NULL, &transport),
                     SEGUE_E_INVALID);
    vtable = make_vtable(false);
    vtable.close = NULL;
    assert_int_equal(sgi_transport_custom(rig.rt, &vtable, NULL, &transport),
                     SEGUE_E_INVALID);
    assert_null(transport);
    sgi_transport_free(rig.near);
    suite_tear_down(&rig);
}

static void bytes_are_taken_only_between_start_and_end(void **state)
{
    suite_rig rig;
    (void)state;
    suite_set_up(&rig, &custom_kind);
    loop *l = rig.state;
    assert_int_equal(sgi_transport_feed(rig.near, "x\n", 2), SEGUE_E_STATE);
    assert_int_equal(sgi_transport_writable(rig.near), SEGUE_E_STATE);
    assert_int_equal(sgi_transport_closed(rig.near), SEGUE_E_STATE);
    fake_conn_attach(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->up);
    assert_int_equal(sgi_transport_feed(l->transport, NULL, 2), SEGUE_E_INVALID);
    assert_int_equal(sgi_transport_feed(l->transport, "x\n", 2), SEGUE_OK);
    assert_int_equal(sgi_transport_closed(l->transport), SEGUE_OK);
    assert_int_equal(sgi_transport_closed(l->transport), SEGUE_E_CLOSED);
    assert_int_equal(sgi_transport_feed(l->transport, "y\n", 2), SEGUE_E_CLOSED);
    assert_int_equal(sgi_transport_writable(l->transport), SEGUE_E_CLOSED);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->in_len, 2); /* bytes before the end count */
    assert_int_equal(l->closes, 0);
    suite_tear_down(&rig);
}

static void other_transports_take_no_bytes(void **state)
{
    suite_rig rig;
    segue_transport *a, *b;
    (void)state;
    suite_set_up(&rig, &custom_kind);
    assert_int_equal(sgi_transport_pair(rig.rt, &a, &b), SEGUE_OK);
    assert_int_equal(sgi_transport_feed(a, "x\n", 2), SEGUE_E_INVALID);
    assert_int_equal(sgi_transport_writable(a), SEGUE_E_INVALID);
    assert_int_equal(sgi_transport_closed(a), SEGUE_E_INVALID);
    sgi_transport_free(a);
    sgi_transport_free(b);
    sgi_transport_free(rig.near);
    suite_tear_down(&rig);
}

static void a_full_send_waits_for_writable(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    l->late = true;
    l->portion = 4;
    fake_conn_send(rig.conn, "12345678", 8);
    settle(&rig);
    assert_int_equal(rig.conn->in_len, 4);
    assert_int_equal(sgi_transport_writable(l->transport), SEGUE_OK);
    settle(&rig);
    assert_int_equal(rig.conn->in_len, 8);
    suite_tear_down(&rig);
}

static void writable_may_come_before_send_returns(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    l->portion = 4;
    l->keep = true; /* nothing else wakes the transport */
    fake_conn_send(rig.conn, "12345678", 8);
    settle(&rig);
    assert_int_equal(l->kept.len, 8);
    suite_tear_down(&rig);
}

static void output_behind_a_full_send_stays_with_the_engine(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    l->deaf = true;
    fake_conn_send(rig.conn, "first\n", 6);
    settle(&rig);
    fake_conn_send(rig.conn, "second\n", 7);
    settle(&rig);
    assert_int_equal(rig.conn->out.len, 7);
    l->deaf = false;
    sgi_transport_writable(l->transport);
    RUN_UNTIL(rig.rt, rig.conn->in_len == 13);
    assert_memory_equal(rig.conn->in.p, "first\nsecond\n", 13);
    suite_tear_down(&rig);
}

static void feeding_is_bounded_and_pause_tells(void **state)
{
    static char text[100000];
    segue_status status;
    size_t fed = 0;
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    fake_conn_want(rig.conn, false);
    while ((status = sgi_transport_feed(l->transport, text, sizeof text)) == SEGUE_OK)
        fed += sizeof text;
    assert_int_equal(status, SEGUE_E_WOULD_BLOCK);
    assert_in_range(fed, 1024 * 1024, 1024 * 1024 + 2 * sizeof text);
    settle(&rig);
    assert_int_equal(l->pauses, 1);
    assert_int_equal(rig.conn->in_len, 0);
    fake_conn_want(rig.conn, true);
    settle(&rig);
    assert_int_equal(rig.conn->in_len, fed);
    assert_int_equal(l->pauses, 1);
    assert_int_equal(l->resumes, 1);
    assert_int_equal(sgi_transport_feed(l->transport, text, 1), SEGUE_OK);
    suite_tear_down(&rig);
}

static void a_refused_feed_is_told_when_to_go_on(void **state)
{
    static char text[600000];
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sgi_transport_feed(l->transport, text, sizeof text), SEGUE_OK);
    assert_int_equal(sgi_transport_feed(l->transport, text, 1), SEGUE_E_WOULD_BLOCK);
    assert_int_equal(l->resumes, 0);
    settle(&rig);
    assert_int_equal(l->resumes, 1);
    suite_tear_down(&rig);
}

static void the_end_waits_for_what_was_fed_before(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    fake_conn_want(rig.conn, false);
    sgi_transport_feed(l->transport, "last words\n", 11);
    sgi_transport_closed(l->transport);
    settle(&rig);
    assert_int_equal(rig.conn->losses, 0);
    fake_conn_want(rig.conn, true);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->in_len, 11);
    suite_tear_down(&rig);
}

/* The engine wants no input before its output is sent, which nobody does any more. */
static void the_end_does_not_wait_for_output(void **state)
{
    static char text[2 << 20];
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    l->deaf = true;
    fake_conn_send(rig.conn, "first\n", 6);
    settle(&rig);
    fake_conn_send(rig.conn, text, sizeof text);
    sgi_transport_feed(l->transport, "last words\n", 11);
    settle(&rig);
    assert_int_equal(rig.conn->in_len, 0);
    sgi_transport_closed(l->transport);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->in_len, 11);
    suite_tear_down(&rig);
}

static void close_waits_for_output_and_for_closed(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    l->deaf = true;
    l->slow_close = true;
    l->keep = true;
    fake_conn_send(rig.conn, "hello\n", 6);
    fake_conn_close(rig.conn);
    settle(&rig);
    assert_int_equal(l->closes, 0);
    l->deaf = false;
    sgi_transport_writable(l->transport);
    settle(&rig);
    assert_int_equal(l->kept.len, 6);
    assert_int_equal(l->closes, 1);
    assert_false(rig.conn->detached);
    assert_int_equal(l->frees, 0);
    sgi_transport_closed(l->transport);
    settle(&rig);
    assert_true(rig.conn->detached);
    assert_int_equal(l->frees, 1);
    suite_tear_down(&rig);
}

static void a_loss_can_be_mended(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &reopening_kind);
    l->deaf = true;
    fake_conn_send(rig.conn, "lost\n", 5);
    settle(&rig);
    sgi_transport_closed(l->transport);
    settle(&rig);
    assert_int_equal(rig.conn->losses, 1);
    assert_false(rig.conn->detached);
    assert_int_equal(sgi_transport_feed(l->transport, "x\n", 2), SEGUE_E_CLOSED);
    assert_true(fake_conn_reopen(rig.conn));
    settle(&rig);
    assert_int_equal(l->reopens, 1);
    assert_int_equal(rig.conn->starts, 2);
    l->deaf = false;
    fake_conn_send(rig.conn, "found\n", 6);
    RUN_UNTIL(rig.rt, rig.conn->in_len == 6);
    assert_memory_equal(rig.conn->in.p, "found\n", 6); /* no bytes of the old
                                                        * connection */
    fake_conn_close(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    suite_tear_down(&rig);
}

static void a_refusal_to_reopen_is_final(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &reopening_kind);
    l->answer = 1;
    rig.conn->retry = true;
    sgi_transport_closed(l->transport);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->losses, 1);
    assert_int_equal(l->reopens, 1);
    suite_tear_down(&rig);
}

static void closing_a_lost_one_ends_it(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &reopening_kind);
    sgi_transport_closed(l->transport);
    settle(&rig);
    fake_conn_close(rig.conn);
    settle(&rig);
    assert_true(rig.conn->detached);
    assert_int_equal(l->closes, 0);
    suite_tear_down(&rig);
}

static void closed_at_start(void *self, segue_transport *transport)
{
    loop_start(self, transport);
    sgi_transport_feed(transport, "hello\n", 6);
    sgi_transport_closed(transport);
}

static void it_may_feed_and_close_inside_start(void **state)
{
    suite_rig rig;
    segue_transport_vtable vtable = make_vtable(false);
    (void)state;
    suite_set_up(&rig, &custom_kind);
    sgi_transport_free(rig.near);
    loop *l = rig.state;
    l->frees = 0;
    vtable.start = closed_at_start;
    assert_int_equal(sgi_transport_custom(rig.rt, &vtable, l, &rig.near), SEGUE_OK);
    rig.conn->transport = rig.near;
    fake_conn_attach(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->starts, 1);
    assert_int_equal(rig.conn->in_len, 6);
    suite_tear_down(&rig);
}

static void the_runtime_cannot_be_freed_from_inside(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    l->frees_within = true;
    sgi_transport_closed(l->transport);
    RUN_UNTIL(rig.rt, l->frees == 1);
    assert_true(sgi_runtime_is_open(rig.rt));
    suite_tear_down(&rig);
}

static void a_feed_without_memory_takes_nothing(void **state)
{
    suite_rig rig;
    (void)state;
    loop *l = set_up(&rig, &custom_kind);
    test_mem_rearm(&rig.mem);
    rig.mem.fail_at = 1;
    assert_int_equal(sgi_transport_feed(l->transport, "one\n", 4), SEGUE_E_NOMEM);
    assert_int_equal(sgi_transport_feed(l->transport, "two\n", 4), SEGUE_OK);
    RUN_UNTIL(rig.rt, rig.conn->in_len > 0);
    assert_int_equal(rig.conn->in_len, 4);
    assert_memory_equal(rig.conn->in.p, "two\n", 4);
    suite_tear_down(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vtable_must_be_able_to_start_send_and_close),
        cmocka_unit_test(bytes_are_taken_only_between_start_and_end),
        cmocka_unit_test(other_transports_take_no_bytes),
        cmocka_unit_test(a_full_send_waits_for_writable),
        cmocka_unit_test(writable_may_come_before_send_returns),
        cmocka_unit_test(output_behind_a_full_send_stays_with_the_engine),
        cmocka_unit_test(feeding_is_bounded_and_pause_tells),
        cmocka_unit_test(a_refused_feed_is_told_when_to_go_on),
        cmocka_unit_test(the_end_waits_for_what_was_fed_before),
        cmocka_unit_test(the_end_does_not_wait_for_output),
        cmocka_unit_test(close_waits_for_output_and_for_closed),
        cmocka_unit_test(a_loss_can_be_mended),
        cmocka_unit_test(a_refusal_to_reopen_is_final),
        cmocka_unit_test(closing_a_lost_one_ends_it),
        cmocka_unit_test(it_may_feed_and_close_inside_start),
        cmocka_unit_test(the_runtime_cannot_be_freed_from_inside),
        cmocka_unit_test(a_feed_without_memory_takes_nothing),
    };
    return run_transport_suite(&custom_kind) +
           cmocka_run_group_tests_name("custom", tests, NULL, NULL);
}
