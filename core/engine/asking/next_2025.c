/* What is done next about a task of 2025-11-25: the one place where all that is noted of
 * it is weighed, and nothing is changed. */
#include "engine/asking/follow_2025.h"

bool sgi_2025_is_overtaken(const segue_request *request)
{
    return request->calling && request->session->conn->exchanging;
}

static bool may_ask(const segue_request *request)
{
    const sgi_task_2025 *task = request->task_2025;
    bool backs_off = task->backing_off && sgi_tries_wait(&request->tries);
    return sgi_2025_is_live(request) && !request->hook_pending && !request->paused &&
           !task->asking && !request->cancel_due && !backs_off &&
           sgi_session_is_open(request->session);
}

/* No more than is delivered. */
static sgi_step unless_full(const segue_request *request, sgi_step step)
{
    return request->behind ? SGI_STEP_NONE : step;
}

sgi_step sgi_2025_next(const segue_request *request)
{
    const sgi_task_2025 *task = request->task_2025;
    bool waits = sgi_tries_wait(&request->tries);
    bool ended = sgi_task_state_is_terminal(request->state);
    bool can_pull = sgi_2025_can_pull(task);
    if (!may_ask(request))
        return SGI_STEP_NONE;
    if (request->look_due || (task->why == SGI_WHY_LOOK && !waits))
        return SGI_STEP_LOOK;
    if (task->why == SGI_WHY_LOOK)
        return SGI_STEP_NONE;
    if (task->fetch_due || task->pull_due)
        return unless_full(request, task->fetch_due ? SGI_STEP_FETCH : SGI_STEP_PULL);
    if (waits || request->getting)
        return SGI_STEP_NONE;
    if (ended && sgi_2025_is_overtaken(request) && (task->heard || request->behind))
        return SGI_STEP_LISTEN;
    if (!ended && (request->calling || !can_pull || task->idle))
        return SGI_STEP_LOOK;
    return unless_full(request, can_pull ? SGI_STEP_PULL : SGI_STEP_FETCH);
}

/* Segments are pushed, or pulled at each interval: those are not waited for. */
bool sgi_2025_may_wait(const segue_request *request)
{
    const sgi_task_2025 *task = request->task_2025;
    return may_ask(request) && request->poll_ms >= SGI_WAIT_POLL_MS && !task->waiting &&
           task->vain_waits < SGI_VAIN_WAITS_MAX && !request->calling &&
           !request->behind && !sgi_2025_can_pull(task) &&
           !sgi_task_state_is_terminal(request->state) &&
           request->session->waits < request->session->max_waits;
}
