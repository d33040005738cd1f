/* The operations of each principal in order, newest first: what a list is made of. */
#ifndef SGI_MEMORY_OWNER_H
#define SGI_MEMORY_OWNER_H

#include "base/base.h"
#include "base/map.h"

typedef struct sgi_memory_owner sgi_memory_owner;

/* An operation's place; part of it. created_ms and task_id are set by the operation. */
typedef struct sgi_memory_place {
    TAILQ_ENTRY(sgi_memory_place) link;
    sgi_memory_owner *owner; /* counted */
    int64_t created_ms;
    const char *task_id;
    bool is_fresh; /* it stands apart from the order */
} sgi_memory_place;

/* Gives the place its owner, in a map of them; false when out of memory. */
bool sgi_memory_owner_hold(sgi_map *owners, const sgi_mem *mem, sgi_memory_place *place,
                           const uint8_t principal[SEGUE_STORE_HASH_SIZE]);
/* Takes the owner away again; the last place frees it. Not while it is in the order. */
void sgi_memory_owner_drop(sgi_map *owners, const sgi_mem *mem, sgi_memory_place *place);
const uint8_t *sgi_memory_owner_principal(const sgi_memory_place *place);
/* Among those of its owner, and out of them. */
void sgi_memory_owner_add(sgi_memory_place *place);
void sgi_memory_owner_remove(sgi_memory_place *place);

/* The first of a principal that comes behind this position, or of all when task_id is
 * NULL; NULL when there is none. */
sgi_memory_place *sgi_memory_owner_first(const sgi_map *owners,
                                         const uint8_t principal[SEGUE_STORE_HASH_SIZE],
                                         int64_t created_ms, const char *task_id);
sgi_memory_place *sgi_memory_owner_next(const sgi_memory_place *place);
/* The oldest of those that this place is among, and the next newer. */
sgi_memory_place *sgi_memory_owner_oldest(const sgi_memory_place *place);
sgi_memory_place *sgi_memory_owner_newer(const sgi_memory_place *place);

#endif
