#include "api/guard.h"

#include "engine/error.h"
#include "transport/transport.h"

enum { ANY = 0, DISPATCH, SETUP };
enum { ALLOWED = 0, REFUSED };
enum { LIVE = 0, END };

typedef struct row {
    uint8_t thread;
    uint8_t callback;
    uint8_t terminal;
} row;

static const row rows[SGI_FN_COUNT] = {
#define SGI_API(name, thread, callback, terminal)                                        \
    [SGI_FN_##name] = {thread, callback, terminal},
#include "api/api.def"
#undef SGI_API
};

segue_status sgi_check_reentrancy(sgi_fn fn, const segue_runtime *runtime)
{
    if (!runtime || *(const uint32_t *)(const void *)runtime != SGI_MAGIC_RUNTIME)
        return SEGUE_E_INVALID;
    if (rows[fn].callback == REFUSED && sgi_runtime_is_in_callback(runtime))
        return SEGUE_E_REENTRANT;
    return SEGUE_OK;
}

segue_runtime *sgi_handle_runtime(const void *handle)
{
    return ((const sgi_handle *)handle)->engine->host.user;
}

segue_status sgi_enter(sgi_fn fn, const void *handle, uint32_t magic)
{
    if (!handle || ((const sgi_handle *)handle)->magic != magic)
        return SEGUE_E_INVALID;
    segue_runtime *runtime = sgi_handle_runtime(handle);
    segue_status status = sgi_check_reentrancy(fn, runtime);
    if (status == SEGUE_OK)
        sgi_enter_runtime(runtime);
    return status;
}

void sgi_leave(const void *handle)
{
    sgi_runtime_unlock(sgi_handle_runtime(handle));
}

static segue_status tell(const sgi_mem *mem, segue_status status, const char *why,
                         segue_error **error)
{
    if (status == SEGUE_OK || status == SEGUE_E_WOULD_BLOCK)
        return status;
    return sgi_error_return(error, mem, status, "%s",
                            *why ? why : sgi_status_text(status));
}

segue_status sgi_leave_with_error(const void *handle, segue_status status,
                                  segue_error **error)
{
    return sgi_leave_runtime(sgi_handle_runtime(handle), status, error);
}

void sgi_enter_runtime(segue_runtime *runtime)
{
    sgi_runtime_lock(runtime);
    sgi_refuse_clear_reason(sgi_runtime_engine(runtime));
}

segue_status sgi_leave_runtime(segue_runtime *runtime, segue_status status,
                               segue_error **error)
{
    const sgi_engine *engine = sgi_runtime_engine(runtime);
    tell(sgi_engine_mem(engine), status, sgi_refusal_text(engine), error);
    sgi_runtime_unlock(runtime);
    return status;
}

segue_status sgi_refuse_without_handle(segue_status status, segue_error **error)
{
    return tell(&sgi_mem_libc, status,
                status == SEGUE_E_INVALID
                    ? "an argument is NULL, or a handle was freed or is of another type"
                    : "",
                error);
}

void sgi_handle_note_given(const void *handle)
{
    sgi_engine *engine = ((const sgi_handle *)handle)->engine;
    engine->host.retain(engine->host.user);
}

void sgi_handle_note_freed(sgi_engine *engine)
{
    engine->host.release(engine->host.user);
}

size_t sgi_given_len(const char *text, size_t len)
{
    if (len != SEGUE_TO_NUL)
        return len;
    return text ? strlen(text) : 0;
}

segue_status sgi_copy_struct_in(void *full, size_t full_size, const void *given)
{
    size_t size = 0;
    memset(full, 0, full_size);
    if (given) {
        memcpy(&size, given, sizeof size);
        if (size < sizeof size)
            return SEGUE_E_INVALID;
        for (size_t i = full_size; i < size; i++)
            if (((const unsigned char *)given)[i])
                return SEGUE_E_VERSION;
        memcpy(full, given, size < full_size ? size : full_size);
    }
    memcpy(full, &full_size, sizeof full_size);
    return SEGUE_OK;
}

segue_status sgi_transport_may_attach(const segue_transport *transport,
                                      segue_runtime *runtime)
{
    sgi_engine *engine = sgi_runtime_engine(runtime);
    if (!transport || transport->carrier.magic != SGI_MAGIC_TRANSPORT)
        return sgi_refuse(engine, SEGUE_E_INVALID,
                          "the transport is NULL, was freed, or was used already");
    if (transport->carrier.runtime != runtime)
        return sgi_refuse(engine, SEGUE_E_INVALID,
                          "the transport belongs to another runtime");
    if (transport->state != SGI_TRANSPORT_NEW)
        return sgi_refuse(engine, SEGUE_E_STATE,
                          "the transport is attached to a session or server already");
    return sgi_runtime_is_open(runtime)
               ? SEGUE_OK
               : sgi_refuse(engine, SEGUE_E_CLOSED, "the runtime was stopped");
}

segue_status sgi_copy_text_out(sgi_str text, char *buf, size_t *len)
{
    size_t room = buf ? *len : 0;
    *len = text.n;
    if (!buf)
        return SEGUE_OK;
    if (room < text.n + 1)
        return SEGUE_E_TOO_SMALL;
    if (text.n)
        memcpy(buf, text.p, text.n);
    buf[text.n] = 0;
    return SEGUE_OK;
}
