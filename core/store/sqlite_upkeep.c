/* Claiming, evicting and purging in a SQLite store.
 *
 * A claim first makes the operations ours, in one transaction, and then shows them:
 * whoever saw a record must be sure to own it. What could not be shown is given back as
 * number 0's, which is nobody. Which owners are gone sqlite_file.c knows.
 *
 * Deleting goes in bounded steps, since a log may be long and the writer is one. The row
 * of an operation goes at once and with it all that can be found; log rows beyond the
 * bound are left to `garbage`, which later purges work off. Pages set free are used
 * again; the file does not shrink. */
#include "store/sqlite_store.h"

#define REMOVE_STEP 1000
#define EVICT_STEP 64
#define STATS_MS 1000

/* ---- claim ---- */

bool sgi_sqlite_ops_add(sgi_sqlite_store *store, sgi_sqlite_ops *list, int64_t op)
{
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 16;
        int64_t *ops = sgi_resize(&store->mem, list->ops, list->cap * sizeof *ops,
                                  cap * sizeof *ops);
        if (!ops)
            return false;
        list->ops = ops;
        list->cap = cap;
    }
    list->ops[list->count++] = op;
    return true;
}

void sgi_sqlite_ops_free(sgi_sqlite_store *store, sgi_sqlite_ops *list)
{
    sgi_release(&store->mem, list->ops, list->cap * sizeof *list->ops);
    *list = (sgi_sqlite_ops){NULL, 0, 0};
}

static segue_status adopt_from(sgi_sqlite_store *store, int64_t owner,
                               sgi_sqlite_ops *list)
{
    sqlite3_stmt *orphans = store->statements[SGI_SQLITE_ORPHANS];
    int code = SQLITE_DONE;
    bool ok = true;
    sqlite3_bind_int64(orphans, 1, owner);
    while (ok && (code = sgi_sqlite_step(store, orphans)) == SQLITE_ROW)
        ok = sgi_sqlite_ops_add(store, list, sqlite3_column_int64(orphans, 0));
    segue_status status = ok ? sgi_sqlite_status_of(store, code) : SEGUE_E_NOMEM;
    sqlite3_reset(orphans);
    if (status)
        return status;
    code = sgi_sqlite_run_with_two(store, SGI_SQLITE_ADOPT, owner, store->file.owner);
    return sgi_sqlite_status_of(store, code);
}

static segue_status adopt_all(sgi_sqlite_store *store, sgi_sqlite_ops *list)
{
    for (int64_t before = -1;;) {
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
}

/* *count: how many of the list were dealt with. */
static segue_status show_all(sgi_sqlite_store *store, const sgi_sqlite_ops *list,
                             size_t *count, segue_store_record_fn fn, void *user)
{
    bool stop = false;
    for (*count = 0; *count < list->count && !stop; ++*count) {
        sqlite3_bind_int64(store->statements[SGI_SQLITE_FIND_NUMBER], 1,
                           list->ops[*count]);
        segue_status status =
            sgi_sqlite_show(store, SGI_SQLITE_FIND_NUMBER, fn, user, &stop);
        /* Not found: another process purged it just now. */
        if (status && status != SEGUE_E_NOT_FOUND)
            return status;
    }
    return SEGUE_OK;
}

/* If this fails too they stay ours until this store closes; then anybody's claim finds
 * them. */
static void disown(sgi_sqlite_store *store, const sgi_sqlite_ops *list, size_t from)
{
    if (from == list->count || sgi_sqlite_begin(store))
        return;
    int code = SQLITE_OK;
    for (size_t i = from; i < list->count && !code; i++)
        code = sgi_sqlite_run_with(store, SGI_SQLITE_DISOWN, list->ops[i]);
    sgi_sqlite_finish(store, sgi_sqlite_status_of(store, code));
}

segue_status sgi_sqlite_claim(void *self, segue_store_record_fn fn, void *user)
{
    sgi_sqlite_store *store = self;
    sgi_sqlite_ops list = {NULL, 0, 0};
    size_t shown;
    segue_status status = sgi_sqlite_begin(store);
    if (status)
        return status;
    sgi_sqlite_forget(store); /* it may know who owned what */
    status = adopt_all(store, &list);
    if (!status)
        status = sgi_sqlite_watch_claimed(store, &list);
    status = sgi_sqlite_finish(store, status);
    if (!status) {
        status = show_all(store, &list, &shown, fn, user);
        disown(store, &list, shown);
    }
    sgi_sqlite_ops_free(store, &list);
    return status;
}

/* ---- removing ---- */

/* Removes up to *budget log rows, oldest first, and subtracts them; *done when none is
 * left (a log has no holes, so fewer rows than keys means its end). */
static int remove_log(sgi_sqlite_store *store, int64_t op, int64_t *budget, bool *done)
{
    int64_t first = -1;
    sgi_sqlite_bind_range(store, SGI_SQLITE_FIRST_KEY, op);
    int code = sgi_sqlite_query(store, SGI_SQLITE_FIRST_KEY, &first);
    *done = first < 0;
    if (code || *done || *budget <= 0)
        return code;
    int64_t last = first + *budget - 1;
    if (last > sgi_sqlite_key(op, SGI_SQLITE_SEQ_MAX))
        last = sgi_sqlite_key(op, SGI_SQLITE_SEQ_MAX);
    code = sgi_sqlite_run_with_two(store, SGI_SQLITE_REMOVE_LOG, first, last);
    if (code)
        return code;
    int64_t removed = sqlite3_changes(store->file.db);
    *done = removed < last - first + 1;
    *budget -= removed;
    return SQLITE_OK;
}

static int remove_within(sgi_sqlite_store *store, int64_t op, int64_t *budget)
{
    bool done = true;
    int code = sgi_sqlite_run_with(store, SGI_SQLITE_REMOVE, op);
    if (!code)
        code = remove_log(store, op, budget, &done);
    return code || done ? code : sgi_sqlite_run_with(store, SGI_SQLITE_LEAVE, op);
}

int sgi_sqlite_remove(sgi_sqlite_store *store, int64_t op)
{
    int64_t budget = REMOVE_STEP;
    return remove_within(store, op, &budget);
}

/* ---- room for a principal ---- */

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

/* A bound that was set lower than what is there is reached in steps: each new operation
 * takes some of the old ones away, and may come in as long as there are any. */
segue_status sgi_sqlite_make_room(sgi_sqlite_store *store, const uint8_t *principal,
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
            code = sgi_sqlite_remove(store, op);
        if (code)
            return sgi_sqlite_status_of(store, code);
        sgi_sqlite_forget(store); /* it may know what went */
        store->stats.evicted++;
    }
    return SEGUE_OK;
}

/* ---- purge ---- */

/* When the next operation is due, and which; INT64_MAX when none is. */
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

/* One piece of work: the rest of an operation that is gone, or the next that is due. */
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
        status = sgi_sqlite_begin(store);
        if (status)
            return status;
        sgi_sqlite_forget(store); /* it may know what goes now */
        bool idle = false;
        int code = SQLITE_OK;
        for (int64_t budget = REMOVE_STEP; budget > 0 && !idle && !code;)
            code = purge_piece(store, now_ms, &budget, &idle);
        status = sgi_sqlite_finish(store, sgi_sqlite_status_of(store, code));
        if (!status)
            status = find_next(store, now_ms, &next);
    }
    if (!status)
        *next_ms = next;
    return status;
}

/* ---- how it is ---- */

void sgi_sqlite_tell_stats(void *self, segue_store_stats *stats)
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
