/* SIGPIPE held back in the calling thread, for code that writes by other means than
 * send(MSG_NOSIGNAL). The disposition of the process is left alone. */
#ifndef SGI_SIGPIPE_H
#define SGI_SIGPIPE_H

#include <signal.h>

#include "runtime/runtime.h"

typedef struct sgi_sigpipe {
    bool on;
    bool was_pending;
    sigset_t old;
} sgi_sigpipe;

/* rt: the calling thread is its loop thread, and where that has signals blocked anyway
 * nothing is done; NULL: it may be any thread. */
void sgi_sigpipe_hold(sgi_sigpipe *held, const segue_runtime *rt);
/* raised: a write may have brought one, which is taken back before others are let
 * through. */
void sgi_sigpipe_let(const sgi_sigpipe *held, bool raised);

#endif
