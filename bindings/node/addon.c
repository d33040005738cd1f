/* The module. Each environment (main thread or worker) that loads the module has a state
 * and a table of functions.
 *
 * Node loads the shared object once for the process, and its environments run on several
 * threads at the same time. So there is no global state: a function gets the state of its
 * environment through its frame. The state counts references, because the garbage
 * collector may free boxes after everything else.
 *
 * Functions keep texts and arrays in scratch memory: a stack of blocks. A call releases
 * its blocks when it ends. Calls may nest: getters of options and hooks are JavaScript
 * functions, which may call the addon again. */
#include "addon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define BLOCK_SIZE ((size_t)64 * 1024)

struct sgnode_block {
    sgnode_block *before;
    size_t used;
    size_t size;
    max_align_t bytes[];
};

/* A function of a table, and the state of the environment to which the function is
 * exported. */
typedef struct bound {
    sgnode_env *self;
    sgnode_function function;
} bound;

/* ---- scratch memory ---- */

static sgnode_block *add_block(sgnode_env *self, size_t size)
{
    sgnode_block *block = malloc(sizeof *block + size);
    if (!block)
        return NULL;
    block->before = self->block;
    block->used = 0;
    block->size = size;
    self->block = block;
    return block;
}

void *sgnode_scratch(sgnode_frame *frame, size_t size)
{
    const size_t unit = sizeof(max_align_t);
    sgnode_block *block = frame->self->block;
    size = (size + unit - 1) / unit * unit;
    if (!block || block->size - block->used < size)
        block = add_block(frame->self, size > BLOCK_SIZE ? size : BLOCK_SIZE);
    if (!block) {
        sgnode_throw(frame, SEGUE_E_NOMEM);
        return NULL;
    }
    void *place = (char *)block->bytes + block->used;
    block->used += size;
    return place;
}

/* Releases the scratch memory that a call has used. The first block stays allocated
 * unless it is larger than BLOCK_SIZE. */
static void give_back(sgnode_env *self, sgnode_block *block, size_t used)
{
    while (self->block && self->block != block &&
           (self->block->before || self->block->size > BLOCK_SIZE)) {
        sgnode_block *before = self->block->before;
        free(self->block);
        self->block = before;
    }
    if (self->block)
        self->block->used = block ? used : 0;
}

/* ---- state of an environment ---- */

sgnode_env *sgnode_env_ref(sgnode_env *self)
{
    self->refs++;
    return self;
}

void sgnode_env_unref(sgnode_env *self)
{
    if (--self->refs > 0)
        return;
    while (self->block) {
        sgnode_block *before = self->block->before;
        free(self->block);
        self->block = before;
    }
    free(self);
}

static void end_env(napi_env env, void *data, void *hint)
{
    sgnode_env *self = data;
    (void)env;
    (void)hint;
    self->env = NULL;
    sgnode_env_unref(self);
}

/* ---- calls ---- */

static napi_value enter(napi_env env, napi_callback_info info)
{
    bound *entry;
    size_t count = SGNODE_ARGS;
    sgnode_frame frame;
    if (napi_get_cb_info(env, info, &count, frame.arg, NULL, (void **)&entry) != napi_ok)
        return NULL;
    frame.self = entry->self;
    frame.env = env;
    frame.error = NULL;
    sgnode_block *block = frame.self->block;
    size_t used = block ? block->used : 0;
    napi_value result = entry->function(&frame);
    segue_error_free(frame.error);
    give_back(frame.self, block, used);
    return result;
}

static const sgnode_row *const tables[] = {
    sgnode_library_rows, sgnode_runtime_rows, sgnode_transport_rows, sgnode_wire_rows,
    sgnode_store_rows,   sgnode_content_rows, sgnode_server_rows,    sgnode_call_rows,
    sgnode_text_rows,    sgnode_client_rows,  sgnode_request_rows,   sgnode_exchange_rows,
};

static void free_bound(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    free(data);
}

static bool add_function(sgnode_env *self, napi_value exports, const sgnode_row *row)
{
    napi_env env = self->env;
    napi_value function;
    bound *entry = malloc(sizeof *entry);
    if (!entry)
        return false;
    entry->self = self;
    entry->function = row->function;
    if (napi_create_function(env, row->name, NAPI_AUTO_LENGTH, enter, entry, &function) !=
        napi_ok) {
        free(entry);
        return false;
    }
    return napi_add_finalizer(env, function, entry, free_bound, NULL, NULL) == napi_ok &&
           napi_set_named_property(env, exports, row->name, function) == napi_ok;
}

static bool fill_exports(sgnode_env *self, napi_value exports)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const sgnode_row *row = tables[i]; row->name; row++)
            if (!add_function(self, exports, row))
                return false;
    return true;
}

static bool make_gather(sgnode_env *self)
{
    napi_env env = self->env;
    napi_value function;
    napi_value script = sgnode_string(env, "(...values) => values");
    return script && napi_run_script(env, script, &function) == napi_ok &&
           napi_create_reference(env, function, 1, &self->gather) == napi_ok;
}

NAPI_MODULE_INIT(/* env, exports */)
{
    sgnode_env *self = calloc(1, sizeof *self);
    if (!self) {
        napi_throw_error(env, NULL, "segue: out of memory");
        return NULL;
    }
    self->env = env;
    self->refs = 1;
    if (napi_set_instance_data(env, self, end_env, NULL) != napi_ok) {
        free(self);
        return NULL;
    }
    if (!make_gather(self) || !fill_exports(self, exports)) {
        napi_throw_error(env, NULL, "segue: the addon cannot be set up");
        return NULL;
    }
    return exports;
}

/* ---- library ---- */

static napi_value version(sgnode_frame *frame)
{
    return sgnode_string(frame->env, segue_version());
}

static napi_value status_name(sgnode_frame *frame)
{
    int32_t status;
    if (!sgnode_int32(frame, frame->arg[0], 0, &status))
        return NULL;
    return sgnode_string(frame->env, segue_status_name(status));
}

static napi_value set_error_factory(sgnode_frame *frame)
{
    sgnode_env *self = frame->self;
    napi_ref made = NULL;
    if (!sgnode_is_none(frame, frame->arg[0])) {
        if (sgnode_typeof(frame, frame->arg[0]) != napi_function)
            return sgnode_type_error(frame, "a function", "the factory of errors");
        if (napi_create_reference(frame->env, frame->arg[0], 1, &made) != napi_ok)
            return sgnode_throw(frame, SEGUE_E_NOMEM);
    }
    if (self->factory)
        napi_delete_reference(frame->env, self->factory);
    self->factory = made;
    return NULL;
}

static napi_value live_handles(sgnode_frame *frame)
{
    napi_value object, number;
    if (napi_create_object(frame->env, &object) != napi_ok)
        return NULL;
    for (int kind = 0; kind < SGNODE_KINDS; kind++) {
        if (!frame->self->live[kind])
            continue;
        number = sgnode_number(frame->env, (double)frame->self->live[kind]);
        napi_set_named_property(frame->env, object, sgnode_kind_name((sgnode_kind)kind),
                                number);
    }
    return object;
}

static napi_value allocated(sgnode_frame *frame)
{
    return sgnode_number(frame->env, (double)sgb_allocated());
}

/* Locks a file with flock, a function that Node does not have. The SDKs of all languages
 * use flock to lock the token file that they share. */
static napi_value lock_file(sgnode_frame *frame)
{
    int32_t fd;
    if (!sgnode_int32(frame, frame->arg[0], -1, &fd))
        return NULL;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return sgnode_bool(frame->env, true);
    if (errno == EWOULDBLOCK)
        return sgnode_bool(frame->env, false);
    return sgnode_throw(frame, errno == EBADF ? SEGUE_E_INVALID : SEGUE_E_IO);
}

static napi_value list_events(sgnode_frame *frame)
{
    napi_value list;
    if (napi_create_array(frame->env, &list) != napi_ok)
        return NULL;
    for (uint32_t i = 0; i < SGB_EVENTS; i++)
        napi_set_element(frame->env, list, i,
                         sgnode_string(frame->env, sgb_event_names[i]));
    return list;
}

const sgnode_row sgnode_library_rows[] = {
    {"version", version},
    {"statusName", status_name},
    {"setErrorFactory", set_error_factory},
    {"optionNames", sgnode_option_names},
    {"eventNames", list_events},
    {"liveHandles", live_handles},
    {"allocated", allocated},
    {"lockFile", lock_file},
    {NULL, NULL},
};
