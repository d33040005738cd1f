/* A histogram of durations: their number, their sum, their maximum, and buckets of which
 * each is twice as wide as the one before. The histogram has a fixed size. */
#ifndef SGI_TALLY_H
#define SGI_TALLY_H

#include "base/base.h"

#define SGI_TALLY_BUCKETS 32

typedef struct sgi_tally {
    uint64_t count;
    uint64_t sum_us;
    uint64_t max_us;
    /* buckets[n] counts durations from 2^(n-1) us up to but not including 2^n us */
    uint64_t buckets[SGI_TALLY_BUCKETS];
} sgi_tally;

void sgi_tally_add(sgi_tally *tally, uint64_t us);
/* Returns a duration that `percent` of all durations do not exceed; 0 when no duration
 * was counted. The result is the upper end of a bucket, so it is at most twice the exact
 * value. */
uint64_t sgi_tally_percentile(const sgi_tally *tally, unsigned percent);

#endif
