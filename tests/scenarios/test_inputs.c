/* X: a task that asks. Questions are listed by tasks/get and answered by tasks/update. An
 * acknowledgement is empty. An answer that fits no open question changes nothing. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"
#define ANSWER(key) "\"inputResponses\":{\"" key "\":" ACCEPT "}"

/* Checks that the response is an acknowledgement, without members of the task. */
static void assert_ack(const char *response)
{
    static const char *const absent[] = {"taskId", "status", "result", "error",
                                         "inputRequests"};
    char path[64];
    assert_at(response, "result.resultType", "\"complete\"");
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        snprintf(path, sizeof path, "result.%s", absent[i]);
        assert_at(response, path, "");
    }
}

static void asks_once_and_completes(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "confirm_delete", NULL, CAPS_ALL);
    const char *first = wire_get_until(c, id, "input_required", NULL);
    const char *asked = json_at(first, "result.inputRequests");
    char kept[1024];
    snprintf(kept, sizeof kept, "%s", asked);
    assert_at(first, "result.inputRequests.input-1.method", "\"elicitation/create\"");
    assert_null(strstr(kept, "input-2"));
    for (int i = 0; i < 2; i++)
        assert_at(wire_task(c, "2", "tasks/get", id, NULL), "result.inputRequests", kept);
    const char *ack = wire_task(c, "3", "tasks/update", id, ANSWER("input-1"));
    assert_ack(ack);
    assert_golden(ack, "tasks_ext_update_ack");
    const char *r = wire_get_until(c, id, "completed", NULL);
    assert_at(r, "result.inputRequests", "");
    assert_at(
        r, "result.result.content.0.text",
        "\"{\\\"action\\\":\\\"accept\\\",\\\"content\\\":{\\\"confirm\\\":true}}\"");
    if (w->place != WORLD_STDIO)
        assert_int_equal(world_runs(w, "confirm_delete"), 1);
}

static void partial_answers(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "multi_input", NULL, CAPS_ALL);
    const char *r = wire_get_until_asked(c, id, "input-2");
    assert_non_null(strstr(json_at(r, "result.inputRequests"), "\"input-1\""));
    assert_non_null(strstr(json_at(r, "result.inputRequests"), "\"input-2\""));
    assert_ack(wire_task(c, "2", "tasks/update", id, ANSWER("input-1")));
    r = wire_task(c, "3", "tasks/get", id, NULL);
    assert_at(r, "result.status", "\"input_required\"");
    assert_at(r, "result.inputRequests.input-1", "");
    assert_at(r, "result.inputRequests.input-2.params.message", "\"Name?\"");
    assert_ack(wire_task(c, "4", "tasks/update", id, ANSWER("input-2")));
    wire_get_until(c, id, "completed", NULL);
}

static void both_answers_at_once(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "multi_input", NULL, CAPS_ALL);
    wire_get_until_asked(c, id, "input-2");
    assert_ack(wire_task(c, "2", "tasks/update", id,
                         "\"inputResponses\":{\"input-2\":" ACCEPT ",\"input-1\":" ACCEPT
                         "}"));
    wire_get_until(c, id, "completed", NULL);
}

static void stray_answers(world *w)
{
    static const char *const malformed[] = {"\"inputResponses\":[]", NULL,
                                            "\"inputResponses\":null",
                                            "\"inputResponses\":\"x\""};
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "multi_input", NULL, CAPS_ALL);
    const char *busy = wire_make_task(c, "2", "hang", NULL, CAPS_ALL);
    const char *done = wire_make_task(c, "3", "fields", NULL, CAPS_ALL);
    wire_get_until_asked(c, id, "input-2");
    wire_get_until(c, done, "completed", NULL);
    assert_ack(wire_task(c, "4", "tasks/update", id, ANSWER("input-9")));
    assert_ack(wire_task(c, "5", "tasks/update", id, "\"inputResponses\":{}"));
    assert_ack(wire_task(c, "6", "tasks/update", id, ANSWER("input-1")));
    assert_ack(wire_task(c, "7", "tasks/update", id, ANSWER("input-1")));
    assert_ack(wire_task(c, "8", "tasks/update", busy, ANSWER("input-1")));
    assert_ack(wire_task(c, "9", "tasks/update", done, ANSWER("input-1")));
    const char *r = wire_task(c, "10", "tasks/get", id, NULL);
    assert_at(r, "result.status", "\"input_required\"");
    assert_at(r, "result.inputRequests.input-1", "");
    assert_at(wire_task(c, "11", "tasks/get", busy, NULL), "result.status",
              "\"working\"");
    assert_at(wire_task(c, "12", "tasks/get", done, NULL), "result.status",
              "\"completed\"");
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        assert_code(wire_task(c, "13", "tasks/update", id, malformed[i]), -32602);
    assert_code(wire_task(c, "14", "tasks/update", "no-such-task", ANSWER("input-1")),
                -32602);
}

static void answered_twice_at_once(world *w)
{
    wire *a = world_connect(w, NULL);
    wire *b = world_connect(w, NULL);
    const char *id = wire_make_task(a, "1", "multi_input", NULL, CAPS_ALL);
    char params[512];
    wire_get_until_asked(a, id, "input-2");
    snprintf(params, sizeof params, "\"taskId\":\"%s\",%s", id, ANSWER("input-1"));
    wire_ask(a, "2", "tasks/update", params, CAPS_TASKS);
    wire_ask(b, "2", "tasks/update", params, CAPS_TASKS);
    assert_ack(wire_response(a, "2"));
    assert_ack(wire_response(b, "2"));
    assert_ack(wire_task(b, "3", "tasks/update", id,
                         "\"inputResponses\":{\"input-2\":{\"action\":\"decline\"}}"));
    const char *r = wire_get_until(a, id, "completed", NULL);
    /* One answer to each question has reached the handler. */
    assert_at(r, "result.result.content.0.text",
              "\"{\\\"action\\\":\\\"accept\\\",\\\"content\\\":{\\\"confirm\\\":true}}"
              "{\\\"action\\\":\\\"decline\\\"}\"");
}

static void keys_are_never_reused(world *w)
{
    static const char *const answers[] = {ANSWER("input-1"), ANSWER("input-2"),
                                          ANSWER("input-3")};
    static const char *const keys[] = {"result.inputRequests.input-1",
                                       "result.inputRequests.input-2",
                                       "result.inputRequests.input-3"};
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "ask_in_turn", NULL, CAPS_ALL);
    for (int turn = 0; turn < 3; turn++) {
        const char *r = wire_get_until(c, id, "input_required", NULL);
        for (int key = 0; key < 3; key++)
            assert_int_equal(*json_at(r, keys[key]) != 0, key == turn);
        wire_task(c, "2", "tasks/update", id, answers[turn]);
    }
    const char *r = wire_get_until(c, id, "completed", NULL);
    assert_at(r, "result.result.content.0.text", "\"asked 3 times\"");
}

static void undeclared_feature_is_not_asked(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "confirm_delete", NULL, CAPS_TASKS);
    /* Capabilities of a later request do not count, only those of the creating one. */
    const char *r = wire_get_until(c, id, "completed", CAPS_ALL);
    assert_at(r, "result.result.content.0.text", "\"cannot ask: SEGUE_E_UNSUPPORTED\"");
    assert_null(strstr(wire_history(c), "inputRequests"));
}

static void unfit_answers(world *w)
{
    static const char unfit[] =
        "\"inputResponses\":{\"input-1\":{\"action\":\"banana\"}}";
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "confirm_delete", NULL, CAPS_ALL);
    wire_get_until(c, id, "input_required", NULL);
    for (int i = 1; i < 5; i++) {
        assert_ack(wire_task(c, "2", "tasks/update", id, unfit));
        const char *r = wire_task(c, "3", "tasks/get", id, NULL);
        assert_at(r, "result.status", "\"input_required\"");
        assert_at(r, "result.statusMessage",
                  "\"The answer to input-1 does not fit the question\"");
    }
    assert_ack(wire_task(c, "4", "tasks/update", id, unfit));
    const char *r = wire_get_until(c, id, "failed", NULL);
    assert_at(r, "result.error.code", "-32602");
    assert_at(r, "result.error.message",
              "\"Too many answers that do not fit their question: at most 5\"");
    assert_at(r, "result.inputRequests", "");
}

/* R-2557-27: {"confirm": boolean} was asked for. The handler judges an answer that does
 * not fit the form. */
static void what_is_no_answer_is_asked_for_again(world *w)
{
    static const char *const none[] = {
        "{\"action\":\"accept\",\"content\":[true]}",
        "{\"action\":\"accept\",\"content\":null}",
        "{\"action\":\"decline\",\"content\":7}",
        "{\"action\":\"agree\"}",
    };
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "confirm_delete", NULL, CAPS_ALL);
    wire_get_until(c, id, "input_required", NULL);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char params[200];
        snprintf(params, sizeof params, "\"inputResponses\":{\"input-1\":%s}", none[i]);
        assert_ack(wire_task(c, "2", "tasks/update", id, params));
        const char *r = wire_task(c, "3", "tasks/get", id, NULL);
        assert_at(r, "result.status", "\"input_required\"");
        assert_at(r, "result.statusMessage",
                  "\"The answer to input-1 does not fit the question\"");
    }
    assert_ack(wire_task(c, "4", "tasks/update", id,
                         "\"inputResponses\":{\"input-1\":{\"action\":\"accept\","
                         "\"content\":{\"confirm\":\"yes\"}}}"));
    wire_get_until(c, id, "completed", NULL);
}

static void cancel_withdraws_questions(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "multi_input", NULL, CAPS_ALL);
    wire_get_until_asked(c, id, "input-2");
    wire_task(c, "2", "tasks/cancel", id, NULL);
    const char *r = wire_task(c, "3", "tasks/get", id, NULL);
    assert_at(r, "result.status", "\"cancelled\"");
    assert_at(r, "result.inputRequests", "");
    assert_ack(wire_task(c, "4", "tasks/update", id, ANSWER("input-1")));
    assert_at(wire_task(c, "5", "tasks/get", id, NULL), "result.status", "\"cancelled\"");
}

static void two_questions_at_most(segue_server_options *options)
{
    options->max_inputs = 2;
}

static void questions_are_limited(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "ask_in_turn", NULL, CAPS_ALL);
    wire_get_until(c, id, "input_required", NULL);
    wire_task(c, "2", "tasks/update", id, ANSWER("input-1"));
    wire_get_until(c, id, "input_required", NULL);
    wire_task(c, "3", "tasks/update", id, ANSWER("input-2"));
    const char *r = wire_get_until(c, id, "completed", NULL);
    assert_at(r, "result.result.content.0.text", "\"cannot ask: SEGUE_E_LIMIT\"");
}

static const scenario scenarios[] = {
    {"AS-44 R-2557-15 a question is listed until it is answered", asks_once_and_completes,
     0, NULL},
    {"AS-46 answers may come one by one", partial_answers, 0, NULL},
    {"AS-46 answers may come together", both_answers_at_once, 0, NULL},
    {"AS-47 answers without a question are acknowledged, malformed ones refused",
     stray_answers, 0, NULL},
    {"AS-48 the same answer from two connections counts once", answered_twice_at_once,
     ONLY_HERE, NULL},
    {"AS-49 keys of questions in turn are distinct", keys_are_never_reused, 0, NULL},
    {"AS-50 a client that cannot be asked is not asked", undeclared_feature_is_not_asked,
     0, NULL},
    {"R-2557-27 answers that do not fit leave the question open, five end the task",
     unfit_answers, 0, NULL},
    {"R-2557-27 what is no answer leaves the question open",
     what_is_no_answer_is_asked_for_again, 0, NULL},
    {"R-2557-39 cancel withdraws open questions", cancel_withdraws_questions, 0, NULL},
    {"R-C-10 max_inputs limits the questions of a task", questions_are_limited,
     ONLY_HERE | ONE_DRIVE, two_questions_at_most},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
