/* Opening a store in Redis: URLs, options, TLS, passwords, servers that cannot serve, and
 * databases and prefixes that keep stores apart. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/certificates.h"
#include "support/news_kit.h"
#include "support/redis_kit.h"
#include "support/server_process.h"

#include <cmocka.h>

static redis_server *server;

static int set_up(void **state)
{
    (void)state;
    return redis_server_do(server, "FLUSHALL") < 0;
}

/* Expects that opening fails with this status, with these words in the message and never
 * with the forbidden word. */
static void expect_closed(const char *url, segue_status status, const char *words,
                          const char *never)
{
    char message[300] = "";
    segue_store *store = NULL;
    assert_int_equal(redis_kit_status(url, REDIS_KIT_TIMEOUT_MS, &store, message),
                     status);
    assert_null(store);
    if (!strstr(message, words))
        fail_msg("%s: %s", url, message);
    if (never)
        assert_null(strstr(message, never));
}

/* ---- opening ---- */

static void malformed_urls_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "",
        "127.0.0.1:6379",
        "http://host",
        "redis://",
        "redis://:1",
        "redis://host:0",
        "redis://host:65536",
        "redis://host:x",
        "redis://host/x",
        "redis://host/1/2",
        "redis://user@host",
        "redis://user:@host",
        "redis://u:%2@host",
        "redis://u:%00@host",
        "redis://[::1",
        "redis://[::1]x",
        "redis://host?db=1",
        "redis://host?prefix=",
        "redis://host?prefix=a{b",
        "redis://host?lease",
        "redis://host?ca=/x",
        "unix://",
        "unix://socket",
        "unix:///s?db=-1",
        "unix:///s?user=u",
        "unix:///s?what=1",
        "redis://host?prefix="
        "01234567890123456789012345678901234567890123456789012345678901234"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        expect_closed(urls[i], SEGUE_E_INVALID, "redis: ", "u:%2");
    expect_closed(NULL, SEGUE_E_INVALID, "redis: ", NULL);
}

static void options_out_of_bounds_are_refused(void **state)
{
    (void)state;
    segue_store *store = NULL;
    segue_store_options bad[] = {{.timeout_ms = -1},
                                 {.lease_ms = -1},
                                 {.lease_ms = 99},
                                 {.lease_ms = INT64_MAX},
                                 {.timeout_ms = INT64_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(
            sgi_store_redis_new(redis_server_url(server), &bad[i], &store, NULL, 0),
            SEGUE_E_INVALID);
    assert_null(store);
}

static void nobody_there_is_said_at_once(void **state)
{
    (void)state;
    redis_server *other;
    char url[64];
    assert_true(redis_server_start(NULL, &other));
    snprintf(url, sizeof url, "%s", redis_server_url(other));
    redis_server_signal(other, SIGKILL);
    expect_closed(url, SEGUE_E_STORE, "refused", NULL);
    expect_closed("unix:///nonexistent/socket", SEGUE_E_STORE, "No such file", NULL);
    assert_true(redis_server_again(other));
    sgi_store_unref(redis_kit_open(url));
    redis_server_stop(other);
}

#ifdef SGI_REDIS_TLS

/* Starts a server with a certificate for these hosts; its URL begins with
 * rediss://127.0.0.1. */
static redis_server *start_tls(const char *hosts, const test_cert *authority, char *url,
                               char directory[])
{
    char paths[3][80], port[8];
    redis_server *secure;
    test_cert cert;
    snprintf(paths[0], sizeof *paths, "%s/cert.pem", directory);
    snprintf(paths[1], sizeof *paths, "%s/key.pem", directory);
    snprintf(paths[2], sizeof *paths, "%s/ca.pem", directory);
    test_cert_make_for(&cert, hosts, authority);
    test_cert_save(&cert, paths[0], paths[1]);
    test_cert_save(authority, paths[2], NULL);
    test_cert_free(&cert);
    snprintf(port, sizeof port, "%d", server_process_free_port());
    const char *extra[] = {"--tls-port",
                           port,
                           "--tls-cert-file",
                           paths[0],
                           "--tls-key-file",
                           paths[1],
                           "--tls-ca-cert-file",
                           paths[2],
                           "--tls-auth-clients",
                           "no",
                           NULL};
    redis_server_options options = {.extra = extra};
    assert_true(redis_server_start(&options, &secure));
    snprintf(url, 160, "rediss://127.0.0.1:%s?ca=%s", port, paths[2]);
    return secure;
}

static void tls_is_for_whom_the_url_names(void **state)
{
    (void)state;
    char directory[] = "/tmp/segue-redis-tls-XXXXXX", command[80], url[160];
    test_cert authority;
    assert_non_null(mkdtemp(directory));
    test_cert_make(&authority, "authority", TEST_KEY_EC, NULL);
    redis_server *ours = start_tls("IP:127.0.0.1", &authority, url, directory);
    segue_store *store = redis_kit_open(url);
    test_must_create(store, 1);
    test_must_append(store, 1, 1);
    sgi_store_unref(store);
    *strchr(url, '?') = 0; /* signed by an authority that the system does not know */
    expect_closed(url, SEGUE_E_STORE, "TLS: ", NULL);
    redis_server_stop(ours);
    ours = start_tls("DNS:other.test", &authority, url, directory);
    expect_closed(url, SEGUE_E_STORE, "TLS: ", NULL);
    redis_server_stop(ours);
    test_cert_free(&authority);
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

#else

static void tls_is_for_whom_the_url_names(void **state)
{
    (void)state;
    char url[64];
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d", redis_server_port(server));
    expect_closed(url, SEGUE_E_UNSUPPORTED, "TLS", NULL);
}

#endif

static void tls_to_a_server_without_it_fails(void **state)
{
    (void)state;
    segue_store *store = NULL;
    char message[300], url[64];
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d", redis_server_port(server));
    segue_status status = redis_kit_status(url, 500, &store, message);
    assert_true(status == SEGUE_E_UNSUPPORTED || status == SEGUE_E_STORE);
    assert_non_null(strstr(message, "TLS"));
}

static void password_decides(void **state)
{
    (void)state;
    redis_server *locked;
    redis_server_options options = {.password = "s3cret@word"};
    char url[160];
    assert_true(redis_server_start(&options, &locked));
    int port = redis_server_port(locked);
    expect_closed(redis_server_url(locked), SEGUE_E_STORE, "NOAUTH", NULL);
    snprintf(url, sizeof url, "redis://:wr0ng@127.0.0.1:%d", port);
    expect_closed(url, SEGUE_E_STORE, "WRONGPASS", "wr0ng");
    snprintf(url, sizeof url, "redis://:s3cret%%40word@127.0.0.1:%d", port);
    sgi_store_unref(redis_kit_open(url));
    snprintf(url, sizeof url, "%s?password=s3cret%%40word&db=3",
             redis_server_unix_url(locked));
    sgi_store_unref(redis_kit_open(url));
    /* Redis users have passwords, and may not be allowed every command. */
    assert_true(redis_server_do(locked,
                                "ACL SETUSER ann on >abc ~{segue}:* resetchannels "
                                "&{segue}:* +@all") >= 0);
    assert_true(redis_server_do(locked, "ACL SETUSER bob on >abc ~{segue}:* -@all +info "
                                        "+ping +script +auth +select") >= 0);
    snprintf(url, sizeof url, "redis://ann:abc@127.0.0.1:%d", port);
    segue_store *store = redis_kit_open(url);
    test_must_create(store, 1);
    sgi_store_unref(store);
    /* A user without permission to subscribe would never get messages of other stores. */
    assert_true(
        redis_server_do(locked,
                        "ACL SETUSER eve on >abc ~{segue}:* resetchannels +@all") >= 0);
    snprintf(url, sizeof url, "redis://eve:abc@127.0.0.1:%d", port);
    expect_closed(url, SEGUE_E_STORE, "SUBSCRIBE: NOPERM", NULL);
    snprintf(url, sizeof url, "redis://bob:abc@127.0.0.1:%d", port);
    expect_closed(url, SEGUE_E_STORE, "NOPERM", "abc");
    redis_server_stop(locked);
}

static void unfit_servers_are_refused(void **state)
{
    (void)state;
    const char *url = redis_server_url(server);
    assert_true(redis_server_do(server, "CONFIG SET maxmemory-policy allkeys-lru") >= 0);
    expect_closed(url, SEGUE_E_STORE, "allkeys-lru", NULL);
    assert_true(redis_server_do(server, "CONFIG SET maxmemory-policy noeviction") >= 0);
    assert_true(redis_server_do(server, "REPLICAOF 127.0.0.1 1") >= 0);
    expect_closed(url, SEGUE_E_STORE, "replica", NULL);
    assert_true(redis_server_do(server, "REPLICAOF NO ONE") >= 0);
    assert_true(redis_server_do(server, "SET {segue}:format 99") >= 0);
    expect_closed(url, SEGUE_E_STORE_CORRUPT, "newer version of Segue (format 99", NULL);
    /* Another prefix is another store. */
    char other[80];
    snprintf(other, sizeof other, "%s?prefix=other", url);
    sgi_store_unref(redis_kit_open(other));
}

static void databases_and_prefixes_are_apart(void **state)
{
    (void)state;
    char urls[3][96];
    segue_store *stores[3];
    snprintf(urls[0], sizeof urls[0], "%s", redis_server_url(server));
    snprintf(urls[1], sizeof urls[1], "%s/5", redis_server_url(server));
    snprintf(urls[2], sizeof urls[2], "%s?prefix=second", redis_server_url(server));
    for (uint32_t i = 0; i < 3; i++) {
        stores[i] = redis_kit_open(urls[i]);
        test_must_create(stores[i], i);
        test_must_append(stores[i], i, 1);
    }
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t n = 0; n < 3; n++)
            assert_int_equal(test_find(stores[i], n),
                             i == n ? SEGUE_OK : SEGUE_E_NOT_FOUND);
    for (uint32_t i = 0; i < 3; i++)
        sgi_store_unref(stores[i]);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(malformed_urls_are_refused),
        cmocka_unit_test(options_out_of_bounds_are_refused),
        cmocka_unit_test(nobody_there_is_said_at_once),
        cmocka_unit_test(tls_is_for_whom_the_url_names),
        cmocka_unit_test(tls_to_a_server_without_it_fails),
        cmocka_unit_test(password_decides),
        cmocka_unit_test_setup(unfit_servers_are_refused, set_up),
        cmocka_unit_test_setup(databases_and_prefixes_are_apart, set_up),
    };
    if (!redis_server_start(NULL, &server))
        return 1;
    int failures =
        cmocka_run_group_tests_name("opening a store in Redis", cases, NULL, NULL);
    redis_server_stop(server);
    return failures ? 1 : 0;
}
