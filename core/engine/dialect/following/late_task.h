#ifndef SGI_LATE_TASK_H
#define SGI_LATE_TASK_H

#include "engine/client/dialects.h"

/* The largest number of cancelled calls of a session whose answers the client still waits
 * for. */
#define SGI_LATE_CALLS_MAX 64

/* Lets the emitter of a cancelled call wait for the answer, because the answer may name a
 * task. Returns true when the emitter waits, false when it must be dropped. */
bool sgi_cancelled_call_await_task(sgi_emitter *emitter);

#endif
