/* The memory consists of anonymous pages, of which the last cannot be accessed. */
#include "test_fence.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void test_fence_init(test_fence *fence, size_t most)
{
    fence->page = (size_t)sysconf(_SC_PAGESIZE);
    fence->size = (most / fence->page + 1) * fence->page;
    fence->pages = mmap(NULL, fence->size + fence->page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fence->pages == MAP_FAILED ||
        mprotect(fence->pages + fence->size, fence->page, PROT_NONE) != 0)
        abort();
}

void test_fence_free(test_fence *fence)
{
    munmap(fence->pages, fence->size + fence->page);
}

char *test_fence_place(test_fence *fence, const void *bytes, size_t len)
{
    if (len > fence->size)
        abort();
    char *at = fence->pages + fence->size - len;
    if (len)
        memcpy(at, bytes, len);
    return at;
}
