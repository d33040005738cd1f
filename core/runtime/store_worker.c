/* Stores at work. A slot is one store of this runtime, a desk is one keeper at it.
 *
 * A store that blocks has a thread: it takes what is dirty at a desk, commits it without
 * the lock, says how it went, takes the next job of that desk, and goes on until the desk
 * is empty; everything that becomes dirty meanwhile is in the next commit. A store that
 * does not block is worked on by the loop at the end of its turn, under the lock and
 * before the output is flushed, so answers that wait for it leave in the same turn.
 *
 *   desk:  idle --host.store--> due (on slot->due) --taken--> busy --> idle or due
 *
 * keeper->host_user points at the desk and is NULL once the runtime has let go of it. A
 * desk belongs to its slot; the one that works on it holds it by `busy`. When its keeper
 * is removed, here or by what a commit or job led to (on this very thread), `removed`
 * tells the worker to let the keeper alone and to free the desk, without the lock as far
 * as the store is asked: leaving what was followed may take its time.
 *
 * A slot closes with its last desk: its worker drops the store, since that may take time,
 * and ends; the loop joins it when it has. Nobody but sgi_runtime_free waits for that. */
#include "runtime/store_desk.h"

#include <signal.h>
#include <time.h>

/* Rounds of a store in one turn of the loop; the rest waits for the next. */
#define LOOP_ROUNDS 64

typedef sgi_desk desk;

/* ---- work ---- */

void sgi_desk_put_due(desk *d)
{
    d->due = true;
    TAILQ_INSERT_TAIL(&d->slot->due, d, due_link);
    if (!d->slot->blocking)
        d->slot->rt->loop_stores_due++;
}

static void take_due(desk *d)
{
    d->due = false;
    TAILQ_REMOVE(&d->slot->due, d, due_link);
    if (!d->slot->blocking)
        d->slot->rt->loop_stores_due--;
}

static void host_store(void *user, sgi_keeper *keeper)
{
    segue_runtime *rt = user;
    desk *d = keeper->host_user;
    if (!d || d->due || d->removed || rt->dead)
        return;
    sgi_desk_put_due(d);
    if (d->slot->blocking)
        pthread_cond_signal(&d->slot->wanted);
    else
        sgi_loop_kick(rt);
}

void sgi_stores_host(sgi_host *host)
{
    host->store = host_store;
}

/* What grows while it is read is news. */
static segue_status read_log(segue_store *store, sgi_store_listener *by, sgi_job *job)
{
    segue_status status = SEGUE_OK;
    if (job->follows)
        status = sgi_store_follow(by, job->id, true);
    return status == SEGUE_OK
               ? sgi_store_read(store, job->id, job->after, sgi_job_entry, job)
               : status;
}

static segue_status release(sgi_store_listener *by, const sgi_job *job)
{
    segue_store_write write = {.kind = SEGUE_STORE_RELEASE};
    memcpy(write.id, job->id, sizeof write.id);
    return sgi_store_commit_by(by, &write, 1);
}

static segue_status ask(segue_store *store, sgi_store_listener *by, sgi_job *job)
{
    switch (job->kind) {
    case SGI_JOB_FIND:
        return sgi_store_find(store, job->task_id, job->task_id ? NULL : job->key,
                              sgi_job_record, job);
    case SGI_JOB_READ:
        return read_log(store, by, job);
    case SGI_JOB_CLAIM:
        return sgi_store_claim(store, sgi_job_record, job);
    case SGI_JOB_PURGE:
        return sgi_store_purge(store, job->now_ms, &job->next_ms);
    case SGI_JOB_LIST:
        return sgi_store_list(store, job->key, job->now_ms, job->task_id, sgi_job_record,
                              job);
    case SGI_JOB_LEAVE:
        return sgi_store_follow(by, job->id, false);
    case SGI_JOB_POST:
        return sgi_store_post(by, job->id, job->letter.p, job->letter.len);
    case SGI_JOB_RELEASE:
        return release(by, job);
    case SGI_JOB_NOTHING:
        return SEGUE_OK;
    }
    return SEGUE_E_INVALID;
}

void sgi_slot_step_out(sgi_store_slot *slot)
{
    if (slot->blocking)
        sgi_runtime_unlock(slot->rt);
}

void sgi_slot_step_in(sgi_store_slot *slot)
{
    if (slot->blocking)
        sgi_runtime_lock(slot->rt);
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool commit_once(sgi_store_slot *slot, desk *d)
{
    if (d->removed || !sgi_keeper_take(d->keeper, &slot->batch))
        return false;
    sgi_keeper *keeper = d->keeper;
    segue_store_stats stats = keeper->counts.store;
    sgi_slot_step_out(slot);
    uint64_t begun = now_us();
    segue_status status =
        sgi_store_commit_by(d->listener, slot->batch.writes, slot->batch.count);
    slot->batch.took_us = now_us() - begun;
    sgi_store_stats(slot->store, &stats);
    sgi_slot_step_in(slot);
    keeper->counts.store = stats;
    sgi_keeper_done(keeper, &slot->batch, status);
    return true;
}

static bool ask_once(sgi_store_slot *slot, desk *d)
{
    sgi_job *job = d->removed ? NULL : sgi_keeper_job(d->keeper);
    if (!job)
        return false;
    sgi_slot_step_out(slot);
    segue_status status = ask(slot->store, d->listener, job);
    sgi_slot_step_in(slot);
    if (job->status == SEGUE_OK) /* a callback that ran out of memory has said so there */
        job->status = status;
    job->done(job);
    return true;
}

static void close_slot(sgi_store_slot *slot);

static void free_desk(desk *d)
{
    sgi_store_slot *slot = d->slot;
    sgi_desk_unlisten(d);
    if (d->due)
        take_due(d);
    TAILQ_REMOVE(&slot->desks, d, link);
    sgi_release(&slot->rt->mem, d, sizeof *d);
    if (TAILQ_EMPTY(&slot->desks))
        close_slot(slot);
}

/* One commit, one job and the news; true when there was any of it. */
static bool work_once(sgi_store_slot *slot, desk *d)
{
    bool committed = commit_once(slot, d);
    bool asked = ask_once(slot, d);
    bool told = sgi_desk_read_news(d);
    return committed || asked || told;
}

/* Works on the desk that has been due longest. */
static void work_on_next(sgi_store_slot *slot)
{
    desk *d = TAILQ_FIRST(&slot->due);
    take_due(d);
    d->busy = true;
    bool more = work_once(slot, d);
    if (d->removed) {
        free_desk(d);
        return;
    }
    d->busy = false;
    if (more && !d->due)
        sgi_desk_put_due(d);
}

/* Until there is something to do, or it is time to ask for news. */
static void await_work(sgi_store_slot *slot)
{
    segue_runtime *rt = slot->rt;
    sgi_loop_signal(rt); /* first: output that is passed on may lead to work here */
    int64_t until = sgi_slot_news_ms(slot);
    struct timespec at = {until / 1000, until % 1000 * 1000000};
    if (!TAILQ_EMPTY(&slot->due))
        return;
    if (until == INT64_MAX)
        pthread_cond_wait(&slot->wanted, &rt->mutex);
    else
        pthread_cond_timedwait(&slot->wanted, &rt->mutex, &at);
}

static void *run_worker(void *user)
{
    sgi_store_slot *slot = user;
    segue_runtime *rt = slot->rt;
    sgi_runtime_lock(rt);
    for (;;) {
        if (!TAILQ_EMPTY(&slot->due)) {
            work_on_next(slot);
            pthread_cond_broadcast(&rt->left);
        } else if (slot->closing) {
            break;
        } else {
            await_work(slot);
        }
    }
    sgi_runtime_unlock(rt);
    sgi_store_unref(slot->store); /* closing a file may take its time */
    sgi_runtime_lock(rt);
    slot->finished = true;
    rt->slots_finished++;
    sgi_loop_kick(rt);
    sgi_runtime_unlock(rt);
    return NULL;
}

/* ---- slots ---- */

static bool start_worker(sgi_store_slot *slot)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int fault = pthread_create(&slot->worker, NULL, run_worker, slot);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return fault == 0;
}

static void free_slot(sgi_store_slot *slot)
{
    segue_runtime *rt = slot->rt;
    pthread_cond_destroy(&slot->wanted);
    sgi_commit_free(&rt->mem, &slot->batch);
    sgi_release(&rt->mem, slot, sizeof *slot);
}

/* Waits by the clock of sgi_real_now. */
static void init_cond(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

static segue_status open_slot(segue_runtime *rt, segue_store *store, sgi_store_slot **out)
{
    sgi_store_slot *slot = sgi_zalloc(&rt->mem, sizeof *slot);
    if (!slot)
        return SEGUE_E_NOMEM;
    slot->rt = rt;
    slot->store = store;
    slot->blocking = sgi_store_is_blocking(store);
    init_cond(&slot->wanted);
    TAILQ_INIT(&slot->desks);
    TAILQ_INIT(&slot->due);
    if (slot->blocking && !start_worker(slot)) {
        free_slot(slot);
        return SEGUE_E_IO;
    }
    sgi_store_ref(store);
    TAILQ_INSERT_TAIL(&rt->stores, slot, link);
    *out = slot;
    return SEGUE_OK;
}

/* Its last desk is gone: no keeper finds it any more, the loop frees it. */
static void close_slot(sgi_store_slot *slot)
{
    segue_runtime *rt = slot->rt;
    slot->closing = true;
    TAILQ_REMOVE(&rt->stores, slot, link);
    TAILQ_INSERT_TAIL(&rt->closing_stores, slot, link);
    if (slot->blocking) {
        pthread_cond_signal(&slot->wanted);
        return;
    }
    sgi_store_unref(slot->store);
    slot->finished = true;
    rt->slots_finished++;
    sgi_loop_kick(rt);
}

/* Frees slots whose worker is at its end, so that the join does not wait. */
static void free_finished(segue_runtime *rt)
{
    sgi_store_slot *slot, *next;
    SGI_TAILQ_EACH(slot, &rt->closing_stores, link, next) {
        if (!slot->finished)
            continue;
        TAILQ_REMOVE(&rt->closing_stores, slot, link);
        rt->slots_finished--;
        if (slot->blocking)
            pthread_join(slot->worker, NULL);
        free_slot(slot);
    }
}

static bool is_busy(const sgi_store_slot *slot)
{
    const desk *d;
    TAILQ_FOREACH(d, &slot->desks, link)
        if (d->due || d->busy)
            return true;
    return false;
}

static sgi_store_slot *first_due_here(const segue_runtime *rt)
{
    sgi_store_slot *slot;
    TAILQ_FOREACH(slot, &rt->stores, link)
        if (!slot->blocking && !TAILQ_EMPTY(&slot->due))
            return slot;
    return NULL;
}

void sgi_stores_work(segue_runtime *rt)
{
    sgi_desks_answer_bells(rt);
    for (int i = 0; i < LOOP_ROUNDS && rt->loop_stores_due; i++) {
        sgi_store_slot *slot = first_due_here(rt);
        TAILQ_REMOVE(&rt->stores, slot, link);
        TAILQ_INSERT_TAIL(&rt->stores, slot, link);
        work_on_next(slot);
    }
    if (rt->slots_finished)
        free_finished(rt);
}

/* ---- keepers ---- */

segue_status sgi_runtime_add_store(segue_runtime *rt, sgi_keeper *keeper,
                                   segue_store *store)
{
    sgi_store_slot *slot;
    segue_status status;
    keeper->host_user = NULL;
    if (rt->dead)
        return SEGUE_E_CLOSED;
    desk *d = sgi_zalloc(&rt->mem, sizeof *d);
    if (!d)
        return SEGUE_E_NOMEM;
    TAILQ_FOREACH(slot, &rt->stores, link)
        if (slot->store == store)
            break;
    if (!slot) {
        status = open_slot(rt, store, &slot);
        if (status != SEGUE_OK) {
            sgi_release(&rt->mem, d, sizeof *d);
            return status;
        }
    }
    keeper->leased = sgi_store_is_leased(store);
    d->keeper = keeper;
    d->slot = slot;
    keeper->host_user = d;
    TAILQ_INSERT_TAIL(&slot->desks, d, link);
    status = sgi_desk_listen(d);
    if (status == SEGUE_OK)
        return SEGUE_OK;
    keeper->host_user = NULL;
    free_desk(d);
    return status;
}

/* Only under the lock does a store that does not block work, so if its desk is busy now,
 * what runs here is part of that work. */
static bool works_here(const desk *d)
{
    return d->busy &&
           (!d->slot->blocking || pthread_equal(d->slot->worker, pthread_self()));
}

/* Its keeper goes: whoever works on it frees it. */
static void remove_desk(desk *d)
{
    d->keeper->host_user = NULL;
    d->removed = true;
    if (!d->slot->blocking) {
        free_desk(d);
        return;
    }
    sgi_desk_put_due(d);
    pthread_cond_signal(&d->slot->wanted);
}

void sgi_runtime_remove_store(segue_runtime *rt, sgi_keeper *keeper)
{
    desk *d = keeper->host_user;
    if (!d)
        return;
    if (works_here(d)) {
        d->removed = true;
        keeper->host_user = NULL;
        return;
    }
    d->deaf = true;
    while (d->due || d->busy) {
        if (d->slot->blocking) {
            sgi_loop_signal(rt);
            pthread_cond_wait(&rt->left, &rt->mutex);
        } else {
            work_on_next(d->slot);
        }
    }
    remove_desk(d);
}

void sgi_stores_settle(segue_runtime *rt)
{
    sgi_store_slot *slot = TAILQ_FIRST(&rt->stores);
    while (slot) {
        if (slot->blocking && is_busy(slot)) {
            sgi_loop_signal(rt);
            pthread_cond_wait(&rt->left, &rt->mutex);
            slot = TAILQ_FIRST(&rt->stores);
        } else {
            slot = TAILQ_NEXT(slot, link);
        }
    }
}

void sgi_stores_close(segue_runtime *rt)
{
    sgi_store_slot *slot;
    desk *d;
    sgi_stores_settle(rt);
    while ((slot = TAILQ_FIRST(&rt->stores))) {
        d = TAILQ_FIRST(&slot->desks); /* the last one closes the slot */
        remove_desk(d);
        sgi_stores_settle(rt);
    }
    while ((slot = TAILQ_FIRST(&rt->closing_stores))) {
        TAILQ_REMOVE(&rt->closing_stores, slot, link);
        if (slot->blocking) {
            sgi_runtime_unlock(rt);
            pthread_join(slot->worker, NULL);
            sgi_runtime_lock(rt);
        }
        free_slot(slot);
    }
    rt->slots_finished = 0;
}
