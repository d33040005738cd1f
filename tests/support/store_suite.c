/* One case for each behaviour of a store. store_suite_bounds.c has the limits of a
 * principal, store_suite_work.c has much work. */
#include "support/store_suite_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thresholds.h"
#include "support/store_kit.h"

/* ---- cases ---- */

segue_store *store_suite_open_empty(void **state, const segue_store_options *options)
{
    const store_suite *suite = *state;
    segue_store *store = NULL;
    suite->clear();
    assert_int_equal(suite->open(options, &store), SEGUE_OK);
    return store;
}

static void found_by_task_id_and_key(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    test_record r;
    test_record_init(&r, 1);
    test_record_set_key(&r, 77);
    r.record.purge_ms = 5000;
    assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_OK);
    test_must_create(store, 2);

    assert_int_equal(test_find(store, 1), SEGUE_OK);
    assert_int_equal(test_find(store, 2), SEGUE_OK);
    assert_int_equal(test_find(store, 3), SEGUE_E_NOT_FOUND);
    test_seen seen = test_must_find(store, 1);
    assert_int_equal(seen.has_key, 1);
    assert_memory_equal(seen.key, r.record.idempotency_key, sizeof seen.key);
    assert_int_equal(seen.ended, 0);
    assert_int_equal(seen.purge_ms, 5000);
    assert_int_equal(test_must_find(store, 2).has_key, 0);

    test_seen by_key;
    assert_int_equal(
        sgi_store_find(store, NULL, r.record.idempotency_key, test_keep_record, &by_key),
        SEGUE_OK);
    assert_memory_equal(by_key.id, r.record.id, sizeof by_key.id);
    /* An operation without a key must not be found by a key of zeros. */
    uint8_t zeros[SEGUE_STORE_HASH_SIZE] = {0};
    assert_int_equal(sgi_store_find(store, NULL, zeros, test_keep_record, &by_key),
                     SEGUE_E_NOT_FOUND);
    assert_int_equal(sgi_store_find(store, NULL, NULL, test_keep_record, &by_key),
                     SEGUE_E_INVALID);
    sgi_store_unref(store);
}

/* Commits [create 10, append to 1, the given write] and checks that the commit has no
 * effect. */
static void expect_refused(segue_store *store, segue_store_write bad, segue_status status)
{
    test_record r;
    char data[TEST_ENTRY_MAX];
    test_record_init(&r, 10);
    uint64_t last = test_log_last(store, 1, 1);
    size_t len = test_entry_fill(data, 1, last + 1);
    segue_store_write writes[] = {test_write_create(&r),
                                  test_write_append(1, last + 1, data, len), bad};
    assert_int_equal(sgi_store_commit(store, writes, 3), status);
    assert_int_equal(test_find(store, 10), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_read_status(store, 10), SEGUE_E_NOT_FOUND);
    test_assert_log(store, 1, last);
}

static void conflict_rolls_the_batch_back(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    test_record one, other;
    test_record_init(&one, 1);
    test_record_set_key(&one, 7);
    assert_int_equal(test_commit_one(store, test_write_create(&one)), SEGUE_OK);
    test_must_append(store, 1, 1);

    test_record_init(&other, 2);
    strcpy(other.task_id, one.task_id);
    expect_refused(store, test_write_create(&other), SEGUE_E_EXISTS);
    test_record_init(&other, 2);
    test_record_set_key(&other, 7);
    expect_refused(store, test_write_create(&other), SEGUE_E_EXISTS);
    test_record_init(&other, 2);
    memcpy(other.record.id, one.record.id, sizeof other.record.id);
    expect_refused(store, test_write_create(&other), SEGUE_E_EXISTS);
    /* A conflict with an operation that the same batch creates is refused, too. */
    test_record_init(&other, 10);
    expect_refused(store, test_write_create(&other), SEGUE_E_EXISTS);

    test_record_init(&other, 2);
    test_record_set_key(&other, 8);
    assert_int_equal(test_commit_one(store, test_write_create(&other)), SEGUE_OK);
    sgi_store_unref(store);
}

static void append_leaves_no_hole_and_repeats_nothing(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    test_must_create(store, 1);
    expect_refused(store, test_write_append(1, 3, "x", 1), SEGUE_E_STATE);
    for (uint64_t seq = 1; seq <= 5; seq++)
        test_must_append(store, 1, seq);
    /* The batch itself appends 6 before the bad entry. */
    expect_refused(store, test_write_append(1, 0, "x", 1), SEGUE_E_STATE);
    expect_refused(store, test_write_append(1, 5, "x", 1), SEGUE_E_STATE);
    expect_refused(store, test_write_append(1, 6, "x", 1), SEGUE_E_STATE);
    expect_refused(store, test_write_append(1, 8, "x", 1), SEGUE_E_STATE);
    expect_refused(store, test_write_append(1, UINT64_MAX, "x", 1), SEGUE_E_STATE);
    expect_refused(store, test_write_append(9, 1, "x", 1), SEGUE_E_NOT_FOUND);
    expect_refused(store, test_write_end(9, 1), SEGUE_E_NOT_FOUND);
    test_must_append(store, 1, 6);
    test_assert_log(store, 1, 6);
    sgi_store_unref(store);
}

static void malformed_write_is_refused(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    test_must_create(store, 1);
    test_record r;
    test_record_init(&r, 2);
    r.record.task_id = NULL;
    expect_refused(store, test_write_create(&r), SEGUE_E_INVALID);
    expect_refused(store, (segue_store_write){.kind = SEGUE_STORE_CREATE},
                   SEGUE_E_INVALID);
    expect_refused(store, test_write_simple(0, 1), SEGUE_E_INVALID);
    expect_refused(store, test_write_simple(99, 1), SEGUE_E_INVALID);
    assert_int_equal(sgi_store_commit(store, NULL, 0), SEGUE_OK);
    sgi_store_unref(store);
}

static void read_starts_behind_after(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    test_must_create(store, 1);
    test_assert_log(store, 1, 0);
    for (uint64_t seq = 1; seq <= 300; seq++)
        test_must_append(store, 1, seq);
    for (uint64_t first = 1; first <= 301; first++)
        assert_int_equal(test_log_last(store, 1, first), 300);
    /* There is nothing behind the end, however far: test_log_last then returns
     * `after`. */
    assert_int_equal(test_log_last(store, 1, 302), 301);
    assert_true(test_log_last(store, 1, 0) == UINT64_MAX);
    assert_int_equal(test_read_status(store, 2), SEGUE_E_NOT_FOUND);
    sgi_store_unref(store);
}

static int32_t stop_at_seven(void *user, const segue_store_entry *entry)
{
    ++*(int *)user;
    return entry->seq == 7;
}

static void read_stops_when_told(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    uint8_t id[SEGUE_STORE_ID_SIZE];
    int calls = 0;
    test_store_id(id, 1);
    test_must_create(store, 1);
    for (uint64_t seq = 1; seq <= 20; seq++)
        test_must_append(store, 1, seq);
    assert_int_equal(sgi_store_read(store, id, 4, stop_at_seven, &calls), SEGUE_OK);
    assert_int_equal(calls, 3);
    /* A stopped read must not block the next write or read. */
    test_must_append(store, 1, 21);
    test_assert_log(store, 1, 21);
    sgi_store_unref(store);
}

typedef struct payload {
    const char *data;
    size_t len;
    int calls;
} payload;

static int32_t check_payload(void *user, const segue_store_entry *entry)
{
    payload *expected = user;
    assert_int_equal(entry->data_len, expected->len);
    assert_non_null(entry->data);
    if (expected->len)
        assert_memory_equal(entry->data, expected->data, expected->len);
    expected->calls++;
    return 1;
}

static int32_t check_record_data(void *user, const segue_store_record *record)
{
    payload *expected = user;
    assert_int_equal(record->data_len, expected->len);
    assert_non_null(record->data);
    if (expected->len)
        assert_memory_equal(record->data, expected->data, expected->len);
    expected->calls++;
    return 0;
}

static void payloads_come_back_byte_by_byte(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    size_t big_len = 8 * 1024 * 1024;
    char *big = malloc(big_len);
    assert_non_null(big);
    for (size_t i = 0; i < big_len; i++)
        big[i] = (char)(test_mix(i / 8) >> (8 * (i % 8)));
    payload payloads[] = {{NULL, 0, 0},   {"", 0, 0},           {"\0", 1, 0},
                          {"a\0b", 3, 0}, {"\xff\xfe\0", 3, 0}, {big, big_len, 0},
                          {"end", 3, 0}};
    uint32_t count = sizeof payloads / sizeof *payloads;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    test_store_id(id, 100);
    test_must_create(store, 100);
    for (uint32_t i = 0; i < count; i++) {
        test_record r;
        test_record_init(&r, i);
        r.record.data = payloads[i].data;
        r.record.data_len = payloads[i].len;
        segue_store_write writes[] = {
            test_write_create(&r),
            test_write_append(100, i + 1, payloads[i].data, payloads[i].len)};
        assert_int_equal(sgi_store_commit(store, writes, 2), SEGUE_OK);
    }
    for (uint32_t i = 0; i < count; i++) {
        char task_id[32];
        snprintf(task_id, sizeof task_id, "task-%u", i);
        assert_int_equal(sgi_store_read(store, id, i, check_payload, &payloads[i]),
                         SEGUE_OK);
        assert_int_equal(
            sgi_store_find(store, task_id, NULL, check_record_data, &payloads[i]),
            SEGUE_OK);
        assert_int_equal(payloads[i].calls, 2);
    }
    free(big);
    sgi_store_unref(store);
}

static void numbers_keep_their_full_range(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    test_record r;
    test_record_init(&r, 1);
    r.record.created_ms = INT64_MIN;
    r.record.purge_ms = INT64_MAX - 1;
    assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_OK);
    assert_int_equal(test_must_find(store, 1).purge_ms, INT64_MAX - 1);
    int64_t next;
    assert_int_equal(sgi_store_purge(store, INT64_MAX - 2, &next), SEGUE_OK);
    assert_int_equal(next, INT64_MAX - 1);
    assert_int_equal(sgi_store_purge(store, INT64_MAX, &next), SEGUE_OK);
    assert_int_equal(next, INT64_MAX);
    assert_int_equal(sgi_store_purge(store, INT64_MAX, &next), SEGUE_OK);
    assert_int_equal(next, INT64_MAX);
    assert_int_equal(test_find(store, 1), SEGUE_E_NOT_FOUND);
    sgi_store_unref(store);
}

static void end_marks_and_dates(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    test_must_create(store, 1);
    test_must_append(store, 1, 1);
    assert_int_equal(test_commit_one(store, test_write_end(1, 700)), SEGUE_OK);
    assert_int_equal(test_must_find(store, 1).ended, 1);
    assert_int_equal(test_must_find(store, 1).purge_ms, 700);
    assert_int_equal(test_commit_one(store, test_write_end(1, 900)), SEGUE_OK);
    assert_int_equal(test_must_find(store, 1).purge_ms, 900);
    assert_int_equal(test_commit_one(store, test_write_end(1, INT64_MAX)), SEGUE_OK);
    assert_int_equal(test_must_find(store, 1).purge_ms, INT64_MAX);
    test_assert_log(store, 1, 1);
    sgi_store_unref(store);
}

static void purge_takes_what_is_due(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    int64_t next;
    test_record r;
    assert_int_equal(sgi_store_purge(store, 1000, &next), SEGUE_OK);
    assert_int_equal(next, INT64_MAX);
    for (uint32_t n = 1; n <= 4; n++) {
        test_record_init(&r, n);
        test_record_set_key(&r, n);
        assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_OK);
        test_must_append(store, n, 1);
    }
    for (uint32_t n = 1; n <= 3; n++)
        assert_int_equal(test_commit_one(store, test_write_end(n, n * 100)), SEGUE_OK);
    assert_int_equal(sgi_store_purge(store, 99, &next), SEGUE_OK);
    assert_int_equal(next, 100);
    assert_int_equal(test_find(store, 1), SEGUE_OK);
    assert_int_equal(sgi_store_purge(store, 200, &next), SEGUE_OK);
    assert_int_equal(next, 300);
    assert_int_equal(test_find(store, 1), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_read_status(store, 2), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_find(store, 3), SEGUE_OK);
    assert_int_equal(test_find(store, 4), SEGUE_OK);
    assert_int_equal(test_commit_one(store, test_write_append(2, 2, "x", 1)),
                     SEGUE_E_NOT_FOUND);
    /* The names are free again, and the log is a new one. */
    test_record_init(&r, 2);
    test_record_set_key(&r, 1);
    assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_OK);
    test_assert_log(store, 2, 0);
    sgi_store_unref(store);
}

static void must_append_many(segue_store *store, uint32_t n, uint64_t from, uint64_t to)
{
    static segue_store_write writes[100];
    static char data[100][TEST_ENTRY_MAX];
    for (uint64_t seq = from; seq <= to;) {
        size_t count = 0;
        for (; count < 100 && seq <= to; count++, seq++) {
            size_t len = test_entry_fill(data[count], n, seq);
            writes[count] = test_write_append(n, seq, data[count], len);
        }
        assert_int_equal(sgi_store_commit(store, writes, count), SEGUE_OK);
    }
}

static void purge_goes_in_steps(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    int steps = 1;
    int64_t next;
    for (uint32_t n = 1; n <= 5; n++) {
        test_must_create(store, n);
        must_append_many(store, n, 1, 900);
        assert_int_equal(test_commit_one(store, test_write_end(n, 10)), SEGUE_OK);
    }
    for (;; steps++) {
        assert_int_equal(sgi_store_purge(store, 10, &next), SEGUE_OK);
        if (next != 10)
            break;
        assert_true(steps < 100);
    }
    assert_int_equal(next, INT64_MAX);
    assert_true(steps > 2);
    for (uint32_t n = 1; n <= 5; n++)
        assert_int_equal(test_read_status(store, n), SEGUE_E_NOT_FOUND);
    sgi_store_unref(store);
}

static void deleted_operation_is_gone_with_its_log(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    int64_t next;
    test_must_create(store, 1);
    must_append_many(store, 1, 1, 2500);
    assert_int_equal(test_commit_one(store, test_write_simple(SEGUE_STORE_DELETE, 1)),
                     SEGUE_OK);
    assert_int_equal(test_find(store, 1), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_read_status(store, 1), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_commit_one(store, test_write_append(1, 2501, "x", 1)),
                     SEGUE_E_NOT_FOUND);
    assert_int_equal(test_commit_one(store, test_write_simple(SEGUE_STORE_DELETE, 1)),
                     SEGUE_OK);
    /* The same names are used again while rows of the old log may still exist. */
    test_must_create(store, 1);
    test_assert_log(store, 1, 0);
    test_must_append(store, 1, 1);
    do
        assert_int_equal(sgi_store_purge(store, 5, &next), SEGUE_OK);
    while (next == 5);
    assert_int_equal(next, INT64_MAX);
    test_assert_log(store, 1, 1);
    sgi_store_unref(store);
}

static void delete_and_create_in_one_batch(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    test_record r;
    test_must_create(store, 1);
    test_must_append(store, 1, 1);
    test_record_init(&r, 1);
    segue_store_write writes[] = {test_write_simple(SEGUE_STORE_DELETE, 1),
                                  test_write_create(&r), test_write_simple(99, 1)};
    assert_int_equal(sgi_store_commit(store, writes, 3), SEGUE_E_INVALID);
    test_assert_log(store, 1, 1);
    assert_int_equal(sgi_store_commit(store, writes, 2), SEGUE_OK);
    test_assert_log(store, 1, 0);
    test_must_append(store, 1, 1);
    /* A batch cannot write to an operation that it has deleted. */
    segue_store_write after[] = {test_write_end(1, 5), writes[0],
                                 test_write_append(1, 2, "x", 1)};
    assert_int_equal(sgi_store_commit(store, after, 3), SEGUE_E_NOT_FOUND);
    after[2] = test_write_end(1, 6);
    assert_int_equal(sgi_store_commit(store, after, 3), SEGUE_E_NOT_FOUND);
    test_assert_log(store, 1, 1);
    assert_int_equal(test_must_find(store, 1).ended, 0);
    sgi_store_unref(store);
}

/* ---- dropping ---- */

static segue_store_write drop_of(uint32_t n, int32_t kind, uint64_t upto)
{
    segue_store_write write = test_write_simple(SEGUE_STORE_DROP, n);
    write.entry.kind = kind;
    write.entry.seq = upto;
    return write;
}

typedef struct seen_numbers {
    uint64_t last, count;
} seen_numbers;

static int32_t see_number(void *user, const segue_store_entry *entry)
{
    char data[TEST_ENTRY_MAX];
    seen_numbers *seen = user;
    size_t len = test_entry_fill(data, 1, entry->seq);
    segue_store_write as = test_write_append(1, entry->seq, data, len);
    assert_int_equal(entry->kind, as.entry.kind);
    assert_int_equal(entry->segment, as.entry.segment);
    assert_int_equal(entry->at_ms, as.entry.at_ms);
    assert_int_equal(entry->data_len, len);
    assert_memory_equal(entry->data, data, len);
    assert_true(entry->seq > seen->last);
    seen->last = entry->seq;
    seen->count++;
    return 0;
}

static uint64_t count_left(segue_store *store, uint64_t after)
{
    uint8_t id[SEGUE_STORE_ID_SIZE];
    seen_numbers seen = {.last = after};
    test_store_id(id, 1);
    assert_int_equal(sgi_store_read(store, id, after, see_number, &seen), SEGUE_OK);
    assert_int_equal(seen.last, 700); /* the numbers of the entries stay */
    return seen.count;
}

/* The log has 700 entries of seven kinds in turn; kind 5 is number 6, 13, ... */
static void dropped_entries_leave_the_others_as_they_are(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    test_must_create(store, 1);
    for (uint64_t seq = 1; seq <= 700; seq++)
        test_must_append(store, 1, seq);
    assert_int_equal(test_commit_one(store, drop_of(9, 5, 600)), SEGUE_OK);
    segue_store_write refused[] = {drop_of(1, 5, 600), test_write_simple(99, 1)};
    assert_int_equal(sgi_store_commit(store, refused, 2), SEGUE_E_INVALID);
    assert_int_equal(count_left(store, 0), 700);
    bool keeps = true;
    for (int32_t kind = -1; kind <= 5; kind++) {
        assert_int_equal(test_commit_one(store, drop_of(1, kind, 350)), SEGUE_OK);
        uint64_t left = count_left(store, 0);
        keeps = left == 700;
        if (!keeps)
            assert_int_equal(left, 700 - 50 * (uint64_t)(kind + 2));
    }
    assert_int_equal(count_left(store, 349), keeps ? 351 : 350);
    assert_int_equal(count_left(store, 690), 10);
    assert_int_equal(test_commit_one(store, drop_of(1, 5, 695)), SEGUE_OK);
    assert_int_equal(count_left(store, 0), keeps ? 700 : 301);
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, 1, 701);
    assert_int_equal(test_commit_one(store, test_write_append(1, 700, data, len)),
                     SEGUE_E_STATE);
    assert_int_equal(test_commit_one(store, test_write_append(1, 701, data, len)),
                     SEGUE_OK);
    sgi_store_unref(store);
}

static void claim_hands_over_what_nobody_owns(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    for (uint32_t n = 1; n <= 3; n++)
        test_must_create(store, n);
    assert_int_equal(test_commit_one(store, test_write_end(3, INT64_MAX)), SEGUE_OK);
    assert_int_equal(test_claim_count(store), 0);

    segue_store_write writes[] = {test_write_simple(SEGUE_STORE_RELEASE, 1),
                                  test_write_simple(SEGUE_STORE_RELEASE, 3),
                                  test_write_simple(SEGUE_STORE_RELEASE, 9),
                                  test_write_simple(99, 1)};
    assert_int_equal(sgi_store_commit(store, writes, 4), SEGUE_E_INVALID);
    assert_int_equal(test_claim_count(store), 0); /* the release was rolled back */
    assert_int_equal(sgi_store_commit(store, writes, 3), SEGUE_OK);
    uint32_t n = 1;
    test_must_append(store, 1, 1); /* a late entry of the server that releases the
                                    * operation */
    assert_int_equal(sgi_store_claim(store, test_check_record, &n), SEGUE_OK);
    assert_int_equal(test_claim_count(store), 0); /* the operation is handed over only
                                                   * once */
    test_must_append(store, 1, 2);
    assert_int_equal(test_commit_one(store, writes[0]), SEGUE_OK);
    assert_int_equal(test_claim_count(store), 1);
    /* An operation that ends while nobody owns it needs no owner any more. */
    assert_int_equal(test_commit_one(store, writes[0]), SEGUE_OK);
    assert_int_equal(test_commit_one(store, test_write_end(1, INT64_MAX)), SEGUE_OK);
    assert_int_equal(test_claim_count(store), 0);
    sgi_store_unref(store);
}

/* ---- lists ---- */

typedef struct paging {
    segue_store *store;
    uint8_t principal[SEGUE_STORE_HASH_SIZE];
    int64_t created_ms; /* creation time of the last operation of a page, where the next
                         * page starts */
    char task_id[32];   /* task id of the last operation of a page; "" at the start */
    int shown;
    int left; /* number of operations of this page that are still to come */
} paging;

static int32_t take_listed(void *user, const segue_store_record *record)
{
    paging *p = user;
    assert_memory_equal(record->principal, p->principal, sizeof p->principal);
    if (*p->task_id)
        assert_true(record->created_ms < p->created_ms ||
                    (record->created_ms == p->created_ms &&
                     strcmp(record->task_id, p->task_id) < 0));
    p->created_ms = record->created_ms;
    snprintf(p->task_id, sizeof p->task_id, "%s", record->task_id);
    p->shown++;
    return --p->left == 0;
}

/* Reads the next page; returns how many operations it had. */
static int page(paging *p, int size)
{
    int before = p->shown;
    p->left = size;
    assert_int_equal(sgi_store_list(p->store, p->principal, p->created_ms,
                                    *p->task_id ? p->task_id : NULL, take_listed, p),
                     SEGUE_OK);
    return p->shown - before;
}

static void must_create_of(segue_store *store, uint32_t n, int principal, int64_t at_ms)
{
    test_record r;
    test_record_init(&r, n);
    memset(r.record.principal, principal, sizeof r.record.principal);
    r.record.created_ms = at_ms;
    assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_OK);
}

static paging of_principal(segue_store *store, int principal)
{
    paging p = {.store = store};
    memset(p.principal, principal, sizeof p.principal);
    return p;
}

static void list_shows_what_a_principal_has(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    for (uint32_t n = 0; n < 60; n++) /* three operations for each time stamp, not in
                                       * order */
        must_create_of(store, n, n % 2 ? 7 : 8, 1000 - (int64_t)(n * 7 % 20));
    assert_int_equal(test_commit_one(store, test_write_end(3, INT64_MAX)), SEGUE_OK);
    paging p = of_principal(store, 7);
    assert_int_equal(page(&p, 1000), 30);
    p = of_principal(store, 9);
    assert_int_equal(page(&p, 1000), 0);
    p = of_principal(store, 8);
    for (int i = 0; i < 4; i++)
        assert_int_equal(page(&p, 7), 7);
    assert_int_equal(page(&p, 7), 2);
    assert_int_equal(page(&p, 7), 0);
    sgi_store_unref(store);
}

typedef struct scanning {
    bool found[600]; /* by the number of the operation */
    int passed;
    int left; /* number of operations to pass before the callback stops the scan */
} scanning;

static int32_t take_scanned(void *user, const segue_store_record *record)
{
    scanning *s = user;
    for (uint32_t n = 0; n < sizeof s->found; n++) {
        test_record r;
        test_record_init(&r, n);
        if (strcmp(r.record.task_id, record->task_id) != 0)
            continue;
        assert_memory_equal(record->id, r.record.id, sizeof r.record.id);
        assert_int_equal(record->data_len, r.record.data_len);
        assert_memory_equal(record->data, r.record.data, r.record.data_len);
        assert_int_equal(record->ended, n == 3);
        s->found[n] = true;
    }
    s->passed++;
    return --s->left == 0;
}

static void a_scan_shows_what_all_principals_have(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    scanning s = {.left = 1};
    assert_int_equal(sgi_store_scan(store, take_scanned, &s), SEGUE_OK);
    assert_int_equal(s.passed, 0);
    for (uint32_t n = 0; n < 150; n++) /* more than a page of any store */
        must_create_of(store, n, (int)(n % 11), 1000 - (int64_t)(n * 7 % 20));
    assert_int_equal(test_commit_one(store, test_write_end(3, INT64_MAX)), SEGUE_OK);
    s = (scanning){.left = 1000};
    assert_int_equal(sgi_store_scan(store, take_scanned, &s), SEGUE_OK);
    for (uint32_t n = 0; n < 150; n++)
        assert_true(s.found[n]);
    s = (scanning){.left = 7};
    assert_int_equal(sgi_store_scan(store, take_scanned, &s), SEGUE_OK);
    assert_int_equal(s.passed, 7);
    sgi_store_unref(store);
}

#ifdef SGI_KNOBS
static void a_scan_has_turns(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    sgi_threshold_values usual = sgi_thresholds;
    scanning s = {.left = 10000};
    uint64_t place = 0;
    uint32_t turns = 0;
    /* a hash of Redis with up to 512 members has one turn */
    for (uint32_t n = 0; n < 600; n++)
        must_create_of(store, n, 7, 1000);
    assert_int_equal(test_commit_one(store, test_write_end(3, INT64_MAX)), SEGUE_OK);
    sgi_thresholds.scan_step = 40;
    do {
        assert_int_equal(sgi_store_scan_turn(store, &place, take_scanned, &s), SEGUE_OK);
        /* operations come and go between the turns */
        must_create_of(store, 600 + turns, 7, 2000);
        segue_store_write gone = test_write_simple(SEGUE_STORE_DELETE, 599 + turns);
        if (turns++)
            assert_int_equal(test_commit_one(store, gone), SEGUE_OK);
    } while (place);
    sgi_thresholds = usual;
    for (uint32_t n = 0; n < 600; n++)
        assert_true(s.found[n]);
    assert_true(turns > 3);
    sgi_store_unref(store);
}
#endif

/* Checks that pages show each operation once, even if the operation at the start of a
 * page was deleted. */
static void list_goes_on_while_operations_come_and_go(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    for (uint32_t n = 0; n < 20; n++)
        must_create_of(store, n, 7, 1000 + n / 2);
    paging p = of_principal(store, 7);
    assert_int_equal(page(&p, 5), 5); /* operations 19 to 15 */
    must_create_of(store, 100, 7, 2000);
    for (uint32_t n = 14; n < 16; n++)
        assert_int_equal(test_commit_one(store, test_write_simple(SEGUE_STORE_DELETE, n)),
                         SEGUE_OK);
    assert_int_equal(page(&p, 5), 5); /* operations 13 to 9 */
    assert_int_equal(page(&p, 100), 9);
    p = of_principal(store, 7);
    assert_int_equal(page(&p, 100), 19);
    sgi_store_unref(store);
}

/* ---- bounds of a principal ---- */

static int32_t take_three(void *user, const segue_store_record *record)
{
    assert_int_equal(record->ended, 0);
    return ++*(int *)user == 3;
}

static void claim_stopped_early_leaves_the_rest(void **state)
{
    segue_store *store = store_suite_open_empty(state, NULL);
    int taken = 0;
    for (uint32_t n = 1; n <= 40; n++) {
        test_must_create(store, n);
        assert_int_equal(
            test_commit_one(store, test_write_simple(SEGUE_STORE_RELEASE, n)), SEGUE_OK);
    }
    assert_int_equal(sgi_store_claim(store, take_three, &taken), SEGUE_OK);
    assert_int_equal(taken, 3);
    assert_int_equal(test_claim_count(store), 37);
    assert_int_equal(test_claim_count(store), 0);
    sgi_store_unref(store);
}

/* ---- random work ---- */

int store_suite_run_group(const store_suite *suite, const char *group,
                          struct CMUnitTest *cases, size_t count)
{
    char name[64];
    snprintf(name, sizeof name, "%s: %s", suite->name, group);
    for (size_t i = 0; i < count; i++)
        cases[i].initial_state = (void *)(uintptr_t)suite;
    return _cmocka_run_group_tests(name, cases, count, NULL, NULL);
}

int store_suite_run(const store_suite *suite)
{
    struct CMUnitTest cases[] = {
        cmocka_unit_test(found_by_task_id_and_key),
        cmocka_unit_test(conflict_rolls_the_batch_back),
        cmocka_unit_test(append_leaves_no_hole_and_repeats_nothing),
        cmocka_unit_test(malformed_write_is_refused),
        cmocka_unit_test(read_starts_behind_after),
        cmocka_unit_test(read_stops_when_told),
        cmocka_unit_test(payloads_come_back_byte_by_byte),
        cmocka_unit_test(numbers_keep_their_full_range),
        cmocka_unit_test(end_marks_and_dates),
        cmocka_unit_test(purge_takes_what_is_due),
        cmocka_unit_test(purge_goes_in_steps),
        cmocka_unit_test(deleted_operation_is_gone_with_its_log),
        cmocka_unit_test(delete_and_create_in_one_batch),
        cmocka_unit_test(dropped_entries_leave_the_others_as_they_are),
        cmocka_unit_test(claim_hands_over_what_nobody_owns),
        cmocka_unit_test(claim_stopped_early_leaves_the_rest),
        cmocka_unit_test(list_shows_what_a_principal_has),
        cmocka_unit_test(list_goes_on_while_operations_come_and_go),
        cmocka_unit_test(a_scan_shows_what_all_principals_have),
#ifdef SGI_KNOBS
        cmocka_unit_test(a_scan_has_turns),
#endif
        cmocka_unit_test(store_suite_many_operations),
        cmocka_unit_test(store_suite_threads_share_a_store),
        cmocka_unit_test(store_suite_random_batches_match_a_model),
    };
    return STORE_SUITE_RUN_GROUP(suite, "operations", cases);
}
