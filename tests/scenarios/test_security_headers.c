/* Head and body of a request must agree (R-0-7, R-2557-49; 2026-07-28
 * basic/transports/streamable-http, "Server Validation"), because a machine in front of
 * the server judges the request by its head. Each header that repeats the body is changed
 * here in ways that two readers could understand differently, in both eras, over a real
 * connection. A refused request has run nothing. test_security_smuggling.c tests the
 * boundaries between requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define VERSION "MCP-Protocol-Version: 2026-07-28\r\n"
#define METHOD "Mcp-Method: tools/call\r\n"
#define NAME "Mcp-Name: greet\r\n"
#define META                                                                             \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","             \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define CALL_OF(name)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":" name \
    "," META "}}"
#define CALL CALL_OF("\"greet\"")
#define ESCAPED(method)                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{\"name\":"      \
    "\"greet\"," META "}}"

typedef struct row {
    const char *lines;
    const char *body;
    int status;
    const char *says; /* text in the body of the answer */
} row;

static int runs; /* runs of the tools of these tests */

static void run(void *user, segue_call *call)
{
    (void)user;
    runs++;
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
}

static void add_tool(http_stage *s, const char *json)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = run;
    assert_int_equal(
        segue_server_add(s->server, SEGUE_ITEM_TOOL, json, strlen(json), &options, NULL),
        SEGUE_OK);
}

static int all_runs(const http_stage *s)
{
    return runs + fixtures_runs(s->fixtures, "greet") +
           fixtures_runs(s->fixtures, "add_numbers");
}

static void ask(http_stage *s, http_caller *c, const row *wanted)
{
    http_reply reply;
    int before = all_runs(s);
    char *request = http_post(wanted->lines, wanted->body);
    http_caller_say(c, request);
    free(request);
    http_caller_read(c, &reply);
    if (reply.status != wanted->status || !strstr(reply.body, wanted->says))
        fail_msg("%s%s\nis %d: %s", wanted->lines, wanted->body, reply.status,
                 reply.body);
    assert_int_equal(all_runs(s) - before, strstr(wanted->says, "result") != NULL);
    http_reply_free(&reply);
}

/* A refused head keeps the connection open: it is clear where the next request begins. */
static void ask_all(http_stage *s, const row *rows, size_t count)
{
    http_caller c;
    http_caller_open(s, &c);
    for (size_t i = 0; i < count; i++)
        ask(s, &c, &rows[i]);
    http_caller_close(&c);
}

#define ASK_ALL(s, rows) ask_all((s), (rows), sizeof(rows) / sizeof *(rows))

/* ---- the modern era ---- */

static void method_and_version_are_those_of_the_body(void **state)
{
    static const row rows[] = {
        {VERSION METHOD NAME, CALL, 200, "\"result\""},
        {"mcp-protocol-version:2026-07-28\r\nMCP-METHOD:\ttools/call \r\n" NAME, CALL,
         200, "\"result\""},
        {VERSION "Mcp-Method: tools/list\r\n" NAME, CALL, 400, "-32020"},
        {VERSION "Mcp-Method: Tools/call\r\n" NAME, CALL, 400, "-32020"},
        {VERSION "Mcp-Method: tools/call/\r\n" NAME, CALL, 400, "-32020"},
        {VERSION "Mcp-Method: tools/cal\r\n" NAME, CALL, 400, "-32020"},
        {VERSION "Mcp-Method: tools/list, tools/call\r\n" NAME, CALL, 400, "-32020"},
        {VERSION "Mcp-Method: \"tools/call\"\r\n" NAME, CALL, 400, "-32020"},
        {VERSION "Mcp-Method: =?base64?dG9vbHMvY2FsbA==?=\r\n" NAME, CALL, 400, "-32020"},
        {VERSION "Mcp-Method:\r\n" NAME, CALL, 400, "-32020"},
        {VERSION "Mcp_Method: tools/call\r\n" NAME, CALL, 400, "-32020"},
        {VERSION METHOD METHOD NAME, CALL, 400, "-32020"},
        {VERSION METHOD "mcp-method: tools/list\r\n" NAME, CALL, 400, "-32020"},
        {VERSION "Mcp-Method: tools/list\r\n" METHOD NAME, CALL, 400, "-32020"},
        {VERSION VERSION METHOD NAME, CALL, 400, "-32020"},
        {VERSION "MCP-Protocol-Version: 2025-11-25\r\n" METHOD NAME, CALL, 400, "-32020"},
        {"MCP-Protocol-Version: 2026-07-28, 2025-11-25\r\n" METHOD NAME, CALL, 400,
         "-32020"},
        {"MCP-Protocol-Version: 2025-11-25\r\n" METHOD NAME, CALL, 400, "-32020"},
        {"MCP-Protocol-Version: 2026-07-29\r\n" METHOD NAME, CALL, 400, "-32020"},
        {METHOD NAME, CALL, 400, "-32020"},
        {NAME, CALL, 400, "-32020"},
        {"", CALL, 400, "-32020"},
        /* The body does not name a revision, so the head alone is not enough. */
        {VERSION METHOD NAME,
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
         "\"name\":\"greet\"}}",
         400, "-32602"},
        /* A session id does not change the era. */
        {"Mcp-Session-Id: x\r\nMCP-Protocol-Version: 2025-11-25\r\n" METHOD NAME, CALL,
         400, "-32020"},
    };
    http_stage s = {0};
    (void)state;
    http_stage_begin(&s);
    ASK_ALL(&s, rows);
    http_stage_end(&s);
}

static void the_name_is_that_of_the_body(void **state)
{
    static const row rows[] = {
        {VERSION METHOD "Mcp-Name: =?base64?Z3JlZXQ=?=\r\n", CALL, 200, "\"result\""},
        {VERSION METHOD, CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name:\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: add_numbers\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: Greet\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: greet, greet\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: \"greet\"\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: gr\\u0065et\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: gr%65et\r\n", CALL, 400, "-32020"},
        {VERSION METHOD NAME NAME, CALL, 400, "-32020"},
        {VERSION METHOD NAME "mcp-name: add_numbers\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: add_numbers\r\n" NAME, CALL, 400, "-32020"},
        /* Base64 forms that readers understand differently. */
        {VERSION METHOD "Mcp-Name: =?base64?Z3JlZXQ?=\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: =?base64?Z3JlZXQ==?=\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: =?base64?Z3JlZXR=?=\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: =?base64?Z3Jl ZXQ=?=\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: =?BASE64?Z3JlZXQ=?=\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: =?utf-8?B?Z3JlZXQ=?=\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: =?base64?Z3JlZXQA?=\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: =?base64?Z3JlZXQ=?= \"\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: x=?base64?Z3JlZXQ=?=\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: =?base64?\?=\r\n", CALL, 400, "-32020"},
        {VERSION METHOD "Mcp-Name: =?base64?=\r\n", CALL, 400, "-32020"},
        /* Wrapped twice: unwrapped once, it is still another name. */
        {VERSION METHOD "Mcp-Name: =?base64?PT9iYXNlNjQ/WjNKbFpYUT0/PQ==?=\r\n", CALL,
         400, "-32020"},
        /* A body that contains the wrapped form means that text, not the decoded one. */
        {VERSION METHOD "Mcp-Name: =?base64?Z3JlZXQ=?=\r\n",
         CALL_OF("\"=?base64?Z3JlZXQ=?=\""), 400, "-32020"},
        {VERSION METHOD NAME, CALL_OF("\"=?base64?Z3JlZXQ=?=\""), 400, "-32020"},
        /* A method that is spelled with escapes is the same method, and hides nothing. */
        {VERSION METHOD NAME, ESCAPED("tools\\/call"), 200, "\"result\""},
        {VERSION METHOD "Mcp-Name: add_numbers\r\n", ESCAPED("tools\\/call"), 400,
         "-32020"},
        {VERSION METHOD, ESCAPED("tools\\u002fcall"), 400, "-32020"},
        {VERSION "Mcp-Method: tools\\/call\r\n" NAME, ESCAPED("tools\\/call"), 400,
         "-32020"},
        {VERSION METHOD NAME, CALL_OF("\"gr\\u0065et\""), 200, "\"result\""},
        {VERSION METHOD "Mcp-Name: gr\\u0065et\r\n", CALL_OF("\"gr\\u0065et\""), 400,
         "-32020"},
        /* Two readers could take different names from the body. */
        {VERSION METHOD NAME, CALL_OF("\"greet\",\"name\":\"add_numbers\""), 400,
         "-32700"},
        {VERSION METHOD NAME, CALL_OF("\"greet\",\"n\\u0061me\":\"add_numbers\""), 400,
         "-32700"},
        {VERSION METHOD NAME,
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"method\":"
         "\"tools/list\",\"params\":{\"name\":\"greet\"," META "}}",
         400, "-32700"},
    };
    http_stage s = {0};
    (void)state;
    http_stage_begin(&s);
    ASK_ALL(&s, rows);
    http_stage_end(&s);
}

#define READ_OF(uri)                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":"   \
    "\"" uri "\"," META "}}"
#define PROMPT_OF(name)                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/get\",\"params\":{\"name\":"     \
    "\"" name "\"," META "}}"
#define TASK_OF(method)                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{\"taskId\":"    \
    "\"T\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","       \
    "\"io.modelcontextprotocol/clientCapabilities\":" HTTP_CAPS_TASKS "}}}"
#define BY(method, name) VERSION "Mcp-Method: " method "\r\nMcp-Name: " name "\r\n"

static void so_is_that_of_whatever_is_named(void **state)
{
    static const row rows[] = {
        {BY("resources/read", "test://other"), READ_OF("test://static-text"), 400,
         "-32020"},
        {BY("resources/read", "test://static-text"), READ_OF("test://static-text/../x"),
         400, "-32020"},
        {BY("resources/read", "TEST://static-text"), READ_OF("test://static-text"), 400,
         "-32020"},
        {BY("prompts/get", "other"), PROMPT_OF("test_simple_prompt"), 400, "-32020"},
        {BY("tasks/get", "U"), TASK_OF("tasks/get"), 400, "-32020"},
        {BY("tasks/update", "U"), TASK_OF("tasks/update"), 400, "-32020"},
        {BY("tasks/cancel", "U"), TASK_OF("tasks/cancel"), 400, "-32020"},
        {BY("tasks/stream", "U"), TASK_OF("tasks/stream"), 400, "-32020"},
        {VERSION "Mcp-Method: tasks/cancel\r\n", TASK_OF("tasks/cancel"), 400, "-32020"},
        {BY("tasks/get", "T"), TASK_OF("tasks/cancel"), 400, "-32020"},
    };
    http_stage s = {0};
    (void)state;
    http_stage_begin(&s);
    ASK_ALL(&s, rows);
    http_stage_end(&s);
}

#define WHERE VERSION METHOD "Mcp-Name: where\r\n"
#define AT(city) CALL_OF("\"where\",\"arguments\":{\"city\":" city "}")

static void parameters_are_those_of_the_arguments(void **state)
{
    static const row rows[] = {
        {WHERE "Mcp-Param-City: Bonn\r\n", AT("\"Bonn\""), 200, "\"result\""},
        {WHERE "mcp-param-city: =?base64?Qm9ubg==?=\r\n", AT("\"Bonn\""), 200,
         "\"result\""},
        {WHERE "Mcp-Param-City: Bonn\r\nMcp-Param-Other: x\r\n", AT("\"Bonn\""), 200,
         "\"result\""},
        {WHERE, AT("\"Bonn\""), 400, "-32020"},
        {WHERE "Mcp-Param-City: Ulm\r\n", AT("\"Bonn\""), 400, "-32020"},
        {WHERE "Mcp-Param-City: bonn\r\n", AT("\"Bonn\""), 400, "-32020"},
        {WHERE "Mcp-Param-City: Bonn\r\n", AT("null"), 400, "-32020"},
        {WHERE "Mcp-Param-City: Bonn\r\n", CALL_OF("\"where\""), 400, "-32020"},
        {WHERE "Mcp-Param-City: Bonn\r\nMcp-Param-City: Bonn\r\n", AT("\"Bonn\""), 400,
         "-32020"},
        {WHERE "Mcp-Param-City: Bonn\r\nmcp-param-CITY: Ulm\r\n", AT("\"Bonn\""), 400,
         "-32020"},
        {WHERE "Mcp-Param-City: =?base64?VWxt?=\r\n", AT("\"Bonn\""), 400, "-32020"},
        {WHERE "Mcp-Param-City: =?base64?Qm9ubg?=\r\n", AT("\"Bonn\""), 400, "-32020"},
        {WHERE "Mcp-Param_City: Bonn\r\n", AT("\"Bonn\""), 400, "-32020"},
    };
    http_stage s = {0};
    (void)state;
    http_stage_begin(&s);
    add_tool(&s, "{\"name\":\"where\",\"inputSchema\":{\"type\":\"object\","
                 "\"properties\":{\"city\":{\"type\":\"string\","
                 "\"x-mcp-header\":\"City\"}}}}");
    ASK_ALL(&s, rows);
    http_stage_end(&s);
}

/* ---- the handshake eras ---- */

#define LEGACY_CALL                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"      \
    "\"greet\"}}"

static void open_session(http_stage *s, const char *version, char id[64])
{
    http_caller c;
    http_reply reply;
    char body[200];
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
             "\"protocolVersion\":\"%s\",\"capabilities\":{},"
             "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}",
             version);
    http_caller_open(s, &c);
    http_caller_ask(&c, http_post("", body), &reply);
    assert_int_equal(reply.status, 200);
    snprintf(id, 64, "%s", http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
    http_caller_close(&c);
}

/* format: takes the id of the session. */
static void ask_in(http_stage *s, const char *format, const char *id, int status,
                   const char *says)
{
    char text[400];
    row wanted = {text, LEGACY_CALL, status, says};
    /* the formats are those of the tests below */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, format, id, id);
#pragma GCC diagnostic pop
    ask_all(s, &wanted, 1);
}

static void a_session_is_named_once_and_by_its_whole_id(void **state)
{
    static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26"};
    static const struct {
        const char *format;
        int status;
        const char *says;
    } rows[] = {
        {"Mcp-Session-Id: %s\r\n", 200, "\"result\""},
        {"MCP-SESSION-ID:%s\t\r\n", 200, "\"result\""},
        {"Mcp-Session-Id: %s\r\nMcp-Session-Id: %s\r\n", 400, "repeated"},
        {"Mcp-Session-Id: %s\r\nmcp-session-id: nobody\r\n", 400, "repeated"},
        {"Mcp-Session-Id: %s,%s\r\n", 404, "Unknown session"},
        {"Mcp-Session-Id: %sA\r\n", 404, "Unknown session"},
        {"Mcp-Session-Id: %.8s\r\n", 404, "Unknown session"},
        {"Mcp-Session-Id: \"%s\"\r\n", 404, "Unknown session"},
        {"Mcp-Session-Id:\r\n", 400, "Mcp-Session-Id"},
        {"Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 1999-01-01\r\n", 400,
         "does not know"},
        {"Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-11-25\r\n"
         "MCP-Protocol-Version: 2025-11-25\r\n",
         400, "repeated"},
        /* A call without _meta does not belong to the modern era, with or without a
         * session. */
        {"Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2026-07-28\r\n", 400, "-32020"},
        {"Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2026-07-28\r\n" METHOD NAME, 400,
         "-32602"},
    };
    (void)state;
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
        http_stage s = {0};
        char id[64];
        http_stage_begin(&s);
        open_session(&s, versions[v], id);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            ask_in(&s, rows[i].format, id, rows[i].status, rows[i].says);
        http_stage_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(method_and_version_are_those_of_the_body),
        cmocka_unit_test(the_name_is_that_of_the_body),
        cmocka_unit_test(so_is_that_of_whatever_is_named),
        cmocka_unit_test(parameters_are_those_of_the_arguments),
        cmocka_unit_test(a_session_is_named_once_and_by_its_whole_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
