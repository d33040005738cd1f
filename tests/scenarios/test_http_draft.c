/* DRAFT-2026-v1 over HTTP: requests about a task repeat their method and the task id in
 * headers (R-2557-48, R-2557-49). Otherwise they belong to their wire session. */
#include "support/http_script.h"
#include "support/http_stage.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define DRAFT "DRAFT-2026-v1"
#define INITIALIZE                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"               \
    "\"protocolVersion\":\"" DRAFT "\",\"capabilities\":{},"                             \
    "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}"
#define CALL                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"      \
    "\"hang\"}}"

/* ---- a server ---- */

static char session[160]; /* headers of the session */

/* Posts to the session; the answer is stored in *reply. */
static void post(http_caller *c, const char *lines, const char *body, http_reply *reply)
{
    char all[512];
    snprintf(all, sizeof all, "%s%s", session, lines);
    http_caller_ask(c, http_post(all, body), reply);
}

static void begin_server(http_stage *s, http_caller *c, char task[64])
{
    http_reply reply;
    s->dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
    http_stage_open(s, c);
    http_caller_ask(c, http_post("", INITIALIZE), &reply);
    assert_int_equal(reply.status, 200);
    assert_at(reply.body, "result.protocolVersion", "\"" DRAFT "\"");
    snprintf(session, sizeof session,
             "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: " DRAFT "\r\n",
             http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
    post(c, "", CALL, &reply); /* other requests need no such headers */
    assert_int_equal(reply.status, 200);
    const char *id = json_at(reply.body, "result.task.taskId");
    snprintf(task, 64, "%.*s", (int)strlen(id) - 2, id + 1);
    http_reply_free(&reply);
}

static void ask_about(http_caller *c, const char *method, const char *task,
                      const char *lines, int status, const char *code)
{
    char body[256];
    http_reply reply;
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"%s\",\"params\":{\"taskId\":"
             "\"%s\"}}",
             method, task);
    post(c, lines, body, &reply);
    assert_int_equal(reply.status, status);
    assert_at(reply.body, "error.code", code);
    http_reply_free(&reply);
}

static void headers_must_fit(void **state)
{
    static const char *const methods[] = {"tasks/get", "tasks/cancel"};
    (void)state;
    http_stage s = {0};
    http_caller c;
    char task[64], lines[256];
    begin_server(&s, &c, task);
    for (size_t i = 0; i < 2; i++) {
        const char *method = methods[i];
        ask_about(&c, method, task, "", 400, "-32020");
        snprintf(lines, sizeof lines, "Mcp-Method: %s\r\n", method);
        ask_about(&c, method, task, lines, 400, "-32020");
        snprintf(lines, sizeof lines, "Mcp-Name: %s\r\n", task);
        ask_about(&c, method, task, lines, 400, "-32020");
        snprintf(lines, sizeof lines, "Mcp-Method: %s\r\nMcp-Name: other\r\n", method);
        ask_about(&c, method, task, lines, 400, "-32020");
        snprintf(lines, sizeof lines, "Mcp-Method: tools/call\r\nMcp-Name: %s\r\n", task);
        ask_about(&c, method, task, lines, 400, "-32020");
        snprintf(lines, sizeof lines, "mcp-method: %s\r\nmcp-name: %s\r\n", method, task);
        ask_about(&c, method, task, lines, 200, "");
    }
    snprintf(lines, sizeof lines, "Mcp-Method: tasks/result\r\nMcp-Name: %s\r\n", task);
    ask_about(&c, "tasks/result", task, lines, 200, "-32601");
    http_stage_close(&s, &c);
}

/* ---- a client ---- */

static void the_client_repeats_them(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    options.dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
    script_begin(&s, &options);
    heard *h = script_expect(&s, "initialize");
    assert_header(h, "MCP-Protocol-Version", NULL);
    script_result(h, "\"protocolVersion\":\"" DRAFT "\",\"capabilities\":{\"tools\":{}},"
                     "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}");
    h = script_expect(&s, "notifications/initialized");
    assert_header(h, "MCP-Protocol-Version", DRAFT);
    script_accept(h);
    script_until(&s, s.k.opened);
    record *r = kit_call(&s.k, "t");
    h = script_find(&s, "tools/call");
    assert_header(h, "MCP-Protocol-Version", DRAFT);
    assert_header(h, "Mcp-Method", "tools/call");
    assert_header(h, "Mcp-Name", NULL);
    script_result(h, "\"resultType\":\"task\",\"task\":{\"taskId\":\"T/\xc3\xa9\","
                     "\"status\":\"working\",\"createdAt\":\"2026-01-01T00:00:00Z\","
                     "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"ttl\":60}");
    h = script_find(&s, "tasks/get");
    assert_header(h, "Mcp-Method", "tasks/get");
    assert_header(h, "Mcp-Name", "=?base64?VC/DqQ==?=");
    script_result(h, "\"resultType\":\"task\",\"taskId\":\"T/\xc3\xa9\",\"status\":"
                     "\"working\"");
    script_pump(&s);
    segue_request_cancel(r->request);
    h = script_find(&s, "tasks/cancel");
    assert_header(h, "Mcp-Method", "tasks/cancel");
    assert_header(h, "Mcp-Name", "=?base64?VC/DqQ==?=");
    script_result(h, "\"resultType\":\"task\",\"taskId\":\"T/\xc3\xa9\",\"status\":"
                     "\"cancelled\"");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_must_fit),
        cmocka_unit_test(the_client_repeats_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
