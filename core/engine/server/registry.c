/* The items of a server: tools, resources, resource templates, prompts, the questions
 * that the server answers when it is the host in a client's session, and the lists whose
 * items the application hides from some callers. Items are
 * reference-counted. A removed item leaves the lists at once and is freed when the last
 * call that runs the item ends. Then the item's free_user runs, outside the lock. */
#include "engine/error.h"
#include "engine/server/item_check.h"
#include "engine/server/metrics.h"
#include "wire/json_copy.h"

/* ---- references ---- */

void sgi_item_ref(sgi_item *item)
{
    item->refs++;
}

static void free_item(sgi_item *item)
{
    const sgi_mem *mem = item->mem;
    sgi_text_free(mem, item->key);
    sgi_text_free(mem, item->scopes);
    sgi_mcp_params_free(&item->params);
    if (item->pattern)
        sgi_free(mem, item->pattern, sizeof *item->pattern);
    if (item->json)
        sgi_free(mem, item->json, item->json_len + 1);
    sgi_metrics_free_item(item);
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

/* ---- adding and removing ---- */

/* Returns the JSON of an item as lists show the item. A tool without inputSchema gets an
 * inputSchema that accepts any object, because the protocol requires this member. The
 * member `execution` is left out: the item's options decide whether a tool runs as a
 * task, and each protocol version writes this decision in its own form. */
static char *listed_form(sgi_item *item, sgi_json json)
{
    const sgi_mem *mem = item->mem;
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

static sgi_item *new_item(const sgi_mem *mem, int32_t type, sgi_str key, sgi_json json)
{
    sgi_item *item = sgi_zalloc(mem, sizeof *item);
    if (!item)
        return NULL;
    item->mem = mem;
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

/* Makes an item that is in no list yet. */
static segue_status make_item(const sgi_mem *mem, int32_t type, sgi_str key,
                              sgi_json json, const segue_item_options *options,
                              sgi_item **out, segue_error **error)
{
    sgi_item *item = new_item(mem, type, key, json);
    if (!item)
        return SEGUE_E_NOMEM;
    item->options = *options;
    segue_status status = sgi_item_check(item, json, error);
    if (status == SEGUE_OK)
        *out = item;
    else
        free_item(item);
    return status;
}

segue_status sgi_item_try(const sgi_mem *mem, int32_t type, sgi_json json,
                          const segue_item_options *options, const char **advice,
                          segue_error **error)
{
    sgi_str key;
    sgi_item *item;
    segue_status status = sgi_item_read_key(mem, type, json, &key, error);
    if (status == SEGUE_OK)
        status = make_item(mem, type, key, json, options, &item, error);
    if (status != SEGUE_OK)
        return status;
    status = sgi_item_check_uri(item, error);
    if (status == SEGUE_OK)
        *advice = sgi_item_advice(item);
    free_item(item);
    return status;
}

segue_status sgi_item_add(segue_server *server, int32_t type, sgi_json json,
                          const segue_item_options *options, segue_error **error)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_typed_items *list = sgi_items_of_type(server, type);
    sgi_str key;
    sgi_item *item;
    segue_status status = sgi_item_read_key(mem, type, json, &key, error);
    if (status == SEGUE_OK && sgi_item_find(server, type, key))
        status = sgi_error_return(error, mem, SEGUE_E_EXISTS, "%s %.*s exists already",
                                  sgi_item_word(type), (int)key.n, key.p);
    if (status == SEGUE_OK)
        status = make_item(mem, type, key, json, options, &item, error);
    if (status != SEGUE_OK)
        return status;
    item->engine = server->engine;
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
