#include "engine/asking/request.h"

#include "engine/asking/ask_http.h"
#include "engine/asking/asked.h"
#include "engine/asking/withdrawal.h"
#include "wire/ending.h"

static void deadline_passed(sgi_timer *timer);
static void call_done(sgi_emitter *emitter, const sgi_outcome *outcome);
static void take_clean_result(segue_request *request, sgi_json result);

/* ---- life ---- */

static void free_request(segue_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    request->handle.magic = SGI_MAGIC_FREED;
    sgi_engine_timer_clear(request->engine, &request->deadline);
    sgi_tries_stop(&request->tries);
    sgi_tries_stop(&request->stream_tries);
    sgi_questions_clear(request);
    sgi_asked_clear(request);
    sgi_text_free(mem, request->method);
    if (request->params)
        sgi_release(mem, request->params, request->params_len + 1);
    sgi_text_free(mem, request->log_level);
    sgi_text_free(mem, request->key);
    sgi_text_free(mem, request->task_id);
    if (request->meta)
        sgi_release(mem, request->meta, request->meta_len + 1);
    sgi_echo_free(&request->echo, mem);
    sgi_follow_2025_free(request);
    sgi_resume_free(request);
    sgi_pieces_free(request);
    sgi_fold_free(&request->fold);
    sgi_buf_free(&request->inbox);
    sgi_buf_free(&request->taken);
    sgi_buf_free(&request->result);
    sgi_error_free(request->error);
    if (request->task)
        sgi_task_handle_unref(request->task);
    segue_session *session = request->session;
    sgi_release(mem, request, sizeof *request);
    sgi_session_unref(session);
}

void sgi_request_ref(segue_request *request)
{
    request->refs++;
}

void sgi_request_unref(segue_request *request)
{
    if (--request->refs == 0)
        free_request(request);
}

static bool copy_spec(segue_request *request, const sgi_request_spec *spec)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    const segue_request_options *options = spec->options;
    sgi_str key = spec->key;
    char fresh[SGI_RANDOM_TEXT + 1];
    if (!key.n && options->idempotency_key)
        key = sgi_str_of(options->idempotency_key);
    request->is_kept = key.n > 0;
    request->needs_key = spec->key.n > 0;
    if (!key.n && request->is_call && !spec->task_id.n && !spec->resume_token.n &&
        !request->session->options.no_idempotency &&
        sgi_engine_random_text(request->engine, fresh))
        key = sgi_str_of(fresh);
    request->options = *options;
    request->options.idempotency_key = NULL;
    request->options.log_level = NULL;
    if (options->log_level &&
        !(request->log_level = sgi_text_dup(mem, sgi_str_of(options->log_level))))
        return false;
    if (key.n && !(request->key = sgi_text_dup(mem, key)))
        return false;
    if (spec->params.n && !(request->params = sgi_text_dup(mem, spec->params)))
        return false;
    request->params_len = spec->params.n;
    if (spec->task_id.n && !(request->task_id = sgi_text_dup(mem, spec->task_id)))
        return false;
    if (!sgi_echo_set(&request->echo, mem, spec->echo))
        return false;
    request->method = sgi_text_dup(mem, spec->method);
    request->tries.method = spec->task_id.n ? "tasks/get" : request->method;
    return request->method && sgi_resume_take(request, spec);
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
    request->credit = spec->options->credit > 0 ? spec->options->credit : -1;
    sgi_tries_init(&request->tries, request, NULL);
    sgi_tries_init(&request->stream_tries, request, "tasks/stream");
    request->poll_ms = 1000;
    request->next_event = request->delivered_event = spec->next_event;
    request->next_segment = spec->next_segment ? spec->next_segment : 1;
    request->delivered_segment = request->next_segment - 1;
    request->void_segments = request->delivered_void = spec->void_segments;
    request->birth = spec->birth;
    request->credentials = session->conn->credentials;
    request->look_due = spec->next_event > 0; /* what was asked before? */
    request->partial =
        spec->next_event > 0 || (spec->birth == SGI_BIRTH_2025 && spec->next_segment > 1);
    request->ready.run = sgi_deliver_run;
    TAILQ_INIT(&request->questions);
    TAILQ_INIT(&request->asked);
    sgi_fold_init(&request->fold, &request->engine->env);
    sgi_buf_init(&request->inbox, mem);
    sgi_buf_init(&request->taken, mem);
    sgi_buf_init(&request->result, mem);
    if (!copy_spec(request, spec)) {
        free_request(request);
        return NULL;
    }
    return request;
}

segue_status sgi_request_new(segue_session *session, const sgi_request_spec *spec,
                             segue_request **out)
{
    if (session->stage == SGI_STAGE_CLOSED)
        return sgi_refuse(session->engine, SEGUE_E_CLOSED, "the session is closed");
    bool stands = !spec->method.n; /* ... beside those that send something */
    bool is_full = stands ? session->standing != NULL
                          : session->request_count >= session->options.max_requests;
    if (is_full && stands)
        return sgi_refuse(session->engine, SEGUE_E_LIMIT,
                          "the session has a request of the method \"\" already");
    if (is_full)
        return sgi_refuse(session->engine, SEGUE_E_LIMIT,
                          "%lld requests are in flight, the max_requests of the session",
                          (long long)session->request_count);
    segue_request *request = make_request(session, spec);
    if (!request)
        return SEGUE_E_NOMEM;
    if (spec->events)
        request->events = *spec->events;
    if (spec->task) {
        request->task = spec->task;
        spec->task->refs++;
    }
    request->refs++; /* the session's list, until on_complete has run */
    TAILQ_INSERT_TAIL(&session->requests, request, link);
    if (stands)
        session->standing = request;
    else
        session->request_count++;
    if (request->options.timeout_ms > 0)
        sgi_engine_timer(session->engine, &request->deadline, request->options.timeout_ms,
                         deadline_passed);
    *out = request;
    if (sgi_session_is_open(session))
        sgi_request_go(request);
    return SEGUE_OK;
}

/* ---- given up ---- */

/* A task is cancelled by its id, not by that of the call that is still answered. */
static void give_up_call(segue_request *request)
{
    sgi_emitter *calling = request->calling;
    if (calling)
        sgi_emitter_drop(calling, request->phase != SGI_PHASE_FOLLOW);
    else if (request->phase == SGI_PHASE_WAIT)
        sgi_emitter_withdraw(request);
    request->calling = NULL;
}

void sgi_request_withdraw(segue_request *request)
{
    if (request->phase == SGI_PHASE_WAIT && request->key_sent && !request->is_kept)
        give_up_call(request);
}

/* The end came first, and the application has yet to be told. What stands before it is
 * not to wait for credit: nobody may be left to give any. */
static segue_status give_up_rest(segue_request *request)
{
    if (request->completed)
        return SEGUE_E_TERMINAL;
    request->given_up = true;
    sgi_deliver_queue(request);
    return SEGUE_OK;
}

segue_status sgi_request_cancel(segue_request *request)
{
    if (request->phase == SGI_PHASE_DONE)
        return give_up_rest(request);
    if (request->phase == SGI_PHASE_FOLLOW) {
        sgi_follow_cancel(request, SEGUE_E_CANCELLED);
        return SEGUE_OK;
    }
    give_up_call(request);
    sgi_request_fail(request, SEGUE_E_CANCELLED, "cancelled");
    return SEGUE_OK;
}

segue_status sgi_request_detach(segue_request *request)
{
    if (!request->completed && !request->task_id && !request->resume_token &&
        !request->key_sent)
        return SEGUE_E_NOT_RESUMABLE;
    if (request->phase == SGI_PHASE_DONE)
        return give_up_rest(request);
    sgi_request_fail(request, SEGUE_E_CLOSED, "detached");
    return SEGUE_OK;
}

static bool is_held(const sgi_emitter *emitter)
{
    return emitter && sgi_ask_is_held(emitter->conn);
}

/* It goes when a user has decided whether there shall be a token. */
static bool waits_for_user(const segue_request *request)
{
    const segue_session *session = request->session;
    return session->user_ms &&
           (!sgi_session_is_open(session) || is_held(request->calling) ||
            is_held(request->streaming) || is_held(request->getting));
}

static void deadline_passed(sgi_timer *timer)
{
    segue_request *request = SGI_OWNER(timer, segue_request, deadline);
    if (waits_for_user(request)) {
        sgi_engine_timer(request->engine, timer, request->options.timeout_ms,
                         deadline_passed);
        return;
    }
    if (request->phase == SGI_PHASE_FOLLOW && request->options.on_timeout &&
        !request->cancel_due) {
        sgi_follow_cancel(request, SEGUE_E_TIMEOUT);
        return;
    }
    give_up_call(request);
    sgi_request_fail(request, SEGUE_E_TIMEOUT,
                     "the request took longer than its timeout");
}

segue_status sgi_request_grant(segue_request *request, int64_t n)
{
    if (request->completed)
        return SEGUE_E_TERMINAL;
    if (n < 1)
        return SEGUE_E_INVALID;
    if (request->credit >= 0) {
        request->credit =
            n > INT64_MAX - request->credit ? INT64_MAX : request->credit + n;
        sgi_deliver_queue(request);
    }
    return SEGUE_OK;
}

segue_status sgi_request_answer(segue_request *request, const char *key, sgi_json answer)
{
    if (request->phase == SGI_PHASE_DONE)
        return sgi_request_unasked(request);
    segue_status status = sgi_asked_answer(request, key, answer);
    if (status != SEGUE_E_NOT_FOUND)
        return status;
    sgi_question *question = sgi_question_find(request, key);
    if (!question)
        return SEGUE_E_NOT_FOUND;
    status = sgi_question_answer(request, question, answer);
    if (status != SEGUE_OK)
        return status;
    if (!sgi_session_is_open(request->session))
        return SEGUE_OK; /* it goes out when it is */
    if (request->phase == SGI_PHASE_FOLLOW)
        sgi_follow_answer(request, question);
    else
        sgi_request_go(request);
    return SEGUE_OK;
}

/* ---- the exchange of the request itself ---- */

/* params without _meta, which is written with the rest of the meta. */
static void write_params(const segue_request *request, sgi_jw *w, sgi_json params)
{
    sgi_json_member member;
    for (size_t at = 0; params.n && sgi_json_next_member(params, &at, &member);) {
        if (sgi_json_key_is(&member, "_meta") || sgi_questions_own(request, &member))
            continue;
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, member.value);
    }
    if (request->rounds)
        sgi_questions_write(request, w);
    if (request->task)
        sgi_task_echo_write(request, w);
    sgi_task_calls_write(request, w);
}

/* Members of _meta that this request needs, each preceded by a comma. */
static void write_extra(segue_request *request, sgi_buf *out, int64_t id)
{
    bool modern = sgi_version_is_modern(request->session->version);
    if (request->events.on_progress) {
        sgi_buf_add_lit(out, ",\"progressToken\":");
        sgi_buf_add_int(out, id);
    }
    if (request->log_level && modern) {
        sgi_buf_add_lit(out, ",\"io.modelcontextprotocol/logLevel\":\"");
        sgi_json_escape(out, sgi_str_of(request->log_level));
        sgi_buf_add_char(out, '"');
    }
    if (request->key && request->session->has_idempotency) {
        sgi_buf_add_lit(out, ",\"dev.segue/idempotencyKey\":\"");
        sgi_json_escape(out, sgi_str_of(request->key));
        sgi_buf_add_char(out, '"');
        request->key_sent = true;
        sgi_withdrawals_revoke(request->session, request->key);
    }
    sgi_pieces_write_extra(request, out, id);
}

static void send_call(segue_request *request)
{
    segue_session *session = request->session;
    sgi_json params = {request->params, request->params_len};
    sgi_sending sending;
    sgi_json kept;
    sgi_buf extra;
    request->waits_for_tools = false;
    if (request->resume_token) {
        sgi_resume_send(request);
        return;
    }
    if (request->task && !sgi_task_handle_fits(request))
        return;
    if (request->needs_key && !session->has_idempotency) {
        sgi_request_fail(request, SEGUE_E_NOT_RESUMABLE,
                         "the server knows no idempotency keys: with this token the call "
                         "would run a second time");
        return;
    }
    if (sgi_cache_find(request, &kept)) {
        take_clean_result(request, kept);
        return;
    }
    if (!sgi_log_wish_prepare(request) || !sgi_task_calls_prepare(request))
        return;
    sgi_emitter *emitter =
        sgi_emitter_begin(session, &sending, sgi_str_of(request->method));
    if (!emitter) {
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory");
        return;
    }
    emitter->request = request;
    emitter->done = call_done;
    emitter->more = request->may_stream ? sgi_follow_2025_more : NULL;
    sgi_pieces_prepare(request, emitter);
    request->call_id = emitter->id;
    if (sgi_str_eq(sgi_str_of(request->method), SGI_STR("subscriptions/listen")))
        emitter->timeout_ms = 0; /* its answer is its end, which may be days away */
    sgi_buf_init(&extra, sgi_engine_mem(request->engine));
    write_extra(request, &extra, emitter->id);
    write_params(request, &sending.w, params);
    bool sent = sgi_emitter_send(emitter, &sending, sgi_buf_str(&extra),
                                 sgi_json_get(params, "_meta"));
    sgi_buf_free(&extra);
    if (sent)
        request->calling = emitter;
    else
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory");
}

static bool is_complete(sgi_json result)
{
    sgi_json type = sgi_json_get(result, "resultType");
    return !type.n || sgi_json_string_is(type, SGI_STR("complete"));
}

static void take_result(segue_request *request, sgi_json result)
{
    sgi_json type = sgi_json_get(result, "resultType");
    bool is_task = sgi_json_string_is(type, SGI_STR("task"));
    if (!result.n) {
        sgi_request_fail(request, SEGUE_E_PROTOCOL, "the answer is malformed");
    } else if (request->session->version == SGI_VERSION_2025_11_25 &&
               sgi_follow_2025_answer(request, result)) {
        return; /* a task, or nothing that a request could be answered with */
    } else if (sgi_follow_draft_answer(request, result)) {
        return;
    } else if (request->merge || sgi_resume_lacks(request, result)) {
        sgi_pieces_finish(request, result);
    } else if (is_complete(result)) {
        if (request->is_call)
            sgi_deliver_rest(request, result);
        sgi_task_handle_note(request, result);
        sgi_request_finish(request, result);
    } else if (is_task && request->is_call && request->session->has_tasks) {
        sgi_follow_begin(request, result, sgi_json_get(result, "_meta"));
    } else if (is_task && sgi_task_is_asked(request)) {
        sgi_task_handle_note(request, result);
        sgi_request_finish(request, result);
    } else if (sgi_questions_is_round(request, type)) {
        sgi_questions_round(request, result);
    } else {
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         is_task ? "a task in answer to a request that cannot be one"
                                 : "an unknown resultType");
    }
}

static void take_clean_result(segue_request *request, sgi_json result)
{
    sgi_buf cleaned;
    sgi_buf_init(&cleaned, sgi_engine_mem(request->engine));
    if (!sgi_tool_lookup_clean(request, result, &cleaned))
        take_result(request, result);
    else if (!cleaned.failed)
        take_result(request, sgi_buf_str(&cleaned));
    else
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the list");
    sgi_buf_free(&cleaned);
}

static void call_done(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    emitter->request->calling = NULL;
    sgi_request_take(emitter->request, outcome);
}

static void take_loss(segue_request *request, const sgi_outcome *outcome)
{
    if (request->resume_token)
        sgi_resume_lost(request);
    if (request->key_sent || request->resume_token || outcome->unsent)
        sgi_tries_cut_off(&request->tries, outcome);
    else
        sgi_request_fail(request,
                         request->merge || request->fold.count ? SEGUE_E_INCOMPLETE
                                                               : SEGUE_E_DISCONNECTED,
                         request->session->conn->exchanging && outcome->why
                             ? outcome->why
                             : "the connection broke before the answer came");
}

bool sgi_error_is_ending(sgi_json error)
{
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    return sgi_json_string_is(reason, SGI_STR(SGI_ENDING_REASON));
}

/* A server that is about to end has not begun the call: it goes to the next one. With a
 * key of its own it goes as another call, since a store may keep the refusal as the
 * answer to the first. A key that somebody else knows stays, and so does its answer. */
static bool is_turned_away(segue_request *request, sgi_json error)
{
    char fresh[SGI_RANDOM_TEXT + 1];
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    if (!sgi_error_is_ending(error) || request->merge || request->resume_token ||
        (request->key_sent && request->is_kept))
        return false;
    if (!request->key_sent)
        return true;
    char *key = sgi_engine_random_text(request->engine, fresh)
                    ? sgi_text_dup(mem, sgi_str_of(fresh))
                    : NULL;
    if (!key)
        return false;
    sgi_text_free(mem, request->key);
    request->key = key;
    request->key_sent = false;
    return true;
}

void sgi_request_take(segue_request *request, const sgi_outcome *outcome)
{
    if (request->phase == SGI_PHASE_FOLLOW) {
        sgi_follow_2025_pushed(request, outcome);
        return;
    }
    switch (outcome->kind) {
    case SGI_OUTCOME_RESULT:
        sgi_cache_keep(request, outcome->json);
        sgi_log_wish_note(request);
        take_clean_result(request, outcome->json);
        break;
    case SGI_OUTCOME_ERROR:
        if ((request->key_sent || request->resume_token) &&
            sgi_error_is_gone(outcome->json)) {
            take_loss(request,
                      &(sgi_outcome){.kind = SGI_OUTCOME_LOST, .why = SGI_WHY_GONE});
            break;
        }
        if (is_turned_away(request, outcome->json)) {
            take_loss(request, &(sgi_outcome){.kind = SGI_OUTCOME_LOST,
                                              .why = "the server is about to end",
                                              .unsent = true});
            break;
        }
        if (sgi_task_handle_looks(request, outcome->json))
            break;
        sgi_cache_refused(request, outcome->json);
        sgi_task_handle_refused(request, outcome->json);
        if (request->merge || request->fold.count)
            sgi_request_fail_error(request, SEGUE_E_REMOTE, NULL, outcome->json);
        else if (!sgi_tool_lookup(request, outcome->json) &&
                 !sgi_task_calls_reform(request, outcome->json))
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

void sgi_request_go(segue_request *request)
{
    if (request->phase == SGI_PHASE_WAIT && !request->calling &&
        !sgi_tries_wait(&request->tries) && !sgi_questions_are_open(request))
        send_call(request);
    else if (request->phase == SGI_PHASE_FOLLOW)
        sgi_follow_go(request);
}
