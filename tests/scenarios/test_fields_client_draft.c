/* Messages of a server of DRAFT-2026-v1 (D, SEP-2557) and the policies of SEP-975 (Z),
 * with every field wrong in every way (bad_fields.h), sent to the client. */
#include "support/client_fields.h"

#define HEAD(status)                                                                     \
    "\"taskId\":\"T\",\"status\":\"" status "\",\"createdAt\":\"2026-01-01T00:00:00Z\"," \
    "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"ttl\":60,\"pollInterval\":1000,"       \
    "\"requestState\":\"s\""
#define MADE ANSWER("\"resultType\":\"task\",\"task\":{" HEAD("working") "}")
#define SEEN(status, more) ANSWER("\"resultType\":\"task\"," HEAD(status) more)
#define DONE SEEN("completed", "," RESULT)
#define FAILED SEEN("failed", ",\"error\":{\"code\":-32000,\"message\":\"m\"}")
#define ASKS                                                                             \
    SEEN("input_required", ",\"inputRequests\":{\"k\":{\"method\":"                      \
                           "\"elicitation/create\",\"params\":{\"message\":\"?\"}}}")
#define ROUND                                                                            \
    ANSWER("\"resultType\":\"incomplete\",\"inputRequests\":{\"k\":{\"method\":"         \
           "\"elicitation/create\",\"params\":{\"message\":\"?\"}}},"                    \
           "\"requestState\":\"s\"")
#define STATUS NOTE("notifications/tasks/status", HEAD("completed"))
#define POLICY                                                                           \
    NOTE("notifications/requests/resumePolicy",                                          \
         "\"requestId\":REQ,\"resumeToken\":\"t\",\"minWait\":1,\"maxWait\":9")
#define INITIALIZED                                                                      \
    ANSWER("\"protocolVersion\":\"DRAFT-2026-v1\",\"capabilities\":{\"tools\":{}},"      \
           "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}")

static segue_session_options options_of(uint32_t dialect)
{
    segue_session_options options = kit_legacy_options();
    options.dialects_on = dialect;
    options.capabilities = "{\"elicitation\":{}}";
    return options;
}

static void initialize(client_scene *s)
{
    segue_session_options options = options_of(SEGUE_DIALECT_DRAFT_TASKS);
    kit_begin(&s->k, &options);
    scene_heard(s, kit_expect(&s->k, "initialize"));
}

static void called(client_scene *s)
{
    initialize(s);
    char *line = scene_line(s, INITIALIZED);
    kit_say(&s->k, "%s", line);
    free(line);
    kit_expect(&s->k, "notifications/initialized");
    s->r = kit_call(&s->k, "t");
    scene_heard(s, kit_expect(&s->k, "tools/call"));
}

static void polled(client_scene *s)
{
    called(s);
    char *line = scene_line(s, MADE);
    kit_say(&s->k, "%s", line);
    free(line);
    scene_heard(s, kit_expect(&s->k, "tasks/get"));
}

static void cancelled(client_scene *s)
{
    polled(s);
    char *line = scene_line(s, SEEN("working", ""));
    kit_say(&s->k, "%s", line);
    free(line);
    segue_request_cancel(s->r->request);
    kit_run(&s->k);
    scene_heard(s, kit_expect(&s->k, "tasks/cancel"));
}

static void resumable(client_scene *s)
{
    segue_session_options options = options_of(SEGUE_DIALECT_RESUMABLE);
    kit_begin_2025(&s->k, &options, SERVER_PLAIN);
    s->r = kit_call(&s->k, "t");
    scene_heard(s, kit_expect(&s->k, "tools/call"));
}

static const client_row rows[] = {
    {initialize, INITIALIZED, "result>protocolVersion", "SSSSSSSSSSSSSS"},
    {called, MADE, "result", "EEEEEEEEEEEEEK"},
    {called, MADE, "result>resultType", "TEEEEEEEEEEEEE"},
    {called, MADE, "result>task", "EEEEEEEEEEEEEE"},
    {called, MADE, "result>task>taskId", "EEEEEEEEETEEEE"},
    {called, MADE, "result>task>status", "TTTTTTTTTTTTTT"},
    {called, MADE, "result>task>createdAt", "TTTTTTTTTTTTTT"},
    {called, MADE, "result>task>ttl", "TTTTTTTTTTTTTT"},
    {called, MADE, "result>task>pollInterval", "TTTTTTTTTTTTTT"},
    {called, MADE, "result>task>requestState", "TBBBBBBBTTTTBB"},
    {called, ROUND, "result>resultType", "KEEEEEEEEEEEEE"},
    {called, ROUND, "result>inputRequests", ".EEEEEEEEEEEE."},
    {called, ROUND, "result>inputRequests>k", ".EEEEEEEEEEEEE"},
    {called, ROUND, "result>requestState", "TEEEEEEETTTTEE"},
    {polled, DONE, "result", "WWWWWWWWWWWWWE"},
    {polled, DONE, "result>resultType", "KEEEEEEEEEEEEE"},
    {polled, DONE, "result>taskId", "KEEEEEEEEEEEEE"},
    {polled, DONE, "result>status", "EEEEEEEEEEEEEE"},
    {polled, DONE, "result>lastUpdatedAt", "KKKKKKKKKKKKKK"},
    {polled, DONE, "result>requestState", "KKKKKKKKKKKKKK"},
    {polled, DONE, "result>result", "EEEEEEEEEEEEEK"},
    {polled, DONE, "result>result>content", "KEEEEEEEEEEEKE"},
    {polled, FAILED, "result>error", "EEEEEEEEEEEEEE"},
    {polled, FAILED, "result>error>code", "EEERREEEEEEEEE"},
    {polled, FAILED, "result>error>message", "RRRRRRRRRRRRRR"},
    {polled, ASKS, "result>inputRequests", "BBBBBBBBBBBBBB"},
    {polled, ASKS, "result>inputRequests>k", "BBBBBBBBBBBBBB"},
    {polled, ASKS, "result>inputRequests>k>method", "BBBBBBBBBTTBBB"},
    {polled, ASKS, "result>inputRequests>k>params", "TBBBBBBBBBBBBT"},
    {polled, STATUS, "params", "TWWWWWWWWWWWWT"},
    {polled, STATUS, "params>taskId", "TTTTTTTTTTTTTT"},
    {polled, STATUS, "params>status", ".............."},
    {polled, STATUS, "params>lastUpdatedAt", "TTTTTTTTTTTTTT"},
    {polled, STATUS, "params>requestState", "TBBBBBBBTTTTBB"},
    {cancelled, SEEN("cancelled", ""), "result", "XXXXXXXXXXXXXX"},
    {cancelled, SEEN("cancelled", ""), "result>taskId", "XXXXXXXXXXXXXX"},
    {cancelled, SEEN("cancelled", ""), "result>status", "XXXXXXXXXXXXXX"},
    {resumable, POLICY, "params", "WWWWWWWWWWWWWW"},
    {resumable, POLICY, "params>requestId", "WWWWWWWWWWWWWW"},
    {resumable, POLICY, "params>resumeToken", "WWWWWWWWTTTTWW"},
    {resumable, POLICY, "params>minWait", "TBBTBBBBBBBBBB"},
    {resumable, POLICY, "params>maxWait", "TBBTBBBBBBBBBB"},
};

/* The scenes are those of kit_begin: the tap records what the client sends in them. */
int main(void)
{
    return client_fields_run("AS-116 fields of messages of a server of DRAFT-2026-v1",
                             rows, sizeof rows / sizeof *rows);
}
