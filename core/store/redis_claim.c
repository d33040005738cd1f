/* Claiming and purging in Redis.
 *
 * A claim makes a few operations ours at a time, in one script that also looks whether
 * their owner is gone. They stand in a set of their own until the next call says that
 * they have been shown: when the answer of a claim is lost, asking again gives the same
 * ones. When that next call is lost, the claim after it says so, be it another server's
 * on this handle: `store->shown` are those that nobody is shown again. What could not be
 * shown is given back as nobody's. Nothing is allocated here, so a claim that has begun
 * cannot fail for lack of memory.
 *
 * Keys have no time to live of their own: half of an operation could go before the other.
 * Purges of any server delete all of it at once, its memory being freed by Redis in the
 * background. */
#include "store/redis_store.h"

#define PURGE_STEP 1000

/* ---- claim ---- */

static void add_shown(sgi_redis_store *store)
{
    for (size_t i = 0; i < store->shown_count; i++)
        sgi_redis_arg(&store->commands, store->shown[i], SEGUE_STORE_ID_SIZE);
}

/* Acknowledges what was shown and asks for more. */
static segue_status next_claim(sgi_redis_store *store, redisReply **reply)
{
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_change(store, SGI_REDIS_CLAIM, 1 + store->shown_count);
    sgi_redis_arg_int(&store->commands, SGI_REDIS_CLAIM_STEP);
    add_shown(store);
    segue_status status = sgi_redis_ask(store, 1, reply);
    if (status)
        return status;
    store->shown_count = 0;
    if (sgi_redis_is_array(*reply, 0))
        return SEGUE_OK;
    freeReplyObject(*reply);
    return SEGUE_E_STORE_CORRUPT;
}

/* One that has been deleted meanwhile counts as shown: there is nothing to show. */
static bool show_claimed(sgi_redis_store *store, const redisReply *reply,
                         segue_store_record_fn fn, void *user)
{
    segue_store_record record;
    char text[SGI_REDIS_TASK_MAX + 1];
    bool stop = false;
    for (size_t i = 0; i < reply->elements && i < SGI_REDIS_CLAIM_STEP && !stop; i++) {
        const redisReply *row = reply->element[i];
        if (!sgi_redis_is_array(row, 1) || !sgi_redis_is_text(row->element[0]) ||
            row->element[0]->len != SEGUE_STORE_ID_SIZE)
            continue;
        memcpy(store->shown[store->shown_count++], row->element[0]->str,
               SEGUE_STORE_ID_SIZE);
        if (row->elements < 4 || !sgi_redis_fill_record(row->element, &record, text))
            continue;
        if (row->elements > 4 && sgi_redis_is_text(row->element[4]) &&
            *row->element[4]->str == '1')
            record.ended = SEGUE_STORE_TORN;
        sgi_redis_letters_gone(store, record.id, UINT64_MAX); /* they are told anew */
        stop = fn(user, &record) != 0;
    }
    pthread_mutex_lock(&store->lock);
    store->mail_all = store->mail_all || store->shown_count;
    pthread_mutex_unlock(&store->lock);
    return stop;
}

/* Acknowledges what was shown and gives the rest back. */
static void end_claim(sgi_redis_store *store)
{
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_change(store, SGI_REDIS_UNCLAIM, store->shown_count);
    add_shown(store);
    if (sgi_redis_ask_status(store) == SEGUE_OK)
        store->shown_count = 0;
    else
        sgi_redis_set_flag(store, &store->orphans); /* the next claim shows the rest */
}

segue_status sgi_redis_claim(void *self, segue_store_record_fn fn, void *user)
{
    sgi_redis_store *store = self;
    bool any = false, stop = false;
    while (!stop) {
        redisReply *reply;
        /* Room for the acknowledgement too, before anything is shown. */
        sgi_buf_reset(&store->commands, SIZE_MAX);
        if (!sgi_buf_reserve(&store->commands, 512 + SGI_REDIS_CLAIM_STEP * 32))
            return SEGUE_E_NOMEM;
        segue_status status = next_claim(store, &reply);
        if (status) {
            /* What was shown is ours; what was not, the next claim shows. */
            sgi_redis_set_flag(store, &store->orphans);
            return any ? SEGUE_OK : status;
        }
        bool over = !reply->elements;
        stop = show_claimed(store, reply, fn, user);
        any = any || store->shown_count;
        freeReplyObject(reply);
        if (over)
            break;
        if (stop)
            end_claim(store);
    }
    if (any)
        sgi_redis_ring(store); /* letters may wait */
    return SEGUE_OK;
}

/* ---- purge ---- */

static segue_status purge_step(sgi_redis_store *store, int64_t now_ms, int64_t *due_ms)
{
    redisReply *reply;
    uint8_t now[8];
    sgi_redis_put_int(now, now_ms);
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_change(store, SGI_REDIS_PURGE, 2);
    sgi_redis_arg(&store->commands, now, sizeof now);
    sgi_redis_arg_int(&store->commands, PURGE_STEP);
    segue_status status = sgi_redis_ask(store, 1, &reply);
    if (status)
        return status;
    if (!sgi_redis_is_array(reply, 2) || !sgi_redis_is_text(reply->element[1]))
        status = SEGUE_E_STORE_CORRUPT;
    else
        store->purged += reply->element[0]->integer;
    *due_ms = INT64_MAX;
    if (!status && reply->element[1]->len == 8)
        *due_ms = sgi_redis_get_int(reply->element[1]->str);
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
