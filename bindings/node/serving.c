/* The functions of the addon for servers, for listeners, and for the checks of access
 * tokens (segue_bearer). */
#include "addon.h"

#define SERVER(name)                                                                     \
    segue_server *name = sgnode_unwrap(frame, frame->arg[0], SGNODE_SERVER);             \
    if (!(name))                                                                         \
    return NULL

static bool hook_server(sgnode_frame *frame, sgnode_user *user,
                        segue_server_options *full)
{
    if (!sgnode_user_hook(frame, user, SGNODE_HOOK_FIRST, frame->arg[3]) ||
        !sgnode_user_hook(frame, user, SGNODE_HOOK_SECOND, frame->arg[4]))
        return false;
    full->user = user;
    full->free_user = sgnode_user_free;
    full->on_idle = user->handler ? sgnode_on_idle : NULL;
    full->principal = user->hooks[SGNODE_HOOK_FIRST] ? sgnode_ask_principal : NULL;
    full->on_validate = user->hooks[SGNODE_HOOK_SECOND] ? sgnode_ask_validate : NULL;
    return true;
}

static napi_value server_new(sgnode_frame *frame)
{
    segue_server_options full;
    segue_server *server;
    sgnode_host *host;
    sgnode_user *user;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_options(frame, frame->arg[1], OPTIONS_SERVER, &full) ||
        !sgnode_user_new(frame, host, frame->arg[2], &user))
        return NULL;
    segue_status status = SEGUE_E_INVALID;
    if (hook_server(frame, user, &full))
        status = segue_server_new(runtime, &full, &server, &frame->error);
    if (status == SEGUE_OK)
        return sgnode_wrap(frame->self, SGNODE_SERVER, server, host);
    sgnode_user_free(user);
    return sgnode_throw(frame, status);
}

static napi_value server_add(sgnode_frame *frame)
{
    segue_item_options full;
    sgnode_host *host;
    sgnode_user *user;
    const char *json;
    size_t len;
    int32_t item;
    bool completion;
    segue_server *server = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_SERVER, &host);
    if (!server || !sgnode_int32(frame, frame->arg[1], 0, &item) ||
        !sgnode_options(frame, frame->arg[3], OPTIONS_ITEM, &full) ||
        !sgnode_view(frame, frame->arg[2], false, &json, &len) ||
        !sgnode_flag(frame, frame->arg[5], &completion) ||
        !sgnode_user_new(frame, host, frame->arg[4], &user))
        return NULL;
    full.user = user;
    full.free_user = sgnode_user_free;
    full.on_call = user->handler ? sgnode_on_call : NULL;
    full.on_completion = completion ? sgnode_on_completion : NULL;
    segue_status status = segue_server_add(server, item, json, len, &full, &frame->error);
    if (status != SEGUE_OK)
        sgnode_user_free(user);
    return sgnode_done(frame, status);
}

static napi_value item_check(sgnode_frame *frame)
{
    segue_item_options full;
    const char *json;
    const char *advice;
    size_t len;
    int32_t item;
    if (!sgnode_int32(frame, frame->arg[0], 0, &item) ||
        !sgnode_options(frame, frame->arg[2], OPTIONS_ITEM, &full) ||
        !sgnode_view(frame, frame->arg[1], false, &json, &len))
        return NULL;
    segue_status status =
        segue_item_check(item, json, len, &full, &advice, &frame->error);
    if (status == SEGUE_OK && advice)
        return sgnode_string(frame->env, advice);
    return sgnode_done(frame, status);
}

static napi_value server_check(sgnode_frame *frame)
{
    segue_server_options full;
    if (!sgnode_options(frame, frame->arg[0], OPTIONS_SERVER, &full))
        return NULL;
    return sgnode_done(frame, segue_server_check(&full, &frame->error));
}

static napi_value server_watch_clients(sgnode_frame *frame)
{
    segue_client_events events = SEGUE_CLIENT_EVENTS_INIT;
    sgnode_host *host;
    sgnode_user *user;
    segue_server *server = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_SERVER, &host);
    if (!server || !sgnode_user_new(frame, host, frame->arg[1], &user))
        return NULL;
    events.user = user;
    events.free_user = sgnode_user_free;
    events.on_open = sgnode_on_client_open;
    events.on_closed = sgnode_on_client_closed;
    segue_status status = segue_server_watch_clients(server, &events, &frame->error);
    if (status != SEGUE_OK)
        sgnode_user_free(user);
    return sgnode_done(frame, status);
}

static napi_value server_remove(sgnode_frame *frame)
{
    const char *name;
    int32_t item;
    SERVER(server);
    if (!sgnode_int32(frame, frame->arg[1], 0, &item) ||
        !sgnode_name(frame, frame->arg[2], false, &name))
        return NULL;
    return sgnode_done(frame, segue_server_remove(server, item, name));
}

static napi_value server_resource_updated(sgnode_frame *frame)
{
    const char *uri;
    SERVER(server);
    if (!sgnode_name(frame, frame->arg[1], false, &uri))
        return NULL;
    return sgnode_done(frame, segue_server_resource_updated(server, uri));
}

static segue_status read_stats(void *handle, char *buf, size_t *len)
{
    return segue_server_stats(handle, buf, len);
}

static napi_value server_stats(sgnode_frame *frame)
{
    napi_value text;
    SERVER(server);
    segue_status status = sgnode_read_text(frame->env, server, read_stats, &text);
    return status == SEGUE_OK ? text : sgnode_throw(frame, status);
}

static segue_status read_metrics(void *handle, char *buf, size_t *len)
{
    return segue_server_metrics(handle, buf, len);
}

static napi_value server_metrics(sgnode_frame *frame)
{
    napi_value text;
    SERVER(server);
    segue_status status = sgnode_read_text(frame->env, server, read_metrics, &text);
    return status == SEGUE_OK ? text : sgnode_throw(frame, status);
}

static napi_value server_attach(sgnode_frame *frame)
{
    SERVER(server);
    segue_transport *transport = sgnode_unwrap(frame, frame->arg[1], SGNODE_TRANSPORT);
    if (!transport)
        return NULL;
    segue_status status = segue_server_attach(server, transport, &frame->error);
    if (status == SEGUE_OK)
        sgnode_consume(frame, frame->arg[1]);
    return sgnode_done(frame, status);
}

static napi_value server_close(sgnode_frame *frame)
{
    SERVER(server);
    return sgnode_done(frame, segue_server_close(server));
}

static napi_value server_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_SERVER);
}

/* ---- listeners ---- */

/* Fills the options by which a listener requires tokens. Returns false with an exception
 * on failure. */
static bool fill_bearer(sgnode_frame *frame, sgnode_host *host,
                        segue_bearer_options *full, sgnode_user **user)
{
    if (!sgnode_options(frame, frame->arg[2], OPTIONS_BEARER, full))
        return false;
    if (!sgnode_user_new(frame, host, NULL, user))
        return false;
    full->user = *user;
    full->free_user = sgnode_user_free;
    if (!sgnode_user_hook(frame, *user, SGNODE_HOOK_FIRST, frame->arg[3])) {
        sgnode_user_free(*user);
        return false;
    }
    full->on_bearer = (*user)->hooks[SGNODE_HOOK_FIRST] ? sgnode_ask_bearer : NULL;
    return true;
}

typedef segue_status (*listen_fn)(segue_server *server,
                                  const segue_listen_options *options,
                                  segue_listener **out, segue_error **error);

static napi_value listen_by(sgnode_frame *frame, listen_fn listen)
{
    segue_listen_options full;
    segue_bearer_options gate;
    segue_listener *listener;
    sgnode_host *host;
    sgnode_user *user = NULL;
    segue_server *server = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_SERVER, &host);
    if (!server || !sgnode_options(frame, frame->arg[1], OPTIONS_LISTEN, &full))
        return NULL;
    if (!sgnode_is_none(frame, frame->arg[2])) {
        if (!fill_bearer(frame, host, &gate, &user))
            return NULL;
        full.bearer = &gate;
    }
    segue_status status = listen(server, &full, &listener, &frame->error);
    if (status == SEGUE_OK)
        return sgnode_wrap(frame->self, SGNODE_LISTENER, listener, host);
    sgnode_user_free(user);
    return sgnode_throw(frame, status);
}

static napi_value server_listen(sgnode_frame *frame)
{
    return listen_by(frame, segue_server_listen);
}

static napi_value listener_open(sgnode_frame *frame)
{
    return listen_by(frame, segue_listener_open);
}

static napi_value listener_url(sgnode_frame *frame)
{
    segue_listener *listener = sgnode_unwrap(frame, frame->arg[0], SGNODE_LISTENER);
    return listener ? sgnode_string(frame->env, segue_listener_url(listener)) : NULL;
}

static napi_value listener_add(sgnode_frame *frame)
{
    const char *path;
    segue_listener *listener = sgnode_unwrap(frame, frame->arg[0], SGNODE_LISTENER);
    segue_server *server =
        listener ? sgnode_unwrap(frame, frame->arg[1], SGNODE_SERVER) : NULL;
    if (!server || !sgnode_name(frame, frame->arg[2], false, &path))
        return NULL;
    return sgnode_done(frame, segue_listener_add(listener, server, path, &frame->error));
}

static napi_value listener_remove(sgnode_frame *frame)
{
    const char *path;
    segue_listener *listener = sgnode_unwrap(frame, frame->arg[0], SGNODE_LISTENER);
    if (!listener || !sgnode_name(frame, frame->arg[1], false, &path))
        return NULL;
    return sgnode_done(frame, segue_listener_remove(listener, path));
}

static napi_value listener_reload(sgnode_frame *frame)
{
    segue_listener *listener = sgnode_unwrap(frame, frame->arg[0], SGNODE_LISTENER);
    if (!listener)
        return NULL;
    return sgnode_done(frame, segue_listener_reload(listener, &frame->error));
}

static napi_value listener_set_ready(sgnode_frame *frame)
{
    segue_listener *listener = sgnode_unwrap(frame, frame->arg[0], SGNODE_LISTENER);
    int32_t ready;
    if (!listener || !sgnode_int32(frame, frame->arg[1], 0, &ready))
        return NULL;
    return sgnode_done(frame, segue_listener_set_ready(listener, ready));
}

static napi_value listener_close(sgnode_frame *frame)
{
    segue_listener *listener = sgnode_unwrap(frame, frame->arg[0], SGNODE_LISTENER);
    return listener ? sgnode_done(frame, segue_listener_close(listener)) : NULL;
}

static napi_value listener_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_LISTENER);
}

/* ---- bearers ---- */

static napi_value bearer_token(sgnode_frame *frame)
{
    size_t len;
    segue_bearer *bearer = sgnode_unwrap(frame, frame->arg[0], SGNODE_BEARER);
    if (!bearer)
        return NULL;
    const char *token = segue_bearer_token(bearer, &len);
    return sgnode_text(frame->env, token, len);
}

static napi_value bearer_accept(sgnode_frame *frame)
{
    const char *principal, *scopes;
    int64_t expires_ms;
    segue_bearer *bearer = sgnode_unwrap(frame, frame->arg[0], SGNODE_BEARER);
    if (!bearer || !sgnode_name(frame, frame->arg[1], false, &principal) ||
        !sgnode_name(frame, frame->arg[2], true, &scopes) ||
        !sgnode_int64(frame, frame->arg[3], 0, &expires_ms))
        return NULL;
    return sgnode_done(frame, segue_bearer_accept(bearer, principal, scopes, expires_ms));
}

static napi_value bearer_refuse(sgnode_frame *frame)
{
    const char *reason;
    segue_bearer *bearer = sgnode_unwrap(frame, frame->arg[0], SGNODE_BEARER);
    if (!bearer || !sgnode_message(frame, frame->arg[1], true, &reason))
        return NULL;
    return sgnode_done(frame, segue_bearer_refuse(bearer, reason));
}

static napi_value bearer_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_BEARER);
}

static napi_value tokens_check(sgnode_frame *frame)
{
    const char *path;
    segue_runtime *runtime = sgnode_unwrap(frame, frame->arg[0], SGNODE_RUNTIME);
    if (!runtime || !sgnode_name(frame, frame->arg[1], false, &path))
        return NULL;
    return sgnode_done(frame, segue_tokens_check(runtime, path, &frame->error));
}

const sgnode_row sgnode_server_rows[] = {
    {"serverNew", server_new},
    {"serverAdd", server_add},
    {"serverWatchClients", server_watch_clients},
    {"itemCheck", item_check},
    {"serverCheck", server_check},
    {"serverRemove", server_remove},
    {"serverResourceUpdated", server_resource_updated},
    {"serverStats", server_stats},
    {"serverMetrics", server_metrics},
    {"serverAttach", server_attach},
    {"serverClose", server_close},
    {"serverFree", server_free},
    {"serverListen", server_listen},
    {"listenerOpen", listener_open},
    {"listenerUrl", listener_url},
    {"listenerAdd", listener_add},
    {"listenerRemove", listener_remove},
    {"listenerReload", listener_reload},
    {"listenerSetReady", listener_set_ready},
    {"listenerClose", listener_close},
    {"listenerFree", listener_free},
    {"bearerToken", bearer_token},
    {"bearerAccept", bearer_accept},
    {"bearerRefuse", bearer_refuse},
    {"bearerFree", bearer_free},
    {"tokensCheck", tokens_check},
    {NULL, NULL},
};
