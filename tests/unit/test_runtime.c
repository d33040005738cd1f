/* An inline runtime: time, callbacks, the order of a turn, and the end.
 * test_runtime_stores.c has the stores, test_threads_runtime.c the tests with a second
 * thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine/error.h"
#include "store/store.h"
#include "support/runtime_rig.h"
#include "support/fake_engine_body.h"
#include "support/test_mem.h"

#define SLOW_MS 120000 /* longer than the slowest machine needs */

/* ---- rig ---- */

/* A callback that counts, and may queue itself again. */
typedef struct event {
    sgi_ready_object ready;
    sgi_engine *engine;
    segue_runtime *rt;
    int32_t left; /* how many times it queues itself */
    int32_t ran;
    void (*body)(struct event *event); /* user code: runs without the lock */
} event;

static int32_t run_event(sgi_ready_object *ready, int32_t budget)
{
    event *e = SGI_OWNER(ready, event, ready);
    int32_t ran = 0;
    while (e->left > 0 && ran < budget) {
        e->left--;
        e->ran++;
        ran++;
        sgi_user_code_begin(e->engine);
        if (e->body)
            e->body(e);
        sgi_user_code_end(e->engine);
    }
    if (e->left)
        sgi_ready_queue_add(e->engine, &e->ready);
    return ran;
}

static void queue_event(rig *r, event *e, int32_t times, void (*body)(event *))
{
    *e = (event){{.run = run_event}, r->engine, r->rt, times, 0, body};
    sgi_runtime_lock(r->rt);
    sgi_ready_queue_add(r->engine, &e->ready);
    sgi_runtime_unlock(r->rt);
}

/* ---- options ---- */

static void zero_means_default(void **state)
{
    rig r;
    (void)state;
    rig_set_up(&r);
    assert_int_equal(r.engine->max_message, 64 * 1024 * 1024);
    assert_int_equal(r.engine->reader.max_depth, 512);
    assert_int_equal(r.engine->max_queue, 1024 * 1024);
    assert_int_equal(sgi_now(&r.engine->env), 5000);
    assert_true(llabs(sgi_wall_now(&r.engine->env) - (int64_t)time(NULL) * 1000) <
                SLOW_MS);
    uint8_t a[16], b[16];
    assert_true(sgi_random(&r.engine->env, a, 16) && sgi_random(&r.engine->env, b, 16));
    assert_memory_not_equal(a, b, 16);
    rig_tear_down(&r);
}

static int logged;

static void count_log(void *user, int32_t level, const char *text)
{
    (void)user;
    assert_int_equal(level, SEGUE_LOG_WARNING);
    assert_string_equal(text, "seven 7");
    logged++;
}

static void options_are_heeded(void **state)
{
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .log = count_log,
                                     .log_level = SEGUE_LOG_WARNING,
                                     .max_message_bytes = 1000,
                                     .max_depth = 5,
                                     .max_queue_bytes = 2000};
    segue_runtime *rt;
    (void)state;
    assert_int_equal(sgi_runtime_new(&options, &rt, NULL), SEGUE_OK);
    sgi_engine *engine = sgi_runtime_engine(rt);
    assert_int_equal(engine->max_message, 1000);
    assert_int_equal(engine->reader.max_depth, 5);
    assert_int_equal(engine->max_queue, 2000);
    logged = 0;
    sgi_engine_log(engine, SEGUE_LOG_INFO, "not %s", "this");
    sgi_engine_log(engine, SEGUE_LOG_WARNING, "seven %d", 7);
    assert_int_equal(logged, 1);
    sgi_runtime_free(rt);
}

static void a_runtime_that_gets_no_memory_says_so(void **state)
{
    test_mem mem;
    size_t n = 0;
    segue_status status;
    (void)state;
    do {
        segue_runtime_options options = {
            .struct_size = sizeof options, .allocator = &mem.mem, .lend_input = 1};
        segue_runtime *rt = NULL;
        segue_error *error = NULL;
        test_mem_init(&mem);
        mem.fail_at = ++n;
        status = sgi_runtime_new(&options, &rt, &error);
        if (status == SEGUE_OK) {
            sgi_runtime_free(rt);
        } else {
            assert_int_equal(status, SEGUE_E_NOMEM);
            assert_null(rt);
            assert_non_null(error);
            assert_int_equal(segue_error_read(error)->status, SEGUE_E_NOMEM);
            sgi_error_free(error);
        }
        assert_int_equal(mem.live, 0);
    } while (status != SEGUE_OK);
    assert_true(n > 2);
}

/* ---- callbacks ---- */

static void callbacks_run_in_dispatch_and_are_counted(void **state)
{
    rig r;
    event e;
    (void)state;
    rig_set_up(&r);
    queue_event(&r, &e, 3, NULL);
    assert_int_equal(e.ran, 0);
    assert_int_equal(rig_dispatch(&r, 0), 3);
    assert_int_equal(e.ran, 3);
    assert_int_equal(rig_dispatch(&r, 0), 0);
    rig_tear_down(&r);
}

static void a_limit_leaves_the_rest_for_later(void **state)
{
    rig r;
    event e;
    (void)state;
    rig_set_up(&r);
    queue_event(&r, &e, 1000, NULL);
    assert_int_equal(rig_dispatch(&r, 1), 1);
    assert_int_equal(rig_dispatch(&r, 600), 600);
    assert_int_equal(rig_dispatch(&r, 600), 399);
    rig_tear_down(&r);
}

static void without_limit_all_that_is_due_runs(void **state)
{
    rig r;
    event e;
    (void)state;
    rig_set_up(&r);
    queue_event(&r, &e, 5000, NULL);
    assert_int_equal(rig_dispatch(&r, 0), 5000);
    rig_tear_down(&r);
}

static void queue_again(event *e)
{
    e->left++;
}

static void an_endless_chain_of_callbacks_does_not_keep_dispatch(void **state)
{
    rig r;
    event e;
    (void)state;
    rig_set_up(&r);
    queue_event(&r, &e, 1, queue_again);
    assert_true(rig_dispatch(&r, 0) > 1000);
    e.body = NULL;
    rig_tear_down(&r);
}

static void try_what_is_refused(event *e)
{
    int32_t ran = -1;
    assert_true(sgi_runtime_is_in_callback(e->rt));
    assert_int_equal(sgi_runtime_dispatch(e->rt, 0, 0, &ran), SEGUE_E_REENTRANT);
    assert_int_equal(sgi_runtime_run(e->rt), SEGUE_E_REENTRANT);
    assert_int_equal(sgi_runtime_start(e->rt), SEGUE_E_REENTRANT);
    assert_int_equal(ran, -1);
    sgi_runtime_free(e->rt);
}

static void inside_a_callback_the_loop_is_out_of_reach(void **state)
{
    rig r;
    event e;
    (void)state;
    rig_set_up(&r);
    queue_event(&r, &e, 1, try_what_is_refused);
    assert_false(sgi_runtime_is_in_callback(r.rt));
    assert_int_equal(rig_dispatch(&r, 0), 1);
    assert_false(sgi_runtime_is_in_callback(r.rt));
    assert_true(sgi_runtime_is_open(r.rt));
    rig_tear_down(&r);
}

static int64_t real_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void dispatch_waits_no_longer_than_it_was_told(void **state)
{
    rig r;
    int32_t ran = -1;
    (void)state;
    rig_set_up(&r);
    int64_t begun = real_ms();
    assert_int_equal(sgi_runtime_dispatch(r.rt, 20, 0, &ran), SEGUE_OK);
    int64_t took = real_ms() - begun;
    assert_int_equal(ran, 0);
    assert_in_range(took, 19, SLOW_MS);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -2, 0, &ran), SEGUE_E_INVALID);
    assert_int_equal(sgi_runtime_dispatch(r.rt, 0, -1, &ran), SEGUE_E_INVALID);
    rig_tear_down(&r);
}

static void dispatch_returns_as_soon_as_a_callback_ran(void **state)
{
    rig r;
    event e;
    int32_t ran;
    (void)state;
    rig_set_up(&r);
    queue_event(&r, &e, 1, NULL);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    rig_tear_down(&r);
}

/* ---- time ---- */

typedef struct alert {
    sgi_timer timer;
    sgi_engine *engine;
    int rang;
    event *then;
} alert;

static void ring(sgi_timer *timer)
{
    alert *a = SGI_OWNER(timer, alert, timer);
    a->rang++;
    if (a->then)
        sgi_ready_queue_add(a->engine, &a->then->ready);
}

static void set_alert(rig *r, alert *a, int64_t delay_ms)
{
    *a = (alert){.engine = r->engine};
    sgi_runtime_lock(r->rt);
    sgi_engine_set_timer(r->engine, &a->timer, delay_ms, ring);
    sgi_runtime_unlock(r->rt);
}

static void timers_follow_the_injected_clock(void **state)
{
    rig r;
    alert a;
    (void)state;
    rig_set_up(&r);
    set_alert(&r, &a, 1000);
    rig_dispatch(&r, 0);
    r.now += 999;
    rig_dispatch(&r, 0);
    assert_int_equal(a.rang, 0);
    r.now += 1;
    rig_dispatch(&r, 0);
    assert_int_equal(a.rang, 1);
    rig_dispatch(&r, 0);
    assert_int_equal(a.rang, 1);
    rig_tear_down(&r);
}

static void the_real_clock_ends_a_wait_for_a_timer(void **state)
{
    segue_runtime_options options = {.struct_size = sizeof options};
    rig r = {0};
    event e;
    alert a;
    (void)state;
    assert_int_equal(sgi_runtime_new(&options, &r.rt, NULL), SEGUE_OK);
    r.engine = sgi_runtime_engine(r.rt);
    e = (event){{.run = run_event}, r.engine, r.rt, 1, 0, NULL};
    int64_t begun = real_ms();
    set_alert(&r, &a, 30);
    a.then = &e;
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, NULL), SEGUE_OK);
    assert_in_range(real_ms() - begun, 29, SLOW_MS);
    assert_int_equal(e.ran, 1);
    sgi_runtime_free(r.rt);
}

/* ---- the end ---- */

static void after_stop_only_callbacks_are_left(void **state)
{
    rig r;
    event e;
    alert a;
    int32_t ran;
    (void)state;
    rig_set_up(&r);
    set_alert(&r, &a, 0);
    queue_event(&r, &e, 3, NULL);
    assert_int_equal(sgi_runtime_stop(r.rt), SEGUE_OK);
    assert_int_equal(sgi_runtime_stop(r.rt), SEGUE_OK);
    assert_false(sgi_runtime_is_open(r.rt));
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 2, &ran), SEGUE_OK);
    assert_int_equal(ran, 2);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_E_CLOSED);
    assert_int_equal(a.rang, 0);
    assert_int_equal(sgi_runtime_run(r.rt), SEGUE_OK);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_E_CLOSED);
    rig_tear_down(&r);
}

static void stop_within(event *e)
{
    sgi_runtime_stop(e->rt);
}

static void run_returns_when_a_callback_stops_it(void **state)
{
    rig r;
    event e;
    (void)state;
    rig_set_up(&r);
    queue_event(&r, &e, 1, stop_within);
    assert_int_equal(sgi_runtime_run(r.rt), SEGUE_OK);
    assert_int_equal(e.ran, 1);
    rig_tear_down(&r);
}

static segue_runtime *stopped_by_signal;

static void stop_by_signal(int number)
{
    (void)number;
    segue_runtime_stop(stopped_by_signal);
}

static void a_signal_handler_stops_a_thread_that_holds_the_lock(void **state)
{
    rig r;
    (void)state;
    rig_set_up(&r);
    stopped_by_signal = r.rt;
    signal(SIGUSR1, stop_by_signal);
    errno = 7;
    sgi_runtime_lock(r.rt);
    raise(SIGUSR1);
    assert_int_equal(errno, 7);
    sgi_runtime_unlock(r.rt);
    assert_int_equal(sgi_runtime_run(r.rt), SEGUE_OK);
    signal(SIGUSR1, SIG_DFL);
    rig_tear_down(&r);
}

static void an_inline_runtime_is_neither_started_nor_polled(void **state)
{
    rig r;
    int32_t fd = -1;
    (void)state;
    rig_set_up(&r);
    assert_int_equal(sgi_runtime_fd(r.rt, &fd), SEGUE_OK); /* the runtime may still be
                                                            * started */
    assert_true(fd >= 0);
    rig_dispatch(&r, 0);
    fd = -1;
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_E_STATE);
    assert_int_equal(sgi_runtime_fd(r.rt, &fd), SEGUE_E_STATE);
    assert_int_equal(fd, -1);
    rig_tear_down(&r);
}

typedef struct stopper {
    sgi_stop_hook hook;
    rig *r;
    event *due;
    int ran;
} stopper;

static void on_stop(sgi_stop_hook *hook)
{
    stopper *s = SGI_OWNER(hook, stopper, hook);
    assert_false(hook->set);
    sgi_runtime_remove_stop_hook(s->r->rt, hook); /* a second stop of the hook is
                                                     harmless */
    s->ran++;
    if (s->due)
        sgi_ready_queue_add(s->r->engine, &s->due->ready);
}

static void free_runs_the_hooks_and_then_what_they_make_due(void **state)
{
    rig r;
    event e;
    stopper kept = {.hook = {.fn = on_stop}}, dropped = {.hook = {.fn = on_stop}};
    (void)state;
    rig_set_up(&r);
    e = (event){{.run = run_event}, r.engine, r.rt, 3, 0, NULL};
    kept.r = dropped.r = &r;
    kept.due = &e;
    sgi_runtime_lock(r.rt);
    sgi_runtime_add_stop_hook(r.rt, &kept.hook);
    sgi_runtime_add_stop_hook(r.rt, &dropped.hook);
    sgi_runtime_remove_stop_hook(r.rt, &dropped.hook);
    sgi_runtime_unlock(r.rt);
    sgi_runtime_stop(r.rt);
    assert_int_equal(kept.ran, 0);
    rig_tear_down(&r);
    assert_int_equal(kept.ran, 1);
    assert_int_equal(dropped.ran, 0);
    assert_int_equal(e.ran, 3);
}

/* The injected clock cannot be moved while free waits for a peer that reads nothing. */
static void time_goes_on_while_the_runtime_is_freed(void **state)
{
    static char text[1000000];
    rig r;
    segue_transport *near;
    int fds[2];
    (void)state;
    rig_set_up(&r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(sgi_transport_fds(r.rt, fds[0], fds[0], &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    fake_conn_attach(conn);
    fake_conn_send(conn, text, sizeof text);
    rig_dispatch(&r, 0);
    int64_t begun = real_ms();
    sgi_runtime_free(r.rt);
    assert_in_range(real_ms() - begun, SGI_LINGER_MS - 1, SLOW_MS);
    assert_int_equal(conn->detaches, 1);
    fake_conn_free(conn);
    close(fds[1]);
    assert_int_equal(r.mem.live, 0);
}

static void the_struct_lives_until_the_last_reference(void **state)
{
    rig r;
    (void)state;
    rig_set_up(&r);
    sgi_runtime_ref(r.rt);
    sgi_runtime_lock(r.rt);
    r.engine->host.retain(r.engine->host.user);
    sgi_runtime_unlock(r.rt);
    sgi_runtime_free(r.rt);
    assert_false(sgi_runtime_is_open(r.rt));
    sgi_runtime_unref(r.rt);
    assert_int_not_equal(r.mem.live, 0);
    sgi_runtime_lock(r.rt);
    r.engine->host.wake(r.engine->host.user); /* the call has no effect */
    r.engine->host.release(r.engine->host.user);
    sgi_runtime_unlock(r.rt);
    assert_int_equal(r.mem.live, 0);
    sgi_runtime_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_means_default),
        cmocka_unit_test(options_are_heeded),
        cmocka_unit_test(a_runtime_that_gets_no_memory_says_so),
        cmocka_unit_test(callbacks_run_in_dispatch_and_are_counted),
        cmocka_unit_test(a_limit_leaves_the_rest_for_later),
        cmocka_unit_test(without_limit_all_that_is_due_runs),
        cmocka_unit_test(an_endless_chain_of_callbacks_does_not_keep_dispatch),
        cmocka_unit_test(inside_a_callback_the_loop_is_out_of_reach),
        cmocka_unit_test(dispatch_waits_no_longer_than_it_was_told),
        cmocka_unit_test(dispatch_returns_as_soon_as_a_callback_ran),
        cmocka_unit_test(timers_follow_the_injected_clock),
        cmocka_unit_test(the_real_clock_ends_a_wait_for_a_timer),
        cmocka_unit_test(after_stop_only_callbacks_are_left),
        cmocka_unit_test(run_returns_when_a_callback_stops_it),
        cmocka_unit_test(a_signal_handler_stops_a_thread_that_holds_the_lock),
        cmocka_unit_test(an_inline_runtime_is_neither_started_nor_polled),
        cmocka_unit_test(free_runs_the_hooks_and_then_what_they_make_due),
        cmocka_unit_test(time_goes_on_while_the_runtime_is_freed),
        cmocka_unit_test(the_struct_lives_until_the_last_reference),
    };
    return cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
}
