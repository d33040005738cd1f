/* An inline runtime: time, callbacks, stores that do not block, the order of a turn, and
 * the end. test_threads_runtime.c has the tests with a second thread. */
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
#include "support/fake_engine_body.h"
#include "support/test_mem.h"

#define SLOW_MS 120000 /* longer than the slowest machine needs */

/* ---- rig ---- */

typedef struct rig {
    test_mem mem;
    segue_hooks hooks;
    int64_t now;
    segue_runtime *rt;
    sgi_engine *engine;
} rig;

static int64_t read_clock(void *user)
{
    return ((rig *)user)->now;
}

static void set_up(rig *r)
{
    *r = (rig){.now = 5000};
    test_mem_init(&r->mem);
    r->hooks = (segue_hooks){sizeof r->hooks, r, read_clock, NULL, NULL};
    segue_runtime_options options = {
        .struct_size = sizeof options, .allocator = &r->mem.mem, .hooks = &r->hooks};
    assert_int_equal(sgi_runtime_new(&options, &r->rt, NULL), SEGUE_OK);
    r->engine = sgi_runtime_engine(r->rt);
}

static void tear_down(rig *r)
{
    sgi_runtime_free(r->rt);
    assert_int_equal(r->mem.live, 0);
}

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

static int32_t dispatch(rig *r, int32_t max_events)
{
    int32_t ran = -1;
    assert_int_equal(sgi_runtime_dispatch(r->rt, 0, max_events, &ran), SEGUE_OK);
    return ran;
}

/* ---- options ---- */

static void zero_means_default(void **state)
{
    rig r;
    (void)state;
    set_up(&r);
    assert_int_equal(r.engine->max_message, 64 * 1024 * 1024);
    assert_int_equal(r.engine->reader.max_depth, 512);
    assert_int_equal(r.engine->max_queue, 1024 * 1024);
    assert_int_equal(sgi_now(&r.engine->env), 5000);
    assert_true(llabs(sgi_wall_now(&r.engine->env) - (int64_t)time(NULL) * 1000) <
                SLOW_MS);
    uint8_t a[16], b[16];
    assert_true(sgi_random(&r.engine->env, a, 16) && sgi_random(&r.engine->env, b, 16));
    assert_memory_not_equal(a, b, 16);
    tear_down(&r);
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
    set_up(&r);
    queue_event(&r, &e, 3, NULL);
    assert_int_equal(e.ran, 0);
    assert_int_equal(dispatch(&r, 0), 3);
    assert_int_equal(e.ran, 3);
    assert_int_equal(dispatch(&r, 0), 0);
    tear_down(&r);
}

static void a_limit_leaves_the_rest_for_later(void **state)
{
    rig r;
    event e;
    (void)state;
    set_up(&r);
    queue_event(&r, &e, 1000, NULL);
    assert_int_equal(dispatch(&r, 1), 1);
    assert_int_equal(dispatch(&r, 600), 600);
    assert_int_equal(dispatch(&r, 600), 399);
    tear_down(&r);
}

static void without_limit_all_that_is_due_runs(void **state)
{
    rig r;
    event e;
    (void)state;
    set_up(&r);
    queue_event(&r, &e, 5000, NULL);
    assert_int_equal(dispatch(&r, 0), 5000);
    tear_down(&r);
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
    set_up(&r);
    queue_event(&r, &e, 1, queue_again);
    assert_true(dispatch(&r, 0) > 1000);
    e.body = NULL;
    tear_down(&r);
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
    set_up(&r);
    queue_event(&r, &e, 1, try_what_is_refused);
    assert_false(sgi_runtime_is_in_callback(r.rt));
    assert_int_equal(dispatch(&r, 0), 1);
    assert_false(sgi_runtime_is_in_callback(r.rt));
    assert_true(sgi_runtime_is_open(r.rt));
    tear_down(&r);
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
    set_up(&r);
    int64_t begun = real_ms();
    assert_int_equal(sgi_runtime_dispatch(r.rt, 20, 0, &ran), SEGUE_OK);
    int64_t took = real_ms() - begun;
    assert_int_equal(ran, 0);
    assert_in_range(took, 19, SLOW_MS);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -2, 0, &ran), SEGUE_E_INVALID);
    assert_int_equal(sgi_runtime_dispatch(r.rt, 0, -1, &ran), SEGUE_E_INVALID);
    tear_down(&r);
}

static void dispatch_returns_as_soon_as_a_callback_ran(void **state)
{
    rig r;
    event e;
    int32_t ran;
    (void)state;
    set_up(&r);
    queue_event(&r, &e, 1, NULL);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    tear_down(&r);
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
    set_up(&r);
    set_alert(&r, &a, 1000);
    dispatch(&r, 0);
    r.now += 999;
    dispatch(&r, 0);
    assert_int_equal(a.rang, 0);
    r.now += 1;
    dispatch(&r, 0);
    assert_int_equal(a.rang, 1);
    dispatch(&r, 0);
    assert_int_equal(a.rang, 1);
    tear_down(&r);
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

/* ---- stores that do not block ---- */

typedef struct test_store {
    segue_store *store;
    int commits, reads, finds, claims, purges, frees;
    segue_status answer;
    sgi_conn *other; /* its received bytes at the time of the commit are noted */
    size_t seen;
} test_store;

static segue_status store_commit(void *self, const segue_store_write *writes,
                                 size_t count)
{
    test_store *s = self;
    (void)writes;
    assert_true(count > 0);
    s->commits++;
    if (s->other)
        s->seen = s->other->in_len;
    return s->answer;
}

static segue_status store_find(void *self, const char *task_id, const uint8_t *key,
                               segue_store_record_fn fn, void *user)
{
    test_store *s = self;
    segue_store_record record = {.task_id = "t"};
    (void)task_id;
    (void)key;
    s->finds++;
    fn(user, &record);
    return SEGUE_OK;
}

static segue_status store_read(void *self, const uint8_t *id, uint64_t after,
                               segue_store_entry_fn fn, void *user)
{
    test_store *s = self;
    segue_store_entry entry = {.seq = after + 1};
    (void)id;
    s->reads++;
    fn(user, &entry);
    return SEGUE_OK;
}

static segue_status store_claim(void *self, segue_store_record_fn fn, void *user)
{
    test_store *s = self;
    (void)fn;
    (void)user;
    s->claims++;
    return SEGUE_E_STORE;
}

static segue_status store_purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    test_store *s = self;
    s->purges++;
    *next_ms = now_ms + 1;
    return SEGUE_OK;
}

static void store_free(void *self)
{
    ((test_store *)self)->frees++;
}

static void open_store(test_store *s)
{
    segue_store_vtable vtable = {.struct_size = sizeof vtable,
                                 .commit = store_commit,
                                 .find = store_find,
                                 .read = store_read,
                                 .claim = store_claim,
                                 .purge = store_purge,
                                 .free = store_free};
    *s = (test_store){0};
    assert_int_equal(sgi_store_new(&vtable, s, NULL, &s->store), SEGUE_OK);
}

static void add_store(rig *r, fake_committer *committer, test_store *s)
{
    fake_committer_init(committer, r->rt);
    sgi_runtime_lock(r->rt);
    assert_int_equal(sgi_runtime_add_store(r->rt, &committer->base, s->store), SEGUE_OK);
    sgi_runtime_unlock(r->rt);
}

static void remove_store(rig *r, fake_committer *committer)
{
    sgi_runtime_lock(r->rt);
    sgi_runtime_remove_store(r->rt, &committer->base);
    sgi_runtime_unlock(r->rt);
}

static void what_is_dirty_goes_into_one_commit(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    (void)state;
    set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    fake_committer_dirty(&committer, 2);
    fake_committer_dirty(&committer, 3);
    assert_int_equal(s.commits, 0);
    dispatch(&r, 0);
    assert_int_equal(s.commits, 1);
    assert_int_equal(committer.committed, 5);
    s.answer = SEGUE_E_STORE_FULL;
    fake_committer_dirty(&committer, 1);
    dispatch(&r, 0);
    assert_int_equal(committer.last, SEGUE_E_STORE_FULL);
    assert_int_equal(committer.failures, 1);
    remove_store(&r, &committer);
    sgi_store_unref(s.store);
    assert_int_equal(s.frees, 1);
    tear_down(&r);
}

static int jobs_done;

static void count_job(sgi_store_job *job)
{
    (void)job;
    jobs_done++;
}

static void jobs_are_asked_and_answered(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    sgi_store_job find, read, claim, purge;
    (void)state;
    set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    jobs_done = 0;
    fake_committer_ask(&committer, &find, SGI_STORE_JOB_FIND, count_job);
    fake_committer_ask(&committer, &read, SGI_STORE_JOB_READ, count_job);
    fake_committer_ask(&committer, &claim, SGI_STORE_JOB_CLAIM, count_job);
    fake_committer_ask(&committer, &purge, SGI_STORE_JOB_PURGE, count_job);
    purge.now_ms = 77;
    dispatch(&r, 0);
    assert_int_equal(jobs_done, 4);
    assert_int_equal(s.finds + s.reads + s.claims + s.purges, 4);
    assert_int_equal(find.bytes, 1);
    assert_int_equal(read.bytes, 1);
    assert_int_equal(claim.status, SEGUE_E_STORE);
    assert_int_equal(purge.next_ms, 78);
    remove_store(&r, &committer);
    sgi_store_unref(s.store);
    tear_down(&r);
}

static void output_leaves_after_the_commit_of_its_turn(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    segue_transport *a, *b;
    (void)state;
    set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    assert_int_equal(sgi_transport_pair(r.rt, &a, &b), SEGUE_OK);
    sgi_conn *near = fake_conn_new(r.rt, a), *far = fake_conn_new(r.rt, b);
    fake_conn_attach(near);
    fake_conn_attach(far);
    RUN_UNTIL(r.rt, near->up && far->up);
    s.other = far;
    s.seen = 99;
    fake_conn_send(near, "hello\n", 6);
    fake_committer_dirty(&committer, 1);
    RUN_UNTIL(r.rt, far->in_len == 6);
    assert_int_equal(s.commits, 1);
    assert_int_equal(s.seen, 0);
    remove_store(&r, &committer);
    sgi_store_unref(s.store);
    sgi_runtime_free(r.rt);
    fake_conn_free(near);
    fake_conn_free(far);
    assert_int_equal(r.mem.live, 0);
}

static void removing_a_committer_commits_what_is_dirty(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    (void)state;
    set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    fake_committer_dirty(&committer, 4);
    remove_store(&r, &committer);
    assert_int_equal(committer.committed, 4);
    assert_null(committer.base.host_user);
    fake_committer_dirty(&committer, 1); /* this write is not needed any more */
    remove_store(&r, &committer);
    dispatch(&r, 0);
    assert_int_equal(committer.committed, 4);
    sgi_store_unref(s.store);
    assert_int_equal(s.frees, 1);
    tear_down(&r);
}

static void remove_itself(fake_committer *committer)
{
    sgi_runtime_remove_store(committer->base.engine->host.user, &committer->base);
}

static void a_committer_may_go_in_the_course_of_its_own_commit(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    (void)state;
    set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    committer.on_done = remove_itself;
    fake_committer_dirty(&committer, 1);
    dispatch(&r, 0);
    assert_int_equal(committer.committed, 1);
    sgi_store_unref(s.store);
    assert_int_equal(s.frees, 1);
    tear_down(&r);
}

static void two_committers_share_a_store(void **state)
{
    rig r;
    test_store s;
    fake_committer one, two;
    (void)state;
    set_up(&r);
    open_store(&s);
    add_store(&r, &one, &s);
    add_store(&r, &two, &s);
    fake_committer_dirty(&one, 1);
    fake_committer_dirty(&two, 2);
    dispatch(&r, 0);
    assert_int_equal(one.committed, 1);
    assert_int_equal(two.committed, 2);
    remove_store(&r, &one);
    sgi_store_unref(s.store);
    fake_committer_dirty(&two, 2);
    dispatch(&r, 0);
    assert_int_equal(two.committed, 4);
    assert_int_equal(s.frees, 0);
    remove_store(&r, &two);
    assert_int_equal(s.frees, 1);
    tear_down(&r);
}

static void a_store_without_memory_is_not_added(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    (void)state;
    set_up(&r);
    open_store(&s);
    fake_committer_init(&committer, r.rt);
    for (size_t n = 1; n <= 2; n++) {
        test_mem_rearm(&r.mem);
        r.mem.fail_at = n;
        sgi_runtime_lock(r.rt);
        assert_int_equal(sgi_runtime_add_store(r.rt, &committer.base, s.store),
                         SEGUE_E_NOMEM);
        sgi_runtime_unlock(r.rt);
        assert_null(committer.base.host_user);
    }
    sgi_store_unref(s.store);
    assert_int_equal(s.frees, 1);
    tear_down(&r);
}

/* ---- the end ---- */

static void after_stop_only_callbacks_are_left(void **state)
{
    rig r;
    event e;
    alert a;
    int32_t ran;
    (void)state;
    set_up(&r);
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
    tear_down(&r);
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
    set_up(&r);
    queue_event(&r, &e, 1, stop_within);
    assert_int_equal(sgi_runtime_run(r.rt), SEGUE_OK);
    assert_int_equal(e.ran, 1);
    tear_down(&r);
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
    set_up(&r);
    stopped_by_signal = r.rt;
    signal(SIGUSR1, stop_by_signal);
    errno = 7;
    sgi_runtime_lock(r.rt);
    raise(SIGUSR1);
    assert_int_equal(errno, 7);
    sgi_runtime_unlock(r.rt);
    assert_int_equal(sgi_runtime_run(r.rt), SEGUE_OK);
    signal(SIGUSR1, SIG_DFL);
    tear_down(&r);
}

static void an_inline_runtime_is_neither_started_nor_polled(void **state)
{
    rig r;
    int32_t fd = -1;
    (void)state;
    set_up(&r);
    assert_int_equal(sgi_runtime_fd(r.rt, &fd), SEGUE_OK); /* the runtime may still be
                                                            * started */
    assert_true(fd >= 0);
    dispatch(&r, 0);
    fd = -1;
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_E_STATE);
    assert_int_equal(sgi_runtime_fd(r.rt, &fd), SEGUE_E_STATE);
    assert_int_equal(fd, -1);
    tear_down(&r);
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
    set_up(&r);
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
    tear_down(&r);
    assert_int_equal(kept.ran, 1);
    assert_int_equal(dropped.ran, 0);
    assert_int_equal(e.ran, 3);
}

static void free_commits_what_is_dirty_and_lets_the_store_go(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    (void)state;
    set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    sgi_store_unref(s.store);
    fake_committer_dirty(&committer, 2);
    tear_down(&r);
    assert_int_equal(committer.committed, 2);
    assert_null(committer.base.host_user);
    assert_int_equal(s.frees, 1);
}

/* The injected clock cannot be moved while free waits for a peer that reads nothing. */
static void time_goes_on_while_the_runtime_is_freed(void **state)
{
    static char text[1000000];
    rig r;
    segue_transport *near;
    int fds[2];
    (void)state;
    set_up(&r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(sgi_transport_fds(r.rt, fds[0], fds[0], &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    fake_conn_attach(conn);
    fake_conn_send(conn, text, sizeof text);
    dispatch(&r, 0);
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
    set_up(&r);
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
        cmocka_unit_test(what_is_dirty_goes_into_one_commit),
        cmocka_unit_test(jobs_are_asked_and_answered),
        cmocka_unit_test(output_leaves_after_the_commit_of_its_turn),
        cmocka_unit_test(removing_a_committer_commits_what_is_dirty),
        cmocka_unit_test(a_committer_may_go_in_the_course_of_its_own_commit),
        cmocka_unit_test(two_committers_share_a_store),
        cmocka_unit_test(a_store_without_memory_is_not_added),
        cmocka_unit_test(after_stop_only_callbacks_are_left),
        cmocka_unit_test(run_returns_when_a_callback_stops_it),
        cmocka_unit_test(a_signal_handler_stops_a_thread_that_holds_the_lock),
        cmocka_unit_test(an_inline_runtime_is_neither_started_nor_polled),
        cmocka_unit_test(free_runs_the_hooks_and_then_what_they_make_due),
        cmocka_unit_test(free_commits_what_is_dirty_and_lets_the_store_go),
        cmocka_unit_test(time_goes_on_while_the_runtime_is_freed),
        cmocka_unit_test(the_struct_lives_until_the_last_reference),
    };
    return cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
}
