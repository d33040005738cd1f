/* Remembers which blocks of a result are text blocks. A later text can continue only a
 * text block. */
#ifndef SGI_TEXT_BLOCKS_H
#define SGI_TEXT_BLOCKS_H

#include "engine/engine.h"

typedef struct sgi_text_blocks {
    /* index of the first block that has a bit; earlier blocks have no bits */
    uint64_t from;
    /* 64 bits: bit n is set when the block with index from + n is a text */
    uint64_t first;
    sgi_buf more; /* the bits of the blocks from index from + 64 on */
} sgi_text_blocks;

void sgi_text_blocks_init(sgi_text_blocks *texts, const sgi_mem *mem);
void sgi_text_blocks_free(sgi_text_blocks *texts);
/* Forgets all blocks. From now on the block with index `from` is the first block with a
 * bit. */
void sgi_text_blocks_reset(sgi_text_blocks *texts, uint64_t from);
/* Reserves memory for the bits of all blocks before index `end`, so that
 * sgi_text_blocks_add cannot fail for these blocks. Returns false when out of memory. */
bool sgi_text_blocks_reserve(sgi_text_blocks *texts, uint64_t end);
/* Notes that the block with index `place` is a text. All indexes from `from` to `place`
 * need memory, so the caller must limit the index. Returns false when out of memory. */
bool sgi_text_blocks_add(sgi_text_blocks *texts, uint64_t place);
bool sgi_text_blocks_has(const sgi_text_blocks *texts, uint64_t place);

/* True for a text block, and for contents of a resource that are text. */
bool sgi_block_is_text(sgi_json block);
/* Returns the text of a text block without its quotes. Returns a text with p = NULL when
 * the block has other members than "type" and "text", or is not spelt as this library
 * spells it. */
sgi_str sgi_block_plain_text(sgi_json block);

#endif
