/* Custom stores in Python (store_custom). The library calls the callback table on the
 * store's thread, which must not touch Python. So each call puts one job into the shelf
 * (struct sgpy_shelf, the state of one custom store) and waits for the job's answer. A
 * Python thread runs the jobs (store_serve). The members of the shelf:
 *
 *     job       the current job; the store's thread sets it and owns its memory
 *     answered  true = the Python thread has filled job->status and job->rows
 *     served    true = a thread has called store_serve, and a second thread is refused
 *     closed    true = the library has freed the table, and store_serve returns
 *     left      true = store_serve has returned or raised, and jobs fail at once
 *     unheard   change feed items ("news") that the library could not take yet
 *     format    the attribute record_format after the last job; servers ask for it on any
 *               thread
 *
 * Records and entries are passed as tuples, in the order of the structs' members. Values
 * from Python are copied, so that the store's thread refers to no Python object. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

typedef enum shelf_op {
    COMMIT = 0,
    FIND,
    READ,
    CLAIM,
    PURGE,
    LIST,
    FOLLOW,
    POST,
    NEWS,
    STATS
} shelf_op;

static const char *const methods[] = {"commit", "find",   "read", "claim", "purge",
                                      "list",   "follow", "post", "news",  "stats"};

typedef struct shelf_row {
    segue_store_record record;
    segue_store_entry entry;
    segue_store_news news;
    char *texts; /* the memory of the texts and data of this row */
} shelf_row;

typedef struct shelf_job {
    shelf_op op;
    const segue_store_write *writes;
    size_t count;
    const char *task_id;
    const uint8_t *id; /* the id of an operation, a key or a principal: `op` decides */
    uint64_t after;
    int64_t at_ms;
    int64_t next_ms;
    bool on;
    const char *data; /* the forwarded command that the method `post` gets */
    size_t len;
    segue_store_stats stats;
    segue_status status;
    shelf_row *rows;
    size_t row_count;
    size_t told; /* number of the rows (change feed items) that the library has taken */
} shelf_job;

struct sgpy_shelf {
    _Atomic int refs;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    PyObject *store;
    shelf_job *job;
    bool answered;
    bool served;
    bool closed;
    bool left;
    /* change feed items that the library could not take yet; only the store's thread uses
     * this member */
    shelf_job unheard;
    _Atomic int32_t format;
    pthread_mutex_t wake_lock;
    void (*wake)(void *user);
    void *wake_user;
};

static void free_rows(shelf_job *job)
{
    for (size_t i = 0; i < job->row_count; i++)
        free(job->rows[i].texts);
    free(job->rows);
}

static void unref_shelf(sgpy_shelf *shelf)
{
    if (atomic_fetch_sub(&shelf->refs, 1) != 1)
        return;
    free_rows(&shelf->unheard);
    pthread_mutex_destroy(&shelf->wake_lock);
    pthread_cond_destroy(&shelf->changed);
    pthread_mutex_destroy(&shelf->mutex);
    free(shelf);
}

/* ---- the callback table; the store's thread ---- */

static segue_status ask(sgpy_shelf *shelf, shelf_job *job)
{
    pthread_mutex_lock(&shelf->mutex);
    shelf->job = job;
    shelf->answered = false;
    pthread_cond_broadcast(&shelf->changed);
    while (!shelf->answered && !shelf->left)
        pthread_cond_wait(&shelf->changed, &shelf->mutex);
    if (!shelf->answered)
        job->status = SEGUE_E_STORE;
    shelf->job = NULL;
    pthread_mutex_unlock(&shelf->mutex);
    return job->status;
}

static segue_status tell_records(shelf_job *job, segue_store_record_fn fn, void *user)
{
    for (size_t i = 0; job->status == SEGUE_OK && i < job->row_count; i++)
        if (fn(user, &job->rows[i].record))
            break;
    free_rows(job);
    return job->status;
}

static segue_status commit(void *self, const segue_store_write *writes, size_t count)
{
    shelf_job job = {.op = COMMIT, .writes = writes, .count = count};
    return ask(self, &job);
}

static segue_status find(void *self, const char *task_id, const uint8_t *key,
                         segue_store_record_fn fn, void *user)
{
    shelf_job job = {.op = FIND, .task_id = task_id, .id = key};
    segue_status status = ask(self, &job);
    if (status == SEGUE_OK && !job.row_count)
        return SEGUE_E_NOT_FOUND;
    return tell_records(&job, fn, user);
}

static segue_status read_log(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user)
{
    shelf_job job = {.op = READ, .id = id, .after = after};
    ask(self, &job);
    for (size_t i = 0; job.status == SEGUE_OK && i < job.row_count; i++)
        if (fn(user, &job.rows[i].entry))
            break;
    free_rows(&job);
    return job.status;
}

/* The method claim() has made this store the owner of all records that it returned, so
 * all of them are passed on, also when fn wants no more in this portion. */
static segue_status claim(void *self, segue_store_record_fn fn, void *user)
{
    shelf_job job = {.op = CLAIM};
    ask(self, &job);
    for (size_t i = 0; job.status == SEGUE_OK && i < job.row_count; i++)
        fn(user, &job.rows[i].record);
    free_rows(&job);
    return job.status;
}

static segue_status purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    shelf_job job = {.op = PURGE, .at_ms = now_ms, .next_ms = INT64_MAX};
    segue_status status = ask(self, &job);
    *next_ms = job.next_ms;
    return status;
}

static segue_status list(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user)
{
    shelf_job job = {
        .op = LIST, .id = principal, .at_ms = created_ms, .task_id = task_id};
    ask(self, &job);
    return tell_records(&job, fn, user);
}

static void set_wake(void *self, void (*wake)(void *user), void *user)
{
    sgpy_shelf *shelf = self;
    pthread_mutex_lock(&shelf->wake_lock);
    shelf->wake = wake;
    shelf->wake_user = user;
    pthread_mutex_unlock(&shelf->wake_lock);
}

static segue_status follow(void *self, const uint8_t *id, int32_t on)
{
    shelf_job job = {.op = FOLLOW, .id = id, .on = on != 0};
    return ask(self, &job);
}

static segue_status post(void *self, const uint8_t *id, const char *data, size_t len)
{
    shelf_job job = {.op = POST, .id = id, .data = data, .len = len};
    return ask(self, &job);
}

/* Passes the change feed items of a job to the library. Returns false when the library
 * takes no more items now; the other items stay in the job. */
static bool tell_news(shelf_job *job, segue_store_news_fn fn, void *user)
{
    for (; job->told < job->row_count; job->told++)
        if (fn(user, &job->rows[job->told].news))
            return false;
    free_rows(job);
    *job = (shelf_job){0};
    return true;
}

static segue_status news(void *self, segue_store_news_fn fn, void *user,
                         int64_t *within_ms)
{
    sgpy_shelf *shelf = self;
    shelf_job job = {.op = NEWS, .next_ms = -1};
    *within_ms = 0;
    if (!tell_news(&shelf->unheard, fn, user))
        return SEGUE_OK;
    segue_status status = ask(shelf, &job);
    *within_ms = job.next_ms;
    if (status != SEGUE_OK) {
        free_rows(&job);
        return status;
    }
    shelf->unheard = job;
    tell_news(&shelf->unheard, fn, user);
    return SEGUE_OK;
}

static void stats(void *self, segue_store_stats *out)
{
    shelf_job job = {.op = STATS, .stats = *out};
    if (ask(self, &job) == SEGUE_OK)
        *out = job.stats;
}

static int32_t records(void *self)
{
    sgpy_shelf *shelf = self;
    return atomic_load(&shelf->format);
}

static void close_shelf(void *self)
{
    sgpy_shelf *shelf = self;
    pthread_mutex_lock(&shelf->mutex);
    shelf->closed = true;
    pthread_cond_broadcast(&shelf->changed);
    pthread_mutex_unlock(&shelf->mutex);
    unref_shelf(shelf);
}

/* ---- values to Python ---- */

static PyObject *give_bytes(const uint8_t *bytes, size_t len)
{
    return bytes ? sgpy_bytes((const char *)bytes, len) : Py_NewRef(Py_None);
}

static PyObject *give_record(const segue_store_record *record)
{
    if (!record)
        return Py_NewRef(Py_None);
    return Py_BuildValue("(NNNNNLLN)", give_bytes(record->id, sizeof record->id),
                         sgpy_string(record->task_id),
                         give_bytes(record->has_key ? record->idempotency_key : NULL,
                                    sizeof record->idempotency_key),
                         give_bytes(record->principal, sizeof record->principal),
                         PyLong_FromLong(record->ended), (long long)record->created_ms,
                         (long long)record->purge_ms,
                         sgpy_bytes(record->data, record->data_len));
}

static PyObject *give_entry(const segue_store_write *write)
{
    const segue_store_entry *entry = &write->entry;
    if (!entry->seq && !entry->event)
        return Py_NewRef(Py_None);
    return Py_BuildValue(
        "(KKKiLN)", (unsigned long long)entry->seq, (unsigned long long)entry->segment,
        (unsigned long long)entry->event, (int)entry->kind, (long long)entry->at_ms,
        sgpy_bytes(entry->data, entry->data_len));
}

static PyObject *give_writes(const shelf_job *job)
{
    PyObject *items = PyList_New(0);
    for (size_t i = 0; items && i < job->count; i++) {
        const segue_store_write *write = &job->writes[i];
        bool creates = write->kind == SEGUE_STORE_CREATE;
        PyObject *item = Py_BuildValue(
            "(iNNNL)", (int)write->kind,
            give_bytes(creates ? write->record->id : write->id, sizeof write->id),
            give_record(creates ? write->record : NULL), give_entry(write),
            (long long)write->purge_ms);
        if (!item || PyList_Append(items, item) < 0)
            Py_CLEAR(items);
        Py_XDECREF(item);
    }
    return items;
}

/* Makes the tuple of arguments for the Python method that runs the job. */
static PyObject *give(const shelf_job *job)
{
    switch (job->op) {
    case COMMIT:
        return Py_BuildValue("(N)", give_writes(job));
    case FIND:
        return Py_BuildValue("(NN)", sgpy_string(job->task_id),
                             give_bytes(job->id, SEGUE_STORE_HASH_SIZE));
    case READ:
        return Py_BuildValue("(NK)", give_bytes(job->id, SEGUE_STORE_ID_SIZE),
                             (unsigned long long)job->after);
    case PURGE:
        return Py_BuildValue("(L)", (long long)job->at_ms);
    case FOLLOW:
        return Py_BuildValue("(NN)", give_bytes(job->id, SEGUE_STORE_ID_SIZE),
                             PyBool_FromLong(job->on));
    case POST:
        return Py_BuildValue("(NN)", give_bytes(job->id, SEGUE_STORE_ID_SIZE),
                             sgpy_bytes(job->data, job->len));
    case LIST:
        return Py_BuildValue("(NLN)", give_bytes(job->id, SEGUE_STORE_HASH_SIZE),
                             (long long)job->at_ms, sgpy_string(job->task_id));
    default:
        return PyTuple_New(0);
    }
}

/* ---- values from Python ---- */

/* Copies a hash or an id of exactly `size` bytes. `bytes` is an object, because formats
 * with a length ("y#") differ between versions of Python. Returns false with an exception
 * on failure. */
static bool take_hash(uint8_t *into, size_t size, PyObject *bytes)
{
    const char *view;
    size_t len;
    if (!sgpy_view(bytes, false, &view, &len))
        return false;
    if (len != size) {
        PyErr_SetString(PyExc_ValueError, "an id or a hash has the wrong length");
        return false;
    }
    memcpy(into, view, size);
    return true;
}

/* Copies a text with its NUL, followed by the data, into row->texts. `text` may be NULL.
 * Sets *into and *into_len to the copied data. Returns false with an exception on
 * failure. */
static bool take_texts(shelf_row *row, const char *text, PyObject *data,
                       const char **into, size_t *into_len)
{
    const char *view;
    size_t len, text_len = text ? strlen(text) + 1 : 0;
    if (!sgpy_view(data, false, &view, &len))
        return false;
    row->texts = malloc(text_len + len + 1);
    if (!row->texts) {
        PyErr_NoMemory();
        return false;
    }
    if (text)
        memcpy(row->texts, text, text_len);
    memcpy(row->texts + text_len, view, len);
    *into = row->texts + text_len;
    *into_len = len;
    return true;
}

static bool take_record(shelf_row *row, PyObject *item)
{
    PyObject *id, *task_id, *key, *principal, *data;
    int ended;
    long long created_ms, purge_ms;
    const char *name;
    segue_store_record *record = &row->record;
    if (!PyArg_ParseTuple(item, "OOOOiLLO", &id, &task_id, &key, &principal, &ended,
                          &created_ms, &purge_ms, &data) ||
        !sgpy_name(task_id, false, &name) ||
        !take_texts(row, name, data, &record->data, &record->data_len))
        return false;
    record->task_id = row->texts;
    record->has_key = key != Py_None;
    record->ended = ended;
    record->created_ms = created_ms;
    record->purge_ms = purge_ms;
    return take_hash(record->id, sizeof record->id, id) &&
           (!record->has_key ||
            take_hash(record->idempotency_key, sizeof record->idempotency_key, key)) &&
           take_hash(record->principal, sizeof record->principal, principal);
}

static bool take_entry(shelf_row *row, PyObject *item)
{
    PyObject *data;
    unsigned long long seq, segment, event;
    int kind;
    long long at_ms;
    segue_store_entry *entry = &row->entry;
    if (!PyArg_ParseTuple(item, "KKKiLO", &seq, &segment, &event, &kind, &at_ms, &data) ||
        !take_texts(row, NULL, data, &entry->data, &entry->data_len))
        return false;
    entry->seq = seq;
    entry->segment = segment;
    entry->event = event;
    entry->kind = kind;
    entry->at_ms = at_ms;
    return true;
}

static bool take_piece(shelf_row *row, PyObject *item)
{
    PyObject *id, *data;
    int kind;
    unsigned long long number;
    segue_store_news *piece = &row->news;
    if (!PyArg_ParseTuple(item, "iOKO", &kind, &id, &number, &data) ||
        (data != Py_None && !take_texts(row, NULL, data, &piece->data, &piece->data_len)))
        return false;
    piece->kind = kind;
    piece->number = number;
    return id == Py_None || take_hash(piece->id, sizeof piece->id, id);
}

static bool take_row(shelf_op op, shelf_row *row, PyObject *item)
{
    if (op == READ)
        return take_entry(row, item);
    return op == NEWS ? take_piece(row, item) : take_record(row, item);
}

static bool take_rows(shelf_job *job, PyObject *items)
{
    PyObject *tuple = PySequence_Tuple(items);
    Py_ssize_t count = tuple ? PyTuple_Size(tuple) : 0;
    bool good = tuple != NULL;
    job->rows = calloc((size_t)count + 1, sizeof *job->rows);
    if (!job->rows) {
        Py_XDECREF(tuple);
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; good && i < count; i++) {
        shelf_row *row = &job->rows[job->row_count++];
        PyObject *item = PyTuple_GetItem(tuple, i);
        good = take_row(job->op, row, item);
    }
    Py_XDECREF(tuple);
    return good;
}

static bool take_one(shelf_job *job, PyObject *result)
{
    PyObject *items = PyTuple_Pack(1, result);
    bool good = items && take_rows(job, items);
    Py_XDECREF(items);
    return good;
}

static bool take_news(shelf_job *job, PyObject *result)
{
    PyObject *items;
    long long within_ms;
    if (!PyArg_ParseTuple(result, "OL", &items, &within_ms) || !take_rows(job, items))
        return false;
    job->next_ms = within_ms;
    return true;
}

static bool take_stats(segue_store_stats *stats, PyObject *result)
{
    long long operations, bytes, evicted, purged;
    if (!PyArg_ParseTuple(result, "LLLL", &operations, &bytes, &evicted, &purged))
        return false;
    *stats = (segue_store_stats){stats->struct_size, operations, bytes, evicted, purged};
    return true;
}

static bool take(shelf_job *job, PyObject *result)
{
    switch (job->op) {
    case COMMIT:
    case FOLLOW:
    case POST:
        return true;
    case NEWS:
        return take_news(job, result);
    case STATS:
        return take_stats(&job->stats, result);
    case FIND:
        return result == Py_None || take_one(job, result);
    case PURGE:
        if (result != Py_None)
            job->next_ms = PyLong_AsLongLong(result);
        return !PyErr_Occurred();
    default:
        return take_rows(job, result);
    }
}

/* Returns the attribute `status` of an exception of Segue. Returns 0 for any other
 * exception. */
static segue_status status_in(PyObject *value)
{
    int overflow = 0;
    long number = 0;
    PyObject *status = value ? PyObject_GetAttrString(value, "status") : NULL;
    if (status && PyLong_Check(status))
        number = PyLong_AsLongAndOverflow(status, &overflow);
    Py_XDECREF(status);
    PyErr_Clear();
    if (overflow || number >= 0 || number <= -1000 ||
        !strcmp(segue_status_name((segue_status)number), "SEGUE_E_UNKNOWN"))
        return SEGUE_OK;
    return (segue_status)number;
}

/* Returns the status of the current exception and clears the exception. An exception that
 * is not an exception of Segue is printed with its traceback and gives SEGUE_E_STORE. */
static segue_status status_of_exception(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    segue_status number = status_in(value);
    if (number) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return number;
    }
    PyErr_Restore(type, value, trace);
    PyErr_WriteUnraisable(NULL);
    return SEGUE_E_STORE;
}

/* Reads the attribute record_format into *format. Leaves *format when the store has no
 * such attribute. Returns false with an exception on failure. */
static bool take_format(PyObject *store, _Atomic int32_t *format)
{
    if (!PyObject_HasAttrString(store, "record_format"))
        return true;
    PyObject *value = PyObject_GetAttrString(store, "record_format");
    long number = value ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    if (PyErr_Occurred())
        return false;
    if (number < 1 || number > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "record_format is not a positive number");
        return false;
    }
    atomic_store(format, (int32_t)number);
    return true;
}

static void answer(sgpy_shelf *shelf, shelf_job *job)
{
    PyObject *method = PyObject_GetAttrString(shelf->store, methods[job->op]);
    PyObject *arguments = method ? give(job) : NULL;
    PyObject *result = arguments ? PyObject_CallObject(method, arguments) : NULL;
    job->status = SEGUE_OK;
    if (!result || !take(job, result))
        job->status = status_of_exception();
    if (!take_format(shelf->store, &shelf->format))
        PyErr_WriteUnraisable(shelf->store);
    Py_XDECREF(method);
    Py_XDECREF(arguments);
    Py_XDECREF(result);
}

/* ---- the Python thread's side ---- */

void sgpy_shelf_free(void *opaque)
{
    unref_shelf(opaque);
}

/* Waits for the next job without holding the GIL. `answered`: true = the current job was
 * answered. Returns NULL when the store is closed. */
static shelf_job *next_job(sgpy_shelf *shelf, bool answered)
{
    shelf_job *next;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&shelf->mutex);
    if (answered) {
        shelf->answered = true;
        pthread_cond_broadcast(&shelf->changed);
    }
    while ((!shelf->job || shelf->answered) && !shelf->closed)
        pthread_cond_wait(&shelf->changed, &shelf->mutex);
    next = shelf->closed ? NULL : shelf->job;
    if (!next) {
        shelf->left = true;
        pthread_cond_broadcast(&shelf->changed);
    }
    pthread_mutex_unlock(&shelf->mutex);
    Py_END_ALLOW_THREADS return next;
}

/* Returns whether the calling thread may serve the store. Only one thread may serve a
 * store, because two threads would answer the same job. */
static bool may_serve(sgpy_shelf *shelf)
{
    pthread_mutex_lock(&shelf->mutex);
    bool may = !shelf->served;
    shelf->served = true;
    pthread_mutex_unlock(&shelf->mutex);
    return may;
}

PyObject *sgpy_store_serve(PyObject *object)
{
    sgpy_shelf *shelf = sgpy_unwrap(object, SGPY_SHELF);
    if (!shelf)
        return NULL;
    if (!may_serve(shelf))
        return sgpy_raise(SEGUE_E_STATE);
    atomic_fetch_add(&shelf->refs, 1);
    for (shelf_job *job = next_job(shelf, false); job; job = next_job(shelf, true))
        answer(shelf, job);
    Py_CLEAR(shelf->store);
    unref_shelf(shelf);
    return Py_NewRef(Py_None);
}

PyObject *sgpy_store_wake(PyObject *object)
{
    sgpy_shelf *shelf = sgpy_unwrap(object, SGPY_SHELF);
    if (!shelf)
        return NULL;
    pthread_mutex_lock(&shelf->wake_lock);
    if (shelf->wake)
        shelf->wake(shelf->wake_user);
    pthread_mutex_unlock(&shelf->wake_lock);
    return Py_NewRef(Py_None);
}

/* Reads a flag of the Python store. Returns 1 when the attribute is true, 0 when the
 * attribute is false or missing, and -1 with an exception on failure. */
static int says(PyObject *store, const char *name)
{
    if (!PyObject_HasAttrString(store, name))
        return 0;
    PyObject *value = PyObject_GetAttrString(store, name);
    int is_true = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return is_true;
}

/* Fills the callback table. Returns false with an exception on failure. */
static bool fill_table(segue_store_vtable *table, PyObject *store)
{
    *table = SEGUE_STORE_VTABLE_INIT;
    table->blocking = 1;
    table->leased = says(store, "leased");
    table->forgets = says(store, "forgets");
    table->commit = commit;
    table->find = find;
    table->read = read_log;
    table->claim = claim;
    table->free = close_shelf;
    table->purge = PyObject_HasAttrString(store, "purge") ? purge : NULL;
    table->list = PyObject_HasAttrString(store, "list") ? list : NULL;
    table->follow = PyObject_HasAttrString(store, "follow") ? follow : NULL;
    table->post = PyObject_HasAttrString(store, "post") ? post : NULL;
    table->news = PyObject_HasAttrString(store, "news") ? news : NULL;
    table->set_wake = table->follow || table->post || table->news ? set_wake : NULL;
    table->stats = PyObject_HasAttrString(store, "stats") ? stats : NULL;
    table->records = PyObject_HasAttrString(store, "record_format") ? records : NULL;
    return table->leased >= 0 && table->forgets >= 0;
}

static sgpy_shelf *make_shelf(PyObject *store)
{
    sgpy_shelf *shelf = calloc(1, sizeof *shelf);
    if (!shelf) {
        PyErr_NoMemory();
        return NULL;
    }
    if (!take_format(store, &shelf->format)) {
        free(shelf);
        return NULL;
    }
    shelf->refs = 1;
    shelf->store = Py_NewRef(store);
    pthread_mutex_init(&shelf->mutex, NULL);
    pthread_mutex_init(&shelf->wake_lock, NULL);
    pthread_cond_init(&shelf->changed, NULL);
    return shelf;
}

PyObject *sgpy_store_custom(PyObject *store, PyObject *options)
{
    segue_store_options full;
    segue_store_vtable table;
    sgpy_options kept;
    segue_store *made;
    if (!sgpy_options_fill(&kept, OPTIONS_STORE, &full, options))
        return NULL;
    sgpy_options_free(&kept);
    if (!fill_table(&table, store))
        return NULL;
    sgpy_shelf *shelf = make_shelf(store);
    if (!shelf)
        return NULL;
    segue_status status = segue_store_custom(&table, shelf, &full, &made);
    if (status != SEGUE_OK) {
        Py_CLEAR(shelf->store);
        unref_shelf(shelf);
        return sgpy_raise(status);
    }
    atomic_fetch_add(&shelf->refs, 1);
    PyObject *first = sgpy_wrap(SGPY_STORE, made, NULL);
    PyObject *second = sgpy_wrap(SGPY_SHELF, shelf, NULL);
    PyObject *pair = first && second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return pair;
}
