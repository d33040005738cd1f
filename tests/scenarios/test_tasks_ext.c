/* X: tasks of the extension io.modelcontextprotocol/tasks as a raw client sees them: how
 * a task begins, what tasks/get returns in each state, cancel, time to live. */
#include "support/legacy_wire.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SLOW "\"name\":\"slow_compute\",\"arguments\":{\"ms\":200}"
#define FAILING "\"name\":\"failing_job\",\"arguments\":{\"ms\":200}"
#define CAPS_LEGACY "{\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}}}}"

static void assert_absent(const char *message, const char *const *names)
{
    for (; *names; names++)
        if (json_mentions(message, *names))
            fail_msg("%s does not belong into %s", *names, message);
}

static void assert_plain(const char *response)
{
    assert_at(response, "result.resultType", "\"complete\"");
    assert_at(response, "result.content.0.text", "\"Computed: done\"");
    assert_at(response, "result.taskId", "");
}

/* ---- creation ---- */

static void creates_a_task(world *w)
{
    static const char *const absent[] = {
        "task",          "ttl",          "pollInterval", "error",
        "inputRequests", "requestState", "content",      NULL};
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call", SLOW, CAPS_TASKS);
    assert_at(r, "result.resultType", "\"task\"");
    assert_at(r, "result.status", "\"working\"");
    assert_at(r, "result.ttlMs", "3600000");
    assert_at(r, "result.pollIntervalMs", "1000");
    assert_at(r, "result.result", "");
    assert_true(strlen(json_at(r, "result.taskId")) > 20);
    assert_absent(r, absent);
    assert_golden(r, "tasks_ext_create");
}

static void undeclared_runs_plainly(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", SLOW, NULL);
    world_advance(w, 200);
    const char *r = wire_response(c, "1");
    assert_plain(r);
    assert_golden(r, "call_plain");
    r = wire_do(c, "2", "tools/call", FAILING, NULL);
    assert_code(r, -32021);
    wire_expect_status(c, 400);
    assert_at(r, "error.data.requiredCapabilities.extensions",
              "{\"io.modelcontextprotocol/tasks\":{}}");
    assert_golden(r, "missing_tasks_capability");
}

static void declared_once_counts_once(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_at(wire_do(c, "1", "tools/call", SLOW, CAPS_TASKS), "result.resultType",
              "\"task\"");
    wire_ask(c, "2", "tools/call", SLOW, NULL);
    world_advance(w, 200);
    assert_plain(wire_response(c, "2"));
}

static void legacy_capability_is_none(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", SLOW, CAPS_LEGACY);
    world_advance(w, 200);
    assert_plain(wire_response(c, "1"));
    assert_code(wire_do(c, "2", "tools/call", FAILING, CAPS_LEGACY), -32021);
    const char *r = wire_do(c, "3", "server/discover", NULL, NULL);
    assert_at(r, "result.capabilities.tasks", "");
    assert_non_null(strstr(json_at(r, "result.capabilities.extensions"),
                           "\"io.modelcontextprotocol/tasks\":{"));
}

/* R-2557-17: a client that uses 2026-07-28 without newer declarations finds the tasks
 * that it made under 2025-11-25, in their old form. */
static void tasks_of_2025_are_shown_to_their_clients(world *w)
{
    char params[128];
    wire *old = legacy_connect(w, "Ada", NULL);
    wire *c = world_connect(w, "Ada");
    wire *other = world_connect(w, "Bob");
    snprintf(params, sizeof params, "\"taskId\":\"%s\"",
             legacy_make_task(old, "1", "hang", NULL, NULL));
    const char *r = wire_do(c, "1", "tasks/get", params, CAPS_LEGACY);
    assert_at(r, "result.resultType", "\"complete\"");
    assert_at(r, "result.status", "\"working\"");
    assert_at(r, "result.pollInterval", "1000");
    assert_at(r, "result.pollIntervalMs", "");
    assert_code(wire_do(other, "2", "tasks/get", params, CAPS_LEGACY), -32602);
    assert_code(wire_do(c, "3", "tasks/get", params, NULL), -32021);
    assert_code(wire_do(c, "4", "tasks/get", params, CAPS_TASKS), -32602);
    assert_code(wire_do(c, "5", "tasks/stream", params, CAPS_LEGACY), -32021);
    assert_code(wire_do(c, "6", "tasks/update", params, CAPS_LEGACY), -32021);
    r = wire_do(c, "7", "tasks/cancel", params, CAPS_LEGACY);
    assert_at(r, "result.status", "\"cancelled\"");
    assert_code(wire_do(c, "8", "tasks/cancel", params, CAPS_LEGACY), -32602);
    /* A task of the extension is shown only to clients that declare the extension. */
    snprintf(params, sizeof params, "\"taskId\":\"%s\"",
             wire_make_task(c, "9", "hang", NULL, NULL));
    assert_code(wire_do(c, "10", "tasks/get", params, CAPS_LEGACY), -32021);
}

static void task_param_is_ignored(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(
        c, "1", "tools/call",
        "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"},\"task\":{\"ttl\":1}",
        CAPS_TASKS);
    assert_at(r, "result.resultType", "\"complete\"");
    assert_at(r, "result.content.0.text", "\"Hello, Ada!\"");
    wire_ask(c, "2", "tools/call", SLOW ",\"task\":{\"ttl\":1}", NULL);
    world_advance(w, 200);
    assert_plain(wire_response(c, "2"));
    r = wire_do(c, "3", "tools/call", SLOW ",\"task\":[]", CAPS_TASKS);
    assert_at(r, "result.ttlMs", "3600000");
}

/* ---- tasks/get ---- */

static void golden_of_each_state(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *working = wire_make_task(c, "1", "hang", NULL, NULL);
    const char *asking = wire_make_task(c, "2", "confirm_delete", NULL, CAPS_ALL);
    const char *completed = wire_make_task(c, "3", "fields", NULL, NULL);
    const char *failed = wire_make_task(c, "4", "protocol_error_job", NULL, NULL);
    wire_get_until(c, completed, "completed", NULL);
    wire_get_until(c, failed, "failed", NULL);
    assert_golden(wire_task(c, "5", "tasks/get", working, NULL), "tasks_ext_get_working");
    wire_get_until(c, asking, "input_required", NULL);
    assert_golden(wire_task(c, "6", "tasks/get", asking, NULL),
                  "tasks_ext_get_input_required");
    assert_golden(wire_task(c, "7", "tasks/get", completed, NULL),
                  "tasks_ext_get_completed");
    assert_golden(wire_task(c, "8", "tasks/get", failed, NULL), "tasks_ext_get_failed");
    assert_golden(wire_task(c, "9", "tasks/cancel", working, NULL),
                  "tasks_ext_cancel_ack");
    assert_golden(wire_task(c, "10", "tasks/get", working, NULL),
                  "tasks_ext_get_cancelled");
}

static void tool_errors_complete(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *tool_error = wire_make_task(c, "1", "failing_job", "\"ms\":100", NULL);
    const char *rpc_error = wire_make_task(c, "2", "protocol_error_job", NULL, NULL);
    const char *r = wire_get_until(c, tool_error, "completed", NULL);
    assert_at(r, "result.result.isError", "true");
    assert_at(r, "result.error", "");
    assert_golden(wire_task(c, "3", "tasks/get", tool_error, NULL),
                  "tasks_ext_get_tool_error");
    r = wire_get_until(c, rpc_error, "failed", NULL);
    assert_at(r, "result.error.code", "-32603");
    assert_at(r, "result.error.data.hint", "\"on purpose\"");
    assert_at(r, "result.result", "");
}

static void result_types(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call", SLOW, CAPS_TASKS);
    assert_at(r, "result.resultType", "\"task\"");
    const char *id = wire_make_task(c, "2", "confirm_delete", NULL, CAPS_ALL);
    const char *const complete[] = {
        wire_task(c, "3", "tasks/get", id, NULL),
        wire_task(c, "4", "tasks/update", id, "\"inputResponses\":{}"),
        wire_task(c, "5", "tasks/cancel", id, NULL),
        wire_do(c, "6", "tools/call", "\"name\":\"greet\"", CAPS_TASKS),
    };
    for (size_t i = 0; i < sizeof complete / sizeof *complete; i++)
        assert_at(complete[i], "result.resultType", "\"complete\"");
}

static void removed_methods(world *w)
{
    static const char *const methods[] = {"tasks/result", "tasks/list"};
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
    char params[256];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    for (size_t i = 0; i < 2; i++) {
        assert_code(wire_do(c, "2", methods[i], params, CAPS_TASKS), -32601);
        wire_expect_status(c, 404);
        const char *r = wire_do(c, "3", methods[i], params, NULL);
        assert_code(r, -32601);
        wire_expect_status(c, 404);
    }
    assert_golden(wire_do(c, "4", "tasks/list", NULL, CAPS_TASKS), "method_not_found");
}

static void bad_task_ids(world *w)
{
    static const char *const methods[] = {"tasks/get", "tasks/cancel", "tasks/update",
                                          "tasks/stream"};
    static const char *const bad[] = {
        "\"inputResponses\":{}",
        "\"inputResponses\":{},\"taskId\":7",
        "\"inputResponses\":{},\"taskId\":null",
        "\"inputResponses\":{},\"taskId\":\"\"",
        "\"inputResponses\":{},\"taskId\":\"no-such-task\"",
        "\"inputResponses\":{},\"taskId\":\"\\u0000\\n\\\"\""};
    wire *c = world_connect(w, NULL);
    for (size_t m = 0; m < 4; m++) {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            assert_code(wire_do(c, "1", methods[m], bad[i], CAPS_TASKS), -32602);
        /* The capability is checked before the parameters (R-0-7). */
        assert_code(wire_do(c, "2", methods[m], bad[0], NULL), -32021);
    }
    assert_golden(wire_do(c, "3", "tasks/get", bad[4], CAPS_TASKS), "task_not_found");
}

/* ---- cancel ---- */

static void cancel_is_idempotent(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *running = wire_make_task(c, "1", "hang", NULL, NULL);
    const char *done = wire_make_task(c, "2", "fields", NULL, NULL);
    wire_get_until(c, done, "completed", NULL);
    const char *ack = wire_task(c, "3", "tasks/cancel", running, NULL);
    assert_at(ack, "result.resultType", "\"complete\"");
    assert_at(ack, "result.taskId", "");
    assert_at(wire_task(c, "4", "tasks/get", running, NULL), "result.status",
              "\"cancelled\"");
    assert_at(wire_task(c, "5", "tasks/cancel", running, NULL), "result.resultType",
              "\"complete\"");
    assert_at(wire_task(c, "6", "tasks/cancel", done, NULL), "result.resultType",
              "\"complete\"");
    assert_at(wire_task(c, "7", "tasks/get", done, NULL), "result.status",
              "\"completed\"");
    assert_code(wire_task(c, "8", "tasks/cancel", "no-such-task", NULL), -32602);
}

static void late_result_is_dropped(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "stubborn", world_lasting(w, 100), NULL);
    wire_task(c, "2", "tasks/cancel", id, NULL);
    const char *marker = wire_make_task(c, "3", "stubborn", world_lasting(w, 150), NULL);
    wire_get_until(c, marker, "completed", NULL); /* so the first one has finished, too */
    const char *r = wire_task(c, "4", "tasks/get", id, NULL);
    assert_at(r, "result.status", "\"cancelled\"");
    assert_at(r, "result.result", "");
}

static void cancelled_is_not_for_tasks(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id =
        wire_make_task(c, "\"make\"", "slow_compute", world_lasting(w, 300), NULL);
    wire_notify(c, "notifications/cancelled", "\"requestId\":\"make\",\"reason\":\"x\"");
    wire_task(c, "77", "tasks/get", id, NULL);
    wire_notify(c, "notifications/cancelled", "\"requestId\":77");
    assert_at(wire_task(c, "5", "tasks/get", id, NULL), "result.status", "\"working\"");
    wire_get_until(c, id, "completed", NULL);
}

/* ---- identity, time ---- */

#define IDS 10000
#define BURST 500

static void allow_many_tasks(segue_server_options *options)
{
    options->max_tasks = IDS;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *burst_of_calls(int count, const char *params, const char *caps)
{
    char *text = calloc(1, (size_t)count * 600);
    char *end = text;
    for (int i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        char *line = wire_line(id, "tools/call", params, caps);
        end += sprintf(end, "%s%s", i ? "\n" : "", line);
        free(line);
    }
    return text;
}

static void ids_are_unguessable(world *w)
{
    static char *ids[IDS];
    wire *c = world_connect(w, NULL);
    char *burst =
        burst_of_calls(BURST, "\"name\":\"big\",\"arguments\":{\"bytes\":1}", CAPS_TASKS);
    for (int n = 0; n < IDS; n += BURST) {
        wire_send(c, burst);
        for (int i = 0; i < BURST; i++) {
            char id[16];
            snprintf(id, sizeof id, "%d", i);
            ids[n + i] = strdup(json_at(wire_response(c, id), "result.taskId"));
        }
    }
    free(burst);
    qsort(ids, IDS, sizeof *ids, compare_text);
    for (int i = 0; i < IDS; i++) {
        size_t len = strlen(ids[i]) - 2;
        /* 128 bits in an alphabet of 66 need 22 characters. */
        assert_in_range(len, 22, 128);
        assert_int_equal(strspn(ids[i] + 1,
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789._~-"),
                         len);
        assert_true(i == 0 || strcmp(ids[i - 1], ids[i]) != 0);
    }
    for (int i = 0; i < IDS; i++)
        free(ids[i]);
}

static void readable_until_ttl(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *done = wire_make_task(c, "1", "slow_compute", "\"ms\":100", NULL);
    const char *brief = wire_make_task(c, "2", "brief", NULL, NULL);
    assert_at(wire_task(c, "3", "tasks/get", brief, NULL), "result.ttlMs", "5000");
    world_jump(w, 4999);
    assert_at(wire_task(c, "4", "tasks/get", brief, NULL), "result.status",
              "\"working\"");
    wire_get_until(c, done, "completed", NULL);
    world_jump(w, 3600000 - (w->clock_ms - 1000) - 1);
    assert_at(wire_task(c, "5", "tasks/get", done, NULL), "result.status",
              "\"completed\"");
    assert_at(wire_task(c, "6", "tasks/get", done, NULL), "result.result.content.0.text",
              "\"Computed: done\"");
    world_jump(w, 1);
    assert_code(wire_task(c, "7", "tasks/get", done, NULL), -32602);
}

static void expires_then_vanishes(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *brief = wire_make_task(c, "1", "brief", NULL, NULL);
    world_jump(w, 5000);
    const char *r = wire_task(c, "2", "tasks/get", brief, NULL);
    assert_at(r, "result.status", "\"failed\"");
    assert_at(r, "result.error.code", "-32603");
    assert_at(r, "result.error.message", "\"Task TTL expired\"");
    assert_golden(r, "tasks_ext_get_expired");
    world_jump(w, 5 * 60 * 1000 - 1);
    assert_at(wire_task(c, "3", "tasks/get", brief, NULL), "result.status", "\"failed\"");
    world_jump(w, 1);
    assert_code(wire_task(c, "4", "tasks/get", brief, NULL), -32602);
}

static void allow_unlimited(segue_server_options *options)
{
    options->max_ttl_ms = -1;
}

static void unlimited_shows_null(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "forever", NULL, NULL);
    assert_at(wire_task(c, "2", "tasks/get", id, NULL), "result.ttlMs", "null");
    world_jump(w, (int64_t)400 * 24 * 3600 * 1000);
    assert_at(wire_task(c, "3", "tasks/get", id, NULL), "result.status", "\"working\"");
}

static void unlimited_is_clamped(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "forever", NULL, NULL);
    assert_at(wire_task(c, "2", "tasks/get", id, NULL), "result.ttlMs", "86400000");
}

static void never_says_request_state(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "confirm_delete", NULL, CAPS_ALL);
    wire_ask(c, "2", "subscriptions/listen", "\"notifications\":{\"taskIds\":[]}",
             CAPS_TASKS);
    wire_task(c, "3", "tasks/get", id, "\"requestState\":\"abc\"");
    wire_get_until(c, id, "input_required", CAPS_ALL);
    wire_task(c, "4", "tasks/update", id,
              "\"requestState\":\"abc\",\"inputResponses\":{\"input-1\":{\"action\":"
              "\"decline\"}}");
    wire_get_until(c, id, "completed", NULL);
    wire_task(c, "5", "tasks/stream", id, NULL);
    wire_task(c, "6", "tasks/cancel", id, "\"requestState\":\"abc\"");
    assert_null(strstr(wire_history(c), "requestState"));
}

/* ---- the log ---- */

static void expect_info(world *w, uint64_t count, const char *id, const char *what)
{
    char text[256];
    snprintf(text, sizeof text, "task %.8s... of %s (principal: ", id, what);
    assert_int_equal(w->info_count, count);
    if (strncmp(w->last_info, text, strlen(text)))
        fail_msg("not \"%s\": %s", text, w->last_info);
    assert_null(strstr(w->last_info, id)); /* whoever has the id has access to the task */
}

static void the_log_tells_of_tasks(world *w)
{
    wire *c = world_connect(w, NULL);
    uint64_t before = w->info_count;
    const char *id = wire_make_task(c, "1", "slow_compute", "\"ms\":200", CAPS_TASKS);
    expect_info(w, before + 1, id, "slow_compute is created");
    wire_task(c, "2", "tasks/get", id, NULL);
    expect_info(w, before + 1, id, "slow_compute is created");
    world_advance(w, 200);
    expect_info(w, before + 2, id, "slow_compute has completed");
    id = wire_make_task(c, "3", "slow_compute", "\"ms\":200", CAPS_TASKS);
    wire_task(c, "4", "tasks/cancel", id, NULL);
    world_advance(w, 200);
    expect_info(w, before + 4, id, "slow_compute was cancelled");
}

static const scenario scenarios[] = {
    {"AS-33 a task is created", creates_a_task, 0, NULL},
    {"AS-34 R-2557-57 undeclared: plain, or -32021", undeclared_runs_plainly, 0, NULL},
    {"AS-35 declared on one call counts for that call", declared_once_counts_once, 0,
     NULL},
    {"R-2557-54 the log tells how a task begins and ends", the_log_tells_of_tasks,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-36 the legacy capability does not count", legacy_capability_is_none, 0, NULL},
    {"R-2557-17 tasks of 2025-11-25 are shown to their clients",
     tasks_of_2025_are_shown_to_their_clients, ONLY_HERE, NULL},
    {"AS-37 params.task is ignored", task_param_is_ignored, 0, NULL},
    {"AS-40 R-2557-18 tasks/get equals the golden file of each state",
     golden_of_each_state, 0, NULL},
    {"AS-41 tool errors complete, RPC errors fail", tool_errors_complete, 0, NULL},
    {"AS-42 resultType is task on creation only", result_types, 0, NULL},
    {"AS-43 tasks/result and tasks/list are unknown", removed_methods, 0, NULL},
    {"bad task ids are refused alike", bad_task_ids, 0, NULL},
    {"AS-53 the server never sends requestState", never_says_request_state, ONE_DRIVE,
     NULL},
    {"AS-54 cancel is acknowledged in every state", cancel_is_idempotent, 0, NULL},
    {"AS-57 a result after cancel is dropped", late_result_is_dropped, 0, NULL},
    {"AS-58 notifications/cancelled leaves a task alone", cancelled_is_not_for_tasks, 0,
     NULL},
    {"AS-62 10,000 ids are distinct and header-safe", ids_are_unguessable,
     ONLY_HERE | ONE_DRIVE, allow_many_tasks},
    {"AS-65 readable until its ttl has passed", readable_until_ttl, ONLY_HERE, NULL},
    {"AS-65 a running task expires, is kept for a grace time, is gone",
     expires_then_vanishes, ONLY_HERE, NULL},
    {"AS-65 unlimited shows null", unlimited_shows_null, ONLY_HERE | ONE_DRIVE,
     allow_unlimited},
    {"AS-65 unlimited is clamped where it is not allowed", unlimited_is_clamped,
     ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
