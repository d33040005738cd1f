/* segue_task: a task whose id the application has kept, or whatever a token stands for
 * that can be asked how it is: a task of any revision, or a request that can be resumed
 * (SEP-975). It holds none of them alive and sends nothing by itself; its requests are
 * ordinary ones. */
#include "engine/asking/request.h"

static void free_task(segue_task *task)
{
    const sgi_mem *mem = sgi_engine_mem(task->session->engine);
    task->handle.magic = SGI_MAGIC_FREED;
    sgi_text_free(mem, task->id);
    sgi_text_free(mem, task->token);
    sgi_text_free(mem, task->resume_token);
    sgi_echo_free(&task->echo, mem);
    sgi_release(mem, task, sizeof *task);
}

static bool copy_spec(segue_task *task, const sgi_request_spec *spec, sgi_str token)
{
    const sgi_mem *mem = sgi_engine_mem(task->session->engine);
    if (token.n && !(task->token = sgi_text_dup(mem, token)))
        return false;
    if (spec->resume_token.n &&
        !(task->resume_token = sgi_text_dup(mem, spec->resume_token)))
        return false;
    task->id = sgi_text_dup(mem, spec->task_id);
    task->birth = spec->birth;
    task->call_id = spec->resume_id;
    return task->id && sgi_echo_set(&task->echo, mem, spec->echo);
}

segue_status sgi_task_handle_new(segue_session *session, const sgi_request_spec *spec,
                                 sgi_str token, segue_task **out)
{
    segue_task *task = sgi_zalloc(sgi_engine_mem(session->engine), sizeof *task);
    if (!task)
        return SEGUE_E_NOMEM;
    task->handle = (sgi_handle){SGI_MAGIC_TASK, session->engine};
    task->refs = 1;
    task->session = session;
    if (!copy_spec(task, spec, token)) {
        free_task(task);
        return SEGUE_E_NOMEM;
    }
    sgi_session_ref(session);
    *out = task;
    return SEGUE_OK;
}

segue_status sgi_task_attach(segue_session *session, const char *text, segue_task **out)
{
    sgi_request_spec spec = {.task_id = sgi_str_of(text)};
    if (sgi_token_is(spec.task_id))
        return sgi_token_attach(session, text, out);
    if (!spec.task_id.n || spec.task_id.n > SGI_TASK_ID_MAX ||
        !sgi_utf8_valid(spec.task_id, NULL))
        return sgi_refuse(session->engine, SEGUE_E_INVALID,
                          "the id of the task is not 1 to %d bytes of UTF-8",
                          SGI_TASK_ID_MAX);
    return sgi_task_handle_new(session, &spec, (sgi_str){0}, out);
}

void sgi_task_handle_unref(segue_task *task)
{
    segue_session *session = task->session;
    if (--task->refs)
        return;
    free_task(task);
    sgi_session_unref(session);
}

bool sgi_task_handle_fits(segue_request *request)
{
    const segue_task *task = request->task;
    if (task->resume_token)
        return sgi_resume_fits(request);
    if (task->birth == SGI_BIRTH_UNKNOWN ||
        task->birth == sgi_birth_of(request->session->version))
        return true;
    sgi_request_fail(request, SEGUE_E_NOT_RESUMABLE,
                     "the task is one of another protocol version");
    return false;
}

/* ---- what it sends ---- */

static segue_status send(segue_task *task, const char *method,
                         const segue_request_events *events, segue_request **out)
{
    segue_session *session = task->session;
    static const segue_request_options defaults = {.struct_size = sizeof defaults};
    sgi_buf params;
    sgi_buf_init(&params, sgi_engine_mem(session->engine));
    sgi_jw w = sgi_jw_on(&params);
    sgi_jw_open(&w, '{');
    if (task->resume_token) {
        sgi_jw_member_int(&w, "requestId", task->call_id);
        sgi_jw_member_raw(&w, "resumeToken", sgi_str_of(task->resume_token));
    } else {
        sgi_jw_member_string(&w, "taskId", sgi_str_of(task->id));
    }
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
    return send(task, task->resume_token ? "requests/getStatus" : "tasks/get", events,
                out);
}

/* A request is withdrawn on the connection that it is answered on: there is no message
 * that withdraws it by its token (C-11). */
segue_status sgi_task_handle_cancel(segue_task *task, const segue_request_events *events,
                                    segue_request **out)
{
    if (task->resume_token)
        return SEGUE_E_UNSUPPORTED;
    return send(task, "tasks/cancel", events, out);
}

segue_status sgi_task_handle_watch(segue_task *task, const segue_request_options *options,
                                   const segue_request_events *events,
                                   segue_request **out)
{
    if (task->token)
        return sgi_token_watch(task, options, events, out);
    sgi_request_spec spec = {.method = SGI_STR("tools/call"),
                             .options = options,
                             .events = events,
                             .task_id = sgi_str_of(task->id),
                             .task = task};
    return sgi_request_new(task->session, &spec, out);
}

/* ---- what it remembers ---- */

void sgi_task_handle_state(segue_task *task, int32_t state)
{
    if (!sgi_task_state_is_terminal(task->state))
        task->state = state;
}

/* The words of SEP-975 (R-975-22), which has one for two of ours. */
static int32_t state_of_request(sgi_json result)
{
    sgi_json asks = sgi_json_get(result, "hasInputRequest");
    sgi_json status = sgi_json_get(result, "status");
    if (!sgi_json_string_is(status, SGI_STR("processing")))
        return sgi_task_state_of(status);
    return sgi_json_kind_of(asks) == SGI_JSON_TRUE ? SEGUE_TASK_INPUT_REQUIRED
                                                   : SEGUE_TASK_WORKING;
}

void sgi_task_handle_note(segue_request *request, sgi_json result)
{
    segue_task *task = request->task;
    if (!task)
        return;
    int32_t state = request->resume_token ? SEGUE_TASK_COMPLETED /* it was watched */
                    : task->resume_token
                        ? state_of_request(result)
                        : sgi_task_state_of(sgi_json_get(result, "status"));
    if (state == SEGUE_TASK_UNKNOWN)
        return;
    sgi_task_handle_state(task, state);
    if (!task->resume_token)
        sgi_task_echo_note(request, result, true);
}

/* Before 2026-07-28 a task that has ended refuses to be cancelled (R-2557-36), with the
 * code of one that is not known. How it stands is the answer then. */
bool sgi_task_handle_looks(segue_request *request, sgi_json error)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    int64_t code = 0;
    sgi_json_int(sgi_json_get(error, "code"), &code);
    if (!request->task || code != SGI_RPC_INVALID_PARAMS ||
        !sgi_str_eq(sgi_str_of(request->method), SGI_STR("tasks/cancel")))
        return false;
    char *method = sgi_text_dup(mem, SGI_STR("tasks/get"));
    if (!method)
        return false;
    sgi_text_free(mem, request->method);
    request->method = method;
    sgi_request_go(request);
    return true;
}

/* The server says why there is nothing to be had (R-975-12, R-975-14); any other error is
 * the answer of the request, if that was asked for and not only its state. */
void sgi_task_handle_refused(segue_request *request, sgi_json error)
{
    segue_task *task = request->task;
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    int64_t code = 0;
    if (!task || !task->resume_token)
        return;
    sgi_json_int(sgi_json_get(error, "code"), &code);
    if (sgi_json_string_is(reason, SGI_STR("cancelled")) ||
        sgi_json_string_is(reason, SGI_STR("expired")))
        sgi_task_handle_state(task, SEGUE_TASK_CANCELLED);
    else if (sgi_json_string_is(reason, SGI_STR("completed")))
        sgi_task_handle_state(task, SEGUE_TASK_COMPLETED);
    else if (request->resume_token && code != SGI_RPC_INVALID_PARAMS &&
             code != SGI_RPC_METHOD_NOT_FOUND &&
             !sgi_json_string_is(reason, SGI_STR("elsewhere")))
        sgi_task_handle_state(task, SEGUE_TASK_FAILED);
}
