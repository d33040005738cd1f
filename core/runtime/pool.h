/* Memory of a runtime without an allocator of the application: malloc, and in front of it
 * a pool of small blocks that were used before. A call makes and frees a dozen blocks of
 * the same sizes as the call before it, so after a while the library itself takes no
 * memory from malloc for a plain call.
 *
 * Any thread may use the memory. A block may outlive the runtime. Builds with the address
 * sanitizer keep no blocks, so that the sanitizer sees each use of freed memory. */
#ifndef SGI_POOL_H
#define SGI_POOL_H

#include "base/base.h"

/* Makes a pool; *mem becomes the memory. Returns false when out of memory. */
bool sgi_pool_open(sgi_mem *mem);
/* Frees what the pool keeps. Blocks that are still in use may be freed later; the last of
 * them frees the pool. Does nothing when mem is not the memory of a pool. */
void sgi_pool_close(const sgi_mem *mem);
/* Returns the number of blocks that were taken from malloc. */
uint64_t sgi_pool_taken(const sgi_mem *mem);

#endif
