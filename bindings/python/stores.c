/* Functions of segue_store. */
#include "shim.h"

PyObject *sgpy_store_memory(PyObject *options)
{
    segue_store_options full;
    sgpy_options kept;
    segue_store *store;
    if (!sgpy_options_fill(&kept, OPTIONS_STORE, &full, options))
        return NULL;
    segue_status status = segue_store_memory(&full, &store);
    sgpy_options_free(&kept);
    return status == SEGUE_OK ? sgpy_wrap(SGPY_STORE, store, NULL) : sgpy_raise(status);
}

typedef segue_status (*open_fn)(const char *name, const segue_store_options *options,
                                segue_store **out, segue_error **error);

static PyObject *open_store(PyObject *object, PyObject *options, open_fn open)
{
    segue_store_options full;
    sgpy_options kept;
    segue_store *store;
    segue_status status;
    const char *name;
    if (!sgpy_name(object, false, &name) ||
        !sgpy_options_fill(&kept, OPTIONS_STORE, &full, options))
        return NULL;
    segue_error **error = sgpy_error_slot();
    Py_BEGIN_ALLOW_THREADS /* the GIL is released, because opening a store reads a file
                            * or connects to a server, which may take time */
        status = open(name, &full, &store, error);
    Py_END_ALLOW_THREADS sgpy_options_free(&kept);
    return status == SEGUE_OK ? sgpy_wrap(SGPY_STORE, store, NULL) : sgpy_raise(status);
}

PyObject *sgpy_store_sqlite(PyObject *path, PyObject *options)
{
    return open_store(path, options, segue_store_sqlite);
}

PyObject *sgpy_store_redis(PyObject *url, PyObject *options)
{
    return open_store(url, options, segue_store_redis);
}

PyObject *sgpy_store_postgres(PyObject *url, PyObject *options)
{
    return open_store(url, options, segue_store_postgres);
}
