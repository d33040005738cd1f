/* Requests in flight stand in `in_flight` by their canonical id. A reply leaves the map
 * when it is closed, cancelled, or the conversation is lost; from then on its peer is
 * NULL and what is said through it is dropped. So whoever owns a reply never asks whether
 * the other end is still there.
 *
 * The conversation holds the peer; the peer holds the server. */
#include "engine/serving/peer.h"

#include "engine/serving/batch.h"
#include "engine/serving/identify.h"
#include "engine/serving/origin.h"
#include "engine/log/recovery.h"

#include <stdio.h>

static void start(void *self);
static void message(void *self, const sgi_message *message);
static void bad_input(void *self, int32_t rpc_code, const char *problem);
static void lost(void *self, const char *why);
static bool wants_input(void *self);
static void detached(void *self);

static const sgi_role serving = {.start = start,
                                 .message = message,
                                 .bad_input = bad_input,
                                 .batch = sgi_peer_batch,
                                 .lost = lost,
                                 .wants_input = wants_input,
                                 .detached = detached};

static void free_peer(sgi_peer *peer)
{
    segue_server *server = peer->server;
    sgi_map_free(&peer->own_in_flight);
    sgi_buf_free(&peer->id_text);
    sgi_marks_free(peer->marks);
    if (peer->who)
        sgi_principal_unref(peer->who);
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
    segue_status status = sgi_identify(server, conn->transport, &who, &named);
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
    sgi_buf_init(&peer->id_text, sgi_engine_mem(engine));
    sgi_map_init(&peer->own_in_flight, &engine->env);
    peer->in_flight = &peer->own_in_flight;
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

/* ---- replies ---- */

/* The canonical form of an id; empty when out of memory. Valid until the next one. */
static sgi_str canonical_id(sgi_peer *peer, sgi_json id)
{
    sgi_buf_reset(&peer->id_text, 1024);
    sgi_id_canonical(id, &peer->id_text);
    return peer->id_text.failed ? (sgi_str){0} : sgi_buf_str(&peer->id_text);
}

static char *copy_id(sgi_reply *reply, sgi_str id)
{
    if (id.n >= sizeof reply->id_room)
        return sgi_text_dup(sgi_engine_mem(reply->engine), id);
    memcpy(reply->id_room, id.p, id.n);
    reply->id_room[id.n] = 0;
    return reply->id_room;
}

static char *copy_token(const sgi_mem *mem, const sgi_inbound *in, bool *ok)
{
    sgi_json token = in->progress;
    sgi_json_kind kind = sgi_json_kind_of(token);
    *ok = true;
    if (kind != SGI_JSON_STRING && kind != SGI_JSON_NUMBER)
        return NULL;
    char *copy = sgi_text_dup(mem, token);
    *ok = copy != NULL;
    return copy;
}

static void free_reply(sgi_reply *reply)
{
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    if (reply->id != reply->id_room)
        sgi_text_free(mem, reply->id);
    sgi_text_free(mem, reply->progress_token);
    sgi_release(mem, reply, sizeof *reply);
}

static const char *over_limit(const sgi_peer *peer, bool is_stream)
{
    const segue_server_options *options = &peer->server->options;
    int32_t streams = peer->is_exchange ? peer->who->streams : peer->stream_count;
    if (peer->in_flight->count >= (size_t)options->max_requests)
        return "Too many requests in flight";
    if (is_stream && streams >= peer->max_streams) {
        peer->conn->http_status = 429;
        return "Too many streams";
    }
    if (is_stream && peer->conn->no_events) {
        peer->conn->http_status = 406;
        return "This answer is a stream: Accept needs text/event-stream";
    }
    return NULL;
}

static sgi_reply *make_reply(const sgi_inbound *in)
{
    sgi_engine *engine = in->peer->server->engine;
    const sgi_mem *mem = sgi_engine_mem(engine);
    bool token_ok;
    sgi_reply *reply = sgi_zalloc(mem, sizeof *reply);
    if (!reply)
        return NULL;
    reply->engine = engine;
    reply->id = copy_id(reply, in->id);
    reply->progress_token = copy_token(mem, in, &token_ok);
    reply->modern = sgi_version_is_modern(in->version);
    reply->log_level = in->log_level;
    if (!reply->id || !token_ok) {
        free_reply(reply);
        return NULL;
    }
    return reply;
}

sgi_reply *sgi_reply_open(const sgi_inbound *in, bool is_stream)
{
    sgi_peer *peer = in->peer;
    const char *limit = over_limit(peer, is_stream);
    if (limit) {
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, limit, "{\"reason\":\"limit\"}");
        return NULL;
    }
    sgi_reply *reply = make_reply(in);
    if (!reply) {
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
        return NULL;
    }
    reply->peer = peer;
    reply->is_stream = is_stream;
    peer->stream_count += is_stream;
    peer->who->streams += is_stream;
    LIST_INSERT_HEAD(&peer->replies, reply, by_peer);
    sgi_map_put(peer->in_flight, &reply->node, sgi_str_of(reply->id));
    return reply;
}

static void unlink_reply(sgi_reply *reply)
{
    sgi_peer *peer = reply->peer;
    if (!peer)
        return;
    peer->stream_count -= reply->is_stream;
    peer->who->streams -= reply->is_stream;
    LIST_REMOVE(reply, by_peer);
    sgi_map_remove(peer->in_flight, &reply->node);
    reply->peer = NULL;
    sgi_batch_drop(peer->conn, sgi_str_of(reply->id)); /* if it has no answer yet */
}

void sgi_reply_close(sgi_reply *reply)
{
    sgi_op_wait_end(&reply->waiter);
    unlink_reply(reply);
    free_reply(reply);
}

/* The other end does not want the answer any more, or is gone. */
static void cancel_reply(sgi_reply *reply)
{
    void (*cancelled)(sgi_reply *) = reply->cancelled;
    unlink_reply(reply);
    reply->cancelled = NULL;
    if (cancelled)
        cancelled(reply);
}

/* ---- answering ---- */

void sgi_answer_error(const sgi_inbound *in, int32_t code, const char *text,
                      const char *data)
{
    sgi_send_error(in->peer->conn, in->id, code, sgi_str_of(text), sgi_str_of(data));
}

void sgi_answer_result(sgi_sending *sending, const sgi_inbound *in,
                       const char *result_type)
{
    bool modern = sgi_version_is_modern(in->version);
    sgi_send_result(sending, in->peer->conn, in->id, modern ? result_type : NULL);
}

void sgi_send_meta(sgi_sending *sending, segue_server *server)
{
    sgi_jw_key(&sending->w, "_meta");
    sgi_jw_open(&sending->w, '{');
    sgi_buf_add_str(sending->w.buf, sgi_buf_str(&server->info));
    sgi_jw_close(&sending->w, '}');
}

bool sgi_reply_result(sgi_sending *sending, sgi_reply *reply, const char *result_type)
{
    if (!reply->peer)
        return false;
    sgi_send_result(sending, reply->peer->conn, sgi_str_of(reply->id),
                    reply->modern ? result_type : NULL);
    return true;
}

bool sgi_reply_notification(sgi_sending *sending, sgi_reply *reply, const char *method)
{
    if (!reply->peer)
        return false;
    sgi_send_notification(sending, reply->peer->conn, method);
    return true;
}

void sgi_reply_error(sgi_reply *reply, int32_t code, sgi_str text, sgi_json data)
{
    if (reply->peer)
        sgi_send_error(reply->peer->conn, sgi_str_of(reply->id), code, text, data);
}

static void answer_wait(sgi_reply *reply, const char *text, int64_t wait_ms)
{
    char data[80];
    snprintf(data, sizeof data, "{\"reason\":\"rate_limited\",\"retryAfterMs\":%lld}",
             (long long)wait_ms);
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, sgi_str_of(text), sgi_str_of(data));
}

void sgi_answer_not_found(sgi_reply *reply, const char *text)
{
    sgi_peer *peer = reply->peer;
    if (!peer)
        return;
    int64_t wait_ms =
        sgi_principal_miss(peer->who, peer->server->options.lookups_per_second);
    if (wait_ms)
        answer_wait(reply, "Too many failed look-ups", wait_ms);
    else
        sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS, sgi_str_of(text), (sgi_json){0});
}

bool sgi_answer_too_fast(sgi_reply *reply)
{
    sgi_peer *peer = reply->peer;
    int64_t wait_ms =
        sgi_principal_fetch(peer->who, peer->server->options.fetches_per_second);
    if (wait_ms) {
        answer_wait(reply, "Too many fetches", wait_ms);
        sgi_reply_close(reply);
    }
    return wait_ms != 0;
}

/* ---- messages ---- */

static void handle_cancelled(sgi_peer *peer, sgi_json params)
{
    sgi_json id = sgi_json_get(params, "requestId");
    sgi_json_kind kind = sgi_json_kind_of(id);
    if (kind != SGI_JSON_STRING && kind != SGI_JSON_NUMBER)
        return;
    sgi_str key = canonical_id(peer, id);
    if (!key.n)
        return;
    sgi_map_node *node = sgi_map_find(peer->in_flight, key);
    if (!node)
        return;
    sgi_reply *reply = SGI_OWNER(node, sgi_reply, node);
    /* an exchange needs an end; who withdrew the request ignores it (2025-11-25
     * basic/utilities/cancellation) */
    if (reply->peer->is_exchange)
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR,
                        SGI_STR("The request was cancelled"), (sgi_json){0});
    cancel_reply(reply);
}

static void handle_notification(sgi_peer *peer, const sgi_message *msg)
{
    if (sgi_json_string_is(msg->method, SGI_STR("notifications/cancelled")))
        handle_cancelled(peer, msg->params);
    else if (sgi_json_string_is(msg->method, SGI_STR("notifications/initialized")))
        peer->handshake->initialized = peer->handshake->version != SGI_VERSION_UNKNOWN;
    /* others are no business of this server: ignored (R-0-3) */
}

/* One walk over params, one over _meta. */
static void read_params(sgi_inbound *in)
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
    };
    sgi_json found[6];
    sgi_json_pick(in->params, of_params, 6, found);
    in->meta = found[0];
    in->name = found[1];
    in->arguments = found[2];
    if (sgi_json_kind_of(in->arguments) == SGI_JSON_NULL)
        in->arguments = (sgi_json){0}; /* how some languages write an empty map */
    in->state = found[3];
    in->responses = found[4];
    in->task = found[5];
    sgi_json_pick(in->meta, of_meta, 5, found);
    in->protocol = found[0];
    in->capabilities = found[1];
    in->level = found[2];
    in->progress = found[3];
    in->key = found[4];
}

bool sgi_inbound_read(sgi_inbound *in, sgi_peer *peer, const sgi_message *msg)
{
    sgi_str id = canonical_id(peer, msg->id);
    if (!id.n)
        return false;
    *in = (sgi_inbound){.peer = peer, .id = id, .params = msg->params};
    read_params(in);
    return true;
}

void sgi_inbound_handle(sgi_inbound *in, const sgi_message *msg)
{
    sgi_peer *peer = in->peer;
    sgi_str method;
    if (sgi_map_find(peer->in_flight, in->id)) {
        if (peer->is_exchange) {
            sgi_answer_error(in, SGI_RPC_INVALID_REQUEST, "This id is in flight", NULL);
            return;
        }
        /* an error would look like the answer of the first one (C-3) */
        peer->server->engine->warnings++;
        sgi_engine_log(peer->server->engine, SEGUE_LOG_WARNING,
                       "a request reuses an id that is in flight: ignored");
        return;
    }
    if (!sgi_json_plain_string(msg->method, &method))
        method = SGI_STR("?"); /* no method of ours needs an escape */
    if (in->protocol.n || peer->conn->modern)
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

void sgi_peer_message(sgi_peer *peer, const sgi_message *msg)
{
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
        peer->server->engine->warnings++;
        if (!msg->is_response)
            sgi_send_error(peer->conn, msg->id, SGI_RPC_INVALID_REQUEST,
                           sgi_str_of(msg->problem), (sgi_json){0});
        break;
    default:
        peer->server->engine->warnings++; /* an answer to a question nobody asked */
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
        cancel_reply(reply);
    }
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
