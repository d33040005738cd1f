/* Functions of timers. */
#include "api/guard.h"
#include "runtime/user_timer.h"

segue_status segue_timer_start(segue_runtime *runtime, int64_t delay_ms,
                               segue_timer_fn on_time, void *user,
                               segue_free_fn free_user, segue_timer **out)
{
    sgi_user_timer_callback task = {on_time, user, free_user};
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_timer_start, runtime);
    if (status == SEGUE_OK && (delay_ms < 0 || !on_time))
        status = SEGUE_E_INVALID;
    if (status != SEGUE_OK)
        return status;
    sgi_enter_runtime(runtime);
    status = sgi_runtime_is_open(runtime) ? SEGUE_OK : SEGUE_E_CLOSED;
    segue_timer *timer =
        status == SEGUE_OK ? sgi_user_timer_start(runtime, delay_ms, &task) : NULL;
    if (status == SEGUE_OK && !timer)
        status = SEGUE_E_NOMEM;
    if (timer && out) {
        sgi_handle_note_given(timer);
        *out = timer;
    } else if (timer) {
        sgi_user_timer_unref(timer);
    }
    return sgi_leave_runtime(runtime, status, NULL);
}

segue_status segue_timer_cancel(segue_timer *timer)
{
    segue_status status = sgi_enter(SGI_FN_segue_timer_cancel, timer, SGI_MAGIC_TIMER);
    if (status != SEGUE_OK)
        return status;
    status = sgi_user_timer_cancel(timer);
    sgi_leave(timer);
    return status;
}

void segue_timer_free(segue_timer *timer)
{
    if (sgi_enter(SGI_FN_segue_timer_free, timer, SGI_MAGIC_TIMER) != SEGUE_OK)
        return;
    segue_runtime *runtime = sgi_handle_runtime(timer);
    sgi_engine *engine = ((const sgi_handle *)(const void *)timer)->engine;
    sgi_user_timer_unref(timer);
    sgi_handle_note_freed(engine);
    sgi_runtime_unlock(runtime);
}
