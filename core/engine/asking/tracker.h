/* Which segments of a task have come (SEP-1905, R-1905-57): whatever the way, each number
 * counts once, and they are handed on in order. What stands above a hole is held, within
 * bounds; what finds no room is dropped and asked for again, like what was lost.
 *
 * A number means the same bytes for ever. Of those handed on a hash is kept, of the last
 * SGI_TRACKER_WINDOW of them at least, so that a repeat with other bytes is noticed
 * (R-1905-58). */
#ifndef SGI_TRACKER_H
#define SGI_TRACKER_H

#include "base/buf.h"

#define SGI_TRACKER_WINDOW 4096
#define SGI_TRACKER_HELD_MAX 4096

typedef struct sgi_held {
    uint64_t number;
    uint64_t hash;
    size_t len;
    char bytes[];
} sgi_held;

typedef struct sgi_tracker {
    const sgi_mem *mem;
    uint64_t seed[2];
    uint64_t next;    /* all below it were handed on */
    uint64_t highest; /* of those that are known to exist */
    bool complete;    /* there are no more above the highest */
    size_t max_bytes; /* of what is held */
    size_t held_bytes;
    sgi_buf held;   /* sgi_held *, by number */
    sgi_buf hashes; /* uint64_t each, of the numbers from first_hash up to next */
    uint64_t first_hash;
} sgi_tracker;

typedef enum sgi_tracked {
    SGI_TRACKED_NEXT = 0, /* hand it on, then whatever sgi_tracker_pop gives */
    SGI_TRACKED_HELD,
    SGI_TRACKED_REPEAT,
    SGI_TRACKED_OTHER, /* a repeat with other bytes: the first counts */
    SGI_TRACKED_FULL,  /* dropped: too much is held */
    SGI_TRACKED_NOMEM  /* dropped */
} sgi_tracked;

/* next: the first number that is wanted. */
void sgi_tracker_init(sgi_tracker *tracker, const sgi_mem *mem, const uint64_t seed[2],
                      uint64_t next, size_t max_bytes);
void sgi_tracker_free(sgi_tracker *tracker);

/* number is 1 or more. */
sgi_tracked sgi_tracker_take(sgi_tracker *tracker, uint64_t number, sgi_str bytes);
/* The held segment that has become the next one, or NULL; give it back with
 * sgi_tracker_release. */
sgi_held *sgi_tracker_pop(sgi_tracker *tracker);
void sgi_tracker_release(sgi_tracker *tracker, sgi_held *held);

/* It was handed on, or is held. */
bool sgi_tracker_has(const sgi_tracker *tracker, uint64_t number);

/* Some number below the highest is missing. */
static inline bool sgi_tracker_has_hole(const sgi_tracker *tracker)
{
    return tracker->highest >= tracker->next;
}

static inline bool sgi_tracker_is_whole(const sgi_tracker *tracker)
{
    return tracker->complete && !sgi_tracker_has_hole(tracker);
}

/* The highest number below which nothing is missing; 0 = there is none, and a server
 * cannot be asked for what comes after it (R-1905-32). */
static inline uint64_t sgi_tracker_prefix(const sgi_tracker *tracker)
{
    return tracker->next - 1;
}

#endif
