/* Every field of every request of 2026-07-28, gone wrong in every way (bad_fields.h),
 * said to the server: the error is the documented one, or the field is ignored where a
 * rule says so; the connection stays usable and nothing is left behind. */
#include "support/field_table.h"

#include "support/world.h"

#define ENVELOPE(method, params)                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params        \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","             \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},"                \
    "\"partialResults\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}},"      \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"n\",\"version\":\"1\"},"         \
    "\"io.modelcontextprotocol/logLevel\":\"info\",\"progressToken\":\"p\","             \
    "\"partialResultToken\":\"prt\"}}}"
#define CALL                                                                             \
    ENVELOPE("tools/call", "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"},")
#define META "params>_meta>"
#define MCP META "io.modelcontextprotocol/"
#define ABOUT(method, more) ENVELOPE(method, "\"taskId\":\"TASK\"," more)
#define LIST(method) ENVELOPE(method, "\"cursor\":\"c\",")
#define READ ENVELOPE("resources/read", "\"uri\":\"test://static-text\",")
#define PROMPT                                                                           \
    ENVELOPE("prompts/get", "\"name\":\"arguments\",\"arguments\":{\"arg1\":\"a\"},")
#define COMPLETE                                                                         \
    ENVELOPE("completion/complete",                                                      \
             "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"arguments\"},\"argument\":{"   \
             "\"name\":\"arg1\",\"value\":\"w\"},\"context\":{\"arguments\":{"           \
             "\"arg2\":\"b\"}},")
#define COMPLETE_URI                                                                     \
    ENVELOPE("completion/complete",                                                      \
             "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"test://template/{id}/"        \
             "data\"},\"argument\":{\"name\":\"id\",\"value\":\"w\"},")
#define LISTEN                                                                           \
    ENVELOPE("subscriptions/listen",                                                     \
             "\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":true," \
             "\"resourcesListChanged\":true,\"resourceSubscriptions\":[\"test://a\"],"   \
             "\"taskIds\":[\"TASK\"]},")
#define ROUND                                                                            \
    ENVELOPE("tools/call", "\"name\":\"ask_once\",\"arguments\":{},"                     \
                           "\"inputResponses\":{\"k\":{}},\"requestState\":\"s\",")
#define ANSWERED                                                                         \
    ENVELOPE("tools/call", "\"name\":\"ask_once\",\"inputResponses\":{\"k\":{}},")
#define UPDATE ABOUT("tasks/update", "\"inputResponses\":{\"k\":{}},")
#define STREAM ABOUT("tasks/stream", "\"after\":0,")

static const field_row rows[] = {
    {CALL, "jsonrpc", "RRRRRRRRRRRRRR"},
    {CALL, "id", ".RRKKRRRKKKKRR"},
    {CALL, "method", "RRRRRRRRMMMMRR"},
    {CALL, "params", "PRRRRRRRRRRRRP"},
    {CALL, "params>name", "PPPPPPPPPPPPPP"},
    {CALL, "params>arguments", "KKPPPPPPPPPPPK"},
    {CALL, "params>arguments>name", "KKKKKKKKKKKKKK"},
    {CALL, "params>_meta", "PPPPPPPPPPPPPP"},
    {CALL, MCP "protocolVersion", "PPPPPPPPVVVPPP"},
    {CALL, MCP "clientCapabilities", "PPPPPPPPPPPPPK"},
    {CALL, MCP "clientCapabilities>elicitation", "KKKKKKKKKKKKKK"},
    {CALL, MCP "clientCapabilities>extensions", "KKKKKKKKKKKKKK"},
    {CALL, MCP "clientInfo", "KKKKKKKKKKKKKK"},
    {CALL, MCP "clientInfo>name", "KKKKKKKKKKKKKK"},
    {CALL, MCP "logLevel", "KKKKKKKKKKKKKK"},
    {CALL, META "progressToken", "KKKKKKKKKKKKKK"},
    {CALL, META "partialResultToken", "KKKKKKKKKKKKKK"},
    {ROUND, "params>requestState", "KPPPPPPPPPPPPP"},
    {ANSWERED, "params>inputResponses", "KKKKKKKKKKKKKK"},
    {ANSWERED, "params>inputResponses>k", "KKKKKKKKKKKKKK"},
    {LIST("tools/list"), "params>cursor", "KPPPPPPPPPPPPP"},
    {LIST("resources/list"), "params>cursor", "KPPPPPPPPPPPPP"},
    {LIST("resources/templates/list"), "params>cursor", "KPPPPPPPPPPPPP"},
    {LIST("prompts/list"), "params>cursor", "KPPPPPPPPPPPPP"},
    {READ, "params>uri", "PPPPPPPPPPPPPP"},
    {PROMPT, "params>name", "PPPPPPPPPPPPPP"},
    {PROMPT, "params>arguments", "PPPPPPPPPPPPPP"},
    {PROMPT, "params>arguments>arg1", "PPPPPPPPKKKKPP"},
    {COMPLETE, "params>ref", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>ref>type", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>ref>name", "PPPPPPPPPPPPPP"},
    {COMPLETE_URI, "params>ref>uri", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>argument", "PPPPPPPPPPPPPP"},
    {COMPLETE, "params>argument>name", "PPPPPPPPKKKKPP"},
    {COMPLETE, "params>argument>value", "PPPPPPPPKKKKPP"},
    {COMPLETE, "params>context", "KPPPPPPPPPPPPK"},
    {COMPLETE, "params>context>arguments", "KPPPPPPPPPPPPK"},
    {LISTEN, "params>notifications", "PPPPPPPPPPPPPA"},
    {LISTEN, "params>notifications>toolsListChanged", "AAAAAAAAAAAAAA"},
    {LISTEN, "params>notifications>promptsListChanged", "AAAAAAAAAAAAAA"},
    {LISTEN, "params>notifications>resourcesListChanged", "AAAAAAAAAAAAAA"},
    {LISTEN, "params>notifications>resourceSubscriptions", "APPPPPPPPPPPAP"},
    {LISTEN, "params>notifications>resourceSubscriptions>0", "APPPPPPPAAAAPP"},
    {LISTEN, "params>notifications>taskIds", "APPPPPPPPPPPAP"},
    {LISTEN, "params>notifications>taskIds>0", "APPPPPPPAAAAPP"},
    {ENVELOPE("server/discover", ""), "params", "PRRRRRRRRRRRRP"},
    {ENVELOPE("server/discover", ""), MCP "protocolVersion", "PPPPPPPPVVVPPP"},
    {ABOUT("tasks/get", ""), "params>taskId", "PPPPPPPPPPPPPP"},
    {ABOUT("tasks/cancel", ""), "params>taskId", "PPPPPPPPPPPPPP"},
    {UPDATE, "params>taskId", "PPPPPPPPPPPPPP"},
    {UPDATE, "params>inputResponses", "PPPPPPPPPPPPPK"},
    {UPDATE, "params>inputResponses>k", "KKKKKKKKKKKKKK"},
    {STREAM, "params>taskId", "PPPPPPPPPPPPPP"},
    {STREAM, "params>after", ".PP.PPPPPPPPPP"},
    {ABOUT("tasks/get", ""), MCP "clientCapabilities>extensions", "CCCCCCCCCCCCCC"},
    {ABOUT("tasks/get", ""),
     MCP "clientCapabilities>extensions>io.modelcontextprotocol/tasks", "CCCCCCCCCCCCCK"},
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
    static const field_stage stage = {begin, still_works, make_task};
    return fields_run("AS-116 fields of requests of 2026-07-28", &stage, rows,
                      sizeof rows / sizeof *rows);
}
