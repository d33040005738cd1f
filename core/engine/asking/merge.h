/* Several responses to one request, made one result (PR 776; R-776-7 to R-776-12). The
 * lists of blocks are concatenated, unless an index says that a piece goes on with a text
 * that came before; of other members the last one wins. Knows no request. */
#ifndef SGI_MERGE_H
#define SGI_MERGE_H

#include "engine/log/fold.h"

/* Blocks of one result; a server that sends more is told of a limit. */
#define SGI_MERGE_BLOCKS_MAX 1000000

/* A text that goes on: its pieces are only appended. */
typedef struct sgi_merge_text {
    sgi_fields others; /* members beside the text */
    sgi_buf inside;    /* between the quotes */
} sgi_merge_text;

typedef struct sgi_merge_block {
    sgi_buf json;         /* empty when it is a text that has gone on */
    sgi_merge_text *text; /* NULL = it has not */
} sgi_merge_block;

typedef struct sgi_merge {
    const sgi_env *env;
    const char *list; /* the member that the blocks make */
    sgi_merge_block *blocks;
    size_t count, room;    /* of blocks */
    size_t max_blocks;     /* SGI_MERGE_BLOCKS_MAX; tests make it small */
    sgi_fold fields;       /* members beside them */
    int64_t base;          /* so many that stand before them are not here */
    bool forgets;          /* blocks are told and not kept: base counts them */
    bool lacks;            /* blocks that came before are gone: none goes on */
    bool full;             /* there are max_blocks */
    int64_t next;          /* number of the segment that is to come; 0 = none was told */
    size_t bytes;          /* of all blocks */
    const char *wrong;     /* what the response that was refused has wrong */
    uint64_t replacements; /* what came before was thrown away so often */
    uint32_t warnings;
} sgi_merge;

typedef enum sgi_merged {
    SGI_MERGED = 0,
    SGI_MERGE_WRONG,
    SGI_MERGE_LIMIT, /* too many blocks or fields */
    SGI_MERGE_NOMEM
} sgi_merged;

/* A block as it came, without index members; index: its place in the list. */
typedef void (*sgi_merge_block_fn)(void *user, uint64_t index, sgi_json block);

void sgi_merge_init(sgi_merge *merge, const sgi_env *env, const char *list);
void sgi_merge_free(sgi_merge *merge);

/* Takes a response. each is told of its blocks in their order; NULL = nobody is. After
 * anything but SGI_MERGED what came before is still there, and of this response perhaps
 * a part. Segments whose numbers say that they were merged before are passed over
 * (C-9). */
sgi_merged sgi_merge_take(sgi_merge *merge, sgi_json result, sgi_merge_block_fn each,
                          void *user);
/* The members of the result, into an object that is open. Out of memory fails w. */
void sgi_merge_write(const sgi_merge *merge, sgi_jw *w);

#endif
