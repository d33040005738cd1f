/* A copy of the headers of a request, for code that reads them after the request. Making
 * a copy is cheap: the texts are cut, and the names become lower case, when the first
 * header is read. After that the copy never changes. The owner of a copy is responsible
 * for its memory, and for a lock around each function. */
#ifndef SGI_HTTP1_COPY_H
#define SGI_HTTP1_COPY_H

#include "wire/http1_head.h"

/* The entries of the headers come first, then the bytes of the head. */
typedef struct sgi_http1_copy {
    size_t count; /* number of headers */
    bool is_cut;
    size_t size; /* number of bytes of the copy, with this struct */
    sgi_http1_field fields[];
} sgi_http1_copy;

/* Returns the number of bytes that a copy of the headers needs. The head must be
 * complete. */
size_t sgi_http1_copy_size(const sgi_http1_head *head);
/* Fills a copy with sgi_http1_copy_size bytes. */
void sgi_http1_copy_fill(sgi_http1_copy *copy, const sgi_http1_head *head);
/* Gives header number i, counted from 0: its name in lower case, and its value. Both end
 * with a NUL. Returns false when there are fewer headers. */
bool sgi_http1_copy_header_at(sgi_http1_copy *copy, size_t i, sgi_str *name,
                              sgi_str *value);

#endif
