/* The errors that Redis may return, provoked at a real server. The store waits until a
 * temporary error is over and continues by itself. Any other error fails at once. Nothing
 * is written that was refused. label: threads */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "store/redis_server_info.h"
#include "support/redis_kit.h"
#include "support/server_process.h"

#include <cmocka.h>

#define PATIENCE_MS 150 /* time limit of a store that meets other errors */

static redis_server *server;

/* The sections that are read, with all values of a suitable server. */
#define VERSION(v) "# Server\r\nredis_version:" v "\r\nredis_mode:standalone\r\n"
#define RUN(c) "run_id:" c c c c c "\r\n"
#define LINE(c) "role:master\r\nmaster_replid:" c c c c c "\r\n"
#define BEFORE(c) "master_replid2:" c c c c c "\r\n"
#define AOF "aof_enabled:1\r\n"

static segue_status append(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    return test_commit_one(store, test_write_append(n, seq, data, len));
}

/* Makes an operation with one entry. */
static segue_status append_new(segue_store *store, uint32_t n)
{
    test_record r;
    test_record_init(&r, n);
    segue_status status = test_commit_one(store, test_write_create(&r));
    return status ? status : append(store, n, 1);
}

static void begin(segue_store *store)
{
    test_record r;
    test_record_init(&r, 1);
    redis_kit_commit(store, test_write_create(&r));
    redis_kit_until(append(store, 1, 1) == SEGUE_OK);
}

static void go_on(segue_store *store)
{
    redis_kit_until(append(store, 1, 2) == SEGUE_OK);
    redis_kit_until(test_read_status(store, 1) == SEGUE_OK);
}

/* While the condition lasts, commits fail, no sooner than least_ms (0 = at once, for a
 * store with a long time limit). Afterwards the same commit is stored once. Reading
 * continues if it is possible. */
static void endure(const char *url, int64_t least_ms, bool reads, const char *set,
                   const char *unset)
{
    segue_store *store =
        least_ms ? redis_kit_open_hurried(url, PATIENCE_MS) : redis_kit_open_lasting(url);
    begin(store);
    assert_true(redis_server_do(server, "%s", set) >= 0);
    int64_t began = redis_kit_now_us();
    assert_int_equal(append(store, 1, 2), SEGUE_E_STORE);
    int64_t took = (redis_kit_now_us() - began) / 1000;
    assert_true(least_ms ? took >= least_ms : took < REDIS_KIT_TIMEOUT_MS);
    if (reads)
        redis_kit_until(test_read_status(store, 1) == SEGUE_OK);
    assert_true(redis_server_do(server, "%s", unset) >= 0);
    go_on(store);
    segue_store *calm = redis_kit_open_lasting(redis_server_url(server));
    test_assert_log(calm, 1, 2);
    sgi_store_unref(calm);
    redis_kit_commit(store, test_write_simple(SEGUE_STORE_DELETE, 1));
    sgi_store_unref(store);
}

static void replica_is_left_for_the_primary(void **state)
{
    (void)state;
    endure(redis_server_url(server), PATIENCE_MS - 1, false, "REPLICAOF 127.0.0.1 1",
           "REPLICAOF NO ONE");
}

static void too_few_replicas_are_waited_for(void **state)
{
    (void)state;
    endure(redis_server_url(server), PATIENCE_MS - 1, true,
           "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0");
}

static const char *as_user(const char *name)
{
    static char url[96];
    snprintf(url, sizeof url, "redis://%s:abc@127.0.0.1:%d", name,
             redis_server_port(server));
    return url;
}

static void lost_permission_fails_at_once(void **state)
{
    (void)state;
    assert_true(redis_server_do(server, "ACL SETUSER ann on >abc ~* &* +@all") >= 0);
    endure(as_user("ann"), 0, true, "ACL SETUSER ann -xadd", "ACL SETUSER ann +@all");
}

static void lost_user_may_come_back(void **state)
{
    (void)state;
    assert_true(redis_server_do(server, "ACL SETUSER bob on >abc ~* &* +@all") >= 0);
    endure(as_user("bob"), PATIENCE_MS - 1, false, "ACL DELUSER bob",
           "ACL SETUSER bob on >abc ~* &* +@all");
}

/* Redis takes no writes when a snapshot cannot be written, if so configured. */
static void disk_that_fails_is_waited_for(void **state)
{
    (void)state;
    static const char *const extra[] = {"--save", "3600", "1", NULL};
    redis_server_options options = {.extra = extra};
    redis_server *own, *shared = server;
    char path[120];
    assert_true(redis_server_start(&options, &own));
    const char *place = redis_server_unix_url(own) + strlen("unix://");
    snprintf(path, sizeof path, "%.*s/dump.rdb", (int)(strrchr(place, '/') - place),
             place);
    segue_store *store = redis_kit_open_hurried(redis_server_url(own), PATIENCE_MS);
    begin(store);
    assert_int_equal(mkdir(path, 0700), 0);
    redis_kit_until(redis_server_do(own, "BGSAVE") >= 0);
    redis_kit_until(!redis_server_info(own, "rdb_bgsave_in_progress"));
    redis_kit_until(redis_server_do(own, "SET x y") < 0);
    assert_int_equal(append(store, 1, 2), SEGUE_E_STORE);
    redis_kit_until(test_read_status(store, 1) == SEGUE_OK);
    assert_int_equal(rmdir(path), 0);
    redis_kit_until(redis_server_do(own, "BGSAVE") >= 0);
    redis_kit_until(redis_server_do(own, "SET x y") >= 0);
    go_on(store);
    sgi_store_unref(store);
    redis_server_stop(own);
    server = shared;
}

/* Another program's script does not end. */
static void busy_server_is_waited_for(void **state)
{
    (void)state;
    segue_store *store = redis_kit_open_hurried(redis_server_url(server), PATIENCE_MS);
    redisContext *busy = redisConnect("127.0.0.1", redis_server_port(server));
    int done = 0;
    assert_true(busy && !busy->err);
    assert_true(redis_server_do(server, "CONFIG SET lua-time-limit 5") >= 0);
    begin(store);
    redisAppendCommand(busy, "EVAL %s 0", "while true do end");
    while (!done)
        assert_int_equal(redisBufferWrite(busy, &done), REDIS_OK);
    redis_kit_until(redis_server_do(server, "PING") < 0);
    assert_int_equal(append(store, 1, 2), SEGUE_E_STORE);
    assert_true(redis_server_do(server, "SCRIPT KILL") >= 0);
    go_on(store);
    redisFree(busy);
    sgi_store_unref(store);
}

/* A server that was restarted answers LOADING until it has read its file. A store waits
 * for its time limit, and what it has stored is there afterwards. */
static void loading_server_is_waited_for(void **state)
{
    (void)state;
    enum { OPERATIONS = 400 };
    static const char *const extra[] = {"--key-load-delay", "20000",
                                        "--loading-process-events-interval-bytes", "1024",
                                        NULL};
    redis_server_options options = {.extra = extra};
    redis_server *own;
    assert_true(redis_server_start(&options, &own));
    segue_store *calm = redis_kit_open_lasting(redis_server_url(own));
    segue_store *hurried = redis_kit_open_hurried(redis_server_url(own), PATIENCE_MS);
    for (uint32_t n = 1; n <= OPERATIONS; n++)
        redis_kit_until(append_new(calm, n) == SEGUE_OK);
    test_record r;
    test_record_init(&r, OPERATIONS + 1);
    redis_kit_commit(hurried, test_write_create(&r));
    assert_true(redis_server_do(own, "SAVE") >= 0);
    redis_server_signal(own, SIGKILL);
    redis_server_launch(own);
    redis_kit_until(redis_server_info(own, "loading") == 1);
    assert_int_equal(append(hurried, OPERATIONS + 1, 1), SEGUE_E_STORE);
    assert_int_equal(redis_server_info(own, "loading"), 1);
    assert_true(redis_server_do(own, "CONFIG SET key-load-delay 0") >= 0);
    assert_int_equal(append(calm, 1, 2), SEGUE_OK);
    assert_int_equal(redis_server_info(own, "loading"), 0);
    redis_kit_until(append(hurried, OPERATIONS + 1, 1) == SEGUE_OK);
    test_assert_log(calm, 1, 2);
    for (uint32_t n = 2; n <= OPERATIONS; n++)
        test_assert_log(calm, n, 1);
    sgi_store_unref(hurried);
    sgi_store_unref(calm);
    redis_server_stop(own);
}

/* ---- is it the same server ---- */

static void node_of_a_cluster_is_refused(void **state)
{
    (void)state;
    char port[8], message[300] = "";
    snprintf(port, sizeof port, "%d", server_process_free_port());
    const char *const extra[] = {"--cluster-enabled", "yes", "--cluster-port", port,
                                 NULL};
    redis_server_options options = {.extra = extra};
    redis_server *node;
    segue_store *store = NULL;
    assert_true(redis_server_start(&options, &node));
    assert_int_equal(
        redis_kit_status(redis_server_url(node), REDIS_KIT_TIMEOUT_MS, &store, message),
        SEGUE_E_UNSUPPORTED);
    assert_non_null(strstr(message, "Redis Cluster"));
    redis_server_stop(node);
}

static void servers_are_known_by_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *info, *words;
        segue_status status;
    } cases[] = {
        {VERSION("7.0.15") LINE("aaaaaaaa"), NULL, SEGUE_OK},
        {VERSION("5.0.0"), NULL, SEGUE_OK},
        {VERSION("7.2.4") "valkey_version:8.1.0\r\nmaxmemory_policy:noeviction\r\n", NULL,
         SEGUE_OK},
        {VERSION("4.0.14"), "the server is 4.0.14", SEGUE_E_UNSUPPORTED},
        {"", "of an unknown version", SEGUE_E_UNSUPPORTED},
        {"redis_version:7.0.15\r\nredis_mode:sentinel\r\n", "Sentinel",
         SEGUE_E_UNSUPPORTED},
        {VERSION("7.0.15") "cluster_enabled:1\r\n", "Cluster", SEGUE_E_UNSUPPORTED},
        {VERSION("7.0.15") "maxmemory_policy:volatile-ttl\r\n", "volatile-ttl",
         SEGUE_E_STORE},
        {VERSION("7.0.15") "role:slave\r\n", "replica", SEGUE_E_STORE},
        /* While loading, Redis reports that it has no file. */
        {VERSION("7.0.15") "loading:1\r\naof_enabled:0\r\n", "LOADING", SEGUE_E_STORE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgi_redis_server_info peer;
        char fault[200] = "";
        assert_int_equal(
            sgi_redis_server_info_read(&peer, cases[i].info, NULL, fault, sizeof fault),
            cases[i].status);
        if (cases[i].words && !strstr(fault, cases[i].words))
            fail_msg("%s", fault);
    }
}

static bool continues(const char *was, const char *is, const char *appendfsync)
{
    sgi_redis_server_info before, after;
    char fault[200];
    assert_int_equal(sgi_redis_server_info_read(&before, was, NULL, fault, sizeof fault),
                     0);
    assert_int_equal(
        sgi_redis_server_info_read(&after, is, appendfsync, fault, sizeof fault), 0);
    return sgi_redis_server_info_has_history(&after, before.history);
}

static void only_what_cannot_have_lost_anything_continues(void **state)
{
    (void)state;
#define BASE VERSION("7.0.15") AOF
    static const char first[] = BASE RUN("aaaaaaaa") LINE("bbbbbbbb") BEFORE("00000000");
    static const char again[] = BASE RUN("cccccccc") LINE("dddddddd") BEFORE("00000000");
    static const char other[] = BASE RUN("cccccccc") LINE("dddddddd") BEFORE("bbbbbbbb");
    static const char alone[] = BASE RUN("aaaaaaaa") LINE("dddddddd") BEFORE("00000000");
    static const char back[] = BASE RUN("aaaaaaaa") LINE("dddddddd") BEFORE("eeeeeeee");
    static const char bare[] = VERSION("7.0.15") RUN("cccccccc") LINE("dddddddd");
    assert_true(continues(first, first, NULL));
    assert_true(continues(first, again, "always"));
    assert_false(continues(first, again, "everysec"));
    assert_false(continues(first, again, NULL)); /* the server does not report this
                                                  * value */
    assert_false(continues(first, bare, "always"));
    assert_false(continues(first, other, "always")); /* a replica was promoted */
    assert_true(continues(first, alone, NULL));      /* it only forgot its replicas */
    /* the server was demoted, and promoted again */
    assert_false(continues(first, back, "always"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replica_is_left_for_the_primary),
        cmocka_unit_test(too_few_replicas_are_waited_for),
        cmocka_unit_test(lost_permission_fails_at_once),
        cmocka_unit_test(lost_user_may_come_back),
        cmocka_unit_test(disk_that_fails_is_waited_for),
        cmocka_unit_test(busy_server_is_waited_for),
        cmocka_unit_test(loading_server_is_waited_for),
        cmocka_unit_test(node_of_a_cluster_is_refused),
        cmocka_unit_test(servers_are_known_by_what_they_say),
        cmocka_unit_test(only_what_cannot_have_lost_anything_continues),
    };
    if (!redis_server_start(NULL, &server))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_server_stop(server);
    return failed;
}
