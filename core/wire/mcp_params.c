/* The walk visits every position where a schema can be. At each position the walk knows
 * the chain of properties that led there (`step`, on the C stack; the chain is written
 * down only when an annotation is found), and whether only `properties` led there
 * (`reachable`). Positions that are not reachable are also visited, because an annotation
 * at such a position makes the tool invalid.
 *
 * The value of an unknown keyword is walked like a schema, because a $ref can point into
 * it. Keywords whose value is not a schema are not walked. The names of properties are
 * not walked: a parameter may be called x-mcp-header.
 *
 * The work is at most depth times size, because finding the end of a value walks over
 * everything in the value. */
#include "wire/mcp_params.h"

typedef struct item {
    uint32_t name_at, name_len;
    /* position and length, in `text`, of the path to the parameter: the keys of the
     * properties that lead there, each key after its length (4 bytes) */
    uint32_t path_at, path_len;
} item;

typedef struct step {
    /* the enclosing property; NULL = `member` is a property of the root schema */
    const struct step *up;
    const sgi_json_member *member;
} step;

const char *sgi_mcp_fault_text(sgi_mcp_fault fault)
{
    static const char *const texts[] = {
        [SGI_MCP_FAULT_NONE] = "no fault",
        [SGI_MCP_FAULT_NAME_KIND] = "x-mcp-header is not a string",
        [SGI_MCP_FAULT_NAME_EMPTY] = "x-mcp-header is empty",
        [SGI_MCP_FAULT_NAME_TOKEN] =
            "x-mcp-header has a character that an HTTP header name cannot have",
        [SGI_MCP_FAULT_DUPLICATE] = "two parameters have the same name in x-mcp-header",
        [SGI_MCP_FAULT_TYPE] =
            "x-mcp-header marks a parameter that is not a string, integer or boolean",
        [SGI_MCP_FAULT_PLACE] = "x-mcp-header is only allowed under \"properties\"",
        [SGI_MCP_FAULT_COUNT] =
            "more than 64 parameters have x-mcp-header, or their names are too long",
        [SGI_MCP_FAULT_DEPTH] = "the schema is nested too deeply",
        [SGI_MCP_FAULT_NOMEM] = "out of memory",
    };
    return texts[fault];
}

void sgi_mcp_params_init(sgi_mcp_params *params, const sgi_mem *mem)
{
    params->where = (sgi_str){0};
    sgi_buf_init(&params->items, mem);
    sgi_buf_init(&params->text, mem);
}

void sgi_mcp_params_free(sgi_mcp_params *params)
{
    sgi_buf_free(&params->items);
    sgi_buf_free(&params->text);
}

size_t sgi_mcp_params_count(const sgi_mcp_params *params)
{
    return params->items.len / sizeof(item);
}

static item item_at(const sgi_mcp_params *params, size_t index)
{
    item found;
    memcpy(&found, params->items.p + index * sizeof found, sizeof found);
    return found;
}

static sgi_str name_of(const sgi_mcp_params *params, const item *of)
{
    return (sgi_str){params->text.p + of->name_at, of->name_len};
}

sgi_str sgi_mcp_params_name(const sgi_mcp_params *params, size_t index)
{
    item found = item_at(params, index);
    return name_of(params, &found);
}

sgi_json sgi_mcp_params_find_argument(const sgi_mcp_params *params, size_t index,
                                      sgi_json arguments)
{
    item found = item_at(params, index);
    const char *at = params->text.p + found.path_at;
    const char *end = at + found.path_len;
    sgi_json value = arguments;
    while (at < end) {
        uint32_t len;
        memcpy(&len, at, sizeof len);
        sgi_str key = {at + sizeof len, len};
        sgi_json object = value;
        sgi_json_pick(object, &key, 1, &value);
        at = key.p + len;
    }
    return value;
}

/* ---- names ---- */

static bool is_token(sgi_str name)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        bool digit = c >= '0' && c <= '9';
        if (!letter && !digit && !memchr(marks, c, sizeof marks - 1))
            return false;
    }
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool same_name(sgi_str a, sgi_str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

/* ---- annotations ---- */

/* Decodes a string and appends it to params->text. Returns SGI_MCP_FAULT_COUNT when all
 * strings together would have more than SGI_MCP_MAX_PARAM_TEXT bytes. */
static sgi_mcp_fault add_text(sgi_mcp_params *params, sgi_json string)
{
    if (string.n > SGI_MCP_MAX_PARAM_TEXT - params->text.len)
        return SGI_MCP_FAULT_COUNT;
    sgi_json_decode(string, &params->text);
    return params->text.failed ? SGI_MCP_FAULT_NOMEM : SGI_MCP_FAULT_NONE;
}

static sgi_mcp_fault add_path(sgi_mcp_params *params, const step *path)
{
    sgi_mcp_fault fault = path->up ? add_path(params, path->up) : SGI_MCP_FAULT_NONE;
    if (fault)
        return fault;
    sgi_str key = path->member->key;
    size_t at = params->text.len;
    uint32_t len = 0;
    if (SGI_MCP_MAX_PARAM_TEXT - at < sizeof len)
        return SGI_MCP_FAULT_COUNT;
    sgi_buf_add(&params->text, &len, sizeof len);
    fault = add_text(params, (sgi_json){key.p - 1, key.n + 2});
    if (fault)
        return fault;
    len = (uint32_t)(params->text.len - at - sizeof len);
    memcpy(params->text.p + at, &len, sizeof len);
    return SGI_MCP_FAULT_NONE;
}

static sgi_mcp_fault check_name(const sgi_mcp_params *params, sgi_str name)
{
    if (!name.n)
        return SGI_MCP_FAULT_NAME_EMPTY;
    if (!is_token(name))
        return SGI_MCP_FAULT_NAME_TOKEN;
    for (size_t i = 0; i < sgi_mcp_params_count(params); i++)
        if (same_name(sgi_mcp_params_name(params, i), name))
            return SGI_MCP_FAULT_DUPLICATE;
    return SGI_MCP_FAULT_NONE;
}

static bool is_primitive(sgi_json type)
{
    return sgi_json_string_is(type, SGI_STR("string")) ||
           sgi_json_string_is(type, SGI_STR("integer")) ||
           sgi_json_string_is(type, SGI_STR("boolean"));
}

static sgi_mcp_fault add_param(sgi_mcp_params *params, const step *path, sgi_json name,
                               sgi_json type)
{
    item made = {.name_at = (uint32_t)params->text.len};
    if (sgi_json_kind_of(name) != SGI_JSON_STRING)
        return SGI_MCP_FAULT_NAME_KIND;
    if (!is_primitive(type))
        return SGI_MCP_FAULT_TYPE;
    if (sgi_mcp_params_count(params) == SGI_MCP_MAX_PARAMS)
        return SGI_MCP_FAULT_COUNT;
    sgi_mcp_fault fault = add_text(params, name);
    if (fault)
        return fault;
    made.name_len = (uint32_t)params->text.len - made.name_at;
    fault = check_name(params, name_of(params, &made));
    if (fault)
        return fault;
    made.path_at = (uint32_t)params->text.len;
    fault = add_path(params, path);
    if (fault)
        return fault;
    made.path_len = (uint32_t)params->text.len - made.path_at;
    sgi_buf_add(&params->items, &made, sizeof made);
    return params->items.failed ? SGI_MCP_FAULT_NOMEM : SGI_MCP_FAULT_NONE;
}

/* ---- the walk ---- */

typedef enum keyword {
    KEYWORD_SCHEMA, /* the keyword's value is a schema or an array of schemas */
    KEYWORD_PROPERTIES,
    KEYWORD_SCHEMAS, /* the keyword's value is an object whose members are schemas */
    /* the keyword's value is not a schema, or the keyword is the annotation
     * x-mcp-header */
    KEYWORD_VALUE
} keyword;

static keyword keyword_of(const sgi_json_member *member)
{
    static const struct {
        const char *name;
        keyword is;
    } rows[] = {
        {"properties", KEYWORD_PROPERTIES},
        {"patternProperties", KEYWORD_SCHEMAS},
        {"$defs", KEYWORD_SCHEMAS},
        {"definitions", KEYWORD_SCHEMAS},
        {"dependentSchemas", KEYWORD_SCHEMAS},
        {"dependencies", KEYWORD_SCHEMAS},
        {"x-mcp-header", KEYWORD_VALUE},
        {"default", KEYWORD_VALUE},
        {"const", KEYWORD_VALUE},
        {"enum", KEYWORD_VALUE},
        {"example", KEYWORD_VALUE},
        {"examples", KEYWORD_VALUE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (sgi_json_key_is(member, rows[i].name))
            return rows[i].is;
    return KEYWORD_SCHEMA;
}

typedef struct place {
    /* the properties that lead to the schema; NULL = the schema is the root */
    const step *path;
    bool reachable;
    int32_t depth;
} place;

static sgi_mcp_fault walk(sgi_mcp_params *params, sgi_json schema, place at);

/* Walks the schema or the schemas in the value of a keyword. */
static sgi_mcp_fault walk_member(sgi_mcp_params *params, const sgi_json_member *member,
                                 place at)
{
    keyword is = keyword_of(member);
    bool holds_many = is == KEYWORD_PROPERTIES || is == KEYWORD_SCHEMAS;
    sgi_mcp_fault fault = SGI_MCP_FAULT_NONE;
    sgi_json_member child;
    sgi_json one;
    at.depth++;
    at.reachable = at.reachable && is == KEYWORD_PROPERTIES;
    if (is == KEYWORD_VALUE)
        return SGI_MCP_FAULT_NONE;
    if (holds_many) {
        for (size_t i = 0; !fault && sgi_json_next_member(member->value, &i, &child);) {
            step down = {at.path, &child};
            fault = walk(params, child.value, (place){&down, at.reachable, at.depth});
        }
        return fault;
    }
    step down = {at.path, member};
    at.path = &down;
    if (sgi_json_kind_of(member->value) != SGI_JSON_ARRAY)
        return walk(params, member->value, at);
    for (size_t i = 0; !fault && sgi_json_next_item(member->value, &i, &one);)
        fault = walk(params, one, at);
    return fault;
}

static sgi_mcp_fault walk(sgi_mcp_params *params, sgi_json schema, place at)
{
    static const sgi_str names[] = {SGI_STR_INIT("x-mcp-header"), SGI_STR_INIT("type")};
    sgi_json found[2];
    sgi_json_member member;
    sgi_mcp_fault fault = SGI_MCP_FAULT_NONE;
    if (sgi_json_kind_of(schema) != SGI_JSON_OBJECT)
        return SGI_MCP_FAULT_NONE;
    params->where = at.path ? at.path->member->key : (sgi_str){0};
    if (at.depth > SGI_MCP_MAX_SCHEMA_DEPTH)
        return SGI_MCP_FAULT_DEPTH;
    sgi_json_pick(schema, names, 2, found);
    if (found[0].n && (!at.reachable || !at.path))
        fault = SGI_MCP_FAULT_PLACE;
    else if (found[0].n)
        fault = add_param(params, at.path, found[0], found[1]);
    for (size_t i = 0; !fault && sgi_json_next_member(schema, &i, &member);)
        fault = walk_member(params, &member, at);
    return fault;
}

sgi_mcp_fault sgi_mcp_params_read(sgi_mcp_params *params, sgi_json schema)
{
    sgi_buf_reset(&params->items, 0);
    sgi_buf_reset(&params->text, 0);
    sgi_mcp_fault fault = walk(params, schema, (place){NULL, true, 0});
    if (fault) {
        sgi_buf_reset(&params->items, 0);
        sgi_buf_reset(&params->text, 0);
    } else {
        params->where = (sgi_str){0};
    }
    return fault;
}
