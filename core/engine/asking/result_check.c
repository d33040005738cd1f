/* What came, before it is given away. Its list has to be one, as an application that
 * reads it takes that for granted. And what a tool gave is held against the outputSchema
 * that tools/list told: "Clients SHOULD validate structured results against this schema"
 * (server/tools, "Output Schema"). Both are looked at where on_complete is due, when all
 * pieces are merged, so that the application's validator runs as any other of its
 * callbacks. A result that is an error promises nothing. What came is given to
 * on_complete all the same, beside the error. */
#include "engine/asking/request.h"

#include "engine/validation.h"

#include <stdio.h>

/* A copy, as the list may change while user code looks at it; empty = nothing to
 * check. */
static void copy_schema(const segue_request *request, const char *tool, sgi_buf *out)
{
    sgi_buf_add_str(
        out, sgi_tool_schemas_find(&request->session->tool_schemas, sgi_str_of(tool)));
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
        refuse(request, "there is no structuredContent");
    else if (sgi_validate(request->engine, &validation) != SEGUE_OK)
        refuse(request, validation.reason);
}

/* A list that is not there is left to the application: some servers of the handshake eras
 * leave an empty one out. */
static bool has_list(const segue_request *request)
{
    const char *name = sgi_pieces_list(request);
    sgi_json list = {0};
    if (name)
        list = sgi_json_get(sgi_buf_str(&request->result), name);
    return !list.n || sgi_json_kind_of(list) == SGI_JSON_ARRAY;
}

static void check_schema(segue_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    sgi_json params = {request->params, request->params_len};
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

void sgi_result_check(segue_request *request)
{
    if (request->status != SEGUE_OK)
        return;
    if (!has_list(request))
        fail(request, SEGUE_E_PROTOCOL, "the result has something else for its list");
    else if (request->is_call && request->session->tool_schemas.tools.count)
        check_schema(request);
}
