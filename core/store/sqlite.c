/* The store in a SQLite file: writing, finding, reading.
 *
 * One commit is one IMMEDIATE transaction; any failure rolls all of it back. The key of a
 * log row is `operation number << 26 | seq`. Beside a table without rowid and primary key
 * (op, seq) this is 1.3 to 1.5 times faster on one stream and as fast or faster on many.
 * (A table in order of arrival with an index on the key gains up to three times when a
 * commit goes round a thousand operations, but takes half as long again on one stream,
 * and a read of one log then jumps about in the file.) An append to an operation whose
 * slot is filled is one insertion without a look-up.
 *
 * The handle's mutex makes the calls one at a time, so the connection needs none. Nothing
 * is allocated between opening and closing except the list of a claim. */
#include "store/sqlite_store.h"

#include <stdio.h>

/* ---- writing ---- */

/* bind_blob takes a NULL pointer for SQL's NULL, whatever the length. */
static int bind_bytes(sqlite3_stmt *statement, int column, const void *bytes, size_t len)
{
    return sqlite3_bind_blob64(statement, column, len ? bytes : "", len, SQLITE_STATIC);
}

static sgi_sqlite_slot *slot_of(sgi_sqlite_store *store, const uint8_t *id)
{
    uint64_t half[2];
    memcpy(half, id, sizeof half);
    uint64_t mixed = (half[0] ^ half[1] * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    return &store->slots[mixed >> 32 & (SGI_SQLITE_SLOTS - 1)];
}

static void fill_slot(sgi_sqlite_slot *slot, const uint8_t *id, int64_t op,
                      int64_t last_seq)
{
    memcpy(slot->id, id, sizeof slot->id);
    slot->op = op;
    slot->last_seq = last_seq;
}

/* *out: the slot of the operation, filled. */
static segue_status locate(sgi_sqlite_store *store, const uint8_t *id,
                           sgi_sqlite_slot **out)
{
    sgi_sqlite_slot *slot = *out = slot_of(store, id);
    if (slot->op && !memcmp(slot->id, id, sizeof slot->id))
        return SEGUE_OK;
    int64_t op = 0, key = 0;
    bind_bytes(store->statements[SGI_SQLITE_LOOKUP], 1, id, SEGUE_STORE_ID_SIZE);
    int code = sgi_sqlite_query(store, SGI_SQLITE_LOOKUP, &op);
    if (!code && !op)
        return SEGUE_E_NOT_FOUND;
    if (!code) {
        sgi_sqlite_bind_range(store, SGI_SQLITE_LAST_KEY, op);
        code = sgi_sqlite_query(store, SGI_SQLITE_LAST_KEY, &key);
    }
    if (!code)
        fill_slot(slot, id, op, key & SGI_SQLITE_SEQ_MAX);
    return sgi_sqlite_status_of(store, code);
}

static segue_status create(sgi_sqlite_store *store, const segue_store_record *record)
{
    if (!record || !record->task_id)
        return SEGUE_E_INVALID;
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_CREATE];
    bind_bytes(statement, 1, record->id, sizeof record->id);
    sqlite3_bind_text(statement, 2, record->task_id, -1, SQLITE_STATIC);
    if (record->has_key)
        bind_bytes(statement, 3, record->idempotency_key, SEGUE_STORE_HASH_SIZE);
    else
        sqlite3_bind_null(statement, 3);
    bind_bytes(statement, 4, record->principal, SEGUE_STORE_HASH_SIZE);
    sqlite3_bind_int64(statement, 5, store->file.owner);
    sqlite3_bind_int64(statement, 6, record->ended != 0);
    sqlite3_bind_int64(statement, 7, record->created_ms);
    sqlite3_bind_int64(statement, 8, record->purge_ms);
    if (bind_bytes(statement, 9, record->data, record->data_len))
        return SEGUE_E_TOO_LARGE;
    int code = sgi_sqlite_run(store, SGI_SQLITE_CREATE);
    if ((code & 0xff) == SQLITE_CONSTRAINT)
        return SEGUE_E_EXISTS;
    if (code)
        return sgi_sqlite_status_of(store, code);
    int64_t op = sqlite3_last_insert_rowid(store->file.db);
    if (op > SGI_SQLITE_OP_MAX)
        return SEGUE_E_LIMIT;
    fill_slot(slot_of(store, record->id), record->id, op, 0);
    return SEGUE_OK;
}

static segue_status append(sgi_sqlite_store *store, sgi_sqlite_slot *slot,
                           const segue_store_entry *entry)
{
    int64_t seq = slot->last_seq + 1;
    if (entry->seq != (uint64_t)seq)
        return SEGUE_E_STATE;
    if (seq > SGI_SQLITE_SEQ_MAX)
        return SEGUE_E_LIMIT;
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_APPEND];
    sqlite3_bind_int64(statement, 1, sgi_sqlite_key(slot->op, seq));
    sqlite3_bind_int64(statement, 2, (int64_t)entry->segment);
    sqlite3_bind_int64(statement, 3, (int64_t)entry->event);
    sqlite3_bind_int64(statement, 4, entry->kind);
    sqlite3_bind_int64(statement, 5, entry->at_ms);
    if (bind_bytes(statement, 6, entry->data, entry->data_len))
        return SEGUE_E_TOO_LARGE;
    int code = sgi_sqlite_run(store, SGI_SQLITE_APPEND);
    if (!code)
        slot->last_seq = seq;
    return sgi_sqlite_status_of(store, code);
}

static segue_status release_owner(sgi_sqlite_store *store, const uint8_t *id)
{
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_RELEASE];
    bind_bytes(statement, 1, id, SEGUE_STORE_ID_SIZE);
    sqlite3_bind_int64(statement, 2, store->file.owner);
    return sgi_sqlite_status_of(store, sgi_sqlite_run(store, SGI_SQLITE_RELEASE));
}

static int drop_entries(sgi_sqlite_store *store, int64_t op,
                        const segue_store_entry *upto)
{
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_DROP];
    int64_t seq = upto->seq < (uint64_t)SGI_SQLITE_SEQ_MAX ? (int64_t)upto->seq
                                                           : SGI_SQLITE_SEQ_MAX;
    sqlite3_bind_int64(statement, 1, sgi_sqlite_key(op, 1));
    sqlite3_bind_int64(statement, 2, sgi_sqlite_key(op, seq));
    sqlite3_bind_int64(statement, 3, upto->kind);
    return sgi_sqlite_run(store, SGI_SQLITE_DROP);
}

static segue_status apply_to(sgi_sqlite_store *store, sgi_sqlite_slot *slot,
                             const segue_store_write *write)
{
    int64_t op = slot->op;
    if (write->kind == SEGUE_STORE_APPEND)
        return append(store, slot, &write->entry);
    int code;
    if (write->kind == SEGUE_STORE_END) {
        code = sgi_sqlite_run_with_two(store, SGI_SQLITE_END, op, write->purge_ms);
    } else if (write->kind == SEGUE_STORE_DROP) {
        code = drop_entries(store, op, &write->entry);
    } else {
        slot->op = 0;
        code = sgi_sqlite_remove(store, op);
    }
    return sgi_sqlite_status_of(store, code);
}

static segue_status apply(sgi_sqlite_store *store, const segue_store_write *write)
{
    sgi_sqlite_slot *slot;
    segue_status status;
    switch (write->kind) {
    case SEGUE_STORE_CREATE:
        return create(store, write->record);
    case SEGUE_STORE_RELEASE:
        return release_owner(store, write->id);
    case SEGUE_STORE_APPEND:
    case SEGUE_STORE_END:
    case SEGUE_STORE_DELETE:
    case SEGUE_STORE_DROP:
        status = locate(store, write->id, &slot);
        if (status == SEGUE_E_NOT_FOUND &&
            (write->kind == SEGUE_STORE_DELETE || write->kind == SEGUE_STORE_DROP))
            return SEGUE_OK;
        return status ? status : apply_to(store, slot, write);
    default:
        return SEGUE_E_INVALID;
    }
}

static segue_status commit(void *self, const segue_store_write *writes, size_t count)
{
    sgi_sqlite_store *store = self;
    segue_status status = sgi_sqlite_begin(store);
    if (status)
        return status;
    for (size_t i = 0; i < count && !status; i++)
        status = apply(store, &writes[i]);
    return sgi_sqlite_finish(store, status);
}

/* ---- reading ---- */

/* SQLite answers NULL for no bytes and also when it has no memory for them; the second
 * must not pass for the first. */
static bool column_bytes(sqlite3_stmt *statement, int column, const char **bytes,
                         size_t *len)
{
    *bytes = sqlite3_column_blob(statement, column);
    *len = (size_t)sqlite3_column_bytes(statement, column);
    if (*bytes)
        return true;
    *bytes = "";
    return !*len && sqlite3_errcode(sqlite3_db_handle(statement)) != SQLITE_NOMEM;
}

static bool copy_column(sqlite3_stmt *statement, int column, uint8_t *to, size_t size)
{
    const char *bytes;
    size_t len;
    if (!column_bytes(statement, column, &bytes, &len) || len != size)
        return false;
    memcpy(to, bytes, size);
    return true;
}

static bool fill_record(sqlite3_stmt *statement, segue_store_record *record)
{
    *record = (segue_store_record){.ended = sqlite3_column_int(statement, 4),
                                   .created_ms = sqlite3_column_int64(statement, 5),
                                   .purge_ms = sqlite3_column_int64(statement, 6)};
    record->has_key = sqlite3_column_type(statement, 2) != SQLITE_NULL;
    record->task_id = (const char *)sqlite3_column_text(statement, 1);
    return record->task_id && copy_column(statement, 0, record->id, sizeof record->id) &&
           copy_column(statement, 3, record->principal, sizeof record->principal) &&
           (!record->has_key || copy_column(statement, 2, record->idempotency_key,
                                            sizeof record->idempotency_key)) &&
           column_bytes(statement, 7, &record->data, &record->data_len);
}

/* A value could not be had: no memory, or not what was stored. */
static segue_status unreadable(const sgi_sqlite_store *store)
{
    return sqlite3_errcode(store->file.db) == SQLITE_NOMEM ? SEGUE_E_NOMEM
                                                           : SEGUE_E_STORE_CORRUPT;
}

segue_status sgi_sqlite_show(sgi_sqlite_store *store, sgi_sqlite_statement which,
                             segue_store_record_fn fn, void *user, bool *stop)
{
    sqlite3_stmt *statement = store->statements[which];
    segue_store_record record;
    int code = sgi_sqlite_step(store, statement);
    segue_status status =
        code == SQLITE_DONE ? SEGUE_E_NOT_FOUND : sgi_sqlite_status_of(store, code);
    if (code == SQLITE_ROW) {
        if (fill_record(statement, &record))
            *stop = fn(user, &record) != 0;
        else
            status = unreadable(store);
    }
    sqlite3_reset(statement);
    return status;
}

static segue_status find(void *self, const char *task_id, const uint8_t *idempotency_key,
                         segue_store_record_fn fn, void *user)
{
    sgi_sqlite_store *store = self;
    sgi_sqlite_statement which = task_id ? SGI_SQLITE_FIND_TASK : SGI_SQLITE_FIND_KEY;
    bool stop;
    if (task_id)
        sqlite3_bind_text(store->statements[which], 1, task_id, -1, SQLITE_STATIC);
    else
        bind_bytes(store->statements[which], 1, idempotency_key, SEGUE_STORE_HASH_SIZE);
    return sgi_sqlite_show(store, which, fn, user, &stop);
}

static segue_status show_entries(sgi_sqlite_store *store, segue_store_entry_fn fn,
                                 void *user)
{
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_READ];
    int code;
    while ((code = sgi_sqlite_step(store, statement)) == SQLITE_ROW) {
        segue_store_entry entry = {
            .seq = (uint64_t)(sqlite3_column_int64(statement, 0) & SGI_SQLITE_SEQ_MAX),
            .segment = (uint64_t)sqlite3_column_int64(statement, 1),
            .event = (uint64_t)sqlite3_column_int64(statement, 2),
            .kind = sqlite3_column_int(statement, 3),
            .at_ms = sqlite3_column_int64(statement, 4)};
        if (!column_bytes(statement, 5, &entry.data, &entry.data_len))
            return unreadable(store);
        if (fn(user, &entry))
            break;
    }
    return sgi_sqlite_status_of(store, code);
}

static segue_status read_log(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user)
{
    sgi_sqlite_store *store = self;
    sqlite3_stmt *lookup = store->statements[SGI_SQLITE_LOOKUP];
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_READ];
    bind_bytes(lookup, 1, id, SEGUE_STORE_ID_SIZE);
    int code = sgi_sqlite_step(store, lookup);
    segue_status status =
        code == SQLITE_DONE ? SEGUE_E_NOT_FOUND : sgi_sqlite_status_of(store, code);
    if (code == SQLITE_ROW && after < (uint64_t)SGI_SQLITE_SEQ_MAX) {
        int64_t op = sqlite3_column_int64(lookup, 0);
        sgi_sqlite_bind_range(store, SGI_SQLITE_READ, op);
        sqlite3_bind_int64(statement, 1, sgi_sqlite_key(op, (int64_t)after + 1));
        /* lookup stays open meanwhile, so both see the same state of the file. */
        status = show_entries(store, fn, user);
        sqlite3_reset(statement);
    }
    sqlite3_reset(lookup);
    return status;
}

/* Rows are shown as they are found; what the index holds makes that their order. */
static segue_status show_records(sgi_sqlite_store *store, sqlite3_stmt *statement,
                                 segue_store_record_fn fn, void *user)
{
    segue_store_record record;
    int code;
    while ((code = sgi_sqlite_step(store, statement)) == SQLITE_ROW) {
        if (!fill_record(statement, &record))
            return unreadable(store);
        if (fn(user, &record))
            break;
    }
    return sgi_sqlite_status_of(store, code);
}

static segue_status list(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user)
{
    sgi_sqlite_store *store = self;
    sqlite3_stmt *statement =
        store->statements[task_id ? SGI_SQLITE_LIST_BEHIND : SGI_SQLITE_LIST];
    bind_bytes(statement, 1, principal, SEGUE_STORE_HASH_SIZE);
    if (task_id) {
        sqlite3_bind_int64(statement, 2, created_ms);
        sqlite3_bind_text(statement, 3, task_id, -1, SQLITE_STATIC);
    }
    segue_status status = show_records(store, statement, fn, user);
    sqlite3_reset(statement);
    return status;
}

/* ---- life ---- */

static void free_store(void *self)
{
    sgi_sqlite_store *store = self;
    for (size_t i = 0; i < SGI_SQLITE_STATEMENTS; i++)
        sqlite3_finalize(store->statements[i]);
    sgi_sqlite_file_close(&store->file);
    sgi_mem mem = store->mem;
    sgi_release(&mem, store, sizeof *store);
}

static segue_status prepare(sgi_sqlite_store *store, const char *path, char *message,
                            size_t size)
{
    int code = sgi_sqlite_prepare(store);
    segue_status status = sgi_sqlite_status_of(store, code);
    if (status && message && size)
        snprintf(message, size, "%s: %s", path, sqlite3_errmsg(store->file.db));
    return status;
}

segue_status sgi_store_sqlite_new(const char *path, const segue_store_options *options,
                                  segue_store **out, char *message, size_t size)
{
    static const segue_store_vtable vtable = {.struct_size = sizeof vtable,
                                              .blocking = 1,
                                              .commit = commit,
                                              .find = find,
                                              .read = read_log,
                                              .claim = sgi_sqlite_claim,
                                              .purge = sgi_sqlite_purge,
                                              .free = free_store,
                                              .list = list};
    const sgi_mem *mem =
        options && options->allocator ? options->allocator : &sgi_mem_libc;
    if (message && size)
        *message = 0;
    sgi_sqlite_store *store = sgi_zalloc(mem, sizeof *store);
    if (!store)
        return SEGUE_E_NOMEM;
    store->mem = *mem;
    segue_status status =
        sgi_sqlite_file_open(&store->file, path, options, message, size);
    if (status) {
        sgi_release(mem, store, sizeof *store);
        return status;
    }
    status = prepare(store, path, message, size);
    if (!status)
        status = sgi_store_new(&vtable, store, mem, out);
    if (status)
        free_store(store);
    return status;
}
