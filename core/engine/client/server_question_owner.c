/* Finds the application's request to which a question of the server belongs. If the
 * question names a task, it goes to the request of that task. Over HTTP, a question on
 * the exchange of a request goes to that request. A question on the session's GET stream
 * goes to the request that receives questions for the session (segue_session_take_input).
 * Any other question goes to the oldest request that can receive questions. If there is
 * no such request, the question goes to the request that receives questions for the
 * session. For example, servers ask for the roots right after the handshake. */
#include "engine/client/server_questions.h"

#include "engine/client/request.h"

/* True when the server may ask for this request: it is under way, or it was lost and the
 * server may work on it until the client sends it again. */
static bool can_be_asked(const segue_request *request)
{
    bool is_lost =
        request->phase == SGI_PHASE_WAIT && sgi_tries_is_waiting(&request->tries);
    return request->events.on_input && !sgi_request_is_over(request) &&
           (request->calling || is_lost || request->phase == SGI_PHASE_FOLLOW);
}

static segue_request *standing(const segue_session *session)
{
    segue_request *request = session->standing;
    return request && request->phase == SGI_PHASE_STAND ? request : NULL;
}

segue_request *sgi_server_question_owner(segue_session *session, sgi_json task_id)
{
    segue_request *request;
    TAILQ_FOREACH(request, &session->requests, link)
        if (task_id.n && request->task_id && can_be_asked(request) &&
            sgi_json_string_is(task_id, sgi_str_of(request->task_id)))
            return request;
    request = session->hearing ? session->hearing->request : NULL;
    if (session->hearing && session->hearing->late)
        /* the application has cancelled the call to which this question belongs, so no
         * request gets the question */
        return NULL;
    if (request)
        return can_be_asked(request) ? request : standing(session);
    if (session->conn->exchanging && (request = standing(session)))
        return request;
    TAILQ_FOREACH(request, &session->requests, link)
        if (can_be_asked(request))
            return request;
    return standing(session);
}
