/* segue_error: detail of a failure for the application. */
#ifndef SGI_ERROR_H
#define SGI_ERROR_H

#include "engine/engine.h"

struct segue_error {
    const sgi_mem *mem; /* NULL = lives elsewhere: never freed */
    segue_status status;
    int32_t rpc_code;
    char *message; /* owned when mem is set */
    char *data;    /* JSON text or NULL */
    size_t data_len;
    sgi_mem mem_copy; /* a copy outlives the runtime it came from */
};

/* NULL parts are fine. Falls back to the static out-of-memory error, so never NULL. */
segue_error *sgi_error_new(const sgi_mem *mem, segue_status status, int32_t rpc_code,
                           sgi_str message, sgi_str data);
/* Fills *out, when the caller wants detail, and returns status. */
segue_status sgi_error_give(segue_error **out, const sgi_mem *mem, segue_status status,
                            const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void sgi_error_free(segue_error *error);

const char *sgi_status_name(segue_status status);
const char *sgi_status_text(segue_status status);
bool sgi_status_is_retryable(segue_status status);

#endif
