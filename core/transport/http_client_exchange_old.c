/* The transport HTTP+SSE of 2024-11-05, spoken to servers that know no newer one
 * (2025-11-25 basic/transports, "Backwards Compatibility"; rules R-0-9 to R-0-11). If the
 * server refuses the POST of initialize with 400, 404 or 405, the client opens an event
 * stream by GET. The first event of an old server is `endpoint`, with the URL to which
 * messages are posted. All messages of the server come on this stream.
 *
 *     NONE --initialize refused--> OPENING --endpoint--> OPEN --stream ends--> CLOSED
 *       ^                             |                                          |
 *       +------- no endpoint ---------+               OPENING <-- initialize ----+
 *
 * A POST is only accepted by the server (202), and its exchange waits until the answer
 * has come on the stream. When the stream ends, so does the server's session: the engine
 * hears that the connection is lost, as over stdio, and begins anew with initialize.
 *
 * With SEGUE_HTTP_SSE_ONLY the first state is CLOSED, so initialize opens the stream and
 * is never posted to the stream's URL. */
#include "transport/http_client_exchange.h"

#include "base/thresholds.h"
#include "wire/url.h"

#define ENDPOINT_MS SGI_THRESHOLD(endpoint_ms)

static sgi_engine *engine_of(const sgi_http_client *client)
{
    return sgi_runtime_engine(sgi_transport_runtime(&client->base));
}

/* True when the server is so old: it has named an endpoint before, or the application
 * says so. */
static bool is_old(const sgi_http_client *client)
{
    return client->old.known || client->old.use == SEGUE_HTTP_SSE_ONLY;
}

void sgi_old_stream_init(sgi_http_client *client, sgi_engine *engine, int32_t use)
{
    const sgi_mem *mem = sgi_engine_mem(engine);
    client->old.use = use;
    client->old.state = is_old(client) ? SGI_OLD_CLOSED : SGI_OLD_NONE;
    sgi_sse_init(&client->old.sse, mem, sgi_engine_max_message(engine));
    sgi_buf_init(&client->old.endpoint, mem);
}

void sgi_old_stream_free(sgi_http_client *client)
{
    sgi_sse_free(&client->old.sse);
    sgi_buf_free(&client->old.endpoint);
}

void sgi_old_stream_release(sgi_http_client *client)
{
    if (client->old.fetch)
        sgi_fetch_cancel(client->old.fetch);
    client->old.fetch = NULL;
    sgi_engine_clear_timer(engine_of(client), &client->old.timer);
}

/* ---- the exchanges that wait for the stream ---- */

static sgi_client_exchange *find_waiting(const sgi_http_client *client)
{
    sgi_client_exchange *exchange;
    TAILQ_FOREACH(exchange, &client->exchanges, link)
        if (exchange->waits_for_stream)
            return exchange;
    return NULL;
}

static void send_waiting(sgi_http_client *client)
{
    sgi_client_exchange *exchange;
    while ((exchange = find_waiting(client))) {
        exchange->waits_for_stream = false;
        sgi_buf_reset(&exchange->response.body, 0);
        sgi_client_exchange_send(exchange);
    }
}

/* Reports why initialize has failed: it was refused, or the server has not received
 * it. */
static void end_waiting(sgi_http_client *client, const char *why)
{
    sgi_client_exchange *exchange;
    while ((exchange = find_waiting(client))) {
        exchange->waits_for_stream = false;
        if (exchange->response.status)
            sgi_exchange_on_refusal(exchange->conn, exchange->response.status,
                                    sgi_buf_str(&exchange->response.body));
        else
            sgi_exchange_on_unsent(exchange->conn);
        sgi_client_exchange_drop(exchange, why);
    }
}

/* ---- the stream ---- */

/* Ends the stream. If it was open, the session with the server has ended. */
static void close_stream(sgi_http_client *client, const char *why)
{
    bool was_open = client->old.state == SGI_OLD_OPEN;
    sgi_old_stream_release(client);
    client->old.state = is_old(client) ? SGI_OLD_CLOSED : SGI_OLD_NONE;
    end_waiting(client, why);
    if (was_open && !client->closing)
        sgi_exchanges_on_connection_lost(sgi_transport_conn(&client->base), why);
}

/* Ends the stream because of a message that is too large. It may be the answer to any
 * request. */
static void refuse_long(sgi_http_client *client)
{
    sgi_engine *engine = engine_of(client);
    sgi_limit limit = {SGI_LIMIT_MAX_MESSAGE_BYTES,
                       (int64_t)sgi_engine_max_message(engine)};
    close_stream(client,
                 sgi_engine_describe_limit(engine, "a message of the server is too large",
                                           limit, "limit", NULL)
                     .text);
}

/* Reports that the GET of the stream was refused (status), or that the stream cannot be
 * used (status 200). No POST was refused before, so there is nothing else to report. */
static void end_refused(sgi_client_exchange *exchange, const char *why)
{
    if (exchange->response.status == 200)
        sgi_exchange_on_wrong_type(exchange->conn, why);
    else if (sgi_client_exchange_retry_refused(exchange))
        return;
    else if (exchange->response.status == 401)
        sgi_client_exchange_end_unauthorized(exchange);
    else
        sgi_exchange_on_refusal(exchange->conn, exchange->response.status, (sgi_str){0});
    sgi_client_exchange_drop(exchange, why);
}

/* Ends a stream that the server refused, or that cannot be used. A server that has named
 * an endpoint before is tried again, unless it wants another token. fetch: the refused
 * GET; NULL = it was not refused. */
static void refuse_stream(sgi_http_client *client, const sgi_fetch *fetch, int32_t status,
                          const char *why)
{
    sgi_client_exchange *exchange = find_waiting(client);
    bool wants_token = status == 401 || status == 403;
    if (!exchange || exchange->response.status || (client->old.known && !wants_token)) {
        close_stream(client, why);
        return;
    }
    exchange->waits_for_stream = false;
    exchange->response.status = status;
    if (fetch)
        sgi_client_exchange_note_refusal(exchange, fetch);
    close_stream(client, why);
    end_refused(exchange, why);
}

static void took_too_long(sgi_timer *timer)
{
    sgi_http_client *client = SGI_OWNER(timer, sgi_http_client, old.timer);
    close_stream(client, "the server sent no endpoint in time");
}

/* Appends the URL of the endpoint. A relative URL without a slash belongs to the
 * directory of the stream's URL. Returns false for a URL of another origin, which is not
 * trusted. */
static bool resolve(const sgi_http_client *client, sgi_str endpoint, sgi_buf *out)
{
    sgi_url from, to;
    if (!endpoint.n || !sgi_url_parse(sgi_str_of(client->url.p), &from))
        return false;
    if (!sgi_url_resolve_location(&from, endpoint, out)) {
        size_t dir = from.path.n;
        while (dir && from.path.p[dir - 1] != '/')
            dir--;
        sgi_buf_add_str(out, from.origin);
        sgi_buf_add_str(out, dir ? (sgi_str){from.path.p, dir} : SGI_STR("/"));
        sgi_buf_add_str(out, endpoint);
    }
    return !out->failed && sgi_url_parse(sgi_buf_str(out), &to) &&
           sgi_url_same_origin(&from, &to);
}

static bool is_usable(sgi_http_client *client, sgi_str endpoint)
{
    sgi_buf_reset(&client->old.endpoint, SIZE_MAX);
    return resolve(client, endpoint, &client->old.endpoint) &&
           sgi_buf_terminate(&client->old.endpoint) && !client->old.endpoint.failed;
}

/* Returns false when the stream was closed. */
static bool take_event(sgi_http_client *client, const sgi_sse_event *event)
{
    if (client->old.state == SGI_OLD_OPEN) {
        if (event->data.n && sgi_str_eq(event->type, SGI_STR("message")))
            sgi_conn_add_message(sgi_transport_conn(&client->base), event->data);
        return client->old.fetch != NULL;
    }
    if (!sgi_str_eq(event->type, SGI_STR("endpoint")))
        return true;
    if (!is_usable(client, event->data)) {
        refuse_stream(client, NULL, 200, "the server sent an endpoint of another origin");
        return false;
    }
    sgi_engine_clear_timer(engine_of(client), &client->old.timer);
    client->old.state = SGI_OLD_OPEN;
    client->old.known = true;
    sgi_engine_log(engine_of(client), SEGUE_LOG_INFO,
                   "%s speaks the transport of 2024-11-05 (HTTP+SSE)", client->name.p);
    send_waiting(client);
    return client->old.fetch != NULL;
}

static void take_head(void *user, sgi_fetch *fetch, int32_t status)
{
    sgi_http_client *client = user;
    sgi_str type = sgi_fetch_get_header(fetch, "content-type");
    if (status == 200 && sgi_http_is_type(type, SGI_STR("text/event-stream")))
        sgi_sse_reset(&client->old.sse);
    else
        refuse_stream(client, fetch, status,
                      status == 200 ? "the server sent no event stream"
                                    : "the server refused the event stream");
}

static void take_bytes(void *user, sgi_fetch *fetch, const char *bytes, size_t len)
{
    sgi_http_client *client = user;
    sgi_str input = {bytes, len};
    sgi_sse_event event;
    sgi_sse_step step;
    (void)fetch;
    while ((step = sgi_sse_next(&client->old.sse, &input, &event)) != SGI_SSE_MORE) {
        if (step == SGI_SSE_EVENT) {
            if (!take_event(client, &event))
                return;
            continue;
        }
        sgi_engine_count_violation(engine_of(client));
        if (step == SGI_SSE_TOO_LONG) {
            refuse_long(client);
            return;
        }
    }
}

static void take_end(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome)
{
    sgi_http_client *client = user;
    (void)fetch;
    client->old.fetch = NULL;
    close_stream(client, outcome->fault == SGI_FETCH_OK ? "the server ended the stream"
                                                        : outcome->text);
}

static const sgi_fetch_events events = {
    .head = take_head, .bytes = take_bytes, .done = take_end};

/* Requests the stream for an exchange, which then waits for it. */
static bool open_stream(sgi_client_exchange *exchange)
{
    sgi_http_client *client = exchange->client;
    sgi_fetch_header_line lines[SGI_HTTP_HEADERS_MAX + 2];
    sgi_fetch_request request = {
        .method = SGI_FETCH_GET, .headers = lines, .lane = SGI_FETCH_STANDING};
    size_t own = 0;
    lines[own++] =
        (sgi_fetch_header_line){SGI_STR("Accept"), SGI_STR("text/event-stream")};
    sgi_str header = sgi_http_auth_header(client->auth, &exchange->token);
    if (header.n)
        lines[own++] = (sgi_fetch_header_line){SGI_STR("Authorization"), header};
    request.header_count =
        own + sgi_http_unpack_headers(sgi_buf_str(&client->headers), lines + own,
                                      SGI_HTTP_HEADERS_MAX);
    if (sgi_fetch_start(client->fetcher, &request, &events, client, &client->old.fetch) !=
        SEGUE_OK) {
        client->old.fetch = NULL;
        return false;
    }
    client->old.state = SGI_OLD_OPENING;
    sgi_engine_set_timer(engine_of(client), &client->old.timer, ENDPOINT_MS,
                         took_too_long);
    return true;
}

/* ---- for the exchanges ---- */

/* True when the server may know only the transport of 2024-11-05. A server that answers
 * in JSON-RPC knows the newer one. */
static bool may_be_old(const sgi_client_exchange *exchange)
{
    bool is_status = exchange->response.status == 400 ||
                     exchange->response.status == 404 || exchange->response.status == 405;
    return is_status && exchange->kind == SGI_EXCHANGE_INITIALIZE &&
           !sgi_json_get(sgi_buf_str(&exchange->response.body), "jsonrpc").n;
}

bool sgi_old_stream_try(sgi_client_exchange *exchange)
{
    sgi_http_client *client = exchange->client;
    if (client->old.state == SGI_OLD_OPEN && exchange->response.status == 404) {
        /* the server does not know its session any more, and has not run the request */
        sgi_exchange_on_unsent(exchange->conn);
        sgi_client_exchange_drop(exchange, "the server does not know the session");
        close_stream(client, "the server does not know the session");
        return true;
    }
    if (client->old.state != SGI_OLD_NONE || client->old.use == SEGUE_HTTP_SSE_NEVER ||
        !may_be_old(exchange) || !open_stream(exchange))
        return false;
    exchange->waits_for_stream = true;
    return true;
}

bool sgi_old_stream_holds(sgi_client_exchange *exchange)
{
    sgi_http_client *client = exchange->client;
    bool is_open = client->old.state == SGI_OLD_OPEN;
    if (client->old.state == SGI_OLD_NONE ||
        (is_open && exchange->kind != SGI_EXCHANGE_LISTEN))
        return false;
    if (is_open) {
        /* the server's own messages come on the stream that is open */
        sgi_exchange_on_refusal(exchange->conn, 405, (sgi_str){0});
        sgi_client_exchange_drop(exchange, "the server has one stream only");
    } else if (exchange->stateless) {
        /* the server knows no messages without a session, such as server/discover */
        sgi_exchange_on_refusal(exchange->conn, 405, (sgi_str){0});
        sgi_client_exchange_drop(exchange, "the server speaks 2024-11-05 only");
    } else if (exchange->kind == SGI_EXCHANGE_INITIALIZE &&
               (client->old.state == SGI_OLD_OPENING || open_stream(exchange))) {
        exchange->response.status = 0;
        exchange->waits_for_stream = true;
    } else {
        sgi_exchange_on_unsent(exchange->conn);
        sgi_client_exchange_drop(exchange, "the stream of the server has ended");
    }
    return true;
}
