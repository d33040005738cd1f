/* A text and its lines. A line is a segment of the demo. It keeps its newline, so that
 * the joined lines are the text again, also when the last line has none. */
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
    line *lines; /* they point into bytes */
    size_t count;
} text;

/* Reads a file; returns false, and an empty text, when it cannot be read. */
bool text_load(text *t, const char *path);

/* Makes a text of a copy of the bytes; returns false, and an empty text, when memory runs
 * out. */
bool text_copy(text *t, const char *bytes, size_t len);

/* Frees the text and leaves an empty one. */
void text_free(text *t);

#endif
