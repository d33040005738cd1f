/* A histogram: how many values were at most each of some bounds, and the sum of all
 * values. The histogram has a fixed size. */
#ifndef SGI_HISTOGRAM_H
#define SGI_HISTOGRAM_H

#include "base/base.h"

#define SGI_HISTOGRAM_BOUNDS 14

/* The bounds of a kind of histogram, which rise. */
typedef struct sgi_histogram_scale {
    uint64_t bounds[SGI_HISTOGRAM_BOUNDS];
} sgi_histogram_scale;

/* Durations of calls in ms: the bounds of the OpenTelemetry semantic conventions for MCP,
 * 0.01 s to 300 s. */
extern const sgi_histogram_scale sgi_scale_of_calls;
/* durations of commits in microseconds */
extern const sgi_histogram_scale sgi_scale_of_commits;
/* numbers of writes in a commit */
extern const sgi_histogram_scale sgi_scale_of_batches;

typedef struct sgi_histogram {
    uint64_t sum;
    /* counts[n] counts values above bounds[n - 1] that are at most bounds[n]; the last
     * member counts the values above all bounds */
    uint64_t counts[SGI_HISTOGRAM_BOUNDS + 1];
} sgi_histogram;

void sgi_histogram_add(sgi_histogram *histogram, const sgi_histogram_scale *scale,
                       uint64_t value);
/* Adds all values of `more`, which has the same scale. */
void sgi_histogram_merge(sgi_histogram *histogram, const sgi_histogram *more);

#endif
