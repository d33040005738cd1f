/* Which blocks of a result are texts, which more text can go on in. */
#ifndef SGI_TEXTS_H
#define SGI_TEXTS_H

#include "engine/engine.h"

typedef struct sgi_texts {
    uint64_t from;  /* of the blocks before this one nothing is known */
    uint64_t first; /* bit n: block from + n is a text, of the first 64 */
    sgi_buf more;   /* ... of those behind them */
} sgi_texts;

void sgi_texts_init(sgi_texts *texts, const sgi_mem *mem);
void sgi_texts_free(sgi_texts *texts);
/* Begins anew: nothing is known of the blocks before this one. */
void sgi_texts_begin(sgi_texts *texts, uint64_t from);
/* Room for what is known of all blocks before `end`: sgi_texts_add of those cannot fail.
 * False when out of memory. */
bool sgi_texts_reserve(sgi_texts *texts, uint64_t end);
/* The block at place is a text. Memory is taken for all places from `from` up to this
 * one: whoever calls checks the place. False when out of memory. */
bool sgi_texts_add(sgi_texts *texts, uint64_t place);
bool sgi_texts_has(const sgi_texts *texts, uint64_t place);

bool sgi_block_is_text(sgi_json block);
/* A block of text, and nothing else, as this library writes them: its text, between the
 * quotes; empty p = it is another. */
sgi_str sgi_block_plain_text(sgi_json block);

#endif
