/* Claims and purges in PostgreSQL.
 *
 * One call claims a few operations whose owner is gone. The database server marks these
 * operations as claimed until the next call acknowledges that fn was called for them. If
 * the answer of a claim is lost, a repeated claim gives the same operations. If the
 * acknowledgement is lost, the next claim on this handle sends the acknowledgement again:
 * `store->shown` has the operations for which fn must not be called twice. An operation
 * that was claimed but not passed to fn is given back. A claim allocates nothing after it
 * has begun, so it cannot fail halfway for lack of memory. */
#include "store/postgres_store.h"

#include "base/thresholds.h"

#define PURGE_STEP SGI_THRESHOLD(postgres_purge_step)

/* ---- claim ---- */

static void add_shown(sgi_pg_store *store)
{
    sgi_buf *ids = sgi_pg_array_begin(&store->call, SGI_PG_IDS);
    for (size_t i = 0; i < store->shown_count; i++)
        sgi_pg_add_bytes(ids, store->shown[i], SEGUE_STORE_ID_SIZE);
    sgi_pg_array_end(ids, store->shown_count);
}

/* Acknowledges the operations that were passed to fn, and claims further operations. */
static segue_status next_claim(sgi_pg_store *store, PGresult **result)
{
    sgi_pg_begin_write_call(store, "SELECT " SGI_PG_RECORD
                                   ", torn FROM @.claim($1, $2, $3, $4)");
    sgi_pg_arg_int32(&store->call, SGI_PG_CLAIM_STEP);
    add_shown(store);
    segue_status status = sgi_pg_execute(store, result, NULL);
    if (!status)
        store->shown_count = 0;
    return status;
}

/* Passes the claimed operations to fn. Returns true when fn has stopped the claim. An
 * unreadable operation is acknowledged like the others, because the next claim would
 * return it again. *unreadable is true then. */
static bool show_claimed(sgi_pg_store *store, const PGresult *result,
                         segue_store_record_fn fn, void *user, bool *unreadable)
{
    segue_store_record record;
    char text[SGI_STORE_TASK_MAX + 1];
    bool stop = false;
    for (int row = 0; row < sgi_pq.PQntuples(result) && row < SGI_PG_CLAIM_STEP && !stop;
         row++) {
        /* the first column is a uuid, so it always has this size */
        memcpy(store->shown[store->shown_count++], sgi_pq.PQgetvalue(result, row, 0),
               SEGUE_STORE_ID_SIZE);
        if (!sgi_pg_fill_record(result, row, &record, text)) {
            *unreadable = true;
            continue;
        }
        if (sgi_pg_get_bool(result, row, SGI_PG_RECORD_COLUMNS))
            record.ended = SEGUE_STORE_TORN;
        /* forgets which commands were delivered, so that the new owner gets all of them
         * again */
        sgi_store_feed_note_taken_commands(&store->feed, record.id, UINT64_MAX);
        stop = fn(user, &record) != 0;
    }
    if (store->shown_count)
        sgi_store_feed_set_flag(&store->feed, &store->feed.mail_all);
    return stop;
}

/* Acknowledges the operations that were passed to fn, and gives the other claimed
 * operations back. */
static void end_claim(sgi_pg_store *store)
{
    sgi_pg_begin_write_call(store, "SELECT @.unclaim($1, $2, $3)");
    add_shown(store);
    if (sgi_pg_execute_without_result(store) == SEGUE_OK)
        store->shown_count = 0;
    else
        sgi_store_feed_set_flag(
            &store->feed,
            /* operations that were given back have no owner, so orphans are
                           * reported */
            &store->feed.orphans);
}

segue_status sgi_pg_claim(void *self, segue_store_record_fn fn, void *user)
{
    sgi_pg_store *store = self;
    bool any = false, stop = false, unreadable = false;
    while (!stop) {
        PGresult *result;
        segue_status status = next_claim(store, &result);
        if (status) {
            /* This instance keeps the operations that were passed to fn. The next claim
             * passes the remaining operations to fn, so orphans are reported. */
            sgi_store_feed_set_flag(&store->feed, &store->feed.orphans);
            if (!any)
                return status;
            break;
        }
        bool over = !sgi_pq.PQntuples(result);
        stop = show_claimed(store, result, fn, user, &unreadable);
        any = any || store->shown_count;
        sgi_pq.PQclear(result);
        if (over)
            break;
        if (stop)
            end_claim(store);
    }
    /* the wake-up call makes the listeners ask for the commands of the claimed
     * operations */
    if (any)
        sgi_store_feed_wake(&store->feed);
    return unreadable ? SEGUE_E_STORE_CORRUPT : SEGUE_OK;
}

/* ---- purge ---- */

segue_status sgi_pg_purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    sgi_pg_store *store = self;
    PGresult *result;
    sgi_pg_begin_write_call(store, "SELECT purged, next_ms FROM @.purge($1, $2, $3, $4)");
    sgi_pg_arg_int64(&store->call, now_ms);
    sgi_pg_arg_int32(&store->call, PURGE_STEP);
    segue_status status = sgi_pg_execute(store, &result, NULL);
    if (status)
        return status;
    int64_t due_ms = sgi_pg_get_int64(result, 0, 1);
    store->purged += sgi_pg_get_int64(result, 0, 0);
    *next_ms = due_ms < now_ms ? now_ms : due_ms;
    sgi_pq.PQclear(result);
    return SEGUE_OK;
}
