#include "base/timer.h"

#define SPILLED SIZE_MAX
#define CHILDREN 4 /* of a place in the heap: the four lie side by side */

void sgi_timers_init(sgi_timers *timers, const sgi_mem *mem)
{
    *timers = (sgi_timers){.mem = mem};
}

void sgi_timers_free(sgi_timers *timers)
{
    for (size_t i = 0; i < timers->count; i++)
        timers->heap[i].timer->slot = 0;
    for (; timers->spilled; timers->spilled = timers->spilled->next)
        timers->spilled->slot = 0;
    sgi_free(timers->mem, timers->heap, timers->cap * sizeof *timers->heap);
    sgi_timers_init(timers, timers->mem);
}

static void place(sgi_timers *timers, size_t i, sgi_timer_place what)
{
    timers->heap[i] = what;
    what.timer->slot = i + 1;
}

static void sift_up(sgi_timers *timers, size_t i)
{
    sgi_timer_place what = timers->heap[i];
    for (size_t above; i > 0; i = above) {
        above = (i - 1) / CHILDREN;
        if (timers->heap[above].at_ms <= what.at_ms)
            break;
        place(timers, i, timers->heap[above]);
    }
    place(timers, i, what);
}

/* Returns the earliest child of a place; 0 = it has none. */
static size_t earliest_child(const sgi_timers *timers, size_t i)
{
    size_t first = i * CHILDREN + 1;
    if (first >= timers->count)
        return 0;
    size_t end = first + CHILDREN < timers->count ? first + CHILDREN : timers->count;
    size_t earliest = first;
    for (size_t child = first + 1; child < end; child++)
        if (timers->heap[child].at_ms < timers->heap[earliest].at_ms)
            earliest = child;
    return earliest;
}

static void sift_down(sgi_timers *timers, size_t i)
{
    sgi_timer_place what = timers->heap[i];
    size_t child;
    while ((child = earliest_child(timers, i)) &&
           timers->heap[child].at_ms < what.at_ms) {
        place(timers, i, timers->heap[child]);
        i = child;
    }
    place(timers, i, what);
}

/* Moves a timer up or down to its place. */
static void sift(sgi_timers *timers, size_t i)
{
    if (i > 0 && timers->heap[(i - 1) / CHILDREN].at_ms > timers->heap[i].at_ms)
        sift_up(timers, i);
    else
        sift_down(timers, i);
}

static bool make_room(sgi_timers *timers)
{
    if (timers->count < timers->cap)
        return true;
    size_t cap = timers->cap ? timers->cap * 2 : 16;
    sgi_timer_place *heap = sgi_realloc(timers->mem, timers->heap,
                                        timers->cap * sizeof *heap, cap * sizeof *heap);
    if (!heap)
        return false;
    timers->heap = heap;
    timers->cap = cap;
    return true;
}

bool sgi_timer_set(sgi_timers *timers, sgi_timer *timer, int64_t at_ms, sgi_timer_fn fn)
{
    timer->fn = fn;
    if (!timer->slot && !make_room(timers))
        return false;
    timer->at_ms = at_ms;
    if (timer->slot == SPILLED)
        return true;
    sgi_timer_place what = {at_ms, timer};
    place(timers, timer->slot ? timer->slot - 1 : timers->count++, what);
    sift(timers, timer->slot - 1);
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
    sgi_timer_place last = timers->heap[--timers->count];
    if (last.timer == timer)
        return;
    place(timers, i, last);
    sift(timers, i);
}

sgi_timer *sgi_timers_first(const sgi_timers *timers)
{
    sgi_timer *earliest = timers->count ? timers->heap[0].timer : NULL;
    for (sgi_timer *timer = timers->spilled; timer; timer = timer->next)
        if (!earliest || timer->at_ms < earliest->at_ms)
            earliest = timer;
    return earliest;
}

int64_t sgi_timers_next_due_ms(const sgi_timers *timers)
{
    const sgi_timer *timer = sgi_timers_first(timers);
    return timer ? timer->at_ms : INT64_MAX;
}

void sgi_timers_run_due(sgi_timers *timers, int64_t now)
{
    sgi_timer *timer;
    while ((timer = sgi_timers_first(timers)) && timer->at_ms <= now) {
        sgi_timer_clear(timers, timer);
        timer->fn(timer);
    }
}
