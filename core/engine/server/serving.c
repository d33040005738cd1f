/* The server's role in a conversation: this file handles messages and the end of the
 * conversation. A server gets the role as a parameter (struct sgi_server_ops). So this
 * file can use the server, and the server does not depend on this file. */
#include "engine/server/serving.h"

#include "engine/server/call.h"
#include "engine/server/call_report.h"
#include "engine/server/clients.h"
#include "engine/server/dialects.h"
#include "engine/server/identify.h"
#include "engine/server/late_answer.h"
#include "engine/server/mailbox.h"
#include "engine/server/parked_exchange.h"
#include "engine/server/task_creator.h"
#include "engine/server/lasting.h"
#include "engine/server/serve_batch.h"
#include "engine/server/wire_session.h"
#include "engine/server/withdrawn.h"

/* ---- the beginning of a conversation ---- */

/* Asks the application for the principal of a conversation. The server reads messages
 * only after the application has answered. */
static int32_t ask_application(sgi_ready_object *ready, int32_t budget)
{
    sgi_peer *peer = SGI_OWNER(ready, sgi_peer, ready);
    segue_server *server = peer->server;
    sgi_conn *conn = peer->conn;
    sgi_principal *who = NULL;
    bool named;
    (void)budget;
    /* These references keep conversation and server in memory while user code runs. */
    sgi_conn_ref(conn);
    sgi_server_ref(server);
    sgi_conn *carrier = conn->outer_conn ? conn->outer_conn->outer : conn;
    segue_status status =
        sgi_identify_principal(server, carrier->transport, &who, &named);
    if (!conn->detached) {
        peer->who = who;
        if (status != SEGUE_OK)
            sgi_conn_close(conn);
        else if (server->stage == SGI_SERVER_OPEN)
            sgi_peer_open(peer);
    } else if (who) {
        sgi_principal_unref(who);
    }
    sgi_conn_unref(conn);
    sgi_server_unref(server);
    return 1;
}

segue_status sgi_server_accept(segue_server *server, void *transport, sgi_conn **out)
{
    sgi_principal *who = NULL;
    if (server->stage >= SGI_SERVER_CLOSED)
        return SEGUE_E_CLOSED;
    if (!server->options.principal) {
        who = sgi_server_get_principal(server, NULL);
        if (!who)
            return SEGUE_E_NOMEM;
    }
    sgi_peer *peer = sgi_peer_new(server, transport, who);
    if (who)
        sgi_principal_unref(who);
    if (!peer)
        return SEGUE_E_NOMEM;
    server->is_idle = false;
    if (!who)
        sgi_ready_queue_add(server->engine, &peer->ready);
    sgi_server_start_recovery(server);
    peer->reading = server->stage == SGI_SERVER_OPEN && who;
    sgi_session_event_report(server, SGI_EVENT_session_opened);
    *out = peer->conn;
    return SEGUE_OK;
}

static void start(void *self)
{
    (void)self; /* nothing to do, because the client sends the first message */
}

static bool wants_input(void *self)
{
    return ((sgi_peer *)self)->reading;
}

/* ---- messages ---- */

/* Marks the replies with this id that are not in the table as cancelled. Such a reply is
 * cancelled when it is put into the table. */
static void cancel_out_of_table(const sgi_in_flight *in_flight, sgi_str id)
{
    sgi_reply *reply;
    LIST_FOREACH(reply, &in_flight->out_of_table, out_of_table_link)
        if (sgi_str_eq(id, sgi_str_of(reply->id)))
            reply->state = SGI_REPLY_CANCELLED_OUT_OF_TABLE;
}

/* Ends a request that the client has cancelled. The request gets no answer; its exchange
 * must still end (2025-11-25 basic/utilities/cancellation; R-776-26). A batch ends when
 * its other requests are answered. */
void sgi_peer_end_cancelled_request(sgi_reply *reply)
{
    sgi_conn *conn = reply->peer->conn;
    if (reply->peer->is_exchange) {
        sgi_op *op = sgi_reply_awaited_op(reply);
        if (op)
            /* questions must be withdrawn while the stream that carries the withdrawal is
             * still open */
            sgi_question_requests_withdraw(op);
        if (!conn->batches)
            sgi_send_end_without_answer(conn);
    }
    sgi_reply_cancel(reply);
}

static void handle_cancelled(sgi_peer *peer, sgi_json params)
{
    sgi_json id = sgi_json_get(params, "requestId");
    if (!sgi_id_is_usable(id))
        return;
    sgi_str key = sgi_peer_canonical_id(peer, id);
    if (!key.n)
        return;
    sgi_map_node *node = sgi_map_find(&peer->in_flight->by_id, key);
    if (node)
        sgi_peer_end_cancelled_request(SGI_OWNER(node, sgi_reply, node));
    else
        cancel_out_of_table(peer->in_flight, key);
}

/* Returns false when the notification has to come again. */
static bool handle_notification(sgi_peer *peer, const sgi_message *msg)
{
    if (sgi_json_string_is(msg->method, SGI_STR("notifications/cancelled"))) {
        handle_cancelled(peer, msg->params);
        return sgi_withdrawn_cancel_call(peer, msg);
    }
    if (sgi_json_string_is(msg->method, SGI_STR("notifications/initialized"))) {
        sgi_updates_allow(peer);
        sgi_client_note_reading(peer->handshake->client);
    } else if (sgi_json_string_is(msg->method,
                                  SGI_STR("notifications/roots/list_changed"))) {
        sgi_client_note_roots(peer->handshake->client);
    } else if (sgi_json_string_is(msg->method, SGI_STR("notifications/tasks/status"))) {
        sgi_question_requests_take_notification(peer, msg);
    }
    /* other notifications are ignored (R-0-3) */
    return true;
}

/* Refuses a request whose id is in flight. Over a byte stream, an error would look like
 * an answer to the first request, so the second request is ignored and logged (C-3). */
static void refuse_id(const sgi_inbound *in)
{
    sgi_peer *peer = in->peer;
    if (peer->is_exchange) {
        sgi_answer_error(in, SGI_RPC_INVALID_REQUEST,
                         "A request with this id is in flight already", NULL);
        return;
    }
    peer->server->engine->warnings++;
    sgi_engine_log(
        peer->server->engine, SEGUE_LOG_WARNING,
        "a request has an id that is in flight already: the request is ignored");
}

void sgi_inbound_handle(sgi_inbound *in, const sgi_message *msg)
{
    sgi_peer *peer = in->peer;
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_method_text(msg->method, room);
    bool shaken = peer->handshake->version != SGI_VERSION_UNKNOWN;
    if (sgi_map_find(&peer->in_flight->by_id, in->id) &&
        !sgi_srv_may_reuse_id(peer, method))
        refuse_id(in);
    else if (peer->conn->stateless || sgi_inbound_is_stateless(in, msg->method, shaken))
        sgi_handle_modern_request(in, method);
    else
        sgi_handle_legacy_request(in, method);
}

static void handle_request(sgi_peer *peer, const sgi_message *msg)
{
    sgi_inbound in;
    if (sgi_inbound_read(&in, peer, msg))
        sgi_inbound_handle(&in, msg);
    else
        /* There is no memory for any answer. The conversation closes, so that the client
         * does not wait for an answer. */
        sgi_conn_close(peer->conn);
}

void sgi_peer_hear(sgi_peer *peer, const sgi_message *msg)
{
    if (!sgi_peer_take_message(peer, msg))
        sgi_engine_log(peer->server->engine, SEGUE_LOG_WARNING,
                       "the cancellation of a call by its key is ignored, because too "
                       "many cancelled calls are being looked up");
}

sgi_answered sgi_peer_take_answer(sgi_peer *peer, const sgi_message *msg)
{
    if (peer->server->stage == SGI_SERVER_DEAD)
        return SGI_ANSWERED_LATER;
    sgi_answered answered = sgi_question_requests_take_answer(peer, msg);
    if (answered == SGI_ANSWERED_NOTHING)
        sgi_answer_log_dropped(peer->server->engine, msg->id);
    return answered;
}

bool sgi_peer_take_message(sgi_peer *peer, const sgi_message *msg)
{
    sgi_engine *engine = peer->server->engine;
    if (peer->server->stage == SGI_SERVER_DEAD)
        return true; /* the runtime has ended, so the server begins no new work */
    switch (msg->kind) {
    case SGI_MESSAGE_REQUEST:
        handle_request(peer, msg);
        break;
    case SGI_MESSAGE_NOTIFICATION:
        return handle_notification(peer, msg);
    case SGI_MESSAGE_INVALID:
        engine->warnings++;
        if (!sgi_question_requests_take_malformed(peer, msg) && !msg->is_response)
            sgi_send_error(peer->conn, msg->id, SGI_RPC_INVALID_REQUEST,
                           sgi_str_of(msg->problem), (sgi_json){0});
        break;
    default:
        if (sgi_peer_take_answer(peer, msg) == SGI_ANSWERED_LATER &&
            !sgi_mailbox_forward_answer(peer, msg, false))
            /* Over a byte stream, and in a batch, the server cannot ask the client to
             * repeat the answer, so the answer is dropped. */
            sgi_answer_log_dropped(engine, msg->id);
    }
    return true;
}

static void message(void *self, const sgi_message *msg)
{
    sgi_peer_hear(self, msg);
}

static void bad_input(void *self, int32_t rpc_code, const char *problem)
{
    sgi_peer *peer = self;
    sgi_send_error(peer->conn, (sgi_str){0}, rpc_code, sgi_str_of(problem),
                   (sgi_json){0});
}

/* ---- the end of a conversation ---- */

static void report_left(const sgi_reply *reply)
{
    const sgi_op *op = sgi_reply_awaited_op(reply);
    if (op)
        sgi_call_event_report(op, SGI_EVENT_client_left);
}

static void lost(void *self, const char *why)
{
    sgi_peer *peer = self;
    sgi_reply *reply;
    (void)why;
    sgi_task_creators_forget_peer(peer);
    sgi_client_end(peer->own_handshake.client);
    peer->own_handshake.client = NULL;
    while ((reply = LIST_FIRST(&peer->replies))) {
        reply->lost = true;
        report_left(reply);
        sgi_reply_cancel(reply);
    }
    sgi_question_requests_abandon(&peer->own_questions);
    sgi_lasting_calls_on_peer_lost(peer);
}

static bool passed(void *self)
{
    return sgi_lasting_calls_on_output_written(self);
}

static void kept(void *self)
{
    sgi_parked_drop_excess_events(self);
}

static void detached(void *self)
{
    sgi_peer *peer = self;
    sgi_ready_queue_remove(peer->server->engine, &peer->ready);
    sgi_output_source_remove(peer->conn, &peer->updates);
    TAILQ_REMOVE(&peer->server->peers, peer, link);
    if (!peer->is_exchange) {
        sgi_session_event_report(peer->server, SGI_EVENT_session_closed);
        sgi_server_note_peer_gone(peer->server);
    }
    sgi_peer_free(peer);
}

static const sgi_conn_role role = {.start = start,
                                   .message = message,
                                   .bad_input = bad_input,
                                   .batch = sgi_peer_serve_batch,
                                   .lost = lost,
                                   .wants_input = wants_input,
                                   .detached = detached,
                                   .passed = passed,
                                   .kept = kept};

const sgi_server_ops sgi_serving_mcp = {.role = &role,
                                        .identify = ask_application,
                                        .run_call = sgi_call_deliver_events,
                                        .fill_updates = sgi_updates_fill};
