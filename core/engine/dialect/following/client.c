/* The part of the client that all dialects of tasks share. This file makes the object
 * that holds what a request knows about its task, and passes notifications about tasks to
 * their requests. */
#include "engine/dialect/rows.h"
#include "engine/dialect/following/follow.h"
#include "engine/dialect/following/tasks.h"

sgi_json sgi_answer_task_object(sgi_json result)
{
    sgi_json nested = sgi_json_get(result, "task");
    if (sgi_json_kind_of(nested) == SGI_JSON_OBJECT)
        return nested;
    return sgi_json_string_is(sgi_json_get(result, "resultType"), SGI_STR("task"))
               ? result
               : (sgi_json){0};
}

/* ---- functions for a request ---- */

/* Makes the object that holds what a request knows about its task. Called for a task
 * whose id came from the application or from a resume token. */
static bool take_over(segue_request *request, const sgi_request_spec *spec)
{
    if (!spec->task_id.n)
        return true;
    if (!sgi_follow_new(request, spec->task_id))
        return false;
    request->tries.method = "tasks/get";
    /* tasks/get must be sent: the task may have open questions, and only tasks/get brings
     * them */
    request->follow->look_due = spec->next_event > 0;
    request->follow->partial = spec->next_event > 0;
    if (spec->follower)
        request->follower = spec->follower;
    return true;
}

static void free_state(segue_request *request, sgi_cli_dialect_state *state)
{
    const sgi_task_follow *follow = (const sgi_task_follow *)state;
    if (follow->meta)
        sgi_free(sgi_engine_mem(request->engine), follow->meta, follow->meta_len + 1);
    request->follow = NULL;
}

/* True when the request itself asks for an existing task. A task in the answer is then
 * not a new task, even when the answer has resultType "task". Examples of SEP-2663
 * (R-2557-20) and of DRAFT-2026-v1 have this resultType in such answers. */
static bool is_asked(const segue_request *request)
{
    return !strcmp(request->method, "tasks/get") ||
           (request->session->version == SGI_VERSION_DRAFT_2026_V1 &&
            !strcmp(request->method, "tasks/cancel"));
}

static bool answer(segue_request *request, const sgi_result *result)
{
    if (!is_asked(request) || !sgi_json_string_is(result->type, SGI_STR("task")))
        return false;
    sgi_task_handle_note_answer(request, result->json);
    sgi_request_finish(request, result->json);
    return true;
}

/* ---- notifications ---- */

static bool take_status(segue_session *session, sgi_json params)
{
    segue_request *request, *next;
    bool some = false;
    sgi_json id = sgi_json_get(params, "taskId");
    SGI_TAILQ_EACH(request, &session->requests, link, next) {
        if (request->phase == SGI_PHASE_FOLLOW && request->follower->status &&
            sgi_json_string_is(id, sgi_str_of(request->task_id)))
            some |= request->follower->status(request, params);
    }
    if (!some)
        sgi_early_status_keep(session, params);
    return some;
}

static bool notified(segue_session *session, sgi_str method, const sgi_message *msg,
                     bool *taken)
{
    if (!sgi_str_eq(method, SGI_STR("notifications/tasks/status")))
        return false;
    *taken = take_status(session, msg->params);
    return true;
}

/* ---- functions for a session ---- */

static void begin(segue_session *session, sgi_cli_dialect_state *state)
{
    (void)session;
    TAILQ_INIT(&((sgi_session_tasks *)state)->early.all);
}

static void free_session(segue_session *session, sgi_cli_dialect_state *state)
{
    sgi_early_status_free(session, &((sgi_session_tasks *)state)->early);
}

/* Sets server.tasks to false. A later dialect sets server.tasks to true when the server's
 * capabilities have tasks. */
static void read_server_capabilities(segue_session *session, sgi_json capabilities)
{
    (void)capabilities;
    session->server.tasks = false;
}

static const sgi_cli_session_hooks session_hooks = {
    .state_size = sizeof(sgi_session_tasks),
    .begin = begin,
    .free = free_session,
    .read_server_capabilities = read_server_capabilities};

const sgi_cli_dialect sgi_cli_tasks = {
    .name = "tasks",
    .session_hooks = &session_hooks,
    .state_size = sizeof(sgi_task_follow),
    .free_state = free_state,
    .take_over = take_over,
    .answer = answer,
    .notified = notified,
    .keep_exchange = sgi_cancelled_call_await_task,
};
