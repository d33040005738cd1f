/* Over HTTP a session is bound to no process: the one behind the address may be replaced
 * by one of another era, back or forth, and nothing but its refusals tells. "Clients
 * SHOULD cache the result for the lifetime of the [...] origin (HTTP), [...] re-probing
 * if the cached assumption later fails" (2026-07-28 basic/versioning).
 *
 * Told from a request of 2026-07-28: 400 without an error that such a server gives for it
 * (basic/transports/streamable-http, "Backward Compatibility"), or with one that names
 * other versions. From one of the handshake eras: the errors that only a modern server
 * gives, for the version and for headers that it misses. And an error that answers no
 * request: so servers of the TypeScript SDK that were started again refuse who has shaken
 * hands with the one before ("Server not initialized", where 2025-11-25 has 404), or has
 * agreed with it on another version.
 *
 * The refusal may be about this one request after all. So it is asked for anew once, and
 * what is refused again is refused. */
#include "engine/asking/era_change.h"

#include "engine/asking/request.h"

#define NOT_INITIALIZED (-32000) /* of the TypeScript SDK, for that among others */

typedef enum sgi_change { SAME = 0, STARTED_AGAIN, OTHER_ERA } sgi_change;

/* Whoever answers a modern request under its own id has read it: then it is refused, and
 * its version is not why unless that is said. */
static sgi_change change_from_modern(int64_t code, bool is_ours)
{
    bool known = code == SGI_RPC_MISSING_CAPABILITY || code == SGI_RPC_HEADER_MISMATCH ||
                 code == SGI_RPC_INVALID_PARAMS;
    return known || (is_ours && code != SGI_RPC_UNSUPPORTED_VERSION) ? SAME : OTHER_ERA;
}

static sgi_change change_of(const sgi_emitter *emitter, sgi_version version,
                            int32_t status, sgi_json error, sgi_json id)
{
    int64_t code = 0, number;
    sgi_json_int(sgi_json_get(error, "code"), &code);
    if (status != 400)
        return SAME;
    if (sgi_version_is_modern(version))
        return change_from_modern(code,
                                  sgi_json_int(id, &number) && number == emitter->id);
    if (code == NOT_INITIALIZED && (!id.n || sgi_json_kind_of(id) == SGI_JSON_NULL))
        return STARTED_AGAIN;
    if (version > SGI_VERSION_2025_11_25)
        return SAME; /* the draft has such headers itself */
    return code == SGI_RPC_UNSUPPORTED_VERSION || code == SGI_RPC_HEADER_MISMATCH
               ? OTHER_ERA
               : SAME;
}

/* Who asked, a request or the session for its calls, is told once. The request was not
 * done, so nothing is known of its key there; unless it was lost before. */
static bool doubt(sgi_emitter *emitter)
{
    segue_session *session = emitter->session;
    segue_request *request = emitter->request;
    if (!request)
        return emitter == session->listing && sgi_task_calls_doubt(session);
    if (request->era_doubted)
        return false;
    request->era_doubted = true;
    if (!request->tries.failures)
        request->key_sent = false;
    return true;
}

bool sgi_era_changed(sgi_emitter *emitter, sgi_version version, int32_t status,
                     sgi_json error, sgi_json id)
{
    static const char why[] = "the server is another than it was";
    segue_session *session = emitter->session;
    sgi_change change = change_of(emitter, version, status, error, id);
    bool may_leave = change == STARTED_AGAIN || session->options.era == SEGUE_ERA_AUTO;
    if (change == SAME || !may_leave || !doubt(emitter))
        return false;
    if (version == session->version && sgi_session_is_open(session)) {
        if (change == OTHER_ERA)
            sgi_places_note(&session->engine->places, session->conn->place, false);
        sgi_session_renew(session, why);
    }
    sgi_emitter_lost(emitter, why, true);
    return true;
}
