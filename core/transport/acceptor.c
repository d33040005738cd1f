/* Accepts connections up to a maximum number.
 *
 * At the maximum the watcher of the socket is stopped: new connections wait in the
 * system's backlog until the listener returns a connection. When the system has no
 * descriptor or memory left, or when accepting fails for another lasting reason, each
 * further try would fail too, while the socket stays readable. The acceptor therefore
 * pauses, and tries again after a while or when a connection is returned. Each event
 * accepts only a few connections, so that existing connections get their turn. */
#include "transport/listen_socket.h"

#include "base/thresholds.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_PER_EVENT 16
#define RETRY_MS SGI_THRESHOLD(accept_again_ms)

static struct ev_loop *loop_of(const sgi_acceptor *acceptor)
{
    return sgi_runtime_loop(acceptor->rt);
}

static sgi_engine *engine_of(const sgi_acceptor *acceptor)
{
    return sgi_runtime_engine(acceptor->rt);
}

static bool has_room(const sgi_acceptor *acceptor)
{
    return acceptor->running && !acceptor->paused && acceptor->count < acceptor->max;
}

static void watch(sgi_acceptor *acceptor)
{
    if (has_room(acceptor))
        ev_io_start(loop_of(acceptor), &acceptor->readable);
    else
        ev_io_stop(loop_of(acceptor), &acceptor->readable);
}

static void try_again(sgi_timer *timer)
{
    sgi_acceptor *acceptor = SGI_OWNER(timer, sgi_acceptor, retry);
    acceptor->paused = false;
    watch(acceptor);
}

static void pause_accepting(sgi_acceptor *acceptor, int fault)
{
    char why[SGI_WHY_SIZE];
    sgi_transport_explain(why, "no new connection can be accepted for now", fault);
    sgi_engine_log(engine_of(acceptor), SEGUE_LOG_WARNING, "%s", why);
    acceptor->paused = true;
    sgi_engine_set_timer(engine_of(acceptor), &acceptor->retry, RETRY_MS, try_again);
}

/* True when accept failed because the new connection is already broken. Such a failure is
 * not an error of the server (accept(2)). */
static bool is_of_connection(int fault)
{
    static const int faults[] = {EINTR,       ECONNABORTED, EPROTO,       EPERM,
                                 ENOPROTOOPT, EHOSTDOWN,    EHOSTUNREACH, ENETDOWN,
                                 ENETUNREACH, EOPNOTSUPP,   ETIMEDOUT,    ENONET};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (fault == faults[i])
            return true;
    return false;
}

/* Accepts one connection. Returns false when no connection can be accepted now. Returns
 * true after a connection that was already broken, so that the caller tries the next one;
 * *broken counts such connections. The caller holds the lock. */
static bool accept_one(sgi_acceptor *acceptor, int *broken)
{
    int fd = accept4(acceptor->readable.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        acceptor->count++;
        acceptor->accepted(acceptor->user, fd);
        return true;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return false;
    if (is_of_connection(errno) && ++*broken < ACCEPTS_PER_EVENT)
        return true;
    pause_accepting(acceptor, errno);
    return false;
}

static void on_readable(struct ev_loop *loop, ev_io *watcher, int revents)
{
    sgi_acceptor *acceptor = watcher->data;
    segue_runtime *rt = acceptor->rt;
    int broken = 0;
    (void)loop;
    (void)revents;
    sgi_runtime_lock(rt);
    for (int i = 0; i < ACCEPTS_PER_EVENT && has_room(acceptor); i++)
        if (!accept_one(acceptor, &broken))
            break;
    watch(acceptor);
    sgi_runtime_unlock(rt);
}

void sgi_acceptor_start(sgi_acceptor *acceptor, segue_runtime *rt,
                        const sgi_listen_socket *socket, int32_t max,
                        sgi_accept_fn accepted, void *user)
{
    *acceptor = (sgi_acceptor){
        .rt = rt, .accepted = accepted, .user = user, .max = max, .running = true};
    ev_io_init(&acceptor->readable, on_readable, socket->fd, EV_READ);
    acceptor->readable.data = acceptor;
    watch(acceptor);
}

void sgi_acceptor_take_waiting(sgi_acceptor *acceptor)
{
    int broken = 0;
    while (has_room(acceptor) && accept_one(acceptor, &broken))
        ;
}

void sgi_acceptor_stop(sgi_acceptor *acceptor)
{
    if (!acceptor->running)
        return;
    acceptor->running = false;
    sgi_engine_clear_timer(engine_of(acceptor), &acceptor->retry);
    watch(acceptor);
}

void sgi_acceptor_on_conn_closed(sgi_acceptor *acceptor)
{
    acceptor->count--;
    if (!acceptor->running)
        return;
    acceptor->paused = false;
    sgi_engine_clear_timer(engine_of(acceptor), &acceptor->retry);
    watch(acceptor);
}
