/* The functions that read the lines of a request head and check the whole head. The
 * functions are private to the files of http1 (see http1.h). All readers of header values
 * use the character classes. */
#ifndef SGI_HTTP1_HEAD_H
#define SGI_HTTP1_HEAD_H

#include "wire/http1.h"

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

/* Returns the text without surrounding blanks and tabs, which are not a part of a
 * header's value (RFC 9110 5.5). */
sgi_str sgi_http1_trim(sgi_str text);
/* True when the texts are equal, ignoring the case of ASCII letters. */
bool sgi_http1_same_ignoring_case(sgi_str a, sgi_str b);

/* Refuses the request: the parser reports BAD from now on. Always returns false. */
bool sgi_http1_refuse(sgi_http1 *parser, int32_t status, const char *problem);
/* Refuses the request as sgi_http1_refuse does, because the request exceeds a limit.
 * limit: the member of parser->limits that is exceeded, or NULL. */
bool sgi_http1_refuse_over_limit(sgi_http1 *parser, int32_t status, const char *problem,
                                 const size_t *limit);

/* sgi_http1_read_request_line and sgi_http1_read_header read one line of the head. `line`
 * is without its line end. Return false when the parser has refused the line. */
bool sgi_http1_read_request_line(sgi_http1 *parser, sgi_str line);
bool sgi_http1_read_header(sgi_http1 *parser, sgi_str line);
/* Checks a trailer line, which the parser then drops. The line must have the form of a
 * header, with a name that the parser does not recognise. Returns false when the parser
 * has refused the line. */
bool sgi_http1_read_trailer(sgi_http1 *parser, sgi_str line);
/* Checks target, host, framing, expectation and persistence of the request. Called at the
 * empty line that ends the head. Returns false when the parser has refused the head. */
bool sgi_http1_finish_head(sgi_http1 *parser);

#endif
