/* The host of a runtime: the batch of events, the side queue, the counting allocator.
 *
 * Callbacks of the library run inside of runtime_dispatch and append to host->batch, a
 * list that runtime_dispatch returns; without a batch (the runtime is being freed by the
 * garbage collector) events are dropped. Where dispatch waits it lets the GIL go, and
 * each callback takes it back around its work: it is the same thread with its own thread
 * state, never a foreign one.
 *
 * What other threads have to say (log lines, custom transports) goes to the side queue,
 * under a mutex, without Python: dispatch moves it into the batch. Log lines are dropped
 * beyond MAX_LINES; entries of a transport are bounded by what
 * it may have under way. The descriptor is readable while the queue is not empty.
 *
 * Memory may be short. An entry of the side queue then stays there for the next batch. An
 * event is lost by itself, never with its batch; somebody may wait for it for ever if it
 * ends something (COMPLETE, CLOSED, INPUT) or says "go on" (OPEN, DRAIN, ...). So its
 * kind is kept in the user, who is kept in host->owing, and it is told without its values
 * at the end of the batch, or of a later one. That anything was lost is told by an event
 * that was made with the runtime. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_LINES 1024

struct sgpy_side {
    sgpy_side *next;
    sgpy_user *user; /* NULL = the host's log */
    int64_t number;
    int kind;
    size_t len;
    char text[];
};

sgpy_host *sgpy_host_new(void)
{
    sgpy_host *host = calloc(1, sizeof *host);
    if (!host)
        return NULL;
    host->refs = 1;
    host->last = &host->first;
    host->side_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host->side_fd < 0) {
        free(host);
        return NULL;
    }
    pthread_mutex_init(&host->mutex, NULL);
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
    while (host->first) {
        sgpy_side *next = host->first->next;
        free(host->first);
        host->first = next;
    }
    pthread_mutex_destroy(&host->mutex);
    close(host->side_fd);
    free(host);
}

/* Of this thread, while it is in the library without the GIL. Others may be in Python
 * meanwhile, with a user of the same host. */
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
    PyObject *event = number ? PyTuple_New(5) : NULL;
    if (!event) {
        Py_XDECREF(number);
        drop(a, b, c);
        return false;
    }
    PyTuple_SetItem(event, 0, Py_NewRef(handler ? handler : Py_None));
    PyTuple_SetItem(event, 1, number);
    PyTuple_SetItem(event, 2, or_none(a));
    PyTuple_SetItem(event, 3, or_none(b));
    PyTuple_SetItem(event, 4, or_none(c));
    bool done = PyList_Append(host->batch, event) == 0;
    Py_DECREF(event);
    return done;
}

bool sgpy_push(sgpy_host *host, PyObject *handler, int kind, PyObject *a, PyObject *b,
               PyObject *c)
{
    if (append_event(host, handler, kind, a, b, c))
        return true;
    PyErr_Clear(); /* also that of whoever made a, b or c */
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
    if (!sgpy_push(host, NULL, SGPY_EXCEPTION, value, sgpy_string(where), NULL))
        host->lost = true;
}

/* ---- the side queue ---- */

static void ring(sgpy_host *host)
{
    const uint64_t one = 1;
    if (atomic_exchange(&host->side_due, true))
        return;
    ssize_t put = write(host->side_fd, &one, sizeof one);
    (void)put; /* a counter of 1 is never full */
}

bool sgpy_side_put(sgpy_host *host, int kind, sgpy_user *user, int64_t number,
                   const char *text, size_t len)
{
    bool is_line = kind == SGPY_RUNTIME_LOG;
    sgpy_side *side = malloc(sizeof *side + len);
    if (!side)
        return false;
    side->next = NULL;
    side->user = user;
    side->number = number;
    side->kind = kind;
    side->len = len;
    if (len)
        memcpy(side->text, text, len);
    pthread_mutex_lock(&host->mutex);
    bool room = !is_line || host->side_count < MAX_LINES;
    if (room) {
        *host->last = side;
        host->last = &side->next;
        host->side_count += is_line;
        ring(host);
    }
    pthread_mutex_unlock(&host->mutex);
    if (!room)
        free(side);
    return room;
}

static sgpy_side *take_side(sgpy_host *host)
{
    uint64_t count;
    pthread_mutex_lock(&host->mutex);
    sgpy_side *first = host->first;
    host->first = NULL;
    host->last = &host->first;
    host->side_count = 0;
    if (atomic_exchange(&host->side_due, false)) {
        ssize_t got = read(host->side_fd, &count, sizeof count);
        (void)got;
    }
    pthread_mutex_unlock(&host->mutex);
    return first;
}

/* Puts entries that were taken, and could not be told, in front of the others. */
static void put_back(sgpy_host *host, sgpy_side *first)
{
    sgpy_side *tail = first;
    pthread_mutex_lock(&host->mutex);
    host->side_count += first->kind == SGPY_RUNTIME_LOG;
    while (tail->next) {
        tail = tail->next;
        host->side_count += tail->kind == SGPY_RUNTIME_LOG;
    }
    tail->next = host->first;
    if (!host->first)
        host->last = &tail->next;
    host->first = first;
    ring(host);
    pthread_mutex_unlock(&host->mutex);
}

static bool push_side(sgpy_host *host, const sgpy_side *side)
{
    PyObject *a = NULL, *b = NULL;
    if (!host->batch)
        return true;
    if (side->kind == SGPY_RUNTIME_LOG) {
        a = PyLong_FromLongLong(side->number);
        b = sgpy_text(side->text, side->len);
    } else if (side->kind == SGPY_TRANSPORT_SEND) {
        a = PyBytes_FromStringAndSize(side->text, (Py_ssize_t)side->len);
    } else if (side->kind == SGPY_TRANSPORT_PAUSE) {
        a = PyBool_FromLong(side->number != 0);
    } else if (side->kind == SGPY_TRANSPORT_START) {
        a = sgpy_wire_show(side->user);
    }
    PyObject *handler = side->user ? side->user->handler : host->log;
    return sgpy_push(host, handler, side->kind, a, b, NULL);
}

void sgpy_side_drain(sgpy_host *host)
{
    if (!atomic_load_explicit(&host->side_due, memory_order_acquire))
        return;
    sgpy_side *side = take_side(host);
    while (side) {
        sgpy_side *next = side->next;
        if (!push_side(host, side) && host->runtime) {
            put_back(host, side);
            return;
        }
        if (side->kind == SGPY_TRANSPORT_FREE)
            sgpy_user_free(side->user);
        free(side);
        side = next;
    }
}

void sgpy_on_log(void *host, int32_t level, const char *text)
{
    sgpy_side_put(host, SGPY_RUNTIME_LOG, NULL, level, text, strlen(text));
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

/* ---- what could not be told ---- */

#define BIT(kind) (UINT32_C(1) << (kind))

static const uint32_t awaited = BIT(SGPY_CANCEL) | BIT(SGPY_DRAIN) | BIT(SGPY_INPUT) |
                                BIT(SGPY_IDLE) | BIT(SGPY_OPEN) | BIT(SGPY_CLOSED) |
                                BIT(SGPY_COMPLETE);

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

/* In the order of their kinds, in which OPEN is before CLOSED. */
static bool pay(sgpy_user *user)
{
    for (int kind = 0; user->owed; kind++) {
        PyObject *a = NULL;
        if (!(user->owed & BIT(kind)))
            continue;
        if (kind == SGPY_COMPLETE || kind == SGPY_INPUT)
            a = PyLong_FromLong(SEGUE_E_NOMEM);
        else if (kind == SGPY_CLOSED)
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
    if (good && user->owed) /* first things first */
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

/* After the runtime there is no later batch: what cannot be told then is dropped. */
void sgpy_settle(sgpy_host *host)
{
    while (host->owing && (pay(host->owing) || !host->runtime))
        forgive(host);
    if (host->lost && PyList_Append(host->batch, host->spare) == 0)
        host->lost = false;
    PyErr_Clear();
    if (!host->runtime || (!host->lost && !host->owing))
        return;
    pthread_mutex_lock(&host->mutex);
    ring(host);
    pthread_mutex_unlock(&host->mutex);
}

void sgpy_host_end(sgpy_host *host)
{
    while (host->owing)
        forgive(host);
    Py_CLEAR(host->log);
    Py_CLEAR(host->spare);
}

/* ---- the counting allocator; any thread ---- */

static _Atomic long long allocated;

static void *track_alloc(void *user, size_t size)
{
    (void)user;
    void *ptr = malloc(size);
    if (ptr)
        atomic_fetch_add(&allocated, (long long)size);
    return ptr;
}

static void *track_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    void *moved = realloc(ptr, new_size);
    if (moved)
        atomic_fetch_add(&allocated, (long long)new_size - (long long)old_size);
    return moved;
}

static void track_release(void *user, void *ptr, size_t size)
{
    (void)user;
    if (ptr)
        atomic_fetch_sub(&allocated, (long long)size);
    free(ptr);
}

const segue_allocator *sgpy_tracking(void)
{
    static const segue_allocator tracking = {track_alloc, track_resize, track_release,
                                             NULL};
    return &tracking;
}

long long sgpy_allocated(void)
{
    return atomic_load(&allocated);
}
