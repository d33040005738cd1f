/* HTTP of a load over one connection: requests of 2026-07-28 with all their headers, and
 * waiting for answers. Blocking sockets, any thread. */
#ifndef BENCH_HTTP_LINE_H
#define BENCH_HTTP_LINE_H

#include "bench.h"

#define HTTP_TEXT_SIZE 2048

typedef struct http_text {
    char bytes[HTTP_TEXT_SIZE];
    size_t len;
} http_text;

/* Writes one request. name: value of Mcp-Name, or NULL; members: those of params without
 * _meta, meta: further members of _meta, or NULL. Each member has a comma behind it. */
void http_write_request(http_text *request, int port, const char *method,
                        const char *name, const char *members, const char *meta);

/* Returns a connected socket without delays. */
int http_connect(int port);
void http_send(int fd, const http_text *request);

/* Reads one whole answer, which must have the status 200, into text (NUL-terminated),
 * head included; returns its length. */
size_t http_read_answer(int fd, char *text, size_t size);
/* The same for an event stream, up to the end of its first event. */
void http_read_event(int fd);

/* Reads an event stream to its end; returns the number of events. */
int64_t http_drain_events(int fd);

#endif
