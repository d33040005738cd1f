/* Decides which thread waits for input: the loop's or the application's.
 *
 * Normally a message in a pipe wakes the I/O thread, which then wakes the application.
 * When messages go to and fro, this second wake-up takes longer than everything else.
 * Therefore a background runtime may lend its inlets (descriptors to read): the
 * application waits for `front`, an epoll descriptor that contains these inlets and
 * ready_fd, and its dispatch reads the inlets before it runs callbacks.
 *
 *     with the loop --two dispatches within patience_ms--> lent
 *          \<------------ none for patience_ms -----------/
 *
 * Lending only changes which thread reads. While the application computes or does not
 * dispatch, the loop takes the inlets back, at most patience_ms late. The loop then reads
 * the inlets, answers pings and notes cancellations. A deadline cannot overtake an answer
 * that is still in a pipe, because the loop reads lent inlets before it handles timers
 * (sgi_inlets_read_all_lent).
 *
 * libev's watchers belong to the loop thread; any thread may use epoll under the lock.
 * Therefore dispatch only asks the loop to lend. When dispatch finds the end of a pipe or
 * a flood (much input), it takes the inlet out of `front` and gives the inlet back to the
 * loop (`regroup`). The loop reads an inlet without the lock, but only an inlet for which
 * the loop itself waits; all other reads are under the lock. An inlet moves between loop
 * and application only while no thread reads it. Either the loop thread moves the inlet,
 * or the thread that has just read the inlet under the lock.
 *
 * A descriptor that epoll refuses, such as a file, stays with the loop. */
#include "runtime/inlet.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/state.h"

/* The time in ms without a dispatch after which the application no longer waits for
 * the inlets (descriptors to read), and the loop does again. The time is long enough
 * for one turn of an application's event loop, and short enough for a peer that waits
 * for the answer to a ping. */
#define PATIENCE_MS 50
/* Maximum number of inlets that one dispatch reads. If further inlets (descriptors to
 * read) have input, the epoll descriptor `front` stays readable. */
#define AT_ONCE 16
/* Maximum number of passes that read the lent inlets (descriptors for which the
 * application waits) before timers run. Input that is left after these passes is read
 * after the timers. */
#define ALL_TURNS 64
/* The number of small reads in a row after which a flood (much input) counts as over. */
#define CALM_READS 8

/* ---- the front: an epoll descriptor ---- */

static bool watch_in_front(segue_runtime *rt, int fd, sgi_inlet *inlet)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = inlet};
    return epoll_ctl(rt->lending.front_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

segue_status sgi_inlets_enable_lending(segue_runtime *rt)
{
    rt->lending.patience_ms = PATIENCE_MS;
    rt->lending.room = sgi_alloc(&rt->mem, SGI_READ_SIZE);
    if (!rt->lending.room)
        return SEGUE_E_NOMEM;
    rt->lending.front_fd = epoll_create1(EPOLL_CLOEXEC);
    return rt->lending.front_fd >= 0 && watch_in_front(rt, rt->dispatch.ready_fd, NULL)
               ? SEGUE_OK
               : SEGUE_E_IO;
}

void sgi_inlets_disable_lending(segue_runtime *rt)
{
    if (rt->lending.front_fd >= 0)
        close(rt->lending.front_fd);
    if (rt->lending.room)
        sgi_free(&rt->mem, rt->lending.room, SGI_READ_SIZE);
    rt->lending.front_fd = -1;
    rt->lending.room = NULL;
}

/* ---- one inlet ---- */

static void on_readable(struct ev_loop *loop, ev_io *watcher, int revents)
{
    sgi_inlet *inlet = watcher->data;
    (void)loop;
    (void)revents;
    inlet->ops->readable(inlet);
}

void sgi_inlet_init(sgi_inlet *inlet, segue_runtime *rt, const sgi_inlet_ops *ops, int fd)
{
    *inlet = (sgi_inlet){.rt = rt, .ops = ops, .fd = fd};
    ev_io_init(&inlet->watcher, on_readable, fd, EV_READ);
    inlet->watcher.data = inlet;
}

static void put_into_front(sgi_inlet *inlet)
{
    inlet->lent = watch_in_front(inlet->rt, inlet->fd, inlet);
    inlet->kept = !inlet->lent;
}

static void take_from_front(sgi_inlet *inlet)
{
    epoll_ctl(inlet->rt->lending.front_fd, EPOLL_CTL_DEL, inlet->fd, NULL);
    inlet->lent = false;
}

/* Moves the inlet into the application's epoll descriptor (`front`) or back to the
 * loop, depending on whether the inlets are lent now. Only the loop thread calls the
 * function. */
static void place(sgi_inlet *inlet)
{
    segue_runtime *rt = inlet->rt;
    if (rt->lending.lent && !inlet->kept && !inlet->lent)
        put_into_front(inlet);
    else if (!rt->lending.lent && inlet->lent)
        take_from_front(inlet);
    if (inlet->lent)
        ev_io_stop(rt->loop.ev, &inlet->watcher);
    else
        ev_io_start(rt->loop.ev, &inlet->watcher);
}

void sgi_inlet_start_waiting(sgi_inlet *inlet)
{
    if (inlet->open)
        return;
    inlet->open = true;
    TAILQ_INSERT_TAIL(&inlet->rt->lending.inlets, inlet, link);
    place(inlet);
}

void sgi_inlet_stop_waiting(sgi_inlet *inlet)
{
    if (!inlet->open)
        return;
    inlet->open = false;
    TAILQ_REMOVE(&inlet->rt->lending.inlets, inlet, link);
    if (inlet->lent)
        take_from_front(inlet);
    else
        ev_io_stop(inlet->rt->loop.ev, &inlet->watcher);
}

bool sgi_inlet_note_read(sgi_inlet *inlet, size_t bytes)
{
    if (!inlet->kept || !inlet->open)
        return false;
    inlet->calm = bytes < SGI_FLOOD_SIZE ? inlet->calm + 1 : 0;
    if (inlet->calm < CALM_READS)
        return false;
    inlet->calm = 0;
    inlet->kept = false;
    place(inlet);
    return inlet->lent;
}

/* ---- on the application's thread ---- */

/* Takes the inlet out of the application's epoll descriptor (`front`) and gives it
 * back to the loop, which then waits for input. */
static void give_back(sgi_inlet *inlet)
{
    take_from_front(inlet);
    inlet->kept = true;
    inlet->calm = 0;
    inlet->rt->lending.regroup_due = true;
    sgi_loop_request_turn(inlet->rt);
}

/* Reads up to AT_ONCE lent inlets that have input. Returns false when more inlets may be
 * readable. */
static bool read_some(segue_runtime *rt)
{
    struct epoll_event events[AT_ONCE];
    if (!rt->lending.lent || !atomic_load(&rt->open))
        return true;
    int count = epoll_wait(rt->lending.front_fd, events, AT_ONCE, 0);
    for (int i = 0; i < count; i++) {
        /* an event without an inlet comes from ready_fd, and shows that callbacks are
         * due */
        sgi_inlet *inlet = events[i].data.ptr;
        if (inlet && !inlet->ops->read_here(inlet, rt->lending.room) && inlet->open)
            give_back(inlet);
    }
    return count < AT_ONCE;
}

void sgi_inlets_read_all_lent(segue_runtime *rt)
{
    for (int turn = 0; turn < ALL_TURNS && !read_some(rt); turn++)
        ;
}

void sgi_inlets_read_some_lent(segue_runtime *rt)
{
    if (rt->lending.front_fd < 0)
        return;
    int64_t now = sgi_system_monotonic_ms();
    if (!rt->lending.lent && !rt->lending.lend_due && !TAILQ_EMPTY(&rt->lending.inlets) &&
        rt->lending.attended_ms &&
        now - rt->lending.attended_ms < rt->lending.patience_ms) {
        rt->lending.lend_due = true;
        sgi_loop_request_turn(rt);
    }
    rt->lending.attended_ms = now;
    read_some(rt);
}

/* ---- on the loop's thread ---- */

static int64_t patience_left(const segue_runtime *rt)
{
    int64_t left =
        rt->lending.attended_ms + rt->lending.patience_ms - sgi_system_monotonic_ms();
    return left > 0 ? left : 0;
}

int64_t sgi_inlets_limit_wait(const segue_runtime *rt, int64_t wait_ms)
{
    if (!rt->lending.lent)
        return wait_ms;
    int64_t left = patience_left(rt);
    return wait_ms < 0 || left < wait_ms ? left : wait_ms;
}

static void regroup(segue_runtime *rt, bool lent)
{
    sgi_inlet *inlet;
    rt->lending.lent = lent;
    rt->lending.lend_due = rt->lending.regroup_due = false;
    TAILQ_FOREACH(inlet, &rt->lending.inlets, link)
        place(inlet);
}

void sgi_inlets_lend_or_take_back(segue_runtime *rt)
{
    if (rt->lending.lent && patience_left(rt) == 0)
        regroup(rt, false);
    else if (rt->lending.lend_due || rt->lending.regroup_due)
        regroup(rt, rt->lending.lent || rt->lending.lend_due);
}

void sgi_inlets_take_back(segue_runtime *rt)
{
    regroup(rt, false);
}
