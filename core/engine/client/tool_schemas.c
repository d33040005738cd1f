/* The map has one entry per tool. The name of the tool and the text of its schema are in
 * one block of memory. */
#include "engine/client/tool_schemas.h"

typedef struct tool {
    /* the node in the map; its key points to a text behind the schema, in the same block
     * of memory */
    sgi_map_node node;
    size_t size;
    size_t len;
    char schema[];
} tool;

void sgi_tool_schemas_init(sgi_tool_schemas *schemas, sgi_engine *engine, bool on)
{
    *schemas = (sgi_tool_schemas){.engine = engine, .on = on};
    sgi_map_init(&schemas->tools, &engine->env);
}

static void forget(sgi_tool_schemas *schemas, sgi_map_node *node)
{
    tool *gone = SGI_OWNER(node, tool, node);
    sgi_map_remove(&schemas->tools, node);
    schemas->bytes -= gone->size;
    sgi_free(sgi_engine_mem(schemas->engine), gone, gone->size);
}

void sgi_tool_schemas_clear(sgi_tool_schemas *schemas)
{
    sgi_map_node *node;
    while ((node = sgi_map_any_node(&schemas->tools)))
        forget(schemas, node);
}

void sgi_tool_schemas_free(sgi_tool_schemas *schemas)
{
    sgi_tool_schemas_clear(schemas);
    sgi_map_free(&schemas->tools);
}

static void keep(sgi_tool_schemas *schemas, sgi_str name, sgi_json schema)
{
    size_t size = sizeof(tool) + schema.n + name.n;
    tool *made = NULL;
    if (schemas->tools.count < SGI_TOOL_SCHEMAS_MAX &&
        size <= SGI_TOOL_SCHEMAS_BYTES - schemas->bytes)
        made = sgi_zalloc(sgi_engine_mem(schemas->engine), size);
    if (!made) {
        sgi_engine_log(
            schemas->engine, SEGUE_LOG_WARNING,
            "too many tools: the results of tool %.*s are not checked against its schema",
            (int)(name.n < 200 ? name.n : 200), name.p);
        return;
    }
    made->size = size;
    made->len = schema.n;
    memcpy(made->schema, schema.p, schema.n);
    memcpy(made->schema + schema.n, name.p, name.n);
    schemas->bytes += size;
    sgi_map_put(&schemas->tools, &made->node, (sgi_str){made->schema + schema.n, name.n});
}

static void learn_tool(sgi_tool_schemas *schemas, sgi_json definition)
{
    sgi_json schema = sgi_json_get(definition, "outputSchema");
    sgi_buf name;
    sgi_buf_init(&name, sgi_engine_mem(schemas->engine));
    if (sgi_json_decode(sgi_json_get(definition, "name"), &name) && !name.failed &&
        name.len && !memchr(name.p, 0, name.len)) {
        sgi_map_node *before = sgi_map_find(&schemas->tools, sgi_buf_str(&name));
        if (before)
            forget(schemas, before);
        if (sgi_json_kind_of(schema) == SGI_JSON_OBJECT)
            keep(schemas, sgi_buf_str(&name), schema);
    }
    sgi_buf_free(&name);
}

void sgi_tool_schemas_learn(sgi_tool_schemas *schemas, sgi_json result, bool begins)
{
    sgi_json tools = sgi_json_get(result, "tools");
    sgi_json definition;
    if (!schemas->on || sgi_json_kind_of(tools) != SGI_JSON_ARRAY)
        return;
    if (begins)
        sgi_tool_schemas_clear(schemas);
    for (size_t at = 0; sgi_json_next_item(tools, &at, &definition);)
        if (sgi_json_kind_of(definition) == SGI_JSON_OBJECT)
            learn_tool(schemas, definition);
}

sgi_json sgi_tool_schemas_find(const sgi_tool_schemas *schemas, sgi_str name)
{
    sgi_map_node *node = sgi_map_find(&schemas->tools, name);
    if (!node)
        return (sgi_json){0};
    const tool *known = SGI_OWNER(node, tool, node);
    return (sgi_json){known->schema, known->len};
}
