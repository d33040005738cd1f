#include "engine/asking/early_status.h"

#include "engine/asking/request.h"

static void forget(segue_session *session, sgi_early *early)
{
    TAILQ_REMOVE(&session->early.all, early, link);
    session->early.count--;
    sgi_release(sgi_engine_mem(session->engine), early, sizeof *early + early->len);
}

void sgi_early_free(segue_session *session)
{
    sgi_early *early;
    while ((early = TAILQ_FIRST(&session->early.all)))
        forget(session, early);
}

static bool is_awaited(const segue_session *session)
{
    bool is_draft = session->version == SGI_VERSION_DRAFT_2026_V1;
    const segue_request *request;
    TAILQ_FOREACH(request, &session->requests, link)
        if (request->phase == SGI_PHASE_WAIT &&
            (request->asks_task || (is_draft && request->is_call)))
            return true;
    return false;
}

static sgi_early *find(segue_session *session, sgi_str task_id)
{
    sgi_early *early;
    TAILQ_FOREACH(early, &session->early.all, link)
        if (sgi_json_string_is(
                sgi_json_get((sgi_json){early->params, early->len}, "taskId"), task_id))
            return early;
    return NULL;
}

/* Without memory it is not kept: the task is then asked at its interval. */
void sgi_early_keep(segue_session *session, sgi_json params)
{
    sgi_str id;
    if (!is_awaited(session)) {
        sgi_early_free(session);
        return;
    }
    if (params.n > SGI_EARLY_BYTES ||
        !sgi_json_plain_string(sgi_json_get(params, "taskId"), &id))
        return;
    sgi_early *before = find(session, id);
    if (before || session->early.count == SGI_EARLY_MAX)
        forget(session, before ? before : TAILQ_FIRST(&session->early.all));
    sgi_early *early =
        sgi_alloc(sgi_engine_mem(session->engine), sizeof *early + params.n);
    if (!early)
        return;
    early->len = params.n;
    memcpy(early->params, params.p, params.n);
    TAILQ_INSERT_TAIL(&session->early.all, early, link);
    session->early.count++;
}

void sgi_early_tell(segue_request *request)
{
    segue_session *session = request->session;
    bool follows = request->phase == SGI_PHASE_FOLLOW && request->task_id;
    sgi_early *early = follows ? find(session, sgi_str_of(request->task_id)) : NULL;
    if (early) {
        TAILQ_REMOVE(&session->early.all, early, link);
        session->early.count--;
        (sgi_follow_is_draft(request) ? sgi_follow_draft_status : sgi_follow_2025_status)(
            request, (sgi_json){early->params, early->len});
        sgi_release(sgi_engine_mem(session->engine), early, sizeof *early + early->len);
    }
    if (!is_awaited(session))
        sgi_early_free(session);
}
