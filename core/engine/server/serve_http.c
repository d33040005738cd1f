/* The checks of a request have this order (R-0-7): envelope, headers, version, method,
 * capability, parameters. sgi_conn_parse checks the envelope, header_check.c the headers,
 * era_modern.c everything else.
 *
 * A request of 2026-07-28 is served by a spare conversation. The connection of the
 * request keeps the spare conversation and uses it again for the next request. A request
 * of an earlier version gets a new conversation, which belongs to the session and can
 * outlive the connection, or without a session a spare one (serve_sessionless.c). */
#include "engine/server/serve_http.h"

#include "engine/conversation/batch.h"
#include "engine/conversation/replay.h"
#include "engine/server/serve_batch.h"
#include "engine/server/grant.h"
#include "engine/server/mailbox.h"
#include "engine/server/origin.h"
#include "engine/server/serve_session.h"
#include "engine/server/session_name.h"
#include "engine/server/withdrawn.h"

/* The verdict for an answer to a question that another server asked. The client sends the
 * answer again; the next attempt may reach the server that asked. */
static const sgi_http_serve_verdict another_server = {
    .status = 503,
    .problem = "The answer belongs to a question of another server, or this server has "
               "no room for the answer now: send the answer again"};
/* The verdict for a notification that withdraws a call by its key. The client sends the
 * notification again. */
static const sgi_http_serve_verdict too_many_withdrawn = {
    .status = 503,
    .problem = "Too many cancelled calls are being looked up: send the notification "
               "again"};
/* ---- conversations ---- */

/* Returns the peer of the spare conversation (which the connection keeps for its next
 * request). Makes the spare conversation if there is none. Returns NULL when out of
 * memory. */
static sgi_peer *take_spare(segue_server *server, sgi_principal *who,
                            const sgi_http_request_head *head, void *transport,
                            sgi_conn **spare)
{
    sgi_peer *peer = NULL;
    if (*spare) {
        peer = (*spare)->self;
        sgi_principal_ref(who);
        sgi_principal_unref(peer->who);
        peer->who = who;
        peer->own_handshake.version = SGI_VERSION_UNKNOWN;
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
    if (!sgi_peer_set_origin(peer, head))
        return NULL;
    sgi_conn_start(peer->conn);
    peer->conn->frames = SGI_FRAMES_OPEN;
    peer->conn->no_events = !head->takes_events;
    return peer;
}

static void give_conn(sgi_http_serve_verdict *verdict, sgi_conn **spare, sgi_conn *conn)
{
    if (*spare == conn)
        *spare = NULL;
    *verdict = (sgi_http_serve_verdict){.conn = conn};
}

/* ---- requests of 2026-07-28 ---- */

/* True when the header and _meta of a request show that it belongs to the modern era
 * (2026-07-28). A request without a session that names an unknown version also counts as
 * modern, because the error of the modern era lists the versions of the server. */
static bool is_stateless(const sgi_http_request_head *head, const sgi_inbound *in,
                         sgi_json method)
{
    sgi_version version = sgi_version_parse(head->version);
    if (in->protocol.n && (sgi_facts(version)->is_stateless ||
                           sgi_inbound_is_stateless(in, method, head->session.n > 0)))
        return true;
    if (version == SGI_VERSION_UNKNOWN)
        return head->version.n > 0 && !head->session.n;
    return sgi_facts(version)->is_stateless;
}

static void serve_modern(const sgi_http_request_head *head, sgi_inbound *in,
                         const sgi_message *msg)
{
    sgi_conn *conn = in->peer->conn;
    conn->stateless = true;
    const char *problem = sgi_find_header_mismatch(head, in, msg->method);
    if (problem)
        sgi_answer_error(in, SGI_RPC_HEADER_MISMATCH, problem, NULL);
    else
        sgi_inbound_handle(in, msg);
}

/* ---- requests of the handshake eras ---- */

/* Checks a header of DRAFT-2026-v1: a request about a task must repeat the task's id in a
 * header (R-2557-48). Returns the problem, or NULL. */
static const char *draft_mismatch(const sgi_http_request_head *head,
                                  const sgi_inbound *in, const sgi_message *msg)
{
    const sgi_version_facts *facts = sgi_facts(in->peer->handshake->version);
    bool repeats = facts->header_repeats == SGI_REPEATS_TASK_IDS &&
                   (sgi_json_string_is(msg->method, SGI_STR("tasks/get")) ||
                    sgi_json_string_is(msg->method, SGI_STR("tasks/cancel")));
    return repeats ? sgi_find_header_mismatch(head, in, msg->method) : NULL;
}

/* spare: the peer of the spare conversation, which has read the request. */
static void serve_legacy(segue_server *server, sgi_principal *who,
                         const sgi_http_request_head *head, const sgi_message *msg,
                         sgi_peer *spare, sgi_http_serve_verdict *verdict)
{
    sgi_inbound in;
    bool opens = sgi_json_string_is(msg->method, SGI_STR("initialize"));
    sgi_wire_session *session = opens
                                    ? sgi_serve_open_session(server, who, head, verdict)
                                    : sgi_serve_find_session(server, who, head, verdict);
    if (!session)
        return;
    sgi_peer *peer =
        sgi_serve_begin_exchange(session, head, spare->conn->transport, verdict);
    if (!peer && opens)
        sgi_wire_session_end(session);
    if (!peer)
        return;
    sgi_peer_take_origin(peer, spare);
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

/* Lets a peer use the tables of a session while the peer handles a message that gets no
 * answer. session = NULL: the peer uses its own tables again. */
static void lend(sgi_peer *peer, sgi_wire_session *session)
{
    peer->questions = session ? &session->questions : &peer->own_questions;
    peer->in_flight = session ? &session->in_flight : &peer->own_in_flight;
    peer->handshake = session ? &session->handshake : &peer->own_handshake;
}

/* Forwards an answer to the server that asked the question. The POST is answered when the
 * forwarded answer is in the store. */
static void hear_elsewhere(sgi_peer *peer, const sgi_message *msg, sgi_conn **spare,
                           sgi_http_serve_verdict *verdict)
{
    if (sgi_mailbox_forward_answer(peer, msg, true))
        give_conn(verdict, spare, peer->conn);
    else
        *verdict = another_server;
}

/* Handles an answer to a question of the server. *verdict is at first the verdict for an
 * answer that was accepted. */
static void hear_answer(sgi_peer *peer, const sgi_message *msg, sgi_conn **spare,
                        sgi_http_serve_verdict *verdict)
{
    peer->is_post_of_answer = true;
    sgi_answered answered = sgi_peer_take_answer(peer, msg);
    peer->is_post_of_answer = false;
    if (answered == SGI_ANSWERED_LATER)
        hear_elsewhere(peer, msg, spare, verdict);
    else if (answered == SGI_ANSWERED_AWAITED)
        give_conn(verdict, spare, peer->conn);
}

/* Handles a notification, or an answer to a question of this server. Outside a session,
 * only the notification that withdraws a call has an effect. A client without a session
 * may send notifications/initialized all the same. */
static void hear(segue_server *server, sgi_principal *who,
                 const sgi_http_request_head *head, const sgi_message *msg,
                 sgi_peer *peer, sgi_conn **spare, sgi_http_serve_verdict *verdict)
{
    bool is_answer = msg->kind == SGI_MESSAGE_RESULT || msg->kind == SGI_MESSAGE_ERROR;
    if (!is_answer && !head->session.n) {
        if (!sgi_withdrawn_cancel_call(peer, msg))
            *verdict = too_many_withdrawn;
        else if (sgi_facts(sgi_version_parse(head->version))->is_stateless ||
                 sgi_json_string_is(msg->method, SGI_STR("notifications/initialized")))
            *verdict = (sgi_http_serve_verdict){.status = 202};
        else
            sgi_serve_find_session(server, who, head, verdict);
        return;
    }
    sgi_wire_session *session = sgi_serve_find_session(server, who, head, verdict);
    if (!session && !is_answer && !sgi_withdrawn_cancel_call(peer, msg))
        *verdict = too_many_withdrawn;
    if (!session)
        return;
    *verdict = (sgi_http_serve_verdict){.status = 202};
    lend(peer, session);
    if (is_answer)
        hear_answer(peer, msg, spare, verdict);
    else if (!sgi_peer_take_message(peer, msg))
        *verdict = too_many_withdrawn;
    lend(peer, NULL);
}

/* Handles a malformed message. If the message has the id of a question, the question is
 * answered with an error (R-0-2). */
static void hear_malformed(segue_server *server, sgi_principal *who,
                           const sgi_http_request_head *head, const sgi_message *msg,
                           sgi_peer *peer)
{
    sgi_http_serve_verdict unknown = {0};
    sgi_wire_session *session = NULL;
    if (!msg->is_call && head->session.n)
        session = sgi_serve_find_session(server, who, head, &unknown);
    if (!session)
        return;
    lend(peer, session);
    sgi_question_requests_take_malformed(peer, msg);
    lend(peer, NULL);
}

/* Serves a batch. Returns false when the body is not a batch, or when the session's
 * version has no batches. */
static bool serve_batch(segue_server *server, sgi_principal *who,
                        const sgi_http_request_head *head, sgi_str body, sgi_peer *peer,
                        sgi_http_serve_verdict *verdict)
{
    sgi_engine *engine = server->engine;
    if (!head->session.n || !sgi_conn_is_batch(engine, body))
        return false;
    sgi_wire_session *session = sgi_serve_find_session(server, who, head, verdict);
    if (!session)
        return true;
    if (!sgi_facts(session->handshake.version)->has_batches)
        return false;
    if (sgi_batch_wants_answer(engine, body)) {
        sgi_peer *exchange =
            sgi_serve_begin_exchange(session, head, peer->conn->transport, verdict);
        if (exchange) {
            sgi_peer_take_origin(exchange, peer);
            sgi_serve_batch(exchange, body);
        }
        return true;
    }
    lend(peer, session);
    sgi_serve_batch(peer, body);
    lend(peer, NULL);
    *verdict = (sgi_http_serve_verdict){.status = 202};
    return true;
}

/* ---- POST and DELETE ---- */

static void serve_request(segue_server *server, sgi_principal *who,
                          const sgi_http_request_head *head, const sgi_message *msg,
                          sgi_peer *peer, sgi_conn **spare,
                          sgi_http_serve_verdict *verdict)
{
    sgi_inbound in;
    if (!sgi_inbound_read(&in, peer, msg)) {
        *verdict = sgi_serve_out_of_memory;
    } else if (is_stateless(head, &in, msg->method)) {
        give_conn(verdict, spare, peer->conn);
        serve_modern(head, &in, msg);
    } else if (sgi_needs_no_session(head, msg->method)) {
        give_conn(verdict, spare, peer->conn);
        sgi_serve_sessionless(head, &in, msg);
    } else {
        serve_legacy(server, who, head, msg, peer, verdict);
    }
}

void sgi_serve_post(segue_server *server, sgi_principal *who,
                    const sgi_http_request_head *head, sgi_str body, void *transport,
                    sgi_conn **spare, sgi_http_serve_verdict *verdict)
{
    sgi_message msg;
    int32_t code;
    const char *problem;
    bool is_closed = sgi_serve_is_closed(server);
    sgi_peer *peer = is_closed ? NULL : take_spare(server, who, head, transport, spare);
    *verdict = is_closed ? sgi_serve_closing : sgi_serve_out_of_memory;
    if (!peer || serve_batch(server, who, head, body, peer, verdict))
        return;
    if (!sgi_conn_parse(server->engine, transport, body, &msg, &code, &problem)) {
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

void sgi_serve_delete(segue_server *server, sgi_principal *who,
                      const sgi_http_request_head *head, sgi_http_serve_verdict *verdict)
{
    if (!head->session.n) {
        *verdict = (sgi_http_serve_verdict){
            .status = 405,
            .problem = "No session can be ended: the request has no Mcp-Session-Id"};
        return;
    }
    sgi_wire_session *session = sgi_serve_find_session(server, who, head, verdict);
    if (!session)
        return;
    sgi_wire_session_note_ended(session);
    sgi_wire_session_end(session);
    *verdict = (sgi_http_serve_verdict){.status = 204};
}

/* True when the client still waits for the answer to a request. An answer that is being
 * read back from the store, or whose task is being stored, counts. A stream that the
 * client can request again does not count. */
static bool has_call(const sgi_peer *peer)
{
    const sgi_reply *reply;
    LIST_FOREACH(reply, &peer->replies, by_peer)
        if (!reply->is_stream || sgi_reply_awaited_op(reply))
            return true;
    return false;
}

void sgi_serve_get_answer_state(const sgi_conn *conn, sgi_http_answer_state *answer)
{
    const sgi_peer *peer = conn->self;
    bool names = peer->session && conn->replay->stream == 1 &&
                 peer->handshake->version != SGI_VERSION_UNKNOWN;
    bool names_server = peer->session && peer->session->is_named &&
                        (names || peer == peer->session->listening);
    *answer = (sgi_http_answer_state){
        .open = conn->frames == SGI_FRAMES_OPEN,
        .is_events = conn->frames == SGI_FRAMES_EVENTS,
        .answered = (conn->answered || conn->parting) && TAILQ_EMPTY(&conn->sources),
        .status = conn->http_status ? conn->http_status : 200,
        .resumable = peer->session || peer->stream_count > 0,
        .calls = has_call(peer),
        .listens = !LIST_EMPTY(&peer->listens) ||
                   (peer->session && peer == peer->session->listening),
        .session = names ? peer->session->id : NULL,
        .server = names_server ? peer->server->mailbox.name : NULL,
        .lacks = conn->lacks,
    };
}

void sgi_serve_open_stream(sgi_conn *conn)
{
    sgi_send_open_event_stream(conn);
}

sgi_conn *sgi_serve_end_exchange(sgi_conn *conn, void *transport)
{
    sgi_peer *peer = conn->self;
    if (conn->transport != transport)
        return NULL;
    if (peer->session) {
        sgi_wire_session_detach_transport(peer);
        return NULL;
    }
    if (conn->replay) { /* the exchange has stored events, and its session has ended */
        sgi_conn_detach(conn);
        return NULL;
    }
    if (!conn->up)
        return NULL; /* the conversation has already ended */
    sgi_conn_on_lost(conn, "the exchange is over");
    return conn;
}

void sgi_serve_free_spare_conn(sgi_conn *spare)
{
    if (spare)
        sgi_conn_detach(spare);
}
