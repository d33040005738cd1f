/* One exchange of a client.
 *
 *     begun --headers known--> POST running --head--> JSON or events --> released
 *                                 |                      |
 *                                 +-- 401: repeat once   +-- cut: GET, Last-Event-ID
 *
 * Only a server of the versions up to 2025-11-25, which begin with initialize, gives its
 * events ids. Therefore only the streams of such a server are resumed here after a cut.
 * In 2026-07-28 the cut is reported to the engine as a loss, and the engine gets the
 * result of the operation by its own requests. A message is posted again after the
 * server has refused it, and after a connection that was used before broke without a
 * response, unless the engine demands `once`. When a stream cannot be resumed, the loss
 * is reported to the engine, which decides what to do.
 *
 * Backpressure: while the engine wants no input, received bytes stay in `held` (at most
 * one block of libcurl) and the exchange is paused.
 *
 * The engine sets no time limit for a stream and for a message that gets no answer. Such
 * an exchange ends after a silence. A GET that resumes a stream also ends after a
 * silence, because other answers about the task restart the time limit of the call. */
#include "transport/http_client_exchange.h"

#include "base/thresholds.h"

/* The time limit in ms of a message that gets no answer, if silence has no limit. */
#define NO_ANSWER_MS SGI_THRESHOLD(no_answer_ms)
/* The time in ms for which a server may keep a stream open after the answer was
 * received. */
#define AFTERMATH_MS SGI_THRESHOLD(aftermath_ms)

static void start(sgi_client_exchange *exchange);
static void on_timer(sgi_timer *timer);

/* ---- making and freeing ---- */

static void free_exchange(sgi_client_exchange *exchange)
{
    sgi_http_client *client = exchange->client;
    sgi_engine *engine = sgi_client_exchange_engine(exchange);
    if (exchange->fetch)
        sgi_fetch_cancel(exchange->fetch);
    sgi_engine_clear_timer(engine, &exchange->timer);
    TAILQ_REMOVE(&client->exchanges, exchange, link);
    sgi_buf_free(&exchange->posted);
    sgi_client_response_free(&exchange->response);
    sgi_buf_free(&exchange->challenge);
    sgi_free(sgi_engine_mem(engine), exchange, sizeof *exchange);
    sgi_http_client_on_exchange_freed(client);
}

void sgi_client_exchange_drop(sgi_client_exchange *exchange, const char *why)
{
    sgi_conn *conn = exchange->conn;
    /* the exchange is freed first, because the engine can start another exchange in
     * sgi_conn_on_lost */
    free_exchange(exchange);
    sgi_conn_on_lost(conn, why);
    sgi_exchange_release(conn);
}

/* Sends the request as soon as everything that it needs is known: a token, and the
 * application's headers if the application has a callback for headers. */
void sgi_client_exchange_send_when_ready(sgi_client_exchange *exchange)
{
    sgi_http_client *client = exchange->client;
    if (sgi_client_exchange_wants_token(exchange))
        return;
    if (sgi_header_hook_has_callback(client->hook)) {
        exchange->headers = SGI_HEADERS_WANTED;
        sgi_header_hook_run(client->hook, client, 0);
    } else {
        start(exchange);
    }
}

void sgi_client_exchange_begin(sgi_http_client *client, sgi_conn *conn)
{
    sgi_engine *engine = sgi_runtime_engine(sgi_transport_runtime(&client->base));
    const sgi_mem *mem = sgi_engine_mem(engine);
    sgi_client_exchange *exchange = sgi_zalloc(mem, sizeof *exchange);
    sgi_exchange_head head;
    if (!exchange) {
        sgi_exchange_on_unsent(conn);
        sgi_conn_on_lost(conn, "out of memory");
        sgi_exchange_release(conn);
        return;
    }
    sgi_exchange_get_head(conn, &head);
    exchange->client = client;
    exchange->conn = conn;
    exchange->kind = head.kind;
    exchange->stateless = head.stateless;
    exchange->span = head.span;
    exchange->once = head.once;
    sgi_resumptions_init(&exchange->resumptions, head.kind == SGI_EXCHANGE_LISTEN);
    sgi_buf_init(&exchange->posted, mem);
    sgi_client_response_init(&exchange->response, mem, sgi_engine_max_message(engine));
    sgi_buf_init(&exchange->challenge, mem);
    sgi_exchange_set_transport(conn, exchange);
    TAILQ_INSERT_TAIL(&client->exchanges, exchange, link);
    if (exchange->kind != SGI_EXCHANGE_LISTEN)
        sgi_conn_take_output(conn, &exchange->posted);
    sgi_client_exchange_send_when_ready(exchange);
}

void sgi_client_exchange_send(sgi_client_exchange *exchange)
{
    exchange->headers = SGI_HEADERS_UNASKED;
    start(exchange);
}

/* ---- sending ---- */

bool sgi_client_exchange_is_get(const sgi_client_exchange *exchange)
{
    return exchange->kind == SGI_EXCHANGE_LISTEN || exchange->streams;
}

void sgi_client_exchange_note_unsent(sgi_client_exchange *exchange)
{
    if (!sgi_client_exchange_is_get(exchange) && !exchange->response.status)
        sgi_exchange_on_unsent(exchange->conn);
}

static sgi_fetch_lane lane_of(const sgi_client_exchange *exchange)
{
    static const sgi_fetch_lane lanes[] = {[SGI_EXCHANGE_BRIEF] = SGI_FETCH_BRIEF,
                                           [SGI_EXCHANGE_REQUEST] = SGI_FETCH_REQUEST,
                                           [SGI_EXCHANGE_LONG] = SGI_FETCH_STREAM,
                                           [SGI_EXCHANGE_STANDING] = SGI_FETCH_STANDING};
    bool is_stream = exchange->streams && exchange->span == SGI_EXCHANGE_REQUEST;
    return is_stream ? SGI_FETCH_STREAM : lanes[exchange->span];
}

static void send_now(sgi_client_exchange *exchange)
{
    sgi_http_client *client = exchange->client;
    sgi_fetch_header_line lines[SGI_HTTP_LINES_MAX];
    sgi_fetch_request request = {
        .method = SGI_FETCH_POST, .headers = lines, .once = exchange->once};
    sgi_buf body;
    if (sgi_client_exchange_is_get(exchange)) {
        request.method = SGI_FETCH_GET;
        request.once = false;
    }
    sgi_client_exchange_add_headers(exchange, &request, lines);
    sgi_buf_init(&body, sgi_engine_mem(sgi_client_exchange_engine(exchange)));
    if (!sgi_client_exchange_is_get(exchange)) {
        sgi_buf_add_str(&body, sgi_buf_str(&exchange->posted));
        if (!client->auth && !sgi_header_hook_has_callback(client->hook) &&
            exchange->kind != SGI_EXCHANGE_INITIALIZE)
            /* the message is never sent again, so the copy of its body is freed */
            sgi_buf_free(&exchange->posted);
        request.body = &body;
    }
    request.lane = lane_of(exchange);
    if (client->old.state == SGI_OLD_OPEN)
        request.url = client->old.endpoint.p;
    sgi_client_response_begin(&exchange->response);
    segue_status status = body.failed ? SEGUE_E_NOMEM
                                      : sgi_fetch_start(client->fetcher, &request,
                                                        &sgi_client_exchange_events,
                                                        exchange, &exchange->fetch);
    sgi_buf_free(&body);
    if (status == SEGUE_OK) {
        sgi_exchange_set_held(exchange->conn, true);
        return;
    }
    exchange->fetch = NULL;
    if (status == SEGUE_E_INVALID)
        sgi_exchange_on_permanent_failure(
            exchange->conn, "a header of the request has an invalid name or value");
    else
        sgi_client_exchange_note_unsent(exchange);
    sgi_client_exchange_drop(exchange, "the request cannot be sent");
}

/* Sends the message or resumes its stream. A stream is not resumed in another wire
 * session: the server of the new session does not know the stream's event ids, or uses
 * the same ids for another stream. */
static void start(sgi_client_exchange *exchange)
{
    sgi_http_client *client = exchange->client;
    if (sgi_old_stream_holds(exchange))
        return;
    if (exchange->streams && exchange->wire_session != client->wire_session) {
        sgi_exchange_on_session_gone(exchange->conn, true, (sgi_str){0});
        sgi_client_exchange_drop(exchange,
                                 "the session that the stream belongs to has ended");
        return;
    }
    exchange->wire_session = client->wire_session;
    send_now(exchange);
}

/* ---- silence and retries ---- */

void sgi_client_exchange_watch_silence(sgi_client_exchange *exchange)
{
    int64_t ms = exchange->client->silence_ms;
    if (ms <= 0 && !sgi_exchange_is_awaited(exchange->conn))
        ms = NO_ANSWER_MS;
    if (ms > 0)
        sgi_engine_set_timer(sgi_client_exchange_engine(exchange), &exchange->timer, ms,
                             on_timer);
}

static bool can_resume(const sgi_client_exchange *exchange)
{
    bool known = exchange->kind == SGI_EXCHANGE_LISTEN ||
                 sgi_sse_last_id(&exchange->response.sse).n;
    return exchange->streams && !exchange->stateless &&
           exchange->kind != SGI_EXCHANGE_INITIALIZE && known &&
           sgi_exchange_is_awaited(exchange->conn) &&
           sgi_resumptions_are_left(&exchange->resumptions);
}

void sgi_client_exchange_reopen(sgi_client_exchange *exchange, const char *why,
                                sgi_loss loss)
{
    bool is_polled = sgi_resumptions_are_polls(&exchange->resumptions);
    sgi_resumptions_on_end(&exchange->resumptions, sgi_client_exchange_now(exchange),
                           false);
    if (!can_resume(exchange)) {
        sgi_client_exchange_drop(exchange, why);
        return;
    }
    int64_t ms = sgi_exchange_probe_ms(exchange->conn, loss);
    if (ms) {
        sgi_engine_set_timer(sgi_client_exchange_engine(exchange), &exchange->timer, ms,
                             on_timer);
        return;
    }
    ms = sgi_resumptions_begin(&exchange->resumptions);
    if (sgi_exchange_may_reopen(exchange->conn, why, exchange->resumptions.count,
                                is_polled, loss, &ms))
        sgi_engine_set_timer(sgi_client_exchange_engine(exchange), &exchange->timer, ms,
                             on_timer);
    else
        sgi_client_exchange_drop(exchange, why);
}

void sgi_client_exchange_put_off(sgi_client_exchange *exchange, const char *why)
{
    sgi_exchange_set_held(exchange->conn, false);
    sgi_buf_reset(&exchange->response.body, 0);
    exchange->flows = 0;
    if (!exchange->streams)
        sgi_exchange_on_no_token(exchange->conn);
    sgi_client_exchange_reopen(exchange, why, SGI_LOSS_ANSWERED);
}

void sgi_client_exchange_break_off(sgi_client_exchange *exchange)
{
    if (exchange->fetch)
        sgi_fetch_cancel(exchange->fetch);
    exchange->fetch = NULL;
    sgi_engine_clear_timer(sgi_client_exchange_engine(exchange), &exchange->timer);
}

void sgi_client_exchange_await_end(sgi_client_exchange *exchange)
{
    if (exchange->aftermath)
        return;
    exchange->aftermath = true;
    sgi_engine_set_timer(sgi_client_exchange_engine(exchange), &exchange->timer,
                         AFTERMATH_MS, on_timer);
}

static void on_timer(sgi_timer *timer)
{
    sgi_client_exchange *exchange = SGI_OWNER(timer, sgi_client_exchange, timer);
    sgi_engine *engine = sgi_client_exchange_engine(exchange);
    int64_t left =
        sgi_time_sub(sgi_time_add(exchange->last_input_ms, exchange->client->silence_ms),
                     sgi_client_exchange_now(exchange));
    if (!exchange->fetch) {
        sgi_client_exchange_send_when_ready(exchange);
    } else if (!sgi_exchange_is_awaited(exchange->conn)) {
        sgi_client_exchange_drop(
            exchange, "the answer has come: the rest of the stream is not needed");
    } else if (left > 0 || exchange->response.held.len) {
        sgi_engine_set_timer(engine, timer,
                             left > 0 ? left : exchange->client->silence_ms, on_timer);
    } else {
        sgi_client_exchange_break_off(exchange);
        sgi_resumptions_on_end(&exchange->resumptions, sgi_client_exchange_now(exchange),
                               true);
        sgi_client_exchange_reopen(exchange,
                                   "the server sent nothing on the stream for too long",
                                   SGI_LOSS_ANSWERED);
    }
}
