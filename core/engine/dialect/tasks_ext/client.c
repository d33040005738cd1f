/* Tasks of 2026-07-28 (X, SEP-2663) on the client. The event stream (E) brings segments,
 * and reports open questions and the end of the task. tasks/get brings questions and
 * errors, and also the result if the stream is incomplete. Without a stream, tasks/get is
 * sent at each poll interval. Answers to questions are sent one by one, by
 * tasks/update. */
#include "engine/dialect/rows.h"
#include "engine/dialect/following/follow.h"
#include "engine/dialect/following/tasks.h"
#include "engine/dialect/task_events/stream.h"

#define META "io.modelcontextprotocol/"

/* ---- answers to questions ---- */

static sgi_question *question_of(segue_request *request, const sgi_emitter *emitter)
{
    sgi_question *question;
    TAILQ_FOREACH(question, &request->questions.list, link)
        if (question->updating == emitter)
            return question;
    return NULL;
}

static void updated(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_question *question = question_of(request, emitter);
    bool is_taken = outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n;
    question->updating = NULL;
    if (is_taken)
        sgi_question_acknowledge(question);
    if (request->phase != SGI_PHASE_FOLLOW)
        return;
    if (sgi_follow_is_missing_method(sgi_outcome_error_code(outcome)))
        sgi_request_fail_error(request, SEGUE_E_PROTOCOL,
                               "the server does not support tasks/update, so the "
                               "question of the task cannot be answered",
                               outcome->json);
    else if (is_taken || sgi_question_on_answer_failed(request, question, outcome))
        /* the server has accepted or refused the answer; tasks/get shows whether the
         * question is still open */
        sgi_follow_send_tasks_get_now(request);
}

static void answer_question(segue_request *request, sgi_question *question)
{
    sgi_sending sending;
    if (!sgi_question_is_due(question))
        return;
    sgi_emitter *emitter =
        sgi_task_begin_request(request, &sending, "tasks/update", updated);
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

static void due(segue_request *request)
{
    sgi_question *question;
    if (!sgi_follow_send_cancel_or_allow(request))
        return;
    TAILQ_FOREACH(question, &request->questions.list, link)
        answer_question(request, question);
    if (request->phase != SGI_PHASE_FOLLOW || request->follow->getting)
        return;
    bool waits = sgi_tries_is_waiting(&request->tries);
    if (waits && request->tries.failures)
        return; /* nothing is sent until the pause after the lost exchange is over */
    sgi_task_stream_open_if_due(request);
    if (waits)
        return;
    if (request->follow->look_due || sgi_task_stream_needs_polling(request))
        sgi_follow_send_tasks_get(request);
}

/* Called when a task with a stream is completed. The server then normally ends the
 * stream, and the end reports replaced segments. If the stream stays open instead, the
 * client sends tasks/get once more. */
static bool completed(segue_request *request)
{
    sgi_task_stream *stream = sgi_task_stream_of(request);
    if (stream->emitter && !stream->end_seen) {
        stream->end_seen = request->follow->look_due = true;
        sgi_task_poll_later(request);
        return true;
    }
    /* the delivered segments have unreliable numbers, so all of them are made void */
    if (stream->numbering == SGI_NUMBERS_WRONG)
        sgi_deliver_void_segments(request, request->numbering.next - 1);
    return false;
}

static bool is_polled(const segue_request *request)
{
    return !sgi_task_stream_emitter(request) || sgi_task_stream_needs_polling(request);
}

static const sgi_task_get_ops look = {.completed = completed,
                                      .goes_on = sgi_task_stream_open_if_due,
                                      .is_polled = is_polled};

/* ---- the dialect's table ---- */

static bool fits(const segue_session *session)
{
    return session->version != SGI_VERSION_2025_11_25 &&
           session->version != SGI_VERSION_DRAFT_2026_V1;
}

static bool begin(segue_request *request)
{
    request->follow->look = &look;
    return sgi_task_stream_new(request);
}

static void pause(segue_request *request)
{
    sgi_follow_pause(request);
    sgi_task_stream_drop(request);
}

static bool is_streamed(const segue_request *request)
{
    return sgi_task_stream_emitter(request) != NULL;
}

static void end(segue_request *request)
{
    sgi_task_stream_end(request);
    sgi_follow_end(request);
}

/* The event of a question can be in front of the segment behind which the stream is
 * resumed. So the token says that there are questions. */
static void write_token(const segue_request *request, sgi_jw *w)
{
    const sgi_task_stream *stream = sgi_task_stream_of(request);
    sgi_follow_write_token(request, w);
    if (stream && stream->asks)
        sgi_jw_member_int(w, "q", 1);
}

static const sgi_cli_follow_ops following = {
    .era = SEGUE_ERA_MODERN,
    .other_session =
        "the task belongs to revision 2026-07-28, which this session does not "
        "speak: connect with the era \"modern\"",
    .answers_by = "tasks/update",
    .fits = fits,
    .begin = begin,
    .due = due,
    .answered = answer_question,
    .task_reported = sgi_follow_on_task_reported,
    .pause = pause,
    .is_streamed = is_streamed,
    .has_room = sgi_follow_on_room,
    .streaming = sgi_task_stream_emitter,
    .is_held = sgi_follow_is_held,
    .cancel = sgi_follow_cancel,
    .end = end,
    .write_token = write_token,
    .keeps_call_token = sgi_follow_returns_false,
};

static bool read_token(sgi_json token, sgi_request_spec *spec, segue_status *status)
{
    if (!sgi_follow_read_token(token, spec, status))
        return false;
    spec->asks = sgi_json_get(token, "q").n > 0;
    spec->follower = &following;
    return true;
}

static void read_server_capabilities(segue_session *session, sgi_json capabilities)
{
    sgi_json extensions = sgi_json_get(capabilities, "extensions");
    sgi_json tasks = sgi_json_get(extensions, META "tasks");
    session->server.tasks |= sgi_facts(session->version)->has_extensions &&
                             !session->options.no_tasks &&
                             sgi_json_kind_of(tasks) == SGI_JSON_OBJECT;
}

static bool may_be_task(const segue_request *request)
{
    return fits(request->session) && request->is_call && request->session->server.tasks;
}

static sgi_json task_in(const segue_session *session, sgi_json result)
{
    return fits(session) ? sgi_answer_task_object(result) : (sgi_json){0};
}

static bool answer(segue_request *request, const sgi_result *result)
{
    if (!request->is_call || !request->session->server.tasks ||
        !sgi_json_string_is(result->type, SGI_STR("task")))
        return false;
    sgi_follow_begin(request, result->json, result->meta);
    return true;
}

static const sgi_cli_session_hooks session_hooks = {.read_server_capabilities =
                                                        read_server_capabilities};

const sgi_cli_dialect sgi_cli_tasks_ext = {
    .name = "tasks of 2026-07-28",
    .following = &following,
    .session_hooks = &session_hooks,
    .read_token = read_token,
    .answer = answer,
    .may_be_task = may_be_task,
    .task_in = task_in,
};
