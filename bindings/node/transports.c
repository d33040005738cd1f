/* Transports: the functions that take options and callbacks. Each callback table that the
 * library gets has its own `user` (struct sgnode_user). If a function of the library
 * fails, the library has taken nothing, and this file frees the user. */
#include "addon.h"

static napi_value wrap_transport(sgnode_frame *frame, segue_status status,
                                 segue_transport *transport, sgnode_host *host)
{
    if (status != SEGUE_OK)
        return sgnode_throw(frame, status);
    return sgnode_wrap(frame->self, SGNODE_TRANSPORT, transport, host);
}

static napi_value transport_pair(sgnode_frame *frame)
{
    segue_transport *a, *b;
    sgnode_host *host;
    napi_value list;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime)
        return NULL;
    segue_status status = segue_transport_pair(runtime, &a, &b);
    if (status != SEGUE_OK)
        return sgnode_throw(frame, status);
    napi_value first = sgnode_wrap(frame->self, SGNODE_TRANSPORT, a, host);
    napi_value second = sgnode_wrap(frame->self, SGNODE_TRANSPORT, b, host);
    if (!first || !second ||
        napi_create_array_with_length(frame->env, 2, &list) != napi_ok ||
        napi_set_element(frame->env, list, 0, first) != napi_ok ||
        napi_set_element(frame->env, list, 1, second) != napi_ok)
        return NULL;
    return list;
}

static napi_value transport_stdio(sgnode_frame *frame)
{
    segue_transport *transport;
    sgnode_host *host;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime)
        return NULL;
    segue_status status = segue_transport_stdio(runtime, &transport);
    return wrap_transport(frame, status, transport, host);
}

static napi_value transport_fds(sgnode_frame *frame)
{
    segue_transport *transport;
    sgnode_host *host;
    int32_t in, out;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_int32(frame, frame->arg[1], -1, &in) ||
        !sgnode_int32(frame, frame->arg[2], -1, &out))
        return NULL;
    segue_status status = segue_transport_fds(runtime, in, out, &transport);
    return wrap_transport(frame, status, transport, host);
}

static napi_value transport_spawn(sgnode_frame *frame)
{
    segue_spawn_options full;
    segue_transport *transport;
    sgnode_host *host;
    sgnode_user *user = NULL;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_options(frame, frame->arg[1], OPTIONS_SPAWN, &full))
        return NULL;
    if (!sgnode_is_none(frame, frame->arg[2])) {
        if (!sgnode_user_new(frame, host, frame->arg[2], &user))
            return NULL;
        full.user = user;
        full.free_user = sgnode_on_stderr_end;
        full.on_stderr = sgnode_on_stderr;
    }
    segue_status status =
        segue_transport_spawn(runtime, &full, &transport, &frame->error);
    if (status != SEGUE_OK)
        sgnode_user_free(user);
    return wrap_transport(frame, status, transport, host);
}

static napi_value transport_http(sgnode_frame *frame)
{
    segue_http_options full;
    segue_transport *transport = NULL;
    sgnode_host *host;
    sgnode_user *user;
    const char *url;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_options(frame, frame->arg[2], OPTIONS_HTTP, &full) ||
        !sgnode_name(frame, frame->arg[1], false, &url) ||
        !sgnode_user_new(frame, host, NULL, &user))
        return NULL;
    full.user = user;
    full.free_user = sgnode_user_free;
    segue_status status = SEGUE_E_INVALID;
    if (sgnode_user_hook(frame, user, SGNODE_HOOK_FIRST, frame->arg[3])) {
        full.on_headers = user->hooks[SGNODE_HOOK_FIRST] ? sgnode_ask_headers : NULL;
        status = segue_transport_http(runtime, url, &full, &transport, &frame->error);
    }
    if (status != SEGUE_OK)
        sgnode_user_free(user);
    return wrap_transport(frame, status, transport, host);
}

static napi_value transport_set_header(sgnode_frame *frame)
{
    const char *name, *value;
    segue_transport *transport = sgnode_unwrap(frame, frame->arg[0], SGNODE_TRANSPORT);
    if (!transport || !sgnode_name(frame, frame->arg[1], false, &name) ||
        !sgnode_name(frame, frame->arg[2], true, &value))
        return NULL;
    return sgnode_done(frame,
                       segue_transport_set_header(transport, name, value, &frame->error));
}

static bool hook_oauth(sgnode_frame *frame, sgnode_user *user, segue_oauth_options *full)
{
    for (int i = 0; i < SGNODE_HOOKS; i++)
        if (!sgnode_user_hook(frame, user, i, frame->arg[3 + i]))
            return false;
    full->user = user;
    full->free_user = sgnode_user_free;
    full->on_authorize = user->handler ? sgnode_on_authorize : NULL;
    full->on_assertion = user->hooks[SGNODE_HOOK_FIRST] ? sgnode_ask_assertion : NULL;
    full->on_load = user->hooks[SGNODE_HOOK_SECOND] ? sgnode_ask_load : NULL;
    full->on_save = user->hooks[SGNODE_HOOK_THIRD] ? sgnode_ask_save : NULL;
    return true;
}

static napi_value transport_set_oauth(sgnode_frame *frame)
{
    segue_oauth_options full;
    sgnode_host *host;
    sgnode_user *user;
    segue_transport *transport =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_TRANSPORT, &host);
    if (!transport || !sgnode_options(frame, frame->arg[1], OPTIONS_OAUTH, &full) ||
        !sgnode_user_new(frame, host, frame->arg[2], &user))
        return NULL;
    segue_status status = SEGUE_E_INVALID;
    if (hook_oauth(frame, user, &full))
        status = segue_transport_set_oauth(transport, &full, &frame->error);
    if (status != SEGUE_OK)
        sgnode_user_free(user);
    return sgnode_done(frame, status);
}

static napi_value transport_header(sgnode_frame *frame)
{
    const char *name;
    segue_transport *transport = sgnode_unwrap(frame, frame->arg[0], SGNODE_TRANSPORT);
    if (!transport || !sgnode_name(frame, frame->arg[1], false, &name))
        return NULL;
    return sgnode_exact(frame, segue_transport_header(transport, name), name);
}

static napi_value transport_peer(sgnode_frame *frame)
{
    segue_transport *transport = sgnode_unwrap(frame, frame->arg[0], SGNODE_TRANSPORT);
    return transport ? sgnode_exact(frame, segue_transport_peer(transport), "peer")
                     : NULL;
}

static napi_value transport_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_TRANSPORT);
}

const sgnode_row sgnode_transport_rows[] = {
    {"transportPair", transport_pair},
    {"transportStdio", transport_stdio},
    {"transportFds", transport_fds},
    {"transportSpawn", transport_spawn},
    {"transportHttp", transport_http},
    {"transportSetHeader", transport_set_header},
    {"transportSetOauth", transport_set_oauth},
    {"transportHeader", transport_header},
    {"transportPeer", transport_peer},
    {"transportFree", transport_free},
    {NULL, NULL},
};
