/* Cancelling a task of 2025-11-25: its server is asked once, and its answer is the end of
 * the request, unless the task had ended before: then that is looked up. */
#include "engine/asking/follow_2025.h"

/* Refused, it has ended otherwise: that is the end of the request then (R-2557-63). */
static void cancel_answered(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    int64_t code = 0;
    request->task_2025->cancelling = NULL;
    if (outcome->kind == SGI_OUTCOME_ERROR)
        sgi_json_int(sgi_json_get(outcome->json, "code"), &code);
    if (code != SGI_RPC_INVALID_PARAMS) {
        sgi_request_fail(request, SEGUE_E_CANCELLED, "cancelled");
        return;
    }
    request->look_due = true;
    sgi_engine_timer_clear(request->engine, &request->retry);
    sgi_follow_2025_go(request);
}

bool sgi_follow_2025_cancel(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    sgi_sending sending;
    if (task->cancelling)
        return true;
    if (!sgi_session_is_open(request->session))
        return false;
    sgi_emitter *emitter =
        sgi_task_ask(request, &sending, "tasks/cancel", cancel_answered);
    if (!emitter || !sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        return false;
    task->cancelling = emitter;
    return true;
}
