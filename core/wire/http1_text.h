/* The bytes of HTTP heads: character classes, and texts whose case does not matter. All
 * readers of header values use the character classes. */
#ifndef SGI_HTTP1_TEXT_H
#define SGI_HTTP1_TEXT_H

#include "base/base.h"

/* The character classes. Each class is one bit, for one kind of text in which a byte may
 * occur. */
#define SGI_HTTP1_TOKEN 1u /* bytes of methods and header names (RFC 9110 5.6.2) */
/* bytes of header values: visible ASCII, blank, tab, and bytes beyond ASCII */
#define SGI_HTTP1_VALUE 2u
#define SGI_HTTP1_TARGET 4u /* bytes of a request target: visible ASCII except '#' */
#define SGI_HTTP1_REG 8u    /* bytes of host names: letters, digits, - . _ ~ */
#define SGI_HTTP1_HEX 16u
#define SGI_HTTP1_DIGIT 32u

extern const unsigned char sgi_http1_class[256];

static inline bool sgi_http1_is(char c, unsigned what)
{
    return (sgi_http1_class[(unsigned char)c] & what) != 0;
}

/* Returns the number of bytes at the beginning of the text that belong to this class. */
static inline size_t sgi_http1_span(sgi_str text, unsigned what)
{
    size_t n = 0;
    while (n < text.n && sgi_http1_is(text.p[n], what))
        n++;
    return n;
}

static inline sgi_str sgi_http1_skip(sgi_str text, size_t n)
{
    return (sgi_str){text.p + n, text.n - n};
}

/* True when all bytes are allowed in a header value. */
bool sgi_http1_is_value(sgi_str text);
/* Returns the text without surrounding blanks and tabs, which are not a part of a
 * header's value (RFC 9110 5.5). */
sgi_str sgi_http1_trim(sgi_str text);
/* True when the texts are equal, ignoring the case of ASCII letters. */
bool sgi_http1_same_ignoring_case(sgi_str a, sgi_str b);

#endif
