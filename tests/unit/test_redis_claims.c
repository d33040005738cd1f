/* A claim in Redis whose last message is lost. Servers that share a store handle are one
 * owner in Redis. An operation that was shown to one of them is not shown to another.
 * label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/redis_kit.h"

#include <cmocka.h>

#define SHORT_MS 500
#define STEP 32 /* number of operations claimed at a time */

static redis_server *server;

static int set_up(void **state)
{
    (void)state;
    return redis_server_do(server, "FLUSHALL") < 0;
}

/* ---- who claims ---- */

/* The operations that a claim shows, and the point at which the connection to Redis is
 * cut. */
typedef struct claimer {
    cutting_proxy *proxy;
    size_t cut_at;  /* the number of shown operations after which the connection is cut; 0
                     * = never */
    size_t stop_at; /* the number of shown operations after which the claim stops; 0 =
                     * never */
    size_t count;
    uint8_t ids[128][SEGUE_STORE_ID_SIZE];
} claimer;

static void cut_off(cutting_proxy *proxy)
{
    assert_true(cutting_proxy_refuse(proxy, -1));
    cutting_proxy_cut_all(proxy, CUTTING_RST);
}

static int32_t be_shown(void *user, const segue_store_record *record)
{
    claimer *c = user;
    assert_true(c->count < 128);
    for (size_t i = 0; i < c->count; i++)
        assert_memory_not_equal(c->ids[i], record->id, sizeof record->id);
    memcpy(c->ids[c->count++], record->id, sizeof record->id);
    if (c->count == c->cut_at)
        cut_off(c->proxy);
    return c->count == c->stop_at;
}

static segue_store *open_through(cutting_proxy **proxy)
{
    segue_store *store;
    cutting_options options = {.target_port = redis_server_port(server)};
    segue_store_options times = {.struct_size = sizeof times,
                                 .timeout_ms = SHORT_MS,
                                 .lease_ms = 3600000}; /* no lease lapses here */
    assert_true(cutting_proxy_start(&options, proxy));
    redis_kit_until(sgi_store_redis_new(redis_kit_through(*proxy), &times, &store, NULL,
                                        0) == SEGUE_OK);
    return store;
}

/* Leaves this many operations without an owner. */
static void leave(uint32_t count)
{
    segue_store *gone = redis_kit_open_lasting(redis_server_url(server));
    for (uint32_t n = 0; n < count; n++)
        test_must_create(gone, n);
    sgi_store_unref(gone);
    redis_kit_until(redis_server_do(server, "KEYS {segue}:lease:*") == 0);
}

/* Makes the first claim, which is cut off as the claimer says. A slow machine may time
 * out before any operation was shown. */
static void claim_once(segue_store *store, claimer *c)
{
    redis_kit_until(sgi_store_claim(store, be_shown, c) == SEGUE_OK);
}

/* Claims until the connection works again. Each try may show further operations. */
static void claim_again(segue_store *store, claimer *c)
{
    assert_true(cutting_proxy_refuse(c->proxy, 0));
    c->cut_at = c->stop_at = 0;
    redis_kit_until(sgi_store_claim(store, be_shown, c) == SEGUE_OK);
}

static long long unacknowledged(void)
{
    return redis_server_do(
        server, "EVAL local\tn=0;for\t_,k\tin\tipairs(redis.call('KEYS',"
                "'{segue}:claimed:*'))do\tn=n+redis.call('SCARD',k)end\treturn\tn 0");
}

/* ---- cases ---- */

/* The first server has the operation; its acknowledgement never reaches Redis. */
static void one_that_was_shown_is_not_shown_to_another(void **state)
{
    (void)state;
    claimer c = {.cut_at = 1};
    leave(1);
    segue_store *store = open_through(&c.proxy);
    claim_once(store, &c);
    assert_int_equal(c.count, 1);
    assert_int_equal(unacknowledged(), 1);
    claim_again(store, &c); /* asserts that none comes twice */
    assert_int_equal(c.count, 1);
    assert_int_equal(unacknowledged(), 0);
    sgi_store_unref(store);
    cutting_proxy_stop(c.proxy);
}

/* The acknowledgement also asks for more operations, which come with the next call. */
static void those_that_are_left_are_shown_once(void **state)
{
    (void)state;
    claimer c = {.cut_at = STEP};
    leave(2 * STEP + 8);
    segue_store *store = open_through(&c.proxy);
    claim_once(store, &c);
    assert_int_equal(c.count, STEP);
    claim_again(store, &c);
    assert_int_equal(c.count, 2 * STEP + 8);
    sgi_store_unref(store);
    cutting_proxy_stop(c.proxy);
}

/* A claim that stopped keeps the last operation that it was shown; the others stay
 * unclaimed. */
static void one_that_stopped_keeps_what_it_was_shown(void **state)
{
    (void)state;
    claimer c = {.cut_at = 3, .stop_at = 3};
    leave(8);
    segue_store *store = open_through(&c.proxy);
    claim_once(store, &c);
    assert_int_equal(c.count, 3);
    claim_again(store, &c);
    assert_int_equal(c.count, 8);
    assert_int_equal(unacknowledged(), 0);
    sgi_store_unref(store);
    cutting_proxy_stop(c.proxy);
}

/* An operation that was shown may be released before Redis gets the acknowledgement: then
 * anyone can claim it. */
static void one_that_was_let_go_is_claimed_again(void **state)
{
    (void)state;
    claimer c = {.cut_at = 1}, next = {.count = 0};
    leave(1);
    segue_store *store = open_through(&c.proxy);
    claim_once(store, &c);
    assert_true(cutting_proxy_refuse(c.proxy, 0));
    redis_kit_commit(store, test_write_simple(SEGUE_STORE_RELEASE, 0));
    segue_store *other = redis_kit_open_lasting(redis_server_url(server));
    assert_int_equal(sgi_store_claim(other, be_shown, &next), SEGUE_OK);
    assert_int_equal(next.count, 1);
    /* The operation does not belong to the first server any more, although that server
     * never released it. */
    claim_again(store, &c);
    assert_int_equal(c.count, 1);
    sgi_store_unref(other);
    next.proxy = c.proxy;
    next.count = 0;
    claim_again(store, &next);
    assert_int_equal(next.count, 1);
    sgi_store_unref(store);
    cutting_proxy_stop(c.proxy);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(one_that_was_shown_is_not_shown_to_another, set_up),
        cmocka_unit_test_setup(those_that_are_left_are_shown_once, set_up),
        cmocka_unit_test_setup(one_that_stopped_keeps_what_it_was_shown, set_up),
        cmocka_unit_test_setup(one_that_was_let_go_is_claimed_again, set_up),
    };
    if (!redis_server_start(NULL, &server))
        return 1;
    int failures = cmocka_run_group_tests_name("redis claims", cases, NULL, NULL);
    redis_server_stop(server);
    return failures ? 1 : 0;
}
