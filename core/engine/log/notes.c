/* Counts the notes of a log in shares. Only the newest share grows. When all shares are
 * in use, the two oldest shares are merged. */
#include "engine/log/notes.h"

#include <string.h>

static void shift(sgi_notes *notes)
{
    notes->count--;
    memmove(&notes->shares[0], &notes->shares[1],
            (size_t)notes->count * sizeof notes->shares[0]);
}

static void open_share(sgi_notes *notes)
{
    if (notes->count == SGI_NOTES_SHARES) {
        notes->shares[1].bytes += notes->shares[0].bytes;
        shift(notes);
    }
    notes->shares[notes->count].upto = 0;
    notes->shares[notes->count++].bytes = 0;
}

void sgi_notes_add(sgi_notes *notes, uint64_t seq, size_t bytes, size_t share_bytes)
{
    if (!notes->count || notes->shares[notes->count - 1].bytes >= share_bytes)
        open_share(notes);
    notes->shares[notes->count - 1].upto = seq;
    notes->shares[notes->count - 1].bytes += bytes;
    notes->all_bytes += bytes;
}

bool sgi_notes_drop(sgi_notes *notes, size_t *bytes)
{
    if (!notes->count)
        return false;
    notes->dropped = notes->shares[0].upto;
    *bytes -= notes->shares[0].bytes < *bytes ? notes->shares[0].bytes : *bytes;
    notes->all_bytes -= notes->shares[0].bytes;
    shift(notes);
    return true;
}

bool sgi_notes_drop_upto(sgi_notes *notes, uint64_t seq, size_t *bytes)
{
    bool any = false;
    while (notes->count > 1 && notes->shares[0].upto <= seq)
        any |= sgi_notes_drop(notes, bytes);
    return any;
}
