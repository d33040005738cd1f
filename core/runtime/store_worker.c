/* Store work. A slot is one store of this runtime. A queue is the work of one
 * committer (the operations of a server) at the store of its slot.
 *
 * A blocking store has a thread, its worker. The worker takes what is dirty in a
 * queue, commits it without the lock, reports the result, takes the next job of the
 * queue, and repeats these steps until the queue is empty. Operations that become dirty
 * during a commit are in the next commit. For a store that does not block, the loop
 * works at the end of its turn, under the lock and before the output is flushed.
 * Therefore answers that wait for the store are sent in the same turn.
 *
 *     queue: idle --host.store--> due (on slot->due) --taken--> busy --> idle or due
 *
 * committer->host_user points at the queue, and is NULL once the runtime has released
 * the committer. A queue belongs to its slot; `busy` protects the queue while a thread
 * works on it. A committer can be removed during this work, even by a callback on the
 * thread that does the work. `removed` then tells this thread not to use the committer
 * any more and to free the queue. To free the queue, the worker stops following
 * operations in the store. It does so without the lock, because the store can take time.
 *
 * A slot closes with its last queue. The worker of the slot drops the store, which can
 * take time, and ends; the loop joins the worker later. Only sgi_runtime_free waits
 * for the worker. */
#include "runtime/store_queue.h"

#include <signal.h>
#include <time.h>

/* Maximum number of passes over the due queues in one turn of the loop. Queues that are
 * due after the last pass wait for the next turn. */
#define LOOP_ROUNDS 64

typedef sgi_store_queue store_queue;

/* ---- work ---- */

void sgi_store_queue_mark_due(store_queue *q)
{
    q->due = true;
    TAILQ_INSERT_TAIL(&q->slot->due, q, due_link);
    if (!q->slot->blocking)
        q->slot->rt->stores.due++;
}

static void take_due(store_queue *q)
{
    q->due = false;
    TAILQ_REMOVE(&q->slot->due, q, due_link);
    if (!q->slot->blocking)
        q->slot->rt->stores.due--;
}

static void host_store(void *user, sgi_committer *committer)
{
    segue_runtime *rt = user;
    store_queue *q = committer->host_user;
    if (!q || q->due || q->removed || rt->life == SGI_LIFE_DEAD)
        return;
    sgi_store_queue_mark_due(q);
    if (q->slot->blocking)
        pthread_cond_signal(&q->slot->wanted);
    else
        sgi_loop_request_turn(rt);
}

static int32_t host_records(void *user, const sgi_committer *committer)
{
    const store_queue *q = committer->host_user;
    (void)user;
    return q ? sgi_store_records(q->slot->store) : SGI_RECORDS;
}

void sgi_stores_fill_host_functions(sgi_host_functions *host)
{
    host->store = host_store;
    host->records = host_records;
}

void sgi_store_slot_unlock(sgi_store_slot *slot)
{
    if (slot->blocking)
        sgi_runtime_unlock(slot->rt);
}

void sgi_store_slot_lock(sgi_store_slot *slot)
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

static bool commit_once(sgi_store_slot *slot, store_queue *q)
{
    if (q->removed || !sgi_committer_fill_commit(q->committer, &slot->batch))
        return false;
    sgi_committer *committer = q->committer;
    segue_store_stats stats = committer->counts.store;
    sgi_store_slot_unlock(slot);
    uint64_t begun = now_us();
    segue_status status =
        sgi_store_commit_by(q->listener, slot->batch.writes, slot->batch.count);
    slot->batch.took_us = now_us() - begun;
    sgi_store_stats(slot->store, &stats);
    sgi_store_slot_lock(slot);
    committer->counts.store = stats;
    sgi_committer_on_commit_done(committer, &slot->batch, status);
    return true;
}

static bool ask_once(sgi_store_slot *slot, store_queue *q)
{
    sgi_store_job *job = q->removed ? NULL : sgi_committer_take_job(q->committer);
    if (!job)
        return false;
    sgi_store_slot_unlock(slot);
    segue_status status = sgi_store_queue_ask(slot->store, q->listener, job);
    sgi_store_slot_lock(slot);
    /* a job is not repeated, as a commit is: its owner repeats it, or answers a client */
    if (job->status == SEGUE_OK) /* an error that a callback has set stays */
        job->status = status == SEGUE_E_TIMEOUT ? SEGUE_E_STORE : status;
    job->done(job);
    return true;
}

static void close_slot(sgi_store_slot *slot);

static void free_queue(store_queue *q)
{
    sgi_store_slot *slot = q->slot;
    sgi_store_queue_stop_listening(q);
    if (q->due)
        take_due(q);
    TAILQ_REMOVE(&slot->queues, q, link);
    sgi_free(&slot->rt->mem, q, sizeof *q);
    if (TAILQ_EMPTY(&slot->queues))
        close_slot(slot);
}

/* Does one commit, answers one job, and delivers the changes of other servers once.
 * Returns true when at least one of them had something to do. */
static bool work_once(sgi_store_slot *slot, store_queue *q)
{
    bool committed = commit_once(slot, q);
    bool asked = ask_once(slot, q);
    bool told = sgi_store_queue_read_changes(q);
    return committed || asked || told;
}

/* Works on the due queue that has waited longest. */
static void work_on_next(sgi_store_slot *slot)
{
    store_queue *q = TAILQ_FIRST(&slot->due);
    take_due(q);
    q->busy = true;
    bool more = work_once(slot, q);
    if (q->removed) {
        free_queue(q);
        return;
    }
    q->busy = false;
    if (more && !q->due)
        sgi_store_queue_mark_due(q);
}

/* Waits until a queue is due, or until it is time to ask the store for changes of
 * other servers. */
static void await_work(sgi_store_slot *slot)
{
    segue_runtime *rt = slot->rt;
    /* other threads are woken before this thread waits, because output that the loop
     * writes can lead to new work */
    sgi_loop_wake_threads(rt);
    int64_t until = sgi_store_slot_mark_due_polls(slot);
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
            pthread_cond_broadcast(&rt->dispatch.left);
        } else if (slot->closing) {
            break;
        } else {
            await_work(slot);
        }
    }
    sgi_runtime_unlock(rt);
    /* the lock is released, because closing a store can take time */
    sgi_store_unref(slot->store);
    sgi_runtime_lock(rt);
    slot->finished = true;
    rt->stores.finished++;
    sgi_loop_request_turn(rt);
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
    sgi_free(&rt->mem, slot, sizeof *slot);
}

/* Initialises a condition variable whose timed waits use the clock of
 * sgi_system_monotonic_ms. */
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
    TAILQ_INIT(&slot->queues);
    TAILQ_INIT(&slot->due);
    if (slot->blocking && !start_worker(slot)) {
        free_slot(slot);
        return SEGUE_E_IO;
    }
    sgi_store_ref(store);
    TAILQ_INSERT_TAIL(&rt->stores.slots, slot, link);
    *out = slot;
    return SEGUE_OK;
}

/* Closes a slot (one store of this runtime) after its last committer was removed. The
 * loop frees the slot later. */
static void close_slot(sgi_store_slot *slot)
{
    segue_runtime *rt = slot->rt;
    slot->closing = true;
    TAILQ_REMOVE(&rt->stores.slots, slot, link);
    TAILQ_INSERT_TAIL(&rt->stores.closing, slot, link);
    if (slot->blocking) {
        pthread_cond_signal(&slot->wanted);
        return;
    }
    sgi_store_unref(slot->store);
    slot->finished = true;
    rt->stores.finished++;
    sgi_loop_request_turn(rt);
}

/* Frees the slots (a slot is one store of this runtime) whose worker has ended.
 * Joining an ended worker does not wait. */
static void free_finished(segue_runtime *rt)
{
    sgi_store_slot *slot, *next;
    SGI_TAILQ_EACH(slot, &rt->stores.closing, link, next) {
        if (!slot->finished)
            continue;
        TAILQ_REMOVE(&rt->stores.closing, slot, link);
        rt->stores.finished--;
        if (slot->blocking)
            pthread_join(slot->worker, NULL);
        free_slot(slot);
    }
}

static bool is_busy(const sgi_store_slot *slot)
{
    const store_queue *q;
    TAILQ_FOREACH(q, &slot->queues, link)
        if (q->due || q->busy)
            return true;
    return false;
}

static sgi_store_slot *first_due_here(const segue_runtime *rt)
{
    sgi_store_slot *slot;
    TAILQ_FOREACH(slot, &rt->stores.slots, link)
        if (!slot->blocking && !TAILQ_EMPTY(&slot->due))
            return slot;
    return NULL;
}

void sgi_stores_run_due_work(segue_runtime *rt)
{
    sgi_store_queues_mark_due(rt);
    for (int i = 0; i < LOOP_ROUNDS && rt->stores.due; i++) {
        sgi_store_slot *slot = first_due_here(rt);
        TAILQ_REMOVE(&rt->stores.slots, slot, link);
        TAILQ_INSERT_TAIL(&rt->stores.slots, slot, link);
        work_on_next(slot);
    }
    if (rt->stores.finished)
        free_finished(rt);
}

/* ---- committers ---- */

segue_status sgi_runtime_add_store(segue_runtime *rt, sgi_committer *committer,
                                   segue_store *store)
{
    sgi_store_slot *slot;
    segue_status status;
    committer->host_user = NULL;
    if (rt->life == SGI_LIFE_DEAD)
        return SEGUE_E_CLOSED;
    store_queue *q = sgi_zalloc(&rt->mem, sizeof *q);
    if (!q)
        return SEGUE_E_NOMEM;
    TAILQ_FOREACH(slot, &rt->stores.slots, link)
        if (slot->store == store)
            break;
    if (!slot) {
        status = open_slot(rt, store, &slot);
        if (status != SEGUE_OK) {
            sgi_free(&rt->mem, q, sizeof *q);
            return status;
        }
    }
    committer->leased = sgi_store_is_leased(store);
    q->committer = committer;
    q->slot = slot;
    committer->host_user = q;
    TAILQ_INSERT_TAIL(&slot->queues, q, link);
    status = sgi_store_queue_listen(q);
    if (status == SEGUE_OK)
        return SEGUE_OK;
    committer->host_user = NULL;
    free_queue(q);
    return status;
}

/* True when the calling thread is working on the queue. A store that does not block is
 * used only under the lock. Therefore, if the queue of such a store is busy, the call
 * comes from inside the work on the queue. */
static bool works_here(const store_queue *q)
{
    return q->busy &&
           (!q->slot->blocking || pthread_equal(q->slot->worker, pthread_self()));
}

/* Removes the queue of a committer, which writes the operations of one server. If a
 * thread is working on the queue, that thread frees the queue. */
static void remove_queue(store_queue *q)
{
    q->committer->host_user = NULL;
    q->removed = true;
    if (!q->slot->blocking) {
        free_queue(q);
        return;
    }
    sgi_store_queue_mark_due(q);
    pthread_cond_signal(&q->slot->wanted);
}

void sgi_runtime_remove_store(segue_runtime *rt, sgi_committer *committer)
{
    store_queue *q = committer->host_user;
    if (!q)
        return;
    if (works_here(q)) {
        q->removed = true;
        committer->host_user = NULL;
        return;
    }
    q->deaf = true;
    while (q->due || q->busy) {
        if (q->slot->blocking) {
            sgi_loop_wake_threads(rt);
            pthread_cond_wait(&rt->dispatch.left, &rt->mutex);
        } else {
            work_on_next(q->slot);
        }
    }
    remove_queue(q);
}

segue_store *sgi_runtime_store(const sgi_committer *committer)
{
    const store_queue *q = committer->host_user;
    return q ? q->slot->store : NULL;
}

void sgi_stores_wait_idle(segue_runtime *rt)
{
    sgi_store_slot *slot = TAILQ_FIRST(&rt->stores.slots);
    while (slot) {
        if (slot->blocking && is_busy(slot)) {
            sgi_loop_wake_threads(rt);
            pthread_cond_wait(&rt->dispatch.left, &rt->mutex);
            slot = TAILQ_FIRST(&rt->stores.slots);
        } else {
            slot = TAILQ_NEXT(slot, link);
        }
    }
}

void sgi_stores_close(segue_runtime *rt)
{
    sgi_store_slot *slot;
    store_queue *q;
    sgi_stores_wait_idle(rt);
    while ((slot = TAILQ_FIRST(&rt->stores.slots))) {
        /* removing the last queue of a slot also closes the slot */
        q = TAILQ_FIRST(&slot->queues);
        remove_queue(q);
        sgi_stores_wait_idle(rt);
    }
    while ((slot = TAILQ_FIRST(&rt->stores.closing))) {
        TAILQ_REMOVE(&rt->stores.closing, slot, link);
        if (slot->blocking) {
            sgi_runtime_unlock(rt);
            pthread_join(slot->worker, NULL);
            sgi_runtime_lock(rt);
        }
        free_slot(slot);
    }
    rt->stores.finished = 0;
}
