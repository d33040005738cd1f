/* The loop: libev, the list of carriers (transports) with work, and one turn.
 *
 * Only the loop thread starts and stops watchers. Other threads set flags under the lock
 * (sgi_carrier_request_work, a timer, the ready queue), and the loop checks the flags
 * before and after it waits. Therefore the loop must be woken only while `asleep` is set,
 * and one wake-up per turn is enough.
 *
 * Output often needs no wake-up: if the carrier can be flushed without the loop
 * (flush_here), the thread that releases the lock writes the output while the loop keeps
 * waiting. This saves a switch between two threads for each small message. While the
 * runtime is corked, output is held back for one larger write; a loop that is awake
 * writes the output in spite of the cork.
 *
 * The work of a free carrier (an exchange by hand) has no watchers, so the thread that
 * releases the lock does all of it in the same way. This is right because of four rules:
 *   - The work runs under the lock from its beginning to its end. It calls no code of the
 *     application and uses no store: callbacks wait in the ready queue, and stores wait
 *     for the loop. An assertion in sgi_runtime_unlock checks this. So a loop that wakes
 *     at the same instant waits for the lock, and then does the work that is left.
 *   - The work starts and stops no watcher. A timer belongs to the engine, and host_wake
 *     wakes the loop when the timer is due before the time for which the loop is armed.
 *   - A carrier that the work retires is destroyed behind the work: a free one here, and
 *     any other one, such as a listener that has lost its last exchange, by the loop.
 *   - A free carrier needs no key of a token, because the loop would fetch it.
 *
 * A retired carrier stays in memory until the end of the turn, so the function that
 * retires a carrier may use it until the function returns.
 *
 * Timeouts are measured by the real clock, the engine's deadlines by the injected clock.
 * When a test moves the injected clock, a wait can end too early; then no timer is due
 * and the wait begins again. */
#include "runtime/state.h"

#include <unistd.h>

/* The callback of the watchers for wake-ups and timeouts. It only ends the wait; flags
 * under the lock show the work to do. */
static void on_wake(struct ev_loop *loop, ev_async *watcher, int revents)
{
    (void)loop;
    (void)watcher;
    (void)revents;
}

static void on_timeout(struct ev_loop *loop, ev_timer *watcher, int revents)
{
    (void)loop;
    (void)watcher;
    (void)revents;
}

segue_status sgi_loop_open(segue_runtime *rt)
{
    TAILQ_INIT(&rt->loop.carriers);
    TAILQ_INIT(&rt->loop.retired);
    TAILQ_INIT(&rt->loop.work);
    TAILQ_INIT(&rt->loop.awaiting);
    TAILQ_INIT(&rt->lending.inlets);
    rt->loop.armed_ms = INT64_MAX;
    rt->loop.scratch = sgi_alloc(&rt->mem, SGI_READ_SIZE);
    if (!rt->loop.scratch)
        return SEGUE_E_NOMEM;
    rt->loop.ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
    if (!rt->loop.ev)
        return SEGUE_E_IO;
    ev_async_init(&rt->loop.wake_up, on_wake);
    ev_async_start(rt->loop.ev, &rt->loop.wake_up);
    ev_timer_init(&rt->loop.timeout, on_timeout, 0., 0.);
    return SEGUE_OK;
}

void sgi_loop_close(segue_runtime *rt)
{
    if (rt->loop.ev)
        ev_loop_destroy(rt->loop.ev);
    sgi_free(&rt->mem, rt->loop.scratch, SGI_READ_SIZE);
    rt->loop.ev = NULL;
    rt->loop.scratch = NULL;
}

struct ev_loop *sgi_runtime_loop(segue_runtime *rt)
{
    return rt->loop.ev;
}

char *sgi_runtime_scratch(segue_runtime *rt)
{
    return rt->loop.scratch;
}

bool sgi_runtime_blocks_signals(const segue_runtime *rt)
{
    return rt->dispatch.signals_blocked;
}

/* ---- wake-up ---- */

static void take_work(segue_runtime *rt, sgi_carrier *carrier)
{
    carrier->queued = false;
    TAILQ_REMOVE(&rt->loop.work, carrier, work_link);
    rt->loop.work_count--;
}

void sgi_loop_request_turn(segue_runtime *rt)
{
    if (rt->loop.asleep)
        rt->loop.kick_due = true;
}

static void destroy(segue_runtime *rt, sgi_carrier *carrier)
{
    TAILQ_REMOVE(&rt->loop.retired, carrier, link);
    carrier->ops->destroy(carrier);
    rt->refs--;
}

/* Destroys the retired carriers that no function uses while the loop waits. */
static void destroy_free(segue_runtime *rt)
{
    sgi_carrier *carrier, *next;
    SGI_TAILQ_EACH(carrier, &rt->loop.retired, link, next)
        if (carrier->is_free && !carrier->held)
            destroy(rt, carrier);
}

static void work_free(segue_runtime *rt, sgi_carrier *carrier, uint32_t work)
{
    carrier->held++;
    rt->loop.works_here = true;
    carrier->ops->work(carrier, work);
    rt->loop.works_here = false;
    carrier->held--;
}

/* Flushes output on the calling thread. If bytes are left, the loop is woken to write the
 * remaining bytes. */
static void flush_here(segue_runtime *rt)
{
    sgi_carrier *carrier;
    rt->loop.flush_due = false;
    for (size_t n = rt->loop.work_count; n > 0 && (carrier = TAILQ_FIRST(&rt->loop.work));
         n--) {
        uint32_t work = carrier->work;
        take_work(rt, carrier);
        carrier->work = 0;
        if (carrier->is_free) {
            work_free(rt, carrier, work);
            continue;
        }
        if (work != SGI_WORK_FLUSH || !carrier->ops->flush_here ||
            !carrier->ops->flush_here(carrier))
            sgi_carrier_request_work(carrier, work);
    }
    if (rt->loop.asleep)
        destroy_free(rt);
    if (rt->loop.work_count || !TAILQ_EMPTY(&rt->loop.retired))
        sgi_loop_request_turn(rt);
}

/* Wakes the threads that have work to do. The caller holds the lock; without the lock,
 * another thread could free the loop and the descriptor during the call. */
void sgi_loop_wake_threads(segue_runtime *rt)
{
    if (rt->loop.flush_due && !rt->loop.corks)
        flush_here(rt);
    if (rt->loop.kick_due) {
        rt->loop.kick_due = rt->loop.asleep = rt->loop.flush_due = false;
        ev_async_send(rt->loop.ev, &rt->loop.wake_up);
    }
    if (rt->dispatch.notify_due) {
        uint64_t one = 1;
        ssize_t written = write(rt->dispatch.ready_fd, &one, sizeof one);
        /* with EAGAIN the counter is full, so the descriptor is already readable */
        (void)written;
        rt->dispatch.notify_due = false;
        if (rt->on_wake)
            rt->on_wake(rt->user);
    }
}

static void host_wake(void *user)
{
    segue_runtime *rt = user;
    if (rt->life == SGI_LIFE_DEAD)
        return;
    if (!TAILQ_EMPTY(&rt->engine.ready))
        sgi_dispatch_notify(rt);
    if (sgi_timers_next_due_ms(&rt->engine.timers) < rt->loop.armed_ms)
        sgi_loop_request_turn(rt);
}

/* ---- carriers ---- */

void sgi_carrier_add(segue_runtime *rt, sgi_carrier *carrier)
{
    carrier->runtime = rt;
    carrier->listed = true;
    rt->refs++;
    TAILQ_INSERT_TAIL(&rt->loop.carriers, carrier, link);
}

void sgi_carrier_drop(sgi_carrier *carrier)
{
    segue_runtime *rt = carrier->runtime;
    if (carrier->listed)
        TAILQ_REMOVE(&rt->loop.carriers, carrier, link);
    carrier->ops->destroy(carrier);
    rt->refs--;
}

sgi_carrier *sgi_carrier_find(segue_runtime *rt, const sgi_carrier_ops *ops)
{
    sgi_carrier *carrier;
    TAILQ_FOREACH(carrier, &rt->loop.carriers, link)
        if (carrier->ops == ops)
            return carrier;
    return NULL;
}

void sgi_carrier_request_work(sgi_carrier *carrier, uint32_t work)
{
    segue_runtime *rt = carrier->runtime;
    if (carrier->retired || !carrier->attached || rt->life == SGI_LIFE_DEAD)
        return;
    carrier->work |= work;
    if (!carrier->queued) {
        carrier->queued = true;
        TAILQ_INSERT_TAIL(&rt->loop.work, carrier, work_link);
        rt->loop.work_count++;
    }
    if (work != SGI_WORK_FLUSH && !carrier->is_free)
        sgi_loop_request_turn(rt);
    else if (rt->loop.asleep)
        rt->loop.flush_due = true;
}

void sgi_carrier_await_quiet(sgi_carrier *carrier)
{
    if (carrier->awaiting || carrier->retired)
        return;
    carrier->awaiting = true;
    TAILQ_INSERT_TAIL(&carrier->runtime->loop.awaiting, carrier, quiet_link);
}

static void stop_awaiting(segue_runtime *rt, sgi_carrier *carrier)
{
    carrier->awaiting = false;
    TAILQ_REMOVE(&rt->loop.awaiting, carrier, quiet_link);
}

void sgi_carrier_retire(sgi_carrier *carrier)
{
    segue_runtime *rt = carrier->runtime;
    if (carrier->retired)
        return;
    carrier->retired = true;
    carrier->listed = false;
    if (carrier->queued)
        take_work(rt, carrier);
    if (carrier->awaiting)
        stop_awaiting(rt, carrier);
    TAILQ_REMOVE(&rt->loop.carriers, carrier, link);
    TAILQ_INSERT_TAIL(&rt->loop.retired, carrier, link);
}

void sgi_loop_destroy_retired(segue_runtime *rt)
{
    sgi_carrier *carrier, *next;
    SGI_TAILQ_EACH(carrier, &rt->loop.retired, link, next) {
        if (!carrier->held)
            destroy(rt, carrier);
    }
}

static bool is_quiet(const segue_runtime *rt)
{
    return TAILQ_EMPTY(&rt->engine.ready) && !rt->dispatch.delivering;
}

static void raise_quiet(segue_runtime *rt)
{
    sgi_carrier *carrier;
    if (!is_quiet(rt))
        return;
    while ((carrier = TAILQ_FIRST(&rt->loop.awaiting))) {
        stop_awaiting(rt, carrier);
        sgi_carrier_request_work(carrier, SGI_WORK_QUIET);
    }
}

/* Does the work of the carriers (the loop's part of each transport) that have work at
 * the time of the call. Work that is requested meanwhile waits for the next turn.
 * Otherwise two connected carriers that cause work for each other would keep the loop
 * from reading descriptors. */
static void work_carriers(segue_runtime *rt)
{
    sgi_carrier *carrier;
    for (size_t n = rt->loop.work_count; n > 0 && (carrier = TAILQ_FIRST(&rt->loop.work));
         n--) {
        uint32_t work = carrier->work;
        take_work(rt, carrier);
        carrier->work = 0;
        carrier->ops->work(carrier, work);
    }
}

static void raise_of(sgi_conn *conn, uint32_t work)
{
    sgi_carrier *carrier = sgi_conn_transport(conn);
    if (carrier)
        sgi_carrier_request_work(carrier, work);
}

static void host_output(void *user, sgi_conn *conn)
{
    (void)user;
    raise_of(conn, SGI_WORK_FLUSH);
}

static void host_input(void *user, sgi_conn *conn)
{
    (void)user;
    raise_of(conn, SGI_WORK_RESUME);
}

static void host_close(void *user, sgi_conn *conn)
{
    (void)user;
    raise_of(conn, SGI_WORK_CLOSE);
}

static bool host_reopen(void *user, sgi_conn *conn)
{
    const segue_runtime *rt = user;
    const sgi_carrier *carrier = sgi_conn_transport(conn);
    if (!carrier || !carrier->can_reopen || carrier->retired || rt->life != SGI_LIFE_LIVE)
        return false;
    raise_of(conn, SGI_WORK_REOPEN);
    return true;
}

void sgi_loop_fill_host_functions(sgi_host_functions *host)
{
    host->wake = host_wake;
    host->output = host_output;
    host->input = host_input;
    host->close = host_close;
    host->reopen = host_reopen;
}

/* ---- one turn of the loop ---- */

static bool delivers_here(const segue_runtime *rt)
{
    return rt->dispatch.mode != SGI_MODE_BACKGROUND || rt->life != SGI_LIFE_LIVE;
}

static bool has_work(const segue_runtime *rt)
{
    return rt->loop.work_count || rt->lending.lend_due || rt->lending.regroup_due ||
           rt->stores.due || rt->stores.finished ||
           (delivers_here(rt) && !TAILQ_EMPTY(&rt->engine.ready)) ||
           (!TAILQ_EMPTY(&rt->loop.awaiting) && is_quiet(rt));
}

bool sgi_loop_turn_is_due(const segue_runtime *rt)
{
    return has_work(rt) ||
           sgi_timers_next_due_ms(&rt->engine.timers) <= sgi_now(&rt->engine.env);
}

/* Returns the time in ms that the loop may wait; -1 = until it is woken. The loop is
 * armed for one deadline, which stays until it has passed, even if its timer is cleared.
 * Therefore a series of calls, each with a later deadline, causes no wake-ups of the
 * loop. */
static int64_t plan_wait(segue_runtime *rt, int64_t wait_ms)
{
    int64_t next = sgi_timers_next_due_ms(&rt->engine.timers);
    int64_t now = sgi_now(&rt->engine.env);
    if (next < rt->loop.armed_ms || rt->loop.armed_ms <= now)
        rt->loop.armed_ms = next;
    if (wait_ms == 0 || has_work(rt) ||
        (!atomic_load(&rt->open) && rt->life == SGI_LIFE_LIVE))
        return 0;
    wait_ms = sgi_inlets_limit_wait(rt, wait_ms);
    if (wait_ms == 0 || rt->loop.armed_ms == INT64_MAX)
        return wait_ms;
    if (rt->loop.armed_ms <= now)
        return 0;
    int64_t left = rt->loop.armed_ms - now;
    return wait_ms < 0 || left < wait_ms ? left : wait_ms;
}

/* Waits without the lock. wait_ms: the longest wait in ms; 0 = only check, negative = no
 * limit. Returns true when the wait has lasted wait_ms. */
static bool wait_for_events(segue_runtime *rt, int64_t wait_ms)
{
    if (wait_ms == 0) {
        ev_run(rt->loop.ev, EVRUN_NOWAIT);
        return false;
    }
    if (wait_ms > 0) {
        ev_now_update(rt->loop.ev);
        ev_timer_set(&rt->loop.timeout, (double)wait_ms / 1000., 0.);
        ev_timer_start(rt->loop.ev, &rt->loop.timeout);
    }
    ev_run(rt->loop.ev, EVRUN_ONCE);
    bool lasted = wait_ms > 0 && !ev_is_active(&rt->loop.timeout);
    ev_timer_stop(rt->loop.ev, &rt->loop.timeout);
    return lasted;
}

int32_t sgi_loop_turn(segue_runtime *rt, int64_t wait_ms, int32_t budget)
{
    int64_t wait = plan_wait(rt, wait_ms);
    int32_t ran = 0;
    rt->loop.asleep = wait != 0;
    sgi_runtime_unlock(rt);
    bool lasted = wait_for_events(rt, wait);
    sgi_runtime_lock(rt);
    if (lasted) /* the wait was not ended early, so the armed deadline has passed */
        rt->loop.armed_ms = INT64_MAX;
    rt->loop.asleep = rt->loop.kick_due = rt->loop.flush_due = false;
    if (sgi_timers_next_due_ms(&rt->engine.timers) <= sgi_now(&rt->engine.env))
        /* Descriptors for which the application waits (lent inlets) are read before
         * timers run, because a request must not time out while its answer waits to be
         * read. */
        sgi_inlets_read_all_lent(rt);
    sgi_inlets_lend_or_take_back(rt);
    sgi_timers_run_due(&rt->engine.timers, sgi_now(&rt->engine.env));
    if (delivers_here(rt))
        ran = sgi_dispatch_deliver(rt, budget);
    sgi_stores_run_due_work(rt);
    raise_quiet(rt);
    work_carriers(rt);
    sgi_loop_destroy_retired(rt);
    return ran;
}
