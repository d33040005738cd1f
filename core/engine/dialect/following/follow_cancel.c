/* Cancels the task of a request. The client asks the server to cancel the task, and the
 * server's answer ends the request. If the task had already ended, the client fetches the
 * outcome of the task (R-2557-63).
 *
 * R-2557-39 allows a client of 2026-07-28 to forget the task without waiting. But a
 * program often closes the session right afterwards. The unsent message would then be
 * lost, and the task would continue. So the client waits for the answer for a short time,
 * in all revisions. During this time the message is sent again when the session opens and
 * when the connection has broken. A request whose own time limit is over cancels its task
 * in the same way, but waits for a shorter time. */
#include "engine/dialect/following/follow.h"

#include "base/thresholds.h"

#define CANCEL_GRACE_MS SGI_THRESHOLD(cancel_grace_ms)
#define TIMEOUT_GRACE_MS SGI_THRESHOLD(timeout_grace_ms)

static void end(segue_request *request, const char *text)
{
    if (request->follow->cancel_status == SEGUE_E_TIMEOUT)
        sgi_request_fail(request, SEGUE_E_TIMEOUT,
                         "the request took longer than its timeout");
    else
        sgi_request_fail(request, SEGUE_E_CANCELLED, text);
}

static void end_unconfirmed(segue_request *request)
{
    end(request, "the request was cancelled, but the server has not confirmed it: the "
                 "tool may still run");
}

void sgi_follow_end_as_cancelled(segue_request *request)
{
    end(request, "the task was cancelled");
}

/* Sends tasks/cancel again after a short pause. The pause does not grow, because the time
 * for cancelling is short and limits the number of attempts. If the session is not open,
 * the message is sent when the session opens. */
static void try_again(segue_request *request, int64_t at_least_ms)
{
    if (sgi_session_is_open(request->session))
        sgi_tries_set_timer(&request->tries, at_least_ms > SGI_BACKOFF_FIRST_MS
                                                 ? at_least_ms
                                                 : SGI_BACKOFF_FIRST_MS);
}

static void was_refused(segue_request *request, sgi_json error)
{
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (code == SGI_RPC_INVALID_PARAMS) {
        request->cancel_due = false;
        sgi_follow_send_tasks_get_now(request);
    } else if (code == SGI_RPC_METHOD_NOT_FOUND || code == SGI_RPC_MISSING_CAPABILITY) {
        end_unconfirmed(request);
    } else {
        try_again(request, sgi_error_retry_after_ms(error));
    }
}

static void answered(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    request->follow->cancelling = NULL;
    if (outcome->kind == SGI_OUTCOME_RESULT)
        end(request, "cancelled");
    else if (outcome->kind == SGI_OUTCOME_ERROR)
        was_refused(request, outcome->json);
    else if (outcome->kind == SGI_OUTCOME_LOST || sgi_outcome_may_pass(outcome))
        try_again(request, 0);
    else
        end_unconfirmed(request);
}

void sgi_follow_send_cancel(segue_request *request)
{
    sgi_sending sending;
    if (request->follow->cancelling || sgi_tries_is_waiting(&request->tries) ||
        !sgi_follow_choose_dialect(request))
        return;
    sgi_emitter *emitter =
        sgi_task_begin_request(request, &sending, "tasks/cancel", answered);
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        request->follow->cancelling = emitter;
    else
        try_again(request, 0);
}

static void grace_over(sgi_timer *timer)
{
    end_unconfirmed(SGI_OWNER(timer, segue_request, deadline));
}

bool sgi_follow_cancel(segue_request *request, segue_status status)
{
    if (request->cancel_due)
        return false;
    request->cancel_due = true;
    request->follow->cancel_status = status;
    int64_t grace_ms = status == SEGUE_E_TIMEOUT ? TIMEOUT_GRACE_MS : CANCEL_GRACE_MS;
    int64_t now = sgi_now(&request->engine->env);
    sgi_tries_stop(&request->tries);
    if (!request->deadline.slot || request->deadline.at_ms - now > grace_ms)
        sgi_engine_set_timer(request->engine, &request->deadline, grace_ms, grace_over);
    if (sgi_session_is_open(request->session))
        sgi_follow_send_cancel(request);
    return true;
}

static void nobody_waits(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    (void)emitter;
    (void)outcome;
}

void sgi_follow_cancel_abandoned_task(segue_request *request)
{
    sgi_sending sending;
    if (request->follow->cancelling || !sgi_session_is_open(request->session))
        return;
    sgi_emitter *emitter =
        sgi_task_begin_request(request, &sending, "tasks/cancel", nobody_waits);
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        emitter->request = NULL;
}
