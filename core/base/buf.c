/* A buffer grows by half of its size, and by at least 256 bytes. So few copies are made,
 * and at most a third of the buffer is unused. */
#include "base/buf.h"

void sgi_buf_init(sgi_buf *buf, const sgi_mem *mem)
{
    *buf = (sgi_buf){.mem = mem};
}

void sgi_buf_free(sgi_buf *buf)
{
    sgi_free(buf->mem, buf->p, buf->cap);
    sgi_buf_init(buf, buf->mem);
}

void sgi_buf_reset(sgi_buf *buf, size_t keep)
{
    if (buf->cap > keep)
        sgi_buf_free(buf);
    buf->len = 0;
    buf->failed = false;
}

bool sgi_buf_reserve_slow(sgi_buf *buf, size_t n)
{
    if (buf->failed)
        return false;
    if (n > SIZE_MAX / 2 - buf->len) {
        buf->failed = true;
        return false;
    }
    size_t cap = buf->cap + buf->cap / 2;
    if (cap < buf->len + n)
        cap = buf->len + n;
    if (cap < 256)
        cap = 256;
    char *p = sgi_realloc(buf->mem, buf->p, buf->cap, cap);
    if (!p) {
        buf->failed = true;
        return false;
    }
    buf->p = p;
    buf->cap = cap;
    return true;
}

void sgi_buf_add_uint(sgi_buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    sgi_buf_add(buf, digits + at, sizeof digits - at);
}

void sgi_buf_add_int(sgi_buf *buf, int64_t value)
{
    if (value < 0)
        sgi_buf_add_char(buf, '-');
    sgi_buf_add_uint(buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void sgi_buf_drop_front(sgi_buf *buf, size_t n)
{
    SGI_WORK(n < buf->len ? buf->len - n : 0);
    if (n < buf->len)
        memmove(buf->p, buf->p + n, buf->len - n);
    buf->len -= n;
}

void sgi_buf_truncate(sgi_buf *buf, size_t len)
{
    buf->len = len;
    buf->failed = false;
}

bool sgi_buf_terminate(sgi_buf *buf)
{
    if (!sgi_buf_reserve(buf, 1))
        return false;
    buf->p[buf->len] = 0;
    return true;
}

static const char base64_standard[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char base64_url[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void sgi_buf_add_base64(sgi_buf *buf, const void *bytes, size_t n, bool url)
{
    const unsigned char *in = bytes;
    const char *alphabet = url ? base64_url : base64_standard;
    if (n > SIZE_MAX / 4 || !sgi_buf_reserve(buf, (n + 2) / 3 * 4)) {
        buf->failed = true;
        return;
    }
    if (!n)
        return; /* nothing is appended, and buf->p may still be NULL */
    char *out = buf->p + buf->len;
    for (; n >= 3; n -= 3, in += 3) {
        *out++ = alphabet[in[0] >> 2];
        *out++ = alphabet[(in[0] & 3) << 4 | in[1] >> 4];
        *out++ = alphabet[(in[1] & 15) << 2 | in[2] >> 6];
        *out++ = alphabet[in[2] & 63];
    }
    if (n) {
        unsigned char second = n == 2 ? in[1] : 0;
        *out++ = alphabet[in[0] >> 2];
        *out++ = alphabet[(in[0] & 3) << 4 | second >> 4];
        if (n == 2)
            *out++ = alphabet[(second & 15) << 2];
        else if (!url)
            *out++ = '=';
        if (!url)
            *out++ = '=';
    }
    buf->len = (size_t)(out - buf->p);
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

bool sgi_buf_add_unbase64(sgi_buf *buf, sgi_str text)
{
    while (text.n && text.p[text.n - 1] == '=')
        text.n--;
    if (text.n % 4 == 1)
        return false;
    uint32_t bits = 0;
    for (size_t i = 0; i < text.n; i++) {
        int value = base64_value(text.p[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        size_t have = i % 4;
        if (have > 0)
            sgi_buf_add_char(buf, (char)(bits >> (6 - 2 * have) & 255));
    }
    return !buf->failed;
}
