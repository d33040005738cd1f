/* The front of a runtime that lends its input. A front watches the runtime's wake-up
 * descriptor with libuv, the event loop of the environment. For the events of the I/O
 * thread, a front replaces the bell (see host.c). A front does not keep the process
 * alive.
 *
 * The functions of libuv are looked up in the program, because only Node's own libuv can
 * be used: another library may have loaded a different libuv. The only member of libuv's
 * structs that this file uses is the first one, `data`. If the program has no libuv, the
 * runtime does not lend its input.
 *
 * At the end, the host stops the front before the runtime closes the descriptor. The
 * memory of the front is freed when libuv has closed the handle. If the environment ends
 * in the meantime, an asynchronous clean-up hook makes the environment wait until the
 * handle is closed. */
#include "addon.h"

#include <dlfcn.h>
#include <stdlib.h>

/* The first member of libuv's uv_poll_t. */
typedef struct uv_handle {
    void *data;
} uv_handle;
typedef void (*uv_poll_fn)(uv_handle *handle, int status, int events);
typedef void (*uv_close_fn)(uv_handle *handle);

/* Constants of libuv's header uv.h. All versions 1.x of libuv have the same values. */
enum { UV_POLL = 8, UV_READABLE = 1 };

typedef struct uv_functions {
    size_t (*handle_size)(int type);
    int (*poll_init)(struct uv_loop_s *loop, uv_handle *handle, int fd);
    int (*poll_start)(uv_handle *handle, int events, uv_poll_fn callback);
    int (*poll_stop)(uv_handle *handle);
    void (*unref)(uv_handle *handle);
    void (*close)(uv_handle *handle, uv_close_fn callback);
} uv_functions;

struct sgnode_front {
    uv_functions uv;
    uv_handle *handle;
    napi_env env;
    napi_ref on_wake;
    napi_async_cleanup_hook_handle hook;
};

/* ---- libuv ---- */

static bool find(void *program, const char *name, void *function)
{
    void *symbol = dlsym(program, name);
    *(void **)function = symbol;
    return symbol != NULL;
}

static bool find_uv(uv_functions *uv)
{
    void *program = dlopen(NULL, RTLD_NOW);
    if (!program)
        return false;
    bool found = find(program, "uv_handle_size", &uv->handle_size) &&
                 find(program, "uv_poll_init", &uv->poll_init) &&
                 find(program, "uv_poll_start", &uv->poll_start) &&
                 find(program, "uv_poll_stop", &uv->poll_stop) &&
                 find(program, "uv_unref", &uv->unref) &&
                 find(program, "uv_close", &uv->close);
    dlclose(program);
    return found;
}

bool sgnode_front_can_be(void)
{
    uv_functions uv;
    return find_uv(&uv);
}

/* ---- making and ending a front ---- */

static void report(napi_env env)
{
    napi_value error;
    bool is_pending;
    if (napi_is_exception_pending(env, &is_pending) == napi_ok && is_pending &&
        napi_get_and_clear_last_exception(env, &error) == napi_ok)
        napi_fatal_exception(env, error);
}

static void on_readable(uv_handle *handle, int status, int events)
{
    sgnode_front *front = handle->data;
    napi_env env = front->env;
    napi_handle_scope scope;
    napi_value receiver, on_wake, result;
    (void)status;
    (void)events;
    if (napi_open_handle_scope(env, &scope) != napi_ok)
        return;
    if (napi_get_global(env, &receiver) == napi_ok &&
        napi_get_reference_value(env, front->on_wake, &on_wake) == napi_ok &&
        napi_make_callback(env, NULL, receiver, on_wake, 0, NULL, &result) != napi_ok)
        report(env);
    napi_close_handle_scope(env, scope);
}

static void on_closed(uv_handle *handle)
{
    sgnode_front *front = handle->data;
    napi_remove_async_cleanup_hook(front->hook);
    free(front->handle);
    free(front);
}

/* The asynchronous clean-up hook. While the hook exists, the environment does not end.
 * The function does nothing: the clean-up hook of the runtime's host (host.c) stops
 * and frees the watcher, and on_closed removes this hook. */
static void await_closed(napi_async_cleanup_hook_handle hook, void *user)
{
    (void)hook;
    (void)user;
}

static bool init_handle(sgnode_front *front, int fd)
{
    struct uv_loop_s *loop;
    if (!find_uv(&front->uv) || napi_get_uv_event_loop(front->env, &loop) != napi_ok)
        return false;
    front->handle = calloc(1, front->uv.handle_size(UV_POLL));
    if (!front->handle || front->uv.poll_init(loop, front->handle, fd) != 0)
        return false;
    front->handle->data = front;
    front->uv.unref(front->handle);
    return true;
}

static bool add_hook(sgnode_front *front)
{
    return napi_add_async_cleanup_hook(front->env, await_closed, NULL, &front->hook) ==
           napi_ok;
}

/* Frees a front (the watcher of the wake-up descriptor) whose handle was not
 * initialised. Once init_handle has succeeded, only libuv may free the handle. */
static void undo(sgnode_front *front)
{
    if (front->on_wake)
        napi_delete_reference(front->env, front->on_wake);
    if (front->hook)
        napi_remove_async_cleanup_hook(front->hook);
    free(front->handle);
    free(front);
}

sgnode_front *sgnode_front_new(napi_env env, int fd, napi_value on_wake)
{
    sgnode_front *front = calloc(1, sizeof *front);
    if (!front)
        return NULL;
    front->env = env;
    if (napi_create_reference(env, on_wake, 1, &front->on_wake) == napi_ok &&
        add_hook(front) && init_handle(front, fd)) {
        if (front->uv.poll_start(front->handle, UV_READABLE, on_readable) == 0)
            return front;
        sgnode_front_end(front);
        return NULL;
    }
    undo(front);
    return NULL;
}

void sgnode_front_rest(sgnode_front *front)
{
    front->uv.poll_stop(front->handle);
}

void sgnode_front_end(sgnode_front *front)
{
    front->uv.poll_stop(front->handle);
    napi_delete_reference(front->env, front->on_wake);
    front->uv.close(front->handle, on_closed);
}
