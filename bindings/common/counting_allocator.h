/* An allocator that counts the bytes that the library allocates. Tests use the allocator
 * to find leaks. Any thread may call the allocator's functions. */
#ifndef SGB_COUNTING_ALLOCATOR_H
#define SGB_COUNTING_ALLOCATOR_H

#include <segue/segue.h>

const segue_allocator *sgb_counting_allocator(void);
/* Returns the number of bytes that all runtimes with this allocator hold now. */
long long sgb_allocated(void);

#endif
