/* Allocation with the runtime's allocator, and copies of texts. A block has no header:
 * the caller that releases a block passes its size, so that an allocator can count
 * bytes. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

static void *libc_alloc(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static void *libc_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    return realloc(ptr, new_size);
}

static void libc_release(void *user, void *ptr, size_t size)
{
    (void)user;
    (void)size;
    free(ptr);
}

#ifdef SGI_COUNT_WORK
uint64_t sgi_work;
#endif

const sgi_mem sgi_mem_libc = {libc_alloc, libc_resize, libc_release, NULL};

void *sgi_alloc(const sgi_mem *mem, size_t size)
{
    SGI_WORK(size);
    return mem->alloc(mem->user, size);
}

void *sgi_zalloc(const sgi_mem *mem, size_t size)
{
    void *ptr = sgi_alloc(mem, size);
    if (ptr)
        memset(ptr, 0, size);
    return ptr;
}

void *sgi_realloc(const sgi_mem *mem, void *ptr, size_t old_size, size_t new_size)
{
    if (!ptr)
        return sgi_alloc(mem, new_size);
    SGI_WORK(new_size);
    return mem->resize(mem->user, ptr, old_size, new_size);
}

void sgi_free(const sgi_mem *mem, void *ptr, size_t size)
{
    if (ptr)
        mem->release(mem->user, ptr, size);
}

char *sgi_text_dup(const sgi_mem *mem, sgi_str text)
{
    char *copy = sgi_alloc(mem, text.n + 1);
    if (!copy)
        return NULL;
    if (text.n)
        memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    return copy;
}

/* The text must have no NUL before its end, because the allocated size is taken from its
 * length. */
void sgi_text_free(const sgi_mem *mem, char *text)
{
    if (text)
        sgi_free(mem, text, strlen(text) + 1);
}

size_t sgi_text_fitting_bytes(sgi_str text, size_t most)
{
    if (text.n <= most)
        return text.n;
    while (most && ((unsigned char)text.p[most] & 0xc0) == 0x80)
        most--;
    return most;
}

size_t sgi_text_drop_broken_chars(char *to, sgi_str text)
{
    size_t left = 0;
    for (size_t at = 0; at < text.n;) {
        unsigned char lead = (unsigned char)text.p[at];
        size_t bytes = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4, n = 1;
        while (n < bytes && at + n < text.n &&
               ((unsigned char)text.p[at + n] & 0xc0) == 0x80)
            n++;
        if (n == bytes && to)
            memmove(to + left, text.p + at, n);
        left += n == bytes ? n : 0;
        at += n;
    }
    return left;
}

void sgi_text_vformat(char *out, size_t size, const char *format, va_list args)
{
    if (!size)
        return;
    if (vsnprintf(out, size, format, args) < 0)
        out[0] = 0;
    out[sgi_text_drop_broken_chars(out, (sgi_str){out, strlen(out)})] = 0;
}

void sgi_text_format(char *out, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sgi_text_vformat(out, size, format, args);
    va_end(args);
}

int64_t sgi_now(const sgi_env *env)
{
    return env->hooks->monotonic_ms(env->hooks->user);
}

int64_t sgi_wall_now(const sgi_env *env)
{
    return env->hooks->wall_ms(env->hooks->user);
}

bool sgi_random(const sgi_env *env, void *bytes, size_t len)
{
    return env->hooks->random(env->hooks->user, bytes, len) == 0;
}
