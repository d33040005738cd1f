/* segue_item_check: an item is refused where it is declared, with the sentence that
 * segue_server_add has, and the URI of a resource has to be one. */
#include <segue/segue_ext.h>

#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

typedef struct row {
    int32_t item;
    const char *json;
    const char *wanted; /* a part of the error; NULL = the item is valid */
} row;

#define TOOL(name) SEGUE_ITEM_TOOL, "{\"name\":\"" name "\"}"
#define RESOURCE(uri) SEGUE_ITEM_RESOURCE, "{\"name\":\"n\",\"uri\":\"" uri "\"}"
#define TEMPLATE(uri)                                                                    \
    SEGUE_ITEM_RESOURCE_TEMPLATE, "{\"name\":\"n\",\"uriTemplate\":\"" uri "\"}"

static const row rows[] = {
    {TOOL("add"), NULL},
    {TOOL(""), "the member \"name\" of a tool is empty"},
    {TOOL("a\\\"b"), "the member \"name\" of a tool cannot have quotes"},
    {SEGUE_ITEM_TOOL, "{\"name\":5}", "a tool needs a member \"name\""},
    {SEGUE_ITEM_TOOL, "{\"name\":\"a\",\"inputSchema\":{}}", "\"type\": \"object\""},
    {SEGUE_ITEM_TOOL, "{\"name\":", "at byte 8"},
    {SEGUE_ITEM_PROMPT, "{\"name\":\"p\",\"title\":5}", "prompt p: \"title\""},
    {RESOURCE("data://notes"), NULL},
    {RESOURCE("urn:isbn:1"), NULL},
    {RESOURCE("a+b-c.9:x"), NULL},
    {RESOURCE("d://k\xc3\xa4se/%c3%a4"), NULL},
    {RESOURCE("nouri"), "resource nouri: it has no scheme"},
    {RESOURCE(":x"), "it has no scheme"},
    {RESOURCE("1a://x"), "it has no scheme"},
    {RESOURCE("a/b:c"), "it has no scheme"},
    {RESOURCE("a b://x"), "resource a b://x: it has a blank"},
    {RESOURCE("a://x|y"), "it has a blank or another character"},
    {RESOURCE("a://{x}"), "it has a blank or another character"},
    {RESOURCE("a://%4"), "two hexadecimal digits"},
    {RESOURCE("a://%g0"), "two hexadecimal digits"},
    {TEMPLATE("a://{p}"), NULL},
    {TEMPLATE("a://{+p}/%20{q}"), NULL},
    {TEMPLATE("{s}://x"), NULL},
    {TEMPLATE("x{s}://x"), NULL},
    {TEMPLATE(""), "the member \"uriTemplate\" of a resource template is empty"},
    {TEMPLATE("nouri/{p}"), "it has no scheme"},
    {TEMPLATE("a b://{p}"), "it has a blank"},
    {TEMPLATE("a://{p}/{p}"),
     "resource template a://{p}/{p}: {p}: a variable is used twice"},
    {TEMPLATE("a://{a}{b}"), "there is no text between two variables"},
    {TEMPLATE("a://{"), "resource template a://{: {: a brace is not closed"},
    {TEMPLATE("a://}"), "a brace is not opened"},
    {TEMPLATE("a://{p*}"), "{p*}: only {name} and {+name} are supported"},
    {TEMPLATE("a://{?x,y}"), "{?x,y}: only {name} and {+name} are supported"},
};

static void check_row(const row *r)
{
    const char *advice = "unchanged";
    segue_error *error = NULL;
    segue_status status =
        segue_item_check(r->item, r->json, SEGUE_TO_NUL, NULL, &advice, &error);
    const char *text = segue_error_read(error)->message;
    bool is_right = r->wanted ? status != SEGUE_OK && strstr(text, r->wanted) &&
                                    !strcmp(advice, "unchanged")
                              : status == SEGUE_OK && !advice;
    if (!is_right)
        fail_msg("%s: %d %s", r->json, (int)status, text);
    segue_error_free(error);
}

static void refuses_with_a_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
}

static const char *advice_for(const char *name)
{
    char json[256];
    const char *advice = NULL;
    snprintf(json, sizeof json, "{\"name\":\"%s\"}", name);
    assert_int_equal(
        segue_item_check(SEGUE_ITEM_TOOL, json, SEGUE_TO_NUL, NULL, &advice, NULL),
        SEGUE_OK);
    return advice;
}

static void advises_names_of_tools(void **state)
{
    char name[130];
    (void)state;
    memset(name, 'a', sizeof name);
    name[129] = 0;
    assert_non_null(advice_for(name));
    name[128] = 0;
    assert_null(advice_for(name));
    assert_null(advice_for("Az_09-b.c"));
    assert_non_null(advice_for("a b"));
    assert_non_null(advice_for("a,b"));
    assert_non_null(advice_for("k\xc3\xa4se"));
}

static void checks_options(void **state)
{
    static const char tool[] = "{\"name\":\"a\"}";
    const char *advice;
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    segue_error *error = NULL;
    (void)state;
    options.poll_ms = -1;
    assert_int_equal(
        segue_item_check(SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &options, &advice, &error),
        SEGUE_E_INVALID);
    assert_non_null(strstr(segue_error_read(error)->message, "poll_ms"));
    segue_error_free(error);
    options.poll_ms = 0;
    options.scopes = "a\"b";
    assert_int_equal(
        segue_item_check(SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, &options, &advice, &error),
        SEGUE_E_INVALID);
    assert_non_null(strstr(segue_error_read(error)->message, "scopes"));
    segue_error_free(error);
    assert_int_equal(segue_item_check(9, tool, SEGUE_TO_NUL, NULL, &advice, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(
        segue_item_check(SEGUE_ITEM_TOOL, NULL, SEGUE_TO_NUL, NULL, &advice, NULL),
        SEGUE_E_INVALID);
    assert_int_equal(
        segue_item_check(SEGUE_ITEM_TOOL, tool, SEGUE_TO_NUL, NULL, NULL, NULL),
        SEGUE_E_INVALID);
}

static void checks_options_of_servers(void **state)
{
    (void)state;
    segue_error *error = NULL;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    assert_int_equal(segue_server_check(NULL, NULL), SEGUE_E_INVALID);
    options.max_tasks = 3;
    assert_int_equal(segue_server_check(&options, &error), SEGUE_OK);
    assert_null(error);
    options.max_tasks = -5;
    assert_int_equal(segue_server_check(&options, &error), SEGUE_E_INVALID);
    assert_string_equal(segue_error_read(error)->message,
                        "the server option max_tasks is -5: it has to be at least 0");
    segue_error_free(error);
    assert_int_equal(segue_server_check(&options, NULL), SEGUE_E_INVALID);
    /* a member of a later version that the application has set */
    struct {
        segue_server_options known;
        char later[16];
    } newer = {.known = SEGUE_SERVER_OPTIONS_INIT};
    newer.known.struct_size = sizeof newer;
    assert_int_equal(segue_server_check(&newer.known, NULL), SEGUE_OK);
    newer.later[3] = 1;
    assert_int_equal(segue_server_check(&newer.known, NULL), SEGUE_E_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_with_a_sentence),
        cmocka_unit_test(advises_names_of_tools),
        cmocka_unit_test(checks_options),
        cmocka_unit_test(checks_options_of_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
