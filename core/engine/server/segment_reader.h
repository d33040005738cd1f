/* Reads a log segment by segment, for code that sends a result while it grows. The reader
 * stops at each segment. Entries between segments are collected and sent at the end. */
#ifndef SGI_SEGMENT_READER_H
#define SGI_SEGMENT_READER_H

#include "engine/log/reader.h"

typedef struct sgi_segment_reader {
    sgi_reader reader;
    /* members of the result other than the list, up to the point that was read */
    sgi_fold fields;
    /* number of the last void segment, if the client was not told about it yet; 0 =
     * nothing to report */
    uint64_t voided;
    bool just_voided; /* no segment after the void ones was read yet */
    /* number of the last segment that a replacement has made void so far */
    uint64_t replaced;
    /* entries up to this position were sent earlier, so they are not returned */
    uint64_t from;
    /* `has`, a number of segments, decides what is returned, and not `from` */
    bool counts;
    uint64_t has; /* the segments up to this number are not returned */
    /* no segment is returned; only the effects of segments are noted */
    bool mute;
    bool structured; /* `fields` has a structuredContent that was not sent */
    /* Called for each entry that is sent to the client as a message of its own. NULL =
     * such entries are skipped. */
    void (*other)(struct sgi_segment_reader *cursor, const sgi_entry *entry);
} sgi_segment_reader;

/* Starts to read at the first entry. ready: called when there may be more to read. */
void sgi_segment_reader_init(sgi_segment_reader *cursor, sgi_op *op,
                             void (*ready)(sgi_reader *));
void sgi_segment_reader_end(sgi_segment_reader *cursor);

/* Reads the entries before the next segment and returns that segment. fresh: the message
 * being written has no segment yet. NULL = there is no next segment yet, or the next
 * entry replaces the segments of this message, so the message must end here. */
const sgi_entry *sgi_segment_reader_next(sgi_segment_reader *cursor, bool fresh);
/* Moves past the segment that sgi_segment_reader_next returned. */
void sgi_segment_reader_advance(sgi_segment_reader *cursor);
bool sgi_segment_reader_at_end(const sgi_segment_reader *cursor);
/* Reads the block of the segment that sgi_segment_reader_next returned, and the index of
 * the block in the list (place). Returns false when the segment names no index; the index
 * then follows from the segment's number. */
bool sgi_segment_reader_read_placed_block(const sgi_segment_reader *cursor,
                                          const sgi_entry *entry, sgi_str *block,
                                          uint64_t *place);

#endif
