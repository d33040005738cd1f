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
 * processes. Connections that are left at the deadline are cut. After the last
 * connection, the listener's sgi_server_listener is removed from the server, which may
 * wait for the removal, and the carrier retires.
 *
 * At the maximum number of connections, new connections wait in the backlog and are
 * accepted when another connection ends. */
#include "transport/http_listener.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include "base/limit.h"
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

/* ---- memory ---- */

static void free_listener(segue_listener *listener)
{
    const sgi_mem *mem = listener->room.mem;
    sgi_listen_close(&listener->socket);
    sgi_link_gate_free(listener->gate);
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
        free_listener(listener);
}

/* ---- work ---- */

static void accepted(void *user, int fd)
{
    segue_listener *listener = user;
    if (!sgi_http_conn_open(listener, fd))
        sgi_acceptor_on_conn_closed(&listener->acceptor);
}

static void open_socket(segue_listener *listener)
{
    if (!listener->acceptor.running)
        sgi_acceptor_start(&listener->acceptor, listener->carrier.runtime,
                           &listener->socket, listener->options.max_connections, accepted,
                           listener);
}

static void close_socket(segue_listener *listener)
{
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
    if (listener->has_listener)
        sgi_server_remove_listener(listener->server, &listener->server_listener);
    listener->has_listener = false;
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
    SGI_TAILQ_EACH(conn, &listener->conns, in_listener, next)
        sgi_http_conn_drain(conn);
}

static void shut(segue_listener *listener)
{
    listener->stage = SGI_LISTENER_SHUT;
    sgi_engine_clear_timer(engine_of(listener), &listener->look);
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
    const segue_listen_options *options = &listener->options;
    return options->reuse_port || strncmp(options->address, "systemd", 7) == 0;
}

static void look_on(sgi_timer *timer);

/* Continues closing when no client can come back any more. Otherwise sets a timer for the
 * next check. */
static void look(segue_listener *listener)
{
    if (listener->stage != SGI_LISTENER_RETURNS)
        return;
    if (!shares_socket(listener) && sgi_serve_client_may_return(listener->server))
        sgi_engine_set_timer(engine_of(listener), &listener->look, LOOK_MS, look_on);
    else
        shut(listener);
}

static void look_on(sgi_timer *timer)
{
    look(SGI_OWNER(timer, segue_listener, look));
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
    else if (listener->may_open)
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

static const sgi_carrier_ops carrier_ops = {
    .work = work, .abandon = abandon, .destroy = destroy};

void sgi_http_listener_remove_conn(segue_listener *listener, sgi_http_conn *conn)
{
    TAILQ_REMOVE(&listener->conns, conn, in_listener);
    sgi_acceptor_on_conn_closed(&listener->acceptor);
    if (TAILQ_EMPTY(&listener->conns))
        look(listener);
    maybe_end(listener);
}

/* ---- the server's record of this listener ---- */

static void on_server_open(sgi_server_listener *server_listener)
{
    segue_listener *listener =
        SGI_OWNER(server_listener, segue_listener, server_listener);
    listener->may_open = true;
    sgi_carrier_request_work(&listener->carrier, SGI_WORK_OWN);
}

static void on_server_close(sgi_server_listener *server_listener)
{
    sgi_http_listener_close(SGI_OWNER(server_listener, segue_listener, server_listener));
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

/* ---- making a listener ---- */

static const char **text_slots(segue_listen_options *o, size_t i)
{
    const char **const slots[SGI_LISTEN_TEXTS] = {
        &o->address,    &o->path,           &o->health_path, &o->cert_file,
        &o->key_file,   &o->client_ca_file, &o->hosts,       &o->origins,
        &o->ready_path, &o->live_path,      &o->tokens_file};
    return slots[i];
}

static void put_default(int64_t *value, int64_t standard)
{
    if (!*value)
        *value = standard;
}

static void put_default32(int32_t *value, int32_t standard)
{
    if (!*value)
        *value = standard;
}

static void put_defaults(segue_listen_options *o)
{
    if (!o->address)
        o->address = "127.0.0.1";
    if (!o->path)
        o->path = "/mcp";
    put_default(&o->max_header_bytes, 32 * 1024);
    put_default32(&o->max_connections, 16384);
    put_default32(&o->max_streams, 1024);
    put_default32(&o->max_sessions, 10000);
    put_default(&o->session_idle_ms, 30 * 60 * 1000);
    put_default(&o->max_replay_bytes, 1024 * 1024);
    put_default(&o->idle_timeout_ms, 75000);
    put_default(&o->header_timeout_ms, 10000);
    put_default(&o->body_timeout_ms, 30000);
    put_default(&o->write_timeout_ms, 60000);
    put_default(&o->keepalive_ms, 15000);
    put_default(&o->stream_after_ms, 200);
    put_default(&o->drain_ms, 10000);
}

/* True when the text is a URL path of visible ASCII characters without "?" and "#". */
static bool is_path(const char *path)
{
    if (*path != '/')
        return false;
    for (const char *c = path; *c; c++)
        if (*c <= ' ' || *c >= 127 || *c == '?' || *c == '#')
            return false;
    return true;
}

/* True when checks[at] is the path of the endpoint or of a check before it. */
static bool is_path_of_another(const char *path, const char *const *checks, size_t at)
{
    bool found = strcmp(checks[at], path) == 0;
    for (size_t i = 0; i < at; i++)
        found |= checks[i] && strcmp(checks[at], checks[i]) == 0;
    return found;
}

static const char *problem_of(const segue_listen_options *o)
{
    const char *checks[] = {o->health_path, o->ready_path, o->live_path};
    if (!is_path(o->path))
        return "path has to begin with / and must not have blanks, ? or #";
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (checks[i] && !is_path(checks[i]))
            return "health_path, ready_path and live_path have to begin with / and must "
                   "not have blanks, ? or #";
        if (checks[i] && is_path_of_another(o->path, checks, i))
            return "path, health_path, ready_path and live_path have to be different";
    }
    if (!o->cert_file && (o->key_file || o->client_ca_file || o->client_cert_required))
        return "key_file, client_ca_file and client_cert_required need cert_file";
    if (o->bearer && o->tokens_file)
        return "bearer and tokens_file exclude each other";
    if (o->client_cert_required && !o->client_ca_file)
        return "client_cert_required needs client_ca_file";
    return NULL;
}

/* Checks the numbers of the options. Returns false when a number is out of its range;
 * `why` then names the number and its range. */
static bool check_numbers(const segue_listen_options *o, char why[SGI_WHY_SIZE])
{
    const sgi_range numbers[] = {
        {"max_header_bytes", o->max_header_bytes, 1024, 1 << 30},
        {"max_connections", o->max_connections, 0, INT64_MAX},
        {"max_streams", o->max_streams, 0, INT64_MAX},
        {"max_sessions", o->max_sessions, 0, INT64_MAX},
        {"max_replay_bytes", o->max_replay_bytes, 0, 1 << 30},
        {"session_idle_ms", o->session_idle_ms, 0, INT64_MAX},
        {"idle_timeout_ms", o->idle_timeout_ms, 0, INT64_MAX},
        {"header_timeout_ms", o->header_timeout_ms, 0, INT64_MAX},
        {"body_timeout_ms", o->body_timeout_ms, 0, INT64_MAX},
        {"write_timeout_ms", o->write_timeout_ms, 0, INT64_MAX},
        {"keepalive_ms", o->keepalive_ms, 0, INT64_MAX},
        {"stream_after_ms", o->stream_after_ms, 0, INT64_MAX},
        {"drain_ms", o->drain_ms, 0, INT64_MAX},
    };
    return sgi_ranges_check(numbers, sizeof numbers / sizeof *numbers, why, SGI_WHY_SIZE);
}

/* Reads the address option: "unix:PATH", "systemd", "systemd:NAME", or an IP address. */
static void read_address(const segue_listen_options *o, sgi_listen_options *listen)
{
    *listen = (sgi_listen_options){
        .address = o->address, .port = o->port, .reuse_port = o->reuse_port != 0};
    if (strncmp(o->address, "unix:", 5) == 0) {
        listen->kind = SGI_LISTEN_UNIX;
        listen->path = o->address + 5;
    } else if (strncmp(o->address, "systemd", 7) == 0 &&
               (!o->address[7] || o->address[7] == ':')) {
        listen->kind = SGI_LISTEN_INHERITED;
        listen->name = o->address[7] && o->address[8] ? o->address + 8 : NULL;
    }
}

static bool copy_texts(segue_listener *listener)
{
    for (size_t i = 0; i < SGI_LISTEN_TEXTS; i++) {
        const char **slot = text_slots(&listener->options, i);
        if (!slot || !*slot)
            continue;
        listener->texts[i] = sgi_text_dup(listener->room.mem, sgi_str_of(*slot));
        if (!listener->texts[i])
            return false;
        *slot = listener->texts[i];
    }
    return true;
}

static bool is_loopback6(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

/* Writes the address that the socket is bound to; an IPv6 address gets brackets. Returns
 * false for a socket without an IP address. */
static bool describe_socket(int fd, char text[INET6_ADDRSTRLEN + 2], bool *loopback)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } own = {0};
    socklen_t len = sizeof own;
    char host[INET6_ADDRSTRLEN];
    *loopback = true;
    if (getsockname(fd, &own.any, &len) != 0)
        return false;
    if (own.any.sa_family == AF_INET) {
        *loopback = ntohl(own.in.sin_addr.s_addr) >> 24 == 127;
        return inet_ntop(AF_INET, &own.in.sin_addr, text, INET6_ADDRSTRLEN) != NULL;
    }
    if (own.any.sa_family != AF_INET6 ||
        !inet_ntop(AF_INET6, &own.in6.sin6_addr, host, sizeof host))
        return false;
    *loopback = is_loopback6(&own.in6.sin6_addr);
    snprintf(text, INET6_ADDRSTRLEN + 2, "[%s]", host);
    return true;
}

/* Returns the address within the listener's URL, without brackets. */
static sgi_str address_in(const char *url, size_t at, const char *host)
{
    size_t edge = *host == '[';
    return (sgi_str){url + at + edge, strlen(host) - 2 * edge};
}

static bool describe(segue_listener *listener)
{
    char host[INET6_ADDRSTRLEN + 2] = "";
    size_t host_at = 0;
    const segue_listen_options *o = &listener->options;
    sgi_http_policy *policy = &listener->policy;
    sgi_buf url;
    bool is_ip = describe_socket(listener->socket.fd, host, &policy->local);
    sgi_buf_init(&url, listener->room.mem);
    if (is_ip) {
        sgi_buf_add_str(&url, sgi_str_of(o->cert_file ? "https://" : "http://"));
        host_at = url.len;
        sgi_buf_add_str(&url, sgi_str_of(host));
        sgi_buf_add_char(&url, ':');
        sgi_buf_add_int(&url, listener->socket.port);
    } else {
        sgi_buf_add_str(&url, sgi_str_of(o->address));
        sgi_buf_add_char(&url, ':');
    }
    sgi_buf_add_str(&url, sgi_str_of(o->path));
    if (!url.failed)
        listener->url = sgi_text_dup(url.mem, sgi_buf_str(&url));
    sgi_buf_free(&url);
    if (is_ip && listener->url)
        policy->bound = address_in(listener->url, host_at, host);
    policy->path = sgi_str_of(o->path);
    policy->health_path = sgi_str_of(o->health_path);
    policy->ready_path = sgi_str_of(o->ready_path);
    policy->live_path = sgi_str_of(o->live_path);
    policy->hosts = sgi_str_of(o->hosts);
    policy->origins = sgi_str_of(o->origins);
    policy->cors = o->cors != 0;
    policy->secure = o->cert_file != NULL;
    policy->tokens = o->bearer || o->tokens_file;
    return listener->url != NULL;
}

static bool is_metadata(const void *gate, sgi_str path)
{
    return sgi_bearer_is_metadata_path(gate, path);
}

/* Makes the gate that checks tokens. A listener on all addresses has no URL of its own,
 * so the options must name the resource. */
static segue_status make_gate(segue_runtime *rt, segue_server *server,
                              segue_listener *listener, char why[SGI_WHY_SIZE])
{
    const segue_listen_options *o = &listener->options;
    sgi_str bound = listener->policy.bound;
    bool is_url = bound.n && !sgi_str_eq(bound, SGI_STR("0.0.0.0")) &&
                  !sgi_str_eq(bound, SGI_STR("::"));
    if (o->tokens_file)
        return sgi_bearer_gate_new_for_tokens(rt, server, o->tokens_file,
                                              &listener->bearer, why);
    if (!o->bearer)
        return SEGUE_OK;
    segue_status status = sgi_bearer_gate_new(rt, server, o->bearer, listener->url,
                                              is_url, o->path, &listener->bearer, why);
    /* the application owns the bearer options, so the pointer is not kept */
    listener->options.bearer = NULL;
    listener->policy.is_public = status == SEGUE_OK ? is_metadata : NULL;
    listener->policy.user = listener->bearer;
    return status;
}

static sgi_tls_files tls_files(const segue_listener *listener)
{
    const segue_listen_options *o = &listener->options;
    return (sgi_tls_files){o->cert_file, o->key_file, o->client_ca_file,
                           o->client_cert_required != 0};
}

/* Does the steps of creating a listener that need no lock: TLS, the socket and the gate
 * for tokens. */
static segue_status prepare(segue_runtime *rt, segue_server *server,
                            segue_listener *listener, char why[SGI_WHY_SIZE])
{
    sgi_listen_options listen;
    sgi_tls_files files = tls_files(listener);
    read_address(&listener->options, &listen);
    segue_status status =
        sgi_link_gate_new(rt, files.cert ? &files : NULL, &listener->gate, why);
    if (status == SEGUE_E_INVALID)
        return SEGUE_E_IO;
    if (status == SEGUE_OK)
        status = sgi_listen_open(&listener->socket, listener->room.mem, &listen, why);
    if (status != SEGUE_OK)
        return status == SEGUE_E_INVALID || status == SEGUE_E_NOMEM ? status : SEGUE_E_IO;
    return describe(listener) ? make_gate(rt, server, listener, why) : SEGUE_E_NOMEM;
}

static segue_listener *make(segue_runtime *rt, const segue_listen_options *options)
{
    const sgi_engine *engine = sgi_runtime_engine(rt);
    const sgi_mem *mem = sgi_engine_mem(engine);
    segue_listener *listener = sgi_zalloc(mem, sizeof *listener);
    if (!listener)
        return NULL;
    listener->carrier.magic = SGI_MAGIC_LISTENER;
    listener->carrier.ops = &carrier_ops;
    listener->carrier.attached = true;
    listener->carrier.grace_ms = SGI_GRACE_MS;
    listener->refs = 1;
    listener->socket = (sgi_listen_socket){.fd = -1, .mem = mem};
    listener->server_listener =
        (sgi_server_listener){.open = on_server_open, .close = on_server_close};
    listener->options = *options;
    listener->trusted = options->unauthenticated_tasks != 0;
    listener->limits = (sgi_http1_limits){.max_head = (size_t)options->max_header_bytes,
                                          .max_body = sgi_engine_max_message(engine)};
    TAILQ_INIT(&listener->conns);
    sgi_buf_init(&listener->room, mem);
    sgi_buf_init(&listener->text, mem);
    if (copy_texts(listener))
        return listener;
    free_listener(listener);
    return NULL;
}

/* Adds the listener to the runtime and to the server. Returns SEGUE_E_CLOSED when the
 * runtime or the server has ended. The caller holds the lock. */
static segue_status install(segue_runtime *rt, segue_server *server,
                            segue_listener *listener)
{
    if (!sgi_runtime_is_open(rt))
        return SEGUE_E_CLOSED;
    if (sgi_serve_is_closed(server))
        return SEGUE_E_CLOSED;
    listener->server = server;
    listener->has_listener = true;
    listener->refs++; /* the reference of the application's handle */
    sgi_carrier_add(rt, &listener->carrier);
    return sgi_server_add_listener(server, &listener->server_listener);
}

segue_status sgi_http_listen(segue_runtime *rt, segue_server *server,
                             const segue_listen_options *options, segue_listener **out,
                             char why[SGI_WHY_SIZE])
{
    segue_listen_options full = *options;
    put_defaults(&full);
    const char *problem = problem_of(&full);
    if (problem)
        snprintf(why, SGI_WHY_SIZE, "%s", problem);
    if (problem || !check_numbers(&full, why))
        return SEGUE_E_INVALID;
    snprintf(why, SGI_WHY_SIZE, "out of memory");
    segue_listener *listener = make(rt, &full);
    if (!listener)
        return SEGUE_E_NOMEM;
    segue_status status = prepare(rt, server, listener, why);
    sgi_runtime_lock(rt);
    if (status == SEGUE_OK && (status = install(rt, server, listener)) != SEGUE_OK)
        snprintf(why, SGI_WHY_SIZE, "the server is closed");
    if (status != SEGUE_OK)
        sgi_bearer_gate_end(listener->bearer, false);
    sgi_runtime_unlock(rt);
    if (status == SEGUE_OK)
        *out = listener;
    else
        free_listener(listener);
    return status;
}

segue_status sgi_http_listener_reload(segue_listener *listener, char why[SGI_WHY_SIZE])
{
    sgi_tls_files files = tls_files(listener);
    segue_status status =
        sgi_bearer_gate_reload(listener->carrier.runtime, &listener->bearer, why);
    if (status == SEGUE_E_STATE || (status == SEGUE_OK && files.cert))
        status = sgi_link_gate_reload(listener->gate, &files, why);
    return status == SEGUE_E_INVALID ? SEGUE_E_IO : status;
}
