/* A histogram of durations: their number, their sum, their maximum, and buckets of which
 * each is twice as wide as the one before. The histogram has a fixed size. */
#ifndef SGI_TALLY_H
#define SGI_TALLY_H

#include "base/base.h"

#define SGI_DURATION_TALLY_BUCKETS 32

typedef struct sgi_duration_tally {
    uint64_t count;
    uint64_t sum_us;
    uint64_t max_us;
    /* buckets[n] counts durations from 2^(n-1) us up to but not including 2^n us */
    uint64_t buckets[SGI_DURATION_TALLY_BUCKETS];
} sgi_duration_tally;

void sgi_duration_tally_add(sgi_duration_tally *tally, uint64_t us);
/* Returns a duration that `percent` of all durations do not exceed; 0 when no duration
 * was counted. The result is the upper end of a bucket, so it is at most twice the exact
 * value. */
uint64_t sgi_duration_tally_percentile(const sgi_duration_tally *tally, unsigned percent);

#endif
