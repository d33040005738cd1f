/* Each tool here reports in one text what it has done. A tool that asks reports the
 * client's answer, or why there is none. User pointers lead into one static record,
 * because a process has one server. */
#include "interop/fixture_items.h"
#include "support/item_fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UPDATED "test://static-text"

static struct {
    segue_runtime *runtime;
    segue_server *server;
} here;

static void say(segue_call *call, const char *text, size_t len)
{
    segue_content *content;
    if (segue_content_new(here.runtime, &content) != SEGUE_OK)
        abort();
    segue_content_add_text(content, text, len, NULL);
    segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

/* ---- questions ---- */

static void on_answer(void *user, segue_call *call, segue_status status, const char *json,
                      size_t len)
{
    char text[100];
    (void)user;
    if (json) { /* JSON of the error, too */
        say(call, json, len);
        return;
    }
    int size = snprintf(text, sizeof text, "no answer: %s", segue_status_name(status));
    say(call, text, (size_t)size);
}

static void ask(segue_call *call, const char *method, const char *params)
{
    char text[100];
    segue_status status = segue_call_require_input(
        call, NULL, method, params, strlen(params), on_answer, NULL, NULL, NULL);
    if (status == SEGUE_OK)
        return;
    int size = snprintf(text, sizeof text, "cannot ask: %s", segue_status_name(status));
    say(call, text, (size_t)size);
}

static void run_ask_name(void *user, segue_call *call)
{
    (void)user;
    ask(call, "elicitation/create",
        "{\"mode\":\"form\",\"message\":\"Your name?\",\"requestedSchema\":{\"type\":"
        "\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":["
        "\"name\"]}}");
}

static void run_ask_model(void *user, segue_call *call)
{
    (void)user;
    ask(call, "sampling/createMessage",
        "{\"maxTokens\":100,\"messages\":[{\"role\":\"user\",\"content\":{\"type\":"
        "\"text\",\"text\":\"Say something.\"}}]}");
}

static void run_ask_roots(void *user, segue_call *call)
{
    (void)user;
    ask(call, "roots/list", "{}");
}

/* ---- changes ---- */

static void run_update(void *user, segue_call *call)
{
    (void)user;
    segue_server_resource_updated(here.server, UPDATED);
    say(call, "updated", 7);
}

static void run_extra(void *user, segue_call *call)
{
    (void)user;
    segue_call_fail(call, -32603, "it is only listed", NULL, 0, NULL);
    segue_call_free(call);
}

static void toggle(int32_t item, const char *json, const char *name)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = run_extra;
    if (segue_server_remove(here.server, item, name) != SEGUE_OK)
        segue_server_add(here.server, item, json, strlen(json), &options, NULL);
}

static void run_toggle_items(void *user, segue_call *call)
{
    (void)user;
    toggle(SEGUE_ITEM_RESOURCE, "{\"uri\":\"test://extra\",\"name\":\"extra\"}",
           "test://extra");
    toggle(SEGUE_ITEM_PROMPT, "{\"name\":\"extra\"}", "extra");
    say(call, "changed", 7);
}

static const struct {
    const char *json;
    segue_call_fn run;
} tools[] = {
    {"{\"name\":\"ask_name\",\"inputSchema\":{\"type\":\"object\"}}", run_ask_name},
    {"{\"name\":\"ask_model\",\"inputSchema\":{\"type\":\"object\"}}", run_ask_model},
    {"{\"name\":\"ask_roots\",\"inputSchema\":{\"type\":\"object\"}}", run_ask_roots},
    {"{\"name\":\"update\",\"inputSchema\":{\"type\":\"object\"}}", run_update},
    {"{\"name\":\"toggle_items\",\"inputSchema\":{\"type\":\"object\"}}",
     run_toggle_items},
};

segue_status fixture_items_add(segue_runtime *runtime, segue_server *server)
{
    segue_item_options options;
    segue_status status = item_fixtures_add(runtime, server);
    here.runtime = runtime;
    here.server = server;
    for (size_t i = 0; status == SEGUE_OK && i < sizeof tools / sizeof *tools; i++) {
        options = SEGUE_ITEM_OPTIONS_INIT;
        options.on_call = tools[i].run;
        status = segue_server_add(server, SEGUE_ITEM_TOOL, tools[i].json,
                                  strlen(tools[i].json), &options, NULL);
    }
    return status;
}
