/* The life of an accepted connection: input, deadlines and the end.
 *
 * While no request is running, input is parsed directly in the link's read buffer. Bytes
 * that arrive while a request is served, or while the application is asked who the caller
 * is, wait in `input`. Reading continues up to MAX_WAITING waiting bytes, so that the end
 * of the connection is noticed.
 *
 * A connection has one timer. When the deadline moves to a later time, the timer is not
 * moved: it fires early and is set again. Therefore a busy connection sets timers a few
 * times per second and not with every request.
 *
 * The end has two steps. When the link is gone, the exchange is given back to the engine.
 * When the application is no longer being asked about this connection, the carrier
 * retires, and the memory is freed at the end of the turn. Therefore the code of this
 * file may use the connection until the end of the turn, even after a call that has ended
 * the connection. */
#include "transport/http_conn.h"

#include "base/thresholds.h"

#define MAX_WAITING ((size_t)64 * 1024)

/* The address of this object marks the transports of accepted connections. */
static const sgi_transport_ops kind = {0};

static sgi_engine *engine_of(const sgi_http_conn *conn)
{
    return sgi_runtime_engine(conn->listener->carrier.runtime);
}

static sgi_http_conn *conn_of(sgi_carrier *carrier)
{
    return SGI_OWNER(carrier, sgi_http_conn, transport.carrier);
}

sgi_http_conn *sgi_http_conn_of(const segue_transport *transport)
{
    return transport->ops == &kind
               ? SGI_OWNER((void *)(uintptr_t)transport, sgi_http_conn, transport)
               : NULL;
}

/* ---- the end of a connection ---- */

static void bury(sgi_http_conn *conn)
{
    if (conn->link || conn->is_asked || conn->transport.carrier.retired)
        return;
    sgi_engine_clear_timer(engine_of(conn), &conn->timer);
    sgi_http_drop_caller(conn);
    sgi_serve_free_spare_conn(conn->spare);
    sgi_serve_unref_principal(conn->who);
    conn->spare = NULL;
    conn->who = NULL;
    sgi_http_listener_remove_conn(conn->listener, conn);
    sgi_carrier_retire(&conn->transport.carrier);
}

/* Ends a connection whose link is closed or gone. The link must not be used any more. */
static void leave(sgi_http_conn *conn)
{
    conn->link = NULL;
    sgi_http_drop_caller(conn);
    sgi_http_drop_exchange(conn);
    bury(conn);
}

void sgi_http_conn_close(sgi_http_conn *conn)
{
    if (!conn->link)
        return;
    sgi_link_close(conn->link);
    leave(conn);
}

void sgi_http_conn_cut(sgi_http_conn *conn)
{
    if (!conn->link)
        return;
    sgi_link_abort(conn->link);
    leave(conn);
}

static void on_closed(void *user, const char *why)
{
    (void)why;
    leave(user);
}

static void abandon(sgi_carrier *carrier)
{
    sgi_http_conn *conn = conn_of(carrier);
    sgi_serve_cancel_identifying(&conn->identifying);
    conn->is_asked = false;
    if (conn->link)
        sgi_http_conn_cut(conn);
    else
        bury(conn);
}

static void destroy(sgi_carrier *carrier)
{
    sgi_http_conn *conn = conn_of(carrier);
    const sgi_mem *mem = conn->input.mem;
    carrier->magic = 0;
    sgi_http1_free(&conn->parser);
    sgi_buf_free(&conn->input);
    sgi_buf_free(&conn->rest);
    sgi_buf_free(&conn->peer);
    sgi_free(mem, conn, sizeof *conn);
}

/* ---- deadlines ---- */

static void on_timer(sgi_timer *timer);

static void set_timer(sgi_http_conn *conn, int64_t ms)
{
    sgi_engine_set_timer(engine_of(conn), &conn->timer, ms, on_timer);
}

void sgi_http_conn_set_deadline(sgi_http_conn *conn, sgi_http_wait wait, int64_t ms)
{
    conn->wait = wait;
    if (wait == SGI_HTTP_WAIT_NOTHING)
        return;
    if (wait == SGI_HTTP_WAIT_WRITE)
        conn->taken = sgi_link_output_progress(conn->link);
    conn->deadline_ms = sgi_time_add(sgi_now(sgi_engine_env(engine_of(conn))), ms);
    if (!conn->timer.slot || conn->timer.at_ms > conn->deadline_ms)
        set_timer(conn, ms);
}

/* Returns the rest of idle_drain_ms, for a listener that closes. */
static int64_t lingering_ms(const sgi_http_conn *conn)
{
    int64_t now = sgi_now(sgi_engine_env(engine_of(conn)));
    int64_t left = conn->listener->idle_until_ms - now;
    return left > 0 ? left : 0;
}

/* Returns the time for which the connection may be idle from now on. Clients that come
 * back may use a new connection until the listener is shut. */
static int64_t idle_ms(const sgi_http_conn *conn)
{
    const segue_listener *listener = conn->listener;
    return listener->stage == SGI_LISTENER_SHUT ? lingering_ms(conn)
                                                : listener->options.idle_timeout_ms;
}

/* Sets the deadline for the next input of the client. Called when all input that has
 * arrived is used up. */
static void wait_for_input(sgi_http_conn *conn)
{
    if (!sgi_http1_has_begun(&conn->parser) && !sgi_http_ready_mark(&conn->ready))
        sgi_http_ready_add(conn);
    const segue_listen_options *options = &conn->listener->options;
    sgi_http_wait wait = !sgi_link_is_ready(conn->link)       ? SGI_HTTP_WAIT_HANDSHAKE
                         : conn->in_body                      ? SGI_HTTP_WAIT_BODY
                         : sgi_http1_has_begun(&conn->parser) ? SGI_HTTP_WAIT_HEAD
                                                              : SGI_HTTP_WAIT_REQUEST;
    if (wait == conn->wait)
        return;
    sgi_http_conn_set_deadline(conn, wait,
                               wait == SGI_HTTP_WAIT_BODY ? options->body_timeout_ms
                               : wait == SGI_HTTP_WAIT_REQUEST
                                   ? idle_ms(conn)
                                   : options->header_timeout_ms);
}

static void time_is_up(sgi_http_conn *conn, sgi_http_wait wait)
{
    conn->wait = SGI_HTTP_WAIT_NOTHING;
    switch (wait) {
    case SGI_HTTP_WAIT_HANDSHAKE:
        /* the TLS handshake has ended but no request has arrived, so the next deadline
         * is set */
        if (sgi_link_is_ready(conn->link))
            wait_for_input(conn);
        else
            /* the TLS handshake has not ended in time */
            sgi_http_conn_cut(conn);
        break;
    case SGI_HTTP_WAIT_REQUEST:
        sgi_http_conn_close(conn);
        break;
    case SGI_HTTP_WAIT_HEAD:
        sgi_http_on_fault(conn, 408, "The head of the request took too long");
        break;
    case SGI_HTTP_WAIT_BODY:
        sgi_http_on_fault(conn, 408, "The body of the request took too long");
        break;
    case SGI_HTTP_WAIT_CHECK:
        sgi_http_refuse_late_check(conn);
        break;
    case SGI_HTTP_WAIT_ANSWER:
        if (conn->exchange && sgi_conn_transport(conn->exchange) == conn)
            sgi_serve_open_stream(conn->exchange);
        break;
    case SGI_HTTP_WAIT_EVENT:
        sgi_http_send_comment(conn);
        break;
    case SGI_HTTP_WAIT_WRITE:
        if (sgi_link_output_progress(conn->link) == conn->taken)
            sgi_http_conn_cut(conn);
        else /* the client is slow but has read something since the last check */
            sgi_http_conn_set_deadline(conn, wait,
                                       conn->listener->options.write_timeout_ms);
        break;
    case SGI_HTTP_WAIT_NOTHING:
        break;
    }
}

static void on_timer(sgi_timer *timer)
{
    sgi_http_conn *conn = SGI_OWNER(timer, sgi_http_conn, timer);
    if (!conn->link || conn->wait == SGI_HTTP_WAIT_NOTHING)
        return;
    int64_t left = conn->deadline_ms - sgi_now(sgi_engine_env(engine_of(conn)));
    if (left > 0)
        set_timer(conn, left);
    else
        time_is_up(conn, conn->wait);
}

/* ---- input ---- */

/* The head of an exchange is there from the beginning, and waits until the servers have
 * recovered. */
static bool may_parse(const sgi_http_conn *conn)
{
    return conn->link && conn->stage == SGI_HTTP_READING && !conn->blocked &&
           (!conn->given || conn->listener->is_open);
}

/* Refuses a request that is malformed or exceeds a limit. */
static void on_bad_request(sgi_http_conn *conn)
{
    const sgi_http1_fault *fault = &conn->parser.head.fault;
    const sgi_http1_limits *limits = &conn->parser.head.limits;
    const sgi_limit options[] = {
        [SGI_HTTP1_MAX_LINE] = {SGI_LIMIT_MAX_REQUEST_LINE,
                                (int64_t)limits->max_request_line},
        [SGI_HTTP1_MAX_HEAD] = {SGI_LIMIT_MAX_HEADER_BYTES, (int64_t)limits->max_head},
        [SGI_HTTP1_MAX_HEADERS] = {SGI_LIMIT_MAX_HEADERS, (int64_t)limits->max_headers},
        [SGI_HTTP1_MAX_BODY] = {SGI_LIMIT_MAX_MESSAGE_BYTES, (int64_t)limits->max_body},
    };
    const char *problem = fault->problem;
    sgi_limit_text text;
    if (fault->reached != SGI_HTTP1_NO_LIMIT) {
        text = sgi_engine_describe_limit(engine_of(conn), problem,
                                         options[fault->reached], "limit", NULL);
        problem = text.text;
    }
    sgi_http_on_fault(conn, fault->status, problem);
}

/* Ends a body without framing when its last byte was parsed. */
static bool end_body(sgi_http_conn *conn)
{
    if (!conn->is_whole || !conn->in_body)
        return false;
    conn->is_whole = false;
    sgi_http1_end_body(&conn->parser);
    return true;
}

static void parse(sgi_http_conn *conn, sgi_str *input)
{
    conn->parsing = true;
    while (may_parse(conn)) {
        sgi_http1_event event = sgi_http1_next(&conn->parser, input);
        if (event == SGI_HTTP1_MORE) {
            if (end_body(conn))
                continue;
            wait_for_input(conn);
            break;
        }
        conn->in_body = event == SGI_HTTP1_HEAD;
        if (event == SGI_HTTP1_HEAD)
            sgi_http_on_head(conn);
        else if (event == SGI_HTTP1_DONE)
            sgi_http_on_request(conn);
        else
            on_bad_request(conn);
    }
    conn->parsing = false;
}

static void keep_input(sgi_http_conn *conn, sgi_str input)
{
    sgi_buf_add_str(&conn->input, input);
    if (conn->input.failed) {
        sgi_http_conn_cut(conn);
    } else if (conn->input.len >= MAX_WAITING && !conn->unread) {
        conn->unread = true;
        sgi_link_set_reading(conn->link, false);
    }
}

static void on_bytes(void *user, const char *bytes, size_t len)
{
    sgi_http_conn *conn = user;
    sgi_str input = {bytes, len};
    if (!conn->input.len)
        parse(conn, &input);
    if (conn->link && input.n)
        keep_input(conn, input);
}

void sgi_http_conn_handle_waiting_input(sgi_http_conn *conn)
{
    sgi_str input = sgi_buf_str(&conn->input);
    if (conn->parsing || !may_parse(conn))
        return;
    parse(conn, &input);
    if (!conn->link)
        return;
    if (input.n)
        sgi_buf_drop_front(&conn->input, conn->input.len - input.n);
    else
        sgi_buf_free(&conn->input);
    if (conn->unread && conn->input.len < MAX_WAITING) {
        conn->unread = false;
        sgi_link_set_reading(conn->link, true);
    }
}

/* Keeps an idle connection of a closing listener open for the rest of idle_drain_ms, so
 * that a request which its client has sent meanwhile is refused and not cut. */
static void linger(sgi_http_conn *conn)
{
    int64_t left = conn->given || conn->blocked ? 0 : lingering_ms(conn);
    if (left > 0)
        sgi_http_conn_set_deadline(conn, SGI_HTTP_WAIT_REQUEST, left);
    else
        sgi_http_conn_close(conn);
}

void sgi_http_conn_read_next_request(sgi_http_conn *conn)
{
    sgi_http_drop_caller(conn);
    sgi_http_drop_exchange(conn);
    if (conn->last) {
        sgi_http_conn_close(conn);
        return;
    }
    sgi_http1_reset(&conn->parser);
    /* the route of the last request has views of the last head, which is gone */
    conn->route = (sgi_http_head_verdict){0};
    conn->stage = SGI_HTTP_READING;
    conn->head_sent = conn->is_events = conn->ends = conn->in_body = false;
    conn->is_cleared = false;
    if (!conn->blocked)
        conn->wait = SGI_HTTP_WAIT_NOTHING;
    if (conn->listener->stage != SGI_LISTENER_OPEN)
        linger(conn);
}

/* ---- ending an exchange ---- */

/* Ends a stream that its client can resume at another server. Called when the listener
 * closes, and when an answer becomes a stream while the listener closes. A stream that
 * carries the answer to a call is never ended here. In the stage SGI_LISTENER_RETURNS
 * only streams without a call of their own are ended: the GET stream and
 * subscriptions/listen. */
static void end_resumable(sgi_http_conn *conn)
{
    sgi_http_answer_state answer;
    sgi_listener_stage stage = conn->listener->stage;
    if (stage == SGI_LISTENER_OPEN || !conn->exchange ||
        sgi_conn_transport(conn->exchange) != conn)
        return;
    sgi_serve_get_answer_state(conn->exchange, &answer);
    bool leaves = stage == SGI_LISTENER_SHUT ? answer.resumable : answer.listens;
    if (answer.is_events && leaves && !answer.calls)
        sgi_http_end_exchange(conn);
}

/* True when SGI_WORK_CLOSE applies to the current exchange. The work can have been
 * requested for an earlier exchange that has ended. The current exchange is closed only
 * if it is closing itself or was taken over by another connection. An ending runtime
 * closes all exchanges. */
static bool is_to_close(const sgi_http_conn *conn)
{
    if (!sgi_runtime_is_open(conn->listener->carrier.runtime))
        return true;
    return conn->exchange && (sgi_conn_transport(conn->exchange) != conn ||
                              sgi_conn_is_closing(conn->exchange));
}

static void on_ended(void *user)
{
    sgi_http_conn *conn = user;
    conn->is_whole = true;
    sgi_http_conn_handle_waiting_input(conn);
}

static void on_writable(void *user)
{
    sgi_http_conn *conn = user;
    sgi_http_on_writable(conn);
    end_resumable(conn);
    sgi_http_conn_handle_waiting_input(conn);
}

/* ---- work ---- */

static void work(sgi_carrier *carrier, uint32_t bits)
{
    sgi_http_conn *conn = conn_of(carrier);
    if ((bits & SGI_WORK_OWN) && conn->link)
        sgi_link_work(conn->link);
    if (!conn->link) {
        bury(conn);
        return;
    }
    if ((bits & SGI_WORK_OWN) && conn->stage == SGI_HTTP_KNOWN)
        sgi_http_on_caller(conn);
    if (bits & SGI_WORK_OWN)
        sgi_http_deliver_board(conn);
    if (conn->link && bits & (SGI_WORK_FLUSH | SGI_WORK_CLOSE))
        sgi_http_flush(conn);
    if (conn->link && (bits & SGI_WORK_CLOSE) && is_to_close(conn))
        sgi_http_end_exchange(conn);
    end_resumable(conn);
    sgi_http_conn_handle_waiting_input(conn);
}

static const sgi_carrier_ops carrier_ops = {
    .work = work, .abandon = abandon, .destroy = destroy};

void sgi_http_conn_drain(sgi_http_conn *conn)
{
    /* an exchange has no next request; its input waits until the servers have
     * recovered */
    bool may_begin = conn->given && conn->listener->is_open;
    /* a client that was told of no end may send its next request on this connection */
    conn->last |= !conn->head_sent;
    if (!may_begin && conn->stage == SGI_HTTP_READING &&
        !sgi_http1_has_begun(&conn->parser) && !conn->input.len)
        linger(conn);
    else
        end_resumable(conn);
}

const sgi_link_events sgi_http_conn_link_events = {on_bytes, on_writable, on_closed,
                                                   on_ended};

static void init(sgi_http_conn *conn, segue_listener *listener)
{
    const sgi_mem *mem = listener->room.mem;
    sgi_carrier *carrier = &conn->transport.carrier;
    carrier->magic = SGI_MAGIC_TRANSPORT;
    carrier->ops = &carrier_ops;
    carrier->attached = true;
    carrier->grace_ms = SGI_GRACE_MS;
    conn->transport.ops = &kind;
    conn->transport.state = SGI_TRANSPORT_ATTACHED;
    conn->listener = listener;
    conn->endpoint = sgi_http_endpoint_enter_any(listener);
    conn->is_local = listener->policy.local;
    conn->expires_ms = INT64_MAX;
    sgi_http1_init(&conn->parser, mem, &listener->limits);
    sgi_buf_init(&conn->input, mem);
    sgi_buf_init(&conn->rest, mem);
    sgi_buf_init(&conn->peer, mem);
}

static void start(sgi_http_conn *conn, segue_listener *listener, sgi_link *link)
{
    conn->link = link;
    sgi_carrier_add(listener->carrier.runtime, &conn->transport.carrier);
    TAILQ_INSERT_TAIL(&listener->conns, conn, in_listener);
}

bool sgi_http_conn_open(segue_listener *listener, int fd)
{
    sgi_link *link;
    const sgi_mem *mem = listener->room.mem;
    sgi_http_conn *conn = sgi_zalloc(mem, sizeof *conn);
    /* when sgi_link_adopt fails, it closes the descriptor, even if conn is NULL */
    segue_status status =
        sgi_link_adopt(listener->gate, fd, &sgi_http_conn_link_events, conn, &link);
    if (status != SEGUE_OK || !conn) {
        if (status == SEGUE_OK)
            sgi_link_abort(link);
        sgi_free(mem, conn, sizeof *conn);
        return false;
    }
    init(conn, listener);
    start(conn, listener, link);
    sgi_http_listener_report(listener, SGI_EVENT_connection_opened);
    wait_for_input(conn);
    return true;
}

sgi_http_conn *sgi_http_conn_open_by_hand(segue_listener *listener, sgi_link *link,
                                          const sgi_http_given *given,
                                          const sgi_http1_head *head)
{
    sgi_http_conn *conn = sgi_zalloc(listener->room.mem, sizeof *conn);
    if (!conn)
        return NULL;
    init(conn, listener);
    sgi_http1_take_head(&conn->parser, head);
    conn->given = given;
    /* a token check may use the loop, which fetches keys */
    conn->transport.carrier.is_free = !listener->bearer;
    start(conn, listener, link);
    return conn;
}
