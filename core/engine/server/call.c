/* The state of a call, with the events that the handler still has to receive. Each kind
 * of event is one flag, so events do not queue up. call_events.c delivers the events.
 *
 * A call has up to three references: one of the handler (`held`), one of the operation,
 * and one of the ready queue while events are due. */
#include "engine/server/call.h"

#include "engine/server/call_report.h"
#include "engine/server/call_trace.h"
#include "engine/server/dialects.h"
#include "engine/server/metrics.h"
#include "engine/server/origin.h"
#include "engine/server/serving.h"

/* Puts the call into the ready queue. The ready queue holds one reference to the call. */
void sgi_call_queue_events(segue_call *call)
{
    if (!call->ready.queued)
        call->refs++;
    sgi_ready_queue_add(call->handle.engine, &call->ready);
}

/* Copies what the log has of the earlier run. Returns NULL when out of memory. */
static sgi_earlier_run *earlier_run(const sgi_op *op)
{
    size_t len = op->head.checkpoint_len;
    sgi_earlier_run *run =
        sgi_alloc(sgi_engine_mem(op->engine), sizeof *run + op->head.checkpoint_len);
    if (!run)
        return NULL;
    *run = (sgi_earlier_run){op->head.next_seg - 1, op->head.next_log, len};
    if (len)
        memcpy(run->checkpoint, op->head.checkpoint, len);
    return run;
}

segue_status sgi_call_start(sgi_op *op, bool again)
{
    sgi_engine *engine = op->engine;
    if (!sgi_op_is_owned_here(op))
        return SEGUE_E_STATE;
    segue_call *call = sgi_zalloc(sgi_engine_mem(engine), sizeof *call);
    if (!call)
        return SEGUE_E_NOMEM;
    if (again && !(call->earlier = earlier_run(op))) {
        sgi_free(sgi_engine_mem(engine), call, sizeof *call);
        return SEGUE_E_NOMEM;
    }
    call->handle = (sgi_handle){SGI_MAGIC_CALL, engine};
    call->refs = 1;
    call->op = op;
    call->began_ms = sgi_now(&engine->env);
    call->ready.run = sgi_op_server(op)->serving->run_call;
    call->invoke_due = true;
    call->origin = op->served->origin;
    op->served->origin = NULL;
    TAILQ_INIT(&call->closing);
    sgi_op_ref(op);
    sgi_op_set_hold(op, SGI_HOLD_HERE);
    op->served->call = call;
    LIST_INSERT_HEAD(&sgi_op_server(op)->calls.running, call, link);
    sgi_op_server(op)->calls.count++;
    sgi_op_server(op)->counts.calls++;
    sgi_call_queue_events(call);
    return SEGUE_OK;
}

static void stop_holding_turn(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    if (!call->turn)
        return;
    sgi_engine_clear_timer(engine, &call->turn->timer);
    sgi_free(sgi_engine_mem(engine), call->turn, sizeof *call->turn);
    call->turn = NULL;
}

static void free_parts(segue_call *call)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    sgi_decoded_argument *decoded;
    while ((decoded = call->decoded)) {
        call->decoded = decoded->next;
        sgi_free(mem, decoded, sizeof *decoded + decoded->len + 1);
    }
    if (call->batches)
        sgi_free(mem, call->batches, sizeof *call->batches);
    if (call->earlier)
        sgi_free(mem, call->earlier, sizeof *call->earlier + call->earlier->len);
    stop_holding_turn(call);
}

static void free_call(segue_call *call)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    free_parts(call);
    call->handle.magic = SGI_MAGIC_FREED;
    sgi_entry_list_free(mem, &call->closing);
    LIST_REMOVE(call, link);
    sgi_op_server(call->op)->calls.count--;
    sgi_op_release_bytes(call->op, sgi_origin_size(call->origin));
    sgi_origin_unref(call->origin);
    sgi_op_unref(call->op);
    sgi_free(mem, call, sizeof *call);
}

void sgi_call_unref(segue_call *call)
{
    if (--call->refs == 0)
        free_call(call);
}

/* ---- checking the last entries ---- */

void sgi_call_check_then_end(segue_call *call, struct sgi_entry_list *list)
{
    TAILQ_CONCAT(&call->closing, list, link);
    call->is_closing = call->check_due = true;
    sgi_call_queue_events(call);
}

/* ---- answers ---- */

sgi_op_question *sgi_call_due_answer(const segue_call *call)
{
    sgi_op_question *input;
    const sgi_op *op = call->op;
    bool ended =
        sgi_op_has_ended(op) || sgi_op_server(op)->stage == SGI_SERVER_DEAD || call->lost;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (input->bound && input->asker == call && !input->delivered &&
            ((input->answered && input->answered <= sgi_op_horizon(op)) || ended))
            return input;
    return NULL;
}

bool sgi_call_checkpoint_is_due(const segue_call *call)
{
    return call->checkpoint && call->events.on_checkpoint && !call->lost &&
           !sgi_op_is_broken(call->op) && call->checkpoint <= sgi_op_horizon(call->op);
}

/* True when the handler waits for the answer to a question. The question may not be sent
 * yet; the delivery of events sends the question. */
static bool waits_for_answer(const sgi_op *op)
{
    const sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (input->bound && !input->answered)
            return true;
    return false;
}

/* ---- the first turn ---- */

void sgi_call_notify_turn_over(segue_call *call)
{
    sgi_op *op = call->op;
    sgi_reply *reply = op->served->reply;
    call->turned = true;
    stop_holding_turn(call);
    if (reply && reply->turned)
        reply->turned(reply, op);
}

static void turn_takes_too_long(sgi_timer *timer)
{
    sgi_call_end_turn(SGI_OWNER(timer, sgi_held_turn, timer)->call);
}

/* Keeps the handler's first turn open, which otherwise ends when on_call returns. Returns
 * SEGUE_E_STATE when the turn or the call is already over, or when no answer to the
 * client waits for the end of the turn. */
segue_status sgi_call_hold_turn(segue_call *call)
{
    const sgi_op *op = call->op;
    if (!sgi_srv_answers_after_turn(op) || call->earlier || call->turned ||
        sgi_call_is_over(call))
        return SEGUE_E_STATE;
    if (!call->turn) {
        call->turn = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *call->turn);
        if (!call->turn)
            return SEGUE_E_NOMEM;
        call->turn->call = call;
    }
    sgi_engine_set_timer(op->engine, &call->turn->timer,
                         sgi_op_server(op)->options.first_turn_ms, turn_takes_too_long);
    return SEGUE_OK;
}

void sgi_call_end_turn(segue_call *call)
{
    if (call->turn)
        sgi_call_notify_turn_over(call);
}

/* ---- events for the handler ---- */

void sgi_call_cancel(segue_call *call)
{
    if (call->cancelled)
        return;
    call->cancelled = true;
    call->cancel_due = true;
    sgi_call_queue_events(call);
}

void sgi_call_shut_down(segue_call *call)
{
    call->invoke_due = call->check_due = false;
    sgi_origin_drop_context(call->origin);
    sgi_call_cancel(call);
    sgi_call_queue_events(call);
}

void sgi_call_on_taken_over(segue_call *call)
{
    call->lost = true;
    sgi_call_shut_down(call);
    sgi_call_release_by_op(call);
}

void sgi_call_on_room(segue_call *call)
{
    if (call->wants_drain && !sgi_op_handler_must_wait(call->op)) {
        call->wants_drain = false;
        call->drain_due = true;
    }
    if (call->drain_due || sgi_call_due_answer(call) ||
        sgi_call_checkpoint_is_due(call) || waits_for_answer(call->op))
        sgi_call_queue_events(call);
}

void sgi_call_release_by_op(segue_call *call)
{
    int64_t took_ms = sgi_now(&call->handle.engine->env) - call->began_ms;
    sgi_metrics_count_end(call->op, took_ms);
    sgi_call_event_report_end(call, took_ms);
    if (sgi_event_is_wanted(call->handle.engine, SGI_EVENT_task_ended))
        sgi_op_trace_keep(call->op);
    call->op->served->call = NULL;
    if (call->turn)
        sgi_call_queue_events(call);
    sgi_call_unref(call);
}

/* ---- functions that a handler calls ---- */

segue_status sgi_call_set_events(segue_call *call, const segue_call_events *events)
{
    if (call->watched)
        return SEGUE_E_STATE;
    call->watched = true;
    call->events = *events;
    call->cancel_due = call->cancelled;
    if (call->cancel_due || sgi_call_checkpoint_is_due(call))
        sgi_call_queue_events(call);
    return SEGUE_OK;
}

segue_status sgi_call_resumed(const segue_call *call, uint64_t *last_segment,
                              const void **data, size_t *len)
{
    const sgi_earlier_run *run = call->earlier;
    if (!run)
        return SEGUE_E_NOT_FOUND;
    if (last_segment)
        *last_segment = run->segment;
    if (data)
        *data = run->len ? run->checkpoint : NULL;
    if (len)
        *len = run->len;
    return SEGUE_OK;
}

segue_status sgi_call_refuse_ended(const segue_call *call)
{
    return sgi_refuse(call->handle.engine, SEGUE_E_TERMINAL, "%s",
                      call->lost ? "another server runs this call now"
                                 : "the call has ended");
}
