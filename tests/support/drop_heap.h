/* The memory of a simulated process that may die: all blocks can be freed at once. The
 * heap checks the sizes that callers pass when they free a block. */
#ifndef DROP_HEAP_H
#define DROP_HEAP_H

#include <stddef.h>

#include <segue/segue.h>

typedef struct drop_heap {
    segue_allocator mem;
    struct drop_block *blocks;
    size_t live; /* bytes in use */
} drop_heap;

void drop_heap_init(drop_heap *heap);
void drop_heap_drop(drop_heap *heap);

#endif
