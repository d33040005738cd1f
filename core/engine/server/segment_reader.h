/* Reads a log segment by segment, for code that sends a result while the result grows.
 * The reader stops at each segment. Fields between segments are merged and sent at the
 * end. */
#ifndef SGI_SEGMENT_READER_H
#define SGI_SEGMENT_READER_H

#include "engine/log/reader.h"

typedef struct sgi_segment_reader {
    sgi_reader reader;
    /* the fields of the result, merged up to the point that was read */
    sgi_fold fields;
    /* number of the last void segment, if the client must still be informed; 0 = no void
     * segment has to be reported */
    uint64_t voided;
    /* number of the last segment that was returned and passed; 0 = no such segment */
    uint64_t shown;
    bool just_voided; /* no segment after the last void segment was read yet */
    /* number of the last segment that a replacement in the read part of the log made
     * void */
    uint64_t replaced;
    /* segments up to this position of the log are not returned, because they were sent
     * earlier; used while `counts` is false */
    uint64_t from;
    /* true: `has` decides which segments are returned; false: `from` decides */
    bool counts;
    /* segments up to this number are not returned; used while `counts` is true */
    uint64_t has;
    /* no segment is returned; the reader only handles the other entries */
    bool mute;
    bool structured; /* `fields` contains a structuredContent that was not sent yet */
    /* Called for each entry that becomes a separate message to the client. NULL = such
     * entries are skipped. */
    void (*other)(struct sgi_segment_reader *cursor, const sgi_entry *entry);
} sgi_segment_reader;

/* Starts to read at the first entry of the log. ready: called when further entries may be
 * readable. */
void sgi_segment_reader_init(sgi_segment_reader *cursor, sgi_op *op,
                             void (*ready)(sgi_reader *));
void sgi_segment_reader_end(sgi_segment_reader *cursor);

/* Reads the entries before the next segment and returns that segment. fresh = true: the
 * message that is being written has no segment yet. Returns NULL when the log has no
 * further segment yet, or when the next entry replaces segments of the message, so that
 * the message must end. */
const sgi_entry *sgi_segment_reader_next(sgi_segment_reader *cursor, bool fresh);
/* Moves past the segment that sgi_segment_reader_next returned. */
void sgi_segment_reader_advance(sgi_segment_reader *cursor);
bool sgi_segment_reader_at_end(const sgi_segment_reader *cursor);
/* Reads the block of the segment that sgi_segment_reader_next returned, and sets *place
 * to the index of the block in the list. Returns false when the segment names no index;
 * *place then follows from the segment's number. */
bool sgi_segment_reader_read_indexed_block(const sgi_segment_reader *cursor,
                                           const sgi_entry *entry, sgi_str *block,
                                           uint64_t *place);

#endif
