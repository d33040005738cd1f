/* Serves a request of a handshake version that came over HTTP without Mcp-Session-Id, and
 * without initialize before it (R-0-12). The servers of the official SDKs answer such
 * requests when they keep no sessions. The specification lets a server choose whether it
 * needs a session (2025-11-25 basic/transports, "Session Management").
 *
 * The server knows nothing of such a client: the client has declared no capabilities and
 * has heard of none. So only those methods are served whose answer depends on nothing
 * that a session holds. A call is plain and cannot ask questions. The end of its exchange
 * cancels the call, as in 2026-07-28: only a call with an idempotency key, or of a tool
 * whose calls are stored, goes on. */
#include "engine/server/serve_http.h"

#include "engine/server/serving.h"

static sgi_version version_of(const sgi_http_request_head *head)
{
    return head->version.n ? sgi_version_parse(head->version) : SGI_VERSION_OF_NO_HEADER;
}

bool sgi_needs_no_session(const sgi_http_request_head *head, sgi_json method)
{
    static const sgi_str methods[] = {
        SGI_STR_INIT("tools/list"),     SGI_STR_INIT("tools/call"),
        SGI_STR_INIT("resources/list"), SGI_STR_INIT("resources/templates/list"),
        SGI_STR_INIT("resources/read"), SGI_STR_INIT("prompts/list"),
        SGI_STR_INIT("prompts/get"),    SGI_STR_INIT("completion/complete"),
        SGI_STR_INIT("ping"),
    };
    if (head->session.p || !sgi_facts(version_of(head))->has_handshake)
        return false;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (sgi_json_string_is(method, methods[i]))
            return true;
    return false;
}

void sgi_serve_sessionless(const sgi_http_request_head *head, sgi_inbound *in,
                           const sgi_message *msg)
{
    in->peer->own_handshake.version = version_of(head);
    /* A server ignores the request for a task if it has not declared tasks to the client
     * (2025-11-25 basic/utilities/tasks). */
    in->task = (sgi_json){0};
    sgi_inbound_handle(in, msg);
}
