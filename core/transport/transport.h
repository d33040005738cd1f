/* transport: what carries a conversation's bytes. pair.c, fds.c (also stdio), spawn.c and
 * custom.c each make one kind; stream.c moves bytes through a pair of descriptors for
 * those that have one. They speak to the engine through runtime/exchange.h alone and
 * never to each other. Everything runs on the loop thread, except constructors, attach,
 * free and the three functions of a custom transport, which any thread may call.
 *
 *   NEW --attach--> ATTACHED --end--> CLOSED
 *      \--free, or the runtime is freed--/
 *
 * A transport that was never attached is freed by its owner. From attach on it belongs to
 * the runtime: it ends when its conversation has ended, and its memory goes with the
 * turn. */
#ifndef SGI_TRANSPORT_H
#define SGI_TRANSPORT_H

#include "runtime/runtime.h"

#define SGI_MAGIC_TRANSPORT 0x53475452u /* a transport begins with it */

/* So long may a peer that reads nothing keep a conversation that is over, */
#define SGI_LINGER_MS 1000
/* and so long one that does read keep sgi_runtime_free. */
#define SGI_GRACE_MS 10000

typedef enum sgi_transport_state {
    SGI_TRANSPORT_NEW = 0,
    SGI_TRANSPORT_ATTACHED,
    SGI_TRANSPORT_CLOSED
} sgi_transport_state;

/* What a kind of transport does; lock held, loop thread (release and destroy of one that
 * was never attached: any thread). NULL where a kind has nothing to do. */
typedef struct sgi_transport_ops {
    void (*start)(
        segue_transport *transport); /* connect; sgi_conn_start once connected */
    void (*reopen)(segue_transport *transport);     /* the same again, after a loss */
    void (*resume)(segue_transport *transport);     /* input is wanted again */
    void (*poke)(segue_transport *transport);       /* it raised SGI_WORK_OWN itself */
    void (*quiet)(segue_transport *transport);      /* sgi_carrier_await_quiet */
    void (*flush)(segue_transport *transport);      /* there is output */
    bool (*flush_here)(segue_transport *transport); /* as in sgi_carrier_ops */
    void (*close)(
        segue_transport *transport); /* sgi_transport_end, once the output is out */
    void (*release)(segue_transport *transport); /* descriptors, child and user go now */
    void (*destroy)(segue_transport *transport); /* frees the memory */
} sgi_transport_ops;

struct segue_transport {
    sgi_carrier carrier; /* first: the runtime takes one for the other */
    const sgi_transport_ops *ops;
    sgi_transport_state state;
};

/* As in segue.h and segue_ext.h, except: options of spawn are of full size, a vtable
 * too. */
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
/* Takes NULL; ignores one that is attached. */
void sgi_transport_free(segue_transport *transport);

/* Lock held. Gives the transport to the runtime, which starts it in its next turn; the
 * caller made the conversation with the transport as its transport. SEGUE_E_STATE when it
 * was attached before, SEGUE_E_CLOSED when the runtime has stopped: nothing was taken
 * then. */
segue_status sgi_transport_attach(segue_transport *transport, sgi_conn *conn);
/* host.reopen of its conversation can succeed. */
bool sgi_transport_can_reopen(const segue_transport *transport);

/* ---- for the kinds ---- */

/* Lock not held. Enters a new transport into the runtime; SEGUE_E_CLOSED once that has
 * stopped: the caller frees the memory then. */
segue_status sgi_transport_init(segue_transport *transport, segue_runtime *rt,
                                const sgi_transport_ops *ops, bool can_reopen,
                                int64_t grace_ms);
/* Lock held. The conversation is over for good: detaches it. The transport may live
 * on. */
void sgi_transport_detach(segue_transport *transport);
/* Lock held. Detaches, releases and retires. */
void sgi_transport_end(segue_transport *transport);

/* "what: text of the errno", for sgi_conn_lost. */
#define SGI_WHY_SIZE 160
void sgi_transport_explain(char why[SGI_WHY_SIZE], const char *what, int fault);

static inline sgi_conn *sgi_transport_conn(const segue_transport *transport)
{
    return transport->carrier.conn;
}

static inline segue_runtime *sgi_transport_runtime(const segue_transport *transport)
{
    return transport->carrier.runtime;
}

#endif
