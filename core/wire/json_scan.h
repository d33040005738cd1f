/* Fast scanning for the JSON files: finding the next relevant byte, several bytes at a
 * time, and the tables for escapes and UTF-8. A block is 16 bytes with SSE2, otherwise 8
 * bytes in one integer (SGI_JSON_PLAIN selects the integer on every machine). A block
 * function returns a mask of the bytes that stop a scan. Only the lowest set bit of the
 * mask is reliable, and a scan uses only this bit. */
#ifndef SGI_JSON_SCAN_H
#define SGI_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__) && !defined(SGI_JSON_PLAIN)
#include <emmintrin.h>
#define SGI_JSON_SSE2 1
#endif

/* Loads 8 bytes as an integer. The first byte becomes the lowest bits on every machine.
 * Compilers turn this function into one load instruction. */
static inline uint64_t sgi_json_load8(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
           (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 |
           (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

#ifdef SGI_JSON_SSE2

#define SGI_JSON_BLOCK 16
typedef uint32_t sgi_json_mask; /* one bit for each byte of the block */

static inline size_t sgi_json_first(sgi_json_mask mask)
{
    return (size_t)__builtin_ctz(mask);
}

static inline __m128i sgi_json_load16(const unsigned char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline __m128i sgi_json_equal16(__m128i x, char c)
{
    return _mm_cmpeq_epi8(x, _mm_set1_epi8(c));
}

static inline sgi_json_mask sgi_json_bits16(__m128i x)
{
    return (sgi_json_mask)_mm_movemask_epi8(x);
}

/* Marks quotes, backslashes, control characters and non-ASCII bytes. Read as signed
 * bytes, control characters and non-ASCII bytes are less than a space. */
static inline sgi_json_mask sgi_json_block_special(const unsigned char *p)
{
    __m128i x = sgi_json_load16(p);
    __m128i marks = _mm_or_si128(sgi_json_equal16(x, '"'), sgi_json_equal16(x, '\\'));
    return sgi_json_bits16(_mm_or_si128(marks, _mm_cmpgt_epi8(_mm_set1_epi8(0x20), x)));
}

/* Marks quotes, backslashes and control characters. */
static inline sgi_json_mask sgi_json_block_escaped(const unsigned char *p)
{
    __m128i x = sgi_json_load16(p);
    __m128i marks = _mm_or_si128(sgi_json_equal16(x, '"'), sgi_json_equal16(x, '\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1f)), x);
    return sgi_json_bits16(_mm_or_si128(marks, control));
}

/* Marks quotes and backslashes. */
static inline sgi_json_mask sgi_json_block_quote(const unsigned char *p)
{
    __m128i x = sgi_json_load16(p);
    return sgi_json_bits16(
        _mm_or_si128(sgi_json_equal16(x, '"'), sgi_json_equal16(x, '\\')));
}

/* Marks quotes and brackets. Setting bit 5 of a byte turns [ into { and ] into }, and
 * turns no other byte into { or }. */
static inline sgi_json_mask sgi_json_block_bracket(const unsigned char *p)
{
    __m128i x = sgi_json_load16(p);
    __m128i folded = _mm_or_si128(x, _mm_set1_epi8(0x20));
    __m128i marks =
        _mm_or_si128(sgi_json_equal16(folded, '{'), sgi_json_equal16(folded, '}'));
    return sgi_json_bits16(_mm_or_si128(marks, sgi_json_equal16(x, '"')));
}

static inline sgi_json_mask sgi_json_block_wide(const unsigned char *p)
{
    return sgi_json_bits16(sgi_json_load16(p));
}

#else

#define SGI_JSON_BLOCK 8
/* the top bit of each byte of the mask marks the byte of the block at the same place */
typedef uint64_t sgi_json_mask;

#define SGI_JSON_ONES 0x0101010101010101u
#define SGI_JSON_TOPS 0x8080808080808080u

static inline size_t sgi_json_first(sgi_json_mask mask)
{
    return (size_t)__builtin_ctzll(mask) / 8;
}

/* Sets the top bit of each byte that equals c. The borrow of the subtraction can set
 * wrong bits, but only above a byte that equals c, so the lowest set bit is right. The
 * same holds for the subtractions in the functions below. */
static inline uint64_t sgi_json_equal8(uint64_t x, unsigned char c)
{
    uint64_t y = x ^ SGI_JSON_ONES * c;
    return (y - SGI_JSON_ONES) & ~y & SGI_JSON_TOPS;
}

static inline uint64_t sgi_json_control8(uint64_t x)
{
    return (x - SGI_JSON_ONES * 0x20) & ~x & SGI_JSON_TOPS;
}

static inline sgi_json_mask sgi_json_block_special(const unsigned char *p)
{
    uint64_t x = sgi_json_load8(p);
    return sgi_json_equal8(x, '"') | sgi_json_equal8(x, '\\') | sgi_json_control8(x) |
           (x & SGI_JSON_TOPS);
}

static inline sgi_json_mask sgi_json_block_escaped(const unsigned char *p)
{
    uint64_t x = sgi_json_load8(p);
    return sgi_json_equal8(x, '"') | sgi_json_equal8(x, '\\') | sgi_json_control8(x);
}

static inline sgi_json_mask sgi_json_block_quote(const unsigned char *p)
{
    uint64_t x = sgi_json_load8(p);
    return sgi_json_equal8(x, '"') | sgi_json_equal8(x, '\\');
}

static inline sgi_json_mask sgi_json_block_bracket(const unsigned char *p)
{
    uint64_t x = sgi_json_load8(p);
    uint64_t folded = x | SGI_JSON_ONES * 0x20;
    return sgi_json_equal8(folded, '{') | sgi_json_equal8(folded, '}') |
           sgi_json_equal8(x, '"');
}

static inline sgi_json_mask sgi_json_block_wide(const unsigned char *p)
{
    return sgi_json_load8(p) & SGI_JSON_TOPS;
}

#endif

/* Tests of a single byte, for the end of a text, where less than a block is left. */

static inline bool sgi_json_is_quote(unsigned char c)
{
    return c == '"' || c == '\\';
}

static inline bool sgi_json_is_escaped(unsigned char c)
{
    return c < 0x20 || sgi_json_is_quote(c);
}

static inline bool sgi_json_is_special(unsigned char c)
{
    return c >= 0x80 || sgi_json_is_escaped(c);
}

static inline bool sgi_json_is_bracket(unsigned char c)
{
    return c == '"' || (c | 0x20) == '{' || (c | 0x20) == '}';
}

static inline bool sgi_json_is_wide(unsigned char c)
{
    return c >= 0x80;
}

/* Returns the first byte that stops the scan, or `end`. The compiler inlines this
 * function together with `block` and `stops`, so a call is as fast as a loop written for
 * them. */
__attribute__((always_inline)) static inline const unsigned char *
sgi_json_scan(const unsigned char *p, const unsigned char *end,
              sgi_json_mask (*block)(const unsigned char *), bool (*stops)(unsigned char))
{
    while (end - p >= SGI_JSON_BLOCK) {
        sgi_json_mask mask = block(p);
        if (mask)
            return p + sgi_json_first(mask);
        p += SGI_JSON_BLOCK;
    }
    while (p < end && !stops(*p))
        p++;
    return p;
}

static inline bool sgi_json_is_space(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Skips white space. In compact text, one comparison shows that there is no white
 * space. */
static inline const unsigned char *sgi_json_skip_space(const unsigned char *p,
                                                       const unsigned char *end)
{
    if (p != end && *p > ' ')
        return p;
    while (p < end && sgi_json_is_space(*p))
        p++;
    return p;
}

/* Returns the value of a hexadecimal digit, or -1. */
static inline int sgi_json_hex(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the length of the UTF-8 sequence at p, whose first byte is not ASCII. Returns 0
 * when the sequence is invalid (Unicode, table 3-7: no overlong forms, no surrogates,
 * nothing over U+10FFFF). */
static inline size_t sgi_json_utf8_length(const unsigned char *p,
                                          const unsigned char *end)
{
    size_t left = (size_t)(end - p);
    unsigned char c = p[0];
    if (c < 0xe0)
        return c >= 0xc2 && left >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
    if (c < 0xf0) {
        if (left < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
            return 0;
        return (c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) ? 0 : 3;
    }
    if (c > 0xf4 || left < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 ||
        (p[3] & 0xc0) != 0x80)
        return 0;
    return (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f) ? 0 : 4;
}

#endif
