/* A server that starts takes over what an earlier one left in portions, however much it
 * is. Each operation goes on, and recovery ends once. */
#include "support/fault_store.h"
#include "support/scratch.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "base/thresholds.h"
#include "engine/server/server.h"

#define LEFT 23
#define PORTION 4

static fault_store *faults;

static void with_faults(world *w)
{
    scratch_name(w->path, sizeof w->path, "/tmp/segue-portions");
    faults = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
}

static void many_tasks(segue_server_options *options)
{
    options->max_tasks = 1000;
}

static void leave(world *w, const char *ids[LEFT])
{
    wire *c = world_connect(w, NULL);
    for (int i = 0; i < LEFT; i++)
        ids[i] = wire_make_task(c, "1", "story", "\"n\":3,\"delayMs\":300", NULL);
    world_restart(w);
}

static void must_all_complete(world *w, const char *const ids[LEFT])
{
    wire *c = world_connect(w, NULL);
    for (int i = 0; i < LEFT; i++) {
        const char *r = wire_get_until(c, ids[i], "completed", NULL);
        assert_at(r, "result.result.content.2.text", "\"segment 3 of the story\"");
        assert_at(r, "result.result.content.3", "");
    }
    assert_int_equal(w->server->cluster.recovering, 0);
    assert_int_equal(w->server->cluster.claims_by_id.count, 0);
    assert_int_equal(w->server->counts.taken_over, LEFT);
}

static void all_go_on(world *w)
{
    const char *ids[LEFT];
    leave(w, ids);
    must_all_complete(w, ids);
    assert_int_equal(fault_store_claimed(faults), LEFT);
    assert_true(fault_store_most_claimed(faults) <= PORTION);
}

/* The logs of more than a portion cannot be read at first. They do not hold up the
 * others. */
static void unreadable_logs_are_read_later(world *w)
{
    const char *ids[LEFT];
    fault_store_fail_reads(faults, SEGUE_E_STORE, 2 * PORTION);
    leave(w, ids);
    world_connect(w, NULL); /* a server begins with its first client */
    world_advance(w, 100);
    assert_in_range(w->server->cluster.claims_by_id.count, 1, 2 * PORTION);
    world_advance(w, 5000);
    must_all_complete(w, ids);
    assert_int_equal(fault_store_claimed(faults), LEFT);
}

static const scenario scenarios[] = {
    {"many orphans are taken over in portions", all_go_on, ONLY_HERE | ONE_DRIVE,
     many_tasks},
    {"a portion whose logs cannot be read is taken over later",
     unreadable_logs_are_read_later, ONLY_HERE | ONE_DRIVE, many_tasks},
};

int main(void)
{
#ifdef SGI_KNOBS
    sgi_thresholds.claim_portion = PORTION;
    sgi_thresholds.sqlite_claim_step = 3;
#endif
    return scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                  with_faults);
}
