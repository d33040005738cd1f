/* Finds, reads and lists operations in PostgreSQL. Long results are fetched in pages,
 * limited in rows and in bytes, so that neither this process nor the server holds a whole
 * result. A page of entries begins after an entry number. A page of a list begins after
 * the last record of the previous page. */
#include "store/postgres_store.h"

#include "base/thresholds.h"

#define READ_PAGE SGI_THRESHOLD(postgres_read_page)
#define LIST_PAGE SGI_THRESHOLD(postgres_list_page)
#define SCAN_STEP SGI_THRESHOLD(scan_step)
#define PAGE_BYTES (4 * 1024 * 1024)

/* ---- records ---- */

bool sgi_pg_fill_record(const PGresult *result, int row, segue_store_record *record,
                        char task_id[SGI_STORE_TASK_MAX + 1])
{
    size_t task_len = sgi_pg_len(result, row, 1), key_len = sgi_pg_len(result, row, 2);
    bool has_key = !sgi_pq.PQgetisnull(result, row, 2);
    if (task_len > SGI_STORE_TASK_MAX ||
        sgi_pg_len(result, row, 0) != SEGUE_STORE_ID_SIZE ||
        (has_key && key_len != SEGUE_STORE_HASH_SIZE) ||
        sgi_pg_len(result, row, 3) != SEGUE_STORE_HASH_SIZE)
        return false;
    *record = (segue_store_record){.task_id = task_id,
                                   .has_key = has_key,
                                   .ended = sgi_pg_get_bool(result, row, 4),
                                   .created_ms = sgi_pg_get_int64(result, row, 5),
                                   .purge_ms = sgi_pg_get_int64(result, row, 6),
                                   .data = sgi_pq.PQgetvalue(result, row, 7),
                                   .data_len = sgi_pg_len(result, row, 7)};
    memcpy(record->id, sgi_pq.PQgetvalue(result, row, 0), SEGUE_STORE_ID_SIZE);
    memcpy(record->idempotency_key, sgi_pq.PQgetvalue(result, row, 2), key_len);
    memcpy(record->principal, sgi_pq.PQgetvalue(result, row, 3), SEGUE_STORE_HASH_SIZE);
    memcpy(task_id, sgi_pq.PQgetvalue(result, row, 1), task_len);
    task_id[task_len] = 0;
    return true;
}

segue_status sgi_pg_find(void *self, const char *task_id, const uint8_t *idempotency_key,
                         segue_store_record_fn fn, void *user)
{
    sgi_pg_store *store = self;
    PGresult *result;
    segue_store_record record;
    char text[SGI_STORE_TASK_MAX + 1];
    sgi_pg_begin_call(store, task_id ? "SELECT " SGI_PG_RECORD
                                       " FROM @.operation WHERE task_id = $1"
                                     : "SELECT " SGI_PG_RECORD
                                       " FROM @.operation WHERE idempotency_key = $1");
    if (task_id)
        sgi_pg_arg_bytes(&store->call, task_id, strlen(task_id));
    else
        sgi_pg_arg_bytes(&store->call, idempotency_key, SEGUE_STORE_HASH_SIZE);
    segue_status status = sgi_pg_execute(store, &result, NULL);
    if (status)
        return status;
    if (!sgi_pq.PQntuples(result))
        status = SEGUE_E_NOT_FOUND;
    else if (sgi_pg_fill_record(result, 0, &record, text))
        fn(user, &record);
    else
        status = SEGUE_E_STORE_CORRUPT;
    sgi_pq.PQclear(result);
    return status;
}

/* ---- logs ---- */

/* Passes the entries of a page to fn. *after receives the number of the last passed
 * entry. Returns true when another page can follow: this page has the maximum of rows or
 * bytes, and fn has not stopped. */
static bool show_page(const PGresult *result, segue_store_entry_fn fn, void *user,
                      int64_t *after)
{
    size_t bytes = 0;
    int rows = sgi_pq.PQntuples(result);
    for (int row = 0; row < rows; row++) {
        segue_store_entry entry = {.seq = (uint64_t)sgi_pg_get_int64(result, row, 0),
                                   .segment = (uint64_t)sgi_pg_get_int64(result, row, 1),
                                   .event = (uint64_t)sgi_pg_get_int64(result, row, 2),
                                   .kind = sgi_pg_get_int32(result, row, 3),
                                   .at_ms = sgi_pg_get_int64(result, row, 4),
                                   .data = sgi_pq.PQgetvalue(result, row, 5),
                                   .data_len = sgi_pg_len(result, row, 5)};
        *after = (int64_t)entry.seq;
        bytes += entry.data_len;
        if (fn(user, &entry))
            return false;
    }
    return rows == READ_PAGE || bytes >= PAGE_BYTES;
}

segue_status sgi_pg_read(void *self, const uint8_t *id, uint64_t after,
                         segue_store_entry_fn fn, void *user)
{
    sgi_pg_store *store = self;
    int64_t last = after < INT64_MAX ? (int64_t)after : INT64_MAX;
    for (bool more = true; more;) {
        PGresult *result;
        sgi_pg_begin_call(store, "SELECT seq, segment, event, kind, at, data"
                                 " FROM @.read_log($1, $2, $3, $4)");
        sgi_pg_arg_id(&store->call, id);
        sgi_pg_arg_int64(&store->call, last);
        sgi_pg_arg_int32(&store->call, READ_PAGE);
        sgi_pg_arg_int64(&store->call, PAGE_BYTES);
        segue_status status = sgi_pg_execute(store, &result, NULL);
        if (status)
            return status;
        more = show_page(result, fn, user, &last);
        sgi_pq.PQclear(result);
    }
    return SEGUE_OK;
}

/* ---- lists of operations ---- */

static const char LIST[] =
    "SELECT " SGI_PG_RECORD " FROM @.operation WHERE principal = $1"
    " ORDER BY created DESC, task_id DESC LIMIT $2";
static const char LIST_BEHIND[] =
    "SELECT " SGI_PG_RECORD " FROM @.operation WHERE principal = $1"
    " AND (created, task_id) < ($3, $4) ORDER BY created DESC, task_id DESC LIMIT $2";

/* A page has one record at least, and ends when it has the maximum of bytes. */
static const char SCAN[] =
    "SELECT " SGI_PG_RECORD ", op FROM"
    " (SELECT *, sum(octet_length(data)) OVER (ORDER BY op) - octet_length(data)"
    " AS before"
    " FROM (SELECT * FROM @.operation WHERE op > $1 ORDER BY op LIMIT $2) AS part)"
    " AS page WHERE before < $3 ORDER BY op";

/* Passes the records of a page to fn. *last receives the last passed record. *more
 * becomes true when another page can follow. */
static segue_status show_list(const PGresult *result, segue_store_record *last,
                              char text[SGI_STORE_TASK_MAX + 1], bool *more,
                              segue_store_record_fn fn, void *user)
{
    *more = sgi_pq.PQntuples(result) == LIST_PAGE;
    for (int row = 0; row < sgi_pq.PQntuples(result); row++) {
        if (!sgi_pg_fill_record(result, row, last, text))
            return SEGUE_E_STORE_CORRUPT;
        if (fn(user, last)) {
            *more = false;
            return SEGUE_OK;
        }
    }
    return SEGUE_OK;
}

/* Begins the call that fetches the page behind `last`. */
static void begin_list(sgi_pg_store *store, const uint8_t *principal,
                       const segue_store_record *last)
{
    sgi_pg_begin_call(store, last->task_id ? LIST_BEHIND : LIST);
    sgi_pg_arg_bytes(&store->call, principal, SEGUE_STORE_HASH_SIZE);
    sgi_pg_arg_int64(&store->call, LIST_PAGE);
    if (last->task_id) {
        sgi_pg_arg_int64(&store->call, last->created_ms);
        sgi_pg_arg_bytes(&store->call, last->task_id, strlen(last->task_id));
    }
}

static segue_status show_pages(sgi_pg_store *store, const uint8_t *principal,
                               segue_store_record last, segue_store_record_fn fn,
                               void *user)
{
    char text[SGI_STORE_TASK_MAX + 1];
    segue_status status = SEGUE_OK;
    for (bool more = true; more && !status;) {
        PGresult *result;
        begin_list(store, principal, &last);
        status = sgi_pg_execute(store, &result, NULL);
        if (status)
            break;
        status = show_list(result, &last, text, &more, fn, user);
        sgi_pq.PQclear(result);
    }
    return status;
}

segue_status sgi_pg_list(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user)
{
    segue_store_record last = {.task_id = task_id, .created_ms = created_ms};
    return show_pages(self, principal, last, fn, user);
}

segue_status sgi_pg_scan(void *self, uint64_t *place, segue_store_record_fn fn,
                         void *user)
{
    sgi_pg_store *store = self;
    segue_store_record record;
    char text[SGI_STORE_TASK_MAX + 1];
    PGresult *result;
    sgi_pg_begin_call(store, SCAN);
    sgi_pg_arg_int64(&store->call, (int64_t)*place);
    sgi_pg_arg_int64(&store->call, SCAN_STEP);
    sgi_pg_arg_int64(&store->call, PAGE_BYTES);
    segue_status status = sgi_pg_execute(store, &result, NULL);
    if (status)
        return status;
    int rows = sgi_pq.PQntuples(result);
    size_t bytes = 0;
    for (int row = 0; row < rows; row++)
        bytes += sgi_pg_len(result, row, SGI_PG_RECORD_COLUMNS - 1);
    *place = rows == SCAN_STEP || bytes >= PAGE_BYTES
                 ? (uint64_t)sgi_pg_get_int64(result, rows - 1, SGI_PG_RECORD_COLUMNS)
                 : 0;
    for (int row = 0; row < rows; row++)
        if (!sgi_pg_fill_record(result, row, &record, text))
            status = SEGUE_E_STORE_CORRUPT;
        else if (fn(user, &record))
            break;
    sgi_pq.PQclear(result);
    return status;
}
