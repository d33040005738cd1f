/* Who waits for input: the loop, or the application.
 *
 * A message that comes by a pipe wakes the I/O thread, which wakes the application. Where
 * calls go to and fro that second wake-up takes longer than all the rest. So a background
 * runtime may lend its pipes: the application waits for `front`, an epoll descriptor with
 * these pipes and ready_fd in it, and its dispatch reads before it runs callbacks.
 *
 *   with the loop --two dispatches within patience_ms--> lent
 *         \<------------ none for patience_ms -----------/
 *
 * Lending changes who reads and nothing else. An application that computes, or never
 * comes, finds that the loop has read meanwhile, answered pings and noted cancellations,
 * if patience_ms late. A deadline cannot overtake an answer that waits in a pipe: the
 * loop reads it before it lets time pass (sgi_inlets_read_all in its turn).
 *
 * Watchers of libev are the loop thread's, epoll is anybody's under the lock. So a
 * dispatch asks the loop to lend; what it finds that is not for it, the end of a pipe or
 * a flood, it takes out of the front, and leaves to the loop to wait for (`regroup`). An
 * inlet is read without the lock only by the loop while that waits for it, and changes
 * hands only when nobody reads: by the loop thread, or by who has read it under the lock.
 *
 * What epoll refuses, such as a file, is kept by the loop. */
#include "runtime/inlet.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/state.h"

/* Long enough for a turn of an application's loop, and short for a peer that waits for
 * the answer to a ping. */
#define PATIENCE_MS 50
/* Inlets that one dispatch reads; the front stays readable while there are others. */
#define AT_ONCE 16
/* ... and so often that before a deadline: what is left then comes too late. */
#define ALL_TURNS 64
/* A flood is over when so many reads in a row have found little. */
#define CALM_READS 8

/* ---- the front ---- */

static bool watch_in_front(segue_runtime *rt, int fd, sgi_inlet *inlet)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = inlet};
    return epoll_ctl(rt->front_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

segue_status sgi_inlets_open(segue_runtime *rt)
{
    rt->patience_ms = PATIENCE_MS;
    rt->front_room = sgi_alloc(&rt->mem, SGI_READ_SIZE);
    if (!rt->front_room)
        return SEGUE_E_NOMEM;
    rt->front_fd = epoll_create1(EPOLL_CLOEXEC);
    return rt->front_fd >= 0 && watch_in_front(rt, rt->ready_fd, NULL) ? SEGUE_OK
                                                                       : SEGUE_E_IO;
}

void sgi_inlets_close(segue_runtime *rt)
{
    if (rt->front_fd >= 0)
        close(rt->front_fd);
    if (rt->front_room)
        sgi_release(&rt->mem, rt->front_room, SGI_READ_SIZE);
    rt->front_fd = -1;
    rt->front_room = NULL;
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
    epoll_ctl(inlet->rt->front_fd, EPOLL_CTL_DEL, inlet->fd, NULL);
    inlet->lent = false;
}

/* Loop thread. Sees to it that who should wait for it does. */
static void place(sgi_inlet *inlet)
{
    segue_runtime *rt = inlet->rt;
    if (rt->lent && !inlet->kept && !inlet->lent)
        put_into_front(inlet);
    else if (!rt->lent && inlet->lent)
        take_from_front(inlet);
    if (inlet->lent)
        ev_io_stop(rt->loop, &inlet->watcher);
    else
        ev_io_start(rt->loop, &inlet->watcher);
}

void sgi_inlet_open(sgi_inlet *inlet)
{
    if (inlet->open)
        return;
    inlet->open = true;
    TAILQ_INSERT_TAIL(&inlet->rt->inlets, inlet, link);
    place(inlet);
}

void sgi_inlet_shut(sgi_inlet *inlet)
{
    if (!inlet->open)
        return;
    inlet->open = false;
    TAILQ_REMOVE(&inlet->rt->inlets, inlet, link);
    if (inlet->lent)
        take_from_front(inlet);
    else
        ev_io_stop(inlet->rt->loop, &inlet->watcher);
}

bool sgi_inlet_has_read(sgi_inlet *inlet, size_t bytes)
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

/* ---- the application's part ---- */

/* The loop waits for it from now on. */
static void give_back(sgi_inlet *inlet)
{
    take_from_front(inlet);
    inlet->kept = true;
    inlet->calm = 0;
    inlet->rt->regroup_due = true;
    sgi_loop_kick(inlet->rt);
}

/* false: there may be others. */
static bool read_some(segue_runtime *rt)
{
    struct epoll_event events[AT_ONCE];
    if (!rt->lent || !atomic_load(&rt->open))
        return true;
    int count = epoll_wait(rt->front_fd, events, AT_ONCE, 0);
    for (int i = 0; i < count; i++) {
        sgi_inlet *inlet = events[i].data.ptr; /* NULL: callbacks are due */
        if (inlet && !inlet->ops->read_here(inlet, rt->front_room) && inlet->open)
            give_back(inlet);
    }
    return count < AT_ONCE;
}

void sgi_inlets_read_all(segue_runtime *rt)
{
    for (int turn = 0; turn < ALL_TURNS && !read_some(rt); turn++)
        ;
}

void sgi_inlets_attend(segue_runtime *rt)
{
    if (rt->front_fd < 0)
        return;
    int64_t now = sgi_real_now();
    if (!rt->lent && !rt->lend_due && !TAILQ_EMPTY(&rt->inlets) && rt->attended_ms &&
        now - rt->attended_ms < rt->patience_ms) {
        rt->lend_due = true;
        sgi_loop_kick(rt);
    }
    rt->attended_ms = now;
    read_some(rt);
}

/* ---- the loop's part ---- */

static int64_t patience_left(const segue_runtime *rt)
{
    int64_t left = rt->attended_ms + rt->patience_ms - sgi_real_now();
    return left > 0 ? left : 0;
}

int64_t sgi_inlets_wait(const segue_runtime *rt, int64_t wait_ms)
{
    if (!rt->lent)
        return wait_ms;
    int64_t left = patience_left(rt);
    return wait_ms < 0 || left < wait_ms ? left : wait_ms;
}

static void regroup(segue_runtime *rt, bool lent)
{
    sgi_inlet *inlet;
    rt->lent = lent;
    rt->lend_due = rt->regroup_due = false;
    TAILQ_FOREACH(inlet, &rt->inlets, link)
        place(inlet);
}

void sgi_inlets_turn(segue_runtime *rt)
{
    if (rt->lent && patience_left(rt) == 0)
        regroup(rt, false);
    else if (rt->lend_due || rt->regroup_due)
        regroup(rt, rt->lent || rt->lend_due);
}

void sgi_inlets_take_back(segue_runtime *rt)
{
    regroup(rt, false);
}
