/* The bytes are read once and never moved, since the lines point into them. */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes over the bytes. */
static bool split(text *t, char *bytes, size_t len)
{
    size_t count = 0, cap = 0;
    line *lines = NULL;
    for (size_t at = 0; at < len; count++) {
        if (count == cap) {
            cap = cap ? cap * 2 : 256;
            line *more = realloc(lines, cap * sizeof *lines);
            if (!more) {
                free(lines);
                free(bytes);
                return false;
            }
            lines = more;
        }
        const char *end = memchr(bytes + at, '\n', len - at);
        size_t line_len = end ? (size_t)(end - (bytes + at)) + 1 : len - at;
        lines[count] = (line){bytes + at, line_len};
        at += line_len;
    }
    *t = (text){bytes, len, lines, count};
    return true;
}

bool text_copy(text *t, const char *bytes, size_t len)
{
    char *copy = malloc(len + 1);
    *t = (text){0};
    if (!copy)
        return false;
    if (len)
        memcpy(copy, bytes, len);
    return split(t, copy, len);
}

/* Reads to the end, because a file may be longer than its size said. */
static char *read_all(FILE *file, size_t *len)
{
    size_t cap = 0;
    char *bytes = NULL;
    *len = 0;
    do {
        if (*len == cap) {
            cap = cap ? cap * 2 : 65536;
            char *more = realloc(bytes, cap);
            if (!more) {
                free(bytes);
                return NULL;
            }
            bytes = more;
        }
        *len += fread(bytes + *len, 1, cap - *len, file);
    } while (*len == cap);
    if (!ferror(file))
        return bytes;
    free(bytes);
    return NULL;
}

bool text_load(text *t, const char *path)
{
    size_t len;
    *t = (text){0};
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    char *bytes = read_all(file, &len);
    fclose(file);
    return bytes && split(t, bytes, len);
}

void text_free(text *t)
{
    free(t->lines);
    free(t->bytes);
    *t = (text){0};
}
