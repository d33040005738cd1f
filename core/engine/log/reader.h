/* Readers of a log. Each reader has its own position. A reader follows the tail in memory
 * and reads older entries from the store. However slow a reader is, the operation keeps
 * only a tail of limited size in memory. */
#ifndef SGI_READER_H
#define SGI_READER_H

#include "engine/log/op.h"

struct sgi_reader {
    TAILQ_ENTRY(sgi_reader) link;
    /* the operation, a counted reference; NULL = the reader has no operation */
    sgi_op *op;
    /* position in the log of the last consumed entry; 0 = no entry was consumed */
    uint64_t seq;
    /* number of the last segment that was consumed or made void */
    uint64_t segment;
    /* number of bytes of the consumed entries, counted like op->head.appended_bytes */
    uint64_t bytes;
    /* the last consumed entry while it is in the tail; NULL = unknown */
    sgi_entry *at;
    /* older entries that were read from the store and are not consumed yet */
    struct sgi_entry_list chunk;
    sgi_store_job *job;
    /* why no more entries can be read; SEGUE_OK = reading has not failed */
    segue_status failure;
    /* the entries are sent to a peer; when the reader has consumed the end, a peer has
     * received the end */
    bool tells;
    /* The reader reads only while a transport carries this conversation. NULL = the
     * reader always reads. */
    const sgi_conn *conn;
    /* called when more entries may be readable; the owner then calls sgi_reader_next */
    void (*ready)(sgi_reader *reader);
};

void sgi_reader_init(sgi_reader *reader, sgi_op *op, uint64_t after_seq,
                     void (*ready)(sgi_reader *));
void sgi_reader_end(sgi_reader *reader);

/* Returns the next visible entry. NULL means one of three things: there is no further
 * entry yet; the entry is being read from the store, and `ready` will be called; or
 * reading has failed and `failure` says why. */
const sgi_entry *sgi_reader_next(sgi_reader *reader);
/* Marks the entry that sgi_reader_next returned as consumed. */
void sgi_reader_advance(sgi_reader *reader);
/* Return the number of segments, or of bytes, that were appended and are not consumed
 * yet. The bytes include entries that left the log unread, until the reader has consumed
 * the newest entry. */
uint64_t sgi_reader_segments_left(const sgi_reader *reader);
uint64_t sgi_reader_bytes_left(const sgi_reader *reader);
/* True when all entries were consumed and the last of them is the final entry. */
bool sgi_reader_at_end(const sgi_reader *reader);
/* True while no transport carries the reader's conversation. The reader then reads
 * nothing. When a transport carries the conversation again, the reader reads the missed
 * entries from the store. */
bool sgi_reader_is_paused(const sgi_reader *reader);
/* Makes a paused reader free the entries that it holds. */
void sgi_reader_pause(sgi_reader *reader);
/* Called when the operation removes this entry from its tail. If the reader points to the
 * entry, the reader clears the pointer. */
void sgi_reader_on_entry_removed(sgi_reader *reader, const sgi_entry *entry);

/* Reads a whole log and folds it. `done` runs once, perhaps before sgi_op_fold returns.
 * fold: the merged result; NULL = the log cannot be read. status then says why.
 * SEGUE_E_NOT_FOUND: the store has lost the operation. SEGUE_E_STATE: the store has lost
 * a part of the result. SEGUE_E_STORE: the store fails. SEGUE_E_NOMEM: out of memory. */
typedef void (*sgi_folded_fn)(void *user, sgi_op *op, const sgi_fold *fold,
                              segue_status status);
void sgi_op_fold(sgi_op *op, sgi_folded_fn done, void *user);

#endif
