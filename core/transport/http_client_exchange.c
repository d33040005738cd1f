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

#include <strings.h>

/* The time limit in ms of a message that gets no answer, if silence has no limit. */
#define NO_ANSWER_MS SGI_THRESHOLD(no_answer_ms)
/* The time in ms for which a server may keep a stream open after the answer was
 * received. */
#define AFTERMATH_MS SGI_THRESHOLD(aftermath_ms)

static void start(sgi_client_exchange *exchange);
static void watch_silence(sgi_client_exchange *exchange);
static void on_timer(sgi_timer *timer);
static void refused(sgi_client_exchange *exchange);

static sgi_engine *engine_of(const sgi_client_exchange *exchange)
{
    return sgi_runtime_engine(sgi_transport_runtime(&exchange->client->base));
}

/* ---- making and freeing ---- */

static void free_exchange(sgi_client_exchange *exchange)
{
    sgi_http_client *client = exchange->client;
    sgi_engine *engine = engine_of(exchange);
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

static const sgi_fetch_events events;

/* True when the request is a GET. A GET opens the stream of the session or resumes the
 * stream of an answer. */
static bool resumes(const sgi_client_exchange *exchange)
{
    return exchange->kind == SGI_EXCHANGE_LISTEN || exchange->streams;
}

static void note_unsent(sgi_client_exchange *exchange)
{
    if (!resumes(exchange) && !exchange->response.status)
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

/* True when the engine sets no time limit for the exchange. The exchange then ends when
 * the server is silent for too long. */
static bool ends_by_silence(const sgi_client_exchange *exchange)
{
    return resumes(exchange) || exchange->span >= SGI_EXCHANGE_LONG ||
           !sgi_exchange_is_awaited(exchange->conn);
}

/* Starts the time limits of the exchange when the exchange is sent. The time for which
 * the exchange waits for a slot (max_connections) does not count. */
static void take_start(void *user, sgi_fetch *fetch)
{
    sgi_client_exchange *exchange = user;
    (void)fetch;
    exchange->last_input_ms = sgi_now(sgi_engine_env(engine_of(exchange)));
    if (ends_by_silence(exchange))
        watch_silence(exchange);
    sgi_exchange_set_held(exchange->conn, false);
}

static void send_now(sgi_client_exchange *exchange)
{
    sgi_http_client *client = exchange->client;
    sgi_fetch_header_line lines[SGI_HTTP_LINES_MAX];
    sgi_fetch_request request = {
        .method = SGI_FETCH_POST, .headers = lines, .once = exchange->once};
    sgi_buf body;
    if (resumes(exchange)) {
        request.method = SGI_FETCH_GET;
        request.once = false;
    }
    sgi_client_exchange_add_headers(exchange, &request, lines);
    sgi_buf_init(&body, sgi_engine_mem(engine_of(exchange)));
    if (!resumes(exchange)) {
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
    segue_status status = body.failed
                              ? SEGUE_E_NOMEM
                              : sgi_fetch_start(client->fetcher, &request, &events,
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
        note_unsent(exchange);
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

static void watch_silence(sgi_client_exchange *exchange)
{
    int64_t ms = exchange->client->silence_ms;
    if (ms <= 0 && !sgi_exchange_is_awaited(exchange->conn))
        ms = NO_ANSWER_MS;
    if (ms > 0)
        sgi_engine_set_timer(engine_of(exchange), &exchange->timer, ms, on_timer);
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

static int64_t now_of(const sgi_client_exchange *exchange)
{
    return sgi_now(sgi_engine_env(engine_of(exchange)));
}

/* Opens a stream again that ended, complete or cut, or drops the exchange. */
static void reopen_after(sgi_client_exchange *exchange, const char *why,
                         sgi_reopen_failure failure)
{
    bool is_polled = sgi_resumptions_are_polls(&exchange->resumptions);
    sgi_resumptions_on_end(&exchange->resumptions, now_of(exchange), false);
    if (!can_resume(exchange)) {
        sgi_client_exchange_drop(exchange, why);
        return;
    }
    int64_t ms = sgi_exchange_probe_ms(exchange->conn, failure);
    if (ms) {
        sgi_engine_set_timer(engine_of(exchange), &exchange->timer, ms, on_timer);
        return;
    }
    ms = sgi_resumptions_begin(&exchange->resumptions);
    if (sgi_exchange_may_reopen(exchange->conn, why, exchange->resumptions.count,
                                is_polled, failure, &ms))
        sgi_engine_set_timer(engine_of(exchange), &exchange->timer, ms, on_timer);
    else
        sgi_client_exchange_drop(exchange, why);
}

static void reopen_or_drop(sgi_client_exchange *exchange, const char *why)
{
    reopen_after(exchange, why, SGI_REOPEN_ANSWERED);
}

void sgi_client_exchange_put_off(sgi_client_exchange *exchange, const char *why)
{
    sgi_exchange_set_held(exchange->conn, false);
    sgi_buf_reset(&exchange->response.body, 0);
    exchange->flows = 0;
    if (!exchange->streams)
        sgi_exchange_on_no_token(exchange->conn);
    reopen_or_drop(exchange, why);
}

/* Cancels the fetch, if it still runs, and its timer. */
static void break_off(sgi_client_exchange *exchange)
{
    if (exchange->fetch)
        sgi_fetch_cancel(exchange->fetch);
    exchange->fetch = NULL;
    sgi_engine_clear_timer(engine_of(exchange), &exchange->timer);
}

static void on_timer(sgi_timer *timer)
{
    sgi_client_exchange *exchange = SGI_OWNER(timer, sgi_client_exchange, timer);
    sgi_engine *engine = engine_of(exchange);
    int64_t left =
        sgi_time_sub(sgi_time_add(exchange->last_input_ms, exchange->client->silence_ms),
                     sgi_now(sgi_engine_env(engine)));
    if (!exchange->fetch) {
        sgi_client_exchange_send_when_ready(exchange);
    } else if (!sgi_exchange_is_awaited(exchange->conn)) {
        sgi_client_exchange_drop(
            exchange, "the answer has come: the rest of the stream is not needed");
    } else if (left > 0 || exchange->response.held.len) {
        sgi_engine_set_timer(engine, timer,
                             left > 0 ? left : exchange->client->silence_ms, on_timer);
    } else {
        break_off(exchange);
        sgi_resumptions_on_end(&exchange->resumptions, now_of(exchange), true);
        reopen_or_drop(exchange, "the server sent nothing on the stream for too long");
    }
}

/* ---- receiving ---- */

static bool is_fine(const sgi_client_exchange *exchange)
{
    return sgi_client_response_is_fine(&exchange->response);
}

bool sgi_http_is_type(sgi_str header, sgi_str type)
{
    return header.n >= type.n && !strncasecmp(header.p, type.p, type.n) &&
           (header.n == type.n || strchr("; \t", header.p[type.n]));
}

/* Handles a response with a status from 200 to 299 whose body is neither JSON nor an
 * event stream. */
static void take_other_kind(sgi_client_exchange *exchange)
{
    bool has_none = exchange->response.status == 202 || exchange->response.status == 204;
    if (exchange->streams) {
        sgi_client_exchange_drop(exchange, "the server refused to resume the stream");
    } else if (exchange->kind == SGI_EXCHANGE_LISTEN) {
        sgi_exchange_on_refusal(exchange->conn, exchange->response.status, (sgi_str){0});
        sgi_client_exchange_drop(exchange, "the server has no stream for GET");
    } else if (!has_none && sgi_exchange_is_awaited(exchange->conn)) {
        sgi_exchange_on_wrong_type(exchange->conn,
                                   "the answer is neither JSON nor an event stream");
        sgi_client_exchange_drop(exchange,
                                 "the answer is neither JSON nor an event stream");
    }
}

static void note_server(sgi_client_exchange *exchange, const sgi_fetch *fetch)
{
    sgi_exchange_on_server_name(exchange->conn,
                                sgi_fetch_get_header(fetch, "dev-segue-server"));
}

static void take_head(void *user, sgi_fetch *fetch, int32_t status)
{
    sgi_client_exchange *exchange = user;
    sgi_str type = sgi_fetch_get_header(fetch, "content-type");
    exchange->response.status = status;
    exchange->response.is_events = exchange->response.is_json = false;
    sgi_client_exchange_read_head(exchange, fetch);
    sgi_client_exchange_note_refusal(exchange, fetch);
    if (!is_fine(exchange))
        return;
    exchange->asked_again = false;
    if (exchange->kind == SGI_EXCHANGE_INITIALIZE &&
        !sgi_http_client_start_session(exchange,
                                       sgi_fetch_get_header(fetch, "mcp-session-id"))) {
        sgi_client_exchange_drop(exchange, "the server sent an invalid Mcp-Session-Id");
        return;
    }
    if (exchange->kind == SGI_EXCHANGE_INITIALIZE)
        note_server(exchange, fetch);
    if (exchange->client->old.state == SGI_OLD_OPEN)
        return; /* the answer comes on the server's stream */
    if (sgi_http_is_type(type, SGI_STR("text/event-stream"))) {
        exchange->response.is_events = exchange->streams = true;
        sgi_fetch_move_to_stream_lane(fetch);
        if (exchange->kind == SGI_EXCHANGE_LISTEN)
            note_server(exchange, fetch);
        sgi_sse_reset(&exchange->response.sse);
        sgi_resumptions_on_begin(&exchange->resumptions, now_of(exchange));
        watch_silence(exchange);
    } else if (sgi_http_is_type(type, SGI_STR("application/json")) &&
               !resumes(exchange)) {
        exchange->response.is_json = true;
    } else {
        take_other_kind(exchange);
    }
}

static void take_event(sgi_client_exchange *exchange, const sgi_sse_event *event)
{
    bool is_message = event->data.n && sgi_str_eq(event->type, SGI_STR("message"));
    sgi_resumptions_on_event(&exchange->resumptions, event, is_message);
    if (is_message)
        sgi_conn_add_message(exchange->conn, event->data);
    if (is_message && event->has_id)
        sgi_exchange_on_event_id(exchange->conn,
                                 sgi_sse_last_id(&exchange->response.sse));
}

/* Ends the exchange because a message is larger than the size limit. The message can be
 * the answer itself, so the caller must not wait any longer. */
static void give_up_oversized(sgi_client_exchange *exchange)
{
    break_off(exchange);
    sgi_exchange_on_too_large(exchange->conn);
    sgi_client_exchange_drop(exchange, "the answer is too large");
}

/* Gives the response some time to end, because its connection can then be used again. */
static void await_end(sgi_client_exchange *exchange)
{
    if (exchange->aftermath)
        return;
    exchange->aftermath = true;
    sgi_engine_set_timer(engine_of(exchange), &exchange->timer, AFTERMATH_MS, on_timer);
}

/* Passes events to the engine while the engine wants input. *input keeps the bytes that
 * are not passed yet. Returns false when the exchange has ended and is freed. */
static bool feed(sgi_client_exchange *exchange, sgi_str *input)
{
    sgi_conn *conn = exchange->conn;
    sgi_sse_event event;
    sgi_sse_step step = SGI_SSE_EVENT;
    while (sgi_conn_wants_input(conn) &&
           (step = sgi_sse_next(&exchange->response.sse, input, &event)) !=
               SGI_SSE_MORE) {
        if (step == SGI_SSE_EVENT) {
            take_event(exchange, &event);
            continue;
        }
        sgi_engine_count_violation(engine_of(exchange));
        if (step == SGI_SSE_TOO_LONG && exchange->kind != SGI_EXCHANGE_LISTEN &&
            sgi_exchange_is_awaited(conn)) {
            give_up_oversized(exchange);
            return false;
        }
    }
    if (exchange->fetch && !sgi_exchange_is_awaited(conn))
        await_end(exchange);
    return true;
}

static void hold(sgi_client_exchange *exchange, sgi_str rest)
{
    if (!rest.n)
        return;
    if (sgi_client_response_hold(&exchange->response, rest)) {
        sgi_fetch_set_paused(exchange->fetch, true);
        return;
    }
    break_off(exchange);
    reopen_or_drop(exchange, "out of memory for the stream");
}

/* Collects the bytes of a body until the body is complete. Ends the exchange when the
 * body is too large. */
static void keep_body(sgi_client_exchange *exchange, sgi_str bytes)
{
    if (!sgi_exchange_is_awaited(exchange->conn) ||
        sgi_client_response_add_body(&exchange->response, bytes,
                                     sgi_engine_max_message(engine_of(exchange))))
        return;
    if (is_fine(exchange)) {
        give_up_oversized(exchange);
        return;
    }
    break_off(exchange);
    refused(exchange);
}

static void take_bytes(void *user, sgi_fetch *fetch, const char *bytes, size_t len)
{
    sgi_client_exchange *exchange = user;
    sgi_str input = {bytes, len};
    (void)fetch;
    exchange->last_input_ms = sgi_now(sgi_engine_env(engine_of(exchange)));
    if (is_fine(exchange))
        sgi_exchange_on_sign_of_life(exchange->conn);
    if (!exchange->response.is_events) {
        keep_body(exchange, input);
        return;
    }
    if (exchange->response.held.len || feed(exchange, &input))
        hold(exchange, input);
}

/* ---- ending ---- */

/* Handles the response of an old server, which has accepted a message. The exchange waits
 * until the answer has come on the server's stream. */
static void accepted(sgi_client_exchange *exchange)
{
    sgi_buf_reset(&exchange->response.body, 0);
    if (!sgi_exchange_is_awaited(exchange->conn))
        sgi_client_exchange_drop(exchange, "the message was accepted");
}

/* Handles a complete response. If the engine waits for no answer, the body was not kept.
 * An empty body is not a message, whatever its type is. */
static void answered_in_full(sgi_client_exchange *exchange)
{
    if (exchange->response.body.failed) {
        sgi_client_exchange_drop(exchange, "out of memory for the answer");
        return;
    }
    if (exchange->response.is_json && exchange->response.body.len &&
        sgi_exchange_is_awaited(exchange->conn))
        sgi_conn_add_message(exchange->conn, sgi_buf_str(&exchange->response.body));
    if (sgi_exchange_is_awaited(exchange->conn) && exchange->response.is_json)
        sgi_exchange_on_no_answer(exchange->conn, sgi_buf_str(&exchange->response.body));
    else if (sgi_exchange_is_awaited(exchange->conn))
        sgi_exchange_on_refusal(exchange->conn, exchange->response.status, (sgi_str){0});
    sgi_client_exchange_drop(exchange, "the exchange is over");
}

static void refused(sgi_client_exchange *exchange)
{
    const char *why = "the server refused the request";
    sgi_str body = exchange->response.body.failed ? (sgi_str){0}
                                                  : sgi_buf_str(&exchange->response.body);
    if (sgi_client_exchange_retry_refused(exchange) || sgi_old_stream_try(exchange))
        return;
    if (exchange->response.status == 404 && exchange->in_session) {
        sgi_exchange_on_session_gone(exchange->conn, exchange->streams, body);
    } else if (!exchange->streams && exchange->response.status == 401) {
        sgi_client_exchange_end_unauthorized(exchange);
    } else if (!exchange->streams) {
        sgi_exchange_on_refusal(exchange->conn, exchange->response.status, body);
    } else if (sgi_http_status_is_temporary(exchange->response.status) ||
               /* the server has not noticed yet that the earlier connection is gone */
               exchange->response.status == 409) {
        sgi_buf_reset(&exchange->response.body, 0);
        reopen_or_drop(exchange, "the server did not resume the stream");
        return;
    } else if (exchange->response.status == 410) {
        why = "the stream was cut off, and the server no longer has the events that "
              "followed";
    } else {
        why = "the server refused to resume the stream";
    }
    sgi_client_exchange_drop(exchange, why);
}

static void take_fault(sgi_client_exchange *exchange, const sgi_fetch_outcome *outcome)
{
    sgi_reopen_failure failure = SGI_REOPEN_ANSWERED;
    switch (outcome->fault) {
    case SGI_FETCH_UNRESOLVED:
    case SGI_FETCH_UNREACHABLE:
    case SGI_FETCH_TIMEOUT:
        failure = SGI_REOPEN_UNREACHED;
        note_unsent(exchange);
        break;
    case SGI_FETCH_BROKEN:
        /* a server that has said when to come again is not looked for earlier */
        if (!sgi_resumptions_have_retry_time(&exchange->resumptions))
            failure = SGI_REOPEN_BROKEN;
        break;
    case SGI_FETCH_UNTRUSTED:
    case SGI_FETCH_REDIRECTED:
    case SGI_FETCH_TOO_LARGE:
    case SGI_FETCH_MALFORMED:
        sgi_exchange_on_permanent_failure(exchange->conn, outcome->text);
        break;
    default:
        break;
    }
    reopen_after(exchange, outcome->text, failure);
}

static void finish(sgi_client_exchange *exchange, const sgi_fetch_outcome *outcome)
{
    sgi_exchange_set_broken(exchange->conn, outcome->fault == SGI_FETCH_BROKEN);
    if (outcome->fault != SGI_FETCH_OK)
        take_fault(exchange, outcome);
    else if (!is_fine(exchange))
        refused(exchange);
    else if (exchange->client->old.state == SGI_OLD_OPEN)
        accepted(exchange);
    else if (exchange->response.is_events)
        reopen_or_drop(exchange, "the stream ended before the answer");
    else
        answered_in_full(exchange);
}

static void finish_kept(sgi_client_exchange *exchange)
{
    /* moved out of the exchange, because `finish` can free the exchange */
    sgi_buf text;
    sgi_fetch_outcome outcome =
        sgi_client_response_take_outcome(&exchange->response, &text);
    finish(exchange, &outcome);
    sgi_buf_free(&text);
}

static void take_end(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome)
{
    sgi_client_exchange *exchange = user;
    (void)fetch;
    exchange->fetch = NULL;
    sgi_engine_clear_timer(engine_of(exchange), &exchange->timer);
    /* when the runtime ends, the transfer may never have been started, and the exchange's
     * time limit may still be suspended */
    sgi_exchange_set_held(exchange->conn, false);
    if (exchange->response.held.len)
        sgi_client_response_keep_outcome(&exchange->response, outcome);
    else
        finish(exchange, outcome);
}

static const sgi_fetch_events events = {
    .started = take_start, .head = take_head, .bytes = take_bytes, .done = take_end};

void sgi_client_exchange_update(sgi_client_exchange *exchange)
{
    sgi_str input = sgi_buf_str(&exchange->response.held);
    if (sgi_exchange_is_over(exchange->conn)) {
        if (exchange->client->old.state == SGI_OLD_OPEN && exchange->fetch)
            /* the answer has come on the server's stream before the POST was accepted */
            await_end(exchange);
        else
            sgi_client_exchange_drop(exchange, "given up");
        return;
    }
    if (!exchange->response.held.len)
        return;
    if (!feed(exchange, &input))
        return;
    sgi_buf_drop_front(&exchange->response.held, exchange->response.held.len - input.n);
    if (exchange->response.held.len)
        return;
    if (exchange->response.ended)
        finish_kept(exchange);
    else if (exchange->fetch)
        sgi_fetch_set_paused(exchange->fetch, false);
}
