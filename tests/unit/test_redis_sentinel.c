/* Sentinel replaces the primary, which was killed. The store does not ask Sentinel: its
 * URL names an address that leads to the primary, here a proxy that this test directs as
 * Sentinel says. Replication is asynchronous, so the last commits may be missing. Each
 * operation that lacks an entry is known, and each other one continues.
 * label: threads */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "support/news_kit.h"
#include "support/redis_kit.h"

#include <cmocka.h>

#define OPERATIONS 20
#define ENTRIES 50

/* Two servers, the Sentinel that watches them, and the address of the primary. */
typedef struct watched {
    redis_server *first, *second, *sentinel;
    char directory[40];
    char config[64];
    cutting_proxy *proxy;
    char url[64];
} watched;

static void lead_to(watched *w, uint16_t port)
{
    cutting_options options = {.target_port = port};
    if (w->proxy) {
        options.port = cutting_proxy_port(w->proxy);
        cutting_proxy_stop(w->proxy);
    }
    assert_true(cutting_proxy_start(&options, &w->proxy));
    snprintf(w->url, sizeof w->url, "%s", redis_kit_through(w->proxy));
}

static void start_sentinel(watched *w)
{
    strcpy(w->directory, "/tmp/segue-sentinel-XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    snprintf(w->config, sizeof w->config, "%s/sentinel.conf", w->directory);
    FILE *file = fopen(w->config, "w");
    assert_non_null(file);
    fprintf(file,
            "sentinel monitor store 127.0.0.1 %d 1\n"
            "sentinel down-after-milliseconds store 3600000\n"
            "sentinel failover-timeout store 3000\n",
            redis_server_port(w->first));
    assert_int_equal(fclose(file), 0);
    redis_server_options options = {.config = w->config,
                                    .extra = (const char *const[]){"--sentinel", NULL}};
    assert_true(redis_server_start(&options, &w->sentinel));
}

/* Asks Sentinel for the port of the primary. */
static uint16_t primary_port(const watched *w)
{
    uint16_t port = 0;
    redisContext *context = redisConnect("127.0.0.1", redis_server_port(w->sentinel));
    redisReply *reply =
        context && !context->err
            ? redisCommand(context, "SENTINEL get-master-addr-by-name store")
            : NULL;
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
        port = (uint16_t)atoi(reply->element[1]->str);
    if (reply)
        freeReplyObject(reply);
    if (context)
        redisFree(context);
    return port;
}

static void begin(watched *w)
{
    static const char *const extra[] = {"--repl-diskless-sync-delay", "0", NULL};
    redis_server_options options = {.extra = extra};
    *w = (watched){0};
    assert_true(redis_server_start(&options, &w->first));
    assert_true(redis_server_start(&options, &w->second));
    assert_true(redis_server_do(w->second, "REPLICAOF 127.0.0.1 %d",
                                redis_server_port(w->first)) >= 0);
    start_sentinel(w);
    redis_kit_until(redis_server_info(w->first, "connected_slaves") == 1);
    redis_kit_until(redis_server_do(w->sentinel, "SENTINEL REPLICAS store") == 1);
    assert_int_equal(primary_port(w), redis_server_port(w->first));
    lead_to(w, redis_server_port(w->first));
}

static void end(watched *w)
{
    cutting_proxy_stop(w->proxy);
    redis_server_stop(w->sentinel);
    redis_server_stop(w->first);
    redis_server_stop(w->second);
    unlink(w->config);
    rmdir(w->directory);
}

/* The primary dies; Sentinel finds that out and names another one. Until then it is as
 * patient as a slow machine needs. */
static void fail_over(watched *w)
{
    assert_true(redis_server_do(w->sentinel,
                                "SENTINEL SET store down-after-milliseconds 300") >= 0);
    redis_server_signal(w->first, SIGKILL);
    redis_kit_until(primary_port(w) == redis_server_port(w->second));
    redis_kit_until(redis_server_do(w->second, "SET probe 1") >= 0);
    lead_to(w, redis_server_port(w->second));
}

static segue_status append(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    return test_commit_one(store, test_write_append(n, seq, data, len));
}

/* The owner confirms how far its operation is. */
static segue_status vouch(segue_store *store, uint32_t n, uint64_t upto)
{
    segue_store_write write = test_write_taken(n, 0);
    write.entry.event = upto;
    return test_commit_one(store, write);
}

static void what_the_replica_has_goes_on_and_the_rest_is_told(void **state)
{
    (void)state;
    watched w;
    test_ear ear;
    size_t whole = 0;
    begin(&w);
    segue_store *store = redis_kit_open(w.url);
    test_ear_open(&ear, store);
    for (uint32_t n = 1; n <= OPERATIONS; n++)
        test_must_create(store, n);
    for (uint64_t seq = 1; seq <= ENTRIES; seq++)
        for (uint32_t n = 1; n <= OPERATIONS; n++)
            test_must_append(store, n, seq);
    fail_over(&w);
    test_ear_wait(&ear, SEGUE_STORE_DOUBT, 0); /* told without a write */
    for (uint32_t n = 1; n <= OPERATIONS; n++) {
        segue_status status = vouch(store, n, ENTRIES);
        if (status == SEGUE_OK) {
            whole++;
            test_must_append(store, n, ENTRIES + 1);
            test_assert_log(store, n, ENTRIES + 1);
        } else if (status != SEGUE_E_NOT_FOUND) {
            /* What is missing is the end, and nothing is put in its place. */
            assert_int_equal(status, SEGUE_E_STATE);
            assert_int_equal(append(store, n, ENTRIES + 1), SEGUE_E_STATE);
        }
    }
    print_message("%zu of %d operations lacked nothing\n", whole, OPERATIONS);
    test_ear_close(&ear);
    sgi_store_unref(store);
    end(&w);
}

/* With min-replicas-to-write a primary that has lost its replica takes nothing, so no
 * replica can lack more than the lag that is allowed. */
static void primary_without_its_replica_takes_nothing(void **state)
{
    (void)state;
    watched w;
    begin(&w);
    segue_store *store = redis_kit_open_hurried(w.url, 200);
    redis_kit_until(redis_server_info(w.first, "connected_slaves") == 1);
    assert_true(redis_server_do(w.first, "CONFIG SET min-replicas-max-lag 1") >= 0);
    assert_true(redis_server_do(w.first, "CONFIG SET min-replicas-to-write 1") >= 0);
    test_record r;
    test_record_init(&r, 1);
    redis_kit_commit(store, test_write_create(&r));
    redis_server_signal(w.second, SIGKILL);
    redis_kit_until(redis_server_info(w.first, "connected_slaves") == 0);
    assert_int_equal(append(store, 1, 1), SEGUE_E_STORE);
    redis_kit_until(test_read_status(store, 1) == SEGUE_OK);
    test_assert_log(store, 1, 0);
    assert_true(redis_server_do(w.first, "CONFIG SET min-replicas-to-write 0") >= 0);
    redis_kit_until(append(store, 1, 1) == SEGUE_OK);
    test_assert_log(store, 1, 1);
    sgi_store_unref(store);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_replica_has_goes_on_and_the_rest_is_told),
        cmocka_unit_test(primary_without_its_replica_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
