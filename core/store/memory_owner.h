/* The operations of each principal, sorted from the newest to the oldest, for listing and
 * for eviction. */
#ifndef SGI_MEMORY_OWNER_H
#define SGI_MEMORY_OWNER_H

#include "base/base.h"
#include "base/index.h"

typedef struct sgi_memory_principal sgi_memory_principal;

/* An entry in the list of a principal's operations. The struct is a member of the
 * operation. The store sets created_ms and task_id. */
typedef struct sgi_memory_principal_entry {
    TAILQ_ENTRY(sgi_memory_principal_entry) link;
    /* the list of the principal's operations; a counted reference */
    sgi_memory_principal *owner;
    int64_t created_ms;
    const char *task_id;
    bool is_fresh; /* true = the entry is in `fresh`, the unsorted part of the list */
} sgi_memory_principal_entry;

void sgi_memory_principals_init(sgi_index *owners, const sgi_env *env);
/* Gives the entry a reference to the list of this principal (an sgi_memory_principal),
 * and makes the list if `owners` has no list for this principal. Does not add the entry
 * to the list. Returns false when out of memory. */
bool sgi_memory_principal_set(sgi_index *owners, const sgi_mem *mem,
                              sgi_memory_principal_entry *place,
                              const uint8_t principal[SEGUE_STORE_HASH_SIZE]);
/* Releases the entry's reference to the list of its principal. The last release frees the
 * list. The caller has removed the entry from the list. */
void sgi_memory_principal_release(sgi_index *owners, const sgi_mem *mem,
                                  sgi_memory_principal_entry *place);
const uint8_t *sgi_memory_principal_of_entry(const sgi_memory_principal_entry *place);
/* sgi_memory_principal_add adds the entry to the list of its principal;
 * sgi_memory_principal_remove removes the entry. */
void sgi_memory_principal_add(sgi_memory_principal_entry *place);
void sgi_memory_principal_remove(sgi_memory_principal_entry *place);

/* Returns the principal's first entry after the position (created_ms, task_id), or, when
 * task_id is NULL, the first entry of the list. Returns NULL at the end of the list. */
sgi_memory_principal_entry *
sgi_memory_principal_first_after(const sgi_index *owners,
                                 const uint8_t principal[SEGUE_STORE_HASH_SIZE],
                                 int64_t created_ms, const char *task_id);
sgi_memory_principal_entry *
sgi_memory_principal_next(const sgi_memory_principal_entry *place);
/* sgi_memory_principal_oldest returns the oldest entry of the list that contains `place`.
 * sgi_memory_principal_newer returns the next newer entry after `place`, or NULL. */
sgi_memory_principal_entry *
sgi_memory_principal_oldest(const sgi_memory_principal_entry *place);
sgi_memory_principal_entry *
sgi_memory_principal_newer(const sgi_memory_principal_entry *place);

#endif
