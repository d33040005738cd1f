/* The store suites on a store that several servers share and that is made with the public
 * headers alone (support/shared_store.h), and the errors for an invalid table.
 * label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/news_suite.h"
#include "support/shared_store.h"
#include "support/store_kit.h"

#include <cmocka.h>

#define LEASE_MS 10000

static shared_place *place;

static segue_status open_shared(const segue_store_options *options, segue_store **out)
{
    return shared_store_new(place, &(shared_options){.options = options}, NULL, out);
}

static void clear_place(void)
{
    if (place)
        shared_place_free(place);
    place = shared_place_new(LEASE_MS, NULL, NULL);
}

/* ---- a commit that fails ---- */

static void begin(segue_store **store, shared_store **self)
{
    clear_place();
    assert_int_equal(shared_store_new(place, &(shared_options){0}, self, store),
                     SEGUE_OK);
}

/* The answer to a commit is lost. The commit has taken effect, and the same commit
 * succeeds again. */
static void a_commit_may_come_again(void **state)
{
    (void)state;
    segue_store *store;
    shared_store *self;
    test_record r;
    char data[TEST_ENTRY_MAX];
    begin(&store, &self);
    test_record_init(&r, 1);
    size_t len = test_entry_fill(data, 1, 1);
    segue_store_write writes[] = {test_write_create(&r),
                                  test_write_append(1, 1, data, len)};
    shared_store_fail(self, 1, 1);
    assert_int_equal(sgi_store_commit(store, writes, 2), SEGUE_E_STORE);
    assert_int_equal(sgi_store_commit(store, writes, 2), SEGUE_OK);
    test_assert_log(store, 1, 1);
    shared_store_fail(self, 1, 0);
    assert_int_equal(test_commit_one(store, test_write_end(1, 5)), SEGUE_E_STORE);
    assert_int_equal(test_must_find(store, 1).ended, 0);
    sgi_store_unref(store);
}

static int64_t clock_ms;

static int64_t now(void *user)
{
    (void)user;
    return clock_ms;
}

static int32_t hear_nothing(void *user, const segue_store_news *news)
{
    (void)user;
    (void)news;
    return 0;
}

/* An owner that is silent for a lease counts as dead. When it comes back, its last
 * unacknowledged write is at an operation of another owner. */
static void a_lease_lapses(void **state)
{
    (void)state;
    segue_store *mine, *theirs;
    test_record r;
    shared_place *timed = shared_place_new(LEASE_MS, now, NULL);
    assert_int_equal(shared_store_new(timed, &(shared_options){0}, NULL, &mine),
                     SEGUE_OK);
    assert_int_equal(shared_store_new(timed, &(shared_options){0}, NULL, &theirs),
                     SEGUE_OK);
    sgi_store_listener *listener;
    int64_t within_ms;
    assert_int_equal(sgi_store_listen(mine, (void (*)(void *))abort, NULL, &listener),
                     SEGUE_OK);
    test_record_init(&r, 1);
    assert_int_equal(test_commit_one(mine, test_write_create(&r)), SEGUE_OK);
    clock_ms += LEASE_MS;
    assert_int_equal(sgi_store_deliver_news(listener, hear_nothing, NULL, &within_ms),
                     SEGUE_OK);
    assert_true(within_ms > 0 && within_ms < LEASE_MS);
    clock_ms += LEASE_MS;
    assert_int_equal(test_claim_count(theirs), 0);
    clock_ms += 1;
    assert_int_equal(test_claim_count(theirs), 1);
    assert_int_equal(test_commit_one(mine, test_write_create(&r)), SEGUE_E_FENCED);
    assert_int_equal(test_commit_one(mine, test_write_append(1, 1, "x", 1)),
                     SEGUE_E_FENCED);
    assert_int_equal(shared_place_fenced(timed), 2);
    sgi_store_unlisten(listener);
    sgi_store_unref(mine);
    sgi_store_unref(theirs);
    shared_place_free(timed);
}

/* ---- the table ---- */

static segue_status commit(void *self, const segue_store_write *writes, size_t count)
{
    (void)self;
    (void)writes;
    (void)count;
    return SEGUE_OK;
}

static segue_status find(void *self, const char *task_id, const uint8_t *key,
                         segue_store_record_fn fn, void *user)
{
    (void)self;
    (void)task_id;
    (void)key;
    (void)fn;
    (void)user;
    return SEGUE_E_NOT_FOUND;
}

static segue_status read_log(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user)
{
    (void)self;
    (void)id;
    (void)after;
    (void)fn;
    (void)user;
    return SEGUE_E_NOT_FOUND;
}

static segue_status claim(void *self, segue_store_record_fn fn, void *user)
{
    (void)self;
    (void)fn;
    (void)user;
    return SEGUE_OK;
}

static segue_status follow_log(void *self, const uint8_t *id, int32_t on)
{
    (void)self;
    (void)id;
    (void)on;
    return SEGUE_OK;
}

/* Without a change feed no server would learn that a lease has lapsed, or renew its
 * lease. */
static void leases_need_news(void **state)
{
    (void)state;
    segue_store_vtable table = SEGUE_STORE_VTABLE_INIT;
    segue_store *store = NULL;
    table.commit = commit;
    table.find = find;
    table.read = read_log;
    table.claim = claim;
    table.leased = 1;
    assert_int_equal(segue_store_custom(&table, NULL, NULL, &store), SEGUE_E_INVALID);
    table.follow = follow_log;
    assert_int_equal(segue_store_custom(&table, NULL, NULL, &store), SEGUE_E_INVALID);
    table.leased = 0;
    assert_int_equal(segue_store_custom(&table, NULL, NULL, &store), SEGUE_E_INVALID);
    table.follow = NULL;
    table.forgets = 1;
    assert_int_equal(segue_store_custom(&table, NULL, NULL, &store), SEGUE_OK);
    assert_true(sgi_store_is_volatile(store));
    assert_false(sgi_store_is_leased(store));
    segue_store_free(store);
}

/* The built-in stores describe themselves in the same table. */
static void memory_forgets(void **state)
{
    (void)state;
    segue_store *store;
    assert_int_equal(segue_store_memory(NULL, &store), SEGUE_OK);
    assert_true(sgi_store_is_volatile(store));
    assert_false(sgi_store_is_leased(store));
    segue_store_free(store);
}

int main(void)
{
    static const store_suite suite = {"shared", open_shared, clear_place, 10000};
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_commit_may_come_again),
        cmocka_unit_test(a_lease_lapses),
        cmocka_unit_test(leases_need_news),
        cmocka_unit_test(memory_forgets),
    };
    int failures = store_suite_run(&suite) + store_suite_run_allocations(&suite) +
                   news_suite_run(&suite) + news_suite_run_shared(&suite) +
                   cmocka_run_group_tests_name("shared store", cases, NULL, NULL);
    shared_place_free(place);
    return failures ? 1 : 0;
}
