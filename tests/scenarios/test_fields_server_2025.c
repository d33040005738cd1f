/* Requests of the handshake eras, with every field wrong in every way (bad_fields.h),
 * sent to the server. */
#include "support/field_table.h"

#include "support/legacy_wire.h"

#define INITIALIZE                                                                       \
    "initialize",                                                                        \
        "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{},"       \
        "\"tasks\":{\"responses\":{\"modes\":[\"task\"]}}},\"clientInfo\":{"             \
        "\"name\":\"n\",\"version\":\"1\"}"
#define CALL                                                                             \
    "tools/call", "\"name\":\"greet\",\"_meta\":{\"progressToken\":\"p\","               \
                  "\"allowPartial\":true}"
#define TASK_CALL                                                                        \
    "tools/call", "\"name\":\"big\",\"arguments\":{\"bytes\":3},\"task\":{"              \
                  "\"ttl\":60000,\"responseModes\":[\"task\"]}"
#define PULL "tasks/result", "\"taskId\":\"TASK\",\"lastSeqNr\":0"
#define URI "\"uri\":\"test://static-text\""
#define CANCELLED "notifications/cancelled", "\"requestId\":7,\"reason\":\"why\""
#define PROGRESS                                                                         \
    "notifications/progress",                                                            \
        "\"progressToken\":\"p\",\"progress\":1,\"total\":2,\"message\":\"m\""

static const field_row rows[] = {
    {CALL, "params>_meta", "KKKKKKKKKKKKKK"},
    {CALL, "params>_meta>progressToken", "KKKKKKKKKKKKKK"},
    {CALL, "params>_meta>allowPartial", "KKKKKKKKKKKKKK"},
    {TASK_CALL, "params>task", "KPPPPPPPPPPPPK"},
    {TASK_CALL, "params>task>ttl", "KPPKPPPPPPPPPP"},
    {TASK_CALL, "params>task>responseModes", "KPPPPPPPPPPPKP"},
    {TASK_CALL, "params>task>responseModes>0", "KPPPPPPPKKKKPP"},
    {PULL, "params>taskId", "PPPPPPPPPPPPPP"},
    {PULL, "params>lastSeqNr", "KPPKPPPPPPPPPP"},
    {"tasks/list", "\"cursor\":\"c\"", "params>cursor", "KPPPPPPPPPPPPP"},
    {"resources/read", URI, "params>uri", "PPPPPPPPPNPPPP"},
    {"resources/subscribe", URI, "params>uri", "PPPPPPPPPKPPPP"},
    {"resources/unsubscribe", URI, "params>uri", "PPPPPPPPPKPPPP"},
    {"logging/setLevel", "\"level\":\"info\"", "params>level", "PPPPPPPPPPPPPP"},
    {"ping", "\"x\":1", "params", "KRRRRRRRRRRRRK"},
    {CANCELLED, "params", ".RRRRRRRRRRRR."},
    {CANCELLED, "params>requestId", ".............."},
    {CANCELLED, "params>reason", ".............."},
    {PROGRESS, "params>progressToken", ".............."},
    {PROGRESS, "params>progress", ".............."},
    {PROGRESS, "params>total", ".............."},
    {PROGRESS, "params>message", ".............."},
};

/* The first message of a connection. */
static const field_row first_rows[] = {
    {INITIALIZE, "params", "PRRRRRRRRRRRRP"},
    {INITIALIZE, "params>protocolVersion", "PPPPPPPPKKKPPP"},
    {INITIALIZE, "params>capabilities", "KKKKKKKKKKKKKK"},
    {INITIALIZE, "params>capabilities>elicitation", "KKKKKKKKKKKKKK"},
    {INITIALIZE, "params>capabilities>tasks", "KKKKKKKKKKKKKK"},
    {INITIALIZE, "params>capabilities>tasks>responses", "KKKKKKKKKKKKKK"},
    {INITIALIZE, "params>capabilities>tasks>responses>modes", "KKKKKKKKKKKKKK"},
    {INITIALIZE, "params>capabilities>tasks>responses>modes>0", "KKKKKKKKKKKKKK"},
    {INITIALIZE, "params>clientInfo", "KKKKKKKKKKKKKK"},
    {INITIALIZE, "params>clientInfo>name", "KKKKKKKKKKKKKK"},
    {INITIALIZE, "params>clientInfo>version", "KKKKKKKKKKKKKK"},
};

static wire *begin(world *w)
{
    return legacy_connect(w, "who", MODES_ALL);
}

static void still_works(wire *c)
{
    assert_at(wire_do_plain(c, "\"alive\"", "ping", NULL), "result", "{}");
}

static char *make_task(wire *c)
{
    return strdup(legacy_make_task(c, "\"make\"", "slow_compute", "\"ms\":0", NULL));
}

static wire *begin_bare(world *w)
{
    return world_connect(w, "who");
}

int main(void)
{
    static const char group[] = "AS-116 fields of requests of 2025-11-25";
    static const field_stage stage = {
        .begin = begin, .still_works = still_works, .make_task = make_task};
    static const field_stage bare = {.begin = begin_bare, .still_works = still_works};
    return fields_run_common(group, &stage) +
           fields_run(group, &stage, rows, sizeof rows / sizeof *rows) +
           fields_run("AS-116 fields of initialize", &bare, first_rows,
                      sizeof first_rows / sizeof *first_rows);
}
