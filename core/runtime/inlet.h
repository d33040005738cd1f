/* inlet: a descriptor that a transport reads, and who waits for it: the loop, or, where
 * the runtime lends its input (segue_runtime_options), the application for as long as it
 * dispatches often. */
#ifndef SGI_INLET_H
#define SGI_INLET_H

#include <ev.h>

#include "runtime/runtime.h"

typedef struct sgi_inlet sgi_inlet;

/* So much in one read is a flood, which is the loop's: parsing it would hold the
 * application up, while on a thread of its own it goes on beside it. */
#define SGI_FLOOD_SIZE ((size_t)16 * 1024)

typedef struct sgi_inlet_ops {
    /* Loop thread, lock not held: there is something to read, or the end. */
    void (*readable)(sgi_inlet *inlet);
    /* Any thread, lock held throughout, only while it is lent: one read into room, of at
     * most SGI_READ_SIZE bytes. May shut the inlet and end nothing. False: there was no
     * input but the end, or a flood; the loop reads on. */
    bool (*read_here)(sgi_inlet *inlet, char *room);
} sgi_inlet_ops;

struct sgi_inlet {
    segue_runtime *rt;
    const sgi_inlet_ops *ops;
    int fd;
    ev_io watcher;
    bool open;
    bool lent;    /* the application waits for it, else the loop does */
    bool kept;    /* not to be lent */
    int32_t calm; /* reads in a row that found little, while it is kept */
    TAILQ_ENTRY(sgi_inlet) link;
};

/* Lock held and loop thread, except where it says otherwise. */
void sgi_inlet_init(sgi_inlet *inlet, segue_runtime *rt, const sgi_inlet_ops *ops,
                    int fd);
/* Has the descriptor waited for. Takes one that is open. */
void sgi_inlet_open(sgi_inlet *inlet);
/* ... no longer. Takes one that is not open, also before init. In read_here, any
 * thread. */
void sgi_inlet_shut(sgi_inlet *inlet);
/* The loop has read so many bytes. When a flood is over the inlet is lent again; true:
 * it is not the loop's any more. */
bool sgi_inlet_has_read(sgi_inlet *inlet, size_t bytes);

#endif
