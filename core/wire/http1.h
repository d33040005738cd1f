/* Parses HTTP/1.1 requests (RFC 9112) and writes the bytes around an answer. The
 * parser is strict: it refuses a request that two readers could understand
 * differently, and the connection must then be closed. The parser has no socket and no
 * clock. Only one thread at a time may use a parser.
 *
 *     while ((event = sgi_http1_next(parser, &input)) != SGI_HTTP1_MORE)
 *         HEAD   look at the head; answer early if needed (100, 401, ...)
 *         DONE   take the body, answer, sgi_http1_reset
 *         BAD    answer parser->status, close
 *
 * The event DONE can come without further input, so the loop runs until MORE. */
#ifndef SGI_HTTP1_H
#define SGI_HTTP1_H

#include "base/buf.h"

/* The headers that the parser recognises while it reads. They are sorted by the length of
 * their names. */
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
    SGI_HTTP1_NAMES /* the number of names; also stands for an unknown name */
} sgi_http1_name;

/* The limits of a request; 0 = the default of the limit. */
typedef struct sgi_http1_limits {
    /* maximum bytes of the request line, including its line end; default 8 KiB; the
     * status beyond the limit is 414 */
    size_t max_request_line;
    /* maximum bytes of request line and headers together; default 16 KiB; the status
     * beyond the limit is 431 */
    size_t max_head;
    /* maximum number of headers, and also of trailers; default 100; the status beyond the
     * limit is 431 */
    size_t max_headers;
    /* maximum bytes of the body; default 4 MiB; the status beyond the limit is 413 */
    size_t max_body;
} sgi_http1_limits;

/* maximum bytes of all chunk extensions of one body; the status beyond the limit is
 * 400 */
#define SGI_HTTP1_MAX_EXTENSIONS 1024
/* maximum bytes of all trailers of one body; the status beyond the limit is 431 */
#define SGI_HTTP1_MAX_TRAILERS 4096

/* maximum bytes of the method; the status beyond the limit is 501 */
#define SGI_HTTP1_MAX_METHOD 32
/* maximum number of empty lines before a request line; the status beyond the limit is
 * 400 */
#define SGI_HTTP1_MAX_EMPTY_LINES 2

typedef enum sgi_http1_event {
    SGI_HTTP1_MORE = 0, /* the input is used up */
    SGI_HTTP1_HEAD,     /* the head is complete; reported once per request */
    /* the body is complete; reported again and again until the reset */
    SGI_HTTP1_DONE,
    /* the request is refused; `problem` has the reason; reported from then on */
    SGI_HTTP1_BAD
} sgi_http1_event;

typedef enum sgi_http1_state {
    SGI_HTTP1_AT_START = 0, /* the request line is not read yet */
    SGI_HTTP1_AT_HEADER,
    SGI_HTTP1_AT_LENGTH, /* a body of known length is being read */
    /* a body without framing is being read, until sgi_http1_end_body */
    SGI_HTTP1_AT_OPEN,
    SGI_HTTP1_AT_CHUNK, /* the line with the size of a chunk is being read */
    SGI_HTTP1_AT_DATA,
    SGI_HTTP1_AT_DATA_END,
    SGI_HTTP1_AT_TRAILER,
    SGI_HTTP1_AT_END,
    SGI_HTTP1_AT_FAULT
} sgi_http1_state;

/* The positions of a header's name and value in the buffer `head`. */
typedef struct sgi_http1_field {
    uint32_t name_at;
    uint32_t name_len;
    uint32_t value_at;
    uint32_t value_len;
} sgi_http1_field;

typedef struct sgi_http1 {
    /* The members down to `minor` are valid from the event HEAD until the reset. */
    sgi_str method;
    sgi_str target; /* the request target, unchanged */
    sgi_str path;   /* the path of the target, never empty; "*" for "OPTIONS *" */
    /* the query after the question mark; p is NULL when the target has no query */
    sgi_str query;
    /* the host with its port; p is NULL when an HTTP/1.0 request names no host */
    sgi_str host;
    uint64_t content_length;
    bool is_chunked;
    /* true = the request has a body and the header "Expect: 100-continue" */
    bool expects_continue;
    bool keep_alive;
    unsigned char minor; /* the minor version of HTTP/1: 0 or 1 */

    /* true = another HTTP server has removed the framing of the body. Then a body without
     * Content-Length ends with sgi_http1_end_body. Set before the first input. */
    bool is_unframed;

    /* the body, complete at the event DONE; the caller may take the buffer and leave an
     * empty buffer */
    sgi_buf body;

    /* status, problem and reached are set at the event BAD: status is the HTTP status of
     * the answer; problem describes the fault, and stays valid after the reset. */
    int32_t status;
    const char *problem;
    /* the member of `limits` that was exceeded; NULL = no limit was exceeded */
    const size_t *reached;

    /* The remaining members are private to http1.c and http1_head.c. */
    sgi_http1_state state;
    sgi_http1_limits limits;
    sgi_buf head;
    sgi_http1_field *fields;
    uint32_t field_count;
    uint32_t field_cap;
    /* position in `head` at which the current line begins */
    uint32_t line_at;
    /* one bit for each known name; set = the header occurs more than once */
    uint32_t repeated;
    /* for each known name, the position of its first header in `fields`, counted from 1;
     * 0 = the request has no such header */
    uint16_t known[SGI_HTTP1_NAMES];
    bool says_close;
    bool says_keep_alive;
    unsigned char empty_lines;
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

/* Ends a body without framing: the next event is DONE. A body that is shorter than its
 * Content-Length is refused. For a parser with is_unframed. */
void sgi_http1_end_body(sgi_http1 *parser);

/* True when at least one byte of a request has arrived since the reset. The result
 * distinguishes a slow request from an idle connection. */
bool sgi_http1_has_begun(const sgi_http1 *parser);

/* Returns the value of the first header with this name, without surrounding blanks. The
 * result's p is NULL when the request has no such header. Upper and lower case in names
 * do not matter. */
sgi_str sgi_http1_header(const sgi_http1 *parser, sgi_http1_name name);
bool sgi_http1_is_repeated(const sgi_http1 *parser, sgi_http1_name name);
/* Returns the value of the first header with any name, as sgi_http1_header does for a
 * known name. Searches all headers. *count (count may be NULL) receives the number of
 * headers with this name. */
sgi_str sgi_http1_find_header(const sgi_http1 *parser, sgi_str name, size_t *count);
/* Returns name and value of header number i, counted from 0, as they were sent. Returns
 * false when the request has fewer headers. */
bool sgi_http1_header_at(const sgi_http1 *parser, size_t i, sgi_str *name,
                         sgi_str *value);

/* ---- answers, in http1_write.c ---- */

/* Returns the reason phrase of a status, or an empty text for an unknown status. */
sgi_str sgi_http1_reason(int32_t status);
void sgi_http1_add_status(sgi_buf *out, int32_t status);
/* Appends a header line. Appends nothing and returns false when the name is not a
 * token, or when the value has a control character. */
bool sgi_http1_add_header(sgi_buf *out, sgi_str name, sgi_str value);
void sgi_http1_add_header_uint(sgi_buf *out, sgi_str name, uint64_t value);
/* Appends the empty line that ends the head. */
void sgi_http1_add_head_end(sgi_buf *out);

/* sgi_http1_open_chunk begins a chunk in `out`. The bytes that are then appended to `out`
 * become the chunk when sgi_http1_close_chunk is called; `place` is the result of open.
 * An empty chunk is removed, because it would end the body. */
size_t sgi_http1_open_chunk(sgi_buf *out);
void sgi_http1_close_chunk(sgi_buf *out, size_t place);
void sgi_http1_add_last_chunk(sgi_buf *out);

#endif
