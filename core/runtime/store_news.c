/* Listening at stores. A bell rings on any thread, perhaps under the lock of another
 * runtime: it sets a flag and wakes the loop, which knows what is to be done. Without a
 * bell a store may want to be asked from time to time: one that blocks by its worker, in
 * real time, another by a timer of the engine. */
#include "runtime/store_desk.h"

#define AGAIN_MS 250 /* there was no memory or room for what is new */

static void ring(void *user)
{
    sgi_desk *desk = user;
    segue_runtime *rt = desk->slot->rt;
    atomic_store(&desk->rung, true);
    atomic_store(&rt->bells, true);
    ev_async_send(rt->loop, &rt->wake_up);
}

/* Who works is told: a desk that is due already is not announced again. */
static void make_due(sgi_desk *desk)
{
    sgi_store_slot *slot = desk->slot;
    desk->news_due = true;
    if (desk->due || desk->removed || desk->deaf)
        return;
    sgi_desk_put_due(desk);
    if (slot->blocking)
        pthread_cond_signal(&slot->wanted);
    else
        sgi_loop_kick(slot->rt);
}

/* What was there before is told as well. */
segue_status sgi_desk_listen(sgi_desk *desk)
{
    atomic_init(&desk->rung, false);
    desk->news_ms = INT64_MAX;
    segue_status status =
        sgi_store_listen(desk->slot->store, ring, desk, &desk->listener);
    if (status == SEGUE_OK)
        make_due(desk);
    return status;
}

void sgi_desk_unlisten(sgi_desk *desk)
{
    if (desk->listener) {
        sgi_slot_step_out(desk->slot);
        sgi_store_unlisten(desk->listener);
        sgi_slot_step_in(desk->slot);
    }
    desk->listener = NULL;
    sgi_engine_timer_clear(&desk->slot->rt->engine, &desk->news_timer);
}

static void timer_rang(sgi_timer *timer)
{
    sgi_desk *desk = SGI_OWNER(timer, sgi_desk, news_timer);
    make_due(desk);
    sgi_loop_kick(desk->slot->rt);
}

static void ask_again(sgi_desk *desk, int64_t within_ms)
{
    sgi_store_slot *slot = desk->slot;
    sgi_engine_timer_clear(&slot->rt->engine, &desk->news_timer);
    desk->news_ms = INT64_MAX;
    if (within_ms == 0)
        make_due(desk);
    else if (within_ms > 0 && slot->blocking)
        desk->news_ms = sgi_time_add(sgi_real_now(), within_ms);
    else if (within_ms > 0)
        sgi_engine_timer(&slot->rt->engine, &desk->news_timer, within_ms, timer_rang);
}

bool sgi_desk_read_news(sgi_desk *desk)
{
    sgi_store_slot *slot = desk->slot;
    sgi_paper paper;
    int64_t within_ms = -1;
    if (desk->removed || !desk->news_due)
        return false;
    desk->news_due = false;
    sgi_paper_open(&paper, desk->keeper);
    sgi_slot_step_out(slot);
    segue_status status =
        sgi_store_news(desk->listener, sgi_paper_take, &paper, &within_ms);
    sgi_slot_step_in(slot);
    if (status != SEGUE_OK || (within_ms == 0 && !paper.count))
        within_ms = AGAIN_MS;
    if (desk->removed || desk->deaf)
        sgi_news_free(&paper.list);
    else
        sgi_keeper_tell(desk->keeper, &paper);
    if (!desk->removed && !desk->deaf)
        ask_again(desk, within_ms);
    return true;
}

void sgi_desks_answer_bells(segue_runtime *rt)
{
    sgi_store_slot *slot;
    sgi_desk *desk;
    if (!atomic_exchange(&rt->bells, false))
        return;
    TAILQ_FOREACH(slot, &rt->stores, link) {
        TAILQ_FOREACH(desk, &slot->desks, link)
            if (atomic_exchange(&desk->rung, false))
                make_due(desk);
        if (slot->blocking)
            pthread_cond_signal(&slot->wanted);
    }
}

int64_t sgi_slot_news_ms(sgi_store_slot *slot)
{
    int64_t now = sgi_real_now();
    int64_t next = INT64_MAX;
    sgi_desk *desk;
    TAILQ_FOREACH(desk, &slot->desks, link) {
        if (desk->news_ms <= now && !desk->busy) {
            desk->news_ms = INT64_MAX;
            make_due(desk);
        }
        if (desk->news_ms < next)
            next = desk->news_ms;
    }
    return next;
}
