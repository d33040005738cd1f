/* The conversation holds the peer; the peer holds the server. */
#include "engine/serving/peer.h"

#include "engine/dialect/dialect.h"
#include "engine/serving/batch.h"
#include "engine/serving/identify.h"
#include "engine/serving/late_answer.h"
#include "engine/serving/origin.h"
#include "engine/serving/resumable.h"
#include "engine/serving/withdrawn.h"
#include "engine/log/recovery.h"

static void start(void *self);
static void message(void *self, const sgi_message *message);
static void bad_input(void *self, int32_t rpc_code, const char *problem);
static void lost(void *self, const char *why);
static bool wants_input(void *self);
static void detached(void *self);
static bool passed(void *self);

static const sgi_role serving = {.start = start,
                                 .message = message,
                                 .bad_input = bad_input,
                                 .batch = sgi_peer_batch,
                                 .lost = lost,
                                 .wants_input = wants_input,
                                 .detached = detached,
                                 .passed = passed};

static void free_peer(sgi_peer *peer)
{
    segue_server *server = peer->server;
    sgi_map_free(&peer->own_in_flight);
    sgi_buf_free(&peer->id_text);
    sgi_marks_free(peer->marks);
    if (peer->got)
        peer->who->streams--;
    if (peer->who)
        sgi_principal_unref(peer->who);
    sgi_grant_unref(peer->grant);
    sgi_conn_unref(peer->conn);
    sgi_release(sgi_engine_mem(server->engine), peer, sizeof *peer);
    sgi_server_unref(server);
}

/* Asks the application who is there; nothing is read before the answer. */
static int32_t ask_application(sgi_ready *ready, int32_t budget)
{
    sgi_peer *peer = SGI_OWNER(ready, sgi_peer, ready);
    segue_server *server = peer->server;
    sgi_conn *conn = peer->conn;
    sgi_principal *who = NULL;
    bool named;
    (void)budget;
    sgi_conn_ref(conn); /* both may be given up by everybody else meanwhile */
    sgi_server_ref(server);
    sgi_conn *carrier = conn->bearer ? conn->bearer->outer : conn;
    segue_status status = sgi_identify(server, carrier->transport, &who, &named);
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

sgi_peer *sgi_peer_new(segue_server *server, void *transport, sgi_principal *who)
{
    sgi_engine *engine = server->engine;
    sgi_peer *peer = sgi_zalloc(sgi_engine_mem(engine), sizeof *peer);
    if (!peer)
        return NULL;
    peer->conn = sgi_conn_new(engine, &serving, peer, transport);
    if (!peer->conn) {
        sgi_release(sgi_engine_mem(engine), peer, sizeof *peer);
        return NULL;
    }
    peer->who = who;
    if (who)
        sgi_principal_ref(who);
    peer->server = server;
    sgi_server_ref(server);
    peer->own_handshake.log_level = -1;
    peer->handshake = &peer->own_handshake;
    peer->max_streams = server->options.max_streams;
    peer->ready.run = ask_application;
    peer->updates.fill = sgi_updates_fill;
    LIST_INIT(&peer->listens);
    LIST_INIT(&peer->origins);
    LIST_INIT(&peer->replies);
    LIST_INIT(&peer->resumables);
    sgi_buf_init(&peer->id_text, sgi_engine_mem(engine));
    sgi_map_init(&peer->own_in_flight, &engine->env);
    peer->in_flight = &peer->own_in_flight;
    sgi_asks_init(&peer->own_asks, NULL);
    peer->asks = &peer->own_asks;
    TAILQ_INSERT_TAIL(&server->peers, peer, link);
    return peer;
}

segue_status sgi_server_accept(segue_server *server, void *transport, sgi_conn **out)
{
    sgi_principal *who = NULL;
    if (server->stage >= SGI_SERVER_CLOSED)
        return SEGUE_E_CLOSED;
    if (!server->options.principal) {
        who = sgi_server_principal(server, NULL);
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
        sgi_ready_add(server->engine, &peer->ready);
    sgi_server_begin(server);
    peer->reading = server->stage == SGI_SERVER_OPEN && who;
    *out = peer->conn;
    return SEGUE_OK;
}

void sgi_peer_open(sgi_peer *peer)
{
    if (!peer->who)
        return; /* opened again when that is known */
    peer->reading = true;
    sgi_conn_resume_input(peer->conn);
}

static void start(void *self)
{
    (void)self; /* the client speaks first */
}

static bool wants_input(void *self)
{
    return ((sgi_peer *)self)->reading;
}

/* ---- messages ---- */

static void handle_cancelled(sgi_peer *peer, sgi_json params)
{
    sgi_json id = sgi_json_get(params, "requestId");
    if (!sgi_id_is_usable(id))
        return;
    sgi_str key = sgi_peer_id(peer, id);
    sgi_map_node *node = key.n ? sgi_map_find(peer->in_flight, key) : NULL;
    if (!node)
        return;
    sgi_reply *reply = SGI_OWNER(node, sgi_reply, node);
    /* an exchange needs an end, and the request gets no answer (2025-11-25
     * basic/utilities/cancellation; R-776-26); a batch ends with what is left of it */
    if (reply->peer->is_exchange) {
        sgi_op *op = sgi_call_of(reply);
        if (op)
            sgi_asks_withdraw(op); /* while there is a stream to do it on */
        if (!reply->peer->conn->batches)
            sgi_send_nothing(reply->peer->conn);
    }
    sgi_reply_cancel(reply);
}

static void handle_notification(sgi_peer *peer, const sgi_message *msg)
{
    if (sgi_json_string_is(msg->method, SGI_STR("notifications/cancelled"))) {
        handle_cancelled(peer, msg->params);
        sgi_withdraw_said(peer, msg);
    } else if (sgi_json_string_is(msg->method, SGI_STR("notifications/initialized"))) {
        sgi_updates_begin(peer);
    } else if (sgi_json_string_is(msg->method, SGI_STR("notifications/tasks/status"))) {
        sgi_asks_notified(peer, msg);
    }
    /* others are no business of this server: ignored (R-0-3) */
}

/* One walk over params, one over _meta. */
static void read_params(sgi_inbound *in, const sgi_message *msg)
{
    static const sgi_str of_params[] = {
        SGI_STR_INIT("_meta"),          SGI_STR_INIT("name"),
        SGI_STR_INIT("arguments"),      SGI_STR_INIT("requestState"),
        SGI_STR_INIT("inputResponses"), SGI_STR_INIT("task")};
    static const sgi_str of_meta[] = {
        SGI_STR_INIT("io.modelcontextprotocol/protocolVersion"),
        SGI_STR_INIT("io.modelcontextprotocol/clientCapabilities"),
        SGI_STR_INIT("io.modelcontextprotocol/logLevel"),
        SGI_STR_INIT("progressToken"),
        SGI_STR_INIT("dev.segue/idempotencyKey"),
        SGI_STR_INIT("allowPartial"),
        SGI_STR_INIT("partialResultToken"),
    };
    sgi_json found[7];
    sgi_json_pick_part(&msg->parts[0], in->params, of_params, 6, found);
    in->meta = found[0];
    in->name = found[1];
    in->arguments = found[2];
    if (sgi_json_kind_of(in->arguments) == SGI_JSON_NULL)
        in->arguments = (sgi_json){0}; /* how some languages write an empty map */
    in->state = found[3];
    in->responses = found[4];
    in->task = found[5];
    sgi_json_pick_part(&msg->parts[1], in->meta, of_meta, 7, found);
    in->protocol = found[0];
    in->capabilities = found[1];
    in->level = found[2];
    in->progress = found[3];
    in->key = found[4];
    in->partial = found[5];
    in->token = found[6];
}

bool sgi_inbound_read(sgi_inbound *in, sgi_peer *peer, const sgi_message *msg)
{
    sgi_str id = sgi_peer_id(peer, msg->id);
    if (!id.n)
        return false;
    *in = (sgi_inbound){.peer = peer, .id = id, .params = msg->params};
    read_params(in, msg);
    return true;
}

/* An error would look like the answer of the first one (C-3). */
static void refuse_id(const sgi_inbound *in)
{
    sgi_peer *peer = in->peer;
    if (peer->is_exchange) {
        sgi_answer_error(in, SGI_RPC_INVALID_REQUEST, "This id is in flight", NULL);
        return;
    }
    peer->server->engine->warnings++;
    sgi_engine_log(peer->server->engine, SEGUE_LOG_WARNING,
                   "a request reuses an id that is in flight: ignored");
}

bool sgi_inbound_is_modern(const sgi_inbound *in, sgi_json method, bool shaken)
{
    sgi_str text;
    if (!in->protocol.n)
        return false;
    if (!shaken && !sgi_json_string_is(method, SGI_STR("initialize")))
        return true;
    sgi_version version = sgi_json_plain_string(in->protocol, &text)
                              ? sgi_version_parse(text)
                              : SGI_VERSION_UNKNOWN;
    return version == SGI_VERSION_UNKNOWN || sgi_version_is_modern(version);
}

void sgi_inbound_handle(sgi_inbound *in, const sgi_message *msg)
{
    sgi_peer *peer = in->peer;
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_name_text(msg->method, room);
    bool shaken = peer->handshake->version != SGI_VERSION_UNKNOWN;
    if (sgi_map_find(peer->in_flight, in->id) && !sgi_resumable_may_reuse(peer, method))
        refuse_id(in);
    else if (peer->conn->modern || sgi_inbound_is_modern(in, msg->method, shaken))
        sgi_modern_request(in, method);
    else
        sgi_legacy_request(in, method);
}

static void handle_request(sgi_peer *peer, const sgi_message *msg)
{
    sgi_inbound in;
    if (sgi_inbound_read(&in, peer, msg))
        sgi_inbound_handle(&in, msg);
    else
        sgi_conn_close(peer->conn); /* whoever cannot be answered must not wait */
}

static void message(void *self, const sgi_message *msg)
{
    sgi_peer_message(self, msg);
}

sgi_answered sgi_peer_answer(sgi_peer *peer, const sgi_message *msg)
{
    if (peer->server->stage == SGI_SERVER_DEAD)
        return SGI_ANSWERED_LATER;
    sgi_answered answered = sgi_asks_answer(peer, msg);
    if (answered == SGI_ANSWERED_NOTHING)
        sgi_answer_dropped(peer->server->engine, msg->id);
    return answered;
}

void sgi_peer_message(sgi_peer *peer, const sgi_message *msg)
{
    sgi_engine *engine = peer->server->engine;
    if (peer->server->stage == SGI_SERVER_DEAD)
        return; /* what it began now nobody would end */
    switch (msg->kind) {
    case SGI_MESSAGE_REQUEST:
        handle_request(peer, msg);
        break;
    case SGI_MESSAGE_NOTIFICATION:
        handle_notification(peer, msg);
        break;
    case SGI_MESSAGE_INVALID:
        engine->warnings++;
        if (!sgi_asks_malformed(peer, msg) && !msg->is_response)
            sgi_send_error(peer->conn, msg->id, SGI_RPC_INVALID_REQUEST,
                           sgi_str_of(msg->problem), (sgi_json){0});
        break;
    default:
        if (sgi_peer_answer(peer, msg) == SGI_ANSWERED_LATER)
            sgi_answer_dropped(engine, msg->id); /* there is no way to say so */
    }
}

static void bad_input(void *self, int32_t rpc_code, const char *problem)
{
    sgi_peer *peer = self;
    sgi_send_error(peer->conn, (sgi_str){0}, rpc_code, sgi_str_of(problem),
                   (sgi_json){0});
}

/* ---- the end ---- */

static void lost(void *self, const char *why)
{
    sgi_peer *peer = self;
    sgi_reply *reply;
    (void)why;
    sgi_origins_lose_peer(peer);
    while ((reply = LIST_FIRST(&peer->replies))) {
        reply->lost = true;
        sgi_reply_cancel(reply);
    }
    sgi_asks_lose(&peer->own_asks);
    sgi_resumables_lost(peer);
}

static bool passed(void *self)
{
    return sgi_resumables_passed(self);
}

static void detached(void *self)
{
    sgi_peer *peer = self;
    sgi_ready_remove(peer->server->engine, &peer->ready);
    sgi_source_remove(peer->conn, &peer->updates);
    TAILQ_REMOVE(&peer->server->peers, peer, link);
    if (!peer->is_exchange)
        sgi_server_peer_left(peer->server);
    free_peer(peer);
}

void sgi_peer_close(sgi_peer *peer)
{
    sgi_listens_close(peer);
    sgi_conn_close(peer->conn);
}
