/* An allocator that counts, fails on demand and insists on the sizes it is given back.
 *
 *     test_mem tm;
 *     test_mem_init(&tm);
 *     tm.fail_at = 3;                  the 3rd alloc or resize from now returns NULL
 *     ... use &tm.mem ...
 *     assert_int_equal(tm.live, 0);
 *
 * A release or resize with the wrong size, of a foreign pointer or a second time aborts
 * with a message: it is a fault of the code under test. Fresh memory is filled with
 * junk, released memory too, and resize always moves, so that stale pointers show. Exact
 * ends are left to AddressSanitizer. May be used from several threads; set the fail
 * fields while none runs. */
#ifndef TEST_MEM_H
#define TEST_MEM_H

#include <stdatomic.h>
#include <stddef.h>

#include <segue/segue.h>

typedef struct test_mem {
    segue_allocator mem;
    size_t fail_at;       /* this call alone fails; 0 = none */
    size_t fail_from;     /* this call and all after it fail; 0 = none */
    atomic_size_t calls;  /* allocs and resizes asked for */
    atomic_size_t failed; /* those that were refused */
    atomic_size_t live;   /* bytes out now */
    atomic_size_t blocks; /* blocks out now */
    atomic_size_t peak;   /* most bytes out at once */
} test_mem;

void test_mem_init(test_mem *tm);
/* Starts counting anew, failing at no call; blocks that are out stay accounted for. */
void test_mem_rearm(test_mem *tm);

#endif
