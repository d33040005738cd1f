/* A question that is asked as a task: its call ends first, its client goes, or the client
 * comes back with or without the task. */
#include "support/asked_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- the end, and the client that goes ---- */

static void a_cancelled_call_cancels_it(world *w)
{
    char id[WIRE_ID];
    wire *c = asker_begin_task(w, CAPS_L, "ask_model");
    asker_polled(w, c, GET, id);
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    assert_at(asker_asked(c, "tasks/cancel", id), "params.taskId", "\"H\"");
    asker_reply(c, id, TASK("cancelled"));
    wire_quiet(c);
    asker_call(c, "2", "ask_model"); /* before there is a task */
    asker_asked(c, SAMPLE, id);
    wire_notify(c, "notifications/cancelled", "\"requestId\":2");
    assert_at(wire_notification(c, "notifications/cancelled"), "params.requestId", id);
    asker_reply(c, id, "{" CREATED "}");
    assert_true(*json_at(wire_do_plain(c, "3", "ping", NULL), "result"));
}

static void what_cannot_be_cancelled_is_not(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, "{\"sampling\":{},\"tasks\":{" TAKES "}}");
    asker_call(c, "1", "ask_model");
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, "{" CREATED "}");
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    wire_quiet(c);
}

/* The client comes back on another connection and still has its task. */
static void it_goes_on_where_the_client_is(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, "ada", CAPS_S);
    legacy_make_task(c, "1", "ask_model_task", NULL, NULL);
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, "{" CREATED "}");
    asker_reply(c, id, "{" PART(NUMBERED(1, "a")) "}");
    const char *task =
        json_at(wire_do_plain(c, "2", "tasks/list", NULL), "result.tasks.0.taskId");
    char mine[64];
    snprintf(mine, sizeof mine, "%.*s", (int)strlen(task) - 2, task + 1);
    wire_cut(c);
    world_advance(w, 1000);
    c = legacy_connect(w, "ada", CAPS_S);
    wire_quiet(c);
    legacy_ask_about(c, "1", "tasks/result", mine, NULL);
    assert_at(asker_polled(w, c, RESULT, id), "params.lastSeqNr", "1");
    asker_reply(c, id, "{" LAST(NUMBERED(2, "b")) "}");
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("a") "," TEXT("b")));
}

/* The client comes back without the task: it is asked anew. */
static void it_is_asked_anew_where_it_is_lost(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, "ada", CAPS_L);
    const char *task = legacy_make_task(c, "1", "ask_model_task", NULL, NULL);
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, "{" CREATED "}");
    assert_true(*json_at(wire_do_plain(c, "2", "ping", NULL), "result"));
    wire_cut(c);
    c = legacy_connect(w, "ada", CAPS_L);
    legacy_ask_about(c, "1", "tasks/result", task, NULL);
    asker_polled(w, c, GET, id);
    asker_refuse(c, id, -32602);
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, "{" CREATED "}");
    asker_polled(w, c, GET, id);
    asker_refuse(c, id, -32602); /* it lost a task that it has just made, so it cannot be
                           * trusted */
    asker_got_error(wire_response(c, "1"), "-32602");
    wire_quiet(c);
}

static void it_is_asked_plainly_where_no_task_is_taken(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, "ada", CAPS_L);
    const char *task = legacy_make_task(c, "1", "ask_model_task", NULL, NULL);
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, "{" CREATED "}");
    assert_true(*json_at(wire_do_plain(c, "2", "ping", NULL), "result"));
    wire_cut(c);
    c = legacy_connect(w, "ada", "{\"sampling\":{}}");
    legacy_ask_about(c, "1", "tasks/result", task, NULL);
    assert_at(asker_asked(c, SAMPLE, id), "params.task", "");
    asker_reply(c, id, MESSAGE(TEXT("plain")));
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("plain")));
}

static void before_it_is_a_task_it_is_asked_anew(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, "ada", CAPS_L);
    const char *task = legacy_make_task(c, "1", "ask_model_task", NULL, NULL);
    asker_asked(c, SAMPLE, id);
    wire_cut(c);
    c = legacy_connect(w, "ada", CAPS_L);
    legacy_ask_about(c, "1", "tasks/result", task, NULL);
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, MESSAGE(TEXT("Hi")));
    asker_got(wire_response(c, "1"), MESSAGE(TEXT("Hi")));
}

/* The client can answer the second question only. */
static void what_who_waits_can_answer_is_asked(world *w)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, "ada", "{\"sampling\":{},\"elicitation\":{}}");
    const char *task =
        legacy_make_task(c, "1", "ask_model_task", "\"and_person\":true", NULL);
    asker_asked(c, SAMPLE, id);
    asker_asked(c, "elicitation/create", id);
    wire_cut(c);
    wire *next = legacy_connect(w, "ada", "{\"elicitation\":{}}");
    legacy_ask_about(next, "1", "tasks/result", task, NULL);
    asker_asked(next, "elicitation/create", id);
    wire_quiet(next);
    asker_reply(next, id, "{\"action\":\"decline\"}");
    asker_got(wire_response(next, "1"), "{\"action\":\"decline\"}");
}

/* At most 256 questions of a session are open; the others wait for their turn. */
static void questions_are_bounded(world *w)
{
    enum { MOST = 256, MORE = 3 };
    char id[WIRE_ID], first[WIRE_ID];
    wire *c = legacy_connect(w, NULL, CAPS_L);
    for (int i = 0; i < MOST + MORE; i++) {
        snprintf(id, sizeof id, "%d", i);
        asker_call(c, id, "ask_model");
    }
    for (int i = 0; i < MOST; i++)
        asker_asked(c, SAMPLE, i ? id : first);
    wire_quiet(c);
    for (int i = 0; i < MORE; i++) { /* a task counts as long as its question is open */
        asker_reply(c, first, "{" CREATED "}");
        wire_quiet(c);
        wire_notify(c, "notifications/tasks/status", FACTS("completed"));
        asker_asked(c, RESULT, id);
        asker_reply(c, id, MESSAGE(TEXT("Hi")));
        snprintf(id, sizeof id, "%d", i ? MOST + i - 1 : 0);
        asker_got(wire_response(c, id), MESSAGE(TEXT("Hi")));
        asker_asked(c, SAMPLE, first);
    }
}

static void many_tasks(segue_server_options *options)
{
    asker_tune(options);
    options->max_tasks = 1000;
}

#define ROW(name, run, flags)                                                            \
    {                                                                                    \
        name, run, flags, asker_tune                                                     \
    }
static const scenario scenarios[] = {
    {"questions are bounded", questions_are_bounded, ONLY_HERE | NOT_HTTP | ONE_DRIVE,
     many_tasks},
    ROW("what who waits can answer is asked", what_who_waits_can_answer_is_asked,
        ONLY_HERE | ONE_DRIVE),
    ROW("a cancelled call cancels it", a_cancelled_call_cancels_it,
        ONLY_HERE | ONE_DRIVE),
    ROW("what cannot be cancelled is not", what_cannot_be_cancelled_is_not,
        ONLY_HERE | ONE_DRIVE),
    /* Over HTTP the old session may come back, so the server waits for it. */
    ROW("it goes on where the client is", it_goes_on_where_the_client_is,
        ONLY_HERE | NOT_HTTP | ONE_DRIVE),
    ROW("it is asked anew where it is lost", it_is_asked_anew_where_it_is_lost,
        ONLY_HERE | NOT_HTTP | ONE_DRIVE),
    ROW("it is asked plainly where no task is taken",
        it_is_asked_plainly_where_no_task_is_taken, ONLY_HERE | NOT_HTTP | ONE_DRIVE),
    ROW("before it is a task it is asked anew", before_it_is_a_task_it_is_asked_anew,
        ONLY_HERE | NOT_HTTP | ONE_DRIVE),
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
