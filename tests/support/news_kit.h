/* Listeners of a store for tests: an ear hears what is told and keeps it. */
#ifndef NEWS_KIT_H
#define NEWS_KIT_H

#include <semaphore.h>
#include <stdatomic.h>

#include "support/store_kit.h"

#define TEST_HEARD_MAX 256

typedef struct test_heard {
    int32_t kind;
    uint32_t n;      /* of the operation */
    uint64_t number; /* of a letter */
    char text[32];   /* its beginning, with a NUL */
    size_t len;
} test_heard;

typedef struct test_ear {
    segue_store *store;
    sgi_store_listener *listener;
    sem_t bell;
    atomic_int rings;
    test_heard heard[TEST_HEARD_MAX];
    size_t count;
    size_t stop_at; /* refuse the news with that place from now on; SIZE_MAX = none */
} test_ear;

/* Asserts that it works. */
void test_ear_open(test_ear *ear, segue_store *store);
void test_ear_close(test_ear *ear);
/* Asks once, and forgets what was heard before. Returns within_ms. */
int64_t test_ear_ask(test_ear *ear);
/* Asks, waits to be rung and asks again until news of that kind about n are among what
 * was heard; asserts that they come within seconds. Keeps all that came. */
const test_heard *test_ear_wait(test_ear *ear, int32_t kind, uint32_t n);
/* Waits to be rung, no longer than that (-1 = for long). */
void test_ear_rest(test_ear *ear, int64_t within_ms);
/* The news of that kind about n among what was heard, or NULL. */
const test_heard *test_ear_find(const test_ear *ear, int32_t kind, uint32_t n);
/* How many letters to n are among what was heard. */
size_t test_ear_letters(const test_ear *ear, uint32_t n);

segue_status test_follow(test_ear *ear, uint32_t n, bool on);
segue_status test_post(test_ear *ear, uint32_t n, const char *text);
segue_status test_commit_by(test_ear *ear, segue_store_write write);
/* Appends the entry of n with that number; asserts that it works. */
void test_append_by(test_ear *ear, uint32_t n, uint64_t seq);
segue_store_write test_write_taken(uint32_t n, uint64_t upto);

#endif
