/* Questions in the handshake eras: a call, or a task of 2025-11-25, asks its client by a
 * request, and the client answers with a response (2025-11-25 client/elicitation,
 * basic/transports, basic/utilities/tasks). R-C-14, R-776-25, rows 5 to 8 and 31 of the
 * task's states. */
#include "support/legacy_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CAPS_FORM "{\"elicitation\":{}}"
#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"
#define CREATE "elicitation/create"
#define WITHDRAWN "notifications/cancelled"
#define WAIT_MS 5000

static void call(wire *c, const char *id, const char *tool)
{
    char params[128];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{}", tool);
    wire_ask_plain(c, id, "tools/call", params);
}

/* Waits for the next question and stores its id as JSON. */
static const char *question(wire *c, char id[WIRE_ID])
{
    const char *asked = wire_request(c, CREATE);
    snprintf(id, WIRE_ID, "%s", json_at(asked, "id"));
    assert_true(*id);
    return asked;
}

/* member: "result" or "error", with its value. */
static void reply(wire *c, const char *id, const char *member, const char *value)
{
    char line[512];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":%s}", id, member,
             value);
    wire_send(c, line);
}

static void says(const char *response, const char *part)
{
    const char *text = json_at(response, "result.content.0.text");
    if (!strstr(text, part))
        fail_msg("%s is not in %s", part, response);
}

/* ---- plain calls ---- */

static void asks_once(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_once");
    const char *asked = question(c, id);
    assert_at(asked, "params.message", "\"Are you sure?\"");
    assert_at(asked, "params._meta", "");
    assert_golden(asked, "legacy_elicitation");
    reply(c, id, "result", ACCEPT);
    says(wire_response(c, "1"), "accept");
}

static void every_revision_is_asked(world *w)
{
    static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18",
                                           "2025-11-25"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        char id[WIRE_ID];
        wire *c = legacy_connect_as(w, NULL, versions[i], CAPS_FORM);
        call(c, "1", "ask_once");
        question(c, id);
        reply(c, id, "result", ACCEPT);
        says(wire_response(c, "1"), "accept");
        wire_drop(c);
    }
}

/* R-776-25: segments between questions keep their order. */
static void asks_in_turn(world *w)
{
    char ids[3][WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_rounds");
    for (int i = 0; i < 3; i++) {
        question(c, ids[i]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(ids[i], ids[j]);
        reply(c, ids[i], "result", ACCEPT);
    }
    says(wire_response(c, "1"), "asked 3 times");
}

static void two_at_once(world *w)
{
    char first[WIRE_ID], second[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_both");
    question(c, first);
    assert_at(question(c, second), "params.message", "\"Name?\"");
    assert_string_not_equal(first, second);
    reply(c, second, "result", "{\"action\":\"cancel\"}");
    reply(c, first, "result", "{\"action\":\"decline\"}");
    const char *r = wire_response(c, "1");
    says(r, "cancel");
    says(r, "decline");
}

static void an_error_is_told_as_one(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_once");
    question(c, id);
    reply(c, id, "error", "{\"code\":-1,\"message\":\"User rejected\"}");
    says(wire_response(c, "1"), "no answer: SEGUE_E_REMOTE");
}

/* R-0-2: no better answer can come under that id, so the tool need not wait. */
static void malformed_answers(world *w)
{
    static const char *const bad[][2] = {{"result", "7"},
                                         {"result", "{},\"error\":{\"code\":1}"},
                                         {"error", "{\"message\":\"no code\"}"},
                                         {"result", "null"}};
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char call_id[2] = {(char)('1' + i), 0};
        call(c, call_id, "ask_once");
        question(c, id);
        reply(c, "4711", bad[i][0], bad[i][1]); /* no question has this id */
        reply(c, id, bad[i][0], bad[i][1]);
        says(wire_response(c, call_id), "no answer: SEGUE_E_REMOTE");
    }
    assert_true(*json_at(wire_do_plain(c, "9", "ping", NULL), "result"));
}

static void strange_answers(world *w)
{
    char id[WIRE_ID], again[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_once");
    question(c, id);
    reply(c, "4711", "result", ACCEPT);  /* no question has this id */
    reply(c, "\"1\"", "result", ACCEPT); /* no question has this id: 1 and "1" are two
                                          * ids */
    reply(c, id, "result", "{\"action\":\"banana\"}");
    question(c, again); /* the answer did not fit: the question comes again */
    assert_string_not_equal(id, again);
    reply(c, id, "result", ACCEPT); /* this answer comes too late */
    reply(c, again, "result", ACCEPT);
    reply(c, again, "result", "{\"action\":\"decline\"}"); /* only one answer is taken */
    says(wire_response(c, "1"), "accept");
    assert_true(*json_at(wire_do_plain(c, "2", "ping", NULL), "result"));
}

static void five_unfit_answers_end_it(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_once");
    for (int i = 0; i < 5; i++) {
        question(c, id);
        reply(c, id, "result", "{}");
    }
    assert_code(wire_response(c, "1"), -32602);
}

/* R-C-14, R-2557-28: a client is not asked for what it did not declare in initialize. */
static void what_is_not_declared_is_not_asked(world *w)
{
    wire *c = legacy_connect(w, NULL, "{\"sampling\":{},\"roots\":{}}");
    call(c, "1", "ask_once");
    says(wire_response(c, "1"), "cannot ask: SEGUE_E_UNSUPPORTED");
    /* this client knows no forms */
    c = legacy_connect(w, NULL, "{\"elicitation\":{\"url\":{}}}");
    call(c, "1", "ask_once");
    says(wire_response(c, "1"), "cannot ask: SEGUE_E_UNSUPPORTED");
    c = legacy_connect(w, NULL, "{\"elicitation\":{\"url\":{},\"form\":{}}}");
    call(c, "1", "ask_once");
    wire_request(c, CREATE);
}

/* ---- the end of a question ---- */

static void a_cancelled_call_withdraws_it(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_once");
    question(c, id);
    wire_notify(c, WITHDRAWN, "\"requestId\":1");
    assert_at(wire_notification(c, WITHDRAWN), "params.requestId", id);
    reply(c, id, "result", ACCEPT); /* this answer crossed the end */
    assert_true(*json_at(wire_do_plain(c, "2", "ping", NULL), "result"));
}

static void a_result_withdraws_it(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_hastily");
    question(c, id);
    world_advance(w, 150);
    assert_at(wire_notification(c, WITHDRAWN), "params.requestId", id);
    says(wire_response(c, "1"), "done without it");
}

static void waiting_ends(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_once");
    question(c, id);
    world_advance(w, WAIT_MS + 100);
    assert_at(wire_notification(c, WITHDRAWN), "params.requestId", id);
    assert_code(wire_response(c, "1"), -32603);
    world_advance(w, 100);
    call(c, "2", "ask_once"); /* nothing of the call is left */
    question(c, id);
    reply(c, id, "result", ACCEPT);
    says(wire_response(c, "2"), "accept");
}

static void a_lost_connection_ends_it(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    call(c, "1", "ask_once");
    question(c, id);
    wire_cut(c);
    c = legacy_connect(w, NULL, CAPS_FORM);
    reply(c, id, "result", ACCEPT); /* a connection of another session */
    call(c, "1", "ask_once");
    question(c, id);
    reply(c, id, "result", ACCEPT);
    says(wire_response(c, "1"), "accept");
}

static void another_session_cannot_answer(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, "ada", CAPS_FORM);
    wire *same = legacy_connect(w, "ada", CAPS_FORM);
    wire *other = legacy_connect(w, "bob", CAPS_FORM);
    call(c, "1", "ask_once");
    question(c, id);
    reply(same, id, "result", "{\"action\":\"decline\"}");
    reply(other, id, "result", "{\"action\":\"decline\"}");
    wire_quiet(c);
    reply(c, id, "result", ACCEPT);
    says(wire_response(c, "1"), "accept");
}

/* ---- tasks ---- */

static void assert_related(const char *message, const char *task)
{
    char related[160];
    snprintf(related, sizeof related,
             "{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}}", task);
    assert_at(message, "params._meta", related);
}

static void a_task_asks(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    const char *task = legacy_make_task(c, "1", "confirm_delete", NULL, NULL);
    assert_related(question(c, id), task);
    assert_at(legacy_task(c, "2", "tasks/get", task, NULL), "result.status",
              "\"input_required\"");
    reply(c, id, "result", ACCEPT);
    legacy_get_until(c, task, "completed");
    says(legacy_task(c, "3", "tasks/result", task, NULL), "accept");
}

static void a_task_that_is_cancelled_withdraws_it(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_FORM);
    const char *task = legacy_make_task(c, "1", "confirm_delete", NULL, NULL);
    question(c, id);
    legacy_ask_about(c, "2", "tasks/cancel", task, NULL);
    const char *note = wire_notification(c, WITHDRAWN);
    assert_at(note, "params.requestId", id);
    assert_related(note, task);
    assert_at(wire_response(c, "2"), "result.status", "\"cancelled\"");
}

/* The task's conversation has no reader any more. A client that waits for the result is
 * asked ("Input Required Status"). */
static void who_waits_for_the_result_is_asked(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, "ada", CAPS_FORM);
    const char *task = legacy_make_task(c, "1", "multi_input", NULL, NULL);
    question(c, id);
    question(c, id);
    wire_cut(c);
    wire *next = legacy_connect(w, "ada", CAPS_FORM);
    wire_quiet(next);
    legacy_ask_about(next, "1", "tasks/result", task, NULL);
    for (int i = 0; i < 2; i++) {
        assert_related(question(next, id), task);
        reply(next, id, "result", ACCEPT);
    }
    says(wire_response(next, "1"), "accept");
}

static void short_wait(segue_server_options *options)
{
    options->input_wait_ms = WAIT_MS;
}

static const scenario scenarios[] = {
    {"a call asks once", asks_once, 0, NULL},
    {"every revision is asked", every_revision_is_asked, ONLY_HERE | ONE_DRIVE, NULL},
    {"R-776-25 a call asks in turn", asks_in_turn, 0, NULL},
    {"a call asks two at once", two_at_once, 0, NULL},
    {"an error is told as one", an_error_is_told_as_one, ONE_DRIVE, NULL},
    {"R-0-2 a malformed answer is an error", malformed_answers, ONE_DRIVE, NULL},
    {"strange answers", strange_answers, ONE_DRIVE, NULL},
    {"R-2557-27 five unfit answers end it", five_unfit_answers_end_it, ONE_DRIVE, NULL},
    {"what is not declared is not asked", what_is_not_declared_is_not_asked,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a cancelled call withdraws it", a_cancelled_call_withdraws_it, ONE_DRIVE, NULL},
    {"a result withdraws it", a_result_withdraws_it, ONLY_HERE | ONE_DRIVE, NULL},
    {"waiting ends", waiting_ends, ONLY_HERE | ONE_DRIVE, short_wait},
    {"a lost connection ends it", a_lost_connection_ends_it, ONLY_HERE | ONE_DRIVE, NULL},
    {"another session cannot answer", another_session_cannot_answer,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-2557-1 a task asks", a_task_asks, 0, NULL},
    {"a task that is cancelled withdraws it", a_task_that_is_cancelled_withdraws_it,
     ONE_DRIVE, NULL},
    {"who waits for the result is asked", who_waits_for_the_result_is_asked,
     ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
