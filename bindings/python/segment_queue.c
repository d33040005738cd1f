/* The queue of the segments of one request, and the reader that takes them. `async for`
 * runs once for each segment, so its steps are here and not in Python:
 *
 *     SegmentQueue   the segments that have arrived and were not taken
 *     SegmentReader  the base class of streams and tasks; its __anext__ makes a
 *     NextSegment    the awaitable of one step
 *
 * A step takes its segment when it is awaited, and not earlier: a step that is cancelled
 * before it began has taken nothing. When the queue is empty, the step runs the coroutine
 * that the reader's method _next_later returns. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

typedef struct sgpy_queue {
    PyObject_HEAD PyObject **items; /* a ring */
    size_t room;                    /* 0, or a power of two */
    size_t first;                   /* index of the oldest segment */
    size_t count;
    uint64_t newest; /* number of the last segment that arrived */
    uint64_t last;   /* number of the last segment that was taken */
    long long taken; /* number of segments taken since the last grant of credit */
    long long half;  /* number of segments after which the flow grants new credit */
} sgpy_queue;

typedef struct sgpy_reader {
    PyObject_HEAD PyObject *flow; /* NULL until the request begins */
    sgpy_queue *queue;            /* the queue of the flow */
} sgpy_reader;

typedef struct sgpy_step {
    PyObject_HEAD sgpy_reader *reader; /* NULL once the step has ended */
    PyObject *later; /* the coroutine that waits for a segment; NULL = none was needed */
} sgpy_step;

static PyTypeObject *queue_type, *step_type;

static void free_object(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc free_it = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_it(object);
    Py_DECREF(type);
}

/* ---- the queue ---- */

static bool make_room(sgpy_queue *self, size_t count)
{
    size_t room = self->room ? self->room : 64;
    if (self->count + count <= self->room)
        return true;
    while (room < self->count + count)
        room *= 2;
    PyObject **items = malloc(room * sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < self->count; i++)
        items[i] = self->items[(self->first + i) & (self->room - 1)];
    free(self->items);
    self->items = items;
    self->room = room;
    self->first = 0;
    return true;
}

/* Takes the oldest segment of a queue that is not empty. */
static PyObject *pop(sgpy_queue *self)
{
    PyObject *item = self->items[self->first];
    self->first = (self->first + 1) & (self->room - 1);
    self->count--;
    self->taken++;
    self->last = sgpy_segment_number(item);
    return item;
}

static PyObject *new_queue(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    static char *const known[] = {"half", NULL};
    long long half;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "L", (char **)(void *)known,
                                     &half))
        return NULL;
    PyObject *object = PyType_GenericAlloc(type, 0);
    if (object)
        ((sgpy_queue *)(void *)object)->half = half;
    return object;
}

static bool are_segments(PyObject *list)
{
    Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!sgpy_is_segment(PyList_GetItem(list, i)))
            return false;
    return count >= 0;
}

static PyObject *queue_extend(PyObject *object, PyObject *list)
{
    sgpy_queue *self = (sgpy_queue *)(void *)object;
    if (!are_segments(list)) {
        PyErr_SetString(PyExc_TypeError, "a list of segments is required");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(list);
    if (!make_room(self, (size_t)count))
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = Py_NewRef(PyList_GetItem(list, i));
        self->items[(self->first + self->count++) & (self->room - 1)] = item;
        self->newest = sgpy_segment_number(item);
    }
    return Py_NewRef(Py_None);
}

static PyObject *queue_take(PyObject *object, PyObject *unused)
{
    sgpy_queue *self = (sgpy_queue *)(void *)object;
    (void)unused;
    if (self->count)
        return pop(self);
    PyErr_SetString(PyExc_IndexError, "the queue is empty");
    return NULL;
}

static PyObject *queue_take_all(PyObject *object, PyObject *unused)
{
    sgpy_queue *self = (sgpy_queue *)(void *)object;
    PyObject *list = PyList_New((Py_ssize_t)self->count);
    (void)unused;
    for (Py_ssize_t i = 0; list && self->count; i++)
        PyList_SetItem(list, i, pop(self));
    return list;
}

static PyObject *queue_clear(PyObject *object, PyObject *unused)
{
    sgpy_queue *self = (sgpy_queue *)(void *)object;
    (void)unused;
    for (; self->count; self->count--) {
        Py_DECREF(self->items[self->first]);
        self->first = (self->first + 1) & (self->room - 1);
    }
    return Py_NewRef(Py_None);
}

static void dealloc_queue(PyObject *object)
{
    Py_DECREF(queue_clear(object, NULL));
    free(((sgpy_queue *)(void *)object)->items);
    free_object(object);
}

static Py_ssize_t queue_length(PyObject *object)
{
    return (Py_ssize_t)((sgpy_queue *)(void *)object)->count;
}

static PyObject *get_last(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((sgpy_queue *)(void *)object)->last);
}

static PyObject *get_newest(PyObject *object, void *unused)
{
    const sgpy_queue *self = (const sgpy_queue *)(const void *)object;
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->count ? self->newest : self->last);
}

static PyObject *get_due(PyObject *object, void *unused)
{
    const sgpy_queue *self = (const sgpy_queue *)(const void *)object;
    (void)unused;
    return PyBool_FromLong(self->taken >= self->half);
}

static PyObject *queue_settle(PyObject *object, PyObject *unused)
{
    sgpy_queue *self = (sgpy_queue *)(void *)object;
    long long taken = self->taken;
    (void)unused;
    self->taken = 0;
    return PyLong_FromLongLong(taken);
}

/* ---- one step ---- */

/* Takes the next segment of a queue that is not empty, and grants new credit when the
 * reader has taken half of the window. */
static PyObject *take(const sgpy_reader *reader)
{
    PyObject *segment = pop(reader->queue);
    if (reader->queue->taken < reader->queue->half)
        return segment;
    PyObject *done = PyObject_CallMethod(reader->flow, "refill", NULL);
    if (!done)
        Py_CLEAR(segment);
    Py_XDECREF(done);
    return segment;
}

static void end_step(sgpy_step *self)
{
    sgpy_reader *reader = self->reader;
    PyObject *later = self->later;
    self->reader = NULL;
    self->later = NULL;
    Py_XDECREF((PyObject *)reader);
    Py_XDECREF(later);
}

static PySendResult step_send(PyObject *object, PyObject *value, PyObject **result)
{
    sgpy_step *self = (sgpy_step *)(void *)object;
    *result = NULL;
    if (!self->reader) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited __anext__()");
        return PYGEN_ERROR;
    }
    if (!self->later && self->reader->queue && self->reader->queue->count) {
        *result = take(self->reader);
        end_step(self);
        return *result ? PYGEN_RETURN : PYGEN_ERROR;
    }
    if (!self->later)
        self->later = PyObject_CallMethod((PyObject *)self->reader, "_next_later", NULL);
    if (!self->later)
        return PYGEN_ERROR;
    PyObject *later = Py_NewRef(self->later);
    PySendResult state = PyIter_Send(later, value, result);
    Py_DECREF(later);
    if (state != PYGEN_NEXT)
        end_step(self);
    return state;
}

static PyObject *step_value(PySendResult state, PyObject *value)
{
    if (state != PYGEN_RETURN)
        return value;
    PyErr_SetObject(PyExc_StopIteration, value);
    Py_DECREF(value);
    return NULL;
}

static PyObject *step_next(PyObject *object)
{
    PyObject *value;
    PySendResult state = step_send(object, Py_None, &value);
    return step_value(state, value);
}

static PyObject *send_to_step(PyObject *object, PyObject *given)
{
    PyObject *value;
    PySendResult state = step_send(object, given, &value);
    return step_value(state, value);
}

/* Raises the exception in the coroutine that waits. Without one, the step ends with the
 * exception and has taken nothing. */
static PyObject *throw_into_step(PyObject *object, PyObject *arguments)
{
    sgpy_step *self = (sgpy_step *)(void *)object;
    PyObject *type, *value = NULL, *trace = NULL;
    if (!PyArg_ParseTuple(arguments, "O|OO", &type, &value, &trace))
        return NULL;
    if (self->reader && !self->later) /* the coroutine knows all forms of throw() */
        self->later = PyObject_CallMethod((PyObject *)self->reader, "_next_later", NULL);
    if (!self->later) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError,
                            "cannot reuse already awaited __anext__()");
        return NULL;
    }
    PyObject *later = Py_NewRef(self->later);
    PyObject *method = PyObject_GetAttrString(later, "throw");
    PyObject *made = method ? PyObject_CallObject(method, arguments) : NULL;
    Py_XDECREF(method);
    Py_DECREF(later);
    if (!made)
        end_step(self);
    return made;
}

static PyObject *close_step(PyObject *object, PyObject *unused)
{
    sgpy_step *self = (sgpy_step *)(void *)object;
    PyObject *later = Py_XNewRef(self->later);
    (void)unused;
    PyObject *done =
        later ? PyObject_CallMethod(later, "close", NULL) : Py_NewRef(Py_None);
    Py_XDECREF(later);
    end_step(self);
    return done;
}

static PyObject *await_step(PyObject *object)
{
    return Py_NewRef(object);
}

static void dealloc_step(PyObject *object)
{
    end_step((sgpy_step *)(void *)object);
    free_object(object);
}

/* ---- the reader ---- */

static PyObject *reader_anext(PyObject *object)
{
    sgpy_step *step = PyObject_New(sgpy_step, step_type);
    if (!step)
        return NULL;
    step->reader = (sgpy_reader *)(void *)Py_NewRef(object);
    step->later = NULL;
    return (PyObject *)step;
}

static PyObject *get_flow(PyObject *object, void *unused)
{
    const sgpy_reader *self = (const sgpy_reader *)(const void *)object;
    (void)unused;
    return Py_NewRef(self->flow ? self->flow : Py_None);
}

static int clear_reader(PyObject *object)
{
    sgpy_reader *self = (sgpy_reader *)(void *)object;
    PyObject *flow = self->flow, *queue = (PyObject *)self->queue;
    self->flow = NULL;
    self->queue = NULL;
    Py_XDECREF(flow);
    Py_XDECREF(queue);
    return 0;
}

/* Sets the flow once. Its attribute `queue` never changes. */
static int set_flow(PyObject *object, PyObject *flow, void *unused)
{
    sgpy_reader *self = (sgpy_reader *)(void *)object;
    (void)unused;
    if (!flow) {
        PyErr_SetString(PyExc_AttributeError, "the flow cannot be deleted");
        return -1;
    }
    if (flow == Py_None)
        return clear_reader(object);
    PyObject *queue = PyObject_GetAttrString(flow, "queue");
    if (!queue)
        return -1;
    if (Py_TYPE(queue) != queue_type) {
        Py_DECREF(queue);
        PyErr_SetString(PyExc_TypeError, "the flow has no queue of segments");
        return -1;
    }
    clear_reader(object);
    self->flow = Py_NewRef(flow);
    self->queue = (sgpy_queue *)(void *)queue;
    return 0;
}

static int traverse_reader(PyObject *object, visitproc visit, void *arg)
{
    const sgpy_reader *self = (const sgpy_reader *)(const void *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->flow);
    return 0;
}

static void dealloc_reader(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    clear_reader(object);
    free_object(object);
}

/* ---- the types ---- */

static PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObjectRef(module, name, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)(void *)type;
}

static bool add_queue(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"extend", queue_extend, METH_O, "Appends the segments of a list."},
        {"take", queue_take, METH_NOARGS, "Takes the oldest segment."},
        {"take_all", queue_take_all, METH_NOARGS, "Takes all segments, as a list."},
        {"clear", queue_clear, METH_NOARGS, "Throws all segments away."},
        {"settle", queue_settle, METH_NOARGS,
         "Returns how many segments were taken since the last call."},
        {NULL, NULL, 0, NULL}};
    static PyGetSetDef getters[] = {
        {"last", get_last, NULL, "number of the last segment that was taken, or 0", NULL},
        {"newest", get_newest, NULL, "number of the last segment that arrived, or 0",
         NULL},
        {"is_due", get_due, NULL, "true when new credit has to be granted", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot slots[] = {{Py_tp_new, (void *)new_queue},
                           {Py_tp_dealloc, (void *)dealloc_queue},
                           {Py_sq_length, (void *)queue_length},
                           {Py_tp_methods, methods},
                           {Py_tp_getset, getters},
                           {Py_tp_doc, (void *)"The unread segments of a request."},
                           {0, NULL}};
    PyType_Spec spec = {"segue._segue.SegmentQueue", sizeof(sgpy_queue), 0,
                        Py_TPFLAGS_DEFAULT, slots};
    queue_type = add_type(module, "SegmentQueue", &spec);
    return queue_type != NULL;
}

static bool add_step(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"send", send_to_step, METH_O, "Continues the step."},
        {"throw", throw_into_step, METH_VARARGS, "Raises an exception in the step."},
        {"close", close_step, METH_NOARGS, "Ends the step."},
        {NULL, NULL, 0, NULL}};
    PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc_step},
                           {Py_am_await, (void *)await_step},
                           {Py_am_send, (void *)step_send},
                           {Py_tp_iter, (void *)await_step},
                           {Py_tp_iternext, (void *)step_next},
                           {Py_tp_methods, methods},
                           {Py_tp_doc, (void *)"One step of a loop over segments."},
                           {0, NULL}};
    PyType_Spec spec = {"segue._segue.NextSegment", sizeof(sgpy_step), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    step_type = add_type(module, "NextSegment", &spec);
    return step_type != NULL;
}

static bool add_reader(PyObject *module)
{
    static PyGetSetDef getters[] = {
        {"_flow", get_flow, set_flow, "the running request, or None", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc_reader},
                           {Py_tp_traverse, (void *)traverse_reader},
                           {Py_tp_clear, (void *)clear_reader},
                           {Py_am_anext, (void *)reader_anext},
                           {Py_tp_getset, getters},
                           {Py_tp_doc, (void *)"Reads the segments of a flow."},
                           {0, NULL}};
    PyType_Spec spec = {"segue._segue.SegmentReader", sizeof(sgpy_reader), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                        slots};
    PyTypeObject *type = add_type(module, "SegmentReader", &spec);
    Py_XDECREF((PyObject *)type); /* the module keeps it */
    return type != NULL;
}

int sgpy_segment_queue_init(PyObject *module)
{
    return add_queue(module) && add_step(module) && add_reader(module) ? 0 : -1;
}
