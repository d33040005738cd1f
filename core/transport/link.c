/* The links of sockets. Such a link consists of a socket that libwebsockets reads
 * (socket_guest.h), TLS if the gate has TLS, and the output that the socket has not
 * accepted yet.
 *
 * A write is one send(2) to the socket at once, from any code on the loop thread. Usually
 * a write needs no callback, no copy and no change of a watcher. With TLS the records are
 * built in one buffer for all sockets and are also sent at once. Only bytes that the
 * socket does not accept are copied into `out`. An empty `out` is freed, so an idle link
 * holds no buffer. `out` holds at most one write, with the few bytes that TLS adds;
 * MAX_PENDING limits `out` if an owner writes without waiting for `writable`.
 *
 * A failed write is not reported inside the call, but by a timer without delay; `fault`
 * has the error until then.
 *
 * Closing: the link forgets its owner at once and closes by itself. While output is left,
 * nothing is read, because a peer that has ended its side can still read. Then this side
 * is shut down, and input is dropped until the peer ends: closing a socket with unread
 * input makes the system send a reset, which can overtake the last answer. A TLS failure
 * is handled in the same way, so that its alert is sent.
 *
 * `engaged` counts the functions on the stack that use the link. The last of these
 * functions frees a link that is gone. */
#include "transport/link.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/socket_guest.h"

#define MAX_PENDING SGI_TLS_MAX_OUT

/* With these settings, a peer that has vanished is noticed after about 90 seconds. */
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_INTERVAL_S 15
#define KEEPALIVE_PROBES 4

struct sgi_link_gate {
    segue_runtime *rt;
    sgi_tls_setup *setup; /* the TLS setup, used under the lock; NULL = no TLS */
};

typedef enum link_stage { OPEN = 0, FLUSHING, DRAINING, GONE } link_stage;

typedef struct socket_link {
    sgi_link base; /* the first member */
    sgi_guest_socket socket;
    segue_runtime *rt;
    /* the callbacks of the owner; NULL = the owner has closed the link */
    const sgi_link_events *events;
    void *user;
    sgi_tls *tls;
    sgi_buf out; /* bytes that are not sent yet; the first of them is at position `at` */
    size_t at;
    int64_t last_ms; /* the latest time at which flushing ends; monotonic clock, ms */
    sgi_timer timer;
    link_stage stage;
    /* errno of a failed write that is not reported to the owner yet; 0 = none */
    int fault;
    int engaged;   /* number of functions on the stack that use the link */
    bool waiting;  /* true = the owner must wait for the event `writable` */
    uint64_t sent; /* number of bytes that the system has accepted on this link */
} socket_link;

static const char peer_closed[] = "the peer closed the connection";
static const char runtime_ends[] = "the runtime was stopped";

static sgi_engine *engine_of(const socket_link *link)
{
    return sgi_runtime_engine(link->rt);
}

static socket_link *link_of(sgi_guest_socket *socket)
{
    return SGI_OWNER(socket, socket_link, socket);
}

static size_t pending(const socket_link *link)
{
    return link->out.len - link->at;
}

/* ---- the end of a link ---- */

static void engage(socket_link *link)
{
    link->engaged++;
}

static void release(socket_link *link)
{
    if (--link->engaged > 0 || link->stage != GONE)
        return;
    const sgi_mem *mem = sgi_engine_mem(engine_of(link));
    sgi_tls_free(link->tls);
    sgi_buf_free(&link->out);
    sgi_free(mem, link, sizeof *link);
}

/* Ends the link and closes its socket. The caller must have called engage, so the memory
 * stays valid. */
static void leave(socket_link *link)
{
    link->stage = GONE;
    sgi_engine_clear_timer(engine_of(link), &link->timer);
    sgi_guest_socket_close(&link->socket);
}

static void tell_closed(socket_link *link, const char *why)
{
    const sgi_link_events *events = link->events;
    link->events = NULL;
    if (events)
        events->closed(link->user, why);
}

static void break_off(socket_link *link, const char *why)
{
    leave(link);
    tell_closed(link, why);
}

/* Ends the link when the time limit of closing is over. */
static void give_up(sgi_timer *timer)
{
    socket_link *link = SGI_OWNER(timer, socket_link, timer);
    engage(link);
    leave(link);
    release(link);
}

static void tell_fault(sgi_timer *timer)
{
    socket_link *link = SGI_OWNER(timer, socket_link, timer);
    char why[SGI_WHY_SIZE];
    int fault = link->fault;
    engage(link);
    sgi_transport_explain(why, "writing failed", fault);
    break_off(link, fault == EPIPE || fault == ECONNRESET ? peer_closed : why);
    release(link);
}

/* ---- writing ---- */

static void fail(socket_link *link, int fault)
{
    if (link->fault)
        return;
    link->fault = fault;
    sgi_engine_set_timer(engine_of(link), &link->timer, 0, tell_fault);
}

/* Sends as many bytes as the socket accepts, and returns their number. After an error
 * returns 0 and reports the error later. */
static size_t send_some(socket_link *link, const char *bytes, size_t len)
{
    ssize_t sent;
    do
        sent = send(link->socket.fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) {
        link->sent += (uint64_t)sent;
        return (size_t)sent;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        fail(link, errno);
    return 0;
}

static void keep(socket_link *link, const char *bytes, size_t len)
{
    if (len > MAX_PENDING - pending(link)) {
        fail(link, EMSGSIZE);
        return;
    }
    if (link->at) {
        sgi_buf_drop_front(&link->out, link->at);
        link->at = 0;
    }
    sgi_buf_add(&link->out, bytes, len);
    if (link->out.failed)
        fail(link, ENOMEM);
}

/* Sends bytes to the socket: encrypted bytes, or plain bytes on a link without TLS. Keeps
 * the bytes that the socket does not accept. */
static void put(socket_link *link, const char *bytes, size_t len)
{
    size_t sent = 0;
    if (!len || link->fault)
        return;
    if (!pending(link))
        sent = send_some(link, bytes, len);
    if (sent < len && !link->fault)
        keep(link, bytes + sent, len - sent);
    if (sent < len)
        sgi_guest_socket_want_writable(&link->socket);
}

/* Sends the encrypted bytes that TLS has put into the shared output buffer
 * (sgi_guest_socket_scratch), and empties the buffer. */
static void put_room(socket_link *link, sgi_buf *room)
{
    put(link, room->p, room->len);
    sgi_buf_reset(room, SGI_TLS_MAX_OUT);
}

static bool link_write(sgi_link *base, const char *bytes, size_t len)
{
    socket_link *link = SGI_OWNER(base, socket_link, base);
    if (!link->tls) {
        put(link, bytes, len);
    } else if (!link->fault) {
        sgi_buf *room = sgi_guest_socket_scratch(&link->socket);
        bool made = sgi_tls_write(link->tls, bytes, len, room);
        put_room(link, room);
        if (!made)
            fail(link, EPROTO);
    }
    link->waiting = link->fault || pending(link);
    return !link->waiting;
}

/* ---- closing ---- */

static void drain(socket_link *link)
{
    link->stage = DRAINING;
    sgi_buf_free(&link->out);
    link->at = 0;
    shutdown(link->socket.fd, SHUT_WR);
    sgi_guest_socket_set_reading(&link->socket, true);
    sgi_engine_set_timer(engine_of(link), &link->timer, SGI_LINGER_MS, give_up);
}

static void wait_for_flush(socket_link *link)
{
    int64_t left = link->last_ms - sgi_now(sgi_engine_env(engine_of(link)));
    int64_t delay = left > SGI_LINGER_MS ? SGI_LINGER_MS : left > 0 ? left : 0;
    sgi_engine_set_timer(engine_of(link), &link->timer, delay, give_up);
}

/* Starts closing a link that its owner has closed. The caller must have called engage. */
static void finish(socket_link *link)
{
    if (link->tls) {
        sgi_buf *room = sgi_guest_socket_scratch(&link->socket);
        sgi_tls_end(link->tls, room);
        put_room(link, room);
    }
    if (link->fault) {
        leave(link);
    } else if (!pending(link)) {
        drain(link);
    } else {
        link->stage = FLUSHING;
        link->last_ms = sgi_now(sgi_engine_env(engine_of(link))) + SGI_GRACE_MS;
        sgi_guest_socket_set_reading(&link->socket, false);
        wait_for_flush(link);
    }
}

static uint64_t link_output_progress(const sgi_link *base)
{
    const socket_link *link = (const socket_link *)(const void *)base;
    int queued = 0;
    ioctl(link->socket.fd, SIOCOUTQ, &queued);
    return link->sent - (uint64_t)queued;
}

static void link_close(sgi_link *base)
{
    socket_link *link = SGI_OWNER(base, socket_link, base);
    engage(link);
    link->events = NULL;
    if (link->stage == OPEN)
        finish(link);
    release(link);
}

static void link_abort(sgi_link *base)
{
    socket_link *link = SGI_OWNER(base, socket_link, base);
    engage(link);
    link->events = NULL;
    leave(link);
    release(link);
}

static void link_set_reading(sgi_link *base, bool on)
{
    socket_link *link = SGI_OWNER(base, socket_link, base);
    if (link->stage == OPEN)
        sgi_guest_socket_set_reading(&link->socket, on);
}

/* ---- events ---- */

/* Sends waiting output as far as the socket accepts it. The caller must have called
 * engage. */
static void flush(socket_link *link)
{
    size_t sent = send_some(link, link->out.p + link->at, pending(link));
    link->at += sent;
    if (link->fault)
        return;
    if (pending(link)) {
        sgi_guest_socket_want_writable(&link->socket);
        if (sent && link->stage == FLUSHING)
            wait_for_flush(link);
        return;
    }
    sgi_buf_free(&link->out);
    link->at = 0;
}

static void on_writable(sgi_guest_socket *socket)
{
    socket_link *link = link_of(socket);
    engage(link);
    if (pending(link) && !link->fault)
        flush(link);
    if (!link->fault && !pending(link) && link->stage == FLUSHING) {
        drain(link);
    } else if (!link->fault && !pending(link) && link->stage == OPEN && link->waiting) {
        link->waiting = false;
        link->events->writable(link->user);
    }
    release(link);
}

static void tls_ended(socket_link *link, sgi_tls_result result)
{
    char why[SGI_WHY_SIZE];
    const sgi_link_events *events = link->events;
    if (result == SGI_TLS_END)
        snprintf(why, sizeof why, "%s", peer_closed);
    else
        sgi_tls_explain(link->tls, why);
    link->events = NULL;
    finish(link);
    events->closed(link->user, why);
}

/* Decrypts received bytes and passes the plain bytes to the owner, until the link is
 * closed. */
static void read_tls(socket_link *link, const char *bytes, size_t len)
{
    char *scratch = sgi_runtime_scratch(link->rt);
    sgi_buf *room = sgi_guest_socket_scratch(&link->socket);
    sgi_tls_result result = SGI_TLS_BYTES;
    size_t got;
    sgi_tls_add_input(link->tls, bytes, len);
    while (result == SGI_TLS_BYTES && link->stage == OPEN) {
        result = sgi_tls_read(link->tls, scratch, SGI_READ_SIZE, &got, room);
        put_room(link, room);
        if (result == SGI_TLS_BYTES)
            link->events->bytes(link->user, scratch, got);
        else if (result != SGI_TLS_MORE)
            tls_ended(link, result);
    }
}

static void on_bytes(sgi_guest_socket *socket, const char *bytes, size_t len)
{
    socket_link *link = link_of(socket);
    if (link->stage != OPEN)
        return;
    engage(link);
    if (link->tls)
        read_tls(link, bytes, len);
    else
        link->events->bytes(link->user, bytes, len);
    release(link);
}

static void on_gone(sgi_guest_socket *socket, bool ends)
{
    socket_link *link = link_of(socket);
    engage(link);
    break_off(link, ends ? runtime_ends : peer_closed);
    release(link);
}

static const sgi_guest_socket_events guest_events = {on_bytes, on_writable, on_gone};

/* ---- the peer ---- */

static void link_get_peer(const sgi_link *base, sgi_link_peer *peer)
{
    const socket_link *link = (const socket_link *)(const void *)base;
    sgi_link_peer_of_fd(link->socket.fd, peer);
    peer->is_tls = link->tls != NULL;
}

static bool link_is_ready(const sgi_link *base)
{
    const socket_link *link = (const socket_link *)(const void *)base;
    return !link->tls || sgi_tls_is_ready(link->tls);
}

static bool link_add_cert_subject(const sgi_link *base, sgi_buf *into)
{
    const socket_link *link = (const socket_link *)(const void *)base;
    return link->tls && sgi_tls_add_cert_subject(link->tls, into);
}

/* ---- gates ---- */

segue_status sgi_link_gate_new(segue_runtime *rt, const sgi_tls_files *files,
                               sgi_link_gate **out, char why[SGI_WHY_SIZE])
{
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(rt));
    sgi_tls_setup *setup = NULL;
    segue_status status = files ? sgi_tls_setup_new(mem, files, &setup, why) : SEGUE_OK;
    if (status != SEGUE_OK)
        return status;
    sgi_link_gate *gate = sgi_alloc(mem, sizeof *gate);
    if (!gate) {
        snprintf(why, SGI_WHY_SIZE, "out of memory");
        sgi_tls_setup_free(setup);
        return SEGUE_E_NOMEM;
    }
    *gate = (sgi_link_gate){rt, setup};
    *out = gate;
    return SEGUE_OK;
}

segue_status sgi_link_gate_read(sgi_link_gate *gate, const sgi_tls_files *files,
                                sgi_tls_setup **fresh, char why[SGI_WHY_SIZE])
{
    if (!gate || !gate->setup) { /* a listener by hand has no gate */
        snprintf(why, SGI_WHY_SIZE,
                 "the listener has no TLS: it was opened without cert_file");
        return SEGUE_E_STATE;
    }
    return sgi_tls_setup_new(sgi_engine_mem(sgi_runtime_engine(gate->rt)), files, fresh,
                             why);
}

void sgi_link_gate_use(sgi_link_gate *gate, sgi_tls_setup *fresh)
{
    sgi_runtime_lock(gate->rt);
    sgi_tls_setup *old = gate->setup;
    gate->setup = fresh;
    sgi_runtime_unlock(gate->rt);
    sgi_tls_setup_free(old);
}

void sgi_link_gate_free(sgi_link_gate *gate)
{
    if (!gate)
        return;
    sgi_tls_setup_free(gate->setup);
    sgi_free(sgi_engine_mem(sgi_runtime_engine(gate->rt)), gate, sizeof *gate);
}

static void set_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof value);
}

/* Sets options of TCP. The options have no effect on sockets of other kinds. */
static void tune(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

static const sgi_link_ops ops = {
    .write = link_write,
    .output_progress = link_output_progress,
    .set_reading = link_set_reading,
    .close = link_close,
    .abort = link_abort,
    .get_peer = link_get_peer,
    .add_cert_subject = link_add_cert_subject,
    .is_ready = link_is_ready,
};

segue_status sgi_link_adopt(sgi_link_gate *gate, int fd, const sgi_link_events *events,
                            void *user, sgi_link **out)
{
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(gate->rt));
    segue_status status = SEGUE_E_NOMEM;
    socket_link *link = sgi_zalloc(mem, sizeof *link);
    if (link && gate->setup)
        link->tls = sgi_tls_new(mem, gate->setup);
    if (link && (link->tls || !gate->setup)) {
        tune(fd);
        status = sgi_guest_socket_adopt(gate->rt, &link->socket, fd, &guest_events);
    } else {
        close(fd);
    }
    if (status == SEGUE_OK) {
        link->base.ops = &ops;
        link->rt = gate->rt;
        link->events = events;
        link->user = user;
        sgi_buf_init(&link->out, mem);
        *out = &link->base;
    } else if (link) {
        sgi_tls_free(link->tls);
        sgi_free(mem, link, sizeof *link);
    }
    return status;
}
