/* A segment as a Python object. The library shows the values of a segment only inside
 * on_segment, so one allocation holds copies of all values. Python strings are made when
 * a program reads the attributes, because most programs read only the text. */
#include "shim.h"

#include <string.h>

typedef struct sgpy_segment {
    PyObject_VAR_HEAD uint64_t number;
    uint64_t index;
    bool replaces;
    bool has_text;
    size_t type_len;
    size_t data_len;
    size_t text_len;
    size_t text_at; /* where the text begins in `bytes`; it may be a part of the JSON */
    char bytes[];   /* the type, then the JSON of the block, then a text with escapes */
} sgpy_segment;

static PyTypeObject *segment_type;
/* the callable that makes the attribute `content` from the attribute `data`; NULL =
 * `content` is `data` */
static PyObject *decoder;

PyObject *sgpy_segment_new(const segue_segment *segment)
{
    const segue_segment_view *view = segue_segment_read(segment);
    size_t text_len = 0, type_len = strlen(view->type), data_len = view->data_len;
    const char *bare = sgb_bare_text(view->data, data_len, &text_len);
    const char *text = bare ? bare : segue_segment_text(segment, &text_len);
    size_t after = text && !bare ? text_len : 0;
    sgpy_segment *self = PyObject_NewVar(sgpy_segment, segment_type,
                                         (Py_ssize_t)(type_len + data_len + after));
    if (!self)
        return NULL;
    self->number = view->number;
    self->index = view->index;
    self->replaces = view->replaces != 0;
    self->has_text = text != NULL;
    self->type_len = type_len;
    self->data_len = data_len;
    self->text_len = text ? text_len : 0;
    self->text_at = type_len + (bare ? (size_t)(bare - view->data) : data_len);
    memcpy(self->bytes, view->type, type_len);
    if (data_len)
        memcpy(self->bytes + type_len, view->data, data_len);
    if (after)
        memcpy(self->bytes + type_len + data_len, text, after);
    return (PyObject *)self;
}

bool sgpy_is_segment(PyObject *object)
{
    return Py_TYPE(object) == segment_type;
}

uint64_t sgpy_segment_number(PyObject *object)
{
    return ((sgpy_segment *)(void *)object)->number;
}

static PyObject *get_number(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((sgpy_segment *)(void *)object)->number);
}

static PyObject *get_index(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((sgpy_segment *)(void *)object)->index);
}

static PyObject *get_replaces(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((sgpy_segment *)(void *)object)->replaces);
}

static PyObject *get_type(PyObject *object, void *unused)
{
    const sgpy_segment *self = (const sgpy_segment *)(const void *)object;
    (void)unused;
    return sgpy_text(self->bytes, self->type_len);
}

static PyObject *get_data(PyObject *object, void *unused)
{
    const sgpy_segment *self = (const sgpy_segment *)(const void *)object;
    (void)unused;
    return sgpy_bytes(self->bytes + self->type_len, self->data_len);
}

static PyObject *get_text(PyObject *object, void *unused)
{
    const sgpy_segment *self = (const sgpy_segment *)(const void *)object;
    (void)unused;
    if (!self->has_text)
        return Py_NewRef(Py_None);
    return sgpy_text(self->bytes + self->text_at, self->text_len);
}

static PyObject *get_content(PyObject *object, void *unused)
{
    PyObject *data = get_data(object, unused);
    if (!data || !decoder)
        return data;
    PyObject *content = PyObject_CallFunctionObjArgs(decoder, data, NULL);
    Py_DECREF(data);
    return content;
}

PyObject *sgpy_set_block_decoder(PyObject *callable)
{
    PyObject *old = decoder;
    decoder = callable == Py_None ? NULL : Py_NewRef(callable);
    Py_XDECREF(old);
    return Py_NewRef(Py_None);
}

static PyObject *str_segment(PyObject *object)
{
    const sgpy_segment *self = (const sgpy_segment *)(const void *)object;
    return sgpy_text(self->bytes + self->text_at, self->text_len);
}

static PyObject *compare_segments(PyObject *object, PyObject *other, int op)
{
    if (Py_TYPE(other) != segment_type || (op != Py_EQ && op != Py_NE))
        return Py_NewRef(Py_NotImplemented);
    const sgpy_segment *a = (const sgpy_segment *)(const void *)object;
    const sgpy_segment *b = (const sgpy_segment *)(const void *)other;
    bool equal = a->number == b->number && a->index == b->index &&
                 a->replaces == b->replaces && a->type_len == b->type_len &&
                 a->data_len == b->data_len &&
                 memcmp(a->bytes, b->bytes, a->type_len + a->data_len) == 0;
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_hash_t hash_segment(PyObject *object)
{
    uint64_t number = ((sgpy_segment *)(void *)object)->number;
    return (Py_hash_t)(number & INT64_MAX);
}

static PyObject *repr_segment(PyObject *object)
{
    const sgpy_segment *self = (const sgpy_segment *)(const void *)object;
    PyObject *data = sgpy_text(self->bytes + self->type_len, self->data_len);
    if (!data)
        return NULL;
    PyObject *text =
        PyUnicode_FromFormat("Segment(%llu, %U)", (unsigned long long)self->number, data);
    Py_DECREF(data);
    return text;
}

static void dealloc_segment(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

int sgpy_segment_init(PyObject *module)
{
    static PyGetSetDef getters[] = {
        {"number", get_number, NULL, "1, 2, 3, ...", NULL},
        {"index", get_index, NULL,
         "index of the block in the content of the result, from 0", NULL},
        {"replaces", get_replaces, NULL,
         "true when this segment discards all segments before it", NULL},
        {"type", get_type, NULL, "type of the content block, such as \"text\"", NULL},
        {"data", get_data, NULL, "the block, JSON", NULL},
        {"text", get_text, NULL,
         "the decoded text of a text block; None for another block", NULL},
        {"content", get_content, NULL, "the block, decoded", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc_segment},
                           {Py_tp_repr, (void *)repr_segment},
                           {Py_tp_str, (void *)str_segment},
                           {Py_tp_hash, (void *)hash_segment},
                           {Py_tp_richcompare, (void *)compare_segments},
                           {Py_tp_getset, getters},
                           {Py_tp_doc, (void *)"One segment of a streamed result."},
                           {0, NULL}};
    PyType_Spec spec = {"segue._segue.Segment", sizeof(sgpy_segment), 1,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    segment_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!segment_type)
        return -1;
    return PyModule_AddObjectRef(module, "Segment", (PyObject *)segment_type);
}
