/* libwebsockets, which the loop runs as it runs a transport (as a carrier), so that
 * libwebsockets takes part in the runtime's shutdown. It has no conversation.
 *
 *     absent --first socket--> open --CLOSE, and the last socket ends--> retired
 *                                \----------abandon--------------------/
 *
 * on_event has two kinds of callers. Watchers that libwebsockets has started on the
 * runtime's loop call it without the lock. Calls of this file into libwebsockets
 * (adopting, dropping, destroying), made with the lock, also cause calls of on_event. The
 * opaque pointer of a socket's handle distinguishes the callers: it is set after adopting
 * and cleared before dropping. Therefore a call from inside this file finds NULL, and
 * neither locks nor reports anything.
 *
 * `current` is the socket whose event is being reported. If this socket is dropped
 * during its event, libwebsockets closes it when the callback returns -1; closing it
 * earlier is not allowed. Other sockets are closed at once.
 *
 * Output never uses lws_write. lws_write stores what it cannot send; while it stores
 * output, the raw role of 4.1.6 neither reads nor notices the end of a connection, and
 * spins when there is input. The owner writes to the descriptor itself and only asks for
 * an event when the descriptor is writable.
 *
 * Effects of libwebsockets on the process are undone or prevented. Making a context
 * ignores SIGPIPE, so the signal setting is restored (all writes here are
 * send(MSG_NOSIGNAL), and libwebsockets sends nothing). libwebsockets prints to standard
 * error, so its log is off. It installs no signal handlers on a loop that is not its
 * own. It has state per process (its log level, loading its plug-in), so a mutex
 * protects making and destroying contexts. It allocates memory by its own means: per
 * context 16 bytes for each descriptor that the process may open at that time, and
 * SERVICE_SIZE. This file refuses a descriptor beyond these tables, because
 * libwebsockets writes past their end when it closes such a descriptor.
 *
 * The runtime's lock is taken before the mutex, never while holding the mutex. */
#include "transport/socket_guest.h"

#include <ev.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <libwebsockets.h>

#include "transport/wake_descriptor.h"

/* If the process may open more descriptors than ABSURD_LIMIT, libwebsockets makes its
 * tables for only LIMIT_INSTEAD descriptors. */
#define ABSURD_LIMIT 10000000
#define LIMIT_INSTEAD 2560

/* The size of the service buffer, enough for one read. libwebsockets reserves the first
 * LWS_PRE bytes of the buffer for itself. */
#define SERVICE_SIZE (SGI_READ_SIZE + LWS_PRE)

struct sgi_socket_guest {
    sgi_carrier carrier;
    struct lws_context *context;
    struct lws_vhost *vhost;
    /* the socket whose event is being reported; NULL = no event is being reported, or the
     * socket was dropped in its event */
    sgi_guest_socket *current;
    /* true = libwebsockets gets no new socket, and is destroyed after its last socket */
    bool closing;
    /* the first descriptor number that does not fit into the tables of libwebsockets */
    int fd_limit;
    LIST_HEAD(, sgi_guest_socket) sockets;
    sgi_buf room;
};

static pthread_mutex_t process_mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- events ---- */

/* Reports an event to the owner of a socket. bytes: NULL = the event is `writable`.
 * Returns 0 to continue, or -1 to make libwebsockets close the socket. */
static int tell(sgi_guest_socket *socket, const char *bytes, size_t len)
{
    sgi_socket_guest *guest = socket->guest;
    guest->current = socket;
    if (bytes)
        socket->events->bytes(socket, bytes, len);
    else
        socket->events->writable(socket);
    int verdict = guest->current ? 0 : -1;
    guest->current = NULL;
    return verdict;
}

static void forget(sgi_guest_socket *socket)
{
    sgi_socket_guest *guest = socket->guest;
    lws_set_opaque_user_data(socket->handle, NULL);
    socket->handle = NULL;
    LIST_REMOVE(socket, link);
    if (guest->closing && LIST_EMPTY(&guest->sockets))
        sgi_carrier_request_work(&guest->carrier, SGI_WORK_OWN);
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user,
                    void *in, size_t len)
{
    int verdict = 0;
    (void)user;
    if (reason != LWS_CALLBACK_RAW_RX && reason != LWS_CALLBACK_RAW_WRITEABLE &&
        reason != LWS_CALLBACK_RAW_CLOSE)
        return 0;
    sgi_guest_socket *socket = lws_get_opaque_user_data(wsi);
    if (!socket)
        return 0;
    segue_runtime *rt = socket->guest->carrier.runtime;
    sgi_runtime_lock(rt);
    if (reason == LWS_CALLBACK_RAW_CLOSE) {
        forget(socket);
        socket->events->gone(socket, false);
    } else {
        verdict = tell(socket, reason == LWS_CALLBACK_RAW_RX ? in : NULL, len);
    }
    sgi_runtime_unlock(rt);
    return verdict;
}

/* ---- the context ---- */

static const struct lws_protocols protocols[] = {{.name = "raw", .callback = on_event},
                                                 {.name = NULL}};

static void open_context(sgi_socket_guest *guest, struct ev_loop *loop)
{
    void *loops[] = {loop};
    struct sigaction pipe_action;
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .vhost_name = "segue",
        .protocols = protocols,
        .options = LWS_SERVER_OPTION_LIBEV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
        .foreign_loops = loops,
        .pt_serv_buf_size = SERVICE_SIZE,
    };
    long limit = sysconf(_SC_OPEN_MAX);
    guest->fd_limit = limit > 0 && limit <= ABSURD_LIMIT ? (int)limit : LIMIT_INSTEAD;
    pthread_mutex_lock(&process_mutex);
    lws_set_log_level(0, NULL);
    sigaction(SIGPIPE, NULL, &pipe_action);
    guest->context = lws_create_context(&info);
    if (guest->context)
        guest->vhost = lws_create_vhost(guest->context, &info);
    sigaction(SIGPIPE, &pipe_action, NULL);
    pthread_mutex_unlock(&process_mutex);
}

static void close_context(sgi_socket_guest *guest)
{
    pthread_mutex_lock(&process_mutex);
    if (guest->context) {
        sgi_wake_descriptor wake = sgi_wake_descriptor_find(guest->context);
        lws_context_destroy(guest->context);
        sgi_wake_descriptor_close(wake);
    }
    guest->context = NULL;
    pthread_mutex_unlock(&process_mutex);
}

/* ---- making and freeing ---- */

static void end(sgi_socket_guest *guest)
{
    close_context(guest);
    sgi_carrier_retire(&guest->carrier);
}

static void do_work(sgi_carrier *carrier, uint32_t work)
{
    sgi_socket_guest *guest = SGI_OWNER(carrier, sgi_socket_guest, carrier);
    guest->closing |= (work & SGI_WORK_CLOSE) != 0;
    if (guest->closing && LIST_EMPTY(&guest->sockets))
        end(guest);
}

static void abandon(sgi_carrier *carrier)
{
    sgi_socket_guest *guest = SGI_OWNER(carrier, sgi_socket_guest, carrier);
    sgi_guest_socket *socket;
    while ((socket = LIST_FIRST(&guest->sockets))) {
        forget(socket);
        socket->events->gone(socket, true);
    }
    end(guest);
}

static void destroy(sgi_carrier *carrier)
{
    sgi_socket_guest *guest = SGI_OWNER(carrier, sgi_socket_guest, carrier);
    const sgi_mem *mem = guest->room.mem;
    sgi_buf_free(&guest->room);
    sgi_free(mem, guest, sizeof *guest);
}

static const sgi_carrier_ops carrier_ops = {
    .work = do_work, .abandon = abandon, .destroy = destroy};

static sgi_socket_guest *make_guest(segue_runtime *rt)
{
    sgi_engine *engine = sgi_runtime_engine(rt);
    const sgi_mem *mem = sgi_engine_mem(engine);
    sgi_socket_guest *guest = sgi_zalloc(mem, sizeof *guest);
    if (!guest)
        return NULL;
    open_context(guest, sgi_runtime_loop(rt));
    if (!guest->vhost) {
        sgi_engine_log(engine, SEGUE_LOG_ERROR,
                       "libwebsockets does not start: is the libev plug-in of "
                       "libwebsockets installed?");
        close_context(guest);
        sgi_free(mem, guest, sizeof *guest);
        return NULL;
    }
    sgi_buf_init(&guest->room, mem);
    guest->carrier.ops = &carrier_ops;
    guest->carrier.attached = true;
    guest->carrier.grace_ms = SGI_LINGER_MS;
    sgi_carrier_add(rt, &guest->carrier);
    return guest;
}

static sgi_socket_guest *guest_of(segue_runtime *rt)
{
    sgi_carrier *carrier = sgi_carrier_find(rt, &carrier_ops);
    return carrier ? SGI_OWNER(carrier, sgi_socket_guest, carrier) : make_guest(rt);
}

/* ---- sockets ---- */

segue_status sgi_guest_socket_adopt(segue_runtime *rt, sgi_guest_socket *socket, int fd,
                                    const sgi_guest_socket_events *events)
{
    sgi_socket_guest *guest = sgi_runtime_is_open(rt) ? guest_of(rt) : NULL;
    if (!guest || guest->closing) {
        close(fd);
        return sgi_runtime_is_open(rt) ? SEGUE_E_IO : SEGUE_E_CLOSED;
    }
    if (fd >= guest->fd_limit) {
        sgi_engine_log(sgi_runtime_engine(rt), SEGUE_LOG_WARNING,
                       "descriptor %d is above the limit of open files, %d", fd,
                       guest->fd_limit);
        close(fd);
        return SEGUE_E_LIMIT;
    }
    lws_adopt_desc_t what = {.vh = guest->vhost,
                             .type = LWS_ADOPT_SOCKET,
                             .fd = {.sockfd = fd},
                             .vh_prot_name = protocols[0].name};
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&what);
    if (!wsi)
        return SEGUE_E_IO;
    *socket =
        (sgi_guest_socket){.guest = guest, .events = events, .handle = wsi, .fd = fd};
    lws_set_opaque_user_data(wsi, socket);
    LIST_INSERT_HEAD(&guest->sockets, socket, link);
    return SEGUE_OK;
}

sgi_buf *sgi_guest_socket_scratch(const sgi_guest_socket *socket)
{
    return &socket->guest->room;
}

void sgi_guest_socket_want_writable(sgi_guest_socket *socket)
{
    if (socket->handle)
        lws_callback_on_writable(socket->handle);
}

void sgi_guest_socket_set_reading(sgi_guest_socket *socket, bool on)
{
    if (socket->handle)
        lws_rx_flow_control(socket->handle, on);
}

void sgi_guest_socket_close(sgi_guest_socket *socket)
{
    sgi_socket_guest *guest = socket->guest;
    struct lws *wsi = socket->handle;
    if (!wsi)
        return;
    forget(socket);
    if (guest->current == socket)
        guest->current = NULL;
    else
        lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
}
