/* A call that was made before: found by its idempotency key, in memory or in the store,
 * or by the requestState of a round of questions. */
#include "engine/error.h"
#include "engine/dialect/pieces.h"
#include "engine/serving/call.h"
#include "engine/serving/grant.h"
#include "engine/serving/recall.h"
#include "engine/serving/rounds.h"
#include "engine/serving/task.h"
#include "engine/serving/tool_call.h"
#include "engine/refusal.h"

#define UNKNOWN_STATE "Unknown requestState"

/* Is it what the key stands for? A foreign store may answer with anything. */
static bool is_same(const sgi_op *op, const uint8_t digest[SGI_DIGEST_SIZE])
{
    return op->key && memcmp(op->key->digest, digest, SGI_DIGEST_SIZE) == 0;
}

/* The reply has the pieces that its request wants. */
static void join(sgi_reply *reply, sgi_op *op, const uint8_t digest[SGI_DIGEST_SIZE],
                 uint32_t caps)
{
    if (!is_same(op, digest)) {
        sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS,
                        SGI_STR("The idempotency key belongs to another call"),
                        SGI_STR("{\"reason\":\"idempotency_mismatch\"}"));
        sgi_reply_close(reply);
        return;
    }
    sgi_op_ref(op);
    sgi_pieces_of(reply, op, true);
    sgi_tool_call_wait(reply, op, caps);
    if (op->call && sgi_round_is_due(op))
        sgi_call_look(op->call); /* it is asked what the others were asked */
    if (sgi_op_is_elsewhere(op))
        sgi_round_follow(op);
    sgi_asks_place(op);
    sgi_op_unref(op);
}

/* The creation met the key in the store: another process, or an earlier run of this one,
 * has the operation. Who waited for ours joins that one. */
typedef struct sgi_rejoin {
    sgi_reply *reply;
    uint8_t digest[SGI_DIGEST_SIZE];
    uint32_t caps;
    bool retries; /* it has a requestState, so there was such an operation */
    sgi_op *made; /* counted: in vain, for there was one; or NULL */
} sgi_rejoin;

/* What its client brought along is for the one that there is. */
static void pass_answers(sgi_op *made, sgi_op *op)
{
    struct sgi_recall *recall = made->recall;
    if (!recall || sgi_op_has_ended(op))
        return;
    made->recall = op->recall;
    op->recall = recall;
    if (sgi_task_answer_recalled(op) == SEGUE_OK)
        sgi_round_settle(op);
}

static void rejoin(void *user, sgi_op *op, segue_status status)
{
    sgi_rejoin *again = user;
    sgi_reply *reply = again->reply;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    if (op) {
        sgi_op_ref(op);
        if (again->made && is_same(op, again->digest))
            pass_answers(again->made, op);
        join(reply, op, again->digest, again->caps);
        sgi_op_unref(op);
    } else if (again->retries && status == SEGUE_E_NOT_FOUND) {
        sgi_answer_not_found(reply, UNKNOWN_STATE);
        sgi_reply_close(reply);
    } else {
        sgi_engine_log(reply->engine, SEGUE_LOG_ERROR, "idempotency key: %s",
                       sgi_status_name(status));
        sgi_reply_refuse(reply, SGI_UNREADABLE, status);
        sgi_reply_close(reply);
    }
    if (again->made)
        sgi_op_unref(again->made);
    sgi_release(mem, again, sizeof *again); /* the reply may be gone */
}

static void rejoin_by(sgi_reply *reply, const sgi_rejoin *wanted, segue_server *server,
                      const uint8_t key[SGI_DIGEST_SIZE])
{
    sgi_rejoin *again = sgi_alloc(sgi_engine_mem(server->engine), sizeof *again);
    if (!again) {
        sgi_tool_call_give_up(reply, NULL);
        return;
    }
    *again = *wanted;
    again->reply = reply;
    if (again->made)
        sgi_op_ref(again->made);
    sgi_server_find_key(server, key, rejoin, again);
}

void sgi_rejoin_by_key(sgi_reply *reply, sgi_op *op)
{
    sgi_rejoin wanted = {.caps = op->caps, .made = op};
    memcpy(wanted.digest, op->key->digest, sizeof wanted.digest);
    sgi_pieces_leave(reply); /* the one that was made has none */
    rejoin_by(reply, &wanted, op->server, op->key->key);
}

void sgi_rejoin_known(sgi_reply *reply, sgi_op *op, const sgi_call_request *request)
{
    sgi_pieces_want(reply, request);
    join(reply, op, request->digest, request->caps);
}

sgi_op *sgi_rejoin_find(const sgi_inbound *in, const sgi_call_request *request)
{
    sgi_str key = {(const char *)request->key, SGI_DIGEST_SIZE};
    sgi_map_node *node =
        request->has_key ? sgi_map_find(&in->peer->server->by_key, key) : NULL;
    return node ? SGI_OWNER(node, sgi_op_key, node)->op : NULL;
}

/* ---- a call that comes again ---- */

static bool is_retry_readable(const sgi_inbound *in)
{
    if (sgi_json_kind_of(in->state) != SGI_JSON_STRING)
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.requestState is not a string", NULL);
    else if (in->responses.n && sgi_json_kind_of(in->responses) != SGI_JSON_OBJECT)
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.inputResponses is not an object", NULL);
    else
        return true;
    return false;
}

/* The key finds the operation, and the state is one of an earlier run of it: its answers
 * are good for what is asked again. */
static void bring_answers(const sgi_inbound *in, sgi_reply *reply, sgi_op *known,
                          const sgi_call_request *request)
{
    segue_status status = SEGUE_OK;
    sgi_op_ref(known);
    if (is_same(known, request->digest))
        status =
            sgi_recall_take(known, in) ? sgi_task_answer_recalled(known) : SEGUE_E_NOMEM;
    if (status != SEGUE_OK) {
        sgi_reply_refuse(reply, SGI_UNSTORED, status);
        sgi_reply_close(reply);
    } else {
        sgi_round_settle(known);
        join(reply, known, request->digest, in->caps);
        if (known->call)
            sgi_call_look(known->call);
    }
    sgi_op_unref(known);
}

/* A state that is not good any more says nothing where there is a key: that finds the
 * operation, and what it asks now is asked again. */
static void retry_by_key(const sgi_inbound *in, const sgi_call_request *request,
                         sgi_op *known, bool elsewhere)
{
    sgi_reply *reply = sgi_reply_open(in, false);
    if (!reply)
        return;
    sgi_pieces_want(reply, request);
    if (known && elsewhere) {
        bring_answers(in, reply, known, request);
    } else if (known) {
        join(reply, known, request->digest, in->caps);
    } else if (request->has_key) {
        sgi_rejoin wanted = {.caps = in->caps, .retries = true};
        memcpy(wanted.digest, request->digest, sizeof wanted.digest);
        rejoin_by(reply, &wanted, in->peer->server, request->key);
    } else {
        sgi_answer_not_found(reply, UNKNOWN_STATE);
        sgi_reply_close(reply);
    }
}

bool sgi_rejoin_retry(const sgi_inbound *in, const sgi_call_request *request)
{
    segue_server *server = in->peer->server;
    uint32_t says = in->caps & SGI_CAP_TASKS ? SGI_SAYS_TASKS_EXTENSION : 0;
    bool elsewhere;
    if (!in->state.n || !sgi_version_has_rounds(in->version))
        return false;
    if (!is_retry_readable(in))
        return true;
    sgi_op *known = sgi_rejoin_find(in, request);
    sgi_op *op = sgi_round_find(in, request->kind, request->name, &elsewhere);
    if (op && op->item && !sgi_item_is_open_to(in, op->item))
        return true; /* the token of this request grants less than the first one's */
    if (op && (!request->has_key || op == known))
        sgi_round_answer(
            op, in, request,
            sgi_dialect_of(sgi_negotiate(in->version, says, server->dialects)));
    else if (known || !elsewhere)
        retry_by_key(in, request, known, elsewhere);
    else
        return false;
    return true;
}
