/* completion/complete, as raw clients of both eras see it. */
#include "support/legacy_wire.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define PROMPT(name) "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"" name "\"}"
#define RESOURCE(uri) "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"" uri "\"}"
#define ARGUMENT(value) "\"argument\":{\"name\":\"arg1\",\"value\":\"" value "\"}"
#define METHOD "completion/complete"

static void announces_it(world *w)
{
    const char *r = wire_do(world_connect(w, NULL), "1", "server/discover", NULL, NULL);
    assert_at(r, "result.capabilities.completions", "{}");
    r = legacy_hello(world_connect(w, NULL), "2025-06-18", NULL);
    assert_at(r, "result.capabilities.completions", "{}");
}

static void completes(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", METHOD, PROMPT("arguments") "," ARGUMENT("word-14"), NULL);
    assert_golden(r, "completion");
    r = wire_do(c, "2", METHOD,
                RESOURCE("test://template/{id}/data") "," ARGUMENT("word-9"), NULL);
    assert_at(r, "result.completion.total", "11");
    assert_at(r, "result.completion.values.10", "\"word-99\"");
    wire *old = legacy_connect(w, NULL, NULL);
    assert_golden(
        wire_do_plain(old, "3", METHOD, PROMPT("arguments") "," ARGUMENT("word-14")),
        "legacy_completion");
}

static void gives_at_most_a_hundred(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", METHOD, PROMPT("arguments") "," ARGUMENT(""), NULL);
    assert_at(r, "result.completion.total", "150");
    assert_at(r, "result.completion.hasMore", "true");
    assert_at(r, "result.completion.values.99", "\"word-99\"");
    assert_at(r, "result.completion.values.100", "");
}

static void tells_its_handler(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(
        c, "1", METHOD,
        PROMPT("blocks") "," ARGUMENT("x") ",\"context\":{\"arguments\":{\"language\":"
                                           "\"python\"}}",
        NULL);
    assert_at(r, "result.completion.values",
              "[\"completion/complete\",\"blocks\",\"python\"]");
    assert_at(r, "result.completion.total", "");
}

static void without_suggestions(world *w)
{
    static const char *const refs[] = {
        PROMPT("simple") "," ARGUMENT("x"), /* this prompt has no handler */
        RESOURCE("file:///{+path}") "," ARGUMENT("x"),
        RESOURCE("test://static-text") "," ARGUMENT("x"),
        PROMPT("ask") "," ARGUMENT("x"), /* the handler of this prompt gives no values */
    };
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++)
        assert_at(wire_do(c, "1", METHOD, refs[i], NULL), "result.completion",
                  "{\"values\":[],\"hasMore\":false}");
}

static void refuses(world *w)
{
    static const char *const bad[] = {
        NULL,
        ARGUMENT("x"),
        PROMPT("no_such_prompt") "," ARGUMENT("x"),
        RESOURCE("test://none/{id}") "," ARGUMENT("x"),
        /* this is a URI, not a template */
        RESOURCE("test://template/1/data") "," ARGUMENT("x"),
        "\"ref\":{\"type\":\"ref/tool\",\"name\":\"greet\"}," ARGUMENT("x"),
        "\"ref\":{\"type\":\"ref/prompt\"}," ARGUMENT("x"),
        "\"ref\":7," ARGUMENT("x"),
        PROMPT("arguments"),
        PROMPT("arguments") ",\"argument\":{\"name\":\"arg1\"}",
        PROMPT("arguments") ",\"argument\":{\"name\":\"arg1\",\"value\":1}",
        PROMPT("arguments") ",\"argument\":{\"value\":\"x\"}",
        PROMPT("arguments") ",\"argument\":[]",
        PROMPT("arguments") "," ARGUMENT("x") ",\"context\":7",
        PROMPT("arguments") "," ARGUMENT("x") ",\"context\":{\"arguments\":{\"a\":1}}",
    };
    wire *c = world_connect(w, NULL);
    wire *old = legacy_connect(w, NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_code(wire_do(c, "1", METHOD, bad[i], NULL), -32602);
        assert_code(wire_do_plain(old, "1", METHOD, bad[i]), -32602);
    }
}

/* ---- a server with tools only ---- */

static void greet(void *user, segue_call *call)
{
    (void)user;
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void add(segue_server *server, int32_t item, const char *json)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = greet;
    assert_int_equal(segue_server_add(server, item, json, strlen(json), &options, NULL),
                     SEGUE_OK);
}

static segue_server *plain_server(world *w)
{
    segue_server *server = NULL;
    assert_int_equal(segue_server_new(w->runtime, NULL, &server, NULL), SEGUE_OK);
    add(server, SEGUE_ITEM_TOOL, "{\"name\":\"t\"}");
    return server;
}

/* Methods for items that the server never had are neither announced nor known. */
static void is_not_served_without_items(world *w)
{
    static const char *const methods[] = {
        "resources/list", "resources/templates/list",
        "resources/read", "prompts/list",
        "prompts/get",    METHOD,
    };
    segue_server *full = w->server;
    w->server = plain_server(w);
    wire *c = world_connect(w, NULL);
    wire *old = legacy_connect(w, NULL, NULL);
    segue_server *plain = w->server;
    w->server = full;
    const char *r = wire_do(c, "1", "server/discover", NULL, NULL);
    assert_at(r, "result.capabilities.resources", "");
    assert_at(r, "result.capabilities.prompts", "");
    assert_at(r, "result.capabilities.completions", "");
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        assert_code(wire_do(c, "1", methods[i], NULL, NULL), -32601);
    wire_ask(c, "2", "subscriptions/listen",
             "\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":true,"
             "\"resourcesListChanged\":true,\"resourceSubscriptions\":[\"x:y\"]}",
             NULL);
    assert_at(wire_notification(c, "notifications/subscriptions/acknowledged"),
              "params.notifications", "{\"toolsListChanged\":true}");
    /* A client that was not told of resources gets no notifications about them either. */
    assert_code(wire_do_plain(old, "1", "resources/subscribe", "\"uri\":\"x:y\""),
                -32601);
    add(plain, SEGUE_ITEM_PROMPT, "{\"name\":\"late\"}");
    world_run(w);
    wire_quiet(c);
    wire_quiet(old);
    assert_at(wire_do(c, "3", "server/discover", NULL, NULL),
              "result.capabilities.prompts", "{\"listChanged\":true}");
    segue_server_free(plain);
}

static const scenario scenarios[] = {
    {"completion is announced", announces_it, ONE_DRIVE, NULL},
    {"an argument is completed", completes, 0, NULL},
    {"there are at most 100 values", gives_at_most_a_hundred, 0, NULL},
    {"its handler sees what was asked", tells_its_handler, 0, NULL},
    {"nothing to suggest is an empty list", without_suggestions, 0, NULL},
    {"what names nothing is refused", refuses, 0, NULL},
    /* HTTP: the listener belongs to the world's server. */
    {"what a server never had it does not know", is_not_served_without_items,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
