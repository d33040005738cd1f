/* inlet: a descriptor that a transport reads. Either the loop waits for the
 * descriptor, or the application does: a runtime that lends its input leaves this to
 * an application that dispatches often (see segue_runtime_options). */
#ifndef SGI_INLET_H
#define SGI_INLET_H

#include <ev.h>

#include "runtime/runtime.h"

typedef struct sgi_inlet sgi_inlet;

/* A read of at least this size is a flood. The loop keeps such an inlet, because
 * parsing so much input on the application's thread would delay the application. */
#define SGI_FLOOD_SIZE ((size_t)16 * 1024)

typedef struct sgi_inlet_ops {
    /* Called on the loop thread without the lock when there is input or the end of
     * input. */
    void (*readable)(sgi_inlet *inlet);
    /* Called on any thread under the lock, only while the inlet is lent. Reads once,
     * at most SGI_READ_SIZE bytes, into room. The function may close the inlet, but
     * must not end the connection. It returns false at the end of input or in a flood;
     * the loop then continues to read. */
    bool (*read_here)(sgi_inlet *inlet, char *room);
} sgi_inlet_ops;

struct sgi_inlet {
    segue_runtime *rt;
    const sgi_inlet_ops *ops;
    int fd;
    ev_io watcher;
    bool open;
    bool lent;    /* true = the application waits for the descriptor; false = the loop
                   * does */
    bool kept;    /* the loop keeps this inlet after a flood */
    int32_t calm; /* number of small reads in a row while `kept` is set */
    TAILQ_ENTRY(sgi_inlet) link;
};

/* All functions are called on the loop thread with the lock held, unless a comment says
 * otherwise. */
void sgi_inlet_init(sgi_inlet *inlet, segue_runtime *rt, const sgi_inlet_ops *ops,
                    int fd);
/* Starts waiting for the descriptor. May be called when the inlet is already open. */
void sgi_inlet_open(sgi_inlet *inlet);
/* Stops waiting for the descriptor. May be called when the inlet is not open, even
 * when it was never initialised. read_here may call it on any thread. */
void sgi_inlet_close(sgi_inlet *inlet);
/* Reports that the loop has read this many bytes. An inlet that the loop kept after a
 * flood may then be lent again. Returns true when the loop no longer waits for this
 * inlet. */
bool sgi_inlet_note_read(sgi_inlet *inlet, size_t bytes);

#endif
