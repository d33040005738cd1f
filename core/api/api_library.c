/* Functions of the library itself and of errors. */
#include "api/guard.h"
#include "engine/error.h"

const char *segue_version(void)
{
    return SGI_VERSION;
}

const char *segue_status_name(segue_status status)
{
    return sgi_status_name(status);
}

const char *segue_status_text(segue_status status)
{
    return sgi_status_text(status);
}

segue_status segue_error_new(segue_status status, const char *message, segue_error **out)
{
    sgi_str text = sgi_str_of(message ? message : sgi_status_text(status));
    if (!out || status >= SEGUE_OK || !sgi_utf8_valid(text, NULL))
        return SEGUE_E_INVALID;
    *out = sgi_error_new(&sgi_mem_libc, status, 0, text, (sgi_str){0});
    return SEGUE_OK;
}

const segue_error_view *segue_error_read(const segue_error *error)
{
    static const segue_error_view none = {.message = ""};
    return error ? &error->view : &none;
}

segue_status segue_error_copy(const segue_error *error, segue_error **out)
{
    if (!error || !out)
        return SEGUE_E_INVALID;
    *out = sgi_error_new(error->mem ? error->mem : &sgi_mem_libc, error->view.status,
                         error->view.rpc_code, sgi_str_of(error->view.message),
                         (sgi_str){error->view.data, error->view.data_len});
    if ((*out)->mem)
        (*out)->view.unsent = error->view.unsent;
    return SEGUE_OK;
}

void segue_error_free(segue_error *error)
{
    sgi_error_free(error);
}
