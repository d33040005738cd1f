/* Readers of a log. Each reader has its own position, follows the tail in memory, and
 * reads older entries from the store. For a slow reader the operation holds no more than
 * a limited tail in memory. */
#ifndef SGI_READER_H
#define SGI_READER_H

#include "engine/log/op.h"

struct sgi_reader {
    TAILQ_ENTRY(sgi_reader) link;
    /* a counted reference; NULL = the reader is not attached to an operation */
    sgi_op *op;
    uint64_t seq; /* position of the last consumed entry */
    /* number of the last segment that was consumed or replaced */
    uint64_t segment;
    /* number of bytes consumed, counted like op->head.appended_bytes */
    uint64_t bytes;
    /* the last consumed entry, while the entry is in the tail */
    sgi_entry *at;
    struct sgi_entry_list chunk; /* older entries, read back from the store */
    sgi_job *job;
    bool failed; /* the store could not return entries */
    /* the consumed entries, including the end, are sent to a peer */
    bool tells;
    /* The reader reads only while a transport carries this conversation; NULL =
     * always. */
    const sgi_conn *conn;
    /* called when there may be more entries; the caller then uses sgi_reader_next */
    void (*ready)(sgi_reader *reader);
};

void sgi_reader_init(sgi_reader *reader, sgi_op *op, uint64_t after_seq,
                     void (*ready)(sgi_reader *));
void sgi_reader_end(sgi_reader *reader);

/* Returns the next visible entry. NULL: there is none yet, or the entry is being read
 * from the store and `ready` follows, or `failed` is set. */
const sgi_entry *sgi_reader_next(sgi_reader *reader);
/* Moves past the entry that sgi_reader_next returned. */
void sgi_reader_advance(sgi_reader *reader);
/* Return the number of segments and of bytes that were appended and not consumed. The
 * bytes include entries that have left the log unread, until the reader has consumed the
 * newest entry. */
uint64_t sgi_reader_segments_left(const sgi_reader *reader);
uint64_t sgi_reader_bytes_left(const sgi_reader *reader);
/* True when all entries were consumed and no entry will follow. */
bool sgi_reader_at_end(const sgi_reader *reader);
/* True while no transport carries the reader's conversation. Then the reader reads
 * nothing, and will read these entries from the store later. */
bool sgi_reader_is_paused(const sgi_reader *reader);
/* Pauses the reader, so that it frees the entries that it holds. */
void sgi_reader_pause(sgi_reader *reader);
/* Called when the operation removes this entry from its tail. */
void sgi_reader_drop_entry(sgi_reader *reader, const sgi_entry *entry);

/* Reads a whole log and folds it. done runs once, perhaps before sgi_op_fold returns. Its
 * argument is the fold, or NULL when out of memory or when the store failed. */
typedef void (*sgi_folded_fn)(void *user, sgi_op *op, const sgi_fold *fold);
void sgi_op_fold(sgi_op *op, sgi_folded_fn done, void *user);

#endif
