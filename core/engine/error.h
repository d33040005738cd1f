/* segue_error: the details of a failure, which the application can read. */
#ifndef SGI_ERROR_H
#define SGI_ERROR_H

#include "engine/engine.h"

struct segue_error {
    /* the part that the application reads; the error owns the texts, unless `mem` is
     * NULL */
    segue_error_view view;
    /* the memory functions for freeing; NULL = the error is static and must not be
     * freed */
    const sgi_mem *mem;
    /* a copy of the memory functions, because an error can outlive the runtime that made
     * it */
    sgi_mem mem_copy;
};

/* Makes an error. The texts can be NULL. Never returns NULL: when out of memory, returns
 * a static error. */
segue_error *sgi_error_new(const sgi_mem *mem, segue_status status, int32_t rpc_code,
                           sgi_str message, sgi_str data);
/* Makes an error and stores it in *out, unless out is NULL. Returns `status`. */
segue_status sgi_error_return(segue_error **out, const sgi_mem *mem, segue_status status,
                              const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void sgi_error_free(segue_error *error);

const char *sgi_status_name(segue_status status);
const char *sgi_status_text(segue_status status);
bool sgi_status_is_retryable(segue_status status);

#endif
