/* L: tasks of 2025-11-25 as a raw client sees them: what is announced, how a task begins,
 * what tasks/get returns in each state, cancel, time to live. */
#include "support/legacy_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void assert_absent(const char *text, const char *const *names)
{
    for (; *names; names++)
        if (json_mentions(text, *names))
            fail_msg("%s does not belong into %s", *names, text);
}

static const char *const of_others[] = {"resultType",      "ttlMs", "pollIntervalMs",
                                        "partial-content", "seqNr", "isComplete",
                                        "requestState",    NULL};

/* ---- what is announced ---- */

#define L_ALONE "\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}"

static void announces_all(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = legacy_hello(c, "2025-11-25", NULL);
    assert_at(r, "result.capabilities.tasks",
              "{\"list\":{}," L_ALONE ",\"responses\":{\"modes\":[\"task\",\"immediate\","
              "\"streaming\"]}}");
    assert_at(r, "result.capabilities.extensions", "");
}

static void only_l(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_STREAMING | SEGUE_DIALECT_IMMEDIATE;
}

static void announces_l_alone(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_at(legacy_hello(c, "2025-11-25", NULL), "result.capabilities.tasks",
              "{\"list\":{}," L_ALONE "}");
}

static void only_streaming(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_IMMEDIATE;
}

static void announces_each_mode_by_itself(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_at(legacy_hello(c, "2025-11-25", NULL),
              "result.capabilities.tasks.responses.modes", "[\"task\",\"streaming\"]");
}

static void without_principals(segue_server_options *options)
{
    options->principal = NULL;
}

/* Over HTTP a session has its own list (test_tasks_2025_list_session.c). */
static void no_list_without_principals(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = legacy_hello(c, "2025-11-25", NULL);
    assert_at(r, "result.capabilities.tasks.list", "");
    assert_at(r, "result.capabilities.tasks.cancel", "{}");
    wire_notify(c, "notifications/initialized", NULL);
    legacy_make_task(c, "1", "hang", NULL, NULL);
    r = wire_do_plain(c, "2", "tasks/list", NULL);
    assert_code(r, -32601);
    assert_at(r, "error.message", "\"Method not found\"");
}

static void without_l(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_TASKS_2025;
}

#define GREET_TASK "\"name\":\"greet\",\"task\":{\"ttl\":-5,\"responseModes\":7}"

/* Without task support params.task is an unknown member, whatever it holds. */
static void assert_knows_no_tasks(wire *c)
{
    static const char *const methods[] = {"tasks/get", "tasks/result", "tasks/cancel",
                                          "tasks/list"};
    const char *r = wire_do_plain(c, "1", "tools/call", GREET_TASK);
    assert_at(r, "result.content.0.text", "\"Hello, World!\"");
    assert_at(r, "result.task", "");
    for (size_t i = 0; i < 4; i++)
        assert_code(wire_do_plain(c, "2", methods[i], "\"taskId\":\"x\""), -32601);
    assert_null(strstr(wire_do_plain(c, "3", "tools/list", NULL), "taskSupport"));
}

static void nothing_when_l_is_off(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_at(legacy_hello(c, "2025-11-25", NULL), "result.capabilities.tasks", "");
    wire_notify(c, "notifications/initialized", NULL);
    assert_knows_no_tasks(c);
}

static void nothing_in_older_revisions(world *w)
{
    static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
    for (size_t i = 0; i < 3; i++) {
        wire *c = world_connect(w, NULL);
        assert_at(legacy_hello(c, versions[i], NULL), "result.capabilities.tasks", "");
        wire_notify(c, "notifications/initialized", NULL);
        assert_knows_no_tasks(c);
    }
}

/* ---- tools/list ---- */

/* Copies the entry of a tool in tools/list, as text. */
static void find_tool(const char *list, const char *name, char *out, size_t size)
{
    char path[64], quoted[80];
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "result.tools.%d.name", i);
        if (strcmp(json_at(list, path), quoted) != 0)
            continue;
        snprintf(path, sizeof path, "result.tools.%d", i);
        snprintf(out, size, "%s", json_at(list, path));
        return;
    }
    fail_msg("%s is not listed", name);
}

static void tools_say_what_they_are(world *w)
{
    char tool[1024];
    wire *c = legacy_connect(w, NULL, NULL);
    const char *r = wire_do_plain(c, "1", "tools/list", NULL);
    find_tool(r, "slow_compute", tool, sizeof tool);
    assert_at(tool, "execution", "{\"taskSupport\":\"optional\"}");
    find_tool(r, "failing_job", tool, sizeof tool);
    assert_at(tool, "execution", "{\"taskSupport\":\"required\"}");
    find_tool(r, "greet", tool, sizeof tool);
    assert_at(tool, "execution", "");
    wire *older = legacy_connect_as(w, NULL, "2025-06-18", NULL);
    assert_null(strstr(wire_do_plain(older, "1", "tools/list", NULL), "execution"));
    assert_null(strstr(wire_do(c, "2", "tools/list", NULL, NULL), "execution"));
}

static void on_call_never(void *user, segue_call *call)
{
    (void)user;
    segue_call_free(call);
}

/* The server replaces a value of the application that may not be true. */
static void execution_of_the_application_is_taken_out(world *w)
{
    static const char json[] = "{\"name\":\"liar\",\"execution\":{\"taskSupport\":"
                               "\"required\",\"x\":1},\"title\":\"Liar\","
                               "\"inputSchema\":{\"type\":\"object\"}}";
    char tool[1024];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = on_call_never;
    options.task = SEGUE_TASK_NEVER;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, json, sizeof json - 1,
                                      &options, NULL),
                     SEGUE_OK);
    wire *c = legacy_connect(w, NULL, NULL);
    find_tool(wire_do_plain(c, "1", "tools/list", NULL), "liar", tool, sizeof tool);
    assert_string_equal(tool, "{\"name\":\"liar\",\"title\":\"Liar\","
                              "\"inputSchema\":{\"type\":\"object\"}}");
    find_tool(wire_do(c, "2", "tools/list", NULL, NULL), "liar", tool, sizeof tool);
    assert_null(strstr(tool, "execution"));
}

static void task_support_is_kept(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *r = wire_do_plain(c, "5", "tools/call", "\"name\":\"failing_job\"");
    assert_code(r, -32601);
    assert_golden(r, "legacy_task_required");
    r = legacy_call(c, "6", "greet", NULL, NULL);
    assert_code(r, -32601);
    assert_golden(r, "tasks_2025_forbidden");
    if (w->place != WORLD_STDIO) {
        assert_int_equal(world_runs(w, "failing_job"), 0);
        assert_int_equal(world_runs(w, "greet"), 0);
    }
}

static void bad_tasks_leave_no_trace(world *w)
{
    static const char *const bad[] = {"[]",
                                      "7",
                                      "null",
                                      "\"x\"",
                                      "true",
                                      "{\"ttl\":-5}",
                                      "{\"ttl\":\"60000\"}",
                                      "{\"ttl\":1.5}",
                                      "{\"ttl\":null}",
                                      "{\"ttl\":1e300}",
                                      "{\"responseModes\":\"streaming\"}",
                                      "{\"responseModes\":[1]}",
                                      "{\"responseModes\":{}}",
                                      "{\"responseModes\":null}"};
    wire *c = legacy_connect(w, NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(legacy_call(c, "1", "slow_compute", NULL, bad[i]), -32602);
    assert_at(wire_do_plain(c, "2", "tasks/list", NULL), "result", "{\"tasks\":[]}");
    if (w->place != WORLD_STDIO)
        assert_int_equal(world_runs(w, "slow_compute"), 0);
}

/* ---- creation, tasks/get ---- */

static void task_flow(world *w)
{
    char related[128];
    wire *c = legacy_connect(w, NULL, NULL);
    const char *r = legacy_call(c, "1", "slow_compute", "\"ms\":200", "{\"ttl\":60000}");
    assert_at(r, "result.task.status", "\"working\"");
    assert_at(r, "result.task.ttl", "60000");
    assert_at(r, "result.task.pollInterval", "1000");
    assert_at(r, "result._meta", "");
    assert_golden(r, "tasks_2025_create");
    const char *id = legacy_make_task(c, "2", "slow_compute", "\"ms\":200", NULL);
    r = legacy_get_until(c, id, "completed");
    assert_at(r, "result.ttl", "3600000");
    r = legacy_task(c, "3", "tasks/result", id, NULL);
    assert_at(r, "result.content", "[{\"type\":\"text\",\"text\":\"Computed: done\"}]");
    snprintf(related, sizeof related,
             "{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}}", id);
    assert_at(r, "result._meta", related);
    assert_golden(r, "tasks_2025_result");
    assert_absent(wire_history(c), of_others);
}

static void golden_of_each_state(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *working = legacy_make_task(c, "1", "hang", NULL, NULL);
    const char *completed = legacy_make_task(c, "2", "fields", NULL, NULL);
    const char *failed = legacy_make_task(c, "3", "protocol_error_job", NULL, NULL);
    const char *tool_error = legacy_make_task(c, "4", "failing_job", "\"ms\":100", NULL);
    legacy_get_until(c, completed, "completed");
    legacy_get_until(c, failed, "failed");
    legacy_get_until(c, tool_error, "failed");
    assert_golden(legacy_task(c, "5", "tasks/get", working, NULL),
                  "tasks_2025_get_working");
    assert_golden(legacy_task(c, "6", "tasks/get", completed, NULL),
                  "tasks_2025_get_completed");
    assert_golden(legacy_task(c, "7", "tasks/get", failed, NULL),
                  "tasks_2025_get_failed");
    assert_golden(legacy_task(c, "8", "tasks/get", tool_error, NULL),
                  "tasks_2025_get_tool_error");
    assert_golden(legacy_task(c, "9", "tasks/cancel", working, NULL),
                  "tasks_2025_cancel");
    assert_golden(legacy_task(c, "10", "tasks/get", working, NULL),
                  "tasks_2025_get_cancelled");
    assert_absent(wire_history(c), of_others);
}

static void tool_errors_fail(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *tool_error = legacy_make_task(c, "1", "failing_job", "\"ms\":100", NULL);
    const char *rpc_error = legacy_make_task(c, "2", "protocol_error_job", NULL, NULL);
    const char *r = legacy_get_until(c, tool_error, "failed");
    assert_at(r, "result.error", "");
    assert_at(r, "result.result", "");
    assert_at(legacy_task(c, "3", "tasks/result", tool_error, NULL), "result.isError",
              "true");
    r = legacy_get_until(c, rpc_error, "failed");
    assert_at(r, "result.error", "");
    assert_at(r, "result.statusMessage", "\"Protocol level failure\"");
}

static void bad_task_ids(world *w)
{
    static const char *const methods[] = {"tasks/get", "tasks/cancel", "tasks/result"};
    static const char *const bad[] = {"\"x\":1",
                                      "\"taskId\":7",
                                      "\"taskId\":null",
                                      "\"taskId\":\"\"",
                                      "\"taskId\":\"no-such-task\"",
                                      "\"taskId\":\"\\u0000\\n\\\"\""};
    wire *c = legacy_connect(w, NULL, NULL);
    for (size_t m = 0; m < 3; m++)
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            assert_code(wire_do_plain(c, "1", methods[m], bad[i]), -32602);
    assert_golden(wire_do_plain(c, "3", "tasks/get", bad[4]), "task_not_found");
    assert_code(wire_do_plain(c, "4", "tasks/update", "\"taskId\":\"x\""), -32601);
}

/* ---- cancel ---- */

static void assert_refused(const char *r, const char *status)
{
    char text[128];
    assert_code(r, -32602);
    snprintf(text, sizeof text, "\"Cannot cancel task: already in terminal status '%s'\"",
             status);
    assert_at(r, "error.message", text);
    assert_at(r, "error.data", "");
}

static void cancel_once(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *running = legacy_make_task(c, "1", "hang", NULL, NULL);
    const char *done = legacy_make_task(c, "2", "fields", NULL, NULL);
    const char *broken = legacy_make_task(c, "3", "failing_job", "\"ms\":50", NULL);
    legacy_get_until(c, done, "completed");
    legacy_get_until(c, broken, "failed");
    const char *r = legacy_task(c, "4", "tasks/cancel", running, NULL);
    assert_at(r, "result.status", "\"cancelled\"");
    assert_at(r, "result.statusMessage", "\"The task was cancelled by request.\"");
    assert_at(legacy_task(c, "5", "tasks/get", running, NULL), "result.status",
              "\"cancelled\"");
    assert_refused(legacy_task(c, "6", "tasks/cancel", running, NULL), "cancelled");
    assert_refused(legacy_task(c, "7", "tasks/cancel", done, NULL), "completed");
    assert_refused(legacy_task(c, "8", "tasks/cancel", broken, NULL), "failed");
    assert_code(legacy_task(c, "9", "tasks/cancel", "no-such-task", NULL), -32602);
    if (w->place != WORLD_STDIO)
        assert_int_equal(fixtures_jobs(w->fixtures), 0);
}

/* A tool that does not stop: the task is cancelled all the same (5.4.1, row 15), and
 * later output of the tool is dropped. */
static void cancelled_stays_cancelled(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "stubborn", world_lasting(w, 100), NULL);
    assert_at(legacy_task(c, "2", "tasks/cancel", id, NULL), "result.status",
              "\"cancelled\"");
    const char *marker =
        legacy_make_task(c, "3", "stubborn", world_lasting(w, 150), NULL);
    legacy_get_until(c, marker, "completed");
    assert_at(legacy_task(c, "4", "tasks/get", id, NULL), "result.status",
              "\"cancelled\"");
}

static void cancelled_is_not_for_tasks(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id =
        legacy_make_task(c, "\"make\"", "slow_compute", world_lasting(w, 300), NULL);
    wire_notify(c, "notifications/cancelled", "\"requestId\":\"make\"");
    assert_at(legacy_task(c, "5", "tasks/get", id, NULL), "result.status", "\"working\"");
    legacy_get_until(c, id, "completed");
}

/* ---- time ---- */

static void ttl_is_clamped(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *r =
        legacy_call(c, "1", "slow_compute", "\"ms\":10", "{\"ttl\":999999999}");
    assert_at(r, "result.task.ttl", "86400000");
    r = legacy_call(c, "2", "slow_compute", "\"ms\":10", "{\"ttl\":9007199254740991}");
    assert_at(r, "result.task.ttl", "86400000");
    assert_code(legacy_call(c, "3", "slow_compute", NULL, "{\"ttl\":-5}"), -32602);
    assert_at(legacy_call(c, "4", "slow_compute", NULL, "{\"ttl\":1}"), "result.task.ttl",
              "1");
}

static void readable_until_ttl(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *done = legacy_make_task(c, "1", "fields", NULL, "{\"ttl\":60000}");
    const char *late = legacy_make_task(c, "2", "hang", NULL, "{\"ttl\":60000}");
    int64_t made = w->clock_ms;
    legacy_get_until(c, done, "completed");
    world_jump(w, made + 59999 - w->clock_ms);
    assert_at(legacy_task(c, "3", "tasks/get", done, NULL), "result.status",
              "\"completed\"");
    assert_at(legacy_task(c, "4", "tasks/result", done, NULL), "result.content.0.text",
              "\"right\"");
    assert_at(legacy_task(c, "5", "tasks/get", late, NULL), "result.status",
              "\"working\"");
    world_jump(w, 1);
    assert_code(legacy_task(c, "6", "tasks/get", done, NULL), -32602);
    const char *r = legacy_task(c, "7", "tasks/get", late, NULL);
    assert_at(r, "result.status", "\"failed\"");
    assert_at(r, "result.statusMessage", "\"Task TTL expired\"");
    assert_golden(r, "tasks_2025_get_expired");
    world_jump(w, 5 * 60 * 1000);
    assert_code(legacy_task(c, "8", "tasks/get", late, NULL), -32602);
}

static void allow_unlimited(segue_server_options *options)
{
    options->max_ttl_ms = -1;
}

static void unlimited_shows_null(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    assert_at(legacy_call(c, "1", "forever", NULL, NULL), "result.task.ttl", "null");
}

static void one_task(segue_server_options *options)
{
    options->max_tasks = 1;
}

static void too_many_are_refused(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "hang", NULL, NULL);
    const char *r = legacy_call(c, "2", "hang", NULL, NULL);
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"too_many_tasks\"");
    legacy_task(c, "3", "tasks/cancel", id, NULL);
    legacy_make_task(c, "4", "hang", NULL, NULL);
}

/* ---- beside S ---- */

/* The same for a client of L alone, with a server that has S and one without it: the
 * golden files are the same. */
static void same_bytes_with_and_without_s(world *w)
{
    static const char *const absent[] = {"partial-content", "isComplete", "seqNr", NULL};
    wire *c = legacy_connect(w, NULL, NULL);
    const char *r = legacy_call(c, "1", "story", "\"n\":3,\"delayMs\":10", "{}");
    assert_golden(r, "tasks_2025_story_create");
    const char *id = legacy_make_task(c, "2", "story", "\"n\":3,\"delayMs\":10", NULL);
    legacy_get_until(c, id, "completed");
    assert_golden(legacy_task(c, "3", "tasks/get", id, NULL), "tasks_2025_story_get");
    assert_golden(legacy_task(c, "4", "tasks/result", id, NULL),
                  "tasks_2025_story_result");
    /* For a task made in plain mode lastSeqNr has no meaning (R-1905-31). */
    assert_golden(legacy_task(c, "4", "tasks/result", id, "\"lastSeqNr\":2"),
                  "tasks_2025_story_result");
    assert_absent(wire_history(c), absent);
    assert_null(strstr(wire_history(c), "fallback-mode"));
}

static const scenario scenarios[] = {
    {"R-1905-1 initialize announces tasks", announces_all, ONE_DRIVE, NULL},
    {"R-1905-1 initialize announces tasks of L alone", announces_l_alone, ONE_DRIVE,
     only_l},
    {"R-1905-1 initialize announces one mode without the other",
     announces_each_mode_by_itself, ONE_DRIVE, only_streaming},
    {"R-2557-56 no list where callers cannot be told apart", no_list_without_principals,
     ONLY_HERE | NOT_HTTP | ONE_DRIVE, without_principals},
    {"without L nothing of tasks is said", nothing_when_l_is_off, ONE_DRIVE, without_l},
    {"older revisions know no tasks", nothing_in_older_revisions, ONE_DRIVE, NULL},
    {"tools/list says taskSupport in 2025-11-25 only", tools_say_what_they_are, ONE_DRIVE,
     NULL},
    {"execution of the application is taken out",
     execution_of_the_application_is_taken_out, ONLY_HERE | ONE_DRIVE, NULL},
    {"R-1905-10 taskSupport is kept to", task_support_is_kept, ONE_DRIVE, NULL},
    {"R-1905-9 a task that is asked for badly leaves no trace", bad_tasks_leave_no_trace,
     0, NULL},
    {"AS-2 a task from its creation to its result", task_flow, 0, NULL},
    {"AS-14 a client of L sees nothing of S", same_bytes_with_and_without_s, 0, NULL},
    {"AS-14 a server of L alone sends the same bytes", same_bytes_with_and_without_s, 0,
     only_l},
    {"AS-40 tasks/get of 2025-11-25 equals its golden files", golden_of_each_state, 0,
     NULL},
    {"AS-41 tool errors are failures in 2025-11-25", tool_errors_fail, 0, NULL},
    {"bad task ids in 2025-11-25", bad_task_ids, 0, NULL},
    {"AS-54 cancel of what has ended is refused", cancel_once, 0, NULL},
    {"AS-57 a cancelled task stays cancelled", cancelled_stays_cancelled, ONE_DRIVE,
     NULL},
    {"AS-58 notifications/cancelled leaves a task of 2025-11-25 alone",
     cancelled_is_not_for_tasks, ONE_DRIVE, NULL},
    {"AS-65 a task of 2025-11-25 is readable until its ttl", readable_until_ttl,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-65 null when unlimited, in 2025-11-25", unlimited_shows_null, ONE_DRIVE,
     allow_unlimited},
    {"AS-66 the reported ttl is the clamped one", ttl_is_clamped, 0, NULL},
    {"too many tasks of 2025-11-25 are refused", too_many_are_refused, ONE_DRIVE,
     one_task},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
