/* A replica replaces the primary and lacks some acknowledged writes, or the server itself
 * comes back with less. Published entries are then missing and cannot be made again. No
 * other entry ever gets their numbers, and an operation that may lack entries ends.
 * label: threads */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/news_kit.h"
#include "support/redis_pair.h"

#include <cmocka.h>

#define FAR 5000000 /* a number above all that were used */

static segue_status append(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    return test_commit_one(store, test_write_append(n, seq, data, len));
}

/* Ends an operation that has lost entries, with a number above all others. */
static segue_status end_behind(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    segue_store_write writes[] = {
        test_write_append(n, seq, data, test_entry_fill(data, n, seq)),
        test_write_end(n, INT64_MAX)};
    writes[1].entry.seq = seq;
    return sgi_store_commit(store, writes, 2);
}

/* The owner confirms how far its operation is. */
static segue_status vouch(segue_store *store, uint32_t n, uint64_t upto)
{
    segue_store_write write = test_write_taken(n, 0);
    write.entry.event = upto;
    return test_commit_one(store, write);
}

typedef struct claims {
    size_t count, torn;
} claims;

static int32_t count_claim(void *user, const segue_store_record *record)
{
    claims *c = user;
    c->count++;
    c->torn += record->ended == SEGUE_STORE_TORN;
    assert_int_not_equal(record->ended, SEGUE_STORE_ENDED);
    return 0;
}

/* Waits until this many were claimed; returns how many may lack entries. */
static size_t claim_torn(segue_store *store, size_t count)
{
    claims c = {0};
    redis_kit_until(sgi_store_claim(store, count_claim, &c) == SEGUE_OK &&
                    c.count >= count);
    assert_int_equal(c.count, count);
    return c.torn;
}

/* ---- with a living owner ---- */

static void one_that_lives_finds_the_hole(void **state)
{
    (void)state;
    redis_pair s;
    test_ear ear;
    redis_pair_begin(&s);
    segue_store *store = redis_kit_open(s.url);
    test_ear_open(&ear, store);
    for (uint32_t n = 1; n <= 4; n++) {
        test_must_create(store, n);
        test_must_append(store, n, 1);
    }
    redis_pair_part(&s);
    test_must_append(store, 1, 2);
    test_must_append(store, 1, 3);
    test_must_append(store, 4, 2);
    test_must_create(store, 5);
    redis_pair_fail_over(&s);
    /* the loss is reported although no store wrote */
    test_ear_wait(&ear, SEGUE_STORE_DOUBT, 0);
    /* Nothing is appended behind the hole, and none of its numbers is used again. */
    assert_int_equal(vouch(store, 1, 3), SEGUE_E_STATE);
    assert_int_equal(append(store, 1, 4), SEGUE_E_STATE);
    /* An operation that is missing entirely is known by its owner's confirmation. */
    assert_int_equal(vouch(store, 5, 1), SEGUE_E_NOT_FOUND);
    assert_int_equal(append(store, 5, 1), SEGUE_E_NOT_FOUND);
    /* A final entry that names the hole is accepted. When it is sent again, it already
     * exists. */
    assert_int_equal(end_behind(store, 1, FAR), SEGUE_OK);
    assert_int_equal(end_behind(store, 1, FAR), SEGUE_OK);
    assert_int_equal(test_must_find(store, 1).ended, 1);
    assert_int_equal(append(store, 1, FAR + 2), SEGUE_E_STATE);
    /* A final entry that does not name the hole is refused. */
    segue_store_write ends[] = {test_write_append(4, 3, "x", 1),
                                test_write_end(4, INT64_MAX)};
    assert_int_equal(sgi_store_commit(store, ends, 2), SEGUE_E_STATE);
    assert_int_equal(test_must_find(store, 4).ended, 0);
    /* An operation that has lost nothing continues. */
    assert_int_equal(vouch(store, 2, 1), SEGUE_OK);
    test_must_append(store, 2, 2);
    test_must_append(store, 3, 2);
    test_assert_log(store, 2, 2);
    test_ear_close(&ear);
    sgi_store_unref(store);
    redis_pair_end(&s);
}

/* ---- with an owner that ended with its server ---- */

static void what_may_lack_its_end_is_never_run_again(void **state)
{
    (void)state;
    redis_pair s;
    redis_pair_begin(&s);
    segue_store *a = redis_kit_open_lasting(s.url), *b = redis_kit_open(s.url);
    cutting_proxy *own;
    cutting_options through = {.target_port = redis_server_port(s.first)};
    assert_true(cutting_proxy_start(&through, &own));
    segue_store *dead = redis_kit_open(redis_kit_through(own));
    for (uint32_t n = 1; n <= 3; n++)
        test_must_create(dead, n);
    for (uint32_t n = 11; n <= 13; n++) {
        test_must_create(a, n);
        test_must_append(a, n, 1);
    }
    redis_pair_part(&s);
    test_must_append(dead, 1, 1);
    assert_true(cutting_proxy_refuse(own, -1));
    cutting_proxy_cut_all(own, CUTTING_RST);
    redis_pair_fail_over(&s);
    assert_int_equal(claim_torn(b, 3), 3);
    assert_int_equal(end_behind(b, 1, FAR), SEGUE_OK);
    assert_int_equal(end_behind(b, 2, FAR), SEGUE_OK);
    /* An operation that its owner has found complete may continue at any server. One
     * operation has not been checked. */
    test_must_append(a, 11, 2);
    assert_int_equal(vouch(a, 12, 1), SEGUE_OK);
    sgi_store_unref(a);
    assert_int_equal(claim_torn(b, 3), 1);
    test_must_append(b, 11, 3);
    /* An operation that was claimed and not ended is shown in the same way again. */
    sgi_store_unref(b);
    segue_store *c = redis_kit_open(s.url);
    assert_int_equal(claim_torn(c, 4), 2);
    sgi_store_unref(c);
    cutting_proxy_stop(own);
    sgi_store_unref(dead);
    redis_pair_end(&s);
}

/* The owner has finished the operation, and after the loss it is open again. */
static void lost_end_leaves_nothing_behind_that_never_ends(void **state)
{
    (void)state;
    redis_pair s;
    test_ear ear;
    redis_pair_begin(&s);
    segue_store *store = redis_kit_open(s.url);
    test_ear_open(&ear, store);
    for (uint32_t n = 1; n <= 100; n++) {
        test_must_create(store, n);
        if (n < 5)
            assert_int_equal(test_commit_one(store, test_write_end(n, INT64_MAX)),
                             SEGUE_OK);
    }
    redis_pair_part(&s);
    for (uint32_t n = 5; n <= 99; n++)
        assert_int_equal(test_commit_one(store, test_write_end(n, INT64_MAX)), SEGUE_OK);
    redis_pair_fail_over(&s);
    test_ear_wait(&ear, SEGUE_STORE_DOUBT, 0);
    assert_int_equal(claim_torn(store, 95), 95);
    assert_int_equal(test_claim_count(store), 0);
    assert_int_equal(test_must_find(store, 4).ended, 1);
    test_must_append(store, 100, 1);
    test_ear_close(&ear);
    sgi_store_unref(store);
    redis_pair_end(&s);
}

/* ---- owners ---- */

/* A store that is cut off until another one takes over its operations: `owner`, whose
 * connections go through a proxy. */
typedef struct cut_off {
    redis_pair servers;
    cutting_proxy *proxy;
    cutting_options through;
    segue_store *owner, *other;
} cut_off;

static void cut_off_begin(cut_off *c)
{
    redis_pair_begin(&c->servers);
    c->through = (cutting_options){.target_port = redis_server_port(c->servers.first)};
    assert_true(cutting_proxy_start(&c->through, &c->proxy));
    c->owner = redis_kit_open_lasting(redis_kit_through(c->proxy));
    c->other = redis_kit_open_lasting(c->servers.url);
}

static void cut_off_end(cut_off *c)
{
    sgi_store_unref(c->owner);
    sgi_store_unref(c->other);
    cutting_proxy_stop(c->proxy);
    redis_pair_end(&c->servers);
}

/* The other store takes the operation over and goes on with it, and all of that is lost.
 * The remaining data still shows that the owner had been silent for a lease when that
 * began. */
static void lose_a_claim(cut_off *c)
{
    c->through.port = cutting_proxy_port(c->proxy);
    cutting_proxy_stop(c->proxy);
    redis_kit_lapse(c->servers.first, 1);
    redis_pair_part(&c->servers);
    assert_int_equal(claim_torn(c->other, 1), 0);
    test_must_append(c->other, 1, 2);
    redis_pair_fail_over(&c->servers);
    c->through.target_port = redis_server_port(c->servers.second);
    assert_true(cutting_proxy_start(&c->through, &c->proxy));
}

static void its_owner_is_not_brought_back(cut_off *c)
{
    lose_a_claim(c);
    assert_int_equal(append(c->other, 1, 3), SEGUE_E_FENCED);
    assert_int_equal(vouch(c->owner, 1, 1), SEGUE_E_STATE);
    assert_int_equal(append(c->owner, 1, 2), SEGUE_E_STATE);
    test_assert_log(c->other, 1, 1);
    assert_int_equal(end_behind(c->owner, 1, FAR), SEGUE_OK);
    /* New operations of the owner are its own. */
    test_must_create(c->owner, 2);
    test_must_append(c->owner, 2, 1);
    cut_off_end(c);
}

/* The first store is the owner again. It cannot know what was published meanwhile. */
static void lost_claim_does_not_bring_its_owner_back(void **state)
{
    (void)state;
    cut_off c;
    cut_off_begin(&c);
    test_must_create(c.owner, 1);
    test_must_append(c.owner, 1, 1);
    its_owner_is_not_brought_back(&c);
}

/* The owner was silent so long that it was forgotten, and it writes before its next lease
 * renewal. */
static void lost_claim_from_one_that_was_forgotten_is_seen(void **state)
{
    (void)state;
    cut_off c;
    cut_off_begin(&c);
    while (redis_server_do(c.servers.first, "HLEN {segue}:owners") != 1) {
        redis_kit_lapse(c.servers.first, 1);
        assert_int_equal(test_claim_count(c.other), 0);
        redis_kit_sleep_ms(2);
    }
    test_must_create(c.owner, 1);
    test_must_append(c.owner, 1, 1);
    its_owner_is_not_brought_back(&c);
}

/* The counter of owners has gone back: numbers are reused, names are not. */
static void no_two_owners_have_one_name(void **state)
{
    (void)state;
    redis_pair s;
    redis_pair_begin(&s);
    redis_pair_part(&s);
    segue_store *a = redis_kit_open(s.url);
    test_must_create(a, 1);
    redis_pair_fail_over(&s);
    segue_store *b = redis_kit_open(s.url);
    assert_int_equal(redis_server_do(s.second, "GET {segue}:owner"), 1);
    test_must_create(b, 2);
    assert_int_equal(append(a, 1, 1), SEGUE_E_NOT_FOUND);
    assert_int_equal(append(a, 2, 1), SEGUE_E_FENCED);
    test_must_append(b, 2, 1);
    sgi_store_unref(a);
    sgi_store_unref(b);
    redis_pair_end(&s);
}

/* ---- one server that comes back ---- */

/* Returns how many of two operations without an owner may lack entries after the server's
 * death. */
static size_t torn_after_death(const char *appendfsync)
{
    redis_server_options options = {.appendfsync = appendfsync};
    redis_server *own;
    cutting_proxy *proxy;
    assert_true(redis_server_start(&options, &own));
    cutting_options through = {.target_port = redis_server_port(own)};
    assert_true(cutting_proxy_start(&through, &proxy));
    segue_store *b = redis_kit_open_lasting(redis_server_url(own));
    segue_store *a = redis_kit_open(redis_kit_through(proxy));
    test_must_create(a, 1);
    test_must_create(a, 2);
    test_must_create(b, 3);
    /* Redis keeps the bytes in memory while an earlier sync of its file is under way. */
    redis_kit_until(redis_server_info(own, "aof_buffer_length") == 0);
    assert_true(cutting_proxy_refuse(proxy, -1));
    cutting_proxy_cut_all(proxy, CUTTING_RST);
    redis_server_signal(own, SIGKILL);
    assert_true(redis_server_again(own));
    size_t torn = claim_torn(b, 2);
    test_must_append(b, 3, 1); /* the owner of the operation knows its last entry */
    sgi_store_unref(b);
    b = redis_kit_open(redis_server_url(own));
    assert_int_equal(claim_torn(b, 3), torn);
    sgi_store_unref(b);
    cutting_proxy_stop(proxy);
    sgi_store_unref(a);
    redis_server_stop(own);
    return torn;
}

/* All stores had closed before, so no client can have seen what is missing. */
static void orderly_end_of_all_leaves_no_doubt(void **state)
{
    (void)state;
    redis_server_options options = {.appendfsync = "everysec"};
    redis_server *own;
    assert_true(redis_server_start(&options, &own));
    segue_store *a = redis_kit_open(redis_server_url(own));
    segue_store *b = redis_kit_open(redis_server_url(own));
    test_must_create(a, 1);
    test_must_create(b, 2);
    sgi_store_unref(b);
    sgi_store_unref(a);
    redis_server_signal(own, SIGTERM);
    assert_true(redis_server_again(own));
    a = redis_kit_open(redis_server_url(own));
    assert_int_equal(claim_torn(a, 2), 0);
    sgi_store_unref(a);
    redis_server_stop(own);
}

static void server_that_syncs_always_leaves_no_doubt(void **state)
{
    (void)state;
    assert_int_equal(torn_after_death("always"), 0);
}

static void server_that_may_forget_leaves_doubt(void **state)
{
    (void)state;
    assert_int_equal(torn_after_death("everysec"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_lives_finds_the_hole),
        cmocka_unit_test(what_may_lack_its_end_is_never_run_again),
        cmocka_unit_test(lost_end_leaves_nothing_behind_that_never_ends),
        cmocka_unit_test(lost_claim_does_not_bring_its_owner_back),
        cmocka_unit_test(lost_claim_from_one_that_was_forgotten_is_seen),
        cmocka_unit_test(no_two_owners_have_one_name),
        cmocka_unit_test(orderly_end_of_all_leaves_no_doubt),
        cmocka_unit_test(server_that_syncs_always_leaves_no_doubt),
        cmocka_unit_test(server_that_may_forget_leaves_doubt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
