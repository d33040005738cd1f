/* The store suite for each store, then tests of the handle and of the store in memory.
 * label: threads */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/news_suite.h"
#include "support/store_kit.h"
#include "support/store_suite.h"
#include "support/test_mem.h"

#include <cmocka.h>

/* ---- memory ---- */

static segue_status open_memory(const segue_store_options *options, segue_store **out)
{
    return sgi_store_memory_new(options, out);
}

static void clear_nothing(void)
{
}

/* ---- sqlite ---- */

static char directory[] = "/tmp/segue-store-XXXXXX";

static const char *file_path(const char *suffix)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/store.db%s", directory, suffix);
    return path;
}

static segue_status open_sqlite(const segue_store_options *options, segue_store **out)
{
    char message[200];
    segue_status status =
        sgi_store_sqlite_new(file_path(""), options, out, message, sizeof message);
    if (status && status != SEGUE_E_NOMEM)
        print_error("%s\n", message);
    return status;
}

static void clear_sqlite(void)
{
    unlink(file_path(""));
    unlink(file_path("-wal"));
    unlink(file_path("-shm"));
    unlink(file_path("-owners"));
}

/* ---- a store of the application: a longer vtable struct around another store ---- */

typedef struct outside {
    segue_store *inner;
} outside;

static segue_status outside_commit(void *self, const segue_store_write *writes,
                                   size_t count)
{
    return sgi_store_commit(((outside *)self)->inner, writes, count);
}

static segue_status outside_find(void *self, const char *task_id, const uint8_t *key,
                                 segue_store_record_fn fn, void *user)
{
    return sgi_store_find(((outside *)self)->inner, task_id, key, fn, user);
}

static segue_status outside_read(void *self, const uint8_t *id, uint64_t after,
                                 segue_store_entry_fn fn, void *user)
{
    return sgi_store_read(((outside *)self)->inner, id, after, fn, user);
}

static segue_status outside_claim(void *self, segue_store_record_fn fn, void *user)
{
    return sgi_store_claim(((outside *)self)->inner, fn, user);
}

static segue_status outside_purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    return sgi_store_purge(((outside *)self)->inner, now_ms, next_ms);
}

static segue_status outside_list(void *self, const uint8_t *principal, int64_t created_ms,
                                 const char *task_id, segue_store_record_fn fn,
                                 void *user)
{
    return sgi_store_list(((outside *)self)->inner, principal, created_ms, task_id, fn,
                          user);
}

static segue_status outside_scan(void *self, uint64_t *place, segue_store_record_fn fn,
                                 void *user)
{
    return sgi_store_scan_turn(((outside *)self)->inner, place, fn, user);
}

static void outside_free(void *self)
{
    sgi_store_unref(((outside *)self)->inner);
    free(self);
}

static const segue_store_vtable outside_vtable = {.struct_size = sizeof outside_vtable,
                                                  .commit = outside_commit,
                                                  .find = outside_find,
                                                  .read = outside_read,
                                                  .claim = outside_claim,
                                                  .purge = outside_purge,
                                                  .free = outside_free,
                                                  .list = outside_list,
                                                  .scan = outside_scan};

static segue_status open_outside(const segue_store_options *options, segue_store **out)
{
    outside *self = malloc(sizeof *self);
    assert_non_null(self);
    segue_status status = sgi_store_memory_new(options, &self->inner);
    if (status) {
        free(self);
        return status;
    }
    status =
        sgi_store_new(&outside_vtable, self, options ? options->allocator : NULL, out);
    if (status)
        outside_free(self); /* after a failed call the caller still owns `self` */
    return status;
}

/* ---- the handle ---- */

static void vtable_without_a_needed_function_is_refused(void **state)
{
    (void)state;
    segue_store *store = NULL;
    for (int missing = 0; missing < 4; missing++) {
        segue_store_vtable vtable = outside_vtable;
        if (missing == 0)
            vtable.commit = NULL;
        if (missing == 1)
            vtable.find = NULL;
        if (missing == 2)
            vtable.read = NULL;
        if (missing == 3)
            vtable.claim = NULL;
        assert_int_equal(sgi_store_new(&vtable, NULL, NULL, &store), SEGUE_E_INVALID);
    }
    segue_store_vtable shorter = outside_vtable;
    shorter.struct_size = offsetof(segue_store_vtable, claim);
    assert_int_equal(sgi_store_new(&shorter, NULL, NULL, &store), SEGUE_E_INVALID);
    assert_null(store);
}

static segue_status never_purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    (void)self;
    (void)now_ms;
    (void)next_ms;
    return SEGUE_E_FATAL;
}

static void vtable_of_another_age(void **state)
{
    (void)state;
    struct {
        segue_store_vtable vtable;
        void *more;
    } newer = {outside_vtable, NULL};
    segue_store *store = NULL;
    newer.vtable.struct_size = sizeof newer;
    newer.vtable.free = NULL;
    assert_int_equal(sgi_store_new(&newer.vtable, NULL, NULL, &store), SEGUE_OK);
    sgi_store_unref(store);
    newer.more = &newer;
    assert_int_equal(sgi_store_new(&newer.vtable, NULL, NULL, &store), SEGUE_E_VERSION);

    /* A shorter struct of an older version is valid: members behind its end are not
     * read. */
    segue_store_vtable older = outside_vtable;
    older.struct_size = offsetof(segue_store_vtable, purge);
    older.purge = never_purge;
    assert_int_equal(sgi_store_new(&older, NULL, NULL, &store), SEGUE_OK);
    int64_t next = 0;
    assert_int_equal(sgi_store_purge(store, 1, &next), SEGUE_OK);
    assert_int_equal(next, INT64_MAX);
    assert_false(sgi_store_can_list(store));
    assert_int_equal(sgi_store_list(store, (const uint8_t *)"", 0, NULL, NULL, NULL),
                     SEGUE_E_UNSUPPORTED);
    sgi_store_unref(store);
}

/* Counts frees and notices two calls at once. */
typedef struct probe {
    atomic_int inside;
    atomic_int overlaps;
    atomic_int calls;
    atomic_int frees;
} probe;

static segue_status probe_commit(void *self, const segue_store_write *writes,
                                 size_t count)
{
    probe *p = self;
    (void)writes;
    (void)count;
    if (atomic_fetch_add(&p->inside, 1))
        atomic_fetch_add(&p->overlaps, 1);
    atomic_fetch_add(&p->calls, 1);
    atomic_fetch_sub(&p->inside, 1);
    return SEGUE_OK;
}

static void probe_free(void *self)
{
    atomic_fetch_add(&((probe *)self)->frees, 1);
}

static void *commit_often(void *arg)
{
    segue_store_write write = {.kind = SEGUE_STORE_DELETE};
    for (int i = 0; i < 20000; i++)
        sgi_store_commit(arg, &write, 1);
    sgi_store_unref(arg);
    return NULL;
}

static void calls_come_one_at_a_time_and_free_once(void **state)
{
    (void)state;
    probe p = {0};
    segue_store_vtable vtable = outside_vtable;
    vtable.blocking = 1;
    vtable.commit = probe_commit;
    vtable.free = probe_free;
    segue_store *store = NULL;
    assert_int_equal(sgi_store_new(&vtable, &p, NULL, &store), SEGUE_OK);
    assert_true(sgi_store_is_blocking(store));
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        sgi_store_ref(store);
        assert_int_equal(pthread_create(&threads[i], NULL, commit_often, store), 0);
    }
    sgi_store_unref(store); /* the threads have references of their own */
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(p.calls, 60000);
    assert_int_equal(p.overlaps, 0);
    assert_int_equal(p.frees, 1);
    sgi_store_unref(NULL);
}

#define SCANNED 5000 /* many times what one turn of a scan passes */

/* What two threads know of each other. */
typedef struct between {
    segue_store *store;
    atomic_int passed;     /* number of operations that the scan has passed */
    atomic_bool is_called; /* the other thread is about to call the store */
    atomic_bool was_let_in;
} between;

static void *call_once(void *arg)
{
    between *b = arg;
    segue_store_write write = {.kind = SEGUE_STORE_DELETE};
    atomic_store(&b->is_called, true);
    sgi_store_commit(b->store, &write, 1);
    atomic_store(&b->was_let_in, atomic_load(&b->passed) < SCANNED);
    return NULL;
}

static int32_t await_call(void *user, const segue_store_record *record)
{
    between *b = user;
    (void)record;
    atomic_fetch_add(&b->passed, 1);
    while (!atomic_load(&b->is_called))
        sched_yield();
    return 0;
}

/* The other thread may be so slow that one scan is over before it calls, so there are
 * several scans. If a scan kept the store to itself, the call would come after each. */
static void others_get_in_while_a_scan_runs(void **state)
{
    between b = {.passed = 0};
    (void)state;
    assert_int_equal(sgi_store_memory_new(NULL, &b.store), SEGUE_OK);
    for (uint32_t n = 0; n < SCANNED; n++)
        test_must_create(b.store, n);
    for (int scans = 0; scans < 100 && !atomic_load(&b.was_let_in); scans++) {
        pthread_t thread;
        atomic_store(&b.is_called, false);
        atomic_store(&b.passed, 0);
        assert_int_equal(pthread_create(&thread, NULL, call_once, &b), 0);
        assert_int_equal(sgi_store_scan(b.store, await_call, &b), SEGUE_OK);
        pthread_join(thread, NULL);
    }
    assert_true(atomic_load(&b.was_let_in));
    sgi_store_unref(b.store);
}

/* ---- memory: room ---- */

static segue_store *open_small(int64_t max_bytes)
{
    segue_store_options options = {.struct_size = sizeof options, .max_bytes = max_bytes};
    segue_store *store = NULL;
    assert_int_equal(sgi_store_memory_new(&options, &store), SEGUE_OK);
    return store;
}

static char filler[16 * 1024];

/* Creates operation n with one entry of 16 KiB. */
static segue_status create_large(segue_store *store, uint32_t n)
{
    test_record r;
    test_record_init(&r, n);
    segue_store_write writes[] = {test_write_create(&r),
                                  test_write_append(n, 1, filler, sizeof filler)};
    return sgi_store_commit(store, writes, 2);
}

static void must_end(segue_store *store, uint32_t n)
{
    assert_int_equal(test_commit_one(store, test_write_end(n, INT64_MAX)), SEGUE_OK);
}

static void what_ended_first_is_evicted_first(void **state)
{
    (void)state;
    segue_store *store = open_small(5 * 17 * 1024);
    for (uint32_t n = 1; n <= 5; n++)
        assert_int_equal(create_large(store, n), SEGUE_OK);
    must_end(store, 3);
    must_end(store, 1);
    must_end(store, 5);
    assert_int_equal(create_large(store, 6), SEGUE_OK);
    assert_int_equal(test_find(store, 3), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_find(store, 1), SEGUE_OK);
    assert_int_equal(create_large(store, 7), SEGUE_OK);
    assert_int_equal(test_find(store, 1), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_find(store, 5), SEGUE_OK);
    assert_int_equal(create_large(store, 8), SEGUE_OK);
    assert_int_equal(test_find(store, 5), SEGUE_E_NOT_FOUND);
    /* Operations 2, 4, 6, 7 and 8 still run, so none can be evicted. */
    assert_int_equal(create_large(store, 9), SEGUE_E_STORE_FULL);
    assert_int_equal(test_find(store, 9), SEGUE_E_NOT_FOUND);
    for (uint32_t n = 2; n <= 8; n++)
        assert_int_equal(test_find(store, n),
                         n == 3 || n == 5 ? SEGUE_E_NOT_FOUND : SEGUE_OK);
    /* The end of an operation needs no free space, and an ended operation can be
     * evicted. */
    must_end(store, 4);
    assert_int_equal(create_large(store, 9), SEGUE_OK);
    assert_int_equal(test_find(store, 4), SEGUE_E_NOT_FOUND);
    sgi_store_unref(store);
}

static void commit_that_cannot_fit_evicts_nothing(void **state)
{
    (void)state;
    segue_store *store = open_small(4 * 17 * 1024);
    assert_int_equal(create_large(store, 1), SEGUE_OK);
    assert_int_equal(create_large(store, 2), SEGUE_OK);
    must_end(store, 1);
    static char huge[100 * 1024];
    test_record r;
    test_record_init(&r, 3);
    segue_store_write writes[] = {test_write_create(&r),
                                  test_write_append(3, 1, huge, sizeof huge)};
    assert_int_equal(sgi_store_commit(store, writes, 2), SEGUE_E_STORE_FULL);
    assert_int_equal(test_find(store, 1), SEGUE_OK);
    /* A creation that fits, but is refused for another reason, evicts nothing. */
    segue_store_write refused[] = {test_write_create(&r),
                                   test_write_append(3, 1, huge, 40 * 1024),
                                   test_write_append(3, 3, huge, 1)};
    assert_int_equal(sgi_store_commit(store, refused, 3), SEGUE_E_STATE);
    assert_int_equal(test_find(store, 1), SEGUE_OK);
    assert_int_equal(sgi_store_commit(store, refused, 2), SEGUE_OK);
    assert_int_equal(test_find(store, 1), SEGUE_E_NOT_FOUND);
    sgi_store_unref(store);
}

static void commit_does_not_evict_what_it_writes(void **state)
{
    (void)state;
    segue_store *store = open_small(3 * 17 * 1024);
    for (uint32_t n = 1; n <= 3; n++)
        assert_int_equal(create_large(store, n), SEGUE_OK);
    must_end(store, 1);
    must_end(store, 2);
    /* Operation 1 is the oldest, but is not evicted by a commit that appends to it. */
    assert_int_equal(
        test_commit_one(store, test_write_append(1, 2, filler, sizeof filler)), SEGUE_OK);
    assert_int_equal(test_find(store, 1), SEGUE_OK);
    assert_int_equal(test_find(store, 2), SEGUE_E_NOT_FOUND);
    assert_int_equal(
        test_commit_one(store, test_write_append(1, 3, filler, sizeof filler)),
        SEGUE_E_STORE_FULL);
    sgi_store_unref(store);
}

static void room_comes_back(void **state)
{
    (void)state;
    segue_store *store = open_small(3 * 17 * 1024);
    int64_t next;
    for (int round = 0; round < 50; round++) {
        for (uint32_t n = 1; n <= 3; n++)
            assert_int_equal(create_large(store, n), SEGUE_OK);
        assert_int_equal(create_large(store, 4), SEGUE_E_STORE_FULL);
        assert_int_equal(test_commit_one(store, test_write_simple(SEGUE_STORE_DELETE, 1)),
                         SEGUE_OK);
        assert_int_equal(test_commit_one(store, test_write_end(2, 5)), SEGUE_OK);
        assert_int_equal(test_commit_one(store, test_write_end(3, 5)), SEGUE_OK);
        assert_int_equal(sgi_store_purge(store, 5, &next), SEGUE_OK);
        assert_int_equal(next, INT64_MAX);
    }
    sgi_store_unref(store);
}

static void memory_stays_within_the_bound(void **state)
{
    (void)state;
    test_mem tm;
    test_mem_init(&tm);
    segue_store_options options = {
        .struct_size = sizeof options, .allocator = &tm.mem, .max_bytes = 1024 * 1024};
    segue_store *store = NULL;
    assert_int_equal(sgi_store_memory_new(&options, &store), SEGUE_OK);
    for (uint32_t n = 0; n < 20000; n++) {
        char data[TEST_ENTRY_MAX];
        test_record r;
        test_record_init(&r, n);
        size_t len = test_entry_fill(data, n, 1);
        segue_store_write writes[] = {test_write_create(&r),
                                      test_write_append(n, 1, data, len),
                                      test_write_end(n, INT64_MAX)};
        assert_int_equal(sgi_store_commit(store, writes, 3), SEGUE_OK);
    }
    assert_int_equal(test_find(store, 0), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_find(store, 19999), SEGUE_OK);
    assert_true(tm.peak + 16 * tm.blocks < 1024 * 1024 + 64 * 1024);
    sgi_store_unref(store);
    assert_int_equal(tm.live, 0);
}

static void parked_task_costs_little(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    test_mem tm;
    test_mem_init(&tm);
    segue_store_options options = {.struct_size = sizeof options, .allocator = &tm.mem};
    segue_store *store = NULL;
    assert_int_equal(sgi_store_memory_new(&options, &store), SEGUE_OK);
    for (uint32_t n = 0; n < COUNT; n++) {
        char data[180] = "the arguments of the call";
        test_record r;
        test_record_init(&r, n);
        test_record_set_key(&r, n);
        r.record.data = data;
        r.record.data_len = sizeof data;
        segue_store_write writes[] = {test_write_create(&r),
                                      test_write_append(n, 1, data, 60),
                                      test_write_append(n, 2, data, 60)};
        assert_int_equal(sgi_store_commit(store, writes, 3), SEGUE_OK);
    }
    /* An allocator uses at most 16 bytes for each block besides the block's size. */
    size_t each = (tm.live + 16 * tm.blocks) / COUNT;
    print_message("a parked task costs %zu bytes\n", each);
    assert_true(each < 1229);
    sgi_store_unref(store);
}

static void large_batch_leaves_no_memory_behind(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static test_record records[COUNT];
    static segue_store_write writes[COUNT];
    test_mem tm;
    test_mem_init(&tm);
    segue_store_options options = {.struct_size = sizeof options, .allocator = &tm.mem};
    segue_store *store = NULL;
    assert_int_equal(sgi_store_memory_new(&options, &store), SEGUE_OK);
    for (uint32_t n = 0; n < COUNT; n++) {
        test_record_init(&records[n], n);
        writes[n] = test_write_create(&records[n]);
    }
    assert_int_equal(sgi_store_commit(store, writes, COUNT), SEGUE_OK);
    for (uint32_t n = 0; n < COUNT; n++)
        writes[n] = test_write_simple(SEGUE_STORE_DELETE, n);
    assert_int_equal(sgi_store_commit(store, writes, COUNT), SEGUE_OK);
    /* The tables of maps and timers stay: 4 x 8 bytes for each former operation. */
    assert_true(tm.live < 4096 * 4 * 8 + 16 * 1024);
    sgi_store_unref(store);
}

static void negative_limit_is_refused(void **state)
{
    (void)state;
    segue_store_options options = {.struct_size = sizeof options, .max_bytes = -1};
    segue_store *store = NULL;
    assert_int_equal(sgi_store_memory_new(&options, &store), SEGUE_E_INVALID);
    assert_null(store);
}

int main(void)
{
    static const store_suite suites[] = {{"memory", open_memory, clear_nothing, 10000},
                                         {"outside", open_outside, clear_nothing, 10000},
                                         {"sqlite", open_sqlite, clear_sqlite, 10000}};
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(vtable_without_a_needed_function_is_refused),
        cmocka_unit_test(vtable_of_another_age),
        cmocka_unit_test(calls_come_one_at_a_time_and_free_once),
        cmocka_unit_test(others_get_in_while_a_scan_runs),
        cmocka_unit_test(what_ended_first_is_evicted_first),
        cmocka_unit_test(commit_that_cannot_fit_evicts_nothing),
        cmocka_unit_test(commit_does_not_evict_what_it_writes),
        cmocka_unit_test(room_comes_back),
        cmocka_unit_test(memory_stays_within_the_bound),
        cmocka_unit_test(parked_task_costs_little),
        cmocka_unit_test(large_batch_leaves_no_memory_behind),
        cmocka_unit_test(negative_limit_is_refused),
    };
    if (!mkdtemp(directory))
        return 1;
    int failures = 0;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        failures += store_suite_run(&suites[i]) +
                    store_suite_run_allocations(&suites[i]) +
                    store_suite_run_bounds(&suites[i]) + news_suite_run(&suites[i]);
    failures += news_suite_run_shared(&suites[2]);
    clear_sqlite();
    rmdir(directory);
    failures += cmocka_run_group_tests_name("store", cases, NULL, NULL);
    return failures ? 1 : 0;
}
