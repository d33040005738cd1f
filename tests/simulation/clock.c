/* libcurl and libev read the clock of the system, not that of the runtime. libcurl's
 * timers then fire earlier or later in a run, and two runs of a seed differ when the
 * machine is busy. So this function takes the place of that of the C library: during a
 * run, the monotonic clock shows the time of the run. Each call takes a microsecond,
 * because a timer of libev fires only after its time. */
#include "simulation/sim.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const sim *played;
static int64_t last_us;
static int64_t began_us; /* when a runtime began to end; 0 = none ends */

void sim_clock_show(const sim *s)
{
    played = s;
    last_us = 0;
}

static int64_t system_us(void)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A runtime that ends waits for its connections, at most for a grace time. The time of
 * the run stands still meanwhile, so the time of the system is added to it. */
void sim_end_runtime(segue_runtime *runtime)
{
    int64_t before = last_us;
    began_us = system_us();
    segue_runtime_free(runtime);
    began_us = 0;
    last_us = before;
}

static int64_t next_us(void)
{
    int64_t us = played->now_ms * 1000 + (began_us ? system_us() - began_us : 0);
    last_us = us > last_us ? us : last_us + 1;
    return last_us;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
                                                         struct timespec *out)
{
    if (!played || (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_RAW))
        return (int)syscall(SYS_clock_gettime, id, out);
    int64_t us = next_us();
    *out = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    return 0;
}
