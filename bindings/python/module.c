/* The parts of the module that are in no other file: small functions for the generated
 * code, constants, and the check of the interpreter. */
#include "shim.h"

PyObject *sgpy_give(PyObject *old, PyObject *made)
{
    Py_XDECREF(old);
    return made;
}

PyObject *sgpy_header(const char *name, const char *value, size_t len)
{
    return Py_BuildValue("(NN)", sgpy_string(name), sgpy_bytes(value, len));
}

PyObject *sgpy_resumed(uint64_t last, const void *data, size_t len)
{
    return Py_BuildValue("(KN)", (unsigned long long)last, sgpy_bytes(data, len));
}

/* Returns whether this is the first interpreter that loads the module. Only one
 * interpreter can use the module, because its types and counters are global to the
 * process. */
static bool is_first_interpreter(void)
{
    static int64_t first = -1;
    int64_t id = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (first < 0)
        first = id;
    return id == first;
}

int sgpy_init(PyObject *module)
{
    if (!is_first_interpreter()) {
        PyErr_SetString(PyExc_ImportError,
                        "segue works in one interpreter per process only");
        return -1;
    }
    for (int i = 0; i < SGB_EVENTS; i++)
        if (PyModule_AddIntConstant(module, sgb_event_names[i], i) < 0)
            return -1;
    if (sgpy_handle_init(module) < 0 || sgpy_segment_init(module) < 0 ||
        sgpy_segment_queue_init(module) < 0)
        return -1;
    return sgpy_fast_init(module);
}
