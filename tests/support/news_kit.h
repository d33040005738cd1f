/* Listeners of a store's change feed, for tests. An "ear" is one listener; it keeps the
 * changes ("news") that the store reports. A "letter" is a forwarded command. */
#ifndef NEWS_KIT_H
#define NEWS_KIT_H

#include <semaphore.h>
#include <stdatomic.h>

#include "support/store_kit.h"

#define TEST_HEARD_MAX 256

typedef struct test_heard {
    int32_t kind;
    uint32_t n;      /* number of the operation */
    uint64_t number; /* number of the forwarded command */
    char text[32];   /* beginning of its text, with a NUL */
    size_t len;
} test_heard;

typedef struct test_ear {
    segue_store *store;
    sgi_store_listener *listener;
    sem_t bell;
    atomic_int rings;
    test_heard heard[TEST_HEARD_MAX];
    size_t count;
    size_t stop_at; /* index of the first change that the listener refuses; SIZE_MAX =
                     * none */
} test_ear;

/* Opens a listener; asserts success. */
void test_ear_open(test_ear *ear, segue_store *store);
void test_ear_close(test_ear *ear);
/* Asks the store once and forgets earlier changes. Returns within_ms. */
int64_t test_ear_ask(test_ear *ear);
/* Asks, waits for the wake-up call and asks again until a change of that kind about
 * operation n was reported; asserts that this change comes within seconds. The listener
 * keeps all changes. */
const test_heard *test_ear_wait(test_ear *ear, int32_t kind, uint32_t n);
/* Waits for the wake-up call, for within_ms at most (-1 = for a long time). */
void test_ear_rest(test_ear *ear, int64_t within_ms);
/* Asks the store for news until it has the newest format. */
void test_store_await_newest(segue_store *store);
/* Returns the kept change of that kind about operation n, or NULL. */
const test_heard *test_ear_find(const test_ear *ear, int32_t kind, uint32_t n);
/* Returns how many forwarded commands to operation n were kept. */
size_t test_ear_letters(const test_ear *ear, uint32_t n);

segue_status test_follow(test_ear *ear, uint32_t n, bool on);
segue_status test_post(test_ear *ear, uint32_t n, const char *text);
segue_status test_commit_by(test_ear *ear, segue_store_write write);
/* Appends the entry with this number to operation n; asserts success. */
void test_append_by(test_ear *ear, uint32_t n, uint64_t seq);
segue_store_write test_write_taken(uint32_t n, uint64_t upto);

#endif
