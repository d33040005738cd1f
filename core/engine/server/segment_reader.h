/* Reads a log segment by segment, for code that sends a result while it grows. The reader
 * stops at each segment. The other entries between segments are collected and sent with
 * the end. */
#ifndef SGI_SEGMENT_READER_H
#define SGI_SEGMENT_READER_H

#include "engine/log/reader.h"

typedef struct sgi_segment_reader {
    sgi_reader reader;
    /* the members of the result beside the list, as far as the log was read */
    sgi_fold fields;
    /* number of the last void segment, if that was not reported to the client yet; 0 =
     * nothing to report */
    uint64_t voided;
    bool just_voided; /* no segment behind the void ones was read yet */
    /* number of the last segment that a replacement has made void so far */
    uint64_t replaced;
    /* entries up to this position were sent earlier and are not returned */
    uint64_t from;
    bool counts;  /* the limit is `has`, a number of segments, and not `from` */
    uint64_t has; /* segments up to this number are not returned again */
    /* segments are not returned at all, only their effects are noted */
    bool mute;
    bool structured; /* `fields` has a structuredContent that was not sent yet */
    /* Called for each entry that is a message of its own to the client. NULL = such
     * entries are skipped. */
    void (*other)(struct sgi_segment_reader *cursor, const sgi_entry *entry);
} sgi_segment_reader;

/* Starts to read at the first entry. ready: called when there may be more to read. */
void sgi_segment_reader_init(sgi_segment_reader *cursor, sgi_op *op,
                             void (*ready)(sgi_reader *));
void sgi_segment_reader_end(sgi_segment_reader *cursor);

/* Reads the entries in front of the next segment and returns that segment. fresh: the
 * message that is being written has no segment so far. NULL: there is no segment yet, or
 * the message must end here, because the next entry makes its segments void. */
const sgi_entry *sgi_segment_reader_next(sgi_segment_reader *cursor, bool fresh);
/* Moves past the segment that sgi_segment_reader_next returned. */
void sgi_segment_reader_advance(sgi_segment_reader *cursor);
bool sgi_segment_reader_at_end(const sgi_segment_reader *cursor);
/* Reads the block of the segment that sgi_segment_reader_next returned, and the block's
 * index in the list of blocks (place). Returns false when the index follows from the
 * number of the segment instead. */
bool sgi_segment_reader_read_placed_block(const sgi_segment_reader *cursor,
                                          const sgi_entry *entry, sgi_str *block,
                                          uint64_t *place);

#endif
