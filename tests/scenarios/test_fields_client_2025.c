/* Answers, notifications and requests of a server of the handshake eras, with every field
 * wrong in every way (bad_fields.h), sent to the client. */
#include "support/client_fields.h"

#define BLOCK "{\"type\":\"text\",\"text\":\"a\"}"
#define SEGMENT "{\"seqNr\":1,\"type\":\"text\",\"text\":\"a\"}"
#define INITIALIZED                                                                      \
    ANSWER("\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{},"          \
           "\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}},\"responses\":{"           \
           "\"modes\":[\"task\"]}}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"},"  \
           "\"instructions\":\"i\"")
#define LISTED                                                                           \
    ANSWER("\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"},"           \
           "\"execution\":{\"taskSupport\":\"optional\"}}],\"nextCursor\":\"c\"")
#define MADE ANSWER(CREATED_2025("T"))
#define GOT(status) ANSWER(TASK_2025("T", status))
#define RESULT_OF_TASK ANSWER("\"content\":[" BLOCK "],\"isError\":false," RELATED("T"))
#define STATUS NOTE("notifications/tasks/status", TASK_2025("T", "completed"))
#define SEGMENTS                                                                         \
    ANSWER("\"partial-content\":[" SEGMENT                                               \
           "],\"isError\":false,\"isComplete\":true," CREATED_2025("T"))
#define PULLED                                                                           \
    ANSWER("\"partial-content\":[{\"seqNr\":2,\"type\":\"text\",\"text\":\"b\"}],"       \
           "\"isError\":false,\"isComplete\":true," RELATED("T"))
#define PIECE ANSWER("\"content\":[" BLOCK "],\"_meta\":{\"hasMore\":true,\"index\":0}")
#define REPLACING                                                                        \
    ANSWER("\"content\":[" BLOCK "],\"_meta\":{\"hasMore\":true,\"mergeStrategy\":"      \
           "\"replace\"}")
#define PROGRESS                                                                         \
    NOTE("notifications/progress",                                                       \
         "\"progressToken\":TOKEN,\"progress\":1,\"total\":2,\"message\":\"m\"")
#define UPDATED NOTE("notifications/resources/updated", "\"uri\":\"test://a\"")
#define WITHDRAWN NOTE("notifications/cancelled", "\"requestId\":\"q\",\"reason\":\"w\"")
#define ASKED(method, params)                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"" method "\",\"params\":{" params "}}"
#define FORM                                                                             \
    ASKED("elicitation/create",                                                          \
          "\"mode\":\"form\",\"message\":\"?\",\"requestedSchema\":{\"type\":"           \
          "\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}")
#define SAMPLE                                                                           \
    ASKED("sampling/createMessage",                                                      \
          "\"messages\":[{\"role\":\"user\",\"content\":" BLOCK "}],\"maxTokens\":9")
#define PING ASKED("ping", "\"x\":1")

static void initialize(client_scene *s)
{
    segue_session_options options = kit_legacy_options();
    kit_begin(&s->k, &options);
    scene_heard(s, kit_expect(&s->k, "initialize"));
}

static void lookup(client_scene *s)
{
    kit_begin_2025(&s->k, NULL, SERVER_2025);
    s->r = kit_call(&s->k, "t");
    scene_heard(s, kit_expect(&s->k, "tools/list"));
}

static void call_with(client_scene *s, const char *capabilities)
{
    kit_begin_2025(&s->k, NULL, capabilities);
    s->r = kit_call(&s->k, "t");
    kit_list_tools(&s->k);
    scene_heard(s, kit_expect(&s->k, "tools/call"));
}

static void called(client_scene *s)
{
    call_with(s, SERVER_2025);
}

static void streaming(client_scene *s)
{
    call_with(s, SERVER_2025_STREAMS);
}

static void polled(client_scene *s)
{
    called(s);
    kit_say(&s->k, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}", s->id,
            CREATED_2025("T"));
    kit_advance(&s->k, 1200);
    scene_heard(s, kit_expect(&s->k, "tasks/get"));
}

static void fetched(client_scene *s)
{
    polled(s);
    kit_say(&s->k, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}", s->id,
            TASK_2025("T", "completed"));
    scene_heard(s, kit_expect(&s->k, "tasks/result"));
}

/* Brings the client to pull a missing segment. */
static void pulled(client_scene *s)
{
    streaming(s);
    kit_say(&s->k,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"partial-content\":[%s,"
            "{\"seqNr\":3,\"type\":\"text\",\"text\":\"c\"}],\"isError\":false,"
            "\"isComplete\":true,%s}}",
            s->id, SEGMENT, CREATED_2025("T"));
    scene_heard(s, kit_expect(&s->k, "tasks/result"));
}

static void plain(client_scene *s)
{
    kit_begin_2025(&s->k, NULL, SERVER_PLAIN);
    s->r = kit_call(&s->k, "t");
    scene_heard(s, kit_expect(&s->k, "tools/call"));
}

static void asked(client_scene *s)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.capabilities = "{\"elicitation\":{},\"sampling\":{}}";
    kit_begin_2025(&s->k, &options, SERVER_PLAIN);
    s->r = kit_call(&s->k, "t");
    scene_heard(s, kit_expect(&s->k, "tools/call"));
    s->answers = 1;
}

static const client_row rows[] = {
    {initialize, INITIALIZED, "id", ".............."},
    {initialize, INITIALIZED, "result", "SSSSSSSSSSSSSS"},
    {initialize, INITIALIZED, "result>protocolVersion", "SSSSSSSSSSSSSS"},
    {initialize, INITIALIZED, "result>capabilities", "OOOOOOOOOOOOOO"},
    {initialize, INITIALIZED, "result>capabilities>tasks", "OOOOOOOOOOOOOO"},
    {initialize, INITIALIZED, "result>capabilities>tasks>responses>modes",
     "OOOOOOOOOOOOOO"},
    {initialize, INITIALIZED, "result>serverInfo", "OOOOOOOOOOOOOO"},
    {initialize, INITIALIZED, "result>serverInfo>name", "OOOOOOOOOOOOOO"},
    {initialize, INITIALIZED, "result>instructions", "OOOOOOOOOOOOOO"},
    {lookup, LISTED, "result", "WWWWWWWWWWWWW."},
    {lookup, LISTED, "result>tools", ".............."},
    {lookup, LISTED, "result>tools>0", ".............."},
    {lookup, LISTED, "result>tools>0>name", ".............."},
    {lookup, LISTED, "result>tools>0>execution", ".............."},
    {lookup, LISTED, "result>tools>0>execution>taskSupport", ".............."},
    {lookup, LISTED, "result>nextCursor", ".............."},
    {called, MADE, "result", "EEEEEEEEEEEEEK"},
    {called, MADE, "result>task", "KEEEEEEEEEEEEE"},
    {called, MADE, "result>task>taskId", "EEEEEEEEETEEEE"},
    {called, MADE, "result>task>status", "TTTTTTTTTTTTTT"},
    {called, MADE, "result>task>createdAt", "TTTTTTTTTTTTTT"},
    {called, MADE, "result>task>lastUpdatedAt", "TTTTTTTTTTTTTT"},
    {called, MADE, "result>task>ttl", "TTTTTTTTTTTTTT"},
    {called, MADE, "result>task>pollInterval", "TTTTTTTTTTTTTT"},
    {polled, GOT("completed"), "result", "WWWWWWWWWWWWWE"},
    {polled, GOT("completed"), "result>taskId", "TEEEEEEEEEEEEE"},
    {polled, GOT("completed"), "result>status", "EEEEEEEEEEEEEE"},
    {polled, GOT("completed"), "result>createdAt", "TTTTTTTTTTTTTT"},
    {polled, GOT("completed"), "result>lastUpdatedAt", "TTTTTTTTTTTTTT"},
    {polled, GOT("completed"), "result>ttl", "TTTTTTTTTTTTTT"},
    {polled, GOT("working"), "result>pollInterval", ".............."},
    {fetched, RESULT_OF_TASK, "result", "WWWWWWWWWWWWWK"},
    {fetched, RESULT_OF_TASK, "result>content", "KEEEEEEEEEEEKE"},
    {fetched, RESULT_OF_TASK, "result>content>0", "KKKKKKKKKKKKKK"},
    {fetched, RESULT_OF_TASK, "result>isError", "KKKKKKKKKKKKKK"},
    {fetched, RESULT_OF_TASK, "result>_meta", "KKKKKKKKKKKKKK"},
    {polled, STATUS, "params", "TWWWWWWWWWWWWT"},
    {polled, STATUS, "params>taskId", "TTTTTTTTTTTTTT"},
    {polled, STATUS, "params>status", ".............."},
    {polled, STATUS, "params>lastUpdatedAt", "TTTTTTTTTTTTTT"},
    {streaming, SEGMENTS, "result>partial-content", "TEEEEEEEEEEEKE"},
    {streaming, SEGMENTS, "result>partial-content>0", "KBBBBBBBBBBBBB"},
    {streaming, SEGMENTS, "result>partial-content>0>seqNr", "BBBTBBBBBBBBBB"},
    {streaming, SEGMENTS, "result>partial-content>0>type", "KKKKKKKKKKKKKK"},
    {streaming, SEGMENTS, "result>isComplete", "TTKTTTTTTTTTTT"},
    {streaming, SEGMENTS, "result>isError", "KKKKKKKKKKKKKK"},
    {streaming, SEGMENTS, "result>task", "EEEEEEEEEEEEEE"},
    {streaming, SEGMENTS, "result>task>taskId", "EEEEEEEEEKEEEE"},
    {pulled, PULLED, "result>partial-content", "KWWWWWWWWWWW.W"},
    {pulled, PULLED, "result>partial-content>0>seqNr", "WWW.WWWWWWWWWW"},
    {pulled, PULLED, "result>isComplete", "KKKKKKKKKKKKKK"},
    {pulled, PULLED, "result>_meta", "KKKKKKKKKKKKKK"},
    {pulled, PULLED, "result>_meta>io.modelcontextprotocol/related-task",
     "KKKKKKKKKKKKKK"},
    {plain, PIECE, "result>content", ".EEEEEEEEEEE.E"},
    {plain, PIECE, "result>content>0", ".EEEEEEEEEEEET"},
    {plain, PIECE, "result>_meta", "KKKKKKKKKKKKKK"},
    {plain, PIECE, "result>_meta>hasMore", "KKTKKKKKKKKKKK"},
    {plain, PIECE, "result>_meta>index", "TEEEEEEEEEEEEE"},
    {plain, REPLACING, "result>_meta>mergeStrategy", "TEEEEEEEEEEEEE"},
    {plain, PROGRESS, "params", ".WWWWWWWWWWWW."},
    {plain, PROGRESS, "params>progressToken", ".............."},
    {plain, PROGRESS, "params>progress", "...TTT.T......"},
    {plain, UPDATED, "method", "WWWWWWWWWTTWWW"},
    {plain, UPDATED, "params", "TWWWWWWWWWWWWT"},
    {plain, UPDATED, "params>uri", "TTTTTTTTTTTTTT"},
    {asked, FORM, "id", "TWWTTWWWTTTTWW"},
    {asked, FORM, "method", "WRRRRRRRMMMMRR"},
    {asked, FORM, "params", "TRRRRRRRRRRRRT"},
    {asked, FORM, "params>mode", "TPPPPPPPPPPPPP"},
    {asked, FORM, "params>message", "TTTTTTTTTTTTTT"},
    {asked, FORM, "params>requestedSchema", "TTTTTTTTTTTTTT"},
    {asked, FORM, "params>requestedSchema>properties", "TTTTTTTTTTTTTT"},
    {asked, FORM, "params>requestedSchema>properties>a", "TTTTTTTTTTTTTT"},
    {asked, SAMPLE, "params>messages", "TTTTTTTTTTTTTT"},
    {asked, SAMPLE, "params>maxTokens", "TTTTTTTTTTTTTT"},
    {asked, PING, "params", "rRRRRRRRRRRRRr"},
    {asked, WITHDRAWN, "params", "TWWWWWWWWWWWWT"},
    {asked, WITHDRAWN, "params>requestId", "TTTTTTTTTTTTTT"},
};

/* The scenes are those of kit_begin: the tap records what the client sends in them. */
int main(void)
{
    return client_fields_run("AS-116 fields of messages of a server of 2025-11-25", rows,
                             sizeof rows / sizeof *rows);
}
