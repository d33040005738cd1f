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

/* Adds contents of a resource that are text, for the result of resources/read.
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

/* Adds contents of a resource that are bytes; they are encoded as base64.
 *
 * uri       the URI of the resource, or of a part of it.
 * mime_type MIME type of the contents; NULL = none. */
SEGUE_API segue_status segue_content_add_resource_blob(segue_content *content,
                                                       const char *uri,
                                                       const char *mime_type,
                                                       const void *data, size_t len,
                                                       segue_error **error);

#ifdef __cplusplus
}
#endif

#endif
