/* The operations of each principal, sorted newest first, for listing and for eviction. */
#ifndef SGI_MEMORY_OWNER_H
#define SGI_MEMORY_OWNER_H

#include "base/base.h"
#include "base/map.h"

typedef struct sgi_memory_owner sgi_memory_owner;

/* An entry in the list of a principal's operations; a member of the operation. The
 * operation sets created_ms and task_id. */
typedef struct sgi_memory_owner_entry {
    TAILQ_ENTRY(sgi_memory_owner_entry) link;
    sgi_memory_owner *owner; /* the list of the principal; a counted reference */
    int64_t created_ms;
    const char *task_id;
    bool is_fresh; /* true = the entry is in `fresh`, the unsorted list of the newest
                    * operations */
} sgi_memory_owner_entry;

/* Gives the entry a reference to the list of this principal (an sgi_memory_owner),
 * which is made if `owners` does not have it. The entry is not added to the list yet.
 * Returns false when out of memory. */
bool sgi_memory_owner_set(sgi_map *owners, const sgi_mem *mem,
                          sgi_memory_owner_entry *place,
                          const uint8_t principal[SEGUE_STORE_HASH_SIZE]);
/* Releases the entry's reference to the list of its principal. The last reference
 * frees the list. The entry must not be in the list. */
void sgi_memory_owner_release(sgi_map *owners, const sgi_mem *mem,
                              sgi_memory_owner_entry *place);
const uint8_t *sgi_memory_owner_entry_principal(const sgi_memory_owner_entry *place);
/* The first function adds the entry to the list of its principal, the second one
 * removes it. */
void sgi_memory_owner_add(sgi_memory_owner_entry *place);
void sgi_memory_owner_remove(sgi_memory_owner_entry *place);

/* Returns the principal's first entry behind the position (created_ms, task_id), or
 * the first entry of the list when task_id is NULL. Returns NULL at the end of the
 * list. */
sgi_memory_owner_entry *
sgi_memory_owner_first(const sgi_map *owners,
                       const uint8_t principal[SEGUE_STORE_HASH_SIZE], int64_t created_ms,
                       const char *task_id);
sgi_memory_owner_entry *sgi_memory_owner_next(const sgi_memory_owner_entry *place);
/* The first function returns the oldest entry of the list that has `place`, the second
 * one the next newer entry. */
sgi_memory_owner_entry *sgi_memory_owner_oldest(const sgi_memory_owner_entry *place);
sgi_memory_owner_entry *sgi_memory_owner_newer(const sgi_memory_owner_entry *place);

#endif
