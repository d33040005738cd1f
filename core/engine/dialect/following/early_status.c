#include "engine/dialect/following/early_status.h"

#include "engine/dialect/following/follow.h"
#include "engine/dialect/following/tasks.h"

static void forget(segue_session *session, sgi_early_status_list *list,
                   sgi_early_status *early)
{
    TAILQ_REMOVE(&list->all, early, link);
    list->count--;
    sgi_free(sgi_engine_mem(session->engine), early, sizeof *early + early->len);
}

void sgi_early_status_free(segue_session *session, sgi_early_status_list *list)
{
    sgi_early_status *early;
    while ((early = TAILQ_FIRST(&list->all)))
        forget(session, list, early);
}

/* True when the answer to a waiting request may be a task, and the dialect of the session
 * has notifications about the status of tasks. */
static bool is_awaited(const segue_session *session)
{
    const segue_request *request;
    if (!sgi_cli_follow_ops_of(session)->status)
        return false;
    TAILQ_FOREACH(request, &session->requests, link)
        if (request->phase == SGI_PHASE_WAIT && sgi_cli_may_be_task(request))
            return true;
    return false;
}

static sgi_early_status *find(const sgi_early_status_list *list, sgi_str task_id)
{
    sgi_early_status *early;
    TAILQ_FOREACH(early, &list->all, link)
        if (sgi_json_string_is(
                sgi_json_get((sgi_json){early->params, early->len}, "taskId"), task_id))
            return early;
    return NULL;
}

/* Stores the status. When out of memory, the status is lost, and the client asks for the
 * status at the next poll interval. */
void sgi_early_status_keep(segue_session *session, sgi_json params)
{
    sgi_early_status_list *list = &sgi_session_tasks_of(session)->early;
    sgi_str id;
    if (!is_awaited(session)) {
        sgi_early_status_free(session, list);
        return;
    }
    if (params.n > SGI_EARLY_BYTES ||
        !sgi_json_plain_string(sgi_json_get(params, "taskId"), &id))
        return;
    sgi_early_status *before = find(list, id);
    if (before || list->count == SGI_EARLY_MAX)
        forget(session, list, before ? before : TAILQ_FIRST(&list->all));
    sgi_early_status *early =
        sgi_alloc(sgi_engine_mem(session->engine), sizeof *early + params.n);
    if (!early)
        return;
    early->len = params.n;
    memcpy(early->params, params.p, params.n);
    TAILQ_INSERT_TAIL(&list->all, early, link);
    list->count++;
}

void sgi_early_status_apply(segue_request *request)
{
    segue_session *session = request->session;
    sgi_early_status_list *list = &sgi_session_tasks_of(session)->early;
    bool follows = request->phase == SGI_PHASE_FOLLOW;
    sgi_early_status *early = follows ? find(list, sgi_str_of(request->task_id)) : NULL;
    if (early) {
        TAILQ_REMOVE(&list->all, early, link);
        list->count--;
        request->follower->status(request, (sgi_json){early->params, early->len});
        sgi_free(sgi_engine_mem(session->engine), early, sizeof *early + early->len);
    }
    if (!is_awaited(session))
        sgi_early_status_free(session, list);
}
