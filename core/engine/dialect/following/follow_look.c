/* Asks for the state of a polled task by tasks/get. The answer has the task's state, and
 * the task's questions, error or result. sgi_task_get_ops has the functions in which
 * dialects differ. */
#include "engine/dialect/following/follow.h"

static bool is_polled(const segue_request *request)
{
    const sgi_task_get_ops *look = request->follow->look;
    return !look->is_polled || look->is_polled(request);
}

/* ---- tasks/get ---- */

static void warn(segue_request *request, const char *what)
{
    request->engine->warnings++;
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING,
                   "the server sent something invalid, which is ignored: %s", what);
}

static void take_question(segue_request *request, const sgi_json_member *member)
{
    segue_status status = sgi_question_add(request, member);
    if (status == SEGUE_E_PROTOCOL) {
        warn(request, "a question of the task is malformed");
    } else if (status == SEGUE_E_LIMIT) {
        sgi_request_fail_limit(request, SEGUE_E_LIMIT,
                               "the server asks too many questions",
                               (sgi_limit){SGI_LIMIT_MAX_QUESTIONS, SGI_QUESTIONS_MAX});
    } else if (status != SEGUE_OK) {
        /* the list of questions was malformed; tasks/get is sent again after a pause,
         * because the next list may be valid */
        request->follow->look_due = true;
        sgi_tries_back_off(&request->tries, SGI_BACKOFF_FIRST_MS);
    }
}

/* Reads the questions of a task that waits for input (R-2557-13). When the list of
 * questions is malformed, tasks/get is sent again. */
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
    if (!count && sgi_task_state_from_status(sgi_json_get(task, "status")) ==
                      SEGUE_TASK_INPUT_REQUIRED)
        warn(request, "the task waits for answers, but the server sent no question");
}

/* True when the result inside a task is a final result: not another task, and not a round
 * of questions (R-2557-5, R-2557-18). */
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
        sgi_request_fail(
            request, SEGUE_E_PROTOCOL,
            "the server reports the task as completed, but without its result");
        return;
    }
    sgi_result whole = sgi_result_of(result, NULL);
    sgi_deliver_remaining_blocks(request, &whole);
    sgi_request_finish(request, result);
}

static void take_failed(segue_request *request, sgi_json task)
{
    sgi_json error = sgi_json_get(task, "error");
    int64_t code;
    if (sgi_json_read_int(sgi_json_get(error, "code"), &code))
        sgi_request_finish_error(request, NULL, error);
    else
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         "the server reports the task as failed, but without its error");
}

static void take_task(segue_request *request, sgi_json task)
{
    const sgi_task_get_ops *look = request->follow->look;
    sgi_tries_reset(&request->tries);
    sgi_task_note_poll_interval(request, task);
    sgi_cli_note_task(request, task, true);
    if (look->is_overtaken && look->is_overtaken(request, task))
        return;
    sgi_task_note_status(request, task);
    switch (sgi_task_state_from_status(sgi_json_get(task, "status"))) {
    case SEGUE_TASK_COMPLETED:
        if (!look->completed || !look->completed(request))
            take_completed(request, task);
        break;
    case SEGUE_TASK_FAILED:
        take_failed(request, task);
        break;
    case SEGUE_TASK_CANCELLED:
        sgi_follow_end_as_cancelled(request);
        break;
    case SEGUE_TASK_INPUT_REQUIRED:
    case SEGUE_TASK_WORKING:
        take_questions(request, task);
        if (request->phase == SGI_PHASE_FOLLOW && look->goes_on)
            look->goes_on(request);
        if (request->phase != SGI_PHASE_FOLLOW)
            return;
        if (sgi_tries_is_waiting(&request->tries))
            break;
        if (request->follow->look_due)
            /* a notification has reported a newer change of the task, so tasks/get is
             * sent again */
            sgi_follow_send_tasks_get(request);
        else if (is_polled(request))
            sgi_task_poll_later(request);
        break;
    default:
        sgi_request_fail(
            request, SEGUE_E_PROTOCOL,
            "the server reports a task status that the protocol does not have");
    }
}

/* Handles a failed tasks/get. If the task's time to live is over, the client stops
 * asking, because the server will not report the outcome of the task any more
 * (R-2557-43). */
static void take_get_failure(segue_request *request, const sgi_outcome *outcome)
{
    int64_t code = sgi_outcome_error_code(outcome);
    bool is_said =
        outcome->kind == SGI_OUTCOME_ERROR || outcome->kind == SGI_OUTCOME_TIMEOUT;
    if (code == SGI_RPC_INVALID_PARAMS)
        sgi_request_fail_error(request, SEGUE_E_TASK_LOST,
                               sgi_task_unknown_error_text(request), outcome->json);
    else if (sgi_follow_is_missing_method(code))
        sgi_request_fail_error(request, SEGUE_E_PROTOCOL,
                               "the server does not support tasks/get", outcome->json);
    else if (is_said && sgi_task_is_overdue(request))
        sgi_request_fail(
            request, SEGUE_E_TASK_LOST,
            "the ttl of the task is over, and the server does not report its outcome");
    else
        sgi_tries_retry_idempotent(&request->tries, outcome);
}

static void got(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_json type = sgi_json_get(outcome->json, "resultType");
    request->follow->getting = NULL;
    if (request->phase != SGI_PHASE_FOLLOW)
        return;
    const sgi_task_get_ops *look = request->follow->look;
    bool refused = look->came && look->came(request, emitter, outcome);
    bool is_answer = outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n;
    if (!is_answer)
        request->follow->look_due = true;
    if (refused)
        /* the server refused the application's answer, or does not know the task; another
         * tasks/get shows which of the two is true */
        sgi_follow_send_tasks_get_now(request);
    else if (!is_answer)
        take_get_failure(request, outcome);
    else if (sgi_task_description_is_of_another(request, outcome->json))
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         "the answer to tasks/get names another task");
    else if (!type.n || sgi_json_string_is(type, SGI_STR("complete")) ||
             sgi_json_string_is(type, SGI_STR("task")))
        take_task(request, outcome->json);
    else
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         "the answer to tasks/get has an unknown resultType");
}

void sgi_follow_send_tasks_get(segue_request *request)
{
    sgi_sending sending;
    const sgi_task_get_ops *look = request->follow->look;
    request->follow->look_due = true;
    if (request->follow->getting)
        /* The answer to the tasks/get under way may be older than the event that requires
         * a tasks/get. So look_due stays set. */
        return;
    sgi_emitter *emitter = sgi_task_begin_request(request, &sending, "tasks/get", got);
    if (emitter && look->write)
        look->write(request, emitter, &sending.w);
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0})) {
        request->follow->getting = emitter;
        request->follow->look_due = false;
    } else {
        if (emitter && look->unsent)
            look->unsent(request, emitter);
        sgi_tries_back_off(&request->tries, SGI_BACKOFF_FIRST_MS);
    }
}

void sgi_follow_send_tasks_get_now(segue_request *request)
{
    request->follow->look_due = true;
    sgi_tries_stop(&request->tries);
    if (sgi_session_is_open(request->session))
        sgi_follow_send_due(request);
}
