/* How a request becomes one that follows a task: the id is kept, the application hears of
 * it first (R-2557-60), and the version of the session must be the one that the task was
 * made in (R-2557-62). */
#include "engine/asking/request.h"

bool sgi_follow_settle_birth(segue_request *request)
{
    sgi_birth birth = sgi_birth_of(request->session->version);
    if (request->birth == SGI_BIRTH_UNKNOWN)
        request->birth = birth;
    if (request->birth != birth)
        sgi_request_fail(request, SEGUE_E_NOT_RESUMABLE,
                         "the task is one of another protocol version");
    else if (birth == SGI_BIRTH_2025 && !request->task_2025 &&
             !sgi_follow_2025_begin(request))
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the task");
    return request->phase == SGI_PHASE_FOLLOW;
}

/* What the server says with a task to whoever runs the model is advice (R-2557-12):
 * without memory for it the task goes on. */
static void keep_meta(segue_request *request, sgi_json meta)
{
    if (sgi_json_kind_of(meta) != SGI_JSON_OBJECT)
        return;
    request->meta = sgi_text_dup(sgi_engine_mem(request->engine), meta);
    if (request->meta)
        request->meta_len = meta.n;
    else
        request->engine->warnings++;
}

sgi_json sgi_follow_meta(const segue_request *request, const char *key)
{
    sgi_json meta = {request->meta, request->meta_len};
    return meta.n ? sgi_json_get(meta, key) : (sgi_json){0};
}

void sgi_follow_begin(segue_request *request, sgi_json task, sgi_json meta)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    sgi_inbox_head head = {.kind = SGI_RECORD_TASK};
    sgi_json nested = sgi_json_get(task, "task"); /* as drafts had it */
    sgi_json id;
    sgi_buf text;
    if (sgi_json_kind_of(nested) == SGI_JSON_OBJECT)
        task = nested;
    id = sgi_json_get(task, "taskId");
    if (sgi_json_kind_of(id) != SGI_JSON_STRING || id.n <= 2 || id.n > 4096 + 2) {
        sgi_request_fail(request, SEGUE_E_PROTOCOL, "a task without a usable taskId");
        return;
    }
    sgi_buf_init(&text, mem);
    sgi_json_decode(id, &text);
    bool plain = text.failed || !memchr(text.p, 0, text.len);
    if (plain && !text.failed)
        request->task_id = sgi_text_dup(mem, sgi_buf_str(&text));
    request->credentials = request->session->conn->credentials;
    sgi_buf_free(&text);
    if (!request->task_id) {
        sgi_request_fail(request, plain ? SEGUE_E_NOMEM : SEGUE_E_PROTOCOL,
                         "the taskId cannot be kept");
        return;
    }
    sgi_pieces_free(
        request); /* they end with the task (R-776-20), whose stream has all */
    request->phase = SGI_PHASE_FOLLOW;
    request->tries.method = "tasks/get";
    keep_meta(request, meta);
    sgi_questions_clear(request); /* those of rounds; the task has its own */
    sgi_task_note_poll(request, task);
    sgi_task_echo_note(request, task, true);
    if (!sgi_follow_settle_birth(request))
        return;
    request->hook_pending = request->events.on_task != NULL;
    if (request->hook_pending &&
        !sgi_deliver(request, &head, sgi_str_of(request->task_id))) {
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the task's id");
        return;
    }
    sgi_task_note_status(request, task);
    if (request->task_2025) /* it has just said how it stands */
        sgi_task_poll_later(request);
    if (!request->hook_pending)
        sgi_follow_go(request);
}
