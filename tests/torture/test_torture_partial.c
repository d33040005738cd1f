/* A plain call whose client sees the result grow, while memory fails: by further
 * responses (PR 776) and by notifications (SEP-2998). */
#include "support/torture.h"

#include <string.h>

static int plain_call(torture *t, const char *tool, const char *arguments,
                      const char *in_result)
{
    t->no_tasks = 1;
    segue_session *session = torture_serve(t) ? torture_open(t) : NULL;
    asked *a = session ? torture_call(t, session, tool, arguments) : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_OK && strstr(a->result, in_result);
}

static int pieces(torture *t)
{
    return plain_call(t, "story", "{\"n\":4,\"delayMs\":7}", "segment 4") &&
           t->asked[0].segments == 4;
}

static int replaced(torture *t)
{
    return plain_call(t, "fields", "{}", "right");
}

static int extended(torture *t)
{
    return plain_call(t, "two_texts", "{\"delayMs\":7}", "content 1. Again.") &&
           t->asked[0].segments == 6;
}

static int cancelled(torture *t)
{
    t->no_tasks = 1;
    segue_session *session = torture_serve(t) ? torture_open(t) : NULL;
    asked *a =
        session ? torture_call(t, session, "story", "{\"n\":90,\"delayMs\":9}") : NULL;
    if (!a)
        return 0;
    for (int i = 0; i < 5; i++) {
        torture_pump(t);
        t->clock_ms += 10;
    }
    segue_request_cancel(a->request);
    torture_settle(t, a);
    return a->status == SEGUE_E_CANCELLED && a->segments > 0;
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"pieces as responses", pieces, 0, SEGUE_ERA_LEGACY, 0},
        {"pieces as notifications", pieces, 0, SEGUE_ERA_MODERN, 0},
        {"responses that replace", replaced, 0, SEGUE_ERA_LEGACY, 0},
        {"notifications that replace", replaced, 0, SEGUE_ERA_MODERN, 0},
        {"responses whose text goes on", extended, 0, SEGUE_ERA_LEGACY, 0},
        {"notifications whose text goes on", extended, 0, SEGUE_ERA_MODERN, 0},
        {"responses to a call that is cancelled", cancelled, 0, SEGUE_ERA_LEGACY, 0},
        {"notifications of a call that is cancelled", cancelled, 0, SEGUE_ERA_MODERN, 0},
    };
    return torture_run("partial", scenarios, sizeof scenarios / sizeof *scenarios);
}
