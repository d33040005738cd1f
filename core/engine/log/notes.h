/* Counts the bytes of notes (progress and log messages) in a log. Notes can be dropped,
 * the oldest first, when the log is full or when the client has received them (R-975-19).
 * Notes are counted in groups: a group is a part of the log that is dropped as a whole.
 * Readers of the log skip dropped entries. Segments that a client has confirmed are
 * counted in the same way. */
#ifndef SGI_NOTES_H
#define SGI_NOTES_H

#include "base/base.h"

#define SGI_DROPPABLE_GROUPS 8

typedef struct sgi_droppable_entries {
    struct {
        uint64_t upto; /* position of the group's last entry in the log */
        size_t bytes;
    } groups[SGI_DROPPABLE_GROUPS];
    int32_t count;    /* number of groups in use; the oldest group has index 0 */
    uint64_t dropped; /* position in the log up to which notes are dropped */
    /* number of bytes of all entries that were counted and are not dropped */
    size_t all_bytes;
} sgi_droppable_entries;

/* Counts an entry that was appended to the log. A new group begins when the newest group
 * has at least group_bytes bytes. */
void sgi_droppable_entries_add(sgi_droppable_entries *notes, uint64_t seq, size_t bytes,
                               size_t group_bytes);
/* Drops the oldest group and subtracts its bytes from *bytes. Returns false when no group
 * is left. */
bool sgi_droppable_entries_drop_oldest(sgi_droppable_entries *notes, size_t *bytes);
/* Drops the groups that end at or before position seq, except the newest group. Returns
 * false when no group was dropped. */
bool sgi_droppable_entries_drop_upto(sgi_droppable_entries *notes, uint64_t seq,
                                     size_t *bytes);

#endif
