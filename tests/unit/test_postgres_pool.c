/* The PostgreSQL store through pgbouncer. In session mode the store works. In transaction
 * mode the store works with the option listen, and refuses to open without it.
 * label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/news_kit.h"
#include "support/postgres_pool.h"
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

static segue_status open_store(const char *url, segue_store **out, char message[512])
{
    segue_store_options options = {
        .struct_size = sizeof options, .timeout_ms = PATIENCE_MS, .lease_ms = LASTING_MS};
    *message = 0;
    return sgi_store_postgres_new(url, &options, out, message, 512);
}

static segue_store *must_open(const char *url)
{
    char message[512];
    segue_store *store = NULL;
    if (open_store(url, &store, message))
        fail_msg("%s: %s", url, message);
    return store;
}

static postgres_pool *must_start(const char *mode, int size)
{
    postgres_pool *pool = NULL;
    assert_true(postgres_pool_start(server, mode, size, &pool));
    return pool;
}

/* Two stores share operations: writes, claims and news pass between them. */
static void expect_shared(const char *url)
{
    segue_store *mine = must_open(url), *theirs = must_open(url);
    test_ear ear;
    test_ear_open(&ear, theirs);
    test_must_create(mine, 1);
    assert_int_equal(test_follow(&ear, 1, true), SEGUE_OK);
    for (uint64_t seq = 1; seq <= 20; seq++)
        test_must_append(mine, 1, seq);
    test_ear_wait(&ear, SEGUE_STORE_GREW, 1);
    test_assert_log(theirs, 1, 20);
    assert_int_equal(test_commit_one(mine, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    assert_int_equal(test_claim_count(theirs), 1);
    test_must_append(theirs, 1, 21);
    test_ear_close(&ear);
    sgi_store_unref(theirs);
    sgi_store_unref(mine);
}

static void session_mode_works(void **state)
{
    (void)state;
    postgres_pool *pool = must_start("session", 20);
    expect_shared(postgres_pool_url(pool));
    postgres_pool_stop(pool);
}

/* The pool has one server connection or several: with one, the store's connections share
 * it, and nothing that one of them leaves in the session is lost. */
static void transaction_mode_is_refused_with_the_reason(void **state)
{
    static const int sizes[] = {1, 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char message[512];
        segue_store *store = NULL;
        clear(state);
        postgres_pool *pool = must_start("transaction", sizes[i]);
        for (int round = 0; round < 3; round++) {
            segue_status status = open_store(postgres_pool_url(pool), &store, message);
            if (status != SEGUE_E_UNSUPPORTED || !strstr(message, "LISTEN") ||
                !strstr(message, "transaction mode") || !strstr(message, "option listen"))
                fail_msg("%d connections: status %d, %s", sizes[i], status, message);
        }
        postgres_pool_stop(pool);
    }
}

static void encode(char *to, const char *from)
{
    for (; *from; from++)
        to += sprintf(to, strchr(":/@?&=%", *from) ? "%%%02X" : "%c", *from);
    *to = 0;
}

static void transaction_mode_works_with_listen(void **state)
{
    static const int sizes[] = {1, 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char url[512], listen[256];
        clear(state);
        postgres_pool *pool = must_start("transaction", sizes[i]);
        encode(listen, postgres_server_url(server));
        snprintf(url, sizeof url, "%s?listen=%s", postgres_pool_url(pool), listen);
        expect_shared(url);
        postgres_pool_stop(pool);
    }
}

/* The connection for calls and the one for changes must lead to one database. */
static void listen_to_another_database_is_refused(void **state)
{
    (void)state;
    char url[512], listen[256], message[512];
    segue_store *store = NULL;
    postgres_server_do(server, "DROP DATABASE IF EXISTS other");
    postgres_server_do(server, "CREATE DATABASE other");
    snprintf(url, sizeof url, "postgresql://segue@127.0.0.1:%d/other",
             postgres_server_port(server));
    sgi_store_unref(must_open(url)); /* it has the tables */
    encode(listen, url);
    snprintf(url, sizeof url, "%s?listen=%s", postgres_server_url(server), listen);
    assert_int_equal(open_store(url, &store, message), SEGUE_E_UNSUPPORTED);
    if (!strstr(message, "same database"))
        fail_msg("%s", message);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(session_mode_works, clear),
        cmocka_unit_test(transaction_mode_is_refused_with_the_reason),
        cmocka_unit_test(transaction_mode_works_with_listen),
        cmocka_unit_test_setup(listen_to_another_database_is_refused, clear),
    };
    if (!postgres_server_start(NULL, &server))
        return 1;
    int failures = cmocka_run_group_tests(cases, NULL, NULL);
    postgres_server_stop(server);
    return failures;
}
