/* The references of a request. The request stays in memory while the application's
 * handle, the session's list or the ready queue has a reference to it. */
#include "engine/client/server_questions.h"
#include "engine/client/dialects.h"

void sgi_request_free(segue_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    request->handle.magic = SGI_MAGIC_FREED;
    sgi_engine_clear_timer(request->engine, &request->deadline);
    sgi_tries_stop(&request->tries);
    sgi_questions_clear(request);
    sgi_server_questions_clear(request);
    sgi_text_free(mem, request->method);
    if (request->params.p)
        sgi_free(mem, (char *)request->params.p, request->params.n + 1);
    sgi_text_free(mem, request->log_level);
    sgi_text_free(mem, request->meta);
    sgi_text_free(mem, request->key.text);
    sgi_cli_dialect_states_free(request);
    sgi_text_free(mem, request->task_id);
    sgi_fold_free(&request->fold);
    sgi_buf_free(&request->earlier.json);
    sgi_buf_free(&request->delivery.inbox);
    sgi_buf_free(&request->delivery.taken);
    sgi_buf_free(&request->result);
    sgi_error_free(request->error);
    if (request->task)
        sgi_task_handle_unref(request->task);
    segue_session *session = request->session;
    sgi_free(mem, request, sizeof *request);
    sgi_session_unref(session);
}

void sgi_request_ref(segue_request *request)
{
    request->refs++;
}

void sgi_request_unref(segue_request *request)
{
    if (--request->refs == 0)
        sgi_request_free(request);
}

void sgi_request_queue_callbacks(segue_request *request)
{
    if (!request->ready.queued)
        request->refs++;
    sgi_ready_queue_add(request->engine, &request->ready);
}
