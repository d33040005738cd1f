/* D: tasks of DRAFT-2026-v1 (SEP-2557) as a raw client sees them: which clients get them,
 * how a task begins, what tasks/get returns and accepts in each state, cancel, time to
 * live, and notifications of the server. */
#include "engine/server/peer.h"
#include "support/draft_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ELICITS "{\"elicitation\":{}}"
#define YES "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"

static const char *const of_others[] = {
    "ttlMs",           "pollIntervalMs", "serverInfo", "tasks",
    "partial-content", "seqNr",          "extension",  NULL};

static void assert_absent(const char *message, const char *const *names)
{
    for (; *names; names++)
        if (json_mentions(message, *names))
            fail_msg("%s does not belong into %s", *names, message);
}

static const char *get(wire *c, const char *id, const char *task)
{
    const char *r = legacy_task(c, id, "tasks/get", task, NULL);
    assert_at(r, "result.resultType", "\"task\"");
    return r;
}

/* ---- which clients get them ---- */

static void off_unless_switched_on(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_at(legacy_hello(c, DRAFT, NULL), "result.protocolVersion", "\"2025-11-25\"");
}

static void agreed_on_by_both(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = legacy_hello(c, DRAFT, NULL);
    assert_at(r, "result.protocolVersion", "\"" DRAFT "\"");
    assert_at(r, "result.capabilities.tasks", "");
    assert_at(r, "result.capabilities.extensions", "");
    wire *other = world_connect(w, NULL);
    assert_at(legacy_hello(other, "2025-11-25", NULL), "result.protocolVersion",
              "\"2025-11-25\"");
    wire_notify(other, "notifications/initialized", NULL);
    wire_ask_plain(other, "1", "tools/call", "\"name\":\"slow_compute\"");
    world_advance(w, 1000);
    assert_at(wire_response(other, "1"), "result.task", "");
}

static void tools_say_it_with_a_boolean(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    const char *list = wire_do_plain(c, "1", "tools/list", NULL);
    const char *greet = strstr(list, "\"name\":\"greet\"");
    const char *slow = strstr(list, "\"name\":\"slow_compute\"");
    assert_non_null(greet);
    assert_non_null(slow);
    const char *first = strstr(list, "\"execution\":{\"taskSupport\":true}");
    assert_true(first && first > slow);
    assert_null(strstr(list, "\"taskSupport\":\"")); /* the form of 2025-11-25 */
}

static void removed_methods(world *w)
{
    static const char *const methods[] = {"tasks/result", "tasks/list", "tasks/update",
                                          "tasks/stream"};
    wire *c = draft_connect(w, NULL, NULL);
    const char *id = draft_make_task(c, "1", "hang", NULL);
    for (size_t i = 0; i < 4; i++)
        assert_code(legacy_task(c, "2", methods[i], id, "\"inputResponses\":{}"), -32601);
}

/* ---- creation ---- */

static void creates_a_task(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    const char *r = wire_do_plain(
        c, "1", "tools/call",
        "\"name\":\"slow_compute\",\"task\":{\"ttl\":5,\"responseModes\":[\"x\"]}");
    assert_at(r, "result.resultType", "\"task\"");
    assert_at(r, "result.taskId", "");
    assert_at(r, "result.task.status", "\"working\"");
    assert_at(r, "result.task.ttl", "3600");
    assert_at(r, "result.task.pollInterval", "1000");
    assert_absent(r, of_others);
    assert_golden(r, "tasks_2557_create");
    r = wire_do_plain(c, "2", "tools/call", "\"name\":\"greet\",\"task\":{\"ttl\":5}");
    assert_at(r, "result.content.0.text", "\"Hello, World!\"");
    assert_at(r, "result.task", "");
}

/* A slow plain call is answered with the task that it has become. A client that wanted
 * pieces gets all of them with its result (R-776-20). */
static void a_call_becomes_a_task(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    wire_ask_plain(c, "1", "tools/call",
                   "\"name\":\"promote\",\"arguments\":{\"ms\":900},\"_meta\":{"
                   "\"allowPartial\":true}");
    world_advance(w, 600);
    const char *r = wire_response(c, "1");
    assert_at(r, "result.resultType", "\"task\"");
    const char *quoted = json_at(r, "result.task.taskId");
    char id[64];
    snprintf(id, sizeof id, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    r = legacy_get_until(c, id, "completed");
    assert_at(r, "result.result.content.0.text", "\"Computed: done\"");
}

/* ---- tasks/get ---- */

static void golden_of_each_state(world *w)
{
    wire *c = draft_connect(w, NULL, ELICITS);
    const char *working = draft_make_task(c, "1", "hang", NULL);
    const char *asking = draft_make_task(c, "2", "confirm_delete", NULL);
    const char *completed = draft_make_task(c, "3", "fields", NULL);
    const char *failed = draft_make_task(c, "4", "protocol_error_job", NULL);
    legacy_get_until(c, completed, "completed");
    legacy_get_until(c, failed, "failed");
    assert_golden(get(c, "5", working), "tasks_2557_get_working");
    legacy_get_until(c, asking, "input_required");
    assert_golden(get(c, "6", asking), "tasks_2557_get_input_required");
    assert_golden(get(c, "7", completed), "tasks_2557_get_completed");
    assert_golden(get(c, "8", failed), "tasks_2557_get_failed");
    const char *r = legacy_task(c, "9", "tasks/cancel", working, NULL);
    assert_golden(r, "tasks_2557_cancel");
    r = get(c, "10", working);
    assert_golden(r, "tasks_2557_get_cancelled");
    assert_absent(wire_history(c),
                  (const char *const[]){"ttlMs", "pollIntervalMs", NULL});
}

static void tool_errors_complete(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    const char *tool_error = draft_make_task(c, "1", "failing_job", "\"ms\":100");
    const char *r = legacy_get_until(c, tool_error, "completed");
    assert_at(r, "result.result.isError", "true");
    assert_at(r, "result.result.resultType", "");
    assert_at(r, "result.error", "");
}

/* ---- answers with tasks/get ---- */

static const char *answer(wire *c, const char *id, const char *task, const char *answers)
{
    char more[512];
    snprintf(more, sizeof more, "\"inputResponses\":%s", answers);
    return legacy_task(c, id, "tasks/get", task, more);
}

static void answers_come_with_get(world *w)
{
    wire *c = draft_connect(w, NULL, ELICITS);
    const char *id = draft_make_task(c, "1", "confirm_delete", NULL);
    legacy_get_until(c, id, "input_required");
    const char *r = answer(c, "2", id, "{\"input-1\":" YES "}");
    assert_at(r, "result.status", "\"working\"");
    assert_at(r, "result.inputRequests", "");
    assert_at(answer(c, "3", id, "{\"input-1\":" YES "}"), "result.resultType",
              "\"task\""); /* a retry: taken once */
    r = legacy_get_until(c, id, "completed");
    assert_non_null(strstr(json_at(r, "result.result.content"), "accept"));
    r = answer(c, "4", id, "{\"input-1\":" YES ",\"never\":7}");
    assert_at(r, "result.status", "\"completed\"");
}

static void answers_one_by_one(world *w)
{
    wire *c = draft_connect(w, NULL, ELICITS);
    const char *id = draft_make_task(c, "1", "multi_input", NULL);
    const char *r = legacy_get_until_asked(c, id, "input-2");
    assert_non_null(strstr(r, "\"input-1\":"));
    assert_non_null(strstr(r, "\"input-2\":"));
    r = answer(c, "2", id, "{\"input-1\":{\"action\":\"accept\",\"content\":{}}}");
    assert_at(r, "result.status", "\"input_required\"");
    assert_null(strstr(r, "\"input-1\":"));
    assert_non_null(strstr(r, "\"input-2\":"));
    r = answer(c, "3", id, "{}");
    assert_at(r, "result.status", "\"input_required\"");
    r = answer(c, "4", id, "{\"input-2\":{\"action\":\"decline\"}}");
    assert_at(r, "result.status", "\"working\"");
    legacy_get_until(c, id, "completed");
}

/* No answer is taken when one does not fit (R-2557-27). */
static void unfit_answers_leave_the_question_open(world *w)
{
    static const char *const bad[] = {
        "{\"input-1\":{\"action\":\"accept\",\"content\":{}},\"input-2\":7}",
        "{\"input-2\":{\"action\":\"perhaps\"}}", "{\"input-1\":null}"};
    wire *c = draft_connect(w, NULL, ELICITS);
    const char *id = draft_make_task(c, "1", "multi_input", NULL);
    legacy_get_until_asked(c, id, "input-2");
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < 3; i++)
            assert_code(answer(c, "2", id, bad[i]), -32602);
    const char *r = get(c, "3", id);
    assert_non_null(strstr(r, "\"input-1\":"));
    assert_non_null(strstr(r, "\"input-2\":"));
    assert_code(answer(c, "4", id, "[]"), -32602);
    assert_code(answer(c, "5", id, "null"), -32602);
}

/* In the draft each question, also before a task, is part of an answer, never a
 * request. */
static void calls_that_ask_are_answered_with_a_round(world *w)
{
    char params[2048];
    wire *c = draft_connect(w, NULL, ELICITS);
    const char *r = wire_do_plain(c, "1", "tools/call", "\"name\":\"ask_once\"");
    assert_at(r, "result.resultType", "\"incomplete\"");
    assert_at(r, "result.inputRequests.input-1.method", "\"elicitation/create\"");
    assert_golden(r, "draft_incomplete");
    snprintf(
        params, sizeof params,
        "\"name\":\"ask_once\",\"requestState\":%s,\"inputResponses\":{\"input-1\":" YES
        "}",
        json_at(r, "result.requestState"));
    r = wire_do_plain(c, "2", "tools/call", params);
    assert_non_null(strstr(json_at(r, "result.content"), "accept"));
    assert_at(r, "result.resultType", "");
}

/* ---- requestState ---- */

static void ask_with(wire *c, const char *id, const char *task, const char *state)
{
    char more[8192];
    snprintf(more, sizeof more, "\"requestState\":%s", state);
    legacy_ask_about(c, id, "tasks/get", task, more);
}

static const char *get_with(wire *c, const char *id, const char *task, const char *state)
{
    char more[1024];
    snprintf(more, sizeof more, "\"requestState\":%s", state);
    return legacy_task(c, id, "tasks/get", task, more);
}

static void old_states_stay_good(world *w)
{
    char first[512], later[512];
    wire *c = draft_connect(w, NULL, NULL);
    const char *id = draft_make_task(c, "1", "hang", NULL);
    snprintf(first, sizeof first, "%s", draft_state_of(get(c, "2", id)));
    world_advance(w, 1000);
    snprintf(later, sizeof later, "%s", draft_state_of(get(c, "3", id)));
    if (w->place != WORLD_STDIO)
        assert_string_not_equal(first, later);
    ask_with(c, "4", id, later);
    ask_with(c, "5", id, first);
    assert_at(wire_response(c, "5"), "result.status", "\"working\"");
    assert_at(wire_response(c, "4"), "result.status", "\"working\"");
    char more[600];
    snprintf(more, sizeof more, "\"requestState\":%s", first);
    assert_at(legacy_task(c, "6", "tasks/cancel", id, more), "result.status",
              "\"cancelled\"");
}

static void altered_states_are_as_no_task(world *w)
{
    char state[512], text[512];
    wire *c = draft_connect(w, NULL, NULL);
    const char *id = draft_make_task(c, "1", "hang", NULL);
    const char *other = draft_make_task(c, "2", "hang", NULL);
    snprintf(state, sizeof state, "%s", draft_state_of(get(c, "3", id)));
    snprintf(text, sizeof text, "%s",
             json_at(legacy_task(c, "4", "tasks/get", "nobody", NULL), "error"));
    assert_non_null(strstr(text, "Task not found"));
    /* the state of another task */
    assert_at(get_with(c, "5", other, state), "error", text);
    for (size_t i = 1; i < strlen(state) - 1; i += 7) {
        char kept = state[i];
        state[i] = kept == 'A' ? 'B' : 'A';
        assert_at(get_with(c, "6", id, state), "error", text);
        state[i] = kept;
    }
    assert_at(get_with(c, "7", id, "\"\""), "error", text);
    assert_at(get_with(c, "8", id, "\"\\u0000\xf0\x9f\x98\x80\""), "error", text);
    assert_code(get_with(c, "9", id, "7"), -32602);
    assert_code(get_with(c, "10", id, "null"), -32602);
    assert_at(get_with(c, "11", id, state), "result.status", "\"working\"");
}

static void states_have_a_largest_size(world *w)
{
    char *state = malloc(70000);
    wire *c = draft_connect(w, NULL, NULL);
    const char *id = draft_make_task(c, "1", "hang", NULL);
    char *params = malloc(80000);
    memset(state, 'A', 60000);
    state[60000] = 0;
    snprintf(params, 80000, "\"taskId\":\"%s\",\"requestState\":\"%s\"", id, state);
    assert_code(wire_do_plain(c, "2", "tasks/get", params), -32602);
    free(params);
    free(state);
}

static void strangers_see_nothing(world *w)
{
    char state[512], more[600], unknown[512];
    wire *ada = draft_connect(w, "ada", NULL);
    wire *bob = draft_connect(w, "bob", NULL);
    const char *id = draft_make_task(ada, "1", "hang", NULL);
    snprintf(state, sizeof state, "%s", draft_state_of(get(ada, "2", id)));
    snprintf(more, sizeof more, "\"requestState\":%s", state);
    snprintf(unknown, sizeof unknown, "%s",
             json_at(legacy_task(bob, "1", "tasks/get", "nobody", NULL), "error"));
    assert_at(legacy_task(bob, "2", "tasks/get", id, NULL), "error", unknown);
    assert_at(legacy_task(bob, "3", "tasks/get", id, more), "error", unknown);
    assert_at(legacy_task(bob, "4", "tasks/cancel", id, more), "error", unknown);
    assert_at(get(ada, "5", id), "result.status", "\"working\"");
}

/* ---- cancel ---- */

static void cancel_of_the_ended_is_refused(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    const char *done = draft_make_task(c, "1", "fields", NULL);
    const char *running = draft_make_task(c, "2", "hang", NULL);
    legacy_get_until(c, done, "completed");
    const char *r = legacy_task(c, "3", "tasks/cancel", done, NULL);
    assert_code(r, -32602);
    assert_at(r, "error.message",
              "\"Cannot cancel task: already in terminal status 'completed'\"");
    r = legacy_task(c, "4", "tasks/cancel", running, NULL);
    assert_at(r, "result.resultType", "\"task\"");
    assert_at(r, "result.status", "\"cancelled\"");
    assert_code(legacy_task(c, "5", "tasks/cancel", running, NULL), -32602);
    assert_code(legacy_task(c, "6", "tasks/cancel", "nobody", NULL), -32602);
    assert_code(wire_do_plain(c, "7", "tasks/cancel", NULL), -32602);
}

static segue_call *held;

static void hold(void *user, segue_call *call)
{
    (void)user;
    held = call;
}

static void add_held(world *w, const char *name, int32_t flags, int64_t ttl_ms)
{
    char json[128];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = hold;
    options.flags = flags;
    options.task = SEGUE_TASK_MAY;
    options.ttl_ms = ttl_ms;
    int n = snprintf(json, sizeof json,
                     "{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}", name);
    assert_int_equal(
        segue_server_add(w->server, SEGUE_ITEM_TOOL, json, (size_t)n, &options, NULL),
        SEGUE_OK);
}

static void what_cannot_be_stopped_goes_on(world *w)
{
    add_held(w, "unstoppable", SEGUE_TOOL_UNSTOPPABLE, 0);
    wire *c = draft_connect(w, NULL, NULL);
    const char *id = draft_make_task(c, "1", "unstoppable", NULL);
    const char *r = legacy_task(c, "2", "tasks/cancel", id, NULL);
    assert_at(r, "result.status", "\"working\"");
    assert_false(segue_call_is_cancelled(held));
    segue_call_complete(held, NULL, NULL);
    segue_call_free(held);
    legacy_get_until(c, id, "completed");
}

/* The same tool under the extension, and under 2025-11-25, where a cancel cannot be
 * refused. */
static void what_cannot_be_stopped_elsewhere(world *w)
{
    add_held(w, "unstoppable", SEGUE_TOOL_UNSTOPPABLE, 0);
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "unstoppable", NULL, NULL);
    assert_at(wire_task(c, "2", "tasks/cancel", id, NULL), "result.resultType",
              "\"complete\"");
    assert_at(wire_task(c, "3", "tasks/get", id, NULL), "result.status", "\"working\"");
    segue_call_complete(held, NULL, NULL);
    segue_call_free(held);
    wire_get_until(c, id, "completed", NULL);
    wire *l = legacy_connect(w, NULL, NULL);
    id = legacy_make_task(l, "1", "unstoppable", NULL, NULL);
    assert_at(legacy_task(l, "2", "tasks/cancel", id, NULL), "result.status",
              "\"cancelled\"");
    segue_call_free(held);
}

/* ---- time ---- */

static void whole_seconds(world *w)
{
    add_held(w, "brief_hold", 0, 1500);
    wire *c = draft_connect(w, NULL, NULL);
    const char *id = draft_make_task(c, "1", "brief_hold", NULL);
    assert_at(get(c, "2", id), "result.ttl", "2");
    world_advance(w, 1999);
    assert_at(get(c, "3", id), "result.status", "\"working\"");
    world_advance(w, 1);
    const char *r = get(c, "4", id);
    assert_at(r, "result.status", "\"failed\"");
    assert_at(r, "result.error.code", "-32603");
    assert_golden(r, "tasks_2557_get_expired");
    segue_call_free(held);
    wire *x = world_connect(w, NULL); /* other dialects show milliseconds */
    wire_make_task(x, "1", "brief_hold", NULL, NULL);
    assert_non_null(strstr(wire_history(x), "\"ttlMs\":1500"));
    segue_call_free(held);
}

static void no_limit(segue_server_options *options)
{
    draft_on(options);
    options->max_ttl_ms = -1;
}

static void unlimited_is_null(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    const char *id = draft_make_task(c, "1", "forever", NULL);
    assert_at(get(c, "2", id), "result.ttl", "null");
}

/* ---- restarts ---- */

static void survives_in_its_dialect(world *w)
{
    char id[64], asking[64], done[64], state[512];
    wire *c = draft_connect(w, NULL, ELICITS);
    snprintf(asking, sizeof asking, "%s",
             draft_make_task(c, "1", "confirm_delete", NULL));
    snprintf(id, sizeof id, "%s", draft_make_task(c, "2", "hang", NULL));
    snprintf(done, sizeof done, "%s", draft_make_task(c, "3", "fields", NULL));
    legacy_get_until(c, asking, "input_required");
    legacy_get_until(c, done, "completed");
    snprintf(state, sizeof state, "%s", draft_state_of(get(c, "4", asking)));
    world_restart(w);
    c = draft_connect(w, NULL, ELICITS);
    /* the state is valid for the next server */
    const char *r = get_with(c, "1", asking, state);
    assert_at(r, "result.status", "\"input_required\"");
    r = answer(c, "2", asking, "{\"input-1\":" YES "}");
    assert_at(r, "result.resultType", "\"task\"");
    legacy_get_until(c, asking, "completed");
    r = get(c, "3", id);
    assert_at(r, "result.status", "\"failed\"");
    assert_at(r, "result.error.code", "-32603");
    assert_at(r, "result.ttl", "3600");
    assert_at(get(c, "4", done), "result.status", "\"completed\"");
    assert_code(wire_task(world_connect(w, NULL), "5", "tasks/get", done, NULL), -32602);
    wire *l = legacy_connect(w, NULL, NULL);
    assert_code(legacy_task(l, "6", "tasks/get", done, NULL), -32602);
}

/* ---- notifications of the server ---- */

static void news_goes_to_who_made_it(world *w)
{
    wire *c = draft_connect(w, NULL, ELICITS);
    const char *id = draft_make_task(c, "1", "confirm_delete", NULL);
    const char *n = wire_notification(c, "notifications/tasks/status");
    assert_at(n, "params.status", "\"input_required\"");
    assert_at(n, "params.inputRequests.input-1.method", "\"elicitation/create\"");
    assert_at(n, "params.resultType", "");
    assert_at(get_with(c, "2", id, json_at(n, "params.requestState")), "result.status",
              "\"input_required\"");
    answer(c, "3", id, "{\"input-1\":" YES "}");
    n = wire_notification(c, "notifications/tasks/status");
    assert_at(n, "params.status", "\"working\"");
    n = wire_notification(c, "notifications/tasks/status");
    assert_at(n, "params.status", "\"completed\"");
    assert_golden(n, "tasks_2557_notification_completed");
}

/* Over HTTP a notification has no channel: tasks/get does not stay open. */
static void no_news_over_http(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    const char *id = draft_make_task(c, "1", "fields", NULL);
    legacy_get_until(c, id, "completed");
    wire_quiet(c);
    assert_null(strstr(wire_history(c), "notifications/tasks/status"));
}

static void progress_goes_on(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    const char *r = wire_do_plain(
        c, "1", "tools/call",
        "\"name\":\"reporter\",\"arguments\":{\"n\":3,\"delayMs\":100},\"_meta\":{"
        "\"progressToken\":\"p\"}");
    assert_at(r, "result.task.status", "\"working\"");
    for (int i = 0; i < 3; i++) {
        world_advance(w, 100);
        const char *n = wire_notification(c, "notifications/progress");
        assert_at(n, "params.progressToken", "\"p\"");
        if (i > 0) /* the client knows of the task */
            assert_non_null(strstr(n, "io.modelcontextprotocol/related-task"));
    }
}

/* ---- limits ---- */

/* An anonymous caller from elsewhere (R-2557-53). */
static void strangers_run_plainly(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    TAILQ_FIRST(&w->server->peers)->stranger = true;
    const char *r = wire_do_plain(c, "1", "tools/call", "\"name\":\"fields\"");
    assert_at(r, "result.task", "");
    assert_at(r, "result.structuredContent.a", "2");
    r = wire_do_plain(c, "2", "tools/call", "\"name\":\"failing_job\"");
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"unauthenticated\"");
    assert_null(strstr(wire_do_plain(c, "3", "tools/list", NULL), "taskSupport"));
    assert_code(legacy_task(c, "4", "tasks/get", "nobody", NULL), -32602);
}

static void two_tasks(segue_server_options *options)
{
    draft_on(options);
    options->max_tasks = 2;
}

static void too_many_run_plainly(world *w)
{
    wire *c = draft_connect(w, NULL, NULL);
    draft_make_task(c, "1", "hang", NULL);
    draft_make_task(c, "2", "hang", NULL);
    const char *r = wire_do_plain(c, "3", "tools/call", "\"name\":\"fields\"");
    assert_at(r, "result.task", "");
    r = wire_do_plain(c, "4", "tools/call", "\"name\":\"failing_job\"");
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"too_many_tasks\"");
}

static const scenario scenarios[] = {
    {"R-C-14 DRAFT-2026-v1 is off", off_unless_switched_on, ONE_DRIVE, NULL},
    {"R-C-14 DRAFT-2026-v1 is agreed on by both", agreed_on_by_both,
     ONLY_HERE | ONE_DRIVE, draft_on},
    {"R-2557-58 taskSupport is a boolean", tools_say_it_with_a_boolean, ONE_DRIVE,
     draft_on},
    {"AS-43 D: removed methods", removed_methods, 0, draft_on},
    {"AS-42 D: a call is answered with a task", creates_a_task, 0, draft_on},
    {"R-776-20 D: a call becomes a task", a_call_becomes_a_task, ONLY_HERE, draft_on},
    {"AS-40 D: golden of each state", golden_of_each_state, 0, draft_on},
    {"R-2557-19 D: tool errors complete", tool_errors_complete, 0, draft_on},
    {"AS-45 D: answers come with tasks/get", answers_come_with_get, 0, draft_on},
    {"R-2557-26 D: answers one by one", answers_one_by_one, 0, draft_on},
    {"R-2557-27 D: unfit answers", unfit_answers_leave_the_question_open, 0, draft_on},
    {"D: a call that asks is answered with a round",
     calls_that_ask_are_answered_with_a_round, 0, draft_on},
    {"AS-52 D: old requestStates stay valid", old_states_stay_good, 0, draft_on},
    {"AS-52 D: altered requestStates are answered like an unknown task",
     altered_states_are_as_no_task, 0, draft_on},
    {"R-2557-33 D: a requestState has a largest size", states_have_a_largest_size,
     ONE_DRIVE, draft_on},
    {"R-2557-52 D: tasks of others are not there", strangers_see_nothing,
     ONLY_HERE | ONE_DRIVE, draft_on},
    {"AS-54 D: cancel of an ended task is refused", cancel_of_the_ended_is_refused, 0,
     draft_on},
    {"AS-56 D: a tool that cannot be stopped goes on", what_cannot_be_stopped_goes_on,
     ONLY_HERE, draft_on},
    {"5.4.1-15 what cannot be stopped, in X and L", what_cannot_be_stopped_elsewhere,
     ONLY_HERE | ONE_DRIVE, draft_on},
    {"AS-65 D: whole seconds", whole_seconds, ONLY_HERE | ONE_DRIVE, draft_on},
    {"AS-65 D: unlimited is null", unlimited_is_null, ONE_DRIVE, no_limit},
    {"R-2557-62 D: tasks survive in their dialect", survives_in_its_dialect,
     ONLY_SQLITE | ONE_DRIVE, draft_on},
    {"R-2557-44 D: news goes to who made the task", news_goes_to_who_made_it, NOT_HTTP,
     draft_on}, /* HTTP: see the next row */
    {"R-2557-44 D: no news over HTTP", no_news_over_http, ONLY_HTTP | ONE_DRIVE,
     draft_on},
    {"C-18 D: progress goes on", progress_goes_on, ONE_DRIVE, draft_on},
    {"R-2557-53 D: strangers run plainly", strangers_run_plainly,
     ONLY_HERE | NOT_HTTP | ONE_DRIVE, draft_on}, /* HTTP: test_http_tasks.c */
    {"R-2557-11 D: too many tasks run plainly", too_many_run_plainly, ONE_DRIVE,
     two_tasks},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
