/* Several servers on one PostgreSQL: each store instance is an owner. An owner that was
 * silent for a lease loses its operations, and cannot write to them when it is back, also
 * when a standby was promoted in between. label: threads */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/cutting_proxy.h"
#include "support/news_kit.h"
#include "support/postgres_server.h"
#include "support/store_kit.h"

#include <cmocka.h>

/* The time limit is long, for slow machines. */
#define PATIENCE_MS 120000
#define LASTING_MS 3600000
#define SHORT_MS 600

static postgres_server *server;

static int clear(void **state)
{
    (void)state;
    return postgres_server_do(server, "DROP SCHEMA IF EXISTS segue CASCADE") < 0;
}

static segue_store *open_for(const char *url, int64_t lease_ms)
{
    char message[300];
    segue_store *store = NULL;
    segue_store_options options = {
        .struct_size = sizeof options, .timeout_ms = PATIENCE_MS, .lease_ms = lease_ms};
    if (sgi_store_postgres_new(url, &options, &store, message, sizeof message))
        fail_msg("%s", message);
    return store;
}

static segue_store *must_open(void)
{
    return open_for(postgres_server_unix_url(server), LASTING_MS);
}

static const char *through(const cutting_proxy *proxy)
{
    static char url[80];
    snprintf(url, sizeof url, "postgresql://segue@127.0.0.1:%d/postgres",
             cutting_proxy_port(proxy));
    return url;
}

static cutting_proxy *start_proxy(const postgres_server *to, uint16_t port)
{
    cutting_proxy *proxy;
    cutting_options options = {.target_port = postgres_server_port(to), .port = port};
    assert_true(cutting_proxy_start(&options, &proxy));
    return proxy;
}

static segue_status append(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    return test_commit_one(store, test_write_append(n, seq, data, len));
}

static segue_status vouch(test_ear *ear, uint32_t n, uint64_t upto)
{
    segue_store_write write = test_write_taken(n, 0);
    write.entry.event = upto;
    return test_commit_by(ear, write);
}

static int32_t keep_ended(void *user, const segue_store_record *record)
{
    *(int32_t *)user = record->ended;
    return 0;
}

/* Makes the lease of the owner of an operation lapse, as the clock of the server
 * would. */
static void lapse(postgres_server *where, uint32_t n, int lease_ms)
{
    assert_int_equal(postgres_server_do(
                         where,
                         "UPDATE segue.lease SET ms = %d, seen = 0 WHERE owner = "
                         "(SELECT owner FROM segue.operation WHERE task_id = 'task-%u')",
                         lease_ms, n),
                     0);
}

/* ---- owners ---- */

static void only_the_owner_writes(void **state)
{
    (void)state;
    segue_store *a = must_open(), *b = must_open();
    test_must_create(a, 1);
    test_must_append(a, 1, 1);
    assert_int_equal(append(b, 1, 2), SEGUE_E_FENCED);
    assert_int_equal(test_commit_one(b, test_write_end(1, 5)), SEGUE_E_FENCED);
    assert_int_equal(test_commit_one(b, test_write_taken(1, 5)), SEGUE_E_FENCED);
    segue_store_write drop = test_write_simple(SEGUE_STORE_DROP, 1);
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
    test_ear ear;
    segue_store *a = must_open(), *b = must_open();
    test_ear_open(&ear, b);
    for (uint32_t n = 1; n <= 20; n++)
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
    assert_int_equal(test_claim_count(b), 19);
    test_must_append(b, 20, 1);
    test_ear_close(&ear);
    sgi_store_unref(b);
}

/* The network of the owner carries nothing for longer than its lease. */
static void one_that_was_cut_off_is_fenced(void **state)
{
    (void)state;
    test_ear ear;
    cutting_proxy *proxy = start_proxy(server, 0);
    segue_store *a = open_for(through(proxy), SHORT_MS), *b = must_open();
    test_ear_open(&ear, b);
    test_must_create(a, 1);
    test_must_append(a, 1, 1);
    assert_true(cutting_proxy_refuse(proxy, -1));
    cutting_proxy_cut_all(proxy, CUTTING_RST);
    while (test_claim_count(b) == 0) /* until the lease has ended */
        ;
    test_must_append(b, 1, 2);
    assert_true(cutting_proxy_refuse(proxy, 0));
    assert_int_equal(append(a, 1, 2), SEGUE_E_FENCED);
    assert_int_equal(append(a, 1, 3), SEGUE_E_FENCED);
    test_must_create(a, 3);
    test_must_append(a, 3, 1);
    test_assert_log(a, 1, 2);
    test_ear_close(&ear);
    sgi_store_unref(a);
    sgi_store_unref(b);
    cutting_proxy_stop(proxy);
}

/* A copy of a call that arrives when later calls were applied changes nothing. */
static void late_copy_of_a_call_does_nothing(void **state)
{
    (void)state;
    segue_store *store = must_open();
    test_must_create(store, 1);
    for (uint64_t seq = 1; seq <= 5; seq++)
        test_must_append(store, 1, seq);
    static const char release[] =
        "SELECT segue.commit((SELECT id FROM segue.owner), %d, '', false, 0, 0, "
        "'{5}'::smallint[], ARRAY[(SELECT id FROM segue.operation)], '{0}', '{0}', "
        "'{0}', '{0}', '{0}', ARRAY[''::bytea], '{}', '{}', '{}')";
    static const char released[] =
        "SELECT count(*) FROM segue.operation WHERE owner IS NULL";
    assert_int_equal(postgres_server_do(server, release, 3), 0);
    assert_int_equal(postgres_server_do(server, released), 0);
    test_must_append(store, 1, 6);
    /* the same call with a number that nobody has used yet is applied */
    assert_int_equal(postgres_server_do(server, release, 1000), 0);
    assert_int_equal(postgres_server_do(server, released), 1);
    sgi_store_unref(store);
}

/* PostgreSQL was away for longer than all leases: each owner has the time of one lease to
 * come back. */
static void restart_of_the_server_orphans_nobody(void **state)
{
    (void)state;
    segue_store *a = must_open(), *b = must_open();
    test_must_create(a, 1);
    lapse(server, 1, LASTING_MS);
    postgres_server_signal(server, SIGINT);
    assert_true(postgres_server_again(server));
    assert_int_equal(test_claim_count(b), 0);
    test_must_append(a, 1, 1);
    sgi_store_unref(a);
    sgi_store_unref(b);
}

/* ---- a standby that replaces the server ---- */

typedef struct pair {
    postgres_server *primary, *standby;
    cutting_proxy *proxy;
    char url[80];
} pair;

static void pair_begin(pair *p)
{
    assert_true(postgres_server_start(NULL, &p->primary));
    p->proxy = start_proxy(p->primary, 0);
    snprintf(p->url, sizeof p->url, "%s", through(p->proxy));
}

static void pair_add_standby(pair *p)
{
    assert_true(postgres_server_start_standby(p->primary, &p->standby));
    while (postgres_server_do(p->primary, "SELECT count(*) FROM pg_stat_replication "
                                          "WHERE state = 'streaming'") < 1)
        ;
}

/* The primary is gone; its clients reach the standby. */
static void pair_turn(pair *p)
{
    uint16_t port = cutting_proxy_port(p->proxy);
    postgres_server_signal(p->primary, SIGQUIT);
    cutting_proxy_stop(p->proxy);
    p->proxy = start_proxy(p->standby, port);
}

static void pair_end(pair *p)
{
    cutting_proxy_stop(p->proxy);
    postgres_server_stop(p->standby);
    postgres_server_stop(p->primary);
}

typedef struct writer {
    segue_store *store;
    segue_status status;
} writer;

static void *append_next(void *user)
{
    writer *w = user;
    w->status = append(w->store, 1, 6);
    return NULL;
}

/* Each commit waits for the standby. A commit that finds no primary waits until the
 * standby is promoted. */
static void promotion_of_a_synchronous_standby_loses_nothing(void **state)
{
    (void)state;
    pair p = {0};
    test_ear ear;
    pthread_t thread;
    int32_t ended = -1;
    pair_begin(&p);
    segue_store *alive = open_for(p.url, LASTING_MS), *dead = open_for(p.url, LASTING_MS);
    pair_add_standby(&p);
    postgres_server_do(p.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    postgres_server_do(p.primary, "SELECT pg_reload_conf()::int");
    while (postgres_server_do(p.primary, "SELECT count(*) FROM pg_stat_replication "
                                         "WHERE sync_state = 'sync'") < 1)
        ;
    test_ear_open(&ear, alive);
    test_must_create(alive, 1);
    test_must_create(dead, 2);
    for (uint64_t seq = 1; seq <= 5; seq++)
        test_must_append(alive, 1, seq);
    pair_turn(&p);
    writer w = {.store = alive};
    assert_int_equal(pthread_create(&thread, NULL, append_next, &w), 0);
    assert_true(cutting_proxy_await(p.proxy, CUTTING_CONNECTIONS, 4, PATIENCE_MS));
    assert_true(postgres_server_promote(p.standby));
    pthread_join(thread, NULL);
    assert_int_equal(w.status, SEGUE_OK);
    test_ear_wait(&ear, SEGUE_STORE_DOUBT, 0);
    assert_int_equal(vouch(&ear, 1, 6), SEGUE_OK);
    test_assert_log(alive, 1, 6);
    test_must_append(alive, 1, 7);
    /* Nobody can tell this of what a dead owner left. */
    postgres_server_do(p.standby, "UPDATE segue.operation SET owner = NULL "
                                  "WHERE task_id = 'task-2'");
    assert_int_equal(sgi_store_claim(alive, keep_ended, &ended), SEGUE_OK);
    assert_int_equal(ended, SEGUE_STORE_TORN);
    test_ear_close(&ear);
    sgi_store_unref(alive);
    sgi_store_unref(dead);
    pair_end(&p);
}

/* An owner was silent, and another one claimed its operation and wrote. The standby that
 * replaces the server knows nothing of that. The first owner cannot vouch for the log. */
static void lost_claim_does_not_bring_its_owner_back(void **state)
{
    (void)state;
    pair p = {0};
    test_ear ear;
    pair_begin(&p);
    segue_store *silent = open_for(p.url, LASTING_MS);
    segue_store *other = open_for(p.url, LASTING_MS);
    test_ear_open(&ear, silent);
    test_must_create(silent, 1);
    test_must_append(silent, 1, 1);
    test_must_create(other, 2);
    lapse(p.primary, 1, 1);
    pair_add_standby(&p);
    assert_true(postgres_server_promote(p.standby)); /* the servers part here */
    assert_int_equal(test_claim_count(other), 1);
    test_must_append(other, 1, 2);
    pair_turn(&p);
    test_must_append(other, 2, 1);
    assert_int_equal(vouch(&ear, 1, 1), SEGUE_E_STATE);
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, 1, 2);
    assert_int_equal(test_commit_by(&ear, test_write_append(1, 2, data, len)),
                     SEGUE_E_STATE);
    test_ear_close(&ear);
    sgi_store_unref(silent);
    sgi_store_unref(other);
    pair_end(&p);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(only_the_owner_writes, clear),
        cmocka_unit_test_setup(what_was_released_is_anybodys_at_once, clear),
        cmocka_unit_test_setup(one_that_was_cut_off_is_fenced, clear),
        cmocka_unit_test_setup(late_copy_of_a_call_does_nothing, clear),
        cmocka_unit_test_setup(restart_of_the_server_orphans_nobody, clear),
        cmocka_unit_test(promotion_of_a_synchronous_standby_loses_nothing),
        cmocka_unit_test(lost_claim_does_not_bring_its_owner_back),
    };
    if (!postgres_server_start(NULL, &server))
        return 1;
    int failures = cmocka_run_group_tests(cases, NULL, NULL);
    postgres_server_stop(server);
    return failures;
}
