/* Every field of every request of the handshake eras, gone wrong in every way
 * (bad_fields.h), said to the server. */
#include "support/field_table.h"

#include "support/legacy_wire.h"

#define REQUEST(method, params)                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"
#define NOTE(method, params)                                                             \
    "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":{" params "}}"
#define INITIALIZE                                                                       \
    REQUEST("initialize",                                                                \
            "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{},"   \
            "\"tasks\":{\"responses\":{\"modes\":[\"task\"]}}},\"clientInfo\":{"         \
            "\"name\":\"n\",\"version\":\"1\"}")
#define CALL                                                                             \
    REQUEST("tools/call", "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"},"         \
                          "\"_meta\":{\"progressToken\":\"p\",\"allowPartial\":true}")
#define TASK_CALL                                                                        \
    REQUEST("tools/call", "\"name\":\"big\",\"arguments\":{\"bytes\":3},\"task\":{"      \
                          "\"ttl\":60000,\"responseModes\":[\"task\"]}")
#define ABOUT(method) REQUEST(method, "\"taskId\":\"TASK\"")
#define PULL REQUEST("tasks/result", "\"taskId\":\"TASK\",\"lastSeqNr\":0")
#define LIST(method) REQUEST(method, "\"cursor\":\"c\"")
#define LEVEL REQUEST("logging/setLevel", "\"level\":\"info\"")
#define URI(method) REQUEST(method, "\"uri\":\"test://static-text\"")
#define PROMPT                                                                           \
    REQUEST("prompts/get", "\"name\":\"arguments\",\"arguments\":{\"arg1\":\"a\"}")
#define COMPLETE                                                                         \
    REQUEST("completion/complete",                                                       \
            "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"arguments\"},\"argument\":{"    \
            "\"name\":\"arg1\",\"value\":\"w\"},\"context\":{\"arguments\":{"            \
            "\"arg2\":\"b\"}}")
#define CANCELLED NOTE("notifications/cancelled", "\"requestId\":7,\"reason\":\"why\"")
#define PROGRESS                                                                         \
    NOTE("notifications/progress",                                                       \
         "\"progressToken\":\"p\",\"progress\":1,\"total\":2,\"message\":\"m\"")

static const field_row rows[] = {
    {CALL, "jsonrpc", "RRRRRRRRRRRRRR"},
    {CALL, "id", ".RRKKRRRKKKKRR"},
    {CALL, "method", "RRRRRRRRMMMMRR"},
    {CALL, "params", "PRRRRRRRRRRRRP"},
    {CALL, "params>name", "PPPPPPPPPPPPPP"},
    {CALL, "params>arguments", "KKPPPPPPPPPPPK"},
    {CALL, "params>arguments>name", "KKKKKKKKKKKKKK"},
    {CALL, "params>_meta", "KKKKKKKKKKKKKK"},
    {CALL, "params>_meta>progressToken", "KKKKKKKKKKKKKK"},
    {CALL, "params>_meta>allowPartial", "KKKKKKKKKKKKKK"},
    {TASK_CALL, "params>task", "KPPPPPPPPPPPPK"},
    {TASK_CALL, "params>task>ttl", "KPPKPPPPPPPPPP"},
    {TASK_CALL, "params>task>responseModes", "KPPPPPPPPPPPKP"},
    {TASK_CALL, "params>task>responseModes>0", "KPPPPPPPKKKKPP"},
    {ABOUT("tasks/get"), "params>taskId", "PPPPPPPPPPPPPP"},
    {ABOUT("tasks/cancel"), "params>taskId", "PPPPPPPPPPPPPP"},
    {PULL, "params>taskId", "PPPPPPPPPPPPPP"},
    {PULL, "params>lastSeqNr", "KPPKPPPPPPPPPP"},
    {LIST("tasks/list"), "params>cursor", "KPPPPPPPPPPPPP"},
    {LIST("tools/list"), "params>cursor", "KPPPPPPPPPPPPP"},
    {LIST("resources/list"), "params>cursor", "KPPPPPPPPPPPPP"},
    {LIST("resources/templates/list"), "params>cursor", "KPPPPPPPPPPPPP"},
    {LIST("prompts/list"), "params>cursor", "KPPPPPPPPPPPPP"},
    {URI("resources/read"), "params>uri", "PPPPPPPPPNPPPP"},
    {URI("resources/subscribe"), "params>uri", "PPPPPPPPPKPKPP"},
    {URI("resources/unsubscribe"), "params>uri", "PPPPPPPPPKPKPP"},
    {LEVEL, "params>level", "PPPPPPPPPPPPPP"},
    {PROMPT, "params>name", "PPPPPPPPPPPPPP"},
    {PROMPT, "params>arguments", "PPPPPPPPPPPPPP"},
    {PROMPT, "params>arguments>arg1", "PPPPPPPPKKKKPP"},
    {COMPLETE, "params>ref", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>ref>type", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>ref>name", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>argument", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>argument>name", "PPPPPPPPKKKKPP"},
    {COMPLETE, "params>argument>value", "PPPPPPPPKKKKPP"},
    {COMPLETE, "params>context", "KPPPPPPPPPPPPK"},
    {COMPLETE, "params>context>arguments", "KPPPPPPPPPPPPK"},
    {REQUEST("ping", "\"x\":1"), "params", "KRRRRRRRRRRRRK"},
    {CANCELLED, "params", ".RRRRRRRRRRRR."},
    {CANCELLED, "params>requestId", ".............."},
    {CANCELLED, "params>reason", ".............."},
    {PROGRESS, "params>progressToken", ".............."},
    {PROGRESS, "params>progress", ".............."},
    {PROGRESS, "params>total", ".............."},
    {PROGRESS, "params>message", ".............."},
};

/* The first words of a connection. */
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
    static const field_stage stage = {begin, still_works, make_task};
    static const field_stage bare = {begin_bare, still_works, NULL};
    return fields_run("AS-116 fields of requests of 2025-11-25", &stage, rows,
                      sizeof rows / sizeof *rows) +
           fields_run("AS-116 fields of initialize", &bare, first_rows,
                      sizeof first_rows / sizeof *first_rows);
}
