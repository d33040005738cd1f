/* A ring that holds the newest digests. When the ring is full, a new digest replaces the
 * oldest digest. */
#ifndef SGI_DIGEST_RING_H
#define SGI_DIGEST_RING_H

#include "engine/engine.h"

typedef struct sgi_digest_ring sgi_digest_ring;

/* Makes a ring with room for `places` digests. Returns NULL when out of memory. */
sgi_digest_ring *sgi_digest_ring_new(const sgi_mem *mem, size_t places);
/* Frees a ring. The ring can be NULL. */
void sgi_digest_ring_free(sgi_digest_ring *ring);
void sgi_digest_ring_add(sgi_digest_ring *ring, const uint8_t digest[SGI_DIGEST_SIZE]);
bool sgi_digest_ring_has(const sgi_digest_ring *ring,
                         const uint8_t digest[SGI_DIGEST_SIZE]);
void sgi_digest_ring_remove(sgi_digest_ring *ring, const uint8_t digest[SGI_DIGEST_SIZE]);

#endif
