/* Stores that block, on threads of their own. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/store_queue.h"
#include "store/store.h"
#include "support/fake_engine_body.h"
#include "support/threads_rig.h"

typedef struct slow_store {
    segue_store *store;
    sem_t entered; /* a commit has begun */
    sem_t proceed; /* the commit may end */
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

static void add_store(threads_rig *r, fake_committer *committer, slow_store *s)
{
    fake_committer_init(committer, r->rt);
    sgi_runtime_lock(r->rt);
    assert_int_equal(sgi_runtime_add_store(r->rt, &committer->base, s->store), SEGUE_OK);
    sgi_runtime_unlock(r->rt);
}

static void remove_store(threads_rig *r, fake_committer *committer)
{
    sgi_runtime_lock(r->rt);
    sgi_runtime_remove_store(r->rt, &committer->base);
    sgi_runtime_unlock(r->rt);
}

static size_t committed(threads_rig *r, const fake_committer *committer)
{
    sgi_runtime_lock(r->rt);
    size_t count = committer->committed;
    sgi_runtime_unlock(r->rt);
    return count;
}

static void what_comes_during_a_commit_is_in_the_next(void **state)
{
    threads_rig r;
    slow_store s;
    fake_committer committer;
    event e;
    int32_t ran;
    (void)state;
    threads_begin(&r);
    open_slow(&s);
    add_store(&r, &committer, &s);
    fake_committer_dirty(&committer, 1);
    sem_wait(&s.entered);
    for (int i = 0; i < 5; i++)
        fake_committer_dirty(&committer, 2);
    event_prepare(&r, &e, 1, NULL); /* the loop runs events while the commit blocks */
    event_queue(&r, &e);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    assert_int_equal(committed(&r, &committer), 0);
    sem_post(&s.proceed);
    sem_wait(&s.entered);
    assert_int_equal(committed(&r, &committer), 1);
    sem_post(&s.proceed);
    while (committed(&r, &committer) < 11)
        threads_pause();
    assert_int_equal(s.commits, 2);
    assert_int_equal(committer.largest, 10);
    assert_false(pthread_equal(s.thread, pthread_self()));
    remove_store(&r, &committer);
    sgi_store_unref(s.store);
    threads_end(&r);
    close_slow(&s);
}

static sgi_conn *told_by_worker;
static fake_committer *kept_by_worker;

static void tell_once(fake_committer *committer)
{
    committer->on_done = NULL;
    fake_conn_put(told_by_worker, "durable\n", 8);
}

static void keep_more(sgi_conn *conn)
{
    if (conn == told_by_worker && kept_by_worker->committed == 1)
        fake_committer_put(kept_by_worker, 1);
}

/* A worker writes the output of its commit before it waits, and that output may cause
 * more work for the store. */
static void output_of_a_worker_may_make_work_for_it(void **state)
{
    threads_rig r;
    slow_store s;
    fake_committer committer;
    segue_transport *near;
    int fds[2];
    char got[16];
    (void)state;
    threads_begin(&r);
    open_slow(&s);
    add_store(&r, &committer, &s);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(r.rt, fds[0], fds[0], &near), SEGUE_OK);
    told_by_worker = fake_conn_new(r.rt, near);
    told_by_worker->on_output = keep_more;
    kept_by_worker = &committer;
    committer.on_done = tell_once;
    fake_conn_attach(told_by_worker);
    threads_until_asleep(&r);
    fake_committer_dirty(&committer, 1);
    sem_post(&s.proceed);
    sem_post(&s.proceed);
    assert_int_equal(read(fds[1], got, sizeof got), 8);
    while (committed(&r, &committer) < 2)
        threads_pause();
    remove_store(&r, &committer);
    sgi_store_unref(s.store);
    threads_end(&r);
    fake_conn_free(told_by_worker);
    close(fds[1]);
    close_slow(&s);
}

typedef struct answered {
    sgi_store_job job;
    event *e;
} answered;

static void job_done(sgi_store_job *job)
{
    answered *a = SGI_OWNER(job, answered, job);
    sgi_ready_queue_add(a->e->r->engine, &a->e->ready);
}

static void an_answered_job_wakes_an_inline_loop(void **state)
{
    threads_rig r;
    slow_store s;
    fake_committer committer;
    event e;
    answered a = {.e = &e};
    int32_t ran;
    (void)state;
    threads_begin(&r);
    open_slow(&s);
    add_store(&r, &committer, &s);
    event_prepare(&r, &e, 1, NULL);
    fake_committer_ask(&committer, &a.job, SGI_STORE_JOB_FIND, job_done);
    assert_int_equal(sgi_runtime_dispatch(r.rt, 10000, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    assert_int_equal(a.job.bytes, 1);
    fake_committer_ask(&committer, &a.job, SGI_STORE_JOB_READ, job_done);
    e.left = 1;
    assert_int_equal(sgi_runtime_dispatch(r.rt, 10000, 0, &ran), SEGUE_OK);
    assert_int_equal(a.job.status, SEGUE_E_NOT_FOUND);
    remove_store(&r, &committer);
    sgi_store_unref(s.store);
    threads_end(&r);
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

static void dirty_again(fake_committer *committer)
{
    committer->on_done = NULL;
    committer->dirty = 3;
    committer->base.engine->host.store(committer->base.engine->host.user,
                                       &committer->base);
}

static void removing_a_committer_waits_for_its_commits(void **state)
{
    threads_rig r;
    slow_store s;
    fake_committer committer;
    pthread_t thread;
    (void)state;
    threads_begin(&r);
    open_slow(&s);
    add_store(&r, &committer, &s);
    sgi_store_unref(s.store);
    committer.on_done = dirty_again;
    fake_committer_dirty(&committer, 4);
    pthread_create(&thread, NULL, let_proceed, &s);
    remove_store(&r, &committer);
    assert_int_equal(committer.committed, 7);
    assert_int_equal(s.commits, 2);
    pthread_join(thread, NULL);
    threads_end(&r);
    close_slow(&s);
}

/* ---- a worker that is never idle ---- */

static atomic_int asked_for_changes;

static void ignore_wake(void *self, void (*wake)(void *user), void *user)
{
    (void)self;
    (void)wake;
    (void)user;
}

static segue_status ignore_follow(void *self, const uint8_t *id, int32_t on)
{
    (void)self;
    (void)id;
    (void)on;
    return SEGUE_OK;
}

static segue_status ignore_post(void *self, const uint8_t *id, const char *data,
                                size_t len)
{
    (void)self;
    (void)id;
    (void)data;
    (void)len;
    return SEGUE_OK;
}

static segue_status count_asking(void *self, segue_store_news_fn fn, void *user,
                                 int64_t *within_ms)
{
    (void)self;
    (void)fn;
    (void)user;
    atomic_fetch_add(&asked_for_changes, 1);
    *within_ms = 1;
    return SEGUE_OK;
}

static segue_status busy_commit(void *self, const segue_store_write *writes, size_t count)
{
    slow_store *s = self;
    (void)writes;
    (void)count;
    atomic_fetch_add(&s->commits, 1);
    return SEGUE_OK;
}

#define MANY_COMMITS 3000000

static void dirty_until_asked(fake_committer *committer)
{
    if (asked_for_changes < 5 && committer->committed < MANY_COMMITS)
        fake_committer_put(committer, 1);
}

/* Each commit leaves something for the next one. The store is asked for changes of other
 * servers between them. */
static void a_worker_that_is_never_idle_asks_for_changes(void **state)
{
    threads_rig r;
    slow_store s = {0};
    fake_committer committer;
    segue_store_vtable vtable = {.struct_size = sizeof vtable,
                                 .blocking = 1,
                                 .commit = busy_commit,
                                 .find = slow_find,
                                 .read = slow_read,
                                 .claim = slow_claim,
                                 .free = slow_free,
                                 .set_wake = ignore_wake,
                                 .follow = ignore_follow,
                                 .post = ignore_post,
                                 .news = count_asking};
    (void)state;
    threads_begin(&r);
    asked_for_changes = 0;
    assert_int_equal(sgi_store_new(&vtable, &s, NULL, &s.store), SEGUE_OK);
    add_store(&r, &committer, &s);
    sgi_store_unref(s.store);
    committer.on_done = dirty_until_asked;
    fake_committer_dirty(&committer, 1);
    while (asked_for_changes < 5 && committed(&r, &committer) < MANY_COMMITS)
        threads_pause();
    assert_true(committed(&r, &committer) < MANY_COMMITS);
    remove_store(&r, &committer);
    threads_end(&r);
    assert_int_equal(s.frees, 1);
}

static void remove_itself(fake_committer *committer)
{
    sgi_runtime_remove_store(committer->base.engine->host.user, &committer->base);
}

/* The last reference to a server may be released on the worker's thread. */
static void a_worker_outlives_the_committer_it_removes(void **state)
{
    threads_rig r;
    slow_store s;
    fake_committer *committer = malloc(sizeof *committer);
    (void)state;
    threads_begin(&r);
    open_slow(&s);
    add_store(&r, committer, &s);
    sgi_store_unref(s.store);
    committer->on_done = remove_itself;
    sem_post(&s.proceed);
    fake_committer_dirty(committer, 1);
    while (!s.frees) /* wait until the worker has freed the store */
        threads_pause();
    sgi_runtime_lock(r.rt);
    assert_null(committer->base.host_user);
    sgi_runtime_unlock(r.rt);
    free(committer);
    threads_end(&r);
    close_slow(&s);
}

static void free_waits_for_the_store(void **state)
{
    threads_rig r;
    slow_store s;
    fake_committer committer;
    (void)state;
    threads_begin(&r);
    open_slow(&s);
    add_store(&r, &committer, &s);
    sgi_store_unref(s.store);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    fake_committer_dirty(&committer, 2);
    sem_post(&s.proceed);
    threads_end(&r);
    assert_int_equal(committer.committed, 2);
    close_slow(&s);
}

static event *due_by_commit;

static void make_commit_known(fake_committer *committer)
{
    (void)committer;
    sgi_ready_queue_add(due_by_commit->r->engine, &due_by_commit->ready);
}

static void write_more(event *e)
{
    fake_committer_dirty(e->user, 3);
}

static void free_goes_on_until_nothing_is_due(void **state)
{
    threads_rig r;
    event e;
    slow_store s;
    fake_committer committer;
    (void)state;
    threads_begin(&r);
    open_slow(&s);
    add_store(&r, &committer, &s);
    sgi_store_unref(s.store);
    event_prepare(&r, &e, 1, write_more);
    e.user = &committer;
    due_by_commit = &e;
    committer.on_done = make_commit_known;
    fake_committer_dirty(&committer, 2);
    sem_post(&s.proceed);
    sem_post(&s.proceed);
    threads_end(&r);
    assert_int_equal(e.ran, 1);
    assert_int_equal(committer.committed, 5);
    close_slow(&s);
}

static void a_store_comes_and_goes_many_times(void **state)
{
    threads_rig r;
    (void)state;
    threads_begin(&r);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    for (int i = 0; i < 50; i++) {
        slow_store s;
        fake_committer committer;
        open_slow(&s);
        sem_post(&s.proceed);
        add_store(&r, &committer, &s);
        sgi_store_unref(s.store);
        fake_committer_dirty(&committer, 1);
        remove_store(&r, &committer);
        assert_int_equal(committer.committed, 1);
        while (!s.frees)
            threads_pause();
        close_slow(&s);
    }
    threads_until_asleep(&r); /* nothing keeps the loop busy */
    threads_end(&r);
}

/* ---- a store that is slow to release what is left ---- */

typedef struct leaving {
    slow_store slow;
    segue_runtime *rt;
    atomic_int left;
    atomic_int free_lock; /* how often the runtime's lock was free during a release */
} leaving;

static segue_status follow_or_leave(void *self, const uint8_t *id, int32_t on)
{
    leaving *l = self;
    struct timespec until;
    (void)id;
    if (on)
        return SEGUE_OK;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;
    if (!pthread_mutex_timedlock(&l->rt->mutex, &until)) {
        pthread_mutex_unlock(&l->rt->mutex);
        atomic_fetch_add(&l->free_lock, 1);
    }
    atomic_fetch_add(&l->left, 1);
    return SEGUE_OK;
}

static void set_no_wake(void *self, void (*wake)(void *user), void *user)
{
    (void)self;
    (void)wake;
    (void)user;
}

static segue_status post_nothing(void *self, const uint8_t *id, const char *data,
                                 size_t len)
{
    (void)self;
    (void)id;
    (void)data;
    (void)len;
    return SEGUE_E_NOT_FOUND;
}

static segue_status no_news(void *self, segue_store_news_fn fn, void *user,
                            int64_t *within_ms)
{
    (void)self;
    (void)fn;
    (void)user;
    *within_ms = -1;
    return SEGUE_OK;
}

static void open_leaving(leaving *l, threads_rig *r, fake_committer *committer)
{
    segue_store_vtable vtable = {.struct_size = sizeof vtable,
                                 .blocking = 1,
                                 .commit = slow_commit,
                                 .find = slow_find,
                                 .read = slow_read,
                                 .claim = slow_claim,
                                 .set_wake = set_no_wake,
                                 .follow = follow_or_leave,
                                 .post = post_nothing,
                                 .news = no_news,
                                 .free = slow_free};
    *l = (leaving){.rt = r->rt};
    sem_init(&l->slow.entered, 0, 0);
    sem_init(&l->slow.proceed, 0, 0);
    assert_int_equal(sgi_store_new(&vtable, l, NULL, &l->slow.store), SEGUE_OK);
    add_store(r, committer, &l->slow);
    const sgi_store_queue *queue = committer->base.host_user;
    for (uint8_t n = 0; n < 2; n++) {
        uint8_t id[SEGUE_STORE_ID_SIZE] = {n};
        assert_int_equal(sgi_store_follow(queue->listener, id, true), SEGUE_OK);
    }
    sgi_store_unref(l->slow.store);
}

/* A server that ends releases every operation that it followed. No thread waits for the
 * runtime's lock during the release. */
static void leaving_is_asked_without_the_lock(void **state)
{
    threads_rig r;
    leaving l;
    fake_committer committer;
    (void)state;
    for (int by_free = 0; by_free < 2; by_free++) {
        threads_begin(&r);
        open_leaving(&l, &r, &committer);
        if (!by_free)
            remove_store(&r, &committer);
        assert_int_equal(committer.base.host_user == NULL, !by_free);
        threads_end(&r);
        assert_null(committer.base.host_user);
        assert_int_equal(l.left, 2);
        assert_int_equal(l.free_lock, 2);
        close_slow(&l.slow);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_during_a_commit_is_in_the_next),
        cmocka_unit_test(output_of_a_worker_may_make_work_for_it),
        cmocka_unit_test(an_answered_job_wakes_an_inline_loop),
        cmocka_unit_test(removing_a_committer_waits_for_its_commits),
        cmocka_unit_test(a_worker_outlives_the_committer_it_removes),
        cmocka_unit_test(a_worker_that_is_never_idle_asks_for_changes),
        cmocka_unit_test(free_waits_for_the_store),
        cmocka_unit_test(free_goes_on_until_nothing_is_due),
        cmocka_unit_test(a_store_comes_and_goes_many_times),
        cmocka_unit_test(leaving_is_asked_without_the_lock),
    };
    return cmocka_run_group_tests_name("threads_stores", tests, NULL, NULL);
}
