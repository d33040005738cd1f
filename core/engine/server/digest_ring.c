#include "engine/server/digest_ring.h"

struct sgi_digest_ring {
    const sgi_mem *mem;
    size_t places;
    size_t next;                        /* index at which the next digest is stored */
    size_t used;                        /* the places from here on were never used */
    uint8_t digests[][SGI_DIGEST_SIZE]; /* the digests; an entry of zeros is empty */
};

static size_t size_of(size_t places)
{
    return sizeof(sgi_digest_ring) + places * SGI_DIGEST_SIZE;
}

sgi_digest_ring *sgi_digest_ring_new(const sgi_mem *mem, size_t places)
{
    sgi_digest_ring *ring = sgi_zalloc(mem, size_of(places));
    if (!ring)
        return NULL;
    ring->mem = mem;
    ring->places = places;
    return ring;
}

void sgi_digest_ring_free(sgi_digest_ring *ring)
{
    if (ring)
        sgi_free(ring->mem, ring, size_of(ring->places));
}

void sgi_digest_ring_add(sgi_digest_ring *ring, const uint8_t digest[SGI_DIGEST_SIZE])
{
    memcpy(ring->digests[ring->next], digest, SGI_DIGEST_SIZE);
    ring->next = (ring->next + 1) % ring->places;
    if (ring->used < ring->places)
        ring->used++;
}

bool sgi_digest_ring_has(const sgi_digest_ring *ring,
                         const uint8_t digest[SGI_DIGEST_SIZE])
{
    for (size_t i = 0; i < ring->used; i++)
        if (!memcmp(ring->digests[i], digest, SGI_DIGEST_SIZE))
            return true;
    return false;
}

void sgi_digest_ring_remove(sgi_digest_ring *ring, const uint8_t digest[SGI_DIGEST_SIZE])
{
    for (size_t i = 0; i < ring->used; i++)
        if (!memcmp(ring->digests[i], digest, SGI_DIGEST_SIZE))
            memset(ring->digests[i], 0, SGI_DIGEST_SIZE);
}
