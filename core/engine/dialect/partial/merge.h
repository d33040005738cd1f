/* Merges several responses to one request into one result (PR 776; R-776-7 to R-776-12).
 * The lists of blocks are concatenated, except that a piece with an index can continue
 * the text of an earlier block. Of each other member, the last value counts. The merge
 * does not know about requests. */
#ifndef SGI_MERGE_H
#define SGI_MERGE_H

#include "engine/log/fold.h"

/* The largest number of blocks in one result. A result with more blocks is refused by an
 * error that names this limit. */
#define SGI_MERGE_BLOCKS_MAX 1000000

/* A text block that came in several pieces, which are appended to each other. */
typedef struct sgi_partial_merge_text {
    sgi_fields others; /* the members of the block except the text */
    sgi_buf inside;    /* the escaped text without its quotes */
} sgi_partial_merge_text;

typedef struct sgi_partial_merge_block {
    sgi_buf json; /* the block as JSON; empty when `text` is set */
    sgi_partial_merge_text
        /* the text of the block and its pieces; NULL = the block came in one piece */
        *text;
} sgi_partial_merge_block;

typedef struct sgi_partial_merge {
    const sgi_env *env;
    const char *list; /* name of the member that is the list of blocks */
    sgi_partial_merge_block *blocks;
    size_t count, room; /* number of stored blocks, and capacity of the array */
    size_t max_blocks;  /* the limit SGI_MERGE_BLOCKS_MAX; tests make it small */
    sgi_fold fields;    /* the merge of the members beside the list */
    /* number of blocks at the beginning of the list that are not stored */
    int64_t base;
    /* blocks are passed to `each` and not stored; `base` is their number */
    bool forgets;
    /* the first blocks are missing, so no piece can continue them */
    bool lacks;
    bool full;    /* max_blocks is reached */
    int64_t next; /* number of the next segment; 0 = the server gives no numbers */
    size_t bytes; /* number of bytes of all stored blocks */
    /* why the last response was refused, for the error message */
    const char *wrong;
    uint64_t replacements; /* how often the earlier blocks were replaced */
    uint32_t warnings;
} sgi_partial_merge;

typedef enum sgi_merged {
    SGI_MERGED = 0,
    SGI_MERGE_WRONG,
    SGI_MERGE_LIMIT, /* the result has too many blocks or fields */
    SGI_MERGE_NOMEM
} sgi_merged;

/* Receives a block as it came, without the members about indexes. index: index of the
 * block in the list. */
typedef void (*sgi_partial_merge_block_fn)(void *user, uint64_t index, sgi_json block);

void sgi_partial_merge_init(sgi_partial_merge *merge, const sgi_env *env,
                            const char *list);
void sgi_partial_merge_free(sgi_partial_merge *merge);

/* Merges a response. `each` is called for each block in order, unless NULL. After an
 * error, the blocks of earlier responses are still there, and perhaps some of this
 * response. Segments that were merged before are recognized by their numbers and skipped
 * (C-9). */
sgi_merged sgi_partial_merge_add(sgi_partial_merge *merge, sgi_json result,
                                 sgi_partial_merge_block_fn each, void *user);
/* Writes the members of the result into an open object. When out of memory, w->buf
 * fails. */
void sgi_partial_merge_write(const sgi_partial_merge *merge, sgi_jw *w);

#endif
