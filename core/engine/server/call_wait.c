/* Sets what the reply of a call waits for. The reply of a task waits for the creation of
 * the task. The reply of any other call waits for the end of the call. When a running
 * call becomes a task, its reply waits for the creation of the task from then on. */
#include "engine/server/tool_call.h"

#include "engine/log/refusal.h"
#include "engine/server/call.h"
#include "engine/server/pieces.h"
#include "engine/server/lasting.h"
#include "engine/server/rounds.h"
#include "engine/server/task.h"

void sgi_tool_call_fail_no_memory(sgi_reply *reply, sgi_op *op)
{
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                    (sgi_json){0});
    sgi_reply_close(reply);
    /* a stored operation cannot be dropped, so the operation ends as soon as there is
     * memory for its final entry */
    if (op && sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}")) == SEGUE_E_NOMEM)
        sgi_op_end_internal_error(op, "Out of memory");
}

/* Ends the reply of an operation that could not be created. If an operation with the same
 * idempotency key exists, the reply joins that operation; otherwise the reply sends an
 * error. */
static void creation_failed(sgi_reply *reply, sgi_op *op, segue_status status)
{
    if (status == SEGUE_E_EXISTS && op->key && reply->peer) {
        sgi_rejoin_by_key(reply, op);
        return;
    }
    sgi_reply_store_error(reply, SGI_UNSTORED, status);
    sgi_reply_close(reply);
}

static void call_ended(sgi_reply *reply, sgi_op *op, segue_status status)
{
    sgi_reply_separate_from_op(reply, op);
    if (status != SEGUE_OK)
        creation_failed(reply, op, status);
    else if (reply->pieces)
        sgi_pieces_finish_reply(reply);
    else if (reply->peer)
        sgi_call_answer_reply(reply, op);
    else
        sgi_reply_close(reply);
}

static void begin_lasting(sgi_reply *reply, sgi_op *op)
{
    if (op->served->lasting)
        op->served->lasting->form->created(op->served->lasting, reply);
}

/* Called when the creation of a lasting call (its client can leave and come back) is
 * durable or has failed. After a success, messages of the call can be sent. After a
 * failure, the reply sends an error. */
static void lasting_created(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    if (status != SEGUE_OK) {
        creation_failed(reply, op, status);
    } else if (reply->peer) {
        sgi_op_ref(op);
        begin_lasting(reply, op);
        sgi_pieces_resume(reply, op, NULL);
        sgi_reply_wait_for_op(reply, op);
        sgi_op_unref(op);
    } else {
        if (!op->key)
            /* the client is gone and never got the id of the task, so the task is
             * cancelled */
            sgi_task_cancel(op);
        sgi_reply_close(reply);
    }
}

/* Called when the creation of a lasting call that another request has made is durable or
 * has failed. */
static void joined_created(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    if (status != SEGUE_OK)
        creation_failed(reply, op, status);
    else if (reply->peer)
        sgi_rejoin_stored(reply, op, op->served->caps);
    else
        sgi_reply_close(reply);
}

void sgi_tool_call_join_when_stored(sgi_reply *reply, sgi_op *op)
{
    reply->waiter.fire = joined_created;
    sgi_op_wait_until_visible(op, &reply->waiter, 0);
}

void sgi_tool_call_wait_stored(sgi_reply *reply, sgi_op *op)
{
    reply->waiter.fire = lasting_created;
    sgi_op_wait_until_visible(op, &reply->waiter, 0);
}

static void task_created(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_reply_separate_from_op(reply, op);
    if (status != SEGUE_OK) {
        creation_failed(reply, op, status);
        return;
    }
    if (reply->peer) {
        begin_lasting(reply, op);
        op->served->dialect->created(reply, op);
        return;
    }
    if (!op->key)
        /* the client is gone and never got the id of the task, so the task is cancelled
         * (R-2557-38) */
        sgi_task_cancel(op);
    sgi_reply_close(reply);
}

/* Called when the client has cancelled a call, or has gone, before the call was
 * answered. */
static void call_withdrawn(sgi_reply *reply)
{
    sgi_op *op = reply->user;
    /* this reference is needed, because sgi_pieces_drop can drop the last other reference
     * to the operation */
    sgi_op_ref(op);
    op->served->reply = NULL;
    sgi_pieces_drop(reply);
    /* When only the conversation is lost, a call with an idempotency key and a lasting
     * call continue, because their clients can ask for the call again (R-2557-11). */
    if (!reply->lost || !(op->key || op->served->lasting))
        sgi_task_cancel(op);
    sgi_op_unref(op);
}

void sgi_tool_call_set_waiter(sgi_reply *reply, sgi_op *op, uint32_t caps)
{
    bool as_task = sgi_op_is_task(op) && caps & SGI_CAP_TASKS;
    if (!as_task) {
        sgi_reply_await_end(reply, op, call_ended);
        return;
    }
    /* a call that is a task sends no pieces of a plain result (R-776-20) */
    sgi_pieces_drop(reply);
    reply->waiter.fire = task_created;
    sgi_op_wait_until_visible(op, &reply->waiter, op->head.task_seq);
}

void sgi_reply_wait_for_op(sgi_reply *reply, sgi_op *op)
{
    if (!op->served->reply) {
        reply->user = op;
        reply->cancelled = call_withdrawn;
        op->served->reply = reply;
    }
    sgi_tool_call_set_waiter(reply, op, op->served->caps);
}

/* ---- a running call becomes a task ---- */

/* Answers the open request of the call with the task that the call has become. */
static void became_task(segue_call *call)
{
    sgi_reply *reply = call->op->served->reply;
    if (!reply)
        return;
    sgi_op_wait_cancel(&reply->waiter);
    sgi_tool_call_set_waiter(reply, call->op, call->op->served->caps);
}

/* True for a call that would be a task from its start if its client took no plain result.
 * A tool with a delay of promotion makes no task before the delay, whatever its client
 * takes. */
static bool is_plain_for_its_result(const sgi_op *op)
{
    const sgi_item *item = op->served->item;
    bool is_delayed = item && item->options.task == SEGUE_TASK_MAY &&
                      item->options.promote_after_ms > 0;
    return op->head.tasking == SGI_TASKING_MAY && !is_delayed && !op->served->lasting;
}

void sgi_call_on_failing(sgi_op *op)
{
    segue_call *call = op->served->call;
    const sgi_reply *reply = op->served->reply;
    bool is_awaited = call && !call->lost && reply && reply->peer;
    /* a server that is closed keeps no new task, so the call ends as a lost one */
    if (!is_awaited || !is_plain_for_its_result(op) || sgi_op_is_broken(op) ||
        sgi_op_server(op)->stage >= SGI_SERVER_CLOSED)
        return;
    if (sgi_op_turn_into_task(op, op->served->asked_ttl_ms) == SEGUE_OK)
        became_task(call);
}

segue_status sgi_call_defer(segue_call *call, int64_t ttl_ms)
{
    sgi_op *op = call->op;
    if (sgi_op_is_task(op))
        return SEGUE_OK;
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    if (!op->served->item || op->served->item->options.task == SEGUE_TASK_NEVER)
        return sgi_refuse(call->handle.engine, SEGUE_E_UNSUPPORTED,
                          "the tool never runs as a task");
    if (!(op->served->caps & SGI_CAP_TASKS))
        return sgi_refuse(call->handle.engine, SEGUE_E_UNSUPPORTED,
                          "the client has not declared that it supports tasks");
    if (sgi_op_is_logged(op) &&
        (op->head.tasking != SGI_TASKING_MAY || op->served->lasting))
        return sgi_refuse(call->handle.engine, SEGUE_E_UNSUPPORTED,
                          "the call is stored without asking for a task, or can be "
                          "resumed, so it cannot become a task");
    /* the client's request was answered with questions, so there is no open request that
     * could announce the task to the client */
    if (sgi_round_awaits_client(op))
        return sgi_refuse(
            call->handle.engine, SEGUE_E_STATE,
            "the call waits for answers of its client, so it cannot become a task now");
    segue_status status =
        sgi_op_turn_into_task(op, ttl_ms ? ttl_ms : op->served->asked_ttl_ms);
    if (status == SEGUE_OK)
        became_task(call);
    return status;
}
