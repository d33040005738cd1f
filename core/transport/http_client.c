/* The transport of an HTTP client. The session's conversation carries no bytes itself:
 * the engine marks exchanges, and a flush of this transport begins, continues or drops
 * the marked exchanges.
 *
 * When the transport ends, it drops running exchanges, and ends a session of the
 * versions that begin with initialize by a DELETE request. Messages that get no answer
 * (such as a cancellation) may still be sent for a short time. */
#include "transport/http_client.h"

#include "base/map.h"
#include "transport/http_client_exchange.h"
#include "wire/url.h"

#include <stdio.h>
#include <errno.h>
#include <unistd.h>

#define DEFAULT_CONNECTIONS 256
#define DEFAULT_CONNECT_MS 10000
#define DEFAULT_SILENCE_MS 60000
#define SESSION_ID_MAX 4096

static sgi_http_client *client_of(segue_transport *transport)
{
    return SGI_OWNER(transport, sgi_http_client, base);
}

static sgi_engine *engine_of(const sgi_http_client *client)
{
    return sgi_runtime_engine(sgi_transport_runtime(&client->base));
}

/* ---- functions of the transport ---- */

static void start(segue_transport *transport)
{
    sgi_conn *conn = sgi_transport_conn(transport);
    const sgi_http_client *client = client_of(transport);
    sgi_conn_use_http_exchanges(conn, client->endpoint_hash, client->name.p);
    sgi_conn_start(conn);
}

static void flush(segue_transport *transport)
{
    sgi_http_client *client = client_of(transport);
    sgi_conn *parent = sgi_transport_conn(transport);
    sgi_conn *conn;
    while ((conn = sgi_exchange_next(parent))) {
        sgi_client_exchange *exchange = sgi_conn_transport(conn);
        if (exchange)
            sgi_client_exchange_update(exchange);
        else
            sgi_client_exchange_begin(client, conn);
    }
}

static void end_if_quiet(sgi_http_client *client)
{
    if (client->closing && TAILQ_EMPTY(&client->exchanges) && !client->farewell)
        sgi_transport_end(&client->base);
}

/* True when a session id is visible ASCII (2025-11-25 basic/transports, "Session
 * Management", 1) and has at most SESSION_ID_MAX characters. */
static bool is_session_id(sgi_str id)
{
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] < '!' || id.p[i] > '~')
            return false;
    return id.n <= SESSION_ID_MAX;
}

bool sgi_http_client_start_session(sgi_client_exchange *exchange, sgi_str session)
{
    sgi_http_client *client = exchange->client;
    if (!is_session_id(session)) {
        sgi_exchange_on_permanent_failure(exchange->conn,
                                          "the server sent an invalid Mcp-Session-Id");
        return false;
    }
    sgi_buf_reset(&client->session, SIZE_MAX);
    sgi_buf_reset(&client->version, SIZE_MAX);
    sgi_buf_add_str(&client->session, session);
    client->wire_session++;
    return !client->session.failed;
}

void sgi_http_client_on_exchange_freed(sgi_http_client *client)
{
    if (client->closing && TAILQ_EMPTY(&client->exchanges) && !client->farewell)
        sgi_carrier_request_work(&client->base.carrier, SGI_WORK_OWN);
}

static void poke(segue_transport *transport)
{
    end_if_quiet(client_of(transport));
}

static void said_farewell(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome)
{
    sgi_http_client *client = user;
    (void)fetch;
    (void)outcome;
    client->farewell = NULL;
    sgi_http_client_on_exchange_freed(client);
}

static void ignore_head(void *user, sgi_fetch *fetch, int32_t status)
{
    (void)user;
    (void)fetch;
    (void)status;
}

static void ignore_bytes(void *user, sgi_fetch *fetch, const char *bytes, size_t len)
{
    (void)user;
    (void)fetch;
    (void)bytes;
    (void)len;
}

static const sgi_fetch_events farewell = {
    .head = ignore_head, .bytes = ignore_bytes, .done = said_farewell};

static void end_session(sgi_http_client *client)
{
    sgi_fetch_header_line lines[SGI_HTTP_HEADERS_MAX + 3];
    sgi_fetch_request request = {.method = SGI_FETCH_DELETE, .headers = lines};
    lines[0] =
        (sgi_fetch_header_line){SGI_STR("Mcp-Session-Id"), sgi_buf_str(&client->session)};
    lines[1] = (sgi_fetch_header_line){SGI_STR("MCP-Protocol-Version"),
                                       sgi_buf_str(&client->version)};
    size_t own = client->version.len ? 2 : 1;
    uint64_t token;
    sgi_str header = sgi_http_auth_header(client->auth, &token);
    if (header.n)
        lines[own++] = (sgi_fetch_header_line){SGI_STR("Authorization"), header};
    request.header_count =
        own + sgi_http_unpack_headers(sgi_buf_str(&client->headers), lines + own,
                                      SGI_HTTP_HEADERS_MAX);
    if (sgi_fetch_start(client->fetcher, &request, &farewell, client,
                        &client->farewell) != SEGUE_OK)
        client->farewell = NULL;
}

static void waited_enough(sgi_timer *timer)
{
    sgi_transport_end(&SGI_OWNER(timer, sgi_http_client, linger)->base);
}

static void finish(segue_transport *transport)
{
    sgi_http_client *client = client_of(transport);
    if (client->closing)
        return;
    client->closing = true;
    if (client->session.len)
        end_session(client);
    sgi_engine_set_timer(engine_of(client), &client->linger, SGI_LINGER_MS,
                         waited_enough);
    end_if_quiet(client);
}

static void release(segue_transport *transport)
{
    sgi_http_client *client = client_of(transport);
    sgi_client_exchange *exchange;
    client->closing = true;
    sgi_engine_clear_timer(engine_of(client), &client->linger);
    while ((exchange = TAILQ_FIRST(&client->exchanges)))
        sgi_client_exchange_drop(exchange, "closed");
    sgi_old_stream_release(client);
    if (client->farewell)
        sgi_fetch_cancel(client->farewell);
    client->farewell = NULL;
    if (client->auth)
        sgi_http_auth_release(client->auth);
    client->auth = NULL;
    sgi_fetcher_free(client->fetcher);
    client->fetcher = NULL;
    if (client->hook)
        sgi_header_hook_end(client->hook);
    client->hook = NULL;
}

static void destroy(segue_transport *transport)
{
    sgi_http_client *client = client_of(transport);
    const sgi_mem *mem = sgi_engine_mem(engine_of(client));
    sgi_old_stream_free(client);
    sgi_buf_free(&client->headers);
    sgi_buf_free(&client->url);
    sgi_buf_free(&client->name);
    sgi_buf_free(&client->session);
    sgi_buf_free(&client->version);
    sgi_free(mem, client, sizeof *client);
}

static const sgi_transport_ops ops = {
    .start = start,
    .reopen = start,
    .poke = poke,
    .flush = flush,
    .close = finish,
    .release = release,
    .destroy = destroy,
};

/* ---- making the transport ---- */

static int64_t or_default(int64_t value, int64_t standard)
{
    return value ? value : standard;
}

/* Checks that the TLS files of the options can be read. libcurl reads the files only when
 * a connection is made, and a wrong path must be reported now. */
static segue_status check_files(const segue_http_options *options, char why[SGI_WHY_SIZE])
{
    const char *files[] = {options->ca_file, options->cert_file, options->key_file};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] && access(files[i], R_OK) != 0) {
            sgi_transport_explain(why, files[i], errno);
            return SEGUE_E_IO;
        }
    return SEGUE_OK;
}

static segue_status make_fetcher(sgi_http_client *client, segue_runtime *rt,
                                 const char *url, const segue_http_options *options,
                                 char why[SGI_WHY_SIZE])
{
    sgi_fetch_settings settings = {
        .url = url,
        .ca_file = options->ca_file,
        .client_cert = options->cert_file,
        .client_key = options->key_file,
        .key_password = options->key_password,
        .proxy = options->proxy,
        .unix_socket = options->unix_socket,
        .insecure = options->insecure != 0,
        .http1_only = options->http1 != 0,
        .connect_timeout_ms = or_default(options->connect_timeout_ms, DEFAULT_CONNECT_MS),
        .max_fetches = (size_t)or_default(options->max_connections, DEFAULT_CONNECTIONS),
    };
    return sgi_fetcher_new(rt, &settings, &client->fetcher, why);
}

/* Returns a hash of the endpoint, never 0. Two endpoints with the same hash are treated
 * as one server. Such a collision costs one more message to one of the servers. */
static uint64_t hash_of_endpoint(const char *url, const char *unix_socket)
{
    static const uint64_t seed[2] = {0, 0};
    uint64_t hash = sgi_siphash(seed, url, strlen(url));
    if (unix_socket)
        hash += sgi_siphash(seed, unix_socket, strlen(unix_socket));
    return hash ? hash : 1;
}

/* Makes the endpoint's name for messages: origin and path of the URL. The query is left
 * out, because it can be secret. A URL with a password cannot be parsed, and the name is
 * then "the server". */
static bool make_name(sgi_http_client *client, const char *url)
{
    sgi_url parts;
    if (sgi_url_parse(sgi_str_of(url), &parts)) {
        sgi_buf_add_str(&client->name, parts.origin);
        sgi_buf_add_str(&client->name, parts.path);
    } else {
        sgi_buf_add_lit(&client->name, "the server");
    }
    return sgi_buf_terminate(&client->name) && !client->name.failed;
}

segue_status sgi_transport_http(segue_runtime *rt, const char *url,
                                const segue_http_options *options, segue_transport **out,
                                char why[SGI_WHY_SIZE])
{
    sgi_engine *engine = sgi_runtime_engine(rt);
    const sgi_mem *mem = sgi_engine_mem(engine);
    if (options->http_sse < SEGUE_HTTP_SSE_AUTO ||
        options->http_sse > SEGUE_HTTP_SSE_ONLY) {
        snprintf(why, SGI_WHY_SIZE, "the option http_sse is out of range");
        return SEGUE_E_INVALID;
    }
    sgi_http_client *client = sgi_zalloc(mem, sizeof *client);
    if (!client)
        return SEGUE_E_NOMEM;
    sgi_buf_init(&client->headers, mem);
    sgi_buf_init(&client->url, mem);
    sgi_buf_add(&client->url, url, strlen(url) + 1);
    sgi_buf_init(&client->name, mem);
    sgi_buf_init(&client->session, mem);
    sgi_buf_init(&client->version, mem);
    TAILQ_INIT(&client->exchanges);
    sgi_old_stream_init(client, engine, options->http_sse);
    client->silence_ms = or_default(options->silence_timeout_ms, DEFAULT_SILENCE_MS);
    client->endpoint_hash = hash_of_endpoint(url, options->unix_socket);
    bool has_room = make_name(client, url) && !client->url.failed;
    segue_status status = has_room ? check_files(options, why) : SEGUE_E_NOMEM;
    if (status == SEGUE_OK)
        status = make_fetcher(client, rt, url, options, why);
    if (status == SEGUE_OK && (options->on_headers || options->free_user)) {
        client->hook = sgi_header_hook_new(engine, options->on_headers, options->user,
                                           options->free_user);
        status = client->hook ? SEGUE_OK : SEGUE_E_NOMEM;
    }
    if (status == SEGUE_OK)
        status = sgi_transport_init(&client->base, rt, &ops, true, SGI_LINGER_MS);
    if (status == SEGUE_OK) {
        *out = &client->base;
        return SEGUE_OK;
    }
    sgi_header_hook_free(client->hook);
    if (client->fetcher) {
        sgi_runtime_lock(rt);
        sgi_fetcher_free(client->fetcher);
        sgi_runtime_unlock(rt);
    }
    sgi_buf_free(&client->url);
    sgi_buf_free(&client->name);
    sgi_free(mem, client, sizeof *client);
    return status;
}

/* Takes the lock and clears the text in which the engine explains a refusal. The text of
 * a later refusal is valid until the lock is released. */
static void begin_telling(segue_runtime *rt)
{
    sgi_runtime_lock(rt);
    sgi_refuse_clear_reason(sgi_runtime_engine(rt));
}

static segue_status end_telling(segue_runtime *rt, segue_status status,
                                char why[SGI_WHY_SIZE])
{
    if (status != SEGUE_OK)
        sgi_text_format(why, SGI_WHY_SIZE, "%s",
                        sgi_refusal_text(sgi_runtime_engine(rt)));
    sgi_runtime_unlock(rt);
    return status;
}

static bool is_http(const segue_transport *transport, char why[SGI_WHY_SIZE])
{
    if (transport->ops != &ops)
        sgi_text_format(why, SGI_WHY_SIZE, "the transport is not an HTTP client");
    return transport->ops == &ops;
}

segue_status sgi_transport_set_header(segue_transport *transport, const char *name,
                                      const char *value, char why[SGI_WHY_SIZE])
{
    segue_runtime *rt = sgi_transport_runtime(transport);
    if (!is_http(transport, why))
        return SEGUE_E_STATE;
    begin_telling(rt);
    return end_telling(rt, sgi_http_set_header(client_of(transport), name, value), why);
}

static segue_status set_oauth(sgi_http_client *client, const segue_oauth_options *options)
{
    sgi_engine *engine = sgi_runtime_engine(sgi_transport_runtime(&client->base));
    if (client->auth)
        return sgi_refuse(engine, SEGUE_E_EXISTS, "the transport already uses OAuth");
    if (client->base.state != SGI_TRANSPORT_NEW)
        return sgi_refuse(engine, SEGUE_E_STATE,
                          "the transport is already attached to a session");
    if (sgi_http_client_has_custom_header(client, "authorization"))
        return sgi_refuse(
            engine, SEGUE_E_STATE,
            "the transport has a header Authorization: remove it to use OAuth");
    return sgi_http_auth_new(client, client->url.p, options);
}

segue_status sgi_transport_set_oauth(segue_transport *transport,
                                     const segue_oauth_options *options,
                                     char why[SGI_WHY_SIZE])
{
    segue_runtime *rt = sgi_transport_runtime(transport);
    if (!is_http(transport, why))
        return SEGUE_E_STATE;
    begin_telling(rt);
    return end_telling(rt, set_oauth(client_of(transport), options), why);
}
