/* The bytes of heads: character classes, and texts whose case does not matter. */
#include "wire/http1_text.h"

/* The character classes of each byte, as bits of http1_text.h; 16 bytes per row. Bytes
 * beyond ASCII are allowed only in header values. */
// clang-format off
const unsigned char sgi_http1_class[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    2, 7, 6, 3, 7, 7, 7, 7, 6, 6, 7, 7, 6, 15, 15, 6,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 6, 6, 6, 6, 6, 6,
    6, 31, 31, 31, 31, 31, 31, 15, 15, 15, 15, 15, 15, 15, 15, 15,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6, 6, 6, 7, 15,
    7, 31, 31, 31, 31, 31, 31, 15, 15, 15, 15, 15, 15, 15, 15, 15,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6, 7, 6, 15, 0,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
};
// clang-format on

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* Returns eight bytes with their ASCII letters in lower case. The additions use each byte
 * without its top bit, so that no carry reaches the next byte. */
static uint64_t lower_block(uint64_t block)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    uint64_t low = block & ~tops;
    uint64_t from_a = low + ones * (0x80 - 'A'), beyond_z = low + ones * (0x7f - 'Z');
    uint64_t upper = (from_a ^ beyond_z) & ~block & tops;
    return block | upper >> 2;
}

/* Compares eight bytes. Most blocks are equal as they are, or differ in more than the bit
 * in which the cases of a letter differ. */
static bool same_block(const char *a, const char *b)
{
    const uint64_t cases = UINT64_C(0x2020202020202020);
    uint64_t left, right;
    memcpy(&left, a, 8);
    memcpy(&right, b, 8);
    return left == right ||
           (!((left ^ right) & ~cases) && lower_block(left) == lower_block(right));
}

bool sgi_http1_same_ignoring_case(sgi_str a, sgi_str b)
{
    size_t i = 0;
    if (a.n != b.n)
        return false;
    for (; i + 8 <= a.n; i += 8)
        if (!same_block(a.p + i, b.p + i))
            return false;
    /* compares the last eight bytes of the texts; some of these bytes were compared
     * before */
    if (i && i < a.n)
        return same_block(a.p + a.n - 8, b.p + b.n - 8);
    for (; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

sgi_str sgi_http1_trim(sgi_str text)
{
    while (text.n && (*text.p == ' ' || *text.p == '\t'))
        text = sgi_http1_skip(text, 1);
    while (text.n && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t'))
        text.n--;
    return text;
}

/* Eight bytes are checked at once: no byte may be below a blank, and no byte may be DEL.
 * A block that fails this check is checked again byte by byte, because a tab is
 * allowed. */
bool sgi_http1_is_value(sgi_str text)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    while (text.n >= 8) {
        uint64_t block;
        memcpy(&block, text.p, 8);
        uint64_t del = block ^ ones * 0x7f;
        uint64_t odd = ((block - ones * 0x20) & ~block) | ((del - ones) & ~del);
        if ((odd & tops) && sgi_http1_span((sgi_str){text.p, 8}, SGI_HTTP1_VALUE) < 8)
            return false;
        text = sgi_http1_skip(text, 8);
    }
    return sgi_http1_span(text, SGI_HTTP1_VALUE) == text.n;
}
