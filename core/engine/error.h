/* segue_error: the details of a failure, for the application. */
#ifndef SGI_ERROR_H
#define SGI_ERROR_H

#include "engine/engine.h"

struct segue_error {
    /* the part that the application reads; its texts belong to the error when mem is
     * set */
    segue_error_view view;
    const sgi_mem *mem; /* NULL = the error is static and never freed */
    /* copy of the memory functions, because an error may outlive the runtime that made
     * it */
    sgi_mem mem_copy;
};

/* Makes an error. The texts may be NULL. The function never returns NULL: without memory
 * it returns the static out-of-memory error. */
segue_error *sgi_error_new(const sgi_mem *mem, segue_status status, int32_t rpc_code,
                           sgi_str message, sgi_str data);
/* Fills *out, unless out is NULL, and returns status. */
segue_status sgi_error_return(segue_error **out, const sgi_mem *mem, segue_status status,
                              const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void sgi_error_free(segue_error *error);

const char *sgi_status_name(segue_status status);
const char *sgi_status_text(segue_status status);
bool sgi_status_is_retryable(segue_status status);

#endif
