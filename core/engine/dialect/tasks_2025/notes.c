/* notifications/tasks/status: each visible change of a task is sent to the conversation
 * that made the task, with the same content as the answer to tasks/get. A notification
 * that cannot be sent at once is dropped, because the client can use tasks/get. This
 * happens when the client is not connected, or when too much is unsent. A notification
 * never comes before the answer that names the task. The notification of the task's end
 * never comes before the last answer. */
#include "engine/dialect/tasks_2025/tasks_2025.h"

#include "engine/server/task_creator.h"

static void tell(sgi_op *op)
{
    sgi_sending sending;
    sgi_conn *conn = sgi_task_creator_conn(op);
    op->served->creator->due = false;
    op->served->creator->end_told = sgi_op_state(op) >= SGI_STATE_COMPLETED;
    if (!conn)
        return;
    sgi_send_begin_notification(&sending, conn, "notifications/tasks/status");
    sgi_tasks_2025_write_task(&sending.w, op, NULL);
    sgi_send_end(&sending);
}

static void changed(sgi_op_watch *watch, sgi_op *op)
{
    sgi_task_creator *creator = op->served->creator;
    (void)watch;
    if (creator->end_told)
        return;
    creator->due = true;
    if (creator->told && !(sgi_op_has_ended(op) && sgi_segments_push_is_open(op)))
        tell(op);
}

void sgi_tasks_2025_set_creator(sgi_op *op, sgi_reply *reply)
{
    sgi_task_creator_set(op, reply, changed);
}

void sgi_tasks_2025_on_request(sgi_op *op, const sgi_reply *reply)
{
    if (sgi_op_has_ended(op) || !reply->peer)
        return;
    sgi_task_creator_replace_gone(op, reply->peer);
    sgi_question_requests_send_soon(op);
}

void sgi_tasks_2025_start_notifying(sgi_op *op)
{
    sgi_task_creator *creator = op->served->creator;
    if (!creator || creator->only_asked)
        return;
    bool news = !creator->told && sgi_op_state(op) != SGI_STATE_WORKING;
    creator->told = true;
    if (creator->due || news)
        changed(&creator->watch, op);
    sgi_question_requests_send_soon(op);
}
