/* Tools with SEGUE_TOOL_STORED: each of their calls is in the store before its handler
 * runs, also a call that asks for a task and gets its task only after
 * promote_after_ms. */
#include "store/store.h"
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

#define IMMEDIATE "{\"responseModes\":[\"immediate\"]}"
#define PROMOTE_MS 500
#define ITEM_TTL_MS 60000
#define GRACE_MS ((int64_t)5 * 60 * 1000) /* the default of grace_ms */

/* The handler of the tool keeps its call until the scenario ends the call. */
static segue_call *held;
static int runs, cancels;
static int64_t item_ttl_ms;

static void let_go(void)
{
    segue_call_free(held);
    held = NULL;
}

/* Called when a client cancels the call, and when the server ends. */
static void on_cancel(void *user, segue_call *call)
{
    (void)user;
    cancels++;
    if (call == held)
        let_go();
}

static void hold(void *user, segue_call *call)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    (void)user;
    events.on_cancel = on_cancel;
    assert_int_equal(segue_call_watch(call, &events), SEGUE_OK);
    held = call;
    runs++;
}

static void add_tool(world *w, int32_t flags)
{
    static const char tool[] =
        "{\"name\":\"keeper\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = hold;
    options.task = SEGUE_TASK_MAY;
    options.flags = flags | SEGUE_TOOL_RESTARTABLE;
    options.promote_after_ms = PROMOTE_MS;
    options.ttl_ms = item_ttl_ms;
    assert_int_equal(
        segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, strlen(tool), &options, NULL),
        SEGUE_OK);
}

static void add_keeper(world *w)
{
    add_tool(w, SEGUE_TOOL_STORED);
}

static void add_plain_keeper(world *w)
{
    add_tool(w, 0);
}

static void with(world *w, void (*furnish)(world *w))
{
    w->furnish = furnish;
    held = NULL;
    runs = cancels = 0;
    item_ttl_ms = ITEM_TTL_MS;
}

static void with_keeper(world *w)
{
    with(w, add_keeper);
}

static void with_keeper_for_ever(world *w)
{
    with_keeper(w);
    item_ttl_ms = -1;
}

/* The tool has no SEGUE_TOOL_STORED: a call is in the store from when it is a task. */
static void with_plain_keeper(world *w)
{
    with(w, add_plain_keeper);
}

static void complete(world *w, const char *text)
{
    assert_non_null(held);
    assert_int_equal(segue_call_send_text(held, text, strlen(text), NULL), SEGUE_OK);
    assert_int_equal(segue_call_complete(held, NULL, NULL), SEGUE_OK);
    let_go();
    world_run(w);
}

static void ask(wire *c, const char *id)
{
    wire_ask(c, id, "tools/call", "\"name\":\"keeper\"", CAPS_TASKS);
    world_run(c->w);
}

/* Restarts the server, and waits until it serves: then its calls run again. */
static void restart(world *w)
{
    world_restart(w);
    wire *c = world_connect(w, NULL);
    wire_do(c, "0", "server/discover", NULL, NULL);
    wire_cut(c);
}

/* Copies a JSON string that has no escapes, without its quotes. */
static void json_text(const char *json, char *out, size_t size)
{
    size_t len = strlen(json);
    assert_true(len > 2 && len - 2 < size);
    memcpy(out, json + 1, len - 2);
    out[len - 2] = 0;
}

/* Waits for the task that the call has become, and copies its id. */
static void take_id(wire *c, const char *id, char *out, size_t size)
{
    world_advance(c->w, PROMOTE_MS + 100);
    const char *r = wire_response(c, id);
    assert_at(r, "result.resultType", "\"task\"");
    json_text(json_at(r, "result.taskId"), out, size);
}

/* ---- before the call is a task ---- */

static void runs_again_before_it_is_a_task(world *w)
{
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    assert_int_equal(runs, 1);
    restart(w);
    assert_int_equal(runs, 2);
    uint64_t segment;
    assert_int_equal(segue_call_resumed(held, &segment, NULL, NULL), SEGUE_OK);
    complete(w, "worked");
}

static void assert_checkpoint(const char *text)
{
    const void *bytes;
    size_t len;
    uint64_t segment;
    assert_int_equal(segue_call_resumed(held, &segment, &bytes, &len), SEGUE_OK);
    assert_int_equal(len, strlen(text));
    assert_memory_equal(bytes, text, len);
}

static void keeps_a_checkpoint_before_it_is_a_task(world *w)
{
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    assert_int_equal(segue_call_checkpoint(held, "mark", 4, NULL), SEGUE_OK);
    world_run(w);
    restart(w);
    assert_checkpoint("mark");
    complete(w, "worked");
}

static void a_lost_client_does_not_end_it(world *w)
{
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    wire_cut(c);
    world_advance(w, PROMOTE_MS + 100);
    assert_int_equal(cancels, 0);
    complete(w, "worked");
}

static void its_client_cancels_it(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    legacy_ask_task(c, "1", "keeper", NULL, IMMEDIATE);
    world_run(w);
    assert_int_equal(runs, 1);
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    world_run(w);
    assert_int_equal(cancels, 1);
    assert_null(held);
}

static void what_comes_in_time_is_the_answer(world *w)
{
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    complete(w, "worked");
    const char *r = wire_response(c, "1");
    assert_at(r, "result.resultType", "\"complete\"");
    assert_at(r, "result.content.0.text", "\"worked\"");
}

/* No request can name a stored call that was answered, so the store does not keep the
 * call for the time to live of the tool. */
static void an_answered_call_is_purged(world *w)
{
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    complete(w, "worked");
    assert_at(wire_response(c, "1"), "result.resultType", "\"complete\"");
    world_jump(w, GRACE_MS - 1000);
    world_advance(w, 500);
    ask(c, "2"); /* its commit reads the figures */
    assert_int_equal(world_stat(w, "store.purged"), 0);
    world_jump(w, 2000);
    world_advance(w, 2000);
    complete(w, "worked");
    assert_int_equal(world_stat(w, "store.purged"), 1);
}

/* ---- a stored call becomes a task ---- */

static void becomes_a_task(world *w)
{
    char id[64];
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    take_id(c, "1", id, sizeof id);
    assert_at(wire_task(c, "2", "tasks/get", id, NULL), "result.status", "\"working\"");
    complete(w, "worked");
    const char *r = wire_get_until(c, id, "completed", CAPS_TASKS);
    assert_at(r, "result.result.content.0.text", "\"worked\"");
    assert_int_equal(runs, 1);
}

static void is_a_task_after_a_restart(world *w)
{
    char id[64];
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    take_id(c, "1", id, sizeof id);
    world_restart(w);
    c = world_connect(w, NULL);
    assert_at(wire_task(c, "2", "tasks/get", id, NULL), "result.status", "\"working\"");
    assert_int_equal(runs, 2);
    complete(w, "worked");
    world_restart(w);
    c = world_connect(w, NULL);
    const char *r = wire_task(c, "3", "tasks/get", id, NULL);
    assert_at(r, "result.result.content.0.text", "\"worked\"");
}

static const char *list(wire *c, const char *id)
{
    return wire_do_plain(c, id, "tasks/list", NULL);
}

/* The list is made from records that were written before the call was a task. */
static void is_listed_from_then_on(world *w)
{
    wire *c = legacy_connect(w, "Ada", MODES_ALL);
    legacy_ask_task(c, "1", "keeper", NULL, IMMEDIATE);
    world_run(w);
    assert_at(list(c, "2"), "result.tasks.0", "");
    world_advance(w, PROMOTE_MS + 100);
    const char *r = wire_response(c, "1");
    assert_at(r, "result.task.status", "\"working\"");
    complete(w, "worked");
    legacy_ask_task(c, "3", "keeper", NULL, IMMEDIATE);
    world_run(w);
    complete(w, "an answer");
    assert_at(wire_response(c, "3"), "result.content.0.text", "\"an answer\"");
    world_restart(w);
    c = legacy_connect(w, "Ada", MODES_ALL);
    r = list(c, "4");
    assert_at(r, "result.tasks.0.status", "\"completed\"");
    assert_at(r, "result.tasks.1", "");
}

/* The client asks for a longer time to live than the tool gives. The task has it, and
 * neither the server nor the store drops the task earlier. */
static void has_the_time_to_live_of_its_client(world *w)
{
    char id[64];
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    legacy_ask_task(c, "1", "keeper", NULL,
                    "{\"ttl\":600000,\"responseModes\":[\"immediate\"]}");
    world_advance(w, PROMOTE_MS + 100);
    const char *r = wire_response(c, "1");
    assert_at(r, "result.task.ttl", "600000");
    json_text(json_at(r, "result.task.taskId"), id, sizeof id);
    world_advance(w, 4 * ITEM_TTL_MS);
    world_restart(w);
    c = legacy_connect(w, NULL, MODES_ALL);
    r = legacy_task(c, "2", "tasks/get", id, NULL);
    assert_at(r, "result.status", "\"working\"");
    assert_at(r, "result.ttl", "600000");
    complete(w, "worked");
}

/* The handler turns the call into a task before its time. ttl: the time to live that it
 * names; 0 = none. */
static void defer(world *w, int64_t ttl, const char *shown)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    legacy_ask_task(c, "1", "keeper", NULL,
                    "{\"ttl\":600000,\"responseModes\":[\"immediate\"]}");
    world_run(w);
    assert_int_equal(segue_call_defer(held, ttl, NULL), SEGUE_OK);
    world_run(w);
    assert_at(wire_response(c, "1"), "result.task.ttl", shown);
    complete(w, "worked");
}

static void is_deferred_with_the_time_to_live_of_its_client(world *w)
{
    defer(w, 0, "600000");
}

static void is_deferred_with_the_time_to_live_of_its_handler(world *w)
{
    defer(w, 5000, "5000");
}

/* ---- a plain call becomes a task ---- */

/* The call was no task and was not in the store when the handler gave the checkpoint. */
static void takes_its_checkpoint_into_the_store(world *w)
{
    char id[64];
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    assert_int_equal(segue_call_checkpoint(held, "old", 3, NULL), SEGUE_OK);
    assert_int_equal(segue_call_checkpoint(held, "mark", 4, NULL), SEGUE_OK);
    take_id(c, "1", id, sizeof id);
    restart(w);
    assert_int_equal(runs, 2);
    assert_checkpoint("mark");
    c = world_connect(w, NULL);
    complete(w, "worked");
    const char *r = wire_get_until(c, id, "completed", CAPS_TASKS);
    assert_at(r, "result.result.content.0.text", "\"worked\"");
}

static void its_checkpoint_is_no_part_of_the_answer(world *w)
{
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    assert_int_equal(segue_call_checkpoint(held, "mark", 4, NULL), SEGUE_OK);
    complete(w, "worked");
    const char *r = wire_response(c, "1");
    assert_at(r, "result.resultType", "\"complete\"");
    assert_at(r, "result.content.0.text", "\"worked\"");
    assert_at(r, "result.content.1", "");
}

static void one_task_and_little_results(segue_server_options *options)
{
    options->max_tasks = 1;
    options->max_result_bytes = 2048;
}

/* The call cannot become a task, because another task runs. */
static void a_checkpoint_without_room_does_not_end_it(world *w)
{
    static const char large[3000] = "mark";
    char id[64];
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    segue_call *task = held;
    world_advance(w, 1); /* so that the first call becomes a task first */
    ask(c, "2");
    take_id(c, "1", id, sizeof id);
    assert_int_equal(segue_call_checkpoint(held, large, sizeof large, NULL),
                     SEGUE_E_LIMIT);
    complete(w, "worked");
    const char *r = wire_response(c, "2");
    assert_at(r, "result.content.0.text", "\"worked\"");
    held = task;
    complete(w, "worked");
}

static void without_tasks_it_has_no_checkpoint(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"keeper\"", NULL);
    world_run(w);
    assert_int_equal(segue_call_checkpoint(held, "mark", 4, NULL), SEGUE_E_STATE);
    complete(w, "worked");
    assert_at(wire_response(c, "1"), "result.content.0.text", "\"worked\"");
}

/* ---- another server on the store ---- */

static world other;

static void another_server_knows_the_task(world *w)
{
    char id[64];
    other = (world){.furnish = w->furnish};
    world_begin_beside(w, &other);
    wire *a = world_connect(w, "Ada"), *b = world_connect(&other, "Ada");
    ask(a, "1");
    take_id(a, "1", id, sizeof id);
    assert_at(wire_task(b, "2", "tasks/get", id, NULL), "result.status", "\"working\"");
    complete(w, "worked");
    const char *r = wire_get_until(b, id, "completed", CAPS_TASKS);
    assert_at(r, "result.result.content.0.text", "\"worked\"");
    assert_int_equal(runs, 1);
    world_end(&other);
}

/* ---- the store refuses ---- */

static fault_store *faults;

static void with_faults(world *w)
{
    with_keeper(w);
    faults = fault_store_new(NULL, &w->custom);
}

/* A task that is not in the store is not told. */
static void a_refused_task_is_not_told(world *w)
{
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    fault_store_refuse(faults, SEGUE_E_STORE_FULL, 1000);
    world_advance(w, PROMOTE_MS + 100);
    const char *r = wire_response(c, "1");
    assert_at(r, "result", "");
    assert_at(r, "error.code", "-32603");
    fault_store_refuse(faults, SEGUE_OK, 0);
    fault_store_forget(faults);
}

/* ---- while servers of an older version use the store ---- */

static int32_t see_kind(void *user, const segue_store_entry *entry)
{
    int32_t *newest = user;
    if (entry->kind > *newest)
        *newest = entry->kind;
    return 0;
}

/* What an older server reads of the operation: the member "task" of its record is 0 or 1,
 * and it knows all kinds of entries. */
static int32_t copy_record(void *user, const segue_store_record *record)
{
    segue_store_record *to = user;
    *to = *record;
    to->data = NULL;
    assert_non_null(strstr(record->data, "\"task\":1,"));
    return 0;
}

/* The store is in the format of the older servers: the call becomes a task at once, and
 * is stored before its handler runs. */
static void is_a_task_at_once_beside_older_servers(world *w)
{
    char id[64];
    int32_t newest = 0;
    segue_store_record record;
    fault_store_take_records(faults, 1);
    wire *c = world_connect(w, NULL);
    ask(c, "1");
    const char *r = wire_response(c, "1");
    assert_at(r, "result.resultType", "\"task\"");
    json_text(json_at(r, "result.taskId"), id, sizeof id);
    assert_int_equal(runs, 1);
    assert_int_equal(segue_call_checkpoint(held, "mark", 4, NULL), SEGUE_OK);
    world_advance(w, PROMOTE_MS + 100);
    complete(w, "worked");
    wire_get_until(c, id, "completed", CAPS_TASKS);
    assert_int_equal(sgi_store_find(w->custom, id, NULL, copy_record, &record), SEGUE_OK);
    assert_int_equal(sgi_store_read(w->custom, record.id, 0, see_kind, &newest),
                     SEGUE_OK);
    assert_in_range(newest, 1, 14);
    /* the last older server has gone */
    fault_store_take_records(faults, SGI_RECORDS);
    ask(c, "2");
    complete(w, "an answer");
    assert_at(wire_response(c, "2"), "result.content.0.text", "\"an answer\"");
    fault_store_forget(faults);
}

static const scenario scenarios[] = {
    {"a stored call runs again before it is a task", runs_again_before_it_is_a_task,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a stored call keeps a checkpoint before it is a task",
     keeps_a_checkpoint_before_it_is_a_task, ONLY_HERE | ONE_DRIVE, NULL},
    {"a lost client does not end a stored call", a_lost_client_does_not_end_it,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a client cancels a stored call", its_client_cancels_it,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, NULL},
    {"a stored call ends before it is a task", what_comes_in_time_is_the_answer,
     ONLY_HERE, NULL},
    {"a stored call becomes a task", becomes_a_task, ONLY_HERE, NULL},
    {"a stored call is a task after a restart", is_a_task_after_a_restart,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"tasks/list has a stored call from when it is a task", is_listed_from_then_on,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a stored call has the time to live of its client",
     has_the_time_to_live_of_its_client, ONLY_HERE | ONE_DRIVE, NULL},
    {"a stored call is deferred with the time to live of its client",
     is_deferred_with_the_time_to_live_of_its_client, ONLY_HERE | ONE_DRIVE, NULL},
    {"a stored call is deferred with the time to live of its handler",
     is_deferred_with_the_time_to_live_of_its_handler, ONLY_HERE | ONE_DRIVE, NULL},
    {"another server knows the task of a stored call", another_server_knows_the_task,
     ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario for_ever[] = {
    {"a stored call that was answered is purged", an_answered_call_is_purged,
     ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario plain[] = {
    {"a plain call takes its checkpoint into the store",
     takes_its_checkpoint_into_the_store, ONLY_HERE | ONE_DRIVE, NULL},
    {"the checkpoint of a plain call is no part of its answer",
     its_checkpoint_is_no_part_of_the_answer, ONLY_HERE, NULL},
    {"a checkpoint without room does not end a plain call",
     a_checkpoint_without_room_does_not_end_it, ONLY_HERE | ONE_DRIVE,
     one_task_and_little_results},
    {"a plain call that cannot be a task has no checkpoint",
     without_tasks_it_has_no_checkpoint, ONLY_HERE, NULL},
};

static const scenario refusals[] = {
    {"a task that the store refuses is not told", a_refused_task_is_not_told,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"beside older servers a stored call is a task at once",
     is_a_task_at_once_beside_older_servers, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    int failed = scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                        with_keeper);
    failed += scenarios_run_prepared(for_ever, sizeof for_ever / sizeof *for_ever,
                                     with_keeper_for_ever);
    failed +=
        scenarios_run_prepared(plain, sizeof plain / sizeof *plain, with_plain_keeper);
    return failed + scenarios_run_prepared(refusals, sizeof refusals / sizeof *refusals,
                                           with_faults);
}
