/* Blocks SIGPIPE in the calling thread, for code that writes by other means than
 * send(MSG_NOSIGNAL). The signal settings of the process are not changed. */
#ifndef SGI_SIGPIPE_H
#define SGI_SIGPIPE_H

#include <signal.h>

#include "runtime/runtime.h"

typedef struct sgi_sigpipe {
    bool on;
    bool was_pending;
    sigset_t old;
} sgi_sigpipe;

/* Blocks SIGPIPE. rt: the caller is on the loop thread of this runtime; the call does
 * nothing if all signals are blocked on this thread anyway. NULL = any thread may
 * call. */
void sgi_sigpipe_block(sgi_sigpipe *held, const segue_runtime *rt);
/* Restores the signal mask. raised: a write may have raised SIGPIPE, so a pending
 * SIGPIPE is removed first. */
void sgi_sigpipe_unblock(const sgi_sigpipe *held, bool raised);

#endif
