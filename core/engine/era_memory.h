/* Remembers the endpoints whose servers last spoke a version that begins with
 * `initialize`. The next session with such a server sends `initialize` first, without a
 * probe for the modern era (2026-07-28 basic/versioning, "Backward Compatibility":
 * clients remember the era of an origin). Endpoints of modern servers are not remembered,
 * because a client probes for the modern era first in any case. When the table is full, a
 * new endpoint replaces the oldest endpoint. The caller of each function holds the
 * lock. */
#ifndef SGI_ERA_MEMORY_H
#define SGI_ERA_MEMORY_H

#include "base/base.h"

#define SGI_ENDPOINTS_MAX 64

typedef struct sgi_era_memory {
    /* numbers of the endpoints whose servers speak a version that begins with
     * `initialize`, newest first; 0 = the entry is free */
    uint64_t legacy[SGI_ENDPOINTS_MAX];
} sgi_era_memory;

/* Notes which era the server of an endpoint speaks. legacy: true = a version that begins
 * with `initialize`. endpoint: the number of the endpoint, which is not 0. */
void sgi_era_memory_note(sgi_era_memory *memory, uint64_t endpoint, bool legacy);
bool sgi_era_memory_is_legacy(const sgi_era_memory *memory, uint64_t endpoint);

#endif
