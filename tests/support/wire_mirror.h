/* What a message says of itself, as a client over HTTP needs it: the headers that repeat
 * it, and which request it belongs to. */
#ifndef WIRE_MIRROR_H
#define WIRE_MIRROR_H

#include <stddef.h>

typedef struct wire_mirror {
    char *text; /* lines of headers */
    size_t text_len;
    int modern;      /* a request of 2026-07-28 */
    int initializes; /* initialize */
    int initialized; /* notifications/initialized */
    char *id;        /* JSON text, NULL = none */
    char *cancels;   /* JSON text of the id that notifications/cancelled names, or NULL */
} wire_mirror;

/* A message with a version in its _meta is of the modern era. Others, and what is no
 * JSON, belong to the session, if there is one; else they are sent as a modern client
 * would. */
void wire_mirror_read(wire_mirror *m, const char *line, size_t len, const char *session,
                      const char *version);
void wire_mirror_free(wire_mirror *m);

#endif
