/* Memory of a process that may die: all of it can be let go at once. Sizes that come back
 * are checked. */
#ifndef DROP_HEAP_H
#define DROP_HEAP_H

#include <stddef.h>

#include <segue/segue.h>

typedef struct drop_heap {
    segue_allocator mem;
    struct drop_block *blocks;
    size_t live; /* bytes */
} drop_heap;

void drop_heap_init(drop_heap *heap);
void drop_heap_drop(drop_heap *heap);

#endif
