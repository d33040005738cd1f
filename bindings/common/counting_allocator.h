/* An allocator that counts the bytes of the library, for tests of leaks. Any thread
 * may call its functions. */
#ifndef SGB_COUNTING_ALLOCATOR_H
#define SGB_COUNTING_ALLOCATOR_H

#include <segue/segue.h>

const segue_allocator *sgb_counting_allocator(void);
/* Bytes that are allocated now, in all runtimes with this allocator. */
long long sgb_allocated(void);

#endif
