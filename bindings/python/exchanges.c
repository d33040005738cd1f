/* HTTP exchanges by hand. The answer comes in events ANSWER, whose first one has the
 * head. The last one says that the answer is complete, if the end comes in the same
 * batch, as with an answer of one piece. Otherwise ANSWER_END is the last event.
 *
 * When an event ANSWER is lost, the exchange is closed, so that a client never gets an
 * answer with a hole.
 *
 * The context of an exchange is an sgpy_user whose handler is the context. */
#include "shim.h"

#include <stdlib.h>

/* ---- events ---- */

static bool begin(const sgpy_user *user, bool *entered)
{
    if (!user->host->batch)
        return false;
    *entered = sgpy_enter();
    return true;
}

static PyObject *field_pair(const segue_http_field *field)
{
    PyObject *pair = PyTuple_New(2);
    PyObject *name = sgpy_bytes(field->name, field->name_len);
    PyObject *value = sgpy_bytes(field->value, field->value_len);
    if (pair && name && value) {
        PyTuple_SetItem(pair, 0, name);
        PyTuple_SetItem(pair, 1, value);
        return pair;
    }
    Py_XDECREF(pair);
    Py_XDECREF(name);
    Py_XDECREF(value);
    return NULL;
}

static PyObject *make_head(int32_t status, const segue_http_field *headers, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *pair = field_pair(&headers[i]);
        if (pair)
            PyList_SetItem(list, (Py_ssize_t)i, pair);
        else
            Py_CLEAR(list);
    }
    return list ? Py_BuildValue("(iN)", (int)status, list) : NULL;
}

static void push_answer(sgpy_user *user, segue_exchange *exchange, PyObject *head,
                        const char *bytes, size_t len)
{
    if (!sgpy_tell(user, SGB_ANSWER, head, len ? sgpy_bytes(bytes, len) : NULL, NULL))
        user->is_broken = true;
    if (user->is_broken)
        segue_exchange_closed(exchange);
}

static void on_head(void *opaque, segue_exchange *exchange, int32_t status,
                    const segue_http_field *headers, size_t count, const char *bytes,
                    size_t len)
{
    bool entered;
    sgpy_user *user = opaque;
    if (!begin(user, &entered))
        return;
    push_answer(user, exchange, make_head(status, headers, count), bytes, len);
    sgpy_leave(entered);
}

static void on_body(void *opaque, segue_exchange *exchange, const char *bytes, size_t len)
{
    bool entered;
    sgpy_user *user = opaque;
    if (user->is_broken || !begin(user, &entered))
        return;
    push_answer(user, exchange, NULL, bytes, len);
    sgpy_leave(entered);
}

static void on_room(void *opaque, segue_exchange *exchange)
{
    bool entered;
    sgpy_user *user = opaque;
    (void)exchange;
    if (!begin(user, &entered))
        return;
    sgpy_tell(user, SGB_ANSWER_ROOM, NULL, NULL, NULL);
    sgpy_leave(entered);
}

/* Marks the last event of the batch as the end of the answer. Returns false when it is no
 * event ANSWER of this exchange. Only the batch knows the event, so it may change. */
static bool end_last_answer(const sgpy_user *user)
{
    PyObject *batch = user->host->batch;
    Py_ssize_t count = PyList_Size(batch);
    PyObject *event = count > 0 ? PyList_GetItem(batch, count - 1) : NULL;
    if (!event || PyTuple_GetItem(event, SGPY_EVENT_HANDLER) != user->handler ||
        PyLong_AsLong(PyTuple_GetItem(event, SGPY_EVENT_KIND)) != SGB_ANSWER)
        return false;
    return PyTuple_SetItem(event, SGPY_EVENT_C, Py_NewRef(Py_True)) == 0;
}

static void on_end(void *opaque, segue_exchange *exchange, segue_status status)
{
    bool entered;
    sgpy_user *user = opaque;
    (void)exchange;
    if (!begin(user, &entered))
        return;
    if (user->is_broken)
        status = SEGUE_E_CLOSED;
    if (status != SEGUE_OK || !end_last_answer(user))
        sgpy_tell(user, SGB_ANSWER_END, PyLong_FromLong(status), NULL, NULL);
    sgpy_leave(entered);
}

/* ---- functions ---- */

/* Reads the headers, a list or tuple of pairs of bytes. The texts live as long as
 * `items`, a new reference. Returns NULL with an exception on failure. */
static segue_http_field *read_headers(PyObject *headers, PyObject **items, size_t *count)
{
    *items = PySequence_Tuple(headers);
    if (!*items)
        return NULL;
    *count = (size_t)PyTuple_Size(*items);
    segue_http_field *fields = calloc(*count + 1, sizeof *fields);
    if (!fields)
        PyErr_NoMemory();
    for (size_t i = 0; fields && i < *count; i++) {
        PyObject *pair = PyTuple_GetItem(*items, (Py_ssize_t)i);
        PyObject *name = pair ? PySequence_GetItem(pair, 0) : NULL;
        PyObject *value = name ? PySequence_GetItem(pair, 1) : NULL;
        bool good = value &&
                    sgpy_view(name, false, &fields[i].name, &fields[i].name_len) &&
                    sgpy_view(value, false, &fields[i].value, &fields[i].value_len);
        Py_XDECREF(name); /* the pair holds both */
        Py_XDECREF(value);
        if (good)
            continue;
        free(fields);
        return NULL;
    }
    return fields;
}

static PyObject *open_with(PyObject *listener, segue_exchange_head *head,
                           PyObject *handler, PyObject *context)
{
    segue_exchange *exchange;
    segue_exchange_events events = SEGUE_EXCHANGE_EVENTS_INIT;
    segue_listener *ptr = sgpy_unwrap(listener, SGPY_LISTENER);
    sgpy_user *user = ptr ? sgpy_user_new(sgpy_host_of(listener), handler) : NULL;
    if (user && context != Py_None) {
        head->context = sgpy_user_new(sgpy_host_of(listener), context);
        head->free_context = sgpy_user_free;
        if (!head->context) {
            sgpy_user_free(user);
            return NULL;
        }
    }
    if (!user)
        return NULL;
    events.user = user;
    events.free_user = sgpy_user_free;
    events.on_head = on_head;
    events.on_body = on_body;
    events.on_room = on_room;
    events.on_end = on_end;
    segue_status status =
        segue_exchange_open(ptr, head, &events, &exchange, sgpy_error_slot());
    if (status == SEGUE_OK)
        return sgpy_wrap(SGPY_EXCHANGE, exchange, sgpy_host_of(listener));
    sgpy_user_free(user);
    sgpy_user_free(head->context);
    return sgpy_raise(status);
}

PyObject *sgpy_call_context(PyObject *call)
{
    segue_call *ptr = sgpy_unwrap(call, SGPY_CALL);
    if (!ptr)
        return NULL;
    const sgpy_user *context = segue_call_context(ptr);
    return Py_NewRef(context && context->handler ? context->handler : Py_None);
}

PyObject *sgpy_exchange_open(PyObject *listener, PyObject *method, PyObject *target,
                             PyObject *headers, PyObject *handler, PyObject *peer,
                             PyObject *local, bool is_tls, PyObject *principal,
                             PyObject *body, bool is_whole, PyObject *context)
{
    segue_exchange_head head = SEGUE_EXCHANGE_HEAD_INIT;
    PyObject *items = NULL, *exchange = NULL;
    segue_http_field *fields = NULL;
    if (sgpy_name(method, false, &head.method) &&
        sgpy_name(target, false, &head.target) && sgpy_name(peer, true, &head.peer) &&
        sgpy_name(local, true, &head.local) &&
        sgpy_name(principal, true, &head.principal) &&
        sgpy_view(body, true, &head.body, &head.body_len))
        fields = read_headers(headers, &items, &head.header_count);
    if (fields) {
        head.headers = fields;
        head.is_tls = is_tls;
        head.is_whole = is_whole;
        exchange = open_with(listener, &head, handler, context);
    }
    free(fields);
    Py_XDECREF(items);
    return exchange;
}

PyObject *sgpy_exchange_feed(PyObject *exchange, PyObject *data)
{
    const char *bytes;
    size_t len;
    segue_exchange *ptr = sgpy_unwrap(exchange, SGPY_EXCHANGE);
    if (!ptr || !sgpy_view(data, false, &bytes, &len))
        return NULL;
    return sgpy_sent(segue_exchange_feed(ptr, bytes, len));
}
