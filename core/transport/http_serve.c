/* The way of a request to the engine: refusing a request by its head, identifying the
 * caller, and passing the request on.
 *
 * When the body of a refused request is short, the listener still reads the body, so that
 * the connection can be used again. Otherwise the request is answered at once and the
 * connection ends.
 *
 * If the application identifies callers, it is asked when the head is complete. Therefore
 * a refused caller cannot make the server hold a body, and is not asked to send one. The
 * question is a callback, perhaps on another thread. The callback reads the head in the
 * parser, which does not change until the application has answered; bytes that arrive
 * meanwhile wait. The loop then acts on the answer. If the application does not identify
 * callers, the body is read first. */
#include "transport/http_conn.h"

/* Maximum length in bytes of the body of a refused request that is still read. */
#define MAX_DISCARDED ((uint64_t)64 * 1024)
#define KEEP_BODY ((size_t)2 * 1024)

static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

void sgi_http_on_fault(sgi_http_conn *conn, int32_t status, const char *problem)
{
    conn->last = true;
    sgi_http_send_problem(conn, status, SGI_RPC_INVALID_REQUEST, problem, NULL);
}

static void refuse(sgi_http_conn *conn)
{
    const sgi_http_head_verdict *route = &conn->route;
    sgi_http_send_problem(conn, route->status, route->code, route->problem, route->allow);
}

/* ---- head ---- */

static bool is_short(const sgi_http1_head *head)
{
    return !head->expects_continue && !head->is_chunked &&
           head->content_length <= MAX_DISCARDED;
}

/* True when the body of a refused request is read before the answer, so that the
 * connection can be used again. The connection of an exchange is not the library's, so
 * its requests are refused at once. */
static bool is_cheap(const sgi_http_conn *conn)
{
    return !conn->given && is_short(&conn->parser.head);
}

/* True when a request that is no POST is answered before its body. */
static bool is_answered_early(const sgi_http_conn *conn)
{
    if (conn->route.kind == SGI_HTTP_POST)
        return false;
    return (conn->given && conn->route.kind == SGI_HTTP_REFUSED) ||
           !is_short(&conn->parser.head);
}

static bool is_closing(const sgi_http_conn *conn)
{
    return conn->listener->stage == SGI_LISTENER_SHUT ||
           sgi_serve_is_closed(conn->endpoint->server);
}

static void refuse_new_work(sgi_http_conn *conn)
{
    conn->last = true;
    sgi_http_send_ending(conn);
}

static void refuse_body(sgi_http_conn *conn)
{
    conn->last = true;
    if (conn->route.kind == SGI_HTTP_REFUSED)
        refuse(conn);
    else
        sgi_http_on_fault(conn, 413,
                          "A request with this HTTP method must not have a body");
}

static void ask_for_body(sgi_http_conn *conn)
{
    if (!conn->parser.head.expects_continue)
        return;
    conn->blocked = !sgi_link_write(conn->link, go_on, sizeof go_on - 1);
    if (conn->blocked)
        sgi_http_conn_set_deadline(conn, SGI_HTTP_WAIT_WRITE,
                                   conn->listener->options.write_timeout_ms);
}

/* ---- the caller ---- */

void sgi_http_conn_look_at_peer(sgi_http_conn *conn)
{
    sgi_link_peer peer;
    if (conn->peer.len)
        return;
    sgi_link_get_peer(conn->link, &peer);
    conn->is_local = peer.is_local;
    conn->is_known = sgi_link_add_cert_subject(conn->link, &conn->peer);
    if (!conn->is_known)
        sgi_buf_add_str(&conn->peer, sgi_str_of(peer.address));
    if (!sgi_buf_terminate(&conn->peer))
        sgi_buf_reset(&conn->peer, 0);
}

/* Records whom the application identified as the caller. May run on another thread than
 * the loop thread. */
static void identified(sgi_serve_identification *identifying, segue_status status,
                       sgi_principal *who, bool named)
{
    sgi_http_conn *conn = SGI_OWNER(identifying, sgi_http_conn, identifying);
    conn->is_asked = false;
    conn->asked = status;
    conn->named = named;
    conn->who = who;
    if (who)
        sgi_serve_ref_principal(who);
    conn->stage = SGI_HTTP_KNOWN;
    sgi_carrier_request_work(&conn->transport.carrier, SGI_WORK_OWN);
}

/* Returns the value of a request header, followed by a NUL. */
const char *sgi_http_conn_header(sgi_http_conn *conn, sgi_str name)
{
    size_t count = 0;
    sgi_str value = sgi_http1_find_header(&conn->parser.head, name, &count);
    bool is_single = conn->is_asked && count == 1;
    return is_single ? sgi_http1_terminate(&conn->parser.head, value) : NULL;
}

static void forget_grant(sgi_http_conn *conn)
{
    sgi_serve_unref_principal(conn->who);
    sgi_grant_unref(conn->grant);
    conn->who = NULL;
    conn->grant = NULL;
}

void sgi_http_drop_caller(sgi_http_conn *conn)
{
    sgi_bearer_cancel_check(&conn->check);
    sgi_grant_unref(conn->check.grant);
    conn->check.grant = NULL;
    conn->check.verdict = SGI_BEARER_IN;
    conn->expires_ms = INT64_MAX;
    sgi_engine_clear_timer(sgi_runtime_engine(conn->listener->carrier.runtime),
                           &conn->expiry);
    forget_grant(conn);
}

static void ask(sgi_http_conn *conn)
{
    sgi_http_conn_look_at_peer(conn);
    conn->stage = SGI_HTTP_ASKING;
    conn->is_asked = true;
    conn->wait = SGI_HTTP_WAIT_NOTHING;
    conn->identifying.identified = identified;
    sgi_serve_identify_caller(conn->endpoint->server, &conn->identifying, conn);
}

static bool is_stranger(sgi_http_conn *conn)
{
    const segue_listener *listener = conn->listener;
    if (conn->named || listener->trusted || listener->policy.local)
        return false;
    sgi_http_conn_look_at_peer(conn);
    return !conn->is_local && !conn->is_known;
}

/* ---- the engine ---- */

static sgi_str find_header(void *user, sgi_str name, bool *more)
{
    size_t count;
    sgi_str value = sgi_http1_find_header(user, name, &count);
    *more = count > 1;
    return value;
}

static void fill_head(sgi_http_conn *conn, sgi_http_request_head *head)
{
    const segue_listen_options *options = &conn->listener->options;
    const sgi_http1_head *parsed = &conn->parser.head;
    *head = (sgi_http_request_head){
        .version = sgi_http1_header(parsed, SGI_HTTP1_MCP_PROTOCOL_VERSION),
        .method = sgi_http1_header(parsed, SGI_HTTP1_MCP_METHOD),
        .name = sgi_http1_header(parsed, SGI_HTTP1_MCP_NAME),
        .session = sgi_http1_header(parsed, SGI_HTTP1_MCP_SESSION_ID),
        .last_event = sgi_http1_header(parsed, SGI_HTTP1_LAST_EVENT_ID),
        .takes_events = conn->route.takes_events,
        .lenient = options->lenient_headers != 0,
        .stranger = is_stranger(conn),
        .ending = conn->listener->stage != SGI_LISTENER_OPEN,
        .grant = conn->grant,
        .max_streams = options->max_streams,
        .max_sessions = options->max_sessions,
        .session_idle_ms = options->session_idle_ms,
        .max_replay = options->max_replay_bytes,
        .find = find_header,
        .all = &conn->parser.head,
        .user = &conn->parser.head,
        .context = conn->given ? conn->given->context : NULL,
    };
}

static void answer_verdict(sgi_http_conn *conn, const sgi_http_serve_verdict *verdict)
{
    sgi_http_answer_head head = {.status = verdict->status};
    if (verdict->ending)
        sgi_http_send_ending(conn);
    else if (verdict->limit.id)
        sgi_http_send_problem(
            conn, verdict->status, SGI_RPC_INVALID_REQUEST,
            sgi_engine_describe_limit(sgi_runtime_engine(conn->listener->carrier.runtime),
                                      verdict->problem, verdict->limit, "limit", NULL)
                .text,
            NULL);
    else if (verdict->problem)
        sgi_http_send_problem(conn, verdict->status, SGI_RPC_INVALID_REQUEST,
                              verdict->problem, verdict->status == 405 ? "POST" : NULL);
    else
        sgi_http_send_answer(conn, &head, (sgi_str){0});
}

static void give_to_engine(sgi_http_conn *conn, sgi_http_serve_verdict *verdict)
{
    sgi_http_request_head head;
    segue_server *server = conn->endpoint->server;
    fill_head(conn, &head);
    *verdict = (sgi_http_serve_verdict){0};
    if (conn->route.kind == SGI_HTTP_POST)
        sgi_serve_post(server, conn->who, &head, sgi_buf_str(&conn->parser.body), conn,
                       &conn->spare, verdict);
    else if (conn->route.kind == SGI_HTTP_GET)
        sgi_serve_get(server, conn->who, &head, conn, verdict);
    else
        sgi_serve_delete(server, conn->who, &head, verdict);
}

static void serve(sgi_http_conn *conn)
{
    sgi_http_serve_verdict verdict;
    conn->stage = SGI_HTTP_SERVING;
    if (conn->check.verdict != SGI_BEARER_IN) {
        sgi_http_send_verdict(conn);
        return;
    }
    if (conn->asked == SEGUE_E_NOMEM) {
        sgi_http_send_problem(conn, 503, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
        return;
    }
    if (conn->asked != SEGUE_OK) {
        sgi_http_send_problem(conn, 401, SGI_RPC_INVALID_REQUEST,
                              "The server does not accept this caller", NULL);
        return;
    }
    if (conn->route.kind == SGI_HTTP_METRICS) {
        sgi_http_answer_metrics(conn);
        forget_grant(conn);
        return;
    }
    if (conn->route.kind == SGI_HTTP_BOARD) {
        sgi_http_answer_board(conn);
        forget_grant(conn);
        return;
    }
    give_to_engine(conn, &verdict);
    forget_grant(conn);
    sgi_buf_reset(&conn->parser.body, KEEP_BODY);
    if (!verdict.conn) {
        answer_verdict(conn, &verdict);
        return;
    }
    conn->exchange = verdict.conn;
    sgi_conn_ref(conn->exchange);
    sgi_http_conn_set_deadline(conn, SGI_HTTP_WAIT_ANSWER,
                               conn->listener->options.stream_after_ms);
}

/* ---- tokens ---- */

/* Stores the verdict of a token check in the connection. The token of an accepted request
 * identifies the caller. */
static void take_verdict(sgi_http_conn *conn)
{
    sgi_bearer_check *check = &conn->check;
    bool in = check->verdict == SGI_BEARER_IN;
    conn->asked = in ? SEGUE_OK : SEGUE_E_REFUSED;
    conn->named = in;
    if (in) {
        conn->grant = check->grant;
        conn->expires_ms = sgi_grant_expires(check->grant);
        conn->who = sgi_grant_principal(check->grant);
        sgi_serve_ref_principal(conn->who);
    } else {
        sgi_grant_unref(check->grant);
    }
    check->grant = NULL;
}

/* Called once the verdict of a token check is known, perhaps not on the loop thread. */
static void verdict_decided(sgi_bearer_check *check)
{
    sgi_http_conn *conn = SGI_OWNER(check, sgi_http_conn, check);
    take_verdict(conn);
    conn->wait = SGI_HTTP_WAIT_NOTHING;
    conn->stage = SGI_HTTP_KNOWN;
    if (!conn->is_asked)
        sgi_carrier_request_work(&conn->transport.carrier, SGI_WORK_OWN);
}

/* Called with true before the callback in which the application reads the request, and
 * with false after that callback. The request must not change between the two calls. If
 * the connection has ended in the meantime, the loop handles the end afterwards. */
static void show(sgi_bearer_check *check, bool shown)
{
    sgi_http_conn *conn = SGI_OWNER(check, sgi_http_conn, check);
    if (shown)
        sgi_http_conn_look_at_peer(conn);
    conn->is_asked = shown;
    if (!shown)
        sgi_carrier_request_work(&conn->transport.carrier, SGI_WORK_OWN);
}

void sgi_http_refuse_late_check(sgi_http_conn *conn)
{
    sgi_bearer_cancel_check(&conn->check);
    verdict_decided(&conn->check);
}

/* Starts the check of the token. If the check refuses the request at once, a short body
 * of the request is still read. */
static void check_token(sgi_http_conn *conn)
{
    const sgi_http1_head *head = &conn->parser.head;
    sgi_bearer_gate *gate = conn->listener->bearer;
    conn->check.decided = verdict_decided;
    conn->check.shown = show;
    conn->check.transport = &conn->transport;
    conn->check.server = conn->endpoint->server;
    if (sgi_bearer_begin_check(gate, &conn->check,
                               sgi_http1_header(head, SGI_HTTP1_AUTHORIZATION),
                               head->query) == SGI_BEARER_WAITING) {
        conn->stage = SGI_HTTP_ASKING;
        sgi_http_conn_set_deadline(conn, SGI_HTTP_WAIT_CHECK,
                                   gate->options.check_timeout_ms);
        return;
    }
    take_verdict(conn);
    if (conn->asked != SEGUE_OK && !is_cheap(conn)) {
        conn->last = true;
        serve(conn);
        return;
    }
    conn->is_cleared = true;
    if (conn->asked == SEGUE_OK)
        ask_for_body(conn);
}

/* ---- from the head over the caller to the request ---- */

/* True when the caller of this request must be identified: the engine answers it, or it
 * asks for the metrics or for data of the task board. */
static bool needs_caller(const sgi_http_conn *conn)
{
    sgi_http_kind kind = conn->route.kind;
    return kind == SGI_HTTP_POST || kind == SGI_HTTP_GET || kind == SGI_HTTP_DELETE ||
           kind == SGI_HTTP_METRICS || kind == SGI_HTTP_BOARD;
}

/* Notes the endpoint that the request asks. A request that asks none, such as a health
 * check, leaves a removed endpoint, so that its server can end. A conversation that is
 * kept for the next request belongs to one server. */
static void choose_endpoint(sgi_http_conn *conn)
{
    sgi_http_endpoint *endpoint =
        sgi_http_endpoint_find(conn->listener, conn->parser.head.path);
    sgi_http_endpoint *before = conn->endpoint;
    if (endpoint == before || (!endpoint && !before->is_removed))
        return;
    sgi_serve_free_spare_conn(conn->spare);
    conn->spare = NULL;
    conn->past_route = SGI_HTTP_PAST_OTHER;
    if (endpoint)
        sgi_http_endpoint_enter(endpoint);
    conn->endpoint = endpoint ? endpoint : sgi_http_endpoint_enter_any(conn->listener);
    sgi_http_endpoint_leave(before);
}

/* What of a head decides its route, apart from headers that occur twice. */
#define ROUTE_BITS                                                                       \
    (SGI_HTTP1_REQUEST_CHANGED | 1u << SGI_HTTP1_HOST | 1u << SGI_HTTP1_ORIGIN |         \
     1u << SGI_HTTP1_ACCEPT | 1u << SGI_HTTP1_CONTENT_TYPE)

/* Takes the route of the last head for a head that repeats all that decides the route.
 * Whether the endpoint is open can have changed since then; the rules of a listener never
 * change. */
static bool repeat_route(sgi_http_conn *conn)
{
    const sgi_http1_head *head = &conn->parser.head;
    if (head->changed & ROUTE_BITS || head->repeated ||
        conn->past_route == SGI_HTTP_PAST_OTHER || !conn->endpoint->is_open)
        return false;
    conn->route = (sgi_http_head_verdict){.kind = SGI_HTTP_POST,
                                          .takes_events = conn->past_route ==
                                                          SGI_HTTP_PAST_POST_FOR_EVENTS};
    return true;
}

static sgi_http_past_route past_route_of(const sgi_http_head_verdict *route)
{
    if (route->kind != SGI_HTTP_POST || route->origin.p)
        return SGI_HTTP_PAST_OTHER;
    return route->takes_events ? SGI_HTTP_PAST_POST_FOR_EVENTS : SGI_HTTP_PAST_POST;
}

/* Checks the head by the rules of the listener. Where a client reaches the server is a
 * property of the listener, but of each exchange when the application carries it. */
static void choose_route(sgi_http_conn *conn)
{
    if (repeat_route(conn))
        return;
    sgi_http_policy policy = conn->listener->policy;
    if (conn->given) {
        policy.local = conn->given->local;
        policy.secure = conn->given->secure;
        policy.bound = conn->given->bound;
    }
    sgi_http_route_head(&policy, &conn->parser.head, &conn->route);
    conn->past_route = past_route_of(&conn->route);
}

/* Takes the principal that the application has found. */
static void take_given_principal(sgi_http_conn *conn)
{
    conn->named = true;
    conn->who = sgi_serve_named_principal(conn->endpoint->server, conn->given->principal);
    conn->asked = conn->who ? SEGUE_OK : SEGUE_E_NOMEM;
    conn->is_cleared = true;
}

void sgi_http_on_head(sgi_http_conn *conn)
{
    const sgi_http1_head *head = &conn->parser.head;
    choose_endpoint(conn);
    choose_route(conn);
    conn->last =
        !head->keep_alive || conn->given || conn->listener->stage != SGI_LISTENER_OPEN;
    conn->chunks = head->minor > 0 && !conn->given;
    conn->says_keep = !head->minor && head->keep_alive;
    if (is_answered_early(conn)) {
        refuse_body(conn);
    } else if (needs_caller(conn) && conn->given && conn->given->principal) {
        if (is_closing(conn))
            refuse_new_work(conn);
        else
            take_given_principal(conn);
    } else if (needs_caller(conn) &&
               (conn->listener->bearer ||
                sgi_serve_can_identify_callers(conn->endpoint->server))) {
        if (is_closing(conn))
            refuse_new_work(conn);
        else if (conn->listener->bearer)
            check_token(conn);
        else
            ask(conn);
    } else if (conn->route.kind == SGI_HTTP_POST) {
        ask_for_body(conn);
    }
}

/* Continues with the request once the caller is known. After a refusal the connection
 * stays open only if the rest of the request has already arrived. */
void sgi_http_on_caller(sgi_http_conn *conn)
{
    const sgi_http1_head *head = &conn->parser.head;
    bool is_there = is_cheap(conn) && head->content_length <= conn->input.len;
    if (conn->asked != SEGUE_OK && !is_there) {
        conn->last = true;
        serve(conn);
        return;
    }
    conn->is_cleared = true;
    conn->stage = SGI_HTTP_READING;
    ask_for_body(conn);
}

static void serve_nobody(sgi_http_conn *conn)
{
    conn->named = false;
    conn->who = sgi_serve_anonymous_principal(conn->endpoint->server);
    conn->asked = conn->who ? SEGUE_OK : SEGUE_E_NOMEM;
    serve(conn);
}

static void answer_preflight(sgi_http_conn *conn)
{
    sgi_http_answer_head head = {
        .status = 204,
        .preflight = true,
        .for_all = conn->route.kind == SGI_HTTP_METADATA_PREFLIGHT,
        .wanted = sgi_http1_find_header(&conn->parser.head,
                                        SGI_STR("access-control-request-headers"), NULL),
    };
    sgi_http_send_answer(conn, &head, (sgi_str){0});
}

static void answer_metadata(sgi_http_conn *conn)
{
    sgi_http_answer_head head = {.status = 200, .type = SGI_HTTP_JSON, .for_all = true};
    sgi_http_send_answer(conn, &head, sgi_buf_str(&conn->listener->bearer->metadata));
}

static void answer_check(sgi_http_conn *conn)
{
    sgi_http_answer_head ok = {.status = 200, .type = SGI_HTTP_TEXT};
    sgi_http_answer_head unready = {.status = 503, .type = SGI_HTTP_TEXT};
    if (conn->route.kind == SGI_HTTP_LIVE)
        sgi_http_send_answer(conn, &ok, SGI_STR("ok\n"));
    else if (conn->listener->stage != SGI_LISTENER_OPEN)
        refuse_new_work(conn);
    else if (conn->route.kind == SGI_HTTP_READY && conn->listener->unready)
        sgi_http_send_answer(conn, &unready, SGI_STR("not ready\n"));
    else
        sgi_http_send_answer(conn, &ok, SGI_STR("ok\n"));
}

void sgi_http_on_request(sgi_http_conn *conn)
{
    switch (conn->route.kind) {
    case SGI_HTTP_REFUSED:
        refuse(conn);
        break;
    case SGI_HTTP_HEALTH:
    case SGI_HTTP_READY:
    case SGI_HTTP_LIVE:
        answer_check(conn);
        break;
    case SGI_HTTP_PREFLIGHT:
    case SGI_HTTP_METADATA_PREFLIGHT:
        answer_preflight(conn);
        break;
    case SGI_HTTP_METADATA:
        answer_metadata(conn);
        break;
    case SGI_HTTP_BOARD_FILE:
        sgi_http_send_board_file(conn);
        break;
    default:
        if (conn->is_cleared)
            serve(conn);
        else if (is_closing(conn))
            refuse_new_work(conn);
        else
            serve_nobody(conn);
    }
}
