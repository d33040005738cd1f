/* Gathering: segments that a tool makes in quick succession are sent in one response. The
 * first response is sent at once, and so is each response that comes more than
 * SGI_GATHER_MS after the one before. Segments that come sooner wait until that time is
 * over, a response is full, or the operation has ended. */
#ifndef SGI_GATHER_H
#define SGI_GATHER_H

#include "engine/conversation/conn.h"
#include "engine/log/reader.h"

/* The pause between one response and the next, in ms. */
#define SGI_GATHER_MS 2
/* The largest number of segments in a response, and the number of bytes after which no
 * more segments are added. */
#define SGI_GATHER_SEGMENTS 256
#define SGI_GATHER_BYTES ((size_t)64 * 1024)

typedef struct sgi_gather {
    sgi_timer timer;
    /* conversation of the source; the owner of the source has the reference */
    sgi_conn *conn;
    sgi_source *source;
    /* Monotonic time before which the next response is not sent; 0 while no response has
     * been sent. */
    int64_t next_ms;
} sgi_gather;

void sgi_gather_init(sgi_gather *gather, sgi_conn *conn, sgi_source *source);
/* Stops the timer. */
void sgi_gather_end(sgi_gather *gather);
/* Begins the pause before the next response, because a response was sent. */
void sgi_gather_begin_pause(sgi_gather *gather);
/* True when the next response has to wait. The source is asked again when the response is
 * due. Entries that the reader has not read yet count as content of the response. */
bool sgi_gather_must_wait(sgi_gather *gather, const sgi_reader *reader);

#endif
