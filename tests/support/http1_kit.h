/* Drives for tests of the request reader. A row is read whole, byte by byte, cut in two
 * at every place, in random pieces, and with each allocation refused; what is said must
 * be the same every time. A program whose tests are set up by http1_set_up has one
 * counting allocator, and a test fails when it leaves anything behind. */
#ifndef HTTP1_KIT_H
#define HTTP1_KIT_H

#include "support/test_mem.h"
#include "wire/http1.h"

extern test_mem http1_mem;

int http1_set_up(void **state);
int http1_tear_down(void **state);

typedef struct http1_row {
    const char *name;
    sgi_str text;
    const char *expected; /* "METHOD path?query @host FLAGS [body] " ..., "!status" */
} http1_row;

#define ROW(name, text, expected)                                                        \
    {                                                                                    \
        name, SGI_STR_INIT(text), expected                                               \
    }

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST /mcp HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

/* limits may be NULL. */
void http1_every_way(const http1_row *row, const sgi_http1_limits *limits);
void http1_every_row(const http1_row *rows, size_t count);
#define EVERY(rows) http1_every_row(rows, sizeof(rows) / sizeof *(rows))

/* Starts a parser on a head that is good and complete; the caller frees it. */
void http1_read_head(sgi_http1 *parser, sgi_str head);

#endif
