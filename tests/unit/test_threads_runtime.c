/* Background runtimes and calls from other threads: which thread dispatches, which is
 * woken, and which waits for another. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>

#include "support/fake_engine_body.h"
#include "support/threads_rig.h"

static void callbacks_run_on_the_thread_that_dispatches(void **state)
{
    threads_rig r;
    event e;
    int32_t ran;
    (void)state;
    threads_begin(&r);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_E_STATE);
    assert_int_equal(sgi_runtime_run(r.rt), SEGUE_E_STATE);
    event_prepare(&r, &e, 3, NULL);
    event_queue(&r, &e);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 3);
    assert_true(pthread_equal(e.thread, pthread_self()));
    threads_end(&r);
}

static void the_descriptor_is_readable_exactly_while_something_is_due(void **state)
{
    threads_rig r;
    event e;
    int32_t fd, ran;
    (void)state;
    threads_begin(&r);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_runtime_fd(r.rt, &fd), SEGUE_OK);
    assert_false(threads_readable(fd));
    assert_int_equal(r.woken, 0);
    for (int round = 1; round <= 3; round++) {
        event_prepare(&r, &e, 5, NULL);
        event_queue(&r, &e);
        assert_true(threads_readable(fd));
        event_queue(&r, &e);
        assert_int_equal(r.woken, 2 * round - 1); /* one wake-up for any number of
                                                   * events */
        assert_int_equal(sgi_runtime_dispatch(r.rt, 0, 2, &ran), SEGUE_OK);
        assert_int_equal(ran, 2);
        assert_true(threads_readable(fd)); /* an event is left */
        assert_int_equal(r.woken, 2 * round);
        assert_int_equal(sgi_runtime_dispatch(r.rt, 0, 0, &ran), SEGUE_OK);
        assert_int_equal(ran, 3);
        assert_false(threads_readable(fd));
        assert_int_equal(r.woken, 2 * round);
    }
    sgi_runtime_stop(r.rt);
    assert_true(threads_readable(fd));
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_E_CLOSED);
    assert_true(threads_readable(fd));
    threads_end(&r);
}

static void what_was_due_before_the_start_rings_too(void **state)
{
    threads_rig r;
    event e;
    int32_t fd;
    (void)state;
    threads_begin(&r);
    event_prepare(&r, &e, 1, NULL);
    event_queue(&r, &e);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_runtime_fd(r.rt, &fd), SEGUE_OK);
    assert_true(threads_readable(fd));
    threads_end(&r);
    assert_int_equal(e.ran, 1); /* freeing the runtime ran the event */
}

static void *dispatch_without_end(void *user)
{
    threads_rig *r = user;
    while (sgi_runtime_dispatch(r->rt, -1, 0, NULL) != SEGUE_E_CLOSED)
        ;
    return NULL;
}

typedef struct meeting {
    sem_t inside;
    sem_t leave;
} meeting;

static void meet(event *e)
{
    meeting *m = e->user;
    sem_post(&m->inside);
    sem_wait(&m->leave);
}

static void only_one_thread_dispatches(void **state)
{
    threads_rig r;
    event e;
    meeting m;
    pthread_t thread;
    int32_t ran = -1;
    (void)state;
    threads_begin(&r);
    sem_init(&m.inside, 0, 0);
    sem_init(&m.leave, 0, 0);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    event_prepare(&r, &e, 1, meet);
    e.user = &m;
    event_queue(&r, &e);
    pthread_create(&thread, NULL, dispatch_without_end, &r);
    sem_wait(&m.inside);
    assert_int_equal(sgi_runtime_dispatch(r.rt, 0, 0, &ran), SEGUE_E_THREAD);
    assert_int_equal(ran, -1);
    assert_false(sgi_runtime_is_in_callback(r.rt)); /* only the other runtime is in a
                                                  * callback */
    sem_post(&m.leave);
    sgi_runtime_stop(r.rt);
    pthread_join(thread, NULL);
    sem_destroy(&m.inside);
    sem_destroy(&m.leave);
    threads_end(&r);
}

static void *queue_it(void *user)
{
    event *e = user;
    event_queue(e->r, e);
    return NULL;
}

static void an_inline_dispatch_is_woken_by_another_thread(void **state)
{
    threads_rig r;
    event e;
    pthread_t thread;
    int32_t ran;
    (void)state;
    threads_begin(&r);
    event_prepare(&r, &e, 1, NULL);
    pthread_create(&thread, NULL, queue_it, &e);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    pthread_join(thread, NULL);
    threads_end(&r);
}

static segue_runtime *_Atomic interrupted; /* the runtime that the handler interrupts;
                                            * NULL = none */
static atomic_bool storming;

static void stop_by_signal(int number)
{
    segue_runtime *rt = atomic_load(&interrupted);
    (void)number;
    if (rt)
        segue_runtime_stop(rt);
}

static void *storm(void *user)
{
    while (atomic_load(&storming)) {
        pthread_kill(*(pthread_t *)user, SIGUSR1);
        sched_yield();
    }
    return NULL;
}

/* Callbacks that queue callbacks, so that the lock is taken all the time. */
static void be_busy(threads_rig *r, event *e, bool background)
{
    segue_status status = SEGUE_OK;
    event_prepare(r, e, INT32_MAX, NULL);
    event_queue(r, e);
    atomic_store(&interrupted, r->rt);
    if (!background)
        assert_int_equal(sgi_runtime_run(r->rt), SEGUE_OK);
    else
        while (sgi_runtime_is_open(r->rt) && status == SEGUE_OK)
            status = sgi_runtime_dispatch(r->rt, -1, 1, NULL);
    sgi_runtime_lock(r->rt);
    e->left = 1;
    sgi_runtime_unlock(r->rt);
    assert_int_equal(sgi_runtime_dispatch(r->rt, -1, 0, NULL), SEGUE_OK);
    assert_int_equal(sgi_runtime_dispatch(r->rt, -1, 0, NULL), SEGUE_E_CLOSED);
    atomic_store(&interrupted, NULL);
}

static void a_storm_of_signals_stops_one_runtime_after_the_other(void **state)
{
    pthread_t thread, self = pthread_self();
    (void)state;
    signal(SIGUSR1, stop_by_signal);
    atomic_store(&storming, true);
    assert_int_equal(pthread_create(&thread, NULL, storm, &self), 0);
    for (int round = 0; round < 300; round++) {
        threads_rig r;
        event e;
        threads_begin(&r);
        if (round % 2)
            assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
        be_busy(&r, &e, round % 2);
        threads_end(&r);
    }
    atomic_store(&storming, false);
    pthread_join(thread, NULL);
    signal(SIGUSR1, SIG_DFL);
}

static void *stop_it(void *user)
{
    sgi_runtime_stop(((threads_rig *)user)->rt);
    return NULL;
}

static void stop_from_another_thread_ends_run_and_dispatch(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        threads_rig r;
        pthread_t thread;
        threads_begin(&r);
        if (mode == 2)
            assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
        pthread_create(&thread, NULL, stop_it, &r);
        if (mode == 0)
            assert_int_equal(sgi_runtime_run(r.rt), SEGUE_OK);
        else
            assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, NULL), SEGUE_E_CLOSED);
        pthread_join(thread, NULL);
        threads_end(&r);
    }
}

static void *run_it(void *user)
{
    sgi_runtime_run(((threads_rig *)user)->rt);
    return NULL;
}

static void free_waits_for_run_to_return(void **state)
{
    threads_rig r;
    event e;
    meeting m;
    pthread_t thread;
    (void)state;
    threads_begin(&r);
    sem_init(&m.inside, 0, 0);
    sem_init(&m.leave, 0, 1);
    event_prepare(&r, &e, 1, meet);
    e.user = &m;
    event_queue(&r, &e);
    pthread_create(&thread, NULL, run_it, &r);
    sem_wait(&m.inside); /* the event's callback runs now */
    assert_int_equal(sgi_runtime_dispatch(r.rt, 0, 0, NULL), SEGUE_E_THREAD);
    assert_int_equal(sgi_runtime_run(r.rt), SEGUE_E_STATE);
    threads_end(&r);
    pthread_join(thread, NULL);
    sem_destroy(&m.inside);
    sem_destroy(&m.leave);
}

/* A timer that is set on the host's thread wakes the I/O thread in time. */
static event *due_by_timer;

static void make_due(sgi_timer *timer)
{
    (void)timer;
    sgi_ready_queue_add(due_by_timer->r->engine, &due_by_timer->ready);
}

static void a_timer_set_elsewhere_shortens_the_wait(void **state)
{
    threads_rig r;
    event e;
    sgi_timer late = {0}, soon = {0};
    int32_t ran;
    (void)state;
    threads_begin(&r);
    event_prepare(&r, &e, 1, NULL);
    due_by_timer = &e;
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    sgi_runtime_lock(r.rt);
    sgi_engine_set_timer(r.engine, &late, 3600000, make_due);
    sgi_runtime_unlock(r.rt);
    threads_until_asleep(&r);
    sgi_runtime_lock(r.rt);
    sgi_engine_set_timer(r.engine, &soon, 5, make_due);
    sgi_runtime_unlock(r.rt);
    assert_int_equal(sgi_runtime_dispatch(r.rt, 10000, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    threads_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_run_on_the_thread_that_dispatches),
        cmocka_unit_test(the_descriptor_is_readable_exactly_while_something_is_due),
        cmocka_unit_test(what_was_due_before_the_start_rings_too),
        cmocka_unit_test(only_one_thread_dispatches),
        cmocka_unit_test(an_inline_dispatch_is_woken_by_another_thread),
        cmocka_unit_test(stop_from_another_thread_ends_run_and_dispatch),
        cmocka_unit_test(a_storm_of_signals_stops_one_runtime_after_the_other),
        cmocka_unit_test(free_waits_for_run_to_return),
        cmocka_unit_test(a_timer_set_elsewhere_shortens_the_wait),
    };
    return cmocka_run_group_tests_name("threads_runtime", tests, NULL, NULL);
}
