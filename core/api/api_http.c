/* Functions for serving HTTP. */
#include "api/guard.h"
#include "engine/error.h"
#include "engine/server/server.h"
#include "transport/http_conn.h"

typedef segue_status (*listen_fn)(segue_runtime *rt, segue_server *server,
                                  const segue_listen_options *options,
                                  segue_listener **out, char why[SGI_WHY_SIZE]);

static segue_status listen_with(sgi_fn fn, listen_fn listen, segue_server *server,
                                const segue_listen_options *options, segue_listener **out,
                                segue_error **error)
{
    segue_listen_options full;
    segue_bearer_options bearer;
    char why[SGI_WHY_SIZE] = "";
    segue_status status = sgi_enter(fn, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    segue_runtime *runtime = sgi_handle_runtime(server);
    /* the lock is released here, because opening a socket reads files and may take
     * long */
    sgi_leave(server);
    status = out ? sgi_copy_struct_in(&full, sizeof full, options) : SEGUE_E_INVALID;
    if (status == SEGUE_OK && full.bearer) {
        status = sgi_copy_struct_in(&bearer, sizeof bearer, full.bearer);
        full.bearer = &bearer;
    }
    if (status != SEGUE_OK)
        return status;
    status = listen(runtime, server, &full, out, why);
    if (status != SEGUE_OK)
        return sgi_error_return(error, sgi_engine_mem(sgi_runtime_engine(runtime)),
                                status, "%s", why);
    sgi_runtime_ref(runtime);
    return SEGUE_OK;
}

segue_status segue_server_listen(segue_server *server,
                                 const segue_listen_options *options,
                                 segue_listener **out, segue_error **error)
{
    return listen_with(SGI_FN_segue_server_listen, sgi_http_listen, server, options, out,
                       error);
}

segue_status segue_listener_open(segue_server *server,
                                 const segue_listen_options *options,
                                 segue_listener **out, segue_error **error)
{
    return listen_with(SGI_FN_segue_listener_open, sgi_http_listen_by_hand, server,
                       options, out, error);
}

/* ---- listener ---- */

static segue_status guard_listener(sgi_fn fn, const segue_listener *listener)
{
    if (!listener || listener->carrier.magic != SGI_MAGIC_LISTENER)
        return SEGUE_E_INVALID;
    return sgi_check_reentrancy(fn, listener->carrier.runtime);
}

const char *segue_listener_url(const segue_listener *listener)
{
    bool is_one = guard_listener(SGI_FN_segue_listener_url, listener) == SEGUE_OK;
    return is_one ? listener->url : "";
}

segue_status segue_listener_add(segue_listener *listener, segue_server *server,
                                const char *path, segue_error **error)
{
    char why[SGI_WHY_SIZE] = "the server belongs to another runtime";
    segue_status status = guard_listener(SGI_FN_segue_listener_add, listener);
    if (status == SEGUE_OK && !path)
        status = SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_enter(SGI_FN_segue_listener_add, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    segue_runtime *runtime = sgi_handle_runtime(server);
    sgi_leave(server);
    status = runtime == listener->carrier.runtime
                 ? sgi_http_listener_add(listener, server, path, why)
                 : SEGUE_E_INVALID;
    return status == SEGUE_OK
               ? status
               : sgi_error_return(error, sgi_engine_mem(sgi_runtime_engine(runtime)),
                                  status, "%s", why);
}

segue_status segue_listener_remove(segue_listener *listener, const char *path)
{
    segue_status status = guard_listener(SGI_FN_segue_listener_remove, listener);
    if (status == SEGUE_OK && !path)
        status = SEGUE_E_INVALID;
    if (status != SEGUE_OK)
        return status;
    sgi_runtime_lock(listener->carrier.runtime);
    status = sgi_http_listener_remove(listener, path);
    sgi_runtime_unlock(listener->carrier.runtime);
    return status;
}

segue_status segue_listener_reload(segue_listener *listener, segue_error **error)
{
    char why[SGI_WHY_SIZE] = "";
    segue_status status = guard_listener(SGI_FN_segue_listener_reload, listener);
    if (status != SEGUE_OK)
        return status;
    sgi_engine *engine = sgi_runtime_engine(listener->carrier.runtime);
    status = sgi_http_listener_reload(listener, why);
    return status == SEGUE_OK
               ? status
               : sgi_error_return(error, sgi_engine_mem(engine), status, "%s", why);
}

segue_status segue_listener_set_ready(segue_listener *listener, int32_t ready)
{
    segue_status status = guard_listener(SGI_FN_segue_listener_set_ready, listener);
    if (status != SEGUE_OK)
        return status;
    sgi_runtime_lock(listener->carrier.runtime);
    listener->unready = !ready;
    sgi_runtime_unlock(listener->carrier.runtime);
    return SEGUE_OK;
}

segue_status segue_listener_close(segue_listener *listener)
{
    segue_status status = guard_listener(SGI_FN_segue_listener_close, listener);
    if (status != SEGUE_OK)
        return status;
    sgi_runtime_lock(listener->carrier.runtime);
    sgi_http_listener_close(listener);
    sgi_runtime_unlock(listener->carrier.runtime);
    return SEGUE_OK;
}

void segue_listener_free(segue_listener *listener)
{
    if (guard_listener(SGI_FN_segue_listener_free, listener) != SEGUE_OK)
        return;
    segue_runtime *runtime = listener->carrier.runtime;
    sgi_runtime_lock(runtime);
    sgi_http_listener_release_handle(listener);
    sgi_runtime_unlock(runtime);
    sgi_runtime_unref(runtime);
}

/* ---- the HTTP request of a transport ---- */

static sgi_http_conn *conn_of(const segue_transport *transport)
{
    return transport && transport->carrier.magic == SGI_MAGIC_TRANSPORT
               ? sgi_http_conn_of(transport)
               : NULL;
}

const char *segue_transport_header(const segue_transport *transport, const char *name)
{
    sgi_http_conn *conn = conn_of(transport);
    return conn && name ? sgi_http_conn_header(conn, sgi_str_of(name)) : NULL;
}

const char *segue_transport_peer(const segue_transport *transport)
{
    sgi_http_conn *conn = conn_of(transport);
    return conn && conn->peer.len ? conn->peer.p : "";
}

/* ---- tokens ---- */

const char *segue_bearer_token(const segue_bearer *bearer, size_t *len)
{
    bool ok = bearer && bearer->handle.magic == SGI_MAGIC_BEARER;
    if (len)
        *len = ok ? bearer->len : 0;
    return ok ? bearer->token : "";
}

segue_status segue_bearer_accept(segue_bearer *bearer, const char *principal,
                                 const char *scopes, int64_t expires_ms)
{
    segue_status status = sgi_enter(SGI_FN_segue_bearer_accept, bearer, SGI_MAGIC_BEARER);
    if (status != SEGUE_OK)
        return status;
    status = sgi_bearer_accept(bearer, principal, sgi_str_of(scopes), expires_ms);
    sgi_leave(bearer);
    return status;
}

segue_status segue_bearer_refuse(segue_bearer *bearer, const char *reason)
{
    segue_status status = sgi_enter(SGI_FN_segue_bearer_refuse, bearer, SGI_MAGIC_BEARER);
    if (status != SEGUE_OK)
        return status;
    status = sgi_bearer_refuse(bearer, reason);
    sgi_leave(bearer);
    return status;
}

void segue_bearer_free(segue_bearer *bearer)
{
    if (sgi_enter(SGI_FN_segue_bearer_free, bearer, SGI_MAGIC_BEARER) != SEGUE_OK)
        return;
    segue_runtime *runtime = sgi_handle_runtime(bearer);
    sgi_engine *engine = bearer->handle.engine;
    sgi_bearer_free(bearer);
    sgi_handle_note_freed(engine);
    sgi_runtime_unlock(runtime);
}

segue_status segue_tokens_check(segue_runtime *runtime, const char *path,
                                segue_error **error)
{
    char why[SGI_WHY_SIZE] = "";
    sgi_bearer_tokens tokens;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_tokens_check, runtime);
    if (status == SEGUE_OK && !path)
        status = SEGUE_E_INVALID;
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(runtime));
    sgi_bearer_tokens_init(&tokens, mem);
    status = sgi_bearer_tokens_open(&tokens, path, why);
    sgi_bearer_tokens_free(&tokens);
    return status == SEGUE_OK ? status : sgi_error_return(error, mem, status, "%s", why);
}
