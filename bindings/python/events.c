/* Callbacks of the library that become events. Each callback runs inside runtime_dispatch
 * (or runtime_free), copies its arguments into Python objects and appends one event. The
 * Python handlers run later, when the batch is read.
 *
 * When there is no memory for an event of a request, the request is cancelled. The
 * request then receives no further event except its COMPLETE, with SEGUE_E_NOMEM.
 *
 * Segments of one request in one batch share one event, as long as no other event of that
 * request comes between them. user->segments is the list of that event. The list is valid
 * only in the batch in which it was made (user->round). */
#include "shim.h"

#include <string.h>

/* Returns whether a batch collects events now. If so, the caller must pass *entered to
 * sgpy_leave. */
static bool begin(const sgpy_user *user, bool *entered)
{
    if (!user->host->batch)
        return false;
    *entered = sgpy_enter();
    return true;
}

static void finish(sgpy_user *user, bool entered, int kind, PyObject *a, PyObject *b,
                   PyObject *c)
{
    sgpy_tell(user, kind, a, b, c);
    sgpy_leave(entered);
}

/* ---- server ---- */

static void push_call(sgpy_user *user, segue_call *call, int kind)
{
    bool entered;
    size_t len;
    if (!begin(user, &entered)) {
        segue_call_free(call);
        return;
    }
    const char *params = segue_call_params(call, &len);
    PyObject *b = sgpy_bytes(params, len);
    PyObject *c = sgpy_string(segue_call_name(call));
    PyObject *a = sgpy_wrap(SGPY_CALL, call, user->host);
    finish(user, entered, kind, a, b, c);
}

/* Appends a CALLED event. The handler runs later, when the batch is read. The call's
 * first turn stays open until the handler has run. */
void sgpy_on_call(void *user, segue_call *call)
{
    bool waits = segue_call_hold_turn(call) == SEGUE_OK;
    push_call(user, call, waits ? SGB_CALLED_NOW : SGB_CALLED);
}

void sgpy_on_completion(void *user, segue_call *call)
{
    push_call(user, call, SGB_COMPLETION);
}

static void push_plain(sgpy_user *user, int kind)
{
    bool entered;
    if (begin(user, &entered))
        finish(user, entered, kind, NULL, NULL, NULL);
}

void sgpy_on_cancel(void *user, segue_call *call)
{
    (void)call;
    push_plain(user, SGB_CANCEL);
}

void sgpy_on_drain(void *user, segue_call *call)
{
    (void)call;
    push_plain(user, SGB_DRAIN);
}

void sgpy_on_idle(void *user)
{
    push_plain(user, SGB_IDLE);
}

void sgpy_on_client_open(void *user, uint64_t client, const char *principal,
                         const char *json, size_t len)
{
    bool entered;
    if (begin(user, &entered))
        finish(user, entered, SGB_CLIENT_OPEN, PyLong_FromUnsignedLongLong(client),
               sgpy_string(principal), sgpy_bytes(json, len));
}

void sgpy_on_client_closed(void *user, uint64_t client)
{
    bool entered;
    if (begin(user, &entered))
        finish(user, entered, SGB_CLIENT_CLOSED, PyLong_FromUnsignedLongLong(client),
               NULL, NULL);
}

void sgpy_on_input(void *user, segue_call *call, segue_status status, const char *json,
                   size_t len)
{
    bool entered;
    (void)call;
    if (begin(user, &entered))
        finish(user, entered, SGB_INPUT, PyLong_FromLong(status), sgpy_bytes(json, len),
               NULL);
}

/* ---- session ---- */

void sgpy_on_open(void *user, segue_session *session)
{
    (void)session;
    push_plain(user, SGB_OPEN);
}

void sgpy_on_closed(void *user, segue_session *session, const segue_error *error)
{
    bool entered;
    (void)session;
    if (begin(user, &entered))
        finish(user, entered, SGB_CLOSED, sgpy_error_info(error), NULL, NULL);
}

void sgpy_on_reconnect(void *user, segue_session *session, int32_t attempt,
                       int64_t delay_ms, const char *reason)
{
    bool entered;
    (void)session;
    if (begin(user, &entered))
        finish(user, entered, SGB_RECONNECT, PyLong_FromLong(attempt),
               PyLong_FromLongLong(delay_ms), sgpy_string(reason));
}

void sgpy_on_notification(void *user, segue_session *session, const char *method,
                          const char *params, size_t len)
{
    bool entered;
    (void)session;
    if (begin(user, &entered))
        finish(user, entered, SGB_NOTIFICATION, sgpy_string(method),
               sgpy_bytes(params, len), NULL);
}

/* ---- request ---- */

static bool goes_on(const sgpy_user *user, bool *entered)
{
    return !user->is_broken && begin(user, entered);
}

/* Ends a callback of a request. If the event is lost (`told` is false), cancels the
 * request, which may free the user. So each callback calls this function last. */
static void finish_told(sgpy_user *user, segue_request *request, bool entered, bool told)
{
    if (!told) {
        user->is_broken = true;
        segue_request_cancel(request);
    }
    sgpy_leave(entered);
}

static void pass(sgpy_user *user, segue_request *request, bool entered, int kind,
                 PyObject *a, PyObject *b, PyObject *c)
{
    user->segments = NULL;
    finish_told(user, request, entered, sgpy_tell(user, kind, a, b, c));
}

/* Begins an event whose list has one segment, the item. Returns false when the event is
 * lost. */
static bool begin_list(sgpy_user *user, PyObject *item)
{
    PyObject *list = PyList_New(1);
    if (list)
        PyList_SetItem(list, 0, Py_NewRef(item));
    if (!sgpy_tell(user, SGB_SEGMENTS, list, NULL, NULL))
        return false;
    user->segments = list; /* a borrowed reference: the batch owns the list */
    user->round = user->host->round;
    return true;
}

static bool add_segment(sgpy_user *user, const segue_segment *segment)
{
    bool told;
    PyObject *item = sgpy_segment_new(segment);
    if (user->segments && user->round == user->host->round)
        told = item && PyList_Append(user->segments, item) == 0;
    else
        told = item && begin_list(user, item);
    Py_XDECREF(item);
    return told;
}

static void on_segments(void *opaque, segue_request *request, segue_segment_batch *batch)
{
    bool entered, told = true;
    sgpy_user *user = opaque;
    const segue_segment *segment;
    if (!goes_on(user, &entered))
        return;
    while (told && (segment = segue_segment_batch_next(batch)))
        told = add_segment(user, segment);
    if (!told) {
        PyErr_Clear();
        user->host->lost = true;
    }
    finish_told(user, request, entered, told);
}

static void on_progress(void *user, segue_request *request, double progress, double total,
                        const char *message)
{
    bool entered;
    if (goes_on(user, &entered))
        pass(user, request, entered, SGB_PROGRESS, PyFloat_FromDouble(progress),
             PyFloat_FromDouble(total), sgpy_string(message));
}

static void on_log(void *user, segue_request *request, const char *json, size_t len)
{
    bool entered;
    if (goes_on(user, &entered))
        pass(user, request, entered, SGB_LOG, sgpy_bytes(json, len), NULL, NULL);
}

static void on_question(void *user, segue_request *request, const char *key,
                        const char *method, const char *params, size_t len)
{
    bool entered;
    if (goes_on(user, &entered))
        pass(user, request, entered, SGB_QUESTION, sgpy_string(key), sgpy_string(method),
             sgpy_bytes(params, len));
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    bool entered;
    if (goes_on(user, &entered))
        pass(user, request, entered, SGB_BECAME_TASK, sgpy_string(task_id),
             sgpy_token_now(request), NULL);
}

static void on_resumable(void *user, segue_request *request)
{
    bool entered;
    if (goes_on(user, &entered))
        pass(user, request, entered, SGB_BECAME_RESUMABLE, sgpy_token_now(request), NULL,
             NULL);
}

static void on_status(void *user, segue_request *request, const char *status,
                      const char *message)
{
    bool entered;
    if (goes_on(user, &entered))
        pass(user, request, entered, SGB_STATUS, sgpy_string(status),
             sgpy_string(message), NULL);
}

static void on_complete(void *opaque, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    bool entered;
    sgpy_user *user = opaque;
    (void)request;
    if (!begin(user, &entered))
        return;
    if (user->is_broken)
        finish(user, entered, SGB_COMPLETE, PyLong_FromLong(SEGUE_E_NOMEM), NULL, NULL);
    else
        finish(user, entered, SGB_COMPLETE, PyLong_FromLong(status),
               sgpy_bytes(json, len), sgpy_error_info(error));
}

void sgpy_request_table(segue_request_events *table, sgpy_user *user, int32_t events)
{
    *table = SEGUE_REQUEST_EVENTS_INIT;
    if (!user)
        return;
    table->user = user;
    table->free_user = sgpy_user_free;
    table->on_complete = on_complete;
    if (events & 1 << SGB_SEGMENTS)
        table->on_segments = on_segments;
    if (events & 1 << SGB_PROGRESS)
        table->on_progress = on_progress;
    if (events & 1 << SGB_LOG)
        table->on_log = on_log;
    if (events & 1 << SGB_QUESTION)
        table->on_input = on_question;
    if (events & 1 << SGB_BECAME_TASK)
        table->on_task = on_task;
    if (events & 1 << SGB_BECAME_RESUMABLE)
        table->on_resumable = on_resumable;
    if (events & 1 << SGB_STATUS)
        table->on_status = on_status;
}

/* ---- transports ---- */

void sgpy_on_stderr(void *user, const char *text, size_t len)
{
    bool entered;
    if (begin(user, &entered))
        finish(user, entered, SGB_STDERR, sgpy_text(text, len), NULL, NULL);
}

void sgpy_on_stderr_end(void *user)
{
    push_plain(user, SGB_STDERR);
    sgpy_user_free(user);
}

void sgpy_on_authorize(void *user, const char *url, const char *state)
{
    bool entered;
    if (begin(user, &entered))
        finish(user, entered, SGB_AUTHORIZE, sgpy_string(url), sgpy_string(state), NULL);
}
