/* Fills option structs from dicts. The tables in option_members.h describe the structs.
 * The key of a member in a dict is the member's name. A member that is missing or None
 * stays zero, the default. An unknown key raises a TypeError. Callbacks are not set from
 * dicts. Strings in the struct are views of the dict's values, valid for one call. Lists
 * in the struct are copies, which are freed after the call.
 *
 * A test compares the tables with the headers, so that no member is missing. */
#include "shim.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../common/option_members.h"

/* ---- one member ---- */

static bool fill_list(sgpy_options *kept, const char *const **out, PyObject *value)
{
    PyObject *items = PySequence_Tuple(value);
    if (!items)
        return false;
    Py_ssize_t count = PyTuple_Size(items);
    if (kept->count >= SGPY_OPTION_LISTS) {
        Py_DECREF(items);
        PyErr_SetString(PyExc_ValueError,
                        "the options have too many members that are lists");
        return false;
    }
    const char **texts = calloc((size_t)count + 1, sizeof *texts);
    kept->owned[kept->count] = items;
    kept->lists[kept->count++] = texts;
    if (!texts) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!sgpy_name(PyTuple_GetItem(items, i), false, &texts[i]))
            return false;
    *out = texts;
    return true;
}

static bool fill_number(void *place, member_kind kind, PyObject *value)
{
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return false;
    bool fits = kind == INT64 ||
                (kind == INT32 ? number == (int32_t)number : number == (uint32_t)number);
    if (!fits) {
        PyErr_SetString(PyExc_OverflowError, "the number is too large");
        return false;
    }
    if (kind == INT64)
        *(int64_t *)place = number;
    else if (kind == INT32)
        *(int32_t *)place = (int32_t)number;
    else
        *(uint32_t *)place = (uint32_t)number;
    return true;
}

static bool fill_member(sgpy_options *kept, const option *member, char *target,
                        PyObject *value)
{
    void *place = target + member->offset;
    switch (member->kind) {
    case TEXT:
        return sgpy_name(value, true, place);
    case BYTES:
        return sgpy_view(value, true, place, (size_t *)(void *)(target + member->length));
    case LIST:
        return fill_list(kept, place, value);
    case STORE:
        return (*(void **)place = sgpy_unwrap(value, SGPY_STORE)) != NULL;
    case SERVER:
        return (*(void **)place = sgpy_unwrap(value, SGPY_SERVER)) != NULL;
    default:
        return fill_number(place, member->kind, value);
    }
}

/* ---- a whole dict ---- */

static const option *find_member(const option *members, PyObject *key)
{
    for (; PyUnicode_Check(key) && members->name; members++)
        if (PyUnicode_CompareWithASCIIString(key, members->name) == 0)
            return members;
    return NULL;
}

/* Puts the name of the option before the message of the current exception. */
static void name_option(PyObject *key)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (type == PyExc_TypeError || type == PyExc_OverflowError ||
        type == PyExc_ValueError) {
        PyErr_Format(type, "%U: %S", key, value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return;
    }
    PyErr_Restore(type, value, trace);
}

bool sgpy_options_fill(sgpy_options *kept, option_shape which, void *target,
                       PyObject *dict)
{
    const option_struct *shape = &shapes[which];
    PyObject *key, *value;
    Py_ssize_t place = 0;
    memset(kept, 0, sizeof *kept);
    memset(target, 0, shape->size);
    memcpy(target, &shape->size, sizeof shape->size); /* struct_size */
    if (dict == Py_None)
        return true;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "the options have to be a dict, not %R",
                     (PyObject *)Py_TYPE(dict));
        return false;
    }
    while (PyDict_Next(dict, &place, &key, &value)) {
        const option *member = find_member(shape->members, key);
        if (!member) {
            PyErr_Format(PyExc_TypeError, "%s has no option %R", shape->name, key);
        } else if (value == Py_None || fill_member(kept, member, target, value)) {
            continue;
        } else {
            name_option(key);
        }
        sgpy_options_free(kept);
        return false;
    }
    return true;
}

void sgpy_options_free(sgpy_options *kept)
{
    for (int i = 0; i < kept->count; i++) {
        Py_XDECREF(kept->owned[i]);
        free(kept->lists[i]);
    }
    kept->count = 0;
}

PyObject *sgpy_option_names(void)
{
    PyObject *all = PyDict_New();
    for (size_t i = 0; all && i < sizeof shapes / sizeof *shapes; i++) {
        if (!shapes[i].name)
            continue;
        PyObject *names = PyList_New(0);
        const option *member = shapes[i].members;
        for (; names && member->name; member++) {
            PyObject *name = PyUnicode_FromString(member->name);
            if (!name || PyList_Append(names, name) < 0)
                Py_CLEAR(names);
            Py_XDECREF(name);
        }
        if (!names || PyDict_SetItemString(all, shapes[i].name, names) < 0)
            Py_CLEAR(all);
        Py_XDECREF(names);
    }
    return all;
}
