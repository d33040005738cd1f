/* A cursor over a log, for code that sends a result while it grows. The cursor stops
 * at each segment. The other entries between segments are collected and sent with the
 * end. */
#ifndef SGI_SEGMENT_READER_H
#define SGI_SEGMENT_READER_H

#include "engine/log/reader.h"

typedef struct sgi_segment_reader {
    sgi_reader reader;
    /* the members of the result beside the list, as far as the log was read */
    sgi_fold fields;
    /* number of the last void segment that has still to be reported to the client; 0 =
     * none */
    uint64_t voided;
    bool just_voided;  /* no segment after the void ones was read yet */
    uint64_t replaced; /* number of the last segment that was replaced so far */
    uint64_t from;     /* entries up to this position were sent before */
    bool counts;       /* `has` is used, and `from` is not */
    uint64_t has;      /* segments up to this number are not returned again */
    bool mute;         /* no segment is returned */
    bool structured;   /* fields have a structuredContent that was not sent yet */
    /* Called for each entry that is a message to the client of its own. NULL = the cursor
     * skips such entries. */
    void (*other)(struct sgi_segment_reader *cursor, const sgi_entry *entry);
} sgi_segment_reader;

/* Starts a cursor at the first entry. ready: called when there may be more to read. */
void sgi_segment_reader_init(sgi_segment_reader *cursor, sgi_op *op,
                             void (*ready)(sgi_reader *));
void sgi_segment_reader_end(sgi_segment_reader *cursor);

/* Returns the next segment and reads the entries before it. fresh: the message that is
 * being written has no segment yet. NULL: there is no segment yet, or the message must
 * end here, because the next entry makes its segments void. */
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
