#ifndef SGI_LATE_TASK_H
#define SGI_LATE_TASK_H

#include "engine/asking/request.h"

/* Calls of a session that were cancelled, and whose answers are still looked at. */
#define SGI_LATE_CALLS_MAX 64

/* The call of this emitter was cancelled: its answer is waited for, if it may name a
 * task. false: the emitter is to be dropped. */
bool sgi_late_task_wait(sgi_emitter *emitter);

#endif
