/* From the engine to the application. Records queue in `inbox` in the order they came;
 * delivery swaps it out and walks it without the lock, so what arrives meanwhile cannot
 * move what is being read. Segments wait for credit, and what stands behind them waits
 * with them: order is kept. When the inbox is full the request stops its stream at the
 * source. */
#include "engine/asking/request.h"

#include "engine/content.h"
#include "engine/dialect/response_modes.h"

#define INBOX_HIGH (1024 * 1024)
#define INBOX_LOW (256 * 1024)
#define KEEP_ROOM (64 * 1024)

static size_t waiting(const segue_request *request)
{
    return request->inbox.len + (request->taken.len - request->taken_at);
}

bool sgi_deliver_is_full(const segue_request *request)
{
    return waiting(request) >= INBOX_HIGH;
}

/* Nobody may wait for on_complete of a request that failed, or was given up, or whose
 * session has ended, only because it gave no credit for segments that stand before it. */
static bool may_ignore_credit(const segue_request *request)
{
    return request->phase == SGI_PHASE_DONE &&
           (request->status != SEGUE_OK || request->given_up ||
            request->session->stage == SGI_STAGE_CLOSED);
}

/* A plain call that has the exchange to itself cannot be stopped at its source and asked
 * for again: what brings its pieces is left unread, with credit or without. */
static bool holds_exchange(const segue_request *request)
{
    return request->phase == SGI_PHASE_WAIT && !request->task_2025 &&
           request->session->conn->exchanging;
}

void sgi_deliver_hold(segue_request *request)
{
    if (!request->credit && !holds_exchange(request)) {
        sgi_follow_pause(request);
    } else if (!request->behind) {
        request->behind = true;
        request->session->behind++;
    }
}

void sgi_deliver_queue(segue_request *request)
{
    if (!request->ready.queued)
        request->refs++;
    sgi_ready_add(request->engine, &request->ready);
}

bool sgi_deliver(segue_request *request, const sgi_inbox_head *head, sgi_str bytes)
{
    sgi_buf *inbox = &request->inbox;
    size_t mark = inbox->len;
    sgi_inbox_head with_len = *head;
    with_len.len = (uint32_t)bytes.n;
    if (bytes.n > UINT32_MAX / 2)
        return false;
    sgi_buf_add(inbox, &with_len, sizeof with_len);
    sgi_buf_add_str(inbox, bytes);
    sgi_buf_add_char(inbox, 0);
    while (inbox->len % sizeof(uint64_t) && !inbox->failed)
        sgi_buf_add_char(inbox, 0);
    if (inbox->failed) {
        sgi_buf_cut(inbox, mark);
        return false;
    }
    sgi_deliver_queue(request);
    return true;
}

/* A token goes on behind this one. */
static void note_delivered(segue_request *request, const sgi_inbox_head *head)
{
    request->delivered_segment = head->covered;
    request->delivered_void = head->voided;
    if (head->event)
        request->delivered_event = head->event;
}

static void add_segment(segue_request *request, const sgi_inbox_head *head,
                        sgi_json block)
{
    if (request->phase == SGI_PHASE_DONE)
        return; /* the one before found no room: no hole in what is delivered */
    sgi_inbox_head full = *head;
    /* void ones may come behind the word that they are */
    full.replaces = request->replace_due && head->number > request->void_segments;
    request->replace_due = request->replace_due && !full.replaces;
    full.voided = request->replace_due ? request->void_before : request->void_segments;
    if (!request->events.on_segment) {
        note_delivered(request, &full);
        return;
    }
    if (!sgi_deliver(request, &full, block))
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for a segment");
}

static uint64_t place_of(const segue_request *request, uint64_t number)
{
    uint64_t base = request->void_segments;
    if (number <= base)
        base = request->void_before;
    return number > base ? number - base - 1 : 0;
}

void sgi_deliver_void(segue_request *request, uint64_t number)
{
    if (number <= request->void_segments)
        return;
    if (!request->replace_due)
        request->void_before = request->void_segments;
    request->void_segments = number;
    request->replace_due = true;
}

/* Text of the result went on: its blocks are not the segments that were shown. If these
 * were not all, it is shown whole in their place. */
static void void_joined(segue_request *request, sgi_json segments)
{
    int64_t all;
    uint64_t shown = request->next_segment - 1;
    request->joined |= segments.n > 0;
    if (sgi_json_int(segments, &all) && all > 0 && shown < (uint64_t)all)
        sgi_deliver_void(request, shown);
}

void sgi_deliver_told_void(segue_request *request, sgi_json result)
{
    sgi_json meta = sgi_json_get(result, "_meta");
    int64_t voided;
    if (sgi_json_int(sgi_json_get(meta, "dev.segue/replace"), &voided) && voided > 0 &&
        voided < SGI_COUNT_MAX)
        sgi_deliver_void(request, (uint64_t)voided);
    void_joined(request, sgi_json_get(meta, SGI_SEGMENTS));
}

void sgi_deliver_segment(segue_request *request, uint64_t number, uint64_t event,
                         sgi_json block)
{
    sgi_deliver_piece(request, number, event, place_of(request, number), block);
}

void sgi_deliver_piece(segue_request *request, uint64_t number, uint64_t event,
                       uint64_t index, sgi_json block)
{
    sgi_inbox_head head = {.kind = SGI_RECORD_SEGMENT,
                           .number = number,
                           .event = event,
                           .covered = number,
                           .index = index};
    add_segment(request, &head, block);
}

void sgi_deliver_numbered(segue_request *request, uint64_t number, uint64_t covered,
                          sgi_json block)
{
    sgi_inbox_head head = {
        .kind = SGI_RECORD_SEGMENT, .number = number, .covered = covered};
    head.index = place_of(request, number);
    add_segment(request, &head, block);
}

void sgi_deliver_rest(segue_request *request, sgi_json result)
{
    sgi_json content = sgi_json_get(result, "content");
    sgi_json block;
    sgi_deliver_told_void(request, result);
    uint64_t number = request->void_segments;
    if (!request->events.on_segment || sgi_json_kind_of(content) != SGI_JSON_ARRAY)
        return;
    if (request->next_segment <= number)
        request->next_segment = number + 1;
    for (size_t at = 0; sgi_json_next_item(content, &at, &block);)
        if (++number >= request->next_segment)
            sgi_deliver_segment(request, request->next_segment++, 0, block);
}

/* ---- delivery: runs without the lock ---- */

static void give_status(segue_request *request, const sgi_inbox_head *head,
                        const char *bytes)
{
    const char *message = bytes + strlen(bytes) + 1;
    request->events.on_status(request->events.user, request, bytes,
                              head->number ? message : NULL);
}

static void give_input(segue_request *request, const sgi_inbox_head *head,
                       const char *bytes)
{
    const char *method = bytes + strlen(bytes) + 1;
    const char *params = method + strlen(method) + 1;
    if (request->events.on_input)
        request->events.on_input(request->events.user, request, bytes, method, params,
                                 head->len - (size_t)(params - bytes));
}

static void give_segment(segue_request *request, const sgi_inbox_head *head,
                         const char *bytes)
{
    segue_segment segment = {.number = head->number,
                             .index = head->index,
                             .replaces = head->replaces,
                             .block = {bytes, head->len}};
    sgi_buf_init(&segment.type, sgi_engine_mem(request->engine));
    sgi_buf_init(&segment.text, sgi_engine_mem(request->engine));
    request->events.on_segment(request->events.user, request, &segment);
    sgi_buf_free(&segment.type);
    sgi_buf_free(&segment.text);
}

static void give(segue_request *request, const sgi_inbox_head *head, const char *bytes)
{
    segue_request_events *events = &request->events;
    switch (head->kind) {
    case SGI_RECORD_TASK:
        if (events->on_task)
            events->on_task(events->user, request, bytes);
        break;
    case SGI_RECORD_SEGMENT:
        give_segment(request, head, bytes);
        break;
    case SGI_RECORD_PROGRESS:
        events->on_progress(events->user, request, head->progress, head->total,
                            head->len ? bytes : NULL);
        break;
    case SGI_RECORD_LOG:
        events->on_log(events->user, request, bytes, head->len);
        break;
    case SGI_RECORD_STATUS:
        give_status(request, head, bytes);
        break;
    case SGI_RECORD_RESUMABLE:
        events->on_resumable(events->user, request);
        break;
    default:
        give_input(request, head, bytes);
    }
}

/* Looks at the next record; false when there is none, or it is a segment without
 * credit. */
static bool next_record(segue_request *request, sgi_inbox_head *head)
{
    if (request->taken_at == request->taken.len) {
        sgi_buf empty = request->taken;
        sgi_buf_reset(&empty, KEEP_ROOM);
        request->taken = request->inbox;
        request->taken_at = 0;
        request->inbox = empty;
    }
    if (request->taken_at == request->taken.len)
        return false;
    memcpy(head, request->taken.p + request->taken_at, sizeof *head);
    return head->kind != SGI_RECORD_SEGMENT || request->credit != 0 ||
           may_ignore_credit(request);
}

static void before_user(segue_request *request, const sgi_inbox_head *head)
{
    size_t size = sizeof *head + head->len + 1;
    request->taken_at +=
        (size + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
    if (head->kind != SGI_RECORD_SEGMENT)
        return;
    if (request->credit > 0)
        request->credit--;
    note_delivered(request, head);
}

static void after_user(segue_request *request, const sgi_inbox_head *head)
{
    if (head->kind == SGI_RECORD_TASK && request->hook_pending) {
        request->hook_pending = false;
        if (sgi_session_is_open(request->session))
            sgi_follow_go(request);
    }
}

/* Callbacks have run: what was held up may go on. */
static void let_go(segue_request *request)
{
    segue_session *session = request->session;
    bool has_room = waiting(request) < INBOX_LOW;
    bool was_behind = request->behind;
    bool is_stopped = !request->credit && !holds_exchange(request);
    if (request->behind && (has_room || is_stopped || may_ignore_credit(request))) {
        request->behind = false;
        session->behind--;
        sgi_session_resume_input(session, request);
        if (!has_room && (request->streaming || request->task_2025) &&
            request->phase == SGI_PHASE_FOLLOW)
            sgi_follow_pause(request);
    }
    if (request->phase != SGI_PHASE_FOLLOW || !has_room)
        return;
    if (request->paused)
        sgi_follow_resume(request);
    else if (was_behind && request->task_2025 && sgi_session_is_open(session))
        sgi_follow_go(request); /* nothing was pulled while it was full */
}

/* Delivers while there is something and credit for it. */
static int32_t give_records(segue_request *request, int32_t budget)
{
    sgi_engine *engine = request->engine;
    sgi_inbox_head head;
    int32_t ran = 0;
    while (ran < budget && next_record(request, &head)) {
        const char *bytes = request->taken.p + request->taken_at + sizeof head;
        before_user(request, &head);
        sgi_user_begin(engine);
        give(request, &head, bytes);
        sgi_user_end(engine);
        after_user(request, &head);
        ran++;
    }
    let_go(request);
    return ran;
}

static void give_completion(segue_request *request)
{
    sgi_engine *engine = request->engine;
    segue_session *session = request->session;
    sgi_result_check(request);
    sgi_str json = sgi_buf_str(&request->result);
    request->completed = true;
    sgi_user_begin(engine);
    if (request->events.on_complete)
        request->events.on_complete(request->events.user, request, request->status,
                                    json.n ? json.p : NULL, json.n, request->error);
    if (request->events.free_user)
        request->events.free_user(request->events.user);
    sgi_user_end(engine);
    TAILQ_REMOVE(&session->requests, request, link);
    if (session->standing == request)
        session->standing = NULL;
    else
        session->request_count--;
    if (session->closed_due && TAILQ_EMPTY(&session->requests) &&
        !session->ready.queued) {
        sgi_session_ref(session);
        sgi_ready_add(engine, &session->ready);
    }
    if (request->ended)
        request->ended(request);
    sgi_request_unref(request);
}

int32_t sgi_deliver_run(sgi_ready *ready, int32_t budget)
{
    segue_request *request = SGI_OWNER(ready, segue_request, ready);
    int32_t ran = give_records(request, budget);
    bool empty = request->taken_at == request->taken.len && !request->inbox.len;
    if (ran < budget && empty && request->phase == SGI_PHASE_DONE &&
        !request->completed) {
        give_completion(request);
        ran++;
    } else if (ran >= budget) {
        sgi_deliver_queue(request);
    }
    sgi_request_unref(request);
    return ran;
}
