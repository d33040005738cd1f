/* Handles as Python objects.
 *
 *   wrapped   ptr set                   usable while the runtime exists
 *   consumed  ptr NULL                  the library took it (an attached transport)
 *   freed     ptr NULL                  by X_free
 *
 * Each object owns its handle and frees the handle when the object is freed. The library
 * allows freeing a handle at any time, even after the runtime was freed, and inside
 * callbacks. Using a handle that is not in the state "wrapped" raises ClosedError. Each
 * kind of handle is a Python type, so a handle of a wrong kind raises a TypeError. The
 * argument of a hook (such as a transport inside principal) is a view: an object that is
 * consumed when the hook returns.
 *
 * In the child of a fork, the parent's handles count as freed and are not touched. The
 * threads that use these handles do not exist in the child, and locks of these threads
 * may stay locked for ever.
 *
 * An object refers to its host, never to the Python object of the runtime. So the objects
 * of a callback table form no reference cycle with the runtime that holds the table. A
 * runtime that was not freed explicitly is freed together with its object, without
 * events. */
#include "../common/closed.h"
#include "shim.h"

#include <string.h>

typedef void (*free_fn)(void *ptr);

static void free_transport(void *ptr)
{
    segue_transport_free(ptr);
}

static void free_store(void *ptr)
{
    Py_BEGIN_ALLOW_THREADS /* the GIL is released, because freeing a store may close a
                            * file or join a thread */
        segue_store_free(ptr);
    Py_END_ALLOW_THREADS
}

static void free_server(void *ptr)
{
    segue_server_free(ptr);
}

static void free_listener(void *ptr)
{
    segue_listener_free(ptr);
}

static void free_exchange(void *ptr)
{
    segue_exchange_free(ptr);
}

static void free_bearer(void *ptr)
{
    segue_bearer_free(ptr);
}

static void free_call(void *ptr)
{
    segue_call_free(ptr);
}

static void free_session(void *ptr)
{
    segue_session_free(ptr);
}

static void free_request(void *ptr)
{
    segue_request_free(ptr);
}

static void free_task(void *ptr)
{
    segue_task_free(ptr);
}

static void free_content(void *ptr)
{
    segue_content_free(ptr);
}

static void free_runtime(void *ptr)
{
    segue_runtime_free(ptr);
}

typedef struct row {
    const char *name;
    free_fn free;
} row;

static const row rows[SGPY_KINDS] = {
    [SGPY_RUNTIME] = {"Runtime", free_runtime},
    [SGPY_TRANSPORT] = {"Transport", free_transport},
    [SGPY_STORE] = {"Store", free_store},
    [SGPY_SERVER] = {"Server", free_server},
    [SGPY_LISTENER] = {"Listener", free_listener},
    [SGPY_EXCHANGE] = {"Exchange", free_exchange},
    [SGPY_BEARER] = {"Bearer", free_bearer},
    [SGPY_CALL] = {"Call", free_call},
    [SGPY_SESSION] = {"Session", free_session},
    [SGPY_REQUEST] = {"Request", free_request},
    [SGPY_TASK] = {"Task", free_task},
    [SGPY_CONTENT] = {"Content", free_content},
    [SGPY_WIRE] = {"Wire", sgb_transport_unref},
    [SGPY_SHELF] = {"Shelf", sgpy_shelf_free},
};

static int forks;
static long live[SGPY_KINDS];

static void count_fork(void)
{
    forks++;
    memset(live, 0, sizeof live);
}

int sgpy_forks(void)
{
    return forks;
}

static bool is_inherited(const sgpy_handle *handle)
{
    return handle->born != forks;
}

static void raise_closed(const sgpy_handle *handle, sgpy_kind kind)
{
    if (!is_inherited(handle))
        sgpy_raise_text(SEGUE_E_CLOSED, sgb_closed_text(rows[kind].name));
    else
        sgpy_raise_text(SEGUE_E_CLOSED,
                        "this object was made before the process was forked and only "
                        "works in the parent process: make a new one here");
}

static PyTypeObject *types[SGPY_KINDS];

static void free_one(sgpy_kind kind, void *ptr, sgpy_host *host)
{
    live[kind]--;
    if (kind == SGPY_RUNTIME) {
        host->runtime = NULL;
        host->busy = true; /* callbacks append no events from now on */
    }
    rows[kind].free(ptr);
    if (kind == SGPY_RUNTIME) {
        sgpy_side_drain(host);
        sgpy_host_end(host);
    }
}

static void dealloc_handle(PyObject *object)
{
    sgpy_handle *handle = (sgpy_handle *)(void *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *error, *value, *trace;
    PyErr_Fetch(&error, &value, &trace);
    if (handle->ptr) {
        sgpy_kind kind = SGPY_RUNTIME;
        while (types[kind] != type)
            kind++;
        void *ptr = handle->ptr;
        handle->ptr = NULL;
        if (!is_inherited(handle))
            free_one(kind, ptr, handle->host);
    }
    if (handle->host && !is_inherited(handle))
        sgpy_host_unref(handle->host);
    PyErr_Restore(error, value, trace);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

static PyObject *repr_handle(PyObject *object)
{
    const sgpy_handle *handle = (const sgpy_handle *)(const void *)object;
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    if (!name)
        return NULL;
    PyObject *text = PyUnicode_FromFormat(
        handle->ptr ? "<segue.%U at %p>" : "<segue.%U, freed>", name, handle->ptr);
    Py_DECREF(name);
    return text;
}

PyObject *sgpy_wrap_view(sgpy_kind kind, void *ptr, sgpy_host *host)
{
    PyObject *object = PyType_GenericAlloc(types[kind], 0);
    if (!object)
        return NULL;
    sgpy_handle *handle = (sgpy_handle *)(void *)object;
    handle->ptr = ptr;
    handle->born = forks;
    handle->host = host ? sgpy_host_ref(host) : NULL;
    live[kind]++;
    return object;
}

PyObject *sgpy_wrap(sgpy_kind kind, void *ptr, sgpy_host *host)
{
    PyObject *object = sgpy_wrap_view(kind, ptr, host);
    if (!object)
        rows[kind].free(ptr);
    return object;
}

void *sgpy_unwrap(PyObject *object, sgpy_kind kind)
{
    if (Py_TYPE(object) != types[kind]) {
        PyErr_Format(PyExc_TypeError, "a %s is required, not %R", rows[kind].name,
                     (PyObject *)Py_TYPE(object));
        return NULL;
    }
    sgpy_handle *handle = (sgpy_handle *)(void *)object;
    if (is_inherited(handle) || !handle->ptr ||
        (handle->host && !handle->host->runtime)) {
        raise_closed(handle, kind);
        return NULL;
    }
    return handle->ptr;
}

sgpy_host *sgpy_host_of(PyObject *object)
{
    return ((sgpy_handle *)(void *)object)->host;
}

void sgpy_consume(PyObject *object)
{
    sgpy_handle *handle = (sgpy_handle *)(void *)object;
    if (!handle->ptr)
        return;
    for (int kind = 0; kind < SGPY_KINDS; kind++)
        if (types[kind] == Py_TYPE(object))
            live[kind]--;
    handle->ptr = NULL;
}

int sgpy_release(PyObject *object, sgpy_kind kind)
{
    if (Py_TYPE(object) != types[kind]) {
        sgpy_unwrap(object, kind);
        return -1;
    }
    sgpy_handle *handle = (sgpy_handle *)(void *)object;
    void *ptr = handle->ptr;
    if (!ptr || is_inherited(handle)) {
        raise_closed(handle, kind);
        return -1;
    }
    handle->ptr = NULL;
    free_one(kind, ptr, handle->host);
    return 0;
}

PyObject *sgpy_live_handles(void)
{
    PyObject *dict = PyDict_New();
    for (int kind = 0; dict && kind < SGPY_KINDS; kind++) {
        PyObject *count = live[kind] ? PyLong_FromLong(live[kind]) : NULL;
        if (!live[kind])
            continue;
        if (!count || PyDict_SetItemString(dict, rows[kind].name, count) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(count);
    }
    return dict;
}

static PyTypeObject *make_type(const char *name)
{
    char full[64];
    PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc_handle},
                           {Py_tp_repr, (void *)repr_handle},
                           {0, NULL}};
    PyOS_snprintf(full, sizeof full, "segue._segue.%s", name);
    PyType_Spec spec = {full, sizeof(sgpy_handle), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return (PyTypeObject *)PyType_FromSpec(&spec);
}

int sgpy_handle_init(PyObject *module)
{
    if (pthread_atfork(NULL, NULL, count_fork) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    for (int kind = 0; kind < SGPY_KINDS; kind++) {
        types[kind] = make_type(rows[kind].name);
        if (!types[kind] ||
            PyModule_AddObjectRef(module, rows[kind].name, (PyObject *)types[kind]) < 0)
            return -1;
    }
    return 0;
}
