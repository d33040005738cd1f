/* What a server of 2025-11-25 says of a task, taken: segments in the order of their
 * numbers, whichever way they come, members beside them, and the end. The merge is that
 * of the server (fold.c); where something of it cannot be had here, the whole result is
 * fetched instead. */
#include "engine/asking/follow_2025.h"

/* ---- the end ---- */

/* The server's error, or what is left of the task. */
void sgi_2025_fail(segue_request *request, sgi_json error)
{
    const sgi_task_2025 *task = request->task_2025;
    if (request->state == SEGUE_TASK_CANCELLED)
        sgi_follow_cancelled(request);
    else if (task && task->some)
        sgi_request_fail_error(request, SEGUE_E_INCOMPLETE, NULL, error);
    else
        sgi_request_finish_error(request, NULL, error);
}

/* Blocks of a whole result that have not come as segments. */
static void deliver_whole(segue_request *request, const sgi_response *reply)
{
    const sgi_task_2025 *task = request->task_2025;
    sgi_json content = sgi_json_get(reply->result, "content");
    sgi_json block;
    sgi_deliver_told_void(request, reply->result);
    uint64_t number = request->void_segments;
    if (!task || !request->options.unordered) {
        sgi_deliver_rest(request, reply->result);
        return;
    }
    if (sgi_json_kind_of(content) != SGI_JSON_ARRAY)
        return;
    for (size_t at = 0; sgi_json_next_item(content, &at, &block);)
        if (++number >= request->next_segment) {
            request->next_segment = number + 1;
            if (!sgi_tracker_has(&task->tracker, number))
                sgi_deliver_numbered(request, number, number, block);
        }
}

static void ask_why(segue_request *request)
{
    request->task_2025->why = SGI_WHY_LOOK;
    request->look_due = true;
}

void sgi_2025_drop_why(segue_request *request)
{
    request->task_2025->why = SGI_WHY_KNOWN;
    request->look_due = false;
}

/* The last answer has the error itself, beside its text. */
static bool is_told(const sgi_response *reply)
{
    return reply->complete && reply->is_error &&
           sgi_json_kind_of(reply->error) == SGI_JSON_OBJECT;
}

/* What is no tool has no results that are errors: it is asked why it failed. */
static bool is_failure(const segue_request *request, const sgi_response *reply)
{
    return request->task_2025 && !request->is_call && reply->complete && reply->is_error;
}

void sgi_2025_finish(segue_request *request, const sgi_response *reply)
{
    sgi_buf cleaned;
    if (is_told(reply)) {
        sgi_2025_fail(request, reply->error);
        return;
    }
    if (is_failure(request, reply)) {
        request->task_2025->tracker.complete = true;
        ask_why(request);
        return;
    }
    if (request->state == SEGUE_TASK_CANCELLED) {
        sgi_follow_cancelled(request); /* its result only says so */
        return;
    }
    sgi_buf_init(&cleaned, sgi_engine_mem(request->engine));
    deliver_whole(request, reply);
    if (!sgi_response_clean(reply, &cleaned))
        sgi_request_finish(request, reply->result);
    else if (!cleaned.failed)
        sgi_request_finish(request, sgi_buf_str(&cleaned));
    else
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the result");
    sgi_buf_free(&cleaned);
}

/* All segments are there: merged they are the result (R-1905-34), unless it ended with an
 * error of which they say nothing. */
void sgi_2025_conclude(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    sgi_buf merged;
    if (request->state == SEGUE_TASK_CANCELLED) {
        sgi_follow_cancelled(request);
        return;
    }
    if (task->why == SGI_WHY_LOOK && sgi_task_state_is_terminal(request->state)) {
        task->why = SGI_WHY_FETCH;
        request->look_due = false;
        task->fetch_due = true;
    }
    if (task->why != SGI_WHY_KNOWN)
        return;
    if (request->partial || sgi_fold_failed(&request->fold)) {
        task->fetch_due = true; /* the merge lacks something, the server's does not */
        return;
    }
    sgi_buf_init(&merged, sgi_engine_mem(request->engine));
    sgi_jw w = sgi_jw_on(&merged);
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

/* One that nothing is missing before. */
static void hand_on(segue_request *request, uint64_t number, sgi_str block)
{
    if (number > request->task_2025->voided && !request->options.discard)
        sgi_fold_segment(&request->fold, block);
    request->next_segment = number + 1;
    if (!request->options.unordered)
        sgi_deliver_segment(request, number, 0, block);
}

static void hand_on_held(segue_request *request)
{
    sgi_tracker *tracker = &request->task_2025->tracker;
    sgi_held *held;
    while ((held = sgi_tracker_pop(tracker))) {
        hand_on(request, held->number, (sgi_str){held->bytes, held->len});
        sgi_tracker_release(tracker, held);
    }
}

static void take_block(segue_request *request, uint64_t number, sgi_str block)
{
    sgi_task_2025 *task = request->task_2025;
    sgi_tracked tracked = sgi_tracker_take(&task->tracker, number, block);
    bool is_new = tracked == SGI_TRACKED_NEXT || tracked == SGI_TRACKED_HELD;
    task->some |= is_new;
    task->heard |= is_new;
    if (tracked == SGI_TRACKED_NEXT) {
        hand_on(request, number, block);
        hand_on_held(request);
    } else if (tracked == SGI_TRACKED_OTHER) {
        request->engine->warnings++;
        sgi_engine_log(request->engine, SEGUE_LOG_WARNING,
                       "segment %llu came again with other bytes",
                       (unsigned long long)number);
    } else if (tracked == SGI_TRACKED_NOMEM) {
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for a segment");
    }
    if (!is_new)
        request->dropped++; /* what found no room is asked for again */
    else if (request->options.unordered)
        sgi_deliver_numbered(request, number, sgi_tracker_prefix(&task->tracker), block);
}

static void take_segment(segue_request *request, sgi_json segment)
{
    sgi_buf block;
    sgi_buf_init(&block, sgi_engine_mem(request->engine));
    sgi_response_block(segment, &block);
    if (block.failed)
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for a segment");
    else
        take_block(request, sgi_response_number(segment), sgi_buf_str(&block));
    sgi_buf_free(&block);
}

/* What the handler replaced does not count for the result. */
static void take_void(segue_request *request, uint64_t voided)
{
    sgi_task_2025 *task = request->task_2025;
    if (voided <= task->voided)
        return;
    task->voided = voided;
    sgi_deliver_void(request, voided);
    if (sgi_tracker_prefix(&task->tracker) <= voided)
        sgi_fold_replace(&request->fold, request->fold.segments);
    else
        request->partial = true; /* later ones were merged with them */
}

static void take_end(segue_request *request, const sgi_response *reply, bool pulled)
{
    sgi_task_2025 *task = request->task_2025;
    sgi_buf fields;
    sgi_json first;
    size_t at = 0;
    bool is_empty = !sgi_json_next_item(reply->segments, &at, &first);
    sgi_buf_init(&fields, sgi_engine_mem(request->engine));
    sgi_response_fields(reply, &fields);
    if (fields.failed)
        request->fold.fields.failed = true;
    else if (fields.len > 2)
        sgi_fold_fields(&request->fold, sgi_buf_str(&fields));
    sgi_buf_free(&fields);
    task->tracker.complete = true;
    task->is_error |= reply->is_error;
    /* A push whose last segment is the error says it all (R-1905-44). Without one the
     * task may have been cancelled, or have failed as a whole; what is no tool has no
     * results that are errors, so there it has. */
    bool is_whole = !pulled && !is_empty && request->is_call && !is_told(reply);
    if (reply->is_error && !is_whole && task->why == SGI_WHY_KNOWN)
        ask_why(request);
}

static void warn(segue_request *request, const char *text)
{
    request->engine->warnings++;
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING, "the server sent: %s", text);
}

void sgi_2025_note(segue_request *request, sgi_json task)
{
    sgi_task_note_poll(request, task);
    if (!sgi_task_is_stale(request, task))
        sgi_task_note_status(request, task);
}

/* Nothing is missing before the error, whose text is the last segment, if it has one. */
static bool is_told_behind_all(const segue_request *request, const sgi_response *reply,
                               sgi_json last)
{
    const sgi_tracker *tracker = &request->task_2025->tracker;
    uint64_t number = last.n ? sgi_response_number(last) : 0;
    return is_told(reply) && !sgi_tracker_has_hole(tracker) &&
           number <= sgi_tracker_prefix(tracker) + 1;
}

bool sgi_2025_take(segue_request *request, const sgi_response *reply, bool pulled)
{
    sgi_json id = sgi_json_get(reply->named, "taskId");
    sgi_json segment = {0};
    size_t at = 0;
    bool is_ours = !id.n || sgi_json_string_is(id, sgi_str_of(request->task_id));
    bool is_good =
        reply->kind == SGI_RESPONSE_TASK ||
        (reply->kind == SGI_RESPONSE_SEGMENTS && sgi_response_has_good_segments(reply));
    if (!is_ours || !is_good) {
        warn(request, is_ours ? "a malformed list of segments"
                              : "segments of another task than was asked for");
        return false;
    }
    if (reply->task.n)
        sgi_2025_note(request, reply->task);
    if (reply->kind == SGI_RESPONSE_TASK)
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
