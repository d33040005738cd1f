/* Listens for news from stores (changes that other servers made). A store reports news
 * on any thread, perhaps under the lock of another runtime. Therefore the callback
 * that the store calls only sets a flag and wakes the loop. Some stores must also be
 * polled. The worker of a blocking store polls it, in real time; a timer of the engine
 * polls any other store. */
#include "runtime/store_queue.h"

#include "base/thresholds.h"
#include "engine/cluster/change_feed.h"

#define AGAIN_MS SGI_THRESHOLD(news_again_ms)

static void wake(void *user)
{
    sgi_store_queue *queue = user;
    segue_runtime *rt = queue->slot->rt;
    atomic_store(&queue->woken, true);
    atomic_store(&rt->stores.woken, true);
    ev_async_send(rt->loop.ev, &rt->loop.wake_up);
}

/* Puts the queue into the list of due queues. Does nothing if the queue is already in the
 * list, is being removed, or gets no more news (changes of other servers). */
static void make_due(sgi_store_queue *queue)
{
    sgi_store_slot *slot = queue->slot;
    queue->news_due = true;
    if (queue->due || queue->removed || queue->deaf)
        return;
    sgi_store_queue_mark_due(queue);
    if (slot->blocking)
        pthread_cond_signal(&slot->wanted);
    else
        sgi_loop_request_turn(slot->rt);
}

/* Starts listening. News that the store already has is also delivered. */
segue_status sgi_store_queue_listen(sgi_store_queue *queue)
{
    atomic_init(&queue->woken, false);
    queue->news_ms = INT64_MAX;
    segue_status status =
        sgi_store_listen(queue->slot->store, wake, queue, &queue->listener);
    if (status == SEGUE_OK)
        make_due(queue);
    return status;
}

void sgi_store_queue_stop_listening(sgi_store_queue *queue)
{
    if (queue->listener) {
        sgi_store_slot_unlock(queue->slot);
        sgi_store_unlisten(queue->listener);
        sgi_store_slot_lock(queue->slot);
    }
    queue->listener = NULL;
    sgi_engine_clear_timer(&queue->slot->rt->engine, &queue->news_timer);
}

static void poll_is_due(sgi_timer *timer)
{
    sgi_store_queue *queue = SGI_OWNER(timer, sgi_store_queue, news_timer);
    make_due(queue);
    sgi_loop_request_turn(queue->slot->rt);
}

static void ask_again(sgi_store_queue *queue, int64_t within_ms)
{
    sgi_store_slot *slot = queue->slot;
    sgi_engine_clear_timer(&slot->rt->engine, &queue->news_timer);
    queue->news_ms = INT64_MAX;
    if (within_ms == 0)
        make_due(queue);
    else if (within_ms > 0 && slot->blocking)
        queue->news_ms = sgi_time_add(sgi_system_monotonic_ms(), within_ms);
    else if (within_ms > 0)
        sgi_engine_set_timer(&slot->rt->engine, &queue->news_timer, within_ms,
                             poll_is_due);
}

/* True when it is time to poll. The poll is then no longer planned. */
static bool take_due_poll(sgi_store_queue *queue, int64_t now)
{
    if (queue->news_ms > now)
        return false;
    queue->news_ms = INT64_MAX;
    return true;
}

bool sgi_store_queue_read_changes(sgi_store_queue *queue)
{
    sgi_store_slot *slot = queue->slot;
    sgi_change_feed feed;
    int64_t within_ms = -1;
    /* a worker that is never idle does not come to sgi_store_slot_mark_due_polls */
    if (queue->news_ms < INT64_MAX && take_due_poll(queue, sgi_system_monotonic_ms()))
        queue->news_due = true;
    if (queue->removed || !queue->news_due)
        return false;
    queue->news_due = false;
    sgi_change_feed_reset(&feed, queue->committer);
    sgi_store_slot_unlock(slot);
    segue_status status =
        sgi_store_deliver_news(queue->listener, sgi_change_feed_add, &feed, &within_ms);
    feed.status = status;
    sgi_store_slot_lock(slot);
    if (status != SEGUE_OK || (within_ms == 0 && !feed.count))
        within_ms = AGAIN_MS;
    if (queue->removed || queue->deaf)
        sgi_feed_change_list_free(&feed.list);
    else
        sgi_change_feed_apply(queue->committer, &feed);
    if (!queue->removed && !queue->deaf)
        ask_again(queue, within_ms);
    return true;
}

void sgi_store_queues_mark_due(segue_runtime *rt)
{
    sgi_store_slot *slot;
    sgi_store_queue *queue;
    if (!atomic_exchange(&rt->stores.woken, false))
        return;
    TAILQ_FOREACH(slot, &rt->stores.slots, link) {
        TAILQ_FOREACH(queue, &slot->queues, link)
            if (atomic_exchange(&queue->woken, false))
                make_due(queue);
        if (slot->blocking)
            pthread_cond_signal(&slot->wanted);
    }
}

int64_t sgi_store_slot_mark_due_polls(sgi_store_slot *slot)
{
    int64_t now = sgi_system_monotonic_ms();
    int64_t next = INT64_MAX;
    sgi_store_queue *queue;
    TAILQ_FOREACH(queue, &slot->queues, link) {
        if (!queue->busy && take_due_poll(queue, now))
            make_due(queue);
        if (queue->news_ms < next)
            next = queue->news_ms;
    }
    return next;
}
