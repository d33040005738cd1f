/* Text at the very end of readable memory: a read of one byte more stops the program,
 * with or without a sanitizer. */
#ifndef TEST_FENCE_H
#define TEST_FENCE_H

#include <stddef.h>

typedef struct test_fence {
    char *pages; /* the last page cannot be accessed */
    size_t size; /* size of the pages that can be accessed */
    size_t page;
} test_fence;

/* Makes room for texts of up to `most` bytes; aborts when there is no memory. */
void test_fence_init(test_fence *fence, size_t most);
void test_fence_free(test_fence *fence);
/* Copies the text so that its last byte is the last readable one. The text replaces the
 * earlier text. */
char *test_fence_place(test_fence *fence, const void *bytes, size_t len);

#endif
