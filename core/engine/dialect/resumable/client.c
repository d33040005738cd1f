/* Resumable requests (Z, SEP-975) on the client, in the versions that begin with
 * `initialize`. The server sends a token with which the client can resume a request. When
 * the connection breaks, the request waits for the next connection and for minWait. Then
 * it asks for its answer under its old id (R-975-9). Over HTTP it sends its position,
 * which is the id of the last event that it processed. The server then does not send
 * earlier events again. Over other transports the server knows the position. */
#include "engine/dialect/rows.h"
#include "engine/client/dialects.h"
#include "engine/client/withdrawal.h"

#include <stdio.h>
#include <string.h>

typedef struct resumable {
    sgi_cli_dialect_state state;
    char *token; /* the resume token of the server, as JSON text */
    int64_t min_ms;
    /* monotonic time until which the client must not ask for the answer (minWait) */
    int64_t due_ms;
    /* over HTTP: event id of the last message that was processed; NULL = no such id */
    char *last_event;
} resumable;

static resumable *part_of(const segue_request *request)
{
    return sgi_cli_dialect_state_find(request, &sgi_cli_resumable);
}

static void free_state(segue_request *request, sgi_cli_dialect_state *state)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    resumable *part = (resumable *)state;
    sgi_text_free(mem, part->token);
    sgi_text_free(mem, part->last_event);
}

/* the longest wait in seconds; a longer wait counts as malformed */
#define WAIT_MOST_S 86400

/* Logs that the server has sent a malformed wait, which the client ignores (R-975-3). */
static void warn_of_bound(segue_session *session)
{
    session->engine->warnings++;
    sgi_engine_log(
        session->engine, SEGUE_LOG_WARNING,
        "the server sent a resume policy with an invalid waiting time, which is ignored");
}

static bool read_wait(segue_session *session, sgi_json value, int64_t *ms)
{
    int64_t seconds;
    *ms = 0;
    if (!value.n)
        return false;
    if (!sgi_json_read_int(value, &seconds) || seconds < 0 || seconds > WAIT_MOST_S) {
        warn_of_bound(session);
        return false;
    }
    *ms = seconds * 1000;
    return true;
}

/* Stores the token of the server. After a resume, the server sends the same token again.
 * on_resumable reports a new token to the application. A call that asks for a task is not
 * reported: it becomes a task, and the application learns of the task by on_task. */
static void take_token(segue_request *request, resumable *part, char *token)
{
    sgi_inbox_record_head head = {.kind = SGI_RECORD_RESUMABLE};
    bool is_new = !part->token || strcmp(part->token, token) != 0;
    sgi_text_free(sgi_engine_mem(request->engine), part->token);
    part->token = token; /* the new token replaces the old one */
    if (!is_new || sgi_cli_asks_for_task(request) || !request->events.on_resumable)
        return;
    /* the report of the token to the application is dropped; the request can still be
     * resumed */
    if (sgi_inbox_is_full(request) || !sgi_inbox_add_record(request, &head, (sgi_str){0}))
        request->delivery.dropped++;
}

static void take_policy(segue_session *session, sgi_json params)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    sgi_emitter *emitter = sgi_emitter_find(session, sgi_json_get(params, "requestId"));
    segue_request *request = emitter ? emitter->request : NULL;
    sgi_json token = sgi_json_get(params, "resumeToken");
    int64_t min_ms, max_ms;
    if (!request || request->calling != emitter ||
        !(session->options.dialects_on & SEGUE_DIALECT_RESUMABLE) ||
        sgi_json_kind_of(token) != SGI_JSON_STRING) {
        /* the progress token of the message belongs to no running request (R-975-3) */
        session->engine->warnings++;
        return;
    }
    bool has_max = read_wait(session, sgi_json_get(params, "maxWait"), &max_ms);
    read_wait(session, sgi_json_get(params, "minWait"), &min_ms);
    if (has_max && min_ms > max_ms) {
        warn_of_bound(session);
        min_ms = 0;
    }
    char *copy = sgi_text_dup(mem, token);
    resumable *part =
        copy ? sgi_cli_dialect_state_find_or_new(request, &sgi_cli_resumable) : NULL;
    if (!part) {
        /* out of memory: the request continues without a position */
        sgi_text_free(mem, copy);
        return;
    }
    part->min_ms = min_ms;
    take_token(request, part, copy);
}

static bool notified(segue_session *session, sgi_str method, const sgi_message *msg,
                     bool *taken)
{
    if (!sgi_str_eq(method, SGI_STR("notifications/requests/resumePolicy")))
        return false;
    take_policy(session, msg->params);
    *taken = true;
    return true;
}

static void set_position(segue_request *request, sgi_str id)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    resumable *part = part_of(request);
    if (!id.n)
        return;
    if (!part->last_event || !sgi_str_eq(id, sgi_str_of(part->last_event)))
        sgi_tries_reset(&request->tries);
    char *copy = sgi_text_dup(mem, id);
    if (!copy)
        /* no position is stored: over other transports the client recognizes a repeated
         * message by its number */
        return;
    sgi_text_free(mem, part->last_event);
    part->last_event = copy;
}

static sgi_str position(const segue_request *request, sgi_str method)
{
    if (!sgi_str_eq(method, SGI_STR("requests/resume")))
        return (sgi_str){0};
    return sgi_str_of(part_of(request)->last_event);
}

/* Called when the exchange was lost. The wait of minWait begins now. */
static void lost(segue_request *request)
{
    resumable *part = part_of(request);
    part->due_ms = sgi_time_add(sgi_now(&request->engine->env), part->min_ms);
}

/* True when the error only refuses to answer now: another server on the same store runs
 * the request, or the store cannot be read. An error without a pause may be the outcome
 * of the request. */
static bool is_refusal(const segue_request *request, sgi_json error)
{
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    bool passes = sgi_json_string_is(reason, SGI_STR("elsewhere")) ||
                  sgi_error_is_unread_store(error);
    return passes && request->tries.failures < request->session->options.max_reconnects;
}

static void resumed(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    request->calling = NULL;
    if (outcome->kind == SGI_OUTCOME_ERROR && is_refusal(request, outcome->json)) {
        sgi_tries_back_off(&request->tries, sgi_error_retry_after_ms(outcome->json));
    } else if (outcome->kind == SGI_OUTCOME_ERROR) {
        sgi_task_handle_note_error(request, outcome->json);
        sgi_request_fail_error(request, SEGUE_E_REMOTE, NULL, outcome->json);
    } else {
        if (outcome->kind == SGI_OUTCOME_RESULT)
            sgi_task_handle_note_answer(request, outcome->json);
        sgi_request_take_outcome(request, outcome);
    }
}

static bool can_resume(const segue_session *session)
{
    return session->version <= SGI_VERSION_2025_11_25 &&
           session->options.dialects_on & SEGUE_DIALECT_RESUMABLE;
}

/* True when this session can resume requests. Otherwise ends the request and returns
 * false. The check is needed because the token may come from a session with another
 * server. */
static bool fits(segue_request *request)
{
    bool ok = can_resume(request->session);
    if (!ok)
        sgi_request_fail(
            request, SEGUE_E_NOT_RESUMABLE,
            request->session->version > SGI_VERSION_2025_11_25
                ? "the request belongs to a revision before 2026-07-28, which "
                  "this session does not speak: connect with the era "
                  "\"legacy\""
                : "this session does not support resuming requests");
    return ok;
}

/* Writes how many segments have arrived. A server of this library then sends all later
 * segments that it still has, even segments that were acknowledged. Writes nothing when
 * the segments have no numbers. */
static void write_has(const segue_request *request, sgi_buf *out)
{
    int64_t number = sgi_cli_segments_received_up_to(request);
    if (number < 0)
        return;
    sgi_buf_add_lit(out, ",\"dev.segue/after\":");
    sgi_buf_add_int(out, number);
}

static bool send_resume(segue_request *request, sgi_emitter *emitter,
                        sgi_sending *sending)
{
    sgi_buf extra;
    sgi_buf_init(&extra, sgi_engine_mem(request->engine));
    write_has(request, &extra);
    sgi_jw_member_raw(&sending->w, "resumeToken", sgi_str_of(part_of(request)->token));
    sending->w.buf->failed |= extra.failed;
    bool sent = sgi_emitter_send(emitter, sending, sgi_buf_str(&extra), (sgi_json){0});
    sgi_buf_free(&extra);
    return sent;
}

static void send_again(segue_request *request)
{
    segue_session *session = request->session;
    sgi_sending sending;
    if (!fits(request))
        return;
    int64_t left = part_of(request)->due_ms - sgi_now(&request->engine->env);
    if (left > 0) {
        /* The pause is a tenth longer than minWait. So the random change of the pause
         * cannot make the client resume too early. */
        sgi_tries_set_timer(&request->tries, left + left / 9 + 1);
        return;
    }
    if (sgi_emitter_id_is_in_flight(session, request->call_id)) {
        sgi_request_fail(request, SEGUE_E_STATE,
                         "the request with this id is still in flight in this session");
        return;
    }
    sgi_emitter *emitter = sgi_emitter_begin_with_id(session, &sending, request->call_id,
                                                     SGI_STR("requests/resume"));
    if (emitter) {
        emitter->request = request;
        emitter->done = resumed;
        emitter->repeats = true;
        sgi_cli_offer_dialects(request, emitter);
        /* set before the message is sent, because the header Last-Event-ID of the
         * exchange comes from this request */
        request->calling = emitter;
        request->call_session = emitter->wire_session;
        if (send_resume(request, emitter, &sending))
            return;
        request->calling = NULL;
    }
    sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory");
}

/* ---- a call that was given up ---- */

static sgi_str resume_token(const segue_request *request)
{
    return sgi_str_of(part_of(request)->token);
}

static sgi_emitter *resume(segue_session *session, int64_t id, sgi_str token)
{
    sgi_sending sending;
    sgi_emitter *emitter =
        can_resume(session)
            ? sgi_emitter_begin_with_id(session, &sending, id, SGI_STR("requests/resume"))
            : NULL;
    if (!emitter)
        return NULL;
    emitter->timeout_ms = 0; /* no time limit, because the caller has its own */
    sgi_jw_member_raw(&sending.w, "resumeToken", token);
    return sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}) ? emitter
                                                                            : NULL;
}

/* ---- its state ---- */

static void write_inquiry(const segue_task *task, sgi_jw *w)
{
    sgi_jw_member_int(w, "requestId", task->call_id);
    sgi_jw_member_raw(w, "resumeToken", sgi_str_of(task->resume_token));
}

/* Translates a status of requests/getStatus into a segue_task_state (R-975-22). The
 * member hasInputRequest of a request that is "processing" shows whether the request
 * waits for input. */
static int32_t state_of(sgi_json result)
{
    sgi_json asks = sgi_json_get(result, "hasInputRequest");
    sgi_json status = sgi_json_get(result, "status");
    if (!sgi_json_string_is(status, SGI_STR("processing")))
        return sgi_task_state_from_status(status);
    return sgi_json_kind_of(asks) == SGI_JSON_TRUE ? SEGUE_TASK_INPUT_REQUIRED
                                                   : SEGUE_TASK_WORKING;
}

/* Returns the state that the reason of an error shows (R-975-12, R-975-14). Any other
 * error is the outcome of the request, if the answer of the request was asked for. */
static int32_t state_of_refusal(const segue_request *request, sgi_json error)
{
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (sgi_json_string_is(reason, SGI_STR("cancelled")) ||
        sgi_json_string_is(reason, SGI_STR("expired")))
        return SEGUE_TASK_CANCELLED;
    if (sgi_json_string_is(reason, SGI_STR("completed")))
        return SEGUE_TASK_COMPLETED;
    return part_of(request) && code != SGI_RPC_INVALID_PARAMS &&
                   code != SGI_RPC_METHOD_NOT_FOUND &&
                   !sgi_json_string_is(reason, SGI_STR("elsewhere"))
               ? SEGUE_TASK_FAILED
               : SEGUE_TASK_UNKNOWN;
}

static const sgi_cli_inquiry_ops inquiry = {
    .method = "requests/getStatus",
    .write_params = write_inquiry,
    .state = state_of,
    .refused = state_of_refusal,
};

/* ---- tokens ---- */

/* Writes the dialect's part of a resume token. If the result comes in pieces, the server
 * must send all pieces again, because the new process merges the result from them. Pieces
 * that the application has handled are not delivered again. */
static void write_token(const segue_request *request, sgi_jw *w)
{
    const resumable *part = part_of(request);
    sgi_jw_member_string(w, "m", sgi_str_of(request->method));
    sgi_jw_member_raw(w, "z", sgi_str_of(part->token));
    sgi_jw_member_int(w, "i", request->call_id);
    sgi_jw_member_int(w, "w", part->min_ms);
    if (part->last_event && !sgi_cli_has_received_result_part(request))
        sgi_jw_member_string(w, "l", sgi_str_of(part->last_event));
}

static bool is_good(sgi_json token, sgi_request_spec *spec)
{
    int64_t min_ms = 0;
    sgi_json_read_int(sgi_json_get(token, "w"), &min_ms);
    if (!sgi_json_plain_string(sgi_json_get(token, "m"), &spec->method) ||
        sgi_json_kind_of(spec->resume_token) != SGI_JSON_STRING ||
        !sgi_json_read_int(sgi_json_get(token, "i"), &spec->resume_id) ||
        spec->resume_id < 1 || spec->resume_id > SGI_COUNT_MAX || min_ms < 0)
        return false;
    if (sgi_json_get(token, "l").n &&
        !sgi_json_plain_string(sgi_json_get(token, "l"), &spec->resume_event))
        return false;
    spec->resume_min_ms = min_ms;
    return true;
}

static bool read_token(sgi_json token, sgi_request_spec *spec, segue_status *status)
{
    spec->resume_token = sgi_json_get(token, "z");
    if (!spec->resume_token.n)
        return false;
    spec->inquiry = &inquiry;
    *status = is_good(token, spec) ? SEGUE_OK : SEGUE_E_INVALID;
    return true;
}

static bool take_over(segue_request *request, const sgi_request_spec *spec)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    if (!spec->resume_token.n)
        return true;
    resumable *part = sgi_cli_dialect_state_find_or_new(request, &sgi_cli_resumable);
    if (!part)
        return false;
    request->taken_over = true;
    request->call_id = spec->resume_id;
    part->min_ms = spec->resume_min_ms;
    part->token = sgi_text_dup(mem, spec->resume_token);
    if (part->token)
        sgi_withdrawals_revoke(request->session, part->token);
    if (spec->resume_event.n)
        part->last_event = sgi_text_dup(mem, spec->resume_event);
    return part->token && (part->last_event || !spec->resume_event.n);
}

/* ---- sessions ---- */

static bool declares(const segue_session *session)
{
    return session->options.dialects_on & SEGUE_DIALECT_RESUMABLE;
}

/* Makes the ids of the session's requests begin at a random number. Requests of an
 * earlier process may still run and be resumed, so this session must use other ids
 * (R-975-30). A double can represent the id exactly. */
static void begin(segue_session *session, sgi_cli_dialect_state *state)
{
    uint8_t bytes[5] = {0};
    int64_t id = 0;
    (void)state;
    if (!declares(session))
        return;
    sgi_random(&session->engine->env, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        id = id << 8 | bytes[i];
    session->last_id = id << 8;
}

static const sgi_cli_session_hooks session_hooks = {
    .begin = begin,
    .capability = "resumableRequests",
    .declares = declares,
};

const sgi_cli_dialect sgi_cli_resumable = {
    .name = "resumable requests",
    .session_hooks = &session_hooks,
    .inquiry = &inquiry,
    .state_size = sizeof(resumable),
    .free_state = free_state,
    .take_over = take_over,
    .write_token = write_token,
    .read_token = read_token,
    .fits = fits,
    .send_again = send_again,
    .resume_token = resume_token,
    .resume = resume,
    .notified = notified,
    .position = position,
    .set_position = set_position,
    .lost = lost,
};
