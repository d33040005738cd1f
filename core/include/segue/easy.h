/* Segue, convenience for programs in C: calls that wait, texts for errors, and JSON
 * without a library for JSON. Every function here could stand in a program: together they
 * use nothing but segue.h. Bindings do not have them. The conventions of segue.h apply,
 * except that texts named "made" come from malloc, and the caller frees them with free().
 */
#ifndef SEGUE_EASY_H
#define SEGUE_EASY_H

#include <segue/segue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The compiler checks the arguments of functions that format as it checks printf's. */
#if defined(__GNUC__)
#define SEGUE_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define SEGUE_PRINTF(at, first)
#endif

/* ---- 1 Calls that wait ------------------------------------------------------------- */

/* These functions start a request and return when it has ended. They need no loop: while
 * no other thread runs the runtime, the calling thread runs it, and with it callbacks of
 * other requests and calls. Several threads may wait at once. A request that has not
 * ended after timeout_ms is cancelled, also when it is a task. A question of the server
 * ends the request (SEGUE_E_UNSUPPORTED). Segments are collected into the result.
 *
 * Inside a callback of the same runtime these functions are refused, because the end of
 * the request can only be noticed after the callback has returned. Use
 * segue_request_start there, or wait on a thread of your own. */

/* Sends a request and waits for its result.
 *
 * params    JSON object; NULL = {}.
 * timeout_ms  0 = no limit.
 * result    receives the result, JSON text, made.
 * Returns   the status of segue_complete_fn, and those of segue_request_start;
 *           SEGUE_E_TIMEOUT also when the thread that runs the runtime hangs.
 * Callback  refused (SEGUE_E_REENTRANT) */
SEGUE_API segue_status segue_request_run(segue_session *session, const char *method,
                                         const char *params, int64_t timeout_ms,
                                         char **result, segue_error **error);

/* Calls a tool and waits for its result. SEGUE_OK can mean that the tool failed: see
 * segue_result_is_error.
 *
 * arguments  JSON object, for example of segue_json_pairs; NULL = {}.
 * timeout_ms, result  as for segue_request_run.
 * Returns   as segue_request_run; SEGUE_E_JSON when the arguments are not JSON.
 * Callback  refused (SEGUE_E_REENTRANT) */
SEGUE_API segue_status segue_call_tool(segue_session *session, const char *name,
                                       const char *arguments, int64_t timeout_ms,
                                       char **result, segue_error **error);

/* ---- 2 Results --------------------------------------------------------------------- */

/* These functions read the result of a tool, in a text of segue_call_tool as in
 * on_complete. */

/* Tells whether the tool failed. The text of the result then says why.
 *
 * Returns   1 when isError is true, else 0. */
SEGUE_API int32_t segue_result_is_error(const char *json, size_t len);

/* Gives the texts of all text blocks of a result, joined.
 *
 * text      receives the text, made; "" when there is no text block.
 * Returns   SEGUE_E_INVALID when json is not an object. */
SEGUE_API segue_status segue_result_text(const char *json, size_t len, char **text);

/* Finds a member of structuredContent. segue_json_int and so on read it.
 *
 * value     receives the member's value, a view of the text.
 * Returns   SEGUE_E_NOT_FOUND when the result has no such member. */
SEGUE_API segue_status segue_result_get(const char *json, size_t len, const char *name,
                                        const char **value, size_t *value_len);

/* ---- 3 Sending --------------------------------------------------------------------- */

/* Emits one text segment, formatted as by printf.
 *
 * Returns   as segue_call_send_text; SEGUE_E_INVALID also for a format that fails. */
SEGUE_API segue_status segue_call_printf(segue_call *call, const char *format, ...)
    SEGUE_PRINTF(2, 3);

/* Emits bytes that are perhaps not UTF-8 as one text segment. Each run of bytes that is
 * no character becomes U+FFFD, as Unicode recommends (chapter 3, "U+FFFD Substitution").
 *
 * rest      receives the number of bytes at the end that begin a character and were not
 *           sent: send them again, in front of the next bytes. NULL = there are no next
 *           bytes, and U+FFFD is sent for them.
 * Returns   as segue_call_send_text. */
SEGUE_API segue_status segue_call_send_lossy(segue_call *call, const void *bytes,
                                             size_t len, size_t *rest,
                                             segue_error **error);

/* ---- 4 Writing JSON ---------------------------------------------------------------- */

/* Makes a JSON object from pairs of names and values, separated by blanks:
 *     segue_json_pairs(&json, "city=%s days=%d exact:true list:%s", city, 3, "[1,2]");
 * name=%s is a text, or null for NULL. name=%d is a number: also %i, %u, with l, ll or z,
 * and %f, %g, %e for any double. name:%s is JSON as it is, and so is name:JSON without
 * blanks. %.*s is a text with a length, an int. A name has no blank, quote, = or colon.
 *
 * json      receives the object, made.
 * Returns   SEGUE_E_INVALID for a malformed format, a text that is not UTF-8 and a number
 *           that is not finite. JSON as it is (name:) is not checked. */
SEGUE_API segue_status segue_json_pairs(char **json, const char *pairs, ...)
    SEGUE_PRINTF(2, 3);

/* Writes a text as a JSON string, with its quotes.
 *
 * text      UTF-8.
 * Returns   SEGUE_OK, SEGUE_E_TOO_SMALL when the string does not fit into buf,
 *           SEGUE_E_INVALID when the text is not UTF-8. */
SEGUE_API segue_status segue_json_quote(const char *text, size_t len, char *buf,
                                        size_t *buf_len);

/* ---- 5 Reading JSON ---------------------------------------------------------------- */

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

/* Reads a number as the nearest double.
 *
 * Returns   SEGUE_OK, SEGUE_E_INVALID when json is not a number, or too large. */
SEGUE_API segue_status segue_json_number(const char *json, size_t len, double *value);

/* Reads true or false.
 *
 * value     receives 1 or 0.
 * Returns   SEGUE_OK, SEGUE_E_INVALID when json is neither. */
SEGUE_API segue_status segue_json_bool(const char *json, size_t len, int32_t *value);

#ifdef __cplusplus
}
#endif

#endif
