#include "engine/dialect/tasks_2025/tool_tasks.h"

typedef struct tool {
    sgi_map_node node;
    char *name;
} tool;

void sgi_tool_tasks_init(sgi_tool_tasks *tasks, sgi_engine *engine)
{
    *tasks = (sgi_tool_tasks){.engine = engine};
    sgi_map_init(&tasks->tools, &engine->env);
}

static size_t cost_of(const tool *known)
{
    return sizeof *known + known->node.key.n;
}

static void forget_tool(sgi_tool_tasks *tasks, sgi_map_node *node)
{
    const sgi_mem *mem = sgi_engine_mem(tasks->engine);
    tool *gone = SGI_OWNER(node, tool, node);
    sgi_map_remove(&tasks->tools, node);
    tasks->bytes -= cost_of(gone);
    sgi_text_free(mem, gone->name);
    sgi_free(mem, gone, sizeof *gone);
}

void sgi_tool_tasks_clear(sgi_tool_tasks *tasks)
{
    sgi_map_node *node;
    while ((node = sgi_map_any_node(&tasks->tools)))
        forget_tool(tasks, node);
    tasks->whole = tasks->in_turn = false;
}

void sgi_tool_tasks_free(sgi_tool_tasks *tasks)
{
    sgi_tool_tasks_clear(tasks);
    sgi_map_free(&tasks->tools);
}

static void keep(sgi_tool_tasks *tasks, sgi_str name)
{
    const sgi_mem *mem = sgi_engine_mem(tasks->engine);
    tool *made = NULL;
    if (tasks->tools.count < SGI_TOOL_TASKS_MAX &&
        sizeof *made + name.n <= SGI_TOOL_TASKS_BYTES - tasks->bytes)
        made = sgi_zalloc(mem, sizeof *made);
    if (made)
        made->name = sgi_text_dup(mem, name);
    if (!made || !made->name) {
        sgi_free(mem, made, sizeof *made);
        sgi_engine_log(tasks->engine, SEGUE_LOG_WARNING,
                       "too many tools: tool %.*s is not called as a task", (int)name.n,
                       name.p);
        return;
    }
    sgi_map_put(&tasks->tools, &made->node, sgi_str_of(made->name));
    tasks->bytes += cost_of(made);
}

static void learn_tool(sgi_tool_tasks *tasks, sgi_json definition)
{
    sgi_json support = sgi_json_get(sgi_json_get(definition, "execution"), "taskSupport");
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(tasks->engine));
    if (sgi_json_decode(sgi_json_get(definition, "name"), &text) && !text.failed &&
        text.len && !memchr(text.p, 0, text.len)) {
        sgi_map_node *before = sgi_map_find(&tasks->tools, sgi_buf_str(&text));
        if (before)
            forget_tool(tasks, before);
        if (sgi_json_string_is(support, SGI_STR("optional")) ||
            sgi_json_string_is(support, SGI_STR("required")) ||
            /* in DRAFT-2026-v1 the value is true or false instead of a word
             * (R-2557-58) */
            sgi_json_kind_of(support) == SGI_JSON_TRUE)
            keep(tasks, sgi_buf_str(&text));
    }
    sgi_buf_free(&text);
}

void sgi_tool_tasks_learn(sgi_tool_tasks *tasks, sgi_json cursor, sgi_json result)
{
    sgi_json tools = sgi_json_get(result, "tools");
    sgi_json next = sgi_json_get(result, "nextCursor");
    sgi_json definition;
    if (sgi_json_kind_of(tools) != SGI_JSON_ARRAY)
        return;
    if (!cursor.n)
        sgi_tool_tasks_clear(tasks);
    tasks->in_turn =
        !cursor.n || (tasks->in_turn && tasks->cursor == sgi_siphash(tasks->tools.seed,
                                                                     cursor.p, cursor.n));
    for (size_t at = 0; sgi_json_next_item(tools, &at, &definition);)
        learn_tool(tasks, definition);
    if (sgi_json_kind_of(next) == SGI_JSON_STRING)
        tasks->cursor = sgi_siphash(tasks->tools.seed, next.p, next.n);
    else if (tasks->in_turn)
        tasks->whole = true;
}

bool sgi_tool_tasks_allow(const sgi_tool_tasks *tasks, sgi_str name)
{
    return sgi_map_find(&tasks->tools, name) != NULL;
}
