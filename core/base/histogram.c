#include "base/histogram.h"

const sgi_histogram_scale sgi_scale_of_calls = {
    {10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 120000, 300000}};
const sgi_histogram_scale sgi_scale_of_commits = {{50, 100, 200, 500, 1000, 2000, 5000,
                                                   10000, 20000, 50000, 100000, 200000,
                                                   500000, 1000000}};
const sgi_histogram_scale sgi_scale_of_batches = {
    {1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000}};

void sgi_histogram_add(sgi_histogram *histogram, const sgi_histogram_scale *scale,
                       uint64_t value)
{
    size_t at = 0;
    while (at < SGI_HISTOGRAM_BOUNDS && value > scale->bounds[at])
        at++;
    histogram->counts[at]++;
    histogram->sum += value;
}

void sgi_histogram_merge(sgi_histogram *histogram, const sgi_histogram *more)
{
    histogram->sum += more->sum;
    for (size_t i = 0; i <= SGI_HISTOGRAM_BOUNDS; i++)
        histogram->counts[i] += more->counts[i];
}
