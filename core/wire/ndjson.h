/* The framing of stdio: one message per line (2026-07-28 basic/transports/stdio). A line
 * that is whole in the input is not copied. A line over the limit is reported once, with
 * its beginning. The reader skips the line up to its newline and continues with the next
 * line. */
#ifndef SGI_NDJSON_H
#define SGI_NDJSON_H

#include "base/buf.h"

typedef struct sgi_ndjson {
    sgi_buf partial; /* the beginning of a line whose newline has not arrived */
    size_t max_line;
    bool skipping; /* true = the current line is too long, and its bytes are dropped */
    /* true = the last line was returned from `partial`, so the next call resets
     * `partial` */
    bool given;
} sgi_ndjson;

typedef enum sgi_ndjson_event {
    SGI_NDJSON_MORE = 0, /* the input is used up */
    SGI_NDJSON_LINE,     /* *line is one message, without its newline and never empty */
    /* a line is over the limit; *line has the first max_line bytes, or is empty when out
     * of memory */
    SGI_NDJSON_TOO_LONG,
    SGI_NDJSON_NOMEM /* out of memory for the unfinished line, which is skipped */
} sgi_ndjson_event;

void sgi_ndjson_init(sgi_ndjson *framing, const sgi_mem *mem, size_t max_line);
void sgi_ndjson_free(sgi_ndjson *framing);
/* Drops an incomplete line. Called for a new connection. */
void sgi_ndjson_reset(sgi_ndjson *framing);
/* Reads the next event from *input and removes the read bytes from *input. *line is valid
 * until the next call. */
sgi_ndjson_event sgi_ndjson_next(sgi_ndjson *framing, sgi_str *input, sgi_str *line);

#endif
