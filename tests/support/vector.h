/* Vectors: what is said to an implementation and what it has to say, as JSON that any
 * language can play (tests/vectors/README.md says what each member means). Here are the
 * parts that know JSON alone: reading a file, names that are bound on first use, filling
 * them in, comparing. vector_play.c plays them against the library.
 *
 * Nothing here ends the test: what is wrong is a text, so that vectors which are wrong on
 * purpose can be seen to be found. */
#ifndef VECTOR_H
#define VECTOR_H

#include <stdbool.h>

#include "wire/json_read.h"

#define VECTOR_FORMAT 1

typedef struct binding {
    char *name;
    char *json;
} binding;

/* What the names of one vector stand for. */
typedef struct bindings {
    binding *list;
    size_t count;
} bindings;

void bindings_free(bindings *b);
/* Takes a copy of both. A name is bound once. */
void bindings_set(bindings *b, sgi_str name, sgi_json value);
sgi_json bindings_get(const bindings *b, sgi_str name);

/* The text with all names filled in; freed by the caller. NULL when one is not bound, and
 * *wrong is a text that says which (freed by the caller). */
char *vector_fill(const bindings *b, sgi_json value, char **wrong);
/* Compares a message with a pattern and binds what is new. NULL, or where they differ
 * (freed by the caller). */
char *vector_match(bindings *b, sgi_json pattern, sgi_json message);

/* A text by a format, freed by the caller. */
char *vector_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A member as a C string, freed by the caller; NULL when it is no string. */
char *vector_string(sgi_json object, const char *name);
/* Is it JSON? */
bool vector_is_json(const char *text, size_t len);
/* NULL, or the first member of the object whose name is not in the list "|a|b|". */
char *vector_unknown(sgi_json object, const char *known);

/* A file of vectors: its text, which the spans point into. */
typedef struct vector_file {
    char *text;
    sgi_json let, begin, after, vectors;
} vector_file;

/* NULL, or what is wrong with it. vector_file_free takes either. */
char *vector_file_read(vector_file *file, const char *path);
char *vector_file_parse(vector_file *file, const char *text);
void vector_file_free(vector_file *file);

/* Does the vector say that it needs this? */
bool vector_needs(sgi_json vector, const char *word);

/* Plays one vector of a file. NULL, or what was wrong: the step, and how it differs. */
char *vector_play(const vector_file *file, sgi_json vector);

#endif
