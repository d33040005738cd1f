/* Library, errors. */
#include "api/guard.h"
#include "engine/error.h"

const char *segue_version(void)
{
    return SGI_VERSION;
}

segue_status segue_struct_init(void *ptr, size_t size, int32_t which)
{
    if (!ptr || size < sizeof(size_t) || which < SEGUE_STRUCT_RUNTIME_OPTIONS ||
        which > SEGUE_STRUCT_BEARER_OPTIONS)
        return SEGUE_E_INVALID;
    memset(ptr, 0, size);
    memcpy(ptr, &size, sizeof size);
    return SEGUE_OK;
}

const char *segue_status_name(segue_status status)
{
    return sgi_status_name(status);
}

segue_status segue_error_status(const segue_error *error)
{
    return error ? error->status : SEGUE_OK;
}

const char *segue_error_message(const segue_error *error)
{
    return error ? error->message : "";
}

int32_t segue_error_rpc_code(const segue_error *error)
{
    return error ? error->rpc_code : 0;
}

const char *segue_error_data(const segue_error *error, size_t *len)
{
    if (len)
        *len = error ? error->data_len : 0;
    return error ? error->data : NULL;
}

int32_t segue_error_is_retryable(const segue_error *error)
{
    return error && sgi_status_is_retryable(error->status);
}

segue_status segue_error_copy(const segue_error *error, segue_error **out)
{
    if (!error || !out)
        return SEGUE_E_INVALID;
    *out = sgi_error_new(error->mem ? error->mem : &sgi_mem_libc, error->status,
                         error->rpc_code, sgi_str_of(error->message),
                         (sgi_str){error->data, error->data_len});
    return SEGUE_OK;
}

void segue_error_free(segue_error *error)
{
    sgi_error_free(error);
}
