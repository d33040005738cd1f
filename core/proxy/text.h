/* Text: a buffer that grows, and views of JSON texts. */
#ifndef PROXY_TEXT_H
#define PROXY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text that grows. It is NUL-terminated; p is NULL while it is empty. `failed` is set
 * when out of memory, and the text is then incomplete. */
typedef struct text {
    char *p;
    size_t len;
    size_t cap;
    bool failed;
} text;

/* A view of a JSON value; n is 0 when there is none. */
typedef struct json {
    const char *p;
    size_t n;
} json;

void text_free(text *t);
void text_add(text *t, const char *bytes, size_t len);
void text_add_str(text *t, const char *str);
void text_add_json(text *t, json value);
/* Adds a text as a JSON string, with its quotes. Bytes that are not UTF-8 make it "?". */
void text_add_quoted(text *t, const char *str, size_t len);
void text_add_format(text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Begins the next member of an object: a comma unless it is the first, then the name. */
void text_add_key(text *t, const char *name);
/* Adds the members of an object, except those whose names are listed. NULL ends the list.
 * Each member has a comma in front unless it is the first. */
void text_add_members(text *t, json object, const char *const *except);

/* Returns the value of a member; empty when there is none. */
json json_get(json object, const char *name);
bool json_is_true(json value);
bool json_is_object(json value);
bool json_is_array(json value);
/* True when value is this string. */
bool json_is(json value, const char *str);
/* Decodes a string. NULL when value is not a string, has a NUL, or without memory. The
 * caller frees it. */
char *json_string(json value);
int64_t json_int(json value, int64_t otherwise);
/* Steps through an object or array. *at is 0 at the beginning. key may be NULL; it
 * receives the name as a JSON string. */
bool json_next(json value, size_t *at, json *key, json *part);

/* Copies a text. NULL without memory, or when str is NULL. */
char *copy_string(const char *str);

#endif
