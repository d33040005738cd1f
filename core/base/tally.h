/* A tally of durations: how many, how long in all, and how they spread, in buckets that
 * double. Fixed in size, whatever it counts. */
#ifndef SGI_TALLY_H
#define SGI_TALLY_H

#include "base/base.h"

#define SGI_TALLY_BUCKETS 32

typedef struct sgi_tally {
    uint64_t count;
    uint64_t sum_us;
    uint64_t max_us;
    uint64_t buckets[SGI_TALLY_BUCKETS]; /* [n]: below 2^n us, and not below half of it */
} sgi_tally;

void sgi_tally_add(sgi_tally *tally, uint64_t us);
/* So much that `percent` of them took no longer: the upper end of a bucket, at most twice
 * the true one; 0 when there are none. */
uint64_t sgi_tally_percentile(const sgi_tally *tally, unsigned percent);

#endif
