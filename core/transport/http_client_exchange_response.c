/* The response to an exchange of a client: its head, the events of its stream or its
 * body, and its end, after which the exchange ends, is sent again, or opens its stream
 * again (http_client_exchange.c). */
#include "transport/http_client_exchange.h"

#include <strings.h>

static void refused(sgi_client_exchange *exchange);

/* ---- the start ---- */

/* True when the engine sets no time limit for the exchange. The exchange then ends when
 * the server is silent for too long. */
static bool ends_by_silence(const sgi_client_exchange *exchange)
{
    return sgi_client_exchange_is_get(exchange) || exchange->span >= SGI_EXCHANGE_LONG ||
           !sgi_exchange_is_awaited(exchange->conn);
}

/* Starts the time limits of the exchange when the exchange is sent. The time for which
 * the exchange waits for a slot (max_connections) does not count. */
static void take_start(void *user, sgi_fetch *fetch)
{
    sgi_client_exchange *exchange = user;
    (void)fetch;
    exchange->last_input_ms = sgi_client_exchange_now(exchange);
    if (ends_by_silence(exchange))
        sgi_client_exchange_watch_silence(exchange);
    sgi_exchange_set_held(exchange->conn, false);
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
        sgi_resumptions_on_begin(&exchange->resumptions,
                                 sgi_client_exchange_now(exchange));
        sgi_client_exchange_watch_silence(exchange);
    } else if (sgi_http_is_type(type, SGI_STR("application/json")) &&
               !sgi_client_exchange_is_get(exchange)) {
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
    sgi_client_exchange_break_off(exchange);
    sgi_exchange_on_too_large(exchange->conn);
    sgi_client_exchange_drop(exchange, "the answer is too large");
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
        sgi_engine_count_violation(sgi_client_exchange_engine(exchange));
        if (step == SGI_SSE_TOO_LONG && exchange->kind != SGI_EXCHANGE_LISTEN &&
            sgi_exchange_is_awaited(conn)) {
            give_up_oversized(exchange);
            return false;
        }
    }
    if (exchange->fetch && !sgi_exchange_is_awaited(conn))
        sgi_client_exchange_await_end(exchange);
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
    sgi_client_exchange_break_off(exchange);
    sgi_client_exchange_reopen(exchange, "out of memory for the stream",
                               SGI_LOSS_ANSWERED);
}

/* Collects the bytes of a body until the body is complete. Ends the exchange when the
 * body is too large. */
static void keep_body(sgi_client_exchange *exchange, sgi_str bytes)
{
    if (!sgi_exchange_is_awaited(exchange->conn) ||
        sgi_client_response_add_body(
            &exchange->response, bytes,
            sgi_engine_max_message(sgi_client_exchange_engine(exchange))))
        return;
    if (is_fine(exchange)) {
        give_up_oversized(exchange);
        return;
    }
    sgi_client_exchange_break_off(exchange);
    refused(exchange);
}

static void take_bytes(void *user, sgi_fetch *fetch, const char *bytes, size_t len)
{
    sgi_client_exchange *exchange = user;
    sgi_str input = {bytes, len};
    (void)fetch;
    exchange->last_input_ms = sgi_client_exchange_now(exchange);
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
        sgi_client_exchange_reopen(exchange, "the server did not resume the stream",
                                   SGI_LOSS_ANSWERED);
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
    sgi_loss loss = SGI_LOSS_ANSWERED;
    switch (outcome->fault) {
    case SGI_FETCH_UNRESOLVED:
    case SGI_FETCH_UNREACHABLE:
    case SGI_FETCH_TIMEOUT:
        loss = SGI_LOSS_UNSENT;
        sgi_client_exchange_note_unsent(exchange);
        break;
    case SGI_FETCH_BROKEN:
        /* a server that has said when to come again is not looked for earlier */
        if (!sgi_resumptions_have_retry_time(&exchange->resumptions))
            loss = SGI_LOSS_BROKEN;
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
    sgi_client_exchange_reopen(exchange, outcome->text, loss);
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
        sgi_client_exchange_reopen(exchange, "the stream ended before the answer",
                                   SGI_LOSS_ANSWERED);
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
    sgi_engine_clear_timer(sgi_client_exchange_engine(exchange), &exchange->timer);
    /* when the runtime ends, the transfer may never have been started, and the exchange's
     * time limit may still be suspended */
    sgi_exchange_set_held(exchange->conn, false);
    if (exchange->response.held.len)
        sgi_client_response_keep_outcome(&exchange->response, outcome);
    else
        finish(exchange, outcome);
}

const sgi_fetch_events sgi_client_exchange_events = {
    .started = take_start, .head = take_head, .bytes = take_bytes, .done = take_end};

void sgi_client_exchange_update(sgi_client_exchange *exchange)
{
    sgi_str input = sgi_buf_str(&exchange->response.held);
    if (sgi_exchange_is_over(exchange->conn)) {
        if (exchange->client->old.state == SGI_OLD_OPEN && exchange->fetch)
            /* the answer has come on the server's stream before the POST was accepted */
            sgi_client_exchange_await_end(exchange);
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
