/* Deadlines in a heap. A timer is a member of the object that it belongs to. The heap's
 * array grows when a timer is set, so sgi_timer_set fails when out of memory.
 * sgi_timer_must_set never fails. When the heap cannot grow, it puts the timer into a
 * linked list, which needs no memory but is slower to search.
 *
 * The array has the times beside the pointers, so that a search does not touch the
 * objects of thousands of idle timers. */
#ifndef SGI_TIMER_H
#define SGI_TIMER_H

#include "base/base.h"

typedef struct sgi_timer sgi_timer;
typedef void (*sgi_timer_fn)(sgi_timer *timer);

struct sgi_timer {
    int64_t at_ms; /* monotonic time in ms at which the timer is due */
    /* index of the timer in the heap, plus 1; 0 = the timer is not set; SIZE_MAX = the
     * timer is in the list `spilled` */
    size_t slot;
    sgi_timer_fn fn; /* called each time the timer is due; may set the timer again */
    /* the next timer in the list `spilled`, which sgi_timer_must_set uses when memory has
     * run out */
    sgi_timer *next;
};

typedef struct sgi_timer_place {
    int64_t at_ms;
    sgi_timer *timer;
} sgi_timer_place;

typedef struct sgi_timers {
    const sgi_mem *mem;
    sgi_timer_place *heap;
    size_t count;
    size_t cap;
    /* the list of the timers that did not fit into the heap when memory had run out */
    sgi_timer *spilled;
} sgi_timers;

void sgi_timers_init(sgi_timers *timers, const sgi_mem *mem);
void sgi_timers_free(sgi_timers *timers);
/* Sets or moves a timer. Returns false when out of memory. Moving a timer that is
 * already set never fails. */
bool sgi_timer_set(sgi_timers *timers, sgi_timer *timer, int64_t at_ms, sgi_timer_fn fn);
/* Sets or moves a timer like sgi_timer_set, but never fails. */
void sgi_timer_must_set(sgi_timers *timers, sgi_timer *timer, int64_t at_ms,
                        sgi_timer_fn fn);
void sgi_timer_clear(sgi_timers *timers, sgi_timer *timer);
/* Returns the timer that is due next, or NULL when no timer is set. */
sgi_timer *sgi_timers_first(const sgi_timers *timers);
/* Returns the time at which the next timer is due, or INT64_MAX when no timer is set. */
int64_t sgi_timers_next_due_ms(const sgi_timers *timers);
/* Runs all timers that are due at `now`. */
void sgi_timers_run_due(sgi_timers *timers, int64_t now);

#endif
