/* What the programs of this directory share: clocks, pinning to processors, and the
 * output: one line of JSON for each figure, which run.py collects. A program that cannot
 * measure ends at once. */
#ifndef BENCH_H
#define BENCH_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

static inline int64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns the processor time that a process has used, all threads; pid 0 = this one. */
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

/* Returns the resident memory of a process. */
static inline double bench_resident_mib(pid_t pid)
{
    char path[40];
    char line[128];
    long kib = -1;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    if (kib < 0)
        bench_fail("the size of the server cannot be read");
    return (double)kib / 1024;
}

/* Raises the limit of descriptors as far as the system allows. */
static inline void bench_allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Takes "--cpu N" or "--cpu N,M" from the front of the arguments and runs only on those
 * processors. */
static inline void bench_pin(int *argc, char ***argv)
{
    cpu_set_t set;
    if (*argc < 3 || strcmp((*argv)[1], "--cpu") != 0)
        return;
    CPU_ZERO(&set);
    for (const char *at = (*argv)[2]; at; at = strchr(at, ',')) {
        at += *at == ',';
        CPU_SET((size_t)atoi(at), &set);
    }
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_fail("no such processor");
    *argc -= 2;
    *argv += 2;
}

/* Returns argument i as a number, or the standard value when it is missing. */
static inline int64_t bench_number(int argc, char **argv, int i, int64_t standard)
{
    return i < argc ? atoll(argv[i]) : standard;
}

#endif
