/* text: a buffer of characters that grows. json: a view of a part of a JSON text. */
#ifndef PROXY_TEXT_H
#define PROXY_TEXT_H

#include "../easy/text.h" /* it uses public headers only, as the proxy does */

#include <stdint.h>

/* A text that grows and ends with a NUL. p is NULL while the text is empty. When out of
 * memory, `failed` is set, and the text is incomplete. */
typedef sgi_easy_text text;

/* A view of a JSON value. n is 0 when there is no value. */
typedef struct json {
    const char *p;
    size_t n;
} json;

void text_free(text *t);
void text_add(text *t, const char *bytes, size_t len);
void text_add_str(text *t, const char *str);
void text_add_json(text *t, json value);
/* Adds a text as a JSON string, with quotes. A text that is not valid UTF-8 is added as
 * "?". */
void text_add_quoted(text *t, const char *str, size_t len);
void text_add_format(text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Begins the next member of an object: writes a comma, unless the member is the first
 * one, and then the name. */
void text_add_key(text *t, const char *name);
/* Adds the members of an object, except the members whose names are in the list
 * `except`, which NULL ends. A comma is written before each member, but not before the
 * first member of the object. */
void text_add_members(text *t, json object, const char *const *except);

/* Returns the value of a member; empty when the object has no such member. */
json json_get(json object, const char *name);
bool json_is_true(json value);
bool json_is_object(json value);
bool json_is_array(json value);
/* True when the value is a JSON string that equals str. */
bool json_is(json value, const char *str);
/* Decodes a JSON string. The caller frees the text. Returns NULL when the value is not a
 * string, when the string contains a NUL, or when out of memory. */
char *json_string(json value);
int64_t json_int(json value, int64_t otherwise);
/* Returns the next part of an object or array in *part; false at the end. *at must be 0
 * before the first call. key: receives the name as a JSON string; may be NULL. */
bool json_next(json value, size_t *at, json *key, json *part);

/* Copies a text. Returns NULL when out of memory, or when str is NULL. */
char *copy_string(const char *str);

#endif
