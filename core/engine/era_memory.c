#include "engine/era_memory.h"

static size_t find(const sgi_era_memory *places, uint64_t place)
{
    size_t i = 0;
    while (i < SGI_PLACES_MAX && places->legacy[i] != place)
        i++;
    return i;
}

void sgi_era_memory_note(sgi_era_memory *places, uint64_t place, bool legacy)
{
    uint64_t *all = places->legacy;
    size_t at = find(places, place);
    if (legacy) {
        size_t before = at < SGI_PLACES_MAX ? at : SGI_PLACES_MAX - 1;
        memmove(all + 1, all, before * sizeof *all);
        all[0] = place;
    } else if (at < SGI_PLACES_MAX) {
        memmove(all + at, all + at + 1, (SGI_PLACES_MAX - 1 - at) * sizeof *all);
        all[SGI_PLACES_MAX - 1] = 0;
    }
}

bool sgi_era_memory_is_legacy(const sgi_era_memory *places, uint64_t place)
{
    return find(places, place) < SGI_PLACES_MAX;
}
