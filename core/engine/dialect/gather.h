/* Gathering: segments that a tool makes in quick succession leave in one response. The
 * first response leaves at once, and so does each that comes more than SGI_GATHER_MS
 * after the one before. What comes sooner waits until that time is over, a response is
 * full, or the operation has ended. */
#ifndef SGI_GATHER_H
#define SGI_GATHER_H

#include "engine/conn.h"
#include "engine/log/reader.h"

/* The pause between one response and the next, in ms. */
#define SGI_GATHER_MS 2
/* A response takes at most so many segments. No segment is added once it has so many
 * bytes. */
#define SGI_GATHER_SEGMENTS 256
#define SGI_GATHER_BYTES ((size_t)64 * 1024)

typedef struct sgi_gather {
    sgi_timer timer;
    sgi_conn *conn; /* of the source; its owner counts it */
    sgi_source *source;
    /* Monotonic time before which the next response is not sent; 0 while no response has
     * been sent. */
    int64_t next_ms;
} sgi_gather;

void sgi_gather_init(sgi_gather *gather, sgi_conn *conn, sgi_source *source);
/* The timer does not fire any more. */
void sgi_gather_end(sgi_gather *gather);
/* A response has left. */
void sgi_gather_sent(sgi_gather *gather);
/* True when the next response is to wait; its source is asked again when it is due. What
 * the reader has not read yet makes a response full, whenever it was appended. */
bool sgi_gather_waits(sgi_gather *gather, const sgi_reader *reader);

#endif
