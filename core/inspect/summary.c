#include "inspect/summary.h"

#include "engine/log/op.h"

void sgi_summary_init(sgi_summary *summary, const sgi_mem *mem)
{
    *summary = (sgi_summary){0};
    sgi_buf_init(&summary->message, mem);
    for (size_t i = 0; i < SGI_SUMMARY_QUESTIONS; i++)
        sgi_buf_init(&summary->questions[i], mem);
}

void sgi_summary_free(sgi_summary *summary)
{
    sgi_buf_free(&summary->message);
    for (size_t i = 0; i < SGI_SUMMARY_QUESTIONS; i++)
        sgi_buf_free(&summary->questions[i]);
}

/* ---- reading ---- */

static void keep(sgi_buf *buf, sgi_str text)
{
    sgi_buf_truncate(buf, 0);
    sgi_buf_add_str(buf, text);
}

static void ask(sgi_summary *summary, sgi_json question)
{
    summary->asked++;
    for (size_t i = 0; i < SGI_SUMMARY_QUESTIONS; i++)
        if (!summary->questions[i].len) {
            keep(&summary->questions[i], question);
            return;
        }
}

static void answer(sgi_summary *summary, sgi_json key)
{
    summary->answered++;
    for (size_t i = 0; i < SGI_SUMMARY_QUESTIONS; i++) {
        sgi_buf *question = &summary->questions[i];
        if (question->len && sgi_str_eq(sgi_json_get(sgi_buf_str(question), "key"), key))
            sgi_buf_truncate(question, 0);
    }
}

static void add_object(sgi_summary *summary, int32_t kind, sgi_json data)
{
    sgi_json message = sgi_json_get(data, "statusMessage");
    if (kind == SGI_ENTRY_STATUS && sgi_json_kind_of(message) == SGI_JSON_STRING)
        keep(&summary->message, message);
    else if (kind == SGI_ENTRY_INPUT_ASK)
        ask(summary, data);
    else if (kind == SGI_ENTRY_INPUT_ANSWER)
        answer(summary, sgi_json_get(data, "key"));
    else if (kind == SGI_ENTRY_RESULT)
        summary->is_error =
            sgi_json_kind_of(sgi_json_get(data, "isError")) == SGI_JSON_TRUE;
    else if ((kind == SGI_ENTRY_ERROR || kind == SGI_ENTRY_EXPIRED) &&
             sgi_json_kind_of(sgi_json_get(data, "message")) == SGI_JSON_STRING)
        keep(&summary->message, sgi_json_get(data, "message"));
}

/* The data of the kinds that add_object reads must be an object. */
static bool is_object(sgi_inspection *inspection, sgi_str data)
{
    return sgi_inspection_accepts(inspection, data) &&
           sgi_json_kind_of(sgi_json_trim(data)) == SGI_JSON_OBJECT;
}

void sgi_summary_add(sgi_summary *summary, sgi_inspection *inspection,
                     const segue_store_entry *entry)
{
    sgi_str data = {entry->data, entry->data_len};
    summary->entries++;
    summary->bytes += entry->data_len;
    if (summary->final)
        return; /* nothing changes the first end */
    summary->updated_ms = entry->at_ms;
    if (sgi_entry_is_final(entry->kind))
        summary->final = entry->kind;
    switch (entry->kind) {
    case SGI_ENTRY_SEGMENT:
        summary->segments++;
        break;
    case SGI_ENTRY_CHECKPOINT:
        summary->checkpoint_bytes = entry->data_len;
        break;
    case SGI_ENTRY_TASK:
        summary->became_task = true;
        break;
    case SGI_ENTRY_STATUS:
    case SGI_ENTRY_INPUT_ASK:
    case SGI_ENTRY_INPUT_ANSWER:
    case SGI_ENTRY_RESULT:
    case SGI_ENTRY_ERROR:
    case SGI_ENTRY_EXPIRED:
        if (is_object(inspection, data))
            add_object(summary, entry->kind, sgi_json_trim(data));
        else
            summary->unreadable = true;
        break;
    default:
        break;
    }
}

/* ---- writing ---- */

bool sgi_summary_has_failed(const sgi_summary *summary)
{
    bool failed = summary->message.failed;
    for (size_t i = 0; i < SGI_SUMMARY_QUESTIONS; i++)
        failed = failed || summary->questions[i].failed;
    return failed;
}

bool sgi_summary_has_question(const sgi_summary *summary, sgi_str key)
{
    for (size_t i = 0; i < SGI_SUMMARY_QUESTIONS; i++) {
        sgi_str question = sgi_buf_str(&summary->questions[i]);
        if (question.n && sgi_json_string_is(sgi_json_get(question, "key"), key))
            return !summary->final;
    }
    return false;
}

static const char *status_of(const sgi_summary *summary)
{
    switch (summary->final) {
    case 0:
        return summary->asked > summary->answered ? "input_required" : "working";
    case SGI_ENTRY_RESULT:
        return "completed";
    case SGI_ENTRY_CANCELLED:
        return "cancelled";
    default:
        return "failed";
    }
}

static void write_stamp(sgi_jw *w, const char *name, int64_t wall_ms)
{
    char stamp[SGI_STAMP_SIZE];
    sgi_timestamp_write(wall_ms, stamp);
    sgi_jw_member_string(w, name, sgi_str_of(stamp));
}

static void write_questions(const sgi_summary *summary, sgi_jw *w)
{
    sgi_jw_key(w, "questions");
    sgi_jw_open(w, '[');
    for (size_t i = 0; i < SGI_SUMMARY_QUESTIONS; i++)
        if (summary->questions[i].len && !summary->final && !summary->is_redacted)
            sgi_jw_raw(w, sgi_buf_str(&summary->questions[i]));
    sgi_jw_close(w, ']');
}

static void copy_member(sgi_jw *w, const char *name, sgi_json data, const char *from)
{
    sgi_json value = sgi_json_get(data, from);
    if (value.n)
        sgi_jw_member_raw(w, name, value);
}

static bool is_task(const sgi_summary *summary, sgi_json data)
{
    int64_t tasking = SGI_TASKING_NO;
    sgi_json_read_int(sgi_json_get(data, "task"), &tasking);
    return tasking == SGI_TASKING_YES || summary->became_task;
}

static void write_counts(const sgi_summary *summary, sgi_jw *w)
{
    sgi_jw_member_int(w, "entries", (int64_t)summary->entries);
    sgi_jw_member_int(w, "segments", (int64_t)summary->segments);
    sgi_jw_member_int(w, "bytes", (int64_t)summary->bytes);
    sgi_jw_member_int(w, "checkpointBytes", (int64_t)summary->checkpoint_bytes);
}

void sgi_summary_write(const sgi_summary *summary, sgi_jw *w,
                       const segue_store_record *record, sgi_json data)
{
    sgi_jw_member_string(w, "taskId", sgi_str_of(record->task_id));
    sgi_jw_member_string(w, "kind",
                         is_task(summary, data) ? SGI_STR("task") : SGI_STR("call"));
    copy_member(w, "tool", data, "tool");
    copy_member(w, "by", data, "by");
    copy_member(w, "dialect", data, "dialect");
    if (sgi_json_get(data, "restartable").n) {
        sgi_jw_key(w, "restartable");
        sgi_jw_bool(w, true);
    }
    sgi_jw_member_string(w, "status", sgi_str_of(status_of(summary)));
    if (summary->message.len && !summary->is_redacted)
        sgi_jw_member_raw(w, "statusMessage", sgi_buf_str(&summary->message));
    sgi_jw_key(w, "isError");
    sgi_jw_bool(w, summary->is_error);
    write_stamp(w, "createdAt", record->created_ms);
    write_stamp(w, "lastUpdatedAt",
                summary->updated_ms ? summary->updated_ms : record->created_ms);
    if (record->purge_ms != INT64_MAX)
        write_stamp(w, "deletedAfter", record->purge_ms);
    sgi_jw_key(w, "keyed");
    sgi_jw_bool(w, record->has_key != 0);
    write_counts(summary, w);
    write_questions(summary, w);
    if (summary->unreadable || !data.n) {
        sgi_jw_key(w, "unreadable");
        sgi_jw_bool(w, true);
    }
}
