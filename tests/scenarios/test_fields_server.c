/* Requests of 2026-07-28, with every field wrong in every way (bad_fields.h), sent to the
 * server. The error is the documented one, or the field is ignored where a rule says so.
 * The connection stays usable and nothing is left behind. */
#include "support/field_table.h"

#include "support/world.h"

#define META "params>_meta>"
#define MCP META "io.modelcontextprotocol/"
#define ALL_META                                                                         \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","             \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},"                \
    "\"partialResults\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}},"      \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"n\",\"version\":\"1\"},"         \
    "\"io.modelcontextprotocol/logLevel\":\"info\",\"progressToken\":\"p\","             \
    "\"partialResultToken\":\"prt\"}"
#define CALL "tools/call", "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"}"
#define TASK "\"taskId\":\"TASK\""
#define COMPLETE_URI                                                                     \
    "completion/complete",                                                               \
        "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"test://template/{id}/data\"},"     \
        "\"argument\":{\"name\":\"id\",\"value\":\"w\"}"
#define LISTEN                                                                           \
    "subscriptions/listen",                                                              \
        "\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":true,"      \
        "\"resourcesListChanged\":true,\"resourceSubscriptions\":[\"test://a\"],"        \
        "\"taskIds\":[\"TASK\"]}"
#define ROUND                                                                            \
    "tools/call", "\"name\":\"ask_once\",\"arguments\":{},"                              \
                  "\"inputResponses\":{\"k\":{}},\"requestState\":\"s\""
#define ANSWERED "tools/call", "\"name\":\"ask_once\",\"inputResponses\":{\"k\":{}}"
#define UPDATE "tasks/update", TASK ",\"inputResponses\":{\"k\":{}}"
#define STREAM "tasks/stream", TASK ",\"after\":0"

static const field_row rows[] = {
    {CALL, "params>_meta", "PPPPPPPPPPPPPP"},
    {CALL, MCP "protocolVersion", "PPPPPPPPVVVPPP"},
    {CALL, MCP "clientCapabilities", "PPPPPPPPPPPPPK"},
    {CALL, MCP "clientCapabilities>elicitation", "KKKKKKKKKKKKKK"},
    {CALL, MCP "clientCapabilities>extensions", "KKKKKKKKKKKKKK"},
    {CALL, MCP "clientInfo", "KKKKKKKKKKKKKK"},
    {CALL, MCP "clientInfo>name", "KKKKKKKKKKKKKK"},
    {CALL, MCP "logLevel", "KPPPPPPPPPPPPP"},
    {CALL, META "progressToken", "KKKKKKKKKKKKKK"},
    {CALL, META "partialResultToken", "KKKKKKKKKKKKKK"},
    {ROUND, "params>requestState", "KPPPPPPPPPPPPP"},
    {ANSWERED, "params>inputResponses", "KKKKKKKKKKKKKK"},
    {ANSWERED, "params>inputResponses>k", "KKKKKKKKKKKKKK"},
    {"resources/read", "\"uri\":\"test://static-text\"", "params>uri", "PPPPPPPPPPPPPP"},
    {COMPLETE_URI, "params>ref>uri", "PPPPPPPPPPPPPP"},
    {LISTEN, "params>notifications", "PPPPPPPPPPPPPA"},
    {LISTEN, "params>notifications>toolsListChanged", "AAAAAAAAAAAAAA"},
    {LISTEN, "params>notifications>promptsListChanged", "AAAAAAAAAAAAAA"},
    {LISTEN, "params>notifications>resourcesListChanged", "AAAAAAAAAAAAAA"},
    {LISTEN, "params>notifications>resourceSubscriptions", "APPPPPPPPPPPAP"},
    {LISTEN, "params>notifications>resourceSubscriptions>0", "APPPPPPPAAAAPP"},
    {LISTEN, "params>notifications>taskIds", "APPPPPPPPPPPAP"},
    {LISTEN, "params>notifications>taskIds>0", "APPPPPPPAAAAPP"},
    {"server/discover", "", "params", "PRRRRRRRRRRRRP"},
    {"server/discover", "", MCP "protocolVersion", "PPPPPPPPVVVPPP"},
    {UPDATE, "params>taskId", "PPPPPPPPPPPPPP"},
    {UPDATE, "params>inputResponses", "PPPPPPPPPPPPPK"},
    {UPDATE, "params>inputResponses>k", "KKKKKKKKKKKKKK"},
    {STREAM, "params>taskId", "PPPPPPPPPPPPPP"},
    {STREAM, "params>after", ".PP.PPPPPPPPPP"},
    {"tasks/get", TASK, MCP "clientCapabilities>extensions", "CCCCCCCCCCCCCC"},
    {"tasks/get", TASK, MCP "clientCapabilities>extensions>io.modelcontextprotocol/tasks",
     "CCCCCCCCCCCCCK"},
};

static wire *begin(world *w)
{
    return world_connect(w, "who");
}

static void still_works(wire *c)
{
    assert_at(wire_do(c, "\"alive\"", "tools/call", "\"name\":\"greet\"", NULL),
              "result.content.0.text", "\"Hello, World!\"");
}

static char *make_task(wire *c)
{
    return strdup(wire_make_task(c, "\"make\"", "hang", NULL, NULL));
}

int main(void)
{
    static const char group[] = "AS-116 fields of requests of 2026-07-28";
    static const field_stage stage = {.begin = begin,
                                      .still_works = still_works,
                                      .make_task = make_task,
                                      .meta = ALL_META};
    return fields_run_common(group, &stage) +
           fields_run(group, &stage, rows, sizeof rows / sizeof *rows);
}
