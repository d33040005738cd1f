/* Handles the messages of a server of 2025-11-25 about a task: segments in the order of
 * their numbers, pushed or pulled; the other members of the messages; and the end of the
 * task. The client merges segments as the server does (fold.c). If a segment is missing
 * at the end, the whole result is fetched. */
#include "engine/dialect/tasks_2025/follow_2025.h"

/* ---- the end of the task ---- */

/* True when the call has succeeded, and the error says why the rest of the result cannot
 * be had. */
static bool is_of_a_lost_part(const segue_request *request)
{
    const sgi_task_2025 *task = sgi_2025_of(request);
    return task && task->some &&
           (sgi_follow_state(request) == SEGUE_TASK_COMPLETED ||
            (task->tracker.complete && !task->is_error));
}

/* Ends the request with the server's error. The application also gets the segments that
 * have arrived. */
void sgi_2025_fail(segue_request *request, sgi_json error)
{
    const sgi_task_2025 *task = sgi_2025_of(request);
    if (sgi_follow_state(request) == SEGUE_TASK_CANCELLED)
        sgi_follow_end_as_cancelled(request);
    else if (task && task->unknown)
        sgi_request_fail_error(request, SEGUE_E_TASK_LOST,
                               sgi_task_unknown_error_text(request), error);
    else if (is_of_a_lost_part(request))
        sgi_request_fail_error(request, SEGUE_E_INCOMPLETE, NULL, error);
    else
        sgi_request_finish_error(request, NULL, error);
}

/* Delivers the blocks of a whole result that did not arrive as segments. */
static void deliver_whole(segue_request *request, const sgi_2025_response *reply)
{
    const sgi_task_2025 *task = sgi_2025_of(request);
    sgi_result result = sgi_result_of(reply->result, NULL);
    sgi_json block;
    sgi_deliver_void_segments_of_result(request, result.meta);
    uint64_t number = request->numbering.voided;
    if (!task || !request->options.unordered) {
        sgi_deliver_remaining_blocks(request, &result);
        return;
    }
    if (sgi_json_kind_of(result.content) != SGI_JSON_ARRAY)
        return;
    for (size_t at = 0; sgi_json_next_item(result.content, &at, &block);)
        if (++number >= request->numbering.next) {
            request->numbering.next = number + 1;
            if (!sgi_tracker_has(&task->tracker, number))
                sgi_deliver_numbered_segment(request, number, number, block);
        }
}

static void ask_why(segue_request *request)
{
    sgi_2025_of(request)->why = SGI_WHY_LOOK;
    request->follow->look_due = true;
}

void sgi_2025_stop_asking_for_error(segue_request *request)
{
    sgi_2025_of(request)->why = SGI_WHY_KNOWN;
    request->follow->look_due = false;
}

/* True when the last response contains the error object. Servers other than this library
 * send only the text of the error. */
static bool is_told(const sgi_2025_response *reply)
{
    return reply->complete && reply->is_error &&
           sgi_json_kind_of(reply->error) == SGI_JSON_OBJECT;
}

/* True when the last response reports the failure of a request other than tools/call. The
 * result of such a request cannot have isError, so the client asks the server for the
 * error. */
static bool is_failure(const segue_request *request, const sgi_2025_response *reply)
{
    return sgi_2025_of(request) && !request->is_call && reply->complete &&
           reply->is_error;
}

void sgi_2025_finish_with_result(segue_request *request, const sgi_2025_response *reply)
{
    sgi_buf cleaned;
    if (is_told(reply)) {
        sgi_2025_fail(request, reply->error);
        return;
    }
    if (is_failure(request, reply)) {
        sgi_2025_of(request)->tracker.complete = true;
        ask_why(request);
        return;
    }
    if (sgi_follow_state(request) == SEGUE_TASK_CANCELLED) {
        /* a cancelled task has no further result, so the request ends as cancelled */
        sgi_follow_end_as_cancelled(request);
        return;
    }
    sgi_buf_init(&cleaned, sgi_engine_mem(request->engine));
    deliver_whole(request, reply);
    if (!sgi_2025_response_write_stripped(reply, &cleaned))
        sgi_request_finish(request, reply->result);
    else if (!cleaned.failed)
        sgi_request_finish(request, sgi_buf_str(&cleaned));
    else
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the result");
    sgi_buf_free(&cleaned);
}

/* Ends the request with the merged segments (R-1905-34). Called when all segments have
 * arrived. If the task ended with an error that the segments do not contain, the client
 * first asks for the error. */
void sgi_2025_finish_with_segments(segue_request *request)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_buf merged;
    if (request->follow->state == SEGUE_TASK_CANCELLED) {
        sgi_follow_end_as_cancelled(request);
        return;
    }
    if (task->why == SGI_WHY_LOOK && sgi_task_state_is_terminal(request->follow->state)) {
        task->why = SGI_WHY_FETCH;
        request->follow->look_due = false;
        task->fetch_due = true;
    }
    if (task->why != SGI_WHY_KNOWN)
        return;
    if (request->follow->partial || sgi_fold_failed(&request->fold)) {
        /* the merged result is incomplete, so the client fetches the server's result */
        task->fetch_due = true;
        return;
    }
    sgi_buf_init(&merged, sgi_engine_mem(request->engine));
    sgi_jw w = sgi_jw_to(&merged);
    sgi_jw_open(&w, '{');
    sgi_fold_write(&request->fold, &w, task->is_error, (sgi_str){0});
    sgi_jw_close(&w, '}');
    if (merged.failed)
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the result");
    else
        sgi_request_finish(request, sgi_buf_str(&merged));
    sgi_buf_free(&merged);
}

/* ---- segments ---- */

/* Merges and delivers the next segment. All earlier segments have arrived. */
static void hand_on(segue_request *request, uint64_t number, sgi_str block)
{
    if (number > sgi_2025_of(request)->voided && !request->options.discard)
        sgi_fold_add_segment(&request->fold, block);
    request->numbering.next = number + 1;
    if (!request->options.unordered)
        sgi_deliver_segment(request, number, 0, block);
}

static void hand_on_held(segue_request *request)
{
    sgi_tracker *tracker = &sgi_2025_of(request)->tracker;
    sgi_held_segment *held;
    while ((held = sgi_tracker_pop(tracker))) {
        hand_on(request, held->number, (sgi_str){held->bytes, held->len});
        sgi_tracker_release(tracker, held);
    }
}

static void take_block(segue_request *request, uint64_t number, sgi_str block)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_tracked tracked = sgi_tracker_add(&task->tracker, number, block);
    bool is_new = tracked == SGI_TRACKED_NEXT || tracked == SGI_TRACKED_HELD;
    task->some |= is_new;
    task->got_segments |= is_new;
    if (tracked == SGI_TRACKED_NEXT) {
        hand_on(request, number, block);
        hand_on_held(request);
    } else if (tracked == SGI_TRACKED_OTHER) {
        request->engine->warnings++;
        sgi_engine_log(
            request->engine, SEGUE_LOG_WARNING,
            "the server sent segment %llu again with other content: the first one counts",
            (unsigned long long)number);
    } else if (tracked == SGI_TRACKED_NOMEM) {
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for a segment");
    }
    if (!is_new)
        /* the segment is a repetition or cannot be stored; a segment that was not stored
         * is requested again */
        request->delivery.dropped++;
    else if (request->options.unordered)
        sgi_deliver_numbered_segment(request, number, sgi_tracker_prefix(&task->tracker),
                                     block);
}

static void take_segment(segue_request *request, sgi_json segment)
{
    sgi_buf block;
    sgi_buf_init(&block, sgi_engine_mem(request->engine));
    sgi_2025_segment_write_block(segment, &block);
    if (block.failed)
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for a segment");
    else
        take_block(request, sgi_2025_segment_number(segment), sgi_buf_str(&block));
    sgi_buf_free(&block);
}

/* Drops void segments from the merged result. The handler has replaced these segments. */
static void take_void(segue_request *request, uint64_t voided)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    if (voided <= task->voided)
        return;
    task->voided = voided;
    sgi_deliver_void_segments(request, voided);
    if (sgi_tracker_prefix(&task->tracker) <= voided)
        sgi_fold_drop_replaced(&request->fold, request->fold.segments);
    /* segments after the void ones are already merged, so the client fetches the whole
     * result */
    else
        request->follow->partial = true;
}

static void take_end(segue_request *request, const sgi_2025_response *reply, bool pulled)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_buf fields;
    sgi_json first;
    size_t at = 0;
    bool is_empty = !sgi_json_next_item(reply->segments, &at, &first);
    sgi_buf_init(&fields, sgi_engine_mem(request->engine));
    sgi_2025_response_write_fields(reply, &fields);
    if (fields.failed)
        request->fold.fields.failed = true;
    else if (fields.len > 2)
        sgi_fold_add_fields(&request->fold, sgi_buf_str(&fields));
    sgi_buf_free(&fields);
    task->tracker.complete = true;
    task->is_error |= reply->is_error;
    /* A push whose last segment is the error is complete (R-1905-44). Without such a
     * segment, the task was cancelled or has failed as a whole. For requests other than
     * tools/call, isError always means a failure, because the results of these requests
     * have no isError. */
    bool is_whole = !pulled && !is_empty && request->is_call && !is_told(reply);
    if (reply->is_error && !is_whole && task->why == SGI_WHY_KNOWN)
        ask_why(request);
}

static void warn(segue_request *request, const char *text)
{
    request->engine->warnings++;
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING, "%s: the client ignores them",
                   text);
}

void sgi_2025_note_state(segue_request *request, sgi_json task)
{
    sgi_task_note_poll_interval(request, task);
    if (!sgi_task_description_is_stale(request, task))
        sgi_task_note_status(request, task);
}

/* True when every earlier segment has arrived and `last`, the last segment of the
 * response, is the text of the error. */
static bool is_told_behind_all(const segue_request *request,
                               const sgi_2025_response *reply, sgi_json last)
{
    const sgi_tracker *tracker = &sgi_2025_of(request)->tracker;
    uint64_t number = last.n ? sgi_2025_segment_number(last) : 0;
    return is_told(reply) && !sgi_tracker_has_hole(tracker) &&
           number <= sgi_tracker_prefix(tracker) + 1;
}

bool sgi_2025_take_response(segue_request *request, const sgi_2025_response *reply,
                            bool pulled)
{
    sgi_json id = sgi_json_get(reply->named, "taskId");
    sgi_json segment = {0};
    size_t at = 0;
    bool is_ours = !id.n || sgi_json_string_is(id, sgi_str_of(request->task_id));
    bool is_good = reply->kind == SGI_2025_RESPONSE_TASK ||
                   (reply->kind == SGI_2025_RESPONSE_SEGMENTS &&
                    sgi_2025_response_has_good_segments(reply));
    if (!is_ours || !is_good) {
        warn(request, is_ours ? "the server sent segments in a malformed list"
                              : "the server sent segments of another task");
        return false;
    }
    if (reply->task.n)
        sgi_2025_note_state(request, reply->task);
    if (reply->kind == SGI_2025_RESPONSE_TASK)
        return true;
    take_void(request, reply->voided);
    bool more = sgi_json_next_item(reply->segments, &at, &segment);
    while (more && sgi_2025_is_live(request)) {
        sgi_json here = segment;
        more = sgi_json_next_item(reply->segments, &at, &segment);
        if (more || !is_told_behind_all(request, reply, here))
            take_segment(request, here);
    }
    if (sgi_2025_is_live(request) && is_told_behind_all(request, reply, segment))
        sgi_2025_fail(request, reply->error);
    else if (sgi_2025_is_live(request) && reply->complete)
        take_end(request, reply, pulled);
    return true;
}
