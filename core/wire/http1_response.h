/* Reads the responses of one HTTP/1.1 connection (RFC 9112), for a client. The reader
 * has no socket and no clock. It allocates nothing: the header lines go into a buffer of
 * the caller, and the bytes of the body stay where they are. Only one thread at a time
 * may use a reader.
 *
 *     until sgi_http1_response_next(reader, &input) returns MORE:
 *         HEAD   look at status and header lines
 *         BYTES  take reader->bytes
 *         DONE   sgi_http1_response_begin for the next response, or close
 *         BAD    close; reader->problem has the reason
 *
 * The reader is strict about the framing of the body, because a wrong end of a response
 * would be taken for the beginning of the next one. It is lenient about line ends: a line
 * may end with LF alone. Provisional responses (status below 200) are skipped. */
#ifndef SGI_HTTP1_RESPONSE_H
#define SGI_HTTP1_RESPONSE_H

#include "base/buf.h"

typedef enum sgi_http1_response_event {
    SGI_HTTP1_RESPONSE_MORE = 0, /* the input is used up */
    SGI_HTTP1_RESPONSE_HEAD,     /* the head is complete; reported once per response */
    SGI_HTTP1_RESPONSE_BYTES,    /* `bytes` has the next piece of the body */
    SGI_HTTP1_RESPONSE_DONE,     /* the response is complete; reported from then on */
    SGI_HTTP1_RESPONSE_BAD       /* the response is refused; reported from then on */
} sgi_http1_response_event;

typedef enum sgi_http1_response_state {
    SGI_HTTP1_RESPONSE_AT_STATUS = 0, /* the status line is being read */
    SGI_HTTP1_RESPONSE_AT_HEADER,
    SGI_HTTP1_RESPONSE_AT_LENGTH, /* a body of known length is being read */
    SGI_HTTP1_RESPONSE_AT_OPEN,   /* the body ends with the connection */
    SGI_HTTP1_RESPONSE_AT_SIZE,   /* the digits of a chunk's size are being read */
    SGI_HTTP1_RESPONSE_AT_EXTENSION,
    SGI_HTTP1_RESPONSE_AT_DATA,
    SGI_HTTP1_RESPONSE_AT_DATA_END,
    SGI_HTTP1_RESPONSE_AT_TRAILER,
    SGI_HTTP1_RESPONSE_AT_END,
    SGI_HTTP1_RESPONSE_AT_FAULT
} sgi_http1_response_state;

typedef enum sgi_http1_response_fault {
    SGI_HTTP1_RESPONSE_MALFORMED = 0, /* the input is not a valid response */
    SGI_HTTP1_RESPONSE_TOO_LARGE,     /* the heads exceed the limit */
    SGI_HTTP1_RESPONSE_NOMEM,
    SGI_HTTP1_RESPONSE_CUT_OFF /* the connection ended within the response */
} sgi_http1_response_fault;

typedef struct sgi_http1_response {
    /* valid from the event HEAD on */
    int32_t status;
    /* true = the connection can be used for another request after the event DONE */
    bool keep_alive;
    /* set at the event BYTES: a piece of the body, as a view of the input */
    sgi_str bytes;
    /* set at the event BAD: `problem` is a constant text */
    sgi_http1_response_fault fault;
    const char *problem;

    /* The remaining members are private to http1_response.c. */
    sgi_http1_response_state state;
    sgi_buf *head;
    size_t line_at;    /* position in *head at which the current line begins */
    size_t head_bytes; /* number of bytes that count for head_max so far */
    size_t head_max;
    uint64_t left;        /* bytes of the body or of the chunk that have not arrived */
    uint32_t line_bytes;  /* bytes of chunk extensions, or of trailers, so far */
    unsigned char digits; /* digits of the chunk's size so far */
    unsigned char minor;  /* the minor version of HTTP/1 */
    bool has_begun;       /* true = at least one byte of the response has arrived */
    bool has_length;
    bool is_chunked;
    bool says_close;
    bool says_keep_alive;
    bool is_framing;    /* true = the last header line decides about the framing */
    bool is_line_empty; /* true = the trailer line has no character yet */
} sgi_http1_response;

/* Prepares the reader for a response. head: the buffer that receives the header lines as
 * they come; it is emptied, and must exist until the event HEAD. head_max: maximum number
 * of bytes of the header lines; the heads of provisional responses count as a whole. */
void sgi_http1_response_begin(sgi_http1_response *reader, sgi_buf *head, size_t head_max);
/* Reads the next event from *input and removes the read bytes from *input. */
sgi_http1_response_event sgi_http1_response_next(sgi_http1_response *reader,
                                                 sgi_str *input);
/* Tells the reader that the connection has ended. Returns DONE when the response is
 * complete, and BAD when it was cut off. */
sgi_http1_response_event sgi_http1_response_end(sgi_http1_response *reader);

#endif
