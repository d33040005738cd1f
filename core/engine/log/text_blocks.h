/* Remembers which blocks of a result are text blocks, because a later text can continue a
 * text block. */
#ifndef SGI_TEXT_BLOCKS_H
#define SGI_TEXT_BLOCKS_H

#include "engine/engine.h"

typedef struct sgi_text_blocks {
    /* number of the first block that has a bit; nothing is known of earlier blocks */
    uint64_t from;
    uint64_t first; /* 64 bits: bit n is set when the block from + n is a text */
    sgi_buf more;   /* the bits of the blocks after these 64 */
} sgi_text_blocks;

void sgi_text_blocks_init(sgi_text_blocks *texts, const sgi_mem *mem);
void sgi_text_blocks_free(sgi_text_blocks *texts);
/* Forgets all blocks. From now on there are bits for the blocks from number `from`. */
void sgi_text_blocks_reset(sgi_text_blocks *texts, uint64_t from);
/* Reserves memory for all blocks before `end`, so that sgi_text_blocks_add cannot fail
 * for these blocks. Returns false when out of memory. */
bool sgi_text_blocks_reserve(sgi_text_blocks *texts, uint64_t end);
/* Notes that the block at this index (place) is a text. Memory is needed for all indexes
 * from `from` to this one, so the caller must limit the index. Returns false when out of
 * memory. */
bool sgi_text_blocks_add(sgi_text_blocks *texts, uint64_t place);
bool sgi_text_blocks_has(const sgi_text_blocks *texts, uint64_t place);

/* True for a text block, or contents of a resource that are text. */
bool sgi_block_is_text(sgi_json block);
/* Returns the text of a block without its quotes. The block must have no members except
 * type and text, in the spelling of this library; otherwise p is NULL. */
sgi_str sgi_block_plain_text(sgi_json block);

#endif
