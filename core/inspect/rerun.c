/* Running a task again. The new operation is what the store would have if the server of
 * the task had ended before it made the next segment: the same record, and the log up to
 * there. The next server that looks for interrupted operations goes on with it.
 *
 * The operation is written as the lines of an archive, which the reader of archives
 * takes. */
#include "inspect/rerun.h"

#include "engine/log/op.h"
#include "inspect/archive.h"

typedef struct rerun {
    sgi_inspection inspection; /* reads the log of the task */
    sgi_archive_reader *reader;
    uint64_t keep;       /* number of the last segment that is taken over */
    uint64_t last;       /* number of the last segment up to there that the log has */
    uint64_t upto;       /* number of the last entry that is taken over */
    bool is_over;        /* the entries that are taken over have been seen */
    bool became_task;    /* the log says that the operation became a task */
    bool takes_becoming; /* the new operation takes this entry over */
    int64_t ttl_ms;      /* what this entry says */
    uint64_t surveyed;   /* number of the last entry that was looked at */
    size_t bytes;        /* of the entries since others could use the store */
    segue_status status;
} rerun;

static void note_becoming(rerun *r, sgi_str data)
{
    r->became_task = true;
    r->takes_becoming = !r->is_over;
    if (sgi_inspection_accepts(&r->inspection, data))
        sgi_json_read_int(sgi_json_get(sgi_json_trim(data), "ttl"), &r->ttl_ms);
}

/* Looks at an entry of the whole log. The new operation begins with those before the
 * segment behind `keep`. One without segments begins anew, so it has none: a checkpoint
 * or an answer before the first segment may lie far behind the beginning. */
static int32_t survey_entry(void *user, const segue_store_entry *entry)
{
    rerun *r = user;
    bool is_segment = entry->kind == SGI_ENTRY_SEGMENT;
    r->is_over = r->is_over || !r->keep || sgi_entry_is_final(entry->kind) ||
                 (is_segment && entry->segment > r->keep);
    if (entry->kind == SGI_ENTRY_TASK)
        note_becoming(r, (sgi_str){entry->data, entry->data_len});
    if (!r->is_over)
        r->upto = entry->seq;
    if (!r->is_over && is_segment)
        r->last = entry->segment;
    r->surveyed = entry->seq;
    r->bytes += entry->data_len;
    return r->bytes >= SGI_INSPECT_PAGE;
}

static segue_status survey(rerun *r, const uint8_t *id)
{
    segue_store *store = r->inspection.store;
    segue_status status = sgi_store_read(store, id, 0, survey_entry, r);
    while (status == SEGUE_OK && r->bytes >= SGI_INSPECT_PAGE) {
        r->bytes = 0;
        sgi_store_let_others_in(store);
        status = sgi_store_read(store, id, r->surveyed, survey_entry, r);
    }
    return status;
}

static int32_t take_line(void *user, const char *line, size_t len)
{
    rerun *r = user;
    sgi_str text = {line, len};
    const char *why;
    int64_t seq = 0;
    sgi_json_read_int(sgi_json_get(sgi_json_get(text, "entry"), "seq"), &seq);
    if ((uint64_t)seq > r->upto)
        return 1;
    r->status = sgi_archive_take(r->reader, text, &why);
    return r->status != SEGUE_OK;
}

/* The new operation is a task from its beginning, unless its log says that it becomes
 * one. */
static void write_data(const rerun *r, sgi_buf *out, sgi_json data)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_json_member member;
    sgi_jw_open(&w, '{');
    for (size_t at = 0; sgi_json_next_member(data, &at, &member);) {
        if (sgi_json_key_is(&member, "digest"))
            continue;
        sgi_jw_key_json(&w, member.key);
        if (sgi_json_key_is(&member, "task") && !r->takes_becoming)
            sgi_jw_int(&w, SGI_TASKING_YES);
        else if (sgi_json_key_is(&member, "ttl") && r->became_task && !r->takes_becoming)
            sgi_jw_int(&w, r->ttl_ms);
        else
            sgi_jw_raw(&w, member.value);
    }
    sgi_jw_close(&w, '}');
}

static segue_status write_lines(rerun *r, const segue_store_record *old,
                                segue_store_record *new)
{
    sgi_inspection *inspection = &r->inspection;
    uint64_t after = 0;
    segue_status status = sgi_archive_pass_start(inspection);
    if (status == SEGUE_OK)
        status = sgi_archive_pass_record(inspection, new);
    if (status == SEGUE_OK && r->upto)
        status =
            sgi_inspection_pass_log(inspection, old->id, &after, sgi_archive_write_entry);
    return status == SEGUE_OK ? r->status : status;
}

/* Says in *why what the new operation lacks. */
static segue_status check(const rerun *r, sgi_json data, const char **why)
{
    int64_t tasking = SGI_TASKING_NO, restartable = 0;
    sgi_json_read_int(sgi_json_get(data, "task"), &tasking);
    sgi_json_read_int(sgi_json_get(data, "restartable"), &restartable);
    if (tasking != SGI_TASKING_YES && !r->became_task)
        *why = "it is a call and no task, so nobody would get its result";
    else if (!restartable)
        *why = "its tool is not known to be restartable, so it cannot go on behind a "
               "segment";
    if (*why)
        return SEGUE_E_UNSUPPORTED;
    if (r->last < r->keep)
        *why = "it has made fewer segments";
    return *why ? SEGUE_E_INVALID : SEGUE_OK;
}

static segue_status make(rerun *r, const segue_store_record *old, sgi_buf *bytes,
                         char new_id[SGI_OPERATION_TEXT + 1], const char **why)
{
    segue_store_record new = *old;
    sgi_inspection *inspection = &r->inspection;
    sgi_json data = sgi_inspection_data(inspection, old);
    if (!data.n)
        return SEGUE_E_STORE_CORRUPT;
    segue_status status = survey(r, old->id);
    if (status == SEGUE_OK)
        status = check(r, data, why);
    if (status != SEGUE_OK)
        return status;
    write_data(r, bytes, data);
    if (bytes->failed || inspection->failed)
        return SEGUE_E_NOMEM;
    if (!sgi_operation_text(&inspection->env, new_id) ||
        !sgi_operation_id(&inspection->env, new.id))
        return SEGUE_E_FATAL;
    new.task_id = new_id;
    new.has_key = 0;
    new.ended = SEGUE_STORE_LIVE;
    new.created_ms = sgi_wall_now(&inspection->env);
    new.purge_ms = INT64_MAX;
    new.data = bytes->p;
    new.data_len = bytes->len;
    status = write_lines(r, old, &new);
    if (status != SEGUE_OK)
        return status;
    inspection->stop = false;
    status = sgi_archive_pass_state(inspection, &new);
    return status == SEGUE_OK ? r->status : status;
}

segue_status sgi_inspect_rerun(sgi_inspection *inspection, const char *task_id,
                               uint64_t keep, char new_id[SGI_OPERATION_TEXT + 1],
                               const char **why)
{
    sgi_inspected_record record;
    rerun r = {.keep = keep};
    sgi_buf bytes;
    *why = NULL;
    segue_status status = sgi_inspection_find(inspection, task_id, &record);
    if (status != SEGUE_OK)
        return status;
    sgi_buf_init(&bytes, inspection->env.mem);
    sgi_inspection_begin(&r.inspection, inspection->store, take_line, &r);
    r.reader = sgi_archive_reader_new(inspection->store);
    status = r.reader ? make(&r, &record.head, &bytes, new_id, why) : SEGUE_E_NOMEM;
    if (r.reader)
        sgi_archive_reader_free(r.reader);
    sgi_inspection_end(&r.inspection);
    sgi_buf_free(&bytes);
    sgi_buf_free(&record.bytes);
    return status;
}
