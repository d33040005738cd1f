/* Counts how often rare branches of the code run. SGI_RARE(name) stands in such a branch,
 * and rare.def describes the event. Only builds with SGI_KNOBS count. At its end, a run
 * of the simulation lists the events that never happened. */
#ifndef SGI_RARE_H
#define SGI_RARE_H

typedef enum sgi_rare {
#define RARE(name, sentence) SGI_RARE_##name,
#include "base/rare.def"
#undef RARE
    SGI_RARE_EVENTS
} sgi_rare;

#ifdef SGI_KNOBS
extern unsigned long sgi_rare_counts[SGI_RARE_EVENTS];
#define SGI_RARE(name) (void)__atomic_fetch_add(&sgi_rare_counts[SGI_RARE_##name], 1, 0)
#else
#define SGI_RARE(name) (void)0
#endif

#endif
