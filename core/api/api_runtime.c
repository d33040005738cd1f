/* Functions of runtimes, transports and stores. */
#include "api/guard.h"
#include "engine/error.h"
#include "engine/event.h"
#include "store/store.h"
#include "transport/transport.h"

segue_status segue_runtime_new(const segue_runtime_options *options, segue_runtime **out,
                               segue_error **error)
{
    segue_runtime_options full;
    if (!out)
        return SEGUE_E_INVALID;
    segue_status status = sgi_copy_struct_in(&full, sizeof full, options);
    return status == SEGUE_OK ? sgi_runtime_new(&full, out, error) : status;
}

/* Makes a call whose only argument is the runtime. */
static segue_status guarded(sgi_fn fn, segue_runtime *runtime,
                            segue_status (*call)(segue_runtime *runtime))
{
    segue_status status = sgi_check_reentrancy(fn, runtime);
    return status == SEGUE_OK ? call(runtime) : status;
}

segue_status segue_runtime_run(segue_runtime *runtime)
{
    return guarded(SGI_FN_segue_runtime_run, runtime, sgi_runtime_run);
}

segue_status segue_runtime_start(segue_runtime *runtime)
{
    return guarded(SGI_FN_segue_runtime_start, runtime, sgi_runtime_start);
}

segue_status segue_runtime_fd(segue_runtime *runtime, int32_t *fd)
{
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_runtime_fd, runtime);
    if (status == SEGUE_OK && !fd)
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? sgi_runtime_fd(runtime, fd) : status;
}

segue_status segue_runtime_dispatch(segue_runtime *runtime, int64_t timeout_ms,
                                    int32_t max_events, int32_t *ran)
{
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_runtime_dispatch, runtime);
    if (status == SEGUE_OK && (timeout_ms < -1 || max_events < 0))
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? sgi_runtime_dispatch(runtime, timeout_ms, max_events, ran)
                              : status;
}

segue_status segue_runtime_cork(segue_runtime *runtime)
{
    return guarded(SGI_FN_segue_runtime_cork, runtime, sgi_runtime_cork);
}

segue_status segue_runtime_uncork(segue_runtime *runtime)
{
    return guarded(SGI_FN_segue_runtime_uncork, runtime, sgi_runtime_uncork);
}

segue_status segue_runtime_observe(segue_runtime *runtime,
                                   const segue_observer_options *observer)
{
    segue_observer_options full;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_runtime_observe, runtime);
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(&full, sizeof full, observer);
    if (status != SEGUE_OK)
        return status;
    if (observer && (!full.on_event || full.level < SEGUE_LOG_DEBUG ||
                     full.level > SEGUE_LOG_ERROR || full.max_argument_bytes < 0))
        return SEGUE_E_INVALID;
    sgi_runtime_lock(runtime);
    sgi_engine_observe(sgi_runtime_engine(runtime), observer ? &full : NULL);
    sgi_runtime_unlock(runtime);
    return SEGUE_OK;
}

segue_status segue_event_json(const segue_event *event, char *buf, size_t *len)
{
    segue_event full;
    sgi_buf text;
    if (!event || !len)
        return SEGUE_E_INVALID;
    segue_status status = sgi_copy_struct_in(&full, sizeof full, event);
    if (status == SEGUE_OK && !full.name)
        status = SEGUE_E_INVALID;
    if (status != SEGUE_OK)
        return status;
    sgi_buf_init(&text, &sgi_mem_libc);
    sgi_event_write_json(&text, &full);
    status =
        text.failed ? SEGUE_E_NOMEM : sgi_copy_text_out(sgi_buf_str(&text), buf, len);
    sgi_buf_free(&text);
    return status;
}

segue_status segue_runtime_stop(segue_runtime *runtime)
{
    return guarded(SGI_FN_segue_runtime_stop, runtime, sgi_runtime_stop);
}

void segue_runtime_free(segue_runtime *runtime)
{
    if (sgi_check_reentrancy(SGI_FN_segue_runtime_free, runtime) == SEGUE_OK)
        sgi_runtime_free(runtime);
}

/* ---- transports ---- */

segue_status segue_transport_pair(segue_runtime *runtime, segue_transport **a,
                                  segue_transport **b)
{
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_transport_pair, runtime);
    if (status == SEGUE_OK && (!a || !b))
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? sgi_transport_pair(runtime, a, b) : status;
}

segue_status segue_transport_stdio(segue_runtime *runtime, segue_transport **out)
{
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_transport_stdio, runtime);
    if (status == SEGUE_OK && !out)
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? sgi_transport_stdio(runtime, out) : status;
}

segue_status segue_transport_fds(segue_runtime *runtime, int32_t fd_in, int32_t fd_out,
                                 segue_transport **out)
{
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_transport_fds, runtime);
    if (status == SEGUE_OK && !out)
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? sgi_transport_fds(runtime, fd_in, fd_out, out) : status;
}

segue_status segue_transport_spawn(segue_runtime *runtime,
                                   const segue_spawn_options *options,
                                   segue_transport **out, segue_error **error)
{
    segue_spawn_options full;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_transport_spawn, runtime);
    if (status == SEGUE_OK && (!out || !options))
        status = SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(&full, sizeof full, options);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    if (!full.argv || !full.argv[0] || !*full.argv[0])
        return sgi_error_return(
            error, sgi_engine_mem(sgi_runtime_engine(runtime)), SEGUE_E_INVALID,
            "argv names no program: its first text is missing or empty");
    status = sgi_transport_spawn(runtime, &full, out);
    return status == SEGUE_OK ? status : sgi_refuse_without_handle(status, error);
}

segue_status segue_transport_custom(segue_runtime *runtime,
                                    const segue_transport_vtable *vtable, void *self,
                                    segue_transport **out)
{
    segue_transport_vtable full;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_transport_custom, runtime);
    if (status == SEGUE_OK && (!out || !vtable))
        status = SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(&full, sizeof full, vtable);
    if (status == SEGUE_OK && (!full.start || !full.send || !full.close))
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? sgi_transport_custom(runtime, &full, self, out) : status;
}

static bool is_transport(const segue_transport *transport)
{
    return transport && transport->carrier.magic == SGI_MAGIC_TRANSPORT;
}

segue_status segue_transport_feed(segue_transport *transport, const char *bytes,
                                  size_t len)
{
    if (!is_transport(transport) || (!bytes && len))
        return SEGUE_E_INVALID;
    return sgi_transport_feed(transport, bytes, len);
}

segue_status segue_transport_writable(segue_transport *transport)
{
    return is_transport(transport) ? sgi_transport_writable(transport) : SEGUE_E_INVALID;
}

segue_status segue_transport_closed(segue_transport *transport)
{
    return is_transport(transport) ? sgi_transport_closed(transport) : SEGUE_E_INVALID;
}

void segue_transport_free(segue_transport *transport)
{
    if (is_transport(transport))
        sgi_transport_free(transport);
}

/* ---- stores ---- */

static segue_status take_store_options(segue_store_options *full,
                                       const segue_store_options *options)
{
    segue_status status = sgi_copy_struct_in(full, sizeof *full, options);
    if (status == SEGUE_OK &&
        (full->durability < SEGUE_DURABILITY_NORMAL ||
         full->durability > SEGUE_DURABILITY_FULL || full->max_bytes < 0 ||
         full->busy_timeout_ms < 0 || full->timeout_ms < 0 || full->lease_ms < 0))
        status = SEGUE_E_INVALID;
    return status;
}

segue_status segue_store_memory(const segue_store_options *options, segue_store **out)
{
    segue_store_options full;
    if (!out)
        return SEGUE_E_INVALID;
    segue_status status = take_store_options(&full, options);
    return status == SEGUE_OK ? sgi_store_memory_new(&full, out) : status;
}

typedef segue_status (*store_new)(const char *place, const segue_store_options *options,
                                  segue_store **out, char *message, size_t size);

/* Opens a store at a path or URL. A failure of `make` has a message. */
static segue_status open_store(store_new make, const char *place,
                               const segue_store_options *options, segue_store **out,
                               segue_error **error)
{
    segue_store_options full;
    char message[512] = "";
    if (!place || !out)
        return SEGUE_E_INVALID;
    segue_status status = take_store_options(&full, options);
    if (status != SEGUE_OK)
        return status;
    status = make(place, &full, out, message, sizeof message);
    if (status != SEGUE_OK)
        sgi_error_return(error, full.allocator ? full.allocator : &sgi_mem_libc, status,
                         "%s", message);
    return status;
}

segue_status segue_store_sqlite(const char *path, const segue_store_options *options,
                                segue_store **out, segue_error **error)
{
    return open_store(sgi_store_sqlite_new, path, options, out, error);
}

segue_status segue_store_redis(const char *url, const segue_store_options *options,
                               segue_store **out, segue_error **error)
{
    return open_store(sgi_store_redis_new, url, options, out, error);
}

segue_status segue_store_postgres(const char *url, const segue_store_options *options,
                                  segue_store **out, segue_error **error)
{
    return open_store(sgi_store_postgres_new, url, options, out, error);
}

segue_status segue_store_custom(const segue_store_vtable *vtable, void *self,
                                const segue_store_options *options, segue_store **out)
{
    segue_store_vtable full;
    segue_store_options store;
    if (!vtable || !out)
        return SEGUE_E_INVALID;
    segue_status status = sgi_copy_struct_in(&full, sizeof full, vtable);
    if (status == SEGUE_OK)
        status = take_store_options(&store, options);
    if (status == SEGUE_OK && (!full.commit || !full.find || !full.read || !full.claim))
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? sgi_store_new(&full, self, store.allocator, out) : status;
}

void segue_store_free(segue_store *store)
{
    if (store)
        sgi_store_unref(store);
}
