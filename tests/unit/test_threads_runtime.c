/* What needs more than one thread: background runtimes, calls from elsewhere, store
 * workers. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/state.h"
#include "store/store.h"
#include "support/fake_engine_body.h"
#include "support/test_mem.h"

/* ---- rig ---- */

typedef struct rig {
    test_mem mem;
    segue_runtime *rt;
    sgi_engine *engine;
    atomic_int woken;
} rig;

static void count_wake(void *user)
{
    atomic_fetch_add(&((rig *)user)->woken, 1);
}

/* hooks NULL = the real clock. */
static void set_up_with(rig *r, const segue_hooks *hooks)
{
    *r = (rig){0};
    test_mem_init(&r->mem);
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .allocator = &r->mem.mem,
                                     .hooks = hooks,
                                     .user = r,
                                     .on_wake = count_wake};
    assert_int_equal(sgi_runtime_new(&options, &r->rt, NULL), SEGUE_OK);
    r->engine = sgi_runtime_engine(r->rt);
}

static void set_up(rig *r)
{
    set_up_with(r, NULL);
}

/* The I/O thread has nothing left to do. */
static void wait_until_asleep(rig *r)
{
    for (bool asleep = false; !asleep; sched_yield()) {
        sgi_runtime_lock(r->rt);
        asleep = r->rt->asleep && !r->rt->work_count;
        sgi_runtime_unlock(r->rt);
    }
}

/* A transport has seen the end of its input. */
static void wait_until_awaiting_quiet(rig *r)
{
    for (bool awaiting = false; !awaiting; sched_yield()) {
        sgi_runtime_lock(r->rt);
        awaiting = !TAILQ_EMPTY(&r->rt->awaiting);
        sgi_runtime_unlock(r->rt);
    }
}

static void tear_down(rig *r)
{
    sgi_runtime_free(r->rt);
    assert_int_equal(r->mem.live, 0);
}

typedef struct event {
    sgi_ready ready;
    rig *r;
    int32_t left;
    atomic_int ran;
    pthread_t thread; /* that ran it last */
    void (*body)(struct event *event);
    void *user;
} event;

static int32_t run_event(sgi_ready *ready, int32_t budget)
{
    event *e = SGI_OWNER(ready, event, ready);
    int32_t ran = 0;
    while (e->left > 0 && ran < budget) {
        e->left--;
        ran++;
        e->thread = pthread_self();
        sgi_user_begin(e->r->engine);
        if (e->body)
            e->body(e);
        sgi_user_end(e->r->engine);
        atomic_fetch_add(&e->ran, 1);
    }
    if (e->left)
        sgi_ready_add(e->r->engine, &e->ready);
    return ran;
}

static void prepare_event(rig *r, event *e, int32_t times, void (*body)(event *))
{
    *e = (event){.ready = {.run = run_event}, .r = r, .left = times, .body = body};
}

static void queue_event(rig *r, event *e)
{
    sgi_runtime_lock(r->rt);
    sgi_ready_add(r->engine, &e->ready);
    sgi_runtime_unlock(r->rt);
}

static bool is_readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1;
}

/* ---- dispatch ---- */

static void callbacks_run_on_the_thread_that_dispatches(void **state)
{
    rig r;
    event e;
    int32_t ran;
    (void)state;
    set_up(&r);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_E_STATE);
    assert_int_equal(sgi_runtime_run(r.rt), SEGUE_E_STATE);
    prepare_event(&r, &e, 3, NULL);
    queue_event(&r, &e);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 3);
    assert_true(pthread_equal(e.thread, pthread_self()));
    tear_down(&r);
}

static void the_descriptor_is_readable_exactly_while_something_is_due(void **state)
{
    rig r;
    event e;
    int32_t fd, ran;
    (void)state;
    set_up(&r);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_runtime_fd(r.rt, &fd), SEGUE_OK);
    assert_false(is_readable(fd));
    assert_int_equal(r.woken, 0);
    for (int round = 1; round <= 3; round++) {
        prepare_event(&r, &e, 5, NULL);
        queue_event(&r, &e);
        assert_true(is_readable(fd));
        queue_event(&r, &e);
        assert_int_equal(r.woken, 2 * round - 1); /* once, however much there is */
        assert_int_equal(sgi_runtime_dispatch(r.rt, 0, 2, &ran), SEGUE_OK);
        assert_int_equal(ran, 2);
        assert_true(is_readable(fd)); /* something was left */
        assert_int_equal(r.woken, 2 * round);
        assert_int_equal(sgi_runtime_dispatch(r.rt, 0, 0, &ran), SEGUE_OK);
        assert_int_equal(ran, 3);
        assert_false(is_readable(fd));
        assert_int_equal(r.woken, 2 * round);
    }
    sgi_runtime_stop(r.rt);
    assert_true(is_readable(fd));
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_E_CLOSED);
    assert_true(is_readable(fd));
    tear_down(&r);
}

static void what_was_due_before_the_start_rings_too(void **state)
{
    rig r;
    event e;
    int32_t fd;
    (void)state;
    set_up(&r);
    prepare_event(&r, &e, 1, NULL);
    queue_event(&r, &e);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_runtime_fd(r.rt, &fd), SEGUE_OK);
    assert_true(is_readable(fd));
    tear_down(&r);
    assert_int_equal(e.ran, 1); /* by free */
}

static void *dispatch_without_end(void *user)
{
    rig *r = user;
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
    rig r;
    event e;
    meeting m;
    pthread_t thread;
    int32_t ran = -1;
    (void)state;
    set_up(&r);
    sem_init(&m.inside, 0, 0);
    sem_init(&m.leave, 0, 0);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    prepare_event(&r, &e, 1, meet);
    e.user = &m;
    queue_event(&r, &e);
    pthread_create(&thread, NULL, dispatch_without_end, &r);
    sem_wait(&m.inside);
    assert_int_equal(sgi_runtime_dispatch(r.rt, 0, 0, &ran), SEGUE_E_THREAD);
    assert_int_equal(ran, -1);
    assert_false(sgi_runtime_in_callback(r.rt)); /* the other one is */
    sem_post(&m.leave);
    sgi_runtime_stop(r.rt);
    pthread_join(thread, NULL);
    sem_destroy(&m.inside);
    sem_destroy(&m.leave);
    tear_down(&r);
}

static void *queue_it(void *user)
{
    event *e = user;
    queue_event(e->r, e);
    return NULL;
}

static void an_inline_dispatch_is_woken_by_another_thread(void **state)
{
    rig r;
    event e;
    pthread_t thread;
    int32_t ran;
    (void)state;
    set_up(&r);
    prepare_event(&r, &e, 1, NULL);
    pthread_create(&thread, NULL, queue_it, &e);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    pthread_join(thread, NULL);
    tear_down(&r);
}

static void *stop_it(void *user)
{
    sgi_runtime_stop(((rig *)user)->rt);
    return NULL;
}

static void stop_from_another_thread_ends_run_and_dispatch(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        rig r;
        pthread_t thread;
        set_up(&r);
        if (mode == 2)
            assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
        pthread_create(&thread, NULL, stop_it, &r);
        if (mode == 0)
            assert_int_equal(sgi_runtime_run(r.rt), SEGUE_OK);
        else
            assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, NULL), SEGUE_E_CLOSED);
        pthread_join(thread, NULL);
        tear_down(&r);
    }
}

static void *run_it(void *user)
{
    sgi_runtime_run(((rig *)user)->rt);
    return NULL;
}

static void free_waits_for_run_to_return(void **state)
{
    rig r;
    event e;
    meeting m;
    pthread_t thread;
    (void)state;
    set_up(&r);
    sem_init(&m.inside, 0, 0);
    sem_init(&m.leave, 0, 1);
    prepare_event(&r, &e, 1, meet);
    e.user = &m;
    queue_event(&r, &e);
    pthread_create(&thread, NULL, run_it, &r);
    sem_wait(&m.inside); /* it runs */
    assert_int_equal(sgi_runtime_dispatch(r.rt, 0, 0, NULL), SEGUE_E_THREAD);
    assert_int_equal(sgi_runtime_run(r.rt), SEGUE_E_STATE);
    tear_down(&r);
    pthread_join(thread, NULL);
    sem_destroy(&m.inside);
    sem_destroy(&m.leave);
}

/* A timer that is set from the host's thread wakes the I/O thread in time. */
static event *due_by_timer;

static void make_due(sgi_timer *timer)
{
    (void)timer;
    sgi_ready_add(due_by_timer->r->engine, &due_by_timer->ready);
}

static void a_timer_set_elsewhere_shortens_the_wait(void **state)
{
    rig r;
    event e;
    sgi_timer late = {0}, soon = {0};
    int32_t ran;
    (void)state;
    set_up(&r);
    prepare_event(&r, &e, 1, NULL);
    due_by_timer = &e;
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    sgi_runtime_lock(r.rt);
    sgi_engine_timer(r.engine, &late, 3600000, make_due);
    sgi_runtime_unlock(r.rt);
    wait_until_asleep(&r);
    sgi_runtime_lock(r.rt);
    sgi_engine_timer(r.engine, &soon, 5, make_due);
    sgi_runtime_unlock(r.rt);
    assert_int_equal(sgi_runtime_dispatch(r.rt, 10000, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    tear_down(&r);
}

/* ---- transports ---- */

static size_t received(sgi_conn *conn)
{
    sgi_runtime_lock(conn->rt);
    size_t len = conn->in_len;
    sgi_runtime_unlock(conn->rt);
    return len;
}

static bool is_detached(sgi_conn *conn)
{
    sgi_runtime_lock(conn->rt);
    bool detached = conn->detached;
    sgi_runtime_unlock(conn->rt);
    return detached;
}

static void pause_a_little(void)
{
    sched_yield();
}

static void output_of_the_hosts_thread_is_written_by_the_io_thread(void **state)
{
    rig r;
    int fds[2];
    char got[4096];
    segue_transport *near;
    size_t total = 0;
    (void)state;
    set_up(&r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(r.rt, fds[0], fds[0], &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    conn->echo = true;
    conn->hello = "hello\n";
    fake_conn_attach(conn);
    assert_int_equal(read(fds[1], got, sizeof got), 6);
    for (int i = 0; i < 1000; i++)
        fake_conn_send(conn, "0123456789", 10);
    while (total < 10000) {
        ssize_t n = read(fds[1], got, sizeof got);
        assert_true(n > 0);
        total += (size_t)n;
    }
    assert_int_equal(write(fds[1], "echo\n", 5), 5);
    assert_int_equal(read(fds[1], got, sizeof got), 5);
    close(fds[1]);
    while (!is_detached(conn))
        pause_a_little();
    tear_down(&r);
    fake_conn_free(conn);
}

static int64_t still_clock(void *user)
{
    (void)user;
    return 1000; /* so that no timer ends a wait */
}

static const segue_hooks standing = {sizeof standing, NULL, still_clock, NULL, NULL};

static event *due_by_feed;

static void queue_due(sgi_conn *conn)
{
    sgi_ready_add(conn->engine, &due_by_feed->ready);
}

/* Answers late: the loop has had its turns by then. */
static void answer_it(event *e)
{
    sgi_conn *conn = e->user;
    fake_conn_want(conn, true);
    wait_until_asleep(e->r);
    assert_false(is_detached(conn));
    fake_conn_send(conn, "answer\n", 7);
}

/* A question and the end of input, before the host dispatches; what comes back. */
static ssize_t ask_and_end(void (*body)(event *), char *got, size_t size)
{
    rig r;
    event e;
    int fds[2];
    segue_transport *near;
    set_up_with(&r, &standing);
    prepare_event(&r, &e, 1, body);
    due_by_feed = &e;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(r.rt, fds[0], fds[0], &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    conn->on_feed = queue_due;
    e.user = conn;
    fake_conn_attach(conn);
    assert_int_equal(write(fds[1], "question\n", 9), 9);
    shutdown(fds[1], SHUT_WR);
    wait_until_awaiting_quiet(&r);
    wait_until_asleep(&r);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, NULL), SEGUE_OK);
    ssize_t len = recv(fds[1], got, size, 0);
    while (!is_detached(conn))
        pause_a_little();
    tear_down(&r);
    fake_conn_free(conn);
    close(fds[1]);
    return len;
}

static void the_end_of_input_waits_for_the_host(void **state)
{
    char got[16];
    (void)state;
    assert_int_equal(ask_and_end(answer_it, got, sizeof got), 7);
}

static void the_end_of_input_comes_when_nobody_answers(void **state)
{
    char got[16];
    (void)state;
    assert_int_equal(ask_and_end(NULL, got, sizeof got), 0);
}

static void the_io_thread_takes_no_signals(void **state)
{
    rig r;
    int fds[2];
    segue_transport *near;
    (void)state;
    signal(SIGPIPE, SIG_DFL); /* would end the test */
    set_up(&r);
    assert_int_equal(pipe(fds), 0);
    int unused = dup(fds[0]); /* the transport's input */
    close(fds[0]);
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(r.rt, unused, fds[1], &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    fake_conn_attach(conn);
    fake_conn_send(conn, "into the void\n", 14);
    while (!is_detached(conn))
        pause_a_little();
    tear_down(&r);
    fake_conn_free(conn);
}

/* A custom transport that counts what is sent and is fed by several threads. */
typedef struct feeder {
    segue_transport *transport;
    sem_t started;
    atomic_size_t sent;
} feeder;

static void feeder_start(void *self, segue_transport *transport)
{
    feeder *f = self;
    f->transport = transport;
    sem_post(&f->started);
}

static size_t feeder_send(void *self, const char *bytes, size_t len)
{
    (void)bytes;
    atomic_fetch_add(&((feeder *)self)->sent, len);
    return len;
}

static void feeder_close(void *self)
{
    sgi_transport_closed(((feeder *)self)->transport);
}

#define FEEDS 2000

static void *feed_it(void *user)
{
    feeder *f = user;
    for (int i = 0; i < FEEDS; i++)
        while (sgi_transport_feed(f->transport, "0123456789\n", 11) != SEGUE_OK)
            pause_a_little();
    return NULL;
}

static void a_custom_transport_is_fed_by_several_threads(void **state)
{
    rig r;
    feeder f = {0};
    pthread_t threads[3];
    segue_transport *near;
    segue_transport_vtable vtable = {.struct_size = sizeof vtable,
                                     .start = feeder_start,
                                     .send = feeder_send,
                                     .close = feeder_close};
    (void)state;
    set_up(&r);
    sem_init(&f.started, 0, 0);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_transport_custom(r.rt, &vtable, &f, &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    conn->echo = true;
    fake_conn_attach(conn);
    sem_wait(&f.started);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, feed_it, &f);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    while (received(conn) < 3 * FEEDS * 11 || f.sent < 3 * FEEDS * 11)
        pause_a_little();
    assert_int_equal(received(conn), 3 * FEEDS * 11);
    fake_conn_close(conn);
    while (!is_detached(conn))
        pause_a_little();
    tear_down(&r);
    fake_conn_free(conn);
    sem_destroy(&f.started);
}

/* ---- stores that block ---- */

typedef struct slow_store {
    segue_store *store;
    sem_t entered; /* a commit has begun */
    sem_t proceed; /* it may end */
    atomic_int commits;
    atomic_int frees;
    pthread_t thread;
} slow_store;

static segue_status slow_commit(void *self, const segue_store_write *writes, size_t count)
{
    slow_store *s = self;
    (void)writes;
    (void)count;
    s->thread = pthread_self();
    sem_post(&s->entered);
    sem_wait(&s->proceed);
    atomic_fetch_add(&s->commits, 1);
    return SEGUE_OK;
}

static segue_status slow_find(void *self, const char *task_id, const uint8_t *key,
                              segue_store_record_fn fn, void *user)
{
    segue_store_record record = {.task_id = "t"};
    (void)self;
    (void)task_id;
    (void)key;
    fn(user, &record);
    return SEGUE_OK;
}

static segue_status slow_read(void *self, const uint8_t *id, uint64_t after,
                              segue_store_entry_fn fn, void *user)
{
    (void)self;
    (void)id;
    (void)after;
    (void)fn;
    (void)user;
    return SEGUE_E_NOT_FOUND;
}

static segue_status slow_claim(void *self, segue_store_record_fn fn, void *user)
{
    (void)self;
    (void)fn;
    (void)user;
    return SEGUE_OK;
}

static void slow_free(void *self)
{
    atomic_fetch_add(&((slow_store *)self)->frees, 1);
}

static void open_slow(slow_store *s)
{
    segue_store_vtable vtable = {.struct_size = sizeof vtable,
                                 .blocking = 1,
                                 .commit = slow_commit,
                                 .find = slow_find,
                                 .read = slow_read,
                                 .claim = slow_claim,
                                 .free = slow_free};
    *s = (slow_store){0};
    sem_init(&s->entered, 0, 0);
    sem_init(&s->proceed, 0, 0);
    assert_int_equal(sgi_store_new(&vtable, s, NULL, &s->store), SEGUE_OK);
}

static void close_slow(slow_store *s)
{
    assert_int_equal(s->frees, 1);
    sem_destroy(&s->entered);
    sem_destroy(&s->proceed);
}

static void add_store(rig *r, fake_keeper *keeper, slow_store *s)
{
    fake_keeper_init(keeper, r->rt);
    sgi_runtime_lock(r->rt);
    assert_int_equal(sgi_runtime_add_store(r->rt, &keeper->base, s->store), SEGUE_OK);
    sgi_runtime_unlock(r->rt);
}

static void remove_store(rig *r, fake_keeper *keeper)
{
    sgi_runtime_lock(r->rt);
    sgi_runtime_remove_store(r->rt, &keeper->base);
    sgi_runtime_unlock(r->rt);
}

static size_t committed(rig *r, const fake_keeper *keeper)
{
    sgi_runtime_lock(r->rt);
    size_t count = keeper->committed;
    sgi_runtime_unlock(r->rt);
    return count;
}

static void what_comes_during_a_commit_is_in_the_next(void **state)
{
    rig r;
    slow_store s;
    fake_keeper keeper;
    event e;
    int32_t ran;
    (void)state;
    set_up(&r);
    open_slow(&s);
    add_store(&r, &keeper, &s);
    fake_keeper_dirty(&keeper, 1);
    sem_wait(&s.entered);
    for (int i = 0; i < 5; i++)
        fake_keeper_dirty(&keeper, 2);
    prepare_event(&r, &e, 1, NULL); /* the loop does not stand still meanwhile */
    queue_event(&r, &e);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    assert_int_equal(committed(&r, &keeper), 0);
    sem_post(&s.proceed);
    sem_wait(&s.entered);
    assert_int_equal(committed(&r, &keeper), 1);
    sem_post(&s.proceed);
    while (committed(&r, &keeper) < 11)
        pause_a_little();
    assert_int_equal(s.commits, 2);
    assert_int_equal(keeper.largest, 10);
    assert_false(pthread_equal(s.thread, pthread_self()));
    remove_store(&r, &keeper);
    sgi_store_unref(s.store);
    tear_down(&r);
    close_slow(&s);
}

typedef struct answered {
    sgi_job job;
    event *e;
} answered;

static void job_done(sgi_job *job)
{
    answered *a = SGI_OWNER(job, answered, job);
    sgi_ready_add(a->e->r->engine, &a->e->ready);
}

static void an_answered_job_wakes_an_inline_loop(void **state)
{
    rig r;
    slow_store s;
    fake_keeper keeper;
    event e;
    answered a = {.e = &e};
    int32_t ran;
    (void)state;
    set_up(&r);
    open_slow(&s);
    add_store(&r, &keeper, &s);
    prepare_event(&r, &e, 1, NULL);
    fake_keeper_ask(&keeper, &a.job, SGI_JOB_FIND, job_done);
    assert_int_equal(sgi_runtime_dispatch(r.rt, 10000, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    assert_int_equal(a.job.bytes, 1);
    fake_keeper_ask(&keeper, &a.job, SGI_JOB_READ, job_done);
    e.left = 1;
    assert_int_equal(sgi_runtime_dispatch(r.rt, 10000, 0, &ran), SEGUE_OK);
    assert_int_equal(a.job.status, SEGUE_E_NOT_FOUND);
    remove_store(&r, &keeper);
    sgi_store_unref(s.store);
    tear_down(&r);
    close_slow(&s);
}

static void *let_proceed(void *user)
{
    slow_store *s = user;
    sem_wait(&s->entered);
    sem_post(&s->proceed);
    sem_wait(&s->entered);
    sem_post(&s->proceed);
    return NULL;
}

static void dirty_again(fake_keeper *keeper)
{
    keeper->on_done = NULL;
    keeper->dirty = 3;
    keeper->base.engine->host.store(keeper->base.engine->host.user, &keeper->base);
}

static void removing_a_keeper_waits_for_its_commits(void **state)
{
    rig r;
    slow_store s;
    fake_keeper keeper;
    pthread_t thread;
    (void)state;
    set_up(&r);
    open_slow(&s);
    add_store(&r, &keeper, &s);
    sgi_store_unref(s.store);
    keeper.on_done = dirty_again;
    fake_keeper_dirty(&keeper, 4);
    pthread_create(&thread, NULL, let_proceed, &s);
    remove_store(&r, &keeper);
    assert_int_equal(keeper.committed, 7);
    assert_int_equal(s.commits, 2);
    pthread_join(thread, NULL);
    tear_down(&r);
    close_slow(&s);
}

static void remove_itself(fake_keeper *keeper)
{
    sgi_runtime_remove_store(keeper->base.engine->host.user, &keeper->base);
}

/* The last reference to a server may go on the worker's thread. */
static void a_worker_outlives_the_keeper_it_removes(void **state)
{
    rig r;
    slow_store s;
    fake_keeper *keeper = malloc(sizeof *keeper);
    (void)state;
    set_up(&r);
    open_slow(&s);
    add_store(&r, keeper, &s);
    sgi_store_unref(s.store);
    keeper->on_done = remove_itself;
    sem_post(&s.proceed);
    fake_keeper_dirty(keeper, 1);
    while (!s.frees) /* the worker drops the store */
        pause_a_little();
    sgi_runtime_lock(r.rt);
    assert_null(keeper->base.host_user);
    sgi_runtime_unlock(r.rt);
    free(keeper);
    tear_down(&r);
    close_slow(&s);
}

static void free_waits_for_the_store(void **state)
{
    rig r;
    slow_store s;
    fake_keeper keeper;
    (void)state;
    set_up(&r);
    open_slow(&s);
    add_store(&r, &keeper, &s);
    sgi_store_unref(s.store);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    fake_keeper_dirty(&keeper, 2);
    sem_post(&s.proceed);
    tear_down(&r);
    assert_int_equal(keeper.committed, 2);
    close_slow(&s);
}

static event *due_by_commit;

static void make_commit_known(fake_keeper *keeper)
{
    (void)keeper;
    sgi_ready_add(due_by_commit->r->engine, &due_by_commit->ready);
}

static void write_more(event *e)
{
    fake_keeper_dirty(e->user, 3);
}

static void free_goes_on_until_nothing_is_due(void **state)
{
    rig r;
    event e;
    slow_store s;
    fake_keeper keeper;
    (void)state;
    set_up(&r);
    open_slow(&s);
    add_store(&r, &keeper, &s);
    sgi_store_unref(s.store);
    prepare_event(&r, &e, 1, write_more);
    e.user = &keeper;
    due_by_commit = &e;
    keeper.on_done = make_commit_known;
    fake_keeper_dirty(&keeper, 2);
    sem_post(&s.proceed);
    sem_post(&s.proceed);
    tear_down(&r);
    assert_int_equal(e.ran, 1);
    assert_int_equal(keeper.committed, 5);
    close_slow(&s);
}

static void a_store_comes_and_goes_many_times(void **state)
{
    rig r;
    (void)state;
    set_up(&r);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    for (int i = 0; i < 50; i++) {
        slow_store s;
        fake_keeper keeper;
        open_slow(&s);
        sem_post(&s.proceed);
        add_store(&r, &keeper, &s);
        sgi_store_unref(s.store);
        fake_keeper_dirty(&keeper, 1);
        remove_store(&r, &keeper);
        assert_int_equal(keeper.committed, 1);
        while (!s.frees)
            pause_a_little();
        close_slow(&s);
    }
    wait_until_asleep(&r); /* nothing of it keeps the loop busy */
    tear_down(&r);
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
        cmocka_unit_test(free_waits_for_run_to_return),
        cmocka_unit_test(a_timer_set_elsewhere_shortens_the_wait),
        cmocka_unit_test(output_of_the_hosts_thread_is_written_by_the_io_thread),
        cmocka_unit_test(the_end_of_input_waits_for_the_host),
        cmocka_unit_test(the_end_of_input_comes_when_nobody_answers),
        cmocka_unit_test(the_io_thread_takes_no_signals),
        cmocka_unit_test(a_custom_transport_is_fed_by_several_threads),
        cmocka_unit_test(what_comes_during_a_commit_is_in_the_next),
        cmocka_unit_test(an_answered_job_wakes_an_inline_loop),
        cmocka_unit_test(removing_a_keeper_waits_for_its_commits),
        cmocka_unit_test(a_worker_outlives_the_keeper_it_removes),
        cmocka_unit_test(free_waits_for_the_store),
        cmocka_unit_test(free_goes_on_until_nothing_is_due),
        cmocka_unit_test(a_store_comes_and_goes_many_times),
    };
    return cmocka_run_group_tests_name("threads_runtime", tests, NULL, NULL);
}
