/* Sends tasks/result and handles its answer. With a number, the request pulls the
 * segments after the number. Without a number, the request fetches the whole result. */
#include "base/thresholds.h"
#include "engine/dialect/rows.h"
#include "engine/dialect/tasks_2025/follow_2025.h"
#include "wire/ending.h"

#define TRIES_MAX SGI_THRESHOLD(result_tries)

/* Stops pulling segments. Called when another pull would bring no segment. */
static void stop_pulling(segue_request *request)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    task->no_pull = true;
    task->pull_due = false;
    if (task->tracker.complete || sgi_task_state_is_terminal(request->follow->state))
        task->fetch_due = true;
}

static void take_pulled(segue_request *request, const sgi_2025_response *reply)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    bool ended = sgi_task_state_is_terminal(request->follow->state);
    sgi_2025_take_response(request, reply, true);
    if (!sgi_2025_is_live(request))
        return;
    bool is_whole = sgi_tracker_is_whole(&task->tracker);
    if (task->unknown && (!is_whole || task->why == SGI_WHY_LOOK)) {
        sgi_request_fail(request, SEGUE_E_TASK_LOST,
                         sgi_task_unknown_error_text(request));
        return;
    }
    if (sgi_tracker_prefix(&task->tracker) > task->after)
        task->tries = 0;
    else if (!is_whole && (ended || sgi_tracker_has_hole(&task->tracker)))
        task->tries++;
    task->idle = sgi_tracker_prefix(&task->tracker) == task->after &&
                 sgi_2025_can_be_asked(request);
    if (task->tries >= TRIES_MAX)
        stop_pulling(request);
    else if (!task->tracker.complete && ended)
        task->pull_due = true;
    if (!task->tracker.complete && !sgi_tries_is_waiting(&request->tries))
        sgi_task_poll_later(request);
    sgi_2025_end_or_send(request);
}

static void take_fetched(segue_request *request, const sgi_2025_response *reply)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    if (reply->kind == SGI_2025_RESPONSE_PLAIN) {
        sgi_2025_finish_with_result(request, reply);
        return;
    }
    sgi_2025_take_response(request, reply, true);
    /* this answer contains the error, so the client does not ask for the error */
    sgi_2025_stop_asking_for_error(request);
    if (sgi_2025_is_live(request) && !sgi_tracker_is_whole(&task->tracker))
        sgi_request_fail(request, task->some ? SEGUE_E_INCOMPLETE : SEGUE_E_PROTOCOL,
                         "the answer to tasks/result is not a result");
    sgi_2025_end_or_send(request);
}

bool sgi_2025_is_refusal(const segue_request *request, sgi_json error)
{
    static const char *const reasons[] = {"rate_limited", SGI_ENDING_REASON,
                                          "elsewhere",    "limit",
                                          "store_failed", "out_of_memory"};
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    bool is_named = false;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        is_named |= sgi_json_string_is(reason, sgi_str_of(reasons[i]));
    /* "store_failed" is a refusal unless the task itself has failed */
    if (sgi_json_string_is(reason, SGI_STR("store_failed")) &&
        request->follow->state != SEGUE_TASK_FAILED)
        return true;
    return sgi_error_retry_after_ms(error) > 0 &&
           (is_named || request->follow->state != SEGUE_TASK_FAILED);
}

/* Asks again later if the error is only a refusal to answer now. If the task was running,
 * the client first sends tasks/get, to learn whether the task has failed since. Returns
 * false when the error is not a refusal, or when no attempt is left. */
static bool ask_later(segue_request *request, sgi_json error)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    if (!sgi_2025_is_refusal(request, error) ||
        task->refusals >= request->session->options.max_reconnects)
        return false;
    task->refusals++;
    task->pull_due = !task->is_fetch;
    request->follow->look_due |= !sgi_task_state_is_terminal(request->follow->state);
    sgi_2025_back_off(request, sgi_error_retry_after_ms(error));
    return true;
}

/* True when the error is the result of the task: the task has failed, and the server does
 * not know the member that asks for the segments from segment 1 on. */
static bool is_result(const segue_request *request, sgi_json reason)
{
    return !sgi_2025_of(request)->after && !request->session->server.pulls_from_start &&
           request->follow->state == SEGUE_TASK_FAILED &&
           !sgi_json_string_is(reason, SGI_STR("segments_gone"));
}

static void take_pull_error(segue_request *request, sgi_json error)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (task->unknown || request->follow->state == SEGUE_TASK_CANCELLED ||
        is_result(request, reason)) {
        sgi_2025_fail(request, error);
    } else if (code == SGI_RPC_METHOD_NOT_FOUND) {
        sgi_request_fail_error(request, SEGUE_E_PROTOCOL,
                               "the server does not support tasks/result", error);
    } else if (code == SGI_RPC_INVALID_PARAMS) {
        stop_pulling(request);
        /* either the server refused the segment number in tasks/result (lastSeqNr), or
         * the server does not know the task; tasks/get shows which of the two is true */
        request->follow->look_due = true;
    } else if (sgi_json_string_is(reason, SGI_STR("segments_gone")) ||
               /* the task has failed, and this error is the result of the task */
               (!task->after && request->follow->state == SEGUE_TASK_FAILED) ||
               ++task->tries >= TRIES_MAX) {
        stop_pulling(request);
    } else {
        task->pull_due = true;
        sgi_2025_back_off(request, 0);
    }
    if (sgi_2025_is_live(request))
        sgi_2025_send_due(request);
}

static void take_result_error(segue_request *request, sgi_json error)
{
    if (ask_later(request, error))
        sgi_2025_send_due(request);
    else if (sgi_2025_of(request)->is_fetch)
        sgi_2025_fail(request, error);
    else
        take_pull_error(request, error);
}

bool sgi_2025_may_be_cancelled(const segue_request *request, const sgi_outcome *outcome)
{
    sgi_2025_response reply = {0};
    bool is_result = outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n;
    if (request->cancel_due && is_result)
        sgi_2025_response_read(outcome->json, &reply);
    return request->cancel_due && (!is_result || reply.is_error);
}

static void resulted(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_2025_response reply;
    task->asking = NULL;
    if (!sgi_2025_is_live(request))
        return;
    if (sgi_2025_may_be_cancelled(request, outcome))
        /* if the server refuses to cancel the task, the client asks for the result
         * again */
        return;
    if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n) {
        sgi_tries_reset(&request->tries);
        task->refusals = 0;
        sgi_2025_response_read(outcome->json, &reply);
        if (task->is_fetch || reply.kind == SGI_2025_RESPONSE_PLAIN)
            take_fetched(request, &reply);
        else
            take_pulled(request, &reply);
    } else if (outcome->kind == SGI_OUTCOME_ERROR) {
        take_result_error(request, outcome->json);
    } else if (request->follow->state == SEGUE_TASK_CANCELLED) {
        sgi_follow_end_as_cancelled(request);
    } else {
        task->pull_due = !task->is_fetch;
        if (task->pull_due && outcome->kind == SGI_OUTCOME_REFUSED &&
            ++task->tries >= TRIES_MAX)
            /* too many pulls in a row failed, so the whole result is fetched */
            stop_pulling(request);
        sgi_2025_try_again(request, outcome);
    }
}

static void ask_result(segue_request *request, bool is_fetch)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    sgi_sending sending;
    sgi_emitter *emitter =
        sgi_task_begin_request(request, &sending, "tasks/result", resulted);
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
        sgi_2025_back_off(request, SGI_BACKOFF_FIRST_MS);
    }
}

void sgi_2025_pull(segue_request *request)
{
    ask_result(request, false);
}

void sgi_2025_fetch(segue_request *request)
{
    sgi_2025_response reply;
    sgi_2025_result_wait_drop(request, sgi_2025_of(request));
    sgi_buf kept = sgi_2025_result_wait_take(request);
    if (kept.len) {
        sgi_2025_response_read(sgi_buf_str(&kept), &reply);
        take_fetched(request, &reply);
    } else {
        ask_result(request, true);
    }
    sgi_buf_free(&kept);
}
