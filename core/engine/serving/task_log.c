/* What the log says of tasks, at level info: how each begins and ends, and whose it is
 * (R-2557-54). Look-ups are not told: clients poll. */
#include "engine/serving/principal.h"
#include "engine/serving/server.h"
#include "engine/serving/task.h"

/* Enough of an id to find the lines of one task, and too little to use it. */
#define TOLD_OF_ID 8

static void tell(const sgi_op *op, const char *what)
{
    const char *name = op->who->name;
    sgi_engine_log(op->engine, SEGUE_LOG_INFO,
                   "task %.*s... of %.64s %s (principal: %.128s)", TOLD_OF_ID,
                   op->task_id, op->item->key, what, name ? name : "none");
}

void sgi_task_tell_begin(const sgi_op *op)
{
    tell(op, "is created");
}

void sgi_task_tell_end(const sgi_op *op)
{
    static const char *const ends[] = {
        [SGI_FINAL_NONE] = "has not ended",
        [SGI_FINAL_RESULT] = "has completed",
        [SGI_FINAL_RESULT_IS_ERROR] = "has ended with a result that is an error",
        [SGI_FINAL_ERROR] = "has failed",
        [SGI_FINAL_CANCELLED] = "was cancelled",
        [SGI_FINAL_EXPIRED] = "has expired",
    };
    tell(op, ends[op->final]);
}
