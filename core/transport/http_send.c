/* Passes output from the engine to the link. Output is built in the listener's buffer
 * `room`: head and body in one write, events in chunks of up to EVENTS_MAX with their
 * framing. One flush gets output from the engine once. When there is more output, the
 * engine asks for another flush, so that other connections get their turn first.
 *
 * Bytes that the link does not accept stay in `rest`. While `rest` has bytes, no more
 * output is fetched from the engine, so a slow reader slows its own streams down. `ends`
 * means that the answer is complete after the bytes of `rest`; the exchange is then no
 * longer needed and may have been freed.
 *
 * Up to 2025-11-25, another connection can take over a stream at any time
 * (Last-Event-ID). Then this connection must no longer read the stream;
 * sgi_serve_end_exchange ensures this. */
#include "wire/ending.h"

#include "base/thresholds.h"
#include "transport/http_conn.h"

#define EVENTS_MAX SGI_THRESHOLD(http_events_bytes)
#define KEEP_ROOM (SGI_LINK_WRITE_MAX + 4096)
#define KEEP_TEXT ((size_t)4 * 1024)
/* number of bytes that are reserved for a head and for the end of a chunk */
#define HEAD_ROOM ((size_t)2 * 1024)

static sgi_engine *engine_of(const sgi_http_conn *conn)
{
    return sgi_runtime_engine(conn->listener->carrier.runtime);
}

/* ---- the link ---- */

/* Sends the bytes of the listener's buffer `room`, and empties the buffer. */
static void send_room(sgi_http_conn *conn)
{
    segue_listener *listener = conn->listener;
    sgi_buf *room = &listener->room;
    if (room->failed) {
        sgi_buf_reset(room, KEEP_ROOM);
        sgi_engine_log(engine_of(conn), SEGUE_LOG_ERROR,
                       "out of memory for an answer: the connection is closed");
        sgi_http_conn_cut(conn);
        return;
    }
    if (room->len && !sgi_link_write(conn->link, room->p, room->len))
        conn->blocked = true;
    sgi_buf_reset(room, KEEP_ROOM);
    if (conn->blocked)
        sgi_http_conn_set_deadline(conn, SGI_HTTP_WAIT_WRITE,
                                   listener->options.write_timeout_ms);
    else if (conn->is_events)
        sgi_http_conn_set_deadline(conn, SGI_HTTP_WAIT_EVENT,
                                   listener->options.keepalive_ms);
}

static void add_head(sgi_http_conn *conn, sgi_http_answer_head *head)
{
    head->last = conn->last;
    head->says_keep = conn->says_keep;
    head->origin = conn->route.origin;
    if (conn->given)
        conn->given->take_head(conn->link, head);
    else
        sgi_http_add_head(&conn->listener->room, head, &conn->listener->date,
                          sgi_wall_now(sgi_engine_env(engine_of(conn))));
    conn->head_sent = true;
}

/* ---- answers that the listener makes without the engine ---- */

void sgi_http_send_answer(sgi_http_conn *conn, sgi_http_answer_head *head, sgi_str body)
{
    conn->stage = SGI_HTTP_SERVING;
    head->length = body.n;
    add_head(conn, head);
    if (!conn->route.bare) /* the answer to HEAD has no body (RFC 9110 9.3.2) */
        sgi_buf_add_str(&conn->listener->room, body);
    send_room(conn);
    if (conn->link)
        sgi_http_conn_read_next_request(conn);
}

static void send_problem(sgi_http_conn *conn, sgi_http_answer_head *head, int32_t code,
                         const char *problem, sgi_json data)
{
    sgi_buf *text = &conn->listener->text;
    head->type = SGI_HTTP_JSON;
    sgi_http_add_problem(text, code, problem, data);
    if (text->failed)
        sgi_http_conn_cut(conn);
    else
        sgi_http_send_answer(conn, head, sgi_buf_str(text));
    sgi_buf_reset(&conn->listener->text, KEEP_TEXT);
}

void sgi_http_send_problem(sgi_http_conn *conn, int32_t status, int32_t code,
                           const char *problem, const char *allow)
{
    sgi_http_answer_head head = {.status = status, .allow = allow};
    send_problem(conn, &head, code, problem, (sgi_json){0});
}

void sgi_http_send_ending(sgi_http_conn *conn)
{
    sgi_http_answer_head head = {.status = 503};
    send_problem(conn, &head, SGI_RPC_INTERNAL_ERROR, SGI_ENDING_TEXT,
                 SGI_STR(SGI_ENDING_DATA));
}

static const struct {
    int32_t status;
    const char *problem;
} refusals[] = {
    [SGI_BEARER_NONE] = {401, "The request needs an access token"},
    [SGI_BEARER_BAD] = {401, "The access token is not valid"},
    [SGI_BEARER_LACKS] = {403, "The access token lacks a required scope"},
    [SGI_BEARER_MISPLACED] =
        {400,
         "The access token must not be in the URL: send it in the header Authorization"},
    [SGI_BEARER_UNCHECKED] =
        {503, "The server cannot check the access token now: try again later"},
};

/* The default of Retry-After in seconds, when the keys that check tokens are missing. */
#define RETRY_S 5

static int32_t retry_s(int64_t ms)
{
    int64_t s = (ms + 999) / 1000;
    return s <= 0 ? RETRY_S : s > INT32_MAX ? INT32_MAX : (int32_t)s;
}

void sgi_http_send_verdict(sgi_http_conn *conn)
{
    sgi_bearer_verdict verdict = conn->check.verdict;
    const char *why = *conn->check.why ? conn->check.why : refusals[verdict].problem;
    sgi_http_answer_head head = {.status = refusals[verdict].status};
    if (verdict == SGI_BEARER_UNCHECKED)
        head.retry_s = retry_s(conn->check.retry_ms);
    else
        head.challenge =
            sgi_bearer_challenge(conn->listener->bearer, verdict,
                                 verdict == SGI_BEARER_NONE ? NULL : why, NULL);
    send_problem(conn, &head,
                 verdict == SGI_BEARER_UNCHECKED ? SGI_RPC_INTERNAL_ERROR
                                                 : SGI_RPC_INVALID_REQUEST,
                 why, (sgi_json){0});
}

void sgi_http_send_comment(sgi_http_conn *conn)
{
    sgi_buf *room = &conn->listener->room;
    if (!conn->is_events || !conn->head_sent || conn->blocked || conn->ends)
        return;
    size_t place = conn->chunks ? sgi_http1_open_chunk(room) : 0;
    sgi_buf_add_lit(room, ":\n\n");
    if (conn->chunks)
        sgi_http1_close_chunk(room, place);
    send_room(conn);
}

/* ---- the answer of an exchange ---- */

static sgi_str take(sgi_str *text, size_t most)
{
    sgi_str part = {text->p, text->n < most ? text->n : most};
    *text = (sgi_str){text->p + part.n, text->n - part.n};
    return part;
}

/* Sends the next part of the text. After the last byte of a complete answer, also sends
 * the end of the answer. */
static void send_part(sgi_http_conn *conn, sgi_str *text)
{
    sgi_buf *room = &conn->listener->room;
    if (!conn->is_events) {
        sgi_buf_add_str(room, take(text, SGI_LINK_WRITE_MAX - HEAD_ROOM));
    } else if (!conn->chunks) {
        sgi_buf_add_str(room, take(text, EVENTS_MAX));
    } else {
        size_t place = sgi_http1_open_chunk(room);
        sgi_buf_add_str(room, take(text, EVENTS_MAX));
        sgi_http1_close_chunk(room, place);
        if (conn->ends && !text->n)
            sgi_http1_add_last_chunk(room);
    }
    send_room(conn);
}

/* Sends the text in parts. Returns true when the link has accepted the whole text. *text
 * receives the rest. */
static bool send_text(sgi_http_conn *conn, sgi_str *text)
{
    do
        send_part(conn, text);
    while (conn->link && !conn->blocked && text->n);
    return conn->link && !text->n;
}

/* While the listener closes, the connection stays open, and its next request may have
 * arrived already. */
static void expired(sgi_timer *timer)
{
    sgi_http_conn *conn = SGI_OWNER(timer, sgi_http_conn, expiry);
    sgi_http_end_expired_stream(conn);
    sgi_http_conn_handle_waiting_input(conn);
}

static void set_expiry(sgi_http_conn *conn)
{
    sgi_engine *engine = engine_of(conn);
    int64_t left = sgi_time_sub(conn->expires_ms, sgi_wall_now(sgi_engine_env(engine)));
    sgi_engine_set_timer(engine, &conn->expiry, left > 0 ? left : 0, expired);
}

static void begin_answer(sgi_http_conn *conn, const sgi_http_answer_state *answer,
                         size_t len)
{
    sgi_http_answer_head head = {
        .status = answer->status,
        .type = answer->is_events ? SGI_HTTP_EVENTS : SGI_HTTP_JSON,
        .length = len,
        .session = answer->session,
        .server = answer->server,
    };
    sgi_bearer_gate *gate = conn->listener->bearer;
    if (gate && answer->status == 403)
        head.challenge = sgi_bearer_challenge(
            gate, SGI_BEARER_LACKS, refusals[SGI_BEARER_LACKS].problem, answer->lacks);
    conn->is_events = answer->is_events;
    if (conn->is_events && conn->expires_ms != INT64_MAX)
        set_expiry(conn);
    if (conn->is_events && !conn->chunks)
        conn->last = true; /* without chunks, the end of the connection ends the stream */
    head.chunked = conn->is_events && conn->chunks;
    add_head(conn, &head);
}

/* Moves the listener's text buffer into the connection, whose last bytes `rest` are sent
 * later. */
static void keep_rest(sgi_http_conn *conn, sgi_str rest)
{
    sgi_buf *text = &conn->listener->text;
    conn->rest_at = text->len - rest.n;
    sgi_buf empty = conn->rest;
    conn->rest = *text;
    *text = empty;
}

/* Sends the exchange's output. A handler can write its answer during
 * sgi_conn_take_output, so whether the answer is complete is determined after that
 * call. */
static void send_output(sgi_http_conn *conn, sgi_http_answer_state *answer)
{
    sgi_buf *text = &conn->listener->text;
    sgi_conn_take_output(conn->exchange, text);
    sgi_serve_get_answer_state(conn->exchange, answer);
    sgi_str left = sgi_buf_str(text);
    bool anything = left.n || answer->answered || !conn->head_sent;
    conn->ends = answer->answered;
    if (anything && !conn->head_sent)
        begin_answer(conn, answer, left.n);
    bool all = !anything || send_text(conn, &left);
    if (conn->link && !all)
        keep_rest(conn, left);
    sgi_buf_reset(&conn->listener->text, KEEP_TEXT);
    if (all && conn->ends)
        sgi_http_conn_read_next_request(conn);
}

/* Sends the bytes of `rest`. Returns false when some bytes are left, or when the
 * connection is gone. */
static bool send_rest(sgi_http_conn *conn)
{
    sgi_str left = {conn->rest.p + conn->rest_at, conn->rest.len - conn->rest_at};
    if (!left.n)
        return true;
    bool all = send_text(conn, &left);
    conn->rest_at = conn->rest.len - left.n;
    if (all)
        sgi_buf_free(&conn->rest);
    if (all)
        conn->rest_at = 0;
    return all;
}

void sgi_http_flush(sgi_http_conn *conn)
{
    sgi_http_answer_state answer;
    if (!conn->link || conn->stage != SGI_HTTP_SERVING || conn->blocked ||
        !send_rest(conn))
        return;
    if (conn->ends) {
        sgi_http_conn_read_next_request(conn);
        return;
    }
    if (conn->blocked || !conn->exchange || sgi_conn_transport(conn->exchange) != conn)
        return;
    sgi_serve_get_answer_state(conn->exchange, &answer);
    if (!answer.open && (answer.is_events || answer.answered))
        send_output(conn, &answer);
}

void sgi_http_on_writable(sgi_http_conn *conn)
{
    conn->blocked = false;
    conn->wait = SGI_HTTP_WAIT_NOTHING;
    if (conn->stage == SGI_HTTP_SERVING && conn->is_events)
        sgi_http_conn_set_deadline(conn, SGI_HTTP_WAIT_EVENT,
                                   conn->listener->options.keepalive_ms);
    sgi_http_flush(conn);
}

/* ---- ending an exchange ---- */

void sgi_http_drop_exchange(sgi_http_conn *conn)
{
    sgi_conn *exchange = conn->exchange;
    sgi_http_forget_board(conn);
    if (!exchange)
        return;
    conn->exchange = NULL;
    sgi_conn *spare = sgi_serve_end_exchange(exchange, conn);
    if (spare)
        conn->spare = spare;
    sgi_conn_unref(exchange);
}

void sgi_http_end_expired_stream(sgi_http_conn *conn)
{
    sgi_http_answer_state answer;
    if (!conn->link || !conn->exchange || sgi_conn_transport(conn->exchange) != conn)
        return;
    sgi_serve_get_answer_state(conn->exchange, &answer);
    if (answer.is_events && answer.resumable)
        sgi_http_end_exchange(conn);
}

/* Ends the running exchange. An answer that has begun ends as its framing requires. If no
 * answer has begun, the request is refused with 503. */
void sgi_http_end_exchange(sgi_http_conn *conn)
{
    sgi_http_flush(conn);
    if (!conn->link)
        return;
    /* the head of a stream that ends with its listener has told of no end */
    if (!conn->head_sent || conn->listener->stage == SGI_LISTENER_OPEN)
        conn->last = true;
    if (conn->stage != SGI_HTTP_SERVING) {
        sgi_http_conn_close(conn);
        return;
    }
    if (conn->ends)
        return; /* `rest` already contains the end of the answer */
    sgi_http_drop_exchange(conn);
    if (!conn->head_sent) {
        sgi_http_answer_head head = {.status = 503};
        send_problem(conn, &head, SGI_RPC_INTERNAL_ERROR, SGI_UNANSWERED_TEXT,
                     SGI_STR(SGI_UNANSWERED_DATA));
        return;
    }
    conn->ends = true;
    if (conn->rest_at < conn->rest.len)
        return;
    if (conn->chunks)
        sgi_http1_add_last_chunk(&conn->listener->room);
    send_room(conn);
    if (conn->link)
        sgi_http_conn_read_next_request(conn);
}
