/* Claims and purges in Redis.
 *
 * One script call claims a few operations whose owner is gone. Redis keeps these
 * operations in a separate set until the next call acknowledges that fn was called for
 * them. If the answer of a claim is lost, a repeated claim gives the same operations. If
 * the acknowledgement is lost, the next claim on this handle sends the acknowledgement
 * again: `store->shown` has the operations that were passed to fn and must not be passed
 * twice. An operation that was claimed but not passed to fn is given back and then has no
 * owner. A claim allocates nothing after it has begun, so it cannot fail halfway for lack
 * of memory.
 *
 * Keys have no expiry time in Redis, because one key of an operation could expire before
 * the others. The purge of any server deletes all keys of an operation at once; Redis
 * frees the memory in the background. */
#include "store/redis_store.h"

#include "base/thresholds.h"

#define PURGE_STEP SGI_THRESHOLD(redis_purge_step)

/* ---- claim ---- */

static void add_shown(sgi_redis_store *store)
{
    for (size_t i = 0; i < store->shown_count; i++)
        sgi_redis_arg(&store->commands, store->shown[i], SEGUE_STORE_ID_SIZE);
}

/* Acknowledges the operations that were passed to fn, and claims further operations. */
static segue_status next_claim(sgi_redis_store *store, redisReply **reply)
{
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin_write_script(store, SGI_REDIS_CLAIM, 1 + store->shown_count);
    sgi_redis_arg_int(&store->commands, SGI_REDIS_CLAIM_STEP);
    add_shown(store);
    segue_status status = sgi_redis_execute(store, 1, reply);
    if (status)
        return status;
    store->shown_count = 0;
    if (sgi_redis_is_array(*reply, 0))
        return SEGUE_OK;
    freeReplyObject(*reply);
    return SEGUE_E_STORE_CORRUPT;
}

/* Passes the claimed operations to fn. Returns true when fn has stopped the claim. A
 * claimed operation that was deleted in the meantime is skipped, and is acknowledged like
 * the others. An operation whose record is unreadable is skipped, too, and *unreadable
 * becomes true. */
static bool show_claimed(sgi_redis_store *store, const redisReply *reply,
                         segue_store_record_fn fn, void *user, bool *unreadable)
{
    segue_store_record record;
    char text[SGI_STORE_TASK_MAX + 1];
    bool stop = false;
    for (size_t i = 0; i < reply->elements && i < SGI_REDIS_CLAIM_STEP && !stop; i++) {
        const redisReply *row = reply->element[i];
        if (!sgi_redis_is_array(row, 1) || !sgi_redis_is_text(row->element[0]) ||
            row->element[0]->len != SEGUE_STORE_ID_SIZE)
            continue;
        memcpy(store->shown[store->shown_count++], row->element[0]->str,
               SEGUE_STORE_ID_SIZE);
        if (row->elements < 4 || !sgi_redis_fill_record(row->element, &record, text)) {
            *unreadable |= row->elements > 1 && sgi_redis_is_text(row->element[1]);
            continue;
        }
        if (row->elements > 4 && sgi_redis_is_text(row->element[4]) &&
            *row->element[4]->str == '1')
            record.ended = SEGUE_STORE_TORN;
        /* forgets which commands were delivered, so that the new owner gets all of them
         * again */
        sgi_store_feed_note_taken_commands(&store->feed, record.id, UINT64_MAX);
        stop = fn(user, &record) != 0;
    }
    pthread_mutex_lock(&store->feed.lock);
    store->feed.mail_all = store->feed.mail_all || store->shown_count;
    pthread_mutex_unlock(&store->feed.lock);
    return stop;
}

/* Acknowledges the operations that were passed to fn, and gives the other claimed
 * operations back. */
static void end_claim(sgi_redis_store *store)
{
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin_write_script(store, SGI_REDIS_UNCLAIM, store->shown_count);
    add_shown(store);
    if (sgi_redis_execute_for_status(store) == SEGUE_OK)
        store->shown_count = 0;
    else
        /* claimed operations that were not passed to fn have no owner now, so orphans are
         * reported */
        sgi_store_feed_set_flag(&store->feed, &store->feed.orphans);
}

segue_status sgi_redis_claim(void *self, segue_store_record_fn fn, void *user)
{
    sgi_redis_store *store = self;
    bool any = false, stop = false, unreadable = false;
    while (!stop) {
        redisReply *reply;
        /* The memory for the acknowledgement is reserved before fn is called for the
         * first time. */
        sgi_buf_reset(&store->commands, SIZE_MAX);
        if (!sgi_buf_reserve(&store->commands, 512 + SGI_REDIS_CLAIM_STEP * 32))
            return SEGUE_E_NOMEM;
        segue_status status = next_claim(store, &reply);
        if (status) {
            /* This instance keeps the operations that were passed to fn. The next claim
             * passes the remaining operations to fn, so orphans are reported. */
            sgi_store_feed_set_flag(&store->feed, &store->feed.orphans);
            return any ? SEGUE_OK : status;
        }
        bool over = !reply->elements;
        stop = show_claimed(store, reply, fn, user, &unreadable);
        any = any || store->shown_count;
        freeReplyObject(reply);
        if (over)
            break;
        if (stop)
            end_claim(store);
    }
    if (any)
        /* the wake-up call makes the listeners ask for the commands of the claimed
         * operations */
        sgi_store_feed_wake(&store->feed);
    return unreadable ? SEGUE_E_STORE_CORRUPT : SEGUE_OK;
}

/* ---- purge ---- */

static segue_status purge_step(sgi_redis_store *store, int64_t now_ms, int64_t *due_ms)
{
    redisReply *reply;
    uint8_t now[8];
    sgi_redis_write_sortable_int(now, now_ms);
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin_write_script(store, SGI_REDIS_PURGE, 2);
    sgi_redis_arg(&store->commands, now, sizeof now);
    sgi_redis_arg_int(&store->commands, PURGE_STEP);
    segue_status status = sgi_redis_execute(store, 1, &reply);
    if (status)
        return status;
    if (!sgi_redis_is_array(reply, 2) || !sgi_redis_is_text(reply->element[1]))
        status = SEGUE_E_STORE_CORRUPT;
    else
        store->purged += reply->element[0]->integer;
    *due_ms = INT64_MAX;
    if (!status && reply->element[1]->len == 8)
        *due_ms = sgi_redis_read_sortable_int(reply->element[1]->str);
    freeReplyObject(reply);
    return status;
}

segue_status sgi_redis_purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    int64_t due_ms;
    segue_status status = purge_step(self, now_ms, &due_ms);
    if (!status)
        *next_ms = due_ms < now_ms ? now_ms : due_ms;
    return status;
}
