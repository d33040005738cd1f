/* Operations, entries and checks that follow from a number. Length and bytes of an entry
 * are a hash of its operation and its number, so an entry at a wrong position never
 * passes. */
#include "support/store_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- builders ---- */

void test_store_id(uint8_t id[SEGUE_STORE_ID_SIZE], uint32_t n)
{
    for (size_t i = 0; i < SEGUE_STORE_ID_SIZE; i++)
        id[i] = (uint8_t)(n >> (8 * (i % 4)) ^ (i * 37));
}

void test_record_init(test_record *r, uint32_t n)
{
    memset(r, 0, sizeof *r);
    test_store_id(r->record.id, n);
    snprintf(r->task_id, sizeof r->task_id, "task-%u", n);
    int len = snprintf(r->data, sizeof r->data, "record of %u", n);
    memset(r->record.principal, (int)(n % 251), sizeof r->record.principal);
    r->record.task_id = r->task_id;
    r->record.created_ms = 1000 + n;
    r->record.purge_ms = INT64_MAX;
    r->record.data = r->data;
    r->record.data_len = (size_t)len + 1; /* its NUL is included, because data is bytes,
                                           * not text */
}

void test_record_set_key(test_record *r, uint32_t key)
{
    r->record.has_key = 1;
    memset(r->record.idempotency_key, 0x55, SEGUE_STORE_HASH_SIZE);
    memcpy(r->record.idempotency_key, &key, sizeof key);
}

segue_store_write test_write_create(const test_record *r)
{
    return (segue_store_write){.kind = SEGUE_STORE_CREATE, .record = &r->record};
}

segue_store_write test_write_simple(int32_t kind, uint32_t n)
{
    segue_store_write write = {.kind = kind};
    test_store_id(write.id, n);
    return write;
}

segue_store_write test_write_append(uint32_t n, uint64_t seq, const char *data,
                                    size_t len)
{
    segue_store_write write = test_write_simple(SEGUE_STORE_APPEND, n);
    write.entry = (segue_store_entry){.seq = seq,
                                      .segment = seq * 2,
                                      .event = seq * 3,
                                      .kind = (int32_t)(seq % 7) - 1,
                                      .at_ms = (int64_t)seq - 2,
                                      .data = data,
                                      .data_len = len};
    return write;
}

segue_store_write test_write_end(uint32_t n, int64_t purge_ms)
{
    segue_store_write write = test_write_simple(SEGUE_STORE_END, n);
    write.purge_ms = purge_ms;
    return write;
}

segue_status test_commit_one(segue_store *store, segue_store_write write)
{
    return sgi_store_commit(store, &write, 1);
}

void test_must_create(segue_store *store, uint32_t n)
{
    test_record r;
    test_record_init(&r, n);
    assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_OK);
}

void test_must_append(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    assert_int_equal(test_commit_one(store, test_write_append(n, seq, data, len)),
                     SEGUE_OK);
}

/* ---- checks ---- */

uint64_t test_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

size_t test_entry_fill(char *data, uint32_t n, uint64_t seq)
{
    uint64_t seed = test_mix(n * UINT64_C(1000003) + seq);
    size_t len = seed % 8 ? seed % 200 : seed % (TEST_ENTRY_MAX + 1);
    for (size_t i = 0; i < len; i++)
        data[i] = (char)(test_mix(seed + i / 8) >> (8 * (i % 8)));
    return len;
}

typedef struct log_check {
    uint32_t n;
    uint64_t next;
} log_check;

static int32_t check_entry(void *user, const segue_store_entry *entry)
{
    log_check *check = user;
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, check->n, check->next);
    segue_store_write expected = test_write_append(check->n, check->next, data, len);
    assert_int_equal(entry->seq, check->next);
    assert_int_equal(entry->segment, expected.entry.segment);
    assert_int_equal(entry->event, expected.entry.event);
    assert_int_equal(entry->kind, expected.entry.kind);
    assert_int_equal(entry->at_ms, expected.entry.at_ms);
    assert_int_equal(entry->data_len, len);
    assert_non_null(entry->data);
    assert_memory_equal(entry->data, data, len);
    check->next++;
    return 0;
}

uint64_t test_log_last(segue_store *store, uint32_t n, uint64_t first)
{
    uint8_t id[SEGUE_STORE_ID_SIZE];
    log_check check = {n, first};
    test_store_id(id, n);
    assert_int_equal(sgi_store_read(store, id, first - 1, check_entry, &check), SEGUE_OK);
    return check.next - 1;
}

void test_assert_log(segue_store *store, uint32_t n, uint64_t last)
{
    assert_int_equal(test_log_last(store, n, 1), last);
}

int32_t test_check_record(void *user, const segue_store_record *record)
{
    test_record expected;
    test_record_init(&expected, *(uint32_t *)user);
    assert_memory_equal(record->id, expected.record.id, SEGUE_STORE_ID_SIZE);
    assert_string_equal(record->task_id, expected.task_id);
    assert_memory_equal(record->principal, expected.record.principal,
                        SEGUE_STORE_HASH_SIZE);
    assert_int_equal(record->created_ms, expected.record.created_ms);
    assert_int_equal(record->data_len, expected.record.data_len);
    assert_memory_equal(record->data, expected.data, record->data_len);
    return 0;
}

segue_status test_find(segue_store *store, uint32_t n)
{
    char task_id[32];
    snprintf(task_id, sizeof task_id, "task-%u", n);
    return sgi_store_find(store, task_id, NULL, test_check_record, &n);
}

static int32_t count_record(void *user, const segue_store_record *record)
{
    (void)record;
    ++*(size_t *)user;
    return 0;
}

segue_status test_claim_status(segue_store *store, size_t *count)
{
    *count = 0;
    return sgi_store_claim(store, count_record, count);
}

size_t test_claim_count(segue_store *store)
{
    size_t count;
    assert_int_equal(test_claim_status(store, &count), SEGUE_OK);
    return count;
}

segue_status test_read_status(segue_store *store, uint32_t n)
{
    uint8_t id[SEGUE_STORE_ID_SIZE];
    log_check check = {n, 1};
    test_store_id(id, n);
    return sgi_store_read(store, id, 0, check_entry, &check);
}

int32_t test_keep_record(void *user, const segue_store_record *record)
{
    test_seen *seen = user;
    seen->has_key = record->has_key;
    seen->ended = record->ended;
    seen->purge_ms = record->purge_ms;
    memcpy(seen->key, record->idempotency_key, sizeof seen->key);
    memcpy(seen->id, record->id, sizeof seen->id);
    return 0;
}

test_seen test_must_find(segue_store *store, uint32_t n)
{
    test_seen seen;
    char task_id[32];
    snprintf(task_id, sizeof task_id, "task-%u", n);
    assert_int_equal(sgi_store_find(store, task_id, NULL, test_keep_record, &seen),
                     SEGUE_OK);
    return seen;
}
