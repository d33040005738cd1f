/* Framing of stdio: one message per line (2026-07-28 basic/transports/stdio). Lines that
 * lie whole in the input are handed on without a copy. A line over the limit is reported
 * once, with its beginning, and skipped up to its newline; what follows is read as
 * usual. */
#ifndef SGI_NDJSON_H
#define SGI_NDJSON_H

#include "base/buf.h"

typedef struct sgi_ndjson {
    sgi_buf partial; /* the beginning of a line whose end has not come */
    size_t max_line;
    bool skipping; /* inside a line that is too long */
    bool given;    /* partial was handed out: the next call resets it */
} sgi_ndjson;

typedef enum sgi_ndjson_event {
    SGI_NDJSON_MORE = 0, /* the input is used up */
    SGI_NDJSON_LINE,     /* *line is one message, without its newline; never empty */
    SGI_NDJSON_TOO_LONG, /* a line is over the limit; *line is its first max_line bytes,
                          * empty when there is no memory for them */
    SGI_NDJSON_NOMEM     /* the partial line cannot be kept; it is skipped */
} sgi_ndjson_event;

void sgi_ndjson_init(sgi_ndjson *framing, const sgi_mem *mem, size_t max_line);
void sgi_ndjson_free(sgi_ndjson *framing);
/* Forgets a torn line: the connection is a new one. */
void sgi_ndjson_reset(sgi_ndjson *framing);
/* Takes the next event out of *input and shortens it. *line is valid until the next
 * call. */
sgi_ndjson_event sgi_ndjson_next(sgi_ndjson *framing, sgi_str *input, sgi_str *line);

#endif
