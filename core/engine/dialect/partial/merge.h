/* Merges several responses to one request into one result (PR 776; R-776-7 to R-776-12).
 * The lists of blocks are concatenated. A piece with an index can also continue the text
 * of an earlier block. Of any other member, the result has the last value. The merge does
 * not know about requests. */
#ifndef SGI_MERGE_H
#define SGI_MERGE_H

#include "engine/log/fold.h"

/* The largest number of blocks in one result. A result with more blocks is refused, and
 * the error names this limit. */
#define SGI_MERGE_BLOCKS_MAX 1000000

/* A text block that came in several pieces. The pieces are appended to each other. */
typedef struct sgi_partial_merge_text {
    sgi_fields others; /* the members of the block, without the text */
    sgi_buf inside;    /* the text with its JSON escapes, without the quotes */
} sgi_partial_merge_text;

typedef struct sgi_partial_merge_block {
    sgi_buf json; /* the block as JSON; not used when `text` is set */
    sgi_partial_merge_text
        /* the text and members of a block that came in several pieces; NULL = the block
         * came in one piece */
        *text;
} sgi_partial_merge_block;

typedef struct sgi_partial_merge {
    const sgi_env *env;
    const char *list; /* name of the member of the result that holds the list of blocks */
    sgi_partial_merge_block *blocks;
    size_t count, room; /* count: number of stored blocks; room: capacity of the array */
    /* the largest number of blocks: SGI_MERGE_BLOCKS_MAX; tests set a smaller limit */
    size_t max_blocks;
    sgi_fold fields; /* the merge of the members outside the list */
    /* number of blocks at the beginning of the list that are not stored */
    int64_t base;
    /* true when blocks are passed to `each` but not stored; `base` counts these blocks */
    bool forgets;
    /* true when the first blocks are missing, so that no piece can continue them */
    bool lacks;
    bool full; /* true when max_blocks is reached */
    /* number that the next segment has; 0 = the server does not number its segments */
    int64_t next;
    size_t bytes; /* number of bytes of the stored blocks */
    /* error text that says why the last response was refused */
    const char *wrong;
    uint64_t replacements; /* number of times that the earlier blocks were replaced */
    uint32_t warnings;
} sgi_partial_merge;

typedef enum sgi_merged {
    SGI_MERGED = 0,
    SGI_MERGE_WRONG,
    SGI_MERGE_LIMIT, /* failure: the result has too many blocks or fields */
    SGI_MERGE_NOMEM
} sgi_merged;

/* Receives a block of a response, without the member `index`. index: index of the block
 * in the list of the result. */
typedef void (*sgi_partial_merge_block_fn)(void *user, uint64_t index, sgi_json block);

void sgi_partial_merge_init(sgi_partial_merge *merge, const sgi_env *env,
                            const char *list);
void sgi_partial_merge_free(sgi_partial_merge *merge);

/* Merges a response. `each` is called for each block in order; NULL = not called.
 * Segments that were merged before are recognized by their numbers and skipped (C-9).
 * After an error, the blocks of earlier responses stay stored, and some blocks of this
 * response may be stored too. */
sgi_merged sgi_partial_merge_add(sgi_partial_merge *merge, sgi_json result,
                                 sgi_partial_merge_block_fn each, void *user);
/* Writes the members of the result into an open object. When out of memory, sets
 * w->buf->failed. */
void sgi_partial_merge_write(const sgi_partial_merge *merge, sgi_jw *w);

#endif
