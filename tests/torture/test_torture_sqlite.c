/* The same with a SQLite store: its thread allocates as well, so the k-th allocation is
 * not the same one in each run. That only makes different ones fail. */
#include "support/torture.h"

#include <string.h>

static int call_one(torture *t, const char *tool, const char *arguments,
                    const char *in_result)
{
    segue_session *session = torture_serve(t) ? torture_open(t) : NULL;
    asked *a = session ? torture_call(t, session, tool, arguments) : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_OK && strstr(a->result, in_result);
}

static int streamed_task(torture *t)
{
    return call_one(t, "story", "{\"n\":3,\"delayMs\":7}", "segment 3");
}

static int input_round(torture *t)
{
    return call_one(t, "confirm_delete", "{}", "confirm");
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"all from the beginning", streamed_task, 1, 0, 1},
        {"task with a stream", streamed_task, 1, 0, 0},
        {"input round", input_round, 1, 0, 0},
    };
    return torture_run("torture_sqlite", scenarios, sizeof scenarios / sizeof *scenarios);
}
