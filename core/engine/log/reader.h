/* Readers of a log: each has its own cursor, follows the tail in memory and goes back to
 * the store for what is older. A slow reader costs the operation nothing but a bounded
 * tail. */
#ifndef SGI_READER_H
#define SGI_READER_H

#include "engine/log/op.h"

struct sgi_reader {
    TAILQ_ENTRY(sgi_reader) link;
    sgi_op *op;                  /* counted; NULL = not attached */
    uint64_t seq;                /* last entry consumed */
    uint64_t segment;            /* number of the last segment consumed or replaced */
    uint64_t bytes;              /* consumed, as op->appended_bytes counts them */
    sgi_entry *at;               /* the last entry consumed, while it is in the tail */
    struct sgi_entry_list chunk; /* older entries, read back from the store */
    sgi_job *job;
    bool failed;          /* the store could not answer */
    bool tells;           /* what it reads is sent to a peer, the end as well */
    const sgi_conn *conn; /* it reads only while somebody carries this; NULL = always */
    void (*ready)(sgi_reader *reader); /* there may be more: sgi_reader_next */
};

void sgi_reader_init(sgi_reader *reader, sgi_op *op, uint64_t after_seq,
                     void (*ready)(sgi_reader *));
void sgi_reader_end(sgi_reader *reader);

/* The next visible entry, or NULL: none yet, or it is being fetched and `ready` follows,
 * or `failed` is set. */
const sgi_entry *sgi_reader_next(sgi_reader *reader);
/* Consumes what sgi_reader_next returned. */
void sgi_reader_advance(sgi_reader *reader);
/* What was appended and is not consumed. The bytes also count entries that have left the
 * log unread, until the reader has consumed the newest entry. */
uint64_t sgi_reader_segments_left(const sgi_reader *reader);
uint64_t sgi_reader_bytes_left(const sgi_reader *reader);
/* Everything was consumed and nothing more will come. */
bool sgi_reader_at_end(const sgi_reader *reader);
/* Nobody carries its conversation: it asks for nothing, and may be read from the store
 * later. */
bool sgi_reader_rests(const sgi_reader *reader);
/* ... from now on: what it held is given up. */
void sgi_reader_rest(sgi_reader *reader);
/* The op lets an entry of its tail go. */
void sgi_reader_forget(sgi_reader *reader, const sgi_entry *entry);

/* Reads a whole log and folds it. done runs once, perhaps before the call returns: with
 * the fold, or NULL when out of memory or the store failed. */
typedef void (*sgi_folded_fn)(void *user, sgi_op *op, const sgi_fold *fold);
void sgi_op_fold(sgi_op *op, sgi_folded_fn done, void *user);

#endif
