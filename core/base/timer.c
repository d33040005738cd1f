#include "base/timer.h"

#define SPILLED SIZE_MAX

void sgi_timers_init(sgi_timers *timers, const sgi_mem *mem)
{
    *timers = (sgi_timers){.mem = mem};
}

void sgi_timers_free(sgi_timers *timers)
{
    for (size_t i = 0; i < timers->count; i++)
        timers->heap[i]->slot = 0;
    for (; timers->spilled; timers->spilled = timers->spilled->next)
        timers->spilled->slot = 0;
    sgi_free(timers->mem, timers->heap, timers->cap * sizeof *timers->heap);
    sgi_timers_init(timers, timers->mem);
}

static void place(sgi_timers *timers, size_t i, sgi_timer *timer)
{
    timers->heap[i] = timer;
    timer->slot = i + 1;
}

static void sift_up(sgi_timers *timers, size_t i)
{
    sgi_timer *timer = timers->heap[i];
    for (; i > 0 && timers->heap[(i - 1) / 2]->at_ms > timer->at_ms; i = (i - 1) / 2)
        place(timers, i, timers->heap[(i - 1) / 2]);
    place(timers, i, timer);
}

static void sift_down(sgi_timers *timers, size_t i)
{
    sgi_timer *timer = timers->heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count &&
            timers->heap[child + 1]->at_ms < timers->heap[child]->at_ms)
            child++;
        if (timers->heap[child]->at_ms >= timer->at_ms)
            break;
        place(timers, i, timers->heap[child]);
        i = child;
    }
    place(timers, i, timer);
}

static bool make_room(sgi_timers *timers)
{
    if (timers->count < timers->cap)
        return true;
    size_t cap = timers->cap ? timers->cap * 2 : 16;
    sgi_timer **heap = sgi_realloc(timers->mem, timers->heap, timers->cap * sizeof *heap,
                                   cap * sizeof *heap);
    if (!heap)
        return false;
    timers->heap = heap;
    timers->cap = cap;
    return true;
}

bool sgi_timer_set(sgi_timers *timers, sgi_timer *timer, int64_t at_ms, sgi_timer_fn fn)
{
    timer->fn = fn;
    if (timer->slot == SPILLED) {
        timer->at_ms = at_ms;
        return true;
    }
    if (!timer->slot) {
        if (!make_room(timers))
            return false;
        timer->at_ms = at_ms;
        place(timers, timers->count++, timer);
        sift_up(timers, timers->count - 1);
        return true;
    }
    int64_t before = timer->at_ms;
    timer->at_ms = at_ms;
    if (at_ms < before)
        sift_up(timers, timer->slot - 1);
    else
        sift_down(timers, timer->slot - 1);
    return true;
}

void sgi_timer_must_set(sgi_timers *timers, sgi_timer *timer, int64_t at_ms,
                        sgi_timer_fn fn)
{
    if (sgi_timer_set(timers, timer, at_ms, fn))
        return;
    timer->at_ms = at_ms;
    timer->slot = SPILLED;
    timer->next = timers->spilled;
    timers->spilled = timer;
}

static void clear_spilled(sgi_timers *timers, sgi_timer *timer)
{
    sgi_timer **at = &timers->spilled;
    while (*at != timer)
        at = &(*at)->next;
    *at = timer->next;
    timer->slot = 0;
}

void sgi_timer_clear(sgi_timers *timers, sgi_timer *timer)
{
    if (!timer->slot)
        return;
    if (timer->slot == SPILLED) {
        clear_spilled(timers, timer);
        return;
    }
    size_t i = timer->slot - 1;
    timer->slot = 0;
    sgi_timer *last = timers->heap[--timers->count];
    if (last == timer)
        return;
    place(timers, i, last);
    sift_up(timers, i);
    sift_down(timers, last->slot - 1);
}

static sgi_timer *first(const sgi_timers *timers)
{
    sgi_timer *earliest = timers->count ? timers->heap[0] : NULL;
    for (sgi_timer *timer = timers->spilled; timer; timer = timer->next)
        if (!earliest || timer->at_ms < earliest->at_ms)
            earliest = timer;
    return earliest;
}

int64_t sgi_timers_next_due_ms(const sgi_timers *timers)
{
    const sgi_timer *timer = first(timers);
    return timer ? timer->at_ms : INT64_MAX;
}

void sgi_timers_run_due(sgi_timers *timers, int64_t now)
{
    sgi_timer *timer;
    while ((timer = first(timers)) && timer->at_ms <= now) {
        sgi_timer_clear(timers, timer);
        timer->fn(timer);
    }
}
