/* How long results stay fresh, and for whom, as a server declares it (SEP-2549,
 * 2026-07-28 server/utilities/caching): by default, by its options, and by its
 * handlers. */
#include "support/legacy_wire.h"
#include "support/world.h"

#include <segue/segue.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static const char *const lists[] = {"server/discover", "tools/list", "prompts/list",
                                    "resources/list", "resources/templates/list"};

static void expect(const char *response, const char *ttl, const char *scope)
{
    assert_at(response, "result.ttlMs", ttl);
    assert_at(response, "result.cacheScope", scope);
}

static void nothing_is_fresh_until_told_otherwise(world *w)
{
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        expect(wire_do(c, "1", lists[i], NULL, NULL), "0", "\"private\"");
    expect(wire_do(c, "2", "resources/read", "\"uri\":\"test://static-text\"", NULL), "0",
           "\"private\"");
}

static void a_minute(segue_server_options *options)
{
    options->list_ttl_ms = 60000;
    options->list_scope = SEGUE_CACHE_PUBLIC;
    options->page_size = 2;
}

static void lists_are_as_fresh_as_the_server_says(world *w)
{
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        expect(wire_do(c, "1", lists[i], NULL, NULL), "60000", "\"public\"");
    /* "the same cacheScope to all response pages" */
    char params[400];
    const char *r = wire_do(c, "2", "tools/list", NULL, NULL);
    snprintf(params, sizeof params, "\"cursor\":%s", json_at(r, "result.nextCursor"));
    expect(wire_do(c, "3", "tools/list", params, NULL), "60000", "\"public\"");
    wire *old = legacy_connect(w, NULL, NULL);
    expect(wire_do_plain(old, "4", "tools/list", NULL), "", "");
    wire_ask(c, "5", "tools/list", "\"cursor\":\"no\"", NULL);
    assert_at(wire_response(c, "5"), "error.data", "");
}

/* ---- resources ---- */

static segue_status field_said;

static void read_it(void *user, segue_call *call)
{
    world *w = user;
    segue_content *content;
    const char *uri = segue_call_name(call);
    const char *hint = strchr(uri, '?');
    field_said = SEGUE_OK;
    if (hint && !strncmp(hint, "?ttl=", 5))
        field_said =
            segue_call_set_field(call, "ttlMs", hint + 5, strlen(hint + 5), NULL);
    if (hint && !strncmp(hint, "?scope=", 7)) {
        char quoted[40];
        snprintf(quoted, sizeof quoted, "\"%s\"", hint + 7);
        field_said =
            segue_call_set_field(call, "cacheScope", quoted, strlen(quoted), NULL);
    }
    assert_int_equal(segue_content_new(w->runtime, &content), SEGUE_OK);
    segue_content_add_resource_text(content, uri, NULL, "x", 1, NULL);
    assert_int_equal(segue_call_complete(call, content, NULL), SEGUE_OK);
    segue_content_free(content);
    segue_call_free(call);
}

static void add_template(world *w)
{
    static const char json[] = "{\"uriTemplate\":\"aged:{+rest}\",\"name\":\"aged\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = read_it;
    options.user = w;
    options.read_ttl_ms = 7000;
    options.read_scope = SEGUE_CACHE_PUBLIC;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_RESOURCE_TEMPLATE, json,
                                      sizeof json - 1, &options, NULL),
                     SEGUE_OK);
}

static void what_is_read_is_as_fresh_as_its_item_says(world *w)
{
    wire *c = world_connect(w, NULL);
    add_template(w);
    const char *r = wire_do(c, "1", "resources/read", "\"uri\":\"aged:x\"", NULL);
    assert_golden(r, "read_fresh");
    r = wire_do(c, "2", "resources/read", "\"uri\":\"aged:x?ttl=5\"", NULL);
    expect(r, "5", "\"public\""); /* each of them may be declared otherwise */
    r = wire_do(c, "3", "resources/read", "\"uri\":\"aged:x?scope=private\"", NULL);
    expect(r, "7000", "\"private\"");
    wire *old = legacy_connect(w, NULL, NULL);
    expect(wire_do_plain(old, "4", "resources/read", "\"uri\":\"aged:x\""), "", "");
}

static void hints_that_are_none_are_refused(world *w)
{
    static const char *const bad[] = {"ttl=-1",    "ttl=1.5",   "ttl=%22x%22", "ttl=null",
                                      "ttl=91e14", "ttl=1e400", "scope=all",   "scope="};
    wire *c = world_connect(w, NULL);
    add_template(w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char params[80];
        snprintf(params, sizeof params, "\"uri\":\"aged:x?%s\"", bad[i]);
        const char *r = wire_do(c, "1", "resources/read", params, NULL);
        expect(r, "7000", "\"public\"");
        if (field_said != SEGUE_E_INVALID && field_said != SEGUE_E_JSON)
            fail_msg("%s: %s", bad[i], segue_status_name(field_said));
    }
}

static segue_status serve_with(world *w, int64_t ttl_ms, int32_t scope)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_server *server = NULL;
    options.list_ttl_ms = ttl_ms;
    options.list_scope = scope;
    segue_status status = segue_server_new(w->runtime, &options, &server, NULL);
    segue_server_free(server);
    return status;
}

static segue_status add_with(world *w, int32_t item, int64_t ttl_ms, int32_t scope)
{
    static const char json[] = "{\"name\":\"n\",\"uri\":\"n:n\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = read_it;
    options.read_ttl_ms = ttl_ms;
    options.read_scope = scope;
    return segue_server_add(w->server, item, json, sizeof json - 1, &options, NULL);
}

static void options_that_are_none_are_refused(world *w)
{
    assert_int_equal(serve_with(w, -1, 0), SEGUE_E_INVALID);
    assert_int_equal(serve_with(w, INT64_C(1) << 53, 0), SEGUE_E_INVALID);
    assert_int_equal(serve_with(w, 0, 2), SEGUE_E_INVALID);
    assert_int_equal(serve_with(w, 0, -1), SEGUE_E_INVALID);
    assert_int_equal(serve_with(w, (INT64_C(1) << 53) - 1, 1), SEGUE_OK);
    assert_int_equal(add_with(w, SEGUE_ITEM_RESOURCE, -1, 0), SEGUE_E_INVALID);
    assert_int_equal(add_with(w, SEGUE_ITEM_RESOURCE, 0, 7), SEGUE_E_INVALID);
    assert_int_equal(add_with(w, SEGUE_ITEM_TOOL, 1, 0), SEGUE_E_INVALID);
    assert_int_equal(add_with(w, SEGUE_ITEM_PROMPT, 0, 1), SEGUE_E_INVALID);
    assert_int_equal(add_with(w, SEGUE_ITEM_RESOURCE, 1, 1), SEGUE_OK);
}

/* ---- results of rounds ---- */

static void answered(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len)
{
    (void)status, (void)json, (void)len;
    read_it(user, call);
}

static void ask_first(void *user, segue_call *call)
{
    static const char form[] =
        "{\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}";
    assert_int_equal(segue_call_require_input(call, NULL, "elicitation/create", form,
                                              sizeof form - 1, answered, user, NULL,
                                              NULL),
                     SEGUE_OK);
}

/* "interim results are not cacheable", and results that depend on answers must not be
 * kept. */
static void what_came_of_answers_is_not_fresh(world *w)
{
    static const char json[] = "{\"uri\":\"aged:asks\",\"name\":\"asks\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    wire *c = world_connect(w, NULL);
    options.on_call = ask_first;
    options.user = w;
    options.read_ttl_ms = 7000;
    options.read_scope = SEGUE_CACHE_PUBLIC;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_RESOURCE, json,
                                      sizeof json - 1, &options, NULL),
                     SEGUE_OK);
    const char *r = wire_do(c, "1", "resources/read", "\"uri\":\"aged:asks\"", CAPS_ALL);
    assert_at(r, "result.resultType", "\"input_required\"");
    expect(r, "", "");
    size_t size = strlen(r) + 200;
    char *params = malloc(size);
    snprintf(params, size,
             "\"uri\":\"aged:asks\",\"requestState\":%s,\"inputResponses\":{\"input-1\":{"
             "\"action\":\"accept\",\"content\":{}}}",
             json_at(r, "result.requestState"));
    r = wire_do(c, "2", "resources/read", params, CAPS_ALL);
    free(params);
    assert_at(r, "result.contents.0.text", "\"x\"");
    expect(r, "0", "\"private\"");
}

static const scenario scenarios[] = {
    {"nothing is fresh until told otherwise", nothing_is_fresh_until_told_otherwise, 0,
     NULL},
    {"lists are as fresh as the server says", lists_are_as_fresh_as_the_server_says,
     ONLY_HERE, a_minute},
    {"what is read is as fresh as its item says",
     what_is_read_is_as_fresh_as_its_item_says, ONLY_HERE, NULL},
    {"hints that are none are refused", hints_that_are_none_are_refused,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"options that are none are refused", options_that_are_none_are_refused,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"what came of answers is not fresh", what_came_of_answers_is_not_fresh, ONLY_HERE,
     NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
