/* Rounds of input before a result (SEP-2322): a plain call of 2026-07-28 that asks. Each
 * round is a request of its own; the handler runs once. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CAPS_ASK "{\"elicitation\":{}}"
#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"
#define ANSWER(key) "\"" key "\":" ACCEPT
#define NAME "\"input-1\":{\"action\":\"accept\",\"content\":{\"name\":\"Alice\"}}"
#define STATE_SIZE 256
#define WAIT_MS 5000 /* in scenarios that let time pass */

/* Sends tools/call with arguments {}, a state (NULL = none), answers (members; NULL = no
 * inputResponses) and `more` members or NULL. */
static const char *round_with(wire *c, const char *id, const char *tool,
                              const char *state, const char *answers, const char *more,
                              const char *caps)
{
    char params[1024];
    int used = snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{}", tool);
    if (state)
        used += snprintf(params + used, sizeof params - (size_t)used,
                         ",\"requestState\":%s", state);
    if (answers)
        used += snprintf(params + used, sizeof params - (size_t)used,
                         ",\"inputResponses\":{%s}", answers);
    if (more)
        snprintf(params + used, sizeof params - (size_t)used, ",%s", more);
    return wire_do(c, id, "tools/call", params, caps);
}

static const char *go(wire *c, const char *id, const char *tool, const char *state,
                      const char *answers)
{
    return round_with(c, id, tool, state, answers, NULL, CAPS_ALL);
}

/* Copies the state of a round, as JSON; fails the test when the message is no round. */
static void take_state(const char *round, char state[STATE_SIZE])
{
    assert_at(round, "result.resultType", "\"input_required\"");
    snprintf(state, STATE_SIZE, "%s", json_at(round, "result.requestState"));
    assert_int_equal(strlen(state), 117); /* sealed: its length reveals nothing */
    assert_at(round, "result.taskId", "");
    assert_at(round, "result.content", "");
}

static void asks_and_completes(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    const char *r = go(c, "1", "ask_once", NULL, NULL);
    take_state(r, state);
    assert_golden(r, "input_required");
    assert_at(r, "result.inputRequests.input-1.method", "\"elicitation/create\"");
    r = go(c, "2", "ask_once", state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
    assert_at(
        r, "result.content.0.text",
        "\"{\\\"action\\\":\\\"accept\\\",\\\"content\\\":{\\\"confirm\\\":true}}\"");
    assert_at(r, "result.requestState", "");
    assert_at(r, "result.inputRequests", "");
    if (w->place != WORLD_STDIO)
        assert_int_equal(world_runs(w, "ask_once"), 1);
}

static void several_go_out_together(world *w)
{
    char state[STATE_SIZE], again[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    const char *r = go(c, "1", "ask_both", NULL, NULL);
    take_state(r, state);
    assert_true(*json_at(r, "result.inputRequests.input-1"));
    assert_true(*json_at(r, "result.inputRequests.input-2"));
    /* An open question is asked again, with the same key and state. */
    r = go(c, "2", "ask_both", state, ANSWER("input-1"));
    take_state(r, again);
    assert_string_equal(state, again);
    assert_at(r, "result.inputRequests.input-1", "");
    assert_at(r, "result.inputRequests.input-2.params.message", "\"Name?\"");
    r = go(c, "3", "ask_both", state, NULL);
    take_state(r, again);
    assert_string_equal(state, again);
    r = go(c, "4", "ask_both", state, ANSWER("input-2"));
    assert_at(r, "result.resultType", "\"complete\"");
}

static void rounds_follow_rounds(world *w)
{
    static const char *const answers[] = {ANSWER("input-1"), ANSWER("input-2"),
                                          ANSWER("input-3")};
    char states[3][STATE_SIZE];
    wire *c = world_connect(w, NULL);
    const char *r = go(c, "1", "ask_rounds", NULL, NULL);
    for (int i = 0; i < 3; i++) {
        take_state(r, states[i]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(states[i], states[j]);
        assert_true(*json_at(r, "result.inputRequests"));
        r = round_with(c, "2", "ask_rounds", states[i], answers[i], "\"_\":0", CAPS_ALL);
    }
    assert_at(r, "result.content.0.text", "\"asked 3 times\"");
    /* Each state was valid only once. */
    for (int i = 0; i < 3; i++)
        assert_code(go(c, "3", "ask_rounds", states[i], answers[i]), -32602);
}

static void stray_and_unfit_answers(world *w)
{
    char state[STATE_SIZE], again[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_once", NULL, NULL), state);
    const char *r = go(c, "2", "ask_once", state, ANSWER("input-7"));
    take_state(r, again);
    assert_true(*json_at(r, "result.inputRequests.input-1"));
    r = go(c, "3", "ask_once", state, "\"input-1\":12345");
    take_state(r, again);
    r = go(c, "4", "ask_once", state, "\"input-1\":{\"action\":\"banana\"}");
    take_state(r, again);
    assert_string_equal(state, again);
    r = go(c, "5", "ask_once", state, ANSWER("input-1") ",\"x\":{},\"y\":3");
    assert_at(r, "result.resultType", "\"complete\"");
    /* Answers to a call that never asked are ignored. */
    take_state(go(c, "6", "ask_once", NULL, ANSWER("wrong")), again);
}

static void five_unfit_answers_end_it(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_once", NULL, NULL), state);
    for (int i = 0; i < 4; i++)
        take_state(go(c, "2", "ask_once", state, "\"input-1\":0"), state);
    assert_code(go(c, "3", "ask_once", state, "\"input-1\":0"), -32602);
    assert_code(go(c, "4", "ask_once", state, ANSWER("input-1")), -32602);
}

/* R-0-5: all of these give one error. */
static void a_state_is_good_for_one_call(world *w)
{
    char state[STATE_SIZE], altered[STATE_SIZE + 16], unknown[1024], params[512];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_once", NULL, NULL), state);
    const char *r = go(c, "2", "ask_once", "\"no-such-state-000000000\"", NULL);
    assert_code(r, -32602);
    assert_at(r, "error.data", "");
    snprintf(unknown, sizeof unknown, "%s", r);
    snprintf(altered, sizeof altered, "%.*s-TAMPERED\"", (int)strlen(state) - 1, state);
    assert_string_equal(go(c, "2", "ask_once", altered, ANSWER("input-1")), unknown);
    assert_string_equal(go(c, "2", "ask_both", state, ANSWER("input-1")), unknown);
    snprintf(params, sizeof params,
             "\"name\":\"ask_once\",\"arguments\":{\"a\":1},\"requestState\":%s", state);
    assert_string_equal(wire_do(c, "2", "tools/call", params, CAPS_ALL), unknown);
    /* Missing arguments equal empty ones. */
    snprintf(params, sizeof params,
             "\"name\":\"ask_once\",\"requestState\":%s,\"inputResponses\":{%s}", state,
             ANSWER("input-1"));
    assert_at(wire_do(c, "3", "tools/call", params, CAPS_ALL), "result.resultType",
              "\"complete\"");
    assert_code(go(c, "4", "ask_once", "7", NULL), -32602);
    assert_code(go(c, "5", "ask_once", "null", NULL), -32602);
    assert_code(
        round_with(c, "6", "ask_once", state, NULL, "\"inputResponses\":[]", CAPS_ALL),
        -32602);
}

static void a_state_belongs_to_its_principal(world *w)
{
    char state[STATE_SIZE];
    wire *a = world_connect(w, "ann");
    wire *b = world_connect(w, "bob");
    wire *second = world_connect(w, "ann");
    take_state(go(a, "1", "ask_once", NULL, NULL), state);
    const char *foreign = go(b, "2", "ask_once", state, ANSWER("input-1"));
    assert_string_equal(foreign,
                        go(b, "2", "ask_once", "\"unknown\"", ANSWER("input-1")));
    assert_code(foreign, -32602);
    const char *r = go(second, "3", "ask_once", state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
}

static void guess_limit(segue_server_options *options)
{
    options->lookups_per_second = 3;
}

static void guessing_is_limited(world *w)
{
    wire *c = world_connect(w, NULL);
    for (int i = 0; i < 3; i++)
        assert_code(go(c, "1", "ask_once", "\"guess\"", NULL), -32602);
    assert_at(go(c, "2", "ask_once", "\"guess\"", NULL), "error.data.reason",
              "\"rate_limited\"");
}

/* AS-74, R-2557-30: all rounds come before the task. */
static void rounds_then_a_task(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    const char *r = go(c, "1", "test_tool_with_task", NULL, NULL);
    take_state(r, state);
    assert_false(json_mentions(r, "taskId"));
    r = go(c, "2", "test_tool_with_task", state,
           "\"input-1\":{\"action\":\"accept\",\"content\":{\"name\":\"Alice\"}}");
    assert_at(r, "result.resultType", "\"task\"");
    assert_at(r, "result.requestState", "");
    assert_at(r, "result.inputRequests", "");
    char id[64];
    const char *text = json_at(r, "result.taskId");
    snprintf(id, sizeof id, "%.*s", (int)strlen(text) - 2, text + 1);
    r = wire_get_until(c, id, "completed", CAPS_ALL);
    assert_non_null(strstr(json_at(r, "result.result.content.0.text"), "Alice"));
    assert_false(json_mentions(r, "requestState"));
    assert_false(json_mentions(r, "inputRequests"));
    assert_code(go(c, "3", "test_tool_with_task", state, ANSWER("input-1")), -32602);
}

/* The capabilities of a request count for that request. */
static void the_last_round_decides_on_a_task(world *w)
{
    char state[STATE_SIZE], params[512];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "test_tool_with_task", NULL, NULL), state);
    snprintf(params, sizeof params,
             "\"name\":\"test_tool_with_task\",\"arguments\":{},\"requestState\":%s,"
             "\"inputResponses\":{%s}",
             state, NAME);
    wire_ask(c, "2", "tools/call", params, CAPS_ASK);
    if (w->place != WORLD_STDIO)
        world_jump(w, 200);
    assert_at(wire_response(c, "2"), "result.resultType", "\"complete\"");
    take_state(round_with(c, "3", "test_tool_with_task", NULL, NULL, NULL, CAPS_ASK),
               state);
    assert_at(go(c, "4", "test_tool_with_task", state, NAME), "result.resultType",
              "\"task\"");
}

static void undeclared_is_not_asked(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    const char *r = round_with(c, "1", "ask_once", NULL, NULL, NULL, CAPS_TASKS);
    assert_at(r, "result.content.0.text", "\"cannot ask: SEGUE_E_UNSUPPORTED\"");
    take_state(go(c, "2", "ask_once", NULL, NULL), state);
    r = round_with(c, "3", "ask_once", state, ANSWER("input-1"), NULL, "{}");
    assert_code(r, -32021);
    assert_at(r, "error.data", "{\"requiredCapabilities\":{\"elicitation\":{}}}");
    r = go(c, "4", "ask_once", state, ANSWER("input-1")); /* no answer was taken */
    assert_at(r, "result.resultType", "\"complete\"");
}

static void handshake_eras_have_no_rounds(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_do_plain(c, "1", "initialize",
                  "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":"
                  "{}},\"clientInfo\":{\"name\":\"t\",\"version\":\"0\"}");
    wire_notify(c, "notifications/initialized", NULL);
    wire_ask_plain(c, "2", "tools/call", "\"name\":\"ask_once\",\"requestState\":\"x\"");
    char line[512];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}",
             json_at(wire_request(c, "elicitation/create"), "id"), ACCEPT);
    wire_send(c, line);
    const char *r = wire_response(c, "2");
    assert_at(r, "result.inputRequests", "");
    assert_non_null(strstr(json_at(r, "result.content.0.text"), "accept"));
}

/* The new request receives the progress of the call. */
static void progress_goes_to_the_request_of_the_round(world *w)
{
    static const char token[] =
        "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
        "\"2026-07-28\",\"io.modelcontextprotocol/"
        "clientCapabilities\":" CAPS_ASK ",\"progressToken\":\"second\"}";
    char state[STATE_SIZE], line[1024];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_rounds", NULL, NULL), state);
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
             "\"name\":\"ask_rounds\",\"requestState\":%s,\"inputResponses\":{%s},%s}}",
             state, ANSWER("input-1"), token);
    wire_send(c, line);
    const char *note = wire_notification(c, "notifications/progress");
    assert_at(note, "params.progressToken", "\"second\"");
    take_state(wire_response(c, "2"), state);
}

/* ---- events between rounds ---- */

static void short_wait(segue_server_options *options)
{
    options->input_wait_ms = WAIT_MS;
}

static void the_client_may_leave_between_rounds(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_once", NULL, NULL), state);
    wire_cut(c);
    world_jump(w, WAIT_MS - 1000);
    c = world_connect(w, NULL);
    const char *r = go(c, "1", "ask_once", state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
    assert_int_equal(world_runs(w, "ask_once"), 1);
}

static void waiting_ends(world *w)
{
    char state[STATE_SIZE], again[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_both", NULL, NULL), state);
    world_jump(w, WAIT_MS - 1000);
    take_state(go(c, "2", "ask_both", state, ANSWER("input-1")), again);
    assert_int_equal(fixtures_jobs(w->fixtures), 1);
    world_jump(w, 2000); /* the same round: its time goes on */
    assert_int_equal(fixtures_jobs(w->fixtures), 0);
    assert_code(go(c, "3", "ask_both", state, ANSWER("input-2")), -32602);
}

static void a_new_round_waits_anew(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_rounds", NULL, NULL), state);
    world_jump(w, WAIT_MS - 1000);
    take_state(go(c, "2", "ask_rounds", state, ANSWER("input-1")), state);
    world_jump(w, WAIT_MS - 1000);
    take_state(go(c, "3", "ask_rounds", state, ANSWER("input-2")), state);
}

static void ten_minutes_are_the_default(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_once", NULL, NULL), state);
    world_jump(w, 10 * 60 * 1000 - 10);
    assert_int_equal(fixtures_jobs(w->fixtures), 1);
    world_jump(w, 20);
    assert_int_equal(fixtures_jobs(w->fixtures), 0);
    assert_code(go(c, "2", "ask_once", state, ANSWER("input-1")), -32602);
}

/* The handler does not wait: the next request gets the result. */
static void the_end_between_rounds_is_kept(world *w)
{
    char state[STATE_SIZE], kept[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_hastily", NULL, NULL), state);
    take_state(go(c, "2", "ask_hastily", NULL, NULL), kept);
    world_jump(w, 1000);
    assert_int_equal(fixtures_jobs(w->fixtures), 0);
    const char *r = go(c, "3", "ask_hastily", state, NULL);
    assert_at(r, "result.content.0.text", "\"done without it\"");
    assert_code(go(c, "4", "ask_hastily", state, NULL), -32602);
    world_jump(w, WAIT_MS);
    assert_code(go(c, "5", "ask_hastily", kept, NULL), -32602);
}

static void two_at_most(segue_server_options *options)
{
    options->max_tasks = 2;
    options->input_wait_ms = WAIT_MS;
}

static void waiting_calls_are_limited(world *w)
{
    static const char refused[] = "\"cannot ask: SEGUE_E_LIMIT\"";
    char state[STATE_SIZE], other[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_once", NULL, NULL), state);
    take_state(go(c, "2", "ask_hastily", NULL, NULL), other);
    assert_at(go(c, "3", "ask_once", NULL, NULL), "result.content.0.text", refused);
    world_jump(w, 1000); /* one has ended, but its result is kept */
    assert_at(go(c, "4", "ask_once", NULL, NULL), "result.content.0.text", refused);
    assert_at(go(c, "5", "greet", NULL, NULL), "result.resultType", "\"complete\"");
    go(c, "6", "ask_hastily", other, NULL);
    take_state(go(c, "7", "ask_once", NULL, NULL), other);
    go(c, "8", "ask_once", state, ANSWER("input-1"));
    go(c, "9", "ask_once", other, ANSWER("input-1"));
    for (int i = 0; i < 2; i++)
        take_state(go(c, "10", "ask_once", NULL, NULL), state);
    world_jump(w, 6000); /* expired calls do not count */
    take_state(go(c, "11", "ask_once", NULL, NULL), state);
    /* A call that becomes a task counts once. */
    take_state(go(c, "12", "test_tool_with_task", NULL, NULL), state);
    assert_at(go(c, "13", "test_tool_with_task", state, NAME), "result.resultType",
              "\"task\"");
}

static void two_questions_at_most(segue_server_options *options)
{
    options->max_inputs = 2;
}

static void questions_are_limited(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_rounds", NULL, NULL), state);
    take_state(go(c, "2", "ask_rounds", state, ANSWER("input-1")), state);
    assert_at(go(c, "3", "ask_rounds", state, ANSWER("input-2")), "result.content.0.text",
              "\"cannot ask: SEGUE_E_LIMIT\"");
}

/* No task is made that no client would know of. */
static void no_task_between_rounds(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_and_defer", NULL, NULL), state);
    world_jump(w, 1000);
    const char *r = go(c, "2", "ask_and_defer", state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
    assert_memory_equal(json_at(r, "result.content.0.text"), "\"defer: SEGUE_E_STATE ",
                        22);
    take_state(go(c, "3", "ask_promoted", NULL, NULL), state);
    world_jump(w, 2000);
    r = go(c, "4", "ask_promoted", state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
}

/* Both requests are in the server before it handles one: the first counts, the second
 * comes late. */
static void two_retries_at_once(world *w)
{
    char state[STATE_SIZE], params[512];
    wire *a = world_connect(w, NULL);
    wire *b = world_connect(w, NULL);
    take_state(go(a, "1", "ask_once", NULL, NULL), state);
    snprintf(params, sizeof params,
             "\"name\":\"ask_once\",\"requestState\":%s,\"inputResponses\":{%s}", state,
             ANSWER("input-1"));
    wire_ask(a, "2", "tools/call", params, CAPS_ASK);
    wire_ask(b, "2", "tools/call", params, CAPS_ASK);
    const char *first = wire_response(a, "2");
    const char *second = wire_response(b, "2");
    assert_int_equal(*json_at(first, "result") != 0, *json_at(second, "error") != 0);
    assert_int_equal(world_runs(w, "ask_once"), 1);
}

/* Without the last answer both are asked again. */
static void two_incomplete_retries_at_once(world *w)
{
    char state[STATE_SIZE], again[STATE_SIZE], params[512];
    wire *a = world_connect(w, NULL);
    wire *b = world_connect(w, NULL);
    take_state(go(a, "1", "ask_both", NULL, NULL), state);
    for (int i = 1; i <= 2; i++) {
        snprintf(
            params, sizeof params,
            "\"name\":\"ask_both\",\"requestState\":%s,\"inputResponses\":{\"input-%d"
            "\":0}",
            state, i);
        wire_ask(i == 1 ? a : b, "2", "tools/call", params, CAPS_ASK);
    }
    take_state(wire_response(a, "2"), again);
    assert_string_equal(state, again);
    take_state(wire_response(b, "2"), again);
    assert_string_equal(state, again);
}

/* The same as for any plain call. */
static void cancelling_a_round_cancels_the_call(world *w)
{
    char state[STATE_SIZE], params[512];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "test_tool_with_task", NULL, NULL), state);
    snprintf(
        params, sizeof params,
        "\"name\":\"test_tool_with_task\",\"requestState\":%s,\"inputResponses\":{%s}",
        state, NAME);
    wire_ask(c, "2", "tools/call", params, CAPS_ASK);
    wire_notify(c, "notifications/cancelled", "\"requestId\":2");
    world_jump(w, 1000);
    assert_int_equal(fixtures_jobs(w->fixtures), 0);
    wire_quiet(c);
    assert_code(go(c, "3", "test_tool_with_task", state, NAME), -32602);
}

/* Over HTTP its listener would still accept clients that come again. */
static void a_server_that_goes_ends_what_waits(world *w)
{
    if (w->place == WORLD_HTTP)
        return;
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "1", "ask_once", NULL, NULL), state);
    take_state(go(c, "2", "ask_hastily", NULL, NULL), state);
    world_jump(w, 1000);
    segue_server_free(w->server);
    w->server = NULL;
    wire_cut(c);
    world_run(w);
    assert_int_equal(fixtures_jobs(w->fixtures), 0);
}

/* ---- calls with a key ---- */

#define KEY "\"dev.segue/idempotencyKey\":\"key-0123456789abcdef\""

static const char *keyed(wire *c, const char *id, const char *tool, const char *state,
                         const char *answers)
{
    static const char meta[] = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                               "\"2026-07-28\",\"io.modelcontextprotocol/"
                               "clientCapabilities\":" CAPS_ASK "," KEY "}";
    char line[1024];
    int used = snprintf(line, sizeof line,
                        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\","
                        "\"params\":{\"name\":\"%s\",\"arguments\":{},",
                        id, tool);
    if (state)
        used += snprintf(line + used, sizeof line - (size_t)used, "\"requestState\":%s,",
                         state);
    if (answers)
        used += snprintf(line + used, sizeof line - (size_t)used,
                         "\"inputResponses\":{%s},", answers);
    snprintf(line + used, sizeof line - (size_t)used, "%s}}", meta);
    wire_send(c, line);
    return wire_response(c, id);
}

static void a_key_finds_its_round_again(world *w)
{
    char state[STATE_SIZE], again[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(keyed(c, "1", "ask_rounds", NULL, NULL), state);
    /* The answer was lost: the call is made again. */
    take_state(keyed(c, "2", "ask_rounds", NULL, NULL), again);
    assert_string_equal(state, again);
    take_state(keyed(c, "3", "ask_rounds", state, ANSWER("input-1")), again);
    assert_string_not_equal(state, again);
    /* The answer of the round was lost: the client sends it again, and gets the present
     * question. */
    const char *r = keyed(c, "4", "ask_rounds", state, ANSWER("input-1"));
    take_state(r, state);
    assert_string_equal(state, again);
    assert_true(*json_at(r, "result.inputRequests.input-2"));
    take_state(keyed(c, "5", "ask_rounds", state, ANSWER("input-2")), state);
    r = keyed(c, "6", "ask_rounds", state, ANSWER("input-3"));
    assert_at(r, "result.content.0.text", "\"asked 3 times\"");
    r = keyed(c, "7", "ask_rounds", state, ANSWER("input-3"));
    assert_at(r, "result.content.0.text", "\"asked 3 times\"");
    if (w->place != WORLD_STDIO)
        assert_int_equal(world_runs(w, "ask_rounds"), 1);
}

static void a_keyed_result_outlives_the_server(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(keyed(c, "1", "ask_once", NULL, NULL), state);
    const char *r = keyed(c, "2", "ask_once", state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
    world_restart(w);
    c = world_connect(w, NULL);
    r = keyed(c, "3", "ask_once", state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
}

/* The handler runs again and asks the same; the client gets the new state by its key. */
static void a_keyed_round_goes_on_in_the_next_server(world *w)
{
    char state[STATE_SIZE], next[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(keyed(c, "1", "ask_once", NULL, NULL), state);
    world_restart(w);
    c = world_connect(w, NULL);
    const char *r = keyed(c, "2", "ask_once", state, ANSWER("input-1"));
    take_state(r, next);
    assert_string_not_equal(state, next);
    assert_true(*json_at(r, "result.inputRequests.input-1"));
    r = keyed(c, "3", "ask_once", next, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
}

static void a_key_that_is_new_has_no_round(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_code(keyed(c, "1", "ask_once", "\"unknown\"", ANSWER("input-1")), -32602);
    if (w->place != WORLD_STDIO)
        assert_int_equal(world_runs(w, "ask_once"), 0);
}

static const scenario scenarios[] = {
    {"R-2557-30 a plain call asks, and completes with the answer", asks_and_completes, 0,
     NULL},
    {"what is asked together goes out together, what is left open again",
     several_go_out_together, 0, NULL},
    {"each round has a state of its own, good once", rounds_follow_rounds, ONE_DRIVE,
     NULL},
    {"R-2557-26 R-2557-27 stray answers are ignored, unfit ones asked again",
     stray_and_unfit_answers, ONE_DRIVE, NULL},
    {"R-2557-27 five unfit answers end the call", five_unfit_answers_end_it, ONE_DRIVE,
     NULL},
    {"R-0-5 a state is good for its tool and arguments", a_state_is_good_for_one_call,
     ONE_DRIVE, NULL},
    {"R-0-5 a state belongs to its principal", a_state_belongs_to_its_principal,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"guessing of states is limited", guessing_is_limited, ONLY_HERE | ONE_DRIVE,
     guess_limit},
    {"AS-74 rounds, then a task", rounds_then_a_task, 0, NULL},
    {"the last round decides whether it may be a task", the_last_round_decides_on_a_task,
     ONE_DRIVE, NULL},
    {"a client that cannot be asked is not asked", undeclared_is_not_asked, ONE_DRIVE,
     NULL},
    {"the handshake eras have no rounds", handshake_eras_have_no_rounds, ONE_DRIVE, NULL},
    {"progress goes to the request of the round",
     progress_goes_to_the_request_of_the_round, ONE_DRIVE, NULL},
    {"the client may leave between rounds", the_client_may_leave_between_rounds,
     ONLY_HERE | ONE_DRIVE, short_wait},
    {"waiting for input ends", waiting_ends, ONLY_HERE | ONE_DRIVE, short_wait},
    {"a new round waits anew", a_new_round_waits_anew, ONLY_HERE | ONE_DRIVE, short_wait},
    {"it waits for ten minutes by default", ten_minutes_are_the_default,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a result between rounds is kept for who comes again",
     the_end_between_rounds_is_kept, ONLY_HERE | ONE_DRIVE, short_wait},
    {"max_tasks limits the calls that wait", waiting_calls_are_limited,
     ONLY_HERE | ONE_DRIVE, two_at_most},
    {"max_inputs limits the questions of a call", questions_are_limited,
     ONLY_HERE | ONE_DRIVE, two_questions_at_most},
    {"no task is made between rounds", no_task_between_rounds, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"of two requests with the last answer one is late", two_retries_at_once,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"two requests without it are both asked again", two_incomplete_retries_at_once,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"cancelling the request of a round cancels the call",
     cancelling_a_round_cancels_the_call, ONLY_HERE | ONE_DRIVE, NULL},
    {"a server that goes ends what waits", a_server_that_goes_ends_what_waits,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a key finds its round again", a_key_finds_its_round_again, ONLY_SQLITE | ONE_DRIVE,
     NULL},
    {"a keyed result outlives the server", a_keyed_result_outlives_the_server,
     ONLY_SQLITE | ONE_DRIVE, NULL},
    {"a keyed round goes on in the next server", a_keyed_round_goes_on_in_the_next_server,
     ONLY_SQLITE | ONE_DRIVE, NULL},
    {"a new key has no round", a_key_that_is_new_has_no_round, ONLY_SQLITE | ONE_DRIVE,
     NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
