/* The insides of a runtime, for the files of this room.
 *
 * Lock order: the runtime's lock is the only one taken here; a store's own mutex is taken
 * under it (a store that does not block) or without it (by its worker), never around
 * it. */
#ifndef SGI_RUNTIME_STATE_H
#define SGI_RUNTIME_STATE_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/runtime.h"

typedef enum sgi_runtime_mode {
    SGI_MODE_NEW = 0, /* not used yet */
    SGI_MODE_INLINE,
    SGI_MODE_BACKGROUND
} sgi_runtime_mode;

TAILQ_HEAD(sgi_carrier_list, sgi_carrier);
typedef struct sgi_store_slot sgi_store_slot;
TAILQ_HEAD(sgi_store_slot_list, sgi_store_slot);

/* Which thread is outside, in code of the application. Written by that thread alone, read
 * by any: a thread can only ever find its own name here if it wrote it. */
typedef struct sgi_outside {
    atomic_uintptr_t thread;
    atomic_int depth;
} sgi_outside;

struct segue_runtime {
    uint32_t magic;
    sgi_mem mem;
    pthread_mutex_t mutex;
    int64_t refs; /* under the lock */
    sgi_engine engine;
    segue_hooks given;    /* clocks, complete; chance, if it was injected */
    uint8_t chance[1024]; /* drawn from the system in one go; used up from the end */
    size_t chance_left;
    segue_hooks hooks; /* what the engine calls */
    void *user;
    segue_log_fn log;
    segue_wake_fn on_wake;

    sgi_runtime_mode mode;
    bool draining;       /* sgi_runtime_free is at it; its thread is the loop thread */
    bool dead;           /* nothing but the struct is left */
    bool looping;        /* run or dispatch is on */
    bool delivering;     /* callbacks are being run */
    pthread_cond_t left; /* looping ended; a store worker has become idle */
    pthread_t io_thread;
    bool joinable;
    bool signals_blocked;   /* on the thread that loops now */
    sgi_outside outside[2]; /* callbacks; functions of custom transports */
    int64_t drain_base_ms;  /* engine time and */
    int64_t drain_real_ms;  /* real time when draining began */

    /* loop.c */
    struct ev_loop *loop;
    ev_async wake_up;
    ev_timer timeout;
    char *scratch;
    bool asleep;      /* the loop waits, or is about to */
    bool kick_due;    /* ... and has to be woken */
    bool flush_due;   /* ... unless output can be passed on without it */
    int64_t corks;    /* output is held back until there is none */
    int64_t armed_ms; /* the loop wakes by itself no later than this */
    struct sgi_carrier_list carriers;
    struct sgi_carrier_list retired;
    struct sgi_carrier_list work;
    struct sgi_carrier_list awaiting;
    size_t work_count;

    /* inlet.c */
    TAILQ_HEAD(, sgi_inlet) inlets; /* those that are open */
    int front_fd;        /* epoll: ready_fd and what is lent; -1: nothing ever is */
    char *front_room;    /* for one read, under the lock */
    bool lent;           /* inlets are the application's, but those that are kept */
    bool lend_due;       /* the loop is to make it so */
    bool regroup_due;    /* an inlet was given back, and nobody waits for it */
    int64_t attended_ms; /* real time of the last dispatch; 0 = none yet */
    int64_t patience_ms;

    /* dispatch.c */
    int ready_fd; /* readable while a background runtime has callbacks due */
    bool rung;
    bool attended; /* dispatch looks at the queue before it ends */
    bool ring_due;

    /* store_worker.c */
    struct sgi_store_slot_list stores;
    struct sgi_store_slot_list closing_stores;
    size_t loop_stores_due; /* keepers at stores that do not block */
    size_t slots_finished;  /* workers that wait to be joined */
    atomic_bool bells;      /* a store has rung */

    LIST_HEAD(, sgi_stop_hook) hooks_on_stop;

    /* Written without the lock, so it has a word of its own: a compiler may read what
     * lies beside a plain member along with that. */
    _Alignas(8) atomic_bool open; /* stop has not begun */
};

/* Milliseconds of CLOCK_MONOTONIC, whatever clock was injected. */
int64_t sgi_real_now(void);

/* loop.c */
segue_status sgi_loop_open(segue_runtime *rt);
void sgi_loop_close(segue_runtime *rt);
/* Lock held. The host functions of the engine that concern the loop. */
void sgi_loop_host(sgi_host *host);
/* Lock held: the loop looks at things anew. */
void sgi_loop_kick(segue_runtime *rt);
/* Lock held; wakes who has to be woken. To be called before the lock is let go. */
void sgi_loop_signal(segue_runtime *rt);
/* Lock held, let go while waiting: one turn that waits at most wait_ms (-1 = no limit)
 * and runs at most budget callbacks. Returns how many ran. */
int32_t sgi_loop_turn(segue_runtime *rt, int64_t wait_ms, int32_t budget);
/* Lock held: another turn has something to do without waiting. */
bool sgi_loop_is_due(const segue_runtime *rt);
/* Lock held: destroys what was retired. */
void sgi_loop_bury(segue_runtime *rt);

/* inlet.c; lock held, loop thread where nothing else is said */
/* Has a runtime lend its input; when that fails, close undoes what was done. */
segue_status sgi_inlets_open(segue_runtime *rt);
void sgi_inlets_close(segue_runtime *rt);
/* Before time passes: reads the lent inlets that have something. */
void sgi_inlets_read_all(segue_runtime *rt);
/* Any thread: dispatch is here. Reads some of them, once each. */
void sgi_inlets_attend(segue_runtime *rt);
/* The longest wait, if it might be so long: lent inlets are looked after. */
int64_t sgi_inlets_wait(const segue_runtime *rt, int64_t wait_ms);
/* After the wait: lends what is due, or takes it back. */
void sgi_inlets_turn(segue_runtime *rt);
void sgi_inlets_take_back(segue_runtime *rt);

/* dispatch.c */
/* Lock held: the queue of callbacks is no longer empty. */
void sgi_dispatch_ring(segue_runtime *rt);
/* Lock held: runs at most budget callbacks. */
int32_t sgi_dispatch_deliver(segue_runtime *rt, int32_t budget);

/* store_worker.c */
void sgi_stores_host(sgi_host *host);
/* Lock held: works on stores that do not block. */
void sgi_stores_work(segue_runtime *rt);
/* Lock held, let go meanwhile: waits until no worker has anything to do. */
void sgi_stores_settle(segue_runtime *rt);
/* Lock held, let go meanwhile: ends the workers and forgets all keepers. */
void sgi_stores_close(segue_runtime *rt);

#endif
