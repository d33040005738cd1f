/* The module's parts that are nobody else's: constants, types, who may load it. */
#include "shim.h"

static const char *const event_names[SGPY_EVENTS] = {
    [SGPY_CALLED] = "CALL",
    [SGPY_COMPLETION] = "COMPLETION",
    [SGPY_CANCEL] = "CANCEL",
    [SGPY_DRAIN] = "DRAIN",
    [SGPY_INPUT] = "INPUT",
    [SGPY_IDLE] = "IDLE",
    [SGPY_OPEN] = "OPEN",
    [SGPY_CLOSED] = "CLOSED",
    [SGPY_NOTIFICATION] = "NOTIFICATION",
    [SGPY_SEGMENTS] = "SEGMENTS",
    [SGPY_PROGRESS] = "PROGRESS",
    [SGPY_LOG] = "LOG",
    [SGPY_QUESTION] = "QUESTION",
    [SGPY_BECAME_TASK] = "TASK",
    [SGPY_STATUS] = "STATUS",
    [SGPY_COMPLETE] = "COMPLETE",
    [SGPY_STDERR] = "STDERR",
    [SGPY_AUTHORIZE] = "AUTHORIZE",
    [SGPY_RUNTIME_LOG] = "RUNTIME_LOG",
    [SGPY_EXCEPTION] = "EXCEPTION",
    [SGPY_TRANSPORT_START] = "TRANSPORT_START",
    [SGPY_TRANSPORT_SEND] = "TRANSPORT_SEND",
    [SGPY_TRANSPORT_CLOSE] = "TRANSPORT_CLOSE",
    [SGPY_TRANSPORT_PAUSE] = "TRANSPORT_PAUSE",
    [SGPY_TRANSPORT_REOPEN] = "TRANSPORT_REOPEN",
    [SGPY_TRANSPORT_FREE] = "TRANSPORT_FREE",
    [SGPY_RECONNECT] = "RECONNECT",
    [SGPY_CALLED_NOW] = "CALL_NOW",
    [SGPY_BECAME_RESUMABLE] = "RESUMABLE",
};

PyObject *sgpy_give(PyObject *old, PyObject *made)
{
    Py_XDECREF(old);
    return made;
}

PyObject *sgpy_resumed(uint64_t last, const void *data, size_t len)
{
    return Py_BuildValue("(KN)", (unsigned long long)last, sgpy_bytes(data, len));
}

/* Types and counters are the process's: one interpreter can have them. */
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
                        "segue works in one interpreter of a process only");
        return -1;
    }
    for (int i = 0; i < SGPY_EVENTS; i++)
        if (PyModule_AddIntConstant(module, event_names[i], i) < 0)
            return -1;
    if (sgpy_handle_init(module) < 0 || sgpy_segment_init(module) < 0)
        return -1;
    return sgpy_fast_init(module);
}
