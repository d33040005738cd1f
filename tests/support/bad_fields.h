/* Messages with one wrong field. A field is a path of names with '>' between them,
 * because names may hold dots and slashes:
 * "params>_meta>io.modelcontextprotocol/protocolVersion". A number in a path is an index
 * of an array. The field takes each of the values of this header in turn. A table gives
 * the expected outcome of each value as one letter. */
#ifndef BAD_FIELDS_H
#define BAD_FIELDS_H

#include <stddef.h>

/* The values that a field takes, in this order:
 *
 *   missing, null, true, 7, -1, 1.5, 1e400, 99999999999999999999,
 *   "", "x", 64 KiB of x, "a\u0000b", [], {}
 */
#define BAD_FIELD_VALUES 14
const char *bad_field_name(int value);
/* Returns the message with this value in this field, on the heap. The field must
 * exist. */
char *bad_field_line(const char *message, const char *path, int value);

/* Texts that are not JSON, made from the message. The field does not matter. */
#define BAD_FIELD_TEXTS 4
char *bad_field_text(const char *message, const char *path, int text);

/* Returns the message with other JSON in this field; json NULL removes the member. */
char *bad_field_set(const char *message, const char *path, const char *json);

/* Returns the message on the heap, with each `name` in it replaced by a text. */
char *bad_field_fill(const char *message, const char *name, const char *text);

#endif
