/* The framing of stdio: one message per line (2026-07-28 basic/transports/stdio). A
 * line that is whole in the input is not copied. A line over the limit is reported
 * once, with its beginning. It is skipped up to its newline, and reading continues
 * after it. */
#ifndef SGI_NDJSON_H
#define SGI_NDJSON_H

#include "base/buf.h"

typedef struct sgi_ndjson {
    sgi_buf partial; /* the beginning of a line whose newline has not arrived */
    size_t max_line;
    bool skipping; /* true = the reader is inside a line that is too long and is
                    * dropped */
    /* the last line was returned from `partial`, so the next call resets `partial` */
    bool given;
} sgi_ndjson;

typedef enum sgi_ndjson_event {
    SGI_NDJSON_MORE = 0, /* the input is used up */
    SGI_NDJSON_LINE,     /* *line is one message, without its newline; never empty */
    /* a line is over the limit; *line is its first max_line bytes, or empty when out of
     * memory */
    SGI_NDJSON_TOO_LONG,
    SGI_NDJSON_NOMEM /* there is no memory for the unfinished line; the line is skipped */
} sgi_ndjson_event;

void sgi_ndjson_init(sgi_ndjson *framing, const sgi_mem *mem, size_t max_line);
void sgi_ndjson_free(sgi_ndjson *framing);
/* Drops an incomplete line. It is called for a new connection. */
void sgi_ndjson_reset(sgi_ndjson *framing);
/* Reads the next event from *input and removes the read bytes. *line is valid until the
 * next call. */
sgi_ndjson_event sgi_ndjson_next(sgi_ndjson *framing, sgi_str *input, sgi_str *line);

#endif
