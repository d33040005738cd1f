/* Handwritten functions that run for each message. They use METH_FASTCALL and take no
 * keyword arguments. Some of these functions, such as call_reply, do several steps of a
 * common case in one call. Generated wrappers could do the same, but more slowly. */
#include "shim.h"

typedef PyObject *const *arguments;

/* Copies the arguments to `taken`. A missing argument becomes None. Returns false with an
 * exception when the number of arguments is wrong. */
static bool take(arguments given, Py_ssize_t count, Py_ssize_t least, Py_ssize_t most,
                 PyObject **taken)
{
    if (count < least || count > most) {
        PyErr_Format(PyExc_TypeError, "%zd to %zd arguments are required, not %zd", least,
                     most, count);
        return false;
    }
    for (Py_ssize_t i = 0; i < most; i++)
        taken[i] = i < count ? given[i] : Py_None;
    return true;
}

static bool take_int(PyObject *object, int fallback, int *value)
{
    long number = object == Py_None ? fallback : PyLong_AsLong(object);
    if (number == -1 && PyErr_Occurred())
        return false;
    if (number != (int)number) {
        PyErr_SetString(PyExc_OverflowError, "the number is too large");
        return false;
    }
    *value = (int)number;
    return true;
}

PyObject *sgpy_sent(segue_status status)
{
    if (status == SEGUE_OK)
        return Py_NewRef(Py_True);
    if (status == SEGUE_E_WOULD_BLOCK)
        return Py_NewRef(Py_False);
    return sgpy_raise(status);
}

static PyObject *none_or_raise(segue_status status)
{
    if (status != SEGUE_OK)
        return sgpy_raise(status);
    return Py_NewRef(Py_None);
}

/* ---- runtime ---- */

static PyObject *runtime_dispatch(PyObject *module, arguments given, Py_ssize_t count)
{
    PyObject *taken[3];
    int timeout_ms, max_events;
    (void)module;
    if (!take(given, count, 1, 3, taken) || !take_int(taken[1], 0, &timeout_ms) ||
        !take_int(taken[2], 256, &max_events))
        return NULL;
    return sgpy_dispatch(taken[0], timeout_ms, max_events);
}

static PyObject *runtime_cork(PyObject *module, PyObject *runtime)
{
    (void)module;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    return ptr ? none_or_raise(segue_runtime_cork(ptr)) : NULL;
}

static PyObject *runtime_uncork(PyObject *module, PyObject *runtime)
{
    (void)module;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    return ptr ? none_or_raise(segue_runtime_uncork(ptr)) : NULL;
}

/* ---- calls ---- */

static PyObject *call_send_text(PyObject *module, arguments given, Py_ssize_t count)
{
    PyObject *taken[2];
    const char *text;
    size_t len;
    (void)module;
    if (!take(given, count, 2, 2, taken))
        return NULL;
    segue_call *call = sgpy_unwrap(taken[0], SGPY_CALL);
    if (!call || !sgpy_view(taken[1], false, &text, &len))
        return NULL;
    return sgpy_sent(segue_call_send_text(call, text, len, sgpy_error_slot()));
}

static PyObject *call_extend_text(PyObject *module, arguments given, Py_ssize_t count)
{
    PyObject *taken[3];
    const char *text;
    size_t len;
    (void)module;
    if (!take(given, count, 3, 3, taken))
        return NULL;
    segue_call *call = sgpy_unwrap(taken[0], SGPY_CALL);
    if (!call || !sgpy_view(taken[2], false, &text, &len))
        return NULL;
    long long index = PyLong_AsLongLong(taken[1]);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    return sgpy_sent(segue_call_extend_text(call, index, text, len, sgpy_error_slot()));
}

static PyObject *call_send_json(PyObject *module, arguments given, Py_ssize_t count)
{
    PyObject *taken[2];
    const char *json;
    size_t len;
    segue_content *content;
    (void)module;
    if (!take(given, count, 2, 2, taken))
        return NULL;
    segue_call *call = sgpy_unwrap(taken[0], SGPY_CALL);
    if (!call || !sgpy_view(taken[1], false, &json, &len))
        return NULL;
    segue_status status = segue_content_new(sgpy_host_of(taken[0])->runtime, &content);
    if (status != SEGUE_OK)
        return sgpy_raise(status);
    status = segue_content_add_json(content, json, len, sgpy_error_slot());
    if (status == SEGUE_OK)
        status = segue_call_send(call, content, sgpy_error_slot());
    segue_content_free(content);
    return sgpy_sent(status);
}

/* Adds the blocks of a sequence of JSON texts to the content. Returns SEGUE_E_INVALID,
 * with an exception or with details in the slot, when an item is not valid. */
static segue_status add_blocks(segue_content *content, PyObject *blocks)
{
    segue_status status = SEGUE_OK;
    const char *json;
    size_t len;
    PyObject *items = PySequence_Tuple(blocks);
    if (!items)
        return SEGUE_E_INVALID;
    for (Py_ssize_t i = 0; status == SEGUE_OK && i < PyTuple_Size(items); i++) {
        if (sgpy_view(PyTuple_GetItem(items, i), false, &json, &len))
            status = segue_content_add_json(content, json, len, sgpy_error_slot());
        else
            status = SEGUE_E_INVALID;
    }
    Py_DECREF(items);
    return status;
}

static segue_status fill_content(segue_content *content, PyObject *const *parts)
{
    segue_status status = SEGUE_OK;
    const char *text;
    size_t len;
    if (!sgpy_view(parts[0], true, &text, &len))
        return SEGUE_E_INVALID;
    if (text)
        status = segue_content_add_text(content, text, len, sgpy_error_slot());
    if (status == SEGUE_OK && parts[1] != Py_None)
        status = add_blocks(content, parts[1]);
    if (status != SEGUE_OK)
        return status;
    if (!sgpy_view(parts[2], true, &text, &len))
        return SEGUE_E_INVALID;
    if (text)
        status = segue_content_set_structured(content, text, len, sgpy_error_slot());
    int is_error = parts[3] == Py_None ? 0 : PyObject_IsTrue(parts[3]);
    if (status == SEGUE_OK && is_error)
        status = is_error < 0 ? SEGUE_E_INVALID : segue_content_set_error(content, 1);
    return status;
}

static PyObject *call_reply(PyObject *module, arguments given, Py_ssize_t count)
{
    PyObject *taken[5];
    segue_content *content;
    (void)module;
    if (!take(given, count, 1, 5, taken))
        return NULL;
    segue_call *call = sgpy_unwrap(taken[0], SGPY_CALL);
    if (!call)
        return NULL;
    segue_status status = segue_content_new(sgpy_host_of(taken[0])->runtime, &content);
    if (status == SEGUE_OK) {
        status = fill_content(content, taken + 1);
        if (status == SEGUE_OK)
            status = segue_call_complete(call, content, sgpy_error_slot());
        segue_content_free(content);
    }
    /* After a failure the call has not ended: the caller must end and free the call. */
    if (status == SEGUE_OK)
        sgpy_release(taken[0], SGPY_CALL);
    return none_or_raise(status);
}

static PyObject *call_is_cancelled(PyObject *module, PyObject *call)
{
    (void)module;
    segue_call *ptr = sgpy_unwrap(call, SGPY_CALL);
    return ptr ? PyBool_FromLong(segue_call_is_cancelled(ptr)) : NULL;
}

/* ---- requests ---- */

static PyObject *request_start(PyObject *module, arguments given, Py_ssize_t count)
{
    PyObject *taken[6];
    int events;
    (void)module;
    if (!take(given, count, 3, 6, taken) || !take_int(taken[5], -1, &events))
        return NULL;
    return sgpy_request_start(taken[0], taken[1], taken[2], taken[3], taken[4], events);
}

static PyObject *request_grant(PyObject *module, arguments given, Py_ssize_t count)
{
    PyObject *taken[2];
    (void)module;
    if (!take(given, count, 2, 2, taken))
        return NULL;
    segue_request *request = sgpy_unwrap(taken[0], SGPY_REQUEST);
    long long n = request ? PyLong_AsLongLong(taken[1]) : 0;
    if (!request || (n == -1 && PyErr_Occurred()))
        return NULL;
    return none_or_raise(segue_request_grant(request, n));
}

static PyObject *request_cancel(PyObject *module, PyObject *request)
{
    (void)module;
    segue_request *ptr = sgpy_unwrap(request, SGPY_REQUEST);
    return ptr ? none_or_raise(segue_request_cancel(ptr)) : NULL;
}

/* ---- exchanges ---- */

static PyObject *exchange_open(PyObject *module, arguments given, Py_ssize_t count)
{
    PyObject *taken[12];
    (void)module;
    if (!take(given, count, 5, 12, taken))
        return NULL;
    int is_tls = PyObject_IsTrue(taken[7]), is_whole = PyObject_IsTrue(taken[10]);
    if (is_tls < 0 || is_whole < 0)
        return NULL;
    return sgpy_exchange_open(taken[0], taken[1], taken[2], taken[3], taken[4], taken[5],
                              taken[6], is_tls, taken[8], taken[9], is_whole, taken[11]);
}

/* ---- handles ---- */

#define FREE(noun, kind)                                                                 \
    static PyObject *noun##_free(PyObject *module, PyObject *handle)                     \
    {                                                                                    \
        (void)module;                                                                    \
        return sgpy_release(handle, kind) < 0 ? NULL : Py_NewRef(Py_None);               \
    }

FREE(transport, SGPY_TRANSPORT)
FREE(store, SGPY_STORE)
FREE(server, SGPY_SERVER)
FREE(listener, SGPY_LISTENER)
FREE(exchange, SGPY_EXCHANGE)
FREE(bearer, SGPY_BEARER)
FREE(call, SGPY_CALL)
FREE(session, SGPY_SESSION)
FREE(request, SGPY_REQUEST)
FREE(task, SGPY_TASK)
FREE(content, SGPY_CONTENT)

/* ---- the table ---- */

#define FAST(name)                                                                       \
    {                                                                                    \
#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL                    \
    }
#define ONE(name)                                                                        \
    {                                                                                    \
#name, name, METH_O, NULL                                                        \
    }

int sgpy_fast_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        FAST(runtime_dispatch), ONE(runtime_cork),      ONE(runtime_uncork),
        FAST(call_send_text),   FAST(call_send_json),   FAST(call_reply),
        FAST(call_extend_text), ONE(call_is_cancelled), FAST(request_start),
        FAST(request_grant),    ONE(request_cancel),    FAST(exchange_open),
        ONE(transport_free),    ONE(store_free),        ONE(server_free),
        ONE(listener_free),     ONE(exchange_free),     ONE(bearer_free),
        ONE(call_free),         ONE(session_free),      ONE(request_free),
        ONE(task_free),         ONE(content_free),      {NULL, NULL, 0, NULL}};
    return PyModule_AddFunctions(module, methods);
}
