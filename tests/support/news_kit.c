/* Listeners never sleep for a fixed time: they wait for the semaphore `bell`, at most for
 * the time that the store has returned. */
#include "support/news_kit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_MS 120000
#define FORMAT_TRIES 6000

static void ring(void *user)
{
    test_ear *ear = user;
    atomic_fetch_add(&ear->rings, 1);
    sem_post(&ear->bell);
}

void test_ear_open(test_ear *ear, segue_store *store)
{
    *ear = (test_ear){.store = store, .stop_at = SIZE_MAX};
    assert_int_equal(sem_init(&ear->bell, 0, 0), 0);
    assert_int_equal(sgi_store_listen(store, ring, ear, &ear->listener), SEGUE_OK);
}

void test_ear_close(test_ear *ear)
{
    sgi_store_unlisten(ear->listener);
    sem_destroy(&ear->bell);
}

static uint32_t n_of(const uint8_t *id)
{
    uint8_t other[SEGUE_STORE_ID_SIZE];
    for (uint32_t n = 0; n < 2000; n++) {
        test_store_id(other, n);
        if (!memcmp(id, other, sizeof other))
            return n;
    }
    return UINT32_MAX;
}

static int32_t hear(void *user, const segue_store_news *news)
{
    test_ear *ear = user;
    if (ear->count >= TEST_HEARD_MAX || ear->count >= ear->stop_at)
        return 1;
    bool named = news->kind == SEGUE_STORE_GREW || news->kind == SEGUE_STORE_LETTER;
    test_heard *heard = &ear->heard[ear->count++];
    *heard = (test_heard){.kind = news->kind,
                          .n = named ? n_of(news->id) : 0,
                          .number = news->number,
                          .len = news->data_len};
    size_t len =
        news->data_len < sizeof heard->text ? news->data_len : sizeof heard->text - 1;
    if (len)
        memcpy(heard->text, news->data, len);
    return 0;
}

static int64_t ask_more(test_ear *ear)
{
    int64_t within_ms = 0;
    assert_int_equal(sgi_store_deliver_news(ear->listener, hear, ear, &within_ms),
                     SEGUE_OK);
    return within_ms;
}

int64_t test_ear_ask(test_ear *ear)
{
    ear->count = 0;
    return ask_more(ear);
}

const test_heard *test_ear_find(const test_ear *ear, int32_t kind, uint32_t n)
{
    for (size_t i = 0; i < ear->count; i++)
        if (ear->heard[i].kind == kind && ear->heard[i].n == n)
            return &ear->heard[i];
    return NULL;
}

size_t test_ear_letters(const test_ear *ear, uint32_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < ear->count; i++)
        count += ear->heard[i].kind == SEGUE_STORE_LETTER && ear->heard[i].n == n;
    return count;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void wait_for_bell(test_ear *ear, int64_t until_ms)
{
    struct timespec until = {.tv_sec = until_ms / 1000,
                             .tv_nsec = until_ms % 1000 * 1000000};
    while (sem_timedwait(&ear->bell, &until) && errno == EINTR)
        ;
}

void test_ear_rest(test_ear *ear, int64_t within_ms)
{
    wait_for_bell(ear, now_ms() + (within_ms < 0 ? PATIENCE_MS : within_ms));
}

const test_heard *test_ear_wait(test_ear *ear, int32_t kind, uint32_t n)
{
    int64_t end = now_ms() + PATIENCE_MS;
    const test_heard *heard;
    ear->count = 0;
    for (;;) {
        int64_t within_ms = ask_more(ear);
        if ((heard = test_ear_find(ear, kind, n)))
            return heard;
        int64_t now = now_ms();
        if (now >= end)
            fail_msg("news %d of %u did not come", (int)kind, n);
        wait_for_bell(ear,
                      within_ms < 0 || within_ms > end - now ? end : now + within_ms);
    }
}

segue_status test_follow(test_ear *ear, uint32_t n, bool on)
{
    uint8_t id[SEGUE_STORE_ID_SIZE];
    test_store_id(id, n);
    return sgi_store_follow(ear->listener, id, on);
}

segue_status test_post(test_ear *ear, uint32_t n, const char *text)
{
    uint8_t id[SEGUE_STORE_ID_SIZE];
    test_store_id(id, n);
    return sgi_store_post_command(ear->listener, id, text, strlen(text));
}

segue_status test_commit_by(test_ear *ear, segue_store_write write)
{
    return sgi_store_commit_by(ear->listener, &write, 1);
}

void test_append_by(test_ear *ear, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    assert_int_equal(test_commit_by(ear, test_write_append(n, seq, data, len)), SEGUE_OK);
}

segue_store_write test_write_taken(uint32_t n, uint64_t upto)
{
    segue_store_write write = test_write_simple(SEGUE_STORE_TAKEN, n);
    write.entry.seq = upto;
    return write;
}

void test_store_await_newest(segue_store *store)
{
    static test_ear ear;
    test_ear_open(&ear, store);
    for (int i = 0; i < FORMAT_TRIES && sgi_store_records(store) < SGI_RECORDS; i++)
        test_ear_rest(&ear, test_ear_ask(&ear) ? 10 : 0);
    test_ear_close(&ear);
    assert_int_equal(sgi_store_records(store), SGI_RECORDS);
}
