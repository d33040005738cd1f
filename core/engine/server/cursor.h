/* A cursor over a log, for code that sends a result while it grows. The cursor stops
 * at each segment. The other entries between segments are collected and sent with the
 * end. */
#ifndef SGI_CURSOR_H
#define SGI_CURSOR_H

#include "engine/log/reader.h"

typedef struct sgi_cursor {
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
    void (*other)(struct sgi_cursor *cursor, const sgi_entry *entry);
} sgi_cursor;

/* Starts a cursor at the first entry. ready: called when there may be more to read. */
void sgi_cursor_init(sgi_cursor *cursor, sgi_op *op, void (*ready)(sgi_reader *));
void sgi_cursor_end(sgi_cursor *cursor);

/* Returns the next segment and reads the entries before it. fresh: the message that is
 * being written has no segment yet. NULL: there is no segment yet, or the message must
 * end here, because the next entry makes its segments void. */
const sgi_entry *sgi_cursor_next(sgi_cursor *cursor, bool fresh);
/* Moves past the segment that sgi_cursor_next returned. */
void sgi_cursor_advance(sgi_cursor *cursor);
bool sgi_cursor_at_end(const sgi_cursor *cursor);
/* Reads the block of the segment that sgi_cursor_next returned, and its index in the list
 * (place). Returns false when the entry names no index, so that the number of the segment
 * decides. */
bool sgi_cursor_read_placed_block(const sgi_cursor *cursor, const sgi_entry *entry,
                                  sgi_str *block, uint64_t *place);

#endif
