#include "support/drop_heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct drop_block drop_block;

struct drop_block {
    drop_block *next, *before;
    size_t size;
    size_t unused; /* keeps the bytes behind it aligned */
};

_Static_assert(sizeof(drop_block) % 16 == 0, "blocks must stay aligned");

static void *take(void *user, size_t size)
{
    drop_heap *heap = user;
    drop_block *block = malloc(sizeof *block + size);
    if (!block)
        return NULL;
    *block = (drop_block){.next = heap->blocks, .size = size};
    if (heap->blocks)
        heap->blocks->before = block;
    heap->blocks = block;
    heap->live += size;
    return block + 1;
}

static drop_block *block_of(void *ptr, size_t size)
{
    drop_block *block = (drop_block *)ptr - 1;
    if (block->size != size) {
        fprintf(stderr, "drop_heap: %zu bytes come back as %zu\n", block->size, size);
        abort();
    }
    return block;
}

static void give(void *user, void *ptr, size_t size)
{
    drop_heap *heap = user;
    drop_block *block = block_of(ptr, size);
    if (block->next)
        block->next->before = block->before;
    if (block->before)
        block->before->next = block->next;
    else
        heap->blocks = block->next;
    heap->live -= size;
    free(block);
}

static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    void *moved = take(user, new_size);
    if (!moved)
        return NULL;
    memcpy(moved, ptr, old_size < new_size ? old_size : new_size);
    give(user, ptr, old_size);
    return moved;
}

void drop_heap_init(drop_heap *heap)
{
    *heap = (drop_heap){0};
    heap->mem = (segue_allocator){take, resize, give, heap};
}

void drop_heap_drop(drop_heap *heap)
{
    while (heap->blocks) {
        drop_block *block = heap->blocks;
        heap->blocks = block->next;
        free(block);
    }
    heap->live = 0;
}
