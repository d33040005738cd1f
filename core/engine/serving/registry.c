/* The tools of a server. A tool is counted: removing it takes it out of the lists, the
 * calls that run it keep it until they end; then its user is freed, outside the lock. */
#include "engine/error.h"
#include "engine/serving/server.h"

void sgi_tool_ref(sgi_tool *tool)
{
    tool->refs++;
}

static void free_tool(sgi_tool *tool)
{
    const sgi_mem *mem = sgi_engine_mem(tool->engine);
    sgi_text_free(mem, tool->name);
    sgi_mcp_params_free(&tool->params);
    if (tool->json)
        sgi_release(mem, tool->json, tool->json_len + 1);
    sgi_release(mem, tool, sizeof *tool);
}

static int32_t run_free_user(sgi_ready *ready, int32_t budget)
{
    sgi_tool *tool = SGI_OWNER(ready, sgi_tool, ready);
    segue_free_fn fn = tool->options.free_user;
    void *user = tool->options.user;
    sgi_engine *engine = tool->engine;
    (void)budget;
    free_tool(tool);
    return sgi_user_free(engine, fn, user);
}

void sgi_tool_unref(sgi_tool *tool)
{
    if (--tool->refs)
        return;
    if (tool->options.free_user)
        sgi_ready_add(tool->engine, &tool->ready);
    else
        free_tool(tool);
}

sgi_tool *sgi_tool_find(segue_server *server, sgi_str name)
{
    sgi_map_node *node = sgi_map_find(&server->tools_by_name, name);
    return node ? SGI_OWNER(node, sgi_tool, node) : NULL;
}

static bool is_object_or_absent(sgi_json value)
{
    return !value.n || sgi_json_kind_of(value) == SGI_JSON_OBJECT;
}

static segue_status check(segue_server *server, sgi_json json, sgi_str *name,
                          segue_error **error)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    if (!sgi_json_plain_string(sgi_json_get(json, "name"), name) || !name->n ||
        memchr(name->p, 0, name->n))
        return sgi_error_give(error, mem, SEGUE_E_INVALID,
                              "a tool needs a \"name\" without escapes");
    if (!is_object_or_absent(sgi_json_get(json, "inputSchema")) ||
        !is_object_or_absent(sgi_json_get(json, "outputSchema")))
        return sgi_error_give(error, mem, SEGUE_E_INVALID,
                              "tool %.*s: a schema is not an object", (int)name->n,
                              name->p);
    if (sgi_tool_find(server, *name))
        return sgi_error_give(error, mem, SEGUE_E_EXISTS, "tool %.*s exists",
                              (int)name->n, name->p);
    return SEGUE_OK;
}

/* inputSchema is required on the wire; who leaves it out takes any object. execution says
 * whether a tool runs as a task: its options do, and each revision is told in its way. */
static char *listed_form(segue_server *server, sgi_json json, size_t *len)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_json_member member;
    sgi_buf out;
    sgi_buf_init(&out, mem);
    sgi_jw w = sgi_jw_on(&out);
    sgi_jw_open(&w, '{');
    for (size_t at = 0; sgi_json_next_member(json, &at, &member);) {
        if (sgi_json_key_is(&member, "execution"))
            continue;
        sgi_jw_key_json(&w, member.key);
        sgi_jw_raw(&w, member.value);
    }
    if (!sgi_json_get(json, "inputSchema").n)
        sgi_jw_member_raw(&w, "inputSchema", SGI_STR("{\"type\":\"object\"}"));
    sgi_jw_close(&w, '}');
    char *text = out.failed ? NULL : sgi_text_dup(mem, sgi_buf_str(&out));
    *len = out.len;
    sgi_buf_free(&out);
    return text;
}

/* A tool that clients over HTTP would have to leave out is refused here. */
static segue_status read_params(sgi_tool *tool, sgi_json schema, segue_error **error)
{
    const sgi_mem *mem = sgi_engine_mem(tool->engine);
    sgi_mcp_fault fault =
        schema.n ? sgi_mcp_params_read(&tool->params, schema) : SGI_MCP_FAULT_NONE;
    if (fault == SGI_MCP_FAULT_NOMEM)
        return SEGUE_E_NOMEM;
    if (fault == SGI_MCP_FAULT_NONE)
        return SEGUE_OK;
    return sgi_error_give(error, mem, SEGUE_E_INVALID, "tool %s: x-mcp-header: %s",
                          tool->name, sgi_mcp_fault_text(fault));
}

segue_status sgi_tool_add(segue_server *server, sgi_json json,
                          const segue_item_options *options, segue_error **error)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_str name;
    segue_status status = check(server, json, &name, error);
    if (status != SEGUE_OK)
        return status;
    sgi_tool *tool = sgi_zalloc(mem, sizeof *tool);
    if (!tool)
        return SEGUE_E_NOMEM;
    tool->engine = server->engine;
    tool->refs = 1;
    sgi_mcp_params_init(&tool->params, mem);
    tool->name = sgi_text_dup(mem, name);
    tool->json = listed_form(server, json, &tool->json_len);
    status = tool->name && tool->json
                 ? read_params(tool, sgi_json_get(json, "inputSchema"), error)
                 : SEGUE_E_NOMEM;
    if (status != SEGUE_OK) {
        free_tool(tool);
        return status;
    }
    tool->options = *options;
    tool->ready.run = run_free_user;
    tool->order = ++server->tool_order;
    TAILQ_INSERT_TAIL(&server->tools, tool, link);
    sgi_map_put(&server->tools_by_name, &tool->node, sgi_str_of(tool->name));
    return SEGUE_OK;
}

static void take_out(segue_server *server, sgi_tool *tool)
{
    TAILQ_REMOVE(&server->tools, tool, link);
    sgi_map_remove(&server->tools_by_name, &tool->node);
    sgi_tool_unref(tool);
}

segue_status sgi_tool_remove(segue_server *server, const char *name)
{
    sgi_tool *tool = sgi_tool_find(server, sgi_str_of(name));
    if (!tool)
        return SEGUE_E_NOT_FOUND;
    take_out(server, tool);
    return SEGUE_OK;
}

void sgi_tools_clear(segue_server *server)
{
    sgi_tool *tool;
    while ((tool = TAILQ_FIRST(&server->tools)))
        take_out(server, tool);
}
