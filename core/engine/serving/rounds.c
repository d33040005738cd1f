/* Who holds what: while its round is out, an operation is held by it, so that even one
 * whose handler has ended in the meantime is there for the client that comes again. The
 * round itself belongs to the operation and goes with its end, or with its becoming a
 * task, whose questions go another way.
 *
 * A round changes only when somebody is there to be told: the state that a client holds
 * is good until it has come with it. */
#include "engine/serving/rounds.h"

#include "engine/serving/call.h"
#include "engine/serving/errands.h"
#include "engine/dialect/pieces.h"
#include "engine/serving/request_state.h"
#include "engine/serving/task.h"
#include "engine/refusal.h"

static void time_over(sgi_timer *timer);

segue_status sgi_round_begin(sgi_op *op)
{
    if (op->round)
        return SEGUE_OK;
    if (op->who->live_tasks >= op->server->options.max_tasks)
        return SEGUE_E_LIMIT;
    op->round = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *op->round);
    if (!op->round)
        return SEGUE_E_NOMEM;
    op->round->op = op;
    sgi_buf_init(&op->round->state, sgi_engine_mem(op->engine));
    op->who->live_tasks++;
    return SEGUE_OK;
}

static bool is_out(const sgi_op *op)
{
    return op->round && op->round->out;
}

bool sgi_round_is_awaited(const sgi_op *op)
{
    return is_out(op) && op->round->told;
}

/* Takes the state out of use. The caller holds the operation. */
static void take_in(sgi_round *round)
{
    if (!round->out)
        return;
    round->out = round->told = false;
    sgi_engine_timer_clear(round->op->engine, &round->timer);
    sgi_map_remove(&round->op->server->rounds, &round->node);
    sgi_op_unref(round->op);
}

void sgi_round_end(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_round *round = op->round;
    if (!round)
        return;
    op->round = NULL; /* with what follows the operation may go */
    op->who->live_tasks--;
    take_in(round);
    sgi_buf_free(&round->state);
    sgi_release(mem, round, sizeof *round);
}

/* ---- asking ---- */

/* The handler, here or at another server, waits for it, and it has no answer. */
static bool is_open(const sgi_op *op, const sgi_input *input)
{
    return (input->bound || sgi_op_is_elsewhere(op)) && !input->answered &&
           !sgi_errand_answers(op, input->key);
}

static const sgi_input *first_open(const sgi_op *op)
{
    const sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (is_open(op, input))
            return input;
    return NULL;
}

static bool has_handler(const sgi_op *op)
{
    return sgi_op_is_elsewhere(op) || (op->call && !op->call->cancelled);
}

bool sgi_round_is_due(const sgi_op *op)
{
    const sgi_input *input;
    if (!op->round || op->is_task || sgi_op_has_ended(op) || !has_handler(op) ||
        op->server->stage == SGI_SERVER_DEAD || !first_open(op))
        return false;
    TAILQ_FOREACH(input, &op->inputs, link) {
        if (!input->bound)
            continue; /* of an earlier run that has not asked it again */
        if (input->asked > sgi_op_horizon(op) || (input->answered && !input->delivered))
            return false;
    }
    return !op->round->out || sgi_call_waiting(op);
}

/* The draft had another word for it (core/docs/requirements.md 2.1). */
static void write_round(sgi_reply *reply, const sgi_op *op)
{
    const sgi_input *input;
    sgi_sending sending;
    if (!sgi_reply_result(&sending, reply, "input_required"))
        return;
    if (!reply->modern)
        sgi_jw_member_string(&sending.w, "resultType", SGI_STR("incomplete"));
    sgi_jw_key(&sending.w, "inputRequests");
    sgi_jw_open(&sending.w, '{');
    TAILQ_FOREACH(input, &op->inputs, link)
        if (is_open(op, input))
            sgi_input_write(&sending.w, input);
    sgi_jw_close(&sending.w, '}');
    sgi_jw_member_string(&sending.w, "requestState", sgi_buf_str(&op->round->state));
    if (reply->modern)
        sgi_send_meta(&sending, op->server);
    sgi_send_end(&sending);
}

static bool seal_state(sgi_round *round)
{
    round->stale = false;
    sgi_buf_reset(&round->state, SIZE_MAX);
    return sgi_request_state_write(round->op, round->id, round->expires_ms,
                                   &round->state);
}

/* Another round: its time begins. false: there is no chance, or no memory, to be had for
 * a state. */
static bool put_out(sgi_round *round)
{
    sgi_op *op = round->op;
    int64_t wait_ms = op->server->options.input_wait_ms;
    int64_t now_ms = sgi_wall(&op->engine->env);
    sgi_op_ref(op);
    take_in(round);
    round->expires_ms = sgi_time_add(now_ms, wait_ms);
    if (!sgi_engine_random_text(op->engine, round->id) || !seal_state(round)) {
        sgi_op_unref(op);
        return false;
    }
    sgi_map_put(&op->server->rounds, &round->node, sgi_str_of(round->id));
    sgi_engine_timer(op->engine, &round->timer, wait_ms, time_over);
    round->out = true; /* and has the reference */
    round->shown = op->input_count;
    return true;
}

void sgi_round_follow(sgi_op *op)
{
    if (op->is_task || sgi_op_has_ended(op) || !first_open(op) || !sgi_call_waiting(op))
        return;
    if (sgi_round_begin(op) == SEGUE_OK)
        sgi_round_send(op);
}

void sgi_round_send(sgi_op *op)
{
    sgi_reply *reply;
    if (!sgi_round_is_due(op))
        return;
    sgi_op_ref(op);
    bool ok = true;
    if (!op->round->out || op->round->shown < op->input_count)
        ok = put_out(op->round);
    else if (op->round->stale)
        ok = seal_state(op->round);
    if (!ok)
        sgi_op_give_up(op, "No requestState can be made");
    while (is_out(op) && (reply = sgi_call_waiting(op))) {
        op->round->told = true;
        sgi_call_unhook(reply, op);
        write_round(reply, op);
        sgi_reply_close(reply);
    }
    sgi_op_unref(op);
}

/* ---- the client comes again ---- */

sgi_op *sgi_round_find(const sgi_inbound *in, const sgi_call_kind *kind, sgi_str name,
                       bool *elsewhere)
{
    sgi_request_state state;
    *elsewhere = false;
    if (sgi_request_state_open(in, kind, name, &state) != SEGUE_OK)
        return NULL;
    sgi_map_node *node = sgi_map_find(&in->peer->server->rounds, state.id);
    *elsewhere = !state.is_ours && state.recall.n;
    sgi_request_state_free(&state);
    return node ? SGI_OWNER(node, sgi_round, node)->op : NULL;
}

/* A client that comes without a capability cannot be asked again for what it leaves
 * open. */
static const sgi_input *not_askable(const sgi_op *op, uint32_t caps)
{
    const sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (is_open(op, input) &&
            sgi_input_needs(input->method, (sgi_json){input->params, input->params_len}) &
                ~caps)
            return input;
    return NULL;
}

static void answer_not_askable(sgi_reply *reply, const sgi_input *input)
{
    char data[80];
    sgi_input_missing(input->method, data, sizeof data);
    sgi_reply_error(reply, SGI_RPC_MISSING_CAPABILITY,
                    SGI_STR("Missing required client capability"), sgi_str_of(data));
    sgi_reply_close(reply);
}

/* Not SEGUE_OK: to be sent again. What was taken before is not taken again. */
static segue_status take_answers(sgi_op *op, sgi_json responses)
{
    sgi_json_member member;
    if (sgi_json_kind_of(responses) != SGI_JSON_OBJECT)
        return SEGUE_OK;
    for (size_t at = 0; sgi_json_next_member(responses, &at, &member);) {
        segue_status status = sgi_task_answer(op, member.key, member.value);
        if (sgi_task_is_put_off(op, status))
            return status;
    }
    return SEGUE_OK;
}

void sgi_round_settle(sgi_op *op)
{
    if (op->round && (!first_open(op) || sgi_op_has_ended(op)))
        take_in(op->round);
}

static void go_on(sgi_op *op, sgi_reply *reply, const sgi_call_request *request)
{
    sgi_round_settle(op);
    sgi_pieces_want(reply, request);
    sgi_pieces_of(reply, op, true);
    sgi_call_attach(reply, op);
    if (op->call)
        sgi_call_look(op->call);
    else if (op->round && !op->round->out)
        sgi_round_end(op); /* it has ended, and that is told */
}

void sgi_round_answer(sgi_op *op, const sgi_inbound *in, const sgi_call_request *request,
                      const sgi_dialect *dialect)
{
    sgi_reply *reply = sgi_reply_open(in, false);
    if (!reply)
        return;
    const sgi_input *input = sgi_op_has_ended(op) ? NULL : not_askable(op, in->caps);
    if (input) {
        answer_not_askable(reply, input);
        return;
    }
    sgi_op_ref(op);
    segue_status status = take_answers(op, in->responses);
    if (status == SEGUE_OK) {
        if (op->round)
            op->round->stale = op->server->seal.shared;
        op->caps = in->caps; /* nothing is remembered from one request to the next */
        op->dialect = dialect;
        go_on(op, reply, request);
    } else {
        sgi_reply_refuse(reply, SGI_UNSTORED, status);
        sgi_reply_close(reply);
    }
    sgi_op_unref(op);
}

/* ---- nobody comes ---- */

static void give_up_waiting(sgi_op *op)
{
    sgi_op_ref(op);
    take_in(op->round);
    if (sgi_op_has_ended(op) || sgi_op_is_elsewhere(op)) /* its owner has a clock, too */
        sgi_round_end(op);
    else
        sgi_task_cancel(op);
    sgi_op_unref(op);
}

static void time_over(sgi_timer *timer)
{
    give_up_waiting(SGI_OWNER(timer, sgi_round, timer)->op);
}

void sgi_rounds_desert(segue_server *server)
{
    sgi_map_node *node;
    while ((node = sgi_map_any(&server->rounds)))
        give_up_waiting(SGI_OWNER(node, sgi_round, node)->op);
}

void sgi_rounds_die(segue_server *server)
{
    sgi_map_node *node;
    while ((node = sgi_map_any(&server->rounds)))
        sgi_round_end(SGI_OWNER(node, sgi_round, node)->op);
}
