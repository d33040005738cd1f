/* Bytes that do not change, with a reference count. Any thread may add and drop
 * references. The block remembers only how to free itself, so it can outlive the runtime
 * or the store whose memory it is in. */
#ifndef SGI_SHARED_TEXT_H
#define SGI_SHARED_TEXT_H

#include "base/base.h"

typedef struct sgi_shared_text {
    _Atomic(uint32_t) refs;
    uint32_t size; /* number of bytes of the block */
    void (*release)(void *user, void *ptr, size_t size);
    void *user;
    char bytes[];
} sgi_shared_text;

/* Makes a text of `len` bytes, which the caller fills, with one reference. Returns NULL
 * when out of memory or when the text is too long for a block (SGI_SHARED_TEXT_MAX). */
#define SGI_SHARED_TEXT_MAX ((size_t)UINT32_MAX - 4096)
sgi_shared_text *sgi_shared_text_new(const sgi_mem *mem, size_t len);
sgi_shared_text *sgi_shared_text_ref(sgi_shared_text *text);
void sgi_shared_text_unref(sgi_shared_text *text); /* text: may be NULL */

#endif
