/* Dialect Z on the server: requests/resume and requests/getStatus (SEP-975), for clients
 * that have declared resumableRequests in `initialize`. A requests/resume has the id of
 * the original request, and its answer is the answer of the original request (R-975-9).
 * So the server sends no error that the client could mistake for this answer. */
#include "engine/dialect/rows.h"
#include "engine/conversation/batch.h"
#include "engine/error.h"
#include "engine/response_modes.h"
#include "engine/server/call_report.h"
#include "engine/server/pieces.h"
#include "engine/dialect/resumable/resumable_clock.h"
#include "engine/server/serving.h"
#include "engine/server/tool_call.h"
#include "engine/log/refusal.h"

#include <stdio.h>

#define UNKNOWN "Unknown request or resume token"

/* A search for the request that a client names by its token. */
typedef struct looking {
    sgi_engine *engine;
    sgi_reply *reply;
    char *id; /* id of the request whose answer the client asks for, as canonical JSON */
    uint8_t hash[SGI_DIGEST_SIZE];
    /* over HTTP, from Last-Event-ID: the client has the events with the tag after_tag up
     * to the position after_seq */
    char after_tag[9];
    uint64_t after_seq;
    /* true when the client says how many segments it has; `has` is this number */
    bool says_has;
    uint64_t has;
    void (*known)(struct looking *looking, sgi_op *op);
} looking;

static void end_looking(looking *look)
{
    const sgi_mem *mem = sgi_engine_mem(look->engine);
    sgi_text_free(mem, look->id);
    sgi_free(mem, look, sizeof *look);
}

static void refuse(sgi_reply *reply, const char *text, const char *reason)
{
    char data[48];
    snprintf(data, sizeof data, "{\"reason\":\"%s\"}", reason);
    sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS, sgi_str_of(text), sgi_str_of(data));
    sgi_reply_close(reply);
}

/* Returns the reason why the request gets no answer any more; NULL when the request has
 * its answer or will get one. */
static const char *what_became(const sgi_op *op)
{
    bool visible = sgi_op_has_ended(op) && op->head.final_seq <= sgi_op_horizon(op);
    if (sgi_resumable_of(op)->closed)
        return sgi_resumable_of(op)->closed;
    if (visible && !sgi_op_is_task(op) && op->head.final == SGI_FINAL_CANCELLED)
        return "cancelled";
    return visible && !sgi_op_is_task(op) && op->head.final == SGI_FINAL_EXPIRED
               ? "expired"
               : NULL;
}

/* Returns the reason why the asking client gets no answer; NULL when the client gets an
 * answer. After its answer was delivered, a request with a key is still kept. A client
 * that says how many segments it has gets that answer again, because the process that
 * received the answer may have died. */
static const char *refusal_of(const looking *look, const sgi_op *op)
{
    const char *closed = sgi_resumable_of(op)->closed;
    bool again = look->says_has && op->key && !sgi_op_is_task(op) && closed &&
                 !strcmp(closed, "completed");
    return again ? NULL : what_became(op);
}

/* Leaves the id out of an error when the id is in flight on this connection. With the id,
 * the error would look like the answer of the request in flight (C-3). */
static void spare_id(sgi_reply *reply)
{
    const sgi_peer *peer = reply->peer;
    if (!peer || peer->is_exchange || reply->state == SGI_REPLY_IN_TABLE ||
        !sgi_map_find(&peer->in_flight->by_id, sgi_str_of(reply->id)))
        return;
    reply->engine->warnings++;
    sgi_engine_log(reply->engine, SEGUE_LOG_WARNING,
                   "requests/resume of id %.64s is refused, because that id is in flight "
                   "on this connection. The error is sent without an id",
                   reply->id);
    sgi_reply_leave_id_out(reply);
}

static void found(void *user, sgi_op *op, segue_status status)
{
    looking *look = user;
    sgi_reply *reply = look->reply;
    const sgi_resumable *r = op ? sgi_resumable_of(op) : NULL;
    bool known =
        r && sgi_resumable_token_matches(r, look->hash) && !strcmp(r->id, look->id);
    if (!known || refusal_of(look, op))
        spare_id(reply);
    if (!reply->peer) {
        sgi_reply_close(reply);
    } else if (known && refusal_of(look, op)) {
        refuse(reply,
               "The server keeps nothing more of this request: it cannot be resumed",
               refusal_of(look, op));
    } else if (known) {
        look->known(look, op);
    } else if (op || status == SEGUE_E_NOT_FOUND) {
        sgi_answer_not_found(reply, UNKNOWN);
        sgi_reply_close(reply);
    } else {
        sgi_engine_log(reply->engine, SEGUE_LOG_ERROR, "resume: %s",
                       sgi_status_name(status));
        sgi_reply_store_error(reply, SGI_UNREADABLE, status);
        sgi_reply_close(reply);
    }
    end_looking(look);
}

/* Splits a token into the operation's id and the secret, and computes the digest of the
 * secret. Returns false when the token is malformed. */
static bool read_token(const sgi_inbound *in, sgi_str *id, uint8_t hash[SGI_DIGEST_SIZE])
{
    sgi_str token = {0};
    if (!sgi_json_plain_string(sgi_json_get(in->params, "resumeToken"), &token))
        token.n = 0;
    const char *dot = token.n ? memchr(token.p, '.', token.n) : NULL;
    *id = (sgi_str){token.p, dot ? (size_t)(dot - token.p) : 0};
    sgi_str secret = {dot ? dot + 1 : "", dot ? token.n - id->n - 1 : 0};
    return sgi_engine_digest(in->peer->server->engine, hash, &secret, 1);
}

/* Reads the number of segments that the client has. The server sends the segments after
 * this number, even if the client has acknowledged more. */
static bool read_has(const sgi_inbound *in, uint64_t *has)
{
    int64_t number = -1;
    sgi_json_read_int(sgi_json_get(in->meta, "dev.segue/after"), &number);
    *has = number > 0 ? (uint64_t)number : 0;
    return number >= 0;
}

/* Finds the request that the token names, then calls `known`. A malformed token gets the
 * same answer as an unknown one (R-0-5). */
static void look_up(const sgi_inbound *in, sgi_reply *reply, sgi_str request_id,
                    void (*known)(looking *, sgi_op *))
{
    segue_server *server = in->peer->server;
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    looking *look = sgi_zalloc(mem, sizeof *look);
    sgi_str id = {0};
    if (look) {
        look->engine = server->engine;
        look->id = sgi_text_dup(mem, request_id);
    }
    if (!look || !look->id || !read_token(in, &id, look->hash)) {
        if (look)
            end_looking(look);
        sgi_tool_call_fail_no_memory(reply, NULL);
        return;
    }
    look->reply = reply;
    look->known = known;
    memcpy(look->after_tag, in->peer->after_tag, sizeof look->after_tag);
    look->after_seq = in->peer->after_seq;
    look->says_has = read_has(in, &look->has);
    sgi_server_find_task(server, in->peer->who, id, found, look);
}

/* ---- requests/resume ---- */

/* Ignores a requests/resume whose id is in flight on this connection. An error would look
 * like the answer of the request in flight (R-975-13, C-3). */
static void pass_over(sgi_reply *reply)
{
    reply->engine->warnings++;
    sgi_engine_log(
        reply->engine, SEGUE_LOG_WARNING,
        "requests/resume names an id that is in flight on this connection: ignored");
    if (reply->peer && reply->peer->is_exchange)
        sgi_reply_error(reply, SGI_RPC_INVALID_REQUEST,
                        SGI_STR("A request with this id is in flight already"),
                        (sgi_json){0});
    sgi_reply_close(reply);
}

static void go_on(const looking *look, sgi_op *op)
{
    sgi_reply *reply = look->reply;
    sgi_send_open_event_stream(reply->peer->conn);
    if (sgi_op_is_task(op)) {
        op->served->dialect->returned(reply, op);
        return;
    }
    sgi_pieces_resume(reply, op, look->says_has ? &look->has : NULL);
    sgi_reply_wait_for_op(reply, op);
}

static void resume_known(looking *look, sgi_op *op)
{
    sgi_resumable *r = sgi_resumable_of(op);
    sgi_call_event_report_resumed(op);
    sgi_reply *reply = look->reply;
    bool is_cancelled = reply->state == SGI_REPLY_CANCELLED_OUT_OF_TABLE;
    bool is_here =
        r->lasting.channel && r->lasting.peer == reply->peer && !reply->peer->is_exchange;
    sgi_resumable_restart_clock(r);
    if (is_here) {
        pass_over(reply);
        return;
    }
    sgi_op_ref(op);
    if (!strcmp(look->after_tag, r->tag))
        sgi_resumable_note_received(r, look->after_seq);
    if (refusal_of(look, op))
        refuse(reply,
               "The server keeps nothing more of this request: it cannot be resumed",
               refusal_of(look, op));
    else if (!sgi_resumable_attach(r, reply))
        pass_over(reply);
    else
        go_on(look, op);
    if (is_cancelled && r->lasting.channel == reply)
        sgi_peer_end_cancelled_request(reply);
    sgi_op_unref(op);
}

static void resume(const sgi_inbound *in)
{
    sgi_reply *reply = sgi_reply_open_out_of_table(in);
    if (reply)
        look_up(in, reply, in->id, resume_known);
}

/* ---- requests/getStatus ---- */

static bool has_input(const sgi_op *op)
{
    const sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_op_question_is_open(op, input) && !sgi_op_has_ended(op))
            return true;
    return false;
}

/* Answers requests/getStatus. The request changes nothing (R-975-21). */
static void tell_status(looking *look, sgi_op *op)
{
    sgi_resumable *r = sgi_resumable_of(op);
    sgi_reply *reply = look->reply;
    sgi_sending sending;
    bool ended = sgi_op_has_ended(op) && op->head.final_seq <= sgi_op_horizon(op);
    bool failed =
        op->head.final == SGI_FINAL_ERROR || op->head.final == SGI_FINAL_EXPIRED;
    const char *status = !ended ? "processing" : failed ? "failed" : "completed";
    sgi_resumable_restart_clock(r);
    if (sgi_reply_begin_result(&sending, reply, NULL)) {
        sgi_jw_member_raw(&sending.w, "requestId", sgi_str_of(r->id));
        sgi_jw_member_string(&sending.w, "status", sgi_str_of(status));
        sgi_jw_key(&sending.w, "hasPendingMessage");
        sgi_jw_bool(&sending.w, sgi_resumable_has_pending(r));
        sgi_jw_key(&sending.w, "hasInputRequest");
        sgi_jw_bool(&sending.w, has_input(op));
        sgi_send_end(&sending);
    }
    sgi_reply_close(reply);
}

static void get_status(const sgi_inbound *in)
{
    sgi_json given = sgi_json_get(in->params, "requestId");
    sgi_buf id;
    sgi_reply *reply = sgi_reply_open(in, false);
    if (!reply)
        return;
    sgi_buf_init(&id, sgi_engine_mem(reply->engine));
    if (sgi_id_is_usable(given))
        sgi_id_write_canonical(given, &id);
    if (id.failed)
        sgi_tool_call_fail_no_memory(reply, NULL);
    else
        look_up(in, reply, sgi_buf_str(&id), tell_status);
    sgi_buf_free(&id);
}

static const sgi_method methods[] = {{"requests/resume", 0, resume},
                                     {"requests/getStatus", 0, get_status},
                                     {NULL, 0, NULL}};

/* ---- what is negotiated ---- */

static void read_capabilities(sgi_handshake *handshake, sgi_json capabilities)
{
    sgi_json resumable = sgi_json_get(capabilities, "resumableRequests");
    if (sgi_json_kind_of(resumable) == SGI_JSON_OBJECT)
        handshake->declared |= SGI_SAYS_RESUMABLE;
}

/* True when the dialect is switched on and the client has declared resumableRequests. */
static bool is_for(const sgi_peer *peer)
{
    return sgi_negotiate_dialects(peer->handshake->version, peer->handshake->declared,
                                  peer->server->dialects) &
           SGI_DIALECT_Z;
}

/* True for a peer that may resume requests. When this server is a host in a client's
 * session, its peer is an MCP server, which may not resume requests. */
static bool serves(const sgi_peer *peer, sgi_version version)
{
    (void)version; /* not needed, because peer->handshake->version is used instead */
    return !peer->is_host && is_for(peer);
}

static bool may_reuse_id(const sgi_peer *peer, sgi_str method)
{
    return is_for(peer) && sgi_str_eq(method, SGI_STR("requests/resume"));
}

static uint32_t says(const sgi_inbound *in, sgi_call_request *request)
{
    (void)request;
    return in->peer->handshake->declared & SGI_SAYS_RESUMABLE;
}

/* True when the call is resumable. A call that becomes a task is not resumable, because
 * its client can come back by the task id. But a task whose segments are sent while it
 * runs is resumable (C-15). */
static bool lasts(const sgi_inbound *in, const sgi_call_request *request)
{
    const sgi_conn *conn = in->peer->conn;
    bool streams =
        request->modes & SGI_MODE_STREAMING && !(request->modes & SGI_MODE_IMMEDIATE);
    return request->tool->options.flags & SEGUE_TOOL_RESUMABLE && !conn->no_events &&
           !sgi_batch_of_request(conn, in->id) &&
           in->peer->who->live_tasks < in->peer->server->options.max_tasks &&
           (request->verdict == SGI_VERDICT_PLAIN ||
            (request->verdict == SGI_VERDICT_TASK && streams &&
             request->dialect->returned));
}

const sgi_srv_dialect sgi_srv_resumable = {
    .name = "Z",
    .bit = SGI_DIALECT_Z,
    .read_capabilities = read_capabilities,
    .methods = methods,
    .serves = serves,
    .may_reuse_id = may_reuse_id,
    .says = says,
    .lasting = &sgi_resumable_form,
    .lasts = lasts,
};
