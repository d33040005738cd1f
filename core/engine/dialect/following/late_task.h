#ifndef SGI_LATE_TASK_H
#define SGI_LATE_TASK_H

#include "base/thresholds.h"
#include "engine/client/dialects.h"

/* The largest number of cancelled calls of a session whose answers the client waits
 * for. */
#define SGI_LATE_CALLS_MAX SGI_THRESHOLD(late_calls_max)

/* Makes the emitter of a cancelled call wait for the answer, because the answer may name
 * a task. Returns false when the emitter does not wait. The caller must then drop the
 * emitter. */
bool sgi_cancelled_call_await_task(sgi_emitter *emitter);

#endif
