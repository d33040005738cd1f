/* Letters that wait in memory, for all listeners of one store handle. Used under the lock
 * of listeners.c. */
#ifndef SGI_LETTERS_H
#define SGI_LETTERS_H

#include "base/base.h"

/* Of one operation; of all; bytes of all. */
#define SGI_LETTERS_EACH 64
#define SGI_LETTERS_MAX 1024
#define SGI_LETTERS_BYTES (64 * 1024 * 1024)

typedef struct sgi_letter {
    TAILQ_ENTRY(sgi_letter) link;
    uint64_t place; /* in the order of telling */
    segue_store_news news;
    char data[];
} sgi_letter;

typedef struct sgi_letters {
    const sgi_mem *mem;
    TAILQ_HEAD(sgi_letter_list, sgi_letter) list; /* by place */
    size_t count;
    size_t bytes;
    uint64_t last_place;
    uint64_t last_number; /* given to a letter here */
} sgi_letters;

void sgi_letters_init(sgi_letters *letters, const sgi_mem *mem);
void sgi_letters_free(sgi_letters *letters);

bool sgi_letters_has_room(const sgi_letters *letters);
/* Copies a letter to the end. SEGUE_E_NOMEM. */
segue_status sgi_letters_add(sgi_letters *letters, const segue_store_news *news);
/* The same for a new one, which gets its number here. Where there is no room, one that
 * all have heard of (up to that place) makes it: nobody has taken it. SEGUE_E_LIMIT. */
segue_status sgi_letters_post(sgi_letters *letters, const segue_store_news *news,
                              uint64_t heard);
/* Forgets those of an operation up to a number. */
void sgi_letters_take(sgi_letters *letters, const uint8_t *id, uint64_t number);
/* Forgets those that all have heard of. */
void sgi_letters_trim(sgi_letters *letters, uint64_t heard);
/* Those of an operation become news once more; false when there are none. */
bool sgi_letters_retell(sgi_letters *letters, const uint8_t *id);
/* The first behind a place, or NULL. */
const sgi_letter *sgi_letters_next(const sgi_letters *letters, uint64_t place);

#endif
