/* Finds, reads and lists operations in a SQLite store, and reads and binds columns.
 *
 * Callbacks get views of SQLite's own memory, which are valid only while the callback
 * runs. Each statement is reset before the function that ran it returns. */
#include "store/sqlite_store.h"

#include "base/thresholds.h"

#define SCAN_STEP SGI_THRESHOLD(scan_step)

/* Binds bytes to a parameter of a statement. sqlite3_bind_blob64 treats a NULL pointer
 * as SQL's NULL, so empty bytes are bound as "". */
int sgi_sqlite_bind_bytes(sqlite3_stmt *statement, int column, const void *bytes,
                          size_t len)
{
    return sqlite3_bind_blob64(statement, column, len ? bytes : "", len, SQLITE_STATIC);
}

bool sgi_sqlite_column_bytes(sqlite3_stmt *statement, int column, const char **bytes,
                             size_t *len)
{
    *bytes = sqlite3_column_blob(statement, column);
    *len = (size_t)sqlite3_column_bytes(statement, column);
    if (*bytes)
        return true;
    *bytes = "";
    return !*len && sqlite3_errcode(sqlite3_db_handle(statement)) != SQLITE_NOMEM;
}

bool sgi_sqlite_copy_column(sqlite3_stmt *statement, int column, uint8_t *to, size_t size)
{
    const char *bytes;
    size_t len;
    if (!sgi_sqlite_column_bytes(statement, column, &bytes, &len) || len != size)
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
    return record->task_id &&
           sgi_sqlite_copy_column(statement, 0, record->id, sizeof record->id) &&
           sgi_sqlite_copy_column(statement, 3, record->principal,
                                  sizeof record->principal) &&
           (!record->has_key ||
            sgi_sqlite_copy_column(statement, 2, record->idempotency_key,
                                   sizeof record->idempotency_key)) &&
           sgi_sqlite_column_bytes(statement, 7, &record->data, &record->data_len);
}

segue_status sgi_sqlite_unreadable_status(const sgi_sqlite_store *store)
{
    return sqlite3_errcode(store->file.db) == SQLITE_NOMEM ? SEGUE_E_NOMEM
                                                           : SEGUE_E_STORE_CORRUPT;
}

segue_status sgi_sqlite_pass_record(sgi_sqlite_store *store, sgi_sqlite_statement which,
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
            status = sgi_sqlite_unreadable_status(store);
    }
    sqlite3_reset(statement);
    return status;
}

segue_status sgi_sqlite_find(void *self, const char *task_id,
                             const uint8_t *idempotency_key, segue_store_record_fn fn,
                             void *user)
{
    sgi_sqlite_store *store = self;
    sgi_sqlite_statement which = task_id ? SGI_SQLITE_FIND_TASK : SGI_SQLITE_FIND_KEY;
    bool stop;
    if (task_id)
        sqlite3_bind_text(store->statements[which], 1, task_id, -1, SQLITE_STATIC);
    else
        sgi_sqlite_bind_bytes(store->statements[which], 1, idempotency_key,
                              SEGUE_STORE_HASH_SIZE);
    return sgi_sqlite_pass_record(store, which, fn, user, &stop);
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
        if (!sgi_sqlite_column_bytes(statement, 5, &entry.data, &entry.data_len))
            return sgi_sqlite_unreadable_status(store);
        if (fn(user, &entry))
            break;
    }
    return sgi_sqlite_status_of(store, code);
}

segue_status sgi_sqlite_read(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user)
{
    sgi_sqlite_store *store = self;
    sqlite3_stmt *lookup = store->statements[SGI_SQLITE_LOOKUP];
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_READ];
    sgi_sqlite_bind_bytes(lookup, 1, id, SEGUE_STORE_ID_SIZE);
    int code = sgi_sqlite_step(store, lookup);
    segue_status status =
        code == SQLITE_DONE ? SEGUE_E_NOT_FOUND : sgi_sqlite_status_of(store, code);
    if (code == SQLITE_ROW && after < (uint64_t)SGI_SQLITE_SEQ_MAX) {
        int64_t op = sqlite3_column_int64(lookup, 0);
        sgi_sqlite_bind_range(store, SGI_SQLITE_READ, op);
        sqlite3_bind_int64(statement, 1, sgi_sqlite_key(op, (int64_t)after + 1));
        /* The statement `lookup` is reset only after show_entries, so that both
         * statements read the same state of the file. */
        status = show_entries(store, fn, user);
        sqlite3_reset(statement);
    }
    sqlite3_reset(lookup);
    return status;
}

/* Passes the rows of a statement to fn, in the order of the statement's index, until fn
 * returns a nonzero value. */
static segue_status show_records(sgi_sqlite_store *store, sqlite3_stmt *statement,
                                 segue_store_record_fn fn, void *user)
{
    segue_store_record record;
    int code;
    while ((code = sgi_sqlite_step(store, statement)) == SQLITE_ROW) {
        if (!fill_record(statement, &record))
            return sgi_sqlite_unreadable_status(store);
        if (fn(user, &record))
            break;
    }
    return sgi_sqlite_status_of(store, code);
}

segue_status sgi_sqlite_list(void *self, const uint8_t *principal, int64_t created_ms,
                             const char *task_id, segue_store_record_fn fn, void *user)
{
    sgi_sqlite_store *store = self;
    sqlite3_stmt *statement =
        store->statements[task_id ? SGI_SQLITE_LIST_BEHIND : SGI_SQLITE_LIST];
    sgi_sqlite_bind_bytes(statement, 1, principal, SEGUE_STORE_HASH_SIZE);
    if (task_id) {
        sqlite3_bind_int64(statement, 2, created_ms);
        sqlite3_bind_text(statement, 3, task_id, -1, SQLITE_STATIC);
    }
    segue_status status = show_records(store, statement, fn, user);
    sqlite3_reset(statement);
    return status;
}

segue_status sgi_sqlite_scan(void *self, uint64_t *place, segue_store_record_fn fn,
                             void *user)
{
    sgi_sqlite_store *store = self;
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_SCAN];
    segue_store_record record;
    segue_status unreadable = SEGUE_OK;
    int64_t count = 0, last = 0;
    int code;
    sqlite3_bind_int64(statement, 1, (int64_t)*place);
    sqlite3_bind_int64(statement, 2, SCAN_STEP);
    while ((code = sgi_sqlite_step(store, statement)) == SQLITE_ROW) {
        last = sqlite3_column_int64(statement, 8);
        count++;
        if (!fill_record(statement, &record))
            unreadable = sgi_sqlite_unreadable_status(store);
        else if (fn(user, &record))
            break;
    }
    segue_status status = sgi_sqlite_status_of(store, code);
    sqlite3_reset(statement);
    *place = count == SCAN_STEP ? (uint64_t)last : 0;
    return status ? status : unreadable;
}
