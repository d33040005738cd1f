#include "store/feed.h"

#include "base/crypto.h"

void sgi_store_feed_init(sgi_store_feed *feed, const sgi_mem *mem)
{
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = sgi_crypto_random};
    sgi_env env = {mem, &hooks};
    feed->mem = mem;
    sgi_map_init(&feed->known, &env);
    TAILQ_INIT(&feed->list);
    pthread_mutex_init(&feed->lock, NULL);
    pthread_mutex_init(&feed->wake_lock, NULL);
}

void sgi_store_feed_free(sgi_store_feed *feed)
{
    sgi_store_feed_op *op, *next;
    SGI_TAILQ_EACH(op, &feed->list, link, next)
        sgi_free(feed->mem, op, sizeof *op);
    sgi_map_free(&feed->known);
    pthread_mutex_destroy(&feed->lock);
    pthread_mutex_destroy(&feed->wake_lock);
}

/* ---- known operations ---- */

sgi_store_feed_op *sgi_store_feed_find_op(sgi_store_feed *feed, const uint8_t *id)
{
    sgi_map_node *node =
        sgi_map_find(&feed->known, (sgi_str){(const char *)id, SEGUE_STORE_ID_SIZE});
    return node ? SGI_OWNER(node, sgi_store_feed_op, node) : NULL;
}

sgi_store_feed_op *sgi_store_feed_find_or_add_op(sgi_store_feed *feed, const uint8_t *id)
{
    sgi_store_feed_op *op = sgi_store_feed_find_op(feed, id);
    if (op)
        return op;
    op = sgi_zalloc(feed->mem, sizeof *op);
    if (!op)
        return NULL;
    memcpy(op->id, id, sizeof op->id);
    pthread_mutex_lock(&feed->lock);
    sgi_map_put(&feed->known, &op->node, (sgi_str){(const char *)op->id, sizeof op->id});
    TAILQ_INSERT_TAIL(&feed->list, op, link);
    pthread_mutex_unlock(&feed->lock);
    return op;
}

/* Removes the feed's record of an operation, and frees the record. The caller holds the
 * lock. */
static void forget(sgi_store_feed *feed, sgi_store_feed_op *op)
{
    sgi_map_remove(&feed->known, &op->node);
    TAILQ_REMOVE(&feed->list, op, link);
    sgi_free(feed->mem, op, sizeof *op);
}

void sgi_store_feed_drop_idle_op(sgi_store_feed *feed, sgi_store_feed_op *op)
{
    if (op->followed || op->delivered)
        return;
    pthread_mutex_lock(&feed->lock);
    forget(feed, op);
    pthread_mutex_unlock(&feed->lock);
}

void sgi_store_feed_set_followed(sgi_store_feed *feed, sgi_store_feed_op *op, bool on)
{
    pthread_mutex_lock(&feed->lock);
    op->followed = on;
    pthread_mutex_unlock(&feed->lock);
}

void sgi_store_feed_note_taken_commands(sgi_store_feed *feed, const uint8_t *id,
                                        uint64_t seq)
{
    sgi_store_feed_op *op = sgi_store_feed_find_op(feed, id);
    if (op && op->delivered <= seq) {
        op->delivered = 0;
        sgi_store_feed_drop_idle_op(feed, op);
    }
}

void sgi_store_feed_forget_delivered(sgi_store_feed *feed)
{
    sgi_store_feed_op *op, *next;
    pthread_mutex_lock(&feed->lock);
    SGI_TAILQ_EACH(op, &feed->list, link, next) {
        op->delivered = 0;
        if (!op->followed)
            forget(feed, op);
    }
    pthread_mutex_unlock(&feed->lock);
}

size_t sgi_store_feed_next_followed(sgi_store_feed *feed, uint64_t round,
                                    uint8_t (*ids)[SEGUE_STORE_ID_SIZE], size_t most)
{
    size_t count = 0;
    sgi_store_feed_op *op;
    pthread_mutex_lock(&feed->lock);
    while (count < most && (op = TAILQ_FIRST(&feed->list)) && op->round != round) {
        op->round = round;
        TAILQ_REMOVE(&feed->list, op, link);
        TAILQ_INSERT_TAIL(&feed->list, op, link);
        if (op->followed)
            memcpy(ids[count++], op->id, SEGUE_STORE_ID_SIZE);
    }
    pthread_mutex_unlock(&feed->lock);
    return count;
}

/* ---- lists and flags ---- */

/* Adds an id to the set unless the set already has the id. Returns false when the set is
 * full. The caller holds the lock. */
static bool add(sgi_store_feed_ids *ids, const uint8_t *id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (!memcmp(ids->ids[i], id, SEGUE_STORE_ID_SIZE))
            return true;
    if (ids->count == SGI_STORE_FEED_IDS_MAX)
        return false;
    memcpy(ids->ids[ids->count++], id, SEGUE_STORE_ID_SIZE);
    return true;
}

void sgi_store_feed_add_ids(sgi_store_feed *feed, sgi_store_feed_ids *ids,
                            const uint8_t *added, size_t count, bool *otherwise)
{
    pthread_mutex_lock(&feed->lock);
    for (size_t i = 0; i < count && !*otherwise; i++)
        *otherwise = !add(ids, added + i * SEGUE_STORE_ID_SIZE);
    if (*otherwise)
        ids->count = 0;
    pthread_mutex_unlock(&feed->lock);
}

void sgi_store_feed_add_id(sgi_store_feed *feed, sgi_store_feed_ids *ids,
                           const uint8_t *id, bool *otherwise)
{
    sgi_store_feed_add_ids(feed, ids, id, 1, otherwise);
}

size_t sgi_store_feed_count_ids(sgi_store_feed *feed, const sgi_store_feed_ids *ids)
{
    pthread_mutex_lock(&feed->lock);
    size_t count = ids->count;
    pthread_mutex_unlock(&feed->lock);
    return count;
}

bool sgi_store_feed_take_id(sgi_store_feed *feed, sgi_store_feed_ids *ids, uint8_t *id)
{
    pthread_mutex_lock(&feed->lock);
    bool any = ids->count > 0;
    if (any) {
        memcpy(id, ids->ids[0], SEGUE_STORE_ID_SIZE);
        memmove(ids->ids[0], ids->ids[1], --ids->count * SEGUE_STORE_ID_SIZE);
    }
    pthread_mutex_unlock(&feed->lock);
    return any;
}

bool sgi_store_feed_take_flag(sgi_store_feed *feed, bool *flag)
{
    pthread_mutex_lock(&feed->lock);
    bool set = *flag;
    *flag = false;
    pthread_mutex_unlock(&feed->lock);
    return set;
}

void sgi_store_feed_set_flag(sgi_store_feed *feed, bool *flag)
{
    pthread_mutex_lock(&feed->lock);
    *flag = true;
    pthread_mutex_unlock(&feed->lock);
}

void sgi_store_feed_wake(sgi_store_feed *feed)
{
    pthread_mutex_lock(&feed->wake_lock);
    if (feed->wake)
        feed->wake(feed->wake_user);
    pthread_mutex_unlock(&feed->wake_lock);
}

void sgi_store_feed_set_wake_callback(sgi_store_feed *feed, void (*wake)(void *user),
                                      void *user)
{
    pthread_mutex_lock(&feed->wake_lock);
    feed->wake = wake;
    feed->wake_user = user;
    pthread_mutex_unlock(&feed->wake_lock);
}

/* ---- delivery ---- */

bool sgi_store_feed_deliver(sgi_store_feed_delivery *t, const segue_store_news *news)
{
    t->stopped = t->fn(t->user, news) != 0;
    return !t->stopped;
}

void sgi_store_feed_deliver_flag(sgi_store_feed_delivery *t, bool *flag, int32_t kind)
{
    segue_store_news news = {.kind = kind, .data = ""};
    if (!t->stopped && sgi_store_feed_take_flag(t->feed, flag) &&
        !sgi_store_feed_deliver(t, &news))
        sgi_store_feed_set_flag(t->feed, flag);
}

void sgi_store_feed_deliver_grown(sgi_store_feed_delivery *t,
                                  void (*left)(void *store, const uint8_t *id),
                                  void *store)
{
    sgi_store_feed *feed = t->feed;
    segue_store_news news = {.kind = SEGUE_STORE_GREW, .data = ""};
    size_t count = sgi_store_feed_count_ids(feed, &feed->grown);
    while (count-- && !t->stopped &&
           sgi_store_feed_take_id(feed, &feed->grown, news.id)) {
        const sgi_store_feed_op *op = sgi_store_feed_find_op(feed, news.id);
        if (!op || !op->followed)
            left(store, news.id);
        else if (!sgi_store_feed_deliver(t, &news))
            sgi_store_feed_add_id(feed, &feed->grown, news.id, &feed->missed);
    }
}
