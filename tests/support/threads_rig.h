/* A runtime for tests with more than one thread, and events that run in it. */
#ifndef THREADS_RIG_H
#define THREADS_RIG_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/state.h"
#include "support/test_mem.h"

typedef struct threads_rig {
    test_mem mem;
    segue_runtime *rt;
    sgi_engine *engine;
    atomic_int woken;
} threads_rig;

typedef struct event {
    sgi_ready_object ready;
    threads_rig *r;
    int32_t left;
    atomic_int ran;
    pthread_t thread; /* the thread that ran it last */
    void (*body)(struct event *event);
    void *user;
} event;

void threads_begin(threads_rig *r);
/* hooks NULL = the real clock. */
void threads_begin_with(threads_rig *r, const segue_hooks *hooks);
/* Makes a runtime in the background that lends its input. The runtime takes the input
 * back only when the test asks for it. hooks as in threads_begin_with. */
void threads_begin_lending(threads_rig *r, const segue_hooks *hooks);
/* Waits until the runtime has lent its input and the I/O thread sleeps. */
void threads_until_lent(threads_rig *r);
void threads_end(threads_rig *r);
/* Hooks with a clock that stands still, so that no timer ends a wait. */
extern const segue_hooks threads_standing;
/* Waits until the I/O thread has nothing left to do. */
void threads_until_asleep(threads_rig *r);
/* Waits until a transport has seen the end of its input. */
void threads_until_awaiting_quiet(threads_rig *r);
/* Lets other threads run. */
void threads_pause(void);

/* Prepares an event that runs this many times and calls `body` each time; NULL =
 * nothing. */
void event_prepare(threads_rig *r, event *e, int32_t times, void (*body)(event *));
void event_queue(threads_rig *r, event *e);
bool threads_readable(int fd);

#endif
