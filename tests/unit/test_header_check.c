/* Headers that repeat parts of the body (R-0-7, R-2557-49, AS-60): missing, different, in
 * base64, and those that a tool's schema requires. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/http_wire.h"

#define TASKS "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

static http_rig t;

static int set_up(void **state)
{
    (void)state;
    http_rig_begin(&t, "ada");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_rig_end(&t);
    return 0;
}

/* Sends a request and returns whether the server refused it because of a header. */
static bool is_refused(const char *header, const char *name, const char *method,
                       const char *params)
{
    t.a.head.name = sgi_str_of(name);
    snprintf(t.a.body, sizeof t.a.body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s%s"
             "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
             "\"io.modelcontextprotocol/clientCapabilities\":" TASKS "}}}",
             method, params, *params ? "," : "");
    t.a.head.version = SGI_STR("2026-07-28");
    t.a.head.method = sgi_str_of(header);
    int32_t status = http_wire_post(&t.a, t.a.body);
    fake_store_settle(&t.host);
    return status == 400 && strstr(http_wire_text(&t.a), "-32020");
}

/* With more than one fault, the earlier check is reported. */
static void headers_are_checked_against_the_body(void **state)
{
    static const struct {
        const char *method, *name; /* headers; NULL = not sent */
        const char *asked, *params;
        const char *says; /* part of the error; NULL = the headers are accepted */
    } rows[] = {
        {"tools/call", "none", "tools/call", "\"name\":\"none\"", NULL},
        {"tools/call", " none\t", "tools/call", "\"name\":\"none\"", NULL},
        {"tools/call", "=?base64?bm9uZQ==?=", "tools/call", "\"name\":\"none\"", NULL},
        {"tools/call", "=?base64?bsO8bg==?=", "tools/call", "\"name\":\"n\\u00fcn\"",
         NULL},
        {"tools/call", "=?base64?bm9uZQ?=", "tools/call", "\"name\":\"none\"",
         "Mcp-Name is malformed"},
        {"tools/call", "=?base64?!!!!?=", "tools/call", "\"name\":\"none\"",
         "Mcp-Name is malformed"},
        {"tools/call", "n\xc3\xbcn", "tools/call", "\"name\":\"n\\u00fcn\"",
         "Mcp-Name is malformed"},
        {"tools/call", "None", "tools/call", "\"name\":\"none\"", "Mcp-Name differs"},
        {"tools/call", "", "tools/call", "\"name\":\"none\"", "Mcp-Name differs"},
        {"tools/call", NULL, "tools/call", "\"name\":\"none\"", "Mcp-Name is missing"},
        {"tools/call", NULL, "tools/call", "\"name\":5", NULL},
        {"tools/call", NULL, "tools/call", "", NULL},
        {NULL, "none", "tools/call", "\"name\":\"none\"", "Mcp-Method is missing"},
        {"", "none", "tools/call", "\"name\":\"none\"", "Mcp-Method is missing"},
        {"Tools/Call", "none", "tools/call", "\"name\":\"none\"", "Mcp-Method differs"},
        {"tools/list", "other", "tools/call", "\"name\":\"none\"", "Mcp-Method differs"},
        /* AS-60: the header must name the task */
        {"tasks/get", "T", "tasks/get", "\"taskId\":\"T\"", NULL},
        {"tasks/get", "=?base64?VA==?=", "tasks/get", "\"taskId\":\"T\"", NULL},
        {"tasks/get", "U", "tasks/get", "\"taskId\":\"T\"", "Mcp-Name differs"},
        {"tasks/get", NULL, "tasks/get", "\"taskId\":\"T\"", "Mcp-Name is missing"},
        {"tasks/get", NULL, "tasks/get", "\"taskId\":\"T\"", "params.taskId"},
        {"tasks/get", NULL, "tasks/get", "\"taskId\":\"T\"", "lenient_headers"},
        {"tasks/update", "U", "tasks/update", "\"taskId\":\"T\"", "Mcp-Name differs"},
        {"tasks/cancel", "U", "tasks/cancel", "\"taskId\":\"T\"", "Mcp-Name differs"},
        {"no/such", NULL, "no/such", "", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool refused =
            is_refused(rows[i].method, rows[i].name, rows[i].asked, rows[i].params);
        const char *text = http_wire_text(&t.a);
        if (refused != (rows[i].says != NULL) ||
            !strstr(text, rows[i].says ? rows[i].says : "\"id\":1"))
            fail_msg("row %zu: %s", i, text);
    }
}

/* lenient_headers: requests about a task may lack Mcp-Name. A header that is sent must
 * still agree with the body, and other requests need theirs. */
static void a_lenient_listener_accepts_tasks_without_their_name(void **state)
{
    static const struct {
        const char *header, *name, *method, *params;
        bool refused;
    } rows[] = {
        {"tasks/get", NULL, "tasks/get", "\"taskId\":\"T\"", false},
        {"tasks/update", NULL, "tasks/update", "\"taskId\":\"T\"", false},
        {"tasks/cancel", NULL, "tasks/cancel", "\"taskId\":\"T\"", false},
        {"tasks/stream", NULL, "tasks/stream", "\"taskId\":\"T\"", false},
        {"tasks/get", "U", "tasks/get", "\"taskId\":\"T\"", true},
        {"tasks/get", "", "tasks/get", "\"taskId\":\"T\"", true},
        {NULL, NULL, "tasks/get", "\"taskId\":\"T\"", true},
        {"tools/call", NULL, "tools/call", "\"name\":\"none\"", true},
    };
    (void)state;
    t.a.head.lenient = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_refused(rows[i].header, rows[i].name, rows[i].method, rows[i].params) !=
            rows[i].refused)
            fail_msg("row %zu: %s", i, http_wire_text(&t.a));
}

static void params_are_checked_against_the_arguments(void **state)
{
    static const char schema[] =
        "{\"name\":\"where\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
        "\"city\":{\"type\":\"string\",\"x-mcp-header\":\"City\"},"
        "\"floor\":{\"type\":\"integer\",\"x-mcp-header\":\"Floor\"}}}}";
    static const struct {
        const char *city, *floor; /* headers; NULL = not sent */
        const char *arguments;
        const char *says;
    } rows[] = {
        {"Bonn", "2", "{\"city\":\"Bonn\",\"floor\":2}", NULL},
        {"=?base64?S8O2bG4=?=", "2", "{\"city\":\"K\xc3\xb6ln\",\"floor\":2.0}", NULL},
        {NULL, NULL, "{}", NULL},
        {NULL, NULL, "{\"city\":null}", NULL},
        {NULL, NULL, "5", NULL}, /* the schema is checked later */
        {NULL, "2", "{\"city\":\"Bonn\",\"floor\":2}", "Mcp-Param header is missing"},
        {"Bonn", "3", "{\"city\":\"Bonn\",\"floor\":2}", "Mcp-Param header differs"},
        {"bonn", "2", "{\"city\":\"Bonn\",\"floor\":2}", "Mcp-Param header differs"},
        {"Bonn", NULL, "{}", "Mcp-Param header differs"},
        {"=?base64?Qm9u?=", NULL, "{\"city\":\"Bonn\"}", "Mcp-Param header differs"},
        {"=?base64?Qm9ub?=", NULL, "{\"city\":\"Bonn\"}",
         "Mcp-Param header is malformed"},
    };
    segue_item_options tool =
        TAILQ_FIRST(&sgi_items_of_type(t.server, SEGUE_ITEM_TOOL)->items)->options;
    char params[200];
    (void)state;
    assert_int_equal(
        sgi_item_add(t.server, SEGUE_ITEM_TOOL, sgi_str_of(schema), &tool, NULL),
        SEGUE_OK);
    t.a.head.name = SGI_STR("where");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = 0;
        memset(t.a.more_names, 0, sizeof t.a.more_names);
        if (rows[i].city)
            t.a.more_names[n] = "mcp-param-city", t.a.more_values[n++] = rows[i].city;
        if (rows[i].floor)
            t.a.more_names[n] = "mcp-param-floor", t.a.more_values[n++] = rows[i].floor;
        snprintf(params, sizeof params, "\"name\":\"where\",\"arguments\":%s",
                 rows[i].arguments);
        int32_t status = http_wire_modern(&t.a, "1", "tools/call", params, "{}");
        bool mismatch =
            status == 400 && rows[i].says && http_wire_says(&t.a, rows[i].says);
        if (mismatch != (rows[i].says != NULL) ||
            (!rows[i].says && http_wire_says(&t.a, "-32020")))
            fail_msg("row %zu: %d %s", i, (int)status, http_wire_text(&t.a));
        segue_call *call = http_wire_call(t.server);
        http_wire_cut(&t.a);
        fake_host_deliver(&t.host);
        if (call)
            sgi_call_free(call);
    }
    /* the header is sent twice */
    t.a.more_names[0] = t.a.more_names[1] = "mcp-param-city";
    t.a.more_values[0] = t.a.more_values[1] = "Bonn";
    assert_int_equal(http_wire_modern(&t.a, "1", "tools/call",
                                      "\"name\":\"where\",\"arguments\":{\"city\":"
                                      "\"Bonn\"}",
                                      "{}"),
                     400);
    memset(t.a.more_names, 0, sizeof t.a.more_names);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(headers_are_checked_against_the_body),
        CASE(a_lenient_listener_accepts_tasks_without_their_name),
        CASE(params_are_checked_against_the_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
