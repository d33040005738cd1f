/* Opening Redis stores in tests, and waiting for what takes real time: leases are kept by
 * the server's clock, which nothing here can move. */
#include "support/redis_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_MS 120000

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
                                   .lease_ms = 3000};
    if (sgi_store_redis_new(url, &options, &store, message, sizeof message))
        fail_msg("%s: %s", url, message);
    return store;
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
    int64_t end = redis_kit_now_us() + PATIENCE_MS * 1000;
    size_t got = test_claim_count(store);
    while (got < count && redis_kit_now_us() < end) {
        redis_kit_sleep_ms(5);
        got += test_claim_count(store);
    }
    assert_int_equal(got, count);
}
