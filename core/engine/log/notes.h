/* Counts the bytes of notes (progress and log messages) in a log. Notes can be dropped,
 * the oldest first, when the log is full or when the client has received them (R-975-19).
 * Notes are counted in shares: a share is a part of the log that is dropped as a whole.
 * Readers of the log skip dropped entries. Segments that a client has confirmed are
 * counted in the same way. */
#ifndef SGI_NOTES_H
#define SGI_NOTES_H

#include "base/base.h"

#define SGI_NOTES_SHARES 8

typedef struct sgi_notes {
    struct {
        uint64_t upto; /* position of the share's last entry in the log */
        size_t bytes;
    } shares[SGI_NOTES_SHARES];
    int32_t count;    /* number of shares in use; the oldest share has index 0 */
    uint64_t dropped; /* position in the log up to which notes are dropped */
    /* number of bytes of all entries that were counted and are not dropped */
    size_t all_bytes;
} sgi_notes;

/* Counts an entry that was appended to the log. A new share begins when the newest share
 * has at least share_bytes bytes. */
void sgi_notes_add(sgi_notes *notes, uint64_t seq, size_t bytes, size_t share_bytes);
/* Drops the oldest share and subtracts its bytes from *bytes. Returns false when no share
 * is left. */
bool sgi_notes_drop(sgi_notes *notes, size_t *bytes);
/* Drops the shares that end at or before position seq, except the newest share. Returns
 * false when no share was dropped. */
bool sgi_notes_drop_upto(sgi_notes *notes, uint64_t seq, size_t *bytes);

#endif
