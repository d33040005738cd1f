/* notifications/tasks/status: each visible change of a task goes to the conversation that
 * made it, as tasks/get would show it there. What cannot be said at once, because there
 * is nobody or too much is unsent, is dropped: the client asks when it wants to know.
 *
 * It comes in order with the answers to the request itself: after the one that tells of
 * the task, and the end of the task after the last of them. */
#include "engine/dialect/tasks_2025.h"

#include "engine/serving/origin.h"

static void tell(sgi_op *op)
{
    sgi_sending sending;
    sgi_conn *conn = sgi_origin_conn(op);
    op->origin->due = false;
    op->origin->end_told = sgi_op_state(op) >= SGI_STATE_COMPLETED;
    if (!conn)
        return;
    sgi_send_notification(&sending, conn, "notifications/tasks/status");
    sgi_tasks_2025_write(&sending.w, op, NULL);
    sgi_send_end(&sending);
}

static void changed(sgi_watch *watch, sgi_op *op)
{
    sgi_origin *origin = op->origin;
    (void)watch;
    if (origin->end_told)
        return;
    origin->due = true;
    if (origin->told && !(sgi_op_has_ended(op) && sgi_push_is_open(op)))
        tell(op);
}

void sgi_tasks_2025_listen(sgi_op *op, sgi_reply *reply)
{
    sgi_origin_set(op, reply, changed);
}

void sgi_tasks_2025_follow(sgi_op *op, const sgi_reply *reply)
{
    if (sgi_op_has_ended(op) || !reply->peer)
        return;
    sgi_origin_move(op, reply->peer);
    sgi_asks_place(op);
}

void sgi_tasks_2025_told(sgi_op *op)
{
    sgi_origin *origin = op->origin;
    if (!origin || origin->only_asked)
        return;
    bool news = !origin->told && sgi_op_state(op) != SGI_STATE_WORKING;
    origin->told = true;
    if (origin->due || news)
        changed(&origin->watch, op);
    sgi_asks_place(op);
}
