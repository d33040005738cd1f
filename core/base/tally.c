#include "base/tally.h"

static size_t bucket_of(uint64_t us)
{
    size_t bucket = 0;
    while (us && bucket < SGI_DURATION_TALLY_BUCKETS - 1) {
        us >>= 1;
        bucket++;
    }
    return bucket;
}

void sgi_duration_tally_add(sgi_duration_tally *tally, uint64_t us)
{
    tally->count++;
    tally->sum_us += us;
    if (us > tally->max_us)
        tally->max_us = us;
    tally->buckets[bucket_of(us)]++;
}

uint64_t sgi_duration_tally_percentile(const sgi_duration_tally *tally, unsigned percent)
{
    uint64_t wanted = (tally->count * percent + 99) / 100;
    uint64_t seen = 0;
    for (size_t i = 0; i < SGI_DURATION_TALLY_BUCKETS && tally->count; i++) {
        seen += tally->buckets[i];
        uint64_t end = (UINT64_C(1) << i) - (i > 0);
        if (seen >= wanted && tally->buckets[i])
            return end < tally->max_us ? end : tally->max_us;
    }
    return 0;
}
