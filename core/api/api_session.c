/* Functions of the sessions of a client. */
#include "api/guard.h"
#include "engine/client/session.h"
#include "engine/dialect/tasks_2025/follow_2025.h"
#include "engine/response_modes.h"
#include "engine/reverse/reverse.h"
#include "engine/server/server.h"
#include "transport/transport.h"

/* Connects a session with its runtime: `hook`, a function that the runtime calls when it
 * ends, closes the session. The tie is freed together with the session. */
typedef struct session_tie {
    sgi_stop_hook hook;
    segue_runtime *runtime;
    segue_session *session;
} session_tie;

static void runtime_stops(sgi_stop_hook *hook)
{
    sgi_session_close(SGI_OWNER(hook, session_tie, hook)->session);
}

static void session_gone(segue_session *session, void *user)
{
    session_tie *tie = user;
    sgi_runtime_remove_stop_hook(tie->runtime, &tie->hook);
    sgi_free(sgi_engine_mem(session->engine), tie, sizeof *tie);
}

static void resolve_session(segue_session_options *o)
{
    if (!o->name)
        o->name = "segue";
    if (!o->version)
        o->version = "0";
    if (!o->probe_timeout_ms)
        o->probe_timeout_ms = 5000;
    if (!o->request_timeout_ms)
        o->request_timeout_ms = 60000;
    if (!o->max_reconnects)
        o->max_reconnects = 20;
    if (!o->reconnect_timeout_ms)
        o->reconnect_timeout_ms = 60000;
    if (!o->max_result_bytes)
        o->max_result_bytes = (int64_t)64 << 20;
    if (!o->max_requests)
        o->max_requests = 65536;
    if (!o->cache_bytes)
        o->cache_bytes = (int64_t)1 << 20;
}

/* Returns the name of the first option with a wrong value, or NULL when all options
 * are right. */
static const char *wrong_session_option(const segue_session_options *o)
{
    const uint32_t dialects = SEGUE_DIALECT_DRAFT_TASKS | SEGUE_DIALECT_RESUMABLE;
    if (o->era < SEGUE_ERA_AUTO || o->era > SEGUE_ERA_LEGACY)
        return "era";
    if (o->probe_timeout_ms < 0)
        return "probe_timeout_ms";
    if (o->request_timeout_ms < 0)
        return "request_timeout_ms";
    if (o->max_result_bytes < 0)
        return "max_result_bytes";
    if (o->max_requests < 0)
        return "max_requests";
    if (o->cache_bytes < -1)
        return "cache_bytes";
    if (o->first_attempts < 0)
        return "first_attempts";
    if (o->reconnect_timeout_ms < -1)
        return "reconnect_timeout_ms";
    if (o->dialects_on & ~dialects)
        return "dialects_on";
    if (o->response_modes & ~(uint32_t)SGI_MODES_ALL)
        return "response_modes";
    if (!sgi_utf8_valid(sgi_str_of(o->name), NULL))
        return "name";
    return sgi_utf8_valid(sgi_str_of(o->version), NULL) ? NULL : "version";
}

/* Makes a session. The caller holds the lock. */
static segue_status make_session(segue_runtime *runtime, segue_transport *transport,
                                 const segue_session_options *options,
                                 const segue_session_events *events, segue_session **out)
{
    sgi_engine *engine = sgi_runtime_engine(runtime);
    sgi_json capabilities = {0};
    const segue_server *host = options->host;
    const char *wrong = wrong_session_option(options);
    segue_status status = wrong
                              ? sgi_refuse(engine, SEGUE_E_INVALID,
                                           "the session option %s is out of range", wrong)
                              : sgi_transport_may_attach(transport, runtime);
    if (status == SEGUE_OK && host &&
        (host->handle.magic != SGI_MAGIC_SERVER || host->engine != engine))
        status = sgi_refuse(
            engine, SEGUE_E_INVALID,
            "the option host is a server that was freed or belongs to another runtime");
    if (status == SEGUE_OK && options->capabilities) {
        status =
            sgi_engine_check_json(engine, options->capabilities,
                                  strlen(options->capabilities), &capabilities, NULL);
        if (status == SEGUE_OK && sgi_json_kind_of(capabilities) != SGI_JSON_OBJECT)
            status = sgi_refuse(engine, SEGUE_E_INVALID,
                                "the option capabilities is not a JSON object");
    }
    if (status == SEGUE_OK)
        status = sgi_2025_check_modes_of_session(engine, options, capabilities);
    if (status != SEGUE_OK)
        return status;
    session_tie *tie = sgi_zalloc(sgi_engine_mem(engine), sizeof *tie);
    if (!tie)
        return SEGUE_E_NOMEM;
    segue_session *session;
    engine->hosting = &sgi_reverse_hosting;
    status = sgi_session_new(engine, transport, options, capabilities, events, &session);
    if (status != SEGUE_OK) {
        sgi_free(sgi_engine_mem(engine), tie, sizeof *tie);
        return status;
    }
    *tie = (session_tie){{.fn = runtime_stops}, runtime, session};
    session->gone = session_gone;
    session->gone_user = tie;
    session->conn->can_reopen = sgi_transport_can_reopen(transport);
    sgi_runtime_add_stop_hook(runtime, &tie->hook);
    sgi_handle_note_given(session);
    *out = session;
    sgi_transport_attach(transport, session->conn);
    return SEGUE_OK;
}

segue_status segue_session_open(segue_runtime *runtime, segue_transport *transport,
                                const segue_session_options *options,
                                const segue_session_events *events, segue_session **out,
                                segue_error **error)
{
    segue_session_options full;
    segue_session_events callbacks;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_session_open, runtime);
    if (status == SEGUE_OK && !out)
        status = SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(&full, sizeof full, options);
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(&callbacks, sizeof callbacks, events);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    resolve_session(&full);
    sgi_enter_runtime(runtime);
    status = make_session(runtime, transport, &full, &callbacks, out);
    return sgi_leave_runtime(runtime, status, error);
}

/* Takes no lock, because a session keeps its runtime. */
segue_runtime *segue_session_runtime(const segue_session *session)
{
    return session && session->handle.magic == SGI_MAGIC_SESSION
               ? sgi_handle_runtime(session)
               : NULL;
}

segue_status segue_session_peer(segue_session *session, char *buf, size_t *len)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_session_peer, session, SGI_MAGIC_SESSION);
    if (status != SEGUE_OK)
        return status;
    if (!len)
        status = SEGUE_E_INVALID;
    else if (!session->peer.len)
        status = SEGUE_E_STATE;
    else
        status = sgi_copy_text_out(sgi_buf_str(&session->peer), buf, len);
    sgi_leave(session);
    return status;
}

segue_status segue_session_notify(segue_session *session, const char *method,
                                  const char *params, size_t len, segue_error **error)
{
    len = sgi_given_len(params, len);
    segue_status status =
        sgi_enter(SGI_FN_segue_session_notify, session, SGI_MAGIC_SESSION);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = method && *method ? sgi_session_notify(session, method, params, len)
                               : SEGUE_E_INVALID;
    return sgi_leave_with_error(session, status, error);
}

segue_status segue_session_close(segue_session *session)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_session_close, session, SGI_MAGIC_SESSION);
    if (status != SEGUE_OK)
        return status;
    sgi_session_close(session);
    sgi_leave(session);
    return SEGUE_OK;
}

void segue_session_free(segue_session *session)
{
    if (sgi_enter(SGI_FN_segue_session_free, session, SGI_MAGIC_SESSION) != SEGUE_OK)
        return;
    segue_runtime *runtime = sgi_handle_runtime(session);
    sgi_engine *engine = session->engine;
    sgi_session_unref(session);
    sgi_handle_note_freed(engine);
    sgi_runtime_unlock(runtime);
}
