/* A cursor over a log for those who show a result as it grows: it stops at segments, and
 * keeps what stands between them, which comes with the end. */
#ifndef SGI_CURSOR_H
#define SGI_CURSOR_H

#include "engine/log/reader.h"

typedef struct sgi_cursor {
    sgi_reader reader;
    sgi_fold fields; /* members beside the content, as far as was read */
    uint64_t
        voided; /* segments up to here were replaced, which is to be said; 0 = none */
    bool just_voided;  /* no segment behind these was met */
    uint64_t replaced; /* segments that were replaced so far */
    uint64_t from;     /* entries that stand up to here were sent before */
    bool counts;       /* segments go by their number instead: */
    uint64_t has;      /* segments up to this number are not shown */
    bool mute;         /* no segment is shown */
    bool structured;   /* fields have a structuredContent that is not told yet */
    /* What else stands in the log is a message of its own; NULL = it is passed over. */
    void (*other)(struct sgi_cursor *cursor, const sgi_entry *entry);
} sgi_cursor;

/* From the first entry on; ready: there may be more. */
void sgi_cursor_init(sgi_cursor *cursor, sgi_op *op, void (*ready)(sgi_reader *));
void sgi_cursor_end(sgi_cursor *cursor);

/* The next entry that is a segment; what stands before it is taken. fresh: the message
 * under construction has no segment yet. NULL: none is there, or the message must end
 * before what comes, as it voids what the message has. */
const sgi_entry *sgi_cursor_next(sgi_cursor *cursor, bool fresh);
/* Consumes what sgi_cursor_next returned. */
void sgi_cursor_advance(sgi_cursor *cursor);
bool sgi_cursor_at_end(const sgi_cursor *cursor);
/* Of the segment that sgi_cursor_next returned: its block, and the place of that in the
 * list. False: its number says as much. */
bool sgi_cursor_placed(const sgi_cursor *cursor, const sgi_entry *entry, sgi_str *block,
                       uint64_t *place);

#endif
