/* Custom transports in Python (transport_custom). The library calls the Python code by
 * events. The Python code reports received bytes to the library through a Wire, which
 * its handler receives in the event TRANSPORT_START (../common/custom_transport.h). */
#include "shim.h"

PyObject *sgpy_wire_show(const sgpy_user *user)
{
    return sgpy_wrap(SGPY_WIRE, sgb_transport_ref(user->custom), user->host);
}

static bool put_event(void *opaque, int kind, int64_t number, const char *bytes,
                      size_t len)
{
    sgpy_user *user = opaque;
    return sgb_side_put(&user->host->side, kind, user, number, bytes, len);
}

static sgpy_user *make_user(sgpy_host *host, PyObject *handler)
{
    sgpy_user *user = sgpy_user_new(host, handler);
    if (!user)
        return NULL;
    user->custom = sgb_transport_new(user, put_event);
    if (user->custom)
        return user;
    sgpy_user_free(user);
    PyErr_NoMemory();
    return NULL;
}

PyObject *sgpy_transport_custom(PyObject *runtime, PyObject *handler, bool reopen)
{
    segue_transport *transport;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    sgpy_user *user = ptr ? make_user(sgpy_host_of(runtime), handler) : NULL;
    if (!user)
        return NULL;
    segue_status status = sgb_transport_open(user->custom, ptr, reopen, &transport);
    if (status == SEGUE_OK)
        return sgpy_wrap(SGPY_TRANSPORT, transport, sgpy_host_of(runtime));
    sgb_transport_unref(user->custom);
    sgpy_user_free(user);
    return sgpy_raise(status);
}

PyObject *sgpy_transport_feed(PyObject *wire, PyObject *data)
{
    const char *bytes;
    size_t len;
    sgb_transport *custom = sgpy_unwrap(wire, SGPY_WIRE);
    if (!custom || !sgpy_view(data, false, &bytes, &len))
        return NULL;
    return sgpy_sent(sgb_transport_feed(custom, bytes, len));
}

static PyObject *none_or_raise(segue_status status)
{
    if (status != SEGUE_OK)
        return sgpy_raise(status);
    return Py_NewRef(Py_None);
}

PyObject *sgpy_transport_took(PyObject *wire, int64_t count)
{
    sgb_transport *custom = sgpy_unwrap(wire, SGPY_WIRE);
    return custom ? none_or_raise(sgb_transport_took(custom, count)) : NULL;
}

PyObject *sgpy_transport_writable(PyObject *wire)
{
    sgb_transport *custom = sgpy_unwrap(wire, SGPY_WIRE);
    return custom ? none_or_raise(sgb_transport_writable(custom)) : NULL;
}

PyObject *sgpy_transport_closed(PyObject *wire)
{
    sgb_transport *custom = sgpy_unwrap(wire, SGPY_WIRE);
    return custom ? none_or_raise(sgb_transport_closed(custom)) : NULL;
}
