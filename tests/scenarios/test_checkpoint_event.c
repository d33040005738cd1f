/* on_checkpoint: the handler of a call hears when the bytes of segue_call_checkpoint are
 * stored, so that it does what must not happen twice only then. */
#include "support/fault_store.h"
#include "support/legacy_wire.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* The handler keeps its call until the scenario ends the call. */
static segue_call *held;
static int reported;
static int32_t flags;
static fault_store *faults;

static void let_go(void)
{
    segue_call_free(held);
    held = NULL;
}

static void on_cancel(void *user, segue_call *call)
{
    (void)user;
    if (call == held)
        let_go();
}

static void on_checkpoint(void *user, segue_call *call)
{
    (void)user;
    assert_ptr_equal(call, held);
    reported++;
}

static void watch(void)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    events.on_cancel = on_cancel;
    events.on_checkpoint = on_checkpoint;
    assert_int_equal(segue_call_watch(held, &events), SEGUE_OK);
}

static void keep(void *user, segue_call *call)
{
    (void)user;
    held = call;
}

static void add_keeper(world *w)
{
    static const char tool[] =
        "{\"name\":\"keeper\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = keep;
    options.task = SEGUE_TASK_MAY;
    options.flags = flags | SEGUE_TOOL_RESTARTABLE;
    options.promote_after_ms = 500;
    assert_int_equal(
        segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, strlen(tool), &options, NULL),
        SEGUE_OK);
}

static void with(world *w, int32_t tool_flags)
{
    w->furnish = add_keeper;
    held = NULL;
    reported = 0;
    flags = tool_flags;
    faults = fault_store_new(NULL, &w->custom);
}

static void with_stored(world *w)
{
    with(w, SEGUE_TOOL_STORED);
}

static void with_plain(world *w)
{
    with(w, 0);
}

static void ask(world *w)
{
    wire_ask(world_connect(w, NULL), "1", "tools/call", "\"name\":\"keeper\"",
             CAPS_TASKS);
    world_run(w);
    assert_non_null(held);
}

static void mark(void)
{
    assert_int_equal(segue_call_checkpoint(held, "mark", 4, NULL), SEGUE_OK);
}

static void complete(world *w)
{
    assert_int_equal(segue_call_complete(held, NULL, NULL), SEGUE_OK);
    let_go();
    world_run(w);
}

static void is_reported_when_it_is_stored(world *w)
{
    ask(w);
    watch();
    int commits = fault_store_commits(faults);
    mark();
    assert_int_equal(reported, 0);
    world_run(w);
    assert_int_equal(fault_store_commits(faults), commits + 1);
    assert_int_equal(reported, 1);
    mark();
    mark(); /* one commit has both */
    world_run(w);
    assert_int_equal(reported, 2);
    assert_int_equal(segue_call_send_text(held, "more", 4, NULL), SEGUE_OK);
    world_run(w);
    assert_int_equal(reported, 2);
    complete(w);
}

static void is_reported_to_callbacks_that_come_after_it(world *w)
{
    ask(w);
    mark();
    watch();
    world_run(w);
    assert_int_equal(reported, 1);
    complete(w);
}

static void is_not_reported_after_the_end(world *w)
{
    ask(w);
    watch();
    mark();
    complete(w);
    assert_int_equal(reported, 0);
}

static void is_not_reported_when_the_store_refuses(world *w)
{
    ask(w);
    watch();
    fault_store_refuse(faults, SEGUE_E_STORE_FULL, 1000);
    mark();
    world_run(w);
    assert_int_equal(reported, 0);
    assert_null(held); /* on_cancel let it go: the handler waits for nothing more */
    fault_store_refuse(faults, SEGUE_OK, 0);
    fault_store_forget(faults);
    world_run(w);
    assert_int_equal(reported, 0);
}

static void is_reported_at_once_without_a_store(world *w)
{
    ask(w);
    watch();
    int commits = fault_store_commits(faults);
    mark();
    assert_int_equal(reported, 0);
    world_run(w);
    assert_int_equal(fault_store_commits(faults), commits);
    assert_int_equal(reported, 1);
    complete(w);
}

static const scenario stored[] = {
    {"a checkpoint is reported when it is stored", is_reported_when_it_is_stored,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a checkpoint is reported to callbacks that come after it",
     is_reported_to_callbacks_that_come_after_it, ONLY_HERE | ONE_DRIVE, NULL},
    {"a checkpoint is not reported after the end", is_not_reported_after_the_end,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a checkpoint that the store refuses is not reported",
     is_not_reported_when_the_store_refuses, ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario plain[] = {
    {"the checkpoint of a plain call is reported at once",
     is_reported_at_once_without_a_store, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    int failed =
        scenarios_run_prepared(stored, sizeof stored / sizeof *stored, with_stored);
    return failed +
           scenarios_run_prepared(plain, sizeof plain / sizeof *plain, with_plain);
}
