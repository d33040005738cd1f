/* segue_task: a task whose id the application has kept. It holds no task alive and sends
 * nothing by itself; its requests are ordinary ones. */
#include "engine/asking/request.h"

segue_status sgi_task_handle_new(segue_session *session, sgi_str id, segue_task **out)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    segue_task *task = sgi_zalloc(mem, sizeof *task);
    if (!task)
        return SEGUE_E_NOMEM;
    task->id = sgi_text_dup(mem, id);
    if (!task->id) {
        sgi_release(mem, task, sizeof *task);
        return SEGUE_E_NOMEM;
    }
    task->handle = (sgi_handle){SGI_MAGIC_TASK, session->engine};
    task->refs = 1;
    task->session = session;
    sgi_session_ref(session);
    *out = task;
    return SEGUE_OK;
}

void sgi_task_handle_unref(segue_task *task)
{
    segue_session *session = task->session;
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    if (--task->refs)
        return;
    task->handle.magic = SGI_MAGIC_FREED;
    sgi_text_free(mem, task->id);
    sgi_echo_free(&task->echo, mem);
    sgi_release(mem, task, sizeof *task);
    sgi_session_unref(session);
}

segue_status sgi_task_handle_request(segue_task *task, const char *method,
                                     const segue_request_events *events,
                                     segue_request **out)
{
    segue_session *session = task->session;
    static const segue_request_options defaults = {.struct_size = sizeof defaults};
    sgi_buf params;
    sgi_buf_init(&params, sgi_engine_mem(session->engine));
    sgi_jw w = sgi_jw_on(&params);
    sgi_jw_open(&w, '{');
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

void sgi_task_handle_note(segue_request *request, sgi_json result)
{
    int32_t state = sgi_task_state_of(sgi_json_get(result, "status"));
    if (!request->task || state == SEGUE_TASK_UNKNOWN)
        return;
    request->task->state = state;
    sgi_task_echo_note(request, result, true);
}

segue_status sgi_task_handle_watch(segue_task *task, const segue_request_options *options,
                                   const segue_request_events *events,
                                   segue_request **out)
{
    sgi_request_spec spec = {.method = SGI_STR("tools/call"),
                             .options = options,
                             .events = events,
                             .task_id = sgi_str_of(task->id),
                             .task = task};
    return sgi_request_new(task->session, &spec, out);
}
