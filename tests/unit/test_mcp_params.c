/* Which parameters of a tool go into headers, and which definitions are refused
 * (2026-07-28 basic/transports/streamable-http, "Schema Extension"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/test_mem.h"
#include "wire/mcp_params.h"

static test_mem tm;
static sgi_mcp_params params;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    sgi_mcp_params_init(&params, &tm.mem);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_mcp_params_free(&params);
    assert_int_equal(tm.live, 0);
    return 0;
}

static sgi_mcp_fault read_schema(const char *schema)
{
    return sgi_mcp_params_read(&params, sgi_str_of(schema));
}

static void check_param(size_t index, const char *name, const char *arguments,
                        const char *value)
{
    sgi_json found = sgi_mcp_params_find_argument(&params, index, sgi_str_of(arguments));
    assert_true(sgi_str_eq(sgi_mcp_params_name(&params, index), sgi_str_of(name)));
    assert_true(sgi_str_eq(found, sgi_str_of(value)));
}

static void annotated_properties_are_found(void **state)
{
    (void)state;
    assert_int_equal(
        read_schema(
            "{\"type\":\"object\",\"properties\":{"
            "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
            "\"query\":{\"type\":\"string\"},"
            "\"n\":{\"x-mcp-header\":\"Method\",\"type\":\"integer\"},"
            "\"dry\":{\"type\":\"boolean\",\"x-mcp-header\":\"!#$%&'*+-.^_`|~9z\"}"
            "},\"required\":[\"region\"],\"additionalProperties\":false}"),
        SGI_MCP_FAULT_NONE);
    assert_int_equal(sgi_mcp_params_count(&params), 3);
    const char *arguments = "{\"query\":\"q\",\"n\": 42 ,\"region\":\"us\"}";
    check_param(0, "Region", arguments, "\"us\"");
    check_param(1, "Method", arguments, "42");
    check_param(2, "!#$%&'*+-.^_`|~9z", arguments, "");
}

static void nested_properties_are_found_by_their_path(void **state)
{
    (void)state;
    assert_int_equal(
        read_schema("{\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{"
                    "\"b/\\\"\\u0000\":{\"properties\":{"
                    "\"\":{\"type\":\"string\",\"x-mcp-header\":\"Deep\"}}}}},"
                    "\"c\":{\"type\":\"string\",\"x-mcp-header\":\"C\"}}}"),
        SGI_MCP_FAULT_NONE);
    assert_int_equal(sgi_mcp_params_count(&params), 2);
    const char *arguments = "{\"a\":{\"x\":1,\"b\\/\\u0022\\u0000\":{\"\":\"v\"}}}";
    check_param(0, "Deep", arguments, "\"v\"");
    check_param(1, "C", arguments, "");
    check_param(0, "Deep", "{\"a\":{\"b/\":{\"\":\"v\"}}}", "");
    check_param(0, "Deep", "{\"a\":null}", "");
    check_param(0, "Deep", "{\"a\":[{\"b\":1}]}", "");
    check_param(0, "Deep", "{\"\":\"v\"}", "");
    check_param(0, "Deep", "{}", "");
    check_param(0, "Deep", "", "");
    check_param(1, "C", "{\"c\":null}", "null");
}

static void schemas_without_annotation_are_fine(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "true",
        "",
        "{\"properties\":true}",
        "{\"properties\":{\"a\":true,\"b\":{}}}",
        "{\"properties\":[{\"x-mcp-header\":\"A\"}]}",
        /* A parameter with that name, and values that look like an annotation. */
        "{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"}}}",
        "{\"$defs\":{\"x-mcp-header\":{\"type\":\"string\"}}}",
        "{\"properties\":{\"a\":{\"default\":{\"x-mcp-header\":1},"
        "\"const\":{\"x-mcp-header\":1},\"enum\":[{\"x-mcp-header\":1}],"
        "\"examples\":[{\"x-mcp-header\":1}]}}}",
        "{\"description\":\"x-mcp-header\",\"required\":[\"x-mcp-header\"]}",
        "{\"X-Mcp-Header\":\"A\"}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(read_schema(rows[i]), SGI_MCP_FAULT_NONE);
        assert_int_equal(sgi_mcp_params_count(&params), 0);
    }
    assert_int_equal(tm.calls, 0);
}

/* Reads a schema whose property `p` has these members. */
static sgi_mcp_fault read_property(const char *members)
{
    static char schema[512]; /* the `where` of a fault points into it */
    snprintf(schema, sizeof schema,
             "{\"properties\":{\"ok\":{\"type\":\"string\",\"x-mcp-header\":\"Taken\"},"
             "\"p\":{%s}}}",
             members);
    return read_schema(schema);
}

static void check_refused(sgi_mcp_fault found, sgi_mcp_fault expected, const char *where)
{
    assert_int_equal(found, expected);
    assert_true(sgi_str_eq(params.where, sgi_str_of(where)));
    assert_int_equal(sgi_mcp_params_count(&params), 0);
    assert_true(strlen(sgi_mcp_fault_text(found)) > 8);
}

static void bad_names_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        sgi_mcp_fault fault;
    } rows[] = {
        {"\"\"", SGI_MCP_FAULT_NAME_EMPTY},
        {"\"My Region\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"Region:Primary\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"R\xc3\xa9gion\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"Region\\t1\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"Region\\r\\n\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"a\\u0000\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"(a)\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"[\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"@\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"{\"", SGI_MCP_FAULT_NAME_TOKEN},
        {"\"Taken\"", SGI_MCP_FAULT_DUPLICATE},
        {"\"tAKEN\"", SGI_MCP_FAULT_DUPLICATE},
        {"\"\\u0054aken\"", SGI_MCP_FAULT_DUPLICATE},
        {"1", SGI_MCP_FAULT_NAME_KIND},
        {"null", SGI_MCP_FAULT_NAME_KIND},
        {"{}", SGI_MCP_FAULT_NAME_KIND},
    };
    char members[128];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(members, sizeof members, "\"type\":\"string\",\"x-mcp-header\":%s",
                 rows[i].name);
        check_refused(read_property(members), rows[i].fault, "p");
    }
    assert_int_equal(read_property("\"type\":\"string\",\"x-mcp-header\":\"^\""),
                     SGI_MCP_FAULT_NONE);
    assert_int_equal(sgi_mcp_params_count(&params), 2);
}

static void only_strings_integers_and_booleans_are_annotated(void **state)
{
    (void)state;
    static const char *const types[] = {
        "\"number\"", "\"object\"", "\"array\"",
        "\"null\"",   "\"String\"", "[\"string\",\"null\"]",
        "1",
    };
    char members[128];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(members, sizeof members, "\"x-mcp-header\":\"A\",\"type\":%s", types[i]);
        check_refused(read_property(members), SGI_MCP_FAULT_TYPE, "p");
    }
    check_refused(read_property("\"x-mcp-header\":\"A\""), SGI_MCP_FAULT_TYPE, "p");
}

#define NAMED "{\"type\":\"string\",\"x-mcp-header\":\"A\"}"

static void annotations_off_the_chain_of_properties_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *where;
    } rows[] = {
        {NAMED, ""},
        {"{\"properties\":{\"p\":{\"type\":\"array\",\"items\":" NAMED "}}}", "items"},
        {"{\"items\":[true," NAMED "]}", "items"},
        {"{\"prefixItems\":[" NAMED "]}", "prefixItems"},
        {"{\"contains\":" NAMED "}", "contains"},
        {"{\"oneOf\":[{\"properties\":{\"p\":" NAMED "}}]}", "p"},
        {"{\"anyOf\":[" NAMED "]}", "anyOf"},
        {"{\"allOf\":[{},{\"properties\":{\"p\":" NAMED "}}]}", "p"},
        {"{\"not\":" NAMED "}", "not"},
        {"{\"if\":" NAMED "}", "if"},
        {"{\"then\":{\"properties\":{\"p\":" NAMED "}}}", "p"},
        {"{\"else\":" NAMED "}", "else"},
        {"{\"additionalProperties\":" NAMED "}", "additionalProperties"},
        {"{\"patternProperties\":{\"^a\":" NAMED "}}", "^a"},
        {"{\"dependentSchemas\":{\"d\":" NAMED "}}", "d"},
        {"{\"$defs\":{\"d\":" NAMED "}}", "d"},
        {"{\"definitions\":{\"d\":{\"properties\":{\"p\":" NAMED "}}}}", "p"},
        {"{\"properties\":{\"$defs\":" NAMED "},\"x-mine\":{\"d\":" NAMED "}}", "d"},
        {"{\"properties\":{\"p\":{\"oneOf\":[" NAMED "]}}}", "oneOf"},
        {"{\"\\u006eot\":{\"x-mcp-\\u0068eader\":\"A\"}}", "\\u006eot"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_refused(read_schema(rows[i].schema), SGI_MCP_FAULT_PLACE, rows[i].where);
    /* Keywords count only at places where a schema may stand. */
    assert_int_equal(read_schema("{\"properties\":{\"not\":" NAMED "}}"),
                     SGI_MCP_FAULT_NONE);
    check_param(0, "A", "{\"not\":\"x\"}", "\"x\"");
}

/* ---- limits ---- */

static void add_text(sgi_buf *buf, const char *text)
{
    sgi_buf_add_str(buf, sgi_str_of(text));
}

static sgi_mcp_fault read_many(size_t count)
{
    sgi_buf schema;
    sgi_buf_init(&schema, &sgi_mem_libc);
    add_text(&schema, "{\"properties\":{");
    for (size_t i = 0; i < count; i++) {
        char one[128];
        snprintf(one, sizeof one,
                 "%s\"p%zu\":{\"type\":\"string\",\"x-mcp-header\":\"h%zu\"}",
                 i ? "," : "", i, i);
        add_text(&schema, one);
    }
    add_text(&schema, "}}");
    sgi_mcp_fault fault = sgi_mcp_params_read(&params, sgi_buf_str(&schema));
    params.where = (sgi_str){0}; /* it points into the schema */
    sgi_buf_free(&schema);
    return fault;
}

static void there_is_a_limit_to_their_number(void **state)
{
    (void)state;
    assert_int_equal(read_many(SGI_MCP_MAX_PARAMS), SGI_MCP_FAULT_NONE);
    assert_int_equal(sgi_mcp_params_count(&params), SGI_MCP_MAX_PARAMS);
    check_param(63, "h63", "{\"p6\":1,\"p63\":2}", "2");
    assert_int_equal(read_many(SGI_MCP_MAX_PARAMS + 1), SGI_MCP_FAULT_COUNT);
    assert_int_equal(sgi_mcp_params_count(&params), 0);
    assert_int_equal(tm.live, 0);
}

/* A long key above many parameters is part of the path of each. */
static void there_is_a_limit_to_their_text(void **state)
{
    (void)state;
    for (size_t len = 1000; len <= 30000; len += 29000) {
        sgi_buf schema;
        sgi_buf_init(&schema, &sgi_mem_libc);
        add_text(&schema, "{\"properties\":{\"");
        for (size_t i = 0; i < len; i++)
            sgi_buf_add_char(&schema, 'k');
        add_text(&schema, "\":{\"properties\":{");
        add_text(&schema, "\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},");
        add_text(&schema, "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"B\"},");
        add_text(&schema, "\"c\":{\"type\":\"string\",\"x-mcp-header\":\"C\"}}}}}");
        assert_int_equal(sgi_mcp_params_read(&params, sgi_buf_str(&schema)),
                         len < 2000 ? SGI_MCP_FAULT_NONE : SGI_MCP_FAULT_COUNT);
        assert_true(tm.peak <= 3 * SGI_MCP_MAX_PARAM_TEXT);
        sgi_buf_free(&schema);
    }
}

/* The buffer has just enough room for the name, and no room for the path. */
static void the_limit_to_their_text_holds_at_its_end(void **state)
{
    (void)state;
    for (size_t left = 0; left < 12; left++) {
        sgi_buf schema;
        sgi_buf_init(&schema, &sgi_mem_libc);
        add_text(&schema,
                 "{\"properties\":{\"p\":{\"type\":\"string\",\"x-mcp-header\":\"");
        for (size_t i = 2 + left; i < SGI_MCP_MAX_PARAM_TEXT; i++)
            sgi_buf_add_char(&schema, 'h');
        add_text(&schema, "\"}}}");
        sgi_mcp_fault fault = sgi_mcp_params_read(&params, sgi_buf_str(&schema));
        assert_int_equal(fault, left < 5 ? SGI_MCP_FAULT_COUNT : SGI_MCP_FAULT_NONE);
        sgi_buf_free(&schema);
    }
}

static sgi_mcp_fault read_deep(size_t depth, const char *opening, const char *closing)
{
    sgi_buf schema;
    sgi_buf_init(&schema, &sgi_mem_libc);
    for (size_t i = 0; i < depth; i++)
        add_text(&schema, opening);
    add_text(&schema, "{\"type\":\"string\"}");
    for (size_t i = 0; i < depth; i++)
        add_text(&schema, closing);
    sgi_mcp_fault fault = sgi_mcp_params_read(&params, sgi_buf_str(&schema));
    params.where = (sgi_str){0};
    sgi_buf_free(&schema);
    return fault;
}

static void there_is_a_limit_to_the_depth_of_a_schema(void **state)
{
    (void)state;
    size_t most = SGI_MCP_MAX_SCHEMA_DEPTH;
    static const char *const rows[][2] = {{"{\"properties\":{\"p\":", "}}"},
                                          {"{\"not\":", "}"},
                                          {"{\"anyOf\":[", "]}"},
                                          {"{\"$defs\":{\"d\":", "}}"}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(read_deep(most, rows[i][0], rows[i][1]), SGI_MCP_FAULT_NONE);
        assert_int_equal(read_deep(most + 1, rows[i][0], rows[i][1]),
                         SGI_MCP_FAULT_DEPTH);
        assert_int_equal(read_deep(100 * 1000, rows[i][0], rows[i][1]),
                         SGI_MCP_FAULT_DEPTH);
    }
}

static void without_memory_there_is_no_parameter(void **state)
{
    (void)state;
    bool refused = true;
    for (size_t k = 1; refused; k++) {
        test_mem_rearm(&tm);
        tm.fail_at = k;
        sgi_mcp_fault fault = read_many(40);
        refused = tm.failed != 0;
        assert_int_equal(fault, refused ? SGI_MCP_FAULT_NOMEM : SGI_MCP_FAULT_NONE);
        assert_int_equal(sgi_mcp_params_count(&params), refused ? 0 : 40);
        assert_true(k < 50);
    }
    assert_true(tm.calls >= 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(annotated_properties_are_found),
        CASE(nested_properties_are_found_by_their_path),
        CASE(schemas_without_annotation_are_fine),
        CASE(bad_names_are_refused),
        CASE(only_strings_integers_and_booleans_are_annotated),
        CASE(annotations_off_the_chain_of_properties_are_refused),
        CASE(there_is_a_limit_to_their_number),
        CASE(there_is_a_limit_to_their_text),
        CASE(the_limit_to_their_text_holds_at_its_end),
        CASE(there_is_a_limit_to_the_depth_of_a_schema),
        CASE(without_memory_there_is_no_parameter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
