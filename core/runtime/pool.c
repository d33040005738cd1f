/* Blocks of up to LARGEST bytes have classes of 8, 24, 40... bytes, which are the sizes
 * that malloc has anyway, and each class has a list of free blocks. Larger blocks go
 * through to malloc. A lock that is held for a few instructions protects the lists. It is
 * nearly never taken, because nearly all calls hold the lock of the runtime. */
#include "runtime/pool.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STEP 16
#define LARGEST ((size_t)4096)
#define CLASSES (LARGEST / STEP + 2)

/* gcc says by a macro that a build has the address sanitizer, and clang by a feature. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#define HAS_SANITIZER __has_feature(address_sanitizer)
#else
#define HAS_SANITIZER 0
#endif

/* all blocks that wait for their next use have at most this size together */
#if HAS_SANITIZER
#define POOL_BYTES ((size_t)0)
#else
#define POOL_BYTES ((size_t)512 * 1024)
#endif

typedef struct free_block {
    struct free_block *next;
} free_block;

typedef struct pool {
    atomic_flag locked;
    bool closed;
    size_t used; /* number of blocks in use */
    size_t kept; /* number of bytes of the free blocks */
    uint64_t taken;
    free_block *lists[CLASSES];
} pool;

static void lock(pool *p)
{
    while (atomic_flag_test_and_set_explicit(&p->locked, memory_order_acquire))
        sched_yield();
}

static void unlock(pool *p)
{
    atomic_flag_clear_explicit(&p->locked, memory_order_release);
}

/* Returns 0 for a size that has no class. */
static size_t class_of(size_t size)
{
    return size <= LARGEST ? (size + STEP / 2 - 1) / STEP + 1 : 0;
}

static size_t bytes_of(size_t class)
{
    return class * STEP - STEP / 2;
}

static void *pool_alloc(void *user, size_t size)
{
    pool *p = user;
    size_t class = class_of(size);
    lock(p);
    free_block *block = p->lists[class];
    p->used++;
    if (block) {
        p->lists[class] = block->next;
        p->kept -= bytes_of(class);
        unlock(p);
        return block;
    }
    p->taken++;
    unlock(p);
    void *fresh = malloc(class ? bytes_of(class) : size);
    if (!fresh) {
        lock(p);
        p->used--;
        unlock(p);
    }
    return fresh;
}

static void pool_release(void *user, void *ptr, size_t size)
{
    pool *p = user;
    size_t class = class_of(size);
    lock(p);
    bool is_last = --p->used == 0 && p->closed;
    bool keeps = class && !p->closed && p->kept + bytes_of(class) <= POOL_BYTES;
    if (keeps) {
        free_block *block = ptr;
        block->next = p->lists[class];
        p->lists[class] = block;
        p->kept += bytes_of(class);
    }
    unlock(p);
    if (!keeps)
        free(ptr);
    if (is_last)
        free(p);
}

static void *pool_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    size_t class = class_of(new_size);
    if (class && class == class_of(old_size))
        return ptr;
    if (!class && !class_of(old_size))
        return realloc(ptr, new_size);
    void *moved = pool_alloc(user, new_size);
    if (!moved)
        return NULL;
    memcpy(moved, ptr, old_size < new_size ? old_size : new_size);
    pool_release(user, ptr, old_size);
    return moved;
}

bool sgi_pool_open(sgi_mem *mem)
{
    pool *p = calloc(1, sizeof *p);
    if (!p)
        return false;
    atomic_flag_clear(&p->locked);
    *mem = (sgi_mem){pool_alloc, pool_resize, pool_release, p};
    return true;
}

void sgi_pool_close(const sgi_mem *mem)
{
    pool *p = mem->user;
    if (mem->alloc != pool_alloc)
        return;
    lock(p);
    for (size_t class = 0; class < CLASSES; class ++)
        while (p->lists[class]) {
            free_block *block = p->lists[class];
            p->lists[class] = block->next;
            free(block);
        }
    p->kept = 0;
    p->closed = true;
    bool is_unused = !p->used;
    unlock(p);
    if (is_unused)
        free(p);
}

uint64_t sgi_pool_taken(const sgi_mem *mem)
{
    pool *p = mem->user;
    lock(p);
    uint64_t taken = p->taken;
    unlock(p);
    return taken;
}
