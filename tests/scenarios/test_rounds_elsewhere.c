/* Rounds of input (SEP-2322) when several servers have one key, or a server restarts with
 * its key. The call goes on at any server that gets the answers, which runs the tool from
 * the start. No client is asked twice. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"
#define ANSWER(key) "\"" key "\":" ACCEPT
#define STATE_SIZE 2048
#define LARGE 20000
#define WAIT_MS 5000

static const uint8_t key_of_service[32] = {3, 1, 4, 1, 5, 9};

static void of_a_service(segue_server_options *options)
{
    options->seal_key = key_of_service;
    options->seal_key_len = sizeof key_of_service;
    options->input_wait_ms = WAIT_MS;
}

/* Sends a request about "name" or "uri" with a state and answers; NULL = none. */
static const char *ask_about(wire *c, const char *method, const char *about,
                             const char *state, const char *answers)
{
    size_t size = 512 + (state ? strlen(state) : 0) + (answers ? strlen(answers) : 0);
    char *params = malloc(size);
    int used = snprintf(params, size, "%s", about);
    if (state)
        used +=
            snprintf(params + used, size - (size_t)used, ",\"requestState\":%s", state);
    if (answers)
        snprintf(params + used, size - (size_t)used, ",\"inputResponses\":{%s}", answers);
    const char *r = wire_do(c, "1", method, params, CAPS_ALL);
    free(params);
    return r;
}

static const char *go(wire *c, const char *tool, const char *state, const char *answers)
{
    char about[128];
    snprintf(about, sizeof about, "\"name\":\"%s\",\"arguments\":{}", tool);
    return ask_about(c, "tools/call", about, state, answers);
}

static void take_state(const char *round, char state[STATE_SIZE])
{
    assert_at(round, "result.resultType", "\"input_required\"");
    const char *text = json_at(round, "result.requestState");
    assert_in_range(strlen(text), 100, STATE_SIZE - 1);
    strcpy(state, text);
}

static void answers_survive_the_server(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "ask_rounds", NULL, NULL), state);
    take_state(go(c, "ask_rounds", state, ANSWER("input-1")), state);
    world_restart(w);
    c = world_connect(w, NULL);
    const char *r = go(c, "ask_rounds", state, ANSWER("input-2"));
    take_state(r, state);
    assert_at(r, "result.inputRequests.input-1", "");
    assert_at(r, "result.inputRequests.input-2", "");
    assert_true(*json_at(r, "result.inputRequests.input-3"));
    world_restart(w);
    c = world_connect(w, NULL);
    r = go(c, "ask_rounds", state, ANSWER("input-3"));
    assert_at(r, "result.content.0.text", "\"asked 3 times\"");
    assert_code(go(c, "ask_rounds", "\"made-up\"", NULL), -32602);
}

static void what_is_open_is_asked_again(world *w)
{
    char state[STATE_SIZE], before[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "ask_both", NULL, NULL), before);
    take_state(go(c, "ask_both", before, ANSWER("input-2")), state);
    assert_string_not_equal(state, before); /* the new state contains the answer */
    world_restart(w);
    c = world_connect(w, NULL);
    const char *r = go(c, "ask_both", state, "\"input-1\":{\"action\":\"banana\"}");
    take_state(r, state);
    assert_true(*json_at(r, "result.inputRequests.input-1"));
    assert_at(r, "result.inputRequests.input-2", "");
    r = go(c, "ask_both", state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
    /* A state from before the answer: both questions are open. */
    world_restart(w);
    c = world_connect(w, NULL);
    r = go(c, "ask_both", before, NULL);
    assert_true(*json_at(r, "result.inputRequests.input-1"));
    assert_true(*json_at(r, "result.inputRequests.input-2"));
}

static void prompts_and_resources_too(world *w)
{
    static const char *const methods[] = {"prompts/get", "resources/read"};
    static const char *const about[] = {"\"name\":\"ask\"", "\"uri\":\"test://ask\""};
    for (int i = 0; i < 2; i++) {
        char state[STATE_SIZE];
        take_state(ask_about(world_connect(w, NULL), methods[i], about[i], NULL, NULL),
                   state);
        world_restart(w);
        wire *c = world_connect(w, NULL);
        assert_code(ask_about(c, methods[!i], about[!i], state, NULL), -32602);
        const char *r = ask_about(c, methods[i], about[i], state, ANSWER("input-1"));
        assert_at(r, "result.resultType", "\"complete\"");
    }
}

/* R-2557-30: the rounds come first, then the call becomes a task. */
static void it_may_become_a_task_there(world *w)
{
    char state[STATE_SIZE], id[64];
    take_state(go(world_connect(w, NULL), "test_tool_with_task", NULL, NULL), state);
    world_restart(w);
    wire *c = world_connect(w, NULL);
    const char *r =
        go(c, "test_tool_with_task", state,
           "\"input-1\":{\"action\":\"accept\",\"content\":{\"name\":\"Alice\"}}");
    assert_at(r, "result.resultType", "\"task\"");
    const char *text = json_at(r, "result.taskId");
    snprintf(id, sizeof id, "%.*s", (int)strlen(text) - 2, text + 1);
    r = wire_get_until(c, id, "completed", CAPS_ALL);
    assert_non_null(strstr(json_at(r, "result.result.content.0.text"), "Alice"));
    assert_false(json_mentions(r, "inputRequests"));
}

/* R-0-5: all of these give one error, at either server. */
static void it_is_good_for_its_call_everywhere(world *w)
{
    char state[STATE_SIZE], altered[STATE_SIZE + 8], unknown[512];
    take_state(go(world_connect(w, "ann"), "ask_once", NULL, NULL), state);
    world_restart(w);
    wire *ann = world_connect(w, "ann");
    wire *bob = world_connect(w, "bob");
    snprintf(unknown, sizeof unknown, "%s", go(ann, "ask_once", "\"made-up\"", NULL));
    assert_code(unknown, -32602);
    assert_string_equal(go(bob, "ask_once", state, ANSWER("input-1")), unknown);
    assert_string_equal(go(ann, "ask_both", state, ANSWER("input-1")), unknown);
    assert_string_equal(ask_about(ann, "tools/call",
                                  "\"name\":\"ask_once\",\"arguments\":{\"a\":1}", state,
                                  ANSWER("input-1")),
                        unknown);
    for (size_t i = 1; i + 1 < strlen(state); i += 7) {
        strcpy(altered, state);
        altered[i] = altered[i] == 'x' ? 'y' : 'x';
        assert_string_equal(go(ann, "ask_once", altered, ANSWER("input-1")), unknown);
        world_jump(w, 100); /* guessing is limited */
    }
    assert_int_equal(world_runs(w, "ask_once"), 0);
    assert_int_equal(world_runs(w, "ask_both"), 0);
    assert_at(go(ann, "ask_once", state, ANSWER("input-1")), "result.resultType",
              "\"complete\"");
}

static void its_time_ends_everywhere(world *w)
{
    char state[STATE_SIZE];
    take_state(go(world_connect(w, NULL), "ask_once", NULL, NULL), state);
    world_jump(w, WAIT_MS - 1);
    world_restart(w);
    wire *c = world_connect(w, NULL);
    assert_at(go(c, "ask_once", state, NULL), "result.resultType", "\"input_required\"");
    world_jump(w, 1);
    assert_code(go(c, "ask_once", state, ANSWER("input-1")), -32602);
}

/* A server remembers its own used states: none starts anew. */
static void what_was_spent_here_stays_spent(world *w)
{
    char state[STATE_SIZE];
    wire *c = world_connect(w, NULL);
    take_state(go(c, "ask_once", NULL, NULL), state);
    assert_at(go(c, "ask_once", state, ANSWER("input-1")), "result.resultType",
              "\"complete\"");
    assert_code(go(c, "ask_once", state, ANSWER("input-1")), -32602);
    assert_int_equal(world_runs(w, "ask_once"), 1);
}

static void begin_other(world *other, const world *w)
{
    *other = (world){.place = w->place, .tune = w->tune, .chance = 77};
    world_begin(other);
}

/* A load balancer sends the answers to another server. */
static void another_server_takes_it_over(world *w)
{
    char state[STATE_SIZE];
    world other;
    take_state(go(world_connect(w, NULL), "ask_rounds", NULL, NULL), state);
    begin_other(&other, w);
    take_state(go(world_connect(&other, NULL), "ask_rounds", state, ANSWER("input-1")),
               state);
    take_state(go(world_connect(w, NULL), "ask_rounds", state, ANSWER("input-2")), state);
    const char *r =
        go(world_connect(&other, NULL), "ask_rounds", state, ANSWER("input-3"));
    assert_at(r, "result.content.0.text", "\"asked 3 times\"");
    /* Calls that wait in vain are cancelled when their time is over. */
    assert_int_equal(fixtures_jobs(w->fixtures), 2);
    assert_int_equal(fixtures_jobs(other.fixtures), 1);
    world_jump(w, WAIT_MS);
    assert_int_equal(fixtures_jobs(w->fixtures), 0);
    world_end(&other);
}

/* Calls ask_once with an idempotency key. */
static const char *keyed(wire *c, const char *state, const char *answers)
{
    static const char format[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"ask_once\",\"arguments\":{},%s%s%s\"inputResponses\":{%s},\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}},"
        "\"dev.segue/idempotencyKey\":\"0123456789abcdef\"}}}";
    char line[STATE_SIZE + 1024];
    snprintf(line, sizeof line, format, state ? "\"requestState\":" : "",
             state ? state : "", state ? "," : "", answers);
    wire_send(c, line);
    return wire_response(c, "1");
}

/* The other server does not know the idempotency key, because each server has its own
 * store. */
static void a_key_does_not_stand_in_the_way(world *w)
{
    char state[STATE_SIZE];
    world other;
    take_state(keyed(world_connect(w, NULL), NULL, ""), state);
    begin_other(&other, w);
    const char *r = keyed(world_connect(&other, NULL), state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
    world_end(&other);
}

/* The operation is in the store, and the next server has run its tool again. */
static void answers_reach_the_keyed_operation(world *w)
{
    char state[STATE_SIZE];
    take_state(keyed(world_connect(w, NULL), NULL, ""), state);
    world_restart(w);
    wire *c = world_connect(w, NULL);
    const char *r = keyed(c, state, "\"input-1\":7");
    assert_true(*json_at(r, "result.inputRequests.input-1"));
    r = keyed(c, state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
    assert_int_equal(world_runs(w, "ask_once"), 1);
    r = keyed(c, state, ANSWER("input-1"));
    assert_at(r, "result.resultType", "\"complete\"");
    assert_int_equal(world_runs(w, "ask_once"), 1);
}

/* A call with too much data for a state goes on only at its own server. */
static void much_is_not_carried(world *w)
{
    char state[STATE_SIZE], next[STATE_SIZE];
    char *answer = malloc(LARGE + 128);
    wire *c = world_connect(w, NULL);
    take_state(go(c, "ask_rounds", NULL, NULL), state);
    int used =
        sprintf(answer, "\"input-1\":{\"action\":\"accept\",\"content\":{\"x\":\"");
    memset(answer + used, 'x', LARGE);
    strcpy(answer + used + LARGE, "\"}}");
    take_state(go(c, "ask_rounds", state, answer), next);
    take_state(go(c, "ask_rounds", next, ANSWER("input-2")), state);
    world other;
    begin_other(&other, w);
    assert_code(go(world_connect(&other, NULL), "ask_rounds", state, ANSWER("input-3")),
                -32602);
    world_end(&other);
    assert_at(go(c, "ask_rounds", state, ANSWER("input-3")), "result.content.0.text",
              "\"asked 3 times\"");
    free(answer);
}

/* A text that is too long is refused before it is read. */
static void a_long_state_is_refused(world *w)
{
    char *text = malloc((size_t)1 << 20);
    wire *c = world_connect(w, NULL);
    memset(text, 'A', (size_t)1 << 20);
    text[0] = '"';
    strcpy(text + ((size_t)1 << 20) - 2, "\"");
    assert_code(go(c, "ask_once", text, NULL), -32602);
    free(text);
}

#define HERE_ONCE (ONLY_HERE | ONE_DRIVE)

static const scenario scenarios[] = {
    {"answers survive the server that asked", answers_survive_the_server, ONLY_HERE,
     of_a_service},
    {"what is open is asked again, and nothing else", what_is_open_is_asked_again,
     HERE_ONCE, of_a_service},
    {"prompts and resources survive it too", prompts_and_resources_too, HERE_ONCE,
     of_a_service},
    {"R-2557-30 the call may become a task at the next server",
     it_may_become_a_task_there, HERE_ONCE, of_a_service},
    {"R-0-5 a state is good for its call, whichever server",
     it_is_good_for_its_call_everywhere, HERE_ONCE, of_a_service},
    {"the time of a state ends at every server", its_time_ends_everywhere, HERE_ONCE,
     of_a_service},
    {"what was spent at a server stays spent there", what_was_spent_here_stays_spent,
     HERE_ONCE, of_a_service},
    {"each answer may go to another server", another_server_takes_it_over, HERE_ONCE,
     of_a_service},
    {"an idempotency key does not stand in the way", a_key_does_not_stand_in_the_way,
     HERE_ONCE, of_a_service},
    {"answers reach an operation that its key finds", answers_reach_the_keyed_operation,
     HERE_ONCE | ONLY_SQLITE, of_a_service},
    {"much is not carried along", much_is_not_carried, HERE_ONCE, of_a_service},
    {"a long state is refused", a_long_state_is_refused, HERE_ONCE, of_a_service},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
