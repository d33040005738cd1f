/* Notes which blocks of a result are texts, because more text can continue a text
 * block. */
#ifndef SGI_TEXT_BLOCKS_H
#define SGI_TEXT_BLOCKS_H

#include "engine/engine.h"

typedef struct sgi_text_blocks {
    uint64_t from;  /* number of the first block about which something is known */
    uint64_t first; /* 64 bits: bit n is set when the block from + n is a text */
    sgi_buf more;   /* the bits of the blocks after these 64 */
} sgi_text_blocks;

void sgi_text_blocks_init(sgi_text_blocks *texts, const sgi_mem *mem);
void sgi_text_blocks_free(sgi_text_blocks *texts);
/* Starts again: nothing is known of the blocks before `from`. */
void sgi_text_blocks_reset(sgi_text_blocks *texts, uint64_t from);
/* Reserves memory for all blocks before `end`, so that sgi_text_blocks_add cannot fail
 * for them. False when out of memory. */
bool sgi_text_blocks_reserve(sgi_text_blocks *texts, uint64_t end);
/* Notes that the block at this index (place) is a text. Memory is taken for all indexes
 * from `from` up to this one, so the caller has to limit the index. Returns false when
 * out of memory. */
bool sgi_text_blocks_add(sgi_text_blocks *texts, uint64_t place);
bool sgi_text_blocks_has(const sgi_text_blocks *texts, uint64_t place);

/* True for a text block, or contents of a resource that are text. */
bool sgi_block_is_text(sgi_json block);
/* Returns the text of a block, without its quotes. The block has no member except the
 * type and the text, and is spelt as this library writes it. For any other block, p is
 * NULL. */
sgi_str sgi_block_plain_text(sgi_json block);

#endif
