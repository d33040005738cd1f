/* Fetches over plain HTTP/1.1. libcurl only connects: it looks names up, tries the
 * addresses, and keeps the time limit. The connection then belongs to this file, which
 * writes the request and reads the response. With libcurl 7.88 on the wire, a short call
 * takes about 113,000 instructions more.
 *
 *   begin -> in use --response complete--> idle --reuse--> in use
 *   in use --response complete, and the connection cannot be kept--> closed
 *   in use --connection lost--> closed; the fetch ends, or is queued again
 *   idle --any event, or too many idle connections--> closed
 *
 * A fetch is queued again, for a new connection, if an idle connection turns out to be
 * dead before a byte of the response has arrived. A fetch with `once` is queued again
 * only if no byte of its request was sent.
 *
 * Pause: while the owner has paused the fetch, the next bytes of the body are kept, at
 * most one read of SGI_READ_SIZE bytes, and the socket is not read. */
#include "transport/fetch_state.h"

#include <errno.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/thresholds.h"

static struct ev_loop *loop_of(const sgi_fetch_direct *direct)
{
    return sgi_runtime_loop(direct->pool->carrier.runtime);
}

static const sgi_mem *mem_of(const sgi_fetch_pool *pool)
{
    return sgi_engine_mem(sgi_runtime_engine(pool->carrier.runtime));
}

static int64_t now_of(const sgi_fetch_pool *pool)
{
    return sgi_now(sgi_engine_env(sgi_runtime_engine(pool->carrier.runtime)));
}

static sgi_str socket_of(const sgi_fetcher *fetcher)
{
    const char *path = fetcher->settings.unix_socket;
    return path ? sgi_str_of(path) : (sgi_str){0};
}

/* True when a part of the request is still to be sent. */
static bool has_more_to_send(const sgi_fetch_direct *direct)
{
    const sgi_fetch *fetch = direct->fetch;
    return fetch && !direct->is_torn &&
           direct->sent < fetch->request_head.len + fetch->body.len;
}

/* Watches the socket for what the connection waits for. A connection with kept bytes
 * reads nothing more. */
static void watch(sgi_fetch_direct *direct)
{
    int events =
        (direct->kept.len ? 0 : EV_READ) | (has_more_to_send(direct) ? EV_WRITE : 0);
    if (ev_is_active(&direct->io) && direct->io.events == events)
        return;
    ev_io_stop(loop_of(direct), &direct->io);
    ev_io_set(&direct->io, direct->io.fd, events);
    if (events)
        ev_io_start(loop_of(direct), &direct->io);
}

/* ---- the end of a connection ---- */

void sgi_fetch_direct_close(sgi_fetch_direct *direct)
{
    sgi_fetch_pool *pool = direct->pool;
    if (direct->fetch) {
        direct->fetch->direct = NULL;
    } else {
        TAILQ_REMOVE(&pool->idle, direct, link);
        pool->idle_count--;
    }
    ev_io_stop(loop_of(direct), &direct->io);
    close(direct->io.fd);
    sgi_buf_free(&direct->kept);
    sgi_free(mem_of(pool), direct, direct->size);
}

void sgi_fetch_direct_close_idle(sgi_fetch_pool *pool, size_t keep)
{
    while (pool->idle_count > keep)
        sgi_fetch_direct_close(TAILQ_LAST(&pool->idle, sgi_fetch_directs));
}

int sgi_fetch_direct_on_close(void *user, curl_socket_t fd)
{
    sgi_fetch_pool *pool = user;
    if (fd != pool->adopted)
        return close(fd);
    pool->adopted = CURL_SOCKET_BAD;
    return 0;
}

/* Takes the fetch from its connection. The connection becomes idle if it can carry
 * another fetch, otherwise it is closed. */
static void release(sgi_fetch_direct *direct, bool can_be_kept)
{
    sgi_fetch_pool *pool = direct->pool;
    if (!can_be_kept || pool->stopping) {
        sgi_fetch_direct_close(direct);
        return;
    }
    direct->fetch->direct = NULL;
    direct->fetch = NULL;
    direct->idle_since_ms = now_of(pool);
    TAILQ_INSERT_HEAD(&pool->idle, direct, link);
    pool->idle_count++;
    sgi_fetch_direct_close_idle(pool, SGI_THRESHOLD(idle_connections));
}

/* Ends the fetch, whose connection is lost or refused. */
static void fail(sgi_fetch_direct *direct, sgi_fetch_fault fault, const char *text)
{
    sgi_fetch *fetch = direct->fetch;
    sgi_fetch_outcome outcome = {fault, text};
    sgi_fetch_direct_close(direct);
    sgi_fetch_pool_end(fetch->fetcher->pool, fetch, &outcome);
}

/* Handles the loss of the connection before the response was complete. */
static void lose(sgi_fetch_direct *direct, const char *text)
{
    sgi_fetch *fetch = direct->fetch;
    bool is_unanswered = direct->is_reused && !direct->reader.has_begun;
    if (is_unanswered && !(fetch->once && direct->sent)) {
        sgi_fetch_direct_close(direct);
        fetch->needs_new = true;
        fetch->stage = SGI_FETCH_QUEUED;
        sgi_fetch_pool_queue_change(fetch->fetcher->pool, fetch);
        return;
    }
    fail(direct, SGI_FETCH_BROKEN,
         is_unanswered ? "the connection was lost before the answer came" : text);
}

/* ---- the response ---- */

static void refuse(sgi_fetch_direct *direct)
{
    static const sgi_fetch_fault faults[] = {
        [SGI_HTTP1_RESPONSE_MALFORMED] = SGI_FETCH_MALFORMED,
        [SGI_HTTP1_RESPONSE_TOO_LARGE] = SGI_FETCH_TOO_LARGE,
        [SGI_HTTP1_RESPONSE_NOMEM] = SGI_FETCH_NOMEM,
    };
    if (direct->reader.fault == SGI_HTTP1_RESPONSE_CUT_OFF)
        lose(direct, direct->reader.problem);
    else
        fail(direct, faults[direct->reader.fault], direct->reader.problem);
}

/* The response is complete. rest: true = further bytes came, which no request asked
 * for. */
static void complete(sgi_fetch_direct *direct, bool rest)
{
    sgi_fetch *fetch = direct->fetch;
    static const sgi_fetch_outcome outcome = {SGI_FETCH_OK, ""};
    release(direct, direct->reader.keep_alive && !rest && !direct->is_torn &&
                        !has_more_to_send(direct));
    sgi_fetch_pool_end(fetch->fetcher->pool, fetch, &outcome);
}

/* Keeps the bytes that came during a pause, and stops reading. */
static void keep(sgi_fetch_direct *direct, sgi_str input)
{
    sgi_buf_add_str(&direct->kept, input);
    if (direct->kept.failed) {
        fail(direct, SGI_FETCH_NOMEM, "out of memory");
        return;
    }
    direct->fetch->held = true;
    watch(direct);
}

/* Handles what has arrived. The connection can be closed or idle afterwards. A fetch that
 * its owner has cancelled is left to the pool's next work step. The caller holds the
 * lock. */
static void feed(sgi_fetch_direct *direct, sgi_str input)
{
    sgi_fetch *fetch = direct->fetch;
    while (!fetch->cancelled) {
        if (fetch->headed && fetch->paused && input.n) {
            keep(direct, input);
            return;
        }
        switch (sgi_http1_response_next(&direct->reader, &input)) {
        case SGI_HTTP1_RESPONSE_MORE:
            return;
        case SGI_HTTP1_RESPONSE_HEAD:
            if (!sgi_fetch_take_head(fetch, direct->reader.status,
                                     direct->address.family ? &direct->address : NULL) &&
                !fetch->cancelled) {
                fail(direct, fetch->fault, fetch->why);
                return;
            }
            break;
        case SGI_HTTP1_RESPONSE_BYTES:
            fetch->events->bytes(fetch->user, fetch, direct->reader.bytes.p,
                                 direct->reader.bytes.n);
            break;
        case SGI_HTTP1_RESPONSE_DONE:
            complete(direct, input.n != 0);
            return;
        case SGI_HTTP1_RESPONSE_BAD:
            refuse(direct);
            return;
        }
    }
}

/* Handles the end of the connection. fault: the errno, 0 = the peer has closed. */
static void take_end(sgi_fetch_direct *direct, int fault)
{
    char why[SGI_WHY_SIZE];
    if (direct->fetch->cancelled) {
        ev_io_stop(loop_of(direct), &direct->io);
    } else if (fault) {
        sgi_transport_explain(why, "the connection broke", fault);
        lose(direct, why);
    } else if (sgi_http1_response_end(&direct->reader) == SGI_HTTP1_RESPONSE_DONE) {
        complete(direct, true);
    } else {
        refuse(direct);
    }
}

static void receive(sgi_fetch_direct *direct)
{
    char *bytes = sgi_runtime_scratch(direct->pool->carrier.runtime);
    ssize_t n = recv(direct->io.fd, bytes, SGI_READ_SIZE, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        feed(direct, (sgi_str){bytes, (size_t)n});
    else
        take_end(direct, n < 0 ? errno : 0);
}

/* ---- the request ---- */

/* True when the request could not be sent, and the peer has not closed the connection, so
 * no answer can be expected. */
static bool is_unable_to_send(const sgi_fetch_direct *direct)
{
    return direct->is_torn && direct->fault != EPIPE && direct->fault != ECONNRESET;
}

/* Sends as much of the request as the socket takes. A connection that takes nothing any
 * more can still have an answer to deliver, so a failure only marks the connection. */
static void send_request(sgi_fetch_direct *direct)
{
    sgi_fetch *fetch = direct->fetch;
    sgi_buf *head = &fetch->request_head, *body = &fetch->body;
    while (has_more_to_send(direct)) {
        size_t of_head = direct->sent < head->len ? direct->sent : head->len;
        size_t of_body = direct->sent - of_head;
        struct iovec parts[2] = {
            {head->p + of_head, head->len - of_head},
            {body->p ? body->p + of_body : NULL, body->len - of_body}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = sendmsg(direct->io.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            direct->is_torn = true;
            direct->fault = errno;
        } else {
            direct->sent += (size_t)n;
        }
    }
    if (is_unable_to_send(direct))
        shutdown(direct->io.fd, SHUT_RDWR); /* makes an event, which ends the fetch */
    watch(direct);
}

static void on_event(struct ev_loop *loop, ev_io *io, int revents)
{
    sgi_fetch_direct *direct = SGI_OWNER(io, sgi_fetch_direct, io);
    segue_runtime *rt = direct->pool->carrier.runtime;
    (void)loop;
    sgi_runtime_lock(rt);
    if (!direct->fetch) {
        /* the peer has closed an idle connection, or says what nobody asked for */
        sgi_fetch_direct_close(direct);
    } else {
        if (revents & EV_WRITE)
            send_request(direct);
        if (is_unable_to_send(direct))
            take_end(direct, direct->fault);
        else if (revents & EV_READ)
            receive(direct);
    }
    sgi_runtime_unlock(rt);
}

static void start(sgi_fetch_direct *direct, sgi_fetch *fetch)
{
    direct->fetch = fetch;
    direct->sent = 0;
    fetch->direct = direct;
    fetch->stage = SGI_FETCH_RUNNING;
    sgi_http1_response_begin(&direct->reader, &fetch->head, SGI_FETCH_HEAD_MAX);
    send_request(direct);
}

/* ---- connections ---- */

static bool leads_to(const sgi_fetch_direct *direct, const sgi_fetcher *fetcher)
{
    return sgi_str_eq(direct->authority, fetcher->authority) &&
           sgi_str_eq(direct->socket, socket_of(fetcher));
}

/* True when the peer has neither closed the connection nor sent anything. */
static bool is_quiet(const sgi_fetch_direct *direct)
{
    char byte;
    return recv(direct->io.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EINTR);
}

bool sgi_fetch_direct_reuse(sgi_fetch *fetch)
{
    sgi_fetch_pool *pool = fetch->fetcher->pool;
    int64_t now = now_of(pool), idle_ms;
    sgi_fetch_direct *next;
    for (sgi_fetch_direct *direct = TAILQ_FIRST(&pool->idle); direct; direct = next) {
        next = TAILQ_NEXT(direct, link);
        if (!leads_to(direct, fetch->fetcher))
            continue;
        idle_ms = sgi_time_sub(now, direct->idle_since_ms);
        if (idle_ms > SGI_THRESHOLD(idle_connection_ms) || !is_quiet(direct)) {
            sgi_fetch_direct_close(direct);
            continue;
        }
        if (fetch->once && idle_ms > SGI_THRESHOLD(once_idle_ms))
            return false; /* all further ones were idle for longer */
        TAILQ_REMOVE(&pool->idle, direct, link);
        pool->idle_count--;
        direct->is_reused = true;
        start(direct, fetch);
        return true;
    }
    return false;
}

bool sgi_fetch_direct_begin(sgi_fetch *fetch, int fd)
{
    sgi_fetch_pool *pool = fetch->fetcher->pool;
    sgi_str authority = fetch->fetcher->authority, path = socket_of(fetch->fetcher);
    size_t size = sizeof(sgi_fetch_direct) + authority.n + path.n;
    sgi_fetch_direct *direct = sgi_zalloc(mem_of(pool), size);
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    uint16_t port;
    if (!direct) {
        close(fd);
        return false;
    }
    char *texts = (char *)(direct + 1);
    direct->pool = pool;
    direct->size = size;
    direct->authority = (sgi_str){memcpy(texts, authority.p, authority.n), authority.n};
    if (path.n)
        direct->socket = (sgi_str){memcpy(texts + authority.n, path.p, path.n), path.n};
    if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0)
        sgi_ip_address_from_sockaddr((struct sockaddr *)&peer, &direct->address, &port);
    sgi_buf_init(&direct->kept, mem_of(pool));
    ev_io_init(&direct->io, on_event, fd, EV_READ);
    start(direct, fetch);
    return true;
}

void sgi_fetch_direct_resume(sgi_fetch *fetch)
{
    sgi_fetch_direct *direct = fetch->direct;
    sgi_buf kept = direct->kept;
    sgi_buf_init(&direct->kept, mem_of(direct->pool));
    watch(direct);
    feed(direct, sgi_buf_str(&kept));
    sgi_buf_free(&kept);
}
