/* Merges the events of a task's event stream (E, SEP-2694) in the same way as the server.
 * Each event is merged once (R-E-7). If the server numbers the segments, the client uses
 * these numbers. A segment that was delivered before the call became a task, as a piece,
 * is then not delivered again. */
#include "engine/dialect/task_events/stream.h"

static void lose_count(segue_request *request)
{
    if (sgi_task_stream_of(request)->numbering != SGI_NUMBERS_WRONG)
        sgi_task_stream_of(request)->numbering = SGI_NUMBERS_LOST;
}

/* Handles a malformed event, which the client ignores. The merged result lacks this
 * event, so the client fetches the whole result at the end. */
static void lack_something(segue_request *request)
{
    request->engine->warnings++;
    request->follow->partial = true;
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING,
                   "event %lld of task %.12s is invalid and ignored: what it "
                   "contained comes with the result at the end",
                   (long long)sgi_task_stream_of(request)->next - 1, request->task_id);
}

void sgi_task_stream_skip_lost_events(segue_request *request, uint64_t next_event)
{
    request->engine->warnings++;
    request->follow->partial = true;
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING,
                   "the stream of task %.12s lacks the events %llu to %llu: what "
                   "they contained comes with the result at the end",
                   request->task_id,
                   (unsigned long long)sgi_task_stream_of(request)->next,
                   (unsigned long long)next_event - 1);
    sgi_task_stream_of(request)->next = next_event;
    lose_count(request);
    sgi_task_stream_of(request)->asks = true;
    if (!sgi_tries_is_waiting(&request->tries))
        /* the task is polled unless the next events say that it works */
        sgi_task_poll_later(request);
}

/* Handles an event that came although earlier events are missing. Returns true when the
 * caller must not use the event: it may belong to an earlier, dropped stream of the same
 * task, or the client opens the stream again, once per gap. If the events are still
 * missing after that, they will not come, and the function skips them. On a byte stream,
 * late events of the dropped stream may still arrive; the caller must not use them. */
static bool waits_for_hole(segue_request *request, uint64_t seq)
{
    bool is_left =
        !request->session->conn->exchanging && seq > sgi_task_stream_of(request)->gap_end;
    if (sgi_task_stream_of(request)->gap == sgi_task_stream_of(request)->next) {
        if (is_left)
            sgi_task_stream_of(request)->gap_end = seq;
        else
            sgi_task_stream_skip_lost_events(request, seq);
        return is_left;
    }
    if (sgi_task_stream_is_stale_event(request, seq)) {
        sgi_task_stream_of(request)->unsure = true;
        return true;
    }
    request->engine->warnings++;
    sgi_task_stream_of(request)->gap = sgi_task_stream_of(request)->next;
    sgi_task_stream_of(request)->gap_end = seq;
    sgi_task_stream_reopen(request);
    return true;
}

/* Returns the number of the first block of an event. When the event has no number, the
 * client counts the blocks. */
static uint64_t next_number(segue_request *request, sgi_json segment)
{
    int64_t number;
    if (sgi_json_read_int(segment, &number) && number > 0 && number < SGI_COUNT_MAX) {
        if (sgi_task_stream_of(request)->numbering == SGI_NUMBERS_LOST)
            sgi_task_stream_of(request)->numbering = SGI_NUMBERS_GO_ON;
        return (uint64_t)number;
    }
    if (sgi_task_stream_of(request)->numbering == SGI_NUMBERS_LOST)
        sgi_task_stream_of(request)->numbering = SGI_NUMBERS_WRONG;
    return sgi_task_stream_of(request)->numbering == SGI_NUMBERS_COUNTED
               ? sgi_task_stream_of(request)->segment + 1
               : request->numbering.next;
}

static void lack_segments(segue_request *request)
{
    lack_something(request);
    lose_count(request);
}

/* Adds a block to the merged result. place: index of the block in the list; -1 = the
 * block is appended. The index is used only while no segment is missing. Returns false
 * when the index is invalid. */
static bool keep_block(segue_request *request, int64_t place, sgi_json block)
{
    if (request->options.discard)
        return true;
    if (place >= 0 && !request->follow->partial)
        return sgi_fold_add_indexed_segment(&request->fold, (uint64_t)place, block);
    sgi_fold_add_segment(&request->fold, block);
    return true;
}

static void show_block(segue_request *request, uint64_t number, uint64_t event,
                       int64_t place, sgi_json block)
{
    request->numbering.next = number + 1;
    if (place >= 0)
        sgi_deliver_indexed_segment(request, number, event, (uint64_t)place, block);
    else
        sgi_deliver_segment(request, number, event, block);
}

static void take_segments(segue_request *request, uint64_t seq,
                          const sgi_task_event *event)
{
    static const sgi_str names[] = {SGI_STR_INIT("content"), SGI_STR_INIT("segment"),
                                    SGI_STR_INIT("index")};
    sgi_json found[3], block;
    int64_t place = -1;
    sgi_json_pick_part(event->part, event->payload, names, 3, found);
    if (sgi_json_kind_of(found[0]) != SGI_JSON_ARRAY ||
        (found[2].n &&
         (!sgi_json_read_int(found[2], &place) || place < 0 || place >= SGI_COUNT_MAX))) {
        lack_segments(request);
        return;
    }
    uint64_t number = next_number(request, found[1]);
    for (size_t at = 0; sgi_json_next_item(found[0], &at, &block); number++) {
        if (!keep_block(request, place, block)) {
            lack_segments(request);
            return;
        }
        sgi_task_stream_of(request)->segment = number;
        /* a block with a lower number was already delivered, as a piece of the call */
        if (number >= request->numbering.next)
            show_block(request, number, seq + 1, place, block);
        place += place >= 0;
    }
}

/* Handles an event without a valid number, which the client ignores. The whole result is
 * fetched at the end. */
static void lack_place(segue_request *request)
{
    request->engine->warnings++;
    request->follow->partial = true;
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING,
                   "an event of task %.12s has no valid seq and is ignored: what "
                   "it contained comes with the result at the end",
                   request->task_id);
    lose_count(request);
}

static void take_status(segue_request *request, sgi_json payload)
{
    int32_t state = sgi_task_state_from_status(sgi_json_get(payload, "status"));
    sgi_task_note_status(request, payload);
    if (state != SEGUE_TASK_UNKNOWN)
        sgi_task_stream_of(request)->asks = state == SEGUE_TASK_INPUT_REQUIRED;
    if (request->follow->state == SEGUE_TASK_INPUT_REQUIRED)
        sgi_follow_send_tasks_get_now(request);
}

static void take_event(segue_request *request, uint64_t seq, const sgi_task_event *event)
{
    sgi_json type = event->type;
    sgi_json payload = event->payload;
    if (seq == 0) {
        sgi_task_stream_of(request)->numbering = SGI_NUMBERS_COUNTED;
        sgi_task_stream_of(request)->segment = 0;
    }
    if (sgi_json_string_is(type, SGI_STR("dev.segue.content.partial"))) {
        take_segments(request, seq, event);
    } else if (sgi_json_string_is(type, SGI_STR("dev.segue.fields"))) {
        if (sgi_json_kind_of(payload) == SGI_JSON_OBJECT)
            sgi_fold_add_fields(&request->fold, payload);
        else
            lack_something(request);
    } else if (sgi_json_string_is(type, SGI_STR("dev.segue.replace"))) {
        sgi_fold_drop_replaced(&request->fold, request->fold.segments);
        sgi_deliver_void_segments(request, sgi_task_stream_of(request)->numbering ==
                                                   SGI_NUMBERS_COUNTED
                                               ? sgi_task_stream_of(request)->segment
                                               : request->numbering.next - 1);
        if (sgi_task_stream_of(request)->numbering != SGI_NUMBERS_COUNTED)
            /* later segments get the numbers after the last delivered segment */
            sgi_task_stream_of(request)->numbering = SGI_NUMBERS_GO_ON;
    } else if (sgi_json_string_is(type, SGI_STR("dev.segue.status"))) {
        take_status(request, payload);
    }
}

void sgi_task_stream_take_event(segue_request *request, const sgi_task_event *event)
{
    int64_t seq;
    size_t limit = (size_t)request->session->options.max_result_bytes;
    if (!sgi_json_read_int(event->seq, &seq) || seq < 0 || seq >= SGI_COUNT_MAX) {
        lack_place(request);
        return;
    }
    if ((uint64_t)seq < sgi_task_stream_of(request)->next) {
        request->delivery.dropped++; /* this event was merged before (R-E-7) */
        return;
    }
    /* A stream without a cursor begins with the earliest event that the server has. An
     * event names its task but not its stream. So the event may belong to an earlier,
     * dropped stream of the same task. An event that is skipped here is also in the
     * result of the task. */
    if (!sgi_task_stream_of(request)->next &&
        sgi_task_stream_is_stale_event(request, (uint64_t)seq)) {
        sgi_task_stream_of(request)->unsure = true;
        return;
    }
    if ((uint64_t)seq > sgi_task_stream_of(request)->next) {
        if (sgi_task_stream_of(request)->next && waits_for_hole(request, (uint64_t)seq))
            return;
        lose_count(request);
        request->follow->partial = true;
    }
    sgi_task_stream_of(request)->unsure = false;
    sgi_tries_reset(&sgi_task_stream_of(request)->tries);
    sgi_task_stream_of(request)->next = (uint64_t)seq + 1;
    take_event(request, (uint64_t)seq, event);
    if (request->phase != SGI_PHASE_FOLLOW)
        return;
    if (sgi_fold_size(&request->fold) > limit) {
        sgi_follow_cancel_abandoned_task(request);
        sgi_request_fail_too_large(request);
    } else if (sgi_inbox_is_full(request)) {
        sgi_deliver_stop_input(request);
    }
}
