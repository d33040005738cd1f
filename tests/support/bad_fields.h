/* Messages with one field gone wrong. A field is a path of names with '>' between them,
 * as names hold dots and slashes: "params>_meta>io.modelcontextprotocol/protocolVersion";
 * numbers are places in arrays. Each field takes each of the values below, and a table
 * says, one letter for each, what has to come of it. */
#ifndef BAD_FIELDS_H
#define BAD_FIELDS_H

#include <stddef.h>

/* In this order:
 *
 *   missing, null, true, 7, -1, 1.5, 1e400, 99999999999999999999,
 *   "", "x", 64 KiB of x, "a\u0000b", [], {}
 */
#define BAD_FIELD_VALUES 14
const char *bad_field_name(int value);
/* The message with that value in its field, on the heap. The field has to be there. */
char *bad_field_line(const char *message, const char *path, int value);

/* Whatever the field: this is no JSON. */
#define BAD_FIELD_TEXTS 4
char *bad_field_text(const char *message, const char *path, int text);

/* The message with another JSON value (NULL = without the member). */
char *bad_field_set(const char *message, const char *path, const char *json);

/* All places of `name` in a message replaced by a text; on the heap. */
char *bad_field_fill(const char *message, const char *name, const char *text);

#endif
