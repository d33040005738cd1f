#include "engine/era_memory.h"

static size_t find(const sgi_era_memory *memory, uint64_t endpoint)
{
    size_t i = 0;
    while (i < SGI_ENDPOINTS_MAX && memory->legacy[i] != endpoint)
        i++;
    return i;
}

void sgi_era_memory_note(sgi_era_memory *memory, uint64_t endpoint, bool legacy)
{
    uint64_t *all = memory->legacy;
    size_t at = find(memory, endpoint);
    if (legacy) {
        size_t before = at < SGI_ENDPOINTS_MAX ? at : SGI_ENDPOINTS_MAX - 1;
        memmove(all + 1, all, before * sizeof *all);
        all[0] = endpoint;
    } else if (at < SGI_ENDPOINTS_MAX) {
        memmove(all + at, all + at + 1, (SGI_ENDPOINTS_MAX - 1 - at) * sizeof *all);
        all[SGI_ENDPOINTS_MAX - 1] = 0;
    }
}

bool sgi_era_memory_is_legacy(const sgi_era_memory *memory, uint64_t endpoint)
{
    return find(memory, endpoint) < SGI_ENDPOINTS_MAX;
}
