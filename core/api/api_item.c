/* Functions of the items of a server. */
#include "api/guard.h"
#include "engine/error.h"
#include "engine/server/server.h"
#include "engine/server/shown.h"
#include "engine/server/waiting_ops.h"
#include "wire/freshness.h"

/* ---- options ---- */

static bool is_item(int32_t item)
{
    return item >= SEGUE_ITEM_TOOL && item <= SEGUE_ITEM_LIST;
}

/* Returns NULL, or a text that tells which option is out of range. */
static const char *options_fault(const segue_item_options *o)
{
    if (o->task < SEGUE_TASK_NEVER || o->task > SEGUE_TASK_MUST)
        return "the option task is not a segue_task_policy";
    if (o->ttl_ms < -1)
        return "the option ttl_ms is negative";
    if (o->poll_ms < 0)
        return "the option poll_ms is negative";
    if (o->promote_after_ms < 0)
        return "the option promote_after_ms is negative";
    if (o->visibility < SEGUE_VISIBLE || o->visibility > SEGUE_LISTED_ONLY)
        return "the option visibility is not a segue_visibility";
    if (!sgi_freshness_is_valid(o->read_ttl_ms, o->read_scope))
        return "the option read_ttl_ms is negative or above 2^53 - 1, or read_scope is "
               "not a segue_cache_scope";
    return NULL;
}

/* Fills in the defaults of the options, and checks their ranges. */
static segue_status resolve_options(const sgi_mem *mem, segue_item_options *full,
                                    const segue_item_options *options,
                                    segue_error **error)
{
    segue_status status = sgi_copy_struct_in(full, sizeof *full, options);
    if (status != SEGUE_OK)
        return status;
    if (!full->ttl_ms)
        full->ttl_ms = 3600 * 1000;
    if (!full->poll_ms)
        full->poll_ms = 1000;
    const char *fault = options_fault(full);
    return fault ? sgi_error_return(error, mem, SEGUE_E_INVALID, "%s", fault) : SEGUE_OK;
}

/* ---- adding and removing ---- */

static sgi_str method_of(sgi_json item)
{
    sgi_str text = {0};
    sgi_json_plain_string(sgi_json_get(item, "method"), &text);
    return text;
}

/* Reports that the list with this item has changed. A list that the application adds or
 * removes may show other items than before. */
static void report_changed(segue_server *server, int32_t item, sgi_str list)
{
    sgi_items_report_changed(server,
                             item == SEGUE_ITEM_LIST ? sgi_listed_type(list) : item);
}

static segue_status refuse_json(const sgi_mem *mem, segue_status status,
                                sgi_json_error fault, segue_error **error)
{
    return sgi_error_return(error, mem, status, "%s at byte %zu",
                            sgi_json_fault_text(fault.fault), fault.at);
}

static segue_status add_item(segue_server *server, int32_t item, const char *json,
                             size_t len, const segue_item_options *options,
                             segue_error **error)
{
    sgi_json_error fault;
    sgi_json value;
    segue_status status =
        sgi_engine_check_json(server->engine, json, len, &value, &fault);
    if (status == SEGUE_E_JSON || status == SEGUE_E_TOO_LARGE)
        return refuse_json(sgi_engine_mem(server->engine), status, fault, error);
    if (status == SEGUE_OK)
        status = sgi_item_add(server, item, value, options, error);
    if (status == SEGUE_OK)
        report_changed(server, item, method_of(value));
    if (status == SEGUE_OK && item == SEGUE_ITEM_TOOL)
        sgi_server_on_tool_added(server);
    return status;
}

segue_status segue_server_add(segue_server *server, int32_t item, const char *json,
                              size_t len, const segue_item_options *options,
                              segue_error **error)
{
    len = sgi_given_len(json, len);
    segue_item_options full;
    segue_status status = sgi_enter(SGI_FN_segue_server_add, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    status = resolve_options(sgi_engine_mem(server->engine), &full, options, error);
    if (status == SEGUE_OK && (!is_item(item) || !full.on_call))
        status = SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = add_item(server, item, json, len, &full, error);
    sgi_leave(server);
    return status;
}

segue_status segue_server_remove(segue_server *server, int32_t item, const char *name)
{
    segue_status status = sgi_enter(SGI_FN_segue_server_remove, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    status =
        is_item(item) && name ? sgi_item_remove(server, item, name) : SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        report_changed(server, item, sgi_str_of(name));
    sgi_leave(server);
    return status;
}

/* ---- checking without a server ---- */

static int32_t no_random(void *user, void *bytes, size_t len)
{
    (void)user;
    (void)bytes;
    (void)len;
    return -1;
}

/* Checks a JSON text of the application. Nobody else chooses its keys, so the reader
 * needs no secret seed. */
static segue_status check_json(sgi_str text, sgi_json *value, segue_error **error)
{
    segue_hooks hooks = {.random = no_random};
    sgi_env env = {&sgi_mem_libc, &hooks};
    sgi_json_reader reader;
    sgi_json_error fault = {SGI_JSON_OK, 0};
    sgi_json_reader_init(&reader, &env, SGI_JSON_MAX_BYTES, SGI_JSON_DEFAULT_DEPTH);
    bool ok = sgi_json_read(&reader, text, NULL, 0, NULL, &fault);
    sgi_json_reader_free(&reader);
    *value = sgi_json_trim(text);
    if (ok)
        return SEGUE_OK;
    return fault.fault == SGI_JSON_NOMEM
               ? SEGUE_E_NOMEM
               : refuse_json(&sgi_mem_libc, SEGUE_E_JSON, fault, error);
}

segue_status segue_item_check(int32_t item, const char *json, size_t len,
                              const segue_item_options *options, const char **advice,
                              segue_error **error)
{
    len = sgi_given_len(json, len);
    segue_item_options full;
    sgi_json value;
    const char *text;
    if (!is_item(item) || !json || !advice)
        return SEGUE_E_INVALID;
    segue_status status = resolve_options(&sgi_mem_libc, &full, options, error);
    if (status == SEGUE_OK)
        status = check_json((sgi_str){json, len}, &value, error);
    if (status == SEGUE_OK)
        status = sgi_item_try(&sgi_mem_libc, item, value, &full, &text, error);
    if (status == SEGUE_OK)
        *advice = text;
    return status;
}
