/* The HTTP functions of a library that was built without HTTP. Such a library has no
 * listeners, bearers and HTTP transports, so these functions refuse every argument. */
#include "api/guard.h"
#include "base/absent.h"
#include "engine/error.h"
#include "transport/transport.h"

static const char absent[] = SGI_ABSENT_TEXT("HTTP", "SEGUE_HTTP");

static segue_status refuse_as(segue_status status, segue_runtime *runtime,
                              segue_error **error)
{
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(runtime));
    return sgi_error_return(error, mem, status, "%s", absent);
}

static segue_status refuse(segue_runtime *runtime, segue_error **error)
{
    return refuse_as(SEGUE_E_UNSUPPORTED, runtime, error);
}

static segue_status refuse_server(sgi_fn fn, segue_server *server, segue_error **error)
{
    segue_status status = sgi_enter(fn, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    segue_runtime *runtime = sgi_handle_runtime(server);
    sgi_leave(server);
    return refuse(runtime, error);
}

segue_status segue_server_listen(segue_server *server,
                                 const segue_listen_options *options,
                                 segue_listener **out, segue_error **error)
{
    (void)options;
    (void)out;
    return refuse_server(SGI_FN_segue_server_listen, server, error);
}

segue_status segue_listener_open(segue_server *server,
                                 const segue_listen_options *options,
                                 segue_listener **out, segue_error **error)
{
    (void)options;
    (void)out;
    return refuse_server(SGI_FN_segue_listener_open, server, error);
}

segue_status segue_transport_http(segue_runtime *runtime, const char *url,
                                  const segue_http_options *options,
                                  segue_transport **out, segue_error **error)
{
    (void)url;
    (void)options;
    (void)out;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_transport_http, runtime);
    return status == SEGUE_OK ? refuse(runtime, error)
                              : sgi_refuse_without_handle(status, error);
}

segue_status segue_runtime_authorize(segue_runtime *runtime, const char *redirect_url)
{
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_runtime_authorize, runtime);
    if (status == SEGUE_OK && !redirect_url)
        status = SEGUE_E_INVALID;
    return status == SEGUE_OK ? SEGUE_E_UNSUPPORTED : status;
}

/* ---- transports: no transport is an HTTP transport ---- */

static segue_status refuse_transport(const segue_transport *transport,
                                     segue_error **error)
{
    if (!transport || transport->carrier.magic != SGI_MAGIC_TRANSPORT)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    return refuse_as(SEGUE_E_STATE, sgi_transport_runtime(transport), error);
}

segue_status segue_transport_set_header(segue_transport *transport, const char *name,
                                        const char *value, segue_error **error)
{
    (void)value;
    return name ? refuse_transport(transport, error)
                : sgi_refuse_without_handle(SEGUE_E_INVALID, error);
}

segue_status segue_transport_set_oauth(segue_transport *transport,
                                       const segue_oauth_options *options,
                                       segue_error **error)
{
    return options ? refuse_transport(transport, error)
                   : sgi_refuse_without_handle(SEGUE_E_INVALID, error);
}

const char *segue_transport_header(const segue_transport *transport, const char *name)
{
    (void)transport;
    (void)name;
    return NULL;
}

const char *segue_transport_peer(const segue_transport *transport)
{
    (void)transport;
    return "";
}

/* ---- listeners and bearers: there are none ---- */

const char *segue_listener_url(const segue_listener *listener)
{
    (void)listener;
    return "";
}

segue_status segue_listener_add(segue_listener *listener, segue_server *server,
                                const char *path, segue_error **error)
{
    (void)listener;
    (void)server;
    (void)path;
    (void)error;
    return SEGUE_E_INVALID;
}

segue_status segue_listener_remove(segue_listener *listener, const char *path)
{
    (void)listener;
    (void)path;
    return SEGUE_E_INVALID;
}

segue_status segue_listener_reload(segue_listener *listener, segue_error **error)
{
    (void)listener;
    (void)error;
    return SEGUE_E_INVALID;
}

segue_status segue_listener_set_ready(segue_listener *listener, int32_t ready)
{
    (void)listener;
    (void)ready;
    return SEGUE_E_INVALID;
}

segue_status segue_listener_close(segue_listener *listener)
{
    (void)listener;
    return SEGUE_E_INVALID;
}

void segue_listener_free(segue_listener *listener)
{
    (void)listener;
}

/* ---- exchanges: there are none ---- */

segue_status segue_exchange_open(segue_listener *listener,
                                 const segue_exchange_head *head,
                                 const segue_exchange_events *events,
                                 segue_exchange **out, segue_error **error)
{
    (void)listener;
    (void)head;
    (void)events;
    (void)out;
    (void)error;
    return SEGUE_E_INVALID;
}

segue_status segue_exchange_feed(segue_exchange *exchange, const char *bytes, size_t len)
{
    (void)exchange;
    (void)bytes;
    (void)len;
    return SEGUE_E_INVALID;
}

segue_status segue_exchange_end(segue_exchange *exchange)
{
    (void)exchange;
    return SEGUE_E_INVALID;
}

segue_status segue_exchange_sent(segue_exchange *exchange, size_t len)
{
    (void)exchange;
    (void)len;
    return SEGUE_E_INVALID;
}

segue_status segue_exchange_closed(segue_exchange *exchange)
{
    (void)exchange;
    return SEGUE_E_INVALID;
}

void segue_exchange_free(segue_exchange *exchange)
{
    (void)exchange;
}

const char *segue_bearer_token(const segue_bearer *bearer, size_t *len)
{
    (void)bearer;
    if (len)
        *len = 0;
    return "";
}

segue_status segue_bearer_accept(segue_bearer *bearer, const char *principal,
                                 const char *scopes, int64_t expires_ms)
{
    (void)bearer;
    (void)principal;
    (void)scopes;
    (void)expires_ms;
    return SEGUE_E_INVALID;
}

segue_status segue_bearer_refuse(segue_bearer *bearer, const char *reason)
{
    (void)bearer;
    (void)reason;
    return SEGUE_E_INVALID;
}

void segue_bearer_free(segue_bearer *bearer)
{
    (void)bearer;
}

segue_status segue_tokens_check(segue_runtime *runtime, const char *path,
                                segue_error **error)
{
    (void)runtime;
    (void)path;
    (void)error;
    return SEGUE_E_INVALID;
}
