#include "base/shared_text.h"

#include <stdatomic.h>

sgi_shared_text *sgi_shared_text_new(const sgi_mem *mem, size_t len)
{
    size_t size = offsetof(sgi_shared_text, bytes) + len;
    sgi_shared_text *text = len <= SGI_SHARED_TEXT_MAX ? sgi_alloc(mem, size) : NULL;
    if (!text)
        return NULL;
    atomic_init(&text->refs, 1);
    text->size = (uint32_t)size;
    text->release = mem->release;
    text->user = mem->user;
    return text;
}

sgi_shared_text *sgi_shared_text_ref(sgi_shared_text *text)
{
    atomic_fetch_add_explicit(&text->refs, 1, memory_order_relaxed);
    return text;
}

void sgi_shared_text_unref(sgi_shared_text *text)
{
    if (text && atomic_fetch_sub_explicit(&text->refs, 1, memory_order_acq_rel) == 1)
        text->release(text->user, text, text->size);
}
