/* Running a task again from one of its segments. */
#ifndef SGI_INSPECT_RERUN_H
#define SGI_INSPECT_RERUN_H

#include "inspect/inspect.h"

/* Makes a new task with the arguments and the owner of another one, and with its first
 * `keep` segments. A server of the store goes on behind them. new_id receives its task
 * id. SEGUE_E_INVALID and SEGUE_E_UNSUPPORTED with *why, a static text, when there cannot
 * be such a task. */
segue_status sgi_inspect_rerun(sgi_inspection *inspection, const char *task_id,
                               uint64_t keep, char new_id[SGI_OPERATION_TEXT + 1],
                               const char **why);

#endif
