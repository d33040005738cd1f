/* Segue, conveniences: each function replaces several calls of functions in segue.h. The
 * conventions of segue.h apply. */
#ifndef SEGUE_UTIL_H
#define SEGUE_UTIL_H

#include <segue/segue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives one string argument, decoded. The text may hold NUL bytes.
 *
 * text, len receive the text, which lives as long as the call.
 * Returns   SEGUE_E_NOT_FOUND when the argument is absent, SEGUE_E_INVALID when it is not
 *           a string.
 */
SEGUE_API segue_status segue_call_argument_text(segue_call *call, const char *name,
                                                const char **text, size_t *len);

/* Gives one integer argument.
 *
 * value     receives the number.
 * Returns   SEGUE_E_NOT_FOUND when the argument is absent, SEGUE_E_INVALID when it is not
 *           an integer of 64 bits.
 */
SEGUE_API segue_status segue_call_argument_int(const segue_call *call, const char *name,
                                               int64_t *value);

/* Adds an image or audio block; the bytes are encoded as base64.
 *
 * type      "image" or "audio".
 * mime_type such as "image/png".
 * Returns   SEGUE_E_INVALID for another type. */
SEGUE_API segue_status segue_content_add_blob(segue_content *content, const char *type,
                                              const char *mime_type, const void *data,
                                              size_t len, segue_error **error);

/* Adds text contents of a resource, for the result of resources/read.
 *
 * uri       the URI of the resource, or of a part of it.
 * mime_type MIME type of the contents; NULL = none.
 * text      UTF-8.
 * Returns   SEGUE_E_INVALID when a text is not valid UTF-8. */
SEGUE_API segue_status segue_content_add_resource_text(segue_content *content,
                                                       const char *uri,
                                                       const char *mime_type,
                                                       const char *text, size_t len,
                                                       segue_error **error);

/* Adds binary contents of a resource; the bytes are encoded as base64.
 *
 * uri       the URI of the resource, or of a part of it.
 * mime_type MIME type of the contents; NULL = none. */
SEGUE_API segue_status segue_content_add_resource_blob(segue_content *content,
                                                       const char *uri,
                                                       const char *mime_type,
                                                       const void *data, size_t len,
                                                       segue_error **error);

/* ---- Reading JSON ------------------------------------------------------------------ */

/* These functions read JSON without copying it. segue_json_check accepts any text. The
 * other functions need a valid text: one that comes from a callback or accessor of the
 * library, or that segue_json_check has accepted. A value is a view of the text: pointer
 * and length. */

/* Checks that a text is one JSON value within the limits of the runtime.
 *
 * Returns   SEGUE_OK, SEGUE_E_JSON when the text is not valid JSON, SEGUE_E_TOO_LARGE
 *           when the text exceeds a limit. On failure, error names the place. */
SEGUE_API segue_status segue_json_check(segue_runtime *runtime, const char *json,
                                        size_t len, segue_error **error);

/* Finds a member of an object.
 *
 * value     receives the member's value.
 * Returns   SEGUE_OK, SEGUE_E_NOT_FOUND when json is no object or lacks the member.
 */
SEGUE_API segue_status segue_json_get(const char *json, size_t len, const char *name,
                                      const char **value, size_t *value_len);

/* Steps through the members of an object, or the items of an array.
 *
 * at        position in the text: 0 before the first step; each step advances it.
 * key       receives the member's name as a JSON string; may be NULL, with key_len.
 *           Empty for an item of an array.
 * Returns   SEGUE_OK, SEGUE_E_NOT_FOUND after the last member or item. */
SEGUE_API segue_status segue_json_next(const char *json, size_t len, size_t *at,
                                       const char **key, size_t *key_len,
                                       const char **value, size_t *value_len);

/* Decodes a JSON string.
 *
 * Returns   SEGUE_OK, SEGUE_E_INVALID when json is not a string, SEGUE_E_TOO_SMALL when
 *           the text does not fit into buf. */
SEGUE_API segue_status segue_json_text(const char *json, size_t len, char *buf,
                                       size_t *buf_len);

/* Reads an integer of 64 bits.
 *
 * Returns   SEGUE_OK, SEGUE_E_INVALID when json is not an integer of 64 bits. */
SEGUE_API segue_status segue_json_int(const char *json, size_t len, int64_t *value);

/* Writes a text as a JSON string, with its quotes.
 *
 * text      UTF-8.
 * Returns   SEGUE_OK, SEGUE_E_TOO_SMALL when the string does not fit into buf,
 *           SEGUE_E_INVALID when the text is not UTF-8. */
SEGUE_API segue_status segue_json_quote(const char *text, size_t len, char *buf,
                                        size_t *buf_len);

#ifdef __cplusplus
}
#endif

#endif
