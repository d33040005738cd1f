/* Several servers on one store: a task that runs at one server is shown, watched,
 * answered and cancelled at another, live and in each dialect, as if it ran there. */
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

#include "engine/server/server.h"

#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"
#define ANSWER(key) "\"inputResponses\":{\"" key "\":" ACCEPT "}"
#define STREAMING "{\"responseModes\":[\"streaming\"]}"
#define HOPS 400 /* turns of both servers before a test gives up */

static world other; /* server B; the world of the scenario is server A */

static void begin(world *w)
{
    other = (world){.tune = w->tune};
    world_begin_beside(w, &other);
}

static void end(void)
{
    world_end(&other);
}

/* Waits for a notification while both servers work; the clocks stand still. */
static const char *next_note(wire *c, const char *method)
{
    char wanted[96];
    snprintf(wanted, sizeof wanted, "\"method\":\"%s\"", method);
    for (int i = 0; i < HOPS; i++) {
        const char *line = wire_next(c);
        if (line && strstr(line, wanted))
            return line;
    }
    fail_msg("no %s; history: %s", method, wire_history(c));
    return NULL;
}

static const char *state_at(wire *c, const char *id)
{
    static int next;
    char ask[24];
    snprintf(ask, sizeof ask, "%d", 5000 + next++);
    return wire_task(c, ask, "tasks/get", id, NULL);
}

static const char *until_state(wire *c, const char *id, const char *status)
{
    const char *r = NULL;
    for (int i = 0; i < HOPS; i++) {
        r = state_at(c, id);
        if (!strcmp(json_at(r, "result.status"), status))
            return r;
        world_run(c->w);
    }
    fail_msg("never %s: %s", status, r);
    return NULL;
}

/* ---- X and E ---- */

static void events_come_live(world *w)
{
    char params[128];
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = wire_make_task(a, "1", "story", "\"n\":4,\"delayMs\":300", NULL);
    assert_at(state_at(b, id), "result.status", "\"working\"");
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(b, "2", "tasks/stream", params, CAPS_TASKS);
    for (int i = 0; i < 4; i++) {
        world_advance(w, 300);
        assert_non_null(strstr(next_note(b, "notifications/tasks/event"), "\"seq\""));
    }
    const char *r = until_state(b, id, "\"completed\"");
    assert_true(*json_at(r, "result.result.content.3"));
    assert_at(r, "result.result.content.4", "");
    assert_true(*json_at(wire_response(b, "2"), "result"));
    assert_int_equal(world_runs(&other, "story"), 0);
    end();
}

static void a_task_is_cancelled_there(world *w)
{
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    const char *ack = wire_task(b, "2", "tasks/cancel", id, NULL);
    assert_at(ack, "result.resultType", "\"complete\"");
    until_state(b, id, "\"cancelled\"");
    until_state(a, id, "\"cancelled\"");
    end();
}

static void questions_are_answered_there(world *w)
{
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = wire_make_task(a, "1", "confirm_delete", NULL, CAPS_ALL);
    const char *r = until_state(b, id, "\"input_required\"");
    assert_true(*json_at(r, "result.inputRequests.input-1"));
    /* Its owner refuses an answer that does not fit, and the question stays open. */
    wire_task(b, "2", "tasks/update", id,
              "\"inputResponses\":{\"input-1\":{\"action\":\"banana\"}}");
    for (int i = 0; i < HOPS && !*json_at(r, "result.statusMessage"); i++)
        r = state_at(b, id);
    assert_at(r, "result.statusMessage",
              "\"The answer to input-1 does not fit the question\"");
    wire_task(b, "3", "tasks/update", id, ANSWER("input-1"));
    r = until_state(b, id, "\"completed\"");
    until_state(a, id, "\"completed\"");
    end();
}

static void a_subscription_hears_of_it(world *w)
{
    char params[256];
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *id = wire_make_task(a, "1", "story", "\"n\":2,\"delayMs\":300", NULL);
    snprintf(params, sizeof params, "\"notifications\":{\"taskIds\":[\"%s\"]}", id);
    wire_ask(b, "2", "subscriptions/listen", params, CAPS_TASKS);
    assert_at(next_note(b, "notifications/tasks"), "params.status", "\"working\"");
    world_advance(w, 700);
    assert_at(next_note(b, "notifications/tasks"), "params.status", "\"completed\"");
    end();
}

/* Server B does not ask another principal's client. */
static void strangers_find_nothing(world *w)
{
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Bob");
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    assert_code(wire_task(b, "2", "tasks/get", id, NULL), -32602);
    wire *ada = world_connect(&other, "Ada");
    assert_at(state_at(ada, id), "result.status", "\"working\"");
    assert_code(wire_task(b, "3", "tasks/cancel", id, NULL), -32602);
    assert_at(state_at(a, id), "result.status", "\"working\"");
    end();
}

/* ---- D ---- */

static void draft_tasks_are_asked_there(world *w)
{
    char more[512];
    begin(w);
    wire *a = draft_connect(w, "Ada", "{\"elicitation\":{}}");
    wire *b = draft_connect(&other, "Ada", "{\"elicitation\":{}}");
    const char *id = draft_make_task(a, "1", "confirm_delete", NULL);
    const char *r = NULL;
    for (int i = 0; i < HOPS; i++) {
        r = legacy_task(b, "2", "tasks/get", id, NULL);
        if (!strcmp(json_at(r, "result.status"), "\"input_required\""))
            break;
    }
    assert_at(r, "result.status", "\"input_required\"");
    snprintf(more, sizeof more, "\"requestState\":%s,%s", draft_state_of(r),
             ANSWER("input-1"));
    r = legacy_task(b, "3", "tasks/get", id, more);
    assert_string_not_equal(json_at(r, "result.status"), "\"input_required\"");
    legacy_get_until(b, id, "completed");
    id = draft_make_task(a, "4", "confirm_delete", NULL);
    r = legacy_task(b, "5", "tasks/cancel", id, NULL);
    assert_at(r, "result.status", "\"cancelled\"");
    r = legacy_task(b, "6", "tasks/cancel", id, NULL);
    assert_code(r, -32602);
    end();
}

/* ---- L and S ---- */

static void results_are_waited_for_there(world *w)
{
    begin(w);
    wire *a = legacy_connect(w, "Ada", NULL);
    wire *b = legacy_connect(&other, "Ada", NULL);
    const char *id = legacy_make_task(a, "1", "story", "\"n\":3,\"delayMs\":300", NULL);
    legacy_ask_about(b, "2", "tasks/result", id, NULL);
    world_advance(w, 1000);
    assert_true(*json_at(wire_response(b, "2"), "result.content.2"));
    id = legacy_make_task(a, "3", "hang", NULL, NULL);
    const char *r = legacy_task(b, "4", "tasks/cancel", id, NULL);
    assert_at(r, "result.status", "\"cancelled\"");
    assert_code(legacy_task(b, "5", "tasks/cancel", id, NULL), -32602);
    assert_at(legacy_task(a, "6", "tasks/get", id, NULL), "result.status",
              "\"cancelled\"");
    end();
}

/* A client that waits for the result at B is asked there. */
static void its_client_is_asked_there(world *w)
{
    char answer[256];
    begin(w);
    wire *a = legacy_connect(w, "Ada", "{\"elicitation\":{}}");
    wire *b = legacy_connect(&other, "Ada", "{\"elicitation\":{}}");
    const char *id = legacy_make_task(a, "1", "confirm_delete", NULL, NULL);
    wire_cut(a);
    legacy_ask_about(b, "2", "tasks/result", id, NULL);
    const char *question = wire_request(b, "elicitation/create");
    snprintf(answer, sizeof answer,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":" ACCEPT "}",
             json_at(question, "id"));
    wire_send(b, answer);
    for (int i = 0; i < HOPS && !strstr(wire_history(b), "deleted"); i++)
        world_run(w);
    assert_true(*json_at(wire_response(b, "2"), "result.content.0"));
    end();
}

/* A person takes longer than B follows tasks that nobody looks at. */
static void a_question_keeps_its_task_there(world *w)
{
    char answer[256];
    begin(w);
    wire *a = legacy_connect(w, "Ada", "{\"elicitation\":{}}");
    wire *b = legacy_connect(&other, "Ada", "{\"elicitation\":{}}");
    char *id = strdup(legacy_make_task(a, "1", "confirm_delete", NULL, NULL));
    world_run(w);
    legacy_ask_about(b, "2", "tasks/result", id, NULL);
    char *question = strdup(json_at(wire_request(b, "elicitation/create"), "id"));
    wire_send(b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                 "\"params\":{\"requestId\":2}}");
    world_advance(w, 120000);
    assert_int_equal(other.server->cluster.followed, 1);
    snprintf(answer, sizeof answer,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":" ACCEPT "}", question);
    wire_send(b, answer);
    legacy_get_until(a, id, "completed");
    free(question);
    free(id);
    end();
}

static void segments_are_fetched_there(world *w)
{
    begin(w);
    wire *a = legacy_connect(w, "Ada", MODES_ALL);
    wire *b = legacy_connect(&other, "Ada", MODES_ALL);
    legacy_ask_task(a, "1", "story", "\"n\":3,\"delayMs\":300", STREAMING);
    world_advance(w, 650);
    const char *first = wire_response(a, "1");
    char id[64];
    const char *quoted = json_at(first, "result.task.taskId");
    snprintf(id, sizeof id, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    const char *r = legacy_task(b, "2", "tasks/result", id, "\"lastSeqNr\":1");
    assert_at(r, "result.isComplete", "false");
    assert_true(*json_at(r, "result.partial-content.0"));
    world_advance(w, 650);
    r = legacy_task(b, "3", "tasks/result", id, "\"lastSeqNr\":2");
    assert_at(r, "result.isComplete", "true");
    end();
}

/* ---- calls with keys ---- */

static const uint8_t key_of_service[32] = {3, 1, 4, 1, 5, 9};

static void of_a_service(segue_server_options *options)
{
    options->seal_key = key_of_service;
    options->seal_key_len = sizeof key_of_service;
}

static void call_keyed(wire *c, const char *id, const char *tool, const char *more)
{
    char line[4096];
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\",\"params\":{"
             "\"name\":\"%s\",\"arguments\":{}%s,\"_meta\":{"
             "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
             "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"t\",\"version\":\"1\"},"
             "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}},"
             "\"dev.segue/idempotencyKey\":\"a-key-of-some-length\"}}}",
             id, tool, more);
    wire_send(c, line);
    world_run(c->w);
}

static const char *keyed(wire *c, const char *id, const char *tool, const char *more)
{
    call_keyed(c, id, tool, more);
    for (int i = 0; i < 40; i++)
        world_run(c->w);
    return wire_response(c, id);
}

/* The call's answer was lost on the way from A; at B the call does not run again. */
static void a_call_is_found_by_its_key(world *w)
{
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    call_keyed(a, "1", "slow_compute", "");
    wire_cut(a);
    call_keyed(b, "2", "slow_compute", "");
    world_advance(w, 6000);
    assert_true(*json_at(wire_response(b, "2"), "result.content.0"));
    assert_int_equal(world_runs(w, "slow_compute"), 1);
    assert_int_equal(world_runs(&other, "slow_compute"), 0);
    end();
}

/* The call asks at A, is repeated at B, and the answer given at B goes to A. */
static void rounds_of_a_keyed_call(world *w)
{
    char more[3000];
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *r = keyed(a, "1", "ask_once", "");
    assert_at(r, "result.resultType", "\"input_required\"");
    r = keyed(b, "2", "ask_once", "");
    assert_at(r, "result.resultType", "\"input_required\"");
    snprintf(more, sizeof more, ",\"requestState\":%s," ANSWER("input-1"),
             json_at(r, "result.requestState"));
    r = keyed(b, "3", "ask_once", more);
    assert_at(r, "result.resultType", "\"complete\"");
    assert_int_equal(world_runs(w, "ask_once"), 1);
    assert_int_equal(world_runs(&other, "ask_once"), 0);
    world_jump(w, 700000); /* all rounds have expired */
    end();
}

/* The state that A gave comes to B with the answer. */
static void an_answer_of_a_keyed_call_finds_it(world *w)
{
    char more[3000];
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *r = keyed(a, "1", "ask_once", "");
    snprintf(more, sizeof more, ",\"requestState\":%s," ANSWER("input-1"),
             json_at(r, "result.requestState"));
    r = keyed(b, "2", "ask_once", more);
    assert_at(r, "result.resultType", "\"complete\"");
    assert_int_equal(world_runs(w, "ask_once"), 1);
    end();
}

/* ---- sessions ---- */

/* A session that began at A goes on at B: its id holds all that a server knows of it. */
static void a_session_goes_to_any_server(world *w)
{
    begin(w);
    wire *a = legacy_connect(w, "Ada", "{\"elicitation\":{}}");
    /* a session of its own */
    wire *b = legacy_connect(&other, "Ada", "{\"elicitation\":{}}");
    wire *foreign = world_connect(&other, "Bob");
    free(b->session);
    b->session = strdup(a->session);
    foreign->session = strdup(a->session);
    foreign->version = strdup(a->version);
    const char *id = legacy_make_task(a, "1", "hang", NULL, NULL);
    assert_at(legacy_task(b, "2", "tasks/get", id, NULL), "result.status", "\"working\"");
    wire_ask_plain(foreign, "3", "tools/list", NULL);
    world_run(w);
    wire_expect_status(foreign, 404);
    assert_at(legacy_task(b, "4", "tasks/cancel", id, NULL), "result.status",
              "\"cancelled\"");
    id = legacy_make_task(b, "5", "slow_compute", NULL, NULL);
    legacy_get_until(a, id, "completed");
    end();
}

/* ---- bounds ---- */

static void many_tasks(segue_server_options *options)
{
    options->max_tasks = 4000;
}

/* Tasks that no client looks at are followed for a limited time, and their number is
 * limited. */
static void those_that_nobody_looks_at_go(world *w)
{
    char params[256], first[64];
    if (world_is_slow(w))
        return; /* a thousand commits would show the same */
    begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    snprintf(first, sizeof first, "%s", wire_make_task(a, "0", "hang", NULL, NULL));
    snprintf(params, sizeof params, "\"notifications\":{\"taskIds\":[\"%s\"]}", first);
    wire_ask(b, "2", "subscriptions/listen", params, CAPS_TASKS);
    next_note(b, "notifications/tasks");
    for (int i = 0; i < 1100; i++)
        state_at(b, wire_make_task(a, "1", "hang", NULL, NULL));
    assert_int_equal(other.server->cluster.followed, 1024);
    world_advance(w, 31000);
    assert_int_equal(other.server->cluster.followed, 1); /* a client watches that one */
    wire_task(a, "3", "tasks/cancel", first, NULL);
    assert_at(next_note(b, "notifications/tasks"), "params.status", "\"cancelled\"");
    assert_int_equal(other.server->cluster.followed, 0);
    end();
}

static const scenario scenarios[] = {
    {"AS-38 events of a task come live at another server", events_come_live, ONLY_HERE,
     NULL},
    {"R-2557-35 a task is cancelled at another server", a_task_is_cancelled_there,
     ONLY_HERE, NULL},
    {"R-2557-26 questions are answered at another server", questions_are_answered_there,
     ONLY_HERE, NULL},
    {"R-2557-45 a subscription at another server hears of it", a_subscription_hears_of_it,
     ONLY_HERE, NULL},
    {"R-0-5 strangers find nothing at another server", strangers_find_nothing,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-2557-22 tasks of the draft are asked at another server",
     draft_tasks_are_asked_there, ONLY_HERE, draft_on},
    {"R-1905-48 results are waited for at another server", results_are_waited_for_there,
     ONLY_HERE, NULL},
    {"a task's client is asked at another server", its_client_is_asked_there, ONLY_HERE,
     NULL},
    {"a question keeps its task at another server", a_question_keeps_its_task_there,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, NULL},
    {"R-1905-30 segments are fetched at another server", segments_are_fetched_there,
     ONLY_HERE, NULL},
    {"AS-52 a call is found by its key at another server", a_call_is_found_by_its_key,
     ONLY_HERE | ONE_DRIVE, of_a_service},
    {"R-2557-30 rounds of a keyed call at another server", rounds_of_a_keyed_call,
     ONLY_HERE | ONE_DRIVE, of_a_service},
    {"R-2557-30 an answer of a keyed call finds it", an_answer_of_a_keyed_call_finds_it,
     ONLY_HERE | ONE_DRIVE, of_a_service},
    {"R-0-5 a session goes to any server with the key", a_session_goes_to_any_server,
     ONLY_HTTP | ONLY_HERE | ONE_DRIVE, of_a_service},
    {"those that nobody looks at are followed no more", those_that_nobody_looks_at_go,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, many_tasks},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
