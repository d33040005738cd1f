/* Helpers for tests of stores. An operation is named by a small number n. Its id, task
 * id, data and entries follow from n, so a test can check what a store returns without
 * keeping it. */
#ifndef STORE_KIT_H
#define STORE_KIT_H

#include "store/store.h"

/* ---- writes ---- */

typedef struct test_record {
    segue_store_record record;
    char task_id[32];
    char data[64];
} test_record;

void test_store_id(uint8_t id[SEGUE_STORE_ID_SIZE], uint32_t n);
/* Makes a record without a key that is never purged. */
void test_record_init(test_record *record, uint32_t n);
void test_record_set_key(test_record *record, uint32_t key);
segue_store_write test_write_create(const test_record *record);
segue_store_write test_write_append(uint32_t n, uint64_t seq, const char *data,
                                    size_t len);
segue_store_write test_write_end(uint32_t n, int64_t purge_ms);
segue_store_write test_write_simple(int32_t kind, uint32_t n); /* DELETE, RELEASE */
segue_status test_commit_one(segue_store *store, segue_store_write write);
/* These functions assert that the commit succeeds. */
void test_must_create(segue_store *store, uint32_t n);
void test_must_append(segue_store *store, uint32_t n, uint64_t seq);

/* ---- entries whose bytes follow from n and seq ---- */

#define TEST_ENTRY_MAX 512
uint64_t test_mix(uint64_t x);
/* Writes at most TEST_ENTRY_MAX bytes; returns how many. */
size_t test_entry_fill(char *data, uint32_t n, uint64_t seq);
/* Asserts that the log of n has the entries first, first + 1, ... without a gap, each
 * with the bytes of test_entry_fill. Returns the last number (first - 1 when empty). */
uint64_t test_log_last(segue_store *store, uint32_t n, uint64_t first);
/* Asserts that the log has exactly the entries 1 to last. */
void test_assert_log(segue_store *store, uint32_t n, uint64_t last);
/* Looks up n and checks its record; returns SEGUE_OK or SEGUE_E_NOT_FOUND. */
segue_status test_find(segue_store *store, uint32_t n);
/* The parts of a record that may change. */
typedef struct test_seen {
    int32_t has_key;
    int32_t ended;
    int64_t purge_ms;
    uint8_t key[SEGUE_STORE_HASH_SIZE];
    uint8_t id[SEGUE_STORE_ID_SIZE];
} test_seen;

/* Callbacks. test_check_record checks the parts of a record that never change (user: the
 * address of n). test_keep_record stores the parts that may change (user: a
 * test_seen). */
int32_t test_check_record(void *user, const segue_store_record *record);
int32_t test_keep_record(void *user, const segue_store_record *record);
test_seen test_must_find(segue_store *store, uint32_t n);
/* Reads the log of n, checks its entries and returns the status. */
segue_status test_read_status(segue_store *store, uint32_t n);
/* Returns how many operations a claim hands over. */
size_t test_claim_count(segue_store *store);
/* Claims operations, and returns the status. *count is the number that came. */
segue_status test_claim_status(segue_store *store, size_t *count);

#endif
