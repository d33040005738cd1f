/* The private state of a runtime, for the files of this folder.
 *
 * Lock order: the runtime's lock is the only lock that these files take. A store's own
 * mutex is taken under the runtime's lock if the store does not block, and without the
 * runtime's lock by the worker of a blocking store. The runtime's lock is never taken
 * under the mutex of a store. */
#ifndef SGI_RUNTIME_STATE_H
#define SGI_RUNTIME_STATE_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "runtime/helper.h"
#include "runtime/runtime.h"

typedef enum sgi_runtime_mode {
    SGI_MODE_NEW = 0, /* none of run, dispatch and start was called yet */
    SGI_MODE_INLINE,
    SGI_MODE_BACKGROUND
} sgi_runtime_mode;

TAILQ_HEAD(sgi_carrier_list, sgi_carrier);
typedef struct sgi_store_slot sgi_store_slot;
TAILQ_HEAD(sgi_store_slot_list, sgi_store_slot);

/* The record of the thread that is inside the application's code. Only that thread writes
 * the members, and any thread reads them. Therefore a thread finds its own id in the
 * record only if it is inside the application's code. */
typedef struct sgi_thread_in_user_code {
    atomic_uintptr_t thread;
    atomic_int depth;
} sgi_thread_in_user_code;

/* loop.c: the libev loop, its carriers, and the flags that wake the loop. Only the loop
 * thread uses `ev`. */
typedef struct sgi_loop {
    struct ev_loop *ev;
    ev_async wake_up;
    ev_timer timeout;
    char *scratch;
    bool asleep;   /* true = the loop waits or is about to wait */
    bool kick_due; /* true = the next unlock must wake the loop */
    /* true = the next unlock must write output; the loop is woken only if it has to
     * write */
    bool flush_due;
    /* true = a thread does the work of a free carrier, and must not release the lock */
    bool works_here;
    int64_t corks; /* number of corks; output is held back while the number is above 0 */
    /* the deadline at which the loop wakes by itself; engine time in ms */
    int64_t armed_ms;
    struct sgi_carrier_list carriers;
    struct sgi_carrier_list retired;
    struct sgi_carrier_list work;
    struct sgi_carrier_list awaiting;
    size_t work_count;
} sgi_loop;

/* inlet.c: the inlets (descriptors to read) that the application's dispatch can read in
 * place of the loop. */
typedef struct sgi_inlet_lending {
    TAILQ_HEAD(, sgi_inlet) inlets; /* all inlets that are open */
    /* an epoll descriptor with ready_fd and the lent inlets; -1 = lending is off */
    int front_fd;
    char *room; /* a buffer for one read, used under the lock */
    /* true = the application waits for the inlets in place of the loop, except inlets
     * with `kept` */
    bool lent;
    bool lend_due; /* true = the loop must hand its inlets to the application in its
                      next turn */
    /* true = a dispatch has given an inlet back, and the loop must wait for this inlet */
    bool regroup_due;
    /* time of the last dispatch, real clock in ms; 0 = no dispatch yet */
    int64_t attended_ms;
    int64_t patience_ms;
} sgi_inlet_lending;

/* dispatch.c: which thread runs callbacks, and how the host is notified of due
 * callbacks. */
typedef struct sgi_dispatching {
    sgi_runtime_mode mode;
    bool looping;         /* true = a thread is in run or dispatch */
    bool delivering;      /* true = a thread is running callbacks */
    bool signals_blocked; /* true = all signals are blocked on the loop thread */
    bool joinable;
    pthread_t io_thread;
    /* signalled when `looping` becomes false, and when a store worker becomes idle */
    pthread_cond_t left;
    /* an eventfd that is readable while callbacks of a background runtime are due */
    int ready_fd;
    bool notified;
    /* true = a dispatch is running, and will check the queue before it returns */
    bool attended;
    bool notify_due;
} sgi_dispatching;

/* The stores of the runtime and their threads (store_worker.c, store_changes.c). */
typedef struct sgi_stores {
    struct sgi_store_slot_list slots;
    struct sgi_store_slot_list closing;
    size_t due;        /* number of queues with work at stores that do not block */
    size_t finished;   /* number of slots (a slot is one store of this runtime) that
                          have ended and are not freed yet */
    atomic_bool woken; /* true = a store has reported changes of other servers; any
                          thread may set the flag */
} sgi_stores;

/* The thread for jobs that may block (helper.c). */
typedef struct sgi_helper {
    STAILQ_HEAD(, sgi_helper_job) jobs; /* the jobs that wait */
    size_t waiting;
    bool is_started;
    bool is_closing;
    pthread_t thread;
    pthread_cond_t wanted;
} sgi_helper;

/* A pool of random bytes. The system fills the whole pool at once; bytes are taken from
 * its end. */
typedef struct sgi_entropy {
    uint8_t bytes[1024];
    size_t left;
} sgi_entropy;

/* The stages of a runtime's life, in their order; a stage never comes again.
 * sgi_runtime_free drains the runtime on its caller's thread, until only the struct is
 * left. */
typedef enum sgi_runtime_life {
    SGI_LIFE_LIVE = 0,
    SGI_LIFE_DRAINING,
    SGI_LIFE_DEAD
} sgi_runtime_life;

/* The start of draining. From then on the engine's time follows the real clock, even if
 * an injected clock stands still. */
typedef struct sgi_drain_clock {
    int64_t base_ms; /* the engine's time when draining began */
    int64_t real_ms; /* the real time when draining began */
} sgi_drain_clock;

struct segue_runtime {
    uint32_t magic;
    sgi_mem mem;
    pthread_mutex_t mutex;
    int64_t refs; /* number of references; protected by the lock */
    sgi_engine engine;
    sgi_hasher hasher; /* the engine uses it under the lock */
    /* the hooks of the options: the clocks, and the random generator if it was injected;
     * clocks that were NULL have their defaults */
    segue_hooks given;
    segue_hooks hooks; /* the hooks that the engine calls */
    sgi_entropy entropy;
    void *user;
    segue_log_fn log;
    segue_wake_fn on_wake;

    sgi_runtime_life life;
    sgi_drain_clock drain;
    /* the thread in a callback ([0]), and the thread in a function of a custom transport
     * ([1]) */
    sgi_thread_in_user_code outside[2];
    sgi_loop loop;
    sgi_inlet_lending lending;
    sgi_dispatching dispatch;
    sgi_stores stores;
    sgi_helper helper;
    LIST_HEAD(, sgi_stop_hook) hooks_on_stop;

    /* The flag `open` is written without the lock. It has a word of its own, because a
     * compiler may access the bytes next to a plain member together with the member. */
    _Alignas(8) atomic_bool open; /* true = sgi_runtime_stop was not called yet */
};

/* Returns the time of CLOCK_MONOTONIC in ms, even if another clock was injected. */
int64_t sgi_system_monotonic_ms(void);

/* ---- loop.c ---- */
segue_status sgi_loop_open(segue_runtime *rt);
void sgi_loop_close(segue_runtime *rt);
/* Sets the engine's host functions that concern the loop. The caller holds the lock. */
void sgi_loop_fill_host_functions(sgi_host_functions *host);
/* Makes the loop check its flags and timers again. The caller holds the lock. */
void sgi_loop_request_turn(segue_runtime *rt);
/* Wakes every thread that has work to do. The caller holds the lock and releases it right
 * after the call. */
void sgi_loop_wake_threads(segue_runtime *rt);
/* Runs one turn of the loop. The turn waits at most wait_ms (-1 = no limit) and runs at
 * most `budget` callbacks. Returns the number of callbacks that ran. The caller holds the
 * lock, which is released during the wait. */
int32_t sgi_loop_turn(segue_runtime *rt, int64_t wait_ms, int32_t budget);
/* True when the next turn has something to do without waiting. The caller holds the
 * lock. */
bool sgi_loop_turn_is_due(const segue_runtime *rt);
/* Destroys the transports that have ended (retired carriers). The caller holds the
 * lock. */
void sgi_loop_destroy_retired(segue_runtime *rt);

/* ---- inlet.c: on the loop thread with the lock, unless a comment says otherwise ---- */
/* Allows the runtime to lend its inlets to the application. On failure, the caller
 * calls sgi_inlets_disable_lending, which undoes what was done. */
segue_status sgi_inlets_enable_lending(segue_runtime *rt);
void sgi_inlets_disable_lending(segue_runtime *rt);
/* Reads all lent inlets that have input. Called in each turn before timers run. */
void sgi_inlets_read_all_lent(segue_runtime *rt);
/* Reads some of the lent inlets, each at most once. Called by dispatch, on any thread. */
void sgi_inlets_read_some_lent(segue_runtime *rt);
/* Returns how long the loop may wait, in ms: at most wait_ms, and not longer than until
 * lent inlets must be taken back. */
int64_t sgi_inlets_limit_wait(const segue_runtime *rt, int64_t wait_ms);
/* Hands the inlets to the application, or takes them back, if either is due. Called
 * after each wait of the loop. */
void sgi_inlets_lend_or_take_back(segue_runtime *rt);
void sgi_inlets_take_back(segue_runtime *rt);

/* ---- dispatch.c ---- */
/* Notifies the host that callbacks are due. Called when the queue of callbacks is no
 * longer empty. The caller holds the lock. */
void sgi_dispatch_notify(segue_runtime *rt);
/* Runs at most `budget` callbacks and returns their number. The caller holds the lock. */
int32_t sgi_dispatch_deliver(segue_runtime *rt, int32_t budget);

/* ---- helper.c ---- */
void sgi_helper_init(segue_runtime *rt);
/* Ends the thread; the jobs that wait are done. The caller holds the lock, which the
 * function releases for a time. */
void sgi_helper_close(segue_runtime *rt);

/* ---- store_worker.c ---- */
void sgi_stores_fill_host_functions(sgi_host_functions *host);
/* Does the work of stores that do not block. The caller holds the lock. */
void sgi_stores_run_due_work(segue_runtime *rt);
/* Waits until no worker has work. The caller holds the lock, which is released during the
 * wait. */
void sgi_stores_wait_idle(segue_runtime *rt);
/* Ends the workers and removes all committers. The caller holds the lock, which the
 * function releases for a time. */
void sgi_stores_close(segue_runtime *rt);

#endif
