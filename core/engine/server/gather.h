/* Gathers segments that a tool makes in quick succession into one response. A response is
 * sent at once when it is the first response, or when the response before it was sent at
 * least SGI_GATHER_MS ago. Otherwise the segments wait until that time is over, the
 * response is full, or the operation has ended. */
#ifndef SGI_GATHER_H
#define SGI_GATHER_H

#include "base/thresholds.h"
#include "engine/conversation/conn.h"
#include "engine/log/reader.h"

/* The minimum time between two responses, in ms. */
#define SGI_GATHER_MS SGI_THRESHOLD(gather_ms)
/* A response is full when it has SGI_GATHER_SEGMENTS segments or SGI_GATHER_BYTES
 * bytes. */
#define SGI_GATHER_SEGMENTS SGI_THRESHOLD(gather_segments)
#define SGI_GATHER_BYTES SGI_THRESHOLD(gather_bytes)

typedef struct sgi_response_pacer {
    sgi_timer timer;
    /* the conversation of the source; only the owner of the source holds a reference to
     * the conversation */
    sgi_conn *conn;
    sgi_output_source *source;
    /* Monotonic time in ms before which the next response is not sent; 0 = no response
     * was sent so far. */
    int64_t next_ms;
} sgi_response_pacer;

void sgi_response_pacer_init(sgi_response_pacer *gather, sgi_conn *conn,
                             sgi_output_source *source);
/* Stops the timer. */
void sgi_response_pacer_stop(sgi_response_pacer *gather);
/* Notes that a response was sent. The pause before the next response begins. */
void sgi_response_pacer_begin_pause(sgi_response_pacer *gather);
/* True when the next response has to wait. The source is then queued again when the wait
 * is over. The next response consists of everything that the reader has not read yet. */
bool sgi_response_pacer_must_wait(sgi_response_pacer *gather, const sgi_reader *reader);

#endif
