/* The map has one entry for each tool with header parameters. The key of the entry is the
 * name of the tool. The number of entries and the sum of their sizes are limited. Later
 * pages of tools/list only add or replace entries, because the list may change while it
 * is read page by page. */
#include "engine/client/tool_headers.h"

#include "wire/mcp_headers.h"
#include "wire/mcp_params.h"

typedef struct tool {
    sgi_map_node node;
    sgi_mcp_params params;
    size_t cost;
    char *name;
} tool;

void sgi_tool_headers_init(sgi_tool_headers *headers, sgi_engine *engine)
{
    *headers = (sgi_tool_headers){.engine = engine};
    sgi_map_init(&headers->tools, &engine->env);
}

static void free_tool(const sgi_mem *mem, tool *gone)
{
    sgi_mcp_params_free(&gone->params);
    sgi_text_free(mem, gone->name);
    sgi_free(mem, gone, sizeof *gone);
}

static void forget(sgi_tool_headers *headers, sgi_map_node *node)
{
    tool *gone = SGI_OWNER(node, tool, node);
    sgi_map_remove(&headers->tools, node);
    headers->bytes -= gone->cost;
    free_tool(sgi_engine_mem(headers->engine), gone);
}

static void forget_all(sgi_tool_headers *headers)
{
    sgi_map_node *node;
    while ((node = sgi_map_any_node(&headers->tools)))
        forget(headers, node);
}

void sgi_tool_headers_free(sgi_tool_headers *headers)
{
    forget_all(headers);
    sgi_map_free(&headers->tools);
}

/* ---- reading tools/list ---- */

static bool has_room(const sgi_tool_headers *headers, const tool *made)
{
    return headers->tools.count < SGI_TOOL_HEADERS_MAX &&
           made->cost <= SGI_TOOL_HEADERS_BYTES - headers->bytes;
}

/* Stores the entry in the map. Takes ownership of `made`. */
static void keep(sgi_tool_headers *headers, tool *made, sgi_str name)
{
    const sgi_mem *mem = sgi_engine_mem(headers->engine);
    made->name = sgi_text_dup(mem, name);
    made->cost = sizeof *made + name.n + made->params.items.cap + made->params.text.cap;
    if (!made->name || !has_room(headers, made)) {
        sgi_engine_log(headers->engine, SEGUE_LOG_WARNING,
                       "too many tools: the headers of tool %.*s are not sent",
                       (int)name.n, name.p);
        free_tool(mem, made);
        return;
    }
    headers->bytes += made->cost;
    sgi_map_put(&headers->tools, &made->node, sgi_str_of(made->name));
}

static sgi_mcp_fault learn_named(sgi_tool_headers *headers, sgi_str name, sgi_json schema)
{
    const sgi_mem *mem = sgi_engine_mem(headers->engine);
    sgi_map_node *before = sgi_map_find(&headers->tools, name);
    tool *made = sgi_zalloc(mem, sizeof *made);
    if (before)
        forget(headers, before);
    if (!made)
        return SGI_MCP_FAULT_NOMEM;
    sgi_mcp_params_init(&made->params, mem);
    sgi_mcp_fault fault = sgi_mcp_params_read(&made->params, schema);
    if (!fault && sgi_mcp_params_count(&made->params))
        keep(headers, made, name);
    else
        free_tool(mem, made);
    return fault;
}

/* Stores the header parameters of a tool. Returns false when the tool is invalid and must
 * be removed from the list. */
static bool learn_tool(sgi_tool_headers *headers, sgi_json definition)
{
    sgi_json name = sgi_json_get(definition, "name");
    sgi_buf text;
    if (sgi_json_kind_of(name) != SGI_JSON_STRING)
        return true; /* a tool without a name cannot be called, so it needs no entry */
    sgi_buf_init(&text, sgi_engine_mem(headers->engine));
    sgi_json_decode(name, &text);
    bool usable = !text.failed && (!text.len || !memchr(text.p, 0, text.len));
    sgi_mcp_fault fault =
        usable ? learn_named(headers, text.len ? sgi_buf_str(&text) : SGI_STR(""),
                             sgi_json_get(definition, "inputSchema"))
               : SGI_MCP_FAULT_NONE;
    bool fits = fault == SGI_MCP_FAULT_NONE || fault == SGI_MCP_FAULT_NOMEM;
    if (!fits)
        sgi_engine_log(
            headers->engine, SEGUE_LOG_WARNING, "tool %.*s is left out of the list: %s",
            (int)(text.len < 200 ? text.len : 200), text.p, sgi_mcp_fault_text(fault));
    sgi_buf_free(&text);
    return fits;
}

/* ---- the list without invalid tools ---- */

/* Writes the list of tools without the tools whose indexes are in left_out. left_out:
 * indexes in ascending order. */
static void write_tools(sgi_jw *w, sgi_json tools, const sgi_buf *left_out)
{
    sgi_json definition;
    size_t read = 0;
    size_t out = SIZE_MAX;
    sgi_jw_open(w, '[');
    for (size_t at = 0, i = 0; sgi_json_next_item(tools, &at, &definition); i++) {
        if ((out == SIZE_MAX || out < i) && read < left_out->len) {
            memcpy(&out, left_out->p + read, sizeof out);
            read += sizeof out;
        }
        if (out != i)
            sgi_jw_raw(w, definition);
    }
    sgi_jw_close(w, ']');
}

static void write_result(sgi_buf *out, sgi_json result, const sgi_buf *left_out)
{
    sgi_json_member member;
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    for (size_t at = 0; sgi_json_next_member(result, &at, &member);) {
        if (w.comma)
            sgi_buf_add_char(out, ',');
        sgi_buf_add_char(out, '"');
        sgi_buf_add_str(out, member.key);
        sgi_buf_add_lit(out, "\":");
        w.comma = false;
        if (sgi_json_key_is(&member, "tools"))
            write_tools(&w, member.value, left_out);
        else
            sgi_jw_raw(&w, member.value);
    }
    sgi_jw_close(&w, '}');
}

bool sgi_tool_headers_learn(sgi_tool_headers *headers, sgi_json result, bool begins,
                            sgi_buf *out)
{
    sgi_json tools = sgi_json_get(result, "tools");
    sgi_json definition;
    sgi_buf left_out;
    if (sgi_json_kind_of(tools) != SGI_JSON_ARRAY)
        return false;
    if (begins)
        forget_all(headers);
    sgi_buf_init(&left_out, sgi_engine_mem(headers->engine));
    for (size_t at = 0, i = 0; sgi_json_next_item(tools, &at, &definition); i++)
        if (!learn_tool(headers, definition))
            sgi_buf_add(&left_out, &i, sizeof i);
    bool some = left_out.len > 0 || left_out.failed;
    if (out && left_out.failed)
        out->failed = true;
    else if (out && some)
        write_result(out, result, &left_out);
    sgi_buf_free(&left_out);
    return some;
}

/* ---- the headers of a call ---- */

void sgi_tool_headers_write(const sgi_tool_headers *headers, sgi_str tool_name,
                            sgi_json arguments, sgi_buf *out)
{
    sgi_map_node *node = sgi_map_find(&headers->tools, tool_name);
    if (!node)
        return;
    const sgi_mcp_params *params = &SGI_OWNER(node, tool, node)->params;
    for (size_t i = 0; i < sgi_mcp_params_count(params); i++) {
        size_t mark = out->len;
        sgi_buf_add_lit(out, SGI_MCP_PARAM_PREFIX);
        sgi_buf_add_str(out, sgi_mcp_params_name(params, i));
        sgi_buf_add_char(out, 0);
        sgi_mcp_write written = sgi_mcp_add_param_value(
            out, sgi_mcp_params_find_argument(params, i, arguments));
        sgi_buf_add_char(out, 0);
        if (written != SGI_MCP_WRITTEN && !out->failed)
            sgi_buf_truncate(out, mark);
    }
}
