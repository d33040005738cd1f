/* Functions that feed the request reader in tests. A row is read whole, byte by byte, cut
 * in two at every offset, in random pieces, and with each allocation refused. The result
 * must be the same every time. A program whose tests use http1_set_up has one counting
 * allocator, and a test fails when it leaves memory behind. */
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

/* Feeds a parser a valid, complete head; the caller frees the parser. */
void http1_read_head(sgi_http1 *parser, sgi_str head);

#endif
