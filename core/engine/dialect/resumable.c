/* Z: requests/resume and requests/getStatus (SEP-975), in the handshake eras, to clients
 * that declared resumableRequests. The request that resumes has the id of the one that it
 * resumes, and its answer is the answer of that (R-975-9); so what cannot be answered
 * without being taken for it, is not answered at all. */
#include "engine/dialect/dialect.h"

#include "engine/dialect/pieces.h"
#include "engine/dialect/tasks_2025.h"
#include "engine/error.h"
#include "engine/serving/resumable.h"
#include "engine/serving/tool_call.h"
#include "engine/refusal.h"

#include <stdio.h>

#define UNKNOWN "Unknown request or resume token"

/* A look-up under way. */
typedef struct looking {
    sgi_engine *engine;
    sgi_reply *reply;
    char *id; /* of the request that is asked for; canonical */
    uint8_t hash[SGI_DIGEST_SIZE];
    char after_tag[9]; /* a client that comes by HTTP has it up to there */
    uint64_t after_seq;
    bool says_has; /* it says how many segments it has: */
    uint64_t has;
    void (*known)(struct looking *looking, sgi_op *op);
} looking;

static void end_looking(looking *look)
{
    const sgi_mem *mem = sgi_engine_mem(look->engine);
    sgi_text_free(mem, look->id);
    sgi_release(mem, look, sizeof *look);
}

static void refuse(sgi_reply *reply, const char *text, const char *reason)
{
    char data[48];
    snprintf(data, sizeof data, "{\"reason\":\"%s\"}", reason);
    sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS, sgi_str_of(text), sgi_str_of(data));
    sgi_reply_close(reply);
}

/* Why there is nothing to be had of it; NULL = there is. */
static const char *what_became(const sgi_op *op)
{
    bool visible = sgi_op_has_ended(op) && op->final_seq <= sgi_op_horizon(op);
    if (op->resumable->closed)
        return op->resumable->closed;
    if (visible && !op->is_task && op->final == SGI_FINAL_CANCELLED)
        return "cancelled";
    return visible && !op->is_task && op->final == SGI_FINAL_EXPIRED ? "expired" : NULL;
}

/* The same for this client. What was delivered to a process that has died is told again
 * to a client that says how far it is, as long as it is kept: a request with a key is. */
static const char *refusal_of(const looking *look, const sgi_op *op)
{
    const char *closed = op->resumable->closed;
    bool again = look->says_has && op->key && !op->is_task && closed &&
                 !strcmp(closed, "completed");
    return again ? NULL : what_became(op);
}

/* An error with an id that is in flight on this connection would be taken for the answer
 * of that request (C-3): it has no id then. */
static void spare_id(sgi_reply *reply)
{
    const sgi_peer *peer = reply->peer;
    if (!peer || peer->is_exchange || !reply->apart ||
        !sgi_map_find(peer->in_flight, sgi_str_of(reply->id)))
        return;
    reply->engine->warnings++;
    sgi_engine_log(reply->engine, SEGUE_LOG_WARNING,
                   "requests/resume of %.64s, which is in flight here, is refused: the "
                   "error has no id",
                   reply->id);
    sgi_reply_leave_id_out(reply);
}

static void found(void *user, sgi_op *op, segue_status status)
{
    looking *look = user;
    sgi_reply *reply = look->reply;
    const sgi_resumable *r = op ? op->resumable : NULL;
    bool known = r && sgi_resumable_knows(r, look->hash) && !strcmp(r->id, look->id);
    if (!known || refusal_of(look, op))
        spare_id(reply);
    if (!reply->peer) {
        sgi_reply_close(reply);
    } else if (known && refusal_of(look, op)) {
        refuse(reply, "There is nothing more of this request", refusal_of(look, op));
    } else if (known) {
        look->known(look, op);
    } else if (op || status == SEGUE_E_NOT_FOUND) {
        sgi_answer_not_found(reply, UNKNOWN);
        sgi_reply_close(reply);
    } else {
        sgi_engine_log(reply->engine, SEGUE_LOG_ERROR, "resume: %s",
                       sgi_status_name(status));
        sgi_reply_refuse(reply, SGI_UNREADABLE, status);
        sgi_reply_close(reply);
    }
    end_looking(look);
}

/* The two halves of a token, and the digest of the second. */
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

/* Whoever merges the pieces knows what it has, whatever was confirmed. */
static bool read_has(const sgi_inbound *in, uint64_t *has)
{
    int64_t number = -1;
    sgi_json_int(sgi_json_get(in->meta, "dev.segue/after"), &number);
    *has = number > 0 ? (uint64_t)number : 0;
    return number >= 0;
}

/* What is malformed takes the way of what there is not (R-0-5). */
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
        sgi_tool_call_give_up(reply, NULL);
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

/* Of an id that is in flight, on a connection where it is answered already or is that of
 * something else: an error would be taken for its answer (R-975-13, C-3). */
static void pass_over(sgi_reply *reply)
{
    reply->engine->warnings++;
    sgi_engine_log(reply->engine, SEGUE_LOG_WARNING,
                   "requests/resume of an id that is in flight here: ignored");
    if (reply->peer && reply->peer->is_exchange)
        sgi_reply_error(reply, SGI_RPC_INVALID_REQUEST, SGI_STR("This id is in flight"),
                        (sgi_json){0});
    sgi_reply_close(reply);
}

static void go_on(const looking *look, sgi_op *op)
{
    sgi_reply *reply = look->reply;
    sgi_send_open_events(reply->peer->conn);
    if (op->is_task) {
        sgi_push_resume(reply, op);
        return;
    }
    sgi_pieces_resume(reply, op, look->says_has ? &look->has : NULL);
    sgi_call_attach(reply, op);
}

static void resume_known(looking *look, sgi_op *op)
{
    sgi_resumable *r = op->resumable;
    op->server->counts.resumes++;
    sgi_reply *reply = look->reply;
    bool is_here = r->reply && r->peer == reply->peer && !reply->peer->is_exchange;
    sgi_resumable_touch(r);
    if (is_here) {
        pass_over(reply);
        return;
    }
    sgi_op_ref(op);
    if (!strcmp(look->after_tag, r->tag))
        sgi_resumable_confirm(r, look->after_seq);
    if (refusal_of(look, op))
        refuse(reply, "There is nothing more of this request", refusal_of(look, op));
    else if (!sgi_resumable_attach(r, reply))
        pass_over(reply);
    else
        go_on(look, op);
    sgi_op_unref(op);
}

static void resume(const sgi_inbound *in)
{
    sgi_reply *reply = sgi_reply_open_apart(in);
    if (reply)
        look_up(in, reply, in->id, resume_known);
}

/* ---- requests/getStatus ---- */

static bool has_input(const sgi_op *op)
{
    const sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (sgi_input_is_open(op, input) && !sgi_op_has_ended(op))
            return true;
    return false;
}

/* It looks, and leaves all as it is (R-975-21). */
static void tell_status(looking *look, sgi_op *op)
{
    sgi_resumable *r = op->resumable;
    sgi_reply *reply = look->reply;
    sgi_sending sending;
    bool ended = sgi_op_has_ended(op) && op->final_seq <= sgi_op_horizon(op);
    bool failed = op->final == SGI_FINAL_ERROR || op->final == SGI_FINAL_EXPIRED;
    const char *status = !ended ? "processing" : failed ? "failed" : "completed";
    sgi_resumable_touch(r);
    if (sgi_reply_result(&sending, reply, NULL)) {
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
        sgi_id_canonical(given, &id);
    if (id.failed)
        sgi_tool_call_give_up(reply, NULL);
    else
        look_up(in, reply, sgi_buf_str(&id), tell_status);
    sgi_buf_free(&id);
}

static const sgi_method methods[] = {{"requests/resume", 0, resume},
                                     {"requests/getStatus", 0, get_status},
                                     {NULL, 0, NULL}};

const sgi_dialect sgi_dialect_resumable = {
    .name = "Z", .bit = SGI_DIALECT_Z, .methods = methods};

bool sgi_resumable_may_reuse(const sgi_peer *peer, sgi_str method)
{
    return sgi_resumables_are_for(peer) && sgi_str_eq(method, SGI_STR("requests/resume"));
}

bool sgi_resumables_are_for(const sgi_peer *peer)
{
    return sgi_negotiate(peer->handshake->version,
                         peer->handshake->resumable ? SGI_SAYS_RESUMABLE : 0,
                         peer->server->dialects) &
           SGI_DIALECT_Z;
}
