/* Counts the bytes of notes (progress and log messages) in a log. Notes may be dropped,
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
        uint64_t upto; /* position of the last entry of the share */
        size_t bytes;
    } shares[SGI_NOTES_SHARES];
    int32_t count;    /* number of shares in use; the oldest share is the first */
    uint64_t dropped; /* position up to which entries are not sent any more */
    size_t all_bytes; /* bytes of all entries that were counted and not dropped */
} sgi_notes;

/* Counts an entry that was appended. A new share begins when the newest share has about
 * share_bytes bytes. */
void sgi_notes_add(sgi_notes *notes, uint64_t seq, size_t bytes, size_t share_bytes);
/* Drops the oldest share and subtracts its bytes from *bytes. Returns false when there is
 * no share. */
bool sgi_notes_drop(sgi_notes *notes, size_t *bytes);
/* Drops the shares that end at or before seq, except the newest one. Returns false when
 * nothing was dropped. */
bool sgi_notes_drop_upto(sgi_notes *notes, uint64_t seq, size_t *bytes);

#endif
