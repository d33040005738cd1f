/* Passes events of a session to its requests: the session opens or closes, or the server
 * sends a notification. A notification names its request by a progress token or a task
 * id. A log message does not name a request. */
#include "engine/client/dialects.h"

void sgi_requests_on_session_open(segue_session *session)
{
    segue_request *request, *next;
    SGI_TAILQ_EACH(request, &session->requests, link, next) {
        if (!sgi_session_is_open(session))
            return;
        if (request->phase == SGI_PHASE_WAIT && request->key.sent &&
            !session->server.idempotency && !sgi_cli_is_resumable(request))
            sgi_request_fail(request, SEGUE_E_DISCONNECTED,
                             "the client connected again, but the server supports no "
                             "idempotency keys, so the call cannot be sent again");
        else
            sgi_request_send_due(request);
    }
}

void sgi_requests_on_session_close(segue_session *session, segue_status status,
                                   const char *text)
{
    segue_request *request, *next;
    SGI_TAILQ_EACH(request, &session->requests, link, next) {
        sgi_request_fail(request, status, text);
        /* A request that already has its result only delivers its remaining segments, now
         * without waiting until the application permits more (credit). */
        sgi_request_queue_callbacks(request);
    }
}

void sgi_requests_fetch_results(segue_session *session)
{
    segue_request *request;
    TAILQ_FOREACH(request, &session->requests, link)
        sgi_cli_note_lost_message(request);
}

/* Finds a call by its progress token. When the call has become a task, the progress token
 * stays valid as long as the task, even after the exchange of the call has ended
 * (2025-11-25 basic/utilities/tasks). */
segue_request *sgi_requests_find_by_progress_token(segue_session *session, sgi_json token)
{
    sgi_emitter *emitter = sgi_emitter_find(session, token);
    segue_request *request = emitter ? emitter->request : NULL;
    int64_t id;
    if (request && request->calling == emitter)
        return request;
    if (emitter || !sgi_json_read_int(token, &id))
        return NULL;
    TAILQ_FOREACH(request, &session->requests, link)
        if (request->phase == SGI_PHASE_FOLLOW && request->call_id == id)
            return request->follower->keeps_call_token(request) ? request : NULL;
    return NULL;
}

/* True for a progress value that is not higher than the last one. Progress must increase,
 * so the notification is a repetition (R-975-20) and does not show that the request makes
 * progress. */
static bool is_repeat(segue_request *request, double progress)
{
    if (progress <= request->last_progress)
        return sgi_cli_is_resumable(request);
    request->last_progress = progress;
    sgi_tries_reset(&request->tries);
    return false;
}

static void take_progress(segue_request *request, sgi_json params)
{
    sgi_inbox_record_head head = {.kind = SGI_RECORD_PROGRESS};
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(request->engine));
    sgi_json message = sgi_json_get(params, "message");
    bool ok = sgi_json_read_double(sgi_json_get(params, "progress"), &head.progress);
    sgi_json_read_double(sgi_json_get(params, "total"), &head.total);
    if (message.n)
        sgi_json_decode_without_nul(message, &text);
    if (request->calling)
        sgi_emitter_note_sign_of_life(request->calling);
    /* a request without on_progress did not ask for progress, so the notification is
     * dropped */
    ok = ok && request->events.on_progress && !is_repeat(request, head.progress);
    if (ok && !text.failed && !sgi_inbox_is_full(request))
        sgi_inbox_add_record(request, &head, sgi_buf_str(&text));
    else
        request->delivery.dropped++;
    sgi_buf_free(&text);
}

bool sgi_requests_take_notification(segue_session *session, sgi_str method,
                                    const sgi_message *msg)
{
    sgi_json params = msg->params;
    segue_request *request;
    bool taken = false;
    if (sgi_cli_take_notification(session, method, msg, &taken))
        return taken;
    if (sgi_str_eq(method, SGI_STR("notifications/progress"))) {
        request = sgi_requests_find_by_progress_token(
            session, sgi_json_get(params, "progressToken"));
        if (request)
            take_progress(request, params);
        return true;
    }
    return sgi_str_eq(method, SGI_STR("notifications/message")) &&
           sgi_requests_take_log_message(session, params);
}
