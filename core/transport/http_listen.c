/* Making a listener: its options, its socket, the gate for tokens, and the addition of
 * more endpoints. */
#include "transport/http_listener.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include "base/absent.h"
#include "base/limit.h"

/* A shorter secret can be guessed. */
#define BOARD_TOKEN_MIN 16

/* ---- options ---- */

static const char **text_slots(segue_listen_options *o, size_t i)
{
    const char **const slots[SGI_LISTEN_TEXTS] = {
        &o->address,    &o->path,           &o->health_path,  &o->cert_file,
        &o->key_file,   &o->client_ca_file, &o->hosts,        &o->origins,
        &o->ready_path, &o->live_path,      &o->metrics_path, &o->tokens_file,
        &o->board_path, &o->board_token};
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
    const char *checks[] = {o->health_path, o->ready_path, o->live_path, o->metrics_path,
                            o->board_path};
    if (!is_path(o->path))
        return "path has to begin with / and must not have blanks, ? or #";
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (checks[i] && !is_path(checks[i]))
            return "health_path, ready_path, live_path, metrics_path and board_path have "
                   "to begin with / and must not have blanks, ? or #";
        if (checks[i] && is_path_of_another(o->path, checks, i))
            return "path, health_path, ready_path, live_path, metrics_path and "
                   "board_path have to be different";
    }
    if (o->board_path && o->board_path[1] &&
        o->board_path[strlen(o->board_path) - 1] == '/')
        return "board_path must not end with /";
    if (!o->board_path &&
        (o->board_store || o->board_read_only || o->board_redact || o->board_token))
        return "board_store, board_read_only, board_redact and board_token need "
               "board_path";
    if (o->board_token && strlen(o->board_token) < BOARD_TOKEN_MIN)
        return "board_token has fewer than 16 bytes";
    if (o->board_token && !sgi_bearer_is_token(sgi_str_of(o->board_token)))
        return "board_token must have only letters, digits and -._~+/, and = at the end";
    if (o->board_token && (o->bearer || o->tokens_file))
        return "board_token excludes bearer and tokens_file";
    if (!o->cert_file && (o->key_file || o->client_ca_file || o->client_cert_required))
        return "key_file, client_ca_file and client_cert_required need cert_file";
    if (o->bearer && o->tokens_file)
        return "bearer and tokens_file exclude each other";
    if (o->client_cert_required && !o->client_ca_file)
        return "client_cert_required needs client_ca_file";
    return NULL;
}

/* The members of the options that describe a socket have no meaning without one. */
static const char *problem_by_hand(const segue_listen_options *o)
{
    if (o->address || o->port || o->reuse_port || o->cert_file || o->key_file ||
        o->client_ca_file || o->client_cert_required)
        return "address, port, reuse_port and the TLS options need a socket, and this "
               "listener has none";
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
        {"idle_drain_ms", o->idle_drain_ms, 0, INT64_MAX},
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

/* ---- the address ---- */

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
    bool is_ip =
        !listener->by_hand && describe_socket(listener->socket.fd, host, &policy->local);
    sgi_buf_init(&url, listener->room.mem);
    if (is_ip) {
        sgi_buf_add_str(&url, sgi_str_of(o->cert_file ? "https://" : "http://"));
        host_at = url.len;
        sgi_buf_add_str(&url, sgi_str_of(host));
        sgi_buf_add_char(&url, ':');
        sgi_buf_add_int(&url, listener->socket.port);
    } else if (!listener->by_hand) {
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
    policy->metrics_path = sgi_str_of(o->metrics_path);
    policy->board_path = sgi_str_of(o->board_path);
    policy->hosts = sgi_str_of(o->hosts);
    policy->origins = sgi_str_of(o->origins);
    policy->cors = o->cors != 0;
    policy->secure = o->cert_file != NULL;
    policy->tokens = o->bearer || o->tokens_file;
    return listener->url != NULL;
}

static bool is_metadata(const void *user, sgi_str path)
{
    const segue_listener *listener = user;
    return sgi_bearer_is_metadata_path(listener->bearer, path);
}

static sgi_http_endpoint_state endpoint_at(const void *user, sgi_str path)
{
    const sgi_http_endpoint *endpoint = sgi_http_endpoint_find(user, path);
    if (!endpoint)
        return SGI_HTTP_ENDPOINT_NONE;
    return endpoint->is_open ? SGI_HTTP_ENDPOINT_OPEN : SGI_HTTP_ENDPOINT_STARTS;
}

/* Makes the gate that checks tokens. A listener on all addresses has no URL of its own,
 * so the options must name the resource. */
static segue_status make_gate(segue_runtime *rt, segue_listener *listener,
                              char why[SGI_WHY_SIZE])
{
    const segue_listen_options *o = &listener->options;
    sgi_str bound = listener->policy.bound;
    bool is_url = bound.n && !sgi_str_eq(bound, SGI_STR("0.0.0.0")) &&
                  !sgi_str_eq(bound, SGI_STR("::"));
    if (o->tokens_file)
        return sgi_bearer_gate_new_for_tokens(rt, o->tokens_file, &listener->bearer, why);
    if (!o->bearer)
        return SEGUE_OK;
    segue_status status = sgi_bearer_gate_new(rt, o->bearer, listener->url, is_url,
                                              o->path, &listener->bearer, why);
    /* the application owns the bearer options, so the pointer is not kept */
    listener->options.bearer = NULL;
    listener->policy.is_public = status == SEGUE_OK ? is_metadata : NULL;
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
static segue_status prepare(segue_runtime *rt, segue_listener *listener,
                            char why[SGI_WHY_SIZE])
{
    sgi_listen_options listen;
    sgi_tls_files files = tls_files(listener);
    if (listener->by_hand)
        return describe(listener) ? make_gate(rt, listener, why) : SEGUE_E_NOMEM;
    read_address(&listener->options, &listen);
    segue_status status =
        sgi_link_gate_new(rt, files.cert ? &files : NULL, &listener->gate, why);
    if (status == SEGUE_E_INVALID)
        return SEGUE_E_IO;
    if (status == SEGUE_OK)
        status = sgi_listen_open(&listener->socket, listener->room.mem, &listen, why);
    if (status != SEGUE_OK)
        return status == SEGUE_E_INVALID || status == SEGUE_E_NOMEM ? status : SEGUE_E_IO;
    return describe(listener) ? make_gate(rt, listener, why) : SEGUE_E_NOMEM;
}

static segue_listener *make(segue_runtime *rt, segue_server *server,
                            const segue_listen_options *options, bool by_hand)
{
    const sgi_engine *engine = sgi_runtime_engine(rt);
    const sgi_mem *mem = sgi_engine_mem(engine);
    segue_listener *listener = sgi_zalloc(mem, sizeof *listener);
    if (!listener)
        return NULL;
    listener->carrier.magic = SGI_MAGIC_LISTENER;
    listener->carrier.ops = &sgi_http_listener_carrier_ops;
    listener->carrier.attached = true;
    listener->carrier.grace_ms = SGI_GRACE_MS;
    listener->refs = 1;
    listener->socket = (sgi_listen_socket){.fd = -1, .mem = mem};
    STAILQ_INIT(&listener->endpoints);
    listener->options = *options;
    sgi_board_keep_store(options->board_store);
    listener->board_cache = options->board_path ? sgi_board_cache_new(mem) : NULL;
    listener->trusted = options->unauthenticated_tasks != 0;
    listener->by_hand = by_hand;
    listener->policy.endpoint_at = endpoint_at;
    listener->policy.user = listener;
    listener->limits = (sgi_http1_limits){.max_head = (size_t)options->max_header_bytes,
                                          .max_body = sgi_engine_max_message(engine)};
    TAILQ_INIT(&listener->conns);
    sgi_http_ready_init(&listener->ready);
    sgi_buf_init(&listener->room, mem);
    sgi_buf_init(&listener->text, mem);
    if (copy_texts(listener) && sgi_http_endpoint_make(listener, server, options->path))
        return listener;
    sgi_http_listener_free_memory(listener);
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
    sgi_http_endpoint *endpoint = STAILQ_FIRST(&listener->endpoints);
    endpoint->is_added = true;
    listener->refs++; /* the reference of the application's handle */
    sgi_carrier_add(rt, &listener->carrier);
    return sgi_server_add_listener(server, &endpoint->server_listener);
}

static segue_status listen_as(bool by_hand, segue_runtime *rt, segue_server *server,
                              const segue_listen_options *options, segue_listener **out,
                              char why[SGI_WHY_SIZE])
{
    segue_listen_options full = *options;
    bool any_path = by_hand && !full.path;
    if (any_path)
        full.path = "/";
    const char *problem = by_hand ? problem_by_hand(&full) : NULL;
    put_defaults(&full);
    if (!problem)
        problem = problem_of(&full);
    if (problem)
        snprintf(why, SGI_WHY_SIZE, "%s", problem);
    if (problem || !check_numbers(&full, why))
        return SEGUE_E_INVALID;
    if (full.metrics_path && !sgi_serve_has_metrics()) {
        snprintf(why, SGI_WHY_SIZE, "%s", SGI_ABSENT_TEXT("metrics", "SEGUE_METRICS"));
        return SEGUE_E_UNSUPPORTED;
    }
    if (full.board_path && !sgi_board_is_there()) {
        snprintf(why, SGI_WHY_SIZE, "%s",
                 SGI_ABSENT_TEXT("the task board", "SEGUE_BOARD"));
        return SEGUE_E_UNSUPPORTED;
    }
    snprintf(why, SGI_WHY_SIZE, "out of memory");
    segue_listener *listener = make(rt, server, &full, by_hand);
    if (!listener)
        return SEGUE_E_NOMEM;
    STAILQ_FIRST(&listener->endpoints)->any_path = any_path;
    segue_status status = prepare(rt, listener, why);
    sgi_runtime_lock(rt);
    if (status == SEGUE_OK && (status = install(rt, server, listener)) != SEGUE_OK)
        snprintf(why, SGI_WHY_SIZE, "the server is closed");
    if (status != SEGUE_OK)
        sgi_bearer_gate_end(listener->bearer, false);
    sgi_runtime_unlock(rt);
    if (status == SEGUE_OK)
        *out = listener;
    else
        sgi_http_listener_free_memory(listener);
    return status;
}

segue_status sgi_http_listen(segue_runtime *rt, segue_server *server,
                             const segue_listen_options *options, segue_listener **out,
                             char why[SGI_WHY_SIZE])
{
    return listen_as(false, rt, server, options, out, why);
}

segue_status sgi_http_listen_by_hand(segue_runtime *rt, segue_server *server,
                                     const segue_listen_options *options,
                                     segue_listener **out, char why[SGI_WHY_SIZE])
{
    return listen_as(true, rt, server, options, out, why);
}

/* ---- more endpoints ---- */

static bool is_taken(const segue_listener *listener, const char *path)
{
    const segue_listen_options *o = &listener->options;
    const char *checks[] = {o->health_path, o->ready_path, o->live_path, o->metrics_path,
                            o->board_path};
    const sgi_http_endpoint *endpoint;
    bool found = listener->bearer &&
                 sgi_bearer_is_metadata_path(listener->bearer, sgi_str_of(path));
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        found |= checks[i] && strcmp(checks[i], path) == 0;
    STAILQ_FOREACH(endpoint, &listener->endpoints, link)
        found |= !endpoint->is_removed && strcmp(endpoint->path, path) == 0;
    return found;
}

static segue_status add(segue_listener *listener, segue_server *server, const char *path,
                        char why[SGI_WHY_SIZE])
{
    if (listener->closing || listener->stage != SGI_LISTENER_OPEN ||
        listener->carrier.retired || sgi_serve_is_closed(server)) {
        snprintf(why, SGI_WHY_SIZE, "the listener or the server is closed");
        return SEGUE_E_CLOSED;
    }
    if (is_taken(listener, path)) {
        snprintf(why, SGI_WHY_SIZE, "the listener has the path %s already", path);
        return SEGUE_E_EXISTS;
    }
    snprintf(why, SGI_WHY_SIZE, "out of memory");
    sgi_http_endpoint *endpoint = sgi_http_endpoint_make(listener, server, path);
    if (!endpoint)
        return SEGUE_E_NOMEM;
    endpoint->is_added = true;
    sgi_http_endpoints_sweep(listener);
    return sgi_server_add_listener(server, &endpoint->server_listener);
}

segue_status sgi_http_listener_add(segue_listener *listener, segue_server *server,
                                   const char *path, char why[SGI_WHY_SIZE])
{
    if (!is_path(path)) {
        snprintf(why, SGI_WHY_SIZE,
                 "path has to begin with / and must not have blanks, ? or #");
        return SEGUE_E_INVALID;
    }
    sgi_runtime_lock(listener->carrier.runtime);
    segue_status status = add(listener, server, path, why);
    sgi_runtime_unlock(listener->carrier.runtime);
    return status;
}

/* The certificates are read before the keys or tokens, and used after them: each file
 * that cannot be used keeps all files as they are. */
segue_status sgi_http_listener_reload(segue_listener *listener, char why[SGI_WHY_SIZE])
{
    sgi_tls_files files = tls_files(listener);
    sgi_tls_setup *fresh = NULL;
    segue_status tls = sgi_link_gate_read(listener->gate, &files, &fresh, why);
    if (tls != SEGUE_OK && tls != SEGUE_E_STATE)
        return tls == SEGUE_E_INVALID ? SEGUE_E_IO : tls;
    segue_status status =
        sgi_bearer_gate_reload(listener->carrier.runtime, &listener->bearer, why);
    if (!fresh)
        return status;
    if (status != SEGUE_OK && status != SEGUE_E_STATE) {
        sgi_tls_setup_free(fresh);
        return status;
    }
    sgi_link_gate_use(listener->gate, fresh);
    return SEGUE_OK;
}
