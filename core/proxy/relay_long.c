/* What a relay does while its call takes long: it reports heartbeats, and answers the
 * call with a handle after --task-after. */
#include "handle.h"

static void unref(void *user)
{
    relay_unref(user);
}

/* ---- heartbeats ---- */

static void set_beat(relay *r);

/* Reports a tiny progress to the client. A client with a time limit then sees that the
 * call is alive, and continues to wait. */
static void beat(void *user)
{
    relay *r = user;
    segue_timer_free(r->beat);
    r->beat = NULL;
    if (!r->call)
        return;
    r->beats++;
    segue_call_progress(r->call, r->progress + (double)r->beats * 1e-6, 0, NULL, NULL);
    set_beat(r);
}

static void set_beat(relay *r)
{
    int64_t ms = r->up->source->proxy->config.heartbeat_ms;
    if (!ms || !r->is_tool)
        return;
    r->refs++;
    if (segue_timer_start(r->up->source->proxy->runtime, ms, beat, r, unref, &r->beat) !=
        SEGUE_OK)
        r->refs--;
}

/* ---- handles ---- */

static void set_wait(relay *r);

/* Answers the call with a handle, because the call takes long and its client does not
 * support tasks. */
static void answer_by_handle(void *user)
{
    relay *r = user;
    segue_timer_free(r->wait);
    r->wait = NULL;
    if (r->call && r->unsent)
        set_wait(r);
    if (!r->call || !r->request || r->cancelled)
        return;
    if (segue_call_defer(r->call, 0, NULL) != SEGUE_OK)
        handle_begin(r);
}

static void set_wait(relay *r)
{
    const config *c = &r->up->source->proxy->config;
    if (!c->handle || !r->is_tool)
        return;
    r->refs++;
    if (segue_timer_start(r->up->source->proxy->runtime, c->task_after_ms,
                          answer_by_handle, r, unref, &r->wait) != SEGUE_OK)
        r->refs--;
}

/* ---- both ---- */

void relay_set_timers(relay *r)
{
    set_beat(r);
    set_wait(r);
}

static void stop_timer(segue_timer **timer)
{
    if (*timer)
        segue_timer_cancel(*timer);
    segue_timer_free(*timer);
    *timer = NULL;
}

void relay_stop_timers(relay *r)
{
    stop_timer(&r->beat);
    stop_timer(&r->wait);
}
