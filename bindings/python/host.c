/* The host of a runtime: the batch of events and the side queue.
 *
 * Callbacks of the library run inside runtime_dispatch and append events to host->batch,
 * the list that runtime_dispatch returns. There is no batch when the garbage collector
 * frees the runtime. Without a batch, events are dropped. When dispatch may wait it
 * releases the GIL, and each callback takes the GIL back around its work. Each callback
 * runs on the thread of the dispatch and with its thread state.
 *
 * Events of other threads (log lines, custom transports) are put into the side queue,
 * under a mutex and without Python. Dispatch moves these events into the batch. Log lines
 * beyond SGB_LINES_MAX are dropped. A transport's limit of unwritten bytes also limits
 * its entries. The descriptor side_fd is readable while the queue is not empty.
 *
 * When memory is short, an entry of the side queue stays in the queue for the next batch.
 * Losing one event never loses other events of the same batch. Some events end something
 * (COMPLETE, CLOSED, INPUT) or let a program continue (OPEN, DRAIN, ...). A program could
 * wait for such an event for ever. So the kind of such a lost event is kept in its user
 * (`owed`), and the user is kept in host->owing. The event is delivered without its
 * values at the end of this batch or a later one. The event host->spare, made in advance
 * with the runtime, reports that events were lost. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Makes side_fd readable. Called with the mutex of the side queue held. */
static void make_readable(void *opaque)
{
    sgpy_host *host = opaque;
    const uint64_t one = 1;
    if (host->side_fd < 0)
        return; /* the runtime has ended */
    ssize_t put = write(host->side_fd, &one, sizeof one);
    (void)put; /* the counter of the eventfd is at most 1, so the write cannot block */
}

sgpy_host *sgpy_host_new(void)
{
    sgpy_host *host = calloc(1, sizeof *host);
    if (!host)
        return NULL;
    host->refs = 1;
    host->side_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host->side_fd < 0) {
        free(host);
        return NULL;
    }
    sgb_side_init(&host->side, make_readable, host);
    return host;
}

sgpy_host *sgpy_host_ref(sgpy_host *host)
{
    atomic_fetch_add(&host->refs, 1);
    return host;
}

void sgpy_host_unref(sgpy_host *host)
{
    if (atomic_fetch_sub(&host->refs, 1) != 1)
        return;
    sgb_side_free(&host->side);
    if (host->side_fd >= 0)
        close(host->side_fd);
    free(host);
}

/* The Python thread state of this thread while the thread is in the library without the
 * GIL; otherwise NULL. Without the GIL, other threads may run Python and use users of the
 * same host. */
static _Thread_local PyThreadState *saved;

void sgpy_let_go(void)
{
    saved = PyEval_SaveThread();
}

bool sgpy_enter(void)
{
    PyThreadState *state = saved;
    if (!state)
        return false;
    saved = NULL;
    PyEval_RestoreThread(state);
    return true;
}

void sgpy_leave(bool entered)
{
    if (entered)
        sgpy_let_go();
}

/* ---- the batch ---- */

static PyObject *or_none(PyObject *object)
{
    return object ? object : Py_NewRef(Py_None);
}

static void drop(PyObject *a, PyObject *b, PyObject *c)
{
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_XDECREF(c);
}

static bool append_event(sgpy_host *host, PyObject *handler, int kind, PyObject *a,
                         PyObject *b, PyObject *c)
{
    PyObject *number = PyErr_Occurred() ? NULL : PyLong_FromLong(kind);
    PyObject *event = number ? PyTuple_New(SGPY_EVENT_SIZE) : NULL;
    if (!event) {
        Py_XDECREF(number);
        drop(a, b, c);
        return false;
    }
    PyTuple_SetItem(event, SGPY_EVENT_HANDLER, Py_NewRef(handler ? handler : Py_None));
    PyTuple_SetItem(event, SGPY_EVENT_KIND, number);
    PyTuple_SetItem(event, SGPY_EVENT_A, or_none(a));
    PyTuple_SetItem(event, SGPY_EVENT_B, or_none(b));
    PyTuple_SetItem(event, SGPY_EVENT_C, or_none(c));
    bool done = PyList_Append(host->batch, event) == 0;
    Py_DECREF(event);
    return done;
}

bool sgpy_push(sgpy_host *host, PyObject *handler, int kind, PyObject *a, PyObject *b,
               PyObject *c)
{
    if (append_event(host, handler, kind, a, b, c))
        return true;
    PyErr_Clear(); /* This also clears an exception that making a, b or c has raised. */
    return false;
}

void sgpy_push_exception(sgpy_host *host, const char *where)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (!sgpy_push(host, NULL, SGB_EXCEPTION, value, sgpy_string(where), NULL))
        host->lost = true;
}

/* ---- the side queue ---- */

static bool push_side(sgpy_host *host, const sgb_side *side)
{
    const sgpy_user *user = side->user;
    PyObject *a = NULL, *b = NULL;
    if (!host->batch)
        return true;
    PyObject *handler = side->kind == SGB_RUNTIME_EVENT ? host->observer : host->log;
    if (side->kind == SGB_RUNTIME_EVENT && !handler)
        return true;
    if (side->kind == SGB_RUNTIME_LOG || side->kind == SGB_RUNTIME_EVENT) {
        a = PyLong_FromLongLong(side->number);
        b = sgpy_text(side->text, side->len);
    } else if (side->kind == SGB_TRANSPORT_SEND) {
        a = PyBytes_FromStringAndSize(side->text, (Py_ssize_t)side->len);
    } else if (side->kind == SGB_TRANSPORT_PAUSE) {
        a = PyBool_FromLong(side->number != 0);
    } else if (side->kind == SGB_TRANSPORT_START) {
        a = sgpy_wire_show(user);
    }
    return sgpy_push(host, user ? user->handler : handler, side->kind, a, b, NULL);
}

/* Moves the entries of the side queue into the batch. The descriptor is read before the
 * entries are taken. So an entry that another thread adds later is either taken now, or
 * makes the descriptor readable again. */
void sgpy_side_drain(sgpy_host *host)
{
    uint64_t count;
    if (!sgb_side_is_due(&host->side))
        return;
    if (host->side_fd >= 0) {
        ssize_t got = read(host->side_fd, &count, sizeof count);
        (void)got;
    }
    sgb_side *side = sgb_side_take(&host->side);
    while (side) {
        sgb_side *next = side->next;
        if (!push_side(host, side) && host->runtime) {
            sgb_side_put_back(&host->side, side);
            return;
        }
        if (side->kind == SGB_TRANSPORT_FREE)
            sgpy_user_free(side->user);
        free(side);
        side = next;
    }
}

void sgpy_on_log(void *opaque, int32_t level, const char *text)
{
    sgpy_host *host = opaque;
    sgb_side_put(&host->side, SGB_RUNTIME_LOG, NULL, level, text, strlen(text));
}

void sgpy_on_event(void *opaque, const segue_event *event)
{
    sgpy_host *host = opaque;
    sgb_side_put_event(&host->side, event);
}

/* ---- users ---- */

sgpy_user *sgpy_user_new(sgpy_host *host, PyObject *handler)
{
    sgpy_user *user = calloc(1, sizeof *user);
    if (!user) {
        PyErr_NoMemory();
        return NULL;
    }
    user->host = sgpy_host_ref(host);
    user->handler = handler && handler != Py_None ? Py_NewRef(handler) : NULL;
    return user;
}

void sgpy_user_hook(sgpy_user *user, int which, PyObject *callable)
{
    user->hooks[which] = callable && callable != Py_None ? Py_NewRef(callable) : NULL;
}

static void release_user(sgpy_user *user)
{
    sgpy_host *host = user->host;
    Py_XDECREF(user->handler);
    Py_XDECREF(user->answer);
    for (int i = 0; i < SGPY_HOOKS; i++)
        Py_XDECREF(user->hooks[i]);
    free(user);
    sgpy_host_unref(host);
}

void sgpy_user_free(void *opaque)
{
    sgpy_user *user = opaque;
    if (!user)
        return;
    bool entered = sgpy_enter();
    user->is_gone = true;
    if (!user->is_listed)
        release_user(user);
    sgpy_leave(entered);
}

/* ---- lost events ---- */

#define BIT(kind) (UINT32_C(1) << (kind))

static const uint32_t awaited =
    BIT(SGB_CANCEL) | BIT(SGB_DRAIN) | BIT(SGB_INPUT) | BIT(SGB_IDLE) | BIT(SGB_OPEN) |
    BIT(SGB_CLOSED) | BIT(SGB_COMPLETE) | BIT(SGB_ANSWER_ROOM) | BIT(SGB_ANSWER_END);

static void lose(sgpy_user *user, int kind)
{
    sgpy_host *host = user->host;
    host->lost = true;
    user->owed |= BIT(kind) & awaited;
    if (!user->owed || user->is_listed)
        return;
    user->is_listed = true;
    user->next = host->owing;
    host->owing = user;
}

/* Delivers the events for the handler of `user` that could not be delivered before
 * (`owed`), without their values. The order is the order of the kinds, so OPEN comes
 * before CLOSED. Returns false when out of memory. */
static bool pay(sgpy_user *user)
{
    for (int kind = 0; user->owed; kind++) {
        PyObject *a = NULL;
        if (!(user->owed & BIT(kind)))
            continue;
        if (kind == SGB_COMPLETE || kind == SGB_INPUT)
            a = PyLong_FromLong(SEGUE_E_NOMEM);
        else if (kind == SGB_ANSWER_END)
            a = PyLong_FromLong(SEGUE_E_CLOSED);
        else if (kind == SGB_CLOSED)
            a = Py_BuildValue("(isiOO)", SEGUE_E_NOMEM, "", 0, Py_None, Py_True);
        if (!sgpy_push(user->host, user->handler, kind, a, NULL, NULL))
            return false;
        user->owed &= ~BIT(kind);
    }
    return true;
}

bool sgpy_tell(sgpy_user *user, int kind, PyObject *a, PyObject *b, PyObject *c)
{
    bool good = !PyErr_Occurred();
    if (good && user->owed) /* earlier events must be delivered first */
        good = pay(user);
    if (good && sgpy_push(user->host, user->handler, kind, a, b, c))
        return true;
    if (!good) {
        PyErr_Clear();
        drop(a, b, c);
    }
    lose(user, kind);
    return false;
}

static void forgive(sgpy_host *host)
{
    sgpy_user *user = host->owing;
    host->owing = user->next;
    user->is_listed = false;
    if (user->is_gone)
        release_user(user);
}

/* Delivers the events that could not be delivered before. After the runtime's end no
 * batch follows, so events that still cannot be delivered are dropped. */
void sgpy_settle(sgpy_host *host)
{
    while (host->owing && (pay(host->owing) || !host->runtime))
        forgive(host);
    if (host->lost && PyList_Append(host->batch, host->spare) == 0)
        host->lost = false;
    PyErr_Clear();
    if (!host->runtime || (!host->lost && !host->owing))
        return;
    sgb_side_wake(&host->side);
}

/* Closes the descriptor. A handle of the ended runtime may live on for a time, for
 * instance in the thread that has freed the runtime. */
static void close_side(sgpy_host *host)
{
    pthread_mutex_lock(&host->side.mutex);
    int fd = host->side_fd;
    host->side_fd = -1;
    pthread_mutex_unlock(&host->side.mutex);
    if (fd >= 0)
        close(fd);
}

void sgpy_host_end(sgpy_host *host)
{
    close_side(host);
    while (host->owing)
        forgive(host);
    Py_CLEAR(host->log);
    Py_CLEAR(host->observer);
    Py_CLEAR(host->spare);
}
