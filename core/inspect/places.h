/* The operations of a store, as a list that needs no lock while it is used. */
#ifndef SGI_INSPECT_PLACES_H
#define SGI_INSPECT_PLACES_H

#include "inspect/inspect.h"

typedef struct sgi_place {
    int64_t created_ms;
    char *task_id;
} sgi_place;

/* The order of a list for qsort. The elements are places, or begin with one. Two that are
 * equal are the same operation. */
int sgi_place_newest_first(const void *a, const void *b);

typedef struct sgi_places {
    const sgi_mem *mem;
    sgi_place *all; /* the newest operation first, each one once */
    size_t count, cap;
    bool lacks_some; /* the store has operations whose records cannot be read */
    bool failed;
} sgi_places;

/* Lists all operations, also those that servers keep for themselves. The caller frees the
 * list, also after a failure. */
segue_status sgi_places_find(sgi_places *places, sgi_inspection *inspection);
void sgi_places_free(sgi_places *places);

#endif
