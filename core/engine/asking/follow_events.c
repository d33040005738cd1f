/* The events of a task's stream (E), merged as the server merges its segments, each once
 * (R-E-7). Their numbers are those of the operation where the server tells them, so that
 * what was shown as a piece before the call became a task is not shown again. */
#include "engine/asking/request.h"

static void lose_count(segue_request *request)
{
    if (request->count != SGI_COUNT_WRONG)
        request->count = SGI_COUNT_LOST;
}

/* A malformed event: what is merged here lacks it, the server's own result does not. */
static void lack_something(segue_request *request)
{
    request->engine->warnings++;
    request->partial = true;
    sgi_engine_log(
        request->engine, SEGUE_LOG_WARNING,
        "event %lld of task %.64s has no usable payload: the stream lacks what "
        "it was to bring, and the result is fetched at the end",
        (long long)request->next_event - 1, request->task_id);
}

void sgi_follow_lack(segue_request *request, uint64_t next_event)
{
    request->engine->warnings++;
    request->partial = true;
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING,
                   "the stream of task %.64s lacks the events %llu to %llu: what they "
                   "were to bring is in the result, which is fetched at the end",
                   request->task_id, (unsigned long long)request->next_event,
                   (unsigned long long)next_event - 1);
    request->next_event = next_event;
    lose_count(request);
}

/* An event behind a hole: true when it is not taken. The stream is asked for again once;
 * what stays missing then does not come. On a byte stream the rest of the stream that was
 * left may still come: it goes on behind what came before. */
static bool waits_for_hole(segue_request *request, uint64_t seq)
{
    bool is_left = !request->session->conn->exchanging && seq > request->gap_end;
    if (request->gap == request->next_event) {
        if (is_left)
            request->gap_end = seq;
        else
            sgi_follow_lack(request, seq);
        return is_left;
    }
    request->engine->warnings++;
    request->gap = request->next_event;
    request->gap_end = seq;
    sgi_follow_reopen(request);
    return true;
}

/* Of the first block of an event. Where the server does not tell it they are counted. */
static uint64_t next_number(segue_request *request, sgi_json segment)
{
    int64_t told;
    if (sgi_json_int(segment, &told) && told > 0 && told < SGI_COUNT_MAX) {
        if (request->count == SGI_COUNT_LOST)
            request->count = SGI_COUNT_ON;
        return (uint64_t)told;
    }
    if (request->count == SGI_COUNT_LOST)
        request->count = SGI_COUNT_WRONG;
    return request->count == SGI_COUNT_ALL ? request->streamed + 1
                                           : request->next_segment;
}

static void lack_segments(segue_request *request)
{
    lack_something(request);
    lose_count(request);
}

/* Where it stands in the list, -1: behind the others. That can be told for as long as
 * nothing is missing. False: it has no place there. */
static bool keep_block(segue_request *request, int64_t place, sgi_json block)
{
    if (request->options.discard)
        return true;
    if (place >= 0 && !request->partial)
        return sgi_fold_placed(&request->fold, (uint64_t)place, block);
    sgi_fold_segment(&request->fold, block);
    return true;
}

static void show_block(segue_request *request, uint64_t number, uint64_t event,
                       int64_t place, sgi_json block)
{
    request->next_segment = number + 1;
    if (place >= 0)
        sgi_deliver_piece(request, number, event, (uint64_t)place, block);
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
         (!sgi_json_int(found[2], &place) || place < 0 || place >= SGI_COUNT_MAX))) {
        lack_segments(request);
        return;
    }
    uint64_t number = next_number(request, found[1]);
    for (size_t at = 0; sgi_json_next_item(found[0], &at, &block); number++) {
        if (!keep_block(request, place, block)) {
            lack_segments(request);
            return;
        }
        request->streamed = number;
        if (number >= request->next_segment) /* else it was shown as a piece */
            show_block(request, number, seq + 1, place, block);
        place += place >= 0;
    }
}

static void take_event(segue_request *request, uint64_t seq, const sgi_task_event *event)
{
    sgi_json type = event->type;
    sgi_json payload = event->payload;
    if (seq == 0) {
        request->count = SGI_COUNT_ALL;
        request->streamed = 0;
    }
    if (sgi_json_string_is(type, SGI_STR("dev.segue.content.partial"))) {
        take_segments(request, seq, event);
    } else if (sgi_json_string_is(type, SGI_STR("dev.segue.fields"))) {
        if (sgi_json_kind_of(payload) == SGI_JSON_OBJECT)
            sgi_fold_fields(&request->fold, payload);
        else
            lack_something(request);
    } else if (sgi_json_string_is(type, SGI_STR("dev.segue.replace"))) {
        sgi_fold_replace(&request->fold, request->fold.segments);
        sgi_deliver_void(request, request->count == SGI_COUNT_ALL
                                      ? request->streamed
                                      : request->next_segment - 1);
        if (request->count != SGI_COUNT_ALL)
            request->count = SGI_COUNT_ON; /* it begins anew behind what was shown */
    } else if (sgi_json_string_is(type, SGI_STR("dev.segue.status"))) {
        sgi_task_note_status(request, payload);
        if (request->state == SEGUE_TASK_INPUT_REQUIRED)
            sgi_follow_look(request);
    }
}

void sgi_follow_event(segue_request *request, const sgi_task_event *event)
{
    int64_t seq;
    size_t limit = (size_t)request->session->options.max_result_bytes;
    if (!sgi_json_int(event->seq, &seq) || seq < 0 || seq >= SGI_COUNT_MAX) {
        request->engine->warnings++;
        return;
    }
    if ((uint64_t)seq < request->next_event) {
        request->dropped++; /* a repeat (R-E-7) */
        return;
    }
    /* Without a cursor the stream begins with the earliest event that is retained. Where
     * one was left it may also be of that, sent before the server knew: an event names
     * its task, not its stream. What is passed over then is in the result, too. */
    if ((uint64_t)seq > request->next_event) {
        if (request->next_event && waits_for_hole(request, (uint64_t)seq))
            return;
        if (!request->next_event && request->session->left_stream) {
            request->unsure = true;
            return;
        }
        lose_count(request);
        request->partial = true;
    }
    request->unsure = false;
    sgi_tries_good(&request->stream_tries);
    request->next_event = (uint64_t)seq + 1;
    take_event(request, (uint64_t)seq, event);
    if (request->phase != SGI_PHASE_FOLLOW)
        return;
    if (sgi_fold_size(&request->fold) > limit) {
        sgi_follow_abandon(request);
        sgi_request_fail_size(request);
    } else if (sgi_deliver_is_full(request)) {
        sgi_deliver_hold(request);
    }
}
