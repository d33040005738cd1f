/* Text blocks whose text needs no decoding, which are most of the blocks of streams. */
#ifndef SGB_PLAIN_BLOCK_H
#define SGB_PLAIN_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether a block has only the members type and text, in this order. */
bool sgb_is_plain_block(const char *data, size_t len);
/* Returns the text of a block that has only the members type and text, and whose text has
 * no escapes. Such a text is a part of the block's JSON. Returns NULL for any other
 * block. */
const char *sgb_bare_text(const char *data, size_t len, size_t *text_len);

#endif
