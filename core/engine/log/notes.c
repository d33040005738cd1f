/* Counts the notes of a log in groups. Only the newest group grows. When all groups are
 * in use, the two oldest groups are merged. */
#include "engine/log/notes.h"

#include <string.h>

static void shift(sgi_droppable_entries *notes)
{
    notes->count--;
    memmove(&notes->groups[0], &notes->groups[1],
            (size_t)notes->count * sizeof notes->groups[0]);
}

static void open_group(sgi_droppable_entries *notes)
{
    if (notes->count == SGI_DROPPABLE_GROUPS) {
        notes->groups[1].bytes += notes->groups[0].bytes;
        shift(notes);
    }
    notes->groups[notes->count].upto = 0;
    notes->groups[notes->count++].bytes = 0;
}

void sgi_droppable_entries_add(sgi_droppable_entries *notes, uint64_t seq, size_t bytes,
                               size_t group_bytes)
{
    if (!notes->count || notes->groups[notes->count - 1].bytes >= group_bytes)
        open_group(notes);
    notes->groups[notes->count - 1].upto = seq;
    notes->groups[notes->count - 1].bytes += bytes;
    notes->all_bytes += bytes;
}

bool sgi_droppable_entries_drop_oldest(sgi_droppable_entries *notes, size_t *bytes)
{
    if (!notes->count)
        return false;
    notes->dropped = notes->groups[0].upto;
    *bytes -= notes->groups[0].bytes < *bytes ? notes->groups[0].bytes : *bytes;
    notes->all_bytes -= notes->groups[0].bytes;
    shift(notes);
    return true;
}

bool sgi_droppable_entries_drop_upto(sgi_droppable_entries *notes, uint64_t seq,
                                     size_t *bytes)
{
    bool any = false;
    while (notes->count > 1 && notes->groups[0].upto <= seq)
        any |= sgi_droppable_entries_drop_oldest(notes, bytes);
    return any;
}
