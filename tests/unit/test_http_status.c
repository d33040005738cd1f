/* The HTTP status of an answer that is one message (R-0-4), also when a tool fails with a
 * code of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/http_wire.h"

#define VERSION "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""
#define CAPABILITIES "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define META "\"_meta\":{" VERSION "," CAPABILITIES "}"

static http_rig t;

/* Fails with the code from the arguments; the lock is not held here. */
static void run_fail(void *user, segue_call *call)
{
    sgi_json value;
    int64_t code = 0;
    (void)user;
    t.host.engine.host.lock(&t.host);
    assert_int_equal(sgi_call_argument(call, "code", &value), SEGUE_OK);
    assert_true(sgi_json_read_int(value, &code));
    assert_int_equal(sgi_call_fail(call, (int32_t)code, "on purpose", NULL, 0), SEGUE_OK);
    sgi_call_free(call);
    t.host.engine.host.release(&t.host);
    t.host.engine.host.unlock(&t.host);
}

static int set_up(void **state)
{
    segue_item_options tool = {.struct_size = sizeof tool, .on_call = run_fail};
    (void)state;
    http_rig_begin(&t, NULL);
    assert_int_equal(sgi_item_add(t.server, SEGUE_ITEM_TOOL,
                                  SGI_STR("{\"name\":\"fail\"}"), &tool, NULL),
                     SEGUE_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_rig_end(&t);
    return 0;
}

/* Returns the status of the answer to one request of 2026-07-28. */
static int32_t post(const char *method, const char *name, const char *params)
{
    static const char begins[] = "{\"jsonrpc\":\"2.0\",\"id\":1,";
    http_wire *wire = &t.a;
    wire->head.version = SGI_STR("2026-07-28");
    wire->head.method = sgi_str_of(method);
    wire->head.name = sgi_str_of(name);
    snprintf(wire->body, sizeof wire->body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}", method,
             params);
    http_wire_post(wire, wire->body);
    assert_int_equal(wire->verdict.status, 0);
    fake_host_deliver(&t.host);
    assert_int_equal(strncmp(http_wire_text(wire), begins, sizeof begins - 1), 0);
    assert_true(wire->answer.answered);
    assert_false(wire->answer.is_events);
    return wire->answer.status;
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
