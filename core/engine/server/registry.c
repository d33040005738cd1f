/* The items of a server: tools, resources, resource templates, prompts, the questions
 * that the server answers when it is the host in a client's session, and the lists whose
 * items the application hides from some callers. Items are
 * reference-counted. A removed item leaves the lists at once and is freed when the last
 * call that runs the item ends. Then the item's free_user runs, outside the lock. */
#include "engine/error.h"
#include "engine/server/server.h"
#include "engine/server/shown.h"
#include "wire/scopes.h"
#include "wire/json_copy.h"

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

/* ---- references ---- */

void sgi_item_ref(sgi_item *item)
{
    item->refs++;
}

static void free_item(sgi_item *item)
{
    const sgi_mem *mem = sgi_engine_mem(item->engine);
    sgi_text_free(mem, item->key);
    sgi_text_free(mem, item->scopes);
    sgi_mcp_params_free(&item->params);
    if (item->pattern)
        sgi_free(mem, item->pattern, sizeof *item->pattern);
    if (item->json)
        sgi_free(mem, item->json, item->json_len + 1);
    sgi_free(mem, item, sizeof *item);
}

static int32_t run_free_user(sgi_ready_object *ready, int32_t budget)
{
    sgi_item *item = SGI_OWNER(ready, sgi_item, ready);
    segue_free_fn fn = item->options.free_user;
    void *user = item->options.user;
    sgi_engine *engine = item->engine;
    (void)budget;
    free_item(item);
    return sgi_user_data_free(engine, fn, user);
}

void sgi_item_unref(sgi_item *item)
{
    if (--item->refs)
        return;
    if (item->options.free_user)
        sgi_ready_queue_add(item->engine, &item->ready);
    else
        free_item(item);
}

sgi_item *sgi_item_find(segue_server *server, int32_t type, sgi_str key)
{
    sgi_typed_items *list = sgi_items_of_type(server, type);
    if (list->found && sgi_str_eq(list->found->node.key, key))
        return list->found;
    sgi_map_node *node = sgi_map_find(&list->by_key, key);
    if (!node)
        return NULL;
    list->found = SGI_OWNER(node, sgi_item, node);
    return list->found;
}

sgi_item *sgi_resource_find(segue_server *server, sgi_str uri)
{
    sgi_str spans[SGI_URI_VARIABLES_MAX];
    sgi_item *item = sgi_item_find(server, SEGUE_ITEM_RESOURCE, uri);
    if (item)
        return item;
    TAILQ_FOREACH(item, &sgi_items_of_type(server, SEGUE_ITEM_RESOURCE_TEMPLATE)->items,
                  link)
        if (item->pattern && sgi_uri_template_match(item->pattern, uri, spans))
            return item;
    return NULL;
}

bool sgi_items_served(const segue_server *server, int32_t type)
{
    const sgi_typed_items *shelves = server->shelves;
    if (type == SEGUE_ITEM_RESOURCE || type == SEGUE_ITEM_RESOURCE_TEMPLATE)
        return shelves[SEGUE_ITEM_RESOURCE - 1].order ||
               shelves[SEGUE_ITEM_RESOURCE_TEMPLATE - 1].order;
    return type == SEGUE_ITEM_TOOL || shelves[type - 1].order;
}

/* ---- checking an item ---- */

static segue_status refuse(const sgi_item *item, segue_error **error, const char *why)
{
    return sgi_error_return(error, sgi_engine_mem(item->engine), SEGUE_E_INVALID,
                            "%s %s: %s", type_of(item)->word, item->key, why);
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
    return sgi_error_return(error, sgi_engine_mem(tool->engine), SEGUE_E_INVALID,
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
    item->pattern = sgi_alloc(sgi_engine_mem(item->engine), sizeof *item->pattern);
    if (!item->pattern)
        return SEGUE_E_NOMEM;
    const char *problem = sgi_uri_template_read(item->pattern, sgi_str_of(item->key));
    return problem ? refuse(item, error, problem) : check_texts(item, json, error);
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

/* ---- adding and removing ---- */

static segue_status read_key(segue_server *server, int32_t type, sgi_json json,
                             sgi_str *key, segue_error **error)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    const sgi_item_type *t = &types[type - 1];
    if (!sgi_json_plain_string(sgi_json_get(json, t->key), key) || !key->n ||
        memchr(key->p, 0, key->n))
        return sgi_error_return(
            error, mem, SEGUE_E_INVALID,
            "a %s needs a member \"%s\" that is written without escapes", t->word,
            t->key);
    if (sgi_item_find(server, type, *key))
        return sgi_error_return(error, mem, SEGUE_E_EXISTS, "%s %.*s exists already",
                                t->word, (int)key->n, key->p);
    return SEGUE_OK;
}

/* Returns the JSON of an item as lists show the item. A tool without inputSchema gets an
 * inputSchema that accepts any object, because the protocol requires this member. The
 * member `execution` is left out: the item's options decide whether a tool runs as a
 * task, and each protocol version writes this decision in its own form. */
static char *listed_form(sgi_item *item, sgi_json json)
{
    const sgi_mem *mem = sgi_engine_mem(item->engine);
    bool is_tool = item->type == SEGUE_ITEM_TOOL;
    sgi_buf out;
    sgi_buf_init(&out, mem);
    sgi_jw w = sgi_jw_to(&out);
    sgi_jw_open(&w, '{');
    sgi_jw_copy_members(&w, json, is_tool ? SGI_JSON_NAMES("execution") : NULL);
    if (is_tool && !sgi_json_get(json, "inputSchema").n)
        sgi_jw_member_raw(&w, "inputSchema", SGI_STR("{\"type\":\"object\"}"));
    sgi_jw_close(&w, '}');
    char *text = out.failed ? NULL : sgi_text_dup(mem, sgi_buf_str(&out));
    item->json_len = out.len;
    sgi_buf_free(&out);
    return text;
}

static sgi_item *new_item(segue_server *server, int32_t type, sgi_str key, sgi_json json)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_item *item = sgi_zalloc(mem, sizeof *item);
    if (!item)
        return NULL;
    item->engine = server->engine;
    item->type = type;
    item->refs = 1;
    item->ready.run = run_free_user;
    sgi_mcp_params_init(&item->params, mem);
    item->key = sgi_text_dup(mem, key);
    item->json = listed_form(item, json);
    if (item->key && item->json)
        return item;
    free_item(item);
    return NULL;
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
    item->scopes = sgi_text_dup(sgi_engine_mem(item->engine), text);
    return item->scopes ? SEGUE_OK : SEGUE_E_NOMEM;
}

segue_status sgi_item_add(segue_server *server, int32_t type, sgi_json json,
                          const segue_item_options *options, segue_error **error)
{
    sgi_typed_items *list = sgi_items_of_type(server, type);
    sgi_str key;
    segue_status status = read_key(server, type, json, &key, error);
    if (status != SEGUE_OK)
        return status;
    sgi_item *item = new_item(server, type, key, json);
    if (!item)
        return SEGUE_E_NOMEM;
    item->options = *options;
    status = take_scopes(item, options->scopes, error);
    if (status == SEGUE_OK)
        status = type_of(item)->check(item, json, error);
    if (status == SEGUE_OK && options->visibility == SEGUE_LISTED_ONLY &&
        type != SEGUE_ITEM_RESOURCE_TEMPLATE)
        status =
            refuse(item, error, "the visibility SEGUE_LISTED_ONLY is only for templates");
    if (status == SEGUE_OK && options->on_completion && type != SEGUE_ITEM_PROMPT &&
        type != SEGUE_ITEM_RESOURCE_TEMPLATE)
        status = refuse(item, error,
                        "on_completion is only for prompts and resource templates: this "
                        "item has no argument or variable to complete");
    if (status != SEGUE_OK) {
        free_item(item);
        return status;
    }
    item->order = ++list->order;
    server->completes |= options->on_completion != NULL;
    list->with_params += sgi_mcp_params_count(&item->params) > 0;
    TAILQ_INSERT_TAIL(&list->items, item, link);
    sgi_map_put(&list->by_key, &item->node, sgi_str_of(item->key));
    return SEGUE_OK;
}

static void take_out(sgi_typed_items *list, sgi_item *item)
{
    list->with_params -= sgi_mcp_params_count(&item->params) > 0;
    TAILQ_REMOVE(&list->items, item, link);
    sgi_map_remove(&list->by_key, &item->node);
    list->removals++;
    list->found = NULL;
    sgi_item_unref(item);
}

segue_status sgi_item_remove(segue_server *server, int32_t type, const char *key)
{
    sgi_item *item = sgi_item_find(server, type, sgi_str_of(key));
    if (!item)
        return SEGUE_E_NOT_FOUND;
    take_out(sgi_items_of_type(server, type), item);
    return SEGUE_OK;
}

void sgi_items_clear(segue_server *server)
{
    sgi_item *item;
    for (size_t i = 0; i < SGI_ITEM_TYPES; i++)
        while ((item = TAILQ_FIRST(&server->shelves[i].items)))
            take_out(&server->shelves[i], item);
}
