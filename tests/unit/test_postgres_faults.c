/* A PostgreSQL server that refuses, goes away, comes back, forgets, is replaced, or is
 * cut off in the middle of a message. An acknowledged write is there once; any other
 * write can be repeated. label: threads */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/cutting_proxy.h"
#include "support/news_kit.h"
#include "support/postgres_server.h"
#include "support/store_kit.h"

#include <cmocka.h>

/* The time limit is long, for slow machines. */
#define PATIENCE_MS 120000
#define LASTING_MS 3600000

static postgres_server *server;

static int clear(void **state)
{
    (void)state;
    return postgres_server_do(server, "DROP SCHEMA IF EXISTS segue CASCADE") < 0;
}

static segue_status open_status(const char *url, int64_t lease_ms, segue_store **out,
                                char message[300])
{
    segue_store_options options = {
        .struct_size = sizeof options, .timeout_ms = PATIENCE_MS, .lease_ms = lease_ms};
    return sgi_store_postgres_new(url, &options, out, message, 300);
}

static segue_store *must_open(const char *url, int64_t lease_ms)
{
    char message[300];
    segue_store *store = NULL;
    if (open_status(url, lease_ms, &store, message))
        fail_msg("%s: %s", url, message);
    return store;
}

static void expect_closed(const char *url, segue_status status, const char *words)
{
    char message[300] = "";
    segue_store *store = NULL;
    segue_store_options options = {.struct_size = sizeof options,
                                   .timeout_ms = PATIENCE_MS};
    assert_int_equal(sgi_store_postgres_new(url, &options, &store, message, 300), status);
    assert_null(store);
    if (!strstr(message, words))
        fail_msg("%s: %s", url, message);
    assert_null(strstr(message, "secret"));
}

/* ---- opening ---- */

static void malformed_urls_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "",
        "redis://host",
        "host=/tmp",
        "postgresql://h/d?schema=",
        "postgresql://h/d?schema=A",
        "postgresql://h/d?schema=1a",
        "postgresql://h/d?schema=a%22b",
        "postgresql://h/d?schema=a%00",
        "postgresql://h/d?schema=a1234567890123456789012345678901234567890",
        "postgresql://h/d?synchronous_commit=maybe",
        "postgresql://h/d?listen=host",
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        expect_closed(urls[i], SEGUE_E_INVALID, "postgres: ");
    expect_closed(NULL, SEGUE_E_INVALID, "postgres: ");
    expect_closed("postgresql://u:secret@127.0.0.1/d?what=1", SEGUE_E_STORE, "what");
    segue_store_options bad[] = {{.timeout_ms = -1}, {.lease_ms = 99}};
    segue_store *store = NULL;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            sgi_store_postgres_new("postgresql://", &bad[i], &store, NULL, 0),
            SEGUE_E_INVALID);
}

static void another_isolation_is_refused(void **state)
{
    (void)state;
    char url[256];
    snprintf(url, sizeof url,
             "%s&options=-c%%20default_transaction_isolation%%3Dserializable",
             postgres_server_unix_url(server));
    expect_closed(url, SEGUE_E_UNSUPPORTED, "read committed");
}

/* A newer format is refused by name, and nothing of it is changed. */
static void newer_format_is_refused(void **state)
{
    (void)state;
    const char *url = postgres_server_unix_url(server);
    sgi_store_unref(must_open(url, LASTING_MS));
    assert_int_equal(
        postgres_server_do(server, "INSERT INTO segue.migration (number) VALUES (99); "
                                   "SELECT count(*) FROM segue.owner"),
        0);
    expect_closed(url, SEGUE_E_STORE_CORRUPT, "format 99");
    assert_int_equal(postgres_server_do(server, "SELECT count(*) FROM segue.owner"), 0);
}

/* Dead rows are made free before they are a fifth of the large tables. */
static void large_tables_are_vacuumed_early(void **state)
{
    (void)state;
    sgi_store_unref(must_open(postgres_server_unix_url(server), LASTING_MS));
    assert_int_equal(
        postgres_server_do(server,
                           "SELECT count(*) FROM pg_class WHERE relnamespace = "
                           "'segue'::regnamespace AND relname IN ('operation', 'log') "
                           "AND reloptions @> '{autovacuum_vacuum_scale_factor=0.05,"
                           "autovacuum_vacuum_threshold=1000}'"),
        2);
}

static void who_may_not_create_is_told(void **state)
{
    (void)state;
    char url[256];
    postgres_server_do(server, "CREATE ROLE poor LOGIN");
    snprintf(url, sizeof url, "%s&user=poor", postgres_server_unix_url(server));
    expect_closed(url, SEGUE_E_STORE, "permission denied");
}

enum { STARTERS = 6 };

typedef struct starter {
    pthread_t thread;
    segue_store *store;
    char message[300];
    segue_status status;
} starter;

static void *start_one(void *user)
{
    starter *s = user;
    s->status =
        open_status(postgres_server_unix_url(server), LASTING_MS, &s->store, s->message);
    return NULL;
}

/* One makes the tables, the others wait. */
static void servers_that_start_together_all_open(void **state)
{
    for (int round = 0; round < 5; round++) {
        starter starters[STARTERS] = {0};
        clear(state);
        for (int i = 0; i < STARTERS; i++)
            assert_int_equal(
                pthread_create(&starters[i].thread, NULL, start_one, &starters[i]), 0);
        for (int i = 0; i < STARTERS; i++)
            pthread_join(starters[i].thread, NULL);
        for (int i = 0; i < STARTERS; i++) {
            if (starters[i].status)
                fail_msg("%s", starters[i].message);
            sgi_store_unref(starters[i].store);
        }
    }
}

/* ---- the network ---- */

static const char *through(const cutting_proxy *proxy)
{
    static char url[80];
    snprintf(url, sizeof url, "postgresql://segue@127.0.0.1:%d/postgres",
             cutting_proxy_port(proxy));
    return url;
}

static void append(segue_store *store, uint32_t n, uint64_t seq)
{
    test_must_append(store, n, seq);
}

/* The answers of commits are cut off at many places. Each commit is applied once. A
 * second application of [RELEASE, claimed by the other] would be refused. */
static void lost_answers_are_resolved(void **state)
{
    (void)state;
    cutting_proxy *proxy;
    cutting_options options = {.target_port = postgres_server_port(server), .seed = 5};
    assert_true(cutting_proxy_start(&options, &proxy));
    segue_store *store = must_open(through(proxy), LASTING_MS);
    test_must_create(store, 1);
    cutting_proxy_plan(
        proxy, &(cutting_plan){
                   .direction = CUTTING_DOWN, .min = 1, .max = 1500, .how = CUTTING_RST});
    for (uint64_t seq = 1; seq <= 60; seq++)
        append(store, 1, seq);
    for (uint32_t n = 2; n < 12; n++) {
        test_record r;
        test_record_init(&r, n);
        segue_store_write writes[] = {
            test_write_create(&r), test_write_simple(SEGUE_STORE_DELETE, n),
            test_write_create(&r), test_write_append(n, 1, "x", 1)};
        assert_int_equal(sgi_store_commit(store, writes, 4), SEGUE_OK);
    }
    cutting_proxy_plan_nothing(proxy, CUTTING_DOWN);
    assert_true(cutting_proxy_get(proxy, CUTTING_CUTS) > 10);
    test_assert_log(store, 1, 60);
    assert_int_equal(test_claim_count(store), 0);
    sgi_store_unref(store);
    cutting_proxy_stop(proxy);
    assert_int_equal(postgres_server_do(server, "SELECT count(*) FROM segue.operation"),
                     11);
}

static void released_once_though_the_answer_is_lost(void **state)
{
    (void)state;
    cutting_proxy *proxy;
    cutting_options options = {.target_port = postgres_server_port(server), .seed = 6};
    assert_true(cutting_proxy_start(&options, &proxy));
    segue_store *store = must_open(through(proxy), LASTING_MS);
    segue_store *other = must_open(postgres_server_url(server), LASTING_MS);
    for (uint32_t n = 1; n <= 20; n++)
        test_must_create(store, n);
    cutting_proxy_plan(
        proxy, &(cutting_plan){
                   .direction = CUTTING_DOWN, .min = 1, .max = 1500, .how = CUTTING_RST});
    for (uint32_t n = 1; n <= 20; n++)
        assert_int_equal(
            test_commit_one(store, test_write_simple(SEGUE_STORE_RELEASE, n)), SEGUE_OK);
    assert_int_equal(test_claim_count(other), 20);
    for (uint32_t n = 1; n <= 20; n++)
        append(other, n, 1);
    cutting_proxy_plan_nothing(proxy, CUTTING_DOWN);
    assert_int_equal(test_claim_count(store), 0);
    sgi_store_unref(store);
    sgi_store_unref(other);
    cutting_proxy_stop(proxy);
}

/* Opening has the time limit of all calls, also for what the thread does first: its
 * connection takes longer than a third of the lease. */
static void slow_network_does_not_hinder_opening(void **state)
{
    (void)state;
    cutting_proxy *proxy;
    cutting_options options = {.target_port = postgres_server_port(server),
                               .delay_ms = 60};
    assert_true(cutting_proxy_start(&options, &proxy));
    segue_store *store = must_open(through(proxy), 100);
    test_must_create(store, 1);
    sgi_store_unref(store);
    cutting_proxy_stop(proxy);
}

/* The thread finds out that its connection is gone, follows again and reports that news
 * was lost. */
static void watching_goes_on_after_a_cut(void **state)
{
    (void)state;
    cutting_proxy *proxy;
    cutting_options options = {.target_port = postgres_server_port(server)};
    assert_true(cutting_proxy_start(&options, &proxy));
    segue_store *mine = must_open(postgres_server_url(server), LASTING_MS);
    segue_store *theirs = must_open(through(proxy), 600);
    test_ear ear;
    test_ear_open(&ear, theirs);
    test_must_create(mine, 1);
    assert_int_equal(test_follow(&ear, 1, true), SEGUE_OK);
    cutting_proxy_cut_all(proxy, CUTTING_RST);
    test_ear_wait(&ear, SEGUE_STORE_MISSED, 0);
    append(mine, 1, 1);
    test_ear_wait(&ear, SEGUE_STORE_GREW, 1);
    test_ear_close(&ear);
    sgi_store_unref(theirs);
    sgi_store_unref(mine);
    cutting_proxy_stop(proxy);
}

/* ---- the server ---- */

static void commits_wait_for_a_server_that_restarts(void **state)
{
    (void)state;
    segue_store *store = must_open(postgres_server_unix_url(server), LASTING_MS);
    test_must_create(store, 1);
    static const int how[] = {SIGINT, SIGQUIT};
    for (uint64_t seq = 1; seq <= 2; seq++) {
        postgres_server_signal(server, how[seq - 1]);
        assert_true(postgres_server_again(server));
        append(store, 1, seq);
    }
    test_assert_log(store, 1, 2);
    sgi_store_unref(store);
}

static int32_t keep_ended(void *user, const segue_store_record *record)
{
    *(int32_t *)user = record->ended;
    return 0;
}

/* Makes the lease of all owners lapse, as their clock would. */
static void lapse(postgres_server *where)
{
    assert_int_equal(postgres_server_do(where, "UPDATE segue.lease SET ms = 1, seen = 0"),
                     0);
}

/* A server that has crashed may have lost commits of an instance that does not wait for
 * the disk: the living owner is in doubt, and what a dead one left is torn. Without such
 * an instance nothing is lost. */
static void crash_tears_what_was_not_synced(void **state)
{
    (void)state;
    for (int loose = 0; loose < 2; loose++) {
        char url[256];
        int32_t ended = -1;
        test_ear ear;
        clear(state);
        /* fsync is off in this server, so it counts as loose whatever it is told */
        snprintf(url, sizeof url, "%s", postgres_server_unix_url(server));
        segue_store *dead = must_open(url, LASTING_MS);
        segue_store *alive = must_open(url, LASTING_MS);
        test_ear_open(&ear, alive);
        test_must_create(dead, 1);
        test_must_create(alive, 2);
        append(alive, 2, 1);
        if (!loose)
            assert_int_equal(
                postgres_server_do(server, "UPDATE segue.owner SET loose = false"), 0);
        postgres_server_signal(server, SIGQUIT);
        assert_true(postgres_server_again(server));
        test_ear_wait(&ear, SEGUE_STORE_DOUBT, 0);
        segue_store_write write = test_write_taken(2, 0);
        write.entry.event = 2; /* more than there is: the log has lost its end */
        assert_int_equal(test_commit_by(&ear, write), SEGUE_E_STATE);
        write.entry.event = 1;
        assert_int_equal(test_commit_by(&ear, write), SEGUE_OK);
        assert_int_equal(postgres_server_do(server,
                                            "UPDATE segue.operation SET owner = NULL "
                                            "WHERE task_id = 'task-1'"),
                         0);
        assert_int_equal(sgi_store_claim(alive, keep_ended, &ended), SEGUE_OK);
        assert_int_equal(ended, loose ? SEGUE_STORE_TORN : SEGUE_STORE_LIVE);
        test_ear_close(&ear);
        sgi_store_unref(alive);
        sgi_store_unref(dead);
    }
}

/* A standby is promoted that lacks the last commits: the living owner finds the hole. */
static void promotion_that_loses_commits_is_noticed(void **state)
{
    (void)state;
    postgres_server *standby;
    cutting_proxy *proxy;
    char url[80];
    int32_t ended = -1;
    test_ear ear;
    cutting_options options = {.target_port = postgres_server_port(server)};
    assert_true(cutting_proxy_start(&options, &proxy));
    options.port = cutting_proxy_port(proxy);
    snprintf(url, sizeof url, "%s", through(proxy));
    segue_store *alive = must_open(url, LASTING_MS), *dead = must_open(url, LASTING_MS);
    test_ear_open(&ear, alive);
    test_must_create(alive, 1);
    test_must_create(dead, 2);
    append(alive, 1, 1);
    assert_true(postgres_server_start_standby(server, &standby));
    assert_true(postgres_server_promote(standby)); /* the servers part here */
    append(alive, 1, 2);
    test_must_create(alive, 3);
    cutting_proxy_stop(proxy);
    options.target_port = postgres_server_port(standby);
    assert_true(cutting_proxy_start(&options, &proxy));
    test_ear_wait(&ear, SEGUE_STORE_DOUBT, 0);
    segue_store_write write = test_write_taken(1, 0);
    write.entry.event = 2;
    assert_int_equal(test_commit_by(&ear, write), SEGUE_E_STATE);
    char data[TEST_ENTRY_MAX];
    write = test_write_append(1, 3, data, test_entry_fill(data, 1, 3));
    assert_int_equal(test_commit_by(&ear, write), SEGUE_E_STATE);
    /* An operation that is missing entirely is known by its owner's confirmation. */
    write = test_write_taken(3, 0);
    write.entry.event = 1;
    assert_int_equal(test_commit_by(&ear, write), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_commit_by(&ear, test_write_taken(3, 0)), SEGUE_OK);
    /* It ends behind the hole, and shows no number twice. */
    write = test_write_append(1, 3, data, test_entry_fill(data, 1, 3));
    segue_store_write end[] = {write, test_write_end(1, INT64_MAX)};
    end[1].entry.seq = 3;
    assert_int_equal(sgi_store_commit_by(ear.listener, end, 2), SEGUE_OK);
    lapse(standby);
    assert_int_equal(sgi_store_claim(alive, keep_ended, &ended), SEGUE_OK);
    assert_int_equal(ended, SEGUE_STORE_TORN);
    test_ear_close(&ear);
    sgi_store_unref(alive);
    sgi_store_unref(dead);
    cutting_proxy_stop(proxy);
    postgres_server_stop(standby);
}

/* ---- leases ---- */

static void lapsed_owner_is_fenced(void **state)
{
    (void)state;
    const char *url = postgres_server_unix_url(server);
    segue_store *mine = must_open(url, LASTING_MS), *theirs = must_open(url, LASTING_MS);
    test_must_create(mine, 1);
    append(mine, 1, 1);
    assert_int_equal(test_claim_count(theirs), 0);
    lapse(server);
    assert_int_equal(test_claim_count(theirs), 1);
    append(theirs, 1, 2);
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, 1, 2);
    assert_int_equal(test_commit_one(mine, test_write_append(1, 2, data, len)),
                     SEGUE_E_FENCED);
    test_assert_log(mine, 1, 2);
    sgi_store_unref(mine);
    sgi_store_unref(theirs);
}

/* A claim hands over all operations but the unreadable one, and says that there is
 * one. */
static void unreadable_record_holds_up_no_claim(void **state)
{
    size_t count;
    (void)state;
    segue_store *store = must_open(postgres_server_unix_url(server), LASTING_MS);
    for (uint32_t n = 1; n <= 5; n++)
        test_must_create(store, n);
    sgi_store_unref(store);
    assert_int_equal(postgres_server_do(
                         server, "UPDATE segue.operation SET principal = '\\x0102' WHERE "
                                 "op = (SELECT op FROM segue.operation ORDER BY op "
                                 "LIMIT 1 OFFSET 1)"),
                     0);
    store = must_open(postgres_server_unix_url(server), LASTING_MS);
    assert_int_equal(test_claim_status(store, &count), SEGUE_E_STORE_CORRUPT);
    assert_int_equal(count, 4);
    assert_int_equal(test_claim_count(store), 0);
    sgi_store_unref(store);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(malformed_urls_are_refused),
        cmocka_unit_test_setup(another_isolation_is_refused, clear),
        cmocka_unit_test_setup(newer_format_is_refused, clear),
        cmocka_unit_test_setup(unreadable_record_holds_up_no_claim, clear),
        cmocka_unit_test_setup(large_tables_are_vacuumed_early, clear),
        cmocka_unit_test_setup(who_may_not_create_is_told, clear),
        cmocka_unit_test(servers_that_start_together_all_open),
        cmocka_unit_test_setup(lost_answers_are_resolved, clear),
        cmocka_unit_test_setup(released_once_though_the_answer_is_lost, clear),
        cmocka_unit_test_setup(slow_network_does_not_hinder_opening, clear),
        cmocka_unit_test_setup(watching_goes_on_after_a_cut, clear),
        cmocka_unit_test_setup(commits_wait_for_a_server_that_restarts, clear),
        cmocka_unit_test(crash_tears_what_was_not_synced),
        cmocka_unit_test_setup(promotion_that_loses_commits_is_noticed, clear),
        cmocka_unit_test_setup(lapsed_owner_is_fenced, clear),
    };
    if (!postgres_server_start(NULL, &server))
        return 1;
    int failures = cmocka_run_group_tests(cases, NULL, NULL);
    postgres_server_stop(server);
    return failures;
}
