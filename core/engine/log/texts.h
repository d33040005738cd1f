/* Which blocks of a result are texts, which more text can go on in. */
#ifndef SGI_TEXTS_H
#define SGI_TEXTS_H

#include "engine/engine.h"

typedef struct sgi_texts {
    uint64_t first; /* bit n: block n is one, of the first 64 */
    sgi_buf more;   /* ... of those behind them */
} sgi_texts;

void sgi_texts_init(sgi_texts *texts, const sgi_mem *mem);
void sgi_texts_free(sgi_texts *texts);
void sgi_texts_clear(sgi_texts *texts);
/* The block at place is a text. False when out of memory. */
bool sgi_texts_add(sgi_texts *texts, uint64_t place);
bool sgi_texts_has(const sgi_texts *texts, uint64_t place);

bool sgi_block_is_text(sgi_json block);
/* A block of text, and nothing else, as this library writes them: its text, between the
 * quotes; empty p = it is another. */
sgi_str sgi_block_plain_text(sgi_json block);

#endif
