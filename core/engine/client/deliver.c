/* Delivers the records of a request to the application. Records wait in `inbox` in the
 * order in which they came. Delivery moves the whole inbox to `taken` and reads `taken`
 * without the lock. So a new record cannot move the bytes that are being read. The credit
 * is the number of segments that the application still takes. A segment without credit
 * waits, and all records behind this segment wait too, so that the order is kept. When
 * the inbox is full, the request stops the source of its segments. */
#include "engine/client/dialects.h"

#include "base/thresholds.h"
#include "engine/client/request_event.h"
#include "engine/response_modes.h"

#define INBOX_HIGH SGI_THRESHOLD(inbox_bytes)
#define INBOX_LOW (INBOX_HIGH / 4)
#define KEEP_ROOM (64 * 1024)

bool sgi_deliver_has_reader(const segue_request *request)
{
    return request->events.on_segment || request->events.on_segments;
}

size_t sgi_deliver_waiting_bytes(const segue_request *request)
{
    return request->delivery.inbox.len +
           (request->delivery.taken.len - request->delivery.taken_at);
}

bool sgi_inbox_is_full(const segue_request *request)
{
    return sgi_deliver_waiting_bytes(request) >= INBOX_HIGH;
}

/* True when the remaining segments are delivered without credit, so that on_complete can
 * run. The three cases: the request has failed, the application has cancelled the request
 * after its end, or the session is closed. */
static bool may_ignore_credit(const segue_request *request)
{
    return sgi_request_is_over(request) &&
           (request->status != SEGUE_OK || request->phase == SGI_PHASE_GIVEN_UP ||
            sgi_session_is_closed(request->session));
}

/* True for a plain call over HTTP. Such a call has its own exchange, which is not read
 * while the inbox is full, because the client cannot fetch pieces of the result a second
 * time. */
static bool holds_exchange(const segue_request *request)
{
    return request->phase == SGI_PHASE_WAIT && request->session->conn->exchanging;
}

void sgi_deliver_stop_input(segue_request *request)
{
    if (!request->delivery.credit && !holds_exchange(request)) {
        if (request->follower)
            request->follower->pause(request);
    } else if (!request->delivery.behind) {
        request->delivery.behind = true;
        request->session->behind++;
    }
}

bool sgi_inbox_add_record(segue_request *request, const sgi_inbox_record_head *head,
                          sgi_str bytes)
{
    sgi_buf *inbox = &request->delivery.inbox;
    size_t mark = inbox->len;
    sgi_inbox_record_head with_len = *head;
    with_len.len = (uint32_t)bytes.n;
    if (bytes.n > UINT32_MAX / 2)
        return false;
    sgi_buf_add(inbox, &with_len, sizeof with_len);
    sgi_buf_add_str(inbox, bytes);
    sgi_buf_add_char(inbox, 0);
    while (inbox->len % sizeof(uint64_t) && !inbox->failed)
        sgi_buf_add_char(inbox, 0);
    if (inbox->failed) {
        sgi_buf_truncate(inbox, mark);
        return false;
    }
    sgi_request_queue_callbacks(request);
    return true;
}

/* Notes the segment that is being delivered, so that a resume token that is made from now
 * on continues after this segment. */
static void note_delivered(segue_request *request, const sgi_inbox_record_head *head)
{
    request->delivery.segment = head->covered;
    request->delivery.voided = head->voided;
    if (head->event)
        request->delivery.event = head->event;
}

static void add_segment(segue_request *request, const sgi_inbox_record_head *head,
                        sgi_json block)
{
    if (sgi_request_is_over(request))
        /* memory ran out for an earlier segment, so all later segments are dropped: the
         * application must not get segments with a gap between them */
        return;
    sgi_inbox_record_head full = *head;
    /* The message that makes segments void may arrive before the last of the void
     * segments. Only a segment with a number above `voided` replaces the void
     * segments. */
    full.replaces =
        request->numbering.replace_due && head->number > request->numbering.voided;
    request->numbering.replace_due = request->numbering.replace_due && !full.replaces;
    full.voided = request->numbering.replace_due ? request->numbering.void_before
                                                 : request->numbering.voided;
    if (!sgi_deliver_has_reader(request)) {
        note_delivered(request, &full);
        return;
    }
    if (!sgi_inbox_add_record(request, &full, block))
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for a segment");
}

static uint64_t place_of(const segue_request *request, uint64_t number)
{
    uint64_t base = request->numbering.voided;
    if (number <= base)
        base = request->numbering.void_before;
    return number > base ? number - base - 1 : 0;
}

void sgi_deliver_void_segments(segue_request *request, uint64_t number)
{
    if (number <= request->numbering.voided)
        return;
    if (!request->numbering.replace_due)
        request->numbering.void_before = request->numbering.voided;
    request->numbering.voided = number;
    request->numbering.replace_due = true;
}

/* Called when some segments continue the text of others, so that the blocks of the result
 * differ from the segments. If only some of the segments were delivered, makes the
 * delivered segments void. The application then gets all blocks of the result instead. */
static void void_joined(segue_request *request, sgi_json segments)
{
    int64_t all;
    uint64_t shown = request->numbering.next - 1;
    request->numbering.joined |= segments.n > 0;
    if (sgi_json_read_int(segments, &all) && all > 0 && shown < (uint64_t)all)
        sgi_deliver_void_segments(request, shown);
}

void sgi_deliver_void_segments_of_result(segue_request *request, sgi_json meta)
{
    static const sgi_str names[] = {SGI_STR_INIT("dev.segue/replace"),
                                    SGI_STR_INIT(SGI_SEGMENTS)};
    sgi_json found[2];
    int64_t voided;
    sgi_json_pick(meta, names, 2, found);
    if (sgi_json_read_int(found[0], &voided) && voided > 0 && voided < SGI_COUNT_MAX)
        sgi_deliver_void_segments(request, (uint64_t)voided);
    void_joined(request, found[1]);
}

void sgi_deliver_segment(segue_request *request, uint64_t number, uint64_t event,
                         sgi_json block)
{
    sgi_deliver_indexed_segment(request, number, event, place_of(request, number), block);
}

void sgi_deliver_indexed_segment(segue_request *request, uint64_t number, uint64_t event,
                                 uint64_t index, sgi_json block)
{
    sgi_inbox_record_head head = {.kind = SGI_RECORD_SEGMENT,
                                  .number = number,
                                  .event = event,
                                  .covered = number,
                                  .index = index};
    add_segment(request, &head, block);
}

void sgi_deliver_numbered_segment(segue_request *request, uint64_t number,
                                  uint64_t covered, sgi_json block)
{
    sgi_inbox_record_head head = {
        .kind = SGI_RECORD_SEGMENT, .number = number, .covered = covered};
    head.index = place_of(request, number);
    add_segment(request, &head, block);
}

void sgi_deliver_remaining_blocks(segue_request *request, const sgi_result *result)
{
    sgi_json content = result->content;
    sgi_json block;
    sgi_deliver_void_segments_of_result(request, result->meta);
    uint64_t number = request->numbering.voided;
    if (!sgi_deliver_has_reader(request) || sgi_json_kind_of(content) != SGI_JSON_ARRAY)
        return;
    if (request->numbering.next <= number)
        request->numbering.next = number + 1;
    for (size_t at = 0; sgi_json_next_item(content, &at, &block);)
        if (++number >= request->numbering.next)
            sgi_deliver_segment(request, request->numbering.next++, 0, block);
}

/* ---- delivery: these functions run callbacks without the lock ---- */

static void give_status(segue_request *request, const sgi_inbox_record_head *head,
                        const char *bytes)
{
    const char *message = bytes + strlen(bytes) + 1;
    request->events.on_status(request->events.user, request, bytes,
                              head->number ? message : NULL);
}

static void give_input(segue_request *request, const sgi_inbox_record_head *head,
                       const char *bytes)
{
    const char *method = bytes + strlen(bytes) + 1;
    const char *params = method + strlen(method) + 1;
    if (request->events.on_input)
        request->events.on_input(request->events.user, request, bytes, method, params,
                                 head->len - (size_t)(params - bytes));
}

/* Returns the size of a record with its head and its padding. */
static size_t size_of(const sgi_inbox_record_head *head)
{
    size_t size = sizeof *head + head->len + 1;
    return (size + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

const segue_segment *sgi_segment_batch_next(segue_segment_batch *batch)
{
    sgi_inbox_record_head head;
    if (batch->at == batch->end)
        return NULL;
    memcpy(&head, batch->at, sizeof head);
    batch->segment.view = (segue_segment_view){.number = head.number,
                                               .index = head.index,
                                               .replaces = head.replaces,
                                               .data = batch->at + sizeof head,
                                               .data_len = head.len};
    batch->at += size_of(&head);
    return &batch->segment;
}

static void give_segments(segue_request *request, segue_segment_batch *batch)
{
    segue_request_events *events = &request->events;
    sgi_buf_init(&batch->segment.type, sgi_engine_mem(request->engine));
    sgi_buf_init(&batch->segment.text, sgi_engine_mem(request->engine));
    if (events->on_segments)
        events->on_segments(events->user, request, batch);
    else
        events->on_segment(events->user, request, sgi_segment_batch_next(batch));
    sgi_buf_free(&batch->segment.type);
    sgi_buf_free(&batch->segment.text);
}

static void give(segue_request *request, const sgi_inbox_record_head *head,
                 const char *bytes)
{
    segue_request_events *events = &request->events;
    switch (head->kind) {
    case SGI_RECORD_TASK:
        if (events->on_task)
            events->on_task(events->user, request, bytes);
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

/* Reads the sgi_inbox_record_head of the next record of `taken`. Returns false when there
 * is none, or when it is a segment without credit. */
static bool next_taken(const segue_request *request, sgi_inbox_record_head *head)
{
    const sgi_delivery *delivery = &request->delivery;
    if (delivery->taken_at == delivery->taken.len)
        return false;
    memcpy(head, delivery->taken.p + delivery->taken_at, sizeof *head);
    return head->kind != SGI_RECORD_SEGMENT || delivery->credit != 0 ||
           may_ignore_credit(request);
}

/* Does as next_taken does, but takes the inbox first when all of `taken` was read. */
static bool next_record(segue_request *request, sgi_inbox_record_head *head)
{
    if (request->delivery.taken_at == request->delivery.taken.len) {
        sgi_buf empty = request->delivery.taken;
        sgi_buf_reset(&empty, KEEP_ROOM);
        request->delivery.taken = request->delivery.inbox;
        request->delivery.taken_at = 0;
        request->delivery.inbox = empty;
    }
    return next_taken(request, head);
}

static void before_user(segue_request *request, const sgi_inbox_record_head *head)
{
    request->delivery.taken_at += size_of(head);
    if (head->kind != SGI_RECORD_SEGMENT)
        return;
    if (request->delivery.credit > 0)
        request->delivery.credit--;
    note_delivered(request, head);
}

static void after_user(segue_request *request, const sgi_inbox_record_head *head)
{
    if (head->kind == SGI_RECORD_TASK)
        request->follower->task_reported(request);
}

/* Lets the session read input again, if the session was waiting for the callbacks of this
 * request. */
static void let_go(segue_request *request)
{
    segue_session *session = request->session;
    bool has_room = sgi_deliver_waiting_bytes(request) < INBOX_LOW;
    bool was_behind = request->delivery.behind;
    bool is_stopped = !request->delivery.credit && !holds_exchange(request);
    if (request->delivery.behind &&
        (has_room || is_stopped || may_ignore_credit(request))) {
        request->delivery.behind = false;
        session->behind--;
        sgi_session_resume_input(session, request);
        if (!has_room && request->phase == SGI_PHASE_FOLLOW &&
            request->follower->is_streamed(request))
            request->follower->pause(request);
    }
    if (request->phase == SGI_PHASE_FOLLOW && has_room)
        request->follower->has_room(request, was_behind);
}

/* Delivers the segment of `head` and those that follow it, at most `most` of them.
 * Returns the number of segments. */
static int32_t give_batch(segue_request *request, sgi_inbox_record_head *head,
                          int32_t most)
{
    segue_segment_batch batch = {.at = request->delivery.taken.p +
                                       request->delivery.taken_at};
    int32_t count = 0;
    if (!request->events.on_segments)
        most = 1;
    else if (most > SGI_THRESHOLD(segment_batch))
        most = SGI_THRESHOLD(segment_batch);
    do {
        before_user(request, head);
        count++;
    } while (count < most && next_taken(request, head) &&
             head->kind == SGI_RECORD_SEGMENT);
    batch.end = request->delivery.taken.p + request->delivery.taken_at;
    sgi_user_code_begin(request->engine);
    give_segments(request, &batch);
    sgi_user_code_end(request->engine);
    return count;
}

static void give_one(segue_request *request, const sgi_inbox_record_head *head)
{
    const char *bytes =
        request->delivery.taken.p + request->delivery.taken_at + sizeof *head;
    before_user(request, head);
    sgi_user_code_begin(request->engine);
    give(request, head, bytes);
    sgi_user_code_end(request->engine);
    after_user(request, head);
}

/* Delivers records until the inbox is empty or the credit is used up. */
static int32_t give_records(segue_request *request, int32_t budget)
{
    sgi_inbox_record_head head;
    int32_t ran = 0;
    while (ran < budget && next_record(request, &head)) {
        if (head.kind == SGI_RECORD_SEGMENT) {
            ran += give_batch(request, &head, budget - ran);
        } else {
            give_one(request, &head);
            ran++;
        }
    }
    let_go(request);
    return ran;
}

static void give_completion(segue_request *request)
{
    sgi_engine *engine = request->engine;
    segue_session *session = request->session;
    sgi_request_validate_result(request);
    sgi_str json = sgi_buf_str(&request->result);
    sgi_request_set_phase(request, SGI_PHASE_REPORTED);
    sgi_request_event_report_end(request);
    sgi_user_code_begin(engine);
    if (request->events.on_complete)
        request->events.on_complete(request->events.user, request, request->status,
                                    json.n ? json.p : NULL, json.n, request->error);
    if (request->events.free_user)
        request->events.free_user(request->events.user);
    sgi_user_code_end(engine);
    TAILQ_REMOVE(&session->requests, request, link);
    if (session->standing == request)
        session->standing = NULL;
    else
        session->request_count--;
    if (session->stage == SGI_STAGE_CLOSED && TAILQ_EMPTY(&session->requests) &&
        !session->ready.queued) {
        sgi_session_ref(session);
        sgi_ready_queue_add(engine, &session->ready);
    }
    if (request->maker.ended)
        request->maker.ended(request);
    sgi_request_unref(request);
}

int32_t sgi_deliver_run_callbacks(sgi_ready_object *ready, int32_t budget)
{
    segue_request *request = SGI_OWNER(ready, segue_request, ready);
    int32_t ran = give_records(request, budget);
    bool empty = request->delivery.taken_at == request->delivery.taken.len &&
                 !request->delivery.inbox.len;
    if (ran < budget && empty && sgi_request_is_over(request) &&
        request->phase != SGI_PHASE_REPORTED) {
        give_completion(request);
        ran++;
    } else if (ran >= budget) {
        sgi_request_queue_callbacks(request);
    }
    sgi_request_unref(request);
    return ran;
}
