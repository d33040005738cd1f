/* An entry: one record of an operation's log. */
#ifndef SGI_ENTRY_H
#define SGI_ENTRY_H

#include "base/base.h"

/* One entry of an operation's log. An entry never changes. */
typedef struct sgi_entry {
    TAILQ_ENTRY(sgi_entry) link;
    /* position in the log; the entries of a log are numbered 1, 2, 3, ... */
    uint64_t seq;
    uint64_t segment; /* number of the segment; 0 = the entry is not a segment */
    uint64_t event;   /* 1 + the number of the event; 0 = the entry is not an event */
    int64_t at_ms;
    int32_t kind;
    uint32_t len;
    char data[];
} sgi_entry;

TAILQ_HEAD(sgi_entry_list, sgi_entry);

sgi_entry *sgi_entry_new(const sgi_mem *mem, int32_t kind, const char *data, size_t len);
void sgi_entry_free(const sgi_mem *mem, sgi_entry *entry);
/* Reads the content block of a segment, and sets *place to the index in the list of
 * blocks that the segment names. *place is SGI_NO_PLACE when the index cannot be read.
 * Returns false when the segment names no index; its block is then appended to the
 * list. */
#define SGI_NO_PLACE UINT64_MAX
bool sgi_entry_read_indexed_block(const sgi_entry *entry, sgi_str *block,
                                  uint64_t *place);
void sgi_entry_list_free(const sgi_mem *mem, struct sgi_entry_list *list);

#endif
