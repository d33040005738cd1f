/* The functions of the addon for segue_runtime. */
#include "addon.h"

static bool refer_log(sgnode_frame *frame, sgnode_host *host, napi_value log)
{
    if (sgnode_is_none(frame, log))
        return true;
    if (sgnode_typeof(frame, log) == napi_function)
        return napi_create_reference(frame->env, log, 1, &host->log) == napi_ok;
    sgnode_type_error(frame, "a function", "log");
    return false;
}

static bool check_wake(sgnode_frame *frame)
{
    if (sgnode_typeof(frame, frame->arg[1]) == napi_function)
        return true;
    sgnode_type_error(frame, "a function", "onWake");
    return false;
}

static bool open_front(sgnode_host *host, napi_value on_wake)
{
    int32_t fd;
    if (segue_runtime_fd(host->runtime, &fd) == SEGUE_OK)
        host->front = sgnode_front_new(host->self->env, fd, on_wake);
    return host->front != NULL;
}

/* Makes the runtime. If the watcher of the wake-up descriptor (front.c) cannot be
 * made, the function makes a runtime that does not lend its input. */
static segue_status open_runtime(sgnode_frame *frame, sgnode_host *host,
                                 segue_runtime_options *full)
{
    full->on_wake = full->lend_input ? sgnode_note_thread : sgnode_wake;
    segue_status status = segue_runtime_new(full, &host->runtime, &frame->error);
    if (status != SEGUE_OK || !full->lend_input || open_front(host, frame->arg[1]))
        return status;
    segue_runtime_free(host->runtime);
    host->runtime = NULL;
    full->lend_input = false;
    return open_runtime(frame, host, full);
}

static napi_value runtime_new(sgnode_frame *frame)
{
    segue_runtime_options full;
    bool track;
    if (!sgnode_options(frame, frame->arg[0], OPTIONS_RUNTIME, &full) ||
        !check_wake(frame) || !sgnode_flag(frame, frame->arg[3], &track))
        return NULL;
    sgnode_host *host = sgnode_host_new(frame->self);
    if (!host)
        return sgnode_throw(frame, SEGUE_E_NOMEM);
    segue_status status = SEGUE_E_NOMEM;
    if (refer_log(frame, host, frame->arg[2]) && sgnode_host_open(host, frame->arg[1])) {
        host->allocator = track ? sgb_counting_allocator() : NULL;
        full.allocator = host->allocator;
        full.user = host;
        full.lend_input = full.lend_input && sgnode_front_can_be();
        full.log = host->log ? sgnode_on_log : NULL;
        status = open_runtime(frame, host, &full);
    }
    napi_value value = NULL;
    if (status == SEGUE_OK) {
        value = sgnode_wrap(frame->self, SGNODE_RUNTIME, host->runtime, host);
    } else {
        sgnode_host_end(host);
        sgnode_throw(frame, status);
    }
    sgnode_host_unref(host);
    return value;
}

static napi_value runtime_observe(sgnode_frame *frame)
{
    segue_observer_options full;
    sgnode_host *host;
    napi_ref handler = NULL;
    bool is_off = sgnode_is_none(frame, frame->arg[1]);
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_options(frame, frame->arg[2], OPTIONS_OBSERVER, &full))
        return NULL;
    if (!is_off && sgnode_typeof(frame, frame->arg[1]) != napi_function)
        return sgnode_type_error(frame, "a function", "onEvent");
    if (!is_off &&
        napi_create_reference(frame->env, frame->arg[1], 1, &handler) != napi_ok)
        return sgnode_throw(frame, SEGUE_E_NOMEM);
    full.user = host;
    full.on_event = sgnode_on_event;
    segue_status status = segue_runtime_observe(runtime, is_off ? NULL : &full);
    napi_ref unused = handler;
    if (status == SEGUE_OK) {
        unused = host->observer;
        host->observer = handler;
    }
    if (unused)
        napi_delete_reference(frame->env, unused);
    return sgnode_done(frame, status);
}

static napi_value runtime_run(sgnode_frame *frame)
{
    sgnode_host *host;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_batch_begin(frame, host))
        return NULL;
    segue_status status = segue_runtime_run(runtime);
    napi_value batch = sgnode_batch_end(host);
    return status == SEGUE_OK ? batch : sgnode_throw(frame, status);
}

static napi_value runtime_start(sgnode_frame *frame)
{
    segue_runtime *runtime = sgnode_unwrap(frame, frame->arg[0], SGNODE_RUNTIME);
    return runtime ? sgnode_done(frame, segue_runtime_start(runtime)) : NULL;
}

static napi_value runtime_fd(sgnode_frame *frame)
{
    int32_t fd;
    segue_runtime *runtime = sgnode_unwrap(frame, frame->arg[0], SGNODE_RUNTIME);
    if (!runtime)
        return NULL;
    segue_status status = segue_runtime_fd(runtime, &fd);
    return status == SEGUE_OK ? sgnode_number(frame->env, fd)
                              : sgnode_throw(frame, status);
}

static napi_value runtime_dispatch(sgnode_frame *frame)
{
    int64_t timeout_ms;
    int32_t max_events, ran;
    sgnode_host *host;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_int64(frame, frame->arg[1], 0, &timeout_ms) ||
        !sgnode_int32(frame, frame->arg[2], 256, &max_events) ||
        !sgnode_batch_begin(frame, host))
        return NULL;
    segue_status status = segue_runtime_dispatch(runtime, timeout_ms, max_events, &ran);
    if (status == SEGUE_E_CLOSED && host->front)
        sgnode_front_rest(host->front);
    bool is_silent = host->batch.count == 0 && !sgb_side_is_due(&host->side);
    napi_value batch = sgnode_batch_end(host);
    if (status == SEGUE_OK || !is_silent)
        return batch;
    return sgnode_throw(frame, status);
}

static napi_value runtime_stop(sgnode_frame *frame)
{
    segue_runtime *runtime = sgnode_unwrap(frame, frame->arg[0], SGNODE_RUNTIME);
    return runtime ? sgnode_done(frame, segue_runtime_stop(runtime)) : NULL;
}

/* Frees the runtime. A program may call process.exit inside a callback, where the runtime
 * cannot be freed. The runtime is then only stopped, and the function throws. */
static napi_value runtime_free(sgnode_frame *frame)
{
    sgnode_host *host;
    if (!sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host))
        return NULL;
    if (host->busy)
        sgnode_host_stop(host);
    if (!sgnode_batch_begin(frame, host))
        return NULL;
    sgnode_host_ref(host);
    sgnode_consume(frame, frame->arg[0]);
    sgnode_host_end(host);
    napi_value batch = sgnode_batch_end(host);
    sgnode_host_unref(host);
    return batch;
}

static napi_value runtime_cork(sgnode_frame *frame)
{
    segue_runtime *runtime = sgnode_unwrap(frame, frame->arg[0], SGNODE_RUNTIME);
    return runtime ? sgnode_done(frame, segue_runtime_cork(runtime)) : NULL;
}

static napi_value runtime_uncork(sgnode_frame *frame)
{
    segue_runtime *runtime = sgnode_unwrap(frame, frame->arg[0], SGNODE_RUNTIME);
    return runtime ? sgnode_done(frame, segue_runtime_uncork(runtime)) : NULL;
}

static napi_value runtime_hold(sgnode_frame *frame)
{
    bool hold;
    sgnode_host *host;
    if (!sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host) ||
        !sgnode_flag(frame, frame->arg[1], &hold))
        return NULL;
    if (hold)
        napi_ref_threadsafe_function(frame->env, host->bell);
    else
        napi_unref_threadsafe_function(frame->env, host->bell);
    return NULL;
}

static napi_value runtime_authorize(sgnode_frame *frame)
{
    const char *url;
    segue_runtime *runtime = sgnode_unwrap(frame, frame->arg[0], SGNODE_RUNTIME);
    if (!runtime || !sgnode_name(frame, frame->arg[1], false, &url))
        return NULL;
    return sgnode_done(frame, segue_runtime_authorize(runtime, url));
}

const sgnode_row sgnode_runtime_rows[] = {
    {"runtimeNew", runtime_new},
    {"runtimeObserve", runtime_observe},
    {"runtimeRun", runtime_run},
    {"runtimeStart", runtime_start},
    {"runtimeFd", runtime_fd},
    {"runtimeDispatch", runtime_dispatch},
    {"runtimeStop", runtime_stop},
    {"runtimeFree", runtime_free},
    {"runtimeCork", runtime_cork},
    {"runtimeUncork", runtime_uncork},
    {"runtimeHold", runtime_hold},
    {"runtimeAuthorize", runtime_authorize},
    {NULL, NULL},
};
