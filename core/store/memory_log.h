/* The log of one operation in memory. The entries, each with a head and a payload, are
 * packed in order into a chain of chunks, so an entry needs no block of its own. */
#ifndef SGI_MEMORY_LOG_H
#define SGI_MEMORY_LOG_H

#include "base/base.h"

typedef struct sgi_memory_chunk sgi_memory_chunk;

typedef struct sgi_memory_log {
    sgi_memory_chunk *first;
    sgi_memory_chunk *last;
    /* the chunk in which the last read ended; the next read starts there */
    sgi_memory_chunk *recent;
    uint64_t last_seq;
    size_t bytes; /* number of bytes of memory that the log occupies */
} sgi_memory_log;

/* A saved state of a log, to which sgi_memory_log_roll_back returns. */
typedef struct sgi_memory_mark {
    sgi_memory_chunk *last;
    size_t used;
    uint64_t last_seq;
    size_t bytes;
} sgi_memory_mark;

/* Appends a copy of an entry. The caller must have checked that the entry's number is the
 * next number of the log. Returns SEGUE_E_NOMEM when out of memory. */
segue_status sgi_memory_log_append(sgi_memory_log *log, const sgi_mem *mem,
                                   const segue_store_entry *entry);
sgi_memory_mark sgi_memory_log_get_mark(const sgi_memory_log *log);
/* Removes every entry that was appended after the mark. */
void sgi_memory_log_roll_back(sgi_memory_log *log, const sgi_mem *mem,
                              const sgi_memory_mark *mark);
/* Calls fn for each entry with a number above `after`, in order, until fn returns a
 * nonzero value. */
void sgi_memory_log_read(sgi_memory_log *log, uint64_t after, segue_store_entry_fn fn,
                         void *user);
/* Removes the entries of one kind up to number `upto`. Needs no memory. Marks that were
 * made before the call are invalid afterwards. */
void sgi_memory_log_drop_kind(sgi_memory_log *log, const sgi_mem *mem, int32_t kind,
                              uint64_t upto);
void sgi_memory_log_free(sgi_memory_log *log, const sgi_mem *mem);

#endif
