#include "inspect/inspect.h"

#include <time.h>

#include "base/crypto.h"
#include "engine/conversation/sending.h"
#include "engine/log/op.h"
#include "inspect/places.h"
#include "inspect/summary_cache.h"

static int64_t wall_ms(void *user)
{
    struct timespec now;
    (void)user;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sgi_inspection_begin(sgi_inspection *inspection, segue_store *store,
                          segue_store_json_fn fn, void *user)
{
    *inspection = (sgi_inspection){.store = store, .fn = fn, .user = user};
    /* the reader's seed is secret, because clients have chosen the keys in a store */
    inspection->hooks.random = sgi_crypto_random;
    inspection->hooks.wall_ms = wall_ms;
    inspection->env = (sgi_env){sgi_store_mem(store), &inspection->hooks};
    sgi_json_reader_init(&inspection->reader, &inspection->env, SGI_JSON_MAX_BYTES,
                         SGI_INSPECT_DEPTH);
    sgi_buf_init(&inspection->json, inspection->env.mem);
}

void sgi_inspection_end(sgi_inspection *inspection)
{
    sgi_json_reader_free(&inspection->reader);
    sgi_buf_free(&inspection->json);
}

bool sgi_inspection_accepts(sgi_inspection *inspection, sgi_str text)
{
    sgi_json_error error = {SGI_JSON_OK, 0};
    bool ok = sgi_json_read(&inspection->reader, text, NULL, 0, NULL, &error);
    inspection->failed = inspection->failed || error.fault == SGI_JSON_NOMEM;
    return ok;
}

segue_status sgi_inspection_pass(sgi_inspection *inspection)
{
    sgi_buf *json = &inspection->json;
    segue_status status = json->failed || inspection->failed ? SEGUE_E_NOMEM : SEGUE_OK;
    if (status == SEGUE_OK) {
        sgi_frame_blank_line_ends(json, 0);
        inspection->stop = inspection->fn(inspection->user, json->p, json->len) != 0;
    }
    sgi_buf_reset(json, SGI_INSPECT_KEEP);
    return status;
}

/* ---- records ---- */

static int32_t copy_record(void *user, const segue_store_record *record)
{
    sgi_inspected_record *copy = user;
    size_t task_len = strlen(record->task_id) + 1;
    sgi_buf_add(&copy->bytes, record->task_id, task_len);
    sgi_buf_add(&copy->bytes, record->data, record->data_len);
    copy->head = *record;
    copy->head.task_id = copy->bytes.p;
    copy->head.data = copy->bytes.p + task_len;
    return 1;
}

/* No client has the principal of what a server keeps for itself: each byte of the digest
 * is 0xff (mailbox.c) or 0xfe (kept_key.c). */
static bool is_each_byte(const segue_store_record *record, uint8_t byte)
{
    for (size_t i = 0; i < sizeof record->principal; i++)
        if (record->principal[i] != byte)
            return false;
    return true;
}

bool sgi_inspection_is_mailbox(const segue_store_record *record)
{
    return is_each_byte(record, 0xff);
}

bool sgi_inspection_shows(const sgi_inspection *inspection,
                          const segue_store_record *record)
{
    if (inspection->only &&
        memcmp(inspection->only, record->principal, sizeof record->principal) != 0)
        return false;
    return !is_each_byte(record, 0xff) && !is_each_byte(record, 0xfe);
}

segue_status sgi_inspection_find_any(sgi_inspection *inspection, const char *task_id,
                                     sgi_inspected_record *record)
{
    sgi_buf_init(&record->bytes, inspection->env.mem);
    segue_status status =
        sgi_store_find(inspection->store, task_id, NULL, copy_record, record);
    if (status == SEGUE_OK && record->bytes.failed)
        status = SEGUE_E_NOMEM;
    if (status != SEGUE_OK)
        sgi_buf_free(&record->bytes);
    return status;
}

segue_status sgi_inspection_find(sgi_inspection *inspection, const char *task_id,
                                 sgi_inspected_record *record)
{
    segue_status status = sgi_inspection_find_any(inspection, task_id, record);
    if (status == SEGUE_OK && !sgi_inspection_shows(inspection, &record->head)) {
        status = SEGUE_E_NOT_FOUND;
        sgi_buf_free(&record->bytes);
    }
    return status;
}

sgi_json sgi_inspection_data(sgi_inspection *inspection, const segue_store_record *record)
{
    sgi_str text = {record->data, record->data_len};
    sgi_json data = sgi_json_trim(text);
    return sgi_inspection_accepts(inspection, text) &&
                   sgi_json_kind_of(data) == SGI_JSON_OBJECT
               ? data
               : (sgi_json){0};
}

/* ---- summaries ---- */

typedef struct folding {
    sgi_inspection *inspection;
    sgi_summary *summary;
    uint64_t last;  /* number of the last entry that was read */
    uint64_t until; /* the number of bytes at which other users of the store get a turn */
    bool is_over;
} folding;

static int32_t fold_entry(void *user, const segue_store_entry *entry)
{
    folding *f = user;
    sgi_summary_add(f->summary, f->inspection, entry);
    f->last = entry->seq;
    f->is_over = f->summary->bytes < f->until;
    return !f->is_over;
}

/* Adds the entries behind *last to a summary. */
static segue_status fold(sgi_inspection *inspection, const segue_store_record *record,
                         sgi_summary *summary, uint64_t *last)
{
    folding f = {.inspection = inspection, .summary = summary, .last = *last};
    segue_status status = SEGUE_OK;
    uint64_t before = summary->bytes;
    while (status == SEGUE_OK && !f.is_over) {
        f.until = summary->bytes + SGI_INSPECT_PAGE;
        f.is_over = true;
        status = sgi_store_read(inspection->store, record->id, f.last, fold_entry, &f);
        sgi_store_let_others_in(inspection->store);
    }
    *last = f.last;
    inspection->folded += summary->bytes - before;
    inspection->failed = inspection->failed || sgi_summary_has_failed(summary);
    return status;
}

/* Makes the summary of an operation, which the caller frees. */
static segue_status make_summary(sgi_inspection *inspection,
                                 const segue_store_record *record, sgi_summary *summary)
{
    uint64_t last = 0;
    sgi_summary_init(summary, inspection->env.mem);
    return fold(inspection, record, summary, &last);
}

/* params: true = the summary has the parameters of the call, too. */
static segue_status write_summary(sgi_inspection *inspection,
                                  const segue_store_record *record, sgi_summary *summary,
                                  segue_status status, bool params)
{
    sgi_jw w = sgi_jw_to(&inspection->json);
    sgi_json data = sgi_inspection_data(inspection, record);
    if (status == SEGUE_E_STORE_CORRUPT)
        summary->unreadable = true;
    else if (status != SEGUE_OK)
        return status;
    sgi_jw_open(&w, '{');
    summary->is_redacted = inspection->is_redacted;
    sgi_summary_write(summary, &w, record, data);
    if (params && !inspection->is_redacted && sgi_json_get(data, "params").n)
        sgi_jw_member_raw(&w, "params", sgi_json_get(data, "params"));
    sgi_jw_close(&w, '}');
    return sgi_inspection_pass(inspection);
}

static segue_status pass_cached(sgi_inspection *inspection,
                                const segue_store_record *record,
                                sgi_cached_summary *cached, bool params)
{
    segue_status status = fold(inspection, record, &cached->summary, &cached->last);
    bool is_whole = status == SEGUE_OK && !inspection->failed;
    status = write_summary(inspection, record, &cached->summary, status, params);
    if (!is_whole)
        sgi_cached_summary_reset(inspection->cache, cached);
    return status;
}

static segue_status pass_summary(sgi_inspection *inspection,
                                 const segue_store_record *record, bool params)
{
    sgi_summary summary;
    sgi_cached_summary *cached =
        inspection->cache && record->ended == SEGUE_STORE_LIVE
            ? sgi_summary_cache_find(inspection->cache, inspection->store, record->id)
            : NULL;
    if (cached)
        return pass_cached(inspection, record, cached, params);
    segue_status status = make_summary(inspection, record, &summary);
    status = write_summary(inspection, record, &summary, status, params);
    sgi_summary_free(&summary);
    return status;
}

/* ---- all operations ---- */

/* An operation that is gone meanwhile, or that the server itself uses, is left out. */
static segue_status pass_place(sgi_inspection *inspection, const char *task_id)
{
    segue_status status = sgi_inspect_brief(inspection, task_id);
    return status == SEGUE_E_NOT_FOUND ? SEGUE_OK : status;
}

segue_status sgi_inspect_all(sgi_inspection *inspection)
{
    sgi_places places;
    segue_status status = sgi_places_find(&places, inspection);
    for (size_t i = 0; i < places.count && status == SEGUE_OK && !inspection->stop; i++)
        status = pass_place(inspection, places.all[i].task_id);
    if (status == SEGUE_OK && !inspection->stop && places.lacks_some)
        status = SEGUE_E_STORE_CORRUPT;
    sgi_places_free(&places);
    return status;
}

/* ---- one operation ---- */

static segue_status inspect_one(sgi_inspection *inspection, const char *task_id,
                                bool params)
{
    sgi_inspected_record record;
    segue_status status = sgi_inspection_find(inspection, task_id, &record);
    if (status != SEGUE_OK)
        return status;
    status = pass_summary(inspection, &record.head, params);
    sgi_buf_free(&record.bytes);
    return status;
}

segue_status sgi_inspect_one(sgi_inspection *inspection, const char *task_id)
{
    return inspect_one(inspection, task_id, true);
}

segue_status sgi_inspect_brief(sgi_inspection *inspection, const char *task_id)
{
    return inspect_one(inspection, task_id, false);
}

/* ---- entries ---- */

static const char *kind_name(int32_t kind)
{
    static const char *const names[] = {[SGI_ENTRY_SEGMENT] = "segment",
                                        [SGI_ENTRY_FIELDS] = "fields",
                                        [SGI_ENTRY_REPLACE] = "replace",
                                        [SGI_ENTRY_STATUS] = "status",
                                        [SGI_ENTRY_INPUT_ASK] = "question",
                                        [SGI_ENTRY_INPUT_ANSWER] = "answer",
                                        [SGI_ENTRY_CHECKPOINT] = "checkpoint",
                                        [SGI_ENTRY_RESULT] = "result",
                                        [SGI_ENTRY_ERROR] = "error",
                                        [SGI_ENTRY_CANCELLED] = "cancelled",
                                        [SGI_ENTRY_EXPIRED] = "expired",
                                        [SGI_ENTRY_NOTIFY] = "notification",
                                        [SGI_ENTRY_PRESENCE] = "presence",
                                        [SGI_ENTRY_ANEW] = "anew",
                                        [SGI_ENTRY_TASK] = "task"};
    return sgi_entry_is_known(kind) ? names[kind] : "unknown";
}

void sgi_inspection_write_base64(sgi_jw *w, const char *name, const void *bytes, size_t n)
{
    sgi_jw_key(w, name);
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_base64(w->buf, bytes, n, false);
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
}

/* Writes the data of an entry: as JSON, or in base64 when it is none. */
static void write_data(sgi_inspection *inspection, sgi_jw *w,
                       const segue_store_entry *entry)
{
    sgi_str data = {entry->data, entry->data_len};
    sgi_buf members; /* a notification is stored without its brackets */
    sgi_buf_init(&members, inspection->env.mem);
    if (entry->kind == SGI_ENTRY_NOTIFY) {
        sgi_buf_add_char(&members, '{');
        sgi_buf_add_str(&members, data);
        sgi_buf_add_char(&members, '}');
        data = sgi_buf_str(&members);
    }
    if (entry->kind != SGI_ENTRY_CHECKPOINT && sgi_inspection_accepts(inspection, data)) {
        sgi_jw_member_raw(w, "data", sgi_json_trim(data));
    } else {
        sgi_inspection_write_base64(w, "base64", entry->data, entry->data_len);
    }
    w->buf->failed = w->buf->failed || members.failed;
    sgi_buf_free(&members);
}

/* A page of entries: their texts, each with a line end behind it. */
typedef struct page {
    sgi_inspection *inspection;
    sgi_entry_writer write;
    sgi_buf lines;
    uint64_t last; /* number of the last entry of the page */
    bool is_full;
} page;

static void write_entry(sgi_inspection *inspection, sgi_jw *w,
                        const segue_store_entry *entry)
{
    char stamp[SGI_STAMP_SIZE];
    sgi_timestamp_write(entry->at_ms, stamp);
    sgi_jw_open(w, '{');
    sgi_jw_member_int(w, "seq", (int64_t)entry->seq);
    sgi_jw_member_string(w, "kind", sgi_str_of(kind_name(entry->kind)));
    sgi_jw_member_string(w, "at", sgi_str_of(stamp));
    if (entry->segment && entry->kind == SGI_ENTRY_SEGMENT)
        sgi_jw_member_int(w, "segment", (int64_t)entry->segment);
    if (!inspection->is_redacted)
        write_data(inspection, w, entry);
    sgi_jw_close(w, '}');
}

/* Runs under the lock of the store. */
static int32_t add_entry(void *user, const segue_store_entry *entry)
{
    page *p = user;
    size_t from = p->lines.len;
    sgi_jw w = sgi_jw_to(&p->lines);
    p->write(p->inspection, &w, entry);
    sgi_frame_blank_line_ends(&p->lines, from);
    sgi_buf_add_char(&p->lines, '\n');
    p->last = entry->seq;
    p->is_full = p->lines.len >= SGI_INSPECT_PAGE || p->lines.failed;
    return p->is_full;
}

static segue_status pass_page(page *p)
{
    sgi_inspection *inspection = p->inspection;
    segue_status status =
        p->lines.failed || inspection->failed ? SEGUE_E_NOMEM : SEGUE_OK;
    for (size_t at = 0; status == SEGUE_OK && at < p->lines.len && !inspection->stop;) {
        const char *line = p->lines.p + at, *end = memchr(line, '\n', p->lines.len - at);
        sgi_buf_add(&inspection->json, line, (size_t)(end - line));
        status = sgi_inspection_pass(inspection);
        at = (size_t)(end + 1 - p->lines.p);
    }
    sgi_buf_reset(&p->lines, SGI_INSPECT_PAGE);
    return status;
}

segue_status sgi_inspection_pass_log(sgi_inspection *inspection, const uint8_t *id,
                                     uint64_t *after, sgi_entry_writer write)
{
    segue_status status;
    page p = {.inspection = inspection, .write = write, .last = *after};
    sgi_buf_init(&p.lines, inspection->env.mem);
    do {
        p.is_full = false;
        status = sgi_store_read(inspection->store, id, p.last, add_entry, &p);
        if (status == SEGUE_OK)
            status = pass_page(&p);
    } while (status == SEGUE_OK && p.is_full && !inspection->stop);
    sgi_buf_free(&p.lines);
    *after = p.last;
    return status;
}

segue_status sgi_inspect_entries(sgi_inspection *inspection, const char *task_id,
                                 uint64_t after, int32_t *ended)
{
    sgi_inspected_record record;
    segue_status status = sgi_inspection_find(inspection, task_id, &record);
    if (status != SEGUE_OK)
        return status;
    *ended = record.head.ended != SEGUE_STORE_LIVE;
    status = sgi_inspection_pass_log(inspection, record.head.id, &after, write_entry);
    sgi_buf_free(&record.bytes);
    return status;
}

/* ---- acts ---- */

/* SEGUE_E_NOT_FOUND when the operation has no such open question. */
static segue_status check_key(sgi_inspection *inspection,
                              const segue_store_record *record, sgi_str key)
{
    sgi_summary summary;
    segue_status status = make_summary(inspection, record, &summary);
    if (status == SEGUE_OK && !sgi_summary_has_question(&summary, key))
        status = inspection->failed ? SEGUE_E_NOMEM : SEGUE_E_NOT_FOUND;
    sgi_summary_free(&summary);
    return status;
}

bool sgi_inspect_write_command(sgi_inspection *inspection, sgi_str text, sgi_str *key)
{
    int64_t cancel = 0;
    sgi_jw w = sgi_jw_to(&inspection->json);
    *key = (sgi_str){0};
    if (!sgi_inspection_accepts(inspection, text))
        return false;
    sgi_json answer = sgi_json_get(sgi_json_trim(text), "answer");
    sgi_json response = sgi_json_get(answer, "response");
    bool cancels =
        sgi_json_read_int(sgi_json_get(sgi_json_trim(text), "cancel"), &cancel);
    if (cancels) {
        sgi_buf_add_lit(&inspection->json, "{\"cancel\":1}");
        return cancel == 1 && !answer.n;
    }
    if (!sgi_json_plain_string(sgi_json_get(answer, "key"), key) || !key->n ||
        sgi_json_kind_of(response) != SGI_JSON_OBJECT)
        return false;
    sgi_jw_open(&w, '{');
    sgi_jw_key(&w, "answer");
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "key", *key);
    sgi_jw_member_raw(&w, "response", response);
    sgi_jw_close(&w, '}');
    sgi_jw_close(&w, '}');
    return true;
}

segue_status sgi_inspect_command(sgi_inspection *inspection, const char *task_id,
                                 sgi_str command, sgi_str key)
{
    sgi_inspected_record record;
    segue_status status = sgi_inspection_find(inspection, task_id, &record);
    if (status != SEGUE_OK)
        return status;
    if (record.head.ended)
        status = SEGUE_E_TERMINAL;
    else if (key.n)
        status = check_key(inspection, &record.head, key);
    if (status == SEGUE_OK)
        status = sgi_store_post(inspection->store, record.head.id, command.p, command.n);
    sgi_buf_free(&record.bytes);
    return status;
}

segue_status sgi_inspect_remove(sgi_inspection *inspection, const char *task_id)
{
    sgi_inspected_record record;
    segue_store_write write = {.kind = SEGUE_STORE_DELETE};
    segue_status status = sgi_inspection_find(inspection, task_id, &record);
    if (status != SEGUE_OK)
        return status;
    memcpy(write.id, record.head.id, sizeof write.id);
    status = record.head.ended ? sgi_store_commit(inspection->store, &write, 1)
                               : SEGUE_E_STATE;
    sgi_buf_free(&record.bytes);
    return status;
}
