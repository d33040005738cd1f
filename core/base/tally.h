/* A histogram of durations: their number, their sum, their maximum, and buckets whose
 * width doubles. It has a fixed size. */
#ifndef SGI_TALLY_H
#define SGI_TALLY_H

#include "base/base.h"

#define SGI_TALLY_BUCKETS 32

typedef struct sgi_tally {
    uint64_t count;
    uint64_t sum_us;
    uint64_t max_us;
    uint64_t buckets[SGI_TALLY_BUCKETS]; /* buckets[n] counts durations from 2^(n-1) us
                                          * to below 2^n us */
} sgi_tally;

void sgi_tally_add(sgi_tally *tally, uint64_t us);
/* Returns the duration that `percent` of all durations do not exceed. The value is the
 * upper end of a bucket, so it is at most twice the exact value. It is 0 when there are
 * no durations. */
uint64_t sgi_tally_percentile(const sgi_tally *tally, unsigned percent);

#endif
