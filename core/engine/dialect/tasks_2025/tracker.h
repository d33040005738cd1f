/* Tracks which segments of a task have arrived (SEP-1905, R-1905-57), pushed or pulled.
 * Each number is accepted once, and segments are passed on in order. While an earlier
 * segment is missing, later ones are held, within limits. A segment beyond the limits is
 * dropped and requested again, like a lost segment. A number must always mean the same
 * bytes. To detect a repeated number with other bytes, the tracker stores the hashes of
 * at least the last SGI_TRACKER_WINDOW segments (R-1905-58). */
#ifndef SGI_TRACKER_H
#define SGI_TRACKER_H

#include "base/thresholds.h"
#include "base/buf.h"

#define SGI_TRACKER_WINDOW 4096
#define SGI_TRACKER_HELD_MAX SGI_THRESHOLD(tracker_held_max)

typedef struct sgi_held_segment {
    uint64_t number;
    uint64_t hash;
    size_t len;
    char bytes[];
} sgi_held_segment;

typedef struct sgi_tracker {
    const sgi_mem *mem;
    uint64_t seed[2];
    /* number of the next segment to pass on; all earlier segments were passed on */
    uint64_t next;
    uint64_t highest; /* the highest segment number that is known to exist */
    bool complete;    /* true when `highest` is the number of the last segment */
    size_t max_bytes; /* the largest value of held_bytes */
    size_t held_bytes;
    sgi_buf held; /* the held segments: array of sgi_held_segment *, sorted by number */
    /* hashes (array of uint64_t) of the segments from number first_hash up to next - 1 */
    sgi_buf hashes;
    uint64_t first_hash;
} sgi_tracker;

typedef enum sgi_tracked {
    /* The segment is the next one in order. The caller passes it on, and then each
     * segment that sgi_tracker_pop returns. */
    SGI_TRACKED_NEXT = 0,
    SGI_TRACKED_HELD,
    SGI_TRACKED_REPEAT,
    /* a segment with this number and other bytes has arrived before; the new segment is
     * dropped */
    SGI_TRACKED_OTHER,
    SGI_TRACKED_FULL, /* the segment was dropped, because too many segments are held */
    SGI_TRACKED_NOMEM /* the segment was dropped, because memory ran out */
} sgi_tracked;

/* Initializes a tracker. next: number of the first expected segment. */
void sgi_tracker_init(sgi_tracker *tracker, const sgi_mem *mem, const uint64_t seed[2],
                      uint64_t next, size_t max_bytes);
void sgi_tracker_free(sgi_tracker *tracker);

/* Notes a segment that has arrived, and holds the segment if an earlier one is missing.
 * number: at least 1. */
sgi_tracked sgi_tracker_add(sgi_tracker *tracker, uint64_t number, sgi_str bytes);
/* Removes and returns the held segment that is next in order; NULL when the next segment
 * has not arrived. The caller releases the segment with sgi_tracker_release. */
sgi_held_segment *sgi_tracker_pop(sgi_tracker *tracker);
void sgi_tracker_release(sgi_tracker *tracker, sgi_held_segment *held);

/* True when the segment with this number has arrived: it was passed on, or is held. */
bool sgi_tracker_has(const sgi_tracker *tracker, uint64_t number);

/* True when a segment is missing although a later one is known to exist. */
static inline bool sgi_tracker_has_hole(const sgi_tracker *tracker)
{
    return tracker->highest >= tracker->next;
}

static inline bool sgi_tracker_is_whole(const sgi_tracker *tracker)
{
    return tracker->complete && !sgi_tracker_has_hole(tracker);
}

/* Returns the number up to which all segments have arrived; 0 when segment 1 is missing.
 * The client cannot ask for the segments after 0 (R-1905-32). */
static inline uint64_t sgi_tracker_prefix(const sgi_tracker *tracker)
{
    return tracker->next - 1;
}

#endif
