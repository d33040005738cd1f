/* The store has lost the end of a log: another Redis server took over that did not have
 * all of it. The task ends for good at all servers, and does not run again, because
 * clients have seen segments that cannot be made again. Tasks that lost nothing go on.
 * label: threads */
#include "support/redis_pair.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/server/server.h"

#define HOPS 12000 /* turns of 10 ms: enough for slow machines */

static void begin(world *w, segue_store *store)
{
    *w = (world){.place = WORLD_PAIR, .slow = 1, .shared = 1};
    w->custom = store;
    world_begin(w);
}

static const char *until_state(wire *c, const char *id, const char *status)
{
    static int next;
    const char *r = NULL;
    char ask[24];
    for (int i = 0; i < HOPS; i++) {
        snprintf(ask, sizeof ask, "%d", 5000 + next++);
        r = wire_task(c, ask, "tasks/get", id, NULL);
        if (!strcmp(json_at(r, "result.status"), status))
            return r;
        world_advance(c->w, 20);
        redis_kit_sleep_ms(10);
    }
    fail_msg("never %s: %s", status, r);
    return NULL;
}

static char *make(wire *c, const char *number, const char *arguments)
{
    return strdup(wire_make_task(c, number, "story", arguments, NULL));
}

/* R-1905-26: a number that was shown is never used for another segment. */
static void one_that_lost_its_end_fails_everywhere(void **state)
{
    (void)state;
    redis_pair pair;
    world w, other;
    redis_pair_begin(&pair);
    begin(&w, redis_kit_open_lasting(pair.url));
    wire *c = world_connect(&w, "Ada");
    char *lossy = make(c, "1", "\"n\":60,\"delayMs\":300");
    char *whole = make(c, "2", "\"n\":2,\"delayMs\":2500");
    char *done = make(c, "4", "\"n\":1,\"delayMs\":1300");
    world_advance(&w, 1000);
    redis_pair_part(&pair);
    char *gone = make(c, "3", "\"n\":60,\"delayMs\":300");
    world_advance(&w, 1000); /* segments that were seen and then lost */
    until_state(c, done, "\"completed\"");
    redis_pair_fail_over(&pair);
    const char *r = until_state(c, lossy, "\"failed\"");
    assert_string_equal(json_at(r, "result.error.code"), "-32603");
    until_state(c, gone, "\"failed\"");
    /* must not stay working for ever at another server */
    until_state(c, done, "\"failed\"");
    world_advance(&w, 5000);
    until_state(c, whole, "\"completed\"");
    uint64_t commits = w.server->committer.counts.commits;
    world_advance(&w, 2000);
    /* nothing is left to write */
    assert_int_equal(w.server->committer.counts.commits, commits);
    /* The same at another server, and after a restart. */
    begin(&other, redis_kit_open_lasting(pair.url));
    wire *b = world_connect(&other, "Ada");
    until_state(b, lossy, "\"failed\"");
    until_state(b, whole, "\"completed\"");
    world_end(&w);
    until_state(b, lossy, "\"failed\"");
    assert_int_equal(world_runs(&other, "story"), 0);
    assert_int_equal(other.server->counts.taken_over, 0);
    world_end(&other);
    free(lossy);
    free(whole);
    free(gone);
    free(done);
    redis_pair_end(&pair);
}

/* A task that waits, and that the other server never had, ends at once: it would wait for
 * nothing. */
static void one_that_waits_and_is_gone_ends_at_once(void **state)
{
    (void)state;
    redis_pair pair;
    world w;
    redis_pair_begin(&pair);
    /* this store renews its lease, so it notices that Redis is another one */
    begin(&w, redis_kit_open(pair.url));
    wire *c = world_connect(&w, "Ada");
    redis_pair_part(&pair);
    char *gone = strdup(wire_make_task(c, "1", "slow_compute", "\"ms\":3000000", NULL));
    world_advance(&w, 1000);
    redis_pair_fail_over(&pair);
    const char *r = until_state(c, gone, "\"failed\"");
    assert_at(r, "result.error.data.reason", "\"store_lost\"");
    free(gone);
    world_end(&w);
    redis_pair_end(&pair);
}

/* Its server ended with the primary, so it is unknown whether there was more. */
static void one_whose_server_went_as_well_is_not_run_again(void **state)
{
    (void)state;
    redis_pair pair;
    world w, other;
    cutting_proxy *own;
    redis_pair_begin(&pair);
    cutting_options options = {.target_port = redis_server_port(pair.first)};
    assert_true(cutting_proxy_start(&options, &own));
    begin(&w, redis_kit_open_hurried(redis_kit_through(own), 1000));
    /* this store renews its lease, so it notices silent owners */
    begin(&other, redis_kit_open(pair.url));
    wire *a = world_connect(&w, "Ada");
    char *id = make(a, "1", "\"n\":60,\"delayMs\":300");
    world_advance(&w, 1000);
    redis_pair_part(&pair);
    world_advance(&w, 1000);
    assert_true(cutting_proxy_refuse(own, -1));
    cutting_proxy_cut_all(own, CUTTING_RST);
    redis_pair_fail_over(&pair);
    wire *b = world_connect(&other, "Ada");
    until_state(b, id, "\"failed\"");
    assert_int_equal(world_runs(&other, "story"), 0);
    assert_int_equal(other.server->counts.taken_over, 1);
    world_end(&w);
    cutting_proxy_stop(own);
    world_end(&other);
    free(id);
    redis_pair_end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_lost_its_end_fails_everywhere),
        cmocka_unit_test(one_that_waits_and_is_gone_ends_at_once),
        cmocka_unit_test(one_whose_server_went_as_well_is_not_run_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
