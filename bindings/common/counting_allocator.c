#include "counting_allocator.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic long long allocated;

static void *count_alloc(void *user, size_t size)
{
    (void)user;
    void *ptr = malloc(size);
    if (ptr)
        atomic_fetch_add(&allocated, (long long)size);
    return ptr;
}

static void *count_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    void *moved = realloc(ptr, new_size);
    if (moved)
        atomic_fetch_add(&allocated, (long long)new_size - (long long)old_size);
    return moved;
}

static void count_release(void *user, void *ptr, size_t size)
{
    (void)user;
    if (ptr)
        atomic_fetch_sub(&allocated, (long long)size);
    free(ptr);
}

const segue_allocator *sgb_counting_allocator(void)
{
    static const segue_allocator counting = {count_alloc, count_resize, count_release,
                                             NULL};
    return &counting;
}

long long sgb_allocated(void)
{
    return atomic_load(&allocated);
}
