/* Follows a task of 2025-11-25 (L). Segments (SEP-1905, S) come in one of three ways:
 *   pushed    as further answers to the call, while its exchange lasts. A tasks/get at
 *             each interval shows what pushed answers do not show (R-1905-39).
 *   pulled    by tasks/result with the number up to which no segment is missing. The
 *             client pulls at once when the push breaks, and then at each interval until
 *             an answer says that it is complete.
 *   fetched   not as segments: the client sends tasks/get at each interval until the end,
 *             and then tasks/result without a number. If the interval is long, a
 *             tasks/result also waits for the end (wait_2025.c). The client also fetches
 *             while segment 1 is missing, because there is no number to pull after
 *             (R-1905-32). Only a server of this library may accept 0.
 *
 * tasks/get may report the end of a task before pushed segments arrive. Then the client
 * waits as long as pushed segments come, and pulls the rest. Only after that, the client
 * fetches the result, because a fetched error has no segments. Nothing is pulled while
 * the inbox is full.
 *
 * A segment is pulled when it has been missing for GAP_MS, or at the end. After three
 * pulls without a segment, or when the server does not store segments, the result is
 * fetched (R-1905-60). When all segments have come, the request ends with the merged
 * result. If the task ended with an error that no segment contains, the client first asks
 * the server for the error. */
#include "engine/dialect/rows.h"
#include "base/thresholds.h"
#include "engine/dialect/tasks_2025/follow_2025.h"

#include "engine/client/server_questions.h"

#define GAP_MS SGI_THRESHOLD(gap_ms)

static void look(segue_request *request);

/* ---- the state of a request ---- */

static bool begin(segue_request *request)
{
    segue_session *session = request->session;
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    if (sgi_2025_of(request))
        return true;
    sgi_call_2025 *call = sgi_cli_dialect_state_find_or_new(request, &sgi_cli_tasks_2025);
    sgi_task_2025 *task = call ? sgi_zalloc(mem, sizeof *task) : NULL;
    if (!task)
        return false;
    task->request = request;
    sgi_tracker_init(&task->tracker, mem, session->in_flight.seed,
                     request->numbering.next, (size_t)session->options.max_result_bytes);
    task->voided = request->numbering.voided;
    /* the application got these segments from a call that was not a task yet, or in
     * another process, so the merged result lacks them */
    request->follow->partial |= request->numbering.next > 1;
    sgi_buf_init(&task->kept, mem);
    call->task = task;
    return true;
}

static void drop(segue_request *request, sgi_task_2025 *task)
{
    sgi_engine_clear_timer(request->engine, &task->gap);
    if (task->asking)
        sgi_emitter_drop(task->asking, false);
    task->asking = NULL;
    sgi_2025_result_wait_drop(request, task);
    sgi_buf_free(&task->kept);
    sgi_tracker_free(&task->tracker);
}

static void end(segue_request *request)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_follow_end(request);
    if (task)
        drop(request, task);
}

void sgi_2025_free_task(segue_request *request, sgi_call_2025 *call)
{
    if (!call->task)
        return;
    drop(request, call->task);
    sgi_free(sgi_engine_mem(request->engine), call->task, sizeof *call->task);
    call->task = NULL;
}

/* ---- the next step ---- */

/* Makes a request for the missing segments due (tasks/result with a number). If the
 * client cannot pull, makes a request for the whole result due. */
static void want_rest(sgi_task_2025 *task)
{
    if (sgi_2025_can_pull(task))
        task->pull_due = true;
    else
        task->fetch_due = true;
}

/* Makes the client wait for pushed segments for one more interval. */
static void listen_on(segue_request *request)
{
    /* A full inbox is not read, so segments may still be on the way. The client therefore
     * waits as if segments had come. */
    sgi_2025_of(request)->got_segments = request->delivery.behind;
    sgi_2025_of(request)->backing_off = false;
    sgi_task_poll_later(request);
}

void sgi_2025_back_off(segue_request *request, int64_t at_least_ms)
{
    sgi_2025_of(request)->backing_off = true;
    sgi_tries_back_off(&request->tries, at_least_ms);
}

void sgi_2025_send_due(segue_request *request)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_step due = sgi_2025_next_step(request);
    if (!sgi_tries_is_waiting(&request->tries))
        task->backing_off = false;
    if (due == SGI_STEP_LOOK)
        look(request);
    else if (due == SGI_STEP_LISTEN)
        listen_on(request);
    else if (due == SGI_STEP_FETCH && request->follow->state == SEGUE_TASK_CANCELLED)
        /* the result of a cancelled task contains nothing more, so the result is not
         * fetched */
        sgi_follow_end_as_cancelled(request);
    else if (due == SGI_STEP_FETCH)
        sgi_2025_fetch(request);
    else if (due == SGI_STEP_PULL)
        sgi_2025_pull(request);
    else
        sgi_2025_result_wait_begin(request);
}

static void due(segue_request *request)
{
    if (sgi_follow_send_cancel_or_allow(request))
        sgi_2025_send_due(request);
}

static void answered(segue_request *request, sgi_question *question)
{
    (void)question;
    due(request);
}

static void pause(segue_request *request)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_follow_pause(request);
    if (!task)
        return;
    if (request->calling)
        sgi_emitter_drop(request->calling, false);
    request->calling = NULL;
    task->pull_due = sgi_2025_can_pull(task);
    if (request->follow->state == SEGUE_TASK_CANCELLED)
        /* a cancelled task delivers nothing more, so the request ends at once and does
         * not wait until the application takes more segments */
        sgi_follow_end_as_cancelled(request);
}

/* ---- after each answer ---- */

static void gap_is_old(sgi_timer *timer)
{
    sgi_task_2025 *task = SGI_OWNER(timer, sgi_task_2025, gap);
    if (!sgi_2025_is_live(task->request) || !sgi_tracker_has_hole(&task->tracker))
        return;
    /* when the client cannot pull (sgi_2025_can_pull), the result at the end brings the
     * missing segments */
    if (sgi_2025_can_pull(task))
        task->pull_due = true;
    sgi_2025_send_due(task->request);
}

static void watch_gap(segue_request *request)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    if (!sgi_tracker_has_hole(&task->tracker))
        sgi_engine_clear_timer(request->engine, &task->gap);
    else if (!task->gap.slot)
        sgi_engine_set_timer(request->engine, &task->gap, GAP_MS, gap_is_old);
}

void sgi_2025_end_or_send(segue_request *request)
{
    /* the request has ended, or the client had no memory to follow the task */
    if (!sgi_2025_is_live(request))
        return;
    sgi_task_2025 *task = sgi_2025_of(request);
    if (sgi_fold_size(&request->fold) >
        (size_t)request->session->options.max_result_bytes) {
        sgi_follow_cancel_abandoned_task(request);
        sgi_request_fail_too_large(request);
        return;
    }
    if (sgi_tracker_is_whole(&task->tracker))
        sgi_2025_finish_with_segments(request);
    else if (task->tracker.complete && sgi_tracker_has_hole(&task->tracker))
        want_rest(task);
    if (!sgi_2025_is_live(request))
        return;
    watch_gap(request);
    if (sgi_inbox_is_full(request))
        sgi_deliver_stop_input(request);
    sgi_2025_send_due(request);
}

/* Handles the end of the task. The client requests missing segments before the result,
 * because the result may be an error without segments. */
static void take_ended(segue_request *request)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    bool cancelled = request->follow->state == SEGUE_TASK_CANCELLED;
    bool is_pushed = sgi_2025_segments_can_be_late(request) &&
                     (task->some || request->follow->state != SEGUE_TASK_COMPLETED);
    bool has_begun = is_pushed || sgi_tracker_prefix(&task->tracker) > 0;
    if (sgi_tracker_is_whole(&task->tracker)) {
        sgi_2025_finish_with_segments(request);
        return;
    }
    sgi_2025_stop_asking_for_error(request);
    if (cancelled && (!has_begun || request->follow->paused || request->cancel_due))
        sgi_follow_end_as_cancelled(request);
    else if (is_pushed)
        listen_on(request);
    else
        want_rest(task);
}

bool sgi_2025_can_be_asked(const segue_request *request)
{
    return request->events.on_input &&
           sgi_server_questions_are_declared(request->session);
}

/* True when the client must send tasks/result to get the server's question. Some servers
 * send a question only while a tasks/result waits (2025-11-25 basic/utilities/tasks,
 * "Input Required Status"). No segments come during this wait. So a server that streams
 * first gets time to send the question in another way. */
static bool is_asked_by_result(segue_request *request)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    bool waits = request->follow->state == SEGUE_TASK_INPUT_REQUIRED &&
                 !request->calling && sgi_2025_can_be_asked(request) &&
                 !sgi_server_questions_are_open(request);
    task->unasked = waits ? task->unasked + 1 : 0;
    /* tasks/get is sent at each interval until the question has come */
    task->idle = waits;
    bool may_come = sgi_2025_can_pull(task) || task->waiting;
    return waits && (!may_come || task->unasked > 1);
}

void sgi_2025_act_on_state(segue_request *request)
{
    if (sgi_task_state_is_terminal(request->follow->state)) {
        take_ended(request);
    } else {
        sgi_2025_of(request)->fetch_due |= is_asked_by_result(request);
        /* the task has not ended, so a stored result came too early and is dropped */
        sgi_buf_free(&sgi_2025_of(request)->kept);
        if (!sgi_tries_is_waiting(&request->tries))
            sgi_task_poll_later(request);
    }
    sgi_2025_send_due(request);
}

/* ---- tasks/get ---- */

static void take_look(segue_request *request, sgi_json task)
{
    sgi_tries_reset(&request->tries);
    /* The process that answers tasks/get also pushes the segments. So the answer restarts
     * the time limit of the call. */
    if (request->calling)
        sgi_emitter_note_sign_of_life(request->calling);
    if (sgi_task_description_is_of_another(request, task)) {
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         "the answer to tasks/get names another task");
        return;
    }
    if (sgi_task_state_from_status(sgi_json_get(task, "status")) == SEGUE_TASK_UNKNOWN) {
        sgi_request_fail(
            request, SEGUE_E_PROTOCOL,
            "the server reports a task status that the protocol does not have");
        return;
    }
    sgi_2025_note_state(request, task);
    sgi_2025_act_on_state(request);
}

/* Handles an answer which says that the server does not know the task. If at least one
 * segment has come, the client asks once for the rest (R-1905-41). */
static void take_unknown(segue_request *request, sgi_json error)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    if (!task->some || task->unknown) {
        sgi_request_fail_error(request, SEGUE_E_TASK_LOST,
                               sgi_task_unknown_error_text(request), error);
    } else {
        task->unknown = true;
        sgi_2025_stop_asking_for_error(request);
        want_rest(task);
        sgi_2025_send_due(request);
    }
}

void sgi_2025_try_again(segue_request *request, const sgi_outcome *outcome)
{
    sgi_tries_retry_idempotent(&request->tries, outcome);
    sgi_2025_of(request)->backing_off = sgi_tries_is_waiting(&request->tries);
}

static void take_look_failure(segue_request *request, const sgi_outcome *outcome)
{
    int64_t code = sgi_outcome_error_code(outcome);
    if (code == SGI_RPC_INVALID_PARAMS)
        take_unknown(request, outcome->json);
    else if (sgi_follow_is_missing_method(code))
        sgi_request_fail_error(request, SEGUE_E_PROTOCOL,
                               "the server does not support tasks/get", outcome->json);
    else
        sgi_2025_try_again(request, outcome);
}

static void looked(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    request->follow->getting = NULL;
    if (!sgi_2025_is_live(request))
        return;
    if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n) {
        take_look(request, outcome->json);
        return;
    }
    request->follow->look_due = sgi_2025_of(request)->why == SGI_WHY_LOOK;
    take_look_failure(request, outcome);
}

static void look(segue_request *request)
{
    sgi_sending sending;
    request->follow->look_due = true;
    if (request->follow->getting)
        /* The answer to the tasks/get under way may be older than the event that requires
         * a tasks/get. So look_due stays set. */
        return;
    sgi_emitter *emitter = sgi_task_begin_request(request, &sending, "tasks/get", looked);
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0})) {
        request->follow->getting = emitter;
        request->follow->look_due = false;
    } else {
        sgi_2025_back_off(request, SGI_BACKOFF_FIRST_MS);
    }
}

/* ---- messages that the server sends by itself ---- */

static bool take_status(segue_request *request, sgi_json task)
{
    if (!sgi_2025_of(request))
        return false;
    bool news = !sgi_task_state_is_terminal(request->follow->state);
    if (sgi_task_description_is_stale(request, task))
        return true;
    sgi_task_note_status(request, task);
    if (news && sgi_task_state_is_terminal(request->follow->state))
        sgi_2025_act_on_state(request);
    return true;
}

static void pushed(segue_request *request, const sgi_outcome *outcome)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_2025_response reply;
    bool is_error = outcome->kind == SGI_OUTCOME_ERROR && !outcome->is_gone;
    if (sgi_2025_may_be_cancelled(request, outcome))
        return;
    if (is_error && !sgi_2025_is_refusal(request, outcome->json)) {
        sgi_2025_fail(request, outcome->json);
        return;
    }
    if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n) {
        sgi_2025_response_read(outcome->json, &reply);
        if (reply.kind == SGI_2025_RESPONSE_PLAIN)
            sgi_2025_finish_with_result(request, &reply);
        else
            sgi_2025_take_response(request, &reply, false);
    }
    bool ended = sgi_task_state_is_terminal(request->follow->state);
    if (sgi_2025_is_live(request) && !task->tracker.complete &&
        (ended || sgi_2025_can_pull(task)))
        /* the push has ended early, so the client itself must request the missing
         * segments (R-1905-42) */
        want_rest(task);
    sgi_2025_end_or_send(request);
}

/* ---- the dialect's table ---- */

static bool fits(const segue_session *session)
{
    return session->version == SGI_VERSION_2025_11_25;
}

static bool is_streamed(const segue_request *request)
{
    return sgi_2025_of(request) != NULL;
}

/* Called when the inbox has room. Pulls segments again if the inbox was full, because
 * nothing was pulled meanwhile. */
static void has_room(segue_request *request, bool was_full)
{
    if (!request->follow->paused && was_full && sgi_2025_of(request) &&
        sgi_session_is_open(request->session))
        due(request);
    else
        sgi_follow_on_room(request, was_full);
}

static bool keeps_call_token(const segue_request *request)
{
    return request->session->server.task_calls;
}

static void write_token(const segue_request *request, sgi_jw *w)
{
    sgi_follow_write_token(request, w);
    sgi_jw_member_int(w, "d", 1);
}

const sgi_cli_follow_ops sgi_2025_following = {
    .era = SEGUE_ERA_LEGACY,
    .other_session =
        "the task belongs to revision 2025-11-25, which this session does not "
        "speak: connect with the era \"legacy\"",
    .fits = fits,
    .begin = begin,
    .due = due,
    .answered = answered,
    .pushed = pushed,
    .status = take_status,
    .task_reported = sgi_follow_on_task_reported,
    .pause = pause,
    .is_streamed = is_streamed,
    .has_room = has_room,
    .is_held = sgi_follow_is_held,
    .cancel = sgi_follow_cancel,
    .end = end,
    .write_token = write_token,
    .keeps_call_token = keeps_call_token,
};
