/* The private state of a runtime, for the files of this folder.
 *
 * Lock order: the runtime's lock is the only lock that these files take. A store's own
 * mutex is taken under the runtime's lock (a store that does not block) or without it
 * (by the store's worker). The runtime's lock is never taken under the mutex. */
#ifndef SGI_RUNTIME_STATE_H
#define SGI_RUNTIME_STATE_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "runtime/runtime.h"

typedef enum sgi_runtime_mode {
    SGI_MODE_NEW = 0, /* neither run, dispatch nor start was called yet */
    SGI_MODE_INLINE,
    SGI_MODE_BACKGROUND
} sgi_runtime_mode;

TAILQ_HEAD(sgi_carrier_list, sgi_carrier);
typedef struct sgi_store_slot sgi_store_slot;
TAILQ_HEAD(sgi_store_slot_list, sgi_store_slot);

/* The thread that is inside the application's code. Only that thread writes the
 * members, and any thread reads them. So a thread finds its own id here only if it is
 * inside the application's code. */
typedef struct sgi_inside_thread {
    atomic_uintptr_t thread;
    atomic_int depth;
} sgi_inside_thread;

/* loop.c: the libev loop, its carriers, and the flags that wake it. Only the loop
 * thread uses `ev`. */
typedef struct sgi_loop {
    struct ev_loop *ev;
    ev_async wake_up;
    ev_timer timeout;
    char *scratch;
    bool asleep;   /* the loop waits or is about to wait */
    bool kick_due; /* the loop must be woken at the next unlock */
    /* output must be written at the next unlock; the loop is woken only if it must
     * write */
    bool flush_due;
    int64_t corks; /* output is held back while this is above 0 */
    /* engine time of the deadline at which the loop wakes by itself */
    int64_t armed_ms;
    struct sgi_carrier_list carriers;
    struct sgi_carrier_list retired;
    struct sgi_carrier_list work;
    struct sgi_carrier_list awaiting;
    size_t work_count;
} sgi_loop;

/* inlet.c: inlets (descriptors to read) that the application reads in its dispatch, in
 * place of the loop. */
typedef struct sgi_inlet_lending {
    TAILQ_HEAD(, sgi_inlet) inlets; /* all inlets that are open */
    /* epoll descriptor with ready_fd and the lent inlets; -1 = lending is off */
    int front_fd;
    char *room;    /* buffer for one read, used under the lock */
    bool lent;     /* inlets are lent to the application, except those with `kept` */
    bool lend_due; /* the loop must lend the inlets in its next turn */
    /* a dispatch gave an inlet back, so the loop must wait for this inlet */
    bool regroup_due;
    /* real time of the last dispatch; 0 = there was no dispatch yet */
    int64_t attended_ms;
    int64_t patience_ms;
} sgi_inlet_lending;

/* dispatch.c: which thread runs callbacks, and how the host is notified of due
 * callbacks. */
typedef struct sgi_dispatching {
    sgi_runtime_mode mode;
    bool looping;         /* a thread is in run or dispatch */
    bool delivering;      /* a thread is running callbacks */
    bool signals_blocked; /* all signals are blocked on the loop thread */
    bool joinable;
    pthread_t io_thread;
    /* signalled when `looping` becomes false, and when a store worker becomes idle */
    pthread_cond_t left;
    int ready_fd; /* readable while a background runtime has callbacks due */
    bool notified;
    bool attended; /* a dispatch is running and will check the queue before it returns */
    bool notify_due;
} sgi_dispatching;

/* The stores of the runtime and their threads (store_worker.c, store_changes.c). */
typedef struct sgi_stores {
    struct sgi_store_slot_list slots;
    struct sgi_store_slot_list closing;
    size_t due;        /* number of committers with work at stores that do not block */
    size_t finished;   /* number of workers that have ended and are not joined yet */
    atomic_bool woken; /* true = a store has reported news; set on any thread */
} sgi_stores;

/* Random bytes, read from the system many at a time and used from the end. */
typedef struct sgi_entropy {
    uint8_t bytes[1024];
    size_t left;
} sgi_entropy;

/* The stages of a runtime's life, which only goes forward. sgi_runtime_free drains the
 * runtime on its caller's thread, until only the struct is left. */
typedef enum sgi_runtime_life {
    SGI_LIFE_LIVE = 0,
    SGI_LIFE_DRAINING,
    SGI_LIFE_DEAD
} sgi_runtime_life;

/* The time at which draining began. From then on the engine's time follows the real
 * clock, even if an injected clock stands still. */
typedef struct sgi_drain_clock {
    int64_t base_ms; /* the engine's time when draining began */
    int64_t real_ms; /* the real time when draining began */
} sgi_drain_clock;

struct segue_runtime {
    uint32_t magic;
    sgi_mem mem;
    pthread_mutex_t mutex;
    int64_t refs; /* number of references; guarded by the lock */
    sgi_engine engine;
    /* the clocks, and the random generator if one was injected; members that were NULL
     * have their defaults */
    segue_hooks given;
    segue_hooks hooks; /* the hooks that the engine calls */
    sgi_entropy entropy;
    void *user;
    segue_log_fn log;
    segue_wake_fn on_wake;

    sgi_runtime_life life;
    sgi_drain_clock drain;
    /* [0]: the thread in a callback; [1]: the thread in a function of a custom
     * transport */
    sgi_inside_thread outside[2];
    sgi_loop loop;
    sgi_inlet_lending lending;
    sgi_dispatching dispatch;
    sgi_stores stores;
    LIST_HEAD(, sgi_stop_hook) hooks_on_stop;

    /* This flag is written without the lock, so it has a word of its own: a compiler
     * may read the bytes next to a plain member together with the member. */
    _Alignas(8) atomic_bool open; /* stop was not called yet */
};

/* Returns the time of CLOCK_MONOTONIC in ms, even if a clock was injected. */
int64_t sgi_system_monotonic_ms(void);

/* ---- loop.c ---- */
segue_status sgi_loop_open(segue_runtime *rt);
void sgi_loop_close(segue_runtime *rt);
/* Sets the engine's host functions that concern the loop. The caller holds the lock. */
void sgi_loop_fill_host(sgi_host *host);
/* Makes the loop check its flags and timers again. The caller holds the lock. */
void sgi_loop_request_turn(segue_runtime *rt);
/* Wakes every thread that must be woken. The caller holds the lock and releases it
 * next. */
void sgi_loop_wake_threads(segue_runtime *rt);
/* Runs one turn, which waits at most wait_ms (-1 = no limit) and runs at most `budget`
 * callbacks. Returns the number of callbacks that ran. The caller holds the lock, which
 * is released while waiting. */
int32_t sgi_loop_turn(segue_runtime *rt, int64_t wait_ms, int32_t budget);
/* True when another turn has something to do without waiting. The caller holds the
 * lock. */
bool sgi_loop_is_due(const segue_runtime *rt);
/* Destroys the retired carriers. The caller holds the lock. */
void sgi_loop_destroy_retired(segue_runtime *rt);

/* ---- inlet.c: on the loop thread with the lock, unless a comment says otherwise ---- */
/* Switches lending on. On failure, the caller calls sgi_inlets_close, which undoes the
 * steps that were done. */
segue_status sgi_inlets_open(segue_runtime *rt);
void sgi_inlets_close(segue_runtime *rt);
/* Reads all lent inlets that have input. Called in each turn before timers run. */
void sgi_inlets_read_all(segue_runtime *rt);
/* Reads some of the lent inlets, each at most once. Called by dispatch, on any thread. */
void sgi_inlets_read_some(segue_runtime *rt);
/* Returns the longest time that the loop may wait, at most wait_ms, so that it takes
 * lent inlets back in time. */
int64_t sgi_inlets_limit_wait(const segue_runtime *rt, int64_t wait_ms);
/* Lends the inlets if that is due, or takes them back. Called after each wait of the
 * loop. */
void sgi_inlets_lend_or_take_back(segue_runtime *rt);
void sgi_inlets_take_back(segue_runtime *rt);

/* ---- dispatch.c ---- */
/* Notifies the host that the queue of callbacks is no longer empty. The caller holds
 * the lock. */
void sgi_dispatch_notify(segue_runtime *rt);
/* Runs at most `budget` callbacks. The caller holds the lock. */
int32_t sgi_dispatch_deliver(segue_runtime *rt, int32_t budget);

/* ---- store_worker.c ---- */
void sgi_stores_fill_host(sgi_host *host);
/* Does the work of stores that do not block. The caller holds the lock. */
void sgi_stores_work(segue_runtime *rt);
/* Waits until no worker has anything to do. The caller holds the lock, which is
 * released while waiting. */
void sgi_stores_wait_idle(segue_runtime *rt);
/* Ends the workers and removes all committers. The caller holds the lock, which is
 * released for a time. */
void sgi_stores_close(segue_runtime *rt);

#endif
