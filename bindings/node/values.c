/* Converts values between JavaScript and C: text, numbers, and statuses as exceptions.
 *
 * Strings from JavaScript are read as UTF-8 into scratch memory. In payloads and in text
 * for people, half a surrogate pair becomes U+FFFD, so that the library never gets
 * invalid UTF-8. A name with half a surrogate pair is refused, because two names must
 * never become the same.
 *
 * Text for JavaScript is mostly ASCII, which V8 copies without decoding. Invalid UTF-8
 * becomes U+FFFD. In text that identifies a caller, invalid UTF-8 is an exception
 * (sgnode_exact).
 *
 * The exceptions are the classes of the SDK (node/src/errors.ts). The SDK sets the
 * function that makes exceptions (setErrorFactory). Before that, the module throws plain
 * errors. */
#include "addon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Size of the first buffer for a string whose length is not known. */
#define FIRST_READ 1024
/* Maximum number of bytes of one character, plus the NUL. If fewer bytes are left in the
 * buffer, the text may have been cut. */
#define LAST_BYTES 5
/* U+FFFD in UTF-8, which replaces half a surrogate pair. */
#define REPLACEMENT "\xef\xbf\xbd"
#define REPLACEMENT_LEN 3

#define MAX_SAFE 9007199254740991.0

/* ---- exceptions ---- */

napi_value sgnode_type_error(sgnode_frame *frame, const char *wanted, const char *what)
{
    char message[160];
    bool is_pending = false;
    snprintf(message, sizeof message, "%s: %s is required", what, wanted);
    if (napi_is_exception_pending(frame->env, &is_pending) == napi_ok && !is_pending)
        napi_throw_type_error(frame->env, "ERR_INVALID_ARG_TYPE", message);
    return NULL;
}

static napi_value make_error(sgnode_frame *frame, segue_status status)
{
    napi_env env = frame->env;
    napi_value factory, receiver, error = NULL;
    const segue_error *detail = frame->error;
    const segue_error_view *view = segue_error_read(detail);
    napi_value arguments[] = {
        sgnode_number(env, status),
        sgnode_error_text(env, view),
        sgnode_number(env, view->rpc_code),
        sgnode_text(env, view->data, view->data_len),
        detail ? sgnode_bool(env, view->retryable) : sgnode_null(env),
    };
    if (napi_get_reference_value(env, frame->self->factory, &factory) != napi_ok ||
        napi_get_undefined(env, &receiver) != napi_ok ||
        napi_call_function(env, receiver, factory, 5, arguments, &error) != napi_ok)
        return NULL; /* An exception of the factory is pending instead. */
    return error;
}

napi_value sgnode_throw(sgnode_frame *frame, segue_status status)
{
    bool is_pending = false;
    napi_is_exception_pending(frame->env, &is_pending);
    if (is_pending)
        return NULL;
    if (!frame->self->factory) {
        napi_throw_error(frame->env, segue_status_name(status),
                         segue_error_read(frame->error)->message);
        return NULL;
    }
    napi_value error = make_error(frame, status);
    if (error)
        napi_throw(frame->env, error);
    return NULL;
}

napi_value sgnode_done(sgnode_frame *frame, segue_status status)
{
    return status == SEGUE_OK ? NULL : sgnode_throw(frame, status);
}

napi_value sgnode_sent(sgnode_frame *frame, segue_status status)
{
    if (status == SEGUE_OK || status == SEGUE_E_WOULD_BLOCK)
        return sgnode_bool(frame->env, status == SEGUE_OK);
    return sgnode_throw(frame, status);
}

napi_value sgnode_error_info(napi_env env, const segue_error *error)
{
    napi_value list;
    if (!error)
        return sgnode_null(env);
    const segue_error_view *view = segue_error_read(error);
    const napi_value parts[] = {
        sgnode_number(env, view->status),   sgnode_error_text(env, view),
        sgnode_number(env, view->rpc_code), sgnode_text(env, view->data, view->data_len),
        sgnode_bool(env, view->retryable),
    };
    if (napi_create_array_with_length(env, 5, &list) != napi_ok)
        return NULL;
    for (uint32_t i = 0; i < 5; i++)
        if (!parts[i] || napi_set_element(env, list, i, parts[i]) != napi_ok)
            return NULL;
    return list;
}

/* ---- from JavaScript ---- */

napi_valuetype sgnode_typeof(sgnode_frame *frame, napi_value value)
{
    napi_valuetype type = napi_undefined;
    napi_typeof(frame->env, value, &type);
    return type;
}

bool sgnode_is_none(sgnode_frame *frame, napi_value value)
{
    napi_valuetype type = sgnode_typeof(frame, value);
    return type == napi_undefined || type == napi_null;
}

/* Reads the whole string into a buffer that is large enough, because the first reading
 * may have cut the string. */
static bool read_all(sgnode_frame *frame, napi_value value, const char **text,
                     size_t *len)
{
    size_t size;
    if (napi_get_value_string_utf8(frame->env, value, NULL, 0, &size) != napi_ok)
        return false;
    char *place = sgnode_scratch(frame, size + 1);
    if (!place ||
        napi_get_value_string_utf8(frame->env, value, place, size + 1, len) != napi_ok)
        return false;
    *text = place;
    return true;
}

static bool read_string(sgnode_frame *frame, napi_value value, const char **text,
                        size_t *len)
{
    char *place = sgnode_scratch(frame, FIRST_READ);
    if (!place ||
        napi_get_value_string_utf8(frame->env, value, place, FIRST_READ, len) != napi_ok)
        return false;
    *text = place;
    return *len < FIRST_READ - LAST_BYTES || read_all(frame, value, text, len);
}

static bool read_bytes(sgnode_frame *frame, napi_value value, const char **text,
                       size_t *len)
{
    napi_typedarray_type type;
    bool is_array = false;
    void *data;
    if (napi_is_typedarray(frame->env, value, &is_array) != napi_ok || !is_array ||
        napi_get_typedarray_info(frame->env, value, &type, len, &data, NULL, NULL) !=
            napi_ok ||
        type != napi_uint8_array)
        return false;
    *text = *len ? data : "";
    return true;
}

bool sgnode_view(sgnode_frame *frame, napi_value value, bool optional, const char **text,
                 size_t *len)
{
    *text = NULL;
    *len = 0;
    switch (sgnode_typeof(frame, value)) {
    case napi_string:
        if (read_string(frame, value, text, len))
            return true;
        break;
    case napi_object:
        if (read_bytes(frame, value, text, len))
            return true;
        break;
    case napi_undefined:
    case napi_null:
        if (optional)
            return true;
        break;
    default:
        break;
    }
    sgnode_type_error(frame, "a string or a Uint8Array", "argument");
    return false;
}

/* Returns whether the UTF-16 units contain half a surrogate pair. */
static bool has_half_pair(const char16_t *units, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool first = (units[i] & 0xfc00) == 0xd800;
        bool second = (units[i] & 0xfc00) == 0xdc00;
        if (second || (first && (i + 1 == count || (units[i + 1] & 0xfc00) != 0xdc00)))
            return true;
        i += first;
    }
    return false;
}

sgnode_flaw sgnode_flaw_of(napi_env env, napi_value value, const char *text, size_t len)
{
    size_t count;
    if (len && memchr(text, 0, len))
        return SGNODE_HAS_NUL;
    if (!len || !memmem(text, len, REPLACEMENT, REPLACEMENT_LEN))
        return SGNODE_FLAWLESS;
    if (napi_get_value_string_utf16(env, value, NULL, 0, &count) != napi_ok)
        return SGNODE_UNREADABLE;
    char16_t *units = malloc((count + 1) * sizeof *units);
    bool good = units && napi_get_value_string_utf16(env, value, units, count + 1,
                                                     &count) == napi_ok;
    sgnode_flaw flaw = !good                         ? SGNODE_UNREADABLE
                       : has_half_pair(units, count) ? SGNODE_HAS_HALF_PAIR
                                                     : SGNODE_FLAWLESS;
    free(units);
    return flaw;
}

/* Reads a string. If the value may be missing (`optional`) and is undefined or null,
 * *text becomes NULL. */
static bool read_optional(sgnode_frame *frame, napi_value value, bool optional,
                          const char **text, size_t *len)
{
    *text = NULL;
    *len = 0;
    if (optional && sgnode_is_none(frame, value))
        return true;
    if (sgnode_typeof(frame, value) != napi_string) {
        sgnode_type_error(frame, "a string", "argument");
        return false;
    }
    return read_string(frame, value, text, len);
}

bool sgnode_name(sgnode_frame *frame, napi_value value, bool optional, const char **text)
{
    static const char *const wanted[] = {
        [SGNODE_HAS_NUL] = "a string without NUL",
        [SGNODE_HAS_HALF_PAIR] = "a string without half a surrogate pair",
        [SGNODE_UNREADABLE] = "a valid string",
    };
    size_t len;
    if (!read_optional(frame, value, optional, text, &len))
        return false;
    sgnode_flaw flaw =
        *text ? sgnode_flaw_of(frame->env, value, *text, len) : SGNODE_FLAWLESS;
    if (flaw != SGNODE_FLAWLESS)
        sgnode_type_error(frame, wanted[flaw], "argument");
    return flaw == SGNODE_FLAWLESS;
}

bool sgnode_message(sgnode_frame *frame, napi_value value, bool optional,
                    const char **text)
{
    size_t len;
    if (!read_optional(frame, value, optional, text, &len))
        return false;
    if (!*text || strlen(*text) == len)
        return true;
    char *place = sgnode_scratch(frame, len * REPLACEMENT_LEN + 1);
    if (!place)
        return false;
    const char *from = *text;
    *text = place;
    for (size_t i = 0; i < len; i++) {
        size_t size = from[i] ? 1 : REPLACEMENT_LEN;
        memcpy(place, from[i] ? from + i : REPLACEMENT, size);
        place += size;
    }
    *place = '\0';
    return true;
}

bool sgnode_names(sgnode_frame *frame, napi_value value, const char *const **names,
                  size_t *count)
{
    uint32_t size;
    bool is_array = false;
    napi_value item;
    if (napi_is_array(frame->env, value, &is_array) != napi_ok || !is_array ||
        napi_get_array_length(frame->env, value, &size) != napi_ok) {
        sgnode_type_error(frame, "an array of strings", "argument");
        return false;
    }
    const char **list = sgnode_scratch(frame, ((size_t)size + 1) * sizeof *list);
    for (uint32_t i = 0; list && i < size; i++)
        if (napi_get_element(frame->env, value, i, &item) != napi_ok ||
            !sgnode_name(frame, item, false, &list[i]))
            return false;
    if (!list)
        return false;
    list[size] = NULL;
    *names = list;
    *count = size;
    return true;
}

bool sgnode_double(sgnode_frame *frame, napi_value value, double fallback, double *number)
{
    bool truth;
    if (napi_get_value_double(frame->env, value, number) == napi_ok)
        return true;
    if (sgnode_is_none(frame, value)) {
        *number = fallback;
        return true;
    }
    if (napi_get_value_bool(frame->env, value, &truth) == napi_ok) {
        *number = truth;
        return true;
    }
    sgnode_type_error(frame, "a number", "argument");
    return false;
}

bool sgnode_int64(sgnode_frame *frame, napi_value value, int64_t fallback,
                  int64_t *number)
{
    double real;
    if (!sgnode_double(frame, value, (double)fallback, &real))
        return false;
    if (!(real >= -MAX_SAFE && real <= MAX_SAFE) || real != floor(real)) {
        napi_throw_range_error(frame->env, "ERR_OUT_OF_RANGE",
                               "a whole number of at most 53 bits is required");
        return false;
    }
    *number = (int64_t)real;
    return true;
}

bool sgnode_int32(sgnode_frame *frame, napi_value value, int32_t fallback,
                  int32_t *number)
{
    int64_t wide;
    if (!sgnode_int64(frame, value, fallback, &wide))
        return false;
    if (wide != (int32_t)wide) {
        napi_throw_range_error(frame->env, "ERR_OUT_OF_RANGE",
                               "a whole number of 32 bits is required");
        return false;
    }
    *number = (int32_t)wide;
    return true;
}

bool sgnode_flag(sgnode_frame *frame, napi_value value, bool *flag)
{
    *flag = false;
    if (sgnode_is_none(frame, value) ||
        napi_get_value_bool(frame->env, value, flag) == napi_ok)
        return true;
    sgnode_type_error(frame, "a boolean", "argument");
    return false;
}

/* ---- to JavaScript ---- */

/* Returns whether a text is ASCII. The function checks groups of machine words, because a
 * check byte by byte would take as long as the copy of the text. */
static bool is_ascii(const char *text, size_t len)
{
    uint64_t words[4], high = 0;
    for (; len >= sizeof words; text += sizeof words, len -= sizeof words) {
        memcpy(words, text, sizeof words);
        high |= words[0] | words[1] | words[2] | words[3];
    }
    for (size_t i = 0; i < len; i++)
        high |= (unsigned char)text[i];
    return !(high & UINT64_C(0x8080808080808080));
}

napi_value sgnode_text(napi_env env, const char *text, size_t len)
{
    napi_value value;
    if (!text)
        return sgnode_null(env);
    napi_status status = is_ascii(text, len)
                             ? napi_create_string_latin1(env, text, len, &value)
                             : napi_create_string_utf8(env, text, len, &value);
    return status == napi_ok ? value : NULL;
}

napi_value sgnode_string(napi_env env, const char *text)
{
    return sgnode_text(env, text, text ? strlen(text) : 0);
}

napi_value sgnode_exact(sgnode_frame *frame, const char *text, const char *what)
{
    napi_value value = sgnode_string(frame->env, text);
    char *again;
    size_t size, len = text ? strlen(text) : 0;
    if (!value || !text || is_ascii(text, len))
        return value;
    if (napi_get_value_string_utf8(frame->env, value, NULL, 0, &size) != napi_ok ||
        !(again = sgnode_scratch(frame, size + 1)) ||
        napi_get_value_string_utf8(frame->env, value, again, size + 1, &size) != napi_ok)
        return NULL;
    if (size == len && !memcmp(again, text, len))
        return value;
    return sgnode_type_error(frame, "UTF-8", what);
}

napi_value sgnode_bytes(napi_env env, const void *data, size_t len)
{
    napi_value value;
    if (!data)
        return sgnode_null(env);
    return napi_create_buffer_copy(env, len, data, NULL, &value) == napi_ok ? value
                                                                            : NULL;
}

napi_value sgnode_number(napi_env env, double number)
{
    napi_value value;
    return napi_create_double(env, number, &value) == napi_ok ? value : NULL;
}

napi_value sgnode_bool(napi_env env, bool truth)
{
    napi_value value;
    return napi_get_boolean(env, truth, &value) == napi_ok ? value : NULL;
}

napi_value sgnode_null(napi_env env)
{
    napi_value value;
    return napi_get_null(env, &value) == napi_ok ? value : NULL;
}

segue_status sgnode_read_text(napi_env env, void *handle, sgnode_read_fn read,
                              napi_value *text)
{
    char first[256], *buf = first;
    size_t room = sizeof first, len = room;
    segue_status status = read(handle, buf, &len);
    while (status == SEGUE_E_TOO_SMALL) {
        if (buf != first)
            free(buf);
        room = len = len + 1;
        buf = malloc(room);
        status = buf ? read(handle, buf, &len) : SEGUE_E_NOMEM;
    }
    if (status == SEGUE_OK) {
        *text = sgnode_text(env, buf, len);
        if (!*text)
            status = SEGUE_E_NOMEM;
    }
    if (buf != first)
        free(buf);
    return status;
}
