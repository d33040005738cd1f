/* One exchange of a client.
 *
 *   begun --headers known--> POST under way --head--> JSON or events --> released
 *                                 |                        |
 *                                 +-- 401: once more       +-- cut: GET, Last-Event-ID
 *
 * Only a server of the handshake eras gives its events ids, so only there a stream that
 * was cut is taken up again here; in the modern era the engine sees the loss and asks by
 * the means of the operation. Nothing is posted twice but what the server refused: when a
 * stream cannot be taken up again the engine hears of a loss and decides.
 *
 * Backpressure: when the engine is ahead of its reader, what has come stays in `held`
 * (one block of libcurl's at most) and the exchange is paused.
 *
 * What the engine sets no time limit to ends by silence: a stream, and a message that has
 * no answer. A GET that resumes a stream also ends by silence, because other answers
 * about the task restart the time limit of the call. */
#include "transport/http_ask.h"

#include <stdio.h>

#include "base/backoff.h"

#include <strings.h>

#define RETRY_FIRST_MS 1000
#define RETRY_LEAST_MS 10
#define RETRY_MOST_MS 30000 /* unless the server asks for more */
#define RETRY_UNSAID (-1)
#define RESUMPTIONS_MAX 8  /* in a row that bring nothing */
#define NO_ANSWER_MS 60000 /* for a message that has none, where silence is no limit */
#define ERROR_BODY_MAX ((size_t)64 * 1024)
/* So long a server may leave a stream open that has brought its answer. */
#define AFTERMATH_MS 2000

static void start(sgi_http_ask *ask);
static void watch_silence(sgi_http_ask *ask);
static void on_timer(sgi_timer *timer);
static void refused(sgi_http_ask *ask);

static sgi_engine *engine_of(const sgi_http_ask *ask)
{
    return sgi_runtime_engine(sgi_transport_runtime(&ask->client->base));
}

/* ---- life ---- */

static void free_ask(sgi_http_ask *ask)
{
    sgi_http_client *client = ask->client;
    sgi_engine *engine = engine_of(ask);
    if (ask->fetch)
        sgi_fetch_cancel(ask->fetch);
    sgi_engine_timer_clear(engine, &ask->timer);
    TAILQ_REMOVE(&client->asks, ask, link);
    sgi_buf_free(&ask->posted);
    sgi_buf_free(&ask->body);
    sgi_buf_free(&ask->held);
    sgi_buf_free(&ask->challenge);
    sgi_sse_free(&ask->sse);
    sgi_release(sgi_engine_mem(engine), ask, sizeof *ask);
    sgi_http_client_asked(client);
}

void sgi_http_ask_drop(sgi_http_ask *ask, const char *why)
{
    sgi_conn *conn = ask->conn;
    free_ask(ask); /* first: what the engine does about the loss may begin another */
    sgi_conn_lost(conn, why);
    sgi_ask_release(conn);
}

/* A token comes first; then the application is asked for headers, if it wants to be. */
void sgi_http_ask_depart(sgi_http_ask *ask)
{
    sgi_http_client *client = ask->client;
    if (sgi_http_ask_wants_token(ask))
        return;
    if (sgi_header_hook_asks(client->hook)) {
        ask->waits_for_headers = true;
        sgi_header_hook_ask(client->hook, client, 0);
    } else {
        start(ask);
    }
}

void sgi_http_ask_begin(sgi_http_client *client, sgi_conn *conn)
{
    sgi_engine *engine = sgi_runtime_engine(sgi_transport_runtime(&client->base));
    const sgi_mem *mem = sgi_engine_mem(engine);
    sgi_http_ask *ask = sgi_zalloc(mem, sizeof *ask);
    sgi_ask_head head;
    if (!ask) {
        sgi_ask_unsent(conn);
        sgi_conn_lost(conn, "out of memory");
        sgi_ask_release(conn);
        return;
    }
    sgi_ask_look(conn, &head);
    ask->client = client;
    ask->conn = conn;
    ask->kind = head.kind;
    ask->modern = head.modern;
    ask->span = head.span;
    ask->once = head.once;
    ask->retry_ms = RETRY_UNSAID;
    sgi_buf_init(&ask->posted, mem);
    sgi_buf_init(&ask->body, mem);
    sgi_buf_init(&ask->held, mem);
    sgi_buf_init(&ask->challenge, mem);
    sgi_sse_init(&ask->sse, mem, engine->max_message);
    sgi_ask_bind(conn, ask);
    TAILQ_INSERT_TAIL(&client->asks, ask, link);
    if (ask->kind != SGI_ASK_LISTEN)
        sgi_conn_output(conn, &ask->posted);
    sgi_http_ask_depart(ask);
}

void sgi_http_ask_go(sgi_http_ask *ask)
{
    ask->waits_for_headers = false;
    start(ask);
}

/* ---- out ---- */

static const sgi_fetch_events events;

/* It goes by GET: the stream of the session, or that of an answer once more. */
static bool resumes(const sgi_http_ask *ask)
{
    return ask->kind == SGI_ASK_LISTEN || ask->streams;
}

static void note_unsent(sgi_http_ask *ask)
{
    if (!resumes(ask) && !ask->status)
        sgi_ask_unsent(ask->conn);
}

static sgi_fetch_lane lane_of(const sgi_http_ask *ask)
{
    static const sgi_fetch_lane lanes[] = {[SGI_ASK_BRIEF] = SGI_FETCH_BRIEF,
                                           [SGI_ASK_REQUEST] = SGI_FETCH_REQUEST,
                                           [SGI_ASK_LONG] = SGI_FETCH_STREAM,
                                           [SGI_ASK_STANDING] = SGI_FETCH_STANDING};
    bool is_stream = ask->streams && ask->span == SGI_ASK_REQUEST;
    return is_stream ? SGI_FETCH_STREAM : lanes[ask->span];
}

/* Nothing of the engine's ends it. */
static bool ends_by_silence(const sgi_http_ask *ask)
{
    return resumes(ask) || ask->span >= SGI_ASK_LONG || !sgi_ask_waits(ask->conn);
}

static void send_now(sgi_http_ask *ask)
{
    sgi_http_client *client = ask->client;
    sgi_fetch_header_line lines[SGI_HTTP_LINES_MAX];
    sgi_fetch_request request = {
        .method = SGI_FETCH_POST, .headers = lines, .once = ask->once};
    sgi_buf body;
    if (resumes(ask)) {
        request.method = SGI_FETCH_GET;
        request.once = false;
    }
    sgi_http_ask_head(ask, &request, lines);
    sgi_buf_init(&body, sgi_engine_mem(engine_of(ask)));
    if (!resumes(ask)) {
        sgi_buf_add_str(&body, sgi_buf_str(&ask->posted));
        if (!client->auth && !sgi_header_hook_asks(client->hook))
            sgi_buf_free(&ask->posted); /* it is not sent a second time */
        request.body = &body;
    }
    request.lane = lane_of(ask);
    ask->status = 0;
    ask->ended = false;
    ask->heard_ms = sgi_now(&engine_of(ask)->env);
    segue_status status = body.failed ? SEGUE_E_NOMEM
                                      : sgi_fetch_start(client->fetcher, &request,
                                                        &events, ask, &ask->fetch);
    sgi_buf_free(&body);
    if (status == SEGUE_OK) {
        if (ends_by_silence(ask))
            watch_silence(ask);
        return;
    }
    ask->fetch = NULL;
    if (status == SEGUE_E_INVALID)
        sgi_ask_denied(ask->conn, "a header of the request cannot be sent");
    else
        note_unsent(ask);
    sgi_http_ask_drop(ask, "the request cannot be sent");
}

/* Sends the message, or takes up its stream again. Not in another wire session: there the
 * events of this one have no meaning, or that of another stream. */
static void start(sgi_http_ask *ask)
{
    sgi_http_client *client = ask->client;
    if (ask->streams && ask->wire_session != client->wire_session) {
        sgi_ask_forgotten(ask->conn, true, (sgi_str){0});
        sgi_http_ask_drop(ask, "the session of the stream is over");
        return;
    }
    ask->wire_session = client->wire_session;
    send_now(ask);
}

/* ---- silence, and coming again ---- */

static void watch_silence(sgi_http_ask *ask)
{
    int64_t ms = ask->client->silence_ms;
    if (ms <= 0 && !sgi_ask_waits(ask->conn))
        ms = NO_ANSWER_MS;
    if (ms > 0)
        sgi_engine_timer(engine_of(ask), &ask->timer, ms, on_timer);
}

static bool can_resume(const sgi_http_ask *ask)
{
    bool known = ask->kind == SGI_ASK_LISTEN || sgi_sse_last_id(&ask->sse).n;
    return ask->streams && !ask->modern && ask->kind != SGI_ASK_INITIALIZE && known &&
           sgi_ask_waits(ask->conn) && ask->resumptions < RESUMPTIONS_MAX;
}

/* What the server has asked for, else at once; and ever longer when that does not
 * help. */
static int64_t resume_delay(const sgi_http_ask *ask)
{
    sgi_backoff coming = {.first_ms = RETRY_FIRST_MS, .most_ms = RETRY_MOST_MS};
    if (ask->retry_ms == RETRY_UNSAID)
        return sgi_backoff_ms(&coming, ask->resumptions - 1);
    coming.first_ms = ask->retry_ms < RETRY_LEAST_MS ? RETRY_LEAST_MS : ask->retry_ms;
    if (coming.most_ms < coming.first_ms)
        coming.most_ms = coming.first_ms;
    return sgi_backoff_ms(&coming, ask->resumptions);
}

/* The stream is over, whole or not. */
static void stream_ended(sgi_http_ask *ask, const char *why)
{
    bool is_polled = ask->retry_ms != RETRY_UNSAID && !ask->resumptions;
    if (!can_resume(ask)) {
        sgi_http_ask_drop(ask, why);
        return;
    }
    ask->resumptions++;
    int64_t ms = resume_delay(ask);
    if (sgi_ask_again(ask->conn, why, ask->resumptions, is_polled, &ms))
        sgi_engine_timer(engine_of(ask), &ask->timer, ms, on_timer);
    else
        sgi_http_ask_drop(ask, why);
}

void sgi_http_ask_put_off(sgi_http_ask *ask, const char *why)
{
    sgi_ask_hold(ask->conn, false);
    sgi_buf_reset(&ask->body, 0);
    ask->flows = 0;
    if (!ask->streams)
        sgi_ask_put_off(ask->conn);
    stream_ended(ask, why);
}

/* What is under way is of no use. */
static void break_off(sgi_http_ask *ask)
{
    sgi_fetch_cancel(ask->fetch);
    ask->fetch = NULL;
    sgi_engine_timer_clear(engine_of(ask), &ask->timer);
}

static void on_timer(sgi_timer *timer)
{
    sgi_http_ask *ask = SGI_OWNER(timer, sgi_http_ask, timer);
    sgi_engine *engine = engine_of(ask);
    int64_t left = sgi_time_sub(sgi_time_add(ask->heard_ms, ask->client->silence_ms),
                                sgi_now(&engine->env));
    if (!ask->fetch) {
        sgi_http_ask_depart(ask);
    } else if (!sgi_ask_waits(ask->conn)) {
        sgi_http_ask_drop(ask, "the stream goes on after its answer");
    } else if (left > 0 || ask->held.len) {
        sgi_engine_timer(engine, timer, left > 0 ? left : ask->client->silence_ms,
                         on_timer);
    } else {
        break_off(ask);
        stream_ended(ask, "the stream fell silent");
    }
}

/* ---- in ---- */

static bool is_fine(const sgi_http_ask *ask)
{
    return ask->status >= 200 && ask->status < 300;
}

/* A media type, without its parameters. */
static bool is_type(sgi_str header, sgi_str type)
{
    return header.n >= type.n && !strncasecmp(header.p, type.p, type.n) &&
           (header.n == type.n || strchr("; \t", header.p[type.n]));
}

/* The status is fine, what comes is neither of the two kinds. */
static void take_other_kind(sgi_http_ask *ask)
{
    bool has_none = ask->status == 202 || ask->status == 204;
    if (ask->streams) {
        sgi_http_ask_drop(ask, "the server does not take up the stream again");
    } else if (ask->kind == SGI_ASK_LISTEN) {
        sgi_ask_refused(ask->conn, ask->status, (sgi_str){0});
        sgi_http_ask_drop(ask, "the server offers no stream");
    } else if (!has_none && sgi_ask_waits(ask->conn)) {
        sgi_ask_page(ask->conn, "the answer is neither JSON nor an event stream");
        sgi_http_ask_drop(ask, "the server gave no answer");
    }
}

static void take_head(void *user, sgi_fetch *fetch, int32_t status)
{
    sgi_http_ask *ask = user;
    sgi_str type = sgi_fetch_header(fetch, "content-type");
    ask->status = status;
    ask->is_events = ask->is_json = false;
    sgi_http_ask_heed(ask, fetch);
    sgi_http_ask_note(ask, fetch);
    if (!is_fine(ask))
        return;
    ask->asked_again = false;
    if (ask->kind == SGI_ASK_INITIALIZE &&
        !sgi_http_client_session(ask, sgi_fetch_header(fetch, "mcp-session-id"))) {
        sgi_http_ask_drop(ask, "the session's id cannot be kept");
        return;
    }
    if (is_type(type, SGI_STR("text/event-stream"))) {
        ask->is_events = ask->streams = true;
        sgi_fetch_lasts(fetch);
        if (ask->kind == SGI_ASK_LISTEN)
            sgi_ask_server(ask->conn, sgi_fetch_header(fetch, "dev-segue-server"));
        sgi_sse_reset(&ask->sse);
        watch_silence(ask);
    } else if (is_type(type, SGI_STR("application/json")) && !resumes(ask)) {
        ask->is_json = true;
    } else {
        take_other_kind(ask);
    }
}

static void take_event(sgi_http_ask *ask, const sgi_sse_event *event)
{
    bool is_message = event->data.n && sgi_str_eq(event->type, SGI_STR("message"));
    if (event->has_retry)
        ask->retry_ms = event->retry_ms;
    if (event->has_id || is_message)
        ask->resumptions = 0; /* it goes on */
    if (is_message)
        sgi_conn_message(ask->conn, event->data);
    if (is_message && event->has_id)
        sgi_ask_position(ask->conn, sgi_sse_last_id(&ask->sse));
}

/* What is too large may be the answer, and how long the rest takes is the server's to
 * say: nobody who waits is kept waiting for it. */
static void give_up_oversized(sgi_http_ask *ask)
{
    break_off(ask);
    sgi_ask_too_large(ask->conn);
    sgi_http_ask_drop(ask, "the answer is too large");
}

/* Gives events to the engine while it wants them; what is left over is in *input. False:
 * the exchange is over, and gone. */
static bool feed(sgi_http_ask *ask, sgi_str *input)
{
    sgi_conn *conn = ask->conn;
    sgi_sse_event event;
    sgi_sse_step step = SGI_SSE_EVENT;
    while (sgi_conn_wants_input(conn) &&
           (step = sgi_sse_next(&ask->sse, input, &event)) != SGI_SSE_MORE) {
        if (step == SGI_SSE_EVENT) {
            take_event(ask, &event);
            continue;
        }
        engine_of(ask)->warnings++;
        if (step == SGI_SSE_TOO_LONG && ask->kind != SGI_ASK_LISTEN &&
            sgi_ask_waits(conn)) {
            give_up_oversized(ask);
            return false;
        }
    }
    if (ask->fetch && !ask->aftermath && !sgi_ask_waits(conn)) {
        ask->aftermath = true;
        sgi_engine_timer(engine_of(ask), &ask->timer, AFTERMATH_MS, on_timer);
    }
    return true;
}

static void hold(sgi_http_ask *ask, sgi_str rest)
{
    if (!rest.n)
        return;
    sgi_buf_add_str(&ask->held, rest);
    if (!ask->held.failed) {
        sgi_fetch_pause(ask->fetch, true);
        return;
    }
    sgi_buf_reset(&ask->held, 0);
    break_off(ask);
    stream_ended(ask, "out of memory for the stream");
}

/* A body, which is looked at when it is whole. */
static void keep_body(sgi_http_ask *ask, sgi_str bytes)
{
    size_t most = is_fine(ask) ? engine_of(ask)->max_message : ERROR_BODY_MAX;
    if (!sgi_ask_waits(ask->conn))
        return;
    if (bytes.n <= most - ask->body.len) {
        sgi_buf_add_str(&ask->body, bytes);
        return;
    }
    sgi_buf_reset(&ask->body, 0);
    if (is_fine(ask)) {
        give_up_oversized(ask);
        return;
    }
    break_off(ask);
    refused(ask);
}

static void take_bytes(void *user, sgi_fetch *fetch, const char *bytes, size_t len)
{
    sgi_http_ask *ask = user;
    sgi_str input = {bytes, len};
    (void)fetch;
    ask->heard_ms = sgi_now(&engine_of(ask)->env);
    if (is_fine(ask))
        sgi_ask_alive(ask->conn);
    if (!ask->is_events) {
        keep_body(ask, input);
        return;
    }
    if (ask->held.len || feed(ask, &input))
        hold(ask, input);
}

/* ---- the end ---- */

/* A body that nobody waits for was not kept, and one without a byte is no message,
 * whatever type a server names for it. */
static void answered_in_full(sgi_http_ask *ask)
{
    if (ask->body.failed) {
        sgi_http_ask_drop(ask, "out of memory for the answer");
        return;
    }
    if (ask->is_json && ask->body.len && sgi_ask_waits(ask->conn))
        sgi_conn_message(ask->conn, sgi_buf_str(&ask->body));
    if (sgi_ask_waits(ask->conn) && ask->is_json)
        sgi_ask_unanswered(ask->conn, sgi_buf_str(&ask->body));
    else if (sgi_ask_waits(ask->conn))
        sgi_ask_refused(ask->conn, ask->status, (sgi_str){0});
    sgi_http_ask_drop(ask, "the exchange is over");
}

static void refused(sgi_http_ask *ask)
{
    const char *why = "the server refused";
    sgi_str body = ask->body.failed ? (sgi_str){0} : sgi_buf_str(&ask->body);
    if (sgi_http_ask_again(ask))
        return;
    if (ask->status == 404 && ask->in_session) {
        sgi_ask_forgotten(ask->conn, ask->streams, body);
    } else if (!ask->streams && ask->status == 401) {
        sgi_http_ask_unauthorized(ask);
    } else if (!ask->streams) {
        sgi_ask_refused(ask->conn, ask->status, body);
    } else if (sgi_ask_may_pass(ask->status)) {
        sgi_buf_reset(&ask->body, 0);
        stream_ended(ask, "the server did not take up the stream again");
        return;
    } else if (ask->status == 410) {
        why = "the stream was cut off, and the server keeps no more of what followed";
    } else {
        why = "the server does not take up the stream again";
    }
    sgi_http_ask_drop(ask, why);
}

static void take_fault(sgi_http_ask *ask, const sgi_fetch_outcome *outcome)
{
    switch (outcome->fault) {
    case SGI_FETCH_UNRESOLVED:
    case SGI_FETCH_UNREACHABLE:
    case SGI_FETCH_TIMEOUT:
        note_unsent(ask);
        break;
    case SGI_FETCH_UNTRUSTED:
    case SGI_FETCH_REDIRECTED:
    case SGI_FETCH_TOO_LARGE:
    case SGI_FETCH_MALFORMED:
        sgi_ask_denied(ask->conn, outcome->text);
        break;
    default:
        break;
    }
    stream_ended(ask, outcome->text);
}

static void take_end(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome)
{
    sgi_http_ask *ask = user;
    (void)fetch;
    ask->fetch = NULL;
    sgi_engine_timer_clear(engine_of(ask), &ask->timer);
    if (ask->held.len)
        ask->ended = true; /* looked at again when the engine has read what there is */
    else if (outcome->fault != SGI_FETCH_OK)
        take_fault(ask, outcome);
    else if (!is_fine(ask))
        refused(ask);
    else if (ask->is_events)
        stream_ended(ask, "the stream ended before the answer");
    else
        answered_in_full(ask);
}

static const sgi_fetch_events events = {
    .head = take_head, .bytes = take_bytes, .done = take_end};

void sgi_http_ask_look(sgi_http_ask *ask)
{
    sgi_str input = sgi_buf_str(&ask->held);
    if (sgi_ask_is_over(ask->conn)) {
        sgi_http_ask_drop(ask, "given up");
        return;
    }
    if (!ask->held.len)
        return;
    if (!feed(ask, &input))
        return;
    sgi_buf_drop(&ask->held, ask->held.len - input.n);
    if (ask->held.len)
        return;
    if (ask->ended)
        stream_ended(ask, "the stream ended before the answer");
    else if (ask->fetch)
        sgi_fetch_pause(ask->fetch, false);
}
