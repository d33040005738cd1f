/* The loop: libev, the list of carriers with work, and one turn.
 *
 * Watchers are started and stopped by the loop thread only. Everybody else asks through
 * flags under the lock (sgi_carrier_raise, a timer, the ready queue), which the loop
 * looks at before it waits and after it has waited. So a wake-up is needed only while
 * `asleep` is set, and one is enough until the next turn: messages cost no wake-ups of
 * their own.
 *
 * Output does not even need one where the carrier can be flushed without the loop
 * (flush_here): who lets the lock go writes, while the loop goes on waiting, which spares
 * the two threads' taking turns that a small message would otherwise cost. Corked, output
 * stays where it is, for one write later; a loop that is awake takes it along.
 *
 * A carrier that has retired stays in memory until the end of the turn, so whoever
 * retires one may still look at it on the way out.
 *
 * Timeouts are measured by the real clock, the engine's deadlines by the injected one.
 * With a clock that a test moves, a wait for a deadline ends too early, finds nothing due
 * and begins again: that costs a turn per wait and needs no knowledge of whose clock it
 * is. */
#include "runtime/state.h"

#include <unistd.h>

/* Both only end the wait; what there is to do stands under the lock. */
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
    TAILQ_INIT(&rt->carriers);
    TAILQ_INIT(&rt->retired);
    TAILQ_INIT(&rt->work);
    TAILQ_INIT(&rt->awaiting);
    TAILQ_INIT(&rt->inlets);
    rt->armed_ms = INT64_MAX;
    rt->scratch = sgi_alloc(&rt->mem, SGI_READ_SIZE);
    if (!rt->scratch)
        return SEGUE_E_NOMEM;
    rt->loop = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
    if (!rt->loop)
        return SEGUE_E_IO;
    ev_async_init(&rt->wake_up, on_wake);
    ev_async_start(rt->loop, &rt->wake_up);
    ev_timer_init(&rt->timeout, on_timeout, 0., 0.);
    return SEGUE_OK;
}

void sgi_loop_close(segue_runtime *rt)
{
    if (rt->loop)
        ev_loop_destroy(rt->loop);
    sgi_release(&rt->mem, rt->scratch, SGI_READ_SIZE);
    rt->loop = NULL;
    rt->scratch = NULL;
}

struct ev_loop *sgi_runtime_loop(segue_runtime *rt)
{
    return rt->loop;
}

char *sgi_runtime_scratch(segue_runtime *rt)
{
    return rt->scratch;
}

bool sgi_runtime_blocks_signals(const segue_runtime *rt)
{
    return rt->signals_blocked;
}

/* ---- wake-up ---- */

static void take_work(segue_runtime *rt, sgi_carrier *carrier)
{
    carrier->queued = false;
    TAILQ_REMOVE(&rt->work, carrier, work_link);
    rt->work_count--;
}

void sgi_loop_kick(segue_runtime *rt)
{
    if (rt->asleep)
        rt->kick_due = true;
}

/* What there is to flush, by this thread; the loop is woken for the rest. */
static void flush_here(segue_runtime *rt)
{
    sgi_carrier *carrier;
    rt->flush_due = false;
    for (size_t n = rt->work_count; n > 0 && (carrier = TAILQ_FIRST(&rt->work)); n--) {
        uint32_t work = carrier->work;
        take_work(rt, carrier);
        carrier->work = 0;
        if (work != SGI_WORK_FLUSH || !carrier->ops->flush_here ||
            !carrier->ops->flush_here(carrier))
            sgi_carrier_raise(carrier, work);
    }
    if (rt->work_count)
        sgi_loop_kick(rt);
}

/* Under the lock, because afterwards loop and descriptor may be gone. */
void sgi_loop_signal(segue_runtime *rt)
{
    if (rt->flush_due && !rt->corks)
        flush_here(rt);
    if (rt->kick_due) {
        rt->kick_due = rt->asleep = rt->flush_due = false;
        ev_async_send(rt->loop, &rt->wake_up);
    }
    if (rt->ring_due) {
        uint64_t one = 1;
        ssize_t written = write(rt->ready_fd, &one, sizeof one);
        (void)written; /* EAGAIN: the counter is full, so it is readable */
        rt->ring_due = false;
        if (rt->on_wake)
            rt->on_wake(rt->user);
    }
}

static void host_wake(void *user)
{
    segue_runtime *rt = user;
    if (rt->dead)
        return;
    if (!TAILQ_EMPTY(&rt->engine.ready))
        sgi_dispatch_ring(rt);
    if (sgi_timers_next(&rt->engine.timers) < rt->armed_ms)
        sgi_loop_kick(rt);
}

/* ---- carriers ---- */

void sgi_carrier_add(segue_runtime *rt, sgi_carrier *carrier)
{
    carrier->runtime = rt;
    carrier->listed = true;
    rt->refs++;
    TAILQ_INSERT_TAIL(&rt->carriers, carrier, link);
}

void sgi_carrier_drop(sgi_carrier *carrier)
{
    segue_runtime *rt = carrier->runtime;
    if (carrier->listed)
        TAILQ_REMOVE(&rt->carriers, carrier, link);
    carrier->ops->destroy(carrier);
    rt->refs--;
}

sgi_carrier *sgi_carrier_find(segue_runtime *rt, const sgi_carrier_ops *ops)
{
    sgi_carrier *carrier;
    TAILQ_FOREACH(carrier, &rt->carriers, link)
        if (carrier->ops == ops)
            return carrier;
    return NULL;
}

void sgi_carrier_raise(sgi_carrier *carrier, uint32_t work)
{
    segue_runtime *rt = carrier->runtime;
    if (carrier->retired || !carrier->attached || rt->dead)
        return;
    carrier->work |= work;
    if (!carrier->queued) {
        carrier->queued = true;
        TAILQ_INSERT_TAIL(&rt->work, carrier, work_link);
        rt->work_count++;
    }
    if (work != SGI_WORK_FLUSH)
        sgi_loop_kick(rt);
    else if (rt->asleep)
        rt->flush_due = true;
}

void sgi_carrier_await_quiet(sgi_carrier *carrier)
{
    if (carrier->awaiting || carrier->retired)
        return;
    carrier->awaiting = true;
    TAILQ_INSERT_TAIL(&carrier->runtime->awaiting, carrier, quiet_link);
}

static void stop_awaiting(segue_runtime *rt, sgi_carrier *carrier)
{
    carrier->awaiting = false;
    TAILQ_REMOVE(&rt->awaiting, carrier, quiet_link);
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
    TAILQ_REMOVE(&rt->carriers, carrier, link);
    TAILQ_INSERT_TAIL(&rt->retired, carrier, link);
}

void sgi_loop_bury(segue_runtime *rt)
{
    sgi_carrier *carrier, *next;
    SGI_TAILQ_EACH(carrier, &rt->retired, link, next) {
        if (carrier->held)
            continue;
        TAILQ_REMOVE(&rt->retired, carrier, link);
        carrier->ops->destroy(carrier);
        rt->refs--;
    }
}

static bool is_quiet(const segue_runtime *rt)
{
    return TAILQ_EMPTY(&rt->engine.ready) && !rt->delivering;
}

static void raise_quiet(segue_runtime *rt)
{
    sgi_carrier *carrier;
    if (!is_quiet(rt))
        return;
    while ((carrier = TAILQ_FIRST(&rt->awaiting))) {
        stop_awaiting(rt, carrier);
        sgi_carrier_raise(carrier, SGI_WORK_QUIET);
    }
}

/* Only as many as there are now: what they raise on each other waits for the next turn,
 * so a pair that talks to itself does not keep descriptors from being read. */
static void work_carriers(segue_runtime *rt)
{
    sgi_carrier *carrier;
    for (size_t n = rt->work_count; n > 0 && (carrier = TAILQ_FIRST(&rt->work)); n--) {
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
        sgi_carrier_raise(carrier, work);
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
    if (!carrier || !carrier->can_reopen || carrier->retired || rt->draining || rt->dead)
        return false;
    raise_of(conn, SGI_WORK_REOPEN);
    return true;
}

void sgi_loop_host(sgi_host *host)
{
    host->wake = host_wake;
    host->output = host_output;
    host->input = host_input;
    host->close = host_close;
    host->reopen = host_reopen;
}

/* ---- a turn ---- */

static bool delivers_here(const segue_runtime *rt)
{
    return rt->mode != SGI_MODE_BACKGROUND || rt->draining;
}

static bool has_work(const segue_runtime *rt)
{
    return rt->work_count || rt->lend_due || rt->regroup_due || rt->loop_stores_due ||
           rt->slots_finished || (delivers_here(rt) && !TAILQ_EMPTY(&rt->engine.ready)) ||
           (!TAILQ_EMPTY(&rt->awaiting) && is_quiet(rt));
}

bool sgi_loop_is_due(const segue_runtime *rt)
{
    return has_work(rt) ||
           sgi_timers_next(&rt->engine.timers) <= sgi_now(&rt->engine.env);
}

/* How long the loop may wait; -1 = until it is woken. A deadline that it was armed for
 * stays until it has passed, though its timer may be gone: with calls one after the other
 * each has a deadline behind that, and none of them has to wake the loop to be heeded. */
static int64_t plan_wait(segue_runtime *rt, int64_t wait_ms)
{
    int64_t next = sgi_timers_next(&rt->engine.timers);
    int64_t now = sgi_now(&rt->engine.env);
    if (next < rt->armed_ms || rt->armed_ms <= now)
        rt->armed_ms = next;
    if (wait_ms == 0 || has_work(rt) || (!atomic_load(&rt->open) && !rt->draining))
        return 0;
    wait_ms = sgi_inlets_wait(rt, wait_ms);
    if (wait_ms == 0 || rt->armed_ms == INT64_MAX)
        return wait_ms;
    if (rt->armed_ms <= now)
        return 0;
    int64_t left = rt->armed_ms - now;
    return wait_ms < 0 || left < wait_ms ? left : wait_ms;
}

/* No lock. True when there was a wait and it lasted as long as it might. */
static bool wait_for_events(segue_runtime *rt, int64_t wait_ms)
{
    if (wait_ms == 0) {
        ev_run(rt->loop, EVRUN_NOWAIT);
        return false;
    }
    if (wait_ms > 0) {
        ev_now_update(rt->loop);
        ev_timer_set(&rt->timeout, (double)wait_ms / 1000., 0.);
        ev_timer_start(rt->loop, &rt->timeout);
    }
    ev_run(rt->loop, EVRUN_ONCE);
    bool lasted = wait_ms > 0 && !ev_is_active(&rt->timeout);
    ev_timer_stop(rt->loop, &rt->timeout);
    return lasted;
}

int32_t sgi_loop_turn(segue_runtime *rt, int64_t wait_ms, int32_t budget)
{
    int64_t wait = plan_wait(rt, wait_ms);
    int32_t ran = 0;
    rt->asleep = wait != 0;
    sgi_runtime_unlock(rt);
    bool lasted = wait_for_events(rt, wait);
    sgi_runtime_lock(rt);
    if (lasted) /* nothing of it is left to be armed for, whatever the clock says */
        rt->armed_ms = INT64_MAX;
    rt->asleep = rt->kick_due = rt->flush_due = false;
    if (sgi_timers_next(&rt->engine.timers) <= sgi_now(&rt->engine.env))
        sgi_inlets_read_all(rt); /* so that nothing times out whose answer is here */
    sgi_inlets_turn(rt);
    sgi_timers_run(&rt->engine.timers, sgi_now(&rt->engine.env));
    if (delivers_here(rt))
        ran = sgi_dispatch_deliver(rt, budget);
    sgi_stores_work(rt);
    raise_quiet(rt);
    work_carriers(rt);
    sgi_loop_bury(rt);
    return ran;
}
