/* Results of tools compared with the schemas of tools/list, on the client's side
 * ("Clients SHOULD validate structured results against this schema"): plain results,
 * polled and streamed tasks, both eras, and results that are not checked. */
#include "support/client_kit.h"
#include "support/small_validator.h"
#include "support/world.h"

#include "engine/client/tool_schemas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SCHEMA                                                                           \
    "{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"n\":{\"type\":"         \
    "\"integer\"}}}"
#define TOOL                                                                             \
    "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":" SCHEMA "}"
#define TOOLS                                                                            \
    "\"tools\":[" TOOL ",{\"name\":\"u\",\"inputSchema\":{\"type\":\"object\"}}]"
#define HINTS "\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\","
#define GIVES(structured)                                                                \
    "\"resultType\":\"complete\",\"content\":[],\"structuredContent\":" structured

static void learn(kit *k)
{
    kit_start(k, "tools/list", NULL, NULL);
    kit_result(k, kit_expect(k, "tools/list"), HINTS TOOLS);
}

static void begin(kit *k)
{
    k->validate = small_validate;
    small_validations(SEGUE_VALIDATE_RESULT);
    kit_begin_modern(k, NULL, SERVER_STREAMS);
}

static record *call(kit *k, const char *tool, const char *result)
{
    record *r = kit_call(k, tool);
    kit_result(k, kit_expect(k, "tools/call"), "%s", result);
    assert_int_equal(r->completed, 1);
    return r;
}

static void results_are_checked(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    learn(&k);
    assert_int_equal(call(&k, "t", GIVES("{\"n\":1}"))->status, SEGUE_OK);
    record *r = call(&k, "t", GIVES("{\"n\":\"1\"}"));
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    assert_string_equal(r->message, "the result does not fit the tool's outputSchema: "
                                    "\"n\" is no integer");
    /* the segments that came are there */
    assert_non_null(strstr(r->result, "\"n\":\"1\""));
    r = call(&k, "t", "\"resultType\":\"complete\",\"content\":[]");
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    assert_non_null(strstr(r->message, "the result has no structuredContent"));
    assert_int_equal(small_validations(SEGUE_VALIDATE_RESULT), 2);
    kit_end(&k);
}

static void what_is_not_promised_is_not_checked(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    /* no schema is known yet */
    assert_int_equal(call(&k, "t", GIVES("7"))->status, SEGUE_OK);
    learn(&k);
    assert_int_equal(call(&k, "u", GIVES("7"))->status, SEGUE_OK);
    assert_int_equal(
        call(&k, "t", "\"resultType\":\"complete\",\"content\":[],\"isError\":true")
            ->status,
        SEGUE_OK);
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    /* the schema is not known any more */
    assert_int_equal(call(&k, "t", GIVES("7"))->status, SEGUE_OK);
    assert_int_equal(small_validations(SEGUE_VALIDATE_RESULT), 0);
    kit_end(&k);
}

static void without_a_validator_nothing_is(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    learn(&k);
    assert_int_equal(call(&k, "t", GIVES("7"))->status, SEGUE_OK);
    kit_end(&k);
}

static void what_cannot_be_told_does_not_pass(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    kit_start(&k, "tools/list", NULL, NULL);
    kit_result(&k, kit_expect(&k, "tools/list"),
               HINTS "\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"},"
                     "\"outputSchema\":{\"$ref\":\"https://x.example/\"}}]");
    assert_int_equal(call(&k, "t", GIVES("{}"))->status, SEGUE_E_PROTOCOL);
    kit_end(&k);
}

static void a_later_page_adds(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    learn(&k);
    kit_start(&k, "tools/list", "{\"cursor\":\"c\"}", NULL);
    kit_result(&k, kit_expect(&k, "tools/list"),
               HINTS "\"tools\":[{\"name\":\"u\",\"inputSchema\":{\"type\":\"object\"},"
                     "\"outputSchema\":" SCHEMA "}]");
    assert_int_equal(call(&k, "t", GIVES("7"))->status, SEGUE_E_PROTOCOL);
    assert_int_equal(call(&k, "u", GIVES("7"))->status, SEGUE_E_PROTOCOL);
    kit_start(&k, "tools/list", NULL, NULL); /* the first page starts the list anew */
    kit_result(&k, kit_expect(&k, "tools/list"), HINTS "\"tools\":[" TOOL "]");
    assert_int_equal(call(&k, "t", GIVES("7"))->status, SEGUE_E_PROTOCOL);
    assert_int_equal(call(&k, "u", GIVES("7"))->status, SEGUE_OK);
    kit_end(&k);
}

static void results_of_tasks_are_checked(void **state)
{
    (void)state;
    kit k = {0};
    k.validate = small_validate;
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    learn(&k);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "completed") ",\"result\":{\"content\":[],"
                                      "\"structuredContent\":{\"n\":false}}");
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    kit_end(&k);
}

/* All pieces are merged before the check. */
static void results_of_streams_are_checked(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    learn(&k);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    const char *stream = kit_expect(&k, "tasks/stream");
    kit_segment(&k, "T", 0, 1, "piece");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\","
                "\"params\":{\"seq\":1,\"taskId\":\"T\",\"type\":\"dev.segue.fields\","
                "\"payload\":{\"structuredContent\":{\"n\":[]}}}}");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->segments, 1);
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    assert_non_null(strstr(r->result, "piece"));
    kit_end(&k);
}

/* Here the session fetches the list of tools itself, and learns the schemas from it. */
static void results_of_2025_11_25_are_checked(void **state)
{
    (void)state;
    kit k = {.validate = small_validate};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/list"), TOOLS);
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"content\":[],\"structuredContent\":{\"n\":null}");
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    kit_end(&k);
}

static void say_tools(sgi_buf *out, int from, int count, int padding)
{
    char text[64];
    sgi_buf_truncate(out, 0);
    sgi_buf_add_lit(out, "{\"tools\":[");
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%s{\"name\":\"t%d\",\"outputSchema\":{\"x\":\"",
                 i ? "," : "", from + i);
        sgi_buf_add_str(out, sgi_str_of(text));
        for (int j = 0; j < padding; j++)
            sgi_buf_add_char(out, 'x');
        sgi_buf_add_lit(out, "\"}}");
    }
    sgi_buf_add_lit(out, "]}");
}

static void host_log(void *user, int32_t level, const char *text)
{
    (void)text;
    *(int *)user += level == SEGUE_LOG_WARNING;
}

static int64_t no_time(void *user)
{
    (void)user;
    return 0;
}

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

/* Number and bytes are bounded. A schema that finds no room is not checked, and the log
 * says so. */
static void schemas_are_bounded(void **state)
{
    (void)state;
    test_mem tm;
    segue_hooks hooks = {
        .monotonic_ms = no_time, .wall_ms = no_time, .random = no_chance};
    int warnings = 0;
    test_mem_init(&tm);
    sgi_engine engine = {.env = {&tm.mem, &hooks},
                         .host = {.user = &warnings, .log = host_log}};
    sgi_tool_schemas schemas;
    sgi_buf page;
    sgi_buf_init(&page, &tm.mem);
    sgi_tool_schemas_init(&schemas, &engine, true);
    say_tools(&page, 0, SGI_TOOL_SCHEMAS_MAX, 1);
    sgi_tool_schemas_learn(&schemas, sgi_buf_str(&page), true);
    assert_int_equal(schemas.tools.count, SGI_TOOL_SCHEMAS_MAX);
    assert_int_equal(warnings, 0);
    say_tools(&page, 2000, 1, 1);
    sgi_tool_schemas_learn(&schemas, sgi_buf_str(&page), false);
    assert_int_equal(warnings, 1);
    assert_int_equal(sgi_tool_schemas_find(&schemas, SGI_STR("t2000")).n, 0);
    say_tools(&page, 0, 20, 100000);
    sgi_tool_schemas_learn(&schemas, sgi_buf_str(&page), true);
    assert_int_equal(schemas.tools.count, 10);
    assert_true(schemas.bytes <= SGI_TOOL_SCHEMAS_BYTES);
    assert_int_equal(warnings, 11);
    say_tools(&page, 0, 1, 5); /* a smaller schema replaces it */
    sgi_tool_schemas_learn(&schemas, sgi_buf_str(&page), false);
    assert_int_equal(sgi_tool_schemas_find(&schemas, SGI_STR("t0")).n, 13);
    sgi_tool_schemas_free(&schemas);
    sgi_buf_free(&page);
    assert_int_equal(tm.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_checked),
        cmocka_unit_test(what_is_not_promised_is_not_checked),
        cmocka_unit_test(without_a_validator_nothing_is),
        cmocka_unit_test(what_cannot_be_told_does_not_pass),
        cmocka_unit_test(a_later_page_adds),
        cmocka_unit_test(results_of_tasks_are_checked),
        cmocka_unit_test(results_of_streams_are_checked),
        cmocka_unit_test(results_of_2025_11_25_are_checked),
        cmocka_unit_test(schemas_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
