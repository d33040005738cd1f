/* Which request is meant by a question of the server? The task that it names says it;
 * over HTTP the exchange that brought it does, and what the session's stream brings is
 * no request's. Else it is the oldest that can be asked, as with log messages. Where
 * there is none, it is one that stands for the session: servers ask for the roots as
 * soon as they are initialized. */
#include "engine/asking/asked.h"

#include "engine/asking/request.h"

static bool can_be_asked(const segue_request *request)
{
    return request->events.on_input && request->phase != SGI_PHASE_DONE &&
           (request->calling || request->phase == SGI_PHASE_FOLLOW);
}

static segue_request *standing(const segue_session *session)
{
    segue_request *request = session->standing;
    return request && request->phase == SGI_PHASE_STAND ? request : NULL;
}

segue_request *sgi_asked_owner(segue_session *session, sgi_json task_id)
{
    segue_request *request;
    TAILQ_FOREACH(request, &session->requests, link)
        if (task_id.n && request->task_id && can_be_asked(request) &&
            sgi_json_string_is(task_id, sgi_str_of(request->task_id)))
            return request;
    request = session->hearing ? session->hearing->request : NULL;
    if (request)
        return can_be_asked(request) ? request : standing(session);
    if (session->conn->exchanging && (request = standing(session)))
        return request;
    TAILQ_FOREACH(request, &session->requests, link)
        if (can_be_asked(request))
            return request;
    return standing(session);
}
