/* Checks that the HTTP headers of a request match the body of the request (2026-07-28
 * basic/transports/streamable-http, "Server Validation"; R-2557-49). */
#include "engine/server/serve_http.h"

#include "wire/mcp_headers.h"

#define KEEP_NAME 1024

typedef enum which { VERSION, METHOD, NAME, PARAM } which;

static const char *problem_of(which header, sgi_mcp_match match)
{
    static const char *const missing[] = {
        "Header mismatch: MCP-Protocol-Version is missing",
        "Header mismatch: Mcp-Method is missing",
        "Header mismatch: Mcp-Name is missing",
        "Header mismatch: a Mcp-Param header is missing",
    };
    static const char *const malformed[] = {
        "Header mismatch: MCP-Protocol-Version has invalid characters",
        "Header mismatch: Mcp-Method has invalid characters",
        "Header mismatch: Mcp-Name is malformed",
        "Header mismatch: a Mcp-Param header is malformed",
    };
    static const char *const different[] = {
        "Header mismatch: MCP-Protocol-Version differs from _meta",
        "Header mismatch: Mcp-Method differs from method",
        "Header mismatch: Mcp-Name differs from the body",
        "Header mismatch: a Mcp-Param header differs from the arguments",
    };
    switch (match) {
    case SGI_MCP_SAME:
        return NULL;
    case SGI_MCP_MISSING:
        return missing[header];
    case SGI_MCP_MALFORMED:
        return malformed[header];
    case SGI_MCP_DIFFERENT:
        return different[header];
    default:
        return "Out of memory: the server cannot check the headers";
    }
}

/* The problem of a request about a task without Mcp-Name. Some clients leave the header
 * out, so the text says how a server can accept them. */
static const char task_name_missing[] =
    "Header mismatch: Mcp-Name is missing. It must repeat params.taskId. A server "
    "accepts "
    "clients that leave it out, such as FastMCP 4, if its listener has the option "
    "lenient_headers";

static const char *check_plain(which header, sgi_str text, sgi_json value)
{
    return problem_of(header,
                      text.n ? sgi_mcp_match_plain(text, value) : SGI_MCP_MISSING);
}

static const char *check_name(const sgi_http_request_head *head, const sgi_inbound *in,
                              sgi_str method)
{
    const char *member = sgi_mcp_name_member(method);
    sgi_json name = {0};
    if (member)
        name = strcmp(member, "name") == 0 ? in->name : sgi_json_get(in->params, member);
    if (sgi_json_kind_of(name) != SGI_JSON_STRING)
        /* a name that is not a string is not compared here, because the check of the
         * params refuses such a name */
        return NULL;
    if (!head->name.p && strcmp(member, "taskId") == 0)
        return head->lenient ? NULL : task_name_missing;
    if (!head->name.p)
        return problem_of(NAME, SGI_MCP_MISSING);
    return problem_of(NAME, sgi_mcp_match_name(head->name, name,
                                               sgi_engine_mem(in->peer->server->engine)));
}

/* Returns the header name mcp-param-<suffix> in lower case. Header names are compared in
 * lower case. */
static sgi_str param_header(sgi_buf *room, sgi_str suffix)
{
    sgi_buf_reset(room, KEEP_NAME);
    sgi_buf_add_lit(room, SGI_MCP_PARAM_PREFIX);
    sgi_buf_add_str(room, suffix);
    for (size_t i = 0; i < room->len; i++)
        if (room->p[i] >= 'A' && room->p[i] <= 'Z')
            room->p[i] = (char)(room->p[i] | 0x20);
    return sgi_buf_str(room);
}

/* Compares an argument of a call with its header. The tool's schema says which arguments
 * must be repeated in a header. Returns the problem, or NULL when argument and header
 * match. */
static const char *check_param(const sgi_http_request_head *head, const sgi_inbound *in,
                               sgi_str suffix, sgi_json value)
{
    sgi_buf *room = &in->peer->server->engine->scratch;
    bool more = false;
    sgi_str name = param_header(room, suffix);
    if (room->failed)
        return problem_of(PARAM, SGI_MCP_NOMEM);
    sgi_str header = head->find(head->user, name, &more);
    if (more)
        return problem_of(PARAM, SGI_MCP_MALFORMED);
    return problem_of(PARAM,
                      sgi_mcp_match_param(header.p ? &header : NULL, value,
                                          sgi_engine_mem(in->peer->server->engine)));
}

static const char *check_params(const sgi_http_request_head *head, const sgi_inbound *in)
{
    char room[SGI_NAME_MAX];
    if (!sgi_items_of_type(in->peer->server, SEGUE_ITEM_TOOL)->with_params)
        return NULL;
    sgi_str name = sgi_method_text(in->name, room);
    const sgi_item *tool =
        name.n ? sgi_item_find(in->peer->server, SEGUE_ITEM_TOOL, name) : NULL;
    size_t count = tool ? sgi_mcp_params_count(&tool->params) : 0;
    const char *problem = NULL;
    for (size_t i = 0; i < count && !problem; i++)
        problem =
            check_param(head, in, sgi_mcp_params_name(&tool->params, i),
                        sgi_mcp_params_find_argument(&tool->params, i, in->arguments));
    return problem;
}

const char *sgi_find_header_mismatch(const sgi_http_request_head *head,
                                     const sgi_inbound *in, sgi_json method)
{
    char room[SGI_NAME_MAX];
    sgi_str text = sgi_method_text(method, room);
    const char *problem = NULL;
    if (in->protocol.n)
        problem = check_plain(VERSION, head->version, in->protocol);
    if (!problem)
        problem = check_plain(METHOD, head->method, method);
    if (!problem && text.n) {
        problem = check_name(head, in, text);
        if (!problem && sgi_str_eq(text, SGI_STR("tools/call")))
            problem = check_params(head, in);
    }
    return problem;
}
