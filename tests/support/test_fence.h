/* Text that ends where readable memory ends: one byte too far and the program stops,
 * with or without a sanitizer. */
#ifndef TEST_FENCE_H
#define TEST_FENCE_H

#include <stddef.h>

typedef struct test_fence {
    char *pages; /* the last one cannot be touched */
    size_t size; /* of those that can */
    size_t page;
} test_fence;

/* Room for texts up to most bytes; aborts when there is none. */
void test_fence_init(test_fence *fence, size_t most);
void test_fence_free(test_fence *fence);
/* A copy whose last byte is the last one that can be read. The one before is gone. */
char *test_fence_place(test_fence *fence, const void *bytes, size_t len);

#endif
