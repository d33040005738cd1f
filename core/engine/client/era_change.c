/* Detects that the server of a session was replaced by another one. A server of the
 * modern era speaks 2026-07-28; a server of the other era speaks versions that begin with
 * `initialize`. Over HTTP a session does not belong to one process. A server of another
 * era may take over the address, and only its refusals show this. "Clients SHOULD cache
 * the result for the lifetime of the [...] origin (HTTP), [...] re-probing if the cached
 * assumption later fails" (2026-07-28 basic/versioning).
 *
 * For a request of 2026-07-28 there are two signs of a replaced server. One is status 400
 * without an error that a server of 2026-07-28 gives with this status
 * (basic/transports/streamable-http, "Backward Compatibility"). The other is an error
 * that lists other versions.
 *
 * For a request of a version that begins with `initialize` there are two other signs. One
 * is an error that only a server of 2026-07-28 gives, because of the version or of
 * missing headers. The other is an error that names no request. Servers of the TypeScript
 * SDK send such an error ("Server not initialized", where 2025-11-25 has 404) when the
 * handshake was with the process before a restart, or was for another version.
 *
 * A refusal may be about one request only. So the request is sent again once, and a
 * second refusal is final. */
#include "engine/client/era_change.h"

#include "engine/client/dialects.h"

/* The code of "Server not initialized" and of other errors in servers of the TypeScript
 * SDK. */
#define NOT_INITIALIZED (-32000)

typedef enum sgi_era_change { SAME = 0, STARTED_AGAIN, OTHER_ERA } sgi_era_change;

/* Decides which change of era the error shows when a server refused a request of
 * 2026-07-28. is_ours: the error has the id of this request, so the server has read the
 * request. Such an error shows another era only if it is about the version. */
static sgi_era_change change_from_modern(int64_t code, bool is_ours)
{
    bool known = code == SGI_RPC_MISSING_CAPABILITY || code == SGI_RPC_HEADER_MISMATCH ||
                 code == SGI_RPC_INVALID_PARAMS;
    return known || (is_ours && code != SGI_RPC_UNSUPPORTED_VERSION) ? SAME : OTHER_ERA;
}

static sgi_era_change change_of(const sgi_emitter *emitter, sgi_version version,
                                int32_t status, sgi_json error, sgi_json id)
{
    int64_t code = 0, number;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (status != 400)
        return SAME;
    if (sgi_facts(version)->is_stateless)
        return change_from_modern(code, sgi_json_read_int(id, &number) &&
                                            number == emitter->id);
    if (code == NOT_INITIALIZED && (!id.n || sgi_json_kind_of(id) == SGI_JSON_NULL))
        return STARTED_AGAIN;
    if (sgi_facts(version)->header_repeats)
        /* DRAFT-2026-v1 also requires the headers of 2026-07-28, so an error about them
         * does not show another era */
        return SAME;
    return code == SGI_RPC_UNSUPPORTED_VERSION || code == SGI_RPC_HEADER_MISMATCH
               ? OTHER_ERA
               : SAME;
}

/* Notes that the server may have been replaced. This is done once per request, and once
 * for the requests of the session itself. Returns false when it was done before. The
 * server did not run the request. So no server knows the idempotency key, unless an
 * earlier attempt was lost. */
static bool doubt(sgi_emitter *emitter)
{
    segue_request *request = emitter->request;
    if (!request)
        return sgi_cli_handle_possible_era_change(emitter);
    if (request->era_doubted)
        return false;
    request->era_doubted = true;
    if (!request->tries.failures)
        request->key.sent = false;
    return true;
}

bool sgi_era_change_handle(sgi_emitter *emitter, sgi_version version, int32_t status,
                           sgi_json error, sgi_json id)
{
    static const char why[] =
        "another server, or another version of the server, answers at this URL now";
    segue_session *session = emitter->session;
    sgi_era_change change = change_of(emitter, version, status, error, id);
    bool may_leave = change == STARTED_AGAIN || session->options.era == SEGUE_ERA_AUTO;
    if (change == SAME || !may_leave || !doubt(emitter))
        return false;
    if (version == session->version && sgi_session_is_open(session)) {
        if (change == OTHER_ERA)
            sgi_era_memory_note(&session->engine->eras, session->conn->endpoint, false);
        sgi_session_renew_wire_session(session, why);
    }
    sgi_emitter_on_lost_exchange(emitter, why, SGI_LOSS_UNSENT);
    return true;
}
