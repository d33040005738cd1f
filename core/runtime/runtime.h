/* runtime: one libev loop and what hangs on it. The engine's lock, its clock and timers,
 * the queue of callbacks, the threads (I/O of a background runtime, one per blocking
 * store) and the order of a shutdown live here. It drives transports through sgi_carrier
 * and the engine through engine/engine.h, exchange.h and keeper.h; it knows no HTTP, no
 * SQL, no protocol.
 *
 * One turn of the loop: wait for events -> timers -> callbacks (inline) -> stores that do
 * not block -> transports that have something to do. The loop thread is the caller of run
 * or dispatch, or the I/O thread of a background runtime; sgi_runtime_free makes the
 * caller the loop thread for the last turns. "Lock held" below means sgi_runtime_lock. */
#ifndef SGI_RUNTIME_H
#define SGI_RUNTIME_H

#include "engine/log/keeper.h"
#include "runtime/exchange.h"

#define SGI_MAGIC_RUNTIME 0x53475254u /* a runtime begins with it */

/* options: full size; zero means the default. */
segue_status sgi_runtime_new(const segue_runtime_options *options, segue_runtime **out,
                             segue_error **error);
segue_status sgi_runtime_run(segue_runtime *rt);
segue_status sgi_runtime_start(segue_runtime *rt);
segue_status sgi_runtime_fd(segue_runtime *rt, int32_t *fd);
segue_status sgi_runtime_dispatch(segue_runtime *rt, int64_t timeout_ms,
                                  int32_t max_events, int32_t *ran);
segue_status sgi_runtime_stop(segue_runtime *rt);
segue_status sgi_runtime_cork(segue_runtime *rt);
segue_status sgi_runtime_uncork(segue_runtime *rt);
/* Shuts down and drops the owner's reference. Ignored inside a callback. */
void sgi_runtime_free(segue_runtime *rt);

/* The struct, its allocator and its lock live until the last reference is gone. Not to be
 * called with the lock held: there, use engine.host.retain and release, whose last
 * reference goes with the unlock that follows. */
void sgi_runtime_ref(segue_runtime *rt);
void sgi_runtime_unref(segue_runtime *rt);

sgi_engine *sgi_runtime_engine(segue_runtime *rt);
void sgi_runtime_lock(segue_runtime *rt);
/* Wakes whoever has got something to do meanwhile. */
void sgi_runtime_unlock(segue_runtime *rt);
/* False once stop has begun. Any thread, with or without the lock. */
bool sgi_runtime_is_open(const segue_runtime *rt);
/* The calling thread is inside a callback of this runtime, or inside a function of a
 * custom transport. Any thread, with or without the lock. */
bool sgi_runtime_in_callback(const segue_runtime *rt);

/* ---- shutdown ---- */

/* Called once, under the lock, when the runtime is freed; it is off the list by then. */
typedef struct sgi_stop_hook {
    LIST_ENTRY(sgi_stop_hook) link;
    bool set;
    void (*fn)(struct sgi_stop_hook *hook);
} sgi_stop_hook;

/* Lock held, both. Off takes a hook that is not set. */
void sgi_runtime_on_stop(segue_runtime *rt, sgi_stop_hook *hook);
void sgi_runtime_off_stop(segue_runtime *rt, sgi_stop_hook *hook);

/* ---- stores ---- */

/* Lock held. From now on the keeper is worked on; keeper->host_user belongs to the
 * runtime. SEGUE_E_IO when no thread can be had, SEGUE_E_CLOSED once the runtime was
 * freed. */
segue_status sgi_runtime_add_store(segue_runtime *rt, sgi_keeper *keeper,
                                   segue_store *store);
/* Lock held; lets it go while it waits for the worker. What is dirty is committed first,
 * as far as the store takes it; on the worker's own thread only what is under way is.
 * Returns with nobody working on the keeper. Takes a keeper that was never added. */
void sgi_runtime_remove_store(segue_runtime *rt, sgi_keeper *keeper);

/* ---- for transports ---- */

/* What a carrier can be asked to do, as bits. */
enum {
    SGI_WORK_START = 1,  /* it was attached */
    SGI_WORK_REOPEN = 2, /* connect again */
    SGI_WORK_RESUME = 4, /* input is wanted again */
    SGI_WORK_OWN = 8,    /* raised by the transport itself */
    SGI_WORK_QUIET = 16, /* sgi_carrier_await_quiet */
    SGI_WORK_FLUSH = 32, /* there is output */
    SGI_WORK_CLOSE = 64  /* close once the output is out */
};

typedef struct sgi_carrier sgi_carrier;

/* Loop thread, lock held and perhaps let go meanwhile, except where it says otherwise. */
typedef struct sgi_carrier_ops {
    void (*work)(sgi_carrier *carrier, uint32_t work);
    /* Any thread, lock held throughout, while the loop waits: passes on the output there
     * is without the loop. False when that is not done, or not wholly: the loop is asked
     * as ever. NULL: only the loop can. */
    bool (*flush_here)(sgi_carrier *carrier);
    /* The runtime ends: let go of everything outside memory now, and, when attached,
     * detach the conversation and retire. */
    void (*abandon)(sgi_carrier *carrier);
    void (*destroy)(sgi_carrier *carrier); /* frees the memory */
} sgi_carrier_ops;

/* What the loop knows of a transport; its first member. */
struct sgi_carrier {
    uint32_t magic;
    segue_runtime *runtime; /* counted, from add to destroy */
    const sgi_carrier_ops *ops;
    sgi_conn *conn; /* between attach and detach */
    bool attached;  /* belongs to the runtime */
    bool can_reopen;
    int64_t grace_ms; /* so long sgi_runtime_free waits for it to close by itself */
    uint32_t work;
    bool queued;   /* on the list of those with work */
    bool awaiting; /* ... that wait for quiet */
    bool listed;
    bool retired; /* destroyed at the end of this turn */
    int32_t held; /* ... but not while code of the application may look at it */
    TAILQ_ENTRY(sgi_carrier) link;
    TAILQ_ENTRY(sgi_carrier) work_link;
    TAILQ_ENTRY(sgi_carrier) quiet_link;
};

/* Lock held, all. Magic, ops, can_reopen and grace_ms are set by the transport. */
void sgi_carrier_add(segue_runtime *rt, sgi_carrier *carrier);
/* Takes a carrier out again that was not attached, and destroys it. */
void sgi_carrier_drop(sgi_carrier *carrier);
/* One that has these ops and has not retired; NULL when there is none. For a carrier of
 * which a runtime has one. */
sgi_carrier *sgi_carrier_find(segue_runtime *rt, const sgi_carrier_ops *ops);
/* Has work done by the loop in a turn to come; a FLUSH alone perhaps by flush_here. */
void sgi_carrier_raise(sgi_carrier *carrier, uint32_t work);
/* Raises QUIET in the first turn that finds no callback due or running: what the peer has
 * asked so far was seen by the application, and answered if it answers at once. */
void sgi_carrier_await_quiet(sgi_carrier *carrier);
/* Loop thread. No work is raised any more; destroyed at the end of the turn. */
void sgi_carrier_retire(sgi_carrier *carrier);

/* Around calls into code of the application on the loop thread, outside the queue of
 * callbacks. Begin lets the lock go, end takes it. */
void sgi_runtime_leave(segue_runtime *rt);
void sgi_runtime_return(segue_runtime *rt);

struct ev_loop;
/* Loop thread. */
struct ev_loop *sgi_runtime_loop(segue_runtime *rt);
/* Loop thread: room for one read, SGI_READ_SIZE bytes. */
#define SGI_READ_SIZE ((size_t)64 * 1024)
char *sgi_runtime_scratch(segue_runtime *rt);
/* Loop thread: it is the runtime's own and no signal is delivered to it. */
bool sgi_runtime_blocks_signals(const segue_runtime *rt);

#endif
