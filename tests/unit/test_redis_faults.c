/* A Redis server that goes away, comes back, forgets, is full, or is cut off in the
 * middle of a message. An acknowledged write is there once; any other write can be
 * repeated. test_redis_open.c opens stores. label: threads */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/redis_link.h"
#include "support/news_kit.h"
#include "support/redis_kit.h"
#include "support/server_process.h"
#include "support/test_mem.h"

#include <cmocka.h>

#define HANG_MS 120000

static redis_server *server;

static int set_up(void **state)
{
    (void)state;
    return redis_server_do(server, "FLUSHALL") < 0;
}

static segue_status append(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    return test_commit_one(store, test_write_append(n, seq, data, len));
}

/* ---- connections that break ---- */

/* Does everything that a store can do, each once, whatever is lost on the way. */
static void work(segue_store *store, uint32_t n)
{
    test_record r;
    char data[TEST_ENTRY_MAX];
    test_record_init(&r, n);
    test_record_set_key(&r, n);
    segue_store_write first[] = {
        test_write_create(&r),
        test_write_append(n, 1, data, test_entry_fill(data, n, 1))};
    assert_int_equal(sgi_store_commit(store, first, 2), SEGUE_OK);
    assert_int_equal(append(store, n, 2), SEGUE_OK);
    test_ear ear;
    test_ear_open(&ear, store);
    assert_int_equal(test_follow(&ear, n, true), SEGUE_OK);
    assert_int_equal(test_post(&ear, n, "letter"), SEGUE_OK);
    const test_heard *letter = test_ear_wait(&ear, SEGUE_STORE_LETTER, n);
    assert_int_equal(letter->number, 1);
    assert_int_equal(test_ear_letters(&ear, n), 1); /* the command was posted only once */
    assert_int_equal(test_commit_by(&ear, test_write_taken(n, 1)), SEGUE_OK);
    test_ear_close(&ear);
    test_assert_log(store, n, 2);
    assert_int_equal(test_find(store, n), SEGUE_OK);
    assert_int_equal(test_commit_one(store, test_write_simple(SEGUE_STORE_RELEASE, n)),
                     SEGUE_OK);
    assert_int_equal(test_claim_count(store), 1);
    assert_int_equal(append(store, n, 3), SEGUE_OK);
    assert_int_equal(test_commit_one(store, test_write_end(n, INT64_MAX)), SEGUE_OK);
    test_assert_log(store, n, 3);
    /* This would fail if it were done twice, because after the first time the operation
     * is gone. */
    segue_store_write last[] = {
        test_write_append(n, 4, data, test_entry_fill(data, n, 4)),
        test_write_simple(SEGUE_STORE_DELETE, n)};
    assert_int_equal(sgi_store_commit(store, last, 2), SEGUE_OK);
    assert_int_equal(test_find(store, n), SEGUE_E_NOT_FOUND);
}

static void cuts(cutting_direction direction, cutting_how how, size_t step)
{
    cutting_proxy *proxy;
    cutting_options options = {.target_port = redis_server_port(server)};
    assert_true(cutting_proxy_start(&options, &proxy));
    segue_store *store = redis_kit_open(redis_kit_through(proxy));
    uint32_t n = 1;
    size_t most = direction == CUTTING_UP ? 4500 : 700;
    for (size_t at = 1; at < most; at += step, n++) {
        cutting_plan plan = {direction, at, at, how, 1};
        cutting_proxy_plan(proxy, &plan);
        work(store, n);
    }
    assert_true(cutting_proxy_get(proxy, CUTTING_CUTS) > 10);
    sgi_store_unref(store);
    cutting_proxy_stop(proxy);
}

static void replies_cut_anywhere_lose_and_double_nothing(void **state)
{
    (void)state;
    cuts(CUTTING_DOWN, CUTTING_RST, 5);
    redis_server_do(server, "FLUSHALL");
    cuts(CUTTING_DOWN, CUTTING_FIN, 7);
}

static void commands_cut_anywhere_lose_and_double_nothing(void **state)
{
    (void)state;
    cuts(CUTTING_UP, CUTTING_RST, 31);
    redis_server_do(server, "FLUSHALL");
    cuts(CUTTING_UP, CUTTING_FIN, 41);
}

/* Commits through a store with a short time limit; on a slow machine that takes more than
 * one try. */
static void commit_new(segue_store *store, uint32_t n)
{
    test_record r;
    test_record_init(&r, n);
    redis_kit_commit(store, test_write_create(&r));
}

/* Checks the log through a store with a long time limit. */
static void check_log(uint32_t n, uint64_t last)
{
    segue_store *calm = redis_kit_open_lasting(redis_server_url(server));
    test_assert_log(calm, n, last);
    sgi_store_unref(calm);
}

/* The store waits for a reply no longer than the time limit. */
static void silence_ends_with_the_time_limit(void **state)
{
    (void)state;
    cutting_proxy *proxy;
    cutting_options options = {.target_port = redis_server_port(server)};
    assert_true(cutting_proxy_start(&options, &proxy));
    segue_store *store = redis_kit_open_hurried(redis_kit_through(proxy), 300);
    commit_new(store, 1);
    assert_true(cutting_proxy_refuse(proxy, -1));
    cutting_proxy_cut_all(proxy, CUTTING_SILENCE);
    int64_t began = redis_kit_now_us();
    assert_int_equal(append(store, 1, 1), SEGUE_E_STORE);
    assert_int_equal(test_find(store, 1), SEGUE_E_STORE);
    assert_true(redis_kit_now_us() - began < HANG_MS * 1000LL);
    assert_true(cutting_proxy_refuse(proxy, 0));
    redis_kit_until(append(store, 1, 1) == SEGUE_OK);
    check_log(1, 1);
    sgi_store_unref(store);
    cutting_proxy_stop(proxy);
}

/* Sends one command on a separate connection and returns the answer. */
static redisReply *ask_bare(sgi_redis_link *link, const sgi_buf *command)
{
    int64_t deadline = sgi_redis_monotonic_ms() + REDIS_KIT_TIMEOUT_MS;
    assert_true(sgi_redis_link_send(link, command->p, command->len));
    redisReply *reply = sgi_redis_link_reply(link, deadline);
    assert_non_null(reply);
    return reply;
}

/* Posts a forwarded command to operation 1, as this call number of this owner. */
static long long post_as(sgi_redis_link *link, const char *owner, int64_t number)
{
    uint8_t id[SEGUE_STORE_ID_SIZE];
    sgi_buf command;
    test_store_id(id, 1);
    sgi_buf_init(&command, &sgi_mem_libc);
    sgi_redis_command_begin(&command, 10);
    sgi_redis_arg_text(&command, "EVALSHA");
    sgi_redis_arg(&command, link->shas[SGI_REDIS_POST], SGI_REDIS_SHA);
    sgi_redis_arg_text(&command, "1");
    sgi_redis_arg_text(&command, "{segue}:");
    sgi_redis_arg_text(&command, owner);
    sgi_redis_arg_int(&command, number);
    sgi_redis_arg_text(&command, "600");
    sgi_redis_arg(&command, id, sizeof id);
    sgi_redis_arg_text(&command, "letter");
    sgi_redis_arg_text(&command, "64");
    redisReply *reply = ask_bare(link, &command);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    long long answer = reply->integer;
    freeReplyObject(reply);
    sgi_buf_free(&command);
    return answer;
}

/* A late copy comes from a connection that was given up, after later calls were applied.
 * Numbers are compared as numbers. */
static void late_copy_of_a_call_does_nothing(void **state)
{
    (void)state;
    const char *reason;
    sgi_redis_url url;
    sgi_redis_link link;
    sgi_buf scripts;
    segue_store *store = redis_kit_open(redis_server_url(server));
    test_ear ear;
    test_must_create(store, 1);
    sgi_buf_init(&scripts, &sgi_mem_libc);
    sgi_redis_scripts_add(&scripts);
    assert_int_equal(sgi_redis_url_parse(&url, redis_server_url(server), &reason),
                     SEGUE_OK);
    sgi_redis_link_init(&link, &url, (sgi_str){scripts.p, scripts.len}, -1);
    assert_int_equal(
        sgi_redis_link_open(&link, sgi_redis_monotonic_ms() + REDIS_KIT_TIMEOUT_MS),
        SEGUE_OK);
    for (int64_t number = 9; number <= 10; number++)
        assert_int_equal(post_as(&link, "someone", number), 0);
    for (int64_t late = 8; late <= 10; late++)
        assert_int_equal(post_as(&link, "someone", late), 1);
    assert_int_equal(post_as(&link, "someone", 11), 0);
    test_ear_open(&ear, store);
    test_ear_wait(&ear, SEGUE_STORE_LETTER, 1);
    assert_int_equal(test_ear_letters(&ear, 1), 3);
    test_ear_close(&ear);
    sgi_redis_link_close(&link);
    sgi_buf_free(&scripts);
    sgi_store_unref(store);
}

/* Releasing all remaining operations takes one time limit at most, and is made up for
 * later. */
static void leaving_many_waits_once(void **state)
{
    (void)state;
    enum { COUNT = 400, TIMEOUT_MS = 300 };
    cutting_proxy *proxy;
    segue_store *owner = redis_kit_open_lasting(redis_server_url(server));
    cutting_options options = {.target_port = redis_server_port(server)};
    test_ear ear, last;
    assert_true(cutting_proxy_start(&options, &proxy));
    segue_store *store = redis_kit_open_hurried(redis_kit_through(proxy), TIMEOUT_MS);
    test_ear_open(&ear, store);
    for (uint32_t n = 0; n < COUNT; n++) {
        test_must_create(owner, n);
        redis_kit_until(test_follow(&ear, n, true) == SEGUE_OK);
    }
    assert_true(cutting_proxy_refuse(proxy, -1));
    cutting_proxy_cut_all(proxy, CUTTING_SILENCE);
    int64_t began = redis_kit_now_us();
    test_ear_close(&ear);
    assert_true(redis_kit_now_us() - began < COUNT * TIMEOUT_MS * 1000LL);
    assert_true(redis_server_do(server, "KEYS {segue}:fol:*") == COUNT);
    assert_true(cutting_proxy_refuse(proxy, 0));
    test_ear_open(&last, store);
    redis_kit_until(test_follow(&last, 0, true) == SEGUE_OK);
    /* The first growth may be reported during the silence. */
    for (uint64_t seq = 1; redis_server_do(server, "KEYS {segue}:fol:*") > 1; seq++) {
        assert_true(seq < 5000);
        for (uint32_t n = 0; n < COUNT; n++)
            test_must_append(owner, n, seq);
        test_ear_rest(&last, 20);
        test_ear_ask(&last);
    }
    test_ear_close(&last);
    assert_int_equal(redis_server_do(server, "KEYS {segue}:fol:*"), 0);
    sgi_store_unref(store);
    sgi_store_unref(owner);
    cutting_proxy_stop(proxy);
}

/* ---- a server that goes and comes ---- */

static void server_down_is_an_error_and_no_more(void **state)
{
    (void)state;
    redis_server *own;
    redis_server_options options = {.appendfsync = "always"};
    assert_true(redis_server_start(&options, &own));
    segue_store *store = redis_kit_open_hurried(redis_server_url(own), 200);
    commit_new(store, 1);
    redis_kit_until(append(store, 1, 1) == SEGUE_OK);
    redis_server_signal(own, SIGKILL);
    assert_int_equal(append(store, 1, 2), SEGUE_E_STORE);
    assert_int_equal(test_read_status(store, 1), SEGUE_E_STORE);
    assert_true(redis_server_again(own));
    redis_kit_until(append(store, 1, 2) == SEGUE_OK);
    /* After a commit failed, the same commit is valid, whatever became of the first. */
    redis_kit_until(append(store, 1, 2) == SEGUE_OK);
    redis_kit_until(append(store, 1, 1) == SEGUE_OK);
    char other[] = "other bytes";
    redis_kit_until(test_commit_one(store, test_write_append(1, 2, other, 5)) ==
                    SEGUE_E_STATE);
    sgi_store_unref(store);
    store = redis_kit_open(redis_server_url(own));
    test_assert_log(store, 1, 2);
    sgi_store_unref(store);
    redis_server_stop(own);
}

typedef struct writer {
    pthread_t thread;
    segue_store *store;
    atomic_int stop;
    atomic_uint last; /* number of the last acknowledged entry */
    _Atomic segue_status status;
} writer;

static void *write_on(void *arg)
{
    writer *w = arg;
    while (!w->stop && !w->status) {
        w->status = append(w->store, 1, w->last + 1);
        if (!w->status)
            w->last++;
    }
    return NULL;
}

/* Waits until one more commit was acknowledged; the last one may have failed. */
static void await_answer(writer *w)
{
    unsigned before = w->last;
    for (int i = 0; i < HANG_MS && w->last == before && !w->status; i++)
        redis_kit_sleep_ms(1);
    assert_int_equal(w->status, SEGUE_OK);
    assert_true(w->last > before);
}

static void restarts_amid_commits_lose_and_double_nothing(void **state)
{
    (void)state;
    redis_server *own;
    redis_server_options options = {.appendfsync = "always"};
    writer w = {.status = SEGUE_OK};
    assert_true(redis_server_start(&options, &own));
    w.store = redis_kit_open(redis_server_url(own));
    test_must_create(w.store, 1);
    assert_int_equal(pthread_create(&w.thread, NULL, write_on, &w), 0);
    for (int i = 0; i < 8; i++) {
        await_answer(&w);
        redis_kit_sleep_ms(7 * i);
        redis_server_signal(own, SIGKILL);
        assert_true(redis_server_again(own));
    }
    await_answer(&w);
    w.stop = 1;
    pthread_join(w.thread, NULL);
    assert_int_equal(w.status, SEGUE_OK);
    assert_true(w.last > 8);
    test_assert_log(w.store, 1, w.last);
    print_message("%d entries over 8 kills\n", (int)w.last);
    sgi_store_unref(w.store);
    redis_server_stop(own);
}

/* The end of a log is gone, as it may be with appendfsync everysec; a snapshot simulates
 * it. */
static void forgotten_end_of_a_log_is_a_hole(void **state)
{
    (void)state;
    redis_server *own;
    assert_true(redis_server_start(NULL, &own));
    segue_store *store = redis_kit_open(redis_server_url(own));
    test_must_create(store, 1);
    test_must_create(store, 2);
    for (uint64_t seq = 1; seq <= 3; seq++)
        test_must_append(store, 1, seq);
    assert_true(redis_server_do(own, "SAVE") >= 0);
    test_must_append(store, 1, 4);
    test_must_append(store, 1, 5);
    redis_server_signal(own, SIGKILL);
    assert_true(redis_server_again(own));
    assert_int_equal(append(store, 1, 6), SEGUE_E_STATE);
    test_assert_log(store, 1, 3); /* the rest is as it was */
    assert_int_equal(append(store, 2, 1), SEGUE_OK);
    sgi_store_unref(store);
    redis_server_stop(own);
}

static void forgotten_scripts_are_sent_again(void **state)
{
    (void)state;
    segue_store *store = redis_kit_open(redis_server_url(server));
    test_must_create(store, 1);
    assert_true(redis_server_do(server, "SCRIPT FLUSH") >= 0);
    assert_int_equal(append(store, 1, 1), SEGUE_OK);
    assert_true(redis_server_do(server, "SCRIPT FLUSH") >= 0);
    assert_int_equal(test_find(store, 1), SEGUE_OK);
    sgi_store_unref(store);
}

/* ---- room ---- */

static void full_server_takes_what_needs_no_room(void **state)
{
    (void)state;
    segue_store *store = redis_kit_open(redis_server_url(server));
    test_ear ear;
    int64_t next;
    test_must_create(store, 1);
    test_must_create(store, 2);
    test_must_create(store, 3);
    test_must_append(store, 1, 1);
    test_ear_open(&ear, store);
    assert_true(redis_server_do(server, "CONFIG SET maxmemory 1mb") >= 0);
    test_record r;
    test_record_init(&r, 9);
    assert_int_equal(append(store, 1, 2), SEGUE_E_STORE_FULL);
    assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_E_STORE_FULL);
    assert_int_equal(test_post(&ear, 1, "x"), SEGUE_E_STORE_FULL);
    assert_int_equal(test_find(store, 9), SEGUE_E_NOT_FOUND);
    test_assert_log(store, 1, 1);
    /* Ending, releasing, taking and deleting need no memory in Redis, or free memory. */
    assert_int_equal(test_commit_one(store, test_write_end(1, 5)), SEGUE_OK);
    assert_int_equal(test_commit_one(store, test_write_simple(SEGUE_STORE_RELEASE, 2)),
                     SEGUE_OK);
    assert_int_equal(test_claim_count(store), 1);
    assert_int_equal(test_follow(&ear, 2, true), SEGUE_OK);
    assert_int_equal(test_commit_one(store, test_write_simple(SEGUE_STORE_DELETE, 3)),
                     SEGUE_OK);
    assert_int_equal(sgi_store_purge(store, 10, &next), SEGUE_OK);
    assert_int_equal(test_find(store, 1), SEGUE_E_NOT_FOUND);
    assert_true(redis_server_do(server, "CONFIG SET maxmemory 0") >= 0);
    test_must_append(store, 2, 1);
    test_ear_close(&ear);
    sgi_store_unref(store);
}

/* A commit of more writes than one script call may have. */
static void large_commits_go_in_parts(void **state)
{
    (void)state;
    enum { OPS = 700, EACH = 9, COUNT = OPS * (EACH + 1) };
    segue_store *store = redis_kit_open(redis_server_url(server));
    test_record *records = calloc(OPS, sizeof *records);
    char(*data)[TEST_ENTRY_MAX] = calloc(OPS * EACH, sizeof *data);
    segue_store_write *writes = calloc(COUNT + 1, sizeof *writes);
    size_t count = 0;
    assert_true(records && data && writes);
    for (uint32_t n = 0; n < OPS; n++) {
        test_record_init(&records[n], n);
        writes[count++] = test_write_create(&records[n]);
    }
    for (uint64_t seq = 1; seq <= EACH; seq++) /* the operations are mixed */
        for (uint32_t n = 0; n < OPS; n++) {
            char *to = data[(seq - 1) * OPS + n];
            writes[count++] = test_write_append(n, seq, to, test_entry_fill(to, n, seq));
        }
    assert_int_equal(sgi_store_commit(store, writes, count), SEGUE_OK);
    for (uint32_t n = 0; n < OPS; n++)
        test_assert_log(store, n, EACH);
    /* The same commit again changes nothing. With a fault, every operation is unchanged
     * or complete. */
    assert_int_equal(sgi_store_commit(store, writes, count), SEGUE_OK);
    writes[count] = test_write_append(3, EACH + 5, "x", 1);
    assert_int_equal(sgi_store_commit(store, writes, count + 1), SEGUE_E_STATE);
    for (uint32_t n = 0; n < OPS; n++)
        test_assert_log(store, n, EACH);
    free(records);
    free(data);
    free(writes);
    sgi_store_unref(store);
}

/* Appends the entries `first` to `last` of operation n in one commit. */
static segue_status append_run(segue_store *store, uint32_t n, uint64_t first,
                               uint64_t last)
{
    static char data[300][TEST_ENTRY_MAX];
    static segue_store_write writes[300];
    size_t count = 0;
    for (uint64_t seq = first; seq <= last; seq++, count++) {
        size_t len = test_entry_fill(data[count], n, seq);
        writes[count] = test_write_append(n, seq, data[count], len);
    }
    return sgi_store_commit(store, writes, count);
}

/* Entries that share one entry of the stream behave like all others. */
static void entries_of_one_commit_stay_apart(void **state)
{
    (void)state;
    segue_store *store = redis_kit_open(redis_server_url(server));
    segue_store *other = redis_kit_open(redis_server_url(server));
    test_ear ear;
    test_must_create(store, 1);
    assert_int_equal(append_run(store, 1, 1, 250), SEGUE_OK);
    assert_int_equal(append(store, 1, 251), SEGUE_OK);
    assert_int_equal(append_run(store, 1, 252, 260), SEGUE_OK);
    for (uint64_t first = 1; first <= 260; first++)
        assert_int_equal(test_log_last(other, 1, first), 260);
    /* The entries are sent again, in other pieces, and with new entries after them. */
    assert_int_equal(append_run(store, 1, 100, 260), SEGUE_OK);
    assert_int_equal(append(store, 1, 7), SEGUE_OK);
    assert_int_equal(append_run(store, 1, 255, 300), SEGUE_OK);
    test_assert_log(store, 1, 300);
    /* Other bytes, holes and other owners are refused as always. */
    segue_store_write bad[2];
    char data[2][TEST_ENTRY_MAX];
    for (uint64_t i = 0; i < 2; i++)
        bad[i] =
            test_write_append(1, 300 + i, data[i], test_entry_fill(data[i], 1, 300 + i));
    bad[0].entry.at_ms++;
    assert_int_equal(sgi_store_commit(store, bad, 2), SEGUE_E_STATE);
    assert_int_equal(append_run(store, 1, 302, 303), SEGUE_E_STATE);
    assert_int_equal(append_run(store, 2, 1, 2), SEGUE_E_NOT_FOUND);
    assert_int_equal(append_run(other, 1, 301, 302), SEGUE_E_FENCED);
    assert_int_equal(append_run(other, 1, 1, 2), SEGUE_E_FENCED);
    /* The same at a store that follows the operation. */
    test_ear_open(&ear, other);
    assert_int_equal(test_follow(&ear, 1, true), SEGUE_OK);
    assert_int_equal(append_run(store, 1, 301, 340), SEGUE_OK);
    test_ear_wait(&ear, SEGUE_STORE_GREW, 1);
    assert_int_equal(test_log_last(other, 1, 301), 340);
    /* At most the allowed entries are dropped; numbers stay. */
    segue_store_write drop = test_write_simple(SEGUE_STORE_DROP, 1);
    for (int32_t kind = -1; kind < 5; kind++) {
        drop.entry.kind = kind;
        drop.entry.seq = 300;
        assert_int_equal(test_commit_one(store, drop), SEGUE_OK);
    }
    assert_int_equal(test_log_last(other, 1, 301), 340);
    assert_int_equal(append_run(store, 1, 341, 345), SEGUE_OK);
    assert_int_equal(test_log_last(other, 1, 301), 345);
    test_ear_close(&ear);
    sgi_store_unref(store);
    sgi_store_unref(other);
}

static void large_bytes_go_in_parts(void **state)
{
    (void)state;
    enum { OPS = 5, BYTES = 6 * 1024 * 1024 };
    segue_store *store = redis_kit_open(redis_server_url(server));
    char *data = malloc(BYTES);
    segue_store_write writes[OPS];
    assert_non_null(data);
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (char)test_mix(i);
    for (uint32_t n = 0; n < OPS; n++) {
        test_must_create(store, n);
        writes[n] = test_write_append(n, 1, data, BYTES);
    }
    assert_int_equal(sgi_store_commit(store, writes, OPS), SEGUE_OK);
    assert_int_equal(sgi_store_commit(store, writes, OPS), SEGUE_OK);
    data[0] ^= 1;
    assert_int_equal(sgi_store_commit(store, writes, OPS), SEGUE_E_STATE);
    free(data);
    sgi_store_unref(store);
}

/* ---- memory ---- */

/* Every allocation of a commit in parts, of forwarded commands and of follows fails
 * once. */
static void no_allocation_that_fails_does_harm(void **state)
{
    (void)state;
    static char big[100 * 1024];
    test_mem tm;
    test_mem_init(&tm);
    segue_store_options options = {.struct_size = sizeof options, .allocator = &tm.mem};
    for (size_t at = 1;; at++) {
        segue_store *store = NULL;
        test_ear ear;
        redis_server_do(server, "FLUSHALL");
        assert_int_equal(
            sgi_store_redis_new(redis_server_url(server), &options, &store, NULL, 0),
            SEGUE_OK);
        test_ear_open(&ear, store);
        test_must_create(store, 1);
        test_mem_rearm(&tm);
        tm.fail_at = at;
        segue_status append_status =
            test_commit_one(store, test_write_append(1, 1, big, sizeof big));
        segue_status follow_status = test_follow(&ear, 1, true);
        segue_status post_status = test_post(&ear, 1, "x");
        int64_t within = test_ear_ask(&ear);
        bool failed = tm.failed > 0;
        assert_true(append_status == SEGUE_OK || append_status == SEGUE_E_NOMEM);
        assert_true(follow_status == SEGUE_OK || follow_status == SEGUE_E_NOMEM);
        assert_true(post_status == SEGUE_OK || post_status == SEGUE_E_NOMEM);
        test_mem_rearm(&tm);
        if (post_status)
            assert_int_equal(test_post(&ear, 1, "x"), SEGUE_OK);
        if (post_status || !test_ear_find(&ear, SEGUE_STORE_LETTER, 1))
            test_ear_wait(&ear, SEGUE_STORE_LETTER, 1);
        (void)within;
        assert_int_equal(test_commit_one(store, test_write_append(1, 1, big, sizeof big)),
                         SEGUE_OK);
        test_ear_close(&ear);
        sgi_store_unref(store);
        assert_int_equal(tm.live, 0);
        if (!failed)
            break;
    }
}

/* Prints the memory of a task in Redis and bounds it loosely. */
static void parked_task_costs_little(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    segue_store *store = redis_kit_open(redis_server_url(server));
    long long before = redis_server_info(server, "used_memory"), bare = 0, full = 0;
    for (int round = 0; round < 2; round++) {
        for (uint32_t n = 0; n < COUNT; n++) {
            char data[180] = "the arguments of the call";
            test_record r;
            test_record_init(&r, n + (uint32_t)round * COUNT);
            test_record_set_key(&r, n + (uint32_t)round * COUNT);
            r.record.data = data;
            r.record.data_len = sizeof data;
            segue_store_write writes[] = {
                test_write_create(&r),
                test_write_append(n + (uint32_t)round * COUNT, 1, data, 60),
                test_write_append(n + (uint32_t)round * COUNT, 2, data, 60)};
            assert_int_equal(sgi_store_commit(store, writes, round ? 3 : 1), SEGUE_OK);
        }
        full = redis_server_info(server, "used_memory");
        if (!round)
            bare = full;
    }
    print_message("a task costs %lld bytes, with two entries %lld\n",
                  (bare - before) / COUNT, (full - bare) / COUNT);
    assert_true((bare - before) / COUNT < 1500);
    assert_true((full - bare) / COUNT < 6500);
    sgi_store_unref(store);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(replies_cut_anywhere_lose_and_double_nothing, set_up),
        cmocka_unit_test_setup(commands_cut_anywhere_lose_and_double_nothing, set_up),
        cmocka_unit_test_setup(silence_ends_with_the_time_limit, set_up),
        cmocka_unit_test_setup(leaving_many_waits_once, set_up),
        cmocka_unit_test_setup(late_copy_of_a_call_does_nothing, set_up),
        cmocka_unit_test(server_down_is_an_error_and_no_more),
        cmocka_unit_test(restarts_amid_commits_lose_and_double_nothing),
        cmocka_unit_test(forgotten_end_of_a_log_is_a_hole),
        cmocka_unit_test_setup(forgotten_scripts_are_sent_again, set_up),
        cmocka_unit_test_setup(full_server_takes_what_needs_no_room, set_up),
        cmocka_unit_test_setup(large_commits_go_in_parts, set_up),
        cmocka_unit_test_setup(entries_of_one_commit_stay_apart, set_up),
        cmocka_unit_test_setup(large_bytes_go_in_parts, set_up),
        cmocka_unit_test_setup(no_allocation_that_fails_does_harm, set_up),
        cmocka_unit_test_setup(parked_task_costs_little, set_up),
    };
    if (!redis_server_start(NULL, &server))
        return 1;
    int failures = cmocka_run_group_tests_name("redis faults", cases, NULL, NULL);
    redis_server_stop(server);
    return failures ? 1 : 0;
}
