/* Claiming and purging in Redis.
 *
 * A claim makes a few operations ours at a time, in one script that also looks whether
 * their owner is gone. They stand in a set of their own until the next call says that
 * they have been shown: when the answer of a claim is lost, asking again gives the same
 * ones. What could not be shown is given back as nobody's. Nothing is allocated here, so
 * a claim that has begun cannot fail for lack of memory.
 *
 * Keys have no time to live of their own: half of an operation could go before the other.
 * Purges of any server delete all of it at once, its memory being freed by Redis in the
 * background. */
#include "store/redis_store.h"

#define CLAIM_STEP 32
#define PURGE_STEP 1000

/* ---- claim ---- */

typedef struct shown {
    uint8_t ids[CLAIM_STEP][SEGUE_STORE_ID_SIZE];
    size_t count;
    bool stop;
} shown;

static void add_shown(sgi_redis_store *store, const shown *s)
{
    for (size_t i = 0; i < s->count; i++)
        sgi_redis_arg(&store->commands, s->ids[i], SEGUE_STORE_ID_SIZE);
}

/* Acknowledges what was shown and asks for more. */
static segue_status next_claim(sgi_redis_store *store, const shown *s, redisReply **reply)
{
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_change(store, SGI_REDIS_CLAIM, 1 + s->count);
    sgi_redis_arg_int(&store->commands, CLAIM_STEP);
    add_shown(store, s);
    segue_status status = sgi_redis_ask(store, 1, reply);
    if (status || sgi_redis_is_array(*reply, 0))
        return status;
    freeReplyObject(*reply);
    return SEGUE_E_STORE_CORRUPT;
}

/* One that has been deleted meanwhile counts as shown: there is nothing to show. */
static void show_claimed(sgi_redis_store *store, const redisReply *reply, shown *s,
                         segue_store_record_fn fn, void *user)
{
    segue_store_record record;
    char text[SGI_REDIS_TASK_MAX + 1];
    s->count = 0;
    for (size_t i = 0; i < reply->elements && i < CLAIM_STEP && !s->stop; i++) {
        const redisReply *row = reply->element[i];
        if (!sgi_redis_is_array(row, 1) || !sgi_redis_is_text(row->element[0]) ||
            row->element[0]->len != SEGUE_STORE_ID_SIZE)
            continue;
        memcpy(s->ids[s->count++], row->element[0]->str, SEGUE_STORE_ID_SIZE);
        if (row->elements < 4 || !sgi_redis_fill_record(row->element, &record, text))
            continue;
        sgi_redis_letters_gone(store, record.id, UINT64_MAX); /* they are told anew */
        s->stop = fn(user, &record) != 0;
    }
    pthread_mutex_lock(&store->lock);
    store->mail_all = store->mail_all || s->count;
    pthread_mutex_unlock(&store->lock);
}

/* Acknowledges what was shown and gives the rest back. */
static segue_status end_claim(sgi_redis_store *store, const shown *s)
{
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_change(store, SGI_REDIS_UNCLAIM, s->count);
    add_shown(store, s);
    return sgi_redis_ask_status(store);
}

segue_status sgi_redis_claim(void *self, segue_store_record_fn fn, void *user)
{
    sgi_redis_store *store = self;
    shown s = {.count = 0};
    bool any = false;
    for (;;) {
        redisReply *reply;
        /* Room for the acknowledgement too, before anything is shown. */
        sgi_buf_reset(&store->commands, SIZE_MAX);
        if (!sgi_buf_reserve(&store->commands, 512 + CLAIM_STEP * 32))
            return SEGUE_E_NOMEM;
        segue_status status = next_claim(store, &s, &reply);
        if (status) {
            /* What was shown is ours; what was not, the next claim shows. */
            sgi_redis_set_flag(store, &store->orphans);
            return any ? SEGUE_OK : status;
        }
        bool over = !reply->elements;
        show_claimed(store, reply, &s, fn, user);
        any = any || s.count;
        freeReplyObject(reply);
        if (over)
            break;
        if (s.stop) {
            if (end_claim(store, &s) != SEGUE_OK) /* the next claim shows them */
                sgi_redis_set_flag(store, &store->orphans);
            break;
        }
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
