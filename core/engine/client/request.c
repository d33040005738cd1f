#include "engine/client/exchange_start.h"

#include "base/rare.h"
#include "engine/client/request_event.h"
#include "engine/client/server_questions.h"
#include "engine/client/dialects.h"
#include "engine/client/withdrawal.h"
#include "wire/ending.h"
#include "wire/json_copy.h"

#include <math.h>

static void deadline_passed(sgi_timer *timer);
static void call_done(sgi_emitter *emitter, const sgi_outcome *outcome);
static void take_clean_result(segue_request *request, sgi_json result,
                              const sgi_json_part *parts);

/* ---- making a request ---- */

/* Writes the capabilities that the request declares in place of those of its session.
 * capabilities: a JSON object; NULL = those of the session. */
static bool declare(segue_request *request, const char *capabilities)
{
    const segue_session *session = request->session;
    bool tasks = !request->options.no_task;
    sgi_buf meta;
    if (!capabilities && (tasks || session->options.no_tasks))
        return true;
    sgi_buf_init(&meta, sgi_engine_mem(request->engine));
    if (capabilities ? sgi_declare_modern(session, sgi_str_of(capabilities), tasks, &meta)
                     : sgi_declare_no_task(session, &meta))
        request->meta = sgi_text_dup(sgi_engine_mem(request->engine), sgi_buf_str(&meta));
    sgi_buf_free(&meta);
    return request->meta != NULL;
}

static bool copy_spec(segue_request *request, const sgi_request_spec *spec)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    const segue_request_options *options = spec->options;
    sgi_str key = spec->key;
    char fresh[SGI_RANDOM_TEXT + 1];
    if (!key.n && options->idempotency_key)
        key = sgi_str_of(options->idempotency_key);
    request->key.kept = key.n > 0;
    request->key.needed = spec->key.n > 0;
    if (!key.n && request->is_call && !spec->task_id.n && !spec->resume_token.n &&
        !request->session->options.no_idempotency && !options->no_idempotency &&
        sgi_engine_random_text(request->engine, fresh))
        key = sgi_str_of(fresh);
    request->options = *options;
    request->options.idempotency_key = NULL;
    request->options.log_level = NULL;
    request->options.capabilities = NULL;
    if (options->log_level &&
        !(request->log_level = sgi_text_dup(mem, sgi_str_of(options->log_level))))
        return false;
    if (key.n && !(request->key.text = sgi_text_dup(mem, key)))
        return false;
    if (key.n)
        sgi_withdrawals_revoke(request->session, request->key.text);
    if (spec->params.n && !(request->params.p = sgi_text_dup(mem, spec->params)))
        return false;
    request->params.n = spec->params.n;
    request->own_meta = sgi_json_get(request->params, "_meta");
    request->method = sgi_text_dup(mem, spec->method);
    request->tries.method = request->method;
    return request->method && declare(request, options->capabilities) &&
           sgi_cli_restore_resumed_request(request, spec);
}

static void init_fold(segue_request *request)
{
    sgi_fold_init(&request->fold, &request->engine->env);
    request->fold.opening = SGI_FOLD_OPENING;
}

static segue_request *make_request(segue_session *session, const sgi_request_spec *spec)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    segue_request *request = sgi_zalloc(mem, sizeof *request);
    if (!request)
        return NULL;
    request->handle = (sgi_handle){SGI_MAGIC_REQUEST, session->engine};
    request->engine = session->engine;
    request->refs = 1;
    request->session = session;
    sgi_session_ref(session);
    request->is_call = sgi_str_eq(spec->method, SGI_STR("tools/call"));
    if (!spec->method.n)
        request->phase = SGI_PHASE_STAND;
    else if (spec->task_id.n)
        request->phase = SGI_PHASE_FOLLOW;
    else
        request->phase = SGI_PHASE_WAIT;
    request->delivery.credit = spec->options->credit > 0 ? spec->options->credit : -1;
    sgi_tries_init(&request->tries, request, NULL);
    request->last_progress = (double)NAN;
    request->delivery.event = spec->next_event;
    request->numbering.next = spec->next_segment ? spec->next_segment : 1;
    request->delivery.segment = request->numbering.next - 1;
    request->numbering.voided = request->delivery.voided = spec->void_segments;
    request->ready.run = sgi_deliver_run_callbacks;
    request->began_ms = sgi_now(&request->engine->env);
    TAILQ_INIT(&request->questions.list);
    TAILQ_INIT(&request->questions.from_server);
    init_fold(request);
    sgi_buf_init(&request->earlier.json, sgi_engine_mem(request->engine));
    sgi_buf_init(&request->delivery.inbox, mem);
    sgi_buf_init(&request->delivery.taken, mem);
    sgi_buf_init(&request->result, mem);
    if (!copy_spec(request, spec)) {
        sgi_request_free(request);
        return NULL;
    }
    return request;
}

segue_status sgi_request_new(segue_session *session, const sgi_request_spec *spec,
                             segue_request **out)
{
    if (sgi_session_is_closed(session))
        return sgi_refuse(session->engine, SEGUE_E_CLOSED, "the session is closed");
    /* a request without a method receives the questions of the session (SGI_PHASE_STAND);
     * it sends nothing and is not counted */
    bool stands = !spec->method.n;
    bool is_full = stands ? session->standing != NULL
                          : session->request_count >= session->options.max_requests;
    if (is_full && stands)
        return sgi_refuse(session->engine, SEGUE_E_LIMIT,
                          "the session already has a request that takes the server's "
                          "questions (segue_session_take_input)");
    if (is_full) {
        sgi_limit limit = {SGI_LIMIT_MAX_REQUESTS, session->options.max_requests};
        sgi_limit_text told = sgi_engine_describe_limit(
            session->engine, "the session has too many requests in flight", limit,
            "limit", NULL);
        return sgi_refuse(session->engine, SEGUE_E_LIMIT, "%s", told.text);
    }
    segue_request *request = make_request(session, spec);
    if (!request)
        return SEGUE_E_NOMEM;
    if (spec->events)
        request->events = *spec->events;
    if (spec->task) {
        request->task = spec->task;
        spec->task->refs++;
    }
    /* this reference belongs to the session's list and is dropped after on_complete has
     * run */
    request->refs++;
    TAILQ_INSERT_TAIL(&session->requests, request, link);
    if (stands)
        session->standing = request;
    else
        session->request_count++;
    if (request->options.timeout_ms > 0)
        sgi_engine_set_timer(session->engine, &request->deadline,
                             request->options.timeout_ms, deadline_passed);
    *out = request;
    if (sgi_session_is_open(session))
        sgi_request_send_due(request);
    return SEGUE_OK;
}

/* ---- cancelling ---- */

/* Cancels the call that is under way. A call that has become a task is cancelled by the
 * id of the task, not here. */
static void give_up_call(segue_request *request)
{
    sgi_emitter *calling = request->calling;
    if (calling)
        sgi_emitter_drop(calling, request->phase != SGI_PHASE_FOLLOW);
    else if (request->phase == SGI_PHASE_WAIT)
        sgi_emitter_withdraw_lost_call(request);
    request->calling = NULL;
}

void sgi_request_cancel_at_close(segue_request *request)
{
    if (request->phase == SGI_PHASE_WAIT && request->key.sent && !request->key.kept)
        give_up_call(request);
}

/* Cancels a request that has ended but whose on_complete has not run. Its remaining
 * segments are delivered without credit (permission for a number of segments), because
 * the application may give no credit any more. */
static segue_status give_up_rest(segue_request *request)
{
    if (request->phase == SGI_PHASE_REPORTED)
        return SEGUE_E_TERMINAL;
    if (request->phase == SGI_PHASE_DONE)
        sgi_request_set_phase(request, SGI_PHASE_GIVEN_UP);
    sgi_request_queue_callbacks(request);
    return SEGUE_OK;
}

segue_status sgi_request_cancel(segue_request *request)
{
    if (sgi_request_is_over(request))
        return give_up_rest(request);
    if (request->phase == SGI_PHASE_FOLLOW) {
        request->follower->cancel(request, SEGUE_E_CANCELLED);
        return SEGUE_OK;
    }
    give_up_call(request);
    sgi_request_fail(request, SEGUE_E_CANCELLED, "cancelled");
    return SEGUE_OK;
}

segue_status sgi_request_detach(segue_request *request)
{
    if (request->phase != SGI_PHASE_REPORTED && !request->task_id && !request->key.sent &&
        !sgi_cli_is_resumable(request))
        return SEGUE_E_NOT_RESUMABLE;
    if (sgi_request_is_over(request))
        return give_up_rest(request);
    sgi_request_fail(request, SEGUE_E_CLOSED, "detached");
    return SEGUE_OK;
}

static bool is_held(const sgi_emitter *emitter)
{
    return emitter && sgi_exchange_is_held(emitter->conn);
}

/* True when the request waits for a user who decides about an access token (OAuth). */
static bool waits_for_user(const segue_request *request)
{
    const segue_session *session = request->session;
    return session->reach.user_ms &&
           (!sgi_session_is_open(session) || is_held(request->calling) ||
            (request->follower && request->follower->is_held(request)));
}

static void deadline_passed(sgi_timer *timer)
{
    segue_request *request = SGI_OWNER(timer, segue_request, deadline);
    if (waits_for_user(request)) {
        sgi_engine_set_timer(request->engine, timer, request->options.timeout_ms,
                             deadline_passed);
        return;
    }
    if (request->phase == SGI_PHASE_FOLLOW && request->options.on_timeout &&
        request->follower->cancel(request, SEGUE_E_TIMEOUT))
        return;
    give_up_call(request);
    sgi_request_fail(request, SEGUE_E_TIMEOUT,
                     "the request took longer than its timeout");
}

segue_status sgi_request_grant_credit(segue_request *request, int64_t n)
{
    if (request->phase == SGI_PHASE_REPORTED)
        return SEGUE_E_TERMINAL;
    if (n < 1)
        return SEGUE_E_INVALID;
    if (request->delivery.credit >= 0) {
        request->delivery.credit = n > INT64_MAX - request->delivery.credit
                                       ? INT64_MAX
                                       : request->delivery.credit + n;
        sgi_request_queue_callbacks(request);
    }
    return SEGUE_OK;
}

segue_status sgi_request_answer(segue_request *request, const char *key, sgi_json answer)
{
    if (sgi_request_is_over(request))
        return sgi_request_no_question_status(request);
    segue_status status = sgi_server_question_answer(request, key, answer);
    if (status != SEGUE_E_NOT_FOUND)
        return status;
    sgi_question *question = sgi_question_find_open(request, key);
    if (!question)
        return SEGUE_E_NOT_FOUND;
    status = sgi_question_answer(request, question, answer);
    if (status != SEGUE_OK)
        return status;
    if (!sgi_session_is_open(request->session))
        /* the session is not open: the stored answer is sent when the session opens */
        return SEGUE_OK;
    if (request->phase == SGI_PHASE_FOLLOW)
        request->follower->answered(request, question);
    else
        sgi_request_send_due(request);
    return SEGUE_OK;
}

/* ---- the exchange of the request itself ---- */

/* Writes the params without _meta. write_extra and sgi_emitter_send write _meta later. */
static void write_params(const segue_request *request, sgi_jw *w, sgi_json params)
{
    sgi_json_member member;
    for (size_t at = 0; params.n && sgi_json_next_member(params, &at, &member);) {
        if (!sgi_json_key_is(&member, "_meta") &&
            !sgi_questions_override_member(request, &member))
            sgi_jw_copy_member(w, &member);
    }
    if (request->questions.rounds)
        sgi_questions_write_answers(request, w);
    sgi_cli_write_call_params(request, w);
}

/* Writes the members that this request needs in _meta, each with a comma before it. */
static void write_extra(segue_request *request, sgi_buf *out, int64_t id)
{
    if (request->events.on_progress) {
        sgi_buf_add_lit(out, ",\"progressToken\":");
        sgi_buf_add_int(out, id);
    }
    if (request->log_level &&
        sgi_facts(request->session->version)->has_log_level_in_meta) {
        sgi_buf_add_lit(out, ",\"io.modelcontextprotocol/logLevel\":\"");
        sgi_json_escape(out, sgi_str_of(request->log_level));
        sgi_buf_add_char(out, '"');
    }
    if (request->key.text && request->session->server.idempotency) {
        sgi_buf_add_lit(out, ",\"dev.segue/idempotencyKey\":\"");
        sgi_json_escape(out, sgi_str_of(request->key.text));
        sgi_buf_add_char(out, '"');
        request->key.sent = true;
        sgi_withdrawals_revoke(request->session, request->key.text);
    }
    sgi_cli_write_call_meta(request, out, id);
}

void sgi_request_drop_received_result(segue_request *request)
{
    sgi_fold_free(&request->fold);
    init_fold(request);
}

static void send_call(segue_request *request)
{
    segue_session *session = request->session;
    sgi_json params = request->params;
    sgi_sending sending;
    sgi_json kept;
    sgi_buf extra;
    if (sgi_session_awaits_log_level(session) || sgi_cli_ask_answer_again(request))
        return;
    if (request->task && !sgi_task_handle_check_session(request))
        return;
    if (request->key.needed && !session->server.idempotency) {
        sgi_request_fail(request, SEGUE_E_NOT_RESUMABLE,
                         "the server does not support idempotency keys, so resuming by "
                         "this token would run the call a second time");
        return;
    }
    if (sgi_result_cache_find(request, &kept)) {
        take_clean_result(request, kept, NULL);
        return;
    }
    if (!sgi_request_prepare_log_level(request) || !sgi_cli_prepare_call(request))
        return;
    sgi_emitter *emitter =
        sgi_emitter_begin(session, &sending, sgi_str_of(request->method));
    if (!emitter) {
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory");
        return;
    }
    emitter->request = request;
    emitter->done = call_done;
    sgi_received_part_set_aside(request);
    sgi_cli_offer_dialects(request, emitter);
    sgi_request_drop_received_result(request);
    request->call_id = emitter->id;
    request->call_session = emitter->wire_session;
    /* subscriptions/listen has no time limit: the server answers it only when the
     * subscription ends, perhaps days later. A call that may become no task takes as long
     * as its handler. */
    if (sgi_str_eq(sgi_str_of(request->method), SGI_STR("subscriptions/listen")) ||
        (request->is_call && request->options.no_task))
        emitter->timeout_ms = 0;
    sgi_buf_init(&extra, sgi_engine_mem(request->engine));
    write_extra(request, &extra, emitter->id);
    write_params(request, &sending.w, params);
    bool sent =
        sgi_emitter_send(emitter, &sending, sgi_buf_str(&extra), request->own_meta);
    sgi_buf_free(&extra);
    if (sent) {
        request->calling = emitter;
        request->sent++;
        sgi_request_event_report_sent(request);
    } else {
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory");
    }
}

static void take_result(segue_request *request, sgi_json json, const sgi_json_part *parts)
{
    sgi_result result = sgi_result_of(json, parts);
    if (!json.n) {
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         "the answer of the server is invalid");
    } else if (sgi_result_type_is_round(request, result.type)) {
        /* the answer is a round (it asks questions), even if pieces of the result came
         * before */
        sgi_questions_take_round(request, json);
    } else if (sgi_cli_take_answer(request, &result)) {
        return;
    } else if (sgi_result_is_complete(&result)) {
        if (request->is_call)
            sgi_deliver_remaining_blocks(request, &result);
        sgi_task_handle_note_answer(request, json);
        sgi_request_finish(request, json);
    } else {
        bool is_task = sgi_json_string_is(result.type, SGI_STR("task"));
        sgi_request_fail(
            request, SEGUE_E_PROTOCOL,
            is_task ? "the server answered with a task, but the request did not allow one"
                    : "the answer has an unknown resultType");
    }
}

static void take_clean_result(segue_request *request, sgi_json result,
                              const sgi_json_part *parts)
{
    sgi_buf cleaned;
    sgi_buf_init(&cleaned, sgi_engine_mem(request->engine));
    /* if the result came in pieces, this is only its last piece and not the whole list of
     * tools */
    if (!sgi_cli_has_received_result_part(request))
        sgi_request_store_listed_tools(request, result);
    if (!sgi_tool_list_remove_invalid(request, result, &cleaned))
        take_result(request, result, parts);
    else if (!cleaned.failed)
        take_result(request, sgi_buf_str(&cleaned), NULL);
    else
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the list");
    sgi_buf_free(&cleaned);
}

static void call_done(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    emitter->request->calling = NULL;
    sgi_request_take_outcome(emitter->request, outcome);
}

/* True when the server still knows the call, so that a second message gets the same
 * answer. */
static bool can_repeat(const segue_request *request)
{
    return request->key.sent || sgi_cli_is_resumable(request);
}

/* True when the message of the call that is under way has brought a part of the
 * result. */
static bool has_received(const segue_request *request)
{
    return request->fold.count || sgi_cli_has_received_result_part(request);
}

static void take_loss(segue_request *request, const sgi_outcome *outcome)
{
    sgi_cli_note_exchange_lost(request);
    bool is_unsent = outcome->loss == SGI_LOSS_UNSENT;
    if (is_unsent && request->sent)
        request->sent--;
    if (can_repeat(request) || is_unsent) {
        SGI_RARE(call_sent_again);
        sgi_tries_retry_lost(&request->tries, outcome);
        return;
    }
    sgi_request_fail(request, SEGUE_E_DISCONNECTED,
                     request->session->conn->exchanging && outcome->why
                         ? outcome->why
                         : "the connection was lost before the answer came");
}

static bool has_reason(sgi_json error, sgi_str wanted)
{
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    return sgi_json_string_is(reason, wanted);
}

bool sgi_error_is_server_closing(sgi_json error)
{
    return has_reason(error, SGI_STR(SGI_ENDING_REASON));
}

bool sgi_error_is_unanswered(sgi_json error)
{
    return has_reason(error, SGI_STR(SGI_UNANSWERED_REASON));
}

bool sgi_error_is_restarted(sgi_json error)
{
    return has_reason(error, SGI_STR(SGI_RESTARTED_REASON));
}

bool sgi_error_is_unread_store(sgi_json error)
{
    bool is_unread = has_reason(error, SGI_STR("store_failed")) ||
                     has_reason(error, SGI_STR("out_of_memory"));
    return is_unread && sgi_error_retry_after_ms(error) > 0;
}

/* Handles an error with which a server that is closing has refused the call. Returns true
 * when the call will be sent to another server. A store may have the refusal as the
 * answer for the old idempotency key. If the library made the key, the call gets a new
 * key. If the application knows the key, the key cannot be replaced, and the refusal is
 * the answer of the call. */
static bool take_refusal_of_ending_server(segue_request *request, sgi_json error)
{
    char fresh[SGI_RANDOM_TEXT + 1];
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    if (!sgi_error_is_server_closing(error) ||
        sgi_cli_has_received_result_part(request) || sgi_cli_is_resumable(request) ||
        (request->key.sent && request->key.kept))
        return false;
    if (!request->key.sent)
        return true;
    char *key = sgi_engine_random_text(request->engine, fresh)
                    ? sgi_text_dup(mem, sgi_str_of(fresh))
                    : NULL;
    if (!key)
        return false;
    sgi_text_free(mem, request->key.text);
    request->key.text = key;
    request->key.sent = false;
    return true;
}

void sgi_request_take_outcome(segue_request *request, const sgi_outcome *outcome)
{
    if (request->phase == SGI_PHASE_FOLLOW) {
        request->follower->pushed(request, outcome);
        return;
    }
    switch (outcome->kind) {
    case SGI_OUTCOME_RESULT:
        sgi_result_cache_store(request, outcome->json);
        sgi_request_note_set_log_level(request);
        take_clean_result(request, outcome->json, outcome->parts);
        break;
    case SGI_OUTCOME_ERROR:
        if (can_repeat(request) && outcome->is_gone) {
            take_loss(request,
                      &(sgi_outcome){.kind = SGI_OUTCOME_LOST, .why = SGI_WHY_GONE});
            break;
        }
        if (take_refusal_of_ending_server(request, outcome->json)) {
            take_loss(request, &(sgi_outcome){.kind = SGI_OUTCOME_LOST,
                                              .why = "the server is about to end",
                                              .loss = SGI_LOSS_UNSENT});
            break;
        }
        if (can_repeat(request) && sgi_error_is_unread_store(outcome->json)) {
            sgi_tries_retry_idempotent(&request->tries, outcome);
            break;
        }
        if (sgi_task_handle_get_if_cancel_refused(request, outcome->json))
            break;
        sgi_result_cache_drop_by_error(request, outcome->json);
        sgi_task_handle_note_error(request, outcome->json);
        if (sgi_task_handle_take_unknown(request, outcome->json))
            break;
        if (has_received(request))
            sgi_request_fail_error(request, SEGUE_E_REMOTE, NULL, outcome->json);
        else if (!sgi_request_look_up_tool_headers(request, outcome->json) &&
                 !sgi_cli_retry_in_other_form(request, outcome->json))
            sgi_request_finish_error(request, NULL, outcome->json);
        break;
    case SGI_OUTCOME_TIMEOUT:
        sgi_request_fail(request, SEGUE_E_TIMEOUT, "the server did not answer in time");
        break;
    case SGI_OUTCOME_LOST:
        take_loss(request, outcome);
        break;
    case SGI_OUTCOME_REFUSED:
        sgi_request_fail(request, sgi_outcome_status(outcome), outcome->why);
    }
}

void sgi_request_send_due(segue_request *request)
{
    if (request->phase == SGI_PHASE_WAIT && !request->calling &&
        !sgi_tries_is_waiting(&request->tries) && !sgi_questions_are_open(request))
        send_call(request);
    else if (request->phase == SGI_PHASE_FOLLOW)
        request->follower->due(request);
}
