/* runtime: one libev loop and everything that runs on it. The runtime has the engine's
 * lock, clock and timers, the queue of callbacks, the threads (the I/O thread of a
 * background runtime, and one thread per blocking store) and the order of a shutdown. The
 * runtime drives transports through sgi_carrier and the engine through engine/engine.h,
 * transport_port.h and committer.h. It knows no HTTP, no SQL and no protocol.
 *
 * One turn of the loop: wait for events -> timers -> callbacks (inline) -> stores that do
 * not block -> transports with work. The loop thread is the caller of run or dispatch, or
 * the I/O thread of a background runtime. sgi_runtime_free makes its caller the loop
 * thread for the last turns. "The lock" in the comments of the rooms runtime and
 * transport is the lock of sgi_runtime_lock. */
#ifndef SGI_RUNTIME_H
#define SGI_RUNTIME_H

#include "runtime/helper.h"
#include "runtime/transport_port.h"

typedef struct sgi_committer sgi_committer;

#define SGI_MAGIC_RUNTIME 0x53475254u /* magic number; the first member of a runtime */

/* Makes a runtime. options: a struct with all members of this version; a member that
 * is 0 means the default. */
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
/* Shuts the runtime down and drops the application's reference. Does nothing when called
 * inside a callback. */
void sgi_runtime_free(segue_runtime *rt);

/* sgi_runtime_ref adds a reference to the runtime, sgi_runtime_unref drops one. The
 * struct, its allocator and its lock live until the last reference is dropped. The caller
 * must not hold the lock. A caller that holds the lock uses engine.host.retain and
 * engine.host.release instead; the unlock that follows frees the struct after the last
 * reference. */
void sgi_runtime_ref(segue_runtime *rt);
void sgi_runtime_unref(segue_runtime *rt);

sgi_engine *sgi_runtime_engine(segue_runtime *rt);
void sgi_runtime_lock(segue_runtime *rt);
/* Releases the lock, and wakes the threads that have work to do. */
void sgi_runtime_unlock(segue_runtime *rt);
/* Returns false after the runtime was stopped. Any thread may call the function, with or
 * without the lock. */
bool sgi_runtime_is_open(const segue_runtime *rt);
/* Returns the number of bytes of this process that are in memory; -1 when the system does
 * not say. Any thread may call the function. */
int64_t sgi_runtime_resident_bytes(void);
/* True when the calling thread is inside a callback of this runtime, or inside a function
 * of a custom transport. Any thread may call the function, with or without the lock. */
bool sgi_runtime_is_in_callback(const segue_runtime *rt);

/* ---- shutdown ---- */

/* A function that is called once, under the lock, when the runtime is freed. The hook
 * is removed from the list before the call. */
typedef struct sgi_stop_hook {
    LIST_ENTRY(sgi_stop_hook) link;
    bool set;
    void (*fn)(struct sgi_stop_hook *hook);
} sgi_stop_hook;

/* sgi_runtime_add_stop_hook adds a stop hook, sgi_runtime_remove_stop_hook removes it.
 * Removing a hook that was not added does nothing. The caller holds the lock. */
void sgi_runtime_add_stop_hook(segue_runtime *rt, sgi_stop_hook *hook);
void sgi_runtime_remove_stop_hook(segue_runtime *rt, sgi_stop_hook *hook);

/* ---- stores ---- */

/* Connects a committer, which writes the operations of one server, with its store. From
 * then on the runtime does the commits and jobs of this committer. committer->host_user
 * belongs to the runtime. Returns SEGUE_E_IO when no thread can be started, and
 * SEGUE_E_CLOSED after the runtime was freed. The caller holds the lock. */
segue_status sgi_runtime_add_store(segue_runtime *rt, sgi_committer *committer,
                                   segue_store *store);
/* Disconnects a committer from its store. Before, dirty operations are committed as far
 * as the store accepts the commits; when the worker's own thread calls, only the running
 * commit is finished. On return no thread works on the committer. May be called for a
 * committer that was never added. The caller holds the lock, which is released while the
 * function waits for the worker. */
void sgi_runtime_remove_store(segue_runtime *rt, sgi_committer *committer);

/* Returns the store of a committer, without adding a reference; NULL when the committer
 * has none any more. The caller holds the lock. */
segue_store *sgi_runtime_store(const sgi_committer *committer);

/* ---- for transports ---- */

/* The kinds of work of a carrier (the part of a transport that the loop uses), as
 * bits. */
enum {
    SGI_WORK_START = 1,  /* start, because the transport was attached */
    SGI_WORK_REOPEN = 2, /* connect again */
    SGI_WORK_RESUME = 4, /* read input again */
    SGI_WORK_OWN = 8,    /* do the work that the transport has requested by itself */
    /* notice that no callback is due or running (sgi_carrier_await_quiet) */
    SGI_WORK_QUIET = 16,
    SGI_WORK_FLUSH = 32, /* write the output */
    SGI_WORK_CLOSE = 64  /* write the output, then close */
};

typedef struct sgi_carrier sgi_carrier;

/* The functions of one kind of carrier. Unless a comment says otherwise, the loop thread
 * calls the functions with the lock held. The functions may release the lock for a
 * time. */
typedef struct sgi_carrier_ops {
    void (*work)(sgi_carrier *carrier, uint32_t work);
    /* Writes the output without the loop, while the loop waits. Any thread may call the
     * function, with the lock held throughout. Returns false when output is left, which
     * the loop then writes. NULL = only the loop can write. */
    bool (*flush_here)(sgi_carrier *carrier);
    /* Called when the runtime ends. Releases everything except memory. An attached
     * carrier also detaches its conversation, and the loop destroys it at the end of
     * the turn (retires it). */
    void (*abandon)(sgi_carrier *carrier);
    void (*destroy)(sgi_carrier *carrier); /* frees the memory */
} sgi_carrier_ops;

/* The part of a transport that the loop uses; the first member of a transport. */
struct sgi_carrier {
    uint32_t magic;
    /* a counted reference, which the carrier holds from sgi_carrier_add until it is
     * destroyed */
    segue_runtime *runtime;
    const sgi_carrier_ops *ops;
    sgi_conn *conn; /* the conversation, between attach and detach; otherwise NULL */
    /* true = the carrier is attached and belongs to the runtime; false = it belongs to
     * the application */
    bool attached;
    bool can_reopen;
    /* true = any thread with the lock may do the work while the loop waits (loop.c) */
    bool is_free;
    /* the time in ms for which sgi_runtime_free waits until the carrier has closed by
     * itself */
    int64_t grace_ms;
    uint32_t work;
    bool queued;   /* true = the carrier is in the list of carriers with work */
    bool awaiting; /* true = the carrier is in the list of carriers that wait until no
                      callback is due or running */
    bool listed;
    /* true = the carrier is destroyed at the end of this turn, if `held` is 0 then */
    bool retired;
    int32_t held; /* number of application calls that may still use the carrier */
    TAILQ_ENTRY(sgi_carrier) link;
    TAILQ_ENTRY(sgi_carrier) work_link;
    TAILQ_ENTRY(sgi_carrier) quiet_link;
};

/* Adds a carrier (the part of a transport that the loop uses) to the runtime. The
 * transport has already set magic, ops, can_reopen and grace_ms. The caller of the
 * functions sgi_carrier_... holds the lock. */
void sgi_carrier_add(segue_runtime *rt, sgi_carrier *carrier);
/* Removes a carrier that is not attached, and destroys it. */
void sgi_carrier_drop(sgi_carrier *carrier);
/* Finds a carrier that has these ops and has not retired. Returns NULL when the runtime
 * has no such carrier. For kinds of carriers of which a runtime has at most one. */
sgi_carrier *sgi_carrier_find(segue_runtime *rt, const sgi_carrier_ops *ops);
/* Asks the loop to do this work (SGI_WORK_ bits) in its next turn. If FLUSH is the only
 * work of the carrier, flush_here can do the work earlier. */
void sgi_carrier_request_work(sgi_carrier *carrier, uint32_t work);
/* Requests the work SGI_WORK_QUIET for the first turn in which no callback is due or
 * running. By then the application has seen everything that the peer has sent, and has
 * had time to answer. */
void sgi_carrier_await_quiet(sgi_carrier *carrier);
/* Retires the carrier: the carrier gets no more work and is destroyed at the end of the
 * turn. Only the loop thread may call the function. */
void sgi_carrier_retire(sgi_carrier *carrier);

/* Surround code of the application that the loop thread runs outside of the queue of
 * callbacks. sgi_runtime_user_code_begin releases the lock; sgi_runtime_user_code_end
 * takes the lock again. */
void sgi_runtime_user_code_begin(segue_runtime *rt);
void sgi_runtime_user_code_end(segue_runtime *rt);

struct ev_loop;
/* Returns libev's loop. Only the loop thread may call the function. */
struct ev_loop *sgi_runtime_loop(segue_runtime *rt);
/* Returns a buffer of SGI_READ_SIZE bytes for one read. Only the loop thread may call the
 * function. */
#define SGI_READ_SIZE ((size_t)64 * 1024)
char *sgi_runtime_scratch(segue_runtime *rt);
/* True when all signals are blocked on the loop thread. Only the loop thread may call the
 * function. */
bool sgi_runtime_blocks_signals(const segue_runtime *rt);

#endif
