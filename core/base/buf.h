/* A growing array of bytes. When the buffer cannot grow, `failed` is set and stays set,
 * and later appends do nothing. So a writer can append a whole message and then check
 * `failed` once. */
#ifndef SGI_BUF_H
#define SGI_BUF_H

#include "base/base.h"

typedef struct sgi_buf {
    const sgi_mem *mem;
    char *p;
    size_t len;
    size_t cap;
    bool failed;
} sgi_buf;

void sgi_buf_init(sgi_buf *buf, const sgi_mem *mem);
void sgi_buf_free(sgi_buf *buf);
/* Empties the buffer and clears `failed`. At most `keep` bytes of its memory stay
 * allocated. */
void sgi_buf_reset(sgi_buf *buf, size_t keep);
/* Ensures that n more bytes fit at p + len. Returns false when out of memory. */
bool sgi_buf_reserve_slow(sgi_buf *buf, size_t n);

static inline bool sgi_buf_reserve(sgi_buf *buf, size_t n)
{
    return buf->cap - buf->len >= n && !buf->failed ? true : sgi_buf_reserve_slow(buf, n);
}

static inline void sgi_buf_add(sgi_buf *buf, const void *bytes, size_t n)
{
    if (n && sgi_buf_reserve(buf, n)) {
        SGI_WORK(n);
        memcpy(buf->p + buf->len, bytes, n);
        buf->len += n;
    }
}

static inline void sgi_buf_add_str(sgi_buf *buf, sgi_str text)
{
    sgi_buf_add(buf, text.p, text.n);
}

#define sgi_buf_add_lit(buf, literal) sgi_buf_add((buf), (literal), sizeof(literal) - 1)

static inline void sgi_buf_add_char(sgi_buf *buf, char c)
{
    if (sgi_buf_reserve(buf, 1))
        buf->p[buf->len++] = c;
}

void sgi_buf_add_int(sgi_buf *buf, int64_t value);
void sgi_buf_add_uint(sgi_buf *buf, uint64_t value);
/* Drops the first n bytes of the buffer. */
void sgi_buf_drop_front(sgi_buf *buf, size_t n);
/* Removes the bytes after len and clears `failed`. Used to remove a message that could
 * not be written completely. */
void sgi_buf_truncate(sgi_buf *buf, size_t len);
/* Removes the bytes after len from a message that is still being written. Does not change
 * `failed`. */
static inline void sgi_buf_shorten(sgi_buf *buf, size_t len)
{
    buf->len = len;
}
/* Adds a terminating NUL that `len` does not count. Returns false when out of memory. */
bool sgi_buf_terminate(sgi_buf *buf);

static inline sgi_str sgi_buf_str(const sgi_buf *buf)
{
    return (sgi_str){buf->p, buf->len};
}

/* Appends the bytes as base64 (RFC 4648). url: true = the URL alphabet without padding,
 * false = the standard alphabet with padding. */
void sgi_buf_add_base64(sgi_buf *buf, const void *bytes, size_t n, bool url);
/* Decodes a base64 text of either alphabet and appends the bytes. Returns false when the
 * text is malformed. */
bool sgi_buf_add_unbase64(sgi_buf *buf, sgi_str text);

#endif
