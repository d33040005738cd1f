#include "support/item_fixtures.h"

#include <segue/segue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    int32_t item;
    const char *json;
    /* Fills the content; a failure ends the call with an error. */
    segue_status (*fill)(segue_call *call, segue_content *content);
    void (*complete)(segue_call *call);
} row;

typedef struct row_user {
    const row *row;
    segue_runtime *runtime;
} row_user;

/* ---- resources ---- */

static segue_status add_text(segue_call *call, segue_content *content, const char *text)
{
    return segue_content_add_resource_text(content, segue_call_name(call), "text/plain",
                                           text, strlen(text), NULL);
}

static segue_status fill_text(segue_call *call, segue_content *content)
{
    return add_text(call, content, "This is the content of the static text resource.");
}

static segue_status fill_binary(segue_call *call, segue_content *content)
{
    return segue_content_add_resource_blob(content, segue_call_name(call), "image/png",
                                           "\x89PNG\0", 5, NULL);
}

static segue_status fill_many(segue_call *call, segue_content *content)
{
    static const char json[] =
        "{\"uri\":\"test://many/3\",\"text\":\"c\",\"_meta\":{\"n\":3}}";
    segue_status status =
        segue_content_add_resource_text(content, "test://many/1", NULL, "a", 1, NULL);
    if (status == SEGUE_OK)
        status =
            segue_content_add_resource_blob(content, "test://many/2", NULL, "b", 1, NULL);
    if (status == SEGUE_OK)
        status = segue_content_add_json(content, json, sizeof json - 1, NULL);
    if (status == SEGUE_OK)
        status = segue_call_set_field(call, "ttlMs", "5000", 4, NULL);
    return status == SEGUE_OK
               ? segue_call_set_field(call, "cacheScope", "\"public\"", 8, NULL)
               : status;
}

static segue_status fill_misfit(segue_call *call, segue_content *content)
{
    char text[32];
    segue_content_add_text(content, "a block", 7, NULL);
    segue_status status = segue_call_send(call, content, NULL);
    if (status == SEGUE_E_INVALID)
        status = segue_call_extend_text(call, 0, "x", 1, NULL);
    if (status == SEGUE_E_INVALID)
        status = segue_call_set_field(call, "contents", "[]", 2, NULL);
    if (status == SEGUE_E_INVALID)
        status = segue_call_set_completion(call, NULL, 0, -1, 0, NULL);
    if (status == SEGUE_E_INVALID)
        status = segue_call_complete(call, content, NULL);
    snprintf(text, sizeof text, "%s", segue_status_name(status));
    return segue_call_fail(call, -32603, text, NULL, 0, NULL) == SEGUE_OK
               ? SEGUE_E_TERMINAL
               : SEGUE_E_NOMEM;
}

static segue_status fill_gone(segue_call *call, segue_content *content)
{
    (void)content;
    return segue_call_fail(call, -32002, "Resource not found", NULL, 0, NULL) == SEGUE_OK
               ? SEGUE_E_TERMINAL
               : SEGUE_E_NOMEM;
}

static segue_status fill_template(segue_call *call, segue_content *content)
{
    char text[256];
    const char *id;
    segue_status status = segue_call_argument_text(call, "id", &id, NULL);
    if (status != SEGUE_OK)
        return status;
    snprintf(text, sizeof text,
             "{\"id\":\"%s\",\"templateTest\":true,\"data\":\"Data for ID: %s\"}", id,
             id);
    return segue_content_add_resource_text(content, segue_call_name(call),
                                           "application/json", text, strlen(text), NULL);
}

static segue_status fill_path(segue_call *call, segue_content *content)
{
    const char *path;
    segue_status status = segue_call_argument_text(call, "path", &path, NULL);
    return status == SEGUE_OK ? add_text(call, content, path) : status;
}

/* ---- prompts ---- */

static segue_status fill_simple(segue_call *call, segue_content *content)
{
    static const char text[] = "This is a simple prompt for testing.";
    segue_status status =
        segue_call_set_field(call, "description", "\"A simple prompt\"", 17, NULL);
    if (status == SEGUE_OK)
        status = segue_content_set_role(content, "user");
    return status == SEGUE_OK
               ? segue_content_add_text(content, text, sizeof text - 1, NULL)
               : status;
}

static segue_status fill_arguments(segue_call *call, segue_content *content)
{
    char text[256];
    const char *one, *two = "none";
    segue_status status = segue_call_argument_text(call, "arg1", &one, NULL);
    if (status == SEGUE_OK)
        status = segue_call_argument_text(call, "arg2", &two, NULL);
    if (status != SEGUE_OK && status != SEGUE_E_NOT_FOUND)
        return status;
    snprintf(text, sizeof text, "Prompt with arguments: arg1='%s', arg2='%s'", one, two);
    segue_content_set_role(content, "user");
    return segue_content_add_text(content, text, strlen(text), NULL);
}

static segue_status fill_blocks(segue_call *call, segue_content *content)
{
    static const char resource[] =
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://example\","
        "\"mimeType\":\"text/plain\",\"text\":\"Embedded.\"}}";
    static const char message[] =
        "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"As JSON.\"}}";
    (void)call;
    segue_content_set_role(content, "user");
    segue_status status =
        segue_content_add_json(content, resource, sizeof resource - 1, NULL);
    if (status == SEGUE_OK)
        status = segue_content_add_blob(content, "image", "image/png", "png", 3, NULL);
    segue_content_set_role(content, "assistant");
    if (status == SEGUE_OK)
        status = segue_content_add_text(content, "What an image.", 14, NULL);
    segue_content_set_role(content, NULL);
    return status == SEGUE_OK
               ? segue_content_add_json(content, message, sizeof message - 1, NULL)
               : status;
}

/* ---- completion ---- */

/* Answers a completion with the values word-0 to word-149. */
static void complete_words(segue_call *call)
{
    enum { WORDS = 150, MOST = 100 };
    static char room[WORDS][24];
    const char *found[WORDS];
    const char *value;
    size_t len, count = 0;
    segue_status status = segue_call_argument_text(call, "value", &value, &len);
    for (int i = 0; status == SEGUE_OK && i < WORDS; i++) {
        snprintf(room[i], sizeof room[i], "word-%d", i);
        if (!strncmp(room[i], value, len))
            found[count++] = room[i];
    }
    if (status == SEGUE_OK && count > MOST &&
        segue_call_set_completion(call, found, count, -1, 0, NULL) != SEGUE_E_INVALID)
        status = SEGUE_E_STATE;
    if (status == SEGUE_OK)
        status = segue_call_set_completion(call, found, count > MOST ? MOST : count,
                                           (int64_t)count, count > MOST, NULL);
    if (status == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* Answers a completion with the context of the request. */
static void complete_context(segue_call *call)
{
    const char *values[3] = {segue_call_method(call), segue_call_name(call), NULL};
    char params[512];
    size_t len;
    const char *given = segue_call_params(call, &len);
    snprintf(params, sizeof params, "%s",
             strstr(given, "\"language\":\"python\"") ? "python" : "nothing");
    values[2] = params;
    if (segue_call_set_completion(call, values, 3, -1, 0, NULL) == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* Answers a completion with no values. */
static void complete_silently(segue_call *call)
{
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* ---- asking ---- */

static void asked(void *user, segue_call *call, segue_status status, const char *json,
                  size_t len)
{
    row_user *u = user;
    segue_content *content = NULL;
    if (status == SEGUE_OK)
        status = segue_content_new(u->runtime, &content);
    if (status == SEGUE_OK && !strcmp(segue_call_method(call), "prompts/get")) {
        segue_content_set_role(content, "user");
        status = segue_content_add_text(content, json, len, NULL);
    } else if (status == SEGUE_OK) {
        status = segue_content_add_resource_text(content, segue_call_name(call), NULL,
                                                 json, len, NULL);
    }
    if (status == SEGUE_OK)
        segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

static const char question[] =
    "{\"mode\":\"form\",\"message\":\"What context?\",\"requestedSchema\":{\"type\":"
    "\"object\",\"properties\":{\"context\":{\"type\":\"string\"}}}}";

/* ---- the table ---- */

static const row rows[] = {
    {SEGUE_ITEM_RESOURCE,
     "{\"uri\":\"test://static-text\",\"name\":\"static-text\",\"mimeType\":\"text/"
     "plain\"}",
     fill_text, NULL},
    {SEGUE_ITEM_RESOURCE,
     "{\"uri\":\"test://static-binary\",\"name\":\"static-binary\",\"mimeType\":\"image/"
     "png\"}",
     fill_binary, NULL},
    {SEGUE_ITEM_RESOURCE, "{\"uri\":\"test://many\",\"name\":\"many\"}", fill_many, NULL},
    {SEGUE_ITEM_RESOURCE, "{\"uri\":\"test://misfit\",\"name\":\"misfit\"}", fill_misfit,
     NULL},
    {SEGUE_ITEM_RESOURCE, "{\"uri\":\"test://gone\",\"name\":\"gone\"}", fill_gone, NULL},
    {SEGUE_ITEM_RESOURCE, "{\"uri\":\"test://ask\",\"name\":\"ask\"}", NULL, NULL},
    {SEGUE_ITEM_RESOURCE,
     "{\"uri\":\"test://template/exact/data\",\"name\":\"beside the template\"}",
     fill_text, NULL},
    {SEGUE_ITEM_RESOURCE_TEMPLATE,
     "{\"uriTemplate\":\"test://template/{id}/data\",\"name\":\"template\","
     "\"mimeType\":\"application/json\"}",
     fill_template, complete_words},
    {SEGUE_ITEM_RESOURCE_TEMPLATE,
     "{\"uriTemplate\":\"file:///{+path}\",\"name\":\"files\"}", fill_path, NULL},
    {SEGUE_ITEM_PROMPT, "{\"name\":\"simple\",\"description\":\"A simple prompt\"}",
     fill_simple, NULL},
    {SEGUE_ITEM_PROMPT,
     "{\"name\":\"arguments\",\"arguments\":[{\"name\":\"arg1\",\"required\":true},"
     "{\"name\":\"arg2\"}]}",
     fill_arguments, complete_words},
    {SEGUE_ITEM_PROMPT, "{\"name\":\"blocks\"}", fill_blocks, complete_context},
    {SEGUE_ITEM_PROMPT, "{\"name\":\"ask\"}", NULL, complete_silently},
};

static void run(void *user, segue_call *call)
{
    row_user *u = user;
    segue_content *content = NULL;
    if (!u->row->fill) {
        if (segue_call_require_input(call, NULL, "elicitation/create", question,
                                     sizeof question - 1, asked, u, NULL,
                                     NULL) != SEGUE_OK)
            segue_call_free(call);
        return;
    }
    segue_status status = segue_content_new(u->runtime, &content);
    if (status == SEGUE_OK)
        status = u->row->fill(call, content);
    if (status == SEGUE_OK)
        segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

static void run_completion(void *user, segue_call *call)
{
    ((row_user *)user)->row->complete(call);
}

segue_status item_fixtures_add(segue_runtime *runtime, segue_server *server)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
        row_user *u = malloc(sizeof *u);
        if (!u)
            return SEGUE_E_NOMEM;
        *u = (row_user){&rows[i], runtime};
        options.user = u;
        options.free_user = free;
        options.on_call = run;
        options.on_completion = rows[i].complete ? run_completion : NULL;
        segue_status status = segue_server_add(server, rows[i].item, rows[i].json,
                                               strlen(rows[i].json), &options, NULL);
        if (status != SEGUE_OK) {
            free(u);
            return status;
        }
    }
    return SEGUE_OK;
}
