/* The fixtures other than tools: resources, a template of resources and prompts, with the
 * texts that the suite asks for. */
#include "conformance/stage.h"

#include <segue/segue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct item {
    int32_t type;
    const char *json;
    void (*run)(stage *s, segue_call *call);
    int32_t completes;
} item;

typedef struct entry {
    stage *s;
    const item *i;
} entry;

/* ---- resources ---- */

static void give(stage *s, segue_call *call, const char *mime_type, const char *text)
{
    segue_content *content = new_content(s);
    segue_content_add_resource_text(content, segue_call_name(call), mime_type, text,
                                    strlen(text), NULL);
    complete(call, content);
}

static void run_text(stage *s, segue_call *call)
{
    give(s, call, "text/plain", "This is the content of the static text resource.");
}

static void run_binary(stage *s, segue_call *call)
{
    segue_content *content = new_content(s);
    segue_content_add_resource_blob(content, segue_call_name(call), "image/png", red_dot,
                                    red_dot_size, NULL);
    complete(call, content);
}

static void run_watched(stage *s, segue_call *call)
{
    give(s, call, "text/plain", "Watched resource content");
}

static void run_template(stage *s, segue_call *call)
{
    char text[160];
    const char *id = "";
    segue_call_argument_text(call, "id", &id, NULL);
    snprintf(text, sizeof text,
             "{\"id\":\"%.32s\",\"templateTest\":true,\"data\":\"Data for ID: %.32s\"}",
             id, id);
    give(s, call, "application/json", text);
}

/* ---- prompts ---- */

static void say(segue_content *content, const char *text)
{
    segue_content_set_role(content, "user");
    segue_content_add_text(content, text, strlen(text), NULL);
}

static void run_simple(stage *s, segue_call *call)
{
    segue_content *content = new_content(s);
    say(content, "This is a simple prompt for testing.");
    complete(call, content);
}

static void run_arguments(stage *s, segue_call *call)
{
    char text[256];
    const char *one = "", *two = "";
    segue_content *content = new_content(s);
    segue_call_argument_text(call, "arg1", &one, NULL);
    segue_call_argument_text(call, "arg2", &two, NULL);
    snprintf(text, sizeof text, "Prompt with arguments: arg1='%.80s', arg2='%.80s'", one,
             two);
    say(content, text);
    complete(call, content);
}

static void run_embedded(stage *s, segue_call *call)
{
    char block[512];
    const char *uri = "null";
    size_t len = 4;
    segue_content *content = new_content(s);
    segue_call_argument(call, "resourceUri", &uri, &len);
    int n =
        snprintf(block, sizeof block,
                 "{\"type\":\"resource\",\"resource\":{\"uri\":%.*s,\"mimeType\":"
                 "\"text/plain\",\"text\":\"Embedded resource content for testing.\"}}",
                 (int)(len < 256 ? len : 256), uri);
    segue_content_set_role(content, "user");
    segue_content_add_json(content, block, (size_t)n, NULL);
    say(content, "Please process the embedded resource above.");
    complete(call, content);
}

static void run_image(stage *s, segue_call *call)
{
    segue_content *content = new_content(s);
    segue_content_set_role(content, "user");
    segue_content_add_blob(content, "image", "image/png", red_dot, red_dot_size, NULL);
    say(content, "Please analyze the image above.");
    complete(call, content);
}

static void answered(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len)
{
    char text[160];
    segue_content *content = new_content(user);
    snprintf(text, sizeof text, "The context: %.*s", (int)(len < 120 ? len : 120),
             status == SEGUE_OK ? json : "none");
    say(content, text);
    complete(call, content);
}

static void run_identifying(stage *s, segue_call *call)
{
    static const char form[] =
        "{\"mode\":\"form\",\"message\":\"What context should the prompt use?\","
        "\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"context\":{\"type\":"
        "\"string\"}},\"required\":[\"context\"]}}";
    if (segue_call_require_input(call, "user_context", "elicitation/create", form,
                                 sizeof form - 1, answered, s, NULL, NULL) != SEGUE_OK)
        segue_call_free(call);
}

/* ---- completion ---- */

static void run_completion(void *user, segue_call *call)
{
    static const char *const words[] = {"paris", "park", "party", "test"};
    const char *found[4];
    const char *value = "";
    size_t count = 0;
    (void)user;
    segue_call_argument_text(call, "value", &value, NULL);
    for (size_t i = 0; i < 4; i++)
        if (!strncmp(words[i], value, strlen(value)))
            found[count++] = words[i];
    segue_call_set_completion(call, found, count, (int64_t)count, 0, NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* ---- the list ---- */

#define RESOURCE(uri, name, mime)                                                        \
    "{\"uri\":\"" uri "\",\"name\":\"" name "\",\"description\":\"" name                 \
    "\",\"mimeType\":\"" mime "\"}"
#define PROMPT(name, arguments)                                                          \
    "{\"name\":\"" name "\",\"description\":\"" name "\",\"arguments\":[" arguments "]}"
#define REQUIRED(name)                                                                   \
    "{\"name\":\"" name "\",\"description\":\"" name "\",\"required\":true}"

static const item items[] = {
    {SEGUE_ITEM_RESOURCE, RESOURCE("test://static-text", "Static text", "text/plain"),
     run_text, 0},
    {SEGUE_ITEM_RESOURCE, RESOURCE("test://static-binary", "Static binary", "image/png"),
     run_binary, 0},
    {SEGUE_ITEM_RESOURCE,
     RESOURCE("test://watched-resource", "Watched resource", "text/plain"), run_watched,
     0},
    {SEGUE_ITEM_RESOURCE_TEMPLATE,
     "{\"uriTemplate\":\"test://template/{id}/data\",\"name\":\"Template\","
     "\"description\":\"Data by id\",\"mimeType\":\"application/json\"}",
     run_template, 1},
    {SEGUE_ITEM_PROMPT, PROMPT("test_simple_prompt", ""), run_simple, 0},
    {SEGUE_ITEM_PROMPT,
     PROMPT("test_prompt_with_arguments", REQUIRED("arg1") "," REQUIRED("arg2")),
     run_arguments, 1},
    {SEGUE_ITEM_PROMPT,
     PROMPT("test_prompt_with_embedded_resource", REQUIRED("resourceUri")), run_embedded,
     0},
    {SEGUE_ITEM_PROMPT, PROMPT("test_prompt_with_image", ""), run_image, 0},
    {SEGUE_ITEM_PROMPT, PROMPT("test_input_required_result_prompt", ""), run_identifying,
     0},
};

static const item extra = {SEGUE_ITEM_PROMPT, PROMPT("extra", ""), run_simple, 0};

static void run_item(void *user, segue_call *call)
{
    const entry *e = user;
    e->i->run(e->s, call);
}

static segue_status add(stage *s, const item *i)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    entry *e = malloc(sizeof *e);
    if (!e)
        return SEGUE_E_NOMEM;
    *e = (entry){s, i};
    options.user = e;
    options.free_user = free;
    options.on_call = run_item;
    options.on_completion = i->completes ? run_completion : NULL;
    segue_status status =
        segue_server_add(s->server, i->type, i->json, strlen(i->json), &options, NULL);
    if (status != SEGUE_OK)
        free(e);
    return status;
}

/* Adds a prompt, or removes it again: clients that listen must be notified. */
static void run_prompt_change(stage *s, segue_call *call)
{
    if (segue_server_remove(s->server, SEGUE_ITEM_PROMPT, "extra") != SEGUE_OK)
        add(s, &extra);
    complete_text(s, call, "Mutation triggered", 0);
}

segue_status items_add(stage *s)
{
    static const tool tools[] = {
        {TOOL("test_trigger_prompt_change", "Changes the list of prompts", NO_ARGUMENTS),
         run_prompt_change, 0},
    };
    segue_status status = stage_add(s, tools, 1);
    for (size_t i = 0; status == SEGUE_OK && i < sizeof items / sizeof *items; i++)
        status = add(s, &items[i]);
    return status;
}
