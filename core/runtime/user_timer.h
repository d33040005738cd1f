/* Timers of the application. */
#ifndef SGI_USER_TIMER_H
#define SGI_USER_TIMER_H

#include <segue/segue_ext.h>

#include "engine/handle.h"
#include "runtime/runtime.h"

/* The callbacks of a timer: on_time, called when the time has come, and free_user. */
typedef struct sgi_user_timer_callback {
    segue_timer_fn on_time;
    void *user;
    segue_free_fn free_user;
} sgi_user_timer_callback;

/* Starts a timer. The result is a reference of the caller, which sgi_user_timer_unref
 * drops. Returns NULL when out of memory. The caller of all functions of this header
 * holds the lock. */
segue_timer *sgi_user_timer_start(segue_runtime *rt, int64_t delay_ms,
                                  const sgi_user_timer_callback *task);
segue_status sgi_user_timer_cancel(segue_timer *timer);
void sgi_user_timer_unref(segue_timer *timer);

#endif
