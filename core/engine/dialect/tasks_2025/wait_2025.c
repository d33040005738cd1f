/* Waits for the result of a task of 2025-11-25. A tasks/result without a number is
 * answered when the task ends (R-1905-33, R-1905-35). If the poll interval is long, this
 * answer comes sooner than the next tasks/get.
 *
 * Polling by tasks/get continues meanwhile, and only tasks/get decides whether the task
 * has ended. Each answer to a wait leads to a tasks/get at once. The result of the wait
 * is stored until this tasks/get is answered. If the task has ended, the stored result is
 * used; otherwise it is dropped. So a server may answer the wait too soon, with an error,
 * or never, and the task is then polled as without a wait. After too many answers before
 * the end, the client no longer waits for this task. A wait that breaks, for example at a
 * proxy, is sent again after the next tasks/get. */
#include "engine/dialect/tasks_2025/follow_2025.h"

static void keep(sgi_task_2025 *task, sgi_json result)
{
    sgi_2025_response reply;
    sgi_2025_response_read(result, &reply);
    sgi_buf_free(&task->kept);
    if (reply.kind == SGI_2025_RESPONSE_PLAIN)
        sgi_buf_add_str(&task->kept, result);
    if (task->kept.failed)
        /* out of memory: the result is dropped here and fetched later */
        sgi_buf_free(&task->kept);
}

static void broke(segue_request *request)
{
    sgi_task_2025 *task = sgi_2025_of(request);
    int64_t lasted = sgi_now(&request->engine->env) - task->waiting_since;
    task->vain_waits = lasted < request->follow->poll_ms ? task->vain_waits + 1 : 0;
}

static void ended(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_task_2025 *task = sgi_2025_of(request);
    bool is_answer =
        outcome->kind == SGI_OUTCOME_RESULT || outcome->kind == SGI_OUTCOME_ERROR;
    task->waiting = NULL;
    sgi_session_2025_of(request->session)->waits.count--;
    if (!sgi_2025_is_live(request) || sgi_2025_may_be_cancelled(request, outcome))
        return;
    if (!is_answer) {
        broke(request);
        return;
    }
    task->vain_waits = SGI_VAIN_WAITS_MAX;
    if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n)
        keep(task, outcome->json);
    request->follow->look_due = true;
    sgi_2025_send_due(request);
}

void sgi_2025_result_wait_begin(segue_request *request)
{
    sgi_sending sending;
    if (!sgi_2025_may_wait_for_result(request))
        return;
    sgi_emitter *emitter =
        sgi_task_begin_request(request, &sending, "tasks/result", ended);
    if (!emitter)
        /* the wait cannot be sent now; the client tries again after the next tasks/get */
        return;
    /* no time limit, because tasks/get shows whether the server is alive */
    emitter->timeout_ms = 0;
    if (!sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        return;
    sgi_2025_of(request)->waiting = emitter;
    sgi_2025_of(request)->waiting_since = sgi_now(&request->engine->env);
    sgi_session_2025_of(request->session)->waits.count++;
}

void sgi_2025_result_wait_drop(segue_request *request, sgi_task_2025 *task)
{
    if (task->waiting) {
        sgi_session_2025_of(request->session)->waits.count--;
        sgi_emitter_drop(task->waiting, false);
    }
    task->waiting = NULL;
}

sgi_buf sgi_2025_result_wait_take(segue_request *request)
{
    sgi_buf kept = sgi_2025_of(request)->kept;
    sgi_buf_init(&sgi_2025_of(request)->kept, sgi_engine_mem(request->engine));
    return kept;
}
