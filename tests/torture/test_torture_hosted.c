/* Questions that are asked and answered as tasks while memory fails, at both ends. */
#include "support/model_fixtures.h"
#include "support/torture.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* The model sends two words and ends, as far as possible; a step without memory is tried
 * again. */
static void play(torture *t)
{
    model *m = t->far;
    for (model_call *c = m->calls; c; c = c->next) {
        if (!c->call)
            continue;
        if (c->cancelled)
            model_fail(c, -1, "cancelled");
        else if (model_say(c, "one") == SEGUE_OK && model_say(c, "two") == SEGUE_OK)
            model_complete(c);
    }
}

static int has_both(const asked *a)
{
    return a && a->status == SEGUE_OK && strstr(a->result, "one") &&
           strstr(a->result, "two");
}

static int answered(torture *t)
{
    static model the_model; /* outlives the run */
    model *m = &the_model;
    *m = (model){0};
    t->question_ttl_ms = 60000;
    if (!torture_serve(t))
        return 0;
    segue_session *session = NULL;
    int good = model_try(m, t->runtime);
    if (good) {
        t->host = m->host;
        t->far = m;
        t->play = play;
        session = torture_open(t);
    }
    asked *plain = session ? torture_call(t, session, "ask_model", "{}") : NULL;
    asked *task = session ? torture_call(t, session, "ask_model_task", "{}") : NULL;
    if (plain)
        torture_settle(t, plain);
    if (task)
        torture_settle(t, task);
    good = has_both(plain) && has_both(task);
    t->host = NULL;
    t->play = NULL;
    model_end(m);
    return good;
}

/* The call is withdrawn while the model thinks. */
static int cancelled(torture *t)
{
    static model the_model;
    model *m = &the_model;
    *m = (model){0};
    t->question_ttl_ms = 60000;
    if (!torture_serve(t))
        return 0;
    segue_session *session = NULL;
    if (model_try(m, t->runtime)) {
        t->host = m->host;
        session = torture_open(t);
    }
    asked *a = session ? torture_call(t, session, "ask_model", "{}") : NULL;
    for (int i = 0; a && i < 100 && !m->calls && !a->completed; i++) {
        torture_pump(t);
        t->clock_ms += 10;
    }
    if (a && !a->completed)
        segue_request_cancel(a->request);
    if (a)
        torture_settle(t, a);
    for (int i = 0; i < 10; i++) {
        torture_pump(t);
        t->clock_ms += 10;
    }
    int good = a && m->calls && m->calls->cancelled;
    t->host = NULL;
    model_end(m);
    return good;
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"a question is answered as a task", answered, 0, SEGUE_ERA_LEGACY, 0},
        {"a question is cancelled", cancelled, 0, SEGUE_ERA_LEGACY, 0},
    };
    return torture_run("torture_hosted", scenarios, sizeof scenarios / sizeof *scenarios);
}
