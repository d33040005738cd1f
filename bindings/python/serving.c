/* Servers and calls: the functions that take options and callbacks. */
#include "shim.h"

#include <stdlib.h>

PyObject *sgpy_server_new(PyObject *runtime, PyObject *options, PyObject *handler,
                          PyObject *principal, PyObject *validate)
{
    segue_server_options full;
    sgpy_options kept;
    segue_server *server;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    if (!ptr || !sgpy_options_fill(&kept, OPTIONS_SERVER, &full, options))
        return NULL;
    segue_status status = SEGUE_E_NOMEM;
    sgpy_user *user = sgpy_user_new(sgpy_host_of(runtime), handler);
    if (user) {
        sgpy_user_hook(user, SGPY_HOOK_FIRST, principal);
        sgpy_user_hook(user, SGPY_HOOK_SECOND, validate);
        full.user = user;
        full.free_user = sgpy_user_free;
        full.on_idle = user->handler ? sgpy_on_idle : NULL;
        full.principal = user->hooks[SGPY_HOOK_FIRST] ? sgpy_ask_principal : NULL;
        full.on_validate = user->hooks[SGPY_HOOK_SECOND] ? sgpy_ask_validate : NULL;
        status = segue_server_new(ptr, &full, &server, sgpy_error_slot());
    }
    sgpy_options_free(&kept);
    if (status == SEGUE_OK)
        return sgpy_wrap(SGPY_SERVER, server, sgpy_host_of(runtime));
    sgpy_user_free(user);
    return sgpy_raise(status);
}

PyObject *sgpy_server_add(PyObject *server, int item, PyObject *json, PyObject *options,
                          PyObject *handler, bool completion)
{
    segue_item_options full;
    sgpy_options kept;
    const char *text;
    size_t len;
    segue_server *ptr = sgpy_unwrap(server, SGPY_SERVER);
    if (!ptr || !sgpy_view(json, false, &text, &len) ||
        !sgpy_options_fill(&kept, OPTIONS_ITEM, &full, options))
        return NULL;
    segue_status status = SEGUE_E_NOMEM;
    sgpy_user *user = sgpy_user_new(sgpy_host_of(server), handler);
    if (user) {
        full.user = user;
        full.free_user = sgpy_user_free;
        full.on_call = sgpy_on_call;
        full.on_completion = completion ? sgpy_on_completion : NULL;
        status = segue_server_add(ptr, item, text, len, &full, sgpy_error_slot());
    }
    sgpy_options_free(&kept);
    if (status == SEGUE_OK)
        return Py_NewRef(Py_None);
    sgpy_user_free(user);
    return sgpy_raise(status);
}

PyObject *sgpy_item_check(int item, PyObject *json, PyObject *options)
{
    segue_item_options full;
    sgpy_options kept;
    const char *text;
    const char *advice = NULL;
    size_t len;
    if (!sgpy_view(json, false, &text, &len) ||
        !sgpy_options_fill(&kept, OPTIONS_ITEM, &full, options))
        return NULL;
    segue_status status =
        segue_item_check(item, text, len, &full, &advice, sgpy_error_slot());
    sgpy_options_free(&kept);
    if (status != SEGUE_OK)
        return sgpy_raise(status);
    return advice ? PyUnicode_FromString(advice) : Py_NewRef(Py_None);
}

PyObject *sgpy_server_check(PyObject *options)
{
    segue_server_options full;
    sgpy_options kept;
    if (!sgpy_options_fill(&kept, OPTIONS_SERVER, &full, options))
        return NULL;
    segue_status status = segue_server_check(&full, sgpy_error_slot());
    sgpy_options_free(&kept);
    return status == SEGUE_OK ? Py_NewRef(Py_None) : sgpy_raise(status);
}

PyObject *sgpy_server_watch_clients(PyObject *server, PyObject *handler)
{
    segue_client_events events = SEGUE_CLIENT_EVENTS_INIT;
    segue_server *ptr = sgpy_unwrap(server, SGPY_SERVER);
    sgpy_user *user = ptr ? sgpy_user_new(sgpy_host_of(server), handler) : NULL;
    if (!user)
        return NULL;
    events.user = user;
    events.free_user = sgpy_user_free;
    events.on_open = sgpy_on_client_open;
    events.on_closed = sgpy_on_client_closed;
    segue_status status = segue_server_watch_clients(ptr, &events, sgpy_error_slot());
    if (status == SEGUE_OK)
        return Py_NewRef(Py_None);
    sgpy_user_free(user);
    return sgpy_raise(status);
}

PyObject *sgpy_server_attach(PyObject *server, PyObject *transport)
{
    segue_server *ptr = sgpy_unwrap(server, SGPY_SERVER);
    segue_transport *way = ptr ? sgpy_unwrap(transport, SGPY_TRANSPORT) : NULL;
    segue_status status =
        way ? segue_server_attach(ptr, way, sgpy_error_slot()) : SEGUE_E_INVALID;
    if (status != SEGUE_OK)
        return sgpy_raise(status);
    sgpy_consume(transport);
    return Py_NewRef(Py_None);
}

/* Fills the options by which a listener requires tokens. Returns false with an exception
 * on failure. */
static bool fill_bearer(sgpy_options *kept, segue_bearer_options *full, PyObject *server,
                        PyObject *options, PyObject *on_bearer, sgpy_user **user)
{
    if (!sgpy_options_fill(kept, OPTIONS_BEARER, full, options))
        return false;
    if (on_bearer == Py_None)
        return true;
    *user = sgpy_user_new(sgpy_host_of(server), NULL);
    if (!*user)
        return false;
    sgpy_user_hook(*user, SGPY_HOOK_FIRST, on_bearer);
    full->user = *user;
    full->free_user = sgpy_user_free;
    full->on_bearer = sgpy_ask_bearer;
    return true;
}

typedef segue_status (*listen_fn)(segue_server *server,
                                  const segue_listen_options *options,
                                  segue_listener **out, segue_error **error);

static PyObject *listen_with(listen_fn listen, PyObject *server, PyObject *options,
                             PyObject *bearer, PyObject *on_bearer)
{
    segue_listen_options full;
    segue_bearer_options gate;
    sgpy_options kept, kept_gate = {.count = 0};
    segue_listener *listener;
    sgpy_user *user = NULL;
    segue_status status;
    segue_server *ptr = sgpy_unwrap(server, SGPY_SERVER);
    if (!ptr || !sgpy_options_fill(&kept, OPTIONS_LISTEN, &full, options))
        return NULL;
    if (bearer != Py_None) {
        if (!fill_bearer(&kept_gate, &gate, server, bearer, on_bearer, &user)) {
            sgpy_options_free(&kept);
            return NULL;
        }
        full.bearer = &gate;
    }
    segue_error **error = sgpy_error_slot();
    Py_BEGIN_ALLOW_THREADS /* the GIL is released while certificates and keys are read */
        status = listen(ptr, &full, &listener, error);
    Py_END_ALLOW_THREADS sgpy_options_free(&kept);
    sgpy_options_free(&kept_gate);
    if (status == SEGUE_OK)
        return sgpy_wrap(SGPY_LISTENER, listener, sgpy_host_of(server));
    sgpy_user_free(user);
    return sgpy_raise(status);
}

static PyObject *copy_dict(PyObject *dict)
{
    return PyDict_Check(dict) ? PyDict_Copy(dict) : Py_NewRef(dict);
}

/* Begins to listen. The function copies the dicts first, because the options point to
 * values of the dicts, and other threads may change a dict while the GIL is released. */
static PyObject *listen_by(listen_fn listen, PyObject *server, PyObject *options,
                           PyObject *bearer, PyObject *on_bearer)
{
    PyObject *made = NULL;
    PyObject *own = copy_dict(options);
    PyObject *own_bearer = copy_dict(bearer);
    if (own && own_bearer)
        made = listen_with(listen, server, own, own_bearer, on_bearer);
    Py_XDECREF(own);
    Py_XDECREF(own_bearer);
    return made;
}

PyObject *sgpy_server_listen(PyObject *server, PyObject *options, PyObject *bearer,
                             PyObject *on_bearer)
{
    return listen_by(segue_server_listen, server, options, bearer, on_bearer);
}

PyObject *sgpy_listener_open(PyObject *server, PyObject *options, PyObject *bearer,
                             PyObject *on_bearer)
{
    return listen_by(segue_listener_open, server, options, bearer, on_bearer);
}

/* ---- calls ---- */

PyObject *sgpy_call_watch(PyObject *call, PyObject *handler)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    segue_call *ptr = sgpy_unwrap(call, SGPY_CALL);
    sgpy_user *user = ptr ? sgpy_user_new(sgpy_host_of(call), handler) : NULL;
    if (!user)
        return NULL;
    events.user = user;
    events.free_user = sgpy_user_free;
    events.on_cancel = sgpy_on_cancel;
    events.on_drain = sgpy_on_drain;
    segue_status status = segue_call_watch(ptr, &events);
    if (status == SEGUE_OK)
        return Py_NewRef(Py_None);
    sgpy_user_free(user);
    return sgpy_raise(status);
}

PyObject *sgpy_call_require_input(PyObject *call, PyObject *key, PyObject *method,
                                  PyObject *params, PyObject *handler)
{
    const char *key_text, *method_text, *json;
    size_t len;
    segue_call *ptr = sgpy_unwrap(call, SGPY_CALL);
    if (!ptr || !sgpy_name(key, true, &key_text) ||
        !sgpy_name(method, false, &method_text) || !sgpy_view(params, true, &json, &len))
        return NULL;
    sgpy_user *user = sgpy_user_new(sgpy_host_of(call), handler);
    if (!user)
        return NULL;
    segue_status status =
        segue_call_require_input(ptr, key_text, method_text, json, len, sgpy_on_input,
                                 user, sgpy_user_free, sgpy_error_slot());
    if (status == SEGUE_OK)
        return Py_NewRef(Py_None);
    sgpy_user_free(user);
    return sgpy_raise(status);
}

PyObject *sgpy_call_set_completion(PyObject *call, PyObject *values, long long total,
                                   bool has_more)
{
    segue_call *ptr = sgpy_unwrap(call, SGPY_CALL);
    PyObject *items = ptr ? PySequence_Tuple(values) : NULL;
    if (!items)
        return NULL;
    Py_ssize_t count = PyTuple_Size(items);
    const char **texts = calloc((size_t)count + 1, sizeof *texts);
    bool good = texts != NULL;
    if (!texts)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = sgpy_name(PyTuple_GetItem(items, i), false, &texts[i]);
    segue_status status = SEGUE_OK;
    if (good)
        status = segue_call_set_completion(ptr, texts, (size_t)count, total, has_more,
                                           sgpy_error_slot());
    free(texts);
    Py_DECREF(items);
    if (!good)
        return NULL;
    return sgpy_sent(status);
}
