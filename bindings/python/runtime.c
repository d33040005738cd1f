/* Runtimes and transports: the functions that take options and callbacks. Each callback
 * table that the library gets has its own `user` (struct sgpy_user). If a function of the
 * library fails, the library has taken nothing, and this file frees the user. */
#include "shim.h"

PyObject *sgpy_runtime_new(PyObject *options, PyObject *log, bool track)
{
    segue_runtime_options full;
    sgpy_options kept;
    segue_runtime *runtime;
    if (!sgpy_options_fill(&kept, OPTIONS_RUNTIME, &full, options))
        return NULL;
    sgpy_host *host = sgpy_host_new();
    if (!host) {
        sgpy_options_free(&kept);
        return PyErr_NoMemory();
    }
    host->spare = Py_BuildValue(
        "(OiNsO)", Py_None, SGB_EXCEPTION,
        PyObject_CallFunction(PyExc_MemoryError, "s",
                              "an event was lost, because memory was short"),
        "dispatch", Py_None);
    if (!host->spare) {
        sgpy_options_free(&kept);
        sgpy_host_unref(host);
        return NULL;
    }
    full.allocator = track ? sgb_counting_allocator() : NULL;
    full.user = host;
    if (log != Py_None) {
        host->log = Py_NewRef(log);
        full.log = sgpy_on_log;
    }
    segue_status status = segue_runtime_new(&full, &runtime, sgpy_error_slot());
    sgpy_options_free(&kept);
    if (status != SEGUE_OK) {
        sgpy_host_end(host);
        sgpy_host_unref(host);
        return sgpy_raise(status);
    }
    host->runtime = runtime;
    PyObject *object = sgpy_wrap(SGPY_RUNTIME, runtime, host);
    sgpy_host_unref(host);
    return object;
}

PyObject *sgpy_runtime_observe(PyObject *runtime, PyObject *handler, PyObject *options)
{
    segue_observer_options full;
    sgpy_options kept;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    if (!ptr || !sgpy_options_fill(&kept, OPTIONS_OBSERVER, &full, options))
        return NULL;
    sgpy_host *host = sgpy_host_of(runtime);
    full.user = host;
    full.on_event = sgpy_on_event;
    segue_status status = segue_runtime_observe(ptr, handler == Py_None ? NULL : &full);
    sgpy_options_free(&kept);
    if (status != SEGUE_OK)
        return sgpy_raise(status);
    PyObject *earlier = host->observer;
    host->observer = handler == Py_None ? NULL : Py_NewRef(handler);
    Py_XDECREF(earlier);
    return Py_NewRef(Py_None);
}

/* Begins runtime_dispatch, runtime_run or runtime_free, with a new batch for its events.
 * Returns NULL with an exception on failure. */
static sgpy_host *begin_batch(PyObject *runtime)
{
    if (!sgpy_unwrap(runtime, SGPY_RUNTIME))
        return NULL;
    sgpy_host *host = sgpy_host_of(runtime);
    if (host->busy) {
        sgpy_raise(host->apart ? SEGUE_E_THREAD : SEGUE_E_REENTRANT);
        return NULL;
    }
    host->batch = PyList_New(0);
    if (!host->batch)
        return NULL;
    host->round++;
    host->busy = true;
    return host;
}

/* Ends the batch and returns the list of its events, including the entries of the side
 * queue. */
static PyObject *end_batch(sgpy_host *host)
{
    sgpy_side_drain(host);
    sgpy_settle(host);
    PyObject *batch = host->batch;
    host->batch = NULL;
    host->busy = false;
    return batch;
}

PyObject *sgpy_dispatch(PyObject *runtime, long long timeout_ms, int max_events)
{
    int32_t ran = 0;
    sgpy_host *host = begin_batch(runtime);
    if (!host)
        return NULL;
    sgpy_host_ref(host);
    if (timeout_ms) {
        host->apart = true;
        sgpy_let_go();
    }
    segue_status status =
        segue_runtime_dispatch(host->runtime, timeout_ms, max_events, &ran);
    sgpy_enter();
    host->apart = false;
    PyObject *batch = end_batch(host);
    sgpy_host_unref(host);
    if (!batch || status == SEGUE_OK || PyList_Size(batch) > 0)
        return batch;
    Py_DECREF(batch);
    return sgpy_raise(status);
}

PyObject *sgpy_runtime_run(PyObject *runtime)
{
    sgpy_host *host = begin_batch(runtime);
    if (!host)
        return NULL;
    sgpy_host_ref(host);
    host->apart = true;
    sgpy_let_go();
    segue_status status = segue_runtime_run(host->runtime);
    sgpy_enter();
    host->apart = false;
    PyObject *batch = end_batch(host);
    sgpy_host_unref(host);
    if (status == SEGUE_OK)
        return batch;
    Py_XDECREF(batch);
    return sgpy_raise(status);
}

PyObject *sgpy_runtime_free(PyObject *runtime)
{
    sgpy_host *host = begin_batch(runtime);
    if (!host)
        return NULL;
    sgpy_host_ref(host);
    segue_runtime *ptr = host->runtime;
    sgpy_consume(runtime);
    host->apart = true;
    sgpy_let_go(); /* A store's thread may need the GIL to end, so the GIL is released. */
    segue_runtime_free(ptr);
    sgpy_enter();
    host->apart = false;
    host->runtime = NULL;
    PyObject *batch = end_batch(host);
    sgpy_host_end(host);
    sgpy_host_unref(host);
    return batch;
}

PyObject *sgpy_runtime_side_fd(PyObject *runtime)
{
    if (!sgpy_unwrap(runtime, SGPY_RUNTIME))
        return NULL;
    return PyLong_FromLong(sgpy_host_of(runtime)->side_fd);
}

/* ---- transports ---- */

PyObject *sgpy_transport_pair(PyObject *runtime)
{
    segue_transport *a, *b;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    segue_status status = ptr ? segue_transport_pair(ptr, &a, &b) : SEGUE_E_INVALID;
    if (status != SEGUE_OK)
        return sgpy_raise(status);
    PyObject *first = sgpy_wrap(SGPY_TRANSPORT, a, sgpy_host_of(runtime));
    PyObject *second = sgpy_wrap(SGPY_TRANSPORT, b, sgpy_host_of(runtime));
    PyObject *pair = first && second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return pair;
}

PyObject *sgpy_transport_spawn(PyObject *runtime, PyObject *options, PyObject *handler)
{
    segue_spawn_options full;
    sgpy_options kept;
    segue_transport *transport;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    if (!ptr || !sgpy_options_fill(&kept, OPTIONS_SPAWN, &full, options))
        return NULL;
    sgpy_user *user = NULL;
    if (handler != Py_None) {
        user = sgpy_user_new(sgpy_host_of(runtime), handler);
        full.user = user;
        full.free_user = sgpy_on_stderr_end;
        full.on_stderr = sgpy_on_stderr;
    }
    segue_status status = SEGUE_E_NOMEM;
    if (user || handler == Py_None)
        status = segue_transport_spawn(ptr, &full, &transport, sgpy_error_slot());
    sgpy_options_free(&kept);
    if (status == SEGUE_OK)
        return sgpy_wrap(SGPY_TRANSPORT, transport, sgpy_host_of(runtime));
    sgpy_user_free(user);
    return sgpy_raise(status);
}

PyObject *sgpy_transport_http(PyObject *runtime, PyObject *url, PyObject *options,
                              PyObject *on_headers)
{
    segue_http_options full;
    sgpy_options kept;
    segue_transport *transport;
    const char *text;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    if (!ptr || !sgpy_name(url, false, &text) ||
        !sgpy_options_fill(&kept, OPTIONS_HTTP, &full, options))
        return NULL;
    sgpy_user *user = NULL;
    if (on_headers != Py_None) {
        user = sgpy_user_new(sgpy_host_of(runtime), NULL);
        if (user)
            sgpy_user_hook(user, SGPY_HOOK_FIRST, on_headers);
        full.user = user;
        full.free_user = sgpy_user_free;
        full.on_headers = sgpy_ask_headers;
    }
    segue_status status = SEGUE_E_NOMEM;
    if (user || on_headers == Py_None)
        status = segue_transport_http(ptr, text, &full, &transport, sgpy_error_slot());
    sgpy_options_free(&kept);
    if (status == SEGUE_OK)
        return sgpy_wrap(SGPY_TRANSPORT, transport, sgpy_host_of(runtime));
    sgpy_user_free(user);
    return sgpy_raise(status);
}

PyObject *sgpy_transport_set_oauth(PyObject *transport, PyObject *options,
                                   PyObject *handler, PyObject *on_assertion,
                                   PyObject *on_load, PyObject *on_save)
{
    segue_oauth_options full;
    sgpy_options kept;
    segue_transport *ptr = sgpy_unwrap(transport, SGPY_TRANSPORT);
    if (!ptr || !sgpy_options_fill(&kept, OPTIONS_OAUTH, &full, options))
        return NULL;
    segue_status status = SEGUE_E_NOMEM;
    sgpy_user *user = sgpy_user_new(sgpy_host_of(transport), handler);
    if (user) {
        sgpy_user_hook(user, SGPY_HOOK_FIRST, on_assertion);
        sgpy_user_hook(user, SGPY_HOOK_SECOND, on_load);
        sgpy_user_hook(user, SGPY_HOOK_THIRD, on_save);
        full.user = user;
        full.free_user = sgpy_user_free;
        full.on_authorize = user->handler ? sgpy_on_authorize : NULL;
        full.on_assertion = user->hooks[SGPY_HOOK_FIRST] ? sgpy_ask_assertion : NULL;
        full.on_load = user->hooks[SGPY_HOOK_SECOND] ? sgpy_ask_load : NULL;
        full.on_save = user->hooks[SGPY_HOOK_THIRD] ? sgpy_ask_save : NULL;
        status = segue_transport_set_oauth(ptr, &full, sgpy_error_slot());
    }
    sgpy_options_free(&kept);
    if (status == SEGUE_OK)
        return Py_NewRef(Py_None);
    sgpy_user_free(user);
    return sgpy_raise(status);
}
