/* Claims, evicts and purges operations in a SQLite store.
 *
 * A claim goes in steps. A step first makes this instance the owner of some operations,
 * in one transaction, and then passes them to fn. Therefore an instance sees only the
 * records of operations that it owns, and a claim that fn stops costs no more than its
 * steps. Operations that were claimed but not passed to fn are given back (owner 0 = no
 * owner). sqlite_owners.c knows which owners are gone.
 *
 * Operations are deleted in bounded steps, because a log can be long and SQLite has only
 * one writer at a time. The row of an operation is deleted at once, so the operation can
 * no longer be found. Log rows that one step cannot delete are recorded in the table
 * `garbage`, and later purges delete them. Freed pages are used again; the file shrinks
 * only when it is asked to (sgi_sqlite_compact). */
#include "store/sqlite_open.h"
#include "store/sqlite_store.h"

#include "base/thresholds.h"

#define CLAIM_STEP SGI_THRESHOLD(sqlite_claim_step)
#define REMOVE_STEP 1000
#define EVICT_STEP 64
#define STATS_MS 1000

/* ---- claim ---- */

bool sgi_sqlite_op_list_add(sgi_sqlite_store *store, sgi_sqlite_op_list *list, int64_t op)
{
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 16;
        int64_t *ops = sgi_realloc(&store->mem, list->ops, list->cap * sizeof *ops,
                                   cap * sizeof *ops);
        if (!ops)
            return false;
        list->ops = ops;
        list->cap = cap;
    }
    list->ops[list->count++] = op;
    return true;
}

void sgi_sqlite_op_list_free(sgi_sqlite_store *store, sgi_sqlite_op_list *list)
{
    sgi_free(&store->mem, list->ops, list->cap * sizeof *list->ops);
    *list = (sgi_sqlite_op_list){NULL, 0, 0};
}

/* Makes this instance the owner of operations that this owner left. The list has at most
 * CLAIM_STEP operations then. */
static segue_status adopt_from(sgi_sqlite_store *store, int64_t owner,
                               sgi_sqlite_op_list *list)
{
    sqlite3_stmt *orphans = store->statements[SGI_SQLITE_ORPHANS];
    int code = SQLITE_DONE;
    bool ok = true;
    size_t i = list->count;
    sqlite3_bind_int64(orphans, 1, owner);
    sqlite3_bind_int64(orphans, 2, (int64_t)(CLAIM_STEP - list->count));
    while (ok && (code = sgi_sqlite_step(store, orphans)) == SQLITE_ROW)
        ok = sgi_sqlite_op_list_add(store, list, sqlite3_column_int64(orphans, 0));
    segue_status status = ok ? sgi_sqlite_status_of(store, code) : SEGUE_E_NOMEM;
    sqlite3_reset(orphans);
    if (status)
        return status;
    for (code = SQLITE_OK; i < list->count && !code; i++)
        code = sgi_sqlite_run_with_two(store, SGI_SQLITE_SET_OWNER, list->ops[i],
                                       store->file.owner);
    return sgi_sqlite_status_of(store, code);
}

/* Makes this instance the owner of at most CLAIM_STEP operations whose owners are
 * gone. */
static segue_status adopt_some(sgi_sqlite_store *store, sgi_sqlite_op_list *list)
{
    for (int64_t before = -1; list->count < CLAIM_STEP;) {
        int64_t owner = -1;
        sqlite3_bind_int64(store->statements[SGI_SQLITE_OTHER_OWNER], 1, before);
        int code = sgi_sqlite_query(store, SGI_SQLITE_OTHER_OWNER, &owner);
        if (code || owner < 0)
            return sgi_sqlite_status_of(store, code);
        if (!sgi_sqlite_owner_lives(&store->file, owner)) {
            segue_status status = adopt_from(store, owner, list);
            if (status)
                return status;
        }
        before = owner;
    }
    return SEGUE_OK;
}

/* Passes the operations of the list to fn, until fn stops. *count receives the number of
 * operations that were handled. An unreadable operation does not hold up the others: this
 * instance owns it until the store closes. The status then is SEGUE_E_STORE_CORRUPT. */
static segue_status show_all(sgi_sqlite_store *store, const sgi_sqlite_op_list *list,
                             size_t *count, segue_store_record_fn fn, void *user,
                             bool *stop)
{
    bool unreadable = false;
    for (*count = 0; *count < list->count && !*stop; ++*count) {
        sqlite3_bind_int64(store->statements[SGI_SQLITE_FIND_NUMBER], 1,
                           list->ops[*count]);
        segue_status status =
            sgi_sqlite_pass_record(store, SGI_SQLITE_FIND_NUMBER, fn, user, stop);
        unreadable |= status == SEGUE_E_STORE_CORRUPT;
        /* SEGUE_E_NOT_FOUND means that another process has just purged the operation */
        if (status && status != SEGUE_E_NOT_FOUND && status != SEGUE_E_STORE_CORRUPT)
            return status;
    }
    return unreadable ? SEGUE_E_STORE_CORRUPT : SEGUE_OK;
}

/* Gives back the operations of the list from index `from` on. If giving back fails, this
 * instance owns these operations until the store closes; then any instance can claim
 * them. */
static void disown(sgi_sqlite_store *store, const sgi_sqlite_op_list *list, size_t from)
{
    if (from == list->count || sgi_sqlite_begin_transaction(store))
        return;
    int code = SQLITE_OK;
    for (size_t i = from; i < list->count && !code; i++)
        code = sgi_sqlite_run_with_two(store, SGI_SQLITE_SET_OWNER, list->ops[i], 0);
    sgi_sqlite_end_transaction(store, sgi_sqlite_status_of(store, code));
}

/* Claims one step of operations, and passes them to fn. *stop: fn has stopped, or no
 * operation is left. */
static segue_status claim_step(sgi_sqlite_store *store, sgi_sqlite_op_list *list,
                               segue_store_record_fn fn, void *user, bool *stop)
{
    size_t shown;
    segue_status status = sgi_sqlite_begin_transaction(store);
    if (status)
        return status;
    /* Makes the cached operations invalid, because they can name the old owners. Each
     * cached operation is looked up again before its next use. */
    sgi_sqlite_invalidate_cached_ops(store);
    status = adopt_some(store, list);
    if (!status)
        status = sgi_sqlite_redeliver_commands(store, list);
    status = sgi_sqlite_end_transaction(store, status);
    if (status)
        return status;
    status = show_all(store, list, &shown, fn, user, stop);
    disown(store, list, shown);
    *stop |= list->count < CLAIM_STEP;
    return status;
}

segue_status sgi_sqlite_claim(void *self, segue_store_record_fn fn, void *user)
{
    sgi_sqlite_store *store = self;
    sgi_sqlite_op_list list = {NULL, 0, 0};
    segue_status status = SEGUE_OK;
    bool stop = false;
    while (!stop) {
        list.count = 0;
        segue_status step = claim_step(store, &list, fn, user, &stop);
        if (step)
            status = step;
        if (step && step != SEGUE_E_STORE_CORRUPT)
            break;
    }
    sgi_sqlite_op_list_free(store, &list);
    return status;
}

/* ---- removing ---- */

/* Removes the oldest log rows of an operation, at most *budget rows, and lowers *budget
 * by the number of removed rows. *done becomes true when no row is left. Each pass of the
 * loop covers a range of row numbers. The range can have holes, so a pass can remove
 * fewer rows than the budget allows. */
static int remove_log(sgi_sqlite_store *store, int64_t op, int64_t *budget, bool *done)
{
    int64_t most = sgi_sqlite_key(op, SGI_SQLITE_SEQ_MAX);
    for (;;) {
        int64_t first = -1;
        sgi_sqlite_bind_range(store, SGI_SQLITE_FIRST_KEY, op);
        int code = sgi_sqlite_query(store, SGI_SQLITE_FIRST_KEY, &first);
        *done = first < 0;
        if (code || *done || *budget <= 0)
            return code;
        int64_t last = most - first < *budget ? most : first + *budget - 1;
        code = sgi_sqlite_run_with_two(store, SGI_SQLITE_REMOVE_LOG, first, last);
        int64_t removed = sqlite3_changes(store->file.db);
        if (code || !removed)
            return code ? code : SQLITE_CORRUPT;
        *budget -= removed;
    }
}

static int remove_within(sgi_sqlite_store *store, int64_t op, int64_t *budget)
{
    bool done = true;
    int code = sgi_sqlite_run_with(store, SGI_SQLITE_REMOVE, op);
    if (!code)
        code = remove_log(store, op, budget, &done);
    return code || done ? code : sgi_sqlite_run_with(store, SGI_SQLITE_LEAVE, op);
}

int sgi_sqlite_remove_op(sgi_sqlite_store *store, int64_t op)
{
    int64_t budget = REMOVE_STEP;
    return remove_within(store, op, &budget);
}

/* ---- keeping a principal within its limits ---- */

static segue_status count_principal(sgi_sqlite_store *store, const uint8_t *principal,
                                    bool *over)
{
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_PRINCIPAL];
    sgi_sqlite_bind_bytes(statement, 1, principal, SEGUE_STORE_HASH_SIZE);
    int code = sgi_sqlite_step(store, statement);
    *over = code == SQLITE_ROW &&
            ((store->max_operations &&
              sqlite3_column_int64(statement, 0) > store->max_operations) ||
             (store->max_bytes && sqlite3_column_int64(statement, 1) > store->max_bytes));
    sqlite3_reset(statement);
    return code == SQLITE_ROW ? SEGUE_OK : sgi_sqlite_status_of(store, code);
}

/* Evicts ended operations of the principal, the oldest first, at most EVICT_STEP per
 * call. If the limit is still exceeded after EVICT_STEP evictions, because the limit was
 * lowered, the new operation is accepted. It is refused (SEGUE_E_STORE_FULL) only when no
 * ended operation is left. */
segue_status sgi_sqlite_evict_ended_ops(sgi_sqlite_store *store, const uint8_t *principal,
                                        int64_t newest)
{
    bool over = store->max_operations || store->max_bytes;
    for (int i = 0; over && i < EVICT_STEP; i++) {
        segue_status status = count_principal(store, principal, &over);
        if (status || !over)
            return status;
        int64_t op = 0;
        sqlite3_stmt *oldest = store->statements[SGI_SQLITE_OLDEST_ENDED];
        sgi_sqlite_bind_bytes(oldest, 1, principal, SEGUE_STORE_HASH_SIZE);
        sqlite3_bind_int64(oldest, 2, newest);
        int code = sgi_sqlite_query(store, SGI_SQLITE_OLDEST_ENDED, &op);
        if (!code && !op)
            return SEGUE_E_STORE_FULL;
        if (!code)
            code = sgi_sqlite_remove_op(store, op);
        if (code)
            return sgi_sqlite_status_of(store, code);
        /* Makes the cached operations invalid, because the evicted operation can be one
         * of them. Each cached operation is looked up again before its next use. */
        sgi_sqlite_invalidate_cached_ops(store);
        store->stats.evicted++;
    }
    return SEGUE_OK;
}

/* ---- purge ---- */

/* Finds the next operation to purge and the time at which its purge is due. *due_ms
 * becomes INT64_MAX when no operation is to be purged. */
static int next_due(sgi_sqlite_store *store, int64_t *due_ms, int64_t *op)
{
    sqlite3_stmt *statement = store->statements[SGI_SQLITE_DUE];
    int code = sgi_sqlite_step(store, statement);
    *due_ms = INT64_MAX;
    if (code == SQLITE_ROW) {
        *due_ms = sqlite3_column_int64(statement, 0);
        *op = sqlite3_column_int64(statement, 1);
    }
    sqlite3_reset(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Does one step of a purge: removes more log rows of an operation that is already
 * deleted, or deletes the next operation that is due. *idle becomes true when there is
 * nothing to do. */
static int purge_piece(sgi_sqlite_store *store, int64_t now_ms, int64_t *budget,
                       bool *idle)
{
    int64_t op = 0, due_ms;
    bool done = false;
    int code = sgi_sqlite_query(store, SGI_SQLITE_LEFT_OVER, &op);
    if (!code && op) {
        code = remove_log(store, op, budget, &done);
        return code || !done ? code
                             : sgi_sqlite_run_with(store, SGI_SQLITE_LEFT_NOTHING, op);
    }
    if (!code)
        code = next_due(store, &due_ms, &op);
    *idle = code || due_ms > now_ms || due_ms == INT64_MAX;
    if (*idle)
        return code;
    --*budget;
    store->stats.purged++;
    return remove_within(store, op, budget);
}

static segue_status find_next(sgi_sqlite_store *store, int64_t now_ms, int64_t *next_ms)
{
    int64_t left = 0, due_ms, due;
    int code = sgi_sqlite_query(store, SGI_SQLITE_LEFT_OVER, &left);
    if (!code)
        code = next_due(store, &due_ms, &due);
    if (!code)
        *next_ms = left || due_ms < now_ms ? now_ms : due_ms;
    return sgi_sqlite_status_of(store, code);
}

segue_status sgi_sqlite_purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    sgi_sqlite_store *store = self;
    int64_t next = INT64_MAX;
    segue_status status = find_next(store, now_ms, &next);
    if (!status && next <= now_ms) {
        status = sgi_sqlite_begin_transaction(store);
        if (status)
            return status;
        /* Makes the cached operations invalid, because a purged operation can be one of
         * them. Each cached operation is looked up again before its next use. */
        sgi_sqlite_invalidate_cached_ops(store);
        bool idle = false;
        int code = SQLITE_OK;
        for (int64_t budget = REMOVE_STEP; budget > 0 && !idle && !code;)
            code = purge_piece(store, now_ms, &budget, &idle);
        status = sgi_sqlite_end_transaction(store, sgi_sqlite_status_of(store, code));
        if (!status)
            status = find_next(store, now_ms, &next);
    }
    if (!status)
        *next_ms = next;
    return status;
}

/* ---- statistics ---- */

void sgi_sqlite_get_stats(void *self, segue_store_stats *stats)
{
    sgi_sqlite_store *store = self;
    int64_t now_ms = sgi_sqlite_now_ms(), operations = -1, pages = -1;
    if (!store->stats_ms || now_ms - store->stats_ms >= STATS_MS) {
        sgi_sqlite_query(store, SGI_SQLITE_OPERATIONS, &operations);
        sgi_sqlite_query(store, SGI_SQLITE_PAGES, &pages);
        store->stats.operations = operations;
        store->stats.bytes = pages < 0 ? -1 : pages * store->page_size;
        store->stats_ms = now_ms;
    }
    stats->operations = store->stats.operations;
    stats->bytes = store->stats.bytes;
    stats->evicted = store->stats.evicted;
    stats->purged = store->stats.purged;
}

/* ---- room ---- */

/* Deletes what removals have left for later purges. */
static segue_status purge_all(sgi_sqlite_store *store)
{
    int64_t now_ms = sgi_sqlite_now_ms(), next_ms = now_ms;
    segue_status status = SEGUE_OK;
    while (!status && next_ms <= now_ms)
        status = sgi_sqlite_purge(store, now_ms, &next_ms);
    return status;
}

/* The log of SQLite has the whole file once after VACUUM, so it is emptied, too. The
 * pragma tells in its row, and not in its code, that somebody reads the log. */
segue_status sgi_sqlite_compact(void *self)
{
    sgi_sqlite_store *store = self;
    int64_t is_busy = 0;
    segue_status status = purge_all(store);
    if (status)
        return status;
    int code = sgi_sqlite_exec(store->file.db, "VACUUM");
    if (!code)
        code = sgi_sqlite_query_int(store->file.db, "PRAGMA wal_checkpoint(TRUNCATE)",
                                    &is_busy);
    store->stats_ms = 0;
    return sgi_sqlite_status_of(store, !code && is_busy ? SQLITE_BUSY : code);
}
