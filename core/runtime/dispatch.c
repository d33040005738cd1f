/* Callbacks: which thread runs them, and how the host (the application's event loop)
 * is notified that callbacks are due. This file also has the functions run, start and
 * dispatch.
 *
 *     inline      the thread in run or dispatch is the loop thread. It runs callbacks
 *                 between two waits, at most TURN_BUDGET of them, so that reading input
 *                 is not delayed too long
 *     background  the I/O thread runs the loop; callbacks run in dispatch, on the host's
 *                 thread
 *
 * In background mode, the first object in the ready queue notifies the host
 * (`notified`): ready_fd becomes readable and on_wake is called. There is no further
 * notification until a dispatch has emptied the queue and cleared ready_fd. If the
 * dispatch leaves an object in the queue, it notifies the host again. Both happen
 * under the lock, so ready_fd is readable exactly while callbacks are due. After the
 * runtime was stopped, ready_fd stays readable, so that a waiting host notices the
 * stop. */
#include "runtime/state.h"

#include "base/thresholds.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define TURN_BUDGET SGI_THRESHOLD(turn_callbacks)
/* Maximum number of successive turns in a dispatch without a limit of callbacks. The
 * maximum ends the dispatch when each callback causes another callback, for example with
 * a peer in the same process. */
#define MAX_TURNS 1024

void sgi_dispatch_notify(segue_runtime *rt)
{
    if (rt->dispatch.mode != SGI_MODE_BACKGROUND) {
        sgi_loop_request_turn(rt);
        return;
    }
    if (rt->dispatch.notified || rt->dispatch.attended)
        return;
    rt->dispatch.notified = true;
    rt->dispatch.notify_due = true;
}

int32_t sgi_dispatch_deliver(segue_runtime *rt, int32_t budget)
{
    if (TAILQ_EMPTY(&rt->engine.ready))
        return 0;
    rt->dispatch.delivering = true;
    int32_t ran = sgi_engine_run_callbacks(&rt->engine, budget);
    rt->dispatch.delivering = false;
    return ran;
}

static int64_t time_left(int64_t timeout_ms, int64_t deadline)
{
    if (timeout_ms < 0)
        return -1;
    int64_t left = deadline - sgi_system_monotonic_ms();
    return left > 0 ? left : 0;
}

static int64_t deadline_of(int64_t timeout_ms)
{
    int64_t now = sgi_system_monotonic_ms();
    return sgi_time_add(now, timeout_ms);
}

static int32_t budget_left(int32_t max_events, int32_t ran)
{
    int32_t left = max_events > 0 ? max_events - ran : TURN_BUDGET;
    return left < TURN_BUDGET ? left : TURN_BUDGET;
}

static void leave_loop(segue_runtime *rt)
{
    rt->dispatch.looping = false;
    pthread_cond_broadcast(&rt->dispatch.left);
}

/* ---- inline runtimes ---- */

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
        if (sgi_loop_turn_is_due(rt))
            continue;
        if (ran || time_left(timeout_ms, deadline) == 0)
            break;
        turns = 0; /* a turn that has waited is not counted, and counting starts again */
    }
    return ran;
}

/* Blocks SIGPIPE on the thread that runs the loop, so that a write to a broken pipe only
 * fails with EPIPE. Blocking the signal around each write would take a fifth of the time
 * of a small write. Returns true when SIGPIPE was pending before. */
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
    if (sgi_runtime_is_in_callback(rt))
        return SEGUE_E_REENTRANT;
    sgi_runtime_lock(rt);
    if (rt->dispatch.mode == SGI_MODE_BACKGROUND || rt->dispatch.looping) {
        sgi_runtime_unlock(rt);
        return SEGUE_E_STATE;
    }
    rt->dispatch.mode = SGI_MODE_INLINE;
    rt->dispatch.looping = true;
    bool was_pending = block_sigpipe(&old);
    rt->dispatch.signals_blocked = true;
    while (atomic_load(&rt->open))
        sgi_loop_turn(rt, -1, TURN_BUDGET);
    rt->dispatch.signals_blocked = false;
    leave_loop(rt);
    sgi_runtime_unlock(rt);
    unblock_sigpipe(&old, was_pending);
    return SEGUE_OK;
}

/* ---- background runtimes ---- */

static void *run_io_thread(void *user)
{
    segue_runtime *rt = user;
    sgi_runtime_lock(rt);
    rt->dispatch.signals_blocked = true;
    while (atomic_load(&rt->open))
        sgi_loop_turn(rt, -1, 0);
    rt->dispatch.signals_blocked = false;
    /* the runtime was stopped and its I/O thread ends: ready_fd becomes readable and
     * stays readable */
    rt->dispatch.notified = rt->dispatch.notify_due = true;
    sgi_runtime_unlock(rt);
    return NULL;
}

/* Starts the I/O thread with all signals blocked, because the application must get its
 * signals on its own threads. A write to a broken pipe then only fails with EPIPE. */
static bool start_thread(segue_runtime *rt)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int fault = pthread_create(&rt->dispatch.io_thread, NULL, run_io_thread, rt);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return fault == 0;
}

segue_status sgi_runtime_start(segue_runtime *rt)
{
    segue_status status = SEGUE_OK;
    if (sgi_runtime_is_in_callback(rt))
        return SEGUE_E_REENTRANT;
    sgi_runtime_lock(rt);
    if (!atomic_load(&rt->open)) {
        status = SEGUE_E_CLOSED;
    } else if (rt->dispatch.mode != SGI_MODE_NEW) {
        status = SEGUE_E_STATE;
    } else {
        rt->dispatch.mode = SGI_MODE_BACKGROUND;
        if (start_thread(rt)) {
            rt->dispatch.joinable = true;
            if (!TAILQ_EMPTY(&rt->engine.ready))
                sgi_dispatch_notify(rt);
        } else {
            rt->dispatch.mode = SGI_MODE_NEW;
            status = SEGUE_E_IO;
        }
    }
    sgi_runtime_unlock(rt);
    return status;
}

/* Returns the descriptor that the host waits for. */
static int host_fd(const segue_runtime *rt)
{
    return rt->lending.front_fd >= 0 ? rt->lending.front_fd : rt->dispatch.ready_fd;
}

/* Waits until callbacks are due, with the lock released. left_ms: the longest wait in ms;
 * negative = no limit. Returns false, without a wait, when left_ms is 0. */
static bool wait_for_ready(segue_runtime *rt, int64_t left_ms)
{
    struct pollfd poller = {.fd = host_fd(rt), .events = POLLIN};
    if (left_ms == 0)
        return false;
    int timeout = left_ms < 0 ? -1 : left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
    rt->dispatch.attended = false;
    sgi_runtime_unlock(rt);
    poll(&poller, 1, timeout);
    sgi_runtime_lock(rt);
    rt->dispatch.attended = true;
    sgi_inlets_read_some_lent(rt);
    return true;
}

static void clear_notice(segue_runtime *rt)
{
    uint64_t count;
    if (!TAILQ_EMPTY(&rt->engine.ready)) {
        rt->dispatch.notified = rt->dispatch.notify_due = true;
    } else if (rt->dispatch.notified && atomic_load(&rt->open)) {
        rt->dispatch.notified = rt->dispatch.notify_due = false;
        ssize_t got = read(rt->dispatch.ready_fd, &count, sizeof count);
        /* with EAGAIN the descriptor was not readable yet, so there is nothing to
         * clear */
        (void)got;
    }
    if (!TAILQ_EMPTY(&rt->loop.awaiting))
        sgi_loop_request_turn(rt);
}

static int32_t dispatch_background(segue_runtime *rt, int64_t timeout_ms,
                                   int32_t max_events)
{
    int64_t deadline = timeout_ms > 0 ? deadline_of(timeout_ms) : 0;
    int32_t ran = 0;
    rt->dispatch.attended = true;
    sgi_inlets_read_some_lent(rt);
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
    rt->dispatch.attended = false;
    clear_notice(rt);
    return ran;
}

segue_status sgi_runtime_dispatch(segue_runtime *rt, int64_t timeout_ms,
                                  int32_t max_events, int32_t *ran)
{
    segue_status status = SEGUE_OK;
    int32_t count = 0;
    if (max_events < 0 || timeout_ms < -1)
        return SEGUE_E_INVALID;
    if (sgi_runtime_is_in_callback(rt))
        return SEGUE_E_REENTRANT;
    sgi_runtime_lock(rt);
    if (rt->dispatch.looping) {
        sgi_runtime_unlock(rt);
        return SEGUE_E_THREAD;
    }
    rt->dispatch.looping = true;
    if (rt->dispatch.mode == SGI_MODE_NEW)
        rt->dispatch.mode = SGI_MODE_INLINE;
    if (rt->dispatch.mode == SGI_MODE_BACKGROUND)
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

/* Returns the descriptor that the host waits for in *fd. An inline runtime has no such
 * descriptor (SEGUE_E_STATE): libev does not reveal the descriptor that it waits on, and
 * a descriptor only for callbacks would miss the input that leads to callbacks. */
segue_status sgi_runtime_fd(segue_runtime *rt, int32_t *fd)
{
    segue_status status = SEGUE_OK;
    sgi_runtime_lock(rt);
    if (rt->dispatch.mode == SGI_MODE_INLINE)
        status = SEGUE_E_STATE;
    else
        *fd = host_fd(rt);
    sgi_runtime_unlock(rt);
    return status;
}
