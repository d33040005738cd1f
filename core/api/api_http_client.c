/* Functions of HTTP transports for clients. */
#include "api/guard.h"
#include "engine/error.h"
#include "transport/http_client.h"

segue_status segue_transport_http(segue_runtime *runtime, const char *url,
                                  const segue_http_options *options,
                                  segue_transport **out, segue_error **error)
{
    segue_http_options full;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_transport_http, runtime);
    if (status == SEGUE_OK && (!out || !url))
        status = SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(&full, sizeof full, options);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    char why[SGI_WHY_SIZE] = "";
    status = sgi_transport_http(runtime, url, &full, out, why);
    return status == SEGUE_OK
               ? status
               : sgi_error_return(error, sgi_engine_mem(sgi_runtime_engine(runtime)),
                                  status, "%s: %s", url, why);
}

static bool is_transport(const segue_transport *transport)
{
    return transport && transport->carrier.magic == SGI_MAGIC_TRANSPORT;
}

/* Sets *error and returns status. why: details for the message; empty = the message is
 * the text of the status. */
static segue_status tell(const segue_transport *transport, segue_status status,
                         const char *why, segue_error **error)
{
    sgi_engine *engine = sgi_runtime_engine(sgi_transport_runtime(transport));
    return status == SEGUE_OK
               ? status
               : sgi_error_return(error, sgi_engine_mem(engine), status, "%s",
                                  *why ? why : sgi_status_text(status));
}

segue_status segue_transport_set_header(segue_transport *transport, const char *name,
                                        const char *value, segue_error **error)
{
    char why[SGI_WHY_SIZE] = "";
    if (!is_transport(transport) || !name)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    segue_status status = sgi_transport_set_header(transport, name, value, why);
    return tell(transport, status, why, error);
}

segue_status segue_transport_set_oauth(segue_transport *transport,
                                       const segue_oauth_options *options,
                                       segue_error **error)
{
    segue_oauth_options full;
    char why[SGI_WHY_SIZE] = "";
    if (!is_transport(transport) || !options)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    segue_status status = sgi_copy_struct_in(&full, sizeof full, options);
    if (status == SEGUE_OK)
        status = sgi_transport_set_oauth(transport, &full, why);
    return tell(transport, status, why, error);
}

segue_status segue_runtime_authorize(segue_runtime *runtime, const char *redirect_url)
{
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_runtime_authorize, runtime);
    if (status == SEGUE_OK && !redirect_url)
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? sgi_http_pass_redirect(runtime, redirect_url) : status;
}
