/* Decides the next step for a task of 2025-11-25. These functions only check conditions
 * and change nothing. */
#include "engine/dialect/tasks_2025/follow_2025.h"

bool sgi_2025_segments_can_be_late(const segue_request *request)
{
    return request->calling && request->session->conn->exchanging;
}

static bool may_ask(const segue_request *request)
{
    const sgi_task_2025 *task = sgi_2025_of(request);
    bool backs_off = task->backing_off && sgi_tries_is_waiting(&request->tries);
    return sgi_2025_is_live(request) && !request->follow->hook_pending &&
           !request->follow->paused && !task->asking && !request->cancel_due &&
           !backs_off && sgi_session_is_open(request->session);
}

/* Returns the step; SGI_STEP_NONE while the inbox is full, because this step would bring
 * segments. */
static sgi_step unless_full(const segue_request *request, sgi_step step)
{
    return request->delivery.behind ? SGI_STEP_NONE : step;
}

sgi_step sgi_2025_next_step(const segue_request *request)
{
    const sgi_task_2025 *task = sgi_2025_of(request);
    bool waits = sgi_tries_is_waiting(&request->tries);
    bool ended = sgi_task_state_is_terminal(request->follow->state);
    bool can_pull = sgi_2025_can_pull(task);
    if (!may_ask(request))
        return SGI_STEP_NONE;
    if (request->follow->look_due || (task->why == SGI_WHY_LOOK && !waits))
        return SGI_STEP_LOOK;
    if (task->why == SGI_WHY_LOOK)
        return SGI_STEP_NONE;
    if (task->fetch_due || task->pull_due)
        return unless_full(request, task->fetch_due ? SGI_STEP_FETCH : SGI_STEP_PULL);
    if (waits || request->follow->getting)
        return SGI_STEP_NONE;
    if (ended && sgi_2025_segments_can_be_late(request) &&
        (task->got_segments || request->delivery.behind))
        return SGI_STEP_LISTEN;
    if (!ended && (request->calling || !can_pull || task->idle))
        return SGI_STEP_LOOK;
    return unless_full(request, can_pull ? SGI_STEP_PULL : SGI_STEP_FETCH);
}

/* True when a tasks/result that waits for the end of the task is useful. It is not useful
 * for a task with segments that are pushed or can be pulled. */
bool sgi_2025_may_wait_for_result(const segue_request *request)
{
    const sgi_task_2025 *task = sgi_2025_of(request);
    return may_ask(request) && request->follow->poll_ms >= SGI_WAIT_POLL_MS &&
           !task->waiting && task->vain_waits < SGI_VAIN_WAITS_MAX && !request->calling &&
           !request->delivery.behind && !sgi_2025_can_pull(task) &&
           !sgi_task_state_is_terminal(request->follow->state) &&
           sgi_session_2025_of(request->session)->waits.count <
               sgi_session_2025_of(request->session)->waits.max;
}
