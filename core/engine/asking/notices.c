/* What a session tells its requests: that it is open, that it is closed, and what the
 * server says without being asked. A notification names its request by a progress token
 * or a task id; a log message names none. */
#include "engine/asking/request.h"

void sgi_requests_opened(segue_session *session)
{
    segue_request *request, *next;
    SGI_TAILQ_EACH(request, &session->requests, link, next) {
        if (!sgi_session_is_open(session))
            return;
        if (request->phase == SGI_PHASE_WAIT && request->key_sent &&
            !session->has_idempotency && !request->resume_token)
            sgi_request_fail(request, SEGUE_E_DISCONNECTED,
                             "the server that came back knows no idempotency keys");
        else
            sgi_request_go(request);
    }
}

void sgi_requests_closed(segue_session *session, segue_status status, const char *text)
{
    segue_request *request, *next;
    SGI_TAILQ_EACH(request, &session->requests, link, next) {
        sgi_request_fail(request, status, text);
        sgi_deliver_queue(request); /* one that has its result may wait for credit */
    }
}

void sgi_requests_lack(segue_session *session)
{
    segue_request *request;
    TAILQ_FOREACH(request, &session->requests, link)
        request->partial |= request->streaming != NULL;
}

/* The token of a call is good for as long as the task that it became lives (2025-11-25
 * basic/utilities/tasks): its own exchange may be over by then. */
static segue_request *find_by_call(segue_session *session, sgi_json token)
{
    sgi_emitter *emitter = sgi_emitter_find(session, token);
    segue_request *request = emitter ? emitter->request : NULL;
    int64_t id;
    if (request && request->calling == emitter)
        return request;
    bool lasts = session->has_task_calls || session->version == SGI_VERSION_DRAFT_2026_V1;
    if (emitter || !lasts || !sgi_json_int(token, &id))
        return NULL;
    TAILQ_FOREACH(request, &session->requests, link)
        if (request->phase == SGI_PHASE_FOLLOW && request->call_id == id)
            return request;
    return NULL;
}

static void take_progress(segue_request *request, sgi_json params)
{
    sgi_inbox_head head = {.kind = SGI_RECORD_PROGRESS};
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(request->engine));
    sgi_json message = sgi_json_get(params, "message");
    bool ok = sgi_json_double(sgi_json_get(params, "progress"), &head.progress);
    sgi_json_double(sgi_json_get(params, "total"), &head.total);
    if (message.n)
        sgi_json_decode_shown(message, &text);
    if (request->calling)
        sgi_emitter_touch(request->calling);
    ok = ok && request->events.on_progress && /* else nobody asked for it */
         !sgi_resume_is_repeat(request, head.progress);
    if (ok && !text.failed && !sgi_deliver_is_full(request))
        sgi_deliver(request, &head, sgi_buf_str(&text));
    else
        request->dropped++;
    sgi_buf_free(&text);
}

static segue_request *find_by_stream(segue_session *session, sgi_json task_id)
{
    sgi_str id;
    if (!sgi_json_plain_string(task_id, &id))
        return NULL;
    sgi_map_node *node = sgi_map_find(&session->streams, id);
    return node ? SGI_OWNER(node, segue_request, by_stream) : NULL;
}

/* false: no request follows that task. */
static bool take_task_status(segue_session *session, sgi_json params)
{
    segue_request *request, *next;
    bool some = false;
    sgi_json id = sgi_json_get(params, "taskId");
    SGI_TAILQ_EACH(request, &session->requests, link, next) {
        bool is_draft = sgi_follow_is_draft(request);
        if ((!request->task_2025 && !is_draft) || request->phase != SGI_PHASE_FOLLOW ||
            !sgi_json_string_is(id, sgi_str_of(request->task_id)))
            continue;
        (is_draft ? sgi_follow_draft_status : sgi_follow_2025_status)(request, params);
        some = true;
    }
    if (!some)
        sgi_early_keep(session, params);
    return some;
}

bool sgi_requests_notified(segue_session *session, sgi_str method, const sgi_message *msg)
{
    sgi_json params = msg->params;
    segue_request *request;
    if (sgi_str_eq(method, SGI_STR("notifications/tools/list_changed")))
        sgi_task_calls_changed(session);
    if (sgi_str_eq(method, SGI_STR("notifications/tasks/status")))
        return take_task_status(session, params);
    if (sgi_str_eq(method, SGI_STR("notifications/tasks/event"))) {
        static const sgi_str names[] = {SGI_STR_INIT("taskId"), SGI_STR_INIT("seq"),
                                        SGI_STR_INIT("type"), SGI_STR_INIT("payload")};
        sgi_json found[4];
        sgi_json_pick_part(&msg->parts[0], params, names, 4, found);
        sgi_task_event event = {found[1], found[2], found[3], &msg->parts[1]};
        request = find_by_stream(session, found[0]);
        if (request)
            sgi_follow_event(request, &event);
        else
            session->engine->warnings++; /* of a stream that was closed: dropped */
        return true;
    }
    if (sgi_str_eq(method, SGI_STR("notifications/tools/partial_result"))) {
        request = find_by_call(session, sgi_json_get(params, "partialResultToken"));
        if (request && request->calling && request->adds_token)
            sgi_pieces_notified(request, params);
        else
            session->engine->warnings++; /* nobody waits for it (R-776-19) */
        return true;
    }
    if (sgi_str_eq(method, SGI_STR("notifications/requests/resumePolicy"))) {
        sgi_resume_policy(session, params);
        return true;
    }
    if (sgi_str_eq(method, SGI_STR("notifications/progress"))) {
        request = find_by_call(session, sgi_json_get(params, "progressToken"));
        if (request)
            take_progress(request, params);
        return true;
    }
    return sgi_str_eq(method, SGI_STR("notifications/message")) &&
           sgi_log_wish_take(session, params);
}
