/* Order of checks (R-0-7): envelope, headers, version, method, capability, parameters.
 * The first is sgi_conn_parse, the second header_check.c, the others stand in
 * era_modern.c.
 *
 * A request of the modern era is served by the conversation that its connection keeps as
 * a spare: one per connection, used again and again. A request of the handshake eras gets
 * a conversation of its own, which belongs to the session and may outlive the
 * connection. */
#include "engine/serving/serve_http.h"

#include "engine/serving/batch.h"
#include "engine/serving/grant.h"
#include "engine/serving/mail.h"
#include "engine/serving/replay.h"
#include "engine/serving/session_name.h"
#include "engine/serving/wire_session.h"
#include "engine/serving/withdrawn.h"

static const sgi_http_verdict out_of_memory = {.status = 503, .problem = "Out of memory"};
/* While the application was asked who calls, the server may have closed. */
static const sgi_http_verdict closing = {.status = 503, .ending = true};
/* Its client sends the answer again, and may reach the server that asked. */
static const sgi_http_verdict another_server = {
    .status = 503,
    .problem = "The answer is for a question of another server, or there is no room for "
               "it now: send it again"};
/* No status that asks to try again; 404 would say that the session is over, 405 that
 * there are no streams. */
static const sgi_http_verdict gone = {.status = 410,
                                      .problem = "The stream of the event is over, and "
                                                 "no more of it is kept"};
/* The client would have a hole in its answer, and not see it. */
static const sgi_http_verdict partly_gone = {
    .status = 410,
    .problem = "Parts of the answer that came after the event are not kept any more "
               "(max_replay_bytes): send the request again, with its idempotency key "
               "if it has one"};

static sgi_http_verdict too_many_sessions(const sgi_http_head *head)
{
    return (sgi_http_verdict){.status = 503,
                              .problem = "Too many sessions",
                              .limit = {"max_sessions", head->max_sessions}};
}

/* ---- conversations ---- */

/* The peer that serves what belongs to no session. */
static sgi_peer *take_spare(segue_server *server, sgi_principal *who,
                            const sgi_http_head *head, void *transport, sgi_conn **spare)
{
    sgi_peer *peer = NULL;
    if (*spare) {
        peer = (*spare)->self;
        sgi_principal_ref(who);
        sgi_principal_unref(peer->who);
        peer->who = who;
    } else {
        peer = sgi_peer_new(server, transport, who);
        if (!peer)
            return NULL;
        peer->is_exchange = true;
        *spare = peer->conn;
    }
    peer->stranger = head->stranger;
    peer->ending = head->ending;
    peer->max_streams = head->max_streams;
    sgi_peer_set_grant(peer, head->grant);
    sgi_conn_start(peer->conn);
    peer->conn->frames = SGI_FRAMES_OPEN;
    peer->conn->no_events = !head->takes_events;
    return peer;
}

static void give_conn(sgi_http_verdict *verdict, sgi_conn **spare, sgi_conn *conn)
{
    if (*spare == conn)
        *spare = NULL;
    *verdict = (sgi_http_verdict){.conn = conn};
}

/* ---- 2026-07-28 ---- */

static bool is_modern(const sgi_http_head *head, const sgi_inbound *in, sgi_json method)
{
    sgi_version version = sgi_version_parse(head->version);
    if (in->protocol.n && (sgi_version_is_modern(version) ||
                           sgi_inbound_is_modern(in, method, head->session.n > 0)))
        return true;
    if (version == SGI_VERSION_UNKNOWN)
        return head->version.n > 0 && !head->session.n;
    return sgi_version_is_modern(version);
}

static void serve_modern(const sgi_http_head *head, sgi_inbound *in,
                         const sgi_message *msg)
{
    sgi_conn *conn = in->peer->conn;
    conn->modern = true;
    const char *problem = sgi_header_mismatch(head, in, msg->method);
    if (problem)
        sgi_answer_error(in, SGI_RPC_HEADER_MISMATCH, problem, NULL);
    else
        sgi_inbound_handle(in, msg);
}

/* ---- handshake eras ---- */

static bool is_known_version(sgi_str version)
{
    return !version.n || sgi_version_parse(version) != SGI_VERSION_UNKNOWN;
}

/* It may have begun at another server. */
static sgi_wire_session *adopt_session(segue_server *server, sgi_principal *who,
                                       const sgi_http_head *head,
                                       sgi_http_verdict *verdict)
{
    sgi_wire_session *session = NULL;
    segue_status status = sgi_session_adopt(
        server, who, head->session, head->max_sessions, head->session_idle_ms, &session);
    if (status == SEGUE_E_LIMIT)
        *verdict = too_many_sessions(head);
    else if (status == SEGUE_E_NOMEM)
        *verdict = out_of_memory;
    else if (status != SEGUE_OK)
        *verdict =
            (sgi_http_verdict){.status = 404, .problem = "There is no such session"};
    return session;
}

static sgi_wire_session *find_session(segue_server *server, sgi_principal *who,
                                      const sgi_http_head *head,
                                      sgi_http_verdict *verdict)
{
    sgi_wire_session *session = NULL;
    if (!head->session.n)
        *verdict = (sgi_http_verdict){
            .status = 400,
            .problem = "Send MCP-Protocol-Version: 2026-07-28, or initialize and then "
                       "Mcp-Session-Id"};
    else if (!is_known_version(head->version))
        *verdict = (sgi_http_verdict){.status = 400,
                                      .problem = "MCP-Protocol-Version is unknown"};
    else if (!(session = sgi_wire_session_find(server, who, head->session)))
        session = adopt_session(server, who, head, verdict);
    return session;
}

/* A new exchange of the session carries the answer. NULL when out of memory. */
static sgi_peer *begin_exchange(sgi_wire_session *session, const sgi_http_head *head,
                                void *transport, sgi_http_verdict *verdict)
{
    sgi_peer *peer =
        sgi_wire_session_exchange(session, (size_t)head->max_replay, transport);
    if (!peer) {
        *verdict = out_of_memory;
        return NULL;
    }
    peer->stranger = head->stranger;
    peer->ending = head->ending;
    peer->max_streams = head->max_streams;
    sgi_peer_set_grant(peer, head->grant);
    peer->conn->no_events = !head->takes_events;
    if (!sgi_replay_parse_at(head->last_event, peer->after_tag, &peer->after_seq))
        peer->after_tag[0] = 0;
    *verdict = (sgi_http_verdict){.conn = peer->conn};
    return peer;
}

/* Of the draft: what asks about a task repeats its id (R-2557-48). */
static const char *draft_mismatch(const sgi_http_head *head, const sgi_inbound *in,
                                  const sgi_message *msg)
{
    bool repeats = in->peer->handshake->version == SGI_VERSION_DRAFT_2026_V1 &&
                   (sgi_json_string_is(msg->method, SGI_STR("tasks/get")) ||
                    sgi_json_string_is(msg->method, SGI_STR("tasks/cancel")));
    return repeats ? sgi_header_mismatch(head, in, msg->method) : NULL;
}

static void serve_legacy(segue_server *server, sgi_principal *who,
                         const sgi_http_head *head, const sgi_message *msg,
                         void *transport, sgi_http_verdict *verdict)
{
    sgi_wire_session *session = NULL;
    sgi_inbound in;
    bool opens = sgi_json_string_is(msg->method, SGI_STR("initialize"));
    if (opens && head->ending) {
        *verdict = closing;
    } else if (opens) {
        segue_status status = sgi_wire_session_new(server, who, head->max_sessions,
                                                   head->session_idle_ms, &session);
        if (status == SEGUE_E_LIMIT)
            *verdict = too_many_sessions(head);
        else if (status != SEGUE_OK)
            *verdict = out_of_memory;
    } else {
        session = find_session(server, who, head, verdict);
    }
    if (!session)
        return;
    sgi_peer *peer = begin_exchange(session, head, transport, verdict);
    if (!peer && opens)
        sgi_wire_session_end(session);
    if (!peer)
        return;
    if (!sgi_inbound_read(&in, peer, msg)) {
        sgi_conn_close(peer->conn);
        return;
    }
    const char *problem = draft_mismatch(head, &in, msg);
    if (problem)
        sgi_answer_error(&in, SGI_RPC_HEADER_MISMATCH, problem, NULL);
    else
        sgi_inbound_handle(&in, msg);
}

/* The peer speaks for a session while it hears what needs no answer. */
static void lend(sgi_peer *peer, sgi_wire_session *session)
{
    peer->asks = session ? &session->asks : &peer->own_asks;
    peer->in_flight = session ? &session->in_flight : &peer->own_in_flight;
    peer->handshake = session ? &session->handshake : &peer->own_handshake;
}

/* What became of it is known when it is in the store, for the server that asked. */
static void hear_elsewhere(sgi_peer *peer, const sgi_message *msg, sgi_conn **spare,
                           sgi_http_verdict *verdict)
{
    if (sgi_mail_send(peer, msg))
        give_conn(verdict, spare, peer->conn);
    else
        *verdict = another_server;
}

/* A notification, or an answer to a question of ours. What a notification without a
 * session can say is which call is withdrawn. */
static void hear(segue_server *server, sgi_principal *who, const sgi_http_head *head,
                 const sgi_message *msg, sgi_peer *peer, sgi_conn **spare,
                 sgi_http_verdict *verdict)
{
    bool is_answer = msg->kind == SGI_MESSAGE_RESULT || msg->kind == SGI_MESSAGE_ERROR;
    if (!is_answer && !head->session.n) {
        sgi_withdraw_said(peer, msg);
        if (sgi_version_is_modern(sgi_version_parse(head->version)))
            *verdict = (sgi_http_verdict){.status = 202};
        else
            find_session(server, who, head, verdict);
        return;
    }
    sgi_wire_session *session = find_session(server, who, head, verdict);
    if (!session && !is_answer)
        sgi_withdraw_said(peer, msg);
    if (!session)
        return;
    *verdict = (sgi_http_verdict){.status = 202};
    lend(peer, session);
    if (!is_answer)
        sgi_peer_message(peer, msg);
    else if (sgi_peer_answer(peer, msg) == SGI_ANSWERED_LATER)
        hear_elsewhere(peer, msg, spare, verdict);
    lend(peer, NULL);
}

/* It is refused, and a question that it answers is over (R-0-2). */
static void hear_malformed(segue_server *server, sgi_principal *who,
                           const sgi_http_head *head, const sgi_message *msg,
                           sgi_peer *peer)
{
    sgi_http_verdict unknown = {0};
    sgi_wire_session *session = NULL;
    if (!msg->is_call && head->session.n)
        session = find_session(server, who, head, &unknown);
    if (!session)
        return;
    lend(peer, session);
    sgi_asks_malformed(peer, msg);
    lend(peer, NULL);
}

/* False when it is none, or the session's revision has none. */
static bool serve_batch(segue_server *server, sgi_principal *who,
                        const sgi_http_head *head, sgi_str body, sgi_peer *peer,
                        sgi_http_verdict *verdict)
{
    sgi_engine *engine = server->engine;
    if (!head->session.n || !sgi_conn_is_batch(engine, SGI_VERSION_2025_03_26, body))
        return false;
    sgi_wire_session *session = find_session(server, who, head, verdict);
    if (!session)
        return true;
    if (session->handshake.version != SGI_VERSION_2025_03_26)
        return false;
    if (sgi_batch_wants_answer(engine, body)) {
        peer = begin_exchange(session, head, peer->conn->transport, verdict);
        if (peer)
            sgi_batch_serve(peer, body);
        return true;
    }
    lend(peer, session);
    sgi_batch_serve(peer, body);
    lend(peer, NULL);
    *verdict = (sgi_http_verdict){.status = 202};
    return true;
}

/* ---- the door ---- */

static void serve_request(segue_server *server, sgi_principal *who,
                          const sgi_http_head *head, const sgi_message *msg,
                          sgi_peer *peer, sgi_conn **spare, sgi_http_verdict *verdict)
{
    sgi_inbound in;
    if (!sgi_inbound_read(&in, peer, msg)) {
        *verdict = out_of_memory;
    } else if (is_modern(head, &in, msg->method)) {
        give_conn(verdict, spare, peer->conn);
        serve_modern(head, &in, msg);
    } else {
        serve_legacy(server, who, head, msg, peer->conn->transport, verdict);
    }
}

void sgi_serve_post(segue_server *server, sgi_principal *who, const sgi_http_head *head,
                    sgi_str body, void *transport, sgi_conn **spare,
                    sgi_http_verdict *verdict)
{
    sgi_message msg;
    int32_t code;
    const char *problem;
    bool is_closed = sgi_serve_is_closed(server);
    sgi_peer *peer = is_closed ? NULL : take_spare(server, who, head, transport, spare);
    *verdict = is_closed ? closing : out_of_memory;
    if (!peer || serve_batch(server, who, head, body, peer, verdict))
        return;
    if (!sgi_conn_parse(server->engine, body, &msg, &code, &problem)) {
        give_conn(verdict, spare, peer->conn);
        sgi_send_error(peer->conn, (sgi_str){0}, code, sgi_str_of(problem),
                       (sgi_json){0});
    } else if (msg.kind == SGI_MESSAGE_REQUEST) {
        serve_request(server, who, head, &msg, peer, spare, verdict);
    } else if (msg.kind == SGI_MESSAGE_INVALID) {
        server->engine->warnings++;
        hear_malformed(server, who, head, &msg, peer);
        give_conn(verdict, spare, peer->conn);
        sgi_send_error(peer->conn, msg.is_response ? (sgi_str){0} : msg.id,
                       SGI_RPC_INVALID_REQUEST, sgi_str_of(msg.problem), (sgi_json){0});
    } else {
        hear(server, who, head, &msg, peer, spare, verdict);
    }
}

/* The exchange that a GET asks for: the one that its event names, or the stream of the
 * session. NULL without a verdict: that one is to be made. */
static sgi_peer *find_stream(const sgi_wire_session *session, sgi_str last_event,
                             uint64_t *event, sgi_http_verdict *verdict)
{
    int64_t stream;
    sgi_peer *peer = NULL;
    bool is_ours = sgi_replay_parse(last_event, &stream, event);
    if (is_ours)
        peer = sgi_wire_session_stream(session, stream, *event);
    if (peer && peer != session->listening &&
        sgi_replay_lacks(peer->conn->replay, *event)) {
        *verdict = partly_gone;
        return NULL;
    }
    if (peer)
        return peer;
    if (is_ours && sgi_wire_session_is_lost(session, stream)) {
        *verdict = gone; /* on the session's stream its call would wait for ever */
        return NULL;
    }
    peer = session->listening; /* an unknown id counts as none (R-975-18) */
    if (peer && peer->conn->closing && !peer->conn->transport)
        peer = NULL; /* it had no memory for a message, and says no more */
    /* who names the stream of GET of another server has seen nothing of this one */
    bool is_new = is_ours && session->is_named && stream & SGI_STREAM_OF_GET;
    *event = peer && !is_new ? peer->conn->replay->next - 1 : 0;
    if (peer && peer->conn->transport) {
        *verdict = (sgi_http_verdict){.status = 409,
                                      .problem = "The session has its stream open"};
        return NULL;
    }
    return peer;
}

/* NULL when out of memory. */
static sgi_peer *open_stream(sgi_wire_session *session, const sgi_http_head *head,
                             void *transport)
{
    sgi_peer *peer =
        sgi_wire_session_exchange(session, (size_t)head->max_replay, transport);
    if (!peer)
        return NULL;
    session->listening = peer;
    if (session->is_named)
        peer->conn->replay->stream |= SGI_STREAM_OF_GET;
    session->listened = peer->conn->replay->stream;
    sgi_send_open_events(peer->conn);
    sgi_updates_ready(peer);
    return peer;
}

void sgi_serve_get(segue_server *server, sgi_principal *who, const sgi_http_head *head,
                   void *transport, sgi_http_verdict *verdict)
{
    uint64_t event = 0;
    if (sgi_serve_is_closed(server)) {
        *verdict = closing;
        return;
    }
    if (!head->session.n) {
        *verdict =
            (sgi_http_verdict){.status = 405, .problem = "There is no stream to get"};
        return;
    }
    sgi_wire_session *session = find_session(server, who, head, verdict);
    if (!session)
        return;
    sgi_peer *peer = find_stream(session, head->last_event, &event, verdict);
    if (verdict->status)
        return;
    if (head->ending && (!peer || peer == session->listening)) {
        *verdict = closing;
        return;
    }
    if (!(peer && peer->got) && who->streams >= head->max_streams) {
        *verdict = (sgi_http_verdict){.status = 429,
                                      .problem = "Too many streams",
                                      .limit = {"max_streams", head->max_streams}};
        return;
    }
    if (!peer)
        peer = open_stream(session, head, transport);
    else if (!sgi_wire_session_take_up(peer, event, transport))
        peer = NULL;
    *verdict = peer ? (sgi_http_verdict){.conn = peer->conn} : out_of_memory;
    if (!peer)
        return;
    sgi_wire_session_got(peer);
    sgi_asks_place_all(session);
}

int32_t sgi_serve_delete(segue_server *server, sgi_principal *who,
                         const sgi_http_head *head)
{
    sgi_http_verdict verdict = {0};
    if (!head->session.n)
        return 405;
    sgi_wire_session *session = find_session(server, who, head, &verdict);
    if (!session)
        return verdict.status;
    sgi_session_ended(session);
    sgi_wire_session_end(session);
    return 204;
}

static bool has_call(const sgi_peer *peer)
{
    const sgi_reply *reply;
    LIST_FOREACH(reply, &peer->replies, by_peer)
        if (sgi_call_of(reply))
            return true;
    return false;
}

void sgi_serve_look(const sgi_conn *conn, sgi_http_answer *answer)
{
    const sgi_peer *peer = conn->self;
    bool names = peer->session && conn->replay->stream == 1 &&
                 peer->handshake->version != SGI_VERSION_UNKNOWN;
    *answer = (sgi_http_answer){
        .open = conn->frames == SGI_FRAMES_OPEN,
        .is_events = conn->frames == SGI_FRAMES_EVENTS,
        .answered = (conn->answered || conn->parting) && TAILQ_EMPTY(&conn->sources),
        .status = conn->http_status ? conn->http_status : 200,
        .resumable = peer->session || peer->stream_count > 0,
        .calls = has_call(peer),
        .listens = !LIST_EMPTY(&peer->listens) ||
                   (peer->session && peer == peer->session->listening),
        .session = names ? peer->session->id : NULL,
        .server =
            peer->session && peer->session->is_named && peer == peer->session->listening
                ? peer->server->name
                : NULL,
        .lacks = conn->lacks,
    };
}

void sgi_serve_open_stream(sgi_conn *conn)
{
    sgi_send_open_events(conn);
}

sgi_conn *sgi_serve_end(sgi_conn *conn, void *transport)
{
    sgi_peer *peer = conn->self;
    if (conn->transport != transport)
        return NULL;
    if (peer->session) {
        sgi_wire_session_let_go(peer);
        return NULL;
    }
    if (conn->replay) { /* of a session that has ended */
        sgi_conn_detach(conn);
        return NULL;
    }
    if (!conn->up)
        return NULL; /* it was given back already */
    sgi_conn_lost(conn, "the exchange is over");
    return conn;
}

void sgi_serve_free_spare(sgi_conn *spare)
{
    if (spare)
        sgi_conn_detach(spare);
}
