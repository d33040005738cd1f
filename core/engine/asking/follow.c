/* Following a task. The stream brings segments and says when a question is open or the
 * task has ended; tasks/get brings questions, errors and, where the stream could not
 * bring it all, the result. Without a stream, tasks/get is asked every poll interval.
 *
 * The tracker is next_event: events come in order without holes, so a lower number is a
 * repeat and is dropped, a higher one a hole, which is repaired by opening the stream
 * again after the last contiguous event, once (follow_events.c). */
#include "engine/asking/request.h"

static void send_answers(segue_request *request)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions, link) {
        if (!sgi_question_is_due(question))
            continue;
        if (!sgi_follow_is_draft(request)) {
            sgi_follow_answer(request, question);
            continue;
        }
        request->look_due = true; /* it goes with the next look */
        if (!request->tries.failures)
            sgi_tries_stop(&request->tries);
    }
}

void sgi_follow_go(segue_request *request)
{
    if (request->phase != SGI_PHASE_FOLLOW)
        return;
    if (request->cancel_due) {
        sgi_follow_cancel_go(request);
        return;
    }
    if (request->hook_pending || !sgi_follow_settle_birth(request))
        return;
    if (request->task_2025) {
        sgi_follow_2025_go(request);
        return;
    }
    send_answers(request);
    if (request->phase != SGI_PHASE_FOLLOW || request->getting ||
        sgi_tries_wait(&request->tries))
        return;
    sgi_follow_stream_go(request);
    if (request->look_due || sgi_follow_is_polled(request))
        sgi_follow_get(request);
}

void sgi_follow_end(segue_request *request)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions, link) {
        if (question->updating && question->updating != request->getting)
            sgi_emitter_drop(question->updating, false);
        question->updating = NULL;
    }
    if (request->cancelling)
        sgi_emitter_drop(request->cancelling, false);
    request->cancelling = NULL;
    sgi_follow_stream_drop(request);
    if (request->getting)
        sgi_emitter_drop(request->getting, false);
    request->getting = NULL;
    sgi_follow_2025_end(request);
}

/* ---- tasks/get ---- */

static void warn(segue_request *request, const char *what)
{
    request->engine->warnings++;
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING, "the server sent: %s", what);
}

static void take_question(segue_request *request, const sgi_json_member *member)
{
    segue_status status = sgi_question_take(request, member);
    if (status == SEGUE_E_PROTOCOL) {
        warn(request, "a question that is none");
    } else if (status == SEGUE_E_LIMIT) {
        sgi_request_fail_limit(request, SEGUE_E_LIMIT,
                               "the server asks too many questions",
                               (sgi_limit){"max_questions", SGI_QUESTIONS_MAX});
    } else if (status != SEGUE_OK) {
        request->look_due = true; /* it is read again a little later */
        sgi_tries_back_off(&request->tries, SGI_BACKOFF_FIRST_MS);
    }
}

/* Who waits for answers says to what (R-2557-13). A list that is none may be whole when
 * it is asked for again. */
static void take_questions(segue_request *request, sgi_json task)
{
    sgi_json inputs = sgi_json_get(task, "inputRequests");
    sgi_json_member member;
    size_t at = 0, count = 0;
    for (; sgi_json_kind_of(inputs) == SGI_JSON_OBJECT &&
           sgi_json_next_member(inputs, &at, &member);
         count++)
        if (request->phase == SGI_PHASE_FOLLOW)
            take_question(request, &member);
    if (!count &&
        sgi_task_state_of(sgi_json_get(task, "status")) == SEGUE_TASK_INPUT_REQUIRED)
        warn(request, "a task that waits for answers, and no questions");
}

/* What is held in a task is the end of the request, not one more step on the way
 * (R-2557-5, R-2557-18). */
static bool is_whole(sgi_json result)
{
    sgi_json type = sgi_json_get(result, "resultType");
    return sgi_json_kind_of(result) == SGI_JSON_OBJECT &&
           (!type.n || sgi_json_string_is(type, SGI_STR("complete")));
}

static void take_completed(segue_request *request, sgi_json task)
{
    sgi_json result = sgi_json_get(task, "result");
    if (!is_whole(result)) {
        sgi_request_fail(request, SEGUE_E_PROTOCOL, "a completed task without a result");
        return;
    }
    if (request->count == SGI_COUNT_WRONG) /* which were shown, nobody knows */
        sgi_deliver_void(request, request->next_segment - 1);
    sgi_deliver_rest(request, result);
    sgi_request_finish(request, result);
}

static void take_failed(segue_request *request, sgi_json task)
{
    sgi_json error = sgi_json_get(task, "error");
    int64_t code;
    if (sgi_json_int(sgi_json_get(error, "code"), &code))
        sgi_request_finish_error(request, NULL, error);
    else
        sgi_request_fail(request, SEGUE_E_PROTOCOL, "a failed task without its error");
}

/* Older than what a notification of the draft has said: it is looked at again. */
static bool is_overtaken(segue_request *request, sgi_json task)
{
    if (!sgi_follow_is_draft(request) || !sgi_task_is_stale(request, task))
        return false;
    if (request->look_due)
        sgi_follow_get(request);
    else if (!sgi_tries_wait(&request->tries))
        sgi_task_poll_later(request);
    return true;
}

static void take_task(segue_request *request, sgi_json task)
{
    sgi_tries_good(&request->tries);
    sgi_task_note_poll(request, task);
    sgi_task_echo_note(request, task, true);
    if (is_overtaken(request, task))
        return;
    sgi_task_note_status(request, task);
    switch (sgi_task_state_of(sgi_json_get(task, "status"))) {
    case SEGUE_TASK_COMPLETED:
        if (request->streaming && !request->end_seen) {
            /* The stream ends by itself, and tells what was replaced. A server whose
             * stream stays open is asked once more. */
            request->end_seen = request->look_due = true;
            sgi_task_poll_later(request);
        } else {
            take_completed(request, task);
        }
        break;
    case SEGUE_TASK_FAILED:
        take_failed(request, task);
        break;
    case SEGUE_TASK_CANCELLED:
        sgi_follow_cancelled(request);
        break;
    case SEGUE_TASK_INPUT_REQUIRED:
    case SEGUE_TASK_WORKING:
        take_questions(request, task);
        if (request->phase != SGI_PHASE_FOLLOW)
            return;
        if (sgi_tries_wait(&request->tries))
            break;
        if (request->look_due)
            sgi_follow_get(request); /* something was said after this answer was given */
        else if (!request->streaming || sgi_follow_is_polled(request))
            sgi_task_poll_later(request);
        break;
    default:
        sgi_request_fail(request, SEGUE_E_PROTOCOL, "a task with an unknown status");
    }
}

/* A server that has nothing to say of a task whose time is over will have nothing to say
 * of it later (R-2557-43). */
static void take_get_failure(segue_request *request, const sgi_outcome *outcome)
{
    int64_t code = sgi_outcome_code(outcome);
    bool is_said =
        outcome->kind == SGI_OUTCOME_ERROR || outcome->kind == SGI_OUTCOME_TIMEOUT;
    if (code == SGI_RPC_INVALID_PARAMS)
        sgi_request_fail_error(request, SEGUE_E_TASK_LOST, sgi_task_unknown(request),
                               outcome->json);
    else if (sgi_follow_is_unable(code))
        sgi_request_fail_error(request, SEGUE_E_PROTOCOL,
                               "the server cannot be asked for a task", outcome->json);
    else if (is_said && sgi_task_is_overdue(request))
        sgi_request_fail(request, SEGUE_E_TASK_LOST,
                         "the task's time to live is over, and its server does not say "
                         "what became of it");
    else
        sgi_tries_failed(&request->tries, outcome);
}

static void got(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_json type = sgi_json_get(outcome->json, "resultType");
    request->getting = NULL;
    if (request->phase != SGI_PHASE_FOLLOW)
        return;
    bool refused = sgi_follow_draft_got(request, emitter, outcome);
    bool is_answer = outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n;
    if (!is_answer)
        request->look_due = true;
    if (refused)
        sgi_follow_look(request); /* an answer did not fit, or there is no such task */
    else if (!is_answer)
        take_get_failure(request, outcome);
    else if (sgi_task_is_another(request, outcome->json))
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         "the answer to tasks/get is about another task");
    else if (!type.n || sgi_json_string_is(type, SGI_STR("complete")) ||
             sgi_json_string_is(type, SGI_STR("task")))
        take_task(request, outcome->json);
    else
        sgi_request_fail(request, SEGUE_E_PROTOCOL, "an unknown resultType on tasks/get");
}

void sgi_follow_get(segue_request *request)
{
    sgi_sending sending;
    request->look_due = true;
    if (request->getting)
        return; /* its answer may be older than what made this necessary */
    sgi_emitter *emitter = sgi_task_ask(request, &sending, "tasks/get", got);
    if (emitter && sgi_follow_is_draft(request))
        sgi_follow_draft_write(request, emitter, &sending.w);
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0})) {
        request->getting = emitter;
        request->look_due = false;
    } else {
        if (emitter)
            sgi_follow_draft_unsent(request, emitter);
        sgi_tries_back_off(&request->tries, SGI_BACKOFF_FIRST_MS);
    }
}

void sgi_follow_look(segue_request *request)
{
    request->look_due = true;
    sgi_tries_stop(&request->tries);
    if (sgi_session_is_open(request->session))
        sgi_follow_go(request);
}

/* ---- tasks/update ---- */

static sgi_question *question_of(segue_request *request, const sgi_emitter *emitter)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions, link)
        if (question->updating == emitter)
            return question;
    return NULL;
}

static void answered(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_question *question = question_of(request, emitter);
    bool is_taken = outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n;
    question->updating = NULL;
    if (is_taken)
        sgi_question_settle(question);
    if (request->phase != SGI_PHASE_FOLLOW)
        return;
    if (sgi_follow_is_unable(sgi_outcome_code(outcome)))
        sgi_request_fail_error(request, SEGUE_E_PROTOCOL,
                               "the server takes no answers (tasks/update)",
                               outcome->json);
    else if (is_taken || sgi_question_failed(request, question, outcome))
        sgi_follow_look(request); /* what became of the question? */
}

void sgi_follow_answer(segue_request *request, sgi_question *question)
{
    sgi_sending sending;
    if (sgi_follow_is_draft(request)) { /* it goes with the next look */
        sgi_follow_go(request);
        return;
    }
    if (!sgi_question_is_due(question))
        return;
    sgi_emitter *emitter = sgi_task_ask(request, &sending, "tasks/update", answered);
    if (!emitter) {
        sgi_tries_back_off(&question->tries, SGI_BACKOFF_FIRST_MS);
        return;
    }
    sgi_jw_key(&sending.w, "inputResponses");
    sgi_jw_open(&sending.w, '{');
    sgi_jw_key_str(&sending.w, sgi_str_of(question->key));
    sgi_jw_raw(&sending.w, (sgi_str){question->answer, question->answer_len});
    sgi_jw_close(&sending.w, '}');
    if (sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        question->updating = emitter;
    else
        sgi_tries_back_off(&question->tries, SGI_BACKOFF_FIRST_MS);
}
