/* What the programs of this directory share: clocks, pinning, and how they say figures,
 * one line of JSON each, which run.py collects. What cannot measure ends at once. */
#ifndef BENCH_H
#define BENCH_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

static inline int64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Processor time that a process has used, all threads; pid 0 = this one. */
static inline int64_t bench_cpu_ns(pid_t pid)
{
    struct timespec used;
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static inline void bench_say(const char *name, double value)
{
    printf("{\"name\":\"%s\",\"value\":%.6g}\n", name, value);
    fflush(stdout);
}

_Noreturn static inline void bench_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* Takes "--cpu N" from the front of the arguments and stays on that processor. */
static inline void bench_pin(int *argc, char ***argv)
{
    cpu_set_t set;
    if (*argc < 3 || strcmp((*argv)[1], "--cpu") != 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)atoi((*argv)[2]), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_fail("no such processor");
    *argc -= 2;
    *argv += 2;
}

/* Argument i as a number, or standard when it is not there. */
static inline int64_t bench_number(int argc, char **argv, int i, int64_t standard)
{
    return i < argc ? atoll(argv[i]) : standard;
}

#endif
