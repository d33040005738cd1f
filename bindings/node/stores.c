/* Stores. Opening a store recovers a file or connects to a server, and closing a store
 * writes its data. Both may take long, so both run on a thread of Node's pool, and the
 * functions return promises.
 *
 *     called -- begin --> queued -- run (pool) --> finish (environment) --> settled
 *
 * A work (struct store_work) owns its arguments (name, a copy of the options, the handle
 * to free) and its result until `finish`. When the environment ends, Node still waits for
 * the works of the environment and finishes them. At that time no JavaScript value can be
 * made, so a store that was opened is freed at once. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

typedef segue_status (*open_fn)(const char *name, const segue_store_options *options,
                                segue_store **out, segue_error **error);

typedef struct store_work {
    sgnode_env *self; /* state of the environment; a counted reference */
    napi_async_work work;
    napi_deferred deferred;
    open_fn open; /* the function that opens the store; NULL = this work frees a store */
    segue_store_options options;
    char *name;
    segue_store *store;
    segue_status status;
    segue_error *error;
} store_work;

static void free_work(store_work *self)
{
    segue_store_free(self->store);
    segue_error_free(self->error);
    sgnode_env_unref(self->self);
    free(self->name);
    free(self);
}

/* Opens or frees the store of the work. Runs on a thread of Node's pool. */
static void run_work(napi_env env, void *data)
{
    store_work *self = data;
    (void)env;
    if (self->open) {
        self->status = self->open(self->name, &self->options, &self->store, &self->error);
        return;
    }
    segue_store_free(self->store);
    self->store = NULL;
    self->status = SEGUE_OK;
}

/* Makes the exception of a work that failed. Returns NULL when the exception cannot be
 * made. */
static napi_value make_failure(napi_env env, store_work *self)
{
    napi_value failure = NULL;
    sgnode_frame frame = {.self = self->self, .env = env, .error = self->error};
    sgnode_throw(&frame, self->status);
    napi_get_and_clear_last_exception(env, &failure);
    return failure;
}

static napi_value make_value(napi_env env, store_work *self)
{
    napi_value value = NULL;
    if (!self->open) {
        napi_get_undefined(env, &value);
        return value;
    }
    segue_store *store = self->store;
    self->store = NULL;
    value = sgnode_wrap(self->self, SGNODE_STORE, store, NULL);
    if (!value)
        self->status = SEGUE_E_NOMEM;
    return value;
}

static void finish_work(napi_env env, napi_status status, void *data)
{
    store_work *self = data;
    napi_value value = NULL;
    if (status != napi_ok)
        self->status = SEGUE_E_CLOSED;
    if (self->status == SEGUE_OK)
        value = make_value(env, self);
    if (value) {
        napi_resolve_deferred(env, self->deferred, value);
    } else {
        value = make_failure(env, self);
        if (value)
            napi_reject_deferred(env, self->deferred, value);
    }
    napi_delete_async_work(env, self->work);
    free_work(self);
}

/* Starts a work, which the function then owns. Returns the promise of the result, or NULL
 * with an exception. */
static napi_value begin_work(sgnode_frame *frame, store_work *self)
{
    napi_env env = frame->env;
    napi_value promise;
    napi_value name = sgnode_string(env, "segue-mcp.store");
    if (!name || napi_create_async_work(env, NULL, name, run_work, finish_work, self,
                                        &self->work) != napi_ok) {
        free_work(self);
        return sgnode_throw(frame, SEGUE_E_NOMEM);
    }
    if (napi_create_promise(env, &self->deferred, &promise) != napi_ok ||
        napi_queue_async_work(env, self->work) != napi_ok) {
        napi_delete_async_work(env, self->work);
        free_work(self);
        return sgnode_throw(frame, SEGUE_E_NOMEM);
    }
    return promise;
}

static store_work *make_work(sgnode_frame *frame)
{
    store_work *self = calloc(1, sizeof *self);
    if (!self) {
        sgnode_throw(frame, SEGUE_E_NOMEM);
        return NULL;
    }
    self->self = sgnode_env_ref(frame->self);
    return self;
}

static napi_value open_store(sgnode_frame *frame, open_fn open)
{
    segue_store_options full;
    const char *name;
    if (!sgnode_options(frame, frame->arg[1], OPTIONS_STORE, &full) ||
        !sgnode_name(frame, frame->arg[0], false, &name))
        return NULL;
    store_work *work = make_work(frame);
    if (!work)
        return NULL;
    work->open = open;
    /* The copy has no pointers: all members of the options are numbers. */
    work->options = full;
    work->name = strdup(name);
    if (work->name)
        return begin_work(frame, work);
    free_work(work);
    return sgnode_throw(frame, SEGUE_E_NOMEM);
}

static napi_value store_sqlite(sgnode_frame *frame)
{
    return open_store(frame, segue_store_sqlite);
}

static napi_value store_redis(sgnode_frame *frame)
{
    return open_store(frame, segue_store_redis);
}

static napi_value store_postgres(sgnode_frame *frame)
{
    return open_store(frame, segue_store_postgres);
}

static napi_value store_memory(sgnode_frame *frame)
{
    segue_store_options full;
    segue_store *store;
    if (!sgnode_options(frame, frame->arg[0], OPTIONS_STORE, &full))
        return NULL;
    segue_status status = segue_store_memory(&full, &store);
    if (status != SEGUE_OK)
        return sgnode_throw(frame, status);
    return sgnode_wrap(frame->self, SGNODE_STORE, store, NULL);
}

static napi_value store_free(sgnode_frame *frame)
{
    segue_store *store = sgnode_unwrap(frame, frame->arg[0], SGNODE_STORE);
    if (!store)
        return NULL;
    store_work *work = make_work(frame);
    if (!work)
        return NULL;
    sgnode_consume(frame, frame->arg[0]);
    work->store = store;
    return begin_work(frame, work);
}

const sgnode_row sgnode_store_rows[] = {
    {"storeMemory", store_memory}, {"storeSqlite", store_sqlite},
    {"storeRedis", store_redis},   {"storePostgres", store_postgres},
    {"storeFree", store_free},     {NULL, NULL},
};
