/* Opens Redis stores in tests and waits for changes that take real time. Leases use the
 * clock of the Redis server, which the tests cannot move. Instead, a test can write into
 * the server's data (see redis_script.c) that a lease has lapsed, so no test has to race
 * with the clock. */
#include "support/redis_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define LASTING_MS 3600000

segue_status redis_kit_status(const char *url, int64_t timeout_ms, segue_store **out,
                              char *message)
{
    segue_store_options options = {.struct_size = sizeof options,
                                   .timeout_ms = timeout_ms,
                                   .lease_ms = REDIS_KIT_LEASE_MS};
    return sgi_store_redis_new(url, &options, out, message, message ? 300 : 0);
}

segue_store *redis_kit_open(const char *url)
{
    char message[300];
    segue_store *store = NULL;
    segue_status status = redis_kit_status(url, REDIS_KIT_TIMEOUT_MS, &store, message);
    if (status)
        fail_msg("%s: %d, %s", url, (int)status, message);
    return store;
}

segue_store *redis_kit_open_lasting(const char *url)
{
    char message[300];
    segue_store *store = NULL;
    segue_store_options options = {.struct_size = sizeof options,
                                   .timeout_ms = REDIS_KIT_TIMEOUT_MS,
                                   .lease_ms = LASTING_MS};
    if (sgi_store_redis_new(url, &options, &store, message, sizeof message))
        fail_msg("%s: %s", url, message);
    return store;
}

segue_store *redis_kit_open_hurried(const char *url, int64_t timeout_ms)
{
    segue_store *store = NULL;
    redis_kit_until(redis_kit_status(url, timeout_ms, &store, NULL) == SEGUE_OK);
    return store;
}

void redis_kit_commit(segue_store *store, segue_store_write write)
{
    redis_kit_until(test_commit_one(store, write) == SEGUE_OK);
}

/* Spaces separate the arguments, so the arguments themselves have no spaces. */
void redis_kit_lapse(redis_server *server, int owner)
{
    assert_int_equal(
        redis_server_do(
            server,
            "EVAL "
            "local\tP='{segue}:'for\t_,o\tin\tipairs(redis.call('HKEYS',P..'owners'))"
            "do\tif\to:match('^%d%%.')then\tredis.call('DEL',P..'lease:'..o)"
            "redis.call('HSET',P..'owners',o,'1')"
            "local\tt=redis.call('HGET',P..'seen',o)"
            "if\tt\tthen\tredis.call('HSET',P..'seen',o,"
            "string.format('%%.0f',t-%d))end\treturn\t1\tend\tend\treturn\t0 0",
            owner, LASTING_MS),
        1);
}

const char *redis_kit_through(const cutting_proxy *proxy)
{
    static char url[64];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", cutting_proxy_port(proxy));
    return url;
}

int64_t redis_kit_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void redis_kit_sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
              NULL);
}

void redis_kit_claim(segue_store *store, size_t count)
{
    size_t got = 0;
    redis_kit_until((got += test_claim_count(store)) >= count);
    assert_int_equal(got, count);
}
