/* Gathering puts segments that a tool makes in quick succession into one response. The
 * first response is sent at once, and so is a response after a pause of SGI_GATHER_MS.
 * Otherwise segments wait until the pause is over, a response is full, or the operation
 * has ended. */
#ifndef SGI_GATHER_H
#define SGI_GATHER_H

#include "base/thresholds.h"
#include "engine/conversation/conn.h"
#include "engine/log/reader.h"

/* The shortest time between two responses, in ms. */
#define SGI_GATHER_MS SGI_THRESHOLD(gather_ms)
/* A response is full when it has this number of segments, or more than this number of
 * bytes. */
#define SGI_GATHER_SEGMENTS SGI_THRESHOLD(gather_segments)
#define SGI_GATHER_BYTES SGI_THRESHOLD(gather_bytes)

typedef struct sgi_gather {
    sgi_timer timer;
    /* the conversation of the source; the owner of the source has a reference to it, this
     * struct has none */
    sgi_conn *conn;
    sgi_source *source;
    /* Monotonic time before which the next response is not sent; 0 = no response was sent
     * so far. */
    int64_t next_ms;
} sgi_gather;

void sgi_gather_init(sgi_gather *gather, sgi_conn *conn, sgi_source *source);
/* Stops the timer. */
void sgi_gather_end(sgi_gather *gather);
/* Notes that a response was sent, so that the pause before the next one begins. */
void sgi_gather_begin_pause(sgi_gather *gather);
/* True when the next response has to wait. The source is then asked again when the
 * response is due. What the reader has not read yet counts as the content of the
 * response. */
bool sgi_gather_must_wait(sgi_gather *gather, const sgi_reader *reader);

#endif
