/* An allocator that counts, fails on demand and checks the sizes that it gets back.
 *
 *     test_mem tm;
 *     test_mem_init(&tm);
 *     tm.fail_at = 3;                  the 3rd alloc or resize from now returns NULL
 *     ... use &tm.mem ...
 *     assert_int_equal(tm.live, 0);
 *
 * A release or resize with a wrong size, of a foreign pointer or of a released block
 * aborts with a message, because the code under test is wrong. New and released memory is
 * filled with junk, and resize always moves, so that stale pointers show. Overruns are
 * left to AddressSanitizer. Several threads may use the allocator; set the fail fields
 * while none runs. */
#ifndef TEST_MEM_H
#define TEST_MEM_H

#include <stdatomic.h>
#include <stddef.h>

#include <segue/segue.h>

typedef struct test_mem {
    segue_allocator mem;
    size_t fail_at;       /* the number of the only call that fails; 0 = none */
    size_t fail_from;     /* the number of the first call from which all calls fail; 0 =
                           * none */
    atomic_size_t calls;  /* number of allocs and resizes */
    atomic_size_t failed; /* number of calls that were refused */
    atomic_size_t live;   /* bytes in use */
    atomic_size_t blocks; /* blocks in use */
    atomic_size_t peak;   /* most bytes in use at once */
} test_mem;

void test_mem_init(test_mem *tm);
/* Restarts the count of calls and sets no failure; blocks in use stay accounted for. */
void test_mem_rearm(test_mem *tm);

#endif
