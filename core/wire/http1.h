/* HTTP/1.1 requests out of bytes (RFC 9112), and the bytes around an answer. Strict:
 * what two readers could understand differently is refused, and after that the
 * connection has to be closed. Knows no socket and no clock; whoever owns the parser
 * calls it, on one thread at a time.
 *
 *     while ((event = sgi_http1_next(parser, &input)) != SGI_HTTP1_MORE)
 *         HEAD   look at the head; answer early if it must be (100, 401, ...)
 *         DONE   take the body, answer, sgi_http1_reset
 *         BAD    answer parser->status, close
 *
 * DONE comes without further input, so the loop runs until MORE. */
#ifndef SGI_HTTP1_H
#define SGI_HTTP1_H

#include "base/buf.h"

/* Headers that are recognized while they are read, shortest first. */
typedef enum sgi_http1_name {
    SGI_HTTP1_HOST = 0,
    SGI_HTTP1_ACCEPT,
    SGI_HTTP1_EXPECT,
    SGI_HTTP1_ORIGIN,
    SGI_HTTP1_MCP_NAME,
    SGI_HTTP1_CONNECTION,
    SGI_HTTP1_MCP_METHOD,
    SGI_HTTP1_CONTENT_TYPE,
    SGI_HTTP1_AUTHORIZATION,
    SGI_HTTP1_LAST_EVENT_ID,
    SGI_HTTP1_CONTENT_LENGTH,
    SGI_HTTP1_MCP_SESSION_ID,
    SGI_HTTP1_TRANSFER_ENCODING,
    SGI_HTTP1_MCP_PROTOCOL_VERSION,
    SGI_HTTP1_NAMES /* how many; also: a name that is none of these */
} sgi_http1_name;

/* 0 stands for the default. */
typedef struct sgi_http1_limits {
    size_t max_request_line; /* with its end; 8 KiB, beyond: 414 */
    size_t max_head;         /* request line and headers; 16 KiB, beyond: 431 */
    size_t max_headers;      /* 100, beyond: 431; trailers count anew */
    size_t max_body;         /* 4 MiB, beyond: 413 */
} sgi_http1_limits;

/* Of all chunks and of the trailer section of one body. */
#define SGI_HTTP1_MAX_EXTENSIONS 1024 /* beyond: 400 */
#define SGI_HTTP1_MAX_TRAILERS 4096   /* beyond: 431 */

#define SGI_HTTP1_MAX_METHOD 32     /* beyond: 501 */
#define SGI_HTTP1_MAX_EMPTY_LINES 2 /* before a request line; beyond: 400 */

typedef enum sgi_http1_event {
    SGI_HTTP1_MORE = 0, /* the input is used up */
    SGI_HTTP1_HEAD,     /* the head is complete; said once */
    SGI_HTTP1_DONE,     /* the body is complete; said until the reset */
    SGI_HTTP1_BAD       /* status and problem say why; said for ever */
} sgi_http1_event;

typedef enum sgi_http1_state {
    SGI_HTTP1_AT_START = 0, /* empty lines or a request line */
    SGI_HTTP1_AT_HEADER,
    SGI_HTTP1_AT_LENGTH, /* a body of known length */
    SGI_HTTP1_AT_CHUNK,  /* the line with the size of a chunk */
    SGI_HTTP1_AT_DATA,
    SGI_HTTP1_AT_DATA_END,
    SGI_HTTP1_AT_TRAILER,
    SGI_HTTP1_AT_END,
    SGI_HTTP1_AT_FAULT
} sgi_http1_state;

/* A header: where its name and value lie in the head. */
typedef struct sgi_http1_field {
    uint32_t name_at;
    uint32_t name_len;
    uint32_t value_at;
    uint32_t value_len;
} sgi_http1_field;

typedef struct sgi_http1 {
    /* From HEAD until the reset. */
    sgi_str method;
    sgi_str target; /* as it was sent */
    sgi_str path;   /* never empty; "*" for OPTIONS * */
    sgi_str query;  /* behind the question mark; p is NULL when there is none */
    sgi_str host;   /* with its port; p is NULL when 1.0 names none */
    uint64_t content_length;
    bool is_chunked;
    bool expects_continue; /* and there is a body to come */
    bool keep_alive;
    unsigned char minor; /* of HTTP/1.x */

    /* At DONE. The caller may take the buffer and leave an empty one. */
    sgi_buf body;

    /* At BAD: what to answer, and a text that lives for ever. */
    int32_t status;
    const char *problem;
    const size_t *reached; /* of limits: the one that is exceeded; NULL = none of them */

    /* The rest is for http1.c and http1_head.c. */
    sgi_http1_state state;
    sgi_http1_limits limits;
    sgi_buf head;
    sgi_http1_field *fields;
    uint32_t field_count;
    uint32_t field_cap;
    uint32_t line_at;                /* where the line being read begins in the head */
    uint32_t repeated;               /* a bit per name that occurs again */
    uint16_t known[SGI_HTTP1_NAMES]; /* 1 + index of the first, 0 when missing */
    bool says_close;
    bool says_keep_alive;
    unsigned char empty_lines;
    uint32_t extension_bytes;
    uint32_t trailer_bytes;
    uint32_t trailer_count;
    uint64_t left;   /* bytes of the body or chunk that have not come */
    size_t received; /* bytes of the body; behind them may lie a torn line */
} sgi_http1;

/* limits may be NULL. Allocates nothing. */
void sgi_http1_init(sgi_http1 *parser, const sgi_mem *mem,
                    const sgi_http1_limits *limits);
void sgi_http1_free(sgi_http1 *parser);
/* At DONE: ready for the next request of the connection; gives back what only a large
 * request needs. A parser that is bad stays bad. */
void sgi_http1_reset(sgi_http1 *parser);

/* Takes the next event out of *input and shortens it. What follows the request is left
 * in the input. */
sgi_http1_event sgi_http1_next(sgi_http1 *parser, sgi_str *input);

/* Has a byte of a request come since the reset? Tells a slow request from idleness. */
bool sgi_http1_has_begun(const sgi_http1 *parser);

/* The value of the first such header, without blanks around it; p is NULL when there is
 * none. Names are compared without case. */
sgi_str sgi_http1_header(const sgi_http1 *parser, sgi_http1_name name);
bool sgi_http1_is_repeated(const sgi_http1 *parser, sgi_http1_name name);
/* The same for any name, by a search; *count (may be NULL) tells how often it occurs. */
sgi_str sgi_http1_find(const sgi_http1 *parser, sgi_str name, size_t *count);
/* Header number i as it was sent; false behind the last. */
bool sgi_http1_header_at(const sgi_http1 *parser, size_t i, sgi_str *name,
                         sgi_str *value);

/* ---- answers, in http1_write.c ---- */

/* The reason phrase of a status; empty when it is not known. */
sgi_str sgi_http1_reason(int32_t status);
void sgi_http1_add_status(sgi_buf *out, int32_t status);
/* A header line. False, and nothing is added, when the name is no token or the value
 * could end the line or holds another control character. */
bool sgi_http1_add_header(sgi_buf *out, sgi_str name, sgi_str value);
void sgi_http1_add_header_uint(sgi_buf *out, sgi_str name, uint64_t value);
/* The empty line. */
void sgi_http1_add_head_end(sgi_buf *out);

/* A chunk around what is appended to out between these two; the place is handed on. One
 * that stayed empty vanishes: it would end the body. */
size_t sgi_http1_open_chunk(sgi_buf *out);
void sgi_http1_close_chunk(sgi_buf *out, size_t place);
void sgi_http1_add_last_chunk(sgi_buf *out);

#endif
