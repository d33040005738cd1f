/* Blocks SIGPIPE in the calling thread, for code that writes to a socket or pipe without
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

/* Blocks SIGPIPE in the calling thread. rt: the runtime whose loop thread makes the call,
 * which does nothing if all signals are already blocked on that thread; NULL = any
 * thread. */
void sgi_sigpipe_block(sgi_sigpipe *held, const segue_runtime *rt);
/* Restores the signal mask that sgi_sigpipe_block changed. raised: true = a write may
 * have raised SIGPIPE, so a pending SIGPIPE is removed first. */
void sgi_sigpipe_unblock(const sgi_sigpipe *held, bool raised);

#endif
