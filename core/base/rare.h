/* Counts how often rare branches are taken: SGI_RARE(name) stands in such a branch, and
 * rare.def says what happens there. Only builds with SGI_KNOBS count. A run of the
 * simulation names the events that never happened. */
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
