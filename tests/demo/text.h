/* A text and its lines. A line is a segment of the demo: it keeps its newline, so that
 * the lines one after the other are the text again, also when the last one has none. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct line {
    const char *p;
    size_t len;
} line;

typedef struct text {
    char *bytes;
    size_t len;
    line *lines; /* into bytes */
    size_t count;
} text;

/* Reads a file; false, and an empty text, when it cannot be read. */
bool text_load(text *t, const char *path);

/* Makes a text of a copy of the bytes; false, and an empty text, when out of memory. */
bool text_copy(text *t, const char *bytes, size_t len);

/* Leaves an empty text behind. */
void text_free(text *t);

#endif
