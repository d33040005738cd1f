/* Following a task of DRAFT-2026-v1 (D, SEP-2557) on the client: the functions in which
 * dialect D differs from other dialects whose tasks are polled (follow_look.c). Answers
 * to the task's questions are sent with tasks/get. If that message is lost, the answers
 * are sent again unchanged, because the server ignores answers that it already has. The
 * answer to tasks/cancel is the task. A notification makes the client send tasks/get, or
 * stop sending it. */
#include "engine/dialect/rows.h"
#include "engine/dialect/following/follow.h"
#include "engine/dialect/following/tasks.h"
#include "engine/dialect/tasks_draft/task_echo.h"

static bool fits(const segue_session *session)
{
    return session->version == SGI_VERSION_DRAFT_2026_V1;
}

static bool may_be_task(const segue_request *request)
{
    return fits(request->session) && request->is_call && request->session->server.tasks;
}

/* True for the resultType that DRAFT-2026-v1 gives an answer that asks questions (a
 * round) (core/docs/requirements.md 2.1). */
static bool is_round(const segue_session *session, sgi_json type)
{
    return fits(session) && sgi_json_string_is(type, SGI_STR("incomplete"));
}

static sgi_json task_in(const segue_session *session, sgi_json result)
{
    return fits(session) ? sgi_answer_task_object(result) : (sgi_json){0};
}

/* Handles the answer to a call. In DRAFT-2026-v1 a new task is in the member "task", and
 * resultType can be missing (R-2557-5). */
static bool answer(segue_request *request, const sgi_result *result)
{
    if (!may_be_task(request))
        return false;
    sgi_json type = result->type;
    if (type.n && !sgi_json_string_is(type, SGI_STR("task")))
        return false;
    sgi_json task = sgi_json_get(result->json, "task");
    if (!type.n && (sgi_json_kind_of(sgi_json_get(task, "taskId")) != SGI_JSON_STRING ||
                    result->content.n))
        return false;
    sgi_follow_begin(request, result->json, result->meta);
    sgi_early_status_apply(request);
    return true;
}

/* ---- answers ---- */

static void write_answers(segue_request *request, sgi_emitter *emitter, sgi_jw *w)
{
    sgi_question *question;
    bool some = false;
    TAILQ_FOREACH(question, &request->questions.list, link) {
        if (!sgi_question_is_due(question))
            continue;
        if (!some) {
            sgi_jw_key(w, "inputResponses");
            sgi_jw_open(w, '{');
        }
        some = true;
        sgi_jw_key_str(w, sgi_str_of(question->key));
        sgi_jw_raw(w, (sgi_str){question->answer, question->answer_len});
        question->updating = emitter;
    }
    if (some)
        sgi_jw_close(w, '}');
}

static void unsent(segue_request *request, const sgi_emitter *emitter)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions.list, link)
        if (question->updating == emitter)
            question->updating = NULL;
}

static bool came(segue_request *request, const sgi_emitter *emitter,
                 const sgi_outcome *outcome)
{
    sgi_question *question;
    bool refused = false;
    TAILQ_FOREACH(question, &request->questions.list, link) {
        if (question->updating != emitter)
            continue;
        question->updating = NULL;
        if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n)
            sgi_question_acknowledge(question);
        else if (sgi_outcome_error_code(outcome) == SGI_RPC_INVALID_PARAMS)
            refused |= sgi_question_on_answer_failed(request, question, outcome);
    }
    return refused;
}

/* ---- notifications ---- */

static bool take_status(segue_request *request, sgi_json task)
{
    int32_t before = request->follow->state;
    sgi_task_request_state_store(request, task, false);
    if (sgi_task_description_is_stale(request, task))
        return true;
    sgi_task_note_poll_interval(request, task);
    sgi_task_note_status(request, task);
    bool wants_look = sgi_task_state_is_terminal(request->follow->state) ||
                      request->follow->state == SEGUE_TASK_INPUT_REQUIRED;
    if (wants_look && request->follow->state != before)
        sgi_follow_send_tasks_get_now(request);
    return true;
}

/* Takes the answer to a tasks/get that was sent after a notification had reported the end
 * of the task. A server that failed may have reported an end that no store has. Then
 * another server continues the task, and its answers count. The reported status stays
 * (R-2557-47). Returns true when the request has failed, because more than max_reconnects
 * answers in a row contradict the end. */
static bool contradicts_too_often(segue_request *request, sgi_json task)
{
    sgi_task_follow *follow = request->follow;
    int32_t state = sgi_task_state_from_status(sgi_json_get(task, "status"));
    if (sgi_task_state_is_terminal(state) ||
        ++follow->contradictions <= request->session->options.max_reconnects)
        return false;
    sgi_request_fail(request, SEGUE_E_PROTOCOL,
                     "the server has reported the end of the task, but tasks/get still "
                     "reports another status");
    return true;
}

/* True when the answer to tasks/get is not used: the request has failed, or the answer is
 * older than a notification. In the second case tasks/get is sent again, now or after the
 * poll interval. */
static bool is_overtaken(segue_request *request, sgi_json task)
{
    sgi_task_follow *follow = request->follow;
    if (!sgi_task_description_is_stale(request, task)) {
        follow->contradictions = 0;
        return false;
    }
    if (sgi_task_state_is_terminal(follow->state) && !follow->look_due)
        return contradicts_too_often(request, task);
    if (follow->look_due)
        sgi_follow_send_tasks_get(request);
    else if (!sgi_tries_is_waiting(&request->tries))
        sgi_task_poll_later(request);
    return true;
}

static const sgi_task_get_ops look = {
    .write = write_answers, .unsent = unsent, .came = came, .is_overtaken = is_overtaken};

/* ---- the dialect's table ---- */

static bool begin(segue_request *request)
{
    request->follow->look = &look;
    return true;
}

/* Sends tasks/get if it is due, or if answers of the application wait to be sent. */
static void due(segue_request *request)
{
    sgi_question *question;
    if (!sgi_follow_send_cancel_or_allow(request))
        return;
    TAILQ_FOREACH(question, &request->questions.list, link) {
        if (!sgi_question_is_due(question))
            continue;
        request->follow->look_due = true;
        if (!request->tries.failures)
            sgi_tries_stop(&request->tries);
    }
    if (!request->follow->getting && !sgi_tries_is_waiting(&request->tries))
        sgi_follow_send_tasks_get(request);
}

static void answered(segue_request *request, sgi_question *question)
{
    (void)question;
    due(request);
}

static bool keeps_call_token(const segue_request *request)
{
    (void)request;
    return true;
}

static void write_token(const segue_request *request, sgi_jw *w)
{
    sgi_json echo = sgi_task_request_state_of(request);
    sgi_follow_write_token(request, w);
    sgi_jw_member_int(w, "d", 2);
    if (echo.n)
        sgi_jw_member_raw(w, "r", echo);
}

static sgi_json echo_of(sgi_json task)
{
    return sgi_json_get(task, "requestState");
}

static const sgi_cli_follow_ops following = {
    .era = SEGUE_ERA_LEGACY,
    .other_session = "the task belongs to DRAFT-2026-v1, which this session does not "
                     "speak: connect with the option for draft tasks",
    .answers_by = "tasks/get with an answer",
    .fits = fits,
    .begin = begin,
    .due = due,
    .answered = answered,
    .status = take_status,
    .task_reported = sgi_follow_on_task_reported,
    .pause = sgi_follow_pause,
    .is_streamed = sgi_follow_returns_false,
    .has_room = sgi_follow_on_room,
    .is_held = sgi_follow_is_held,
    .cancel = sgi_follow_cancel,
    .end = sgi_follow_end,
    .write_token = write_token,
    .keeps_call_token = keeps_call_token,
    .write_about = sgi_task_request_state_write,
    .echo_of = echo_of,
};

static bool read_token(sgi_json token, sgi_request_spec *spec, segue_status *status)
{
    int64_t draft = 0;
    sgi_json_read_int(sgi_json_get(token, "d"), &draft);
    if (draft != 2 || !sgi_follow_read_token(token, spec, status))
        return false;
    spec->follower = &following;
    spec->echo = sgi_json_get(token, "r");
    return true;
}

/* Writes the member requestState, for a request that was made from a task handle. */
static void write_params(const segue_request *request, sgi_jw *w)
{
    if (request->task)
        sgi_task_request_state_write(request, w);
}

static void read_server_capabilities(segue_session *session, sgi_json capabilities)
{
    (void)capabilities;
    session->server.tasks |= fits(session);
}

static bool declares(const segue_session *session)
{
    return session->options.dialects_on & SEGUE_DIALECT_DRAFT_TASKS &&
           !session->options.no_tasks;
}

static const sgi_cli_session_hooks session_hooks = {
    .version = SGI_VERSION_DRAFT_2026_V1,
    .declares = declares,
    .read_server_capabilities = read_server_capabilities,
};

const sgi_cli_dialect sgi_cli_tasks_draft = {
    .name = "tasks of DRAFT-2026-v1",
    .following = &following,
    .session_hooks = &session_hooks,
    .state_size = sizeof(sgi_draft_task),
    .free_state = sgi_task_request_state_free,
    .take_over = sgi_task_request_state_restore,
    .read_token = read_token,
    .write_params = write_params,
    .answer = answer,
    .may_be_task = may_be_task,
    .task_in = task_in,
    .is_round = is_round,
    .note_task = sgi_task_request_state_store,
};
