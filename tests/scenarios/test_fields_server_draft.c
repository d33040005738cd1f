/* Requests of DRAFT-2026-v1 (D, SEP-2557), with every field wrong in every way
 * (bad_fields.h), sent to the server. */
#include "support/field_table.h"

#include "support/draft_wire.h"

#define CALL "tools/call", "\"name\":\"greet\",\"task\":{\"ttl\":5}"
#define TASK "\"taskId\":\"TASK\""
#define ANSWERS "tasks/get", TASK ",\"inputResponses\":{\"k\":{\"action\":\"accept\"}}"
#define ROUND                                                                            \
    "tools/call", "\"name\":\"ask_once\",\"arguments\":{},"                              \
                  "\"inputResponses\":{\"k\":{}},\"requestState\":\"s\""
#define ANSWERED "tools/call", "\"name\":\"ask_once\",\"inputResponses\":{\"k\":{}}"
#define STATE TASK ",\"requestState\":\"s\""

static const field_row rows[] = {
    /* A request does not ask for a task (R-2557-7). */
    {CALL, "params>task", "KKKKKKKKKKKKKK"},
    {CALL, "params>task>ttl", "KKKKKKKKKKKKKK"},
    {ANSWERS, "params>taskId", "PPPPPPPPPPPPPP"},
    {ANSWERS, "params>inputResponses", "KPPPPPPPPPPPPK"},
    /* answers to no question (R-2557-26) */
    {ANSWERS, "params>inputResponses>k", "KKKKKKKKKKKKKK"},
    {ANSWERS, "params>inputResponses>k>action", "KKKKKKKKKKKKKK"},
    {"tasks/get", STATE, "params>requestState", "KPPPPPPPPPPPPP"},
    {"tasks/cancel", STATE, "params>requestState", "KPPPPPPPPPPPPP"},
    {ROUND, "params>requestState", "KPPPPPPPPPPPPP"},
    {ANSWERED, "params>inputResponses", "KKKKKKKKKKKKKK"},
    {ANSWERED, "params>inputResponses>k", "KKKKKKKKKKKKKK"},
    {"tasks/result", TASK, "params>taskId", "MMMMMMMMMMMMMM"},
    {"tasks/list", "\"cursor\":\"c\"", "params>cursor", "MMMMMMMMMMMMMM"},
    {"tasks/update", TASK, "params>taskId", "MMMMMMMMMMMMMM"},
};

/* An answer to a question that is open. */
static const field_row answer_rows[] = {
    {"tasks/get", TASK ",\"inputResponses\":{\"input-1\":{\"action\":\"decline\"}}",
     "params>inputResponses>input-1", "KPPPPPPPPPPPPP"},
    {"tasks/get", TASK ",\"inputResponses\":{\"input-1\":{\"action\":\"decline\"}}",
     "params>inputResponses>input-1>action", "PPPPPPPPPPPPPP"},
};

static wire *begin(world *w)
{
    return draft_connect(w, "who", "{\"elicitation\":{}}");
}

static void still_works(wire *c)
{
    assert_at(wire_do_plain(c, "\"alive\"", "ping", NULL), "result", "{}");
}

static char *make_task(wire *c)
{
    return strdup(draft_make_task(c, "\"make\"", "hang", NULL));
}

static char *make_asking_task(wire *c)
{
    return strdup(draft_make_task(c, "\"make\"", "confirm_delete", NULL));
}

int main(void)
{
    static const char group[] = "AS-116 fields of requests of DRAFT-2026-v1";
    static const field_stage stage = {.begin = begin,
                                      .still_works = still_works,
                                      .make_task = make_task,
                                      .tune = draft_on};
    static const field_stage asks = {.begin = begin,
                                     .still_works = still_works,
                                     .make_task = make_asking_task,
                                     .tune = draft_on};
    return fields_run_common(group, &stage) +
           fields_run(group, &stage, rows, sizeof rows / sizeof *rows) +
           fields_run("AS-116 fields of answers of DRAFT-2026-v1", &asks, answer_rows,
                      sizeof answer_rows / sizeof *answer_rows);
}
