/* Checks a result before the application gets it. The member that holds the list of a
 * result must be an array, because applications rely on this. A tool's output is checked
 * against the outputSchema of tools/list: "Clients SHOULD validate structured results
 * against this schema" (server/tools, "Output Schema"). The first check reads the whole
 * result, so it runs where the result was received, and not where on_complete runs. The
 * second check runs when on_complete is due, and the application's validator runs like
 * any other callback. An error result is not checked. When a check fails, on_complete
 * gets both the error and the result. */
#include "engine/client/request.h"

#include "engine/validation.h"

#include <stdio.h>

const char *sgi_result_list_member(const segue_request *request)
{
    static const char *const lists[][2] = {
        {"tools/call", "content"},
        {"resources/read", "contents"},
        {"prompts/get", "messages"},
        {"tools/list", "tools"},
        {"resources/list", "resources"},
        {"resources/templates/list", "resourceTemplates"},
        {"prompts/list", "prompts"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(request->method, lists[i][0]))
            return lists[i][1];
    return NULL;
}

/* Copies the output schema of the tool to `out`, because the session may change its
 * schemas while code of the application runs. Copies nothing when the tool has no
 * schema. */
static void copy_schema(const segue_request *request, const char *tool, sgi_buf *out)
{
    sgi_buf_add_str(
        out, sgi_tool_schemas_find(&request->session->tools.schemas, sgi_str_of(tool)));
}

static void fail(segue_request *request, segue_status status, const char *text)
{
    request->status = status;
    request->error = sgi_error_new(sgi_engine_mem(request->engine), status, 0,
                                   sgi_str_of(text), (sgi_str){0});
}

static void refuse(segue_request *request, const char *why)
{
    char text[SGI_REASON_SIZE + 64];
    snprintf(text, sizeof text, "the result does not fit the tool's outputSchema: %s",
             why);
    fail(request, SEGUE_E_PROTOCOL, text);
}

static void check(segue_request *request, const char *tool, sgi_json schema)
{
    sgi_json result = sgi_buf_str(&request->result);
    sgi_validation validation = {.fn = request->session->events.on_validate,
                                 .user = request->session->events.user,
                                 .tool = tool,
                                 .what = SEGUE_VALIDATE_RESULT,
                                 .schema = schema,
                                 .value = sgi_json_get(result, "structuredContent")};
    if (sgi_json_kind_of(sgi_json_get(result, "isError")) == SGI_JSON_TRUE)
        return;
    if (!validation.value.n)
        refuse(request, "the result has no structuredContent");
    else if (sgi_validate(request->engine, &validation) != SEGUE_OK)
        refuse(request, validation.reason);
}

bool sgi_request_look_at_result(segue_request *request)
{
    const char *list = sgi_result_list_member(request);
    if (!list)
        return true;
    const sgi_str names[] = {sgi_str_of(list), sgi_str_of("isError")};
    sgi_json found[2];
    sgi_json_pick(sgi_buf_str(&request->result), names, 2, found);
    request->says_error = sgi_json_kind_of(found[1]) == SGI_JSON_TRUE;
    return !found[0].n || sgi_json_kind_of(found[0]) == SGI_JSON_ARRAY;
}

static void check_schema(segue_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    sgi_json params = request->params;
    sgi_buf tool, schema;
    sgi_buf_init(&tool, mem);
    sgi_buf_init(&schema, mem);
    if (sgi_json_decode(sgi_json_get(params, "name"), &tool) && tool.len &&
        sgi_buf_terminate(&tool))
        copy_schema(request, tool.p, &schema);
    if (schema.len && !schema.failed)
        check(request, tool.p, sgi_buf_str(&schema));
    else if (tool.failed || schema.failed)
        fail(request, SEGUE_E_NOMEM, "out of memory to check the result");
    sgi_buf_free(&schema);
    sgi_buf_free(&tool);
}

void sgi_request_validate_result(segue_request *request)
{
    if (request->status == SEGUE_OK && request->is_call &&
        request->session->tools.schemas.tools.count)
        check_schema(request);
}
