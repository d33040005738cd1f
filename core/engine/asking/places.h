/* Endpoints whose servers spoke a handshake era when last asked: the next session with
 * one begins with initialize and saves the probe (2026-07-28 basic/versioning, "Backward
 * Compatibility": clients remember the era of an origin). Only that is kept, as asking is
 * what a client does first anyway. The oldest makes room. Lock held. */
#ifndef SGI_PLACES_H
#define SGI_PLACES_H

#include "base/base.h"

#define SGI_PLACES_MAX 64

typedef struct sgi_places {
    uint64_t legacy[SGI_PLACES_MAX]; /* the latest first; 0 = none */
} sgi_places;

/* place is not 0. */
void sgi_places_note(sgi_places *places, uint64_t place, bool legacy);
bool sgi_places_is_legacy(const sgi_places *places, uint64_t place);

#endif
