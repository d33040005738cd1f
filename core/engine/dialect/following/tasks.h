/* The state that all dialects of tasks share in a session (sgi_cli_tasks): statuses that
 * came before the answer that names their task, and cancelled calls whose answer may
 * still name a task. */
#ifndef SGI_CLI_TASKS_H
#define SGI_CLI_TASKS_H

#include "engine/dialect/rows.h"
#include "engine/dialect/following/early_status.h"
#include "engine/dialect/following/late_task.h"

typedef struct sgi_session_tasks {
    sgi_cli_dialect_state state;
    sgi_early_status_list early;
    /* number of cancelled calls whose answer may still name a task (late_task.h) */
    int32_t late_calls;
} sgi_session_tasks;

static inline sgi_session_tasks *sgi_session_tasks_of(const segue_session *session)
{
    return sgi_cli_dialect_session_state(session, &sgi_cli_tasks);
}

/* Returns the object in the answer of a call that describes a task; empty when the answer
 * has no task. */
sgi_json sgi_answer_task_object(sgi_json result);

#endif
