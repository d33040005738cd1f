/* Much work: many operations, several threads, random work (store_model.c), and the same
 * with an allocator that fails. */
#include "support/store_suite_cases.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/store_kit.h"
#include "support/store_model.h"
#include "support/test_mem.h"

void store_suite_many_operations(void **state)
{
    enum { BATCH = 100 };
    const uint32_t operations = ((const store_suite *)*state)->operations;
    static test_record records[BATCH];
    static segue_store_write writes[BATCH * 4];
    static char data[BATCH][2][TEST_ENTRY_MAX];
    segue_store *store = store_suite_open_empty(state, NULL);
    for (uint32_t base = 0; base < operations; base += BATCH) {
        size_t count = 0;
        for (uint32_t i = 0; i < BATCH; i++) {
            uint32_t n = base + i;
            test_record_init(&records[i], n);
            test_record_set_key(&records[i], n);
            writes[count++] = test_write_create(&records[i]);
            for (uint64_t seq = 1; seq <= 2; seq++) {
                size_t len = test_entry_fill(data[i][seq - 1], n, seq);
                writes[count++] = test_write_append(n, seq, data[i][seq - 1], len);
            }
            if (n % 2)
                writes[count++] = test_write_end(n, n);
        }
        assert_int_equal(sgi_store_commit(store, writes, count), SEGUE_OK);
    }
    for (uint32_t n = 0; n < operations; n++) {
        assert_int_equal(test_find(store, n), SEGUE_OK);
        test_assert_log(store, n, 2);
    }
    int64_t next;
    do
        assert_int_equal(sgi_store_purge(store, operations, &next), SEGUE_OK);
    while (next == operations);
    for (uint32_t n = 0; n < operations; n++)
        assert_int_equal(test_find(store, n), n % 2 ? SEGUE_E_NOT_FOUND : SEGUE_OK);
    sgi_store_unref(store);
}

typedef struct worker {
    pthread_t thread;
    segue_store *store;
    uint32_t n;
    segue_status status;
    uint64_t last;
} worker;

static int32_t last_entry(void *user, const segue_store_entry *entry)
{
    *(uint64_t *)user = entry->seq;
    return 0;
}

/* cmocka's asserts belong to the main thread, so this function only reports. */
static void *append_and_read(void *arg)
{
    worker *w = arg;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    char data[TEST_ENTRY_MAX];
    test_store_id(id, w->n);
    for (uint64_t seq = 1; seq <= 200 && !w->status; seq++) {
        size_t len = test_entry_fill(data, w->n, seq);
        w->status = test_commit_one(w->store, test_write_append(w->n, seq, data, len));
        if (!w->status)
            w->status = sgi_store_read(w->store, id, seq - 1, last_entry, &w->last);
        if (!w->status && w->last != seq)
            w->status = SEGUE_E_FATAL;
    }
    sgi_store_unref(w->store);
    return NULL;
}

void store_suite_threads_share_a_store(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    worker workers[4] = {0};
    for (uint32_t i = 0; i < 4; i++)
        test_must_create(store, i);
    for (uint32_t i = 0; i < 4; i++) {
        workers[i].store = store;
        workers[i].n = i;
        sgi_store_ref(store);
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, append_and_read, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].status, SEGUE_OK);
    }
    for (uint32_t i = 0; i < 4; i++)
        test_assert_log(store, i, 200);
    sgi_store_unref(store);
}

void store_suite_random_batches_match_a_model(void **state)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        segue_store *store = store_suite_open_empty(state, NULL);
        test_model_play(store, seed * 1000000, 400, NULL);
        sgi_store_unref(store);
    }
}

/* Returns false when the work makes fewer allocations than this. */
static bool torture(void **state, size_t at, bool all_from)
{
    const store_suite *suite = *state;
    segue_store *store = NULL;
    test_mem tm;
    test_mem_init(&tm);
    *(all_from ? &tm.fail_from : &tm.fail_at) = at;
    segue_store_options options = {.struct_size = sizeof options, .allocator = &tm.mem};
    suite->clear();
    segue_status status = suite->open(&options, &store);
    bool reached = tm.failed > 0;
    if (status) {
        assert_int_equal(status, SEGUE_E_NOMEM);
        assert_int_equal(tm.live, 0);
        test_mem_rearm(&tm);
        suite->clear();
        assert_int_equal(suite->open(&options, &store), SEGUE_OK);
    }
    reached = test_model_play(store, 5, 40, &tm) || reached || tm.failed;
    sgi_store_unref(store);
    assert_int_equal(tm.live, 0);
    assert_int_equal(tm.blocks, 0);
    return reached;
}

static void each_allocation_fails_once(void **state)
{
    size_t at = 1;
    while (torture(state, at, false))
        at++;
    assert_true(at > 1);
}

static void all_allocations_fail_from_one_on(void **state)
{
    for (size_t at = 1; torture(state, at, true); at++)
        ;
}

int store_suite_run_allocations(const store_suite *suite)
{
    struct CMUnitTest cases[] = {
        cmocka_unit_test(each_allocation_fails_once),
        cmocka_unit_test(all_allocations_fail_from_one_on),
    };
    return STORE_SUITE_RUN_GROUP(suite, "allocations", cases);
}
