/* The lines of a request head, one by one, and what the whole head means: for the files
 * of http1, see http1.h. Who reads the value of a header has its alphabet from here. */
#ifndef SGI_HTTP1_HEAD_H
#define SGI_HTTP1_HEAD_H

#include "wire/http1.h"

/* What a byte may be part of. */
#define SGI_HTTP1_TOKEN 1u  /* methods, header names (RFC 9110 5.6.2) */
#define SGI_HTTP1_VALUE 2u  /* header values: visible, blank, tab, beyond ASCII */
#define SGI_HTTP1_TARGET 4u /* visible ASCII but the mark of a fragment */
#define SGI_HTTP1_REG 8u    /* host names: letters, digits, - . _ ~ */
#define SGI_HTTP1_HEX 16u
#define SGI_HTTP1_DIGIT 32u

extern const unsigned char sgi_http1_class[256];

static inline bool sgi_http1_is(char c, unsigned what)
{
    return (sgi_http1_class[(unsigned char)c] & what) != 0;
}

/* How many of the first bytes are of this class. */
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

/* Without the blanks and tabs around it, which are no part of a value (RFC 9110 5.5). */
sgi_str sgi_http1_trim(sgi_str text);
/* Equal but for the case of ASCII letters. */
bool sgi_http1_same(sgi_str a, sgi_str b);

/* Turns the parser bad. Always false. */
bool sgi_http1_refuse(sgi_http1 *parser, int32_t status, const char *problem);
/* The same, because a limit is exceeded: one of the parser's limits, or NULL. */
bool sgi_http1_refuse_beyond(sgi_http1 *parser, int32_t status, const char *problem,
                             const size_t *limit);

/* Each takes a line of the head without its end; false when it was refused. */
bool sgi_http1_read_request_line(sgi_http1 *parser, sgi_str line);
bool sgi_http1_read_header(sgi_http1 *parser, sgi_str line);
/* A line that is dropped, but has to be a header, and none of those that are known. */
bool sgi_http1_read_trailer(sgi_http1 *parser, sgi_str line);
/* At the empty line: target, host, framing, expectation and persistence. */
bool sgi_http1_finish_head(sgi_http1 *parser);

#endif
