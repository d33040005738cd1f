/* Delivers the events of a call one at a time in a fixed order: start of the handler,
 * check of the last entries, cancel, answers to questions, checkpoint, drain. free_user
 * runs last, when the handler gets no more events. When no event is due, the open
 * questions of the call are sent to the client. */
#include "engine/server/call.h"

#include "engine/cluster/following.h"
#include "engine/server/call_report.h"
#include "engine/server/rounds.h"
#include "engine/server/tool_check.h"
#include "wire/ending.h"

static void run_handler(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    const segue_item_options *options = &call->op->served->item->options;
    segue_call_fn handler = call->op->served->kind == &sgi_call_completion
                                ? options->on_completion
                                : options->on_call;
    call->invoke_due = false;
    if (!sgi_tool_check_arguments(call))
        return;
    sgi_call_event_report_start(call);
    call->held = true;
    call->refs++;
    engine->host.retain(engine->host.user);
    sgi_user_code_begin(engine);
    handler(options->user, call);
    sgi_user_code_end(engine);
}

static void run_check(segue_call *call)
{
    call->check_due = false;
    sgi_tool_check_result(call);
}

static void run_cancel(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    call->cancel_due = false;
    if (!call->events.on_cancel || !call->held)
        return;
    sgi_user_code_begin(engine);
    call->events.on_cancel(call->events.user, call);
    sgi_user_code_end(engine);
}

static void run_drain(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    call->drain_due = false;
    if (!call->events.on_drain || !call->held)
        return;
    sgi_user_code_begin(engine);
    call->events.on_drain(call->events.user, call);
    sgi_user_code_end(engine);
}

static void run_checkpoint(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    call->checkpoint = 0;
    if (!call->events.on_checkpoint || !call->held)
        return;
    sgi_user_code_begin(engine);
    call->events.on_checkpoint(call->events.user, call);
    sgi_user_code_end(engine);
}

static void run_answer(segue_call *call, sgi_op_question *input)
{
    sgi_engine *engine = call->handle.engine;
    bool ok =
        input->answered && input->answered <= sgi_op_horizon(call->op) && !call->lost;
    segue_status status = input->failed ? SEGUE_E_REMOTE : SEGUE_OK;
    segue_free_fn free_user = input->free_user;
    void *user = input->user;
    input->delivered = true;
    sgi_call_event_report_question(call->op, input->method,
                                   !ok             ? "cancelled"
                                   : input->failed ? "refused"
                                                   : "ok");
    if (!call->lost)
        /* the question has its outcome, so the client need not answer requests that still
         * ask the question */
        sgi_question_withdraw_sent(input);
    /* the answer must stay in memory while the callback reads the answer */
    sgi_op_pin_head(call->op);
    sgi_user_code_begin(engine);
    if (call->held)
        input->on_input(user, call, ok ? status : SEGUE_E_CANCELLED,
                        ok ? input->answer : NULL, ok ? input->answer_len : 0);
    if (free_user)
        free_user(user);
    sgi_user_code_end(engine);
    sgi_op_unpin_head(call->op);
}

static bool is_over(const segue_call *call)
{
    return !call->held || call->lost || sgi_op_server(call->op)->stage == SGI_SERVER_DEAD;
}

static void run_free_user(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    segue_free_fn fn = call->events.free_user;
    call->events.free_user = NULL;
    sgi_user_data_free(engine, fn, call->events.user);
}

/* Runs one due event of the call. Returns false when no event is due. */
static bool deliver_one(segue_call *call)
{
    sgi_op_question *input;
    if (call->invoke_due)
        run_handler(call);
    else if (call->check_due)
        run_check(call);
    else if (call->cancel_due)
        run_cancel(call);
    else if ((input = sgi_call_due_answer(call)))
        run_answer(call, input);
    else if (sgi_call_checkpoint_is_due(call))
        run_checkpoint(call);
    else if (call->drain_due)
        run_drain(call);
    else if (is_over(call) && call->watched && call->events.free_user)
        run_free_user(call);
    else
        return false;
    return true;
}

/* ---- the first turn ---- */

static bool turn_is_over(const segue_call *call)
{
    return !call->invoke_due && !call->check_due &&
           (!call->turn || is_over(call) || sgi_call_is_over(call));
}

/* ---- all events ---- */

static void ask_client(sgi_op *op)
{
    sgi_op_ref(op);
    sgi_round_send(op);
    sgi_question_requests_send(op);
    sgi_op_unref(op);
}

int32_t sgi_call_deliver_events(sgi_ready_object *ready, int32_t budget)
{
    segue_call *call = SGI_OWNER(ready, segue_call, ready);
    int32_t ran = 0;
    while (ran < budget && deliver_one(call))
        ran++;
    if (!call->turned && turn_is_over(call))
        sgi_call_notify_turn_over(call);
    if (ran == budget)
        sgi_call_queue_events(call);
    else
        /* The questions are sent after the loop, so that the questions of all callbacks
         * above go out together. */
        ask_client(call->op);
    sgi_call_unref(call);
    return ran;
}

/* ---- the handler frees its call ---- */

/* True for an operation that the closed server must release in the store, so that another
 * server can continue it: a task, or a call whose client can come back with a token or a
 * key. */
static bool is_left(const segue_call *call)
{
    const segue_server *server = sgi_op_server(call->op);
    return server->stage >= SGI_SERVER_CLOSED && sgi_op_is_known(call->op) &&
           (sgi_op_is_task(call->op) || server->idempotency);
}

static void let_go_in_store(segue_call *call)
{
    call->lost = true;
    if (!sgi_op_is_task(call->op))
        sgi_call_cut_connections(call->op);
    sgi_server_op_release(call->op);
}

/* Ends the operation of a handler that gives it up. The error of a closed server says
 * that the end of the server is the cause. */
static void end_without_result(segue_call *call)
{
    sgi_str text = SGI_STR(SGI_UNANSWERED_TEXT);
    sgi_str data = SGI_STR(SGI_UNANSWERED_DATA);
    bool is_closed = sgi_op_server(call->op)->stage >= SGI_SERVER_CLOSED;
    if (!is_closed || sgi_op_fail(call->op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, text,
                                  data) != SEGUE_OK)
        sgi_op_end_internal_error(call->op, is_closed
                                                ? SGI_UNANSWERED_TEXT
                                                : "The handler ended without a result");
}

void sgi_call_free(segue_call *call)
{
    if (!sgi_call_is_over(call) && is_left(call))
        let_go_in_store(call);
    else if (!sgi_call_is_over(call))
        end_without_result(call);
    call->held = false;
    call->handle.magic = SGI_MAGIC_FREED;
    if ((call->watched && call->events.free_user) || sgi_call_due_answer(call))
        sgi_call_queue_events(call);
    sgi_call_end_turn(call);
    sgi_call_unref(call);
}
