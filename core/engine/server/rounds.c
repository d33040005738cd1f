/* A round (an answer that asks the client questions) is out until its questions are
 * answered. A round that is out holds a reference to the operation. So the operation
 * still exists when the client comes with its answers, even if the handler has ended. The
 * operation owns the round. The round ends when the operation ends or becomes a task,
 * because a task asks its questions without rounds.
 *
 * A new round is made only when a request waits for the round. So the requestState that a
 * client has stays valid until the client has sent it. */
#include "engine/server/rounds.h"

#include "engine/server/call.h"
#include "engine/cluster/forwarding.h"
#include "engine/server/request_state.h"
#include "engine/server/inputs.h"
#include "engine/server/task.h"
#include "engine/log/refusal.h"

static void time_over(sgi_timer *timer);

segue_status sgi_round_new(sgi_op *op)
{
    if (op->served->round)
        return SEGUE_OK;
    if (op->served->who->live_tasks >= sgi_op_server(op)->options.max_tasks)
        return SEGUE_E_LIMIT;
    op->served->round = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *op->served->round);
    if (!op->served->round)
        return SEGUE_E_NOMEM;
    op->served->round->op = op;
    sgi_buf_init(&op->served->round->state, sgi_engine_mem(op->engine));
    op->served->who->live_tasks++;
    return SEGUE_OK;
}

static bool is_out(const sgi_op *op)
{
    return op->served->round && op->served->round->out;
}

bool sgi_round_awaits_client(const sgi_op *op)
{
    return is_out(op) && op->served->round->told;
}

/* Ends the wait of the round for answers (the round is no longer `out`), and makes its
 * requestState invalid. The caller holds a reference to the operation. */
static void take_in(sgi_round *round)
{
    if (!round->out)
        return;
    round->out = round->told = false;
    sgi_engine_clear_timer(round->op->engine, &round->timer);
    sgi_map_remove(&sgi_op_server(round->op)->rounds, &round->node);
    sgi_op_unref(round->op);
}

void sgi_round_end(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_round *round = op->served->round;
    if (!round)
        return;
    /* cleared before take_in, because take_in can free the operation */
    op->served->round = NULL;
    op->served->who->live_tasks--;
    take_in(round);
    sgi_buf_free(&round->state);
    sgi_free(mem, round, sizeof *round);
}

/* ---- asking a question ---- */

bool sgi_round_includes_question(const sgi_op *op, const sgi_op_question *input)
{
    return (input->bound || sgi_op_runs_elsewhere(op)) && !input->answered &&
           !sgi_question_answer_is_being_forwarded(op, input->key);
}

static const sgi_op_question *first_open(const sgi_op *op)
{
    const sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_round_includes_question(op, input))
            return input;
    return NULL;
}

static bool has_handler(const sgi_op *op)
{
    return sgi_op_runs_elsewhere(op) ||
           (op->served->call && !op->served->call->cancelled);
}

bool sgi_round_is_due(const sgi_op *op)
{
    const sgi_op_question *input;
    if (!op->served->round || sgi_op_is_task(op) || sgi_op_has_ended(op) ||
        !has_handler(op) || sgi_op_server(op)->stage == SGI_SERVER_DEAD ||
        !first_open(op))
        return false;
    TAILQ_FOREACH(input, &op->head.inputs, link) {
        if (!input->bound)
            /* only an earlier run of the handler has asked this question, so the question
             * is skipped */
            continue;
        if (input->asked > sgi_op_horizon(op) || (input->answered && !input->delivered))
            return false;
    }
    return !op->served->round->out || sgi_call_find_round_reply(op);
}

/* Writes the answer of the reply: "input_required" with the open questions. DRAFT-2026-v1
 * says "incomplete" instead of "input_required" (core/docs/requirements.md 2.1). */
static void write_round(sgi_reply *reply, const sgi_op *op)
{
    const sgi_op_question *input;
    sgi_sending sending;
    if (!sgi_reply_begin_result(&sending, reply, "input_required"))
        return;
    if (!sgi_facts(reply->version)->has_result_types)
        sgi_jw_member_string(&sending.w, "resultType", SGI_STR("incomplete"));
    sgi_jw_key(&sending.w, "inputRequests");
    sgi_jw_open(&sending.w, '{');
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_round_includes_question(op, input))
            sgi_question_write_request(&sending.w, input);
    sgi_jw_close(&sending.w, '}');
    sgi_jw_member_string(&sending.w, "requestState",
                         sgi_buf_str(&op->served->round->state));
    if (sgi_facts(reply->version)->has_result_types)
        sgi_write_server_info_meta(&sending, sgi_op_server(op));
    sgi_send_end(&sending);
}

static bool seal_state(sgi_round *round)
{
    round->stale = false;
    sgi_buf_reset(&round->state, SIZE_MAX);
    return sgi_request_state_write(round->op, round->id, round->expires_ms,
                                   &round->state);
}

/* Begins to wait for answers (the round is `out`): makes a new id and a new requestState,
 * and starts the time limit. Returns false when the system gives no random bytes, or when
 * out of memory. */
static bool put_out(sgi_round *round)
{
    sgi_op *op = round->op;
    int64_t wait_ms = sgi_op_server(op)->options.input_wait_ms;
    int64_t now_ms = sgi_wall_now(&op->engine->env);
    sgi_op_ref(op);
    take_in(round);
    round->expires_ms = sgi_time_add(now_ms, wait_ms);
    if (!sgi_engine_random_text(op->engine, round->id) || !seal_state(round)) {
        sgi_op_unref(op);
        return false;
    }
    sgi_map_put(&sgi_op_server(op)->rounds, &round->node, sgi_str_of(round->id));
    sgi_engine_set_timer(op->engine, &round->timer, wait_ms, time_over);
    /* while `out` is true, the round holds a reference to the operation */
    round->out = true;
    round->shown = op->head.input_count;
    return true;
}

void sgi_round_send_followed(sgi_op *op)
{
    if (sgi_op_is_task(op) || sgi_op_has_ended(op) || !first_open(op) ||
        !sgi_call_find_round_reply(op))
        return;
    if (sgi_round_new(op) == SEGUE_OK)
        sgi_round_send(op);
}

void sgi_round_send(sgi_op *op)
{
    sgi_reply *reply;
    if (!sgi_round_is_due(op))
        return;
    sgi_op_ref(op);
    bool ok = true;
    if (!op->served->round->out || op->served->round->shown < op->head.input_count)
        ok = put_out(op->served->round);
    else if (op->served->round->stale)
        ok = seal_state(op->served->round);
    if (!ok)
        sgi_op_end_internal_error(op, "The server could not encrypt the requestState");
    while (is_out(op) && (reply = sgi_call_find_round_reply(op))) {
        op->served->round->told = true;
        sgi_reply_separate_from_op(reply, op);
        write_round(reply, op);
        sgi_reply_close(reply);
    }
    sgi_op_unref(op);
}

/* ---- the request with the answers ---- */

sgi_op *sgi_round_find_op(const sgi_inbound *in, const sgi_call_kind *kind, sgi_str name,
                          bool *elsewhere)
{
    sgi_request_state state;
    *elsewhere = false;
    if (sgi_request_state_open(in, kind, name, &state) != SEGUE_OK)
        return NULL;
    sgi_map_node *node = sgi_map_find(&in->peer->server->rounds, state.id);
    *elsewhere = !state.is_ours && state.carried.n;
    sgi_request_state_free(&state);
    return node ? SGI_OWNER(node, sgi_round, node)->op : NULL;
}

void sgi_round_on_answer_without_state(sgi_op *op)
{
    if (op->served->round && (!first_open(op) || sgi_op_has_ended(op)))
        take_in(op->served->round);
}

/* ---- the client does not come back ---- */

static void give_up_waiting(sgi_op *op)
{
    sgi_op_ref(op);
    take_in(op->served->round);
    /* Here only the waiting for answers ends, not the operation: the operation has ended
     * already, or another server runs it and applies the time limit. */
    if (sgi_op_has_ended(op) || sgi_op_runs_elsewhere(op))
        sgi_round_end(op);
    else
        sgi_task_cancel(op);
    sgi_op_unref(op);
}

static void time_over(sgi_timer *timer)
{
    give_up_waiting(SGI_OWNER(timer, sgi_round, timer)->op);
}

void sgi_rounds_cancel_all(segue_server *server)
{
    sgi_map_node *node;
    while ((node = sgi_map_any_node(&server->rounds)))
        give_up_waiting(SGI_OWNER(node, sgi_round, node)->op);
}

void sgi_rounds_end_all(segue_server *server)
{
    sgi_map_node *node;
    while ((node = sgi_map_any_node(&server->rounds)))
        sgi_round_end(SGI_OWNER(node, sgi_round, node)->op);
}
