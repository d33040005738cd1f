/* Deadlines in a binary heap. The timer lives in its object; the heap array grows when a
 * timer is first set, so sgi_timer_set can fail for lack of memory and says so. A timer
 * that somebody's end depends on is set by sgi_timer_must_set: what finds no room in the
 * heap stands in a list, which is slower to look through and needs no memory. */
#ifndef SGI_TIMER_H
#define SGI_TIMER_H

#include "base/base.h"

typedef struct sgi_timer sgi_timer;
typedef void (*sgi_timer_fn)(sgi_timer *timer);

struct sgi_timer {
    int64_t at_ms;   /* monotonic */
    size_t slot;     /* place in the heap + 1; 0 = not set; SIZE_MAX = spilled */
    sgi_timer_fn fn; /* runs once per set; may set again */
    sgi_timer *next; /* among the spilled */
};

typedef struct sgi_timers {
    const sgi_mem *mem;
    sgi_timer **heap;
    size_t count;
    size_t cap;
    sgi_timer *spilled; /* set without room in the heap */
} sgi_timers;

void sgi_timers_init(sgi_timers *timers, const sgi_mem *mem);
void sgi_timers_free(sgi_timers *timers);
/* Sets or moves; false when out of memory (only possible for a timer that is not set). */
bool sgi_timer_set(sgi_timers *timers, sgi_timer *timer, int64_t at_ms, sgi_timer_fn fn);
/* The same, and never fails. */
void sgi_timer_must_set(sgi_timers *timers, sgi_timer *timer, int64_t at_ms,
                        sgi_timer_fn fn);
void sgi_timer_clear(sgi_timers *timers, sgi_timer *timer);
/* When the next one is due; INT64_MAX when none is. */
int64_t sgi_timers_next(const sgi_timers *timers);
/* Runs what is due at now. */
void sgi_timers_run(sgi_timers *timers, int64_t now);

#endif
