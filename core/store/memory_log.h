/* The log of one operation in memory: entries packed into a chain of chunks, header and
 * payload, in order; no block per entry. */
#ifndef SGI_MEMORY_LOG_H
#define SGI_MEMORY_LOG_H

#include "base/base.h"

typedef struct sgi_memory_chunk sgi_memory_chunk;

typedef struct sgi_memory_log {
    sgi_memory_chunk *first;
    sgi_memory_chunk *last;
    sgi_memory_chunk *recent; /* where the last read ended: the next one goes on there */
    uint64_t last_seq;
    size_t bytes; /* what it occupies */
} sgi_memory_log;

/* A state of a log that it can be cut back to. */
typedef struct sgi_memory_mark {
    sgi_memory_chunk *last;
    size_t used;
    uint64_t last_seq;
    size_t bytes;
} sgi_memory_mark;

/* Copies an entry behind the last one; the caller made sure that its number is next. */
segue_status sgi_memory_log_append(sgi_memory_log *log, const sgi_mem *mem,
                                   const segue_store_entry *entry);
sgi_memory_mark sgi_memory_log_mark(const sgi_memory_log *log);
/* Undoes every append since the mark. */
void sgi_memory_log_cut(sgi_memory_log *log, const sgi_mem *mem,
                        const sgi_memory_mark *mark);
/* Shows the entries behind `after`, in order, until fn says stop. */
void sgi_memory_log_read(sgi_memory_log *log, uint64_t after, segue_store_entry_fn fn,
                         void *user);
/* Lets go of entries of a kind up to upto; needs no memory. No mark is good after it. */
void sgi_memory_log_drop(sgi_memory_log *log, const sgi_mem *mem, int32_t kind,
                         uint64_t upto);
void sgi_memory_log_free(sgi_memory_log *log, const sgi_mem *mem);

#endif
