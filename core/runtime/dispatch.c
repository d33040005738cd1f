/* Callbacks: who runs them, how a host hears of them, and run, start and dispatch.
 *
 *   inline       the thread in run or dispatch is the loop thread and runs callbacks
 *                between two waits, at most TURN_BUDGET of them so that input is not
 *                starved
 *   background   the I/O thread loops; callbacks run in dispatch, on the host's thread
 *
 * Background doorbell: the first object in the ready queue rings (`rung`): ready_fd
 * becomes readable and on_wake is called. Nothing rings again until a dispatch has
 * emptied the queue and cleared the descriptor, or has left something behind and rings
 * anew. Both happen under the lock, so the descriptor is readable exactly while something
 * is due. Once the runtime was stopped it stays readable: a host that waits has to learn
 * of it. */
#include "runtime/state.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define TURN_BUDGET 1024
/* A dispatch without a limit gives up after so many turns, however much is due: a peer in
 * the same process may answer each callback with the next forever. */
#define MAX_TURNS 1024

void sgi_dispatch_ring(segue_runtime *rt)
{
    if (rt->mode != SGI_MODE_BACKGROUND) {
        sgi_loop_kick(rt);
        return;
    }
    if (rt->rung || rt->attended)
        return;
    rt->rung = true;
    rt->ring_due = true;
}

int32_t sgi_dispatch_deliver(segue_runtime *rt, int32_t budget)
{
    if (TAILQ_EMPTY(&rt->engine.ready))
        return 0;
    rt->delivering = true;
    int32_t ran = sgi_engine_deliver(&rt->engine, budget);
    rt->delivering = false;
    return ran;
}

static int64_t time_left(int64_t timeout_ms, int64_t deadline)
{
    if (timeout_ms < 0)
        return -1;
    int64_t left = deadline - sgi_real_now();
    return left > 0 ? left : 0;
}

static int64_t deadline_of(int64_t timeout_ms)
{
    int64_t now = sgi_real_now();
    return sgi_time_add(now, timeout_ms);
}

static int32_t budget_left(int32_t max_events, int32_t ran)
{
    int32_t left = max_events > 0 ? max_events - ran : TURN_BUDGET;
    return left < TURN_BUDGET ? left : TURN_BUDGET;
}

static void leave_loop(segue_runtime *rt)
{
    rt->looping = false;
    pthread_cond_broadcast(&rt->left);
}

/* ---- inline ---- */

static int32_t dispatch_inline(segue_runtime *rt, int64_t timeout_ms, int32_t max_events)
{
    int64_t deadline = timeout_ms > 0 ? deadline_of(timeout_ms) : 0;
    int32_t ran = 0;
    for (int turns = 0; turns < MAX_TURNS; turns++) {
        if (!atomic_load(&rt->open)) {
            int32_t more = sgi_dispatch_deliver(rt, budget_left(max_events, ran));
            if (!more)
                break;
            ran += more;
        } else {
            int64_t wait = ran ? 0 : time_left(timeout_ms, deadline);
            ran += sgi_loop_turn(rt, wait, budget_left(max_events, ran));
        }
        if (max_events > 0 && ran >= max_events)
            break;
        if (sgi_loop_is_due(rt))
            continue;
        if (ran || time_left(timeout_ms, deadline) == 0)
            break;
        turns = 0; /* only turns without a wait in between count */
    }
    return ran;
}

/* While run has its thread, a broken pipe is an EPIPE and no signal: blocking SIGPIPE
 * once is cheaper than around each write, which is a fifth of the cost of a small one. */
static bool block_sigpipe(sigset_t *old)
{
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, old);
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

static void unblock_sigpipe(const sigset_t *old, bool was_pending)
{
    const struct timespec at_once = {0, 0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    if (!was_pending)
        while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

segue_status sgi_runtime_run(segue_runtime *rt)
{
    sigset_t old;
    if (sgi_runtime_in_callback(rt))
        return SEGUE_E_REENTRANT;
    sgi_runtime_lock(rt);
    if (rt->mode == SGI_MODE_BACKGROUND || rt->looping) {
        sgi_runtime_unlock(rt);
        return SEGUE_E_STATE;
    }
    rt->mode = SGI_MODE_INLINE;
    rt->looping = true;
    bool was_pending = block_sigpipe(&old);
    rt->signals_blocked = true;
    while (atomic_load(&rt->open))
        sgi_loop_turn(rt, -1, TURN_BUDGET);
    rt->signals_blocked = false;
    leave_loop(rt);
    sgi_runtime_unlock(rt);
    unblock_sigpipe(&old, was_pending);
    return SEGUE_OK;
}

/* ---- background ---- */

static void *run_io_thread(void *user)
{
    segue_runtime *rt = user;
    sgi_runtime_lock(rt);
    rt->signals_blocked = true;
    while (atomic_load(&rt->open))
        sgi_loop_turn(rt, -1, 0);
    rt->signals_blocked = false;
    rt->rung = rt->ring_due = true; /* the host learns that the runtime was stopped */
    sgi_runtime_unlock(rt);
    return NULL;
}

/* Signals are the application's: none is delivered to a thread it does not know. SIGPIPE
 * above all, which then is only an EPIPE. */
static bool start_thread(segue_runtime *rt)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int fault = pthread_create(&rt->io_thread, NULL, run_io_thread, rt);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return fault == 0;
}

segue_status sgi_runtime_start(segue_runtime *rt)
{
    segue_status status = SEGUE_OK;
    if (sgi_runtime_in_callback(rt))
        return SEGUE_E_REENTRANT;
    sgi_runtime_lock(rt);
    if (!atomic_load(&rt->open)) {
        status = SEGUE_E_CLOSED;
    } else if (rt->mode != SGI_MODE_NEW) {
        status = SEGUE_E_STATE;
    } else {
        rt->mode = SGI_MODE_BACKGROUND;
        if (start_thread(rt)) {
            rt->joinable = true;
            if (!TAILQ_EMPTY(&rt->engine.ready))
                sgi_dispatch_ring(rt);
        } else {
            rt->mode = SGI_MODE_NEW;
            status = SEGUE_E_IO;
        }
    }
    sgi_runtime_unlock(rt);
    return status;
}

/* What a host waits for. */
static int host_fd(const segue_runtime *rt)
{
    return rt->front_fd >= 0 ? rt->front_fd : rt->ready_fd;
}

/* Lock held, let go while waiting. False when the time is over. */
static bool wait_for_ready(segue_runtime *rt, int64_t left_ms)
{
    struct pollfd poller = {.fd = host_fd(rt), .events = POLLIN};
    if (left_ms == 0)
        return false;
    int timeout = left_ms < 0 ? -1 : left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
    rt->attended = false;
    sgi_runtime_unlock(rt);
    poll(&poller, 1, timeout);
    sgi_runtime_lock(rt);
    rt->attended = true;
    sgi_inlets_attend(rt);
    return true;
}

static void clear_bell(segue_runtime *rt)
{
    uint64_t count;
    if (!TAILQ_EMPTY(&rt->engine.ready)) {
        rt->rung = rt->ring_due = true;
    } else if (rt->rung && atomic_load(&rt->open)) {
        rt->rung = rt->ring_due = false;
        ssize_t got = read(rt->ready_fd, &count, sizeof count);
        (void)got; /* EAGAIN: it had not been rung yet */
    }
    if (!TAILQ_EMPTY(&rt->awaiting))
        sgi_loop_kick(rt);
}

static int32_t dispatch_background(segue_runtime *rt, int64_t timeout_ms,
                                   int32_t max_events)
{
    int64_t deadline = timeout_ms > 0 ? deadline_of(timeout_ms) : 0;
    int32_t ran = 0;
    rt->attended = true;
    sgi_inlets_attend(rt);
    for (int rounds = 0; rounds < MAX_TURNS; rounds++) {
        ran += sgi_dispatch_deliver(rt, budget_left(max_events, ran));
        if (max_events > 0 && ran >= max_events)
            break;
        if (!TAILQ_EMPTY(&rt->engine.ready))
            continue;
        if (ran || !atomic_load(&rt->open))
            break;
        if (!wait_for_ready(rt, time_left(timeout_ms, deadline)))
            break;
        rounds = 0;
    }
    rt->attended = false;
    clear_bell(rt);
    return ran;
}

segue_status sgi_runtime_dispatch(segue_runtime *rt, int64_t timeout_ms,
                                  int32_t max_events, int32_t *ran)
{
    segue_status status = SEGUE_OK;
    int32_t count = 0;
    if (max_events < 0 || timeout_ms < -1)
        return SEGUE_E_INVALID;
    if (sgi_runtime_in_callback(rt))
        return SEGUE_E_REENTRANT;
    sgi_runtime_lock(rt);
    if (rt->looping) {
        sgi_runtime_unlock(rt);
        return SEGUE_E_THREAD;
    }
    rt->looping = true;
    if (rt->mode == SGI_MODE_NEW)
        rt->mode = SGI_MODE_INLINE;
    if (rt->mode == SGI_MODE_BACKGROUND)
        count = dispatch_background(rt, timeout_ms, max_events);
    else
        count = dispatch_inline(rt, timeout_ms, max_events);
    if (!count && !atomic_load(&rt->open) && TAILQ_EMPTY(&rt->engine.ready))
        status = SEGUE_E_CLOSED;
    leave_loop(rt);
    sgi_runtime_unlock(rt);
    if (ran && status == SEGUE_OK)
        *ran = count;
    return status;
}

/* An inline runtime has none: libev does not hand out the descriptor it waits on, and one
 * that shows callbacks alone would miss the input they come from. */
segue_status sgi_runtime_fd(segue_runtime *rt, int32_t *fd)
{
    segue_status status = SEGUE_OK;
    sgi_runtime_lock(rt);
    if (rt->mode == SGI_MODE_INLINE)
        status = SEGUE_E_STATE;
    else
        *fd = host_fd(rt);
    sgi_runtime_unlock(rt);
    return status;
}
