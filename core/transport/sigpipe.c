#include "transport/sigpipe.h"

#include <errno.h>
#include <time.h>

static void fill(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

/* True when SIGPIPE is blocked and pending. Only a blocked signal can be pending. */
static bool is_pending(const sigset_t *blocked)
{
    sigset_t pending;
    return sigismember(blocked, SIGPIPE) == 1 && sigpending(&pending) == 0 &&
           sigismember(&pending, SIGPIPE) == 1;
}

void sgi_sigpipe_block(sgi_sigpipe *held, const segue_runtime *rt)
{
    sigset_t set;
    held->on = !rt || !sgi_runtime_blocks_signals(rt);
    if (!held->on)
        return;
    fill(&set);
    pthread_sigmask(SIG_BLOCK, &set, &held->old);
    held->was_pending = is_pending(&held->old);
}

void sgi_sigpipe_unblock(const sgi_sigpipe *held, bool raised)
{
    const struct timespec at_once = {0, 0};
    sigset_t set;
    if (!held->on)
        return;
    fill(&set);
    if (raised && !held->was_pending)
        while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &held->old, NULL);
}
