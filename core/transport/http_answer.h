/* The head of an answer, complete answers that the HTTP listener makes without the
 * engine, and the Date header. This code does no I/O. */
#ifndef SGI_HTTP_ANSWER_H
#define SGI_HTTP_ANSWER_H

#include "wire/http1.h"
#include "wire/json_read.h"

/* The line "Date: ...\r\n". The line is written anew when the second has changed. */
typedef struct sgi_http_date {
    int64_t second;
    size_t len;
    char line[64];
} sgi_http_date;

typedef enum sgi_http_type {
    SGI_HTTP_NOTHING = 0, /* no body, so no Content-Type */
    SGI_HTTP_JSON,
    SGI_HTTP_TEXT,
    SGI_HTTP_EVENTS /* an event stream: sent in chunks, or until the connection ends */
} sgi_http_type;

typedef struct sgi_http_answer_head {
    int32_t status;
    sgi_http_type type;
    size_t length; /* length of the body; not used for events */
    bool chunked;
    bool last;           /* the connection is closed after this answer */
    bool says_keep;      /* the client speaks HTTP/1.0 and wants to keep the connection */
    const char *session; /* value of Mcp-Session-Id, or NULL */
    const char *server;  /* value of Dev-Segue-Server, or NULL */
    const char *allow;   /* value of Allow, or NULL */
    sgi_str origin;      /* the origin that may read the answer (CORS); empty = none */
    bool preflight;      /* the answer is for a CORS preflight */
    /* the headers that the preflight request names; the answer lists the allowed ones
     * among them */
    sgi_str wanted;
    sgi_str challenge; /* value of WWW-Authenticate; when it is empty, a 401 has
                        * "Bearer" and other answers have no such header */
    int32_t retry_s;   /* value of Retry-After; 0 = none */
    bool for_all;      /* any origin may read the answer, and caches may store it */
} sgi_http_answer_head;

void sgi_http_add_head(sgi_buf *out, const sgi_http_answer_head *head,
                       sgi_http_date *date, int64_t wall_ms);

/* Appends a JSON-RPC error without an id. */
void sgi_http_add_problem(sgi_buf *out, int32_t code, const char *problem, sgi_json data);

#endif
