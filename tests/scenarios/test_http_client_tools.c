/* Mcp-Param-*: parameters of a tool that its server wants in headers (2026-07-28
 * basic/transports/streamable-http, "Custom Headers from Tool Parameters"). The client
 * learns them from tools/list, repeats them, and ignores tools with wrong annotations. It
 * fetches the list again when the server says that the headers do not fit. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define REGION(header)                                                                   \
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"region\":{\"type\":"         \
    "\"string\",\"x-mcp-header\":" header "},\"n\":{\"type\":\"integer\","               \
    "\"x-mcp-header\":\"N\"}}}"
#define SQL "{\"name\":\"sql\"," REGION("\"Region\"") "}"
#define PLAIN "{\"name\":\"plain\",\"inputSchema\":{\"type\":\"object\"}}"
#define BROKEN "{\"name\":\"broken\"," REGION("\"a b\"") "}"
#define MISMATCH "400 Bad Request", -32020, NULL

static record *list(http_script *s, const char *params, const char *answer)
{
    record *r = kit_start(&s->k, "tools/list", params, NULL);
    script_result(script_expect(s, "tools/list"), "%s", answer);
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    return r;
}

static void begin(http_script *s)
{
    script_begin(s, NULL);
    script_discover(s, SERVER_PLAIN);
}

/* Makes a call with these arguments and checks its headers. */
static heard *call(http_script *s, const char *tool, const char *arguments,
                   const char *region, const char *n)
{
    char params[256];
    snprintf(params, sizeof params, "{\"name\":\"%s\",\"arguments\":%s}", tool,
             arguments);
    kit_start(&s->k, "tools/call", params, NULL);
    heard *h = script_expect(s, "tools/call");
    assert_header(h, "Mcp-Param-Region", region);
    assert_header(h, "Mcp-Param-N", n);
    return h;
}

static void answer(http_script *s, heard *h)
{
    script_result(h, "\"content\":[]");
    script_until(s, s->k.records->completed);
    assert_int_equal(s->k.records->status, SEGUE_OK);
}

static void parameters_are_repeated(void **state)
{
    (void)state;
    http_script s;
    begin(&s);
    /* the tool's parameters are not known yet */
    answer(&s, call(&s, "sql", "{\"region\":\"eu\"}", NULL, NULL));
    list(&s, "{}", "\"tools\":[" SQL "," PLAIN "]");
    answer(&s, call(&s, "sql", "{\"region\":\"eu\",\"n\":42.0}", "eu", "42"));
    answer(&s, call(&s, "sql", "{\"region\":null,\"n\":-1}", NULL, "-1"));
    answer(&s, call(&s, "sql", "{}", NULL, NULL));
    answer(&s,
           call(&s, "sql", "{\"region\":\" x\",\"n\":1e300}", "=?base64?IHg=?=", NULL));
    answer(&s, call(&s, "plain", "{\"region\":\"eu\"}", NULL, NULL));
    list(&s, "{\"cursor\":\"2\"}", "\"tools\":[" PLAIN "]"); /* a later page adds tools */
    answer(&s, call(&s, "sql", "{\"region\":\"eu\"}", "eu", NULL));
    list(&s, NULL, "\"tools\":[" PLAIN "]"); /* the first page starts anew */
    answer(&s, call(&s, "sql", "{\"region\":\"eu\"}", NULL, NULL));
    script_end(&s);
}

static void tools_that_annotate_wrongly_are_left_out(void **state)
{
    (void)state;
    http_script s;
    begin(&s);
    record *r = list(&s, NULL,
                     "\"tools\":[" BROKEN "," SQL "," BROKEN "," PLAIN
                     "],\"nextCursor\":\"n\",\"ttlMs\":1");
    assert_string_equal(json_at(r->result, "tools"), "[" SQL "," PLAIN "]");
    assert_string_equal(json_at(r->result, "nextCursor"), "\"n\"");
    assert_string_equal(json_at(r->result, "ttlMs"), "1");
    assert_string_equal(s.k.last_warning,
                        "tool broken is left out of the list: x-mcp-header has a "
                        "character that an HTTP header name cannot have");
    r = list(&s, NULL, "\"tools\":[" SQL "]");
    assert_string_equal(json_at(r->result, "tools"), "[" SQL "]");
    script_end(&s);
}

/* Over stdio the annotations have no meaning. */
static void other_transports_pass_all_tools(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_start(&k, "tools/list", NULL, NULL);
    kit_result(&k, kit_expect(&k, "tools/list"), "\"tools\":[" BROKEN "]");
    assert_string_equal(json_at(r->result, "tools"), "[" BROKEN "]");
    record *c = kit_call(&k, "t");
    kit_error(&k, kit_expect(&k, "tools/call"), -32020, NULL);
    assert_int_equal(c->rpc_code, -32020);
    kit_end(&k);
}

static void headers_that_do_not_fit_are_looked_up(void **state)
{
    (void)state;
    http_script s;
    begin(&s);
    heard *h = call(&s, "sql", "{\"region\":\"eu\"}", NULL, NULL);
    script_error(h, MISMATCH);
    h = script_expect(&s, "tools/list");
    assert_string_equal(json_at(h->body, "params.cursor"), "");
    script_result(h, "\"tools\":[" PLAIN "],\"nextCursor\":\"two\"");
    h = script_expect(&s, "tools/list");
    assert_string_equal(json_at(h->body, "params.cursor"), "\"two\"");
    script_result(h, "\"tools\":[" SQL "]");
    h = script_expect(&s, "tools/call");
    assert_header(h, "Mcp-Param-Region", "eu");
    script_error(h, MISMATCH); /* the call is retried only once */
    script_until(&s, s.k.records->completed);
    assert_int_equal(s.k.records->status, SEGUE_E_REMOTE);
    assert_int_equal(s.k.records->rpc_code, -32020);
    script_expect_silence(&s);
    /* the tool's parameters are known now */
    answer(&s, call(&s, "sql", "{\"region\":\"us\"}", "us", NULL));
    script_end(&s);
}

static void a_look_up_that_fails_leaves_the_answer(void **state)
{
    (void)state;
    static const char *const statuses[] = {"403 Forbidden", "500 Oops"};
    http_script s;
    begin(&s);
    for (int i = 0; i < 2; i++) {
        script_error(call(&s, "sql", "{}", NULL, NULL), MISMATCH);
        script_say(script_expect(&s, "tools/list"), statuses[i], "", "");
        script_error(script_expect(&s, "tools/call"), MISMATCH);
        script_until(&s, s.k.records->completed);
        assert_int_equal(s.k.records->rpc_code, -32020);
    }
    script_error(call(&s, "sql", "{}", NULL, NULL), MISMATCH);
    heard *h = script_expect(&s, "tools/list");
    script_stream(h);
    script_cut(h, true);
    script_advance(&s, 10);
    script_error(script_expect(&s, "tools/call"), MISMATCH);
    script_until(&s, s.k.records->completed);
    script_error(call(&s, "sql", "{}", NULL, NULL), MISMATCH);
    h = script_expect(&s, "tools/list"); /* a cancel also ends the lookup */
    segue_request_cancel(s.k.records->request);
    script_until(&s, heard_is_closed(h));
    assert_int_equal(s.k.records->status, SEGUE_E_CANCELLED);
    script_end(&s);
}

static char *many_tools(int count, const char *padding)
{
    size_t size = (size_t)count * (200 + strlen(padding)) + 32;
    char *text = malloc(size);
    size_t n = (size_t)snprintf(text, size, "\"tools\":[");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, size - n,
                              "%s{\"name\":\"t%d%s\",\"inputSchema\":{\"properties\":"
                              "{\"region\":{\"type\":\"string\",\"x-mcp-header\":"
                              "\"Region\"}}}}",
                              i ? "," : "", i, padding);
    snprintf(text + n, size - n, "]");
    return text;
}

static void what_is_learnt_is_bounded(void **state)
{
    (void)state;
    http_script s;
    char *tools = many_tools(1001, "");
    begin(&s);
    list(&s, NULL, tools);
    free(tools);
    assert_string_equal(s.k.last_warning,
                        "too many tools: the headers of tool t1000 are not sent");
    answer(&s, call(&s, "t999", "{\"region\":\"eu\"}", "eu", NULL));
    answer(&s, call(&s, "t1000", "{\"region\":\"eu\"}", NULL, NULL));
    size_t before = s.k.mem.live;
    char *padding = calloc(1, 60001);
    memset(padding, 'x', 60000);
    tools = many_tools(40, padding); /* the names together have 2.4 MB */
    list(&s, NULL, tools);
    record_drop(s.k.records);
    assert_true(s.k.mem.live < before + 4 * 1024 * 1024);
    assert_non_null(
        strstr(s.k.last_warning, "too many tools: the headers of tool t39xx"));
    free(tools);
    free(padding);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_repeated),
        cmocka_unit_test(tools_that_annotate_wrongly_are_left_out),
        cmocka_unit_test(other_transports_pass_all_tools),
        cmocka_unit_test(headers_that_do_not_fit_are_looked_up),
        cmocka_unit_test(a_look_up_that_fails_leaves_the_answer),
        cmocka_unit_test(what_is_learnt_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
