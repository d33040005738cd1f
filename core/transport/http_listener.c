/* The start and the end of a listener.
 *
 * The socket listens when sgi_http_listen returns. The first connection is accepted only
 * after the server has recovered its operations from the store; until then connections
 * wait in the system's backlog. Any thread may request under the lock that the listener
 * opens or closes; the loop then opens or closes the listener, as work of the carrier.
 *
 * Closing: each connection is notified. The socket stays open as long as a client can
 * come back to its running request, but new requests are refused. A socket that other
 * processes share is closed at once, because clients can come back to the other
 * processes. Idle connections stay open for idle_drain_ms, and their requests are
 * refused: a load balancer may have sent one before it learned of the end. Connections
 * that are left at the deadline are cut. After the last connection, each
 * sgi_server_listener is removed from its server, which may wait for the removal, and the
 * carrier retires.
 *
 * A listener by hand differs in the socket only: requests that come before the server has
 * recovered wait in their exchanges.
 *
 * At the maximum number of connections, new connections wait in the backlog and are
 * accepted when another connection ends. */
#include "transport/http_listener.h"

#include <string.h>

#include "transport/http_conn.h"

/* The interval in ms at which a closing listener checks whether a client can still come
 * back. */
#define LOOK_MS 50

static segue_listener *listener_of(sgi_carrier *carrier)
{
    return SGI_OWNER(carrier, segue_listener, carrier);
}

static sgi_engine *engine_of(const segue_listener *listener)
{
    return sgi_runtime_engine(listener->carrier.runtime);
}

/* ---- endpoints ---- */

static void on_server_open(sgi_server_listener *server_listener)
{
    sgi_http_endpoint *endpoint =
        SGI_OWNER(server_listener, sgi_http_endpoint, server_listener);
    endpoint->is_open = true;
    sgi_carrier_request_work(&endpoint->listener->carrier, SGI_WORK_OWN);
}

static void on_server_close(sgi_server_listener *server_listener)
{
    sgi_http_endpoint *endpoint =
        SGI_OWNER(server_listener, sgi_http_endpoint, server_listener);
    if (!endpoint->is_removed)
        sgi_http_listener_close(endpoint->listener);
}

/* Returns the endpoint of exactly this path. */
static sgi_http_endpoint *find_exactly(const segue_listener *listener, sgi_str path)
{
    sgi_http_endpoint *endpoint;
    STAILQ_FOREACH(endpoint, &listener->endpoints, link)
        if (!endpoint->is_removed && sgi_str_eq(path, sgi_str_of(endpoint->path)))
            return endpoint;
    return NULL;
}

sgi_http_endpoint *sgi_http_endpoint_find(const segue_listener *listener, sgi_str path)
{
    sgi_http_endpoint *endpoint = find_exactly(listener, path);
    if (endpoint)
        return endpoint;
    STAILQ_FOREACH(endpoint, &listener->endpoints, link)
        if (!endpoint->is_removed && endpoint->any_path)
            return endpoint;
    return NULL;
}

void sgi_http_endpoint_enter(sgi_http_endpoint *endpoint)
{
    endpoint->conns++;
}

sgi_http_endpoint *sgi_http_endpoint_enter_any(const segue_listener *listener)
{
    sgi_http_endpoint *endpoint = STAILQ_FIRST(&listener->endpoints);
    while (endpoint && endpoint->is_removed)
        endpoint = STAILQ_NEXT(endpoint, link);
    if (!endpoint) /* all are removed, so the request is refused */
        endpoint = STAILQ_FIRST(&listener->endpoints);
    sgi_http_endpoint_enter(endpoint);
    return endpoint;
}

/* ---- memory ---- */

sgi_http_endpoint *sgi_http_endpoint_make(segue_listener *listener, segue_server *server,
                                          const char *path)
{
    const sgi_mem *mem = listener->room.mem;
    sgi_http_endpoint *endpoint = sgi_zalloc(mem, sizeof *endpoint);
    char *copy = sgi_text_dup(mem, sgi_str_of(path));
    if (!endpoint || !copy) {
        sgi_free(mem, endpoint, sizeof *endpoint);
        sgi_text_free(mem, copy);
        return NULL;
    }
    *endpoint = (sgi_http_endpoint){
        .listener = listener,
        .server = server,
        .path = copy,
        .server_listener = {.open = on_server_open, .close = on_server_close}};
    STAILQ_INSERT_TAIL(&listener->endpoints, endpoint, link);
    return endpoint;
}

static void free_endpoint(segue_listener *listener, sgi_http_endpoint *endpoint)
{
    const sgi_mem *mem = listener->room.mem;
    STAILQ_REMOVE(&listener->endpoints, endpoint, sgi_http_endpoint, link);
    sgi_text_free(mem, endpoint->path);
    sgi_free(mem, endpoint, sizeof *endpoint);
}

static void leave_server(sgi_http_endpoint *endpoint)
{
    if (endpoint->is_added)
        sgi_server_remove_listener(endpoint->server, &endpoint->server_listener);
    endpoint->is_added = false;
}

/* A listener has at least one endpoint, also when all are removed. */
void sgi_http_endpoints_sweep(segue_listener *listener)
{
    sgi_http_endpoint *endpoint = STAILQ_FIRST(&listener->endpoints), *next;
    for (; endpoint; endpoint = next) {
        next = STAILQ_NEXT(endpoint, link);
        if (!endpoint->is_removed || endpoint->conns ||
            (!next && endpoint == STAILQ_FIRST(&listener->endpoints)))
            continue;
        /* a token that was seen before has rights at the server that ends */
        if (listener->bearer)
            sgi_bearer_cache_clear(&listener->bearer->cache);
        leave_server(endpoint);
        free_endpoint(listener, endpoint);
    }
}

void sgi_http_endpoint_leave(sgi_http_endpoint *endpoint)
{
    if (!--endpoint->conns && endpoint->is_removed)
        sgi_http_endpoints_sweep(endpoint->listener);
}

segue_status sgi_http_listener_remove(segue_listener *listener, const char *path)
{
    sgi_http_endpoint *endpoint = find_exactly(listener, sgi_str_of(path));
    if (!endpoint)
        return SEGUE_E_NOT_FOUND;
    endpoint->is_removed = true;
    sgi_http_endpoints_sweep(listener);
    /* the listener may have waited for this endpoint only */
    if (!listener->carrier.retired)
        sgi_carrier_request_work(&listener->carrier, SGI_WORK_OWN);
    return SEGUE_OK;
}

void sgi_http_listener_free_memory(segue_listener *listener)
{
    const sgi_mem *mem = listener->room.mem;
    while (!STAILQ_EMPTY(&listener->endpoints))
        free_endpoint(listener, STAILQ_FIRST(&listener->endpoints));
    sgi_listen_close(&listener->socket);
    sgi_link_gate_free(listener->gate);
    sgi_board_drop_store(listener->options.board_store);
    sgi_board_cache_unref(listener->board_cache);
    for (size_t i = 0; i < SGI_LISTEN_TEXTS; i++)
        sgi_text_free(mem, listener->texts[i]);
    sgi_text_free(mem, listener->url);
    sgi_buf_free(&listener->room);
    sgi_buf_free(&listener->text);
    listener->carrier.magic = 0;
    sgi_free(mem, listener, sizeof *listener);
}

static void unref(segue_listener *listener)
{
    if (!--listener->refs)
        sgi_http_listener_free_memory(listener);
}

/* ---- work ---- */

static void accepted(void *user, int fd)
{
    segue_listener *listener = user;
    if (!sgi_http_conn_open(listener, fd))
        sgi_acceptor_on_conn_closed(&listener->acceptor);
}

/* Lets the exchanges go on that came before the servers had recovered. */
static void open_exchanges(segue_listener *listener)
{
    sgi_http_conn *conn;
    listener->is_open = true;
    TAILQ_FOREACH(conn, &listener->conns, in_listener)
        sgi_carrier_request_work(&conn->transport.carrier, SGI_WORK_OWN);
}

void sgi_http_listener_report(const segue_listener *listener, sgi_event_id id)
{
    sgi_engine *engine = engine_of(listener);
    if (listener->by_hand || !sgi_event_is_wanted(engine, id))
        return;
    segue_event event = sgi_event_new(engine, id);
    event.address = listener->url;
    sgi_event_report(engine, id, &event);
}

static void open_socket(segue_listener *listener)
{
    if (listener->acceptor.running)
        return;
    sgi_acceptor_start(&listener->acceptor, listener->carrier.runtime, &listener->socket,
                       listener->options.max_connections, accepted, listener);
    sgi_http_listener_report(listener, SGI_EVENT_listener_opened);
}

static void close_socket(segue_listener *listener)
{
    if (listener->acceptor.running)
        sgi_http_listener_report(listener, SGI_EVENT_listener_closed);
    sgi_acceptor_stop(&listener->acceptor);
    sgi_listen_close(&listener->socket);
}

static void maybe_end(segue_listener *listener)
{
    if (listener->stage != SGI_LISTENER_SHUT || !TAILQ_EMPTY(&listener->conns) ||
        listener->carrier.retired)
        return;
    sgi_engine_clear_timer(engine_of(listener), &listener->deadline);
    sgi_bearer_gate_end(listener->bearer, true);
    listener->bearer = NULL;
    listener->policy.is_public = NULL;
    sgi_http_endpoint *endpoint;
    STAILQ_FOREACH(endpoint, &listener->endpoints, link)
        leave_server(endpoint);
    sgi_carrier_retire(&listener->carrier);
}

static void cut_all(segue_listener *listener)
{
    sgi_http_conn *conn, *next;
    SGI_TAILQ_EACH(conn, &listener->conns, in_listener, next)
        sgi_http_conn_cut(conn);
}

static void drain_conns(segue_listener *listener)
{
    sgi_http_conn *conn, *next;
    listener->idle_until_ms = sgi_time_add(sgi_now(sgi_engine_env(engine_of(listener))),
                                           listener->options.idle_drain_ms);
    SGI_TAILQ_EACH(conn, &listener->conns, in_listener, next)
        sgi_http_conn_drain(conn);
}

/* True when the socket belongs to another program too, which then serves the clients that
 * wait at the socket. */
static bool is_inherited(const segue_listener *listener)
{
    return strncmp(listener->options.address, "systemd", 7) == 0;
}

static void shut(segue_listener *listener)
{
    listener->stage = SGI_LISTENER_SHUT;
    sgi_engine_clear_timer(engine_of(listener), &listener->look);
    if (listener->options.idle_drain_ms && !is_inherited(listener))
        sgi_acceptor_take_waiting(&listener->acceptor);
    close_socket(listener);
    drain_conns(listener);
    maybe_end(listener);
}

static void deadline_over(sgi_timer *timer)
{
    segue_listener *listener = SGI_OWNER(timer, segue_listener, deadline);
    shut(listener);
    cut_all(listener);
}

static bool shares_socket(const segue_listener *listener)
{
    return listener->options.reuse_port || is_inherited(listener);
}

static bool client_may_return(const segue_listener *listener)
{
    const sgi_http_endpoint *endpoint;
    STAILQ_FOREACH(endpoint, &listener->endpoints, link)
        if (endpoint->is_added && sgi_serve_client_may_return(endpoint->server))
            return true;
    return false;
}

static void look_on(sgi_timer *timer);

/* Continues closing when no client can come back any more. Otherwise sets a timer for the
 * next check. */
static void look(segue_listener *listener)
{
    if (listener->stage != SGI_LISTENER_RETURNS)
        return;
    if (!shares_socket(listener) && client_may_return(listener))
        sgi_engine_set_timer(engine_of(listener), &listener->look, LOOK_MS, look_on);
    else
        shut(listener);
}

static void look_on(sgi_timer *timer)
{
    look(SGI_OWNER(timer, segue_listener, look));
}

/* True when all servers have recovered. Until then clients wait, and are not refused. A
 * path that is added later answers 503 until its server has recovered. */
static bool are_all_open(const segue_listener *listener)
{
    const sgi_http_endpoint *endpoint;
    STAILQ_FOREACH(endpoint, &listener->endpoints, link)
        if (!endpoint->is_open && !endpoint->is_removed)
            return false;
    return true;
}

static void drain(segue_listener *listener)
{
    if (listener->stage == SGI_LISTENER_OPEN) {
        listener->stage = SGI_LISTENER_RETURNS;
        sgi_engine_set_timer(engine_of(listener), &listener->deadline,
                             listener->options.drain_ms, deadline_over);
        drain_conns(listener);
    }
    look(listener);
}

static void work(sgi_carrier *carrier, uint32_t bits)
{
    segue_listener *listener = listener_of(carrier);
    if ((bits & SGI_WORK_CLOSE) || listener->closing)
        drain(listener);
    else if (are_all_open(listener) && listener->by_hand)
        open_exchanges(listener);
    else if (are_all_open(listener))
        open_socket(listener);
}

/* Ends the listener when the runtime is freed. The runtime ends each connection of the
 * listener separately, before or after the listener. */
static void abandon(sgi_carrier *carrier)
{
    segue_listener *listener = listener_of(carrier);
    sgi_http_conn *conn, *next;
    listener->stage = SGI_LISTENER_SHUT;
    sgi_engine_clear_timer(engine_of(listener), &listener->look);
    close_socket(listener);
    SGI_TAILQ_EACH(conn, &listener->conns, in_listener, next)
        conn->transport.carrier.ops->abandon(&conn->transport.carrier);
    maybe_end(listener);
}

static void destroy(sgi_carrier *carrier)
{
    unref(listener_of(carrier));
}

const sgi_carrier_ops sgi_http_listener_carrier_ops = {
    .work = work, .abandon = abandon, .destroy = destroy};

void sgi_http_listener_remove_conn(segue_listener *listener, sgi_http_conn *conn)
{
    TAILQ_REMOVE(&listener->conns, conn, in_listener);
    sgi_http_ready_forget(conn);
    sgi_http_endpoint_leave(conn->endpoint);
    if (listener->by_hand) {
        listener->exchanges--;
    } else {
        sgi_acceptor_on_conn_closed(&listener->acceptor);
        sgi_http_listener_report(listener, SGI_EVENT_connection_closed);
    }
    if (TAILQ_EMPTY(&listener->conns))
        look(listener);
    maybe_end(listener);
}

void sgi_http_listener_close(segue_listener *listener)
{
    listener->closing = true;
    if (!listener->carrier.retired)
        sgi_carrier_request_work(&listener->carrier, SGI_WORK_CLOSE);
}

void sgi_http_listener_release_handle(segue_listener *listener)
{
    unref(listener);
}
