/* What HTTP says of an answer that is one message (R-0-4), also when a tool fails in
 * code of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/call.h"
#include "engine/serve_http.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

#include <stdio.h>
#include <string.h>

#define VERSION "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""
#define CAPABILITIES "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define META "\"_meta\":{" VERSION "," CAPABILITIES "}"

static test_mem tm;
static fake_host host;
static segue_server *server;
static sgi_principal *who;
static sgi_conn *spare;

/* Fails with the code that stands in the arguments; the lock is open here. */
static void run_fail(void *user, segue_call *call)
{
    sgi_json value;
    int64_t code = 0;
    (void)user;
    host.engine.host.lock(&host);
    assert_int_equal(sgi_call_argument(call, "code", &value), SEGUE_OK);
    assert_true(sgi_json_int(value, &code));
    assert_int_equal(sgi_call_fail(call, (int32_t)code, "on purpose", NULL, 0), SEGUE_OK);
    sgi_call_free(call);
    host.engine.host.release(&host);
    host.engine.host.unlock(&host);
}

static int set_up(void **state)
{
    segue_item_options tool = {.struct_size = sizeof tool, .on_call = run_fail};
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 7);
    server = fake_server_new(&host);
    assert_int_equal(sgi_tool_add(server, SGI_STR("{\"name\":\"fail\"}"), &tool, NULL),
                     SEGUE_OK);
    who = sgi_server_principal(server, NULL);
    spare = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_serve_free_spare(spare);
    sgi_principal_unref(who);
    fake_server_end(server);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

/* The status of the answer to one request of 2026-07-28. */
static int32_t post(const char *method, const char *name, const char *params)
{
    char body[512];
    sgi_http_head head = {.version = SGI_STR("2026-07-28"), .takes_events = true};
    sgi_http_verdict verdict;
    sgi_http_answer answer;
    sgi_buf out;
    head.method = sgi_str_of(method);
    if (name)
        head.name = sgi_str_of(name);
    int len = snprintf(body, sizeof body,
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}",
                       method, params);
    sgi_serve_post(server, who, &head, (sgi_str){body, (size_t)len}, &tm, &spare,
                   &verdict);
    assert_int_equal(verdict.status, 0);
    fake_host_deliver(&host);
    sgi_serve_look(verdict.conn, &answer);
    assert_true(answer.answered);
    assert_false(answer.is_events);
    sgi_buf_init(&out, &tm.mem);
    sgi_conn_output(verdict.conn, &out);
    assert_memory_equal(out.p, "{\"jsonrpc\":\"2.0\",\"id\":1,",
                        strlen("{\"jsonrpc\":\"2.0\",\"id\":1,"));
    sgi_buf_free(&out);
    spare = sgi_serve_end(verdict.conn, &tm);
    return answer.status;
}

static void the_status_follows_from_the_code(void **state)
{
    (void)state;
    assert_int_equal(post("tools/list", NULL, META), 200);
    assert_int_equal(post("no/such", NULL, META), 404);
    assert_int_equal(post("ping", NULL, META), 404);
    assert_int_equal(post("tools/call", "none", "\"name\":\"none\"," META), 200);
    assert_int_equal(post("tools/call", "other", "\"name\":\"fail\"," META), 400);
    assert_int_equal(post("tasks/get", "x", "\"taskId\":\"x\"," META), 400);
    assert_int_equal(post("tools/list", NULL, "\"_meta\":{" VERSION "}"),
                     400); /* -32602 */
}

static void a_tool_that_fails_chooses_the_status_by_its_code(void **state)
{
    static const struct {
        int32_t code;
        int32_t status;
    } rows[] = {{-32603, 200}, {-32602, 200}, {-32601, 404},
                {-32021, 400}, {1, 200},      {-31000, 200}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char params[256];
        snprintf(params, sizeof params,
                 "\"name\":\"fail\",\"arguments\":{\"code\":%d}," META,
                 (int)rows[i].code);
        assert_int_equal(post("tools/call", "fail", params), rows[i].status);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_status_follows_from_the_code),
        CASE(a_tool_that_fails_chooses_the_status_by_its_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
