/* The server asks for a task (2025-11-25 basic/utilities/tasks): it sends a question with
 * params.task where the client accepts that, and follows the task to its end. The client
 * is a script, with correct and wrong answers. AS-25, and R-1905-41 to R-1905-61 in the
 * other direction. */
#include "support/asked_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- L ---- */

static void a_question_is_asked_as_a_task(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_L);
    asker_call(c, "1", "ask_model");
    const char *line = asker_asked(c, SAMPLE, id);
    assert_at(line, "params.task", "{\"ttl\":60000}");
    assert_at(line, "params.maxTokens", "100");
    assert_at(line, "params._meta", "");
    asker_reply(c, id, "{" CREATED "}");
    line = asker_polled(w, c, GET, id);
    assert_at(line, "params", "{\"taskId\":\"H\"}");
    asker_reply(c, id, TASK("working"));
    asker_polled(w, c, GET, id);
    asker_reply(c, id, TASK("completed"));
    line = asker_asked(c, RESULT, id);
    assert_at(line, "params", "{\"taskId\":\"H\"}");
    asker_reply(c, id, "{\"content\":" TEXT("Hi") "," ENDS "," META "}");
    asker_got(wire_response(c, "1"), "{\"content\":" TEXT("Hi") "," ENDS "}");
}

static void an_elicitation_is_asked_as_a_task(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_L);
    asker_call(c, "1", "ask_once");
    assert_at(asker_asked(c, "elicitation/create", id), "params.task.ttl", "60000");
    asker_reply(c, id, "{" CREATED "}");
    asker_polled(w, c, GET, id);
    asker_reply(c, id, TASK("completed"));
    asker_asked(c, RESULT, id);
    asker_reply(c, id, "{\"action\":\"accept\",\"content\":{\"a\":1}," META "}");
    const char *r = wire_response(c, "1");
    assert_non_null(strstr(json_at(r, "result.content.0.text"), "accept"));
}

static void a_status_is_heard(world *w)
{
    char id[WIRE_ID];
    wire *c = asker_begin_task(w, CAPS_L, "ask_model");
    wire_notify(c, "notifications/tasks/status", FACTS("completed"));
    asker_asked(c, RESULT, id); /* the result is fetched at once, without tasks/get */
    asker_reply(c, id, MESSAGE(TEXT("Hi")));
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("Hi")));
}

static void a_task_asks_for_a_task(world *w)
{
    char id[WIRE_ID], related[160];
    wire *c = legacy_connect(w, NULL, CAPS_L);
    const char *task = legacy_make_task(c, "1", "ask_model_task", NULL, NULL);
    const char *line = asker_asked(c, SAMPLE, id);
    snprintf(related, sizeof related,
             "{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}}", task);
    assert_at(line, "params._meta", related);
    assert_at(line, "params.task.ttl", "60000");
    asker_reply(c, id, "{" CREATED "}");
    wire_notify(c, "notifications/tasks/status", FACTS("completed"));
    asker_asked(c, RESULT, id);
    asker_reply(c, id, MESSAGE(TEXT("Hi")));
    legacy_get_until(c, task, "completed");
    asker_got(legacy_task(c, "3", "tasks/result", task, NULL), MESSAGE(TEXT("Hi")));
}

static void who_takes_no_task_is_asked_plainly(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, "{\"sampling\":{},\"tasks\":{\"cancel\":{}}}");
    asker_call(c, "1", "ask_model");
    assert_at(asker_asked(c, SAMPLE, id), "params.task", "");
    asker_reply(c, id, MESSAGE(TEXT("Hi")));
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("Hi")));
    c = legacy_connect_as(w, NULL, "2025-06-18", CAPS_S);
    asker_call(c, "1", "ask_model");
    assert_at(asker_asked(c, SAMPLE, id), "params.task", "");
}

/* ---- S ---- */

static void as_25_pushed(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_S);
    asker_call(c, "1", "ask_model");
    assert_at(asker_asked(c, SAMPLE, id), "params.task.responseModes",
              "[\"task\",\"immediate\",\"streaming\"]");
    asker_reply(c, id, "{" CREATED "}");
    asker_reply(c, id, "{" PART(NUMBERED(1, "a")) "}");
    asker_reply(c, id, "{" PART(NUMBERED(1, "a") "," NUMBERED(2, "b")) "}");
    asker_reply(c, id, "{" LAST(NUMBERED(3, "c")) "}");
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("a") "," TEXT("b") "," TEXT("c")));
    asker_reply(c, id, "{" PART(NUMBERED(4, "d")) "}"); /* a late segment is dropped */
    assert_true(*json_at(wire_do_plain(c, "2", "ping", NULL), "result"));
}

static void as_25_pulled(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_S);
    asker_call(c, "1", "ask_model");
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id,
                "{" CREATED ",\"partial-content\":[" NUMBERED(1, "a") "],\"isComplete\":"
                                                                      "false}");
    if (w->place != WORLD_HTTP) { /* the push has stopped, which is a fault */
        asker_polled(w, c, GET, id);
        asker_reply(c, id, TASK("completed"));
    } else { /* over HTTP nothing can be pushed */
        assert_at(asker_polled(w, c, RESULT, id), "params.lastSeqNr", "1");
        asker_reply(c, id, "{" PART(NUMBERED(2, "b")) "}");
    }
    const char *line = asker_polled(w, c, RESULT, id);
    bool more = !strcmp(json_at(line, "params.lastSeqNr"), "2");
    asker_reply(c, id,
                more ? "{" LAST(NUMBERED(3, "c")) "}"
                     : "{" LAST(NUMBERED(2, "b") "," NUMBERED(3, "c")) "}");
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("a") "," TEXT("b") "," TEXT("c")));
}

static void a_hole_is_filled(world *w)
{
    char id[WIRE_ID], pull[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_S);
    asker_call(c, "1", "ask_model");
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, "{" CREATED "}");
    asker_reply(c, id, "{" PART(NUMBERED(1, "a")) "}");
    asker_reply(c, id, "{" LAST(NUMBERED(3, "c")) "}");
    assert_at(asker_asked(c, RESULT, pull), "params.lastSeqNr", "1");
    asker_reply(c, pull, "{" LAST(NUMBERED(2, "b") "," NUMBERED(3, "c")) "}");
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("a") "," TEXT("b") "," TEXT("c")));
}

static void an_answer_may_come_at_once(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_S);
    asker_call(c, "1", "ask_model");
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, MESSAGE(TEXT("now")));
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("now")));
    c = legacy_connect(w, NULL, CAPS_L); /* not negotiated, but no reason to lose the
                                          * answer */
    asker_call(c, "2", "ask_model");
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, MESSAGE(TEXT("now")));
    asker_got(wire_response(c, "2"), MESSAGE(TEXT("now")));
}

/* ---- failures ---- */

static void errors_are_told(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_L);
    asker_call(c, "1", "ask_model"); /* the task is refused */
    asker_asked(c, SAMPLE, id);
    asker_refuse(c, id, -1);
    asker_got_error(wire_response(c, "1"), "-1");
    c = asker_begin_task(w, CAPS_L, "ask_model"); /* the task fails */
    asker_polled(w, c, GET, id);
    asker_reply(c, id, TASK("failed"));
    asker_asked(c, RESULT, id);
    asker_refuse(c, id, -2);
    asker_got_error(wire_response(c, "1"), "-2");
    c = asker_begin_task(w, CAPS_L, "ask_model"); /* the user cancels the task */
    asker_polled(w, c, GET, id);
    asker_reply(c, id, TASK("cancelled"));
    asker_got_error(wire_response(c, "1"), "-32603");
    c = asker_begin_task(w, CAPS_L, "ask_model"); /* the task is gone */
    asker_polled(w, c, GET, id);
    asker_refuse(c, id, -32602);
    asker_got_error(wire_response(c, "1"), "-32602");
    wire_quiet(c);
}

static void a_stream_that_fails_is_an_error(world *w)
{
    char push[WIRE_ID], id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_S);
    for (int nothing = 0; nothing < 2; nothing++) {
        char call_id[2] = {(char)('1' + nothing), 0};
        asker_call(c, call_id, "ask_model");
        asker_asked(c, SAMPLE, push);
        asker_reply(c, push, "{" CREATED "}");
        asker_reply(c, push,
                    nothing ? "{\"content\":[" TEXT(
                                  "no") "]," ENDS
                                        ",\"isError\":true,\"isComplete\":true," META "}"
                            : "{\"partial-content\":[" NUMBERED(
                                  1, "no") "],\"isError\":true,\"isComplete\":true," ENDS
                                           "," META "}");
        asker_asked(c, GET, id);
        asker_reply(c, id, TASK("failed"));
        asker_asked(c, RESULT, id);
        asker_refuse(c, id, -7);
        asker_got_error(wire_response(c, call_id), "-7");
    }
}

static void nonsense_is_an_error(world *w)
{
    static const char *const nonsense[] = {
        "{\"task\":{}}",
        "{\"task\":{\"taskId\":5}}",
        "{\"task\":{\"taskId\":\"\\u0000\",\"status\":\"working\"}}",
        "{\"partial-content\":[],\"content\":[]}",
        "{\"partial-content\":[],\"isComplete\":false}",
    };
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        char id[WIRE_ID];
        wire *c = legacy_connect(w, NULL, CAPS_S);
        asker_call(c, "1", "ask_model");
        asker_asked(c, SAMPLE, id);
        asker_reply(c, id, nonsense[i]);
        asker_got_error(wire_response(c, "1"), "-32603");
        wire_drop(c);
    }
}

static void strange_answers_are_dropped(world *w)
{
    char push[WIRE_ID], id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_S);
    asker_call(c, "1", "ask_model");
    asker_asked(c, SAMPLE, push);
    asker_reply(c, push, "{" CREATED "}");
    asker_reply(c, "4711", MESSAGE(TEXT("x")));
    asker_reply(
        c, push,
        "{\"partial-content\":[" NUMBERED(
            1, "x") "],\"isComplete\":false,"
                    "\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":"
                    "\"other\"}}}");
    asker_reply(c, push, "{" PART(NUMBERED(0, "x")) "}");
    asker_reply(c, push, "{" PART("5") "}");
    wire_notify(c, "notifications/tasks/status",
                "\"taskId\":\"other\",\"status\":"
                "\"completed\"");
    asker_reply(c, push, "{" PART(NUMBERED(1, "a")) "}");
    asker_polled(w, c, GET, id);
    asker_reply(c, id, TASK("working"));
    asker_reply(c, id, TASK("failed")); /* the task is answered twice */
    asker_reply(c, push, "{" LAST(NUMBERED(2, "b")) "}");
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("a") "," TEXT("b")));
}

static void who_never_answers_is_given_up(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_L);
    asker_call(c, "1", "ask_model");
    asker_asked(c, SAMPLE, id);
    world_advance(w, 61000);
    assert_at(wire_notification(c, "notifications/cancelled"), "params.requestId", id);
    asker_got_error(wire_response(c, "1"), "-32603");
    asker_reply(c, id, "{" CREATED "}"); /* this answer comes late */
    assert_true(*json_at(wire_do_plain(c, "2", "ping", NULL), "result"));
}

#define ROW(name, run, flags)                                                            \
    {                                                                                    \
        name, run, flags, asker_tune                                                     \
    }
static const scenario scenarios[] = {
    ROW("a question is asked as a task", a_question_is_asked_as_a_task, 0),
    ROW("an elicitation is asked as a task", an_elicitation_is_asked_as_a_task,
        ONE_DRIVE),
    ROW("a status is heard", a_status_is_heard, ONLY_HERE | ONE_DRIVE),
    ROW("a task asks for a task", a_task_asks_for_a_task, 0),
    ROW("who takes no task is asked plainly", who_takes_no_task_is_asked_plainly,
        ONLY_HERE | ONE_DRIVE),
    /* Responses by POST have no order. */
    ROW("AS-25 segments are pushed to the server", as_25_pushed, NOT_HTTP),
    ROW("AS-25 segments are pulled by the server", as_25_pulled, 0),
    ROW("a hole is filled", a_hole_is_filled, NOT_HTTP),
    ROW("an answer may come at once", an_answer_may_come_at_once, ONLY_HERE | ONE_DRIVE),
    ROW("errors are told", errors_are_told, ONLY_HERE | ONE_DRIVE),
    ROW("a stream that fails is an error", a_stream_that_fails_is_an_error,
        NOT_HTTP | ONE_DRIVE),
    ROW("nonsense is an error", nonsense_is_an_error, ONLY_HERE | ONE_DRIVE),
    ROW("strange answers are dropped", strange_answers_are_dropped, NOT_HTTP | ONE_DRIVE),
    ROW("who never answers is given up", who_never_answers_is_given_up,
        ONLY_HERE | ONE_DRIVE),
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
