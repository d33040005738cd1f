/* Running a task again: segue_store_rerun makes a new task from a part of the log of
 * another one. The tool keeper is stored (SEGUE_TOOL_STORED) and becomes a task later. */
#include "support/draft_wire.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define PROMOTE_MS 500
#define TTL_MS 60000

/* The handler of the tool keeps its call until the scenario ends the call. */
static segue_call *held;

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

static void hold(void *user, segue_call *call)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    (void)user;
    events.on_cancel = on_cancel;
    assert_int_equal(segue_call_watch(call, &events), SEGUE_OK);
    held = call;
}

static void add_keeper(world *w)
{
    static const char tool[] =
        "{\"name\":\"keeper\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = hold;
    options.task = SEGUE_TASK_MAY;
    options.flags = SEGUE_TOOL_STORED | SEGUE_TOOL_RESTARTABLE;
    options.promote_after_ms = PROMOTE_MS;
    options.ttl_ms = TTL_MS;
    assert_int_equal(
        segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, strlen(tool), &options, NULL),
        SEGUE_OK);
}

static void with_keeper(world *w)
{
    w->furnish = add_keeper;
    held = NULL;
}

static void send(const char *text)
{
    assert_non_null(held);
    assert_int_equal(segue_call_send_text(held, text, strlen(text), NULL), SEGUE_OK);
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

static void copy_text(const char *json, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)strlen(json) - 2, json + 1);
}

/* A call that is no task for its first segments, of which it makes this number. Each has
 * a checkpoint before it. It makes one more segment as a task. */
static void make_one(world *w, wire *c, int segments, char *id, size_t size)
{
    wire_ask(c, "1", "tools/call", "\"name\":\"keeper\"", CAPS_TASKS);
    world_run(w);
    for (int i = 0; i < segments; i++) {
        mark();
        send("a segment");
    }
    world_advance(w, PROMOTE_MS + 100);
    copy_text(json_at(wire_response(c, "1"), "result.taskId"), id, size);
    mark();
    send("the last segment");
    complete(w);
}

typedef struct summary {
    char text[4096];
} summary;

static int32_t copy_summary(void *user, const char *json, size_t len)
{
    summary *s = user;
    snprintf(s->text, sizeof s->text, "%.*s", (int)len, json);
    return 0;
}

static segue_status rerun(world *w, const char *id, uint64_t segments, summary *s,
                          segue_error **error)
{
    return segue_store_rerun(w->store, id, segments, copy_summary, s, error);
}

/* Runs the task again, and checks what its handler learns from before. */
static void run_again(world *w, const char *old, uint64_t segments, size_t checkpoint)
{
    char id[64];
    summary s;
    uint64_t segment = 99;
    const void *bytes;
    size_t len = 99;
    segue_error *error = NULL;
    assert_int_equal(rerun(w, old, segments, &s, &error), SEGUE_OK);
    assert_at(s.text, "kind", "\"task\"");
    copy_text(json_at(s.text, "taskId"), id, sizeof id);
    world_restart(w);
    wire *c = world_connect(w, NULL);
    assert_at(wire_task(c, "2", "tasks/get", id, NULL), "result.status", "\"working\"");
    assert_non_null(held);
    assert_int_equal(segue_call_resumed(held, &segment, &bytes, &len), SEGUE_OK);
    assert_int_equal(segment, segments);
    assert_int_equal(len, checkpoint);
    send("again");
    complete(w);
    const char *r = wire_task(c, "3", "tasks/get", id, NULL);
    assert_at(r, "result.status", "\"completed\"");
    assert_at(r, "result.ttlMs", "60000");
    wire_cut(c);
}

/* The segment behind which it runs again comes before the call is a task. */
static void a_stored_call_runs_again_from_before_it_was_a_task(world *w)
{
    char old[64];
    make_one(w, world_connect(w, NULL), 2, old, sizeof old);
    run_again(w, old, 1, 4);
}

static void a_stored_call_runs_again_from_when_it_was_a_task(world *w)
{
    char old[64];
    make_one(w, world_connect(w, NULL), 2, old, sizeof old);
    run_again(w, old, 2, 4);
    run_again(w, old, 3, 4);
}

/* The checkpoint that comes before the first segment is no part of the new task. */
static void a_task_begins_anew(world *w)
{
    char old[64];
    make_one(w, world_connect(w, NULL), 1, old, sizeof old);
    run_again(w, old, 0, 0);
}

static void a_task_runs_again_behind_a_segment(world *w)
{
    summary s;
    wire *a = world_connect(w, "Ada");
    const char *old = wire_make_task(a, "1", "story", "\"n\":9,\"delayMs\":10", NULL);
    wire_get_until(a, old, "completed", CAPS_TASKS);
    assert_int_equal(rerun(w, old, 4, &s, NULL), SEGUE_OK);
    assert_at(s.text, "status", "\"working\"");
    assert_at(s.text, "segments", "4");
    assert_at(s.text, "by", "\"Ada\"");
    assert_at(s.text, "params.arguments.n", "9");
    char id[64] = "";
    copy_text(json_at(s.text, "taskId"), id, sizeof id);
    assert_string_not_equal(id, old);
    wire_get_until(a, id, "completed", CAPS_TASKS);
    segue_store_show(w->store, id, copy_summary, &s, NULL);
    assert_at(s.text, "segments", "9");
    segue_store_show(w->store, old, copy_summary, &s, NULL);
    assert_at(s.text, "segments", "9");
    assert_at(s.text, "restartable", "true");
}

static int32_t count_one(void *user, const char *json, size_t len)
{
    int *count = user;
    (void)json;
    (void)len;
    ++*count;
    return 0;
}

static void what_cannot_run_again_is_refused(world *w)
{
    summary s;
    int count = 0;
    segue_error *error = NULL;
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "story", "\"n\":3,\"delayMs\":10", NULL);
    const char *hangs = wire_make_task(a, "2", "hang", NULL, NULL);
    wire_get_until(a, id, "completed", CAPS_TASKS);
    assert_int_equal(rerun(w, id, 4, &s, NULL), SEGUE_E_INVALID);
    assert_int_equal(rerun(w, hangs, 0, &s, &error), SEGUE_E_UNSUPPORTED);
    const char *told = segue_error_read(error)->message;
    assert_non_null(strstr(told, "not known to be restartable"));
    segue_error_free(error);
    assert_int_equal(rerun(w, "nothing", 0, &s, NULL), SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_store_list(w->store, count_one, &count, NULL), SEGUE_OK);
    assert_int_equal(count, 2);
}

int main(void)
{
    enum { FLAGS = ONLY_HERE | ONE_DRIVE };
    static const scenario scenarios[] = {
        {"a task runs again behind a segment", a_task_runs_again_behind_a_segment, FLAGS,
         NULL},
        {"what cannot run again is refused", what_cannot_run_again_is_refused, FLAGS,
         NULL},
        {"a stored call runs again from before it was a task",
         a_stored_call_runs_again_from_before_it_was_a_task, FLAGS, NULL},
        {"a stored call runs again from when it was a task",
         a_stored_call_runs_again_from_when_it_was_a_task, FLAGS, NULL},
        {"a task begins anew", a_task_begins_anew, FLAGS, NULL},
    };
    return scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                  with_keeper);
}
