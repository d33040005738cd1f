/* The head of a request, in parts. It is filled in one of two ways:
 *
 *   - by the parser of HTTP/1.1 (http1.h), from lines
 *   - by hand, from the parts that another HTTP server has read:
 *         sgi_http1_head_begin, sgi_http1_head_add ..., sgi_http1_head_end
 *
 * Limits, names, repetitions, target, host and framing are checked by the same functions
 * in both ways. What these refuse is in `fault`. The texts of a head are copied into it.
 * Only one thread at a time may use a head. */
#ifndef SGI_HTTP1_HEAD_H
#define SGI_HTTP1_HEAD_H

#include "base/buf.h"

/* The headers that are recognised while a head is filled. They are sorted by the length
 * of their names. */
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

/* maximum bytes of the method; the status beyond the limit is 501 */
#define SGI_HTTP1_MAX_METHOD 32

/* The members of sgi_http1_limits. */
typedef enum sgi_http1_limit {
    SGI_HTTP1_NO_LIMIT = 0,
    SGI_HTTP1_MAX_LINE,
    SGI_HTTP1_MAX_HEAD,
    SGI_HTTP1_MAX_HEADERS,
    SGI_HTTP1_MAX_BODY
} sgi_http1_limit;

/* Why a request is refused. */
typedef struct sgi_http1_fault {
    int32_t status; /* the HTTP status of the answer; 0 = the request is good so far */
    const char *problem;     /* describes the fault; a constant */
    sgi_http1_limit reached; /* the limit that was exceeded */
} sgi_http1_fault;

/* Bits of sgi_http1_head.changed for headers whose names are not known, and for method,
 * target and version. */
#define SGI_HTTP1_OTHER_CHANGED (1u << SGI_HTTP1_NAMES)
#define SGI_HTTP1_REQUEST_CHANGED (1u << (SGI_HTTP1_NAMES + 1))

/* The positions of a header's name and value in the buffer `text`. */
typedef struct sgi_http1_field {
    uint32_t name_at;
    uint32_t name_len;
    uint32_t value_at;
    uint32_t value_len;
    sgi_http1_name known; /* SGI_HTTP1_NAMES when the name is not recognised */
} sgi_http1_field;

/* The head of the request before, in lines of HTTP/1.1. Its bytes are still in `text`,
 * and its headers in `fields`, beyond what belongs to the head that is being read. `size`
 * 0 = there is no such head. http1_repeat.c uses it. */
typedef struct sgi_http1_past {
    uint32_t size;   /* number of bytes in `text` */
    uint32_t fields; /* number of headers in `fields` */
} sgi_http1_past;

typedef struct sgi_http1_head {
    /* The members down to `minor` are valid when the head is complete. */
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
    sgi_http1_fault fault;
    sgi_http1_limits limits; /* without zeros */

    /* The remaining members are private to the files of http1. */
    sgi_buf text; /* the lines of the head, or its texts in a row */
    /* number of bytes that the head has in HTTP/1.1; counted by hand only */
    size_t size;
    sgi_http1_field *fields;
    uint32_t field_count;
    uint32_t field_cap;
    /* one bit for each known name; set = the header occurs more than once */
    uint32_t repeated;
    /* for each known name, the position of its first header in `fields`, counted from 1;
     * 0 = the request has no such header */
    uint16_t known[SGI_HTTP1_NAMES];
    bool says_close;
    bool says_keep_alive;
    /* what differs from the head of the request before: one bit for each known name, and
     * the bits below; all bits = there is no such head */
    uint32_t changed;
    /* true = `text` is not the lines of the head as they came, so no later head can be
     * compared with it */
    bool is_altered;
    sgi_http1_past past;
} sgi_http1_head;

/* Initialises a head. limits: NULL = the defaults. Allocates nothing. */
void sgi_http1_head_init(sgi_http1_head *head, const sgi_mem *mem,
                         const sgi_http1_limits *limits);
void sgi_http1_head_free(sgi_http1_head *head);
/* Prepares the head for the next request, and frees memory that only a large head needs.
 * The members of the head must not be used until it is complete again. */
void sgi_http1_head_reset(sgi_http1_head *head);

/* Returns the value of the first header with this name, without surrounding blanks. The
 * result's p is NULL when the request has no such header. Upper and lower case in names
 * do not matter. */
sgi_str sgi_http1_header(const sgi_http1_head *head, sgi_http1_name name);
bool sgi_http1_is_repeated(const sgi_http1_head *head, sgi_http1_name name);
/* Writes a NUL behind the value of a header, which overwrites the end of the line, and
 * returns the value. Called only while the head is complete. */
const char *sgi_http1_terminate(sgi_http1_head *head, sgi_str value);
/* Returns the value of the first header with any name, as sgi_http1_header does for a
 * known name. Searches all headers. *count (count may be NULL) receives the number of
 * headers with this name. */
sgi_str sgi_http1_find_header(const sgi_http1_head *head, sgi_str name, size_t *count);
/* Returns name and value of header number i, counted from 0, as they were sent. Returns
 * false when the request has fewer headers. */
bool sgi_http1_header_at(const sgi_http1_head *head, size_t i, sgi_str *name,
                         sgi_str *value);

/* ---- by hand ---- */

/* Begin, add and end fill a head of HTTP/1.1. `room` is the number of bytes that all
 * texts have together. Return false when the head is refused; then `fault` has the
 * reason. */
bool sgi_http1_head_begin(sgi_http1_head *head, sgi_str method, sgi_str target,
                          size_t room);
bool sgi_http1_head_add(sgi_http1_head *head, sgi_str name, sgi_str value);
bool sgi_http1_head_end(sgi_http1_head *head);

/* ---- private to the files of http1 ---- */

/* Refuses the request. Always returns false. */
bool sgi_http1_refuse(sgi_http1_head *head, int32_t status, const char *problem);
/* Refuses the request as sgi_http1_refuse does, because the request exceeds a limit. */
bool sgi_http1_refuse_over_limit(sgi_http1_head *head, int32_t status,
                                 const char *problem, sgi_http1_limit limit);
/* Notes method and target, whose bytes are allowed and which stand at the beginning of
 * `text` with one byte between them. */
bool sgi_http1_take_request(sgi_http1_head *head, size_t method_len, size_t target_len);
/* Notes a header whose bytes are allowed and stand in `text`. */
bool sgi_http1_take_header(sgi_http1_head *head, sgi_str name, sgi_str value);
/* Notes a header that stands already in `fields`, behind the noted headers. */
bool sgi_http1_note_field(sgi_http1_head *head);
/* Returns the known name, or SGI_HTTP1_NAMES when the name is none. */
sgi_http1_name sgi_http1_name_of(sgi_str name);

/* The next five functions are in http1_repeat.c. They read what the head before has,
 * too, without looking at its bytes again. */
/* Remembers the complete head as the head before. */
void sgi_http1_remember_head(sgi_http1_head *head);
/* What the beginning of a head repeats of the head before. */
typedef enum sgi_http1_repetition {
    SGI_HTTP1_REPEATS_NOTHING = 0,
    SGI_HTTP1_REPEATS_LINE, /* the request line */
    SGI_HTTP1_REPEATS_HEAD  /* the whole head */
} sgi_http1_repetition;
/* Begins a head. Takes from *input what it repeats. */
sgi_http1_repetition sgi_http1_repeat_start(sgi_http1_head *head, sgi_str *input);
/* Takes a line from *input if it repeats the line at the same place of the head
 * before. */
bool sgi_http1_repeat_line(sgi_http1_head *head, sgi_str *input);
/* Notes that the next header is not taken from the head before. */
void sgi_http1_note_change(sgi_http1_head *head, sgi_http1_name known);
/* Notes which headers of the head before are missing in the complete head. */
void sgi_http1_note_missing(sgi_http1_head *head);

/* The next three functions are in http1_lines.c. They read one line of HTTP/1.1, which
 * stands in `text` and is here without its line end. Return false when the line is
 * refused. */
bool sgi_http1_read_request_line(sgi_http1_head *head, sgi_str line);
bool sgi_http1_read_header(sgi_http1_head *head, sgi_str line);
/* Checks a trailer line, which is then dropped. The line must have the form of a header,
 * with a name that is not recognised. number: of the trailer, counted from 1. */
bool sgi_http1_read_trailer(sgi_http1_head *head, sgi_str line, size_t number);

#endif
