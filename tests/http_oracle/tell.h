/* The format that ours.c and theirs.c share: documents in, results out.
 *
 * Standard input holds documents, each behind its length (32 bits, little-endian): the
 * bytes of a connection. Standard output gets a line of JSON for each:
 *
 *     {"requests":[{"method":"","target":"","headers":[["",""],...],"body":"",
 *                   "keeps":true,"end":0},...],"fault":""}
 *
 * end is the number of bytes taken when the request was complete; an empty fault means
 * that more bytes are needed. Bytes are written as the characters of Latin-1. */
#ifndef TELL_H
#define TELL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns a block of exact size, so that a memory checker sees the first byte beyond it.
 * NULL at the end. */
static inline char *read_document(size_t *length)
{
    unsigned char bytes[4];
    if (fread(bytes, 1, sizeof bytes, stdin) != sizeof bytes)
        return NULL;
    *length = (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 |
              (size_t)bytes[3] << 24;
    char *text = malloc(*length ? *length : 1);
    if (!text || fread(text, 1, *length, stdin) != *length)
        abort();
    return text;
}

static inline void tell_text(const char *bytes, size_t length)
{
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\')
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static inline void tell_request(bool first, const char *method, size_t method_len,
                                const char *target, size_t target_len)
{
    printf(first ? "{\"method\":" : ",{\"method\":");
    tell_text(method, method_len);
    printf(",\"target\":");
    tell_text(target, target_len);
    printf(",\"headers\":[");
}

static inline void tell_header(bool first, const char *name, size_t name_len,
                               const char *value, size_t value_len)
{
    printf(first ? "[" : ",[");
    tell_text(name, name_len);
    putchar(',');
    tell_text(value, value_len);
    putchar(']');
}

static inline void tell_end(const char *body, size_t body_len, bool keeps, size_t end)
{
    printf("],\"body\":");
    tell_text(body, body_len);
    printf(",\"keeps\":%s,\"end\":%zu}", keeps ? "true" : "false", end);
}

#endif
