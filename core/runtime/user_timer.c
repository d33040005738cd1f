/* Timers of the application. A timer has two references: the application's handle has
 * one, and the timer itself has one until its callbacks have run. */
#include "runtime/user_timer.h"

struct segue_timer {
    sgi_handle handle;
    int32_t refs;
    sgi_timer timer;
    sgi_ready_object ready;
    sgi_stop_hook hook;
    segue_runtime *runtime;
    sgi_user_timer_callback task;
    bool cancelled;
    bool begun; /* true = on_time was called, or will never be called */
};

static void run_task(segue_timer *t)
{
    sgi_engine *engine = t->handle.engine;
    t->begun = true;
    if (t->cancelled)
        return;
    sgi_user_code_begin(engine);
    t->task.on_time(t->task.user);
    sgi_user_code_end(engine);
}

static int32_t deliver(sgi_ready_object *ready, int32_t budget)
{
    segue_timer *t = SGI_OWNER(ready, segue_timer, ready);
    (void)budget;
    run_task(t);
    sgi_user_data_free(t->handle.engine, t->task.free_user, t->task.user);
    sgi_user_timer_unref(t);
    return 1;
}

static void end(segue_timer *t)
{
    sgi_engine_clear_timer(t->handle.engine, &t->timer);
    sgi_runtime_remove_stop_hook(t->runtime, &t->hook);
    sgi_ready_queue_add(t->handle.engine, &t->ready);
}

static void time_has_come(sgi_timer *timer)
{
    end(SGI_OWNER(timer, segue_timer, timer));
}

static void runtime_stops(sgi_stop_hook *hook)
{
    segue_timer *t = SGI_OWNER(hook, segue_timer, hook);
    t->cancelled = true;
    end(t);
}

segue_timer *sgi_user_timer_start(segue_runtime *rt, int64_t delay_ms,
                                  const sgi_user_timer_callback *task)
{
    sgi_engine *engine = sgi_runtime_engine(rt);
    segue_timer *t = sgi_zalloc(sgi_engine_mem(engine), sizeof *t);
    if (!t)
        return NULL;
    t->handle = (sgi_handle){SGI_MAGIC_TIMER, engine};
    t->refs = 2;
    t->runtime = rt;
    t->task = *task;
    t->ready.run = deliver;
    t->hook.fn = runtime_stops;
    sgi_runtime_add_stop_hook(rt, &t->hook);
    if (delay_ms > 0)
        sgi_engine_set_timer(engine, &t->timer, delay_ms, time_has_come);
    else
        end(t);
    return t;
}

segue_status sgi_user_timer_cancel(segue_timer *t)
{
    if (t->begun)
        return SEGUE_E_TERMINAL;
    if (!t->cancelled) {
        t->cancelled = true;
        end(t);
    }
    return SEGUE_OK;
}

void sgi_user_timer_unref(segue_timer *t)
{
    if (--t->refs)
        return;
    sgi_free(sgi_engine_mem(t->handle.engine), t, sizeof *t);
}
