#include "inspect/archive.h"
#include "inspect/places.h"

/* Writes bytes as the member "text" or "base64". */
static void write_bytes(sgi_jw *w, const char *bytes, size_t n)
{
    size_t at;
    if (sgi_utf8_valid((sgi_str){bytes, n}, &at))
        sgi_jw_member_string(w, "text", (sgi_str){bytes, n});
    else
        sgi_inspection_write_base64(w, "base64", bytes, n);
}

/* Begins a line, which is an object with this one member, an object as well. */
static void open_line(sgi_jw *w, const char *name)
{
    sgi_jw_open(w, '{');
    sgi_jw_key(w, name);
    sgi_jw_open(w, '{');
}

static void close_line(sgi_jw *w)
{
    sgi_jw_close(w, '}');
    sgi_jw_close(w, '}');
}

void sgi_archive_write_entry(sgi_inspection *inspection, sgi_jw *w,
                             const segue_store_entry *entry)
{
    (void)inspection;
    open_line(w, "entry");
    sgi_jw_member_int(w, "seq", (int64_t)entry->seq);
    if (entry->segment)
        sgi_jw_member_int(w, "segment", (int64_t)entry->segment);
    if (entry->event)
        sgi_jw_member_int(w, "event", (int64_t)entry->event);
    sgi_jw_member_int(w, "kind", entry->kind);
    sgi_jw_member_int(w, "atMs", entry->at_ms);
    write_bytes(w, entry->data, entry->data_len);
    close_line(w);
}

segue_status sgi_archive_pass_record(sgi_inspection *inspection,
                                     const segue_store_record *record)
{
    sgi_jw w = sgi_jw_to(&inspection->json);
    open_line(&w, "operation");
    sgi_jw_member_string(&w, "taskId", sgi_str_of(record->task_id));
    sgi_inspection_write_base64(&w, "id", record->id, sizeof record->id);
    if (record->has_key)
        sgi_inspection_write_base64(&w, "key", record->idempotency_key,
                                    sizeof record->idempotency_key);
    sgi_inspection_write_base64(&w, "principal", record->principal,
                                sizeof record->principal);
    sgi_jw_member_int(&w, "createdMs", record->created_ms);
    write_bytes(&w, record->data, record->data_len);
    close_line(&w);
    return sgi_inspection_pass(inspection);
}

segue_status sgi_archive_pass_state(sgi_inspection *inspection,
                                    const segue_store_record *record)
{
    sgi_jw w = sgi_jw_to(&inspection->json);
    open_line(&w, "state");
    sgi_jw_member_int(&w, "ended", record->ended == SEGUE_STORE_ENDED);
    if (record->purge_ms != INT64_MAX)
        sgi_jw_member_int(&w, "purgeMs", record->purge_ms);
    close_line(&w);
    return sgi_inspection_pass(inspection);
}

static segue_status pass_literal(sgi_inspection *inspection, const char *json)
{
    sgi_buf_add_str(&inspection->json, sgi_str_of(json));
    return sgi_inspection_pass(inspection);
}

/* An operation that was deleted meanwhile is gone, and one that cannot be read is left
 * out: it must not keep all others from a backup. */
static segue_status pass_gone(sgi_inspection *inspection, segue_status why)
{
    segue_status status = pass_literal(inspection, "{\"gone\":1}");
    return status == SEGUE_OK && why == SEGUE_E_STORE_CORRUPT ? why : status;
}

/* Passes the log of an operation, and its state. An operation can end while its log is
 * read. The rest of the log is then read before the state is passed. Returns
 * SEGUE_E_STORE_CORRUPT when the operation is left out. */
static segue_status pass_log(sgi_inspection *inspection,
                             const sgi_inspected_record *start)
{
    uint64_t last = 0;
    int32_t ended = start->head.ended;
    for (;;) {
        sgi_inspected_record now;
        segue_status status = sgi_inspection_pass_log(inspection, start->head.id, &last,
                                                      sgi_archive_write_entry);
        if (status == SEGUE_OK)
            status = sgi_inspection_find_any(inspection, start->head.task_id, &now);
        if (status == SEGUE_E_NOT_FOUND || status == SEGUE_E_STORE_CORRUPT)
            return pass_gone(inspection, status);
        if (status != SEGUE_OK)
            return status;
        bool same = now.head.ended == ended;
        ended = now.head.ended;
        if (same && !inspection->stop)
            status = sgi_archive_pass_state(inspection, &now.head);
        sgi_buf_free(&now.bytes);
        if (same || status != SEGUE_OK || inspection->stop)
            return status;
    }
}

/* A mailbox is left out: it is for servers that run. So is an operation that is gone
 * meanwhile. */
static segue_status pass_operation(sgi_inspection *inspection, const char *task_id,
                                   uint64_t *count)
{
    sgi_inspected_record record;
    segue_status status = sgi_inspection_find_any(inspection, task_id, &record);
    if (status != SEGUE_OK)
        return status == SEGUE_E_NOT_FOUND ? SEGUE_OK : status;
    if (!sgi_inspection_is_mailbox(&record.head)) {
        ++*count;
        status = sgi_archive_pass_record(inspection, &record.head);
        if (status == SEGUE_OK && !inspection->stop)
            status = pass_log(inspection, &record);
    }
    sgi_buf_free(&record.bytes);
    return status;
}

static segue_status pass_count(sgi_inspection *inspection, uint64_t count)
{
    sgi_jw w = sgi_jw_to(&inspection->json);
    open_line(&w, "end");
    sgi_jw_member_int(&w, "operations", (int64_t)count);
    close_line(&w);
    return sgi_inspection_pass(inspection);
}

segue_status sgi_archive_pass_start(sgi_inspection *inspection)
{
    sgi_jw w = sgi_jw_to(&inspection->json);
    sgi_jw_open(&w, '{');
    sgi_jw_member_int(&w, "archive", SGI_ARCHIVE_FORMAT);
    sgi_jw_member_int(&w, "records", sgi_store_records(inspection->store));
    sgi_jw_close(&w, '}');
    return sgi_inspection_pass(inspection);
}

/* The oldest operation comes first, so a store that keeps only the newest ones keeps the
 * same. */
segue_status sgi_archive_write(sgi_inspection *inspection)
{
    sgi_places places;
    uint64_t count = 0;
    segue_status status = sgi_places_find(&places, inspection);
    if (status == SEGUE_OK)
        status = sgi_archive_pass_start(inspection);
    bool lacks_some = places.lacks_some;
    for (size_t i = places.count; i > 0 && status == SEGUE_OK && !inspection->stop; i--) {
        status = pass_operation(inspection, places.all[i - 1].task_id, &count);
        lacks_some = lacks_some || status == SEGUE_E_STORE_CORRUPT;
        if (status == SEGUE_E_STORE_CORRUPT)
            status = SEGUE_OK;
    }
    if (status == SEGUE_OK && !inspection->stop)
        status = pass_count(inspection, count);
    sgi_places_free(&places);
    return status == SEGUE_OK && lacks_some ? SEGUE_E_STORE_CORRUPT : status;
}
