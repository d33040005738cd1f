/* Each block has a header with its size, its allocator and a mark. A release inverts the
 * mark, so a second release is detected until the memory is used again. Counters are
 * atomic, because stores allocate on threads of their own. */
#include "test_mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK_LIVE 0x5e90e11fe5e90e11u
#define MARK_DEAD 0xdeadb10cdeadb10cu

struct header {
    size_t size;
    test_mem *owner;
    uint64_t mark;
    uint64_t unused; /* keeps the block aligned as malloc does */
};

_Static_assert(sizeof(struct header) % 16 == 0, "blocks must stay aligned");

static void complain(const char *what, size_t said, size_t is)
{
    fprintf(stderr, "test_mem: %s (caller says %zu bytes, block has %zu)\n", what, said,
            is);
    abort();
}

static struct header *header_of(test_mem *tm, void *ptr, size_t size)
{
    if (!ptr)
        complain("NULL block", size, 0);
    struct header *h = (struct header *)ptr - 1;
    if (h->mark == MARK_DEAD)
        complain("block used after release", size, 0);
    if (h->mark != MARK_LIVE || h->owner != tm)
        complain("foreign block", size, 0);
    if (h->size != size)
        complain("wrong size", size, h->size);
    return h;
}

static int is_refused(test_mem *tm)
{
    size_t call = atomic_fetch_add(&tm->calls, 1) + 1;
    if (call != tm->fail_at && (!tm->fail_from || call < tm->fail_from))
        return 0;
    atomic_fetch_add(&tm->failed, 1);
    return 1;
}

static void *take(test_mem *tm, size_t size)
{
    struct header *h = malloc(sizeof *h + size);
    if (!h)
        return NULL;
    *h = (struct header){size, tm, MARK_LIVE, 0};
    memset(h + 1, 0xa5, size);
    atomic_fetch_add(&tm->blocks, 1);
    size_t live = atomic_fetch_add(&tm->live, size) + size;
    size_t peak = atomic_load(&tm->peak);
    while (live > peak && !atomic_compare_exchange_weak(&tm->peak, &peak, live))
        ;
    return h + 1;
}

static void *test_alloc(void *user, size_t size)
{
    test_mem *tm = user;
    return is_refused(tm) ? NULL : take(tm, size);
}

static void test_release(void *user, void *ptr, size_t size)
{
    test_mem *tm = user;
    struct header *h = header_of(tm, ptr, size);
    h->mark = MARK_DEAD;
    memset(ptr, 0xdd, size);
    atomic_fetch_sub(&tm->live, size);
    atomic_fetch_sub(&tm->blocks, 1);
    free(h);
}

static void *test_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    test_mem *tm = user;
    header_of(tm, ptr, old_size);
    if (is_refused(tm))
        return NULL;
    void *moved = take(tm, new_size);
    if (!moved)
        return NULL;
    memcpy(moved, ptr, old_size < new_size ? old_size : new_size);
    test_release(tm, ptr, old_size);
    return moved;
}

void test_mem_init(test_mem *tm)
{
    memset(tm, 0, sizeof *tm);
    tm->mem = (segue_allocator){test_alloc, test_resize, test_release, tm};
}

void test_mem_rearm(test_mem *tm)
{
    tm->fail_at = 0;
    tm->fail_from = 0;
    atomic_store(&tm->calls, 0);
    atomic_store(&tm->failed, 0);
}
