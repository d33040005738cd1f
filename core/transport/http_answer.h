/* The head of an HTTP answer, complete answers that the listener makes without the
 * engine, and the Date header. The code of this file does no input or output. */
#ifndef SGI_HTTP_ANSWER_H
#define SGI_HTTP_ANSWER_H

#include "wire/http1.h"
#include "wire/json_read.h"

/* A cached line "Date: ...\r\n", and the second for which the line was made. */
typedef struct sgi_http_date {
    int64_t second;
    size_t len;
    char line[64];
} sgi_http_date;

typedef enum sgi_http_type {
    SGI_HTTP_NOTHING = 0, /* the answer has no body, and no Content-Type */
    SGI_HTTP_JSON,
    SGI_HTTP_TEXT,
    SGI_HTTP_METRICS_TEXT,
    /* an event stream, which is sent in chunks or until the connection ends */
    SGI_HTTP_EVENTS
} sgi_http_type;

typedef struct sgi_http_answer_head {
    int32_t status;
    sgi_http_type type;
    /* the media type of a body with the type SGI_HTTP_NOTHING; NULL = it has none */
    const char *media_type;
    size_t length; /* length of the body in bytes; not used for an event stream */
    bool chunked;
    bool last; /* true = the connection is closed after this answer */
    /* true = the client speaks HTTP/1.0 and asked to keep the connection */
    bool says_keep;
    const char *session; /* value of the header Mcp-Session-Id; NULL = no such header */
    const char *server;  /* value of the header Dev-Segue-Server; NULL = no such header */
    const char *allow;   /* value of the header Allow; NULL = no such header */
    /* the origin whose pages may read the answer (CORS); empty = no CORS headers */
    sgi_str origin;
    bool preflight; /* true = the answer is for a CORS preflight request */
    /* the headers that the preflight request names; the answer lists those that are
     * allowed */
    sgi_str wanted;
    /* value of the header WWW-Authenticate; empty = an answer 401 has the value "Bearer",
     * and other answers have no such header */
    sgi_str challenge;
    /* value of the header Retry-After in seconds; 0 = the default: 1 for the statuses 429
     * and 503, no header for others */
    int32_t retry_s;
    /* with the status 308: the folder beside the path to which the client is sent; NULL =
     * no such header */
    const char *folder;
    /* true = the answer is of the task board: no cache keeps it, and no other page may
     * use it */
    bool is_guarded;
    /* true = pages of every origin may read the answer, and caches may store it */
    bool for_all;
} sgi_http_answer_head;

/* The maximum number of headers of one answer. */
#define SGI_HTTP_FIELDS 16

/* The head of an answer in parts. Names are in lower case; the texts stand in `text`,
 * each followed by a NUL. When text.failed is set, memory was short. */
typedef struct sgi_http_fields {
    int32_t status;
    uint32_t count;
    sgi_http1_field at[SGI_HTTP_FIELDS];
    sgi_buf text;
} sgi_http_fields;

/* Appends the head as HTTP/1.1. */
void sgi_http_add_head(sgi_buf *out, const sgi_http_answer_head *head,
                       sgi_http_date *date, int64_t wall_ms);

/* Fills empty fields, for another HTTP server that sends the answer: it dates the answer,
 * frames the body, and keeps or closes the connection. */
void sgi_http_list_head(sgi_http_fields *fields, const sgi_http_answer_head *head);

/* Appends a JSON-RPC error without an id to `out`. */
void sgi_http_add_problem(sgi_buf *out, int32_t code, const char *problem, sgi_json data);

#endif
