/* How much of a log is progress and log messages, which may be dropped, the oldest first,
 * when the log is full or when their client has them (R-975-19). Entries never change and
 * are not looked for: they are counted in shares of the log, a share is dropped as one,
 * and who reads the log passes over what was dropped. Segments that a client confirms are
 * counted in the same way. */
#ifndef SGI_NOTES_H
#define SGI_NOTES_H

#include "base/base.h"

#define SGI_NOTES_SHARES 8

typedef struct sgi_notes {
    struct {
        uint64_t upto; /* position of its last entry */
        size_t bytes;
    } shares[SGI_NOTES_SHARES];
    int32_t count;    /* shares in use, oldest first */
    uint64_t dropped; /* those up to here are not told any more */
    size_t all_bytes; /* of those that were appended and are not dropped */
} sgi_notes;

/* An entry was appended; a share takes about so much of them. */
void sgi_notes_add(sgi_notes *notes, uint64_t seq, size_t bytes, size_t share_bytes);
/* Drops the oldest share, which counts no more in *bytes; false when there is none. */
bool sgi_notes_drop(sgi_notes *notes, size_t *bytes);
/* Drops what stands up to seq, as far as whole shares go; the newest one stays. False
 * when nothing was dropped. */
bool sgi_notes_drop_upto(sgi_notes *notes, uint64_t seq, size_t *bytes);

#endif
