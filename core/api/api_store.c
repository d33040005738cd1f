/* Functions for tools that look into a store. */
#include "api/guard.h"
#include "engine/error.h"
#include "inspect/inspect.h"

/* Returns the error of a status that is not SEGUE_OK. */
static segue_status finish(sgi_inspection *inspection, segue_status status,
                           const char *task_id, segue_error **error)
{
    const sgi_mem *mem = inspection->env.mem;
    if (status == SEGUE_E_NOT_FOUND)
        sgi_error_return(error, mem, status, "the store has no operation %s", task_id);
    else if (status == SEGUE_E_STATE)
        sgi_error_return(error, mem, status, "the operation %s has not ended", task_id);
    else if (status == SEGUE_E_TERMINAL)
        sgi_error_return(error, mem, status, "the operation %s has ended", task_id);
    else if (status == SEGUE_E_UNSUPPORTED)
        sgi_error_return(error, mem, status, "this store cannot show all operations");
    else if (status != SEGUE_OK)
        sgi_error_return(error, mem, status, "%s", sgi_status_text(status));
    sgi_inspection_end(inspection);
    return status;
}

segue_status segue_store_list(segue_store *store, segue_store_json_fn fn, void *user,
                              segue_error **error)
{
    sgi_inspection inspection;
    if (!store || !fn)
        return SEGUE_E_INVALID;
    sgi_inspection_begin(&inspection, store, fn, user);
    return finish(&inspection, sgi_inspect_all(&inspection), "", error);
}

segue_status segue_store_show(segue_store *store, const char *task_id, uint64_t after,
                              segue_store_json_fn fn, void *user, segue_error **error)
{
    sgi_inspection inspection;
    if (!store || !task_id || !fn)
        return SEGUE_E_INVALID;
    sgi_inspection_begin(&inspection, store, fn, user);
    return finish(&inspection, sgi_inspect_one(&inspection, task_id, after), task_id,
                  error);
}

/* True for {"cancel":1} and {"answer":{"key":...,"response":...}}. */
static bool is_command(sgi_inspection *inspection, sgi_str text)
{
    int64_t cancel = 0;
    if (!sgi_inspection_accepts(inspection, text))
        return false;
    sgi_json command = sgi_json_trim(text);
    sgi_json answer = sgi_json_get(command, "answer");
    if (sgi_json_read_int(sgi_json_get(command, "cancel"), &cancel))
        return cancel == 1;
    return sgi_json_kind_of(sgi_json_get(answer, "key")) == SGI_JSON_STRING &&
           sgi_json_kind_of(sgi_json_get(answer, "response")) == SGI_JSON_OBJECT;
}

segue_status segue_store_command(segue_store *store, const char *task_id,
                                 const char *json, size_t len, segue_error **error)
{
    sgi_inspection inspection;
    if (!store || !task_id || !json)
        return SEGUE_E_INVALID;
    sgi_str text = {json, sgi_given_len(json, len)};
    sgi_inspection_begin(&inspection, store, NULL, NULL);
    segue_status status = is_command(&inspection, text)
                              ? sgi_inspect_command(&inspection, task_id, text)
                              : SEGUE_E_INVALID;
    return finish(&inspection, status, task_id, error);
}

segue_status segue_store_remove(segue_store *store, const char *task_id,
                                segue_error **error)
{
    sgi_inspection inspection;
    if (!store || !task_id)
        return SEGUE_E_INVALID;
    sgi_inspection_begin(&inspection, store, NULL, NULL);
    return finish(&inspection, sgi_inspect_remove(&inspection, task_id), task_id, error);
}

segue_status segue_store_read_stats(segue_store *store, segue_store_stats *stats)
{
    if (!store || !stats || stats->struct_size != sizeof *stats)
        return SEGUE_E_INVALID;
    *stats = (segue_store_stats){sizeof *stats, -1, -1, -1, -1};
    sgi_store_stats(store, stats);
    return SEGUE_OK;
}
