/* Times from a peer or a store may be any number of 64 bits. Sums stop at the ends of
 * that range. A time beyond the range is never reached, instead of being due at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/client/request.h"
#include "engine/log/retention.h"
#include "engine/dialect/resumable/resumable_clock.h"
#include "support/client_kit.h"
#include "support/fake_host.h"
#include "support/test_mem.h"
#include "wire/sse.h"

#define MOST INT64_MAX
#define LEAST INT64_MIN
#define LONGEST_POLL_MS 60001
#define CREATED_FOR_EVER                                                                 \
    "\"resultType\":\"task\",\"taskId\":\"T\",\"status\":\"working\",\"ttlMs\":null,"    \
    "\"pollIntervalMs\":1000"

static const int64_t extremes[] = {LEAST, LEAST + 1,   -1,       0,
                                   1,     MOST / 1000, MOST - 1, MOST};
#define EXTREMES (sizeof extremes / sizeof *extremes)

/* ---- the arithmetic ---- */

static void sums_stay_at_the_ends(void **state)
{
    (void)state;
    assert_true(sgi_time_add(MOST, 1) == MOST && sgi_time_add(1, MOST) == MOST);
    assert_true(sgi_time_add(LEAST, -1) == LEAST && sgi_time_add(MOST, LEAST) == -1);
    assert_true(sgi_time_sub(LEAST, 1) == LEAST && sgi_time_sub(0, LEAST) == MOST);
    assert_true(sgi_time_sub(MOST, -1) == MOST && sgi_time_sub(7, 3) == 4);
    assert_true(sgi_time_mul(MOST, 1000) == MOST && sgi_time_mul(LEAST, 2) == LEAST);
    assert_true(sgi_time_mul(LEAST, -1) == MOST && sgi_time_mul(-3, 1000) == -3000);
    assert_true(sgi_time_mul(MOST, -2) == LEAST && sgi_time_mul(MOST, 0) == 0);
}

static void stamps_are_dates(void **state)
{
    char stamp[SGI_STAMP_SIZE];
    (void)state;
    for (size_t i = 0; i < EXTREMES; i++) {
        sgi_timestamp_write(extremes[i], stamp);
        assert_int_equal(strlen(stamp), strlen("1970-01-01T00:00:00.000Z"));
    }
    sgi_timestamp_write(MOST, stamp);
    assert_string_equal(stamp, "9999-12-31T23:59:59.999Z");
    sgi_timestamp_write(LEAST, stamp);
    assert_string_equal(stamp, "1970-01-01T00:00:00.000Z");
}

/* ---- records of a store ---- */

/* For every pair of a creation time and a ttl, exactly the expired operations are due. */
static void an_operation_lives_as_long_as_it_says(void **state)
{
    test_mem tm;
    fake_host host;
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 31);
    segue_server *server = fake_server_new(&host);
    for (size_t c = 0; c < EXTREMES; c++)
        for (size_t t = 0; t < EXTREMES; t++) {
            sgi_op *op = fake_task_new(server);
            int64_t created_ms = op->created_ms;
            fake_store_settle(&host);
            op->created_ms = extremes[c];
            op->ttl_ms = extremes[t];
            int64_t end = sgi_op_expiry(op);
            int64_t purge = sgi_server_purge_time(op);
            if (op->ttl_ms < 0)
                assert_true(end == MOST && purge == MOST);
            else
                assert_true(end >= op->created_ms && purge >= end);
            if (op->created_ms >= 0 && op->ttl_ms >= MOST - 1)
                assert_true(end >= MOST - 1 && purge >= MOST - 1);
            sgi_server_start_ttl(op);
            op->created_ms = created_ms;
            op->ttl_ms = -1;
            assert_int_equal(sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_OK);
            fake_store_settle(&host);
            sgi_server_take_from_maps(op);
            sgi_op_unref(op);
        }
    fake_server_end(server);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
}

static void a_task_of_all_time_does_not_expire(void **state)
{
    test_mem tm;
    fake_host host;
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 31);
    segue_server *server = fake_server_new(&host);
    sgi_op *op = fake_task_new(server);
    op->ttl_ms = MOST;
    sgi_server_start_ttl(op);
    fake_store_settle(&host);
    fake_host_advance(&host, 365 * INT64_C(86400000));
    assert_false(sgi_op_has_ended(op));
    assert_true(sgi_op_is_known(op));
    assert_int_equal(sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_OK);
    fake_store_settle(&host);
    sgi_op_unref(op);
    fake_server_end(server);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
}

static void retention_takes_any_time(void **state)
{
    (void)state;
    for (size_t a = 0; a < EXTREMES; a++)
        for (size_t b = 0; b < EXTREMES; b++) {
            sgi_retention kept = {.limits = {.ttl_ms = MOST}};
            sgi_entry first = {.event = 1, .seq = 1, .at_ms = extremes[a]};
            sgi_entry second = {.event = 2, .seq = 2, .at_ms = extremes[b]};
            sgi_retention_count_event(&kept, &first);
            sgi_retention_count_event(&kept, &second);
            sgi_retention_apply_limits(&kept, extremes[b]);
            sgi_retention_apply_limits(&kept, MOST);
        }
}

/* ---- messages of a peer ---- */

/* Returns NULL when the client does not poll any more. */
static const char *next_poll(kit *k)
{
    const char *get = NULL;
    for (int64_t ms = 0; !get && ms < LONGEST_POLL_MS; ms += 500) {
        kit_advance(k, 500);
        get = kit_heard(k);
    }
    return get;
}

/* A client follows a task for any times that the server gives. */
static void a_task_is_followed_whatever_its_times(void **state)
{
    static const char *const names[] = {"ttlMs",        "ttlSeconds",
                                        "ttl",          "pollIntervalMs",
                                        "pollInterval", "pollIntervalMilliseconds"};
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t i = 0; i < EXTREMES; i++) {
            kit k = {0};
            kit_begin_modern(&k, NULL, SERVER_TASKS);
            record *r = kit_call(&k, "t");
            kit_result(&k, kit_expect(&k, "tools/call"),
                       "\"resultType\":\"task\",\"taskId\":\"T\",\"status\":\"working\","
                       "\"createdAt\":\"9999-12-31T23:59:59.999+23:59\","
                       "\"lastUpdatedAt\":\"0000-00-00T00:00:00Z\",\"%s\":%lld",
                       names[n], (long long)extremes[i]);
            const char *get = next_poll(&k);
            if (get)
                kit_result(&k, get, TASK("T", "completed") "," RESULT);
            kit_run(&k);
            bool is_short = n < 3 && extremes[i] == 1;
            if (!r->completed)
                fail_msg("%s %lld: %s", names[n], (long long)extremes[i],
                         get ? get : "-");
            assert_int_equal(r->status, is_short && !get ? SEGUE_E_TASK_LOST : SEGUE_OK);
            kit_end(&k);
        }
}

static void a_refusal_tells_when_to_come_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXTREMES; i++) {
        char data[128];
        kit k = {0};
        kit_begin_modern(&k, NULL, SERVER_TASKS);
        record *r = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"), CREATED_FOR_EVER);
        kit_advance(&k, 1000);
        snprintf(data, sizeof data, "{\"reason\":\"rate_limited\",\"retryAfterMs\":%lld}",
                 (long long)extremes[i]);
        kit_error(&k, kit_expect(&k, "tasks/get"), -32603, data);
        kit_result(&k, next_poll(&k), TASK("T", "completed") "," RESULT);
        kit_run(&k);
        assert_int_equal(r->status, SEGUE_OK);
        kit_end(&k);
    }
}

/* A list may be fresh for ever or never. */
static void freshness_takes_any_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXTREMES; i++) {
        kit k = {0};
        kit_begin_modern(&k, NULL, SERVER_PLAIN);
        for (int turn = 0; turn < 2; turn++) {
            record *r = kit_start(&k, "tools/list", NULL, NULL);
            kit_run(&k);
            const char *line = kit_heard(&k);
            if (line)
                kit_result(&k, line,
                           "\"resultType\":\"complete\",\"tools\":[],\"ttlMs\":%lld,"
                           "\"cacheScope\":\"private\"",
                           (long long)extremes[i]);
            kit_run(&k);
            assert_int_equal(r->status, SEGUE_OK);
        }
        kit_end(&k);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_stay_at_the_ends),
        cmocka_unit_test(stamps_are_dates),
        cmocka_unit_test(an_operation_lives_as_long_as_it_says),
        cmocka_unit_test(a_task_of_all_time_does_not_expire),
        cmocka_unit_test(retention_takes_any_time),
        cmocka_unit_test(a_task_is_followed_whatever_its_times),
        cmocka_unit_test(a_refusal_tells_when_to_come_again),
        cmocka_unit_test(freshness_takes_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
