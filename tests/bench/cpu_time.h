/* Measures a piece of work in processor time, which other work of the machine changes
 * little. bench_json.c and json_peers.cc use it, so it is both C and C++. */
#ifndef BENCH_CPU_TIME_H
#define BENCH_CPU_TIME_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOWS 9
#define WINDOW_NS 80000000

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef void (*work_fn)(void *user);

/* Returns the nanoseconds of one call of work: the median of WINDOWS windows on one
 * thread. */
static double measure(work_fn work, void *user)
{
    double windows[WINDOWS];
    int64_t start = now_ns();
    size_t batch = 0;
    for (; now_ns() - start < WINDOW_NS / 20; batch++)
        work(user);
    batch = batch / 20 + 1;
    for (int i = 0; i < WINDOWS; i++) {
        size_t runs = 0;
        int64_t from = now_ns();
        int64_t spent = 0;
        for (; spent < WINDOW_NS; spent = now_ns() - from, runs += batch)
            for (size_t k = 0; k < batch; k++)
                work(user);
        windows[i] = (double)spent / (double)runs;
    }
    qsort(windows, WINDOWS, sizeof *windows, compare_doubles);
    return windows[WINDOWS / 2];
}

static void print_figure(const char *name, double value)
{
    printf("{\"name\":\"%s\",\"value\":%.3f}\n", name, value);
    fflush(stdout);
}

#endif
