/* Stores that do not block, in an inline runtime: commits, jobs, and their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "store/store.h"
#include "support/runtime_rig.h"
#include "support/fake_engine_body.h"
#include "support/test_mem.h"

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
    rig_set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    fake_committer_dirty(&committer, 2);
    fake_committer_dirty(&committer, 3);
    assert_int_equal(s.commits, 0);
    rig_dispatch(&r, 0);
    assert_int_equal(s.commits, 1);
    assert_int_equal(committer.committed, 5);
    s.answer = SEGUE_E_STORE_FULL;
    fake_committer_dirty(&committer, 1);
    rig_dispatch(&r, 0);
    assert_int_equal(committer.last, SEGUE_E_STORE_FULL);
    assert_int_equal(committer.failures, 1);
    remove_store(&r, &committer);
    sgi_store_unref(s.store);
    assert_int_equal(s.frees, 1);
    rig_tear_down(&r);
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
    rig_set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    jobs_done = 0;
    fake_committer_ask(&committer, &find, SGI_STORE_JOB_FIND, count_job);
    fake_committer_ask(&committer, &read, SGI_STORE_JOB_READ, count_job);
    fake_committer_ask(&committer, &claim, SGI_STORE_JOB_CLAIM, count_job);
    fake_committer_ask(&committer, &purge, SGI_STORE_JOB_PURGE, count_job);
    purge.now_ms = 77;
    rig_dispatch(&r, 0);
    assert_int_equal(jobs_done, 4);
    assert_int_equal(s.finds + s.reads + s.claims + s.purges, 4);
    assert_int_equal(find.bytes, 1);
    assert_int_equal(read.bytes, 1);
    assert_int_equal(claim.status, SEGUE_E_STORE);
    assert_int_equal(purge.next_ms, 78);
    remove_store(&r, &committer);
    sgi_store_unref(s.store);
    rig_tear_down(&r);
}

static void output_leaves_after_the_commit_of_its_turn(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    segue_transport *a, *b;
    (void)state;
    rig_set_up(&r);
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
    rig_set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    fake_committer_dirty(&committer, 4);
    remove_store(&r, &committer);
    assert_int_equal(committer.committed, 4);
    assert_null(committer.base.host_user);
    fake_committer_dirty(&committer, 1); /* this write is not needed any more */
    remove_store(&r, &committer);
    rig_dispatch(&r, 0);
    assert_int_equal(committer.committed, 4);
    sgi_store_unref(s.store);
    assert_int_equal(s.frees, 1);
    rig_tear_down(&r);
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
    rig_set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    committer.on_done = remove_itself;
    fake_committer_dirty(&committer, 1);
    rig_dispatch(&r, 0);
    assert_int_equal(committer.committed, 1);
    sgi_store_unref(s.store);
    assert_int_equal(s.frees, 1);
    rig_tear_down(&r);
}

static void two_committers_share_a_store(void **state)
{
    rig r;
    test_store s;
    fake_committer one, two;
    (void)state;
    rig_set_up(&r);
    open_store(&s);
    add_store(&r, &one, &s);
    add_store(&r, &two, &s);
    fake_committer_dirty(&one, 1);
    fake_committer_dirty(&two, 2);
    rig_dispatch(&r, 0);
    assert_int_equal(one.committed, 1);
    assert_int_equal(two.committed, 2);
    remove_store(&r, &one);
    sgi_store_unref(s.store);
    fake_committer_dirty(&two, 2);
    rig_dispatch(&r, 0);
    assert_int_equal(two.committed, 4);
    assert_int_equal(s.frees, 0);
    remove_store(&r, &two);
    assert_int_equal(s.frees, 1);
    rig_tear_down(&r);
}

static void a_store_without_memory_is_not_added(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    (void)state;
    rig_set_up(&r);
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
    rig_tear_down(&r);
}

/* ---- the end ---- */

static void free_commits_what_is_dirty_and_lets_the_store_go(void **state)
{
    rig r;
    test_store s;
    fake_committer committer;
    (void)state;
    rig_set_up(&r);
    open_store(&s);
    add_store(&r, &committer, &s);
    sgi_store_unref(s.store);
    fake_committer_dirty(&committer, 2);
    rig_tear_down(&r);
    assert_int_equal(committer.committed, 2);
    assert_null(committer.base.host_user);
    assert_int_equal(s.frees, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_dirty_goes_into_one_commit),
        cmocka_unit_test(jobs_are_asked_and_answered),
        cmocka_unit_test(output_leaves_after_the_commit_of_its_turn),
        cmocka_unit_test(removing_a_committer_commits_what_is_dirty),
        cmocka_unit_test(a_committer_may_go_in_the_course_of_its_own_commit),
        cmocka_unit_test(two_committers_share_a_store),
        cmocka_unit_test(a_store_without_memory_is_not_added),
        cmocka_unit_test(free_commits_what_is_dirty_and_lets_the_store_go),
    };
    return cmocka_run_group_tests_name("runtime stores", tests, NULL, NULL);
}
