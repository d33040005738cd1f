/* The client's half of HTTP: transports. */
#include "api/guard.h"
#include "engine/error.h"
#include "transport/http_client.h"

segue_status segue_transport_http(segue_runtime *runtime, const char *url,
                                  const segue_http_options *options,
                                  segue_transport **out, segue_error **error)
{
    segue_http_options full;
    segue_status status = sgi_guard_runtime(SGI_FN_segue_transport_http, runtime);
    if (status == SEGUE_OK && (!out || !url))
        status = SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_take_struct(&full, sizeof full, options);
    if (status != SEGUE_OK)
        return sgi_refused(status, error);
    char why[SGI_WHY_SIZE] = "";
    status = sgi_transport_http(runtime, url, &full, out, why);
    return status == SEGUE_OK
               ? status
               : sgi_error_give(error, sgi_engine_mem(sgi_runtime_engine(runtime)),
                                status, "%s: %s", url, why);
}

segue_status segue_transport_set_header(segue_transport *transport, const char *name,
                                        const char *value)
{
    if (!transport || transport->carrier.magic != SGI_MAGIC_TRANSPORT || !name)
        return SEGUE_E_INVALID;
    return sgi_transport_set_header(transport, name, value);
}

segue_status segue_transport_set_oauth(segue_transport *transport,
                                       const segue_oauth_options *options)
{
    segue_oauth_options full;
    if (!transport || transport->carrier.magic != SGI_MAGIC_TRANSPORT || !options)
        return SEGUE_E_INVALID;
    segue_status status = sgi_take_struct(&full, sizeof full, options);
    return status == SEGUE_OK ? sgi_transport_set_oauth(transport, &full) : status;
}

segue_status segue_runtime_authorize(segue_runtime *runtime, const char *redirect_url)
{
    segue_status status = sgi_guard_runtime(SGI_FN_segue_runtime_authorize, runtime);
    if (status == SEGUE_OK && !redirect_url)
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? sgi_http_authorize(runtime, redirect_url) : status;
}
