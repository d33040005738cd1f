/* Cancelling a task that is followed: its server is asked, and the answer is the end of
 * the request, unless the task had ended before: then that is looked up (R-2557-63).
 *
 * R-2557-39 lets a client of 2026-07-28 forget the task without waiting. Whoever closes
 * the session next, as programs do, would take the message along before it is out, and
 * the task would go on: so all revisions wait, but not for long. Within that time it is
 * also sent once the session is up, and again when the connection broke. A request whose
 * own time is over ends in the same way, only sooner. */
#include "engine/asking/request.h"

#define CANCEL_GRACE_MS 5000
#define TIMEOUT_GRACE_MS 1000

static void end(segue_request *request, const char *text)
{
    if (request->cancel_status == SEGUE_E_TIMEOUT)
        sgi_request_fail(request, SEGUE_E_TIMEOUT,
                         "the request took longer than its timeout");
    else
        sgi_request_fail(request, SEGUE_E_CANCELLED, text);
}

static void end_unconfirmed(segue_request *request)
{
    end(request, "cancelled; the server has not confirmed it");
}

void sgi_follow_cancelled(segue_request *request)
{
    end(request, "the task was cancelled");
}

/* Not the backing off of other exchanges: there is little time, and it bounds the tries.
 * A session that is lost goes on by itself when it is up. */
static void try_again(segue_request *request, int64_t at_least_ms)
{
    if (sgi_session_is_open(request->session))
        sgi_tries_later(&request->tries, at_least_ms > SGI_BACKOFF_FIRST_MS
                                             ? at_least_ms
                                             : SGI_BACKOFF_FIRST_MS);
}

static void was_refused(segue_request *request, sgi_json error)
{
    int64_t code = 0;
    sgi_json_int(sgi_json_get(error, "code"), &code);
    if (code == SGI_RPC_INVALID_PARAMS) {
        request->cancel_due = false;
        sgi_follow_look(request);
    } else if (code == SGI_RPC_METHOD_NOT_FOUND || code == SGI_RPC_MISSING_CAPABILITY) {
        end_unconfirmed(request);
    } else {
        try_again(request, sgi_task_retry_after(error));
    }
}

static void answered(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    request->cancelling = NULL;
    if (outcome->kind == SGI_OUTCOME_RESULT)
        end(request, "cancelled");
    else if (outcome->kind == SGI_OUTCOME_ERROR)
        was_refused(request, outcome->json);
    else if (outcome->kind == SGI_OUTCOME_LOST || sgi_outcome_may_pass(outcome))
        try_again(request, 0);
    else
        end_unconfirmed(request);
}

void sgi_follow_cancel_go(segue_request *request)
{
    sgi_sending sending;
    if (request->cancelling || sgi_tries_wait(&request->tries) ||
        !sgi_follow_settle_birth(request))
        return;
    sgi_emitter *emitter = sgi_task_ask(request, &sending, "tasks/cancel", answered);
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        request->cancelling = emitter;
    else
        try_again(request, 0);
}

static void grace_over(sgi_timer *timer)
{
    end_unconfirmed(SGI_OWNER(timer, segue_request, deadline));
}

void sgi_follow_cancel(segue_request *request, segue_status status)
{
    if (request->cancel_due)
        return;
    request->cancel_due = true;
    request->cancel_status = status;
    int64_t grace_ms = status == SEGUE_E_TIMEOUT ? TIMEOUT_GRACE_MS : CANCEL_GRACE_MS;
    int64_t now = sgi_now(&request->engine->env);
    sgi_tries_stop(&request->tries);
    if (!request->deadline.slot || request->deadline.at_ms - now > grace_ms)
        sgi_engine_timer(request->engine, &request->deadline, grace_ms, grace_over);
    if (sgi_session_is_open(request->session))
        sgi_follow_cancel_go(request);
}

static void nobody_waits(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    (void)emitter;
    (void)outcome;
}

void sgi_follow_abandon(segue_request *request)
{
    sgi_sending sending;
    if (request->cancelling || !sgi_session_is_open(request->session))
        return;
    sgi_emitter *emitter = sgi_task_ask(request, &sending, "tasks/cancel", nobody_waits);
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        emitter->request = NULL;
}
