/* api: the folder that defines the segue_ functions, except those of core/easy. Each of
 * its functions checks its arguments and makes one internal call. The guard checks the
 * kind of the handle and whether the call is allowed inside a callback, and takes the
 * lock. The guard's table is made from api.def. */
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

/* Returns SEGUE_E_REENTRANT when this thread runs a callback of the runtime and fn is not
 * allowed inside a callback. */
segue_status sgi_check_reentrancy(sgi_fn fn, const segue_runtime *runtime);

/* Checks that the handle is valid and that fn may be called now, and takes the lock.
 * After SEGUE_OK the caller must call sgi_leave. */
segue_status sgi_enter(sgi_fn fn, const void *handle, uint32_t magic);
void sgi_leave(const void *handle);
/* Releases the lock and returns status. When status is an error other than
 * SEGUE_E_WOULD_BLOCK, sets *error to the message of sgi_refuse. error may be NULL. */
segue_status sgi_leave_with_error(const void *handle, segue_status status,
                                  segue_error **error);
/* These functions do what sgi_enter and sgi_leave_with_error do, for functions whose only
 * handle is a runtime. */
void sgi_enter_runtime(segue_runtime *runtime);
segue_status sgi_leave_runtime(segue_runtime *runtime, segue_status status,
                               segue_error **error);
/* Sets *error when a call is refused before its handle was checked. Returns status. */
segue_status sgi_refuse_without_handle(segue_status status, segue_error **error);

/* Checks that the transport can be attached to a server or session of this runtime. After
 * SEGUE_OK, attaching the transport cannot fail. The caller holds the lock. */
segue_status sgi_transport_may_attach(const segue_transport *transport,
                                      segue_runtime *runtime);

/* Returns the runtime of a valid handle. */
segue_runtime *sgi_handle_runtime(const void *handle);

/* These functions count the application's handles. sgi_handle_note_given is called when
 * the application gets a handle, sgi_handle_note_freed when the application frees one.
 * The caller holds the lock. */
void sgi_handle_note_given(const void *handle);
void sgi_handle_note_freed(sgi_engine *engine);

/* Copies a text with its NUL into buf, which has *len bytes, and always sets *len to the
 * length of the text. buf may be NULL, to get only the length. Returns SEGUE_E_TOO_SMALL
 * when the text does not fit. */
segue_status sgi_copy_text_out(sgi_str text, char *buf, size_t *len);

/* Returns the length of a text of the application: `len`, or for SEGUE_TO_NUL the
 * number of bytes before the NUL. text may be NULL. */
size_t sgi_given_len(const char *text, size_t len);

/* Copies the caller's struct into `full`, which has the newest form and full_size
 * bytes. Members that the caller's older, shorter struct lacks become zero. given may
 * be NULL. Returns SEGUE_E_VERSION when the given struct is longer and its additional
 * bytes are not zero. */
segue_status sgi_copy_struct_in(void *full, size_t full_size, const void *given);

#endif
