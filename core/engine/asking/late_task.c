/* A call that was cancelled, and whose answer may name a task all the same: it was on its
 * way when the server heard of the cancel, which does not touch a task (R-2557-38). The
 * emitter of such a call stays for a while, without its request, and a task that it is
 * told of is cancelled by its id. So nobody is left with a task that runs and that no
 * client knows.
 *
 * That is not needed where the closing of a stream cancels (2026-07-28 over HTTP), nor
 * where the server knows the call by its idempotency key (emitter.c). */
#include "engine/asking/late_task.h"

#include "engine/asking/response_2025.h"

/* As long as a slow server may take to answer after the cancel. */
#define LATE_MS 30000

static bool may_become_task(const segue_request *request)
{
    const segue_session *session = request->session;
    return session->version == SGI_VERSION_2025_11_25
               ? request->asks_task
               : request->is_call && session->has_tasks;
}

static void nobody_waits(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    (void)emitter;
    (void)outcome;
}

static void cancel_task(segue_session *session, sgi_json task)
{
    sgi_sending sending;
    sgi_json id = sgi_json_get(task, "taskId");
    sgi_json state = sgi_json_get(task, "requestState");
    if (sgi_json_kind_of(id) != SGI_JSON_STRING || !sgi_session_is_open(session))
        return;
    sgi_emitter *emitter = sgi_emitter_begin(session, &sending, SGI_STR("tasks/cancel"));
    if (!emitter)
        return;
    emitter->done = nobody_waits;
    sgi_jw_member_raw(&sending.w, "taskId", id);
    if (state.n && session->version == SGI_VERSION_DRAFT_2026_V1)
        sgi_jw_member_raw(&sending.w, "requestState", state);
    sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0});
}

static sgi_json named_task(const segue_session *session, sgi_json result)
{
    sgi_response reply;
    if (session->version == SGI_VERSION_2025_11_25) {
        sgi_response_read(result, &reply);
        return reply.kind == SGI_RESPONSE_PLAIN || reply.complete ? (sgi_json){0}
                                                                  : reply.named;
    }
    sgi_json nested = sgi_json_get(result, "task");
    if (sgi_json_kind_of(nested) == SGI_JSON_OBJECT)
        return nested;
    return sgi_json_string_is(sgi_json_get(result, "resultType"), SGI_STR("task"))
               ? result
               : (sgi_json){0};
}

static void came_late(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    session->late_calls--;
    if (outcome->kind != SGI_OUTCOME_RESULT)
        return;
    sgi_json task = named_task(session, outcome->json);
    if (task.n)
        cancel_task(session, task);
}

bool sgi_late_task_wait(sgi_emitter *emitter)
{
    segue_session *session = emitter->session;
    const segue_request *request = emitter->request;
    bool closing_cancels =
        emitter->conn->exchange && sgi_version_is_modern(session->version);
    if (closing_cancels || !request || request->calling != emitter || request->key_sent ||
        !may_become_task(request) || session->late_calls >= SGI_LATE_CALLS_MAX ||
        !sgi_session_is_open(session))
        return false;
    session->late_calls++;
    emitter->request = NULL;
    emitter->more = NULL;
    emitter->done = came_late;
    emitter->late = true;
    emitter->timeout_ms = LATE_MS;
    sgi_emitter_touch(emitter);
    return true;
}
