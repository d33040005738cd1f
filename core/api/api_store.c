/* Functions for tools that look into a store. */
#include "api/guard.h"
#include "engine/error.h"
#include "inspect/archive.h"
#include "inspect/inspect.h"
#include "inspect/rerun.h"

/* Makes the error of a status that is not SEGUE_OK. */
static segue_status finish(sgi_inspection *inspection, segue_status status,
                           const char *task_id, segue_error **error)
{
    const sgi_mem *mem = inspection->env.mem;
    if (status == SEGUE_OK && inspection->failed)
        status = SEGUE_E_NOMEM;
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
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    sgi_inspection_begin(&inspection, store, fn, user);
    return finish(&inspection, sgi_inspect_all(&inspection), "", error);
}

segue_status segue_store_show(segue_store *store, const char *task_id,
                              segue_store_json_fn fn, void *user, segue_error **error)
{
    sgi_inspection inspection;
    if (!store || !task_id || !fn)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    sgi_inspection_begin(&inspection, store, fn, user);
    return finish(&inspection, sgi_inspect_one(&inspection, task_id), task_id, error);
}

segue_status segue_store_entries(segue_store *store, const char *task_id, uint64_t after,
                                 segue_store_json_fn fn, void *user, int32_t *ended,
                                 segue_error **error)
{
    sgi_inspection inspection;
    int32_t none;
    if (!store || !task_id || !fn)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    sgi_inspection_begin(&inspection, store, fn, user);
    segue_status status =
        sgi_inspect_entries(&inspection, task_id, after, ended ? ended : &none);
    return finish(&inspection, status, task_id, error);
}

segue_status segue_store_command(segue_store *store, const char *task_id,
                                 const char *json, size_t len, segue_error **error)
{
    sgi_inspection inspection;
    sgi_str key;
    if (!store || !task_id || !json)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    sgi_str text = {json, sgi_given_len(json, len)};
    sgi_inspection_begin(&inspection, store, NULL, NULL);
    segue_status status = SEGUE_E_INVALID;
    if (sgi_inspect_write_command(&inspection, text, &key))
        status = inspection.json.failed
                     ? SEGUE_E_NOMEM
                     : sgi_inspect_command(&inspection, task_id,
                                           sgi_buf_str(&inspection.json), key);
    return finish(&inspection, status, task_id, error);
}

segue_status segue_store_rerun(segue_store *store, const char *task_id, uint64_t segments,
                               segue_store_json_fn fn, void *user, segue_error **error)
{
    sgi_inspection inspection;
    char new_id[SGI_OPERATION_TEXT + 1];
    const char *why;
    if (!store || !task_id || !fn)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    sgi_inspection_begin(&inspection, store, fn, user);
    segue_status status = sgi_inspect_rerun(&inspection, task_id, segments, new_id, &why);
    if (status == SEGUE_OK)
        return finish(&inspection, sgi_inspect_one(&inspection, new_id), new_id, error);
    if (!why)
        return finish(&inspection, status, task_id, error);
    sgi_error_return(error, inspection.env.mem, status,
                     "the operation %s cannot run again: %s", task_id, why);
    sgi_inspection_end(&inspection);
    return status;
}

segue_status segue_store_remove(segue_store *store, const char *task_id,
                                segue_error **error)
{
    sgi_inspection inspection;
    if (!store || !task_id)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    sgi_inspection_begin(&inspection, store, NULL, NULL);
    return finish(&inspection, sgi_inspect_remove(&inspection, task_id), task_id, error);
}

/* ---- archives ---- */

segue_status segue_store_export(segue_store *store, segue_store_json_fn fn, void *user,
                                segue_error **error)
{
    sgi_inspection inspection;
    if (!store || !fn)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    sgi_inspection_begin(&inspection, store, fn, user);
    segue_status status = sgi_archive_write(&inspection);
    if (status == SEGUE_OK && inspection.stop)
        status = SEGUE_E_CANCELLED;
    return finish(&inspection, status, "", error);
}

static sgi_archive_reader *reader_of(segue_store_importer *importer)
{
    return (sgi_archive_reader *)(void *)importer;
}

segue_status segue_store_importer_new(segue_store *store, segue_store_importer **out)
{
    if (!store || !out)
        return SEGUE_E_INVALID;
    *out = (segue_store_importer *)(void *)sgi_archive_reader_new(store);
    return *out ? SEGUE_OK : SEGUE_E_NOMEM;
}

segue_status segue_store_importer_add(segue_store_importer *importer, const char *line,
                                      size_t len, segue_error **error)
{
    const char *why = NULL;
    if (!importer || !line)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    sgi_str text = {line, sgi_given_len(line, len)};
    segue_status status = sgi_archive_take(reader_of(importer), text, &why);
    if (status != SEGUE_OK)
        sgi_error_return(error, sgi_archive_mem(reader_of(importer)), status, "%s",
                         why ? why : sgi_status_text(status));
    return status;
}

segue_status segue_store_importer_close(segue_store_importer *importer, uint64_t *made,
                                        uint64_t *present, uint64_t *left_out)
{
    uint64_t none;
    if (!importer)
        return SEGUE_E_INVALID;
    segue_status status = sgi_archive_end(reader_of(importer));
    sgi_archive_counts counts = sgi_archive_counted(reader_of(importer));
    *(made ? made : &none) = counts.made;
    *(present ? present : &none) = counts.present;
    *(left_out ? left_out : &none) = counts.left_out;
    sgi_archive_reader_free(reader_of(importer));
    return status;
}

segue_status segue_store_read_stats(segue_store *store, segue_store_stats *stats)
{
    segue_store_stats full = {sizeof full, -1, -1, -1, -1};
    if (!store || !stats || stats->struct_size < sizeof stats->struct_size ||
        stats->struct_size > sizeof full)
        return SEGUE_E_INVALID;
    sgi_store_stats(store, &full);
    full.struct_size = stats->struct_size; /* that of the application, perhaps an older */
    memcpy(stats, &full, full.struct_size);
    return SEGUE_OK;
}

segue_status segue_store_compact(segue_store *store, segue_error **error)
{
    if (!store)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    segue_status status = sgi_store_compact(store);
    if (status != SEGUE_OK)
        sgi_error_return(error, sgi_store_mem(store), status, "%s",
                         status == SEGUE_E_UNSUPPORTED
                             ? "this store does not give room back to the system"
                             : sgi_status_text(status));
    return status;
}
