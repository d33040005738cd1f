/* Hooks: callbacks whose answer the library needs at once. A hook is a Python callable
 * that runs inside runtime_dispatch, on the thread of the dispatch. If a hook raises, the
 * exception becomes an event and the answer is "no": the principal is refused, the value
 * is not checked, no token is returned. A transport argument is a view, which can be used
 * only until the hook returns. A text that a hook returns is kept in user->answer
 * until the next hook runs, as the library requires. */
#include "shim.h"

#include <string.h>

/* Calls a hook, returns its answer, and takes over the references a, b, c and d. The
 * first NULL ends the arguments. Returns NULL when the hook raises. The exception of the
 * hook becomes an event. */
static PyObject *ask(sgpy_user *user, int which, const char *where, PyObject *a,
                     PyObject *b, PyObject *c, PyObject *d)
{
    PyObject *result = NULL;
    if (!PyErr_Occurred())
        result = PyObject_CallFunctionObjArgs(user->hooks[which], a, b, c, d, NULL);
    if (!result)
        sgpy_push_exception(user->host, where);
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_XDECREF(c);
    Py_XDECREF(d);
    return result;
}

/* Returns whether the hook exists and a batch is open. Without a batch, no Python may
 * run. */
static bool begin(const sgpy_user *user, int which, bool *entered)
{
    if (!user->host->batch || !user->hooks[which])
        return false;
    *entered = sgpy_enter();
    return true;
}

/* Reads the answer of a hook, a str or None, and keeps the answer in user->answer.
 * Returns false for any other answer. Also refuses a str with a NUL, which would cut
 * the text short. */
static bool keep_text(sgpy_user *user, PyObject *result, const char *where,
                      const char **text, size_t *len)
{
    bool good = sgpy_name(result, true, text);
    *len = good && *text ? strlen(*text) : 0;
    if (!good)
        sgpy_push_exception(user->host, where);
    PyObject *old = user->answer;
    user->answer = result;
    Py_XDECREF(old);
    return good;
}

static PyObject *show(sgpy_user *user, segue_transport *transport)
{
    return sgpy_wrap_view(SGPY_TRANSPORT, transport, user->host);
}

segue_status sgpy_ask_principal(void *opaque, segue_transport *transport,
                                const char **principal)
{
    sgpy_user *user = opaque;
    bool entered;
    size_t len;
    segue_status status = SEGUE_E_REFUSED;
    if (!begin(user, SGPY_HOOK_FIRST, &entered))
        return status;
    PyObject *view = show(user, transport);
    PyObject *result =
        ask(user, SGPY_HOOK_FIRST, "principal", Py_XNewRef(view), NULL, NULL, NULL);
    if (view)
        sgpy_consume(view);
    Py_XDECREF(view);
    if (result && keep_text(user, result, "principal", principal, &len))
        status = SEGUE_OK;
    sgpy_leave(entered);
    return status;
}

static void tell_reason(PyObject *result, char *reason, size_t size)
{
    const char *text;
    size_t len;
    if (!size || !sgpy_view(result, false, &text, &len)) {
        PyErr_Clear();
        return;
    }
    if (len >= size)
        len = size - 1;
    while (len && ((unsigned char)text[len] & 0xC0) == 0x80)
        len--; /* the cut must not be in the middle of a character */
    memcpy(reason, text, len);
    for (size_t i = 0; i < len; i++)
        if (!reason[i])
            reason[i] = ' '; /* a NUL would cut the reason short */
    reason[len] = '\0';
}

segue_status sgpy_ask_validate(void *opaque, const char *tool, int32_t what,
                               const char *schema, size_t schema_len, const char *value,
                               size_t value_len, char *reason, size_t size)
{
    sgpy_user *user = opaque;
    bool entered;
    segue_status status = SEGUE_E_INVALID;
    if (!begin(user, SGPY_HOOK_SECOND, &entered))
        return SEGUE_E_UNSUPPORTED;
    PyObject *result =
        ask(user, SGPY_HOOK_SECOND, "validate", sgpy_string(tool), PyLong_FromLong(what),
            sgpy_bytes(schema, schema_len), sgpy_bytes(value, value_len));
    if (!result || result == Py_NotImplemented)
        status = SEGUE_E_UNSUPPORTED;
    else if (result == Py_None)
        status = SEGUE_OK;
    else
        tell_reason(result, reason, size);
    Py_XDECREF(result);
    sgpy_leave(entered);
    return status;
}

void sgpy_ask_headers(void *opaque, segue_transport *transport, int32_t status)
{
    sgpy_user *user = opaque;
    bool entered;
    if (!begin(user, SGPY_HOOK_FIRST, &entered))
        return;
    PyObject *view = show(user, transport);
    PyObject *result = ask(user, SGPY_HOOK_FIRST, "on_headers", Py_XNewRef(view),
                           PyLong_FromLong(status), NULL, NULL);
    if (view)
        sgpy_consume(view);
    Py_XDECREF(view);
    Py_XDECREF(result);
    sgpy_leave(entered);
}

void sgpy_ask_bearer(void *opaque, segue_transport *transport, segue_bearer *bearer)
{
    sgpy_user *user = opaque;
    bool entered;
    if (!begin(user, SGPY_HOOK_FIRST, &entered)) {
        segue_bearer_free(bearer);
        return;
    }
    PyObject *view = show(user, transport);
    PyObject *result =
        ask(user, SGPY_HOOK_FIRST, "on_bearer",
            sgpy_wrap(SGPY_BEARER, bearer, user->host), Py_XNewRef(view), NULL, NULL);
    if (view)
        sgpy_consume(view);
    Py_XDECREF(view);
    Py_XDECREF(result);
    sgpy_leave(entered);
}

const char *sgpy_ask_assertion(void *opaque, const char *issuer, const char *resource,
                               size_t *len)
{
    sgpy_user *user = opaque;
    bool entered;
    const char *text = NULL;
    if (!begin(user, SGPY_HOOK_FIRST, &entered))
        return NULL;
    PyObject *result = ask(user, SGPY_HOOK_FIRST, "on_assertion", sgpy_string(issuer),
                           sgpy_string(resource), NULL, NULL);
    if (!result || !keep_text(user, result, "on_assertion", &text, len))
        text = NULL;
    sgpy_leave(entered);
    return text;
}

const char *sgpy_ask_load(void *opaque, const char *key, size_t *len)
{
    sgpy_user *user = opaque;
    bool entered;
    const char *text = NULL;
    if (!begin(user, SGPY_HOOK_SECOND, &entered))
        return NULL;
    PyObject *result =
        ask(user, SGPY_HOOK_SECOND, "on_load", sgpy_string(key), NULL, NULL, NULL);
    if (!result || !keep_text(user, result, "on_load", &text, len))
        text = NULL;
    sgpy_leave(entered);
    return text;
}

void sgpy_ask_save(void *opaque, const char *key, const char *json, size_t len)
{
    sgpy_user *user = opaque;
    bool entered;
    if (!begin(user, SGPY_HOOK_THIRD, &entered))
        return;
    PyObject *result = ask(user, SGPY_HOOK_THIRD, "on_save", sgpy_string(key),
                           sgpy_text(json, len), NULL, NULL);
    Py_XDECREF(result);
    sgpy_leave(entered);
}
