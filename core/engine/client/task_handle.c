/* segue_task: a handle of a task whose id the application has stored, or of a task or
 * resumable request (SEP-975) that a resume token describes. The task may belong to any
 * revision of the protocol. A handle does not keep the task or the request alive, and
 * sends nothing by itself. Requests that are made from the handle are ordinary
 * requests. */
#include "engine/client/dialects.h"

int32_t sgi_task_state_from_status(sgi_json status)
{
    static const struct {
        const char *name;
        int32_t state;
    } known[] = {
        {"working", SEGUE_TASK_WORKING},
        {"input_required", SEGUE_TASK_INPUT_REQUIRED},
        {"completed", SEGUE_TASK_COMPLETED},
        {"failed", SEGUE_TASK_FAILED},
        {"cancelled", SEGUE_TASK_CANCELLED},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sgi_json_string_is(status, sgi_str_of(known[i].name)))
            return known[i].state;
    return SEGUE_TASK_UNKNOWN;
}

static void free_task(segue_task *task)
{
    const sgi_mem *mem = sgi_engine_mem(task->session->engine);
    task->handle.magic = SGI_MAGIC_FREED;
    sgi_text_free(mem, task->id);
    sgi_text_free(mem, task->token);
    sgi_text_free(mem, task->resume_token);
    sgi_buf_free(&task->echo);
    sgi_free(mem, task, sizeof *task);
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
    task->follower = spec->follower;
    task->inquiry = spec->inquiry;
    task->call_id = spec->resume_id;
    sgi_buf_add_str(&task->echo, spec->echo);
    return task->id && !task->echo.failed;
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
    sgi_buf_init(&task->echo, sgi_engine_mem(session->engine));
    if (!copy_spec(task, spec, token)) {
        free_task(task);
        return SEGUE_E_NOMEM;
    }
    sgi_session_ref(session);
    *out = task;
    return SEGUE_OK;
}

segue_status sgi_task_handle_new_for_id(segue_session *session, const char *id,
                                        segue_task **out)
{
    sgi_request_spec spec = {.task_id = sgi_str_of(id)};
    if (!spec.task_id.n || spec.task_id.n > SGI_TASK_ID_MAX ||
        !sgi_utf8_valid(spec.task_id, NULL))
        return sgi_refuse(session->engine, SEGUE_E_INVALID,
                          "the task id has to be 1 to %d bytes of UTF-8",
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

void sgi_task_handle_set_state(segue_task *task, int32_t state)
{
    if (!sgi_task_state_is_terminal(task->state))
        task->state = state;
}
