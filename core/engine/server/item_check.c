/* Checks of the items of a server: the member that identifies an item, the members that
 * a type of item needs, and the options that a type takes. */
#include "engine/server/item_check.h"

#include "base/thresholds.h"
#include "engine/error.h"
#include "engine/server/shown.h"
#include "wire/scopes.h"
#include "wire/uri_form.h"

/* The properties of a type of item: the word for the type in messages, the member that
 * identifies an item, and the function that checks an item. */
typedef struct sgi_item_type {
    const char *word;
    /* The member that identifies an item of this type. A resource or template, whose
     * identifying member is not "name", must have a member "name" too. */
    const char *key;
    segue_status (*check)(sgi_item *item, sgi_json json, segue_error **error);
} sgi_item_type;

static segue_status check_tool(sgi_item *item, sgi_json json, segue_error **error);
static segue_status check_resource(sgi_item *item, sgi_json json, segue_error **error);
static segue_status check_template(sgi_item *item, sgi_json json, segue_error **error);
static segue_status check_prompt(sgi_item *item, sgi_json json, segue_error **error);
static segue_status check_question(sgi_item *item, sgi_json json, segue_error **error);
static segue_status check_list(sgi_item *item, sgi_json json, segue_error **error);

static const sgi_item_type types[SGI_ITEM_TYPES] = {
    {"tool", "name", check_tool},
    {"resource", "uri", check_resource},
    {"resource template", "uriTemplate", check_template},
    {"prompt", "name", check_prompt},
    {"question", "method", check_question},
    {"list", "method", check_list},
};

static const sgi_item_type *type_of(const sgi_item *item)
{
    return &types[item->type - 1];
}

/* ---- the member that identifies an item ---- */

const char *sgi_item_word(int32_t type)
{
    return types[type - 1].word;
}

segue_status sgi_item_read_key(const sgi_mem *mem, int32_t type, sgi_json json,
                               sgi_str *key, segue_error **error)
{
    const sgi_item_type *t = &types[type - 1];
    sgi_json value = sgi_json_get(json, t->key);
    if (sgi_json_kind_of(value) != SGI_JSON_STRING)
        return sgi_error_return(error, mem, SEGUE_E_INVALID,
                                "a %s needs a member \"%s\", which is a string", t->word,
                                t->key);
    if (!sgi_json_plain_string(value, key) || memchr(key->p, 0, key->n))
        return sgi_error_return(error, mem, SEGUE_E_INVALID,
                                "the member \"%s\" of a %s cannot have quotes, "
                                "backslashes, control characters and escapes: %.*s",
                                t->key, t->word, (int)value.n, value.p);
    if (!key->n)
        return sgi_error_return(error, mem, SEGUE_E_INVALID,
                                "the member \"%s\" of a %s is empty", t->key, t->word);
    return SEGUE_OK;
}

/* ---- the members and options of each type ---- */

static segue_status refuse(const sgi_item *item, segue_error **error, const char *why)
{
    return sgi_error_return(error, item->mem, SEGUE_E_INVALID, "%s %s: %s",
                            type_of(item)->word, item->key, why);
}

static bool is_object_or_absent(sgi_json value)
{
    return !value.n || sgi_json_kind_of(value) == SGI_JSON_OBJECT;
}

static bool is_of_objects(sgi_json schema)
{
    return sgi_json_string_is(sgi_json_get(schema, "type"), SGI_STR("object"));
}

/* Reads which arguments of a tool are repeated in HTTP headers. A tool with invalid
 * header names is refused, because clients over HTTP would have to ignore the tool. */
static segue_status read_params(sgi_item *tool, sgi_json schema, segue_error **error)
{
    sgi_mcp_fault fault =
        schema.n ? sgi_mcp_params_read(&tool->params, schema) : SGI_MCP_FAULT_NONE;
    if (fault == SGI_MCP_FAULT_NOMEM)
        return SEGUE_E_NOMEM;
    if (fault == SGI_MCP_FAULT_NONE)
        return SEGUE_OK;
    return sgi_error_return(error, tool->mem, SEGUE_E_INVALID,
                            "tool %s: x-mcp-header: %s", tool->key,
                            sgi_mcp_fault_text(fault));
}

static segue_status check_tool(sgi_item *item, sgi_json json, segue_error **error)
{
    sgi_json schema = sgi_json_get(json, "inputSchema");
    sgi_json output = sgi_json_get(json, "outputSchema");
    if (!is_object_or_absent(schema) || !is_object_or_absent(output))
        return refuse(item, error, "inputSchema or outputSchema is not an object");
    if (schema.n && !is_of_objects(schema))
        return refuse(item, error, "inputSchema has no \"type\": \"object\"");
    if (item->options.read_ttl_ms || item->options.read_scope)
        return refuse(item, error,
                      "the options read_ttl_ms and read_scope are only for resources and "
                      "templates");
    item->has_output = output.n > 0;
    item->has_modern_output = item->has_output && !is_of_objects(output);
    return read_params(item, schema, error);
}

/* Checks the members that resources, templates and prompts share. */
static segue_status check_texts(sgi_item *item, sgi_json json, segue_error **error)
{
    static const char *const texts[] = {"title", "description", "mimeType"};
    if (sgi_json_kind_of(sgi_json_get(json, "name")) != SGI_JSON_STRING)
        return refuse(item, error, "the member \"name\" is missing");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sgi_json value = sgi_json_get(json, texts[i]);
        if (value.n && sgi_json_kind_of(value) != SGI_JSON_STRING)
            return refuse(
                item, error,
                "\"title\", \"description\" and \"mimeType\" have to be strings");
    }
    if (item->options.task != SEGUE_TASK_NEVER || item->options.flags ||
        item->options.promote_after_ms)
        return refuse(item, error,
                      "the options flags, task and promote_after_ms are only for tools");
    return SEGUE_OK;
}

static segue_status check_resource(sgi_item *item, sgi_json json, segue_error **error)
{
    if (strlen(item->key) > SGI_URI_MAX)
        return refuse(item, error, "the URI is longer than 8192 bytes");
    return check_texts(item, json, error);
}

static segue_status check_template(sgi_item *item, sgi_json json, segue_error **error)
{
    if (item->options.visibility == SEGUE_LISTED_ONLY)
        return check_texts(item, json, error);
    item->pattern = sgi_alloc(item->mem, sizeof *item->pattern);
    if (!item->pattern)
        return SEGUE_E_NOMEM;
    const char *problem = sgi_uri_template_read(item->pattern, sgi_str_of(item->key));
    if (!problem)
        return check_texts(item, json, error);
    sgi_str wrong = item->pattern->wrong;
    return sgi_error_return(error, item->mem, SEGUE_E_INVALID, "%s %s: %.*s%s%s",
                            type_of(item)->word, item->key, (int)wrong.n, wrong.p,
                            wrong.n ? ": " : "", problem);
}

static bool is_argument(sgi_json argument)
{
    sgi_json required = sgi_json_get(argument, "required");
    sgi_json_kind kind = sgi_json_kind_of(required);
    return sgi_json_kind_of(sgi_json_get(argument, "name")) == SGI_JSON_STRING &&
           (!required.n || kind == SGI_JSON_TRUE || kind == SGI_JSON_FALSE);
}

static segue_status check_prompt(sgi_item *item, sgi_json json, segue_error **error)
{
    sgi_json arguments = sgi_json_get(json, "arguments");
    sgi_json argument;
    bool ok = !arguments.n || sgi_json_kind_of(arguments) == SGI_JSON_ARRAY;
    for (size_t at = 0;
         ok && arguments.n && sgi_json_next_item(arguments, &at, &argument);)
        ok = sgi_json_kind_of(argument) == SGI_JSON_OBJECT && is_argument(argument);
    if (!ok)
        return refuse(item, error,
                      "\"arguments\" is not an array of objects with a \"name\"");
    if (item->options.read_ttl_ms || item->options.read_scope)
        return refuse(item, error,
                      "the options read_ttl_ms and read_scope are only for resources and "
                      "templates");
    return check_texts(item, json, error);
}

/* Checks that the method of a question is known. The JSON of a question has no members to
 * check besides the method. */
static segue_status check_question(sgi_item *item, sgi_json json, segue_error **error)
{
    (void)json;
    return sgi_question_kind(sgi_str_of(item->key))
               ? SEGUE_OK
               : refuse(item, error, "questions of this method cannot be tasks");
}

/* Checks that the method names a list. A list takes no option besides its flags. */
static segue_status check_list(sgi_item *item, sgi_json json, segue_error **error)
{
    const segue_item_options *options = &item->options;
    (void)json;
    if (!sgi_listed_type(sgi_str_of(item->key)))
        return refuse(
            item, error,
            "the method is tools/list, resources/list, resources/templates/list "
            "or prompts/list");
    if (options->flags & ~SEGUE_LIST_SHOWS_ALL || options->task != SEGUE_TASK_NEVER ||
        options->promote_after_ms || options->read_ttl_ms || options->read_scope ||
        item->scopes || options->visibility != SEGUE_VISIBLE)
        return refuse(item, error, "a list takes no option besides SEGUE_LIST_SHOWS_ALL");
    return SEGUE_OK;
}

/* Checks and copies the scopes of an item. The copy is needed because the application
 * owns the given text. */
static segue_status take_scopes(sgi_item *item, const char *scopes, segue_error **error)
{
    sgi_str text = sgi_str_of(scopes);
    item->options.scopes = NULL;
    if (!sgi_scopes_are_valid(text))
        return refuse(item, error,
                      "the option scopes has a character that is not allowed: scopes are "
                      "words without quotes and backslashes");
    if (!text.n)
        return SEGUE_OK;
    item->scopes = sgi_text_dup(item->mem, text);
    return item->scopes ? SEGUE_OK : SEGUE_E_NOMEM;
}

static bool is_advised(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-.", c));
}

/* ---- all checks ---- */

segue_status sgi_item_check(sgi_item *item, sgi_json json, segue_error **error)
{
    const segue_item_options *options = &item->options;
    segue_status status = take_scopes(item, options->scopes, error);
    if (status == SEGUE_OK)
        status = type_of(item)->check(item, json, error);
    if (status == SEGUE_OK && options->visibility == SEGUE_LISTED_ONLY &&
        item->type != SEGUE_ITEM_RESOURCE_TEMPLATE)
        status =
            refuse(item, error, "the visibility SEGUE_LISTED_ONLY is only for templates");
    if (status == SEGUE_OK && options->on_completion && item->type != SEGUE_ITEM_PROMPT &&
        item->type != SEGUE_ITEM_RESOURCE_TEMPLATE)
        status = refuse(item, error,
                        "on_completion is only for prompts and resource templates: this "
                        "item has no argument or variable to complete");
    return status;
}

segue_status sgi_item_check_uri(const sgi_item *item, segue_error **error)
{
    bool is_template = item->type == SEGUE_ITEM_RESOURCE_TEMPLATE;
    if (item->type != SEGUE_ITEM_RESOURCE && !is_template)
        return SEGUE_OK;
    const char *problem = sgi_uri_form_fault(sgi_str_of(item->key), is_template);
    return problem ? refuse(item, error, problem) : SEGUE_OK;
}

const char *sgi_item_advice(const sgi_item *item)
{
    static const char *const advice =
        "the specification advises names of 1 to 128 letters, digits, \"_\", \"-\" and "
        "\".\" for tools, and some clients refuse other names";
    size_t n = 0;
    if (item->type != SEGUE_ITEM_TOOL)
        return NULL;
    while (is_advised(item->key[n]))
        n++;
    return item->key[n] || n > SGI_THRESHOLD(tool_name_advised) ? advice : NULL;
}
