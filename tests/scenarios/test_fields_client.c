/* Answers and notifications of a server of 2026-07-28, with every field wrong in every
 * way (bad_fields.h), sent to the client. The request ends with a clear error, or a
 * warning is counted, or the field is ignored where a rule says so. The session goes
 * on. */
#include "support/client_fields.h"

#define BLOCK "{\"type\":\"text\",\"text\":\"a\"}"
#define DISCOVER                                                                         \
    ANSWER("\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"         \
           "\"capabilities\":{\"tools\":{},\"extensions\":{\"io.modelcontextprotocol/"   \
           "tasks\":{}}},\"ttlMs\":0,\"cacheScope\":\"private\",\"instructions\":\"i\"")
#define RESULT_ALL                                                                       \
    ANSWER("\"resultType\":\"complete\",\"content\":[" BLOCK "],\"isError\":false,"      \
           "\"structuredContent\":{\"a\":1},\"_meta\":{\"k\":1}")
#define ERROR_ALL                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":REQ,\"error\":{\"code\":-32000,\"message\":\"m\","      \
    "\"data\":{}}}"
#define LIST_ALL                                                                         \
    ANSWER("\"resultType\":\"complete\",\"tools\":[{\"name\":\"t\",\"inputSchema\":{"    \
           "\"type\":\"object\"}}],\"nextCursor\":\"c\",\"ttlMs\":1000,"                 \
           "\"cacheScope\":\"private\"")
#define ROUND                                                                            \
    ANSWER("\"resultType\":\"input_required\",\"inputRequests\":{\"k\":{\"method\":"     \
           "\"elicitation/create\",\"params\":{\"message\":\"?\"}}},"                    \
           "\"requestState\":\"s\"")
#define MADE ANSWER(CREATED("T"))
#define GOT(status, more) ANSWER(TASK("T", status) more)
#define DONE GOT("completed", "," RESULT)
#define DONE_TYPED                                                                       \
    GOT("completed", ",\"result\":{\"resultType\":\"complete\",\"content\":[]}")
#define FAILED GOT("failed", ",\"error\":{\"code\":-32000,\"message\":\"m\",\"data\":1}")
#define ASKS                                                                             \
    GOT("input_required", ",\"inputRequests\":{\"k\":{\"method\":"                       \
                          "\"elicitation/create\",\"params\":{\"message\":\"?\"}}}")
#define EVENT                                                                            \
    NOTE("notifications/tasks/event",                                                    \
         "\"taskId\":\"T\",\"seq\":0,\"type\":\"dev.segue.content.partial\","            \
         "\"payload\":{\"content\":[" BLOCK "],\"segment\":1}")
#define STATUS_EVENT                                                                     \
    NOTE("notifications/tasks/event",                                                    \
         "\"taskId\":\"T\",\"seq\":0,\"type\":\"dev.segue.status\","                     \
         "\"payload\":{\"status\":\"working\",\"statusMessage\":\"m\"}")
#define STREAM_END ANSWER(FINAL)
#define FINAL_META "result>_meta>dev.segue/final"
#define PIECE                                                                            \
    NOTE("notifications/tools/partial_result",                                           \
         "\"partialResultToken\":TOKEN,\"seq\":0,\"content\":[" BLOCK "]")
#define PROGRESS                                                                         \
    NOTE("notifications/progress",                                                       \
         "\"progressToken\":TOKEN,\"progress\":1,\"total\":2,\"message\":\"m\"")
#define LOG                                                                              \
    NOTE("notifications/message",                                                        \
         "\"level\":\"info\",\"logger\":\"l\",\"data\":{\"a\":1}")

static void discover(client_scene *s)
{
    kit_begin(&s->k, NULL);
    scene_heard(s, kit_expect(&s->k, "server/discover"));
}

static void call_with(client_scene *s, const char *capabilities)
{
    kit_begin_modern(&s->k, NULL, capabilities);
    s->r = kit_call(&s->k, "t");
    scene_heard(s, kit_expect(&s->k, "tools/call"));
}

static void plain(client_scene *s)
{
    call_with(s, SERVER_PLAIN);
}

static void tasks(client_scene *s)
{
    call_with(s, SERVER_TASKS);
}

static void list(client_scene *s)
{
    kit_begin_modern(&s->k, NULL, SERVER_PLAIN);
    s->r = kit_start(&s->k, "tools/list", NULL, NULL);
    scene_heard(s, kit_expect(&s->k, "tools/list"));
}

static void polled(client_scene *s)
{
    tasks(s);
    kit_say(&s->k, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}", s->id,
            CREATED("T"));
    scene_heard(s, kit_expect(&s->k, "tasks/get"));
}

static void streamed(client_scene *s)
{
    call_with(s, SERVER_STREAMS);
    kit_say(&s->k, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}", s->id,
            CREATED("T"));
    scene_heard(s, kit_expect(&s->k, "tasks/stream"));
}

static const client_row rows[] = {
    {discover, DISCOVER, "jsonrpc", "FFFFFFFFFFFFFF"},
    {discover, DISCOVER, "id", ".............."},
    {discover, DISCOVER, "result", "FFFFFFFFFFFFFF"},
    {discover, DISCOVER, "result>resultType", "OFFFFFFFFFFFFF"},
    {discover, DISCOVER, "result>supportedVersions", "FFFFFFFFFFFFFF"},
    {discover, DISCOVER, "result>supportedVersions>0", "FFFFFFFFFFFFFF"},
    {discover, DISCOVER, "result>capabilities", "OOOOOOOOOOOOOO"},
    {discover, DISCOVER, "result>capabilities>extensions", "OOOOOOOOOOOOOO"},
    {discover, DISCOVER, "result>ttlMs", "OOOOOOOOOOOOOO"},
    {discover, DISCOVER, "result>cacheScope", "OOOOOOOOOOOOOO"},
    {discover, DISCOVER, "result>instructions", "OOOOOOOOOOOOOO"},
    {plain, RESULT_ALL, "jsonrpc", "EEEEEEEEEEEEEE"},
    {plain, RESULT_ALL, "id", "WWWWWWWWWWWWWW"},
    {plain, RESULT_ALL, "result", "EEEEEEEEEEEEEK"},
    {plain, RESULT_ALL, "result>resultType", "KEEEEEEEEEEEEE"},
    {plain, RESULT_ALL, "result>content", "KEEEEEEEEEEEKE"},
    {plain, RESULT_ALL, "result>content>0", "KKKKKKKKKKKKKK"},
    {plain, RESULT_ALL, "result>content>0>type", "KKKKKKKKKKKKKK"},
    {plain, RESULT_ALL, "result>content>0>text", "KKKKKKKKKKKKKK"},
    {plain, RESULT_ALL, "result>isError", "KKKKKKKKKKKKKK"},
    {plain, RESULT_ALL, "result>structuredContent", "KKKKKKKKKKKKKK"},
    {plain, RESULT_ALL, "result>_meta", "KKKKKKKKKKKKKK"},
    {plain, ERROR_ALL, "error", "EEEEEEEEEEEEEE"},
    {plain, ERROR_ALL, "error>code", "EEERREEEEEEEEE"},
    {plain, ERROR_ALL, "error>message", "RRRRRRRRRRRRRR"},
    {plain, ERROR_ALL, "error>data", "RRRRRRRRRRRRRR"},
    {list, LIST_ALL, "result>tools", "KEEEEEEEEEEEKE"},
    {list, LIST_ALL, "result>tools>0", "KKKKKKKKKKKKKK"},
    {list, LIST_ALL, "result>tools>0>name", "KKKKKKKKKKKKKK"},
    {list, LIST_ALL, "result>tools>0>inputSchema", "KKKKKKKKKKKKKK"},
    {list, LIST_ALL, "result>nextCursor", "KKKKKKKKKKKKKK"},
    {list, LIST_ALL, "result>ttlMs", "KKKKKKKKKKKKKK"},
    {list, LIST_ALL, "result>cacheScope", "KKKKKKKKKKKKKK"},
    {plain, ROUND, "result>inputRequests", ".EEEEEEEEEEEE."},
    {plain, ROUND, "result>inputRequests>k", ".EEEEEEEEEEEEE"},
    {plain, ROUND, "result>inputRequests>k>method", "EEEEEEEEETTEEE"},
    {plain, ROUND, "result>inputRequests>k>params", "TEEEEEEEEEEEET"},
    {plain, ROUND, "result>requestState", "TEEEEEEETTTTEE"},
    {tasks, MADE, "result>resultType", "KEEEEEEEEEEEEE"},
    {tasks, MADE, "result>taskId", "EEEEEEEEETEEEE"},
    {tasks, MADE, "result>status", "TTTTTTTTTTTTTT"},
    {tasks, MADE, "result>createdAt", "TTTTTTTTTTTTTT"},
    {tasks, MADE, "result>lastUpdatedAt", "TTTTTTTTTTTTTT"},
    {tasks, MADE, "result>ttlMs", "TTTTTTTTTTTTTT"},
    {tasks, MADE, "result>pollIntervalMs", "TTTTTTTTTTTTTT"},
    {polled, DONE, "result", "WWWWWWWWWWWWWE"},
    {polled, DONE, "result>resultType", "KEEEEEEEEEEEEE"},
    {polled, DONE, "result>taskId", "KEEEEEEEEEEEEE"},
    {polled, DONE, "result>status", "EEEEEEEEEEEEEE"},
    {polled, DONE, "result>createdAt", "KKKKKKKKKKKKKK"},
    {polled, DONE, "result>lastUpdatedAt", "KKKKKKKKKKKKKK"},
    {polled, DONE, "result>ttlMs", "KKKKKKKKKKKKKK"},
    {polled, DONE, "result>pollIntervalMs", "KKKKKKKKKKKKKK"},
    {polled, DONE, "result>result", "EEEEEEEEEEEEEK"},
    {polled, DONE, "result>result>content", "KEEEEEEEEEEEKE"},
    {polled, DONE, "result>result>content>0", "KKKKKKKKKKKKKK"},
    {polled, DONE_TYPED, "result>result>resultType", "KEEEEEEEEEEEEE"},
    {polled, FAILED, "result>error", "EEEEEEEEEEEEEE"},
    {polled, FAILED, "result>error>code", "EEERREEEEEEEEE"},
    {polled, FAILED, "result>error>message", "RRRRRRRRRRRRRR"},
    {polled, FAILED, "result>error>data", "RRRRRRRRRRRRRR"},
    {polled, ASKS, "result>inputRequests", "BBBBBBBBBBBBBB"},
    {polled, ASKS, "result>inputRequests>k", "BBBBBBBBBBBBBB"},
    {polled, ASKS, "result>inputRequests>k>method", "BBBBBBBBBTTBBB"},
    {polled, ASKS, "result>inputRequests>k>params", "TBBBBBBBBBBBBT"},
    {streamed, EVENT, "method", "WWWWWWWWWTTWWW"},
    {streamed, EVENT, "params", "WWWWWWWWWWWWWW"},
    {streamed, EVENT, "params>taskId", "WWWWWWWWWWWWWW"},
    {streamed, EVENT, "params>seq", "WWWTWWWWWWWWWW"},
    {streamed, EVENT, "params>type", ".............."},
    {streamed, EVENT, "params>payload", "WWWWWWWWWWWWWW"},
    {streamed, EVENT, "params>payload>content", "WWWWWWWWWWWW.W"},
    {streamed, EVENT, "params>payload>content>0", ".TTTTTTTTTTTTT"},
    {streamed, EVENT, "params>payload>segment", "TTTTTTTTTTTTTT"},
    {streamed, STATUS_EVENT, "params>payload>status", "TTTTTTTTTTTTTT"},
    {streamed, STATUS_EVENT, "params>payload>statusMessage", ".........TTT.."},
    {streamed, STREAM_END, "result", "WWWWWWWWWWWWW."},
    {streamed, STREAM_END, "result>resultType", "KKKKKKKKKKKKKK"},
    {streamed, STREAM_END, "result>_meta", ".............."},
    {streamed, STREAM_END, FINAL_META, ".............."},
    {streamed, STREAM_END, FINAL_META ">status", ".............."},
    {streamed, STREAM_END, FINAL_META ">isError", "KKKKKKKKKKKKKK"},
    {plain, PIECE, "params", "WWWWWWWWWWWWWW"},
    {plain, PIECE, "params>partialResultToken", "WWWWWWWWWWWWWW"},
    {plain, PIECE, "params>seq", "WWW.WWWWWWWWWW"},
    {plain, PIECE, "params>content", ".WWWWWWWWWWW.W"},
    {plain, PIECE, "params>content>0", ".TTTTTTTTTTTTT"},
    {plain, PROGRESS, "params", ".WWWWWWWWWWWW."},
    {plain, PROGRESS, "params>progressToken", ".............."},
    {plain, PROGRESS, "params>progress", "...TTT.T......"},
    {plain, PROGRESS, "params>total", "TTTTTTTTTTTTTT"},
    {plain, PROGRESS, "params>message", "TTTTTTTTTTTTTT"},
    {plain, LOG, "params", "TWWWWWWWWWWWWT"},
    {plain, LOG, "params>level", "TTTTTTTTTTTTTT"},
    {plain, LOG, "params>data", "TTTTTTTTTTTTTT"},
};

/* The scenes are those of kit_begin: the tap records what the client sends in them. */
int main(void)
{
    return client_fields_run("AS-116 fields of messages of a server of 2026-07-28", rows,
                             sizeof rows / sizeof *rows);
}
