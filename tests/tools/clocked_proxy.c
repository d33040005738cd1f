/* segue-proxy with a clock that only the test moves.
 *
 * The test moves the clock through two pipes: SEGUE_CLOCK names the one that this program
 * reads, SEGUE_CLOCK_DONE the one that it writes. The test writes a number of
 * milliseconds and a newline. The program moves the clock by that time, lets the loop do
 * what is due, and answers with a newline. Without SEGUE_CLOCK the clock stands still. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "proxy/program.h"

typedef struct clocked {
    _Atomic int64_t ms; /* both clocks begin at the time of the system */
    int64_t wall_ms;    /* what the wall clock shows more than the monotonic clock */
    segue_runtime *runtime;
    int moves, done; /* the two pipes; -1 = the clock stands still */
    pthread_t mover;
} clocked;

static int64_t system_ms(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t monotonic_ms(void *user)
{
    clocked *c = user;
    return c->ms;
}

static int64_t wall_ms(void *user)
{
    clocked *c = user;
    return c->ms + c->wall_ms;
}

static int32_t fill_random(void *user, void *bytes, size_t len)
{
    (void)user;
    return getrandom(bytes, len, 0) == (ssize_t)len ? 0 : -1;
}

/* Runs on the thread of the loop, behind the timers that the move made due. */
static void answer(void *user)
{
    const clocked *c = user;
    if (write(c->done, "\n", 1) != 1)
        abort();
}

static void moved(void *user)
{
    clocked *c = user;
    segue_timer_start(c->runtime, 0, answer, c, NULL, NULL);
}

/* Reads a line of digits. Returns false at the end of the pipe. The thread can be
 * cancelled here and nowhere else. */
static bool read_move(const clocked *c, int64_t *ms)
{
    char digit = '0';
    *ms = 0;
    while (digit != '\n') {
        *ms = *ms * 10 + (digit - '0');
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        ssize_t count = read(c->moves, &digit, 1);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        if (count != 1)
            return false;
    }
    return true;
}

static void *take_moves(void *user)
{
    clocked *c = user;
    int64_t ms;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    while (read_move(c, &ms)) {
        c->ms += ms;
        segue_timer_start(c->runtime, 0, moved, c, NULL, NULL);
    }
    return NULL;
}

static void begun(void *user, segue_runtime *runtime)
{
    clocked *c = user;
    const char *moves = getenv("SEGUE_CLOCK"), *done = getenv("SEGUE_CLOCK_DONE");
    c->runtime = runtime;
    c->moves = moves ? open(moves, O_RDONLY | O_CLOEXEC) : -1;
    c->done = done ? open(done, O_WRONLY | O_CLOEXEC) : -1;
    if (c->moves >= 0 && c->done >= 0 &&
        pthread_create(&c->mover, NULL, take_moves, c) != 0)
        abort();
}

static void ending(void *user)
{
    clocked *c = user;
    if (c->moves < 0 || c->done < 0)
        return;
    pthread_cancel(c->mover);
    pthread_join(c->mover, NULL);
}

int main(int argc, char **argv)
{
    static clocked c = {.moves = -1, .done = -1};
    c.ms = system_ms(CLOCK_MONOTONIC);
    c.wall_ms = system_ms(CLOCK_REALTIME) - c.ms;
    segue_hooks clock = SEGUE_HOOKS_INIT;
    clock.user = &c;
    clock.monotonic_ms = monotonic_ms;
    clock.wall_ms = wall_ms;
    clock.random = fill_random;
    program_hooks hooks = {.clock = &clock, .user = &c, .begun = begun, .ending = ending};
    return program_run(argc, argv, &hooks);
}
