/* What a load says over one connection: requests of 2026-07-28 with all their headers,
 * and answers that are waited for. Blocking sockets, any thread. */
#ifndef BENCH_HTTP_LINE_H
#define BENCH_HTTP_LINE_H

#include "bench.h"

#define HTTP_TEXT_SIZE 2048

typedef struct http_text {
    char bytes[HTTP_TEXT_SIZE];
    size_t len;
} http_text;

/* One request. name: what Mcp-Name repeats, or NULL; members: those of params but _meta,
 * each with its comma behind it. */
void http_write_request(http_text *request, int port, const char *method,
                        const char *name, const char *members);

/* Connected, without delays. */
int http_connect(int port);
void http_send(int fd, const http_text *request);

/* Reads one whole answer, which has to have the status 200, into text (NUL-terminated),
 * head included; returns its length as it came. */
size_t http_read_answer(int fd, char *text, size_t size);
/* The same for an event stream, as far as the end of its first event. */
void http_read_event(int fd);

/* Reads an event stream to its end; returns how many events that were. */
int64_t http_drain_events(int fd);

#endif
