/* Parses HTTP/1.1 requests (RFC 9112) and writes the bytes around an answer. The
 * parser is strict: it refuses a request that two readers could understand
 * differently, and the connection must then be closed. The parser has no socket and no
 * clock. Only one thread at a time may use a parser.
 *
 *     while ((event = sgi_http1_next(parser, &input)) != SGI_HTTP1_MORE)
 *         HEAD   look at the head; answer early if needed (100, 401, ...)
 *         DONE   take the body, answer, sgi_http1_reset
 *         BAD    answer head.fault.status, close
 *
 * The event DONE can come without further input, so the loop runs until MORE. */
#ifndef SGI_HTTP1_H
#define SGI_HTTP1_H

#include "wire/http1_head.h"

/* maximum bytes of all chunk extensions of one body; the status beyond the limit is
 * 400 */
#define SGI_HTTP1_MAX_EXTENSIONS 1024
/* maximum bytes of all trailers of one body; the status beyond the limit is 431 */
#define SGI_HTTP1_MAX_TRAILERS 4096

/* maximum number of empty lines before a request line; the status beyond the limit is
 * 400 */
#define SGI_HTTP1_MAX_EMPTY_LINES 2

typedef enum sgi_http1_event {
    SGI_HTTP1_MORE = 0, /* the input is used up */
    SGI_HTTP1_HEAD,     /* the head is complete; reported once per request */
    /* the body is complete; reported again and again until the reset */
    SGI_HTTP1_DONE,
    /* the request is refused; `head.fault` has the reason; reported from then on */
    SGI_HTTP1_BAD
} sgi_http1_event;

typedef enum sgi_http1_state {
    SGI_HTTP1_AT_START = 0, /* the request line is not read yet */
    SGI_HTTP1_AT_HEADER,
    SGI_HTTP1_AT_GIVEN,  /* the head was filled by hand and is not reported yet */
    SGI_HTTP1_AT_LENGTH, /* a body of known length is being read */
    /* a body without framing is being read, until sgi_http1_end_body */
    SGI_HTTP1_AT_OPEN,
    SGI_HTTP1_AT_CHUNK, /* the line with the size of a chunk is being read */
    SGI_HTTP1_AT_DATA,
    SGI_HTTP1_AT_DATA_END,
    SGI_HTTP1_AT_TRAILER,
    SGI_HTTP1_AT_END
} sgi_http1_state;

typedef struct sgi_http1 {
    /* complete from the event HEAD until the reset. At the event BAD, head.fault says
     * why; its problem stays valid after the reset. */
    sgi_http1_head head;

    /* the body, complete at the event DONE; the caller may take the buffer and leave an
     * empty buffer */
    sgi_buf body;

    /* The remaining members are private to http1.c. */
    sgi_http1_state state;
    /* true = another HTTP server has removed the framing of the body, so a body without
     * Content-Length ends with sgi_http1_end_body */
    bool is_unframed;
    unsigned char empty_lines;
    /* position in the head's text at which the current line begins */
    uint32_t line_at;
    uint32_t extension_bytes;
    uint32_t trailer_bytes;
    uint32_t trailer_count;
    /* number of bytes of the body, or of the current chunk, that have not arrived yet */
    uint64_t left;
    /* number of bytes of the request's body in `body`; an incomplete line can follow
     * these bytes */
    size_t received;
} sgi_http1;

/* Initialises a parser. limits: NULL = the defaults. Allocates nothing. */
void sgi_http1_init(sgi_http1 *parser, const sgi_mem *mem,
                    const sgi_http1_limits *limits);
/* Frees the memory of a parser. A parser that waits for its next request can be used
 * again. */
void sgi_http1_free(sgi_http1 *parser);
/* Prepares the parser for the next request of the connection, and frees memory that only
 * a large request needs. Called at the event DONE. A parser that has reported BAD stays
 * at BAD. */
void sgi_http1_reset(sgi_http1 *parser);

/* Reads the next event from *input and removes the read bytes from *input. Bytes after
 * the request stay in *input. */
sgi_http1_event sgi_http1_next(sgi_http1 *parser, sgi_str *input);

/* Gives the parser a head that was filled by hand, and its buffers. The head of the
 * parser must be empty. The next event is HEAD, or BAD if the head was refused; input is
 * the body alone. */
void sgi_http1_take_head(sgi_http1 *parser, const sgi_http1_head *head);
/* Says that the input of a request whose head was filled by hand has ended: the next
 * event is DONE. A body that is shorter than its Content-Length is refused. */
void sgi_http1_end_body(sgi_http1 *parser);

/* True when at least one byte of a request has arrived since the reset, or a given head
 * was reported. The result distinguishes a slow request from an idle connection. */
bool sgi_http1_has_begun(const sgi_http1 *parser);

/* ---- answers, in http1_write.c ---- */

/* Returns the reason phrase of a status, or an empty text for an unknown status. */
sgi_str sgi_http1_reason(int32_t status);
void sgi_http1_add_status(sgi_buf *out, int32_t status);
/* Appends the empty line that ends the head. */
void sgi_http1_add_head_end(sgi_buf *out);

/* sgi_http1_open_chunk begins a chunk in `out`. The bytes that are then appended to `out`
 * become the chunk when sgi_http1_close_chunk is called; `place` is the result of open.
 * An empty chunk is removed, because it would end the body. */
size_t sgi_http1_open_chunk(sgi_buf *out);
void sgi_http1_close_chunk(sgi_buf *out, size_t place);
void sgi_http1_add_last_chunk(sgi_buf *out);

#endif
