/* The parts of a message that a client over HTTP must repeat in headers, and the request
 * that the message belongs to. */
#ifndef WIRE_MIRROR_H
#define WIRE_MIRROR_H

#include <stddef.h>

typedef struct wire_mirror {
    char *text; /* the header lines */
    size_t text_len;
    int modern;      /* 1 = a request of 2026-07-28 */
    int initializes; /* 1 = the message is initialize */
    int initialized; /* 1 = the message is notifications/initialized */
    char *id;        /* JSON text, NULL = none */
    char *cancels;   /* JSON text of the id that notifications/cancelled names, or NULL */
} wire_mirror;

/* Reads a message. A message with a version in its _meta is of the modern era. Other
 * messages, and text that is no JSON, belong to the session if there is one. Otherwise
 * they are sent as a modern client would send them. */
void wire_mirror_read(wire_mirror *m, const char *line, size_t len, const char *session,
                      const char *version);
void wire_mirror_free(wire_mirror *m);

#endif
