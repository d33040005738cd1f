#include "engine/server/call_report.h"

#include "base/thresholds.h"
#include "engine/server/call_trace.h"

#include <stdio.h>

#define BATCH_MS SGI_THRESHOLD(event_batch_ms)

/* The values of the field `status`. */
static const char *const ends[] = {
    [SGI_FINAL_NONE] = "lost",
    [SGI_FINAL_RESULT] = "ok",
    [SGI_FINAL_RESULT_IS_ERROR] = "tool_error",
    [SGI_FINAL_ERROR] = "error",
    [SGI_FINAL_CANCELLED] = "cancelled",
    [SGI_FINAL_EXPIRED] = "expired",
};

void sgi_call_event_begin(sgi_call_event *made, const sgi_op *op, sgi_event_id id)
{
    const sgi_served_op_data *served = op->served;
    segue_event *event = &made->event;
    *event = sgi_event_new(op->engine, id);
    event->server = sgi_op_server(op)->options.name;
    event->method = served->kind->method;
    event->item = served->item ? served->item->key : NULL;
    event->era = sgi_event_era(!served->only_objects);
    if (sgi_op_is_task(op)) {
        snprintf(made->task, sizeof made->task, "%s", op->task_id);
        event->task = made->task;
    }
    event->trace_parent = sgi_event_copy_trace(made->trace_parent, sgi_op_trace(op));
}

void sgi_call_event_report(const sgi_op *op, sgi_event_id id)
{
    sgi_call_event made;
    if (!sgi_event_is_wanted(op->engine, id))
        return;
    sgi_call_event_begin(&made, op, id);
    sgi_event_report(op->engine, id, &made.event);
}

void sgi_call_event_report_status(const sgi_op *op, sgi_event_id id)
{
    sgi_call_event made;
    if (!sgi_event_is_wanted(op->engine, id))
        return;
    sgi_call_event_begin(&made, op, id);
    made.event.status = ends[op->head.final];
    sgi_event_report(op->engine, id, &made.event);
}

static void report_restart(const segue_call *call)
{
    sgi_call_event made;
    if (!call->earlier ||
        !sgi_event_is_wanted(call->op->engine, SGI_EVENT_call_restarted))
        return;
    sgi_call_event_begin(&made, call->op, SGI_EVENT_call_restarted);
    made.event.count = (int64_t)call->earlier->segment;
    sgi_event_report(call->op->engine, SGI_EVENT_call_restarted, &made.event);
}

/* Copies the beginning of the arguments, without a character that is cut off. Returns
 * NULL when out of memory. */
static char *copy_arguments(const segue_call *call)
{
    sgi_json arguments = sgi_op_arguments(call->op);
    size_t most = (size_t)call->op->engine->observer.max_argument_bytes;
    arguments.n = sgi_text_fitting_bytes(arguments, most);
    return sgi_text_dup(sgi_engine_mem(call->op->engine), arguments);
}

void sgi_call_event_report_start(const segue_call *call)
{
    sgi_call_event made;
    sgi_engine *engine = call->op->engine;
    report_restart(call);
    if (!sgi_event_is_wanted(engine, SGI_EVENT_call_started))
        return;
    sgi_call_event_begin(&made, call->op, SGI_EVENT_call_started);
    char *arguments = engine->observer.max_argument_bytes ? copy_arguments(call) : NULL;
    made.event.arguments = arguments;
    sgi_event_report(engine, SGI_EVENT_call_started, &made.event);
    sgi_text_free(sgi_engine_mem(engine), arguments);
}

/* The time of the event is that of the last part. */
static void report_batch(const sgi_op *op, sgi_event_id id, sgi_event_batch *batch)
{
    sgi_call_event made;
    if (!batch->count || !sgi_event_is_wanted(op->engine, id))
        return;
    sgi_call_event_begin(&made, op, id);
    made.event.time_ms -= sgi_now(&op->engine->env) - batch->last_ms;
    made.event.count = (int64_t)batch->count;
    made.event.duration_us = (batch->last_ms - batch->began_ms) * 1000 + batch->first_us;
    batch->count = 0;
    sgi_event_report(op->engine, id, &made.event);
}

/* Adds a part that ends now. Reports the parts before it if they are old enough. */
static void add_to_batch(const sgi_op *op, sgi_event_id id, sgi_event_batch *batch,
                         uint64_t count, int64_t took_us)
{
    int64_t now = sgi_now(&op->engine->env);
    if (now - batch->began_ms >= BATCH_MS)
        report_batch(op, id, batch);
    if (!batch->count) {
        batch->began_ms = now;
        batch->first_us = took_us;
    }
    batch->count += count;
    batch->last_ms = now;
}

/* Returns NULL when out of memory. */
static sgi_call_batches *batches_of(segue_call *call)
{
    if (call->batches)
        return call->batches;
    call->batches = sgi_zalloc(sgi_engine_mem(call->op->engine), sizeof *call->batches);
    if (call->batches && call->earlier)
        call->batches->last_segment = call->earlier->segment;
    return call->batches;
}

void sgi_call_event_note_segments(segue_call *call)
{
    const sgi_op *op = call->op;
    uint64_t last = op->head.next_seg - 1;
    if (!sgi_event_is_wanted(op->engine, SGI_EVENT_segments_sent))
        return;
    sgi_call_batches *batches = batches_of(call);
    if (!batches || last <= batches->last_segment)
        return;
    add_to_batch(op, SGI_EVENT_segments_sent, &batches->segments,
                 last - batches->last_segment, 0);
    batches->last_segment = last;
}

void sgi_call_event_report_end(const segue_call *call, int64_t took_ms)
{
    sgi_call_event made;
    const sgi_op *op = call->op;
    if (call->batches) {
        report_batch(op, SGI_EVENT_segments_sent, &call->batches->segments);
        report_batch(op, SGI_EVENT_entries_stored, &call->batches->stored);
    }
    if (!sgi_event_is_wanted(op->engine, SGI_EVENT_call_ended))
        return;
    sgi_call_event_begin(&made, op, SGI_EVENT_call_ended);
    made.event.status = ends[op->head.final];
    made.event.duration_us = took_ms > 0 ? took_ms * 1000 : 0;
    sgi_event_report(op->engine, SGI_EVENT_call_ended, &made.event);
}

void sgi_call_event_report_question(const sgi_op *op, const char *question,
                                    const char *status)
{
    sgi_call_event made;
    sgi_event_id id = status ? SGI_EVENT_question_answered : SGI_EVENT_question_asked;
    if (!sgi_event_is_wanted(op->engine, id))
        return;
    sgi_call_event_begin(&made, op, id);
    made.event.question = question;
    made.event.status = status;
    sgi_event_report(op->engine, id, &made.event);
}

void sgi_call_event_note_stored(sgi_op *op, uint64_t entries, uint64_t took_us)
{
    segue_call *call = op->served->call;
    sgi_call_batches *batches = call ? batches_of(call) : NULL;
    sgi_event_batch alone = {.count = 0};
    sgi_event_batch *batch = batches ? &batches->stored : &alone;
    add_to_batch(op, SGI_EVENT_entries_stored, batch, entries, (int64_t)took_us);
    if (!batches)
        report_batch(op, SGI_EVENT_entries_stored, batch);
}

void sgi_session_event_report(const segue_server *server, sgi_event_id id)
{
    if (!sgi_event_is_wanted(server->engine, id))
        return;
    segue_event event = sgi_event_new(server->engine, id);
    event.server = server->options.name;
    sgi_event_report(server->engine, id, &event);
}

void sgi_call_event_report_resumed(const sgi_op *op)
{
    sgi_op_server(op)->counts.resumes++;
    sgi_call_event_report(op, SGI_EVENT_client_resumed);
}
