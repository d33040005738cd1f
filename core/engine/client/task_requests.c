/* Requests that are made from a task handle. The answers to these requests show the state
 * of the task. */
#include "engine/client/dialects.h"

bool sgi_task_handle_check_session(segue_request *request)
{
    const segue_task *task = request->task;
    if (task->inquiry)
        return sgi_cli_can_ask_answer_again(request);
    if (!task->follower || task->follower == sgi_cli_follow_ops_of(request->session))
        return true;
    sgi_request_fail(request, SEGUE_E_NOT_RESUMABLE, task->follower->other_session);
    return false;
}

static segue_status send(segue_task *task, const char *method,
                         const segue_request_events *events, segue_request **out)
{
    segue_session *session = task->session;
    static const segue_request_options defaults = {.struct_size = sizeof defaults};
    sgi_buf params;
    sgi_buf_init(&params, sgi_engine_mem(session->engine));
    sgi_jw w = sgi_jw_to(&params);
    sgi_jw_open(&w, '{');
    if (task->inquiry)
        task->inquiry->write_params(task, &w);
    else
        sgi_jw_member_string(&w, "taskId", sgi_str_of(task->id));
    sgi_jw_close(&w, '}');
    sgi_request_spec spec = {.method = sgi_str_of(method),
                             .params = sgi_buf_str(&params),
                             .options = &defaults,
                             .events = events,
                             .task = task};
    segue_status status =
        params.failed ? SEGUE_E_NOMEM : sgi_request_new(session, &spec, out);
    sgi_buf_free(&params);
    return status;
}

segue_status sgi_task_handle_get(segue_task *task, const segue_request_events *events,
                                 segue_request **out)
{
    return send(task, task->inquiry ? task->inquiry->method : "tasks/get", events, out);
}

/* Sends tasks/cancel for the task of a handle. A resumable request cannot be cancelled
 * through a handle, because no message names such a request by its token (C-11). Only the
 * connection that carries its answer can cancel it. */
segue_status sgi_task_handle_cancel(segue_task *task, const segue_request_events *events,
                                    segue_request **out)
{
    if (task->inquiry)
        return SEGUE_E_UNSUPPORTED;
    return send(task, "tasks/cancel", events, out);
}

segue_status sgi_task_handle_watch(segue_task *task, const segue_request_options *options,
                                   const segue_request_events *events,
                                   segue_request **out)
{
    if (task->token)
        return sgi_task_handle_watch_by_token(task, options, events, out);
    sgi_request_spec spec = {.method = SGI_STR("tools/call"),
                             .options = options,
                             .events = events,
                             .task_id = sgi_str_of(task->id),
                             .task = task};
    return sgi_request_new(task->session, &spec, out);
}

/* ---- the state in the handle ---- */

void sgi_task_handle_note_answer(segue_request *request, sgi_json result)
{
    segue_task *task = request->task;
    if (!task)
        return;
    /* a result means that a resumable request is completed */
    int32_t state = sgi_cli_is_resumable(request) ? SEGUE_TASK_COMPLETED
                    : task->inquiry
                        ? task->inquiry->state(result)
                        : sgi_task_state_from_status(sgi_json_get(result, "status"));
    if (state == SEGUE_TASK_UNKNOWN)
        return;
    sgi_task_handle_set_state(task, state);
    if (!task->inquiry)
        sgi_cli_note_task(request, result, true);
}

/* Sends tasks/get after the server has refused tasks/cancel. Before 2026-07-28 a server
 * refuses to cancel an ended task with the error code of an unknown task (R-2557-36). So
 * the error does not show the state of the task. */
bool sgi_task_handle_get_if_cancel_refused(segue_request *request, sgi_json error)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (!request->task || code != SGI_RPC_INVALID_PARAMS ||
        !sgi_str_eq(sgi_str_of(request->method), SGI_STR("tasks/cancel")))
        return false;
    char *method = sgi_text_dup(mem, SGI_STR("tasks/get"));
    if (!method)
        return false;
    sgi_text_free(mem, request->method);
    request->method = method;
    sgi_request_send_due(request);
    return true;
}

bool sgi_task_handle_take_unknown(segue_request *request, sgi_json error)
{
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (!request->task || code != SGI_RPC_INVALID_PARAMS ||
        !sgi_str_eq(sgi_str_of(request->method), SGI_STR("tasks/get")))
        return false;
    sgi_request_fail_error(request, SEGUE_E_TASK_LOST,
                           "the server does not know the task", error);
    return true;
}

void sgi_task_handle_note_error(segue_request *request, sgi_json error)
{
    segue_task *task = request->task;
    if (!task || !task->inquiry)
        return;
    int32_t state = task->inquiry->refused(request, error);
    if (state != SEGUE_TASK_UNKNOWN)
        sgi_task_handle_set_state(task, state);
}
