/* Parses HTTP/1.1 requests (RFC 9112) and writes the bytes around an answer. The
 * parser is strict: it refuses a request that two readers could understand
 * differently, and the connection must then be closed. The parser has no socket and no
 * clock. Its owner calls it from one thread at a time.
 *
 *     while ((event = sgi_http1_next(parser, &input)) != SGI_HTTP1_MORE)
 *         HEAD   look at the head; answer early if needed (100, 401, ...)
 *         DONE   take the body, answer, sgi_http1_reset
 *         BAD    answer parser->status, close
 *
 * DONE may come without further input, so the loop runs until MORE. */
#ifndef SGI_HTTP1_H
#define SGI_HTTP1_H

#include "base/buf.h"

/* The headers that the parser recognises while reading, in the order of the length of
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

/* Limits of a request; 0 = the default. */
typedef struct sgi_http1_limits {
    /* bytes of the request line with its line end; default 8 KiB; a longer one: status
     * 414 */
    size_t max_request_line;
    /* bytes of request line and headers together; default 16 KiB; more: status 431 */
    size_t max_head;
    /* number of headers, and also of trailers; default 100; more: status 431 */
    size_t max_headers;
    size_t max_body; /* bytes of the body; default 4 MiB; more: status 413 */
} sgi_http1_limits;

/* Limits for all chunk extensions of one body together, and for all its trailers. */
#define SGI_HTTP1_MAX_EXTENSIONS 1024 /* bytes; more: status 400 */
#define SGI_HTTP1_MAX_TRAILERS 4096   /* bytes; more: status 431 */

#define SGI_HTTP1_MAX_METHOD 32 /* bytes of the method; more: status 501 */
/* number of empty lines before a request line; more: status 400 */
#define SGI_HTTP1_MAX_EMPTY_LINES 2

typedef enum sgi_http1_event {
    SGI_HTTP1_MORE = 0, /* the input is used up */
    SGI_HTTP1_HEAD,     /* the head is complete; reported once */
    SGI_HTTP1_DONE,     /* the body is complete; reported until the reset */
    SGI_HTTP1_BAD       /* the request is refused for `problem`; reported from then on */
} sgi_http1_event;

typedef enum sgi_http1_state {
    SGI_HTTP1_AT_START = 0, /* the request line is not read yet */
    SGI_HTTP1_AT_HEADER,
    SGI_HTTP1_AT_LENGTH, /* a body of known length is being read */
    SGI_HTTP1_AT_CHUNK,  /* the line with the size of a chunk is being read */
    SGI_HTTP1_AT_DATA,
    SGI_HTTP1_AT_DATA_END,
    SGI_HTTP1_AT_TRAILER,
    SGI_HTTP1_AT_END,
    SGI_HTTP1_AT_FAULT
} sgi_http1_state;

/* The positions of a header's name and value in the head. */
typedef struct sgi_http1_field {
    uint32_t name_at;
    uint32_t name_len;
    uint32_t value_at;
    uint32_t value_len;
} sgi_http1_field;

typedef struct sgi_http1 {
    /* The following members are valid from the event HEAD until the reset. */
    sgi_str method;
    sgi_str target; /* the request target as it was sent */
    sgi_str path;   /* the path of the target; never empty; "*" for OPTIONS * */
    sgi_str query;  /* the text after the question mark; p is NULL when there is none */
    /* the host with its port; p is NULL when an HTTP/1.0 request names none */
    sgi_str host;
    uint64_t content_length;
    bool is_chunked;
    bool expects_continue; /* the request has "Expect: 100-continue" and a body */
    bool keep_alive;
    unsigned char minor; /* the minor version: HTTP/1.minor */

    /* The body. It is complete at the event DONE. The caller may take the buffer and
     * leave an empty one. */
    sgi_buf body;

    /* The next members are set at the event BAD: the status to answer, and a text
     * about the fault, which stays valid after the reset. */
    int32_t status;
    const char *problem;
    const size_t *reached; /* the limit that was exceeded, as a member of `limits`;
                            * NULL = no limit was exceeded */

    /* The other members are private to http1.c and http1_head.c. */
    sgi_http1_state state;
    sgi_http1_limits limits;
    sgi_buf head;
    sgi_http1_field *fields;
    uint32_t field_count;
    uint32_t field_cap;
    /* position in the head of the line that is being read */
    uint32_t line_at;
    uint32_t repeated; /* has a bit for each known name that occurs more than once */
    /* for each known name, the index of its first header, plus 1; 0 = the header is
     * missing */
    uint16_t known[SGI_HTTP1_NAMES];
    bool says_close;
    bool says_keep_alive;
    unsigned char empty_lines;
    uint32_t extension_bytes;
    uint32_t trailer_bytes;
    uint32_t trailer_count;
    uint64_t left; /* number of bytes of the body or chunk that have not arrived yet */
    /* number of body bytes in `body`; an incomplete line may follow them */
    size_t received;
} sgi_http1;

/* Initialises a parser. limits: NULL = the defaults. Allocates nothing. */
void sgi_http1_init(sgi_http1 *parser, const sgi_mem *mem,
                    const sgi_http1_limits *limits);
void sgi_http1_free(sgi_http1 *parser);
/* Prepares the parser for the next request of the connection, and frees memory that
 * only a large request needs. Called at the event DONE. A parser at BAD stays at BAD. */
void sgi_http1_reset(sgi_http1 *parser);

/* Reads the next event from *input and removes the read bytes. Bytes after the request
 * stay in *input. */
sgi_http1_event sgi_http1_next(sgi_http1 *parser, sgi_str *input);

/* True when any byte of a request has arrived since the reset. It distinguishes a slow
 * request from an idle connection. */
bool sgi_http1_has_begun(const sgi_http1 *parser);

/* Returns the value of the first header with this name, without surrounding blanks; p
 * is NULL when there is no such header. Names are compared without case. */
sgi_str sgi_http1_header(const sgi_http1 *parser, sgi_http1_name name);
bool sgi_http1_is_repeated(const sgi_http1 *parser, sgi_http1_name name);
/* Returns the value of the first header with any name, by a search of the headers;
 * otherwise as sgi_http1_header. *count (count may be NULL) receives the number of
 * headers with this name. */
sgi_str sgi_http1_find(const sgi_http1 *parser, sgi_str name, size_t *count);
/* Returns header number i as it was sent. Returns false when the head has fewer
 * headers. */
bool sgi_http1_header_at(const sgi_http1 *parser, size_t i, sgi_str *name,
                         sgi_str *value);

/* ---- answers, in http1_write.c ---- */

/* Returns the reason phrase of a status. It is empty for an unknown status. */
sgi_str sgi_http1_reason(int32_t status);
void sgi_http1_add_status(sgi_buf *out, int32_t status);
/* Appends a header line. Appends nothing and returns false when the name is not a
 * token, or when the value has a control character. */
bool sgi_http1_add_header(sgi_buf *out, sgi_str name, sgi_str value);
void sgi_http1_add_header_uint(sgi_buf *out, sgi_str name, uint64_t value);
/* Appends the empty line that ends the head. */
void sgi_http1_add_head_end(sgi_buf *out);

/* Make one chunk of the bytes that are appended to `out` between open and close. The
 * position that open returns is passed to close as `place`. An empty chunk is removed,
 * because it would end the body. */
size_t sgi_http1_open_chunk(sgi_buf *out);
void sgi_http1_close_chunk(sgi_buf *out, size_t place);
void sgi_http1_add_last_chunk(sgi_buf *out);

#endif
