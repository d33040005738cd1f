/* The first answer to a request of 2025-11-25: a plain result, a task, with segments or
 * without, or something that nobody asked for. */
#include "engine/asking/follow_2025.h"
#include "engine/dialect/response_modes.h"

static bool is_of_tasks(const segue_request *request)
{
    return !strncmp(request->method, "tasks/", 6);
}

/* A task that nobody asked for (R-2557-10): it is of no use, and its server may save the
 * work. */
static void refuse(segue_request *request, const sgi_response *reply, const char *why)
{
    sgi_buf id;
    sgi_buf_init(&id, sgi_engine_mem(request->engine));
    if (sgi_json_decode(sgi_json_get(reply->named, "taskId"), &id) && !id.failed &&
        id.len && !memchr(id.p, 0, id.len))
        request->task_id =
            sgi_text_dup(sgi_engine_mem(request->engine), sgi_buf_str(&id));
    sgi_buf_free(&id);
    if (request->task_id)
        sgi_follow_abandon(request);
    sgi_request_fail(request, SEGUE_E_PROTOCOL, why);
}

static bool is_stray(const segue_request *request, const sgi_response *reply)
{
    if (reply->kind == SGI_RESPONSE_TASK)
        return sgi_json_get(reply->named, "status").n > 0;
    return reply->kind != SGI_RESPONSE_PLAIN && request->is_call;
}

/* The server took the call as none that may be a task. */
static bool take_plain(segue_request *request, const sgi_response *reply)
{
    uint8_t allowed = request->session->peer_modes & request->listed_modes;
    if (request->session->has_task_calls && !(allowed & SGI_MODE_IMMEDIATE))
        request->engine->warnings++; /* a mode that was not listed (R-1905-4) */
    if (!reply->complete)
        return false;
    sgi_2025_finish(request, reply);
    return true;
}

bool sgi_follow_2025_answer(segue_request *request, sgi_json result)
{
    sgi_response reply;
    sgi_response_read(result, &reply);
    if (is_of_tasks(request))
        return false;
    if (!request->asks_task) {
        if (!is_stray(request, &reply))
            return false;
        refuse(request, &reply, "a task in answer to a request that cannot be one");
        return true;
    }
    if (reply.kind == SGI_RESPONSE_PLAIN)
        return take_plain(request, &reply);
    if (reply.kind == SGI_RESPONSE_MALFORMED || !reply.named.n) {
        refuse(request, &reply, "an answer that is neither a result nor a task");
        return true;
    }
    sgi_follow_begin(request, reply.named, sgi_json_get(result, "_meta"));
    if (sgi_2025_is_live(request) && reply.kind == SGI_RESPONSE_SEGMENTS)
        sgi_2025_take(request, &reply, false);
    if (sgi_2025_is_live(request) && sgi_task_state_is_terminal(request->state) &&
        !request->task_2025->tracker.complete)
        sgi_2025_heed_state(request);
    sgi_2025_settle(request);
    sgi_early_tell(request);
    return true;
}

bool sgi_follow_2025_more(sgi_emitter *emitter, sgi_json result)
{
    segue_request *request = emitter->request;
    sgi_response reply;
    sgi_response_read(result, &reply);
    bool is_part = reply.kind == SGI_RESPONSE_TASK || reply.kind == SGI_RESPONSE_SEGMENTS;
    if (reply.kind == SGI_RESPONSE_PLAIN || reply.fell_back ||
        (is_part && reply.complete))
        return false;
    if (request->phase == SGI_PHASE_WAIT && (!is_part || !reply.named.n))
        return false;
    emitter->begun = true;
    sgi_emitter_touch(emitter);
    if (request->phase == SGI_PHASE_WAIT) {
        sgi_follow_2025_answer(request, result);
    } else {
        sgi_2025_take(request, &reply, false);
        sgi_2025_settle(request);
    }
    return true;
}
