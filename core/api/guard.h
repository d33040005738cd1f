/* api: the only place where segue_ functions are defined: check, one internal call. The
 * guard is the check: the kind of the handle, whether the call is allowed inside a
 * callback, and the lock. Its rows come from api.def. */
#ifndef SGI_GUARD_H
#define SGI_GUARD_H

#include "engine/handle.h"
#include "runtime/runtime.h"

typedef enum sgi_fn {
#define SGI_API(name, thread, callback, terminal) SGI_FN_##name,
#include "api/api.def"
#undef SGI_API
    SGI_FN_COUNT
} sgi_fn;

/* SEGUE_E_REENTRANT when fn is refused in a callback and the caller is in one. */
segue_status sgi_guard_runtime(sgi_fn fn, const segue_runtime *runtime);

/* Checks the handle and fn, and takes the lock. After SEGUE_OK: sgi_leave. */
segue_status sgi_enter(sgi_fn fn, const void *handle, uint32_t magic);
void sgi_leave(const void *handle);
/* The same at the end of a function that was refused, or not: *error, if it is wanted,
 * gets what sgi_refuse has said. SEGUE_E_WOULD_BLOCK is no refusal, and has none. */
segue_status sgi_leave_telling(const void *handle, segue_status status,
                               segue_error **error);
/* The same for functions of a runtime that have no other handle. */
void sgi_enter_runtime(segue_runtime *runtime);
segue_status sgi_leave_runtime(segue_runtime *runtime, segue_status status,
                               segue_error **error);
/* For what is refused before there is a handle to go by. */
segue_status sgi_refused(segue_status status, segue_error **error);

/* Lock held. May the transport be attached to something of this runtime? After SEGUE_OK
 * attaching it cannot fail. */
segue_status sgi_transport_may_attach(const segue_transport *transport,
                                      segue_runtime *runtime);

/* The runtime of a handle that has passed. */
segue_runtime *sgi_handle_runtime(const void *handle);

/* Lock held: a handle was given to the application, or was freed by it. */
void sgi_handle_given(const void *handle);
void sgi_handle_freed(sgi_engine *engine);

/* Hands a text to a caller: buf NULL = only its length, which *len receives in any case;
 * room for the length + 1, of which *len told, or SEGUE_E_TOO_SMALL. */
segue_status sgi_give_text(sgi_str text, char *buf, size_t *len);

/* Copies a caller's struct into full (of full_size, its newest form): what the caller's
 * is too short for becomes zero. given may be NULL. SEGUE_E_VERSION when it is longer and
 * its tail is not zero. */
segue_status sgi_take_struct(void *full, size_t full_size, const void *given);

#endif
