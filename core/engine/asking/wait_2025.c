/* Waiting for the result of a task of 2025-11-25. tasks/result without a number is
 * answered when the task ends (R-1905-33, R-1905-35). Where the poll interval is long,
 * that is sooner than the next tasks/get.
 *
 * tasks/get goes on beside the wait, and it alone says whether the task has ended. Each
 * answer to a wait leads to a tasks/get at once. A result is kept meanwhile; it is taken
 * if the task has ended, and dropped if not. A server may so answer too soon, with an
 * error, or never: the task is polled as without a wait. After an answer before the end
 * there is no more wait for this task. A wait that breaks, as when a proxy cuts it, is
 * sent again after the next tasks/get. */
#include "engine/asking/follow_2025.h"

static void keep(sgi_task_2025 *task, sgi_json result)
{
    sgi_response reply;
    sgi_response_read(result, &reply);
    sgi_buf_free(&task->kept);
    if (reply.kind == SGI_RESPONSE_PLAIN)
        sgi_buf_add_str(&task->kept, result);
    if (task->kept.failed)
        sgi_buf_free(&task->kept); /* it is fetched */
}

static void broke(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    int64_t lasted = sgi_now(&request->engine->env) - task->waiting_since;
    task->vain_waits = lasted < request->poll_ms ? task->vain_waits + 1 : 0;
}

static void ended(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_task_2025 *task = request->task_2025;
    bool is_answer =
        outcome->kind == SGI_OUTCOME_RESULT || outcome->kind == SGI_OUTCOME_ERROR;
    task->waiting = NULL;
    request->session->waits--;
    if (!sgi_2025_is_live(request) || request->cancel_due)
        return;
    if (!is_answer) {
        broke(request);
        return;
    }
    task->vain_waits = SGI_VAIN_WAITS_MAX;
    if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n)
        keep(task, outcome->json);
    request->look_due = true;
    sgi_follow_2025_go(request);
}

void sgi_2025_wait_go(segue_request *request)
{
    sgi_sending sending;
    if (!sgi_2025_may_wait(request))
        return;
    sgi_emitter *emitter = sgi_task_ask(request, &sending, "tasks/result", ended);
    if (!emitter)
        return;              /* the next look tries it again */
    emitter->timeout_ms = 0; /* the looks tell whether the server is there */
    if (!sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        return;
    request->task_2025->waiting = emitter;
    request->task_2025->waiting_since = sgi_now(&request->engine->env);
    request->session->waits++;
}

void sgi_2025_wait_drop(segue_request *request)
{
    sgi_task_2025 *task = request->task_2025;
    if (task->waiting) {
        request->session->waits--;
        sgi_emitter_drop(task->waiting, false);
    }
    task->waiting = NULL;
}

sgi_buf sgi_2025_wait_take(segue_request *request)
{
    sgi_buf kept = request->task_2025->kept;
    sgi_buf_init(&request->task_2025->kept, sgi_engine_mem(request->engine));
    return kept;
}
