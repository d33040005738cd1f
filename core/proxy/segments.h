/* The segments of an upstream's result. While the upstream makes a result, the relay
 * passes each segment on to the client's call, and at the end only the rest of the
 * result. The log of the call stores the segments, so the relay stores at most one: the
 * segment for which the log has no room yet. */
#ifndef PROXY_SEGMENTS_H
#define PROXY_SEGMENTS_H

#include "proxy.h"

struct relay;

/* One segment of an upstream. */
typedef struct piece {
    uint64_t number;
    uint64_t index;
    bool replaces; /* the segments before this one are void */
    json block;
} piece;

/* The segments of a repeated call that the log has already. */
typedef struct repetition {
    bool checked; /* they are compared with those in the log */
    uint64_t digest;
    uint64_t blocks;
} repetition;

/* What the client's call has of the upstream's result. */
typedef struct passage {
    /* number of the last segment of the upstream that was passed on or held back */
    uint64_t number;
    uint64_t stored; /* number of segments in the log of the call */
    /* number of blocks that these segments make, without the blocks that are void */
    uint64_t blocks;
    /* the checkpoint says that the segments after it continue blocks */
    bool grows;
    /* all further segments are held back, because the result brings what they contain */
    bool late;
    /* the segments in the log are not the beginning of the result, so they have to be
     * replaced */
    bool stale;
    uint64_t digest; /* describes the blocks that were passed on */
    /* the digest that the next segment leads to; 0 = unknown, or no segment is next */
    uint64_t next_digest;
    bool unsure; /* the digest has no meaning */
    repetition again;
    /* the checkpoint is not up to date, because the log had no room */
    bool checkpoint_due;
    /* the token of the checkpoint names segments that are void now */
    bool renewal_due;
    /* the segment that waits for room in the log; its block is empty when none waits */
    piece waiting;
    text result; /* the result of the upstream, which waits for room in the log */
} passage;

void segments_free(passage *is);
/* Handles a segment of the upstream; a segue_segment_fn. */
void segments_take(void *user, segue_request *request, const segue_segment *segment);
/* Drops the segment that waits, because the result contains it, or the next request
 * brings it again. */
void segments_end(struct relay *r);
/* Ends the call with the rest of the result. Returns SEGUE_E_WOULD_BLOCK when the log has
 * no room; the relay then ends the call later. */
segue_status segments_finish(struct relay *r, json result, segue_error **error);
/* Called when the log of the call has room again; a segue_drain_fn. */
void segments_drain(void *user, segue_call *call);
/* The upstream runs the call again, perhaps with other segments. */
void segments_begin_anew(struct relay *r);
/* The upstream is asked for the same run by the key of the call, and sends its segments
 * again. If it has forgotten the key, it runs the call again. */
void segments_repeat(struct relay *r);
/* The relay goes on with another call, whose log is empty. The whole result comes at the
 * end. */
void segments_hold_back(passage *is);

/* Writes the position in the segments as members of the checkpoint, and reads it.
 * stored: the number of segments that the log of the call has. */
void segments_write_position(const passage *is, text *to);
void segments_read_position(passage *is, json checkpoint, uint64_t stored);

#endif
