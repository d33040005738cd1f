/* Transports of Python's own (transport_custom). The library calls the table on its I/O
 * thread, which must not meet Python: each call leaves a note in the side queue, and
 * dispatch returns it as an event. What Python says comes by a Wire, which
 * TRANSPORT_START hands over and which stays safe to use when the transport is gone.
 *
 *   transport   set by start, cleared by free; looked at under the mutex, which is held
 *               while the library is called, so that it cannot go in between
 *   queued      bytes handed to Python that it has not yet said it took: at most
 *               MAX_QUEUED, beyond which send takes nothing
 *   refused     send took less than it was given: transport_took has to ring
 *
 * The wire is held by the table (until free) and by the Python object. */
#include "shim.h"

#include <stdlib.h>

#define MAX_QUEUED ((size_t)1024 * 1024)

struct sgpy_wire {
    _Atomic int refs;
    pthread_mutex_t mutex;
    segue_transport *transport;
    sgpy_user *user;
    size_t queued;
    bool refused;
};

static void unref_wire(sgpy_wire *wire)
{
    if (atomic_fetch_sub(&wire->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&wire->mutex);
    free(wire);
}

void sgpy_wire_free(void *wire)
{
    unref_wire(wire);
}

PyObject *sgpy_wire_show(sgpy_user *user)
{
    sgpy_wire *wire = user->wire;
    atomic_fetch_add(&wire->refs, 1);
    return sgpy_wrap(SGPY_WIRE, wire, user->host);
}

/* ---- the table; any thread ---- */

static void note(sgpy_wire *wire, int kind, int64_t number)
{
    sgpy_side_put(wire->user->host, kind, wire->user, number, NULL, 0);
}

static void start(void *self, segue_transport *transport)
{
    sgpy_wire *wire = self;
    pthread_mutex_lock(&wire->mutex);
    wire->transport = transport;
    pthread_mutex_unlock(&wire->mutex);
    note(wire, SGPY_TRANSPORT_START, 0);
}

static size_t send_bytes(void *self, const char *bytes, size_t len)
{
    sgpy_wire *wire = self;
    pthread_mutex_lock(&wire->mutex);
    size_t room = MAX_QUEUED - wire->queued;
    size_t took = len < room ? len : room;
    if (took &&
        !sgpy_side_put(wire->user->host, SGPY_TRANSPORT_SEND, wire->user, 0, bytes, took))
        took = 0;
    wire->queued += took;
    wire->refused |= took < len;
    pthread_mutex_unlock(&wire->mutex);
    return took;
}

static void close_wire(void *self)
{
    note(self, SGPY_TRANSPORT_CLOSE, 0);
}

static void pause_wire(void *self, int32_t paused)
{
    note(self, SGPY_TRANSPORT_PAUSE, paused);
}

static int32_t reopen_wire(void *self)
{
    note(self, SGPY_TRANSPORT_REOPEN, 0);
    return 0;
}

static void free_wire(void *self)
{
    sgpy_wire *wire = self;
    pthread_mutex_lock(&wire->mutex);
    wire->transport = NULL;
    pthread_mutex_unlock(&wire->mutex);
    note(wire, SGPY_TRANSPORT_FREE, 0); /* the user goes with this event */
    unref_wire(wire);
}

/* ---- Python's side ---- */

static sgpy_wire *make_wire(sgpy_host *host, PyObject *handler)
{
    sgpy_wire *wire = calloc(1, sizeof *wire);
    if (!wire) {
        PyErr_NoMemory();
        return NULL;
    }
    wire->user = sgpy_user_new(host, handler);
    if (!wire->user) {
        free(wire);
        return NULL;
    }
    wire->refs = 1;
    wire->user->wire = wire;
    pthread_mutex_init(&wire->mutex, NULL);
    return wire;
}

PyObject *sgpy_transport_custom(PyObject *runtime, PyObject *handler, bool reopen)
{
    segue_transport_vtable table;
    segue_transport *transport;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    sgpy_wire *wire = ptr ? make_wire(sgpy_host_of(runtime), handler) : NULL;
    if (!wire)
        return NULL;
    segue_struct_init(&table, sizeof table, SEGUE_STRUCT_TRANSPORT_VTABLE);
    table.start = start;
    table.send = send_bytes;
    table.close = close_wire;
    table.pause = pause_wire;
    table.reopen = reopen ? reopen_wire : NULL;
    table.free = free_wire;
    segue_status status = segue_transport_custom(ptr, &table, wire, &transport);
    if (status == SEGUE_OK)
        return sgpy_wrap(SGPY_TRANSPORT, transport, sgpy_host_of(runtime));
    sgpy_user_free(wire->user);
    unref_wire(wire);
    return sgpy_raise(status);
}

typedef segue_status (*tell_fn)(segue_transport *transport, const char *bytes,
                                size_t len);

static segue_status tell_feed(segue_transport *transport, const char *bytes, size_t len)
{
    return segue_transport_feed(transport, bytes, len);
}

static segue_status tell_writable(segue_transport *transport, const char *bytes,
                                  size_t len)
{
    (void)bytes;
    (void)len;
    return segue_transport_writable(transport);
}

static segue_status tell_closed(segue_transport *transport, const char *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    return segue_transport_closed(transport);
}

static segue_status tell(sgpy_wire *wire, tell_fn fn, const char *bytes, size_t len)
{
    pthread_mutex_lock(&wire->mutex);
    segue_status status =
        wire->transport ? fn(wire->transport, bytes, len) : SEGUE_E_CLOSED;
    pthread_mutex_unlock(&wire->mutex);
    return status;
}

PyObject *sgpy_transport_feed(PyObject *object, PyObject *data)
{
    const char *bytes;
    size_t len;
    sgpy_wire *wire = sgpy_unwrap(object, SGPY_WIRE);
    if (!wire || !sgpy_view(data, false, &bytes, &len))
        return NULL;
    return sgpy_sent(tell(wire, tell_feed, bytes, len));
}

static PyObject *none_or_raise(segue_status status)
{
    if (status != SEGUE_OK)
        return sgpy_raise(status);
    return Py_NewRef(Py_None);
}

PyObject *sgpy_transport_took(PyObject *object, int64_t count)
{
    sgpy_wire *wire = sgpy_unwrap(object, SGPY_WIRE);
    if (!wire)
        return NULL;
    pthread_mutex_lock(&wire->mutex);
    bool good = count >= 0 && (size_t)count <= wire->queued;
    if (good)
        wire->queued -= (size_t)count;
    bool ring = good && wire->refused && wire->queued <= MAX_QUEUED / 2;
    if (ring)
        wire->refused = false;
    pthread_mutex_unlock(&wire->mutex);
    if (!good)
        return sgpy_raise(SEGUE_E_INVALID);
    if (ring)
        tell(wire, tell_writable, NULL, 0); /* one that is gone needs no bell */
    return Py_NewRef(Py_None);
}

PyObject *sgpy_transport_writable(PyObject *object)
{
    sgpy_wire *wire = sgpy_unwrap(object, SGPY_WIRE);
    return wire ? none_or_raise(tell(wire, tell_writable, NULL, 0)) : NULL;
}

PyObject *sgpy_transport_closed(PyObject *object)
{
    sgpy_wire *wire = sgpy_unwrap(object, SGPY_WIRE);
    return wire ? none_or_raise(tell(wire, tell_closed, NULL, 0)) : NULL;
}
