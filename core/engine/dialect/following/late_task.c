/* Handles a cancelled call whose answer names a task. The answer was under way when the
 * server received the cancellation of the call, and this cancellation does not cancel a
 * task (R-2557-38). The emitter of such a call stays for a while without its request. If
 * the answer names a task, the client cancels the task by its id, so that no task runs
 * without a client. This wait is not needed when closing a stream cancels the call
 * (2026-07-28 over HTTP), or when the server knows the call by its idempotency key
 * (emitter.c). */
#include "engine/dialect/following/late_task.h"

#include "base/thresholds.h"
#include "engine/dialect/following/tasks.h"

/* The time in ms for which the client waits for the answer to a cancelled call. */
#define LATE_MS SGI_THRESHOLD(late_ms)

static void nobody_waits(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    (void)emitter;
    (void)outcome;
}

static void cancel_task(segue_session *session, sgi_json task)
{
    sgi_sending sending;
    sgi_json id = sgi_json_get(task, "taskId");
    const sgi_cli_follow_ops *following = sgi_cli_follow_ops_of(session);
    sgi_json echo = following->echo_of ? following->echo_of(task) : (sgi_json){0};
    if (sgi_json_kind_of(id) != SGI_JSON_STRING || !sgi_session_is_open(session))
        return;
    sgi_emitter *emitter = sgi_emitter_begin(session, &sending, SGI_STR("tasks/cancel"));
    if (!emitter)
        return;
    emitter->done = nobody_waits;
    sgi_jw_member_raw(&sending.w, "taskId", id);
    if (echo.n)
        sgi_jw_member_raw(&sending.w, "requestState", echo);
    sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0});
}

static void came_late(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    sgi_session_tasks_of(session)->late_calls--;
    if (outcome->kind != SGI_OUTCOME_RESULT)
        return;
    sgi_json task = sgi_cli_task_in_answer(session, outcome->json);
    if (task.n)
        cancel_task(session, task);
}

bool sgi_cancelled_call_await_task(sgi_emitter *emitter)
{
    segue_session *session = emitter->session;
    sgi_session_tasks *tasks = sgi_session_tasks_of(session);
    const segue_request *request = emitter->request;
    bool closing_cancels =
        emitter->conn->exchange && sgi_facts(session->version)->is_stateless;
    if (closing_cancels || !request || request->calling != emitter || request->key.sent ||
        !sgi_cli_may_be_task(request) || tasks->late_calls >= SGI_LATE_CALLS_MAX ||
        !sgi_session_is_open(session))
        return false;
    tasks->late_calls++;
    emitter->request = NULL;
    emitter->more = sgi_emitter_skip_piece;
    emitter->done = came_late;
    emitter->late = true;
    emitter->timeout_ms = LATE_MS;
    sgi_emitter_note_sign_of_life(emitter);
    return true;
}
