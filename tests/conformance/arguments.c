/* Makes values that fit a schema, as far as the suite's schemas need it: type, const,
 * enum, default, required. A value without a type becomes a string. */
#include "conformance/play.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16

/* Without memory the program ends. */
static json_t *need(json_t *made)
{
    if (!made)
        abort();
    return made;
}

static json_t *value_for(const json_t *schema, int depth);

static json_t *object_of(const json_t *schema, bool without_defaults, int depth)
{
    json_t *made = need(json_object());
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *name;
    size_t i;
    json_array_foreach(json_object_get(schema, "required"), i, name)
    {
        const char *key = json_string_value(name);
        const json_t *property = key ? json_object_get(properties, key) : NULL;
        bool skipped = without_defaults && json_object_get(property, "default");
        if (key && !skipped)
            json_object_set_new(made, key, value_for(property, depth + 1));
    }
    return made;
}

static json_t *value_for(const json_t *schema, int depth)
{
    const json_t *given = json_object_get(schema, "const");
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (!given)
        given = json_object_get(schema, "default");
    if (!given)
        given = json_array_get(json_object_get(schema, "enum"), 0);
    if (given)
        return need(json_deep_copy(given));
    if (!type || depth > DEPTH_MAX)
        return need(json_string("text"));
    if (!strcmp(type, "number") || !strcmp(type, "integer"))
        return need(json_integer(2 + depth));
    if (!strcmp(type, "boolean"))
        return json_true();
    if (!strcmp(type, "null"))
        return json_null();
    if (!strcmp(type, "array"))
        return need(json_array());
    if (!strcmp(type, "object"))
        return object_of(schema, false, depth);
    return need(json_string("text"));
}

json_t *object_for(const json_t *schema, bool without_defaults)
{
    return object_of(schema, without_defaults, 0);
}

/* ---- a call ---- */

static const json_t *schema_of(const play *p, const char *tool_name)
{
    const json_t *tool;
    size_t i;
    json_array_foreach(p->tools, i, tool)
    {
        const char *name = json_string_value(json_object_get(tool, "name"));
        if (name && !strcmp(name, tool_name))
            return json_object_get(tool, "inputSchema");
    }
    return NULL;
}

json_t *tool_params(const play *p, const json_t *tool)
{
    const char *name = json_string_value(json_object_get(tool, "name"));
    json_t *arguments = object_for(json_object_get(tool, "inputSchema"), false);
    const json_t *seen = schema_of(p, "json_schema_2020_12_tool");
    /* json-schema-2020-12-preservation: this tool wants its schema as the client received
     * it. */
    if (name && !strcmp(name, "json_schema_echo") && seen)
        json_object_set_new(arguments, "schema", need(json_deep_copy(seen)));
    return need(json_pack("{s:s,s:o}", "name", name ? name : "", "arguments", arguments));
}

/* ---- an answer ---- */

json_t *answer_to(const char *method, const json_t *params)
{
    const char *mode = json_string_value(json_object_get(params, "mode"));
    if (!strcmp(method, "roots/list"))
        return need(json_pack("{s:[]}", "roots"));
    if (!strcmp(method, "sampling/createMessage"))
        return need(json_pack("{s:s,s:s,s:s,s:{s:s,s:s}}", "role", "assistant", "model",
                              "none", "stopReason", "endTurn", "content", "type", "text",
                              "text", "said by a model"));
    if (mode && !strcmp(mode, "url"))
        return need(json_pack("{s:s}", "action", "accept"));
    /* members with a default are left to the library */
    return need(json_pack("{s:s,s:o}", "action", "accept", "content",
                          object_for(json_object_get(params, "requestedSchema"), true)));
}
