/* Following a task of 2025-11-25. Segments (SEP-1905) are pushed as further answers to
 * the call, as long as its exchange lasts; are pulled by tasks/result with the number of
 * the last one that nothing is missing before; or never come, and the result is fetched
 * in one piece by tasks/result without a number, which waits for the end.
 *
 *     pushed   tasks/get at each poll interval tells what the push does not (R-1905-39)
 *     broken   a pull at once, then at each interval, until it says that it is complete
 *     plain    tasks/get at each interval until the end; then it is fetched. Where the
 *              interval is long it is waited for beside that (wait_2025.c). So also
 *              while segment 1 is missing: there is no number to pull after
 *              (R-1905-32), but for a server of this library that says it takes 0
 *
 * A task that has ended is listened to as long as its push brings something, if that may
 * come later than what is said of it; then what is left is pulled, and only then its end
 * is fetched, which for an error holds no segments. No more is pulled while the inbox is
 * full.
 *
 * A hole is pulled when it is older than GAP_MS, or at the end; three pulls that bring
 * nothing, or a server that retains no segments, leave the fetch (R-1905-60). When all
 * segments have come the request ends with their merge; when they ended with an error
 * that has no segment of its own, the task is asked why first. */
#include "engine/asking/follow_2025.h"

#include "engine/asking/asked.h"

#define GAP_MS 500
#define TRIES_MAX 3

static void look(segue_request *request);
static void fetch(segue_request *request);
static void ask_result(segue_request *request, bool is_fetch);

/* ---- life ---- */

bool sgi_follow_2025_begin(segue_request *request)
{
    segue_session *session = request->session;
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    sgi_task_2025 *task = sgi_zalloc(mem, sizeof *task);
    if (!task)
        return false;
    task->request = request;
    sgi_tracker_init(&task->tracker, mem, session->in_flight.seed, request->next_segment,
                     (size_t)session->options.max_result_bytes);
    task->voided = request->void_segments;
    sgi_buf_init(&task->kept, mem);
    request->task_2025 = task;
    return true;
}

void sgi_follow_2025_end(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    if (!task)
        return;
    sgi_engine_timer_clear(request->engine, &task->gap);
    if (task->asking)
        sgi_emitter_drop(task->asking, false);
    task->asking = NULL;
    sgi_2025_wait_drop(request);
    sgi_buf_free(&task->kept);
    sgi_tracker_free(&task->tracker);
}

void sgi_follow_2025_free(segue_request *request)
{
    sgi_follow_2025_end(request);
    sgi_release(sgi_engine_mem(request->engine), request->task_2025,
                sizeof *request->task_2025);
    request->task_2025 = NULL;
}

/* ---- what is due ---- */

/* Asks for what is missing; for all of it where pulling is of no use. */
static void want_rest(sgi_task_2025 *task)
{
    if (sgi_2025_can_pull(task))
        task->pull_due = true;
    else
        task->fetch_due = true;
}

/* For one interval more to what is pushed. */
static void listen_on(segue_request *request)
{
    request->task_2025->heard = request->behind; /* then it cannot be heard */
    request->task_2025->backing_off = false;
    sgi_task_poll_later(request);
}

static void back_off(segue_request *request, int64_t at_least_ms)
{
    request->task_2025->backing_off = true;
    sgi_tries_back_off(&request->tries, at_least_ms);
}

void sgi_follow_2025_go(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    sgi_step due = sgi_2025_next(request);
    if (!sgi_tries_wait(&request->tries))
        task->backing_off = false;
    if (due == SGI_STEP_LOOK)
        look(request);
    else if (due == SGI_STEP_LISTEN)
        listen_on(request);
    else if (due == SGI_STEP_FETCH && request->state == SEGUE_TASK_CANCELLED)
        sgi_follow_cancelled(request); /* the whole would say no more than that */
    else if (due == SGI_STEP_FETCH)
        fetch(request);
    else if (due == SGI_STEP_PULL)
        ask_result(request, false);
    else
        sgi_2025_wait_go(request);
}

void sgi_follow_2025_pause(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    if (request->calling)
        sgi_emitter_drop(request->calling, false);
    request->calling = NULL;
    task->pull_due = sgi_2025_can_pull(task);
    if (request->state == SEGUE_TASK_CANCELLED)
        sgi_follow_cancelled(request); /* that does not wait for credit */
}

/* ---- after each answer ---- */

static void gap_is_old(sgi_timer *timer)
{
    sgi_task_2025 *task = SGI_OWNER(timer, sgi_task_2025, gap);
    if (!sgi_2025_is_live(task->request) || !sgi_tracker_has_hole(&task->tracker))
        return;
    if (sgi_2025_can_pull(task)) /* else it stays until the end */
        task->pull_due = true;
    sgi_follow_2025_go(task->request);
}

static void watch_gap(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    if (!sgi_tracker_has_hole(&task->tracker))
        sgi_engine_timer_clear(request->engine, &task->gap);
    else if (!task->gap.slot)
        sgi_engine_timer(request->engine, &task->gap, GAP_MS, gap_is_old);
}

void sgi_2025_settle(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    if (!sgi_2025_is_live(request))
        return;
    if (sgi_fold_size(&request->fold) >
        (size_t)request->session->options.max_result_bytes) {
        sgi_follow_abandon(request);
        sgi_request_fail_size(request);
        return;
    }
    if (sgi_tracker_is_whole(&task->tracker))
        sgi_2025_conclude(request);
    else if (task->tracker.complete && sgi_tracker_has_hole(&task->tracker))
        want_rest(task);
    if (!sgi_2025_is_live(request))
        return;
    watch_gap(request);
    if (sgi_deliver_is_full(request))
        sgi_deliver_hold(request);
    sgi_follow_2025_go(request);
}

/* What it has left in segments comes before its end, which may be an error alone. */
static void take_ended(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    bool cancelled = request->state == SEGUE_TASK_CANCELLED;
    bool is_pushed = sgi_2025_is_overtaken(request) &&
                     (task->some || request->state != SEGUE_TASK_COMPLETED);
    bool has_begun = is_pushed || sgi_tracker_prefix(&task->tracker) > 0;
    if (sgi_tracker_is_whole(&task->tracker)) {
        sgi_2025_conclude(request);
        return;
    }
    sgi_2025_drop_why(request);
    if (cancelled && (!has_begun || request->paused || request->cancel_due))
        sgi_follow_cancelled(request);
    else if (is_pushed)
        listen_on(request);
    else
        want_rest(task);
}

static bool can_be_asked(const segue_request *request)
{
    return request->events.on_input && sgi_asked_may_come(request->session);
}

/* Some servers ask what they have to ask while tasks/result waits (2025-11-25
 * basic/utilities/tasks, "Input Required Status"). No segments come meanwhile: so one
 * that streams has time to ask in another way. */
static bool is_asked_by_result(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    bool waits = request->state == SEGUE_TASK_INPUT_REQUIRED && !request->calling &&
                 can_be_asked(request) && !sgi_asked_is_open(request);
    task->unasked = waits ? task->unasked + 1 : 0;
    task->idle = waits; /* it is looked at until that is settled */
    bool may_come = sgi_2025_can_pull(task) || task->waiting;
    return waits && (!may_come || task->unasked > 1);
}

void sgi_2025_heed_state(segue_request *request)
{
    if (sgi_task_state_is_terminal(request->state)) {
        take_ended(request);
    } else {
        request->task_2025->fetch_due |= is_asked_by_result(request);
        sgi_buf_free(&request->task_2025->kept); /* it was said too soon */
        if (!sgi_tries_wait(&request->tries))
            sgi_task_poll_later(request);
    }
    sgi_follow_2025_go(request);
}

/* ---- tasks/get ---- */

static void take_look(segue_request *request, sgi_json task)
{
    sgi_tries_good(&request->tries);
    if (request->calling)
        sgi_emitter_touch(request->calling); /* who answers this also pushes */
    if (sgi_task_is_another(request, task)) {
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         "the answer to tasks/get is about another task");
        return;
    }
    if (sgi_task_state_of(sgi_json_get(task, "status")) == SEGUE_TASK_UNKNOWN) {
        sgi_request_fail(request, SEGUE_E_PROTOCOL, "a task with an unknown status");
        return;
    }
    sgi_2025_note(request, task);
    sgi_2025_heed_state(request);
}

/* The server does not know the task: a stream is incomplete then, and what is left of it
 * is asked for once (R-1905-41). */
static void take_unknown(segue_request *request, sgi_json error)
{
    sgi_task_2025 *task = request->task_2025;
    if (!task->some) {
        sgi_request_fail_error(request, SEGUE_E_TASK_LOST, sgi_task_unknown(request),
                               error);
    } else if (task->unknown) {
        sgi_request_fail(request, SEGUE_E_INCOMPLETE, sgi_task_unknown(request));
    } else {
        task->unknown = true;
        sgi_2025_drop_why(request);
        want_rest(task);
        sgi_follow_2025_go(request);
    }
}

static void try_again(segue_request *request, const sgi_outcome *outcome)
{
    sgi_tries_failed(&request->tries, outcome);
    request->task_2025->backing_off = sgi_tries_wait(&request->tries);
}

static void take_look_failure(segue_request *request, const sgi_outcome *outcome)
{
    int64_t code = sgi_outcome_code(outcome);
    if (code == SGI_RPC_INVALID_PARAMS)
        take_unknown(request, outcome->json);
    else if (sgi_follow_is_unable(code))
        sgi_request_fail_error(request, SEGUE_E_PROTOCOL,
                               "the server cannot be asked for a task", outcome->json);
    else
        try_again(request, outcome);
}

static void looked(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    request->getting = NULL;
    if (!sgi_2025_is_live(request))
        return;
    if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n) {
        take_look(request, outcome->json);
        return;
    }
    request->look_due = request->task_2025->why == SGI_WHY_LOOK;
    take_look_failure(request, outcome);
}

static void look(segue_request *request)
{
    sgi_sending sending;
    request->look_due = true;
    if (request->getting)
        return; /* its answer may be older than what made this necessary */
    sgi_emitter *emitter = sgi_task_ask(request, &sending, "tasks/get", looked);
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0})) {
        request->getting = emitter;
        request->look_due = false;
    } else {
        back_off(request, SGI_BACKOFF_FIRST_MS);
    }
}

/* ---- tasks/result ---- */

/* Pulling is of no use any more. */
static void stop_pulling(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    task->no_pull = true;
    task->pull_due = false;
    if (task->tracker.complete || sgi_task_state_is_terminal(request->state))
        task->fetch_due = true;
}

static void take_pulled(segue_request *request, const sgi_response *reply)
{
    sgi_task_2025 *task = request->task_2025;
    bool ended = sgi_task_state_is_terminal(request->state);
    sgi_2025_take(request, reply, true);
    if (!sgi_2025_is_live(request))
        return;
    bool is_whole = sgi_tracker_is_whole(&task->tracker);
    if (task->unknown && (!is_whole || task->why == SGI_WHY_LOOK)) {
        sgi_request_fail(request, SEGUE_E_INCOMPLETE, "the task has ended unfinished");
        return;
    }
    if (sgi_tracker_prefix(&task->tracker) > task->after)
        task->tries = 0;
    else if (!is_whole && (ended || sgi_tracker_has_hole(&task->tracker)))
        task->tries++;
    task->idle =
        sgi_tracker_prefix(&task->tracker) == task->after && can_be_asked(request);
    if (task->tries >= TRIES_MAX)
        stop_pulling(request);
    else if (!task->tracker.complete && ended)
        task->pull_due = true;
    if (!task->tracker.complete && !sgi_tries_wait(&request->tries))
        sgi_task_poll_later(request);
    sgi_2025_settle(request);
}

static void take_fetched(segue_request *request, const sgi_response *reply)
{
    sgi_task_2025 *task = request->task_2025;
    if (reply->kind == SGI_RESPONSE_PLAIN) {
        sgi_2025_finish(request, reply);
        return;
    }
    sgi_2025_take(request, reply, true);
    sgi_2025_drop_why(request); /* this is the answer to that */
    if (sgi_2025_is_live(request) && !sgi_tracker_is_whole(&task->tracker))
        sgi_request_fail(request, task->some ? SEGUE_E_INCOMPLETE : SEGUE_E_PROTOCOL,
                         "an answer to tasks/result that is no result");
    sgi_2025_settle(request);
}

static void take_pull_error(segue_request *request, sgi_json error)
{
    sgi_task_2025 *task = request->task_2025;
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    int64_t wait = sgi_task_retry_after(error);
    int64_t code = 0;
    sgi_json_int(sgi_json_get(error, "code"), &code);
    if (wait > 0) {
        task->pull_due = true;
        back_off(request, wait);
    } else if (task->unknown || request->state == SEGUE_TASK_CANCELLED) {
        sgi_2025_fail(request, error);
    } else if (code == SGI_RPC_METHOD_NOT_FOUND) {
        sgi_request_fail_error(request, SEGUE_E_PROTOCOL,
                               "the server cannot be asked for a task's result", error);
    } else if (code == SGI_RPC_INVALID_PARAMS) {
        stop_pulling(request);
        request->look_due = true; /* is it the number that it refuses, or the task? */
    } else if (sgi_json_string_is(reason, SGI_STR("segments_gone")) ||
               (!task->after &&
                request->state == SEGUE_TASK_FAILED) || /* its own error */
               ++task->tries >= TRIES_MAX) {
        stop_pulling(request);
    } else {
        task->pull_due = true;
        back_off(request, 0);
    }
    if (sgi_2025_is_live(request))
        sgi_follow_2025_go(request);
}

static void take_fetch_error(segue_request *request, sgi_json error)
{
    int64_t wait = sgi_task_retry_after(error);
    if (wait > 0)
        back_off(request, wait);
    else
        sgi_2025_fail(request, error);
}

static void resulted(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_task_2025 *task = request->task_2025;
    sgi_response reply;
    task->asking = NULL;
    if (!sgi_2025_is_live(request))
        return;
    if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n) {
        sgi_tries_good(&request->tries);
        sgi_response_read(outcome->json, &reply);
        if (task->is_fetch || reply.kind == SGI_RESPONSE_PLAIN)
            take_fetched(request, &reply);
        else
            take_pulled(request, &reply);
    } else if (outcome->kind == SGI_OUTCOME_ERROR) {
        (task->is_fetch ? take_fetch_error : take_pull_error)(request, outcome->json);
    } else if (request->state == SEGUE_TASK_CANCELLED) {
        sgi_follow_cancelled(request);
    } else {
        task->pull_due = !task->is_fetch;
        if (task->pull_due && outcome->kind == SGI_OUTCOME_REFUSED &&
            ++task->tries >= TRIES_MAX)
            stop_pulling(request); /* the result may come whole */
        try_again(request, outcome);
    }
}

static void ask_result(segue_request *request, bool is_fetch)
{
    sgi_task_2025 *task = request->task_2025;
    sgi_sending sending;
    sgi_emitter *emitter = sgi_task_ask(request, &sending, "tasks/result", resulted);
    task->is_fetch = is_fetch;
    task->after = sgi_tracker_prefix(&task->tracker);
    task->pull_due = false;
    sgi_str from_start = {0};
    if (emitter && !is_fetch && task->after)
        sgi_jw_member_int(&sending.w, "lastSeqNr", (int64_t)task->after);
    else if (!is_fetch)
        from_start = SGI_STR(",\"dev.segue/fromSeqNr\":1");
    if (emitter && sgi_emitter_send(emitter, &sending, from_start, (sgi_json){0})) {
        task->asking = emitter;
    } else {
        task->pull_due = !is_fetch;
        back_off(request, SGI_BACKOFF_FIRST_MS);
    }
}

/* The whole result, which a wait may have brought before. */
static void fetch(segue_request *request)
{
    sgi_response reply;
    sgi_2025_wait_drop(request);
    sgi_buf kept = sgi_2025_wait_take(request);
    if (kept.len) {
        sgi_response_read(sgi_buf_str(&kept), &reply);
        take_fetched(request, &reply);
    } else {
        ask_result(request, true);
    }
    sgi_buf_free(&kept);
}

/* ---- what comes by itself ---- */

void sgi_follow_2025_status(segue_request *request, sgi_json task)
{
    bool news = !sgi_task_state_is_terminal(request->state);
    if (sgi_task_is_stale(request, task))
        return;
    sgi_task_note_status(request, task);
    if (news && sgi_task_state_is_terminal(request->state))
        sgi_2025_heed_state(request);
}

void sgi_follow_2025_pushed(segue_request *request, const sgi_outcome *outcome)
{
    sgi_task_2025 *task = request->task_2025;
    sgi_response reply;
    if (outcome->kind == SGI_OUTCOME_ERROR && !sgi_error_is_gone(outcome->json)) {
        sgi_2025_fail(request, outcome->json);
        return;
    }
    if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n) {
        sgi_response_read(outcome->json, &reply);
        if (reply.kind == SGI_RESPONSE_PLAIN)
            sgi_2025_finish(request, &reply);
        else
            sgi_2025_take(request, &reply, false);
    }
    bool ended = sgi_task_state_is_terminal(request->state);
    if (sgi_2025_is_live(request) && !task->tracker.complete &&
        (ended || sgi_2025_can_pull(task)))
        want_rest(task); /* it broke: nothing else ends it (R-1905-42) */
    sgi_2025_settle(request);
}
