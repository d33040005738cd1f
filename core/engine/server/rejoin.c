/* Finds a call that an earlier request has made. The call is found by its idempotency
 * key, in memory or in the store, or by the requestState of a round (an answer of the
 * server that asked questions). */
#include "engine/error.h"
#include "engine/server/pieces.h"
#include "engine/server/call.h"
#include "engine/server/grant.h"
#include "engine/server/lasting.h"
#include "engine/server/carried_answers.h"
#include "engine/server/rounds.h"
#include "engine/server/inputs.h"
#include "engine/server/tool_call.h"
#include "engine/log/refusal.h"

#define UNKNOWN_STATE "Unknown requestState"

/* True when the operation was made by a request with the same idempotency key, tool and
 * arguments. The digest of the request is compared even for an operation from the store,
 * because the store is not trusted. */
static bool is_same(const sgi_op *op, const uint8_t digest[SGI_DIGEST_SIZE])
{
    return op->key && memcmp(op->key->digest, digest, SGI_DIGEST_SIZE) == 0;
}

/* True for a lasting call whose client is away: not connected here and, when the call
 * runs on another server, not connected there. */
static bool can_be_channel(const sgi_op *op, const sgi_reply *reply)
{
    const sgi_lasting_call *lasting = op->served->lasting;
    if (!sgi_op_is_lasting_call(op) || sgi_op_has_ended(op) || !reply->peer ||
        (sgi_op_runs_elsewhere(op) && !lasting->form->is_away(lasting)))
        return false;
    const sgi_reply *channel = lasting->channel;
    return !channel || !channel->peer || !sgi_conn_transport(channel->peer->conn);
}

/* Makes the reply wait for an existing operation. The caller has set the pieces of the
 * reply before. */
static void join(sgi_reply *reply, sgi_op *op, const uint8_t digest[SGI_DIGEST_SIZE],
                 uint32_t caps)
{
    if (!is_same(op, digest)) {
        sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS,
                        SGI_STR("The idempotency key was used for a call with another "
                                "tool or other arguments"),
                        SGI_STR("{\"reason\":\"idempotency_mismatch\"}"));
        sgi_reply_close(reply);
        return;
    }
    if (sgi_op_is_lasting_call(op) && !sgi_op_is_created(op))
        sgi_tool_call_join_when_stored(reply, op);
    else
        sgi_rejoin_stored(reply, op, caps);
}

void sgi_rejoin_stored(sgi_reply *reply, sgi_op *op, uint32_t caps)
{
    sgi_op_ref(op);
    if (can_be_channel(op, reply) &&
        op->served->lasting->form->repeated(op->served->lasting, reply)) {
        sgi_op_unref(op);
        return;
    }
    sgi_pieces_begin(reply, op, true);
    sgi_tool_call_set_waiter(reply, op, caps);
    if (op->served->call && sgi_round_is_due(op))
        /* the open questions are also sent to the client of this request */
        sgi_call_queue_events(op->served->call);
    if (sgi_op_runs_elsewhere(op))
        sgi_round_send_followed(op);
    sgi_question_requests_send_soon(op);
    sgi_op_unref(op);
}

void sgi_rejoin_offer_channel(sgi_op *op)
{
    sgi_lasting_call *lasting = op->served->lasting;
    if (!lasting)
        return;
    sgi_reply *reply = sgi_call_find_carried_reply(op);
    if (!reply || !can_be_channel(op, reply))
        return;
    sgi_op_wait_cancel(&reply->waiter);
    if (!lasting->form->repeated(lasting, reply))
        sgi_tool_call_set_waiter(reply, op, op->served->caps);
}

/* A reply that waits for the look-up of an operation in the store, by an idempotency key.
 * Either the new operation of the reply could not be created, because the store already
 * has this key, or the request has a requestState. Another process, or an earlier run of
 * this process, made the operation in the store. */
typedef struct sgi_rejoin {
    sgi_reply *reply;
    uint8_t digest[SGI_DIGEST_SIZE];
    uint32_t caps;
    /* the request has a requestState, so an operation with this key must already exist */
    bool retries;
    /* the new operation, which is given up; a counted reference; NULL = no operation was
     * made */
    sgi_op *made;
} sgi_rejoin;

/* Takes the answers to questions that came with the request away from the new operation
 * `made`, and gives them to the existing operation `op`. */
static void pass_answers(sgi_op *made, sgi_op *op)
{
    struct sgi_carried_answers *carried = made->served->carried;
    if (!carried || sgi_op_has_ended(op))
        return;
    made->served->carried = op->served->carried;
    op->served->carried = carried;
    if (sgi_task_take_carried_answers(op) == SEGUE_OK)
        sgi_round_on_answer_without_state(op);
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
        sgi_engine_log(reply->engine, SEGUE_LOG_ERROR,
                       "the store could not look up the call of an idempotency key: %s",
                       sgi_status_name(status));
        sgi_reply_store_error(reply, SGI_UNREADABLE, status);
        sgi_reply_close(reply);
    }
    if (again->made)
        sgi_op_unref(again->made);
    /* the reply may have been freed, so the code below must not use the reply */
    sgi_free(mem, again, sizeof *again);
}

static void rejoin_by(sgi_reply *reply, const sgi_rejoin *wanted, segue_server *server,
                      const uint8_t key[SGI_DIGEST_SIZE])
{
    sgi_rejoin *again = sgi_alloc(sgi_engine_mem(server->engine), sizeof *again);
    if (!again) {
        sgi_tool_call_fail_no_memory(reply, NULL);
        return;
    }
    *again = *wanted;
    again->reply = reply;
    if (again->made)
        sgi_op_ref(again->made);
    sgi_server_find_by_key(server, key, rejoin, again);
}

void sgi_rejoin_by_key(sgi_reply *reply, sgi_op *op)
{
    sgi_rejoin wanted = {.caps = op->served->caps, .made = op};
    memcpy(wanted.digest, op->key->digest, sizeof wanted.digest);
    /* the new operation is given up, so its pieces are separated from the operation */
    sgi_pieces_detach(reply);
    rejoin_by(reply, &wanted, sgi_op_server(op), op->key->key);
}

void sgi_rejoin_answer(sgi_reply *reply, sgi_op *op, const sgi_call_request *request)
{
    sgi_pieces_new_if_negotiated(reply, request);
    join(reply, op, request->digest, request->caps);
}

sgi_op *sgi_rejoin_find_op(const sgi_inbound *in, const sgi_call_request *request)
{
    return request->has_key ? sgi_server_op_with_key(in->peer->server, request->key)
                            : NULL;
}

/* ---- the answers of a round ---- */

/* Returns an open question that the client of this request cannot answer, because the
 * client lacks a capability. Returns NULL when the client can answer all open
 * questions. */
static const sgi_op_question *not_askable(const sgi_op *op, uint32_t caps)
{
    const sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_round_includes_question(op, input) &&
            sgi_question_required_caps(input->method,
                                       (sgi_json){input->params, input->params_len}) &
                ~caps)
            return input;
    return NULL;
}

static void answer_not_askable(sgi_reply *reply, const sgi_op_question *input)
{
    char data[80];
    sgi_question_write_missing_caps(input->method, data, sizeof data);
    sgi_reply_error(reply, SGI_RPC_MISSING_CAPABILITY,
                    SGI_STR("Missing required client capability"), sgi_str_of(data));
    sgi_reply_close(reply);
}

/* Stores the answers of a request. If the status is not SEGUE_OK, the client must send
 * all answers again; an answer that was already stored is then ignored. */
static segue_status take_answers(sgi_op *op, sgi_json responses)
{
    sgi_json_member member;
    if (sgi_json_kind_of(responses) != SGI_JSON_OBJECT)
        return SEGUE_OK;
    for (size_t at = 0; sgi_json_next_member(responses, &at, &member);) {
        segue_status status = sgi_task_take_answer(op, member.key, member.value);
        if (sgi_task_is_put_off(op, status))
            return status;
    }
    return SEGUE_OK;
}

static void go_on(sgi_op *op, sgi_reply *reply, const sgi_call_request *request)
{
    sgi_round_on_answer_without_state(op);
    sgi_pieces_new_if_negotiated(reply, request);
    sgi_pieces_begin(reply, op, true);
    sgi_reply_wait_for_op(reply, op);
    if (op->served->call)
        sgi_call_queue_events(op->served->call);
    else if (op->served->round && !op->served->round->out)
        /* the operation has ended, and its end is the answer to this request */
        sgi_round_end(op);
}

/* Handles a request that brings the client's answers to a round of questions. The reply
 * of the request then waits for the end of the operation or for its next questions. */
static void answer_round(sgi_op *op, const sgi_inbound *in,
                         const sgi_call_request *request, const sgi_srv_dialect *dialect)
{
    sgi_reply *reply = sgi_reply_open(in, false);
    if (!reply)
        return;
    const sgi_op_question *input =
        sgi_op_has_ended(op) ? NULL : not_askable(op, in->caps);
    if (input) {
        answer_not_askable(reply, input);
        return;
    }
    sgi_op_ref(op);
    segue_status status = take_answers(op, in->responses);
    if (status == SEGUE_OK) {
        if (op->served->round)
            op->served->round->stale = sgi_op_server(op)->seal.shared;
        /* from now on the capabilities of this request count, which can differ from those
         * of the client's earlier request */
        op->served->caps = in->caps;
        op->served->dialect = dialect;
        go_on(op, reply, request);
    } else {
        sgi_reply_store_error(reply, SGI_PUT_OFF, status);
        sgi_reply_close(reply);
    }
    sgi_op_unref(op);
}

/* ---- a call that is sent again ---- */

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

/* Stores the answers of a request whose idempotency key belongs to a known operation,
 * while the requestState comes from an earlier run of the operation. The answers are for
 * the questions that the current run asks again. */
static void bring_answers(const sgi_inbound *in, sgi_reply *reply, sgi_op *known,
                          const sgi_call_request *request)
{
    segue_status status = SEGUE_OK;
    sgi_op_ref(known);
    if (is_same(known, request->digest))
        status = sgi_carried_answers_read(known, in)
                     ? sgi_task_take_carried_answers(known)
                     : SEGUE_E_NOMEM;
    if (status != SEGUE_OK) {
        sgi_reply_store_error(reply, SGI_PUT_OFF, status);
        sgi_reply_close(reply);
    } else {
        sgi_round_on_answer_without_state(known);
        join(reply, known, request->digest, in->caps);
        if (known->served->call)
            sgi_call_queue_events(known->served->call);
    }
    sgi_op_unref(known);
}

/* Handles a repeated call whose idempotency key belongs to a known operation. A
 * requestState that is not valid any more is ignored, and the open questions are sent
 * again. */
static void retry_by_key(const sgi_inbound *in, const sgi_call_request *request,
                         sgi_op *known, bool elsewhere)
{
    sgi_reply *reply = sgi_reply_open(in, false);
    if (!reply)
        return;
    sgi_pieces_new_if_negotiated(reply, request);
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

bool sgi_rejoin_round(const sgi_inbound *in, const sgi_call_request *request)
{
    bool elsewhere;
    if (!in->state.n || !sgi_facts(in->version)->has_rounds)
        return false;
    if (!is_retry_readable(in))
        return true;
    sgi_op *known = sgi_rejoin_find_op(in, request);
    sgi_op *op = sgi_round_find_op(in, request->kind, request->name, &elsewhere);
    if (op && op->served->item && !sgi_inbound_may_use_item(in, op->served->item))
        /* the request was refused, because its token lacks a scope that the call needs */
        return true;
    if (op && (!request->has_key || op == known))
        answer_round(op, in, request, sgi_srv_task_dialect(in));
    else if (known || !elsewhere)
        retry_by_key(in, request, known, elsewhere);
    else
        return false;
    return true;
}
