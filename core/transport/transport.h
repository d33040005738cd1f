/* A transport carries the bytes of a conversation. pair.c, fds.c (also for stdio),
 * spawn.c and custom.c implement one kind of transport each. stream.c moves bytes through
 * a pair of descriptors for the kinds that use descriptors. The kinds use the engine
 * through runtime/transport_port.h only, and never use each other. Everything runs on the
 * loop thread, except constructors, attach, free and the three functions of a custom
 * transport, which any thread may call.
 *
 *   NEW --attach--> ATTACHED --end--> CLOSED
 *      \--free, or the runtime is freed--/
 *
 * The owner of a transport that was never attached frees it. An attached transport
 * belongs to the runtime: the transport ends when its conversation has ended, and its
 * memory is freed at the end of the turn. */
#ifndef SGI_TRANSPORT_H
#define SGI_TRANSPORT_H

#include "base/thresholds.h"
#include "runtime/runtime.h"

/* magic number; the first member of a transport */
#define SGI_MAGIC_TRANSPORT 0x53475452u

/* The time in ms for which a peer that does not read may delay the end of a
 * conversation. */
#define SGI_LINGER_MS SGI_THRESHOLD(close_linger_ms)
/* The time in ms for which a peer that reads may delay sgi_runtime_free. */
#define SGI_GRACE_MS 10000

typedef enum sgi_transport_state {
    SGI_TRANSPORT_NEW = 0,
    SGI_TRANSPORT_ATTACHED,
    SGI_TRANSPORT_CLOSED
} sgi_transport_state;

/* The functions of one kind of transport. The loop thread calls the functions with the
 * lock held. release and destroy of a transport that was never attached may be called on
 * any thread. A function that the kind does not need is NULL. */
typedef struct sgi_transport_ops {
    /* connects, and calls sgi_conn_start once connected */
    void (*start)(segue_transport *transport);
    void (*reopen)(segue_transport *transport); /* connects again after a loss */
    void (*resume)(segue_transport *transport); /* reads input again */
    /* does the work that the transport itself has requested (SGI_WORK_OWN) */
    void (*poke)(segue_transport *transport);
    /* called when no callback is due or running, if sgi_carrier_await_quiet has requested
     * the call */
    void (*quiet)(segue_transport *transport);
    void (*flush)(segue_transport *transport); /* writes the output */
    /* does what flush_here of sgi_carrier_ops does */
    bool (*flush_here)(segue_transport *transport);
    /* writes the output, then calls sgi_transport_end */
    void (*close)(segue_transport *transport);
    /* releases descriptors, the child process and the application's object at once */
    void (*release)(segue_transport *transport);
    void (*destroy)(segue_transport *transport); /* frees the memory */
} sgi_transport_ops;

struct segue_transport {
    /* the first member, because a pointer to the carrier is converted to this struct */
    sgi_carrier carrier;
    const sgi_transport_ops *ops;
    sgi_transport_state state;
};

/* The following functions do the same as the public functions of segue.h and segue_ext.h,
 * except that options and vtables must be structs with all members of this version. */
segue_status sgi_transport_pair(segue_runtime *rt, segue_transport **a,
                                segue_transport **b);
segue_status sgi_transport_stdio(segue_runtime *rt, segue_transport **out);
segue_status sgi_transport_fds(segue_runtime *rt, int32_t fd_in, int32_t fd_out,
                               segue_transport **out);
segue_status sgi_transport_spawn(segue_runtime *rt, const segue_spawn_options *options,
                                 segue_transport **out);
segue_status sgi_transport_custom(segue_runtime *rt, const segue_transport_vtable *vtable,
                                  void *self, segue_transport **out);
segue_status sgi_transport_feed(segue_transport *transport, const char *bytes,
                                size_t len);
segue_status sgi_transport_writable(segue_transport *transport);
segue_status sgi_transport_closed(segue_transport *transport);
/* Frees a transport that was never attached. Does nothing for NULL and for an attached
 * transport. */
void sgi_transport_free(segue_transport *transport);

/* Gives the transport to the runtime, which starts the transport in its next turn. The
 * caller has made the conversation `conn` for this transport. Returns SEGUE_E_STATE when
 * the transport was attached before, and SEGUE_E_CLOSED when the runtime has stopped. On
 * failure the transport still belongs to the caller. The caller holds the lock. */
segue_status sgi_transport_attach(segue_transport *transport, sgi_conn *conn);
/* True when the transport can connect again after a loss, so that host.reopen of its
 * conversation can succeed. */
bool sgi_transport_can_reopen(const segue_transport *transport);

/* ---- for the kinds of transports ---- */

/* Adds a new transport to the runtime. Returns SEGUE_E_CLOSED after the runtime has
 * stopped; the caller then frees the memory. The caller does not hold the lock. */
segue_status sgi_transport_init(segue_transport *transport, segue_runtime *rt,
                                const sgi_transport_ops *ops, bool can_reopen,
                                int64_t grace_ms);
/* Detaches the conversation, which has ended for good. The transport may live on. The
 * caller holds the lock. */
void sgi_transport_detach(segue_transport *transport);
/* Detaches the conversation, releases what the transport holds, and retires the
 * transport. The caller holds the lock. */
void sgi_transport_end(segue_transport *transport);

/* SGI_WHY_SIZE is the size of a text about the reason of a failure. sgi_transport_explain
 * writes "what: description of the errno" as such a text, for sgi_conn_on_lost. */
#define SGI_WHY_SIZE 160
void sgi_transport_explain(char why[SGI_WHY_SIZE], const char *what, int fault);
/* Returns the description of an errno, which may stand in room. */
const char *sgi_transport_describe(int fault, char *room, size_t size);

static inline sgi_conn *sgi_transport_conn(const segue_transport *transport)
{
    return transport->carrier.conn;
}

static inline segue_runtime *sgi_transport_runtime(const segue_transport *transport)
{
    return transport->carrier.runtime;
}

#endif
