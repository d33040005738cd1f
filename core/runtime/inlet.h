/* inlet: a descriptor that a transport reads. Normally the loop waits for the descriptor.
 * A runtime that lends its input lets the application wait for the descriptor in place
 * of the loop, if the application dispatches often (see segue_runtime_options). */
#ifndef SGI_INLET_H
#define SGI_INLET_H

#include <ev.h>

#include "runtime/runtime.h"

typedef struct sgi_inlet sgi_inlet;

/* The size in bytes from which on a read counts as a flood. The loop keeps an inlet with
 * a flood, because parsing so much input on the application's thread would delay the
 * application. */
#define SGI_FLOOD_SIZE ((size_t)16 * 1024)

typedef struct sgi_inlet_ops {
    /* Called on the loop thread without the lock when there is input, or when the input
     * has ended. */
    void (*readable)(sgi_inlet *inlet);
    /* Called on any thread under the lock, only while the inlet is lent. Reads once, at
     * most SGI_READ_SIZE bytes, into `room`. May close the inlet, but must not end the
     * connection. Returns false at the end of the input or in a flood; the loop then
     * continues to read. */
    bool (*read_here)(sgi_inlet *inlet, char *room);
} sgi_inlet_ops;

struct sgi_inlet {
    segue_runtime *rt;
    const sgi_inlet_ops *ops;
    int fd;
    ev_io watcher;
    bool open;
    /* true = the application waits for the descriptor; false = the loop waits */
    bool lent;
    bool kept;    /* true = the loop keeps this inlet because of a flood */
    int32_t calm; /* number of small reads in a row while `kept` is set */
    TAILQ_ENTRY(sgi_inlet) link;
};

/* Unless a comment says otherwise, the functions of this file are called on the loop
 * thread with the lock held. */
void sgi_inlet_init(sgi_inlet *inlet, segue_runtime *rt, const sgi_inlet_ops *ops,
                    int fd);
/* Starts waiting for the descriptor. May be called when the inlet is already open. */
void sgi_inlet_start_waiting(sgi_inlet *inlet);
/* Stops waiting for the descriptor. May be called for an inlet that is not open, even for
 * an inlet that was never initialised. read_here may call the function on any thread. */
void sgi_inlet_stop_waiting(sgi_inlet *inlet);
/* Records that the loop has read `bytes` bytes. Enough small reads after a flood make the
 * inlet ready to be lent again. Returns true when the loop no longer waits for this
 * inlet. */
bool sgi_inlet_note_read(sgi_inlet *inlet, size_t bytes);

#endif
