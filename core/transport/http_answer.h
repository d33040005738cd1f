/* The bytes in front of an answer, whole answers that the server gives by itself, and the
 * clock that dates them. Sans-IO. */
#ifndef SGI_HTTP_ANSWER_H
#define SGI_HTTP_ANSWER_H

#include "wire/http1.h"
#include "wire/json_read.h"

/* "Date: ...\r\n", made anew once per second. */
typedef struct sgi_http_date {
    int64_t second;
    size_t len;
    char line[64];
} sgi_http_date;

typedef enum sgi_http_type {
    SGI_HTTP_NOTHING = 0, /* no body, and no type */
    SGI_HTTP_JSON,
    SGI_HTTP_TEXT,
    SGI_HTTP_EVENTS /* until the connection ends, or chunked */
} sgi_http_type;

typedef struct sgi_http_answer_head {
    int32_t status;
    sgi_http_type type;
    size_t length; /* of the body; not of events */
    bool chunked;
    bool last;           /* the connection is closed behind it */
    bool says_keep;      /* the client is one of HTTP/1.0 and wants to go on */
    const char *session; /* Mcp-Session-Id, or NULL */
    const char *server;  /* Dev-Segue-Server, or NULL */
    const char *allow;   /* or NULL */
    sgi_str origin;      /* whom CORS lets read it; empty = nobody */
    bool preflight;      /* ... and asks what it may send: */
    sgi_str wanted;      /* such headers; the allowed ones among them are named */
    sgi_str challenge;   /* WWW-Authenticate; empty = none, of 401: "Bearer" */
    int32_t retry_s;     /* Retry-After; 0 = none */
    bool for_all;        /* anybody's page may read it, and caches keep it */
} sgi_http_answer_head;

void sgi_http_add_head(sgi_buf *out, const sgi_http_answer_head *head,
                       sgi_http_date *date, int64_t wall_ms);

/* A JSON-RPC error without an id. */
void sgi_http_add_problem(sgi_buf *out, int32_t code, const char *problem, sgi_json data);

#endif
