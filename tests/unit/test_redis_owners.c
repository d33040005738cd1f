/* Several servers on one Redis: each store instance is an owner. An owner that was silent
 * for a lease loses its operations, and cannot write to them when it is back.
 * label: threads */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/feed.h"
#include "support/news_kit.h"
#include "support/redis_kit.h"

#include <cmocka.h>

static redis_server *server;

static int set_up(void **state)
{
    (void)state;
    return redis_server_do(server, "FLUSHALL") < 0;
}

static const char *url(void)
{
    return redis_server_url(server);
}

static segue_status append(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    return test_commit_one(store, test_write_append(n, seq, data, len));
}

static segue_store *open_through(cutting_proxy **proxy)
{
    cutting_options options = {.target_port = redis_server_port(server)};
    assert_true(cutting_proxy_start(&options, proxy));
    return redis_kit_open_lasting(redis_kit_through(*proxy));
}

static void cut_off(cutting_proxy *proxy)
{
    assert_true(cutting_proxy_refuse(proxy, -1));
    cutting_proxy_cut_all(proxy, CUTTING_RST);
}

/* ---- owners ---- */

static void only_the_owner_writes(void **state)
{
    (void)state;
    segue_store *a = redis_kit_open_lasting(url());
    segue_store *b = redis_kit_open_lasting(url());
    test_must_create(a, 1);
    test_must_append(a, 1, 1);
    assert_int_equal(append(b, 1, 2), SEGUE_E_FENCED);
    assert_int_equal(test_commit_one(b, test_write_end(1, 5)), SEGUE_E_FENCED);
    assert_int_equal(test_commit_one(b, test_write_taken(1, 5)), SEGUE_E_FENCED);
    segue_store_write drop = test_write_simple(SEGUE_STORE_DROP, 1);
    drop.entry.kind = 0;
    drop.entry.seq = 1;
    assert_int_equal(test_commit_one(b, drop), SEGUE_E_FENCED);
    /* Releasing an operation of another owner changes nothing. */
    assert_int_equal(test_commit_one(b, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    assert_int_equal(test_claim_count(b), 0);
    test_assert_log(b, 1, 1);
    test_must_append(a, 1, 2);
    sgi_store_unref(a);
    sgi_store_unref(b);
}

static void what_was_released_is_anybodys_at_once(void **state)
{
    (void)state;
    segue_store *a = redis_kit_open_lasting(url());
    segue_store *b = redis_kit_open_lasting(url());
    test_ear ear;
    test_ear_open(&ear, b);
    for (uint32_t n = 0; n < 100; n++)
        test_must_create(a, n);
    assert_int_equal(test_claim_count(b), 0);
    assert_int_equal(test_commit_one(a, test_write_simple(SEGUE_STORE_RELEASE, 7)),
                     SEGUE_OK);
    test_ear_wait(&ear, SEGUE_STORE_ORPHANS, 0);
    assert_int_equal(test_claim_count(b), 1);
    assert_int_equal(append(a, 7, 1), SEGUE_E_FENCED);
    test_must_append(b, 7, 1);
    /* A store that closes releases all its operations. */
    sgi_store_unref(a);
    redis_kit_claim(b, 99);
    test_must_append(b, 50, 1);
    test_ear_close(&ear);
    sgi_store_unref(b);
}

static void one_that_was_cut_off_is_fenced(void **state)
{
    (void)state;
    cutting_proxy *proxy;
    segue_store *a = open_through(&proxy), *b = redis_kit_open(url());
    test_ear ear;
    test_ear_open(&ear, b);
    test_must_create(a, 1);
    test_must_append(a, 1, 1);
    test_must_create(b, 2);
    cut_off(proxy);
    redis_kit_lapse(server, 1);
    /* the orphans are reported without a request */
    test_ear_wait(&ear, SEGUE_STORE_ORPHANS, 0);
    redis_kit_claim(b, 1);
    test_must_append(b, 1, 2);
    assert_true(cutting_proxy_refuse(proxy, 0));
    /* The store is back under the same number, but has lost its operations. */
    assert_int_equal(append(a, 1, 2), SEGUE_E_FENCED);
    assert_int_equal(append(a, 1, 3), SEGUE_E_FENCED);
    test_must_create(a, 3);
    test_must_append(a, 3, 1);
    assert_int_equal(test_claim_count(b), 0);
    test_assert_log(a, 1, 2);
    test_ear_close(&ear);
    sgi_store_unref(a);
    sgi_store_unref(b);
    cutting_proxy_stop(proxy);
}

/* Returns the longest remaining lease, in ms. */
static long long lease_left(void)
{
    return redis_server_do(server,
                           "EVAL local\tn=0;for\t_,k\tin\tipairs(redis.call('KEYS',"
                           "'{segue}:lease:*'))do\tn=math.max(n,redis.call("
                           "'PTTL',k))end\treturn\tn 0");
}

static void one_that_lives_prolongs_its_lease(void **state)
{
    (void)state;
    segue_store *a = redis_kit_open(url());
    test_must_create(a, 1);
    for (int i = 0; i < 3; i++) {
        long long least = lease_left();
        redis_kit_until(lease_left() < least);
        least = lease_left();
        redis_kit_until(lease_left() > least);
    }
    sgi_store_unref(a);
}

/* A lease that is not over keeps all other owners away. */
static void one_that_has_its_lease_loses_nothing(void **state)
{
    (void)state;
    segue_store *a = redis_kit_open_lasting(url()), *b = redis_kit_open(url());
    test_must_create(a, 1);
    assert_int_equal(test_claim_count(b), 0);
    test_must_append(a, 1, 1);
    sgi_store_unref(a);
    sgi_store_unref(b);
}

/* Two servers use the same task id at once: one of them gets it. */
static void one_name_is_given_once(void **state)
{
    (void)state;
    segue_store *a = redis_kit_open_lasting(url());
    segue_store *b = redis_kit_open_lasting(url());
    test_record mine, theirs;
    test_record_init(&mine, 1);
    test_record_set_key(&mine, 1);
    test_record_init(&theirs, 2);
    test_record_set_key(&theirs, 1);
    assert_int_equal(test_commit_one(a, test_write_create(&mine)), SEGUE_OK);
    assert_int_equal(test_commit_one(b, test_write_create(&theirs)), SEGUE_E_EXISTS);
    /* This is true even for an identical operation. */
    assert_int_equal(test_commit_one(b, test_write_create(&mine)), SEGUE_E_FENCED);
    /* Creating one's own operation again succeeds. */
    assert_int_equal(test_commit_one(a, test_write_create(&mine)), SEGUE_OK);
    sgi_store_unref(a);
    sgi_store_unref(b);
}

/* Deletes the leases; returns how many there were. */
static long long drop_leases(redis_server *of)
{
    return redis_server_do(of,
                           "EVAL local\tall=redis.call('KEYS','{segue}:lease:*')if#all>0"
                           "\tthen\tredis.call('DEL',unpack(all))end\treturn#all 0");
}

/* While Redis was away all leases lapsed, but the owners are alive and lose nothing. */
static void restart_of_redis_orphans_nobody(void **state)
{
    (void)state;
    redis_server *kept;
    redis_server_options options = {.appendfsync = "always"};
    assert_true(redis_server_start(&options, &kept));
    segue_store *a = redis_kit_open_lasting(redis_server_url(kept));
    segue_store *b = redis_kit_open_lasting(redis_server_url(kept));
    test_must_create(a, 1);
    assert_int_equal(drop_leases(kept), 2);
    redis_server_signal(kept, SIGKILL);
    assert_true(redis_server_again(kept));
    assert_int_equal(test_claim_count(b), 0);
    test_must_append(a, 1, 1);
    assert_int_equal(test_claim_count(b), 0);
    sgi_store_unref(a);
    redis_kit_claim(b, 1);
    sgi_store_unref(b);
    redis_server_stop(kept);
}

/* ---- the change feed ---- */

static void letters_reach_the_owner_and_its_heir(void **state)
{
    (void)state;
    cutting_proxy *proxy;
    segue_store *a = open_through(&proxy), *b = redis_kit_open(url());
    test_ear at_a, at_b;
    test_ear_open(&at_a, a);
    test_ear_open(&at_b, b);
    test_must_create(a, 1);
    assert_int_equal(test_post(&at_b, 1, "one"), SEGUE_OK);
    assert_int_equal(test_post(&at_b, 1, "two"), SEGUE_OK);
    const test_heard *one = test_ear_wait(&at_a, SEGUE_STORE_LETTER, 1);
    assert_string_equal(one->text, "one");
    uint64_t number = one->number;
    assert_int_equal(test_commit_by(&at_a, test_write_taken(1, number)), SEGUE_OK);
    cut_off(proxy);
    redis_kit_lapse(server, 1);
    assert_int_equal(test_post(&at_b, 1, "three"), SEGUE_OK);
    redis_kit_claim(b, 1);
    const test_heard *two = test_ear_wait(&at_b, SEGUE_STORE_LETTER, 1);
    assert_string_equal(two->text, "two");
    assert_int_equal(two->number, number + 1);
    for (uint64_t i = 2; test_ear_letters(&at_b, 1) < 2 && i < 4; i++)
        test_ear_wait(&at_b, SEGUE_STORE_LETTER, 1);
    assert_int_equal(test_commit_by(&at_b, test_write_taken(1, number + 2)), SEGUE_OK);
    assert_int_equal(redis_server_do(server, "EXISTS {segue}:mail:"), 0);
    test_ear_close(&at_a);
    test_ear_close(&at_b);
    sgi_store_unref(a);
    sgi_store_unref(b);
    cutting_proxy_stop(proxy);
}

static void letter_while_the_owner_was_deaf_is_heard(void **state)
{
    (void)state;
    cutting_proxy *proxy;
    cutting_options options = {.target_port = redis_server_port(server)};
    assert_true(cutting_proxy_start(&options, &proxy));
    segue_store *a = redis_kit_open(redis_kit_through(proxy));
    segue_store *b = redis_kit_open_lasting(url());
    test_ear at_a, at_b;
    test_ear_open(&at_a, a);
    test_ear_open(&at_b, b);
    test_must_create(a, 1);
    test_must_create(b, 2);
    assert_int_equal(test_follow(&at_a, 2, true), SEGUE_OK);
    assert_true(cutting_proxy_refuse(proxy, 100));
    cutting_proxy_cut_all(proxy, CUTTING_RST);
    assert_int_equal(test_post(&at_b, 1, "knock"), SEGUE_OK);
    test_append_by(&at_b, 2, 1);
    assert_string_equal(test_ear_wait(&at_a, SEGUE_STORE_LETTER, 1)->text, "knock");
    /* Growth that nobody listened for is reported as missed, and later growth as
     * usual. */
    uint64_t seq = 1;
    do {
        test_append_by(&at_b, 2, ++seq);
        test_ear_rest(&at_a, 20);
        test_ear_ask(&at_a);
    } while (!test_ear_find(&at_a, SEGUE_STORE_GREW, 2) && seq < 5000);
    assert_non_null(test_ear_find(&at_a, SEGUE_STORE_GREW, 2));
    test_ear_close(&at_a);
    test_ear_close(&at_b);
    sgi_store_unref(a);
    sgi_store_unref(b);
    cutting_proxy_stop(proxy);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Only the message can report it: the next lease renewal is long after the test. The
 * delay is printed. */
static void follower_hears_at_once(void **state)
{
    (void)state;
    enum { HOPS = 201 };
    static int64_t us[HOPS];
    segue_store *a = redis_kit_open_lasting(url());
    segue_store *b = redis_kit_open_lasting(url());
    test_ear ear;
    test_ear_open(&ear, b);
    test_must_create(a, 1);
    assert_int_equal(test_follow(&ear, 1, true), SEGUE_OK);
    for (uint64_t seq = 1; seq <= HOPS; seq++) {
        int64_t began = redis_kit_now_us();
        test_must_append(a, 1, seq);
        test_ear_wait(&ear, SEGUE_STORE_GREW, 1);
        assert_int_equal(test_log_last(b, 1, seq), seq);
        us[seq - 1] = redis_kit_now_us() - began;
    }
    qsort(us, HOPS, sizeof *us, by_time);
    print_message("from append to read elsewhere: median %lld us, longest %lld us\n",
                  (long long)us[HOPS / 2], (long long)us[HOPS - 1]);
    test_ear_close(&ear);
    sgi_store_unref(a);
    sgi_store_unref(b);
}

/* One message tells of more operations than are noted one by one. */
static void news_are_bounded(void **state)
{
    (void)state;
    enum { COUNT = SGI_STORE_FEED_IDS_MAX + 1 };
    static segue_store_write writes[COUNT];
    segue_store *a = redis_kit_open_lasting(url());
    segue_store *b = redis_kit_open_lasting(url());
    test_ear ear;
    test_ear_open(&ear, b);
    for (uint32_t n = 0; n < COUNT; n++) {
        test_must_create(a, n);
        assert_int_equal(test_follow(&ear, n, true), SEGUE_OK);
        writes[n] = test_write_append(n, 1, "x", 1);
    }
    /* one commit causes one message */
    assert_int_equal(sgi_store_commit(a, writes, COUNT), SEGUE_OK);
    test_ear_wait(&ear, SEGUE_STORE_MISSED, 0);
    test_ear_close(&ear);
    sgi_store_unref(a);
    sgi_store_unref(b);
}

/* A store whose own lease has lapsed must check its operations, because another store may
 * own them by now. A commit that takes the lease again hides nothing. */
static void one_whose_lease_has_lapsed_doubts(void **state)
{
    (void)state;
    for (int commits = 0; commits < 2; commits++) {
        segue_store *a = redis_kit_open(url());
        test_ear ear;
        test_ear_open(&ear, a);
        test_ear_ask(&ear);
        test_must_create(a, 1);
        assert_null(test_ear_find(&ear, SEGUE_STORE_DOUBT, 0));
        redis_kit_until(drop_leases(server) == 1);
        if (commits)
            test_must_append(a, 1, 1);
        test_ear_wait(&ear, SEGUE_STORE_DOUBT, 0);
        test_ear_close(&ear);
        sgi_store_unref(a);
        redis_server_do(server, "FLUSHALL");
    }
}

/* A store whose own lease has lapsed waits for one lease before it reports orphans: other
 * stores may have been away for the same reason. */
static void one_that_was_away_takes_nobodys_word_at_once(void **state)
{
    (void)state;
    segue_store *a = redis_kit_open(url());
    test_ear ear;
    test_ear_open(&ear, a);
    test_ear_ask(&ear);
    int64_t began = redis_kit_now_us();
    /* The leases are deleted at once, and renewed when a store notices the loss. */
    redis_kit_until(drop_leases(server) == 1);
    redis_kit_until(redis_server_do(server, "KEYS {segue}:lease:*") == 1);
    segue_store *b = redis_kit_open_lasting(url());
    test_must_create(b, 1);
    assert_int_equal(test_commit_one(b, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    test_ear_wait(&ear, SEGUE_STORE_ORPHANS, 0);
    assert_true(redis_kit_now_us() - began >= REDIS_KIT_LEASE_MS * 1000);
    assert_int_equal(test_claim_count(a), 1);
    test_ear_close(&ear);
    sgi_store_unref(a);
    sgi_store_unref(b);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(only_the_owner_writes, set_up),
        cmocka_unit_test_setup(what_was_released_is_anybodys_at_once, set_up),
        cmocka_unit_test_setup(one_that_was_cut_off_is_fenced, set_up),
        cmocka_unit_test_setup(one_that_lives_prolongs_its_lease, set_up),
        cmocka_unit_test_setup(one_that_has_its_lease_loses_nothing, set_up),
        cmocka_unit_test_setup(one_name_is_given_once, set_up),
        cmocka_unit_test(restart_of_redis_orphans_nobody),
        cmocka_unit_test_setup(letters_reach_the_owner_and_its_heir, set_up),
        cmocka_unit_test_setup(letter_while_the_owner_was_deaf_is_heard, set_up),
        cmocka_unit_test_setup(follower_hears_at_once, set_up),
        cmocka_unit_test_setup(news_are_bounded, set_up),
        cmocka_unit_test_setup(one_whose_lease_has_lapsed_doubts, set_up),
        cmocka_unit_test_setup(one_that_was_away_takes_nobodys_word_at_once, set_up),
    };
    if (!redis_server_start(NULL, &server))
        return 1;
    int failures = cmocka_run_group_tests_name("redis owners", cases, NULL, NULL);
    redis_server_stop(server);
    return failures ? 1 : 0;
}
