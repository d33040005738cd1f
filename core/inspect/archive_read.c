#include "base/thresholds.h"
#include "engine/log/op.h"
#include "inspect/archive.h"

/* The kind of the entries that stand in for dropped ones, until they are dropped in the
 * same commit. No server writes this kind. */
#define FILLER 0
/* A commit that the store kept waiting is tried this many times. */
#define TRIES 5

typedef enum place { AT_START, BETWEEN, IN_OPERATION, AT_END, BROKEN } place;

/* An entry, whose data is in `bytes` of the reader. */
typedef struct taken_entry {
    segue_store_entry entry;
    size_t at;
} taken_entry;

struct sgi_archive_reader {
    sgi_inspection inspection;
    place place;
    sgi_archive_counts counts;
    uint64_t seen;
    bool is_too_long; /* the operation has more entries than one commit takes */
    uint64_t hole;    /* how much lower the numbers of the next entries become */
    segue_store_record record;
    size_t task_id, data; /* where its texts are in `bytes` */
    sgi_buf bytes;
    sgi_buf entries; /* of taken_entry */
};

sgi_archive_reader *sgi_archive_reader_new(segue_store *store)
{
    const sgi_mem *mem = sgi_store_mem(store);
    sgi_archive_reader *reader = sgi_zalloc(mem, sizeof *reader);
    if (!reader)
        return NULL;
    sgi_store_ref(store);
    sgi_inspection_begin(&reader->inspection, store, NULL, NULL);
    sgi_buf_init(&reader->bytes, mem);
    sgi_buf_init(&reader->entries, mem);
    return reader;
}

void sgi_archive_reader_free(sgi_archive_reader *reader)
{
    segue_store *store = reader->inspection.store;
    const sgi_mem *mem = sgi_store_mem(store);
    sgi_buf_free(&reader->bytes);
    sgi_buf_free(&reader->entries);
    sgi_inspection_end(&reader->inspection);
    sgi_free(mem, reader, sizeof *reader);
    sgi_store_unref(store);
}

const sgi_mem *sgi_archive_mem(const sgi_archive_reader *reader)
{
    return reader->inspection.env.mem;
}

sgi_archive_counts sgi_archive_counted(const sgi_archive_reader *reader)
{
    return reader->counts;
}

segue_status sgi_archive_end(const sgi_archive_reader *reader)
{
    return reader->place == AT_END ? SEGUE_OK : SEGUE_E_INCOMPLETE;
}

/* ---- values ---- */

/* Appends the bytes of "text" or "base64" to `bytes`. Returns false without them. */
static bool take_bytes(sgi_archive_reader *reader, sgi_json object, size_t *at,
                       size_t *len)
{
    sgi_json text = sgi_json_get(object, "text"), base64 = sgi_json_get(object, "base64");
    sgi_str plain;
    *at = reader->bytes.len;
    bool ok = text.n ? sgi_json_decode(text, &reader->bytes)
                     : sgi_json_plain_string(base64, &plain) &&
                           sgi_buf_add_unbase64(&reader->bytes, plain);
    *len = reader->bytes.len - *at;
    return ok;
}

/* Reads exactly n bytes in base64. */
static bool take_hash(sgi_archive_reader *reader, sgi_json value, uint8_t *out, size_t n)
{
    sgi_str plain;
    size_t at = reader->bytes.len;
    bool ok = sgi_json_plain_string(value, &plain) &&
              sgi_buf_add_unbase64(&reader->bytes, plain) && reader->bytes.len == at + n;
    if (ok)
        memcpy(out, reader->bytes.p + at, n);
    sgi_buf_shorten(&reader->bytes, at);
    return ok;
}

/* Reads an integer that is not negative. Returns false for another value. */
static bool take_count(sgi_json object, const char *name, bool needed, int64_t *out)
{
    sgi_json value = sgi_json_get(object, name);
    if (!value.n && !needed)
        return true;
    return sgi_json_read_int(value, out) && *out >= 0;
}

/* ---- lines ---- */

static const char *take_start(sgi_archive_reader *reader, sgi_json line)
{
    int64_t format = 0, records = 0;
    sgi_json value = sgi_json_get(line, "archive");
    if (reader->place != AT_START || !take_count(line, "records", true, &records) ||
        !sgi_json_read_int(value, &format))
        return "this is no archive";
    if (format != SGI_ARCHIVE_FORMAT)
        return "the archive has a format that this version does not know";
    if (records > sgi_store_records(reader->inspection.store))
        return "the archive has records of a newer format than the store";
    reader->place = BETWEEN;
    return NULL;
}

static const char *take_operation(sgi_archive_reader *reader, sgi_json object)
{
    segue_store_record *record = &reader->record;
    sgi_json key = sgi_json_get(object, "key");
    size_t len;
    if (reader->place != BETWEEN)
        return "an operation begins before the one before it ends";
    sgi_buf_reset(&reader->bytes, SGI_INSPECT_KEEP);
    sgi_buf_reset(&reader->entries, SGI_INSPECT_KEEP);
    *record = (segue_store_record){.purge_ms = INT64_MAX, .has_key = key.n > 0};
    reader->task_id = 0;
    reader->is_too_long = false;
    reader->hole = 0;
    bool ok =
        take_hash(reader, sgi_json_get(object, "id"), record->id, sizeof record->id) &&
        take_hash(reader, sgi_json_get(object, "principal"), record->principal,
                  sizeof record->principal) &&
        (!key.n || take_hash(reader, key, record->idempotency_key,
                             sizeof record->idempotency_key)) &&
        sgi_json_decode(sgi_json_get(object, "taskId"), &reader->bytes);
    len = reader->bytes.len;
    ok = ok && len && !memchr(reader->bytes.p, 0, len) &&
         take_count(object, "createdMs", true, &record->created_ms);
    sgi_buf_add_char(&reader->bytes, '\0');
    if (!ok || !take_bytes(reader, object, &reader->data, &record->data_len))
        return "the operation is not what an archive has";
    reader->place = IN_OPERATION;
    return NULL;
}

static uint64_t last_seq(const sgi_archive_reader *reader)
{
    size_t n = reader->entries.len / sizeof(taken_entry);
    return n ? ((const taken_entry *)(const void *)reader->entries.p)[n - 1].entry.seq
             : 0;
}

/* A hole of numbers that a store has lost stands before the end of the operation. A large
 * hole would need too many fillers, and its numbers are too large for some stores.
 * Therefore the end gets the number behind the entry before the hole. */
static uint64_t number_behind_hole(sgi_archive_reader *reader, uint64_t seq, int32_t kind)
{
    uint64_t next = last_seq(reader) + 1;
    if (sgi_entry_is_final(kind) && seq - next >= SGI_OP_HOLE)
        reader->hole = seq - next;
    return seq - reader->hole;
}

static const char *take_entry(sgi_archive_reader *reader, sgi_json object)
{
    int64_t seq = 0, segment = 0, event = 0, kind = 0, at_ms = 0;
    taken_entry taken = {.at = 0};
    size_t len;
    bool ok = reader->place == IN_OPERATION && take_count(object, "seq", true, &seq) &&
              take_count(object, "segment", false, &segment) &&
              take_count(object, "event", false, &event) &&
              take_count(object, "kind", true, &kind) && kind <= INT32_MAX &&
              take_count(object, "atMs", true, &at_ms) &&
              take_bytes(reader, object, &taken.at, &len);
    if (!ok || (uint64_t)seq <= last_seq(reader) + reader->hole)
        return "an entry is not what an archive has";
    seq = (int64_t)number_behind_hole(reader, (uint64_t)seq, (int32_t)kind);
    reader->is_too_long =
        reader->is_too_long || (uint64_t)seq > SGI_THRESHOLD(archive_entries);
    if (reader->is_too_long) {
        sgi_buf_shorten(&reader->bytes, taken.at);
        return NULL;
    }
    taken.entry = (segue_store_entry){.seq = (uint64_t)seq,
                                      .segment = (uint64_t)segment,
                                      .event = (uint64_t)event,
                                      .kind = (int32_t)kind,
                                      .at_ms = at_ms,
                                      .data_len = len};
    sgi_buf_add(&reader->entries, &taken, sizeof taken);
    return NULL;
}

/* ---- one operation, in one commit ---- */

static segue_store_write *add_write(sgi_archive_reader *reader, segue_store_write *at,
                                    int32_t kind)
{
    *at = (segue_store_write){.kind = kind};
    memcpy(at->id, reader->record.id, sizeof at->id);
    return at;
}

/* Stores number entries without a gap, so others stand in for those that were dropped.
 * Two DROPs that drop nothing part them from the entries around them, because a store may
 * keep what is appended in a row in one piece. The DROP of all of them comes at the end
 * of the log, because a store keeps the last entry of a log. */
static size_t add_fillers(sgi_archive_reader *reader, segue_store_write *writes,
                          uint64_t next, const segue_store_entry *behind)
{
    const segue_store_entry nothing = {.kind = FILLER};
    size_t count = 0;
    if (next == behind->seq)
        return 0;
    add_write(reader, &writes[count++], SEGUE_STORE_DROP)->entry = nothing;
    for (; next < behind->seq; next++) {
        segue_store_entry filler = {
            .seq = next, .kind = FILLER, .at_ms = behind->at_ms, .data = ""};
        add_write(reader, &writes[count++], SEGUE_STORE_APPEND)->entry = filler;
    }
    add_write(reader, &writes[count++], SEGUE_STORE_DROP)->entry = nothing;
    return count;
}

static size_t add_entries(sgi_archive_reader *reader, segue_store_write *writes)
{
    segue_store_entry last_filler = {.kind = FILLER};
    const taken_entry *taken = (const taken_entry *)(const void *)reader->entries.p;
    size_t n = reader->entries.len / sizeof *taken, count = 0;
    uint64_t next = 1;
    for (size_t i = 0; i < n; i++) {
        if (next < taken[i].entry.seq)
            last_filler.seq = taken[i].entry.seq - 1;
        count += add_fillers(reader, writes + count, next, &taken[i].entry);
        segue_store_entry entry = taken[i].entry;
        entry.data = reader->bytes.p + taken[i].at;
        add_write(reader, &writes[count++], SEGUE_STORE_APPEND)->entry = entry;
        next = entry.seq + 1;
    }
    if (last_filler.seq)
        add_write(reader, &writes[count++], SEGUE_STORE_DROP)->entry = last_filler;
    return count;
}

/* A commit that another user of the store kept waiting is repeated. */
static segue_status try_commit(segue_store *store, const segue_store_write *writes,
                               size_t count)
{
    segue_status status = SEGUE_E_TIMEOUT;
    for (int i = 0; i < TRIES && status == SEGUE_E_TIMEOUT; i++)
        status = sgi_store_commit(store, writes, count);
    return status;
}

/* The next server that looks for interrupted operations finds one that has not ended. */
static segue_status commit(sgi_archive_reader *reader, bool ended)
{
    const sgi_mem *mem = reader->inspection.env.mem;
    size_t entries = reader->entries.len / sizeof(taken_entry);
    size_t most = (size_t)last_seq(reader) + 2 * entries + 3, count = 0;
    segue_store_write *writes = sgi_zalloc(mem, most * sizeof *writes);
    if (!writes)
        return SEGUE_E_NOMEM;
    reader->record.task_id = reader->bytes.p + reader->task_id;
    reader->record.data = reader->bytes.p + reader->data;
    add_write(reader, &writes[count++], SEGUE_STORE_CREATE)->record = &reader->record;
    count += add_entries(reader, writes + count);
    add_write(reader, &writes[count++], ended ? SEGUE_STORE_END : SEGUE_STORE_RELEASE)
        ->purge_ms = reader->record.purge_ms;
    segue_status status = try_commit(reader->inspection.store, writes, count);
    sgi_free(mem, writes, most * sizeof *writes);
    return status;
}

static int32_t note_id(void *user, const segue_store_record *record)
{
    memcpy(user, record->id, sizeof record->id);
    return 1;
}

/* Says in *is_present that the store has this operation. SEGUE_E_EXISTS when another one
 * has its task id or its key. A store with leases does not always say so at the commit,
 * because it may take it for a repeated one. */
static segue_status look_up(sgi_archive_reader *reader, bool *is_present)
{
    segue_store *store = reader->inspection.store;
    const segue_store_record *record = &reader->record;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    segue_status status =
        sgi_store_find(store, reader->bytes.p + reader->task_id, NULL, note_id, id);
    if (status == SEGUE_E_NOT_FOUND && record->has_key)
        status = sgi_store_find(store, NULL, record->idempotency_key, note_id, id);
    *is_present = status == SEGUE_OK && !memcmp(id, record->id, sizeof id);
    if (status == SEGUE_OK)
        return *is_present ? SEGUE_OK : SEGUE_E_EXISTS;
    return status == SEGUE_E_NOT_FOUND ? SEGUE_OK : status;
}

static int32_t find_filler(void *user, const segue_store_entry *entry)
{
    bool *has_filler = user;
    *has_filler = *has_filler || entry->kind == FILLER;
    return *has_filler;
}

/* A store that does not delete what is dropped shows servers what no server has written.
 * It cannot take such an operation. */
static segue_status check_fillers(sgi_archive_reader *reader)
{
    segue_store *store = reader->inspection.store;
    bool has_filler = false;
    segue_store_write write;
    segue_status status =
        sgi_store_read(store, reader->record.id, 0, find_filler, &has_filler);
    if (status != SEGUE_OK || !has_filler)
        return status == SEGUE_E_NOT_FOUND ? SEGUE_OK : status;
    add_write(reader, &write, SEGUE_STORE_DELETE);
    status = sgi_store_commit(store, &write, 1);
    return status == SEGUE_OK ? SEGUE_E_UNSUPPORTED : status;
}

static segue_status make(sgi_archive_reader *reader, bool ended)
{
    size_t entries = reader->entries.len / sizeof(taken_entry);
    bool is_present = false;
    segue_status status =
        reader->is_too_long ? SEGUE_E_LIMIT : look_up(reader, &is_present);
    if (status == SEGUE_OK && !is_present)
        status = commit(reader, ended);
    if (status == SEGUE_OK && !is_present && last_seq(reader) > entries)
        status = check_fillers(reader);
    reader->counts.made += status == SEGUE_OK && !is_present;
    reader->counts.present += is_present;
    reader->counts.left_out += status != SEGUE_OK;
    return status;
}

static segue_status take_state(sgi_archive_reader *reader, sgi_json object,
                               const char **why)
{
    int64_t ended = 0;
    if (reader->place != IN_OPERATION ||
        !take_count(object, "purgeMs", false, &reader->record.purge_ms) ||
        !take_count(object, "ended", true, &ended)) {
        *why = "the state is not what an archive has";
        return SEGUE_E_INVALID;
    }
    if (reader->bytes.failed || reader->entries.failed)
        return SEGUE_E_NOMEM;
    segue_status status = make(reader, ended != 0);
    reader->place = BETWEEN;
    reader->seen++;
    *why = status == SEGUE_E_LIMIT    ? "it has more entries than one commit takes"
           : status == SEGUE_E_EXISTS ? "another operation has its task id or key"
           : status == SEGUE_E_UNSUPPORTED
               ? "it lacks dropped entries, and the store does not delete such entries"
               : NULL;
    return status;
}

static const char *take_gone(sgi_archive_reader *reader)
{
    if (reader->place != IN_OPERATION)
        return "no operation is open";
    reader->place = BETWEEN;
    reader->seen++;
    return NULL;
}

static const char *take_end(sgi_archive_reader *reader, sgi_json object)
{
    int64_t operations = -1;
    if (reader->place != BETWEEN || !take_count(object, "operations", true, &operations))
        return "the archive ends before its last operation does";
    if ((uint64_t)operations != reader->seen)
        return "the archive lacks operations";
    reader->place = AT_END;
    return NULL;
}

static segue_status take(sgi_archive_reader *reader, sgi_json line, const char **why)
{
    static const sgi_str names[] = {SGI_STR_INIT("archive"), SGI_STR_INIT("operation"),
                                    SGI_STR_INIT("entry"),   SGI_STR_INIT("state"),
                                    SGI_STR_INIT("gone"),    SGI_STR_INIT("end")};
    sgi_json found[6];
    sgi_json_pick(line, names, 6, found);
    if (found[3].n)
        return take_state(reader, found[3], why);
    *why = found[0].n   ? take_start(reader, line)
           : found[1].n ? take_operation(reader, found[1])
           : found[2].n ? take_entry(reader, found[2])
           : found[4].n ? take_gone(reader)
           : found[5].n ? take_end(reader, found[5])
                        : "this is no line of an archive";
    if (!reader->bytes.failed && !reader->entries.failed)
        return *why ? SEGUE_E_INVALID : SEGUE_OK;
    *why = NULL; /* a value that lacks memory looks wrong */
    return SEGUE_E_NOMEM;
}

segue_status sgi_archive_take(sgi_archive_reader *reader, sgi_str line, const char **why)
{
    segue_status status = SEGUE_E_INVALID;
    *why = NULL;
    if (reader->place == BROKEN)
        return SEGUE_E_STATE;
    if (sgi_inspection_accepts(&reader->inspection, line))
        status = take(reader, sgi_json_trim(line), why);
    else if (reader->inspection.failed)
        status = SEGUE_E_NOMEM;
    else
        *why = "this is no JSON";
    /* what fails for one operation fails after its last line, and others may follow */
    if (status == SEGUE_E_INVALID || status == SEGUE_E_NOMEM)
        reader->place = BROKEN;
    return status;
}
