/* Tasks of DRAFT-2026-v1 while memory fails, client and server: followed to the result,
 * with questions, cancelled, resumed by a token. */
#include "support/torture.h"

#include <string.h>

static segue_session *open_draft(torture *t)
{
    t->draft = 1;
    return torture_serve(t) ? torture_open(t) : NULL;
}

static int followed(torture *t, const char *tool, const char *arguments,
                    const char *in_result)
{
    segue_session *session = open_draft(t);
    asked *a = session ? torture_call(t, session, tool, arguments) : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_OK && strstr(a->result, in_result);
}

static int to_the_result(torture *t)
{
    return followed(t, "slow_compute", "{\"ms\":300}", "Computed");
}

static int with_questions(torture *t)
{
    return followed(t, "confirm_delete", "{}", "accept");
}

static int in_rounds(torture *t)
{
    return followed(t, "ask_once", "{}", "accept");
}

static int cancelled(torture *t)
{
    segue_session *session = open_draft(t);
    asked *a = session ? torture_call(t, session, "hang", "{}") : NULL;
    if (!a)
        return 0;
    for (int i = 0; i < 30; i++) {
        torture_pump(t);
        t->clock_ms += 50;
    }
    segue_request_cancel(a->request);
    torture_settle(t, a);
    return a->status == SEGUE_E_CANCELLED;
}

static int by_its_id(torture *t)
{
    segue_session *session = open_draft(t);
    asked *a =
        session ? torture_ask(t, session, "tasks/get", "{\"taskId\":\"nobody\"}") : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_E_REMOTE;
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"a task of the draft", to_the_result, 0, SEGUE_ERA_LEGACY, 0},
        {"a task of the draft in a file", to_the_result, 1, SEGUE_ERA_LEGACY, 0},
        {"a task of the draft that asks", with_questions, 0, SEGUE_ERA_LEGACY, 0},
        {"a call of the draft that asks", in_rounds, 0, SEGUE_ERA_LEGACY, 0},
        {"a task of the draft that is cancelled", cancelled, 0, SEGUE_ERA_LEGACY, 0},
        {"a task of the draft that is not there", by_its_id, 0, SEGUE_ERA_LEGACY, 0},
    };
    return torture_run("draft", scenarios, sizeof scenarios / sizeof *scenarios);
}
