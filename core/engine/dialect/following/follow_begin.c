/* Makes a request follow a task. The id of the task is stored first. on_task runs before
 * any message about the task is sent (R-2557-60). The session must have the version in
 * which the task was made (R-2557-62). */
#include "engine/dialect/rows.h"

#include "base/thresholds.h"
#include "engine/client/exchange_start.h"
#include "engine/dialect/following/follow.h"

/* the poll interval in ms when the server names no interval */
#define POLL_MS SGI_THRESHOLD(poll_ms)

bool sgi_follow_new(segue_request *request, sgi_str task_id)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    char *id = sgi_text_dup(mem, task_id);
    sgi_task_follow *follow =
        id ? sgi_cli_dialect_state_find_or_new(request, &sgi_cli_tasks) : NULL;
    if (!follow) {
        sgi_text_free(mem, id);
        return false;
    }
    follow->poll_ms = POLL_MS;
    follow->credentials = request->session->conn->credentials;
    request->follow = follow;
    request->follower = &sgi_follow_unknown;
    request->task_id = id;
    return true;
}

bool sgi_follow_choose_dialect(segue_request *request)
{
    const sgi_cli_follow_ops *fits = sgi_cli_follow_ops_of(request->session);
    if (request->follower == &sgi_follow_unknown)
        request->follower = fits;
    if (request->follower != fits)
        sgi_request_fail(request, SEGUE_E_NOT_RESUMABLE,
                         request->follower->other_session);
    else if (!fits->begin(request))
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the task");
    return request->phase == SGI_PHASE_FOLLOW;
}

bool sgi_follow_send_cancel_or_allow(segue_request *request)
{
    if (request->phase != SGI_PHASE_FOLLOW)
        return false;
    if (request->cancel_due) {
        sgi_follow_send_cancel(request);
        return false;
    }
    return !request->follow->hook_pending && sgi_follow_choose_dialect(request);
}

/* Stores _meta of the answer that made the task, because it has the server's hints for
 * the model (R-2557-12). The hints are only advice. When out of memory, the request
 * continues without them. */
static void keep_meta(segue_request *request, sgi_json meta)
{
    if (sgi_json_kind_of(meta) != SGI_JSON_OBJECT)
        return;
    request->follow->meta = sgi_text_dup(sgi_engine_mem(request->engine), meta);
    if (request->follow->meta)
        request->follow->meta_len = meta.n;
    else
        request->engine->warnings++;
}

sgi_json sgi_follow_meta(const segue_request *request, const char *key)
{
    const sgi_task_follow *follow = request->follow;
    if (!follow || !follow->meta)
        return (sgi_json){0};
    return sgi_json_get((sgi_json){follow->meta, follow->meta_len}, key);
}

void sgi_follow_begin(segue_request *request, sgi_json task, sgi_json meta)
{
    sgi_inbox_record_head head = {.kind = SGI_RECORD_TASK};
    /* in DRAFT-2026-v1 the task is in the member "task" of the answer */
    sgi_json nested = sgi_json_get(task, "task");
    sgi_json id;
    sgi_buf text;
    if (sgi_json_kind_of(nested) == SGI_JSON_OBJECT)
        task = nested;
    id = sgi_json_get(task, "taskId");
    if (sgi_json_kind_of(id) != SGI_JSON_STRING || id.n <= 2 || id.n > 4096 + 2) {
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         "the server sent a task without a valid taskId");
        return;
    }
    sgi_buf_init(&text, sgi_engine_mem(request->engine));
    sgi_json_decode(id, &text);
    bool plain = text.failed || !memchr(text.p, 0, text.len);
    bool kept = plain && !text.failed && sgi_follow_new(request, sgi_buf_str(&text));
    sgi_buf_free(&text);
    if (!kept) {
        sgi_request_fail(request, plain ? SEGUE_E_NOMEM : SEGUE_E_PROTOCOL,
                         plain ? "out of memory for the task"
                               : "the server sent a taskId with a NUL character");
        return;
    }
    /* a task that fails before its segments come again gives what the call showed */
    sgi_received_part_set_aside(request);
    sgi_cli_became_task(request);
    sgi_request_drop_received_result(request);
    sgi_request_set_phase(request, SGI_PHASE_FOLLOW);
    request->tries.method = "tasks/get";
    keep_meta(request, meta);
    /* the questions that the server asked before the call became a task are dropped,
     * because a task has its own questions */
    sgi_questions_clear(request);
    sgi_task_note_poll_interval(request, task);
    sgi_cli_note_task(request, task, true);
    if (!sgi_follow_choose_dialect(request))
        return;
    request->follow->hook_pending = request->events.on_task != NULL;
    if (request->follow->hook_pending &&
        !sgi_inbox_add_record(request, &head, sgi_str_of(request->task_id))) {
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the task");
        return;
    }
    sgi_task_note_status(request, task);
    /* the answer already has the state of the task, so the first tasks/get waits for the
     * poll interval */
    if (!request->follow->look)
        sgi_task_poll_later(request);
    if (!request->follow->hook_pending)
        sgi_follow_send_due(request);
}

/* ---- functions of the tables ---- */

void sgi_follow_on_task_reported(segue_request *request)
{
    if (!request->follow->hook_pending)
        return;
    request->follow->hook_pending = false;
    if (sgi_session_is_open(request->session))
        sgi_follow_send_due(request);
}

void sgi_follow_pause(segue_request *request)
{
    request->follow->paused = true;
}

void sgi_follow_on_room(segue_request *request, bool was_full)
{
    (void)was_full;
    if (!request->follow->paused)
        return;
    request->follow->paused = false;
    if (sgi_session_is_open(request->session))
        sgi_follow_send_due(request);
}

bool sgi_follow_returns_false(const segue_request *request)
{
    (void)request;
    return false;
}

bool sgi_follow_is_held(const segue_request *request)
{
    const sgi_emitter *getting = request->follow->getting;
    const sgi_emitter *streaming = sgi_cli_streaming_exchange(request);
    return (getting && sgi_exchange_is_held(getting->conn)) ||
           (streaming && sgi_exchange_is_held(streaming->conn));
}

void sgi_follow_end(segue_request *request)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions.list, link) {
        if (question->updating && question->updating != request->follow->getting)
            sgi_emitter_drop(question->updating, false);
        question->updating = NULL;
    }
    if (request->follow->cancelling)
        sgi_emitter_drop(request->follow->cancelling, false);
    request->follow->cancelling = NULL;
    if (request->follow->getting)
        sgi_emitter_drop(request->follow->getting, false);
    request->follow->getting = NULL;
}

void sgi_follow_write_token(const segue_request *request, sgi_jw *w)
{
    sgi_jw_member_string(w, "t", sgi_str_of(request->task_id));
    sgi_jw_member_int(w, "e", (int64_t)request->delivery.event);
    sgi_jw_member_int(w, "s", (int64_t)request->delivery.segment + 1);
    sgi_jw_member_int(w, "v", (int64_t)request->delivery.voided);
}

bool sgi_follow_read_token(sgi_json token, sgi_request_spec *spec, segue_status *status)
{
    int64_t event = 0;
    sgi_json id = sgi_json_get(token, "t");
    if (!id.n)
        return false;
    sgi_json_decode(id, spec->room);
    sgi_json_read_int(sgi_json_get(token, "e"), &event);
    spec->method = SGI_STR("tools/call");
    spec->task_id = sgi_buf_str(spec->room);
    spec->next_event = (uint64_t)event;
    bool is_good = event >= 0 && event <= SGI_COUNT_MAX && spec->task_id.n &&
                   !memchr(spec->task_id.p, 0, spec->task_id.n);
    *status = is_good ? SEGUE_OK : SEGUE_E_INVALID;
    if (spec->room->failed)
        *status = SEGUE_E_NOMEM;
    return true;
}

/* ---- a task of which only the id is known ---- */

static bool fits_none(const segue_session *session)
{
    (void)session;
    return false;
}

static bool begin_none(segue_request *request)
{
    (void)request;
    return true;
}

/* Called for messages about the task while its dialect is not known. Chooses the dialect
 * and then calls the dialect's own function `due`. */
static void due(segue_request *request)
{
    if (sgi_follow_send_cancel_or_allow(request))
        sgi_follow_send_due(request);
}

static void answered(segue_request *request, sgi_question *question)
{
    (void)question;
    due(request);
}

const sgi_cli_follow_ops sgi_follow_unknown = {
    .fits = fits_none,
    .begin = begin_none,
    .due = due,
    .answered = answered,
    .task_reported = sgi_follow_on_task_reported,
    .pause = sgi_follow_pause,
    .is_streamed = sgi_follow_returns_false,
    .has_room = sgi_follow_on_room,
    .is_held = sgi_follow_is_held,
    .cancel = sgi_follow_cancel,
    .end = sgi_follow_end,
    .write_token = sgi_follow_write_token,
    .keeps_call_token = sgi_follow_returns_false,
};
