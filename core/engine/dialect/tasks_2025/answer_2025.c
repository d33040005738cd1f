/* Handles the first answer to a request of 2025-11-25: a plain result, a task with or
 * without segments, or a task that the call did not ask for. */
#include "engine/dialect/following/tasks.h"
#include "engine/response_modes.h"
#include "engine/dialect/tasks_2025/follow_2025.h"

static bool is_of_tasks(const segue_request *request)
{
    return !strncmp(request->method, "tasks/", 6);
}

/* Refuses a task for which the call did not ask (R-2557-10), and ends the request. Also
 * cancels the task, so that the server does no useless work. */
static void refuse(segue_request *request, const sgi_2025_response *reply,
                   const char *why)
{
    sgi_buf id;
    sgi_buf_init(&id, sgi_engine_mem(request->engine));
    bool named = sgi_json_decode(sgi_json_get(reply->named, "taskId"), &id) &&
                 !id.failed && id.len && !memchr(id.p, 0, id.len);
    if (named && sgi_follow_new(request, sgi_buf_str(&id)))
        sgi_follow_cancel_abandoned_task(request);
    sgi_buf_free(&id);
    sgi_request_fail(request, SEGUE_E_PROTOCOL, why);
}

static bool is_stray(const segue_request *request, const sgi_2025_response *reply)
{
    if (reply->kind == SGI_2025_RESPONSE_TASK)
        return sgi_json_get(reply->named, "status").n > 0;
    return reply->kind != SGI_2025_RESPONSE_PLAIN && request->is_call;
}

/* Handles a plain result. The server has answered the call without a task, or with the
 * end of a task that has no segments (R-1905-45). Returns false when further answers
 * follow. */
static bool take_plain(segue_request *request, const sgi_2025_response *reply)
{
    uint8_t allowed = request->session->server.modes & sgi_2025_form(request).modes;
    if (request->session->server.task_calls && !(allowed & SGI_MODE_IMMEDIATE))
        /* the call did not allow a plain result (R-1905-4), so the server has violated
         * the protocol */
        request->engine->warnings++;
    if (!reply->complete)
        return false;
    if (reply->named.n)
        sgi_follow_begin(request, reply->named, sgi_json_get(reply->result, "_meta"));
    sgi_2025_finish_with_result(request, reply);
    return true;
}

bool sgi_2025_take_first_answer(segue_request *request, sgi_json result)
{
    sgi_2025_response reply;
    sgi_2025_response_read(result, &reply);
    if (is_of_tasks(request))
        return false;
    if (sgi_2025_form(request).wish == SGI_TASK_WISH_NONE) {
        if (!is_stray(request, &reply))
            return false;
        refuse(request, &reply,
               "the server answered with a task, but the request did not allow one");
        return true;
    }
    if (reply.kind == SGI_2025_RESPONSE_PLAIN)
        return take_plain(request, &reply);
    if (reply.kind == SGI_2025_RESPONSE_MALFORMED || !reply.named.n) {
        refuse(request, &reply, "the answer is neither a result nor a task");
        return true;
    }
    sgi_follow_begin(request, reply.named, sgi_json_get(result, "_meta"));
    if (sgi_2025_is_live(request) && reply.kind == SGI_2025_RESPONSE_SEGMENTS)
        sgi_2025_take_response(request, &reply, false);
    if (sgi_2025_is_live(request) && sgi_task_state_is_terminal(request->follow->state) &&
        !sgi_2025_of(request)->tracker.complete)
        sgi_2025_act_on_state(request);
    sgi_2025_end_or_send(request);
    sgi_early_status_apply(request);
    return true;
}

bool sgi_2025_take_partial_answer(sgi_emitter *emitter, sgi_json result)
{
    segue_request *request = emitter->request;
    sgi_2025_response reply;
    sgi_2025_response_read(result, &reply);
    bool is_part =
        reply.kind == SGI_2025_RESPONSE_TASK || reply.kind == SGI_2025_RESPONSE_SEGMENTS;
    if (reply.kind == SGI_2025_RESPONSE_PLAIN || reply.fell_back ||
        (is_part && reply.complete))
        return false;
    if (request->phase == SGI_PHASE_WAIT && (!is_part || !reply.named.n))
        return false;
    emitter->begun = true;
    sgi_emitter_note_sign_of_life(emitter);
    if (request->phase == SGI_PHASE_WAIT) {
        sgi_2025_take_first_answer(request, result);
    } else if (request->follow) {
        sgi_2025_take_response(request, &reply, false);
        sgi_2025_end_or_send(request);
    }
    return true;
}
