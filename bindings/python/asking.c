/* Sessions, requests and tasks: the functions that take options and callbacks. */
#include "shim.h"

#include <stdlib.h>

PyObject *sgpy_session_open(PyObject *runtime, PyObject *transport, PyObject *options,
                            PyObject *handler, int events, PyObject *validate)
{
    segue_session_options full;
    segue_session_events table;
    sgpy_options kept;
    segue_session *session;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    segue_transport *way = ptr ? sgpy_unwrap(transport, SGPY_TRANSPORT) : NULL;
    if (!way || !sgpy_options_fill(&kept, OPTIONS_SESSION, &full, options))
        return NULL;
    segue_status status = SEGUE_E_NOMEM;
    sgpy_user *user = sgpy_user_new(sgpy_host_of(runtime), handler);
    if (user) {
        sgpy_user_hook(user, SGPY_HOOK_SECOND, validate);
        table = SEGUE_SESSION_EVENTS_INIT;
        table.user = user;
        table.free_user = sgpy_user_free;
        table.on_open = user->handler ? sgpy_on_open : NULL;
        table.on_closed = user->handler ? sgpy_on_closed : NULL;
        if (user->handler && events & 1 << SGB_NOTIFICATION)
            table.on_notification = sgpy_on_notification;
        if (user->handler && events & 1 << SGB_RECONNECT)
            table.on_reconnect = sgpy_on_reconnect;
        table.on_validate = user->hooks[SGPY_HOOK_SECOND] ? sgpy_ask_validate : NULL;
        status = segue_session_open(ptr, way, &full, &table, &session, sgpy_error_slot());
    }
    sgpy_options_free(&kept);
    if (status != SEGUE_OK) {
        sgpy_user_free(user);
        return sgpy_raise(status);
    }
    sgpy_consume(transport);
    return sgpy_wrap(SGPY_SESSION, session, sgpy_host_of(runtime));
}

/* An accessor that copies a text into buf and sets *len. read_text calls the accessor
 * once for the length and once for the text. If the text has grown in between, read_text
 * calls the accessor again. */
typedef segue_status (*text_fn)(void *handle, char *buf, size_t *len);

static segue_status read_peer(void *handle, char *buf, size_t *len)
{
    return segue_session_peer(handle, buf, len);
}

static segue_status read_token(void *handle, char *buf, size_t *len)
{
    return segue_request_token(handle, buf, len);
}

static PyObject *read_text(void *handle, text_fn read, bool as_text)
{
    size_t len = 0, room;
    char *buf = NULL;
    segue_status status = handle ? read(handle, NULL, &len) : SEGUE_E_INVALID;
    while (status == SEGUE_OK || status == SEGUE_E_TOO_SMALL) {
        free(buf);
        room = len = len + 1;
        buf = malloc(room);
        status = buf ? read(handle, buf, &len) : SEGUE_E_NOMEM;
        if (status == SEGUE_OK && len < room)
            break;
    }
    PyObject *text = NULL;
    if (status != SEGUE_OK)
        sgpy_raise(status);
    else
        text = as_text ? sgpy_text(buf, len) : sgpy_bytes(buf, len);
    free(buf);
    return text;
}

PyObject *sgpy_session_peer(PyObject *session)
{
    return read_text(sgpy_unwrap(session, SGPY_SESSION), read_peer, false);
}

static segue_status read_stats(void *handle, char *buf, size_t *len)
{
    return segue_server_stats(handle, buf, len);
}

PyObject *sgpy_server_stats(PyObject *server)
{
    return read_text(sgpy_unwrap(server, SGPY_SERVER), read_stats, false);
}

static segue_status read_metrics(void *handle, char *buf, size_t *len)
{
    return segue_server_metrics(handle, buf, len);
}

PyObject *sgpy_server_metrics(PyObject *server)
{
    return read_text(sgpy_unwrap(server, SGPY_SERVER), read_metrics, true);
}

static segue_status read_trace(void *handle, char *buf, size_t *len)
{
    return segue_call_trace_parent(handle, buf, len);
}

PyObject *sgpy_call_trace_parent(PyObject *call)
{
    size_t len = 0;
    segue_call *ptr = sgpy_unwrap(call, SGPY_CALL);
    if (ptr && read_trace(ptr, NULL, &len) == SEGUE_E_NOT_FOUND)
        return Py_NewRef(Py_None);
    return read_text(ptr, read_trace, true);
}

/* ---- requests ---- */

PyObject *sgpy_request_token(PyObject *request)
{
    return read_text(sgpy_unwrap(request, SGPY_REQUEST), read_token, true);
}

PyObject *sgpy_token_era(PyObject *runtime, const char *token)
{
    int32_t era = SEGUE_ERA_AUTO;
    segue_runtime *ptr = sgpy_unwrap(runtime, SGPY_RUNTIME);
    if (!ptr)
        return NULL;
    segue_status status = segue_token_era(ptr, token, &era, sgpy_error_slot());
    return status == SEGUE_OK ? PyLong_FromLong(era) : sgpy_raise(status);
}

/* Returns the current token of a request, inside a callback. The token covers the
 * segments that arrived before this event, and no later segment of the same batch.
 * Returns NULL without an exception when the request has no token. */
PyObject *sgpy_token_now(segue_request *request)
{
    PyObject *token = read_text(request, read_token, true);
    if (!token)
        PyErr_Clear();
    return token;
}

typedef struct member {
    segue_request *request;
    const char *key;
} member;

static segue_status read_meta(void *handle, char *buf, size_t *len)
{
    const member *self = handle;
    return segue_request_meta(self->request, self->key, buf, len);
}

PyObject *sgpy_request_meta(PyObject *request, PyObject *key)
{
    size_t len = 0;
    member self = {.request = sgpy_unwrap(request, SGPY_REQUEST)};
    if (!self.request || !sgpy_name(key, false, &self.key))
        return NULL;
    if (read_meta(&self, NULL, &len) == SEGUE_E_NOT_FOUND)
        return Py_NewRef(Py_None);
    return read_text(&self, read_meta, false);
}

/* The values that each function needs to start a request. */
typedef struct asking {
    segue_request_options options;
    segue_request_events events;
    sgpy_options kept;
    sgpy_host *host;
    sgpy_user *user;
} asking;

static bool begin_request(asking *self, PyObject *of, PyObject *options,
                          PyObject *handler, int events)
{
    self->host = sgpy_host_of(of);
    self->user = NULL;
    if (!sgpy_options_fill(&self->kept, OPTIONS_REQUEST, &self->options, options))
        return false;
    if (handler != Py_None) {
        self->user = sgpy_user_new(self->host, handler);
        if (!self->user) {
            sgpy_options_free(&self->kept);
            return false;
        }
    }
    sgpy_request_table(&self->events, self->user, events);
    return true;
}

static PyObject *end_request(asking *self, segue_status status, segue_request *request)
{
    sgpy_options_free(&self->kept);
    if (status == SEGUE_OK)
        return sgpy_wrap(SGPY_REQUEST, request, self->host);
    sgpy_user_free(self->user);
    return sgpy_raise(status);
}

PyObject *sgpy_request_start(PyObject *session, PyObject *method, PyObject *params,
                             PyObject *options, PyObject *handler, int events)
{
    asking self;
    const char *name, *json;
    size_t len;
    segue_request *request = NULL;
    segue_session *ptr = sgpy_unwrap(session, SGPY_SESSION);
    if (!ptr || !sgpy_name(method, false, &name) ||
        !sgpy_view(params, true, &json, &len) ||
        !begin_request(&self, session, options, handler, events))
        return NULL;
    segue_status status = segue_request_start(ptr, name, json, len, &self.options,
                                              &self.events, &request, sgpy_error_slot());
    return end_request(&self, status, request);
}

PyObject *sgpy_session_take_input(PyObject *session, PyObject *handler, int events)
{
    asking self;
    segue_request *request = NULL;
    segue_session *ptr = sgpy_unwrap(session, SGPY_SESSION);
    if (!ptr || !begin_request(&self, session, Py_None, handler, events))
        return NULL;
    segue_status status =
        segue_session_take_input(ptr, &self.events, &request, sgpy_error_slot());
    return end_request(&self, status, request);
}

PyObject *sgpy_request_resume(PyObject *session, PyObject *token, PyObject *options,
                              PyObject *handler, int events)
{
    asking self;
    const char *text;
    segue_request *request = NULL;
    segue_session *ptr = sgpy_unwrap(session, SGPY_SESSION);
    if (!ptr || !sgpy_name(token, false, &text) ||
        !begin_request(&self, session, options, handler, events))
        return NULL;
    segue_status status = segue_request_resume(ptr, text, &self.options, &self.events,
                                               &request, sgpy_error_slot());
    return end_request(&self, status, request);
}

/* ---- tasks ---- */

PyObject *sgpy_task_get(PyObject *task, PyObject *handler, int events)
{
    asking self;
    segue_request *request = NULL;
    segue_task *ptr = sgpy_unwrap(task, SGPY_TASK);
    if (!ptr || !begin_request(&self, task, Py_None, handler, events))
        return NULL;
    segue_status status = segue_task_get(ptr, &self.events, &request);
    return end_request(&self, status, request);
}

PyObject *sgpy_task_watch(PyObject *task, PyObject *options, PyObject *handler,
                          int events)
{
    asking self;
    segue_request *request = NULL;
    segue_task *ptr = sgpy_unwrap(task, SGPY_TASK);
    if (!ptr || !begin_request(&self, task, options, handler, events))
        return NULL;
    segue_status status =
        segue_task_watch(ptr, &self.options, &self.events, &request, sgpy_error_slot());
    return end_request(&self, status, request);
}

PyObject *sgpy_task_cancel(PyObject *task, PyObject *handler, int events)
{
    asking self;
    segue_request *request = NULL;
    segue_task *ptr = sgpy_unwrap(task, SGPY_TASK);
    if (!ptr || !begin_request(&self, task, Py_None, handler, events))
        return NULL;
    segue_status status = segue_task_cancel(ptr, &self.events, &request);
    return end_request(&self, status, request);
}
