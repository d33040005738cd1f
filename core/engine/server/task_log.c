/* Logs, at level info, that a task has begun and how it has ended, with its owner
 * (R-2557-54). Look-ups of a task are not logged, because clients poll. */
#include "engine/server/call_report.h"
#include "engine/server/principal.h"
#include "engine/server/server.h"
#include "engine/server/task.h"

/* Number of characters of a task id in a log message. The number is large enough to find
 * the messages of one task, and too small to give access to the task. */
#define TOLD_OF_ID 8

static void tell(const sgi_op *op, const char *what)
{
    const char *name = op->served->who->name;
    /* a task that was taken over can be of a tool that this server does not have */
    const char *tool = op->served->item ? op->served->item->key : "an unknown tool";
    sgi_engine_log(op->engine, SEGUE_LOG_INFO,
                   "task %.*s... of %.64s %s (principal: %.128s)", TOLD_OF_ID,
                   op->task_id, tool, what, name ? name : "none");
}

void sgi_task_log_begin(const sgi_op *op)
{
    tell(op, "is created");
    sgi_call_event_report(op, SGI_EVENT_task_created);
}

void sgi_task_log_end(const sgi_op *op)
{
    static const char *const ends[] = {
        [SGI_FINAL_NONE] = "has not ended",
        [SGI_FINAL_RESULT] = "has completed",
        [SGI_FINAL_RESULT_IS_ERROR] = "has ended with a result that is an error",
        [SGI_FINAL_ERROR] = "has failed",
        [SGI_FINAL_CANCELLED] = "was cancelled",
        [SGI_FINAL_EXPIRED] = "has expired",
    };
    tell(op, ends[op->head.final]);
    sgi_call_event_report_status(op, SGI_EVENT_task_ended);
}
