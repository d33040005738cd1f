/* Converts values between Python and C: text, JSON, and statuses as exceptions.
 *
 * The exceptions are the classes of the SDK (segue.errors). The SDK sets the function
 * that makes exceptions (set_error_factory). Before that, the module raises RuntimeError.
 *
 * The library returns the details of a failure through an out-parameter. Each thread has
 * one slot for these details, which sgpy_raise empties. */
#include "shim.h"

#include <string.h>

static PyObject *factory;
static _Thread_local segue_error *slot;

segue_error **sgpy_error_slot(void)
{
    segue_error_free(slot);
    slot = NULL;
    return &slot;
}

PyObject *sgpy_set_error_factory(PyObject *callable)
{
    PyObject *old = factory;
    factory = callable == Py_None ? NULL : Py_NewRef(callable);
    Py_XDECREF(old);
    return Py_NewRef(Py_None);
}

static PyObject *error_tuple(const segue_error *error, segue_status status)
{
    const segue_error_view *view = segue_error_read(error);
    PyObject *tuple = PyTuple_New(5);
    if (!tuple)
        return NULL;
    PyTuple_SetItem(tuple, 0, PyLong_FromLong(status));
    PyTuple_SetItem(tuple, 1, sgpy_text(view->message, strlen(view->message)));
    PyTuple_SetItem(tuple, 2, PyLong_FromLong(view->rpc_code));
    PyTuple_SetItem(tuple, 3, sgpy_bytes(view->data, view->data_len));
    PyTuple_SetItem(tuple, 4, PyBool_FromLong(view->retryable));
    if (PyErr_Occurred())
        Py_CLEAR(tuple);
    return tuple;
}

PyObject *sgpy_error_info(const segue_error *error)
{
    if (!error)
        return Py_NewRef(Py_None);
    return error_tuple(error, segue_error_read(error)->status);
}

static void raise_plain(segue_status status, const segue_error *error)
{
    const char *message = segue_error_read(error)->message;
    PyErr_Format(PyExc_RuntimeError, "%s%s%s", segue_status_name(status),
                 *message ? ": " : "", message);
}

/* Raises the exception that the factory makes from the arguments, and releases the
 * arguments. Returns NULL. */
static PyObject *raise_made(PyObject *arguments)
{
    PyObject *made = arguments ? PyObject_CallObject(factory, arguments) : NULL;
    Py_XDECREF(arguments);
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    return NULL;
}

PyObject *sgpy_raise(segue_status status)
{
    segue_error *error = slot;
    slot = NULL;
    if (PyErr_Occurred() || !factory) {
        if (!PyErr_Occurred())
            raise_plain(status, error);
        segue_error_free(error);
        return NULL;
    }
    PyObject *arguments = error_tuple(error, status);
    /* For a failure without details, the exception class decides whether the error is
     * retryable. */
    if (arguments && !error)
        PyTuple_SetItem(arguments, 4, Py_NewRef(Py_None));
    segue_error_free(error);
    return raise_made(arguments);
}

PyObject *sgpy_raise_text(segue_status status, const char *message)
{
    if (factory)
        return raise_made(Py_BuildValue("(is)", (int)status, message));
    PyErr_SetString(PyExc_RuntimeError, message);
    return NULL;
}

/* ---- text ---- */

bool sgpy_view(PyObject *object, bool optional, const char **text, size_t *len)
{
    Py_ssize_t size = 0;
    char *bytes = NULL;
    *text = NULL;
    *len = 0;
    if (optional && object == Py_None)
        return true;
    if (PyUnicode_Check(object)) {
        *text = PyUnicode_AsUTF8AndSize(object, &size);
    } else if (PyBytes_Check(object)) {
        if (PyBytes_AsStringAndSize(object, &bytes, &size) == 0)
            *text = bytes;
    } else {
        PyErr_Format(PyExc_TypeError, "bytes or str is required, not %R",
                     (PyObject *)Py_TYPE(object));
    }
    *len = (size_t)size;
    return *text != NULL;
}

bool sgpy_name(PyObject *object, bool optional, const char **text)
{
    size_t len;
    if (!PyUnicode_Check(object) && !(optional && object == Py_None)) {
        PyErr_Format(PyExc_TypeError, "str is required, not %R",
                     (PyObject *)Py_TYPE(object));
        return false;
    }
    if (!sgpy_view(object, optional, text, &len))
        return false;
    if (*text && strlen(*text) != len) {
        PyErr_SetString(PyExc_ValueError, "a name must not have a NUL character");
        return false;
    }
    return true;
}

PyObject *sgpy_bytes(const char *text, size_t len)
{
    return text ? PyBytes_FromStringAndSize(text, (Py_ssize_t)len) : Py_NewRef(Py_None);
}

PyObject *sgpy_text(const char *text, size_t len)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "backslashreplace");
}

PyObject *sgpy_exact(const char *text)
{
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "strict")
                : Py_NewRef(Py_None);
}

PyObject *sgpy_string(const char *text)
{
    return text ? sgpy_text(text, strlen(text)) : Py_NewRef(Py_None);
}
