/* Vectors: messages for an implementation and the answers that it must give, as JSON that
 * any language can play (tests/vectors/README.md explains each member). The functions of
 * this header use only JSON: they read a file, bind names on first use, fill in names and
 * compare messages. vector_play.c plays vectors against the library.
 *
 * No function here ends the test. A fault is returned as a text, so that tests can check
 * vectors that are wrong on purpose. */
#ifndef VECTOR_H
#define VECTOR_H

#include <stdbool.h>

#include "wire/json_read.h"

#define VECTOR_FORMAT 1

typedef struct binding {
    char *name;
    char *json;
} binding;

/* The values of the names in one vector. */
typedef struct bindings {
    binding *list;
    size_t count;
} bindings;

void bindings_free(bindings *b);
/* Binds a name to a value and copies both. A name is bound only once. */
void bindings_set(bindings *b, sgi_str name, sgi_json value);
sgi_json bindings_get(const bindings *b, sgi_str name);

/* Returns the text with all names filled in; the caller frees it. Returns NULL when a
 * name is not bound; *wrong then says which (the caller frees it). */
char *vector_fill(const bindings *b, sgi_json value, char **wrong);
/* Compares a message with a pattern and binds new names. Returns NULL, or a text that
 * says where the message differs from the pattern (the caller frees the text). */
char *vector_match(bindings *b, sgi_json pattern, sgi_json message);

/* Formats a text; the caller frees it. */
char *vector_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns a member as a C string that the caller frees; NULL when it is no string. */
char *vector_string(sgi_json object, const char *name);
/* Returns whether the text is JSON. */
bool vector_is_json(const char *text, size_t len);
/* Returns the first member of the object whose name is not in the list "|a|b|", or
 * NULL. */
char *vector_unknown(sgi_json object, const char *known);

/* A file of vectors. The spans point into its text. */
typedef struct vector_file {
    char *text;
    sgi_json let, begin, after, vectors;
} vector_file;

/* Read a file or a text of vectors. Return NULL, or a text that says what is wrong with
 * the file. vector_file_free may be called in both cases. */
char *vector_file_read(vector_file *file, const char *path);
char *vector_file_parse(vector_file *file, const char *text);
void vector_file_free(vector_file *file);

/* Returns whether the vector says that it needs the feature of this name. */
bool vector_needs(sgi_json vector, const char *word);

/* Plays one vector of a file. Returns NULL, or what was wrong: the step, and the
 * difference. */
char *vector_play(const vector_file *file, sgi_json vector);

#endif
